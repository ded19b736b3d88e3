"""Steps for an imported index: read its tables, or merge new documents into its tables."""

import logging
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.llm.local.local_models import EmbeddingModel
from graphrag_index.microsoft.import_folder import (
    BATCH_ROWS,
    IMPORTED_TABLES,
    ImportedIndex,
    fingerprint_imported,
)
from graphrag_index.microsoft.import_merge import ImportMerge, make_evidence_of_reports, shift_rows
from graphrag_index.schema.settings.step_sections import FinalizeGraph
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, SerialShards, Step, step
from graphrag_index.steps.create_text_units import find_cut_offsets, make_sentence_rows
from graphrag_index.steps.finalize_graph import finalize_graph
from graphrag_index.steps.generate_text_embeddings import (
    BATCH_VECTORS,
    make_vector_tables,
    select_embedded_rows,
)
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import find_rows

logger = logging.getLogger(__name__)

# Number of documents per batch. The number limits memory and does not change the results.
BATCH_DOCUMENTS = 512
MAX_WARNED_RECORDS = 3  # maximum number of records in a warning

Tables = Iterator[Mapping[str, pl.DataFrame]]


@step(writes=[*IMPORTED_TABLES, "report_evidence"], fingerprint=fingerprint_imported)
def read_imported(*, root: Path, progress: Progress) -> Tables:
    """Read the tables in the folder `imported` with all rows, ids and numbers, in order.

    A table that was not imported is empty. `report_evidence` has the evidence of the imported
    reports. The evidence is computed from the graph of a run without new documents, so that a
    later run reuses the reports.
    """
    imported = ImportedIndex(root)
    tables = {name: imported.scan(name) for name in IMPORTED_TABLES}
    counts = {name: rows.select(pl.len()).collect().item() for name, rows in tables.items()}
    progress.start(sum(counts.values()), "rows")
    for name, rows in tables.items():
        for batch in read_batches(rows, BATCH_ROWS, has_long_texts=name == "documents"):
            yield {name: batch}
            progress.advance(batch.height)
    if counts["community_reports"]:
        yield {"report_evidence": make_evidence_of_reports(tables, _finalize_imported(imported))}


def _finalize_imported(imported: ImportedIndex) -> dict[str, pl.LazyFrame]:
    """Return the tables that a run without new documents would compute for the imported graph."""
    extracted = ImportMerge(imported).read_imported_graph()
    text_units = imported.scan("text_units").select(list(TABLES["base_text_units"].columns))
    graph: dict[str, list[pl.DataFrame]] = {"entities": [], "relationships": []}
    made: Any = finalize_graph(
        extracted["extracted_entities"].lazy(),
        extracted["extracted_relationships"].lazy(),
        extracted["extracted_mentions"].lazy(),
        text_units,
        extracted["given_ids"],
        settings=FinalizeGraph(layout=False),
        shards=SerialShards(),
    )
    for frames in made:
        for name in frames.keys() & graph.keys():
            graph[name].append(frames[name])
    finalized = {
        name: pl.concat(frames or [TABLES[name].empty()]).lazy() for name, frames in graph.items()
    }
    return {**finalized, "base_text_units": text_units}


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
) -> Tables:
    """Join imported vectors to the rows with the same id; no model is called.

    The vectors are recorded as vectors of the embedding model in the settings. A row without a
    vector gets a vector of zeros. A search finds such a row only by its words, until
    `generate_text_embeddings` embeds the row.
    """
    imported, dimension = ImportedIndex(root), embedding_model.dimension
    sources = select_embedded_rows(text_units, entities, community_reports)
    n_vectors = sum(rows.select(pl.len()).collect().item() for rows in sources.values())
    progress.start(n_vectors, "vectors")
    for name, rows in sources.items():
        known = pl.DataFrame(schema={"id": pl.String, "vector": pl.Array(pl.Float32, dimension)})
        if name in imported.vectors:
            known = imported.scan_vectors(name).unique("id", maintain_order=True).collect()
        # Append a vector of zeros for unknown ids: their position is -1, the last vector.
        vectors = np.append(known["vector"].to_numpy(), np.zeros((1, dimension), np.float32), 0)
        for batch in read_batches(rows, BATCH_VECTORS, at_least_one=True):
            yield make_vector_tables(name, batch, vectors[find_rows(batch["id"], known["id"])])
            progress.advance(batch.height)


