"""Sentences of text units: how well they match a question, and their citations."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from operator import ne
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_nlp.text.lines import locate
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answer import Citation
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

if TYPE_CHECKING:
    from graphrag_nlp.answers.statements import Statement

TextUnit = Mapping[str, Any]

# Maximum number of sentences whose vectors are compared with the question. The sentences with the
# best match by words are chosen.
MAX_EMBEDDED_SENTENCES = 24
# Minimum share (0 to 1) of a question's words, weighted by rarity, that evidence with a low
# similarity must contain.
MIN_WORD_COVERAGE = 0.25
# Similarity of evidence that needs none of the question's words, as a multiple of
# `min_similarity`. Evidence with fewer words needs a similarity nearer to this one.
HIGH_SIMILARITY_FACTOR = 1.8
# The same if no document contains some word of the question.
UNSEEN_WORD_FACTOR = 2.2
# Coverage of a sentence that contains all words of a question. Because of rounding, the sum of the
# shares may be slightly less than 1.
FULL_WORD_COVERAGE = 0.999
# Marks of quoted letters at the start of a line, but not ">= 5" or "> 5 mm".
_QUOTE_MARKS = re.compile(r"^(?:[^\S\n]*>)+(?!=|[^\S\n]*\d)")


@dataclass(frozen=True)
class Candidate:
    """A statement of a text unit, mostly a sentence, with its start and end in the document."""

    text: str
    text_unit: int
    start_char: int
    end_char: int
    prior: float = 0.0  # score of its text unit
    label: str = ""  # shown before the text: a speaker, or what stands above a list
    about: str = ""  # words of the layout that count as words of the statement
    prose: bool = True  # false for rows of tables and fields
    shown: str = ""  # what is quoted in an answer, if not the text after its label

    @classmethod
    def within(cls, unit: TextUnit, start: int, end: int, prior: float = 0.0) -> "Candidate":
        """Build a candidate from the characters `start` to `end` of a text unit's text."""
        offset, number = unit["start_char"], unit["human_readable_id"]
        first, last = locate(unit["text"], unit["source"], start, end)
        return cls(unit["text"][start:end], number, offset + first, offset + last, prior)

    @classmethod
    def of_statement(cls, statement: "Statement", unit: TextUnit) -> "Candidate":
        """Build a candidate from a statement of a text unit."""
        found = cls.within(unit, statement.start, statement.end)
        return replace(found, text=statement.text, shown=statement.said)

    @property
    def quotation(self) -> str:
        """The text on one line, after its label."""
        text = as_one_line(self.text)
        return self.shown or (f"{self.label}: {text}" if self.label else text)

    @property
    def text_to_embed(self) -> str:
        """The text after its label."""
        return f"{self.label}: {self.text}" if self.label else self.text


@dataclass(frozen=True, eq=False)
class RankedSentence:
    """A sentence with its score.

    `similarity` is the cosine between the sentence and the question. `coverage` is the share of
    the question's words, weighted by rarity, that the sentence contains.
    """

    candidate: Candidate
    score: float
    similarity: float
    coverage: float
    vector: "np.ndarray[Any, np.dtype[np.float32]]"


def split_into_candidates(
    text_units: Iterable[TextUnit], priors: Mapping[int, float]
) -> list[Candidate]:
    """Split text units into statements. `priors` maps their numbers to their scores."""
    # Import this module only here: an answer of a model needs no statements.
    from graphrag_nlp.answers.statements import find_statements

    found = []
    for unit in text_units:
        prior = priors[unit["human_readable_id"]]
        for s in find_statements(unit["text"]):
            about, one = " ".join((s.label, s.time, s.about)), Candidate.of_statement(s, unit)
            found.append(replace(one, prior=prior, label=s.label, about=about, prose=not s.cells))
    return found


