"""Time the parts of an index as a server returns them: entities, passages, reports and others.

    python benchmarks/server_reads.py PROJECT [--openings 100]

PROJECT has a built index. Each kind of part is requested once, six seconds after the start of a
server, and then at random places. Printed are milliseconds at the client, over loopback: the
first request, the median, the 99th percentile and the longest.
"""

import argparse
import json
import random
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from server_load import running_server

TABLES = ("entities", "relationships", "communities", "text_units", "documents")


def read(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=600) as reply:
        return json.load(reply)


def openings(
    address: str, chooser: random.Random
) -> dict[str, tuple[Callable[[], str], int | None]]:
    """Return a function for each kind of part that chooses a path, and the number of requests."""
    counts = {table: read(f"{address}/{table}?limit=1")["total"] for table in TABLES}
    versions = [one["number"] for one in read(f"{address}/versions")["versions"]]

    def row(table: str, below: str = "") -> Callable[[], str]:
        return lambda: f"{table}/{chooser.randrange(counts[table])}{below}"

    def community() -> int:
        return chooser.randrange(counts["communities"])

    def entity() -> int:
        return chooser.randrange(counts["entities"])

    def beginning() -> str:
        return urllib.parse.quote(read(f"{address}/entities/{entity()}")["title"][:4])

    return {
        "an entity": (row("entities"), None),
        "relationships of an entity": (row("entities", "/relationships"), None),
        "mentions of an entity": (row("entities", "/mentions"), None),
        "a relationship": (row("relationships"), None),
        "a community": (row("communities"), None),
        "members of a community": (lambda: f"entities?community={community()}", None),
        "a report": (lambda: f"reports/{community()}", None),
        "a document": (row("documents"), None),
        "text of a document": (row("documents", "/text"), None),
        "a text unit": (row("text_units"), None),
        "a page of entities": (lambda: "entities?limit=50", None),
        "a page of relationships": (lambda: "relationships?limit=50", None),
        "a page of text units": (lambda: "text_units?limit=50", None),
        "a page of reports": (lambda: "reports?limit=50", None),
        "a page of documents": (lambda: "documents?limit=50", None),
        "search as one types": (lambda: f"suggest?q={beginning()}", None),
        "a neighbourhood": (lambda: f"neighbourhood?entity={entity()}&hops=2", None),
        "a path": (lambda: f"path?from={entity()}&to={entity()}", 10),
        "two versions compared": (lambda: f"diff/entities?from={versions[0]}&to={versions[-1]}", 3),
        "statistics": (lambda: "stats", 10),
        "the health of the index": (lambda: "check", 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("project", type=Path)
    parser.add_argument("--openings", type=int, default=100)
    arguments = parser.parse_args()
    with running_server(arguments.project) as (_, address):
        kinds = openings(address, random.Random(7))
        # A reader opens the page first; meanwhile the server imports libraries.
        time.sleep(6)
        print("| ms | first | median | p99 | longest |\n|---|---|---|---|---|")
        for kind, (choose, n) in kinds.items():
            times = []
            for _ in range(n or arguments.openings):
                path = choose()
                started = time.perf_counter()
                read(f"{address}/{path}")
                times.append((time.perf_counter() - started) * 1000)
            first, *rest = times[0], *sorted(times[1:])
            figures = (first, rest[len(rest) // 2], rest[len(rest) * 99 // 100], rest[-1])
            print(f"| {kind} |", *(f"{figure:.0f} |" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
