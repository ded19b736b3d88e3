"""Merge what a language model found in new documents behind the imported rows."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from graphrag_index.microsoft.import_folder import Imported, fingerprint_imported, row_batches
from graphrag_index.microsoft.import_merge import ImportMerge, shifted
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, step
from graphrag_index.steps.create_text_units import find_edges, sentence_rows

# The tables that both steps write, whoever found the graph.
TEXT_TABLES = ("documents", "base_text_units", "sentences", "covariates")
_BATCH = 256  # documents

Frames = Iterator[Mapping[str, pl.DataFrame]]


@step(
    writes=[
        *TEXT_TABLES,
        "extracted_entities",
        "extracted_relationships",
        "extracted_mentions",
        "given_ids",
    ],
    fingerprint=fingerprint_imported,
)
def add_imported(
    documents: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    sentences: pl.LazyFrame,
    extracted_entities: pl.DataFrame,
    extracted_relationships: pl.DataFrame,
    extracted_mentions: pl.DataFrame,
    covariates: pl.LazyFrame | None = None,
    *,
    root: Path,
    progress: Progress,
) -> Frames:
    """Put the imported rows before those of new documents, merged into one index.

    An entity with the title of an imported one becomes that entity: it keeps id, title and
    type of the imported one, and adds its descriptions. Relationships between the same two
    entities likewise, and their weights add up. Imported text units are not extracted from.

    Yields
    ------
    documents, base_text_units, sentences, covariates
        Batch by batch.
    extracted_entities, extracted_relationships, extracted_mentions, given_ids
        Whole.
    """
    merge = ImportMerge(Imported(root))
    yield from text_tables(merge, documents, base_text_units, sentences, covariates, progress)
    yield merge.graph(extracted_entities, extracted_relationships, extracted_mentions)


def text_tables(
    merge: ImportMerge,
    documents: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    sentences: pl.LazyFrame,
    covariates: pl.LazyFrame | None,
    progress: Progress,
) -> Frames:
    """Yield the tables that do not depend on how the graph was found."""
    progress.start(merge.n_documents, "documents")
    yield from ({"documents": batch} for batch in merge.documents(documents))
    for batch in merge.followed_by("text_units", "base_text_units", base_text_units):
        yield {"base_text_units": batch}
    start, schema = 0, TABLES["sentences"].schema
    for batch in row_batches(merge.imported.scan("documents").select("text"), _BATCH):
        rows: list[tuple[int, int, int, bool, int]] = []
        for number, text in enumerate(batch["text"], start):
            rows += sentence_rows(number, text, find_edges(text)[1])
        start += len(batch)
        yield {"sentences": pl.DataFrame(rows, schema=schema, orient="row")}
        progress.advance(len(batch))
    yield from ({"sentences": new} for new in shifted(sentences, document=merge.n_documents))
    for batch in merge.followed_by("covariates", "covariates", covariates):
        yield {"covariates": batch}
