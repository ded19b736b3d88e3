"""Put what rules found in new documents behind what was imported."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from graphrag_index.microsoft.import_folder import Imported, fingerprint_imported
from graphrag_index.microsoft.import_merge import Joining
from graphrag_index.step import Progress, step
from graphrag_index.steps.add_imported import shared


@step(
    writes=[
        "documents",
        "base_text_units",
        "sentences",
        "covariates",
        "raw_entities",
        "raw_relationships",
        "raw_mentions",
        "given_ids",
    ],
    fingerprint=fingerprint_imported,
)
def add_imported_nlp(
    documents: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    sentences: pl.LazyFrame,
    raw_entities: pl.DataFrame,
    raw_relationships: pl.DataFrame,
    raw_mentions: pl.DataFrame,
    covariates: pl.LazyFrame | None = None,
    *,
    root: Path,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Put the imported rows before those that `extract_graph_nlp` found now.

    What has the title of an imported entity becomes one with it in `finalize_graph`, which
    keeps id, title, type and description of the imported one.

    Yields
    ------
    documents, base_text_units, sentences, covariates
        Batch by batch.
    raw_entities, raw_relationships, raw_mentions, given_ids
        Whole.
    """
    joining = Joining(Imported(root))
    yield from shared(joining, documents, base_text_units, sentences, covariates, progress)
    yield joining.raw_graph(raw_entities, raw_relationships, raw_mentions)
