"""Code in a text: fenced blocks of Markdown, and comments of HTML.

Its words are no sentences, and its capitals show no names. A fenced block without the name of a
programming language may be a letter or a poem, so it counts as code only by its characters.
Fences: https://spec.commonmark.org/0.31.2/#fenced-code-blocks
"""

import re

from graphrag_index.text.ranges import Range, merge_ranges

_FENCED = re.compile(
    r"^ *(?P<fence>`{3,}|~{3,})[^\S\n]*(?P<info>[\w+#.-]*)[^`\n]*\n"
    r"(?P<body>.*?)^ *(?P=fence)[`~]*[^\S\n]*$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# Words behind a fence that name no programming language.
_TEXT_FORMATS = frozenset(("", "text", "txt", "plain", "plaintext", "md", "markdown", "quote"))
_CODE_CHARACTER = re.compile(r"[{}()\[\];=<>$|\\_#/]")
_SPACES = re.compile(r"\s+")
# Minimum share of characters of code in a block that names no language.
MIN_SHARE_OF_CODE = 0.04
_VISIBLE = re.compile(r"[^\n]")


def find_fenced_blocks(text: str) -> list[Range]:
    """Return all fenced blocks of Markdown, with their fences."""
    return [match.span() for match in _find_fences(text)]


def find_code(text: str) -> list[Range]:
    """Return the fenced blocks with code, and the comments, in order."""
    found = [match.span() for match in _find_fences(text) if _is_code(match["info"], match["body"])]
    if "<!--" in text:
        found += [match.span() for match in _COMMENT.finditer(text)]
    return merge_ranges(found)


def blank_code(text: str) -> str:
    """Replace code by spaces, so that every other character keeps its offset."""
    parts, reached = [], 0
    for start, end in find_code(text):
        parts += [text[reached:start], _VISIBLE.sub(" ", text[start:end])]
        reached = end
    return "".join([*parts, text[reached:]]) if parts else text


def _find_fences(text: str) -> list[re.Match[str]]:
    return list(_FENCED.finditer(text)) if "```" in text or "~~~" in text else []


def _is_code(info: str, body: str) -> bool:
    if info.lower() not in _TEXT_FORMATS:
        return True
    visible = _SPACES.sub("", body)
    return len(_CODE_CHARACTER.findall(visible)) >= MIN_SHARE_OF_CODE * len(visible) > 0
