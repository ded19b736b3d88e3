"""Questions that two sentences answer, of which one leads to the other.

"When was the director of Alpha born?": "Alpha was directed by Ann Bell." holds most words of the
question and leads to "Bell was born in 1910.", which answers it.
"""

from collections.abc import Mapping, Sequence

from graphrag_query.answering.answer_spans import find_name_words, find_new_spans
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.extractive import Candidate
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

# Kinds of answers that a part of a sentence gives.
KINDS = frozenset(
    ("number", "duration", "date", "time", "person", "place", "organization", "title")
)
# Minimum fit of a part that is surely of the wanted kind.
MIN_FIT = 1.0


def put_answer_before_bridge(
    question: Question, chosen: Sequence[Candidate], types: Mapping[str, str]
) -> list[Candidate]:
    """Put the sentence that answers before the first one, if that only leads to it.

    The first sentence has no part that is surely of the wanted kind. The other one has, says
    further words of the question but fewer of its names, and shares another name with the first
    one. `types` maps names of entities in lower case to their types.
    """
    first, *others = chosen
    if question.wanted.kind not in KINDS or first.label or not others:
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
