"""What readers give: documents, and what could not be read; and how values become text."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from datetime import date, datetime, time
from typing import Any, Final

from graphrag_index.schema.settings.embedded_steps import LoadDocuments

Record = Mapping[str, Any]

# Characters of a reason.
_LONGEST = 280
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Document:
    """One document as its reader found it."""

    text: str
    title: str
    creation_date: str = ""
    raw_data: str | None = None
    metadata: str | None = None
    id: str | None = None  # as the record states it
    place: str = ""  # of a record in its file, such as "record 7"
    # The record or front matter that it was made of; None if there was none.
    record: Record | None = dataclass_field(default=None, compare=False, repr=False)

    def printable(self) -> "Document":
        """Give the document in valid Unicode: JSON may state halves of characters."""
        values = {name: getattr(self, name) for name in self.__slots__}
        changed: dict[str, Any] = {
            name: replace_surrogates(value)
            for name, value in values.items()
            if isinstance(value, str) and has_surrogates(value)
        }
        return replace(self, **changed) if changed else self


@dataclass(frozen=True, slots=True)
class Unread:
    """A file or a record of it that could not be read; the reason follows its path."""

    reason: str

    def printable(self) -> "Unread":
        """Give the reason in valid Unicode, and not too long."""
        reason = replace_surrogates(self.reason)
        return Unread(reason if len(reason) <= _LONGEST else reason[: _LONGEST - 1] + "…")


class UnreadableFile(Exception):  # noqa: N818 - it ends a file, not the program
    """The file, or what is left of it, cannot be read; the message says why."""


class _Missing:
    """The value of a field that a record does not have: None is a value."""


MISSING: Final = _Missing()


def field(record: Record, column: str) -> Any:
    """Look up a field, also of a nested record by a dotted path; `MISSING` if there is none."""
    if column in record:
        return record[column]
    value: Any = record
    for part in column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return MISSING
        value = value[part]
    return value


def one_line(value: Any) -> str:
    """Give a title's text: one line, empty for what has none."""
    return " ".join(as_text(value).split())


def as_text(value: Any) -> str:
    """Give the text of a simple value; empty for what is missing, null or not simple."""
    match value:
        case str():
            return value
        case bool():
            return ""
        case float() if math.isnan(value):
            return ""
        case date() | time():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "replace")
        case _ if value is MISSING or value is None or isinstance(value, Mapping | list):
            return ""
        case _:
            return str(value)


def date_of(record: Record, settings: LoadDocuments) -> str:
    """Give the date that a record states, dates and times in ISO 8601, texts as they are."""
    if settings.date_column is None:
        return ""
    value = field(record, settings.date_column)
    # Most writers of tables have no type for a plain date.
    if isinstance(value, datetime) and value.tzinfo is None and value.time() == time():
        value = value.date()
    return one_line(value)


def metadata_of(record: Record, settings: LoadDocuments) -> str | None:
    """Give the metadata columns that a record has as JSON; None if none are asked for."""
    if not settings.metadata_columns:
        return None
    values = {column: field(record, column) for column in settings.metadata_columns}
    return to_json({column: value for column, value in values.items() if value is not MISSING})


def to_json(value: Any) -> str:
    """Write any value that a reader finds as JSON; what JSON has no type for becomes text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=as_text)
    except (TypeError, ValueError):
        # A key that is no text, or not a number.
        return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else as_text(value)


def has_surrogates(text: str) -> bool:
    """Tell whether a text holds halves of characters, which no encoding can write."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def replace_surrogates(text: str) -> str:
    """Put U+FFFD for each half of a character."""
    return _SURROGATES.sub("\ufffd", text)


def normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def listed(names: Iterable[str], at_most: int = 8) -> str:
    """Join names for a message, the first few of them."""
    names = list(names)
    more = f", and {len(names) - at_most} more" if len(names) > at_most else ""
    return ", ".join(names[:at_most]) + more


def system_reason(error: OSError) -> str:
    """Give the operating system's words for a failure, without the path."""
    return error.strerror or str(error)
