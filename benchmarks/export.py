"""Measure the exports of a graph: seconds, CPU seconds, rate and peak memory of each form.

    python benchmarks/export.py --relationships 1000000 5000000

The index is made directly as tables (synthetic.py): five relationships an entity, ten mentions,
texts with characters that the forms must escape. Each export is a process of its own, as a user
would start it. Linux and macOS.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from index import MIB, describe_machine, markdown, working_folder
from synthetic import (
    ENTITIES_OF_TOPIC,
    MENTIONS,
    RELATIONSHIPS,
    TEXT_UNITS_OF_TOPIC,
    Frames,
    MakeTables,
    _Maker,
)

from graphrag_index.core.lists import gather_lists
from graphrag_index.core.settings import Settings
from graphrag_index.export_command import GRAPH_FORMS
from graphrag_index.run import run_workflow
from graphrag_index.step import step
from graphrag_index.workflow import Workflow

TABLES = (
    *("documents", "text_units", "entities", "relationships", "communities"),
    "community_reports",
)
HARD = pl.lit(' "quoted" & <marked>;\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--relationships", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--forms", nargs="+", default=list(GRAPH_FORMS), choices=GRAPH_FORMS)
    parser.add_argument("--folder", type=Path, help="keep indexes in this folder")
    arguments = parser.parse_args()
    print(describe_machine())
    with working_folder(arguments.folder) as folder:
        for n_relationships in arguments.relationships:
            project = folder / str(n_relationships)
            if not (project / "output" / "index.json").exists():
                make = (project, n_relationships // RELATIONSHIPS)
                # A child's peak counts from what its parent holds, so that is kept small.
                process = get_context("spawn").Process(target=make_graph_index, args=make)
                process.start()
                process.join()
            rows = [measure(project, form) for form in arguments.forms]
            print(f"\n{n_relationships:,} relationships:\n")
            print(markdown(["form", "s", "CPU s", "MB", "MB/s", "peak MiB"], rows))


def measure(project: Path, form: str) -> list[str]:
    """Export the graph of an index, in a process of its own."""
    (project / "settings.yaml").touch()
    target = project / f"export-{form}"
    command = [sys.executable, "-m", "graphrag_index", "export", "--to", form, str(target)]
    started = time.perf_counter()
    process = subprocess.Popen(
        [*command, "--overwrite", "--root", str(project)], stdout=subprocess.DEVNULL
    )
    # Of this process alone, where getrusage() would tell the peak of all children so far.
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    files = [target] if target.is_file() else list(target.iterdir())
    size = sum(path.stat().st_size for path in files) / 1e6
    for path in files:
        path.unlink()
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    cpu = used.ru_utime + used.ru_stime
    return [
        *(form, f"{seconds:.1f}", f"{cpu:.1f}", f"{size:,.0f}"),
        *(f"{size / seconds:,.0f}", f"{peak / MIB:,.0f}"),
    ]


def make_graph_index(project: Path, n_entities: int) -> None:
    """Write an index that has tables and no vectors; `n_entities` is a multiple of 1,000."""
    settings = Settings(steps={"make_graph": {"n_entities": n_entities}})
    run_workflow(Workflow("graph", (make_graph,)), settings, project, {})


@step(writes=list(TABLES))
def make_graph(*, settings: MakeTables) -> Frames:
    """Write what an export reads."""
    make = _Graph(settings)
    for frames in make.parts():
        yield {name: rows for name, rows in frames.items() if name in TABLES}


class _Graph(_Maker):
    """Makes no vectors, and links entities to the text units of their topics."""

    def parts(self) -> Iterator[dict[str, pl.DataFrame]]:
        yield from self.text_units()
        yield from self.entities()
        yield from self.relationships()
        yield from self.communities()

    def vectors(self, around: Any) -> Any:
        return around[:, :1]

    def vector(self, topics: Any) -> pl.Series:
        return pl.Series("vector", np.zeros((len(topics), 1)), dtype=pl.Array(pl.Float32, 1))

    def fill(self, name: str, rows: pl.DataFrame) -> pl.DataFrame:
        filled = super().fill(name, rows)
        if name == "relationships":
            return filled.with_columns(pl.col("description") + HARD)
        if name != "entities":
            return filled
        number = np.repeat(filled["human_readable_id"].to_numpy(), MENTIONS)
        nth = np.tile(np.arange(MENTIONS), filled.height)
        topic = number // ENTITIES_OF_TOPIC
        unit = topic + (number + nth) % TEXT_UNITS_OF_TOPIC * self.n_topics
        owners = np.repeat(np.arange(filled.height), MENTIONS)
        return filled.with_columns(
            pl.col("description") + HARD,
            gather_lists(owners, self.ids("t", unit), filled.height).alias("text_unit_ids"),
        )


if __name__ == "__main__":
    main()
