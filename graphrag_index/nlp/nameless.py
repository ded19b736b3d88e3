"""Parts of a text that are not read for names: bylines, credits, code and addresses.

The names in them say who wrote or published a text, not what the text is about.
"""

import re
from bisect import bisect_right
from operator import itemgetter

from graphrag_index.text.languages import read_lists

# Start and end of a part of a text, in characters.
Range = tuple[int, int]

_PATTERN = re.compile(
    "|".join(f"(?:{part})" for part in read_lists("nlp/data/nameless").values()), re.MULTILINE
)


def find_nameless_ranges(text: str) -> list[Range]:
    """Return the parts of a text without names, in order and without overlaps."""
    return [match.span() for match in _PATTERN.finditer(text)]


def is_inside(ranges: list[Range], at: int) -> bool:
    """Return whether a position is in one of the sorted ranges."""
    number = bisect_right(ranges, at, key=itemgetter(0)) - 1
    return number >= 0 and ranges[number][0] <= at < ranges[number][1]
