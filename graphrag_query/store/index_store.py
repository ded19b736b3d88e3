"""The tables, links and vectors of an index, opened for reading at one version."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from graphrag_index.errors import TableError
from graphrag_index.microsoft.prepended_text import read_prepended
from graphrag_index.schema.settings.project_settings import Settings, read_recorded_settings
from graphrag_index.schema.tables import EMBEDDED_COLUMNS, TABLES
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import StoredTable, Version
from graphrag_nlp.text.document_dates import find_document_dates
from graphrag_nlp.text.normalize import MAX_TITLE_COLUMNS, letters
from graphrag_nlp.text.periods import Period
from graphrag_query.store.links import Links
from graphrag_query.store.question_embedding import QuestionEmbedder

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_index.microsoft.microsoft_store import InMemoryVectors, MicrosoftStore
    from graphrag_index.schema.settings.models import ModelSettings
    from graphrag_index.storage.mapped_table import MappedTable
    from graphrag_index.storage.vector_store import VectorTable
    from graphrag_query.answer import Citation

    Numbers = npt.NDArray[np.int32]
    Flags = npt.NDArray[np.bool_]

MAX_CONCURRENT_SEARCHES = 8
# Minimum share (0 to 1) of the documents in a language whose words are compared with a question in
# another language. The language of a short document is often told wrongly.
MIN_SHARE_OF_LANGUAGE = 0.01

# What tells the period of a document, in the order of `Period.from_days`.
PERIOD_COLUMNS = ("first_day", "last_day", "is_fiscal", "fiscal_shift")

Reason = Literal["match", "name", "link"]


def name_pages(pages: Sequence[Mapping[str, Any]]) -> str:
    """Return the words for one or several pages (rows of `page_rows`) of a document."""
    kind, sheet = pages[0]["kind"], pages[0]["label"]
    shown = "label" if kind == "page" else "number"
    numbers = [str(one[shown]) for one in pages if kind != "row" or one["label"] == sheet]
    if kind == "figure":
        place = sheet if sheet.startswith("slide ") else f"p. {sheet}"
        return f"{place}, figure described by {pages[0]['engine']}"
    names = {"page": ("p.", "pp."), "slide": ("slide", "slides")}
    words = names.get(kind, (f"sheet {sheet}, row", f"sheet {sheet}, rows"))
    span = "–".join(dict.fromkeys([numbers[0], numbers[-1]]))
    by_ocr = ", read by OCR" * any(one["engine"] for one in pages)
    return f"{words[len(numbers) > 1]} {span}{by_ocr}"


@dataclass(frozen=True)
class RankedTextUnit:
    """A text unit with its score, its score without links, and the reason for its choice.

    The reason `match` means that the text matches the question. `name` means that the text unit
    describes `entity`, which the question names; if `entity` is None, the question names the
    title or the date of the document. `link` means that the text unit `origin` also names
    `entity`; if `entity` is None, the text unit is next to `origin` in the document.
    """

    number: int
    score: float
    own_score: float
    reason: Reason
    entity: int | None = None
    origin: int | None = None


class IndexStore:
    """Tables and vectors of one index version, opened when needed.

    A run that finishes later does not change the rows of this version. `models` are the models
    of the current settings. They have the API keys, which the index does not store.
    """

    def __init__(
        self,
        backend: "TableStore | MicrosoftStore",
        version: Version,
        models: "Mapping[str, ModelSettings] | None" = None,
        root: Path | None = None,
    ) -> None:
        self.backend = backend
        # Folder of the settings; the paths in the settings are relative to it.
        self.root = backend.output.parent if root is None else root
        self.models = models or {}
        self.version = version
        self._vectors: dict[str, VectorTable | InMemoryVectors] = {}
        self._mapped: dict[str, MappedTable] = {}
        # The rankings of text units of the last questions, by text, kept by `start_search`.
        self.kept_rankings: dict[str, list[RankedTextUnit]] = {}
        # The names of subjects that contain a word, by word, kept by `find_facets`.
        self.kept_subject_words: dict[str, Numbers] = {}

    @classmethod
    def open(
        cls,
        output: Path,
        models: "Mapping[str, ModelSettings] | None" = None,
        as_of: int | None = None,
        root: Path | None = None,
    ) -> "IndexStore":
        """Open the index in an output folder, at its current version or at version `as_of`.

        Raises `TableError` if the folder has no index, or if the index cannot be read.
        """
        backend = TableStore(output)
        version = backend.read_pointer() if as_of is None else backend.read_version(as_of)
        if version is None:
            raise TableError(
                f"There is no index in {backend.place}: make one with `graphrag-index run`."
            )
        return cls(backend, version, models, root)

    @cached_property
    def settings(self) -> Settings:
        """The settings that the index was made with."""
        return read_recorded_settings(self.version.settings)

    @property
    def filters(self) -> Mapping[str, Any]:
        """The filters that this index is restricted to."""
        return {}

    def keeps_entity(self, entity: int) -> bool:
        """Return whether the filters keep an entity."""
        return True

    def row_flags(self, name: Literal["documents", "text_units", "entities"]) -> "Flags | None":
        """Return for each row whether the filters keep the row. None means all rows."""
        return None

    @cached_property
    def links(self) -> Links:
        """The links between text units, entities, relationships and communities."""
        return Links(self.open_mapped, self.n_rows("text_unit_rows"))

    @cached_property
    def languages(self) -> frozenset[str]:
        """The languages of the documents, as ISO 639-1 codes, where they are known."""
        found = self.open_mapped("document_rows").columns("language")["language"].unique()
        return frozenset(found.drop_nulls()) - {"und"}

    @cached_property
    def document_days(self) -> "Numbers":
        """The period of each document (row), for `Period.from_days`; 0 if it is not known."""
        table = self.open_mapped("document_subjects")
        return table.columns(*self._period_columns).cast(pl.Int32).to_numpy()

    @cached_property
    def _period_columns(self) -> tuple[str, ...]:
        """The columns of periods; those of fiscal years are missing in an older index."""
        known = self.open_mapped("document_subjects").column_names
        return tuple(name for name in PERIOD_COLUMNS if name in known)

    @cached_property
    def has_periods(self) -> bool:
        """Whether the period of some document is known."""
        return bool(self.document_days.any())

    @cached_property
    def main_languages(self) -> frozenset[str]:
        """The languages that at least `MIN_SHARE_OF_LANGUAGE` of the documents are in."""
        found = self.open_mapped("document_rows").columns("language")["language"]
        counts = (
            found.drop_nulls()
            .value_counts()
            .filter(pl.col("count") >= MIN_SHARE_OF_LANGUAGE * len(found))
        )
        return frozenset(counts["language"]) - {"und"}

    @cached_property
    def share_of_known_languages(self) -> float:
        """The share (0 to 1) of the documents whose language is known."""
        found = self.open_mapped("document_rows").columns("language")["language"]
        return len(found.drop_nulls().filter(found.drop_nulls() != "und")) / max(len(found), 1)

    @cached_property
    def embedder(self) -> QuestionEmbedder:
        """The embedding model for questions."""
        return QuestionEmbedder(
            self.backend, self.version, self.settings, self.models, self.vectors
        )

    @cached_property
    def threads(self) -> "ThreadPoolExecutor":
        """Threads for searches of vector tables.

        A task in this pool must not wait for another task in it, which may never get a thread.
        """
        return ThreadPoolExecutor(MAX_CONCURRENT_SEARCHES, "graphrag-search")

    def check_version(self) -> None:
        """Raise `TableError` if this version has been deleted since it was opened."""
        if self.backend.is_gone(self.version.number):
            raise TableError(
                f"Version {self.version.number} of {self.backend.place} was deleted while it was "
                "open: open the index again."
            )

    @contextmanager
    def pinned_version(self) -> Iterator[None]:
        """Raise `TableError` instead of any other error if this version has been deleted."""
        self.check_version()
        try:
            yield
        except Exception as error:
            try:
                self.check_version()
            except TableError as gone:
                raise gone from error
            raise

    def check_search_tables(self) -> None:
        """Raise `TableError` if the workflow does not write the tables that searches read."""
        lacks_vectors = self.has_table("text_unit_text") and not self.has_table("text_unit_vectors")
        if lacks_vectors or not self.has_table("community_places"):
            raise TableError(
                f"The index in {self.backend.place} has no tables for searches. Check that "
                f"workflows/{self.version.workflow}.yaml ends with the step create_search_tables, "
                "and run `graphrag-index run`."
            )

    def has_table(self, table: str) -> bool:
        """Return whether the workflow of this index writes a table."""
        return table in self.version.tables

    def n_rows(self, table: str) -> int:
        """Return the number of rows of a table."""
        return self._stored_table(table).rows

    def scan(self, table: str) -> pl.LazyFrame:
        """Open a table lazily."""
        self.check_version()
        return self.backend.scan(table, self._stored_table(table))

    def open_mapped(self, table: str) -> "MappedTable":
        """Open a memory-mapped table to read rows by number. No rows are loaded yet.

        Raises `TableError` if an older program wrote the table with fewer columns.
        """
        if table not in self._mapped:
            self.check_version()
            mapped = self.backend.map(table, self._stored_table(table))
            if missing := TABLES[table].columns.keys() - mapped.column_names:
                raise TableError(
                    f"The table {table} was written by an older version of this program, without "
                    f"the column {min(missing)}: run `graphrag-index run` to write it again."
                )
            self._mapped[table] = mapped
        return self._mapped[table]

    def vectors(self, table: str) -> "VectorTable | InMemoryVectors":
        """Open a vector table at the version that belongs to this index."""
        if table not in self._vectors:
            self.check_version()
            self._vectors[table] = self.backend.vectors(table, self._stored_table(table))
        return self._vectors[table]

    def _stored_table(self, table: str) -> StoredTable:
        tables = self.version.tables
        if table in EMBEDDED_COLUMNS and not any(map(self.has_table, EMBEDDED_COLUMNS)):
            raise TableError(
                f"The index in {self.backend.place} has no vectors, which this search needs. Run "
                "`graphrag-index run` with a workflow that has the step generate_text_embeddings. "
                "For an imported index, add `--set workflow=imported`."
            )
        if table not in tables:
            raise TableError(
                f"The index in {self.backend.place} has no table {table}: its workflow, "
                f"{self.version.workflow}, does not write it."
            )
        return tables[table]

    def text_units(self, numbers: Iterable[int]) -> dict[int, Mapping[str, Any]]:
        """Fetch text units with the title and path of the document, ordered by number.

        Unknown numbers are left out. `subject` and `period` say what the document is about and
        when, for prompts; `period` is None in an index without periods. `prepended` has the
        metadata that Microsoft GraphRAG put before the text. `text` is the reading of the text
        unit (see `READING`), and `source` has the characters of the document.
        """
        known = range(self.n_rows("text_unit_rows"))
        wanted = sorted({number for number in numbers if number in known})
        found = self._fetch_rows("text_unit_rows", wanted)
        names = ("id", "title", "path", "language")
        documents = self.open_mapped("document_rows").rows(found["document"], *names)
        subjects = [*self._subjects(found["document"])] or [*zip(documents["title"], repeat(None))]
        return {
            row["human_readable_id"]: {
                **row,
                "source": row["text"] if row["source"] is None else row["source"],
                "document_id": document_id,
                "title": title,
                "path": path,
                "language": language,
                "prepended": read_prepended(row["metadata"]),
                # A file name is shown as it is.
                "subject": title if letters(title).startswith(letters(subject)) else subject,
                "period": period,
            }
            for row, (document_id, title, path, language), (subject, period) in zip(
                found.iter_rows(named=True), documents.iter_rows(), subjects, strict=True
            )
        }

    def _subjects(self, documents: pl.Series) -> Iterator[tuple[str, str | None]]:
        """Yield the subject and the period of documents; nothing in an index without them.

        The period is None in an index without periods, and "" if it is not known.
        """
        if not self.has_table("document_subjects"):
            return
        table = self.open_mapped("document_subjects")
        for label, *days in table.rows(documents, "label", *self._period_columns).iter_rows():
            yield (
                label,
                str(Period.from_days(*days)) if days[0] else "" if self.has_periods else None,
            )

    def pages(self, document: int, start: int, end: int) -> list[dict[str, Any]]:
        """Fetch the pages, slides or rows of sheets that hold some characters of a document.

        Empty for a document without pages, and in an index of an older version.
        """
        if not (self.has_table("page_rows") and self.n_rows("page_rows")):
            return []
        table = self.open_mapped("page_rows")
        found = table.find_rows("document", document)
        starts, ends = (
            table.slice(name, found.start, found.stop) for name in ("start_char", "end_char")
        )
        numbers = found.start + np.flatnonzero((starts < end) & (ends > start))
        return table.rows(numbers).to_dicts() if len(numbers) else []

    def page_boxes(self, document: int, number: int) -> tuple[pl.DataFrame, str, str] | None:
        """Fetch the words and the figures of a page of a PDF, its engine and its picture hash.

        Each word has its `kind` ("page" or "figure"), its span, and its place in tenths of points.
        None if the document has no such page. An index of an older version has no hash.
        """
        if not self.has_table("pages"):
            return None
        is_page = (pl.col("number") == number) & pl.col("kind").is_in(["page", "figure"])
        of_document = pl.col("document_id") == self.documents([document])["id"][0]
        rows = self.scan("pages").filter(of_document & is_page)
        found = rows.select("kind", "boxes", "engine", "^picture_hash$").collect()
        if not found.height:
            return None
        boxes = found.select("kind", "boxes").explode("boxes").unnest("boxes").drop_nulls()
        pages = found.filter(kind="page").drop("kind", "boxes").rows()
        engine, *hashes = pages[0] if pages else ("",)
        return boxes, engine, "".join(hashes)

    def locate(self, citations: "Sequence[Citation]") -> "tuple[Citation, ...]":
        """Add the page, and the words for the place, to citations."""
        if not citations:
            return ()
        numbers = [citation.text_unit for citation in citations]
        names = ("document", "start_char", "headings", "text", "source")
        units = self.open_mapped("text_unit_rows").rows(numbers, *names).to_dicts()
        return tuple(map(self._locate, citations, units))

    def _locate(self, citation: "Citation", unit: Mapping[str, Any]) -> "Citation":
        pages = self.pages(unit["document"], citation.start_char, citation.end_char)
        if pages:
            return replace(citation, page=pages[0]["number"], location=name_pages(pages))
        # Import this module only here: a command begins without it.
        from graphrag_nlp.text.sentences import find_headings

        start = citation.start_char - unit["start_char"]
        above = unit["headings"].rpartition(" > ")[2]
        for heading in find_headings(unit["source"] or unit["text"]):
            above = heading.words if heading.start <= start else above
        is_title = letters(above) == letters(citation.document)
        above = shorten(above, MAX_TITLE_COLUMNS, placeholder=" …")
        return replace(citation, location=f"section {above}" if above and not is_title else "")

    def documents(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch documents without their texts."""
        return self._fetch_rows("document_rows", numbers)

    def entities(self, numbers: Iterable[int], *columns: str) -> pl.DataFrame:
        """Fetch entities, all columns by default.

        The column `evidence` has numbers of documents instead of ids.
        """
        return self._fetch_rows("entity_rows", numbers, *columns)

    def claims(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch claims."""
        return self._fetch_rows("claim_rows", numbers)

    def relationships(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch relationships. The column `evidence` has numbers of documents instead of ids.

        `source` and `target` are titles of entities, and `source_entity` and `target_entity` are
        their numbers.
        """
        found = self._fetch_rows("relationship_rows", numbers)
        endpoints = pl.concat([found["source"], found["target"]])
        # In an index of Microsoft GraphRAG, an endpoint may be unknown (-1): its title is empty.
        rows = self.open_mapped("entity_rows").rows(endpoints.clip(lower_bound=0), "title")
        titles = rows.select(pl.when(endpoints >= 0).then("title").otherwise(pl.lit("")))["title"]
        return found.rename({"source": "source_entity", "target": "target_entity"}).with_columns(
            titles[: found.height].alias("source"), titles[found.height :].alias("target")
        )

    def _fetch_rows(self, table: str, numbers: Iterable[int], *columns: str) -> pl.DataFrame:
        wanted = pl.Series("human_readable_id", list(numbers), dtype=pl.Int64)
        found = self.open_mapped(table).rows(wanted, *columns)
        return found.insert_column(0, wanted)

    def communities(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Fetch communities by number. Unknown numbers are left out."""
        return self.open_mapped("community_rows").rows(self._rows_of_communities(numbers, "row"))

    def reports(self, communities: Iterable[int], *columns: str) -> pl.DataFrame:
        """Fetch the reports on communities, all columns by default.

        Communities without a report are left out. The column `row`, which is always there, is the
        row number in `community_reports`.
        """
        rows = self._rows_of_communities(communities, "report")
        rows = rows.filter(rows >= 0)
        return self.open_mapped("report_rows").rows(rows, *columns).with_columns(rows.alias("row"))

    def _rows_of_communities(self, numbers: Iterable[int], column: str) -> pl.Series:
        table = self.open_mapped("community_places")
        found = [table.find_rows("community", number) for number in numbers]
        return table.rows([row for rows in found for row in rows], column)[column]

    def children_of(self, community: int) -> list[int]:
        """Return the children of a community, ascending."""
        [row] = self._rows_of_communities([community], "row")
        return sorted(self.open_mapped("community_rows").numbers("children", row).tolist())

    def report(self, community: int) -> Mapping[str, Any] | None:
        """Fetch the report on a community with its text; None if it has no report."""
        found = self.with_texts(self.reports([community]), "full_content")
        return found.row(0, named=True) if found.height else None

    @cached_property
    def report_list(self) -> pl.DataFrame:
        """All reports without their texts: position in the hierarchy, title, rank, bytes."""
        names = ("community", "level", "parent", "children", "title", "rank", "size", "n_bytes")
        reports = self.open_mapped("report_rows").columns(*names)
        return reports.with_columns(pl.col("community", "n_bytes").cast(pl.Int64)).sort(
            "level", "community"
        )

    @cached_property
    def document_dates(self) -> pl.Series:
        """The day, month or year of each document, or an empty text if it has no date."""
        rows = self.open_mapped("document_rows").columns("title", "creation_date")
        return find_document_dates(rows)

    @cached_property
    def entity_counts(self) -> "Numbers":
        """The number of entities that each document names."""
        if not self.has_table("entities_of_text_units"):
            return np.zeros(self.n_rows("document_rows"), np.int32)
        links = self.open_mapped("entities_of_text_units")
        units = self.open_mapped("text_unit_rows")
        document = units.slice("document", 0, len(units)).astype(np.int64)
        text_unit, entity = (links.slice(name, 0, len(links)) for name in ("text_unit", "entity"))
        n_entities = self.n_rows("entity_rows") or 1
        named = np.unique(document[text_unit] * n_entities + entity)
        counts = np.bincount(named // n_entities, minlength=self.n_rows("document_rows"))
        return counts.astype(np.int32)

    @cached_property
    def headlines(self) -> dict[int, str]:
        """The headlines of those documents for which a question has needed them."""
        return {}

    def dated_documents(self, numbers: Iterable[int]) -> pl.DataFrame:
        """Return the given documents with a date, as `document` and `date`, in order of dates."""
        documents = pl.Series("document", numbers, dtype=pl.Int64)
        dated = pl.DataFrame({"document": documents, "date": self.document_dates[documents]})
        return dated.filter(pl.col("date") != "").sort("date", "document")

    def with_texts(self, reports: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Add text columns to rows of `report_list`: summary, findings or full_content."""
        found = self.reports(reports["community"])
        texts = [found[name] for name in columns if name != "full_content"]
        if "full_content" in columns:
            rows = sorted(found["row"])
            read = self.vectors("community_full_content").at(rows, ["text"])["text"]
            by_row = dict(zip(rows, read, strict=True))
            contents = [by_row[row] for row in found["row"]]
            texts.append(pl.Series("full_content", contents, pl.String))
        return reports.with_columns(texts)

    def text_units_behind(self, name: str, number: int) -> list[int]:
        """Return the numbers of the text units that support a row, ascending.

        `name` is the name of the table in citations: Sources, Entities, Relationships or Claims.
        For an unknown number, the list is empty.
        """
        if name == "Entities":
            return list(self.links.text_units_of(number).numbers.tolist())
        row = {"Sources": "text_unit", "Relationships": "relationship", "Claims": "claim"}[name]
        table = f"{row}_rows"
        if not 0 <= number < self.n_rows(table):
            return []
        if name == "Sources":
            return [number]
        if name == "Claims":
            return list(self.open_mapped(table).rows([number], "text_unit")["text_unit"])
        return list(self.open_mapped(table).numbers("text_units", number).tolist())
