"""Measure what an update costs beside a build from nothing.

    python benchmarks/update.py

A planted corpus (planted.py) is indexed without one document in a hundred, which are taken from
everywhere, and then with them: by the workflow `standard`, against a server of our own that
answers at once (tests/server). Printed are the requests of each step, the CPU seconds of the
program itself, the communities that kept their numbers, and the reports that were written again.
Linux and macOS.
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import polars as pl
import yaml
from index import REPOSITORY, describe_machine, markdown, working_folder
from models import run, server, write_project

from tests.server.request_log import read_log


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text-units", type=int, default=10_000)
    parser.add_argument("--share", type=float, default=0.01, help="of the documents, added later")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--folder", type=Path, help="keep corpora and indices in this folder")
    arguments = parser.parse_args()
    print(describe_machine())
    with working_folder(arguments.folder) as folder:
        print()
        print(update(folder / "update", arguments))


def update(project: Path, arguments: argparse.Namespace) -> str:
    """Build without some documents, add them, and compare."""
    project.mkdir(parents=True, exist_ok=True)
    log = project / "server.log"
    with server("--log", str(log)) as url:
        steps = yaml.safe_load((REPOSITORY / "workflows/standard.yaml").read_text("utf-8"))
        write_project(project, arguments.text_units, steps, url, arguments.concurrency)
        later = hold_back(project, arguments.share)
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
        ["peak MiB", f"{memory / 2**20:.0f}", f"{update_memory / 2**20:.0f}", ""],
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
    """Take documents from everywhere in the folder; returns where they lie."""
    (project / "later").mkdir(exist_ok=True)
    paths = sorted(project.glob("input/*"))
    every = max(1, round(1 / share))
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
