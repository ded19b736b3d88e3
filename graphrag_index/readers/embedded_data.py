"""Stretches of a text that are data, such as a picture in base64 or a minified script.

A model learns nothing from them, but every thousand characters cost a request. A placeholder tells
their length, so a position in the file can still be computed. Known are `data:` addresses (RFC
2397), base64 and hexadecimal runs, blocks of lines without spaces (PEM, MIME, Ascii85), hex dumps,
and long lines of scripts without spaces.
"""

import re
from collections.abc import Callable

import numpy as np

_MIN_LINE = 40  # characters of a line of a block
_MIN_LETTERS = 8  # distinct letters and digits of data; a drawn line such as ===== has fewer
_MAX_WORD_SHARE = 0.5  # of the letters and digits of data; a path or a list of names has more
_MIN_SCRIPT_MARKS = 0.08  # share of the characters of a minified line
_MIN_SCRIPT_TOKEN = 16  # characters between two spaces of a minified line, on average

_DATA_ADDRESS = re.compile(
    r"""\bdata:(?P<type>[\w.+-]+/[\w.+-]+)?(?:;[\w.+=-]+)*,
    (?:(?:<|%3C)svg\b(?:(?!(?:<|%3C)svg).)*?(?:<|%3C)/svg(?:>|%3E)
    |[^\s"'<>()\\]{40,}(?:\n[ \t]*[\w+/=-]{40,})*(?:\n[ \t]*(?=\S*[0-9+/=])[A-Za-z0-9+/]+=*$)?)""",
    re.ASCII | re.DOTALL | re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
# With \, since a key in JSON has \n for its line ends.
_RUN = re.compile(r"(?<![\w+/=\\-])[\w+/=\\-]{120,}", re.ASCII)
_BLOCK = re.compile(
    rf"^[ \t>]*+[!-~]{{{_MIN_LINE},}}(?:\n[ \t>]*+[!-~]{{{_MIN_LINE},}}){{2,}}"
    r"(?:\n[ \t>]*(?=\S*[0-9+/=])[A-Za-z0-9+/]+=*$)?",
    re.MULTILINE,
)
_HEX_DUMP = re.compile(
    r"^[ \t]*+[0-9a-f]{7,16}+:?[ \t]++(?:[0-9a-f]{2,8}+[ \t]++){8,}+.*+"
    r"(?:\n[ \t]*+[0-9a-f]{7,16}\b.*+)+",
    re.IGNORECASE | re.MULTILINE,
)
_LONG_LINE = re.compile(r"^.{400,}", re.MULTILINE)
_SCRIPT_MARK = re.compile(r"[(){};=]")
# A word between other characters, or a part of a name such as readAllFiles.
_WORD = re.compile(
    r"(?<![A-Za-z])(?:[A-Za-z][a-z]{1,23}|[A-Z]{2,24})(?![A-Za-z])"
    r"|(?<![a-z])[A-Z]?[a-z]{3,23}(?![a-z])"
)
_PLACEHOLDER = re.compile(r"\[[\w./+-]+, [\d,]+ characters\]")


def replace_data(text: str, substitute: Callable[..., str] = re.Pattern.sub) -> str:
    """Replace stretches of data by placeholders such as ``[image/png, 80,000 characters]``.

    `substitute` is called like `re.Pattern.sub`; another one can note what was replaced.
    """
    if "0000010" in text:  # the address of the second line of a dump
        text = substitute(_HEX_DUMP, lambda found: _hold(found[0]), text)
    if "data:" in text:
        text = substitute(
            _DATA_ADDRESS, lambda found: _hold(found[0], found["type"] or "data"), text
        )
    if _measure_longest_run(text) < _MIN_LINE:
        return text
    for pattern in (_RUN, _BLOCK):
        text = substitute(
            pattern, lambda found: _hold(found[0]) if _is_data(found[0]) else found[0], text
        )
    return substitute(
        _LONG_LINE,
        lambda found: _hold(found[0], "script") if _is_script(found[0]) else found[0],
        text,
    )


def is_only_data(text: str) -> bool:
    """Return whether a text with replaced data holds nothing but placeholders."""
    return not _PLACEHOLDER.sub("", text).strip()


def _hold(data: str, kind: str = "data") -> str:
    return f"[{kind}, {len(data):,} characters]"


def _measure_longest_run(text: str) -> int:
    """Return the length of the longest run of visible ASCII characters."""
    codes = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    breaks = np.flatnonzero((codes <= 32) | (codes >= 127))
    return int(np.diff(np.concatenate(([-1], breaks, [codes.size]))).max()) - 1


def _is_data(run: str) -> bool:
    letters = [character for character in run if character.isalnum()]
    n_in_words = sum(len(word) for word in _WORD.findall(run))
    is_wordless = n_in_words < _MAX_WORD_SHARE * len(letters)
    return is_wordless and len(set(letters)) >= _MIN_LETTERS and "://" not in run


def _is_script(line: str) -> bool:
    n_marks = len(_SCRIPT_MARK.findall(line))
    is_dense = len(line) > _MIN_SCRIPT_TOKEN * len(line.split())
    return line.isascii() and is_dense and n_marks > _MIN_SCRIPT_MARKS * len(line)
