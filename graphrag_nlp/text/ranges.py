"""Ranges of a text: sorted parts that do not overlap."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

# Start and end of a part of a text, in characters.
Range = tuple[int, int]


def merge_ranges(found: Iterable[Range]) -> list[Range]:
    """Sort ranges, and join those that overlap."""
    ranges: list[Range] = []
    for start, end in sorted(found):
        if ranges and start < ranges[-1][1]:
            start, end = ranges[-1][0], max(end, ranges.pop()[1])
        ranges.append((start, end))
    return ranges


def find_range_end(ranges: Sequence[Range], at: int) -> int:
    """Return the end of the merged range that contains a position; 0 if none does."""
    number = bisect_right(ranges, at, key=itemgetter(0)) - 1
    is_found = number >= 0 and ranges[number][0] <= at < ranges[number][1]
    return ranges[number][1] if is_found else 0


def is_inside(ranges: Sequence[Range], at: int) -> bool:
    """Return whether a position is in one of the merged ranges."""
    return find_range_end(ranges, at) > 0
