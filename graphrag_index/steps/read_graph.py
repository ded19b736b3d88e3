"""Reading of an existing graph from files, instead of extraction."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from graphrag_index.readers.given_graph import GivenGraph, build_given_graph
from graphrag_index.readers.graph_evidence import Evidence, GivenTextUnits, RowEvidence
from graphrag_index.readers.graph_rows import (
    FileRows,
    check_files_outside_output,
    find_given_files,
    fingerprint_files,
    read_given_rows,
)
from graphrag_index.schema.settings.step_sections import CreateTextUnits, ReadGraph
from graphrag_index.schema.tables import STRINGS, TABLES
from graphrag_index.step import Progress, Project, step
from graphrag_index.steps.create_text_units import TextCutter

logger = logging.getLogger(__name__)


def check_graph_files(settings: ReadGraph, project: Project) -> None:
    """Check that the graph files exist, and that the output does not overwrite a file."""
    check_files_outside_output(settings, project.root, project.output)
    find_given_files(settings, project.root)


@step(
    writes=[
        *("documents", "base_text_units", "sentences", "extracted_entities"),
        *("extracted_relationships", "extracted_mentions", "given_ids"),
    ],
    code_version=5,
    fingerprint=fingerprint_files,
    check=check_graph_files,
)
def read_graph(
    *, settings: ReadGraph, root: Path, progress: Progress
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Read entities, relationships and their evidence from files of the user.

    Entities and relationships keep their ids and the order of the files. The text units that a
    row names are its evidence. If a row names no text unit, the row is written as a line of a new
    document, and this line is the evidence. The title of the new document is the entity, or the
    source of the relationship. Text units of the files come first, then text units made of rows.
    """
    files = read_given_rows(settings, root)
    rows: list[FileRows | None] = [files.get("entities"), files["relationships"]]
    text_units, documents = files.get("text_units"), files.get("documents")
    given = build_given_graph(rows[0], files["relationships"], settings)
    del files
    evidence = Evidence()
    of_rows = CreateTextUnits(max_tokens=settings.max_tokens, overlap_tokens=0)

    def cut_text(text: str, starts: Sequence[int]) -> list[tuple[int, int, int]]:
        return [passage[:3] for passage in TextCutter(text, of_rows, starts, ()).passages()]

    if text_units is None:
        given = _drop_text_unit_ids(given, rows)
        rows = [replace(file, frame=file.frame.clear()) if file else None for file in rows]
    row_evidence = RowEvidence(given, rows, settings.max_tokens, cut_text, evidence)
    if text_units is not None:
        passages = GivenTextUnits(text_units, documents)
        progress.start(len(passages.frame) + row_evidence.n_rows, "text units and rows")
        yield from passages.add_documents(given, rows, evidence)
    else:
        progress.start(row_evidence.n_rows, "rows")
    yield from row_evidence.add_documents(progress)
    yield evidence.take_batch()
    yield _make_graph_tables(given, evidence)


def _drop_text_unit_ids(given: GivenGraph, rows: Sequence[FileRows | None]) -> GivenGraph:
    """Drop the ids of text units, because there is no file of text units; log a warning."""
    named = [file.name for file in rows if file is not None and "text_unit_ids" in file.fields]
    if named:
        logger.warning(
            "%s: text_unit_ids are not used, because read_graph.text_units names no file.",
            " and ".join(dict.fromkeys(named)),
        )
    nothing = pl.lit([], STRINGS).alias("text_unit_ids")
    entities = replace(given.entities, frame=given.entities.frame.with_columns(nothing))
    return GivenGraph(entities, given.relationships.with_columns(nothing))


def _make_graph_tables(given: GivenGraph, evidence: Evidence) -> dict[str, pl.DataFrame]:
    entities, relationships = given.entities.frame, given.relationships
    number = pl.int_range(pl.len(), dtype=pl.Int64)
    endpoints = {
        "entities": (entities, number, pl.lit(None, pl.Int64)),
        "relationships": (relationships, pl.col("source"), pl.col("target")),
    }
    ids = [
        frame.select(
            pl.lit(table).alias("table"), first.alias("number"), other.alias("target"), "id"
        )
        .cast({"number": pl.Int64, "target": pl.Int64})
        .filter(pl.col("id").is_not_null())
        for table, (frame, first, other) in endpoints.items()
    ]
    tables = {
        "extracted_entities": entities.with_columns(
            evidence.build_evidence_column("entities", len(entities)),
            human_readable_id=number,
        ),
        "extracted_relationships": relationships.with_columns(
            evidence.build_evidence_column("relationships", len(relationships)),
            evidence.build_text_unit_column(len(relationships)),
        ),
        "extracted_mentions": evidence.build_mention_table(),
        "given_ids": pl.concat(ids),
    }
    # Add empty lists for the columns that only a model fills.
    return {
        name: frame.select(
            pl.col(column).cast(kind) if column in frame.columns else pl.lit([], kind).alias(column)
            for column, kind in TABLES[name].columns.items()
        )
        for name, frame in tables.items()
    }