@step(writes=["loaded_documents"], fingerprint=fingerprint_imported)
def skip_imported(loaded_documents: pl.LazyFrame, *, root: Path) -> Iterator[pl.DataFrame]:
    """Drop documents with the text or the id of an imported document.

    The comparison of texts ignores the type of line ends, surrounding space and a byte order mark.
    If a record has the id of an imported document but another text, a warning is logged.
    """
    imported = ImportedIndex(root).scan("documents")
    ids = set(imported.select("id").collect()["id"])
    parts = read_batches(imported.select("text"), BATCH_DOCUMENTS, has_long_texts=True)
    texts = {_digest_text(text) for part in parts for text in part["text"]}
    changed: list[str] = []
    for batch in read_batches(loaded_documents, BATCH_DOCUMENTS, has_long_texts=True):
        keep = []
        for id, path, text in batch.select("id", "path", "text").iter_rows():
            is_known = _digest_text(text) in texts
            if not is_known and id in ids:
                changed.append(f"{path} ({id})")
            keep.append(not is_known and id not in ids)
        yield batch.filter(pl.Series(keep, dtype=pl.Boolean))
    if changed:
        logger.warning(
            "%d records have the id of an imported document and another text: the imported "
            "document is kept (%s%s).",
            len(changed),
            ", ".join(changed[:MAX_WARNED_RECORDS]),
            ", ..." * (len(changed) > MAX_WARNED_RECORDS),
        )


def _digest_text(text: str) -> bytes:
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").strip()
    return blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _make_merge_step(
    name: str, merge_graph: Callable[..., Mapping[str, pl.DataFrame]], docstring: str
) -> Step:
    """Make a step that merges the imported rows with the rows of new documents.

    Nothing is extracted from imported text units.
    """

    def merge_imported(
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
    ) -> Tables:
        merge = ImportMerge(ImportedIndex(root))
        progress.start(merge.n_documents, "documents")
        yield from ({"documents": batch} for batch in merge.merge_documents(documents))
        for batch in merge.append_rows("text_units", "base_text_units", base_text_units):
            yield {"base_text_units": batch}
        start, schema = 0, TABLES["sentences"].schema
        texts = merge.imported.scan("documents").select("text")
        for batch in read_batches(texts, BATCH_DOCUMENTS, has_long_texts=True):
            rows: list[tuple[int, int, int, bool, int]] = []
            for number, text in enumerate(batch["text"], start):
                rows += make_sentence_rows(number, text, find_cut_offsets(text)[1])
            start += len(batch)
            yield {"sentences": pl.DataFrame(rows, schema=schema, orient="row")}
            progress.advance(len(batch))
        for batch in shift_rows(sentences, document=merge.n_documents):
            yield {"sentences": batch}
        for batch in merge.append_rows("covariates", "covariates", covariates):
            yield {"covariates": batch}
        yield merge_graph(merge, extracted_entities, extracted_relationships, extracted_mentions)

    merge_imported.__name__, merge_imported.__doc__ = name, docstring
    return step(
        writes=[
            *("documents", "base_text_units", "sentences", "covariates", "extracted_entities"),
            *("extracted_relationships", "extracted_mentions", "given_ids"),
        ],
        fingerprint=fingerprint_imported,
    )(merge_imported)


add_imported = _make_merge_step(
    "add_imported",
    ImportMerge.merge_graph,
    """Merge the imported rows with the rows of new documents; imported rows come first.

    Entities with the same title are merged: the merged entity keeps the id, title and type of the
    imported entity, and has the descriptions of both entities. Relationships between the same two
    entities are merged in the same way, and their weights are added.
    """,
)
add_imported_nlp = _make_merge_step(
    "add_imported_nlp",
    ImportMerge.append_graph_of_rules,
    """Put the imported rows before the rows of `extract_graph_nlp`.

    The step `finalize_graph` merges entities with the same title later. The merged entity keeps
    the id, title, type and description of the imported entity.
    """,
)
