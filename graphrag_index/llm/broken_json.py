"""Tolerant parser of JSON with prose, wrong quotes, missing commas or a truncated end.

Each character is read a bounded number of times. Truncated values are not completed: the
attribute `open_values` lists the objects and lists that are not closed at the end of the text.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

# Maximum depth of nesting. Deeper brackets are skipped.
MAX_DEPTH = 40
# Maximum number of failed attempts of the strict parser, each as slow as the text is long.
MAX_STRICT_FAILURES = 200

_DOUBLE_QUOTES, _SINGLE_QUOTES = '"“”„‟＂', "'‘’‚`"
_QUOTES = _DOUBLE_QUOTES + _SINGLE_QUOTES
_COMMENT = r"//[^\n]*+|/\*(?:(?!\*/)[\s\S])*+(?:\*/)?|\#[^\n]*+"
_FILLER = re.compile(rf"(?:[\s,，、;；]++|{_COMMENT}|\.\.\.|…|\\[nrt])*+")
_BLANK = re.compile(rf"(?:\s++|{_COMMENT}|\\[nrt])*+")
# The start of an object is a brace before a key or a string; of a list, a bracket before a value.
_ROOT = re.compile(
    rf"""\{{(?=\s*+(?:["{_QUOTES}}}/#]|\{{\s*+["{_QUOTES}]|[\w-]{{1,40}}+\s{{0,9}}[:：]))"""
    rf"""|\[(?=\s*+(?:[\[\]{{{_QUOTES}/#]|-?\d))"""
)
_COLON = re.compile(r"\s*+(?:[:：]|=>?)")
_WORD_KEY = re.compile(r"([^\W\d][\w-]{0,60}+(?: [\w-]{1,40}+){0,3})[\"']?\s{0,9}[:：]")
_KEY_PATTERN = (
    rf"""(?:["{_DOUBLE_QUOTES}](?:[^"{_DOUBLE_QUOTES}\\\n]|\\.){{0,200}}+(?:["{_DOUBLE_QUOTES}]\s*+(?:[:：]|\Z)|\\?\Z)"""
    rf"""|[{_SINGLE_QUOTES}][^{_SINGLE_QUOTES}\n]{{0,100}}+(?:[{_SINGLE_QUOTES}]\s*+(?:[:：]|\Z)|\Z)"""
    rf"""|[^\W\d]\w{{0,60}}+(?:\s{{0,9}}[:：]|\Z))"""
)
_END_OR_COMMENT = rf"(?:\Z|[}}\]]|\.\.\.|…|{_COMMENT})"
# The text that may follow the closing quotation mark of a string: in an object, and in a list.
_AFTER_VALUE = re.compile(
    rf"\s*+(?:{_END_OR_COMMENT}|```|[,，、;；]\s*+(?:{_END_OR_COMMENT}|```|\{{|{_KEY_PATTERN})|[{{]\s*+[{_QUOTES}]|{_KEY_PATTERN})"
)
_AFTER_ITEM = re.compile(
    rf"\s*+(?:{_END_OR_COMMENT}|```|\)\s*+(?:[,\])]|\Z)|[,，、;；]\s*+(?:{_END_OR_COMMENT}|```|[\[{{{_QUOTES}\d+-]|[A-Za-z]{{4,5}}\b)"
    rf"|[:：])|\s*+\n\s*+[\[{{{_QUOTES}]"
)
_STRING_END = {
    **{mark: re.compile(rf"\\[\s\S]|[{_DOUBLE_QUOTES}]|\n```") for mark in _DOUBLE_QUOTES},
    **{mark: re.compile(rf"\\[\s\S]|[{_SINGLE_QUOTES}]|\n```") for mark in _SINGLE_QUOTES},
    '"': re.compile(r'\\[\s\S]|"|\n```'),
}
_QUOTED_KEY = re.compile(rf"[{_DOUBLE_QUOTES}][\w -]{{1,60}}+[{_DOUBLE_QUOTES}]\s{{0,9}}[:：]")
_BARE_VALUE = re.compile(r"(?:(?!\s//|\s\#|```)[^,，}\]\n])*+")
_JUNK = re.compile(rf"[^\s,，\[\]{{}}(){_DOUBLE_QUOTES}]*+")
_TUPLE = re.compile(rf"\(\s*+[{_QUOTES}]")
_NEXT_OBJECT = re.compile(r"\s*+,\s*+\{\s*+[\"']([^\"'\n]{1,60}+)[\"']\s*+:")
_DEEP_BRACKETS = re.compile(r"[\[{]++")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_STRAY_BRACE = re.compile(
    rf"\}}\s*+\]|\}}\s*+[,，]\s*+(?:[\[{{]|[{_QUOTES}][^{_QUOTES}\n]{{0,200}}+[{_QUOTES}]\s*+[,\]])"
)
_ESCAPE = re.compile(r"\\(?:((?:u[0-9a-fA-F]{4})(?:\\u[0-9a-fA-F]{4})*+)|([\"'\\/bfnrt“”]))")
_ESCAPED_CHARS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_NULL_WORDS = frozenset(("", "null", "none", "nan", "undefined", "nil", "infinity", "-infinity"))
_STRICT_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


class BrokenJSON:
    """Parser of all JSON objects and lists in a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        # Objects and lists that are not closed at the end of the text, innermost first. A
        # truncated last value is not included.
        self.open_values: list[Any] = []
        # Number of passages of unquoted text that were skipped in lists.
        self.n_skipped = 0
        self._position = self._failures = 0

    def parse_values(self) -> Iterator[Any]:
        """Yield the outermost objects and lists in text order."""
        while root := _ROOT.search(self.text, self._position):
            self._position = root.start()
            yield self._parse_container(0, None)

    def _parse_container(self, depth: int, parent: str | None) -> Any:
        if self._failures < MAX_STRICT_FAILURES:
            try:
                value, self._position = _STRICT_DECODER.raw_decode(self.text, self._position)
            except (ValueError, RecursionError):
                self._failures += 1
            else:
                return value
        kind = self.text[self._position]
        self._position += 1
        return self._parse_object(depth, parent) if kind == "{" else self._parse_list(depth, parent)

    def _parse_object(self, depth: int, parent: str | None) -> dict[str, Any]:
        text, fields = self.text, dict[str, Any]()
        if text.startswith("{", self._position):
            # Skip the second of doubled braces, as templates have them.
            self._position += 1
        while True:
            self._skip_match(_FILLER)
            mark = text[self._position : self._position + 1]
            if not mark:
                self.open_values.append(fields)
                return fields
            if mark == "}":
                self._position += 1
                return fields
            ends_parent = mark == "]" and parent == "["
            if mark == "{" or ends_parent or text.startswith("```", self._position):
                # The closing brace of this object is missing.
                return fields
            key = self._parse_key(mark)
            if key is None:
                continue
            self._skip_match(_BLANK)
            mark = text[self._position : self._position + 1]
            if mark and mark in "[{":
                if depth < MAX_DEPTH:
                    fields[key] = value = self._parse_container(depth + 1, "{")
                    following = _NEXT_OBJECT.match(text, self._position)
                    if isinstance(value, dict) and following and following[1] in value:
                        # An object with the same key follows: the list lacks its opening bracket.
                        fields[key] = [value, *self._parse_list(depth + 1, "{")]
                else:
                    self._skip_match(_DEEP_BRACKETS)
            elif mark and mark in _QUOTES:
                value = self._parse_string(_AFTER_VALUE)
                if value is not None:
                    fields[key] = value
            elif mark:
                start = self._position
                self._skip_match(_BARE_VALUE)
                if self._position < len(text):
                    fields[key] = _parse_scalar(text[start : self._position])

    def _parse_key(self, mark: str) -> str | None:
        """Read a key and its colon; if the text is no key, skip it and return None."""
        if mark in _QUOTES:
            start = self._position
            for found in _STRING_END[mark].finditer(self.text, start + 1):
                if found[0][0] in _QUOTES:
                    self._position = found.end()
                    break
                if found[0][0] == "\n":
                    self._position = found.start()
                    return None
            else:
                self._position = len(self.text)
                return None
            key = _unescape_string(self.text[start + 1 : self._position - 1])
            if colon := _COLON.match(self.text, self._position):
                self._position = colon.end()
            return key if colon else None
        word = _WORD_KEY.match(self.text, self._position)
        if word:
            self._position = word.end()
            return word[1]
        self._position += 1
        self._skip_match(_JUNK)
        return None

    def _parse_list(self, depth: int, parent: str | None, end: str = "]") -> list[Any]:
        text, items, may_nest = self.text, list[Any](), depth < MAX_DEPTH
        # After unquoted words, quoted text is not a value but part of the prose.
        is_prose = False
        while True:
            self._skip_match(_FILLER)
            start = self._position
            mark = text[start : start + 1]
            if not mark:
                self.open_values.append(items)
                return items
            if mark == end:
                self._position += 1
                return items
            if text.startswith("```", start) or (mark == "]" and end == ")"):
                return items
            if mark == "}":
                if parent == "{" and not _STRAY_BRACE.match(text, start):
                    return items
                self._position += 1
            elif mark in "[{":
                if may_nest:
                    items.append(self._parse_container(depth + 1, "["))
                else:
                    self._skip_match(_DEEP_BRACKETS)
            elif mark == "(" and may_nest and _TUPLE.match(text, start):
                self._position += 1
                items.append(self._parse_list(depth + 1, "[", ")"))
            elif mark in _QUOTES and not is_prose:
                value = self._parse_string(_AFTER_ITEM)
                colon = _COLON.match(text, self._position)
                after = text[colon.end() : colon.end() + 9] if colon else ""
                if colon and may_nest and _starts_record(value, items, after):
                    # The opening brace of a record is missing.
                    self._position = start
                    items.append(self._parse_object(depth + 1, "["))
                elif parent == "{" and colon:
                    # A key of the enclosing object follows: the closing bracket is missing.
                    self._position = start
                    return items
                elif value is not None:
                    items.append(value)
            elif parent == "{" and _WORD_KEY.match(text, start):
                return items
            else:
                self._position += 1
                self._skip_match(_JUNK)
                value = _parse_scalar(text[start : self._position])
                if mark in _QUOTES or isinstance(value, str):
                    self.n_skipped += not is_prose
                    is_prose = True
                elif self._position < len(text):
                    items.append(value)

    def _parse_string(self, after: re.Pattern[str]) -> str | None:
        """Read a string to its closing quotation mark; None if the text ends first."""
        text, start = self.text, self._position + 1
        for found in _STRING_END[text[self._position]].finditer(text, start):
            mark = found[0][0]
            if mark == "\\":
                continue
            if mark == "\n":
                self._position = found.start() + 1
                return _unescape_string(text[start : found.start()])
            if after.match(text, found.end()):
                self._position = found.end()
                return _unescape_string(text[start : found.start()])
            before = text[max(start, found.start() - 40) : found.start()].rstrip()
            if before.endswith(("{", ",")) and _QUOTED_KEY.match(text, found.start()):
                # A new field follows: the closing quotation mark is missing.
                value = text[start : found.start()].rstrip(" \t\r\n,{}[]")
                # Braces after the value may close this object and open the next object.
                end = start + len(value)
                is_inside = not {"{", "}"} & set(text[end : found.start()])
                self._position = found.start() if is_inside else end
                return _unescape_string(value)
        self._position = len(text)
        return None

    def _skip_match(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self._position)
        self._position = found.end() if found else self._position


def _starts_record(key: str | None, items: list[Any], after: str) -> bool:
    """Tell whether a string before a colon in a list is a key of a record without a brace.

    `after` is the text after the colon. The first record of a list begins with a field whose
    value is not an object or a list.
    """
    if items:
        return isinstance(items[-1], dict) and key in items[-1]
    return key is not None and not after.lstrip().startswith(("[", "{"))


def _parse_scalar(bare: str) -> Any:
    """Convert an unquoted value to None, a boolean, a number or a string."""
    bare = bare.strip().rstrip(_QUOTES).rstrip()
    word = bare.lower()
    if word in _NULL_WORDS:
        return None
    if word in ("true", "false"):
        return word == "true"
    number = _NUMBER.fullmatch(bare)
    if number is None or len(bare) > 40:
        return bare
    return float(bare) if number[1] or number[2] else int(bare)


def _unescape_string(text: str) -> str:
    """Replace JSON escape sequences; keep backslashes before other characters."""
    return _ESCAPE.sub(
        lambda found: (
            json.loads(f'"{found[0]}"') if found[1] else _ESCAPED_CHARS.get(found[2], found[2])
        ),
        text,
    )
