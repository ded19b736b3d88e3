"""Put what a model found in new documents behind what was imported."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from graphrag_index.microsoft.import_folder import Imported, fingerprint_imported
from graphrag_index.microsoft.import_merge import Joining
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, step
from graphrag_index.steps.create_text_units import find_edges, sentence_rows

# Documents read at once: bounds memory, not results.
BATCH_DOCUMENTS = 256

Frames = Iterator[Mapping[str, pl.DataFrame]]


@step(
    writes=[
        "documents",
        "base_text_units",
        "sentences",
        "covariates",
        "extracted_entities",
        "extracted_relationships",
        "raw_mentions",
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
    raw_mentions: pl.DataFrame,
    covariates: pl.LazyFrame | None = None,
    *,
    root: Path,
    progress: Progress,
) -> Frames:
    """Put the imported rows before those that were found now, so that they are one index.

    What is found now under the title of an imported entity is that entity: it keeps its id,
    title and type, and what is said of it now comes beside its one imported description.
    So it is with relationships between the same two entities, whose weights add up. Text units
    that were imported are not looked at.

    Yields
    ------
    documents, base_text_units, sentences, covariates
        Batch by batch.
    extracted_entities, extracted_relationships, raw_mentions, given_ids
        Whole.
    """
    joining = Joining(Imported(root))
    yield from shared(joining, documents, base_text_units, sentences, covariates, progress)
    yield joining.graph(extracted_entities, extracted_relationships, raw_mentions)


def shared(
    joining: Joining,
    documents: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    sentences: pl.LazyFrame,
    covariates: pl.LazyFrame | None,
    progress: Progress,
) -> Frames:
    """Join what does not depend on who found the entities."""
    progress.start(joining.n_documents, "documents")
    for batch in joining.documents(documents):
        yield {"documents": batch}
    for batch in joining.text_units(base_text_units):
        yield {"base_text_units": batch}
    yield from _imported_sentences(joining, progress)
    for batch in joining.sentences(sentences):
        yield {"sentences": batch}
    for batch in joining.covariates(covariates):
        yield {"covariates": batch}


def _imported_sentences(joining: Joining, progress: Progress) -> Frames:
    texts = joining.imported.scan("documents").select("text")
    for start in range(0, joining.n_documents, BATCH_DOCUMENTS):
        batch = texts.slice(start, BATCH_DOCUMENTS).collect()["text"]
        rows: list[tuple[int, int, int, bool, int]] = []
        for number, text in enumerate(batch, start):
            rows += sentence_rows(number, text, find_edges(text)[1])
        schema = TABLES["sentences"].schema
        yield {"sentences": pl.DataFrame(rows, schema=schema, orient="row")}
        progress.advance(len(batch))
