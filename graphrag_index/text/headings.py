"""The headings of a text, as Markdown writes them, and which of them a place stands under."""

import re
from collections.abc import Sequence
from typing import NamedTuple

# "# Words" and "Words" over a line of = or -, indented by three spaces at most [1]_.
#
# .. [1] https://spec.commonmark.org/0.31.2/#atx-headings and #setext-headings
_HEADING = re.compile(
    r"^ {0,3}(?P<marks>#{1,6})[^\S\n]+(?P<words>[^\n]+?)[^\S\n]*#*[^\S\n]*$"
    r"|(?:\A|(?<=\n\n)) {0,3}(?P<over>[^\s#>|*+=-][^\n|]{0,98}?)[^\S\n]*\n {0,3}"
    r"(?P<line>={2,}|-{3,})[^\S\n]*$",
    re.MULTILINE,
)
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\S\n]*$", re.MULTILINE | re.DOTALL)


class Heading(NamedTuple):
    """A heading: where it begins and ends, its depth (1 is the outermost), its words."""

    start: int
    end: int
    depth: int
    words: str


def find_headings(text: str) -> list[Heading]:
    """Find Markdown headings outside of code."""
    if "#" not in text and "\n==" not in text and "\n--" not in text:
        return []
    fenced = "```" in text or "~~~" in text
    fences = [match.span() for match in _FENCE.finditer(text)] if fenced else []
    return [
        _heading(match)
        for match in _HEADING.finditer(text)
        if not any(start <= match.start() < end for start, end in fences)
    ]


def _heading(match: re.Match[str]) -> Heading:
    if match["marks"]:
        return Heading(match.start(), match.end(), len(match["marks"]), match["words"])
    depth = 1 if match["line"][0] == "=" else 2
    return Heading(match.start(), match.end(), depth, match["over"])


def breadcrumb(headings: Sequence[Heading], position: int) -> str:
    """Join the headings that a position stands under, the outermost first."""
    path: list[tuple[int, str]] = []
    for start, _, depth, words in headings:
        if start > position:
            break
        while path and path[-1][0] >= depth:
            path.pop()
        path.append((depth, words))
    return " > ".join(words for _, words in path)
