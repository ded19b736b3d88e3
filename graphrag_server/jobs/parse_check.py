"""Parsing of an uploaded file in a process with limits of time and memory.

`python -m graphrag_server.jobs.parse_check FILE` prints the reason why a file holds no document.
A file can be made so that its parser takes all memory or never ends, so the parser runs in a
process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from graphrag_index.readers.parse_process import MAX_BYTES, MAX_SECONDS, limit_process

_REFUSED = 3


def check_parsing(file: Path) -> str:
    """Parse a file in a process of its own; return the reason why it cannot be read, or ""."""
    command = [sys.executable, "-P", "-m", __name__, str(file)]
    try:
        # What a process that is killed has unpacked goes with the folder.
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            done = subprocess.run(
                command,
                capture_output=True,
                timeout=MAX_SECONDS,
                stdin=subprocess.DEVNULL,
                check=False,
                env={**os.environ, "TMPDIR": folder},
            )
    except subprocess.TimeoutExpired:
        return f"it takes longer than {MAX_SECONDS} s to parse"
    if done.returncode == 0:
        return ""
    if done.returncode == _REFUSED:
        return done.stdout.decode("utf-8", "replace").strip()
    return f"its parser needs more than {MAX_BYTES >> 30} GB of memory or fails"


def find_reason(file: Path, reason: str) -> str:
    """Return why a file without text cannot be read; "" if its pictures can be."""
    from graphrag_index.llm.ledger import Ledger
    from graphrag_index.readers import find_type
    from graphrag_index.readers.input_files import InputFile
    from graphrag_index.readers.recognition import PageReader
    from graphrag_index.schema.settings.step_sections import LoadDocuments
    from graphrag_index.step import Silent

    reader = PageReader(lambda: Ledger(None), only_known=True)
    found = InputFile(file.name, file, type=find_type(file).suffix)
    reader.read([found], LoadDocuments(), Silent())
    return "" if reader.n_missing else reader.explain(file.name) or reason


def main() -> None:
    """Parse the file given on the command line; print the reason if it holds no document."""
    from graphrag_index.readers import MAX_UNPACKED_BYTES, ReadFailure, read_file
    from graphrag_index.schema.settings.step_sections import LoadDocuments

    # The files of an archive are unpacked one by one.
    limit_process(MAX_SECONDS, MAX_UNPACKED_BYTES)
    file = Path(sys.argv[1])
    reason = "it holds no document"
    for item in read_file(file, file.name, LoadDocuments()):
        if isinstance(item, ReadFailure):
            reason = item.reason
            continue
        return
    reason = find_reason(file, reason)
    if not reason:
        return
    sys.stdout.write(reason)
    sys.stdout.flush()
    sys.exit(_REFUSED)


if __name__ == "__main__":
    main()
