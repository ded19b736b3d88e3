"""Files of the input folder that were skipped: the rows of the table `skipped_files`."""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from graphrag_index.errors import format_count
from graphrag_index.storage.table_store import TableStore, scan_table
from graphrag_index.storage.versions import Version

_MAX_KINDS = 10  # of skipped files in a description


class SkippedFile(NamedTuple):
    """A file, or all files of a folder, without anything to read: a row of `skipped_files`."""

    path: str
    kind: str  # a suffix; hidden, excluded, outside links, circular links or special files
    reason: str
    n_files: int = 1


def read_skipped(store: TableStore, version: Version) -> list[SkippedFile]:
    """Return the files that the run of a version skipped."""
    rows = scan_table(store, version, "skipped_files").collect().iter_rows()
    return [SkippedFile(*row) for row in rows]


def describe_skipped(skipped: Iterable[SkippedFile]) -> str:
    """Describe skipped files by kind: "3 files skipped: .png 2, hidden 1."; empty if none."""
    counts: Counter[str] = Counter()
    for one in skipped:
        counts[one.kind] += one.n_files
    if not counts.total():
        return ""
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(n for _, n in most[_MAX_KINDS:])
    kinds = [*most[:_MAX_KINDS], *([("others", rest)] if rest else ())]
    listed = ", ".join(f"{kind} {n:,}" for kind, n in kinds)
    return f"{format_count('files', counts.total())} skipped: {listed}."
