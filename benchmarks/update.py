"""Measure what an update costs beside a build from nothing.

    python benchmarks/update.py
    python benchmarks/update.py --workflow embedded --text-units 100000

A planted corpus (planted.py) is indexed without some documents, which are taken from everywhere,
and then with them. With the workflow `standard` these are one document in a hundred, and a server
of our own that answers at once (tests/model_server) stands for the model. Printed are the requests
of each step, the CPU seconds of the program itself, the communities that kept their numbers, and
the reports that were written again.

With the workflow `embedded`, which asks no model, these are one document in a thousand. As many
documents are then edited, and as many removed, unless `--changes` says otherwise. Printed are the
CPU seconds of each step for the build and for each update. Linux and macOS.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import index
import polars as pl
import yaml
from index import MIB, REPOSITORY, describe_machine, markdown, working_folder
from models import run, server, write_project

from tests.model_server.request_log import read_log

CHANGES = ("added", "edited", "removed")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text-units", type=int, default=10_000)
    parser.add_argument("--workflow", choices=["standard", "embedded"], default="standard")
    parser.add_argument(
        "--share",
        type=float,
        help="of the documents, added later; default 0.01, for the workflow `embedded` 0.001",
    )
    parser.add_argument(
        "--changes",
        nargs="+",
        choices=CHANGES,
        default=CHANGES,
        help="of documents, for the workflow `embedded`; an update follows each",
    )
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="keep corpora and indices in this folder")
    arguments = parser.parse_args()
    print(describe_machine())
    with working_folder(arguments.folder) as folder:
        print()
        if arguments.workflow == "embedded":
            print(update_embedded(folder / "update", arguments))
        else:
            print(update(folder / "update", arguments))


def update_embedded(project: Path, arguments: argparse.Namespace) -> str:
    """Build an index by `embedded`, update it after each kind of change, and compare the steps."""
    project.mkdir(parents=True, exist_ok=True)
    index.write_project(project, arguments.text_units, None)
    later = hold_back(project, arguments.share or 0.001)
    others = sorted(project.glob("input/*"))
    n_documents = len(others)
    # The documents that are edited, and those that are removed, are others than the added ones.
    edited, removed = (others[start :: n_documents // len(later)][: len(later)] for start in (1, 2))
    header = [f"CPU s, {len(later)} of {n_documents + len(later):,} documents", "build"]
    runs = [measure_steps(project)]
    for change in arguments.changes:
        if change == "added":
            for path in later:
                path.rename(project / "input" / path.name)
        elif change == "edited":
            for path in edited:
                first, *paragraphs = path.read_text("utf-8").split("\n\n")
                path.write_text("\n\n".join([*paragraphs, first]), "utf-8")
        else:
            for path in removed:
                path.unlink()
        header += [change, "share"]
        runs.append(measure_steps(project))
    build, *updates = runs
    rows = []
    for name, cost in build.items():
        shares = ((f"{run[name]:,.1f}", share(run[name], cost)) for run in updates)
        rows.append([name, f"{cost:,.1f}", *(cell for cells in shares for cell in cells)])
    return markdown(header, rows)


def measure_steps(project: Path) -> dict[str, float]:
    """Index a project; return the CPU seconds of each step, and numbers about the whole process."""
    seconds, cpu, memory = run(project)
    steps = {name: step["cpu_seconds"] for name, step in statistics(project).items()}
    parts = sum(path.stat().st_size for path in project.glob("output/parts/*/*"))
    return {
        **steps,
        "the whole process": cpu,
        "s": seconds,
        "peak MiB of the main process": memory / MIB,
        "MiB of kept parts": parts / MIB,
    }


def update(project: Path, arguments: argparse.Namespace) -> str:
    """Build without some documents, add them, and compare."""
    project.mkdir(parents=True, exist_ok=True)
    log = project / "server.log"
    with server("--log", str(log)) as url:
        steps = yaml.safe_load((REPOSITORY / "workflows/standard.yaml").read_text("utf-8"))
        write_project(project, arguments.text_units, steps, url, arguments.concurrency)
        later = hold_back(project, arguments.share or 0.01)
        _, cpu, memory = run(project)
        asked, first = requests(project), statistics(project)
        numbers = communities(project)
        for path in later:
            path.rename(project / "input" / path.name)
        n_sent = len(read_log(log))
        _, update_cpu, update_memory = run(project)
        sent = len(read_log(log)) - n_sent
    new_asked, second = requests(project), statistics(project)
    rows = [
        [
            step,
            f"{asked[step]:,}",
            f"{(n := new_asked[step] - asked[step]):,}",
            share(n, asked[step]),
        ]
        for step in asked
    ]
    total = sum(asked.values())
    rows += [
        ["all requests of chat models", f"{total:,}", f"{(n := new_asked.total() - total):,}",
         share(n, total)],
        ["posts, those with texts to embed too", f"{n_sent:,}", f"{sent:,}", share(sent, n_sent)],
        ["CPU s", f"{cpu:.1f}", f"{update_cpu:.1f}", share(update_cpu, cpu)],
        ["peak MiB", f"{memory / MIB:.0f}", f"{update_memory / MIB:.0f}", ""],
    ]  # fmt: skip
    for step in first:
        one, two = first[step]["cpu_seconds"], second[step]["cpu_seconds"]
        rows.append([f"CPU s of {step}", f"{one:.1f}", f"{two:.1f}", share(two, one)])
    kept = len(numbers & communities(project))
    rows.append(["communities, and those that kept their number", f"{len(numbers):,}",
                 f"{kept:,}", share(kept, len(numbers))])  # fmt: skip
    lineage = pl.read_parquet(project / "output/community_lineage.parquet")
    for status, n in sorted(Counter(lineage["status"].to_list()).items()):
        rows.append([f"of all communities: {status}", "", f"{n:,}", ""])
    n_later = f"{len(later)} documents added to {len(list(project.glob('input/*'))) - len(later):,}"
    return markdown([n_later, "build", "update", "share"], rows)


def hold_back(project: Path, share: float) -> list[Path]:
    """Take documents from everywhere in the folder, at least one; returns where they lie."""
    (project / "later").mkdir(exist_ok=True)
    paths = sorted(project.glob("input/*"))
    every = min(max(1, round(1 / share)), len(paths))
    for path in paths[every // 2 :: every]:
        path.rename(project / "later" / path.name)
    return sorted(project.glob("later/*"))


def requests(project: Path) -> "Counter[str]":
    """How many requests of each step have a reply in the ledger."""
    import sqlite3

    with sqlite3.connect(project / "output/ledger.sqlite") as ledger:
        return Counter(dict(ledger.execute(
            "SELECT step, count(*) FROM requests WHERE state = 'done' GROUP BY step"
        )))  # fmt: skip


def statistics(project: Path) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = json.loads(
        (project / "output/stats.json").read_text("utf-8")
    )["steps"]
    return found


def communities(project: Path) -> set[int]:
    return set(pl.read_parquet(project / "output/communities.parquet")["community"])


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


if __name__ == "__main__":
    main()
