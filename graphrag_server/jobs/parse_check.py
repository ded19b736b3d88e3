"""Parsing of an uploaded file in a process with limits of time and memory.

`python -m graphrag_server.jobs.parse_check FILE` prints the reason why a file holds no document.
A file can be made so that its parser takes all memory or never ends, so the parser runs in a
process of its own.
"""

import subprocess
import sys
from pathlib import Path

# Limits of the process: seconds of CPU and of time, and bytes of memory.
MAX_SECONDS = 60
MAX_BYTES = 3 << 30
_REFUSED = 3


def check_parsing(file: Path) -> str:
    """Parse a file in a process of its own; return the reason why it cannot be read, or ""."""
    command = [sys.executable, "-m", __name__, str(file)]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=MAX_SECONDS, stdin=subprocess.DEVNULL, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it takes longer than {MAX_SECONDS} s to parse"
    if done.returncode == 0:
        return ""
    if done.returncode == _REFUSED:
        return done.stdout.decode("utf-8", "replace").strip()
    return f"its parser needs more than {MAX_BYTES >> 30} GB of memory or fails"


def _limit_process() -> None:
    """Limit the memory and the CPU of this process, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit, value in (
        (resource.RLIMIT_AS, MAX_BYTES),
        (resource.RLIMIT_CPU, MAX_SECONDS),
        # The parser writes nothing.
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (value if hard < 0 else min(value, hard), hard))


def main() -> None:
    """Parse the file given on the command line; print the reason if it holds no document."""
    _limit_process()
    from graphrag_index.readers import ReadFailure, read_file
    from graphrag_index.schema.settings.step_sections import LoadDocuments

    file = Path(sys.argv[1])
    reason = "it holds no document"
    for item in read_file(file, file.name, LoadDocuments()):
        if isinstance(item, ReadFailure):
            reason = item.reason
            continue
        return
    sys.stdout.write(reason)
    sys.stdout.flush()
    sys.exit(_REFUSED)


if __name__ == "__main__":
    main()