def rank_candidates(
    question: Question,
    candidates: Sequence[Candidate],
    rarity: Mapping[str, float] | None = None,
    most: int = MAX_EMBEDDED_SENTENCES,
) -> list[RankedSentence]:
    """Order sentences by how well they answer a question, the best first.

    The score is a sum of: the similarity to the question, the share of the question's words in
    the sentence, and the score of the text unit. `rarity` maps the words to their weights. Without
    `rarity`, the weight of a word is its rarity among the candidates. The vectors of at most `most`
    sentences are compared.
    """
    words = question.content_words if rarity is None else rarity
    # A word and its stem have the same first letter. Stem only words with a matching first letter.
    initials = {word[0] for word in words}
    stems = [
        {
            stem_word(word)
            for word in WORD.findall(f"{c.about} {c.text}".lower())
            if word[0] in initials
        }
        for c in candidates
    ]
    if rarity is None:
        holding = Counter(word for found in stems for word in found)
        rarity = {word: word_weight(holding[word], len(candidates)) for word in words}
    total = sum(rarity.values()) or 1.0
    coverage = [sum(rarity[word] for word in rarity if word in found) / total for found in stems]
    rough = [c.prior + coverage[i] for i, c in enumerate(candidates)]
    # Overlapping text units contain the same sentence twice: keep the better one.
    by_place: dict[tuple[str, int], int] = {}
    for i in sorted(range(len(candidates)), key=lambda i: (-rough[i], i)):
        by_place.setdefault((candidates[i].text, candidates[i].start_char), i)
    order = list(by_place.values())[:most]
    if not order:
        return []
    quoted = [candidates[i].text_to_embed for i in order]
    vectors = question.index.embedder.embed(quoted)
    ranked = [
        RankedSentence(
            candidates[i],
            float(similarity) + 0.35 * coverage[i] + 0.3 * candidates[i].prior,
            float(similarity),
            coverage[i],
            vector,
        )
        for i, similarity, vector in zip(order, vectors @ question.vector, vectors, strict=True)
    ]
    return sorted(ranked, key=lambda r: (-r.score, r.candidate.text_unit, r.candidate.start_char))


def word_weight(n_holding: int, n_all: int) -> float:
    """Return the weight of a word that `n_holding` of `n_all` texts contain."""
    return log(1 + n_all / (1 + n_holding))


def cite_passage(number: int, candidate: Candidate, unit: TextUnit, cited_as: str = "") -> Citation:
    """Build the citation of a sentence."""
    span = candidate.start_char, candidate.end_char
    return Citation(
        number=number,
        document=unit["title"],
        document_id=unit["document_id"],
        path=unit["path"],
        start_char=candidate.start_char,
        end_char=candidate.end_char,
        quote=unit["source"][slice(*(at - unit["start_char"] for at in span))],
        text_unit=candidate.text_unit,
        cited_as=cited_as or f"Sources ({candidate.text_unit})",
        prepended=unit["prepended"],
    )


def add_citation(
    citations: list[Citation], candidate: Candidate, unit: TextUnit, cited_as: str
) -> int:
    """Add the citation of a passage if `citations` lack the passage, and return its number."""
    new = cite_passage(len(citations) + 1, candidate, unit, cited_as)
    place = (new.document_id, new.start_char, new.end_char)
    for known in citations:
        if (known.document_id, known.start_char, known.end_char) == place:
            return known.number
    citations.append(new)
    return new.number


def as_one_line(sentence: str) -> str:
    """Return a sentence on one line, without marks of quoted letters before most of its lines."""
    if ">" in sentence:
        lines = sentence.split("\n")
        bare = [_QUOTE_MARKS.sub("", line) for line in lines]
        # A sentence begins behind the mark of its first line.
        n_marked = sum(map(ne, lines[1:], bare[1:]))
        sentence = "\n".join(bare if 2 * n_marked > len(lines) - 1 else lines)
    return " ".join(sentence.split())


def is_doubtful(
    question: Question, evidence: Iterable[RankedSentence], min_similarity: float
) -> bool:
    """Return whether a word of the question is in no document, and the evidence is weak.

    Such a question is often about something else than the documents, although a sentence
    resembles it.
    """
    strengths = (s.similarity + s.coverage * min_similarity for s in evidence)
    min_strength = UNSEEN_WORD_FACTOR * min_similarity
    return max(strengths, default=0.0) < min_strength and bool(question.unseen_words)
