"""The subject of a question for a number, and the documents and text units that mention it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from graphrag_index.text.normalize import is_unspaced
from graphrag_query.answering.count_table import find_dates
from graphrag_query.question.count_request import CountRequest
from graphrag_query.question.question import Question
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.retrieval.term_counts import TermCount, count_term

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Integers = npt.NDArray[np.int64]

# Maximum number of forms of a word that the answer lists.
MAX_FORMS = 6


@dataclass(frozen=True, eq=False)
class Subject:
    """The documents and text units with the subject of a question.

    Without a subject, `terms` is empty and the documents are those of the whole corpus.
    `criterion` says what was counted.
    """

    terms: Sequence[TermCount]
    text_units: "Integers"
    documents: "Integers"
    name: str
    criterion: str

    @property
    def pattern(self) -> str:
        """The pattern of any form of the subject's words."""
        return any_of(form for term in self.terms for form in (*term.forms, term.term))


def find_subject(
    question: Question, request: CountRequest, document_of: "Integers", documents: "Integers"
) -> Subject:
    """Find the documents that mention the subject of a question.

    `document_of` has the document of each text unit of the index. Only `documents` count.
    """
    kept = np.isin(document_of, documents)
    terms = _count_terms(question, request, kept)
    if not terms:
        return Subject((), np.flatnonzero(kept), documents, "", "all documents")
    is_any = request.is_any or request.counted == "subjects"
    found = terms[0].documents
    for term in terms[1:]:
        join = np.union1d if is_any else np.intersect1d
        found = join(found, term.documents)
    numbers = np.unique(np.concatenate([term.text_units for term in terms]))
    numbers = numbers[np.isin(document_of[numbers], found)]
    quoted = [f"“{term.term}”" for term in terms]
    name = f" {'or' if is_any else 'and'} ".join(quoted)
    return Subject(terms, numbers, found, name, _describe_forms(terms))


def restrict_to_dates(
    index: IndexStore, request: CountRequest, documents: "Integers"
) -> tuple["Integers", CountRequest]:
    """Return the documents of the dates that the question names.

    If most documents have no date, the dates are words of the subject instead.
    """
    names = (*(date.text for date in request.dates), *request.years)
    if not names:
        return documents, request
    rows = index.open_mapped("document_rows").columns("title", "creation_date")
    dated = find_dates(rows.with_row_index("document")[documents])
    if 2 * dated.height < len(documents):
        return documents, replace(request, terms=(*request.terms, *names), dates=(), years=())
    kept = [
        document
        for document, day in dated.iter_rows()
        if day[:4] in request.years or any(date.matches(day) for date in request.dates)
    ]
    return np.array(sorted(kept), np.int64), request


def _count_terms(question: Question, request: CountRequest, kept: "Flags") -> list[TermCount]:
    """Count each term in the text units with the flag of `kept`.

    A phrase that no document contains is counted word by word.
    """
    language, counts = question.language, list[TermCount]()
    for term in request.terms:
        count = count_term(question.index, term, language, kept)
        words = term.split()
        if len(count.text_units) or len(words) == 1 or f'"{term}"' in question.text:
            counts.append(count)
        else:
            counts += [count_term(question.index, word, language, kept) for word in words]
    return counts


def any_of(names: Iterable[str]) -> str:
    """Return a pattern of any of these words or names, the longest one first."""
    patterns = (
        re.escape(name) if is_unspaced(name) else rf"\b{re.escape(name)}\b"
        for name in sorted(names, key=len, reverse=True)
    )
    return "|".join(patterns)


def _describe_forms(terms: Sequence[TermCount]) -> str:
    """Describe what was counted as a mention of the terms, with the forms of the words."""
    parts = []
    for term in terms:
        forms = [f"{form} ({n:,})" for form, n in list(term.forms.items())[:MAX_FORMS]]
        listed = ", ".join(forms) or f"names of the entity {term.term}"
        parts.append(f"“{term.term}” as {listed}")
    return "documents with " + "; ".join(parts)
