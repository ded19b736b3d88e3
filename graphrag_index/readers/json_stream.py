"""Streaming of the JSON values of a file, one after the other."""

import json
import re
from collections.abc import Iterator
from typing import Any, TextIO

from graphrag_index.readers.document import UnreadableFile

_CHARACTERS_PER_READ = 1 << 16
# Maximum length of a value: after a missing quotation mark, the rest of the file is one value.
_MAX_VALUE_CHARS = 1 << 27
_MARGIN_CHARS = 16  # maximum length of a literal or escape that the end of the buffer cuts off
_WHITE_SPACE = re.compile(r"[ \t\n\r]*")
# Decoder that replaces NaN and Infinity by null, since JSON does not allow them.
JSON_DECODER = json.JSONDecoder(parse_constant=lambda _: None)


class JsonStream:
    """Iterator over the items of one JSON list, or over concatenated JSON values.

    Yields each value with its source text. `is_list` is set before the first value is yielded.
    Raises UnreadableFile at invalid JSON, after all values before it have been yielded.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.buffer = ""
        self.position = 0  # index in the buffer of the next character to parse
        self.offset = 0  # offset of the buffer in the file, in characters
        self.ended = False
        self.is_list = False
        self.count = 0

    def __iter__(self) -> Iterator[tuple[Any, str]]:
        self.is_list = self._skip_character("[")
        if self.is_list and self._skip_character("]"):
            return
        while self._peek_character():
            self.count += 1
            yield self._parse_value()
            if not self.is_list:
                continue
            if self._skip_character("]"):
                if self._peek_character():
                    raise self._make_error("text follows the end of the list")
                return
            if not self._skip_character(","):
                raise self._make_error("a comma or the end of the list is missing")
        if self.is_list:
            raise self._make_error("the list has no end")

    def _parse_value(self) -> tuple[Any, str]:
        while True:
            try:
                value, end = JSON_DECODER.raw_decode(self.buffer, self.position)
            except json.JSONDecodeError as error:
                at_end = error.pos >= len(self.buffer) - _MARGIN_CHARS
                if self.ended or not (at_end or error.msg.startswith("Unterminated string")):
                    raise self._make_error(error.msg, error.pos) from error
            except ValueError as error:
                # Report a number with thousands of digits, which Python refuses.
                raise self._make_error(str(error)) from error
            else:
                # Read on if the value ends with the buffer: a number may be incomplete.
                if end < len(self.buffer) or self.ended:
                    source = self.buffer[self.position : end]
                    self.position = end
                    return value, source
            if len(self.buffer) - self.position > _MAX_VALUE_CHARS:
                raise self._make_error(f"it is longer than {_MAX_VALUE_CHARS:,} characters")
            self._read_chunk()

    def _peek_character(self) -> str:
        """Return the next character except white space; empty at the end of the file."""
        while True:
            match = _WHITE_SPACE.match(self.buffer, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self.buffer) or self.ended:
                return self.buffer[self.position : self.position + 1]
            self._read_chunk()

    def _skip_character(self, character: str) -> bool:
        found = self._peek_character() == character
        self.position += found
        return found

    def _read_chunk(self) -> None:
        """Drop the parsed text and read more. The buffer doubles, so a long value stays cheap."""
        self.offset += self.position
        rest, self.position = self.buffer[self.position :], 0
        chunk = self.stream.read(max(_CHARACTERS_PER_READ, len(rest)))
        self.ended = not chunk
        self.buffer = rest + chunk

    def _make_error(self, what: str, position: int | None = None) -> UnreadableFile:
        place = self.offset + (self.position if position is None else position) + 1
        return UnreadableFile(
            f"is not valid JSON in or after record {self.count:,} (character {place:,}): {what}; "
            "the rest is not read"
        )
