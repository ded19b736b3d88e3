"""Read the imported index as it is."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.microsoft.import_folder import (
    PUBLIC,
    Imported,
    fingerprint_imported,
    row_batches,
)
from graphrag_index.microsoft.import_merge import ImportMerge, evidence_of_reports
from graphrag_index.schema.settings.step_sections import FinalizeGraph
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, step
from graphrag_index.steps.finalize_graph import finalize_graph


@step(writes=[*PUBLIC, "report_evidence"], fingerprint=fingerprint_imported)
def read_imported(*, root: Path, progress: Progress) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Read the tables in the folder `imported`: all rows, ids and numbers, in their order.

    Yields
    ------
    documents, text_units, entities, relationships, mentions, communities, community_lineage, \
community_reports, covariates
        Batch by batch; a table that was not imported is empty.
    report_evidence
        The evidence of the reports in the graph that a run makes of it, so that it keeps them.
    """
    imported = Imported(root)
    tables = {name: imported.scan(name) for name in PUBLIC}
    counts = {name: rows.select(pl.len()).collect().item() for name, rows in tables.items()}
    progress.start(sum(counts.values()), "rows")
    for name, rows in tables.items():
        for batch in row_batches(rows):
            yield {name: batch}
            progress.advance(batch.height)
    if counts["community_reports"]:
        yield {"report_evidence": evidence_of_reports(tables, _finalized(imported))}


def _finalized(imported: Imported) -> dict[str, pl.LazyFrame]:
    """Return the graph as a run without new documents finalizes it."""
    graph = ImportMerge(imported).imported_graph()
    text_units = imported.scan("text_units").select(list(TABLES["base_text_units"].columns))
    batches: dict[str, list[pl.DataFrame]] = {"entities": [], "relationships": []}
    made: Any = finalize_graph(
        graph["extracted_entities"].lazy(),
        graph["extracted_relationships"].lazy(),
        graph["extracted_mentions"].lazy(),
        text_units,
        graph["given_ids"],
        settings=FinalizeGraph(layout=False),
    )
    for frames in made:
        for name, frame in frames.items():
            batches.get(name, []).append(frame)
    found = {
        name: pl.concat(frames).lazy() if frames else TABLES[name].empty().lazy()
        for name, frames in batches.items()
    }
    return {**found, "base_text_units": text_units}
