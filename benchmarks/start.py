"""Measure the CPU seconds of what a user waits for: help, imports, a first answer.

    python benchmarks/start.py [--root DIR]

Each command is a fresh process, run several times; printed are the median and the range. The
question is asked of the index in `--root`, the sample's by default. Linux and macOS.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

from index import REPOSITORY, run_measured


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, default=REPOSITORY)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    if not (arguments.root / "output" / "index.json").exists():
        sys.exit(f"There is no index in {arguments.root / 'output'}: make one with `make demo`.")

    # What is installed is compiled once, not at each start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    python = [sys.executable]
    root = ["--root", str(arguments.root)]
    ask = [*python, "-m", "graphrag_query"]
    commands = {
        "python -c pass": [*python, "-c", "pass"],
        "graphrag-index --help": [*python, "-m", "graphrag_index", "--help"],
        "graphrag-query --help": [*python, "-m", "graphrag_query", "--help"],
        "import graphrag_index, graphrag_query": [
            *(*python, "-c"),
            "import graphrag_index, graphrag_query",
        ],
        "graphrag-query local": [*ask, "local", "Who was Tom Crean?", *root],
        "graphrag-query global": [*ask, "global", "What are the main themes?", *root],
        "graphrag-index run, nothing changed": [*python, "-m", "graphrag_index", "run", *root],
    }
    print("| command | CPU s, median | range |\n| --- | --- | --- |")
    for name, command in commands.items():
        # The first run fills caches of files and of compiled modules.
        _, *seconds = (run_measured(command)[1] for _ in range(arguments.times + 1))
        print(
            f"| {name} | {statistics.median(seconds):.2f} "
            f"| {min(seconds):.2f} to {max(seconds):.2f} |"
        )


if __name__ == "__main__":
    main()
