"""A Microsoft GraphRAG index, version 2 or 3, opened in place as our public tables.

    index = MicrosoftIndex(folder)       # raises TableError if a file is missing or damaged
    index.tables["entities"]             # LazyFrame with all columns of our table, in our order
    index.vectors["entity_description"]  # `.dimension`, `.batches()` of `id` and `vector`

Rows, ids, numbers and the order of rows are those of the files. Our searches and citations need a
`human_readable_id` that is the row number; `renumber_rows` sets it.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.microsoft.prepended_text import separate_text
from graphrag_index.microsoft.read_files import (
    COLUMN_RULES,
    RawTable,
    check_tables,
    find_folder,
    get_column_defaults,
    name_damaged_file,
    open_table,
    open_vectors,
)
from graphrag_index.microsoft.read_positions import (
    SPAN_COLUMNS,
    TextPositions,
    compute_positions,
    find_first_rows,
    locate_text_units,
)
from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.text.citations import renumber_citations
from graphrag_nlp.text.languages import detect_language

_BATCH_ROWS = 1_024  # documents or text units per batch


class MicrosoftIndex:
    """The tables and vectors of a Microsoft GraphRAG index; data is read on first use.

    `tables` has our public tables by name, including `mentions`. `raw_tables` has the files with
    our column names and types. `damaged_vectors` has path and error of vectors that do not open.
    """

    def __init__(self, folder: Path) -> None:
        found = find_folder(folder)
        self.path, self.files = found.path, found.files
        self.raw_tables: Mapping[str, RawTable] = {
            name: open_table(name, path) for name, path in found.files.items()
        }
        check_tables(found, self.raw_tables)
        self.generation = detect_generation(self.raw_tables)
        self.tables: Mapping[str, pl.LazyFrame] = self._public_tables()
        self.vectors, self.damaged_vectors = open_vectors(self.path)

    @cached_property
    def positions(self) -> TextPositions:
        """Offsets of names and evidence; the first use reads all texts."""
        text_units = self._separate_text(self._file_tables["text_units"])
        return compute_positions({**self._file_tables, "text_units": text_units})

    @cached_property
    def text_unit_spans(self) -> pl.DataFrame:
        """Spans of text units in their documents; the first use reads all texts."""
        return locate_text_units(self._file_tables)

    def _separate_text(self, text_units: pl.LazyFrame) -> pl.LazyFrame:
        """Add the spans of text units, and move characters that documents lack to `metadata`."""
        spans = pl.defer(lambda: self.text_unit_spans, schema=SPAN_COLUMNS)
        rows = text_units.drop("start_char", "end_char")
        return separate_text(pl.concat([rows, spans], how="horizontal"))

    def n_rows(self, table: str) -> int:
        """Return the number of rows in a table file."""
        with name_damaged_file({table: self.files[table]}):
            return int(self.raw_tables[table].rows.select(pl.len()).collect().item())

    def _file_columns(self, table: str) -> set[str]:
        return set(self.raw_tables[table].columns) if table in self.raw_tables else set()

    @cached_property
    def _file_tables(self) -> dict[str, pl.LazyFrame]:
        """Tables with all of our columns, each from one file; defaults replace nulls."""
        found = {}
        for name in self.raw_tables.keys() & TABLES.keys():
            rows, has = self.raw_tables[name].rows, self._file_columns(name)
            if name == "text_units" and "document_id" not in has:
                rows = rows.with_columns(document_id=pl.col("document_ids").list.first())
                has.add("document_id")
            row_number = pl.int_range(pl.len(), dtype=pl.Int64)
            defaults = {**get_column_defaults(TABLES[name]), "human_readable_id": row_number}
            found[name] = rows.select(
                pl.col(column).fill_null(default) if column in has else default.alias(column)
                for column, default in defaults.items()
            )
        return found

    def _public_tables(self) -> dict[str, pl.LazyFrame]:
        tables = {
            "documents": self._derive_columns("documents", self._derive_documents),
            "text_units": self._separate_text(self._file_tables["text_units"]),
            "entities": self._derive_columns("entities", self._derive_entities),
            "relationships": self._derive_columns("relationships", self._derive_relationships),
            "mentions": pl.defer(lambda: self.positions.mentions, schema=TABLES["mentions"].schema),
        }
        for name in ("communities", "community_reports", "covariates"):
            if name in self._file_tables:
                tables[name] = self._file_tables[name]
        return {name: tables[name].select(list(TABLES[name].columns)) for name in tables}

    def _derive_columns(self, name: str, derive: Callable[[], Mapping[str, Any]]) -> pl.LazyFrame:
        """Replace the derived columns of a table by values that are computed on first use.

        Columns that `derive` does not return keep the values of the file.
        """
        base, schema = self._file_tables[name], TABLES[name].schema
        columns = pl.Schema({column: schema[column] for column in COLUMN_RULES["derived"][name]})

        @cache
        def compute_columns() -> pl.DataFrame:
            made = derive()
            rest = base.select(column for column in columns if column not in made).collect()
            return pl.DataFrame({**rest.to_dict(), **made}).select(columns.names()).cast(columns)

        own = base.drop(columns.names(), strict=False)
        return pl.concat([own, pl.defer(compute_columns, schema=columns)], how="horizontal")

    def _derive_documents(self) -> Mapping[str, Any]:
        rows = self._file_tables["documents"]
        languages: list[str] = []
        metadata: list[str | None] = []
        texts = rows.select("text", "raw_data", "metadata")
        for batch in read_batches(texts, _BATCH_ROWS, has_long_texts=True):
            for text, record, stated in batch.rows():
                languages.append(detect_language(text))
                is_record = _parse_json_object(stated) is not None
                metadata.append(stated if is_record else _remove_text_from_record(record, text))
        return {
            "path": rows.select("title").collect()["title"],
            "metadata": pl.Series(metadata, dtype=pl.String),
            "language": pl.Series(languages, dtype=pl.String),
        }

    def _derive_entities(self) -> Mapping[str, Any]:
        rows, has = self._file_tables["entities"], self._file_columns("entities")
        small = rows.select("title", "text_unit_ids").collect()
        made = {"evidence": self.positions.entity_evidence["evidence"]}
        if "frequency" not in has:
            made["frequency"] = small["text_unit_ids"].list.n_unique()
        if "degree" not in has:
            made["degree"] = self._degrees_by_title(small["title"])
        return made

    @cached_property
    def _degrees(self) -> dict[str, int]:
        """The number of relationships of each entity, by title; A to B and B to A count once."""
        one, other = (f("source", "target") for f in (pl.min_horizontal, pl.max_horizontal))
        ends = self._file_tables["relationships"].select(one=one, other=other).drop_nulls().unique()
        # A relationship of an entity with itself adds 2 to its degree.
        titles = pl.concat([ends.select(title="one"), ends.select(title="other")])
        return dict(titles.group_by("title").len().collect().iter_rows())

    def _degrees_by_title(self, titles: pl.Series) -> pl.Series:
        return pl.Series([self._degrees.get(title, 0) for title in titles], dtype=pl.Int64)

    def _derive_relationships(self) -> Mapping[str, Any]:
        rows, has = self._file_tables["relationships"], self._file_columns("relationships")
        small = rows.select("source", "target").collect()
        known = self._file_tables["entities"].select("id", "title").collect()
        made = {"evidence": self.positions.relationship_evidence["evidence"]}
        # A title without an entity has row -1, which is the empty id at the end.
        ids = pl.concat([known["id"], pl.Series("id", [""])])
        for end in ("source", "target"):
            made[f"{end}_id"] = ids.gather(find_first_rows(small[end], known["title"]))
        if "combined_degree" not in has:
            one, other = (self._degrees_by_title(small[end]) for end in ("source", "target"))
            made["combined_degree"] = one + other
        if "weight" not in has:
            made["weight"] = pl.Series([1.0] * small.height, dtype=pl.Float64)
        return made


def detect_generation(tables: Mapping[str, RawTable]) -> str:
    """Return the versions of Microsoft GraphRAG that write such tables, as in "2 or 3"."""
    has_document_ids = "text_units" in tables and "document_ids" in tables["text_units"].columns
    return "2" if has_document_ids else "2 or 3"


def _remove_text_from_record(record: str | None, text: str) -> str | None:
    """Remove the document text from a JSON record; None if the record is not a JSON object."""
    if (values := _parse_json_object(record)) is None:
        return None
    short = {key: value for key, value in values.items() if value != text}
    return json.dumps(short, ensure_ascii=False)


def _parse_json_object(text: str | None) -> dict[str, Any] | None:
    try:
        values = json.loads(text or "")
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


# Tables by section name in citations, and tables in which a row gets its row number.
_CITED_TABLES = {"Entities": "entities", "Relationships": "relationships", "Claims": "covariates"}
_NUMBERED_TABLES = ("documents", "text_units", *_CITED_TABLES.values())


def renumber_rows(tables: Mapping[str, pl.LazyFrame]) -> dict[str, pl.LazyFrame]:
    """Set `human_readable_id` to the row number, make `id` unique, and renumber citations.

    Citations of unknown numbers are removed. The second row with the same id gets the suffix `-2`;
    references to this id mean the first row. Communities keep their numbers.
    """
    found = dict(tables)
    moved: dict[str, dict[int, int]] = {}
    for name in (*_NUMBERED_TABLES, "communities", "community_reports"):
        if name not in tables:
            continue
        rows = tables[name].select("id", "human_readable_id").collect()
        if rows["id"].n_unique() < rows.height:
            occurrence = pl.int_range(1, pl.len() + 1).over("id")
            unique = pl.when(occurrence > 1).then(pl.format("{}-{}", "id", occurrence))
            ids = rows.lazy().select(unique.otherwise("id").alias("id"))
            others, order = found[name].drop("id"), found[name].collect_schema().names()
            found[name] = pl.concat([others, ids], how="horizontal").select(order)
        numbers = rows["human_readable_id"].to_list()
        if name in _NUMBERED_TABLES and numbers != list(range(rows.height)):
            row_number = pl.int_range(pl.len(), dtype=pl.Int64)
            found[name] = found[name].with_columns(human_readable_id=row_number)
            # If several rows have the same number, citations refer to the first row.
            moved[name] = {numbers[row]: row for row in reversed(range(rows.height))}
    moves = {section: moved[name] for section, name in _CITED_TABLES.items() if name in moved}
    if moves and "community_reports" in found:
        found["community_reports"] = _renumber_reports(found["community_reports"], moves)
    return found


def _renumber_reports(
    reports: pl.LazyFrame, moves: Mapping[str, Mapping[int, int]]
) -> pl.LazyFrame:
    """Renumber the citations of reports: `Entities (5)` becomes `Entities (4)`."""

    def find_new_number(section: str, number: int) -> int | None:
        return moves[section].get(number) if section in moves else number

    def renumber_text(text: str) -> str:
        return renumber_citations(text, find_new_number)[0]

    rows = reports.collect()
    texts = ("summary", "full_content", "full_content_json", "rating_explanation")
    columns = [pl.Series(name, map(renumber_text, rows[name]), pl.String) for name in texts]
    findings = [
        [{key: renumber_text(text or "") for key, text in finding.items()} for finding in report]
        for report in rows["findings"]
    ]
    columns.append(pl.Series("findings", findings, rows["findings"].dtype))
    return rows.with_columns(columns).lazy()
