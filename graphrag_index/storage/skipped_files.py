"""Files of the input folder that were skipped: the rows of the table `skipped_files`."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from graphrag_index.errors import format_count, join_names
from graphrag_index.storage.table_store import TableStore, scan_table
from graphrag_index.storage.versions import Version

IN_PART = "in part"  # kind of a file that was read without some of its pages
_MAX_KINDS = 10  # of skipped files in a description


@dataclass(frozen=True, order=True)
class SkippedFile:
    """A file that a run skips, or a hidden or excluded folder: a row of `skipped_files`."""

    path: str
    # A suffix; hidden, excluded, outside links, circular links or special files; in part.
    kind: str
    reason: str
    n_files: int = 1  # 0 if the file was read in part


def read_skipped(store: TableStore, version: Version) -> list[SkippedFile]:
    """Return the files that the run of a version skipped."""
    return [
        SkippedFile(*row) for row in scan_table(store, version, "skipped_files").collect().rows()
    ]


def describe_skipped(skipped: Iterable[SkippedFile]) -> str:
    """Describe skipped files by kind: "3 files skipped: .png 2, hidden 1."; empty if none.

    A sentence before names those that were read in part.
    """
    counts: Counter[str] = Counter()
    names: list[str] = []
    for one in skipped:
        counts[one.kind] += one.n_files
        names += [one.path] * (one.kind == IN_PART)
    in_part = ""
    if names:
        in_part = f"{format_count('files', len(names))} read in part: {join_names(names, 3)}."
    counts = +counts
    if not counts.total():
        return in_part
    kinds = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if rest := sum(n for _, n in kinds[_MAX_KINDS:]):
        kinds[_MAX_KINDS:] = [("others", rest)]
    listed = ", ".join(f"{kind} {n:,}" for kind, n in kinds)
    return f"{in_part} {format_count('files', counts.total())} skipped: {listed}.".strip()
