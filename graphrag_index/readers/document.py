"""Documents and failures that readers yield, and conversion of values to text."""

import json
import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from datetime import date, datetime, time
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_nlp.text.normalize import remove_formatting, replace_surrogates

Record = Mapping[str, Any]

_MAX_REASON_CHARS = 280  # a longer reason is cut off


@dataclass(frozen=True, slots=True)
class PageText:
    """A page of a document: its span in the text, and the place of each word on the page.

    Of a document with pages, the first one starts and the last one ends with the text. A row of a
    sheet is a page too; its number is that of the row, and its label the title of the sheet.
    """

    number: int  # 1 is the first
    label: str  # as readers of the file see it, such as "iv"
    start: int
    end: int
    width: float = 0.0  # points of 1/72 inch; 0 if the page has no boxes
    height: float = 0.0
    # Six integers a word: its start and end in the text, and its left, top, width and height in
    # tenths of points, from the top left of the page as it is seen.
    boxes: Sequence[int] = ()
    kind: str = "page"  # "page", "slide" or "row"
    # The engine that recognized the text in a picture of the page, such as "tesseract 5.3.0 (eng)".
    engine: str = ""
    picture_hash: str = ""  # of what was on the page, if its text was recognized

    @property
    def word_boxes(self) -> npt.NDArray[np.int64]:
        """One row a word: start and end in the text, left, top, width, height."""
        return np.array(self.boxes, np.int64).reshape(-1, 6)


class PageView(NamedTuple):
    """A page to draw: its number, the words or the picture that it must have, places to mark.

    A word is the left and the top of its box, a mark the left, top, width and height of a
    rectangle, all in tenths of points.
    """

    number: int
    words: tuple[tuple[int, int], ...]
    marks: tuple[tuple[int, int, int, int], ...]
    picture_hash: str = ""  # of a page whose words were recognized; empty if it is not known


class _Changes:
    """The stretches of a text that were replaced: (start, end, characters in their place)."""

    def __init__(self) -> None:
        self._made: list[npt.NDArray[np.int64]] = []

    def substitute(self, pattern: re.Pattern[str], replacement: Any, text: str) -> str:
        """Return the text that ``pattern.sub`` returns."""
        spans: list[tuple[int, int, int]] = []

        def replace_one(found: re.Match[str]) -> str:
            new: str = replacement if isinstance(replacement, str) else replacement(found)
            if new != found[0]:
                spans.append((*found.span(), len(new)))
            return new

        text = pattern.sub(replace_one, text)
        if spans:
            self._made.append(np.array(spans).T)
        return text

    def move(self, offsets: npt.NDArray[np.int64], *, to_end: bool) -> npt.NDArray[np.int64]:
        """Move offsets to the new text; one inside a stretch to its start, or to its end."""
        for starts, ends, lengths in self._made:
            shift = np.cumsum([0, *(lengths - ends + starts)])
            row = np.searchsorted(ends, offsets, "right")
            around = np.minimum(row, len(starts) - 1)
            edge = starts[around] + shift[around] + to_end * lengths[around]
            is_inside = (row < len(starts)) & (offsets > starts[around])
            offsets = np.where(is_inside, edge, offsets + shift[row])
        return offsets

    def move_pages(self, pages: Sequence[PageText]) -> Sequence[PageText]:
        """Move the spans of pages and their words to the new text."""
        if not self._made or not pages:
            return pages
        spans = np.array([(page.start, page.end) for page in pages])
        moved = self.move(spans, to_end=True).tolist()
        return [self._move_page(*one) for one in zip(pages, moved, strict=True)]

    def _move_page(self, page: PageText, span: tuple[int, int]) -> PageText:
        boxes = page.word_boxes
        for n in range(2):
            boxes[:, n] = self.move(boxes[:, n], to_end=n == 1)
        moved = array("i", boxes.ravel().tolist())
        return replace(page, start=span[0], end=span[1], boxes=moved)


# A word that was recognized in a picture: its text, and left, top, right and bottom in points from
# the top left of the page as it is seen.
RecognizedWord = tuple[str, float, float, float, float]


