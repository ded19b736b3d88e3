"""Measure the exports of a graph: seconds, CPU seconds, rate and peak memory of each form.

    python benchmarks/export.py --relationships 1000000 5000000

The index is made directly as tables (synthetic.py): five relationships an entity, ten mentions,
texts with characters that the forms must escape. Each export is a process of its own, as a user
would start it. Linux and macOS.
"""

import argparse
import sys
from multiprocessing import get_context
from pathlib import Path

from index import MIB, describe_machine, markdown, run_measured, working_folder
from synthetic import RELATIONSHIPS, make_graph_index

from graphrag_index.cli.exchange_commands import GRAPH_FORMATS


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--relationships", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--forms", nargs="+", default=list(GRAPH_FORMATS), choices=GRAPH_FORMATS)
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
    seconds, cpu, peak = run_measured([*command, "--overwrite", "--root", str(project)])
    files = [target] if target.is_file() else list(target.iterdir())
    size = sum(path.stat().st_size for path in files) / 1e6
    for path in files:
        path.unlink()
    return [
        *(form, f"{seconds:.1f}", f"{cpu:.1f}", f"{size:,.0f}"),
        *(f"{size / seconds:,.0f}", f"{peak / MIB:,.0f}"),
    ]


if __name__ == "__main__":
    main()
