"""Append what rules found in new documents to the imported rows."""

from pathlib import Path

import polars as pl

from graphrag_index.microsoft.import_folder import Imported, fingerprint_imported
from graphrag_index.microsoft.import_merge import ImportMerge
from graphrag_index.step import Progress, step
from graphrag_index.steps.add_imported import TEXT_TABLES, Frames, text_tables


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
def add_imported_nlp(
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
    """Put the imported rows before those that `extract_graph_nlp` found.

    Entities of equal title are merged later, by `finalize_graph`, which keeps id, title, type
    and description of the imported one.

    Yields
    ------
    documents, base_text_units, sentences, covariates
        Batch by batch.
    extracted_entities, extracted_relationships, extracted_mentions, given_ids
        Whole.
    """
    merge = ImportMerge(Imported(root))
    yield from text_tables(merge, documents, base_text_units, sentences, covariates, progress)
    yield merge.graph_of_rules(extracted_entities, extracted_relationships, extracted_mentions)
