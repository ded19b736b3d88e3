"""Run the notebooks of docs/tutorials: `python docs/run_tutorials.py [NAME ...]`, `make tutorials`.

Each runs in its folder, as it does for a reader, in a process of its own. The copies with outputs
are written to build/tutorials. A cell that fails ends the command with exit code 1; so does a
notebook with outputs, since these would be old and hard to review.
"""

import argparse
import json
import os
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from graphrag_index.storage.atomic import write_text_file

TUTORIALS = Path(__file__).parent / "tutorials"
EXECUTED = Path(__file__).parents[1] / "build" / "tutorials"
CELL_SECONDS = 300


def run(name: str) -> None:
    """Execute a notebook, and write the copy that has its outputs."""
    path = TUTORIALS / f"{name}.ipynb"
    check_no_outputs(path)
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        resources={"metadata": {"path": str(TUTORIALS)}},
        extra_arguments=["--log-level=ERROR"],
    )
    started, cpu_started = time.perf_counter(), cpu_seconds()
    try:
        client.execute()
    except CellExecutionError as error:
        sys.exit(f"{path} failed.\n\n{error}")
    # A file that was written in part would count as made.
    write_text_file(EXECUTED / path.name, [nbformat.writes(notebook)])
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu_started
    print(f"{name}: {seconds:.0f} s, {cpu:.0f} CPU s", flush=True)


def check_no_outputs(path: Path) -> None:
    """End with a message if a notebook has outputs."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    if any(cell.get("outputs") or cell.get("execution_count") for cell in cells):
        sys.exit(f"{path} has outputs: clear them, and save it again.")


def cpu_seconds() -> float:
    """Return the processor time of this process and of its ended children."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="notebooks, without .ipynb; all if not given")
    names = parser.parse_args().names
    # Shell cells find the commands of this environment, and no settings of the user take part.
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as settings:
        os.environ["IPYTHONDIR"] = os.environ["JUPYTER_CONFIG_DIR"] = settings
        for name in names or sorted(path.stem for path in TUTORIALS.glob("*.ipynb")):
            run(name)


if __name__ == "__main__":
    main()
