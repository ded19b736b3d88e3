"""Index a folder of documents and ask it a question, without a key or a model server.

    python examples/index_and_ask.py [--documents FOLDER] [--question TEXT] [--root PROJECT]

Nothing is downloaded, and no network is used.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import graphrag_query

SAMPLE = Path(__file__).parent.parent / "input"


def graphrag_index(*arguments: str | Path) -> None:
    """Call the command line, which prints its own errors."""
    command = [sys.executable, "-m", "graphrag_index", *map(str, arguments)]
    if code := subprocess.run(command, check=False).returncode:
        sys.exit(code)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=Path, default=SAMPLE)
    parser.add_argument("--question", default="Who was Tom Crean?")
    parser.add_argument("--root", type=Path, help="new folder to keep the index in")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.root or Path(temporary) / "project"
        graphrag_index("init", root, "--input", options.documents.resolve())
        graphrag_index("run", "--root", root)
        with graphrag_query.open(root / "output") as index:
            answer = index.local(options.question)
            print(answer.text)
            for citation in answer.citations:
                span = f"characters {citation.start_char} to {citation.end_char}"
                print(f"[{citation.number}] {citation.path}, {span}: {citation.quote}")


if __name__ == "__main__":
    main()
