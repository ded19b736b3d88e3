"""Answers without a model: the statements of text units that answer a question best, cited."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graphrag_index.schema.settings import searches
from graphrag_nlp.answers.features import Asked
from graphrag_nlp.answers.kinds import TYPES_OF_KIND
from graphrag_nlp.answers.rank_statements import SentenceAnswer, answer_from_sentences
from graphrag_nlp.answers.statements import Passage, find_stems
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.cell_answer import answer_by_cell, may_answer_by_cell
from graphrag_query.answering.evidence import is_evidence_enough
from graphrag_query.answering.extractive import Candidate, TextUnit, cite_passage
from graphrag_query.answering.reader_answer import find_reader_answer
from graphrag_query.question.foreign_words import foreign_languages, foreign_words
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    STEMS_ABOUT_CORPUS,
    WORD,
    content_words,
    is_unreadable,
    share_words,
)
from graphrag_query.question.refusals import format_refusal
from graphrag_query.store.index_store import IndexStore

if TYPE_CHECKING:
    from graphrag_query.answer import Context

SentenceSearchSettings = (
    searches.LocalSearch | searches.BasicSearch | searches.DriftSearch | searches.LazySearch
)
# Languages in which an answer says that it is unclear; in others, words tell too little.
CODES_OF_UNCLEAR = frozenset(("en", "de", "fr", "es"))
# Maximum number of statements of an answer that is unclear, and of words that it says to lack.
MAX_NEAREST = 2
MAX_LACKING = 3
# A word with the parts that hyphens join to it: "e-mail".
_HYPHENATED = re.compile(rf"{WORD.pattern}(?:[-\u2010\u2011]{WORD.pattern})*")


def quote_answer(
    question: Question,
    text_units: Mapping[int, TextUnit],
    scores: Mapping[int, float],
    settings: SentenceSearchSettings,
    context: "Context",
    *,
    named: Sequence[str] = (),
    links: Mapping[int, float] | None = None,
    groups: Mapping[int, int] | None = None,
) -> Answer:
    """Answer a question with the statements that answer it best, each with its citation.

    The outcome is `no_evidence` if the evidence is too weak. `text_units` begin with the best;
    `scores` and `links` say how well each matches, and how well others lead to it. `named` has
    titles and aliases of the entities that the question names. `groups` maps the number of a text
    unit to its group: statements of a group are put together, beginning with that of the best.
    """
    passages = read_passages(question, text_units, scores, links or {})
    if may_answer_by_cell(question):
        return answer_by_cell(question, passages, text_units, context, settings.min_similarity)
    if question.cell_coverage.order:
        # The question is about these documents alone.
        passages = [one for one in passages if one.number in question.cell_coverage.order]
    asked = read_question(question, text_units)
    found = answer_from_sentences(
        asked,
        passages,
        question.index.embedder.embed,
        max_statements=settings.max_sentences,
        min_similarity=settings.min_similarity,
    )
    if is_unreadable(question.index, question.text):
        shared = [r for r in found.ranked if share_words(question.text, r.statement.text)]
        found = replace(
            found, chosen=shared[: settings.max_sentences], opening="", n_rows=0, is_clear=True
        )
    is_enough = bool(found.n_rows) or (
        bool(found.chosen) and is_evidence_enough(question, found, named, settings.min_similarity)
    )
    if not is_enough:
        text = question.no_answer_text()
        return question.answer(text, Outcome.NO_EVIDENCE, context=context)
    opening = found.opening
    chosen = [
        Candidate.of_statement(one.statement, text_units[one.passage.number])
        for one in found.chosen
    ]
    # No span of a sentence says yes or no, or which of two things is older.
    may_read = asked.wanted.kind != "yes_no" and not found.is_compared and not found.n_rows
    if may_read and (read := find_reader_answer(question, passages, text_units)):
        opening = read.text
        others = (c for c in chosen if not _overlap(c, read.evidence, text_units))
        chosen = [read.evidence, *others]
        chosen = chosen[: settings.max_sentences]
    elif not found.is_clear and _may_be_unclear(question):
        chosen = chosen[: found.n_rows or MAX_NEAREST]
        opening = _introduce_nearest(question, found)
    elif len(chosen) < found.n_rows:
        opening = f"{len(chosen)}/{found.n_rows}:"
    if groups is not None:
        order = list(dict.fromkeys(groups[c.text_unit] for c in chosen))
        chosen.sort(key=lambda c: order.index(groups[c.text_unit]))
    citations = tuple(
        cite_passage(number, candidate, text_units[candidate.text_unit])
        for number, candidate in enumerate(chosen, 1)
    )
    is_span = opening and not opening.endswith(":")
    quoted = (f"{c.quotation} [{number}]" for number, c in enumerate(chosen, 1))
    text = " ".join(filter(None, [f"{opening} —" if is_span else opening, *quoted]))
    return question.answer(text, citations=citations, context=context)


def read_question(question: Question, text_units: Mapping[int, TextUnit]) -> Asked:
    """Read what a ranking of statements needs of a question; types only if it wants a name."""
    asked = Asked(
        question.text,
        question.language,
        tuple(question.content_words),
        tuple(span.text for span in question.mentions.spans),
        question.vector,
        translations=foreign_words(question),
    )
    if asked.wanted.kind in TYPES_OF_KIND:
        asked = replace(asked, types=_find_types_of_names(question.index, text_units))
    return asked


def read_passages(
    question: Question,
    text_units: Mapping[int, TextUnit],
    scores: Mapping[int, float],
    links: Mapping[int, float],
) -> list[Passage]:
    """Build the passages. Inside a document, the texts before tell who speaks in a chat."""
    index = question.index
    rows = index.open_mapped("text_unit_rows")
    codes = foreign_languages(question, text_units) if foreign_words(question) else {}
    documents = np.array([unit["document"] for unit in text_units.values()], np.int64)
    starts, _ = rows.bounds("document", documents)
    titles = {unit["document"]: unit["title"] for unit in text_units.values()}
    dated = {row: question.words_of_period(row, title) for row, title in titles.items()}
    passages = []
    for (number, unit), first in zip(text_units.items(), starts.tolist(), strict=True):
        is_inside = unit["start_char"] > 0
        before = dict.fromkeys((first, number - 1)) if is_inside else ()
        passages.append(
            Passage(
                number,
                unit["text"],
                unit["title"],
                unit["start_char"],
                scores.get(number, 0.0),
                links.get(number, 0.0),
                tuple(rows.text("text", n) for n in before),
                codes.get(number, ""),
                unit["source"],
                dated[unit["document"]],
            )
        )
    return passages


def _find_types_of_names(index: IndexStore, text_units: Mapping[int, TextUnit]) -> dict[str, str]:
    """Map the names of the entities in text units, in lower case, to their types."""
    of_units = (index.links.entities_of(unit).numbers.tolist() for unit in text_units)
    numbers = sorted({number for found in of_units for number in found})
    rows = index.open_mapped("entity_rows").rows(numbers, "title", "type", "aliases")
    return {
        name.lower(): type_
        for title, type_, aliases in rows.iter_rows()
        for name in (*aliases, title)
    }


def _overlap(one: Candidate, other: Candidate, text_units: Mapping[int, TextUnit]) -> bool:
    """Return whether two candidates share characters of a document; text units may overlap."""
    documents = {text_units[c.text_unit]["document_id"] for c in (one, other)}
    is_near = one.start_char < other.end_char and other.start_char < one.end_char
    return len(documents) == 1 and is_near


def _may_be_unclear(question: Question) -> bool:
    """Return whether words tell enough: documents in another language have others."""
    code = question.language.code
    return code in CODES_OF_UNCLEAR and not question.index.main_languages - {code}


def _introduce_nearest(question: Question, found: SentenceAnswer) -> str:
    """Write that no statement answers clearly, and which words the nearest do not say."""
    said = frozenset[str]().union(
        *(one.statement.stems | one.statement.label_stems for one in found.chosen[:MAX_NEAREST])
    )
    names = content_words(" ".join(span.text for span in question.mentions.spans))
    lacking = {*question.content_words}.difference(said, names, STEMS_ABOUT_CORPUS)
    words = [w for w in _HYPHENATED.findall(question.text) if lacking & find_stems(w)]
    if not 0 < len(words) <= MAX_LACKING:
        return format_refusal("unclear", question.language)
    listed = ", ".join(f'"{word}"' for word in dict.fromkeys(words))
    return format_refusal("unclear_without", question.language, words=listed)
