"""Questions that two sentences answer, of which one leads to the other.

"When was the director of Alpha born?": "Alpha was directed by Ann Bell." holds most words of the
question and leads to "Bell was born in 1910.", which answers it.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from math import log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphrag_query.answering.answer_spans import find_name_words, find_new_spans
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.extractive import Candidate
from graphrag_query.question.answer_kind import KINDS_OF_PARTS
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

if TYPE_CHECKING:
    Shares = np.ndarray[Any, np.dtype[np.float64]]

# Maximum number of sentences whose names lead to sentences of other text units.
MAX_BRIDGES = 16
# Maximum share (0 to 1) of the sentences that hold a name which leads from one to another.
MAX_BRIDGE_SHARE = 0.3
# Minimum number of relations that a question names, if a sentence that says none of them may lead
# to its answer: "When did the company that Alpha is part of close?".
MIN_RELATIONS = 3
# Minimum fit of a part that is surely of the wanted kind.
MIN_FIT = 1.0


class Bridge(NamedTuple):
    """The positions of two sentences of different text units, of which one leads to the other.

    They share a name that the question does not have: as the subject of the target or in the title
    of its document, or anywhere. `rarity` (0 to 1) is that of the name.
    """

    leading: int
    target: int
    is_to_subject: bool
    rarity: float


def choose_leading_sentences(
    shares: "Shares", n_relations: int, says_relation: Sequence[bool]
) -> list[int]:
    """Choose the sentences that may lead to others: the best by their shares of the question.

    Two steps take two relations: "Who is the mayor of Altdorf?" has one, and no sentence on Altdorf
    leads to its answer. If there are no more than two, the first sentence says one of them: "Alpha
    was directed by Ann Bell." for "When was the director of Alpha born?".
    """
    if n_relations < 2:
        return []
    best: list[int] = np.argsort(-shares, kind="stable")[:MAX_BRIDGES].tolist()
    return [i for i in best if n_relations >= MIN_RELATIONS or says_relation[i]]


def find_bridges(
    question: Question,
    candidates: Sequence[Candidate],
    leading: Sequence[int],
    tokens: Sequence[Set[str]],
    subjects: Sequence[frozenset[str]],
) -> Iterator[Bridge]:
    """Yield where one sentence leads to another. Lines of chats have too many names to lead.

    `leading` has the positions of the sentences that may lead, `tokens` the words of each
    candidate, and `subjects` the name that each is about.
    """
    asked = set(WORD.findall(question.text.lower()))
    titles = [set(WORD.findall(c.title.lower())) for c in candidates]
    found: dict[frozenset[str], list[int]] = {}
    for i in (i for i in leading if not candidates[i].in_turn):
        for name in find_name_words(candidates[i].text, question.language):
            if not name & asked:
                found.setdefault(name, []).append(i)
    for name, sentences in found.items():
        held = [i for i, words in enumerate(tokens) if name <= words]
        if len(held) > max(2, MAX_BRIDGE_SHARE * len(candidates)):
            continue
        rarity = 1 - log(len(held) or 1) / log(1 + len(candidates))
        pairs = zip(subjects, titles, strict=True)
        about = [i for i, (s, t) in enumerate(pairs) if s and (name <= s or s <= name or name <= t)]
        held = [i for i in held if not candidates[i].label]
        for is_to_subject, targets in ((True, about), (False, held)):
            for i in targets:
                for other in sentences:
                    if candidates[i].text_unit != candidates[other].text_unit:
                        yield Bridge(other, i, is_to_subject, rarity)


def put_answer_before_bridge(
    question: Question, chosen: Sequence[Candidate], types: Mapping[str, str]
) -> list[Candidate]:
    """Put the sentence that answers before the first one, if that only leads to it.

    The first sentence has no part that is surely of the wanted kind. The other one has, says
    further words of the question but fewer of its names, and shares another name with the first
    one. `types` maps names of entities in lower case to their types.
    """
    first, *others = chosen
    if question.wanted.kind not in KINDS_OF_PARTS or first.in_turn or not others:
        return list(chosen)
    asked, words = AskedWords(question), set(WORD.findall(question.text.lower()))

    def find_fit(candidate: Candidate) -> float:
        spans = find_new_spans(
            candidate.text, question.text, question.wanted, question.language, types
        )
        return max((span.fit for span in spans), default=0.0)

    def find_names(candidate: Candidate) -> set[frozenset[str]]:
        found = find_name_words(f"{candidate.title}. {candidate.text}", question.language)
        return {name for name in found if not name & words}

    def find_said(candidate: Candidate) -> set[str]:
        return {asked.find(word) for word in WORD.findall(candidate.text.lower())} - {""}

    if find_fit(first) >= MIN_FIT:
        return list(chosen)
    names, said = find_names(first), find_said(first)
    leading = said - asked.beside_names
    for other in others:
        more = find_said(other)
        shared = any(a <= b or b <= a for a in names for b in find_names(other))
        named = more - asked.beside_names
        is_led_to = not named or named < leading
        if shared and more - said and is_led_to and find_fit(other) >= MIN_FIT:
            return [other, *(c for c in chosen if c is not other)]
    return list(chosen)