@dataclass(frozen=True, slots=True)
class RecognizedPage:
    """The words that were recognized in a picture of a page."""

    engine: str
    width: float  # points of 1/72 inch
    height: float
    paragraphs: Sequence[Sequence[Sequence[RecognizedWord]]]  # of lines of words
    picture_hash: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A document read from a file or from a record of a file."""

    text: str
    title: str
    creation_date: str = ""
    raw_data: str | None = None
    metadata: str | None = None
    id: str | None = None  # value of the id column; None if no column is configured
    place: str = ""  # position of the record in its file, such as "record 7"
    member: str = ""  # path in a file that holds files, such as "message 7/report.pdf"
    pages: Sequence[PageText] = ()  # of a PDF, a presentation or a workbook
    # Source record or front matter; None if the file has neither.
    record: Record | None = dataclass_field(default=None, compare=False, repr=False)

    def to_printable(self) -> "Document":
        """Return a copy in valid Unicode, without characters that only format the text.

        Lone surrogates, which JSON allows, are replaced.
        """
        texts = {name: getattr(self, name) for name in self.__slots__}
        changed: dict[str, Any] = {
            name: replace_surrogates(value)
            for name, value in texts.items()
            if isinstance(value, str) and has_surrogates(value)
        }
        changed["title"] = remove_formatting(changed.get("title", self.title))
        return replace(self, **changed).change_text(remove_formatting)

    def change_text(self, change: Callable[..., str]) -> "Document":
        """Return a copy with the text that ``change(text, substitute)`` returns.

        The pages keep their characters. `substitute` is called like `re.Pattern.sub`.
        """
        changes = _Changes()
        text = change(self.text, changes.substitute if self.pages else re.Pattern.sub)
        return replace(self, text=text, pages=changes.move_pages(self.pages))


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """A file or record that could not be read. Messages show the path, then the reason."""

    reason: str
    is_skipped: bool = False  # nothing is wrong: the file holds nothing that is read
    member: str = ""  # as of a document

    def to_printable(self) -> "ReadFailure":
        """Return a copy with a valid Unicode reason of at most `_MAX_REASON_CHARS` characters."""
        reason = replace_surrogates(self.reason)
        if len(reason) > _MAX_REASON_CHARS:
            reason = reason[: _MAX_REASON_CHARS - 1] + "…"
        return replace(self, reason=reason)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive, or an attachment of a message, to be read as a file of its own."""

    name: str  # path in the file
    size: int  # bytes, as the file states them
    open: Callable[[], IO[bytes] | None]
    failure: ReadFailure | None = None  # if it cannot be read
    title: str = ""  # of the message that it is attached to
    creation_date: str = ""


NO_TEXT_IN_PICTURE = "is a picture without text"
NO_TEXT = "has no text"  # reason of a file with no text, or with white space only


class UnreadableFile(Exception):  # noqa: N818 - it ends a file, not the program
    """Error that ends the reading of a file. Its message has the reason."""


class NotText(UnreadableFile):
    """Error that ends the reading of a file as text, because the file is not text."""


MISSING: Any = object()  # sentinel for an absent field; None is a possible value of a field


def get_field(record: Record, column: str) -> Any:
    """Return a field by its name or dotted path; `MISSING` if the record lacks it."""
    if column in record:
        return record[column]
    value: Any = record
    for part in column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return MISSING
        value = value[part]
    return value


def as_one_line(value: Any) -> str:
    """Return a value as one line of text; empty if the value has no text."""
    return " ".join(as_text(value).split())


def as_text(value: Any) -> str:
    """Return a scalar as text; empty for a missing, null, boolean or nested value."""
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


def format_date(record: Record, settings: LoadDocuments) -> str:
    """Return the date of a record as text: a date in ISO 8601, a text unchanged."""
    if settings.date_column is None:
        return ""
    value = get_field(record, settings.date_column)
    # Treat midnight as a date without time: many programs store a date as midnight.
    if isinstance(value, datetime) and value.tzinfo is None and value.time() == time():
        value = value.date()
    return as_one_line(value)


def format_metadata(record: Record, settings: LoadDocuments) -> str | None:
    """Return the metadata columns of a record as JSON; None if no column is configured."""
    if not settings.metadata_columns:
        return None
    values = {column: get_field(record, column) for column in settings.metadata_columns}
    return to_json({column: value for column, value in values.items() if value is not MISSING})


def to_json(value: Any) -> str:
    """Serialize any value as JSON; a value whose type JSON lacks becomes text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=as_text)
    except (TypeError, ValueError):
        # Convert keys that are not strings, and floats that are not finite.
        return json.dumps(_to_json_value(value), ensure_ascii=False)


def _to_json_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_to_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else as_text(value)


def has_surrogates(text: str) -> bool:
    """Return whether a text contains lone surrogates, which cannot be encoded."""
    try:
        # Encoding is faster than searching with a regular expression.
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def describe_os_error(error: OSError) -> str:
    """Return the operating system's error message without the path."""
    return error.strerror or str(error)
