"""Code in a text: fenced blocks of Markdown, and comments of HTML.

Its words are no sentences, and its capitals show no names. A fenced block without the name of a
programming language may be a letter or a poem, so it counts as code only by its characters.
Fences: https://spec.commonmark.org/0.31.2/#fenced-code-blocks
Parts of a text are ranges, which are sorted and do not overlap.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

# Start and end of a part of a text, in characters.
Range = tuple[int, int]
_FENCE = re.compile(r"^ *(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)
_COMMENT_START, _COMMENT_END = "<!--", "-->"
# Words after an opening fence that name no programming language.
_TEXT_FORMATS = frozenset(("", "text", "txt", "plain", "plaintext", "md", "markdown", "quote"))
_CODE_CHARACTER = re.compile(r"[{}()\[\];=<>$|\\_#/]")
_SPACES = re.compile(r"\s+")
# Minimum share of characters of code in a block that names no language.
MIN_SHARE_OF_CODE = 0.04
_VISIBLE = re.compile(r"[^\n]")


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


def find_fenced_blocks(text: str) -> list[Range]:
    """Return all fenced blocks of Markdown, with their fences."""
    return [(opening.start(), closing.end()) for opening, closing in _find_fences(text)]


def find_code(text: str) -> list[Range]:
    """Return the fenced blocks with code, and the comments, in order."""
    fenced = (
        (opening.start(), closing.end())
        for opening, closing in _find_fences(text)
        if _is_code(opening["info"].strip(), text[opening.end() : closing.start()])
    )
    return merge_ranges([*fenced, *_find_comments(text)])


def blank_code(text: str, *, is_part: bool = False) -> str:
    """Replace code and all fences by spaces, so that every other character keeps its offset.

    A part of a document may begin or end within a block.
    """
    text = _blank(text, _find_cut_blocks(text)) if is_part else text
    text = _blank(text, find_code(text))
    return _blank(text, (f.span() for f in _FENCE.finditer(text) if _may_open(text, f)))


def _blank(text: str, ranges: Iterable[Range]) -> str:
    parts, reached = [], 0
    for start, end in ranges:
        parts += [text[reached:start], _VISIBLE.sub(" ", text[start:end])]
        reached = end
    return "".join([*parts, text[reached:]]) if parts else text


def _find_fences(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield the opening and the closing fence of each block that is closed."""
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text) if "```" in text or "~~~" in text else ():
        if opening is None:
            opening = fence if _may_open(text, fence) else None
        elif fence["marks"].startswith(opening["marks"]) and not fence["info"].strip():
            yield opening, fence
            opening = None


def _find_cut_blocks(text: str) -> Iterator[Range]:
    """Yield the rest of a block that began before the text, and a block that goes on after it.

    A fence without words after it closes a block if the next fence opens one, or, if there is no
    other fence, if more code is before it than after it.
    """
    fences = list(_FENCE.finditer(text)) if "```" in text or "~~~" in text else []
    words = [fence["info"].strip() for fence in fences]
    closes = False
    if fences and not words[0]:
        before, after = text[: fences[0].start()], text[fences[0].end() :]
        opens_next = len(words) > 1 and words[1]
        is_more = _share_of_code(before) > _share_of_code(after)
        closes = _is_code("", before) and bool(opens_next or is_more)
        if closes:
            yield 0, fences[0].end()
    opens = fences and (words[-1] or (len(fences) - closes) % 2)
    if opens and _may_open(text, fences[-1]) and _is_code(words[-1], text[fences[-1].end() :]):
        yield fences[-1].start(), len(text)


def _may_open(text: str, fence: re.Match[str]) -> bool:
    """Return whether a fence opens a block: it is no inline code, and underlines no heading."""
    end = max(0, fence.start() - 1)
    line_before = text[text.rfind("\n", 0, end) + 1 : end]
    underlines = fence["marks"][0] == "~" and not fence["info"].strip() and line_before.strip()
    return not underlines and "`" not in fence["info"]


def _find_comments(text: str) -> Iterator[Range]:
    start = text.find(_COMMENT_START)
    while start >= 0 and (end := text.find(_COMMENT_END, start + len(_COMMENT_START))) >= 0:
        yield start, end + len(_COMMENT_END)
        start = text.find(_COMMENT_START, end)


def _is_code(info: str, body: str) -> bool:
    """Return whether a block names a programming language, or has the characters of code."""
    if info and info.split()[0].lower() not in _TEXT_FORMATS:
        return True
    return _share_of_code(body) >= MIN_SHARE_OF_CODE


def _share_of_code(text: str) -> float:
    visible = _SPACES.sub("", text)
    return len(_CODE_CHARACTER.findall(visible)) / max(len(visible), 1)
