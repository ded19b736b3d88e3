"""Reports by a model as table rows, with sentences of documents that state the same.

Reports of the last version are kept if their evidence has hardly changed.

A statement of a report is traced to sentences of the documents that it cites.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from graphrag_index.reports.report import (
    CitedReport,
    CommunityMembers,
    Finding,
    Report,
    make_report_rows,
)
from graphrag_index.reports.report_context import ReportContexts
from graphrag_index.reports.report_evidence import (
    COLUMN_OF_CITED_ROWS,
    EVIDENCE_TABLE,
    PROMPT_HASH_OF_IMPORTS,
    REPORTS_PER_BATCH,
    CommunityEvidence,
    Hashes,
    SectionIds,
)
from graphrag_index.schema.tables import READING, TABLES
from graphrag_index.storage.memo import reuse_rows
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.list_columns import find_rows, gather_by_owner, gather_lists, spread_lists
from graphrag_nlp.text.citations import find_citations
from graphrag_nlp.text.lines import locate
from graphrag_nlp.text.report_statements import SourceSpan, StatementWords, choose_spans, stem_words
from graphrag_nlp.text.sentences import split_sentences

# Maximum number of text units that are searched for one statement. Those of cited relationships
# and claims come before those of cited entities, which may be many.
MAX_TEXT_UNITS = 60
# (section, position in the rows of the report): a cited row.
CitedRow = tuple[str, int]
_COLUMN = TABLES["community_reports"].schema["statements"]


@dataclass(frozen=True)
class Statement:
    """A statement of a report.

    `finding` is the number of its finding, from 0; None: the summary. `n_documents` is the number
    of documents with a sentence that states it. `spans` are such sentences, the best first.
    """

    finding: int | None
    text: str
    n_documents: int
    spans: Sequence[SourceSpan]


def make_statement_column(
    reports: Sequence[Sequence[Statement]],
    text_unit_ids: Mapping[int, str],
    document_ids: Mapping[int, str],
) -> pl.Series:
    """Return the column `statements` of reports; a statement has one record for each span.

    A statement without a span has one record without a place. `text_unit_ids` and `document_ids`
    map row numbers to ids.
    """
    rows = [
        (
            at,
            number,
            said.finding,
            said.text,
            said.n_documents,
            *(
                (text_unit_ids[span[0]], document_ids[span[1]], span.start_char, span.end_char)
                if span
                else (None, None, None, None)
            ),
        )
        for at, statements in enumerate(reports)
        for number, said in enumerate(statements)
        for span in (said.spans or (None,))
    ]
    fields = {field.name: field.dtype for field in _COLUMN.inner.fields}  # type: ignore[attr-defined]
    frame = pl.DataFrame(rows, {"owner": pl.Int64, **fields}, orient="row")
    if not rows:
        return pl.Series("statements", [[] for _ in reports], _COLUMN)
    return gather_by_owner(frame, len(reports)).alias("statements")


class StatementSources:
    """The text units that support the rows that reports cite."""

    def __init__(
        self,
        members: CommunityMembers,
        evidence: CommunityEvidence,
        base_text_units: pl.LazyFrame,
    ) -> None:
        self._members, self._evidence, self._table = members, evidence, base_text_units
        units = base_text_units.select("id", "document_id", "start_char").collect()
        self._ids, self._starts = units["id"], units["start_char"].to_numpy()
        self._document_ids = units["document_id"].unique(maintain_order=True)
        self._document_of = find_rows(units["document_id"], self._document_ids)
        # The text units of the statements of each report, by community.
        self._units_of_report: dict[int, list[int]] = {}

    def make_column(self, reports: Mapping[int, CitedReport]) -> pl.Series:
        """Return the column `statements` of reports, which are given by community."""
        said = {at: [*_split_report(report)] for at, report in reports.items()}
        units = {
            at: [self._find_text_units(reports[at], cited) for _, _, cited in statements]
            for at, statements in said.items()
        }
        sentences = self._read_sentences(
            {n for found in units.values() for numbers in found for n in numbers}
        )
        traced = []
        for at, statements in said.items():
            made = [
                self._make_statement(finding, text, self._names_cited(reports[at], cited), found)
                for (finding, text, cited), numbers in zip(statements, units[at], strict=True)
                for found in [[s for n in numbers for s in sentences[n]]]
            ]
            spans = (span.text_unit for statement in made for span in statement.spans)
            self._units_of_report[at] = list(dict.fromkeys(spans))
            traced.append(made)
        spans_of = [span for made in traced for statement in made for span in statement.spans]
        unit_ids = {span.text_unit: self._ids[span.text_unit] for span in spans_of}
        document_ids = {span.document: self._document_ids[span.document] for span in spans_of}
        return make_statement_column(traced, unit_ids, document_ids)

    def _find_text_units(self, report: CitedReport, cited: Sequence[CitedRow]) -> list[int]:
        """Return the text units that support cited rows, those of few rows first."""
        evidence = self._evidence
        cited = cited or _list_cited_rows(report)
        found: dict[int, None] = {}
        for section in ("Relationships", "Claims", "Reports", "Entities"):
            for row in _rows_of(report, cited, section):
                if section == "Relationships":
                    numbers = evidence.units_of_links[row].tolist()
                elif section == "Entities":
                    numbers = evidence.units_of_nodes[row].tolist()
                elif section == "Claims":
                    numbers = [n for n in [int(evidence.unit_of_claim[row])] if n >= 0]
                else:
                    numbers = self._units_of_report.get(row, [])
                found |= dict.fromkeys(numbers)
        return [*found][:MAX_TEXT_UNITS]

    def _names_cited(self, report: CitedReport, cited: Sequence[CitedRow]) -> frozenset[str]:
        """Return the stems of the names of cited entities, and of the ends of relationships."""
        cited = cited or _list_cited_rows(report)
        links = np.array([*_rows_of(report, cited, "Relationships")], np.int64)
        ends = self._members.endpoints[links].ravel()
        named = {*_rows_of(report, cited, "Entities"), *ends[ends >= 0].tolist()}
        titles = self._members.entities["title"].gather(sorted(named))
        return frozenset().union(*map(stem_words, titles))

    def _read_sentences(
        self, numbers: Iterable[int]
    ) -> dict[int, list[tuple[SourceSpan, frozenset[str]]]]:
        """Return the sentences of text units, with the stems of their words."""
        rows = pl.Series(sorted(numbers), dtype=pl.UInt32)
        texts = (
            self._table.select(text=READING, source="text")
            .with_row_index("number")
            .filter(pl.col("number").is_in(rows.implode()))
            .collect(engine="streaming")
            .sort("number")
        )
        found = {}
        for number, text, source in texts.iter_rows():
            start, document = int(self._starts[number]), int(self._document_of[number])
            found[number] = [
                (
                    SourceSpan(number, document, start + first, start + last),
                    stem_words(text[sentence.start : sentence.end]),
                )
                for sentence in split_sentences(text)
                for first, last in [locate(text, source, sentence.start, sentence.end)]
            ]
        return found

    def _make_statement(
        self,
        finding: int | None,
        text: str,
        names: frozenset[str],
        sentences: Sequence[tuple[SourceSpan, frozenset[str]]],
    ) -> Statement:
        words = StatementWords.split(stem_words(text), names)
        scored = ((words.score(found), span) for span, found in sentences)
        return Statement(finding, text, *choose_spans(one for one in scored if one[0] > 0))


def _rows_of(report: CitedReport, cited: Sequence[CitedRow], section: str) -> Iterator[int]:
    """Yield the rows of one section that a statement cites."""
    rows = report.rows.get(section, ())
    for name, place in cited:
        if name == section and 0 <= place < len(rows):
            yield rows[place]


def _list_cited_rows(report: CitedReport) -> list[CitedRow]:
    """Return all rows that a report cites, for its statements without a citation."""
    return [(name, place) for name, rows in report.rows.items() for place in range(len(rows))]


def _split_report(report: CitedReport) -> Iterator[tuple[int | None, str, list[CitedRow]]]:
    """Yield (finding, text, cited rows) for each statement of a report; None: the summary."""
    written = report.report
    for text, cited in _split_text(written.summary):
        yield None, text, cited
    for number, finding in enumerate(written.findings):
        for text, cited in _split_text(finding.explanation):
            yield number, text, cited


def _split_text(text: str) -> Iterator[tuple[str, list[CitedRow]]]:
    """Yield each sentence of a text, with the rows that the next citation of its line cites."""
    for line in text.splitlines():
        start = 0
        for first, last, rows in [*find_citations(line), (len(line), len(line), [])]:
            # A full stop may follow the citation.
            said = line[start:first].lstrip(" .;,")
            for sentence in split_sentences(said):
                yield said[sentence.start : sentence.end], rows
            start = last


class ReportWriter:
    """A collector of reports, in the order of communities; it returns table rows in batches."""

    def __init__(
        self,
        rows: pl.DataFrame,
        members: CommunityMembers,
        contexts: ReportContexts,
        evidence: CommunityEvidence,
        sources: StatementSources,
        prompt_hash: str,
    ) -> None:
        """Start without reports; `prompt_hash` hashes all inputs of a request except its rows."""
        self.rows, self.contexts, self.evidence = rows, contexts, evidence
        self.sources, self.prompt_hash = sources, prompt_hash
        self.keys = {"Reports": rows["community"]}
        self.numbers = {"Reports": rows["community"].to_numpy()}
        tables = (members.entities, members.relationships, members.claims)
        for name, table in zip(COLUMN_OF_CITED_ROWS, tables, strict=False):
            self.keys[name] = table["id"]
            self.numbers[name] = table["human_readable_id"].to_numpy()
        self.reports: dict[int, CitedReport] = {}
        # Sub-communities that have a report, by the community that contains them.
        self._reported_below: dict[int, set[int]] = {}
        # By community: hashes of text units that support its report, if other contexts may use it.
        self._support_hashes: dict[int, Hashes] = {}
        # By community: (new report, communities whose reports are in its prompt, request key).
        self._new: dict[int, tuple[CitedReport, Sequence[int], str]] = {}
        # Rows of `report_evidence` for reports of this level kept from the last version.
        self._kept = EVIDENCE_TABLE.empty().with_columns(pl.lit(None, pl.Int64).alias("at"))

    def keep_reports(
        self, level: Sequence[int], previous: Previous, rewrite_above: float
    ) -> tuple[pl.DataFrame, Iterator[CitedReport]]:
        """Choose the reports of one level that are kept from the last version.

        A kept report had the same prompt or was imported, and at most the share `rewrite_above`
        (0 to 1) of its evidence has changed. If the share is 0, no report is kept, as in a first
        run. `level` are the rows of the communities, ascending. Returns rows of `report_evidence`,
        with the row of the community in `at`, and their reports in the same order.
        """
        rows = pl.Series(level if rewrite_above > 0 else [], dtype=pl.Int64)
        found, _ = reuse_rows(
            previous,
            EVIDENCE_TABLE,
            self.keys["Reports"].gather(rows),
            column="community",
            where=pl.col("prompt_hash").is_in([self.prompt_hash, PROMPT_HASH_OF_IMPORTS]),
        )
        found = found.with_columns(at=rows.gather(found["at"]))
        parts = found.iter_slices(REPORTS_PER_BATCH)
        unchanged = [self.evidence.flag_reusable(part, rewrite_above) for part in parts]
        found = found.filter(np.concatenate([np.zeros(0, bool), *unchanged]))
        cited = _find_cited_rows(found, self.keys)
        is_whole = [
            set(reports) <= self._reported_below.get(at, set())
            and all(place >= 0 for places in own for place in places)
            for at, reports, own in zip(
                found["at"], cited["Reports"], zip(*cited.values(), strict=True), strict=True
            )
        ]
        self._kept = found.filter(pl.Series(is_whole, dtype=pl.Boolean)).with_columns(
            prompt_hash=pl.lit(self.prompt_hash)
        )
        return self._kept, _read_reports(self._kept, self.keys)

    def add_report(self, at: int, report: CitedReport) -> None:
        """Add the report of a community."""
        self.reports[at] = report
        for above in self.contexts.find_ancestors(at):
            self._reported_below.setdefault(above, set()).add(at)
        self.contexts.add_report(at, report)

    def add_new_report(
        self, at: int, report: CitedReport, substitutes: Sequence[int], request_key: str
    ) -> None:
        """Add a new report; `substitutes` are communities whose reports are in its prompt."""
        self.add_report(at, report)
        self._new[at] = report, substitutes, request_key

    def take_report_rows(self) -> Mapping[str, pl.DataFrame]:
        """Return table rows of all reports added since the last call; all are of one level."""
        communities = [*self.reports]
        kept = self._kept.filter(
            pl.col("at").is_between(min(communities, default=0), max(communities, default=-1))
        )
        evidence = pl.concat([kept, self._new_evidence().select(kept.columns)]).sort("at")
        behind = evidence.filter(pl.col("at").is_in([*self.contexts.reports])).select(
            "at", hashes=pl.concat_list("text_unit_hashes", "borrowed_text_unit_hashes")
        )
        for at, hashes in zip(behind["at"], behind["hashes"], strict=True):
            self._support_hashes[at] = hashes.to_numpy()
        numbered = [report.number_citations(self.numbers) for report in self.reports.values()]
        statements = self.sources.make_column(self.reports)
        reports = make_report_rows(self.rows[communities], numbered, statements)
        self.reports, self._new = {}, {}
        return {"community_reports": reports, "report_evidence": evidence.drop("at")}

    def _new_evidence(self) -> pl.DataFrame:
        new = self._new
        reports = {at: report for at, (report, _, _) in new.items()}
        rows = self.evidence.make_evidence_rows(reports, self.keys, self.prompt_hash)
        borrowed = []
        for (_, substitutes, _), own in zip(new.values(), rows["text_unit_hashes"], strict=True):
            shown = [
                self._support_hashes[part] for part in substitutes if part in self._support_hashes
            ]
            behind = np.unique(np.concatenate([np.zeros(0, np.uint64), *shown]))
            borrowed.append(pl.Series(np.setdiff1d(behind, own.to_numpy(), assume_unique=True)))
        return rows.with_columns(
            at=pl.Series(list(new), dtype=pl.Int64),
            request_key=pl.Series([key for _, _, key in new.values()], dtype=pl.String),
            # Text units that support a report in the prompt, but no row of the community itself.
            borrowed_text_unit_hashes=pl.Series(borrowed, dtype=pl.List(pl.UInt64)),
        )


def _find_cited_rows(rows: pl.DataFrame, keys: SectionIds) -> dict[str, list[list[int]]]:
    """Return the cited rows of each report, by section; -1 for a row that no longer exists."""
    cited = {}
    for section, column in COLUMN_OF_CITED_ROWS.items():
        owners, values = spread_lists(rows[column])
        found = pl.Series(find_rows(values, keys[section]))
        cited[section] = gather_lists(owners, found, rows.height).to_list()
    return cited


def _read_reports(rows: pl.DataFrame, keys: SectionIds) -> Iterator[CitedReport]:
    """Yield one report for each row of `report_evidence`."""
    cited = _find_cited_rows(rows, keys)
    texts = rows.select("title", "summary", "findings", "rank", "rating_explanation").iter_rows()
    for row, (title, summary, found, rank, explanation) in enumerate(texts):
        findings = tuple(Finding(one["summary"], one["explanation"]) for one in found)
        own = {section: lists[row] for section, lists in cited.items() if lists[row]}
        yield CitedReport(Report(title, summary, findings, rank, explanation), own)
