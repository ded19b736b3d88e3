"""Answers to questions for a number, counted in the tables of the index.

Documents, dates and mentions are counted exactly; the answer says what was counted and how. A
small table with bars shows the numbers, and citations show examples.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from graphrag_index.errors import join_names
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.answering.count_table import (
    PERIOD_NAMES,
    choose_period,
    fill_periods,
    write_table,
)
from graphrag_query.answering.extractive import Candidate, as_one_line, cite_passage
from graphrag_query.question.count_request import CountRequest
from graphrag_query.question.question import Mentions, Question
from graphrag_query.searches.count_subject import any_of, find_subject, restrict_to_dates
from graphrag_query.searches.main_entities import are_of_type, unite_countries

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

# Number of rows in a table of entities, if the question gives no number.
MAX_ENTITIES = 10
# Maximum number of names that are mentioned most.
MAX_NAMES = 3
# Maximum number of periods in a table.
MAX_PERIODS = 60
# Number of passages that are cited as examples of a subject.
MAX_EXAMPLES = 3
# A number rises or falls over time if it changes at least by this factor.
MIN_CHANGE = 1.2
# In documents with more text units than this, on average, passages count instead of documents.
MAX_TEXT_UNITS_OF_ARTICLE = 5


def count_answer(question: Question, request: CountRequest) -> Answer:
    """Answer a question for a number.

    The outcome is `no_evidence` if no document mentions the subject, or has a date that it needs.
    """
    counter = _Counter(question, request)
    write = {
        "documents": counter.write_documents,
        "occurrences": counter.write_documents,
        "top_documents": counter.write_top_documents,
        "subjects": counter.write_subjects,
        "entities": counter.write_entities,
        "distinct": counter.write_entities,
        "dates": counter.write_dates,
        "trend": counter.write_trend,
    }[request.counted]
    subject = counter.subject
    question.counts.update(
        documents=len(counter.all_documents), documents_counted=len(subject.documents)
    )
    # "0 of 5 documents mention A and B" is an answer; there is nothing to rank or to date.
    is_number = request.counted in ("documents", "occurrences", "subjects")
    found = [term.documents for term in subject.terms] if is_number else [subject.documents]
    if subject.terms and not any(map(len, found)):
        n_all, of_dates = len(counter.all_documents), counter.of_dates
        text = f"None of the {n_all:,} documents{of_dates} mentions {subject.name}."
        return question.answer(text, Outcome.NO_EVIDENCE)
    return write()


class _Counter:
    """The tables of one index, and the answer to one question for a number."""

    def __init__(self, question: Question, request: CountRequest) -> None:
        self.question, self.index = question, question.index
        units = self.index.open_mapped("text_unit_rows")
        self.document_of = units.slice("document", 0, len(units))
        kept = self.index.row_flags("documents")
        n_documents = self.index.n_rows("document_rows")
        kept_documents = np.arange(n_documents) if kept is None else np.flatnonzero(kept)
        documents, self.request = restrict_to_dates(self.index, request, kept_documents)
        self.all_documents = documents
        # The dates of the documents, as a part of sentences.
        dates = [*(date.text for date in self.request.dates), *self.request.years]
        self.of_dates = f" of {' and '.join(dates)}" if dates else ""
        self.subject = find_subject(question, self.request, self.document_of, self.all_documents)
        self.citations: list[Citation] = []

    def write_documents(self) -> Answer:
        """Say how many documents mention the subject, and how often."""
        subject, n_all = self.subject, len(self.all_documents)
        if not subject.terms:
            n_passages = len(subject.text_units)
            text = f"There are {n_all:,} documents{self.of_dates}, with {n_passages:,} passages."
            return self._answer([text], ())
        n_documents, n_passages = len(subject.documents), len(subject.text_units)
        times = sum(term.n_mentions for term in subject.terms)
        share = f"{n_documents:,} of {n_all:,} documents{self.of_dates}"
        share = f"{share} ({_percent(n_documents, n_all)})"
        if self.request.counted == "occurrences":
            first = f"{subject.name} is mentioned {times:,} times, in {share}."
        else:
            verb = "mentions" if n_documents == 1 else "mention"
            passages = f"in {n_passages:,} passages"
            first = f"{share} {verb} {subject.name}: {times:,} times, {passages}."
            if len(subject.terms) > 1:
                first = f"{share} {verb} {subject.name}."
        rows = self._rows_of_terms() if len(subject.terms) > 1 else ()
        return self._answer([first], rows, examples=True)

    def write_top_documents(self) -> Answer:
        """List the documents that mention the subject most often."""
        weights = self._occurrences()
        times = np.bincount(self.document_of, weights, minlength=self.index.n_rows("document_rows"))
        documents = self.subject.documents[
            np.argsort(-times[self.subject.documents], kind="stable")
        ]
        shown = documents[: self.request.most or MAX_ENTITIES].tolist()
        rows: list[dict[str, Any]] = [
            {
                "document": title,
                "mentions": int(times[number]),
                "footnote": self._cite_document(number),
            }
            for number, title in zip(shown, self.index.documents(shown)["title"], strict=True)
        ]
        n_all = len(self.all_documents)
        first = (
            f"“{rows[0]['document']}” mentions {self.subject.name} most often: "
            f"{rows[0]['mentions']:,} times. {len(documents):,} of {n_all:,} documents mention it."
        )
        return self._answer([first], rows)

    def _occurrences(self) -> "npt.NDArray[np.int64]":
        """Return the number of occurrences of the subject in each text unit of the index."""
        weights = np.zeros(len(self.document_of), np.int64)
        for term in self.subject.terms:
            weights[term.text_units] += term.n_of_text_units
        return weights

    def write_subjects(self) -> Answer:
        """Compare how many documents mention each of several subjects."""
        rows = self._rows_of_terms()
        best = rows[0]
        first = (
            f"“{best['subject']}” is mentioned in the most documents: {best['documents']:,} of "
            f"{len(self.all_documents):,}."
        )
        return self._answer([first], rows, examples=True)

    def _rows_of_terms(self) -> Sequence[Mapping[str, Any]]:
        rows = [
            {"subject": t.term, "documents": len(t.documents), "mentions": t.n_mentions}
            for t in self.subject.terms
        ]
        return sorted(rows, key=lambda row: (-row["documents"], -row["mentions"]))

    def write_entities(self) -> Answer:
        """List the entities of a type by the number of documents that mention them."""
        subject = self.subject
        unit, ranked = self._rank_entities()
        plural = self.request.plural
        within = self.of_dates + (f" that mention {subject.name}" if subject.terms else "")
        n_of = len(subject.text_units if unit == "passages" else subject.documents)
        if not ranked:
            text = f"The index knows no {plural} of the {n_of:,} {unit}{within}."
            return self.question.answer(text, Outcome.NO_EVIDENCE)
        shown = ranked[: self.request.most or MAX_ENTITIES]
        titles = self.index.entities(entity for entity, _ in shown)
        rows = []
        for (entity, n), title, aliases in zip(
            shown, titles["title"], titles["aliases"], strict=True
        ):
            footnote = self._cite_entity(entity, (title, *aliases))
            rows.append({"name": title, unit: n, "footnote": footnote})
        if self.request.counted == "distinct":
            first = (
                f"{len(ranked):,} different {plural} are mentioned in the {n_of:,} {unit}{within}."
            )
        else:
            best = _list_names([row["name"] for row in rows if row[unit] == rows[0][unit]])
            verb = "are" if len([r for r in rows if r[unit] == rows[0][unit]]) > 1 else "is"
            first = (
                f"{best} {verb} mentioned most: in {rows[0][unit]:,} of {n_of:,} {unit}{within}."
            )
        more = len(ranked) - len(rows)
        notes = [f"{more:,} more {plural} are mentioned less often."] if more > 0 else []
        return self._answer([first], rows, notes)

    def _rank_entities(self) -> tuple[str, list[tuple[int, int]]]:
        """Count the documents or passages that mention each entity, the most first."""
        index = self.index
        table, rows = index.open_mapped("text_units_of_entities"), index.open_mapped("entity_rows")
        units = table.slice("text_unit", 0, len(table))
        entities = table.slice("entity", 0, len(table))
        flags = self.relevant[units]
        is_country = self.request.narrower == "country"
        if self.request.kind:
            names = ("title", "type", "frequency")
            columns = rows.columns(*(names if self.request.narrower else names[1:2]))
            wanted = are_of_type(columns, self.request.kind, self.request.narrower)
            flags &= wanted.to_numpy()[entities]
        kept = index.row_flags("entities")
        if kept is not None:
            flags &= kept[entities]
        units, entities = units[flags], entities[flags]
        places = units if self.by_passage else self.document_of[units]
        if is_country:
            entities = unite_countries(columns, "geo")[entities]
            order = np.lexsort((places, entities))
            entities, places = entities[order], places[order]
        # The table is in the order of entities and text units: equal pairs are adjacent.
        is_new = np.ones(len(entities), bool)
        is_new[1:] = (entities[1:] != entities[:-1]) | (places[1:] != places[:-1])
        counts = np.bincount(entities[is_new], minlength=len(rows))
        # All of these documents mention the subject itself.
        counts[self._entities_of_subject()] = 0
        numbers = np.flatnonzero(counts)
        numbers = numbers[np.argsort(-counts[numbers], kind="stable")]
        ranked = list(zip(numbers.tolist(), counts[numbers].tolist(), strict=True))
        return "passages" if self.by_passage else "documents", ranked

    def _entities_of_subject(self) -> list[int]:
        """Return the entities that have the name of the subject."""
        terms, language = self.subject.terms, self.question.language
        found = (Mentions(self.index, term.term, language).exact_entities for term in terms)
        return [entity for entities in found for entity in entities]

    @cached_property
    def by_passage(self) -> bool:
        """Whether passages count instead of documents, because the documents are long."""
        n_passages = np.isin(self.document_of, self.all_documents).sum()
        return bool(n_passages > MAX_TEXT_UNITS_OF_ARTICLE * len(self.all_documents))

    @cached_property
    def relevant(self) -> "npt.NDArray[np.bool_]":
        """Whether each text unit of the index counts for the names in it."""
        flags = np.zeros(len(self.document_of), bool)
        flags[self.subject.text_units] = True
        if self.by_passage:
            return flags
        of_documents = np.zeros(self.index.n_rows("document_rows"), bool)
        of_documents[self.subject.documents] = True
        flags[:] = of_documents[self.document_of]
        return flags

    def _cite_entity(self, entity: int, names: Sequence[str]) -> str:
        """Cite the first sentence of a counted text unit that names an entity."""
        linked, is_subject = self.index.links.text_units_of(entity)
        flags = self.relevant[linked]
        linked, is_subject = linked[flags], is_subject[flags]
        if not len(linked):
            return ""
        number = int(linked[int(np.argmax(is_subject))])
        return self._cite(number, any_of(names))

    def write_dates(self) -> Answer:
        """Say when the subject is mentioned for the first and the last time."""
        dated = self._dated_documents()
        if dated is None:
            return self._no_dates()
        first, last = dated.row(0, named=True), dated.row(-1, named=True)
        cited = [self._cite_document(row["document"]) for row in (first, last)]
        name, n_documents = self.subject.name, len(self.subject.documents)
        lines = [
            f"{name} is first mentioned on {first['date']} {cited[0]} and last on {last['date']} "
            f"{cited[1]}.".replace("  ", " "),
            f"{dated.height:,} of the {n_documents:,} documents that mention it have a date.",
        ]
        return self._answer(lines, ())

    def write_trend(self) -> Answer:
        """Count the documents with the subject by year, month or day."""
        dated = self._dated_documents()
        if dated is None:
            return self._no_dates()
        length = self.request.period or choose_period(dated["date"])
        dates = dated.filter(pl.col("date").str.len_chars() >= length)["date"].str.slice(0, length)
        if not len(dates):
            return self._no_dates()
        counted = dates.value_counts().sort("date").rows()
        periods = fill_periods([date for date, _ in counted], length)
        counts = dict(counted)
        name = PERIOD_NAMES[length]
        rows = [{name: period, "documents": counts.get(period, 0)} for period in periods]
        best = max(rows, key=lambda row: row["documents"])
        within = f" that mention {self.subject.name}" if self.subject.terms else ""
        lines = [
            f"{_describe_trend(f'documents{within}', rows, name)} Most are of {best[name]}: "
            f"{best['documents']:,} of {sum(counts.values()):,}."
        ]
        n_without = len(self.subject.documents) - sum(counts.values())
        notes = [f"{n_without:,} documents have no such date."] if n_without else []
        if len(rows) > MAX_PERIODS:
            notes.append(f"The last {MAX_PERIODS} of {len(rows):,} periods are shown.")
        return self._answer(lines, rows[-MAX_PERIODS:], notes, examples=True)

    def _dated_documents(self) -> pl.DataFrame | None:
        """Return the counted documents with a date, in order of the dates."""
        dated = self.index.dated_documents(self.subject.documents)
        return dated if dated.height else None

    def _no_dates(self) -> Answer:
        text = f"None of the {len(self.subject.documents):,} counted documents has a date."
        return self.question.answer(text, Outcome.NO_EVIDENCE)

    def _cite_document(self, document: int) -> str:
        """Cite the first passage of a document with the subject."""
        numbers = self.subject.text_units
        [first, *_] = numbers[self.document_of[numbers] == document].tolist()
        return self._cite(first, self.subject.pattern)

    def _cite(self, number: int, pattern: str) -> str:
        """Cite the first sentence of a text unit that matches a pattern, and return its mark."""
        unit = self.index.text_units([number])[number]
        sentences = split_sentences(unit["text"])
        matching = [s for s in sentences if re.search(pattern, unit["text"][s.start : s.end])]
        ordered = [*(s for s in matching if s.prose), *matching, *sentences]
        if not ordered:
            return ""
        best = ordered[0]
        candidate = Candidate.within(unit, best.start, best.end)
        self.citations.append(cite_passage(len(self.citations) + 1, candidate, unit))
        return f"[{len(self.citations)}]"

    def _examples(self) -> list[str]:
        """Quote the passages with the most occurrences of the subject, one per document."""
        lines, seen = [], set[int]()
        numbers, weights = self.subject.text_units, self._occurrences()
        for number in numbers[np.argsort(-weights[numbers], kind="stable")].tolist():
            document = int(self.document_of[number])
            if document not in seen:
                seen.add(document)
                mark = self._cite(number, self.subject.pattern)
                said = as_one_line(self.citations[-1].quote) if mark else ""
                lines.append(f"- {said} {mark}")
            if len(lines) == MAX_EXAMPLES:
                break
        return lines

    def _answer(
        self,
        lines: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        notes: Sequence[str] = (),
        examples: bool = False,
    ) -> Answer:
        """Build the answer: the sentence with the number, table, mentions and examples."""
        parts = ["\n".join(lines)]
        if rows:
            parts.append(write_table(rows))
        if self.subject.terms:
            parts.append(self.subject.mentions)
        if self.request.counted in ("entities", "distinct"):
            unit = "passage" if self.by_passage else "document"
            parts.append(f"A {unit} counts once for each name that the index found in it.")
        if notes:
            parts.append(" ".join(notes))
        if examples and (quoted := self._examples()):
            parts.append("\n".join(["Examples:\n", *quoted]))
        table = tuple({k: v for k, v in row.items() if k != "footnote"} for row in rows)
        answer = self.question.answer("\n\n".join(parts), citations=tuple(self.citations))
        return replace(answer, table=table)


def _list_names(names: Sequence[str]) -> str:
    """Join names by commas and "and"; of many, name three and the number of the others."""
    if len(names) > MAX_NAMES:
        return join_names(names, MAX_NAMES)
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _describe_trend(counted: str, rows: Sequence[Mapping[str, Any]], period: str) -> str:
    """Say whether the numbers of the second half of the periods are higher or lower."""
    half = len(rows) // 2
    early = sum(row["documents"] for row in rows[:half])
    late = sum(row["documents"] for row in rows[len(rows) - half :])
    if not half:
        return f"All {counted} with a date are of one {period}."
    change = f"from {early:,} in the first half of the {period}s to {late:,} in the second half"
    if late >= MIN_CHANGE * early:
        return f"The number of {counted} rises: an increase {change}."
    if early >= MIN_CHANGE * late:
        return f"The number of {counted} falls: a decrease {change}."
    return f"The number of {counted} stays about the same: {change}."


def _percent(n: int, n_all: int) -> str:
    return f"{100 * n / max(n_all, 1):.0f} %"
