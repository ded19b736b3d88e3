"""Read the imported vectors; no model is called."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl

from graphrag_index.llm.local_embeddings import EmbeddingModel
from graphrag_index.microsoft.import_folder import Imported, fingerprint_imported
from graphrag_index.schema.list_columns import positions
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, step
from graphrag_index.steps.generate_text_embeddings import BATCH, embedded_rows


@step(
    writes=["text_unit_text", "text_unit_vectors", "entity_description", "community_full_content"],
    fingerprint=fingerprint_imported,
)
def read_imported_vectors(
    text_units: pl.LazyFrame,
    entities: pl.LazyFrame,
    community_reports: pl.LazyFrame | None = None,
    *,
    root: Path,
    embedding_model: EmbeddingModel,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Join imported vectors to our tables by the ids of their rows.

    They are attributed to the embedding model of the settings. A row without a vector gets
    zeros: only its words are found, until `generate_text_embeddings` embeds it.

    Yields
    ------
    text_unit_text, text_unit_vectors, entity_description, community_full_content
        In the form of `generate_text_embeddings`.
    """
    imported = Imported(root)
    dimension = embedding_model.dimension
    dtype = pl.Array(pl.Float32, dimension)
    sources = embedded_rows(text_units, entities, community_reports)
    counts = {name: rows.select(pl.len()).collect().item() for name, rows in sources.items()}
    progress.start(sum(counts.values()), "vectors")
    for name, rows in sources.items():
        known = pl.DataFrame(schema={"id": pl.String, "vector": dtype})
        if name in imported.vectors:
            known = imported.scan_vectors(name).unique("id", maintain_order=True).collect()
        # Position -1, for unknown ids, is the vector of zeros.
        given = np.append(known["vector"].to_numpy(), np.zeros((1, dimension), np.float32), axis=0)
        for offset in range(0, max(counts[name], 1), BATCH):
            batch = rows.slice(offset, BATCH).collect()
            vectors = given[positions(batch["id"], known["id"])]
            embedded = batch.with_columns(vector=pl.Series(vectors, dtype=dtype))
            yield {name: embedded.select(list(TABLES[name].columns))}
            if name == "text_unit_text":
                yield {"text_unit_vectors": embedded.select(pl.col("vector").arr.to_list())}
            progress.advance(batch.height)
