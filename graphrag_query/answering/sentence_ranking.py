"""Choose the sentences of an answer: what the embedded searches answer with."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_index.text.languages import detect_language, language_of
from graphrag_index.text.sentences import are_near_duplicates, split_sentences, telling_words
from graphrag_query.answer import Citation

if TYPE_CHECKING:
    Vectors = np.ndarray[Any, np.dtype[np.float32]]
    Embed = Callable[[list[str]], Vectors]

_WORD = re.compile(r"[^\W_]+")
# Asking words of the closed classes and beyond, that say nothing of the subject.
ASKING = frozenset(
    (
        "who whom whose what which where when why how did does was were tell explain describe "
        "list give main about important role happened happen think know wer was wann wo warum "
        "wie welche kto kim kogo czym co gdzie kiedy dlaczego jak jaki która"
    ).split()
)
# Sentences whose vectors are compared with the question's; the rest is sorted out by words.
MAX_EMBEDDED = 24
# What the similarity to a sentence that is taken already costs.
REPETITION_WEIGHT = 0.4
# Sentences that score less than this share of the best are left out.
SHARE_OF_BEST = 0.6


@dataclass(frozen=True)
class Candidate:
    """A sentence of a text unit, with its place in the document."""

    text: str
    text_unit: int
    start_char: int
    end_char: int
    prior: float  # how well its text unit fits the question
    bonus: float = 0.0  # for describing an entity or relationship that the question is about


@dataclass(frozen=True, eq=False)
class Ranked:
    candidate: Candidate
    score: float
    similarity: float
    coverage: float  # share of the question's words that it holds, weighted by rarity
    vector: "Vectors"


def content_words(text: str) -> list[str]:
    """Return the words of a question that name its subject, folded, each once."""
    function_words = language_of(detect_language(text)).function_words
    words = []
    for word in _WORD.findall(text.lower()):
        if word not in function_words and word not in ASKING and len(word) > 1:
            words.append(stem(word))
    return list(dict.fromkeys(words))


def stem(word: str) -> str:
    """Cut common endings, alike in a question and in a text; not the stem of any grammar."""
    for ending in ("'s", "ings", "ing", "ies", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def candidates_of(
    text_units: Iterable[Mapping[str, Any]],
    priors: Mapping[int, float],
    bonuses: Mapping[tuple[str, int], float],
    prose: bool = True,
) -> list[Candidate]:
    """Cut text units into sentences that can be quoted, or else into what is no `prose`: lines
    of chats, records, headings.

    `priors` are by number of the text unit, `bonuses` by document id and start of the sentence.
    """
    candidates = []
    for unit in text_units:
        number, text, offset = unit["human_readable_id"], unit["text"], unit["start_char"]
        for sentence in split_sentences(text):
            if sentence.prose == prose:
                candidates.append(
                    Candidate(
                        text[sentence.start : sentence.end],
                        number,
                        offset + sentence.start,
                        offset + sentence.end,
                        priors[number],
                        bonuses.get((unit["document_id"], offset + sentence.start), 0.0),
                    )
                )
    return candidates


def rank_sentences(
    question: str,
    question_vector: "Vectors",
    candidates: Sequence[Candidate],
    embed: "Embed",
    must_name: Sequence[str] = (),
    rarity: Mapping[str, float] | None = None,
) -> list[Ranked]:
    """Order sentences by how well they answer a question, the best first.

    A sentence counts by its similarity to the question, by the question's words that it
    holds (rare ones more), by its text unit's fit, and by naming whom the question asks about.
    `rarity` is that of the words that count; without it, it is found among the candidates.
    """
    stems = [{stem(word) for word in _WORD.findall(c.text.lower())} for c in candidates]
    if rarity is None:
        holding = Counter(word for found in stems for word in found)
        words = content_words(question)
        rarity = {word: rarity_of(holding[word], len(candidates)) for word in words}
    total = sum(rarity.values()) or 1.0
    coverage = [sum(rarity[word] for word in rarity if word in found) / total for found in stems]
    names = [name.lower() for name in must_name]
    naming = [any(name in c.text.lower() for name in names) for c in candidates]
    rough = [c.prior + c.bonus + coverage[i] + 0.3 * naming[i] for i, c in enumerate(candidates)]
    # Overlapping text units hold the same sentence twice.
    order, places = [], set()
    for i in sorted(range(len(candidates)), key=lambda i: (-rough[i], i)):
        place = (candidates[i].text, candidates[i].start_char)
        if place not in places:
            places.add(place)
            order.append(i)
    order = order[:MAX_EMBEDDED]
    if not order:
        return []
    vectors = embed([candidates[i].text for i in order])
    ranked = [
        Ranked(
            candidates[i],
            float(similarity)
            + 0.35 * coverage[i]
            + 0.3 * candidates[i].prior
            + 0.15 * naming[i]
            + candidates[i].bonus,
            float(similarity),
            coverage[i],
            vector,
        )
        for i, similarity, vector in zip(order, vectors @ question_vector, vectors, strict=True)
    ]
    return sorted(ranked, key=lambda r: (-r.score, r.candidate.text_unit, r.candidate.start_char))


def rarity_of(n_holding: int, n_all: int) -> float:
    """Return what a word is worth that so many of all texts hold."""
    return log(1 + n_all / (1 + n_holding))


def without_repetition(ranked: Sequence[Ranked], most: int) -> list[Ranked]:
    """Take the best sentences, but each for what it adds to those taken before.

    Maximal marginal relevance [1]_: what is similar to a sentence that is taken counts
    less, and what is alike to one is left out.

    References
    ----------
    .. [1] Carbonell & Goldstein, The use of MMR, SIGIR 1998.
    """
    left = list(ranked)
    taken: list[Ranked] = []
    used: list[frozenset[str]] = []
    while left and len(taken) < most:
        best = max(left, key=lambda r: r.score - REPETITION_WEIGHT * _nearness(r, taken))
        left.remove(best)
        words = telling_words(best.candidate.text)
        if not any(are_near_duplicates(words, other) for other in used):
            taken.append(best)
            used.append(words)
    return taken


def _nearness(sentence: Ranked, taken: Sequence[Ranked]) -> float:
    return max((float(sentence.vector @ other.vector) for other in taken), default=0.0)


def cite(
    number: int, candidate: Candidate, unit: Mapping[str, Any], cited_as: str = ""
) -> Citation:
    """Resolve a sentence to its document, place and words."""
    return Citation(
        number=number,
        document=unit["title"],
        document_id=unit["document_id"],
        path=unit["path"],
        start_char=candidate.start_char,
        end_char=candidate.end_char,
        quote=candidate.text,
        text_unit=candidate.text_unit,
        cited_as=cited_as or f"Sources ({candidate.text_unit})",
    )


def as_prose(sentence: str) -> str:
    """Put a quotation on one line."""
    return " ".join(sentence.split())
