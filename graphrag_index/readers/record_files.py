"""Streaming readers of CSV, JSON, JSON Lines and Parquet files: one document per record."""

import csv
import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from graphrag_index.errors import join_names
from graphrag_index.readers.document import (
    MISSING,
    Document,
    ReadFailure,
    Record,
    UnreadableFile,
    as_one_line,
    as_text,
    format_date,
    format_metadata,
    get_field,
    has_surrogates,
    normalize_newlines,
    to_json,
)
from graphrag_index.readers.encodings import open_text
from graphrag_index.schema.settings.step_sections import LoadDocuments

# (number of the record from 1, the record or the reason why the record is invalid).
NumberedRecord = tuple[int, Record | str]

# The name of the text column that stands for all fields of a record.
ALL_FIELDS = "*"
# Maximum length of a value: after a missing quotation mark, the rest of the file is one value.
_MAX_FIELD_CHARACTERS = 1 << 27
_PARQUET_BATCH_ROWS = 256  # rows read at once; few, because texts may be long
_DELIMITERS = ",;\t|"  # most likely delimiter first
_UNDECODABLE_REASON = "holds bytes that are not in the file's encoding"
_JSON_TYPE_NAMES = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
}
_CHARACTERS_PER_READ = 1 << 16
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
            if len(self.buffer) - self.position > _MAX_FIELD_CHARACTERS:
                raise self._make_error(f"it is longer than {_MAX_FIELD_CHARACTERS:,} characters")
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


def read_csv(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | ReadFailure]:
    """Read a table with a header. The delimiter is a comma, a semicolon, a tab or |.

    A first line such as ``sep=;``, which Excel writes, names the delimiter.
    """
    with open_text(path, name, settings.encoding) as stream:
        yield from _to_documents(
            _read_csv_records(stream, path, settings), "record", name, settings
        )


def read_json(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | ReadFailure]:
    """Read a file with one record, or stream a file with a list of records."""
    with open_text(path, name, settings.encoding) as stream:
        yield from _to_documents(_read_json_records(JsonStream(stream)), "record", name, settings)


def read_json_lines(
    path: Path, name: str, settings: LoadDocuments
) -> Iterator[Document | ReadFailure]:
    with open_text(path, name, settings.encoding) as stream:
        yield from _to_documents(_read_json_lines(stream), "line", name, settings)


def read_parquet(
    path: Path, name: str, settings: LoadDocuments
) -> Iterator[Document | ReadFailure]:
    yield from _to_documents(_read_parquet_records(path, settings), "record", name, settings)


def _to_documents(
    records: Iterator[NumberedRecord], noun: str, name: str, settings: LoadDocuments
) -> Iterator[Document | ReadFailure]:
    """Convert records to documents; report once if all records lack the text column."""
    entries = _catch_last_error(records)
    first = list(islice(entries, 2))
    if not first:
        raise UnreadableFile("has no records")
    column = settings.text_column
    # Records without the text column; None as soon as one record has the column.
    without: list[tuple[int, tuple[str, ...]]] | None = []
    for entry in chain(first, entries):
        if isinstance(entry, Exception):
            if without:
                yield ReadFailure(_describe_missing_column(column, without))
            raise entry
        number, record = entry
        place = f"{noun} {number:,}"
        if isinstance(record, str):
            yield ReadFailure(f"{place} {record}")
            continue
        value = get_field(record, column)
        if value is MISSING and column == ALL_FIELDS:
            value = "\n".join(_write_fields(record))
        if value is not MISSING:
            for earlier, fields in without or ():
                yield ReadFailure(f"{noun} {earlier:,} {_describe_missing_field(column, fields)}")
            without = None
            title = f"{name} ({number})" if len(first) > 1 else name
            yield _to_document(record, value, place, title, settings)
        elif without is None:
            yield ReadFailure(f"{place} {_describe_missing_field(column, tuple(record))}")
        else:
            without.append((number, tuple(record)))
    if without:
        raise UnreadableFile(_describe_missing_column(column, without))


def _write_fields(record: Record, before: str = "") -> Iterator[str]:
    """Yield a line "field: value" for each field with a value.

    The name of a field in a nested record is its dotted path, and a list has one line.
    """
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _write_fields(value, f"{before}{name}.")
            continue
        values = value if isinstance(value, list) else [value]
        text = ", ".join(filter(None, map(as_one_line, values)))
        if text:
            yield f"{before}{name}: {text}"


def _catch_last_error(
    records: Iterator[NumberedRecord],
) -> Iterator[NumberedRecord | UnreadableFile | UnicodeError | OSError]:
    """Yield the records; if an error ends the reading, yield the error as the last item."""
    try:
        yield from records
    except (UnreadableFile, UnicodeError, OSError) as error:
        yield error


def _to_document(
    record: Record, value: Any, place: str, title: str, settings: LoadDocuments
) -> Document | ReadFailure:
    """Convert a record to a document; `title` is used if the record has no title."""
    if value is None:
        return ReadFailure(f"{place}: field {settings.text_column!r} is null")
    text = normalize_newlines(as_text(value))
    if not text.strip():
        what = "has no text" if isinstance(value, str) else f"is {_describe_type(value)}, not text"
        return ReadFailure(f"{place}: field {settings.text_column!r} {what}")
    identity = None
    if settings.id_column is not None:
        identity = as_text(get_field(record, settings.id_column)).strip()
        if not identity:
            return ReadFailure(f"{place} has no id in field {settings.id_column!r}")
    own = as_one_line(get_field(record, settings.title_column)) if settings.title_column else ""
    return Document(
        text=text,
        title=own or title,
        creation_date=format_date(record, settings),
        raw_data=to_json(record),
        metadata=format_metadata(record, settings),
        id=identity,
        place=place,
        record=record,
    )


def _describe_missing_column(column: str, without: Sequence[tuple[int, Sequence[str]]]) -> str:
    by_lower = {name.lower(): name for _, fields in without[:1000] for name in fields}
    close = difflib.get_close_matches(column.lower(), by_lower, n=1)
    if close:
        hint = f"did you mean {by_lower[close[0]]!r}? Set load_documents.text_column"
    else:
        hint = f"its fields are {join_names(by_lower.values()) or 'none'}."
        hint += f" Set load_documents.text_column to one of them, or to {ALL_FIELDS!r} for all,"
        hint += " and title_column to the one that names a record"
    return f"has no field {column!r}; {hint}"


def _describe_missing_field(column: str, fields: tuple[str, ...]) -> str:
    return f"has no field {column!r}; its fields are {join_names(fields) or 'none'}"


def _describe_type(value: Any) -> str:
    return _JSON_TYPE_NAMES.get(type(value), "an object")


def _check_text_column(columns: list[str], settings: LoadDocuments) -> None:
    """Raise UnreadableFile if a table lacks the text column, before any row is read."""
    column = settings.text_column
    if column != ALL_FIELDS and column not in columns and column.split(".")[0] not in columns:
        raise UnreadableFile(_describe_missing_column(column, [(0, columns)]))


def _read_csv_records(
    stream: TextIO, path: Path, settings: LoadDocuments
) -> Iterator[NumberedRecord]:
    csv.field_size_limit(_MAX_FIELD_CHARACTERS)
    first = next(stream, "")
    named = re.fullmatch(r'"?sep=([^"\r\n])"?[\r\n]*', first)
    delimiter = named[1] if named else choose_delimiter(first, path, settings.text_column)
    lines = stream if named else chain([first], stream)
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
    except csv.Error as error:
        raise UnreadableFile(f"has a header that is not valid CSV: {error}") from error
    if header:
        _check_csv_header(header, settings)
    header = _make_column_names_unique(header)
    number = 0
    while True:
        line = rows.line_num + (2 if named else 1)
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            what = str(error)
            if what.startswith("field larger"):
                # Stop here: the parser would go on in the middle of a record.
                raise UnreadableFile(
                    f"has a field of more than {_MAX_FIELD_CHARACTERS:,} characters in record "
                    f"{number:,} (line {line:,}): is its quotation mark closed? "
                    "The rest is not read"
                ) from error
            if what == "unexpected end of data":
                what = "a quotation mark is not closed, all after it is one field"
            yield number, f"(line {line:,}) is not valid CSV: {what}"
            continue
        if not row:
            continue
        number += 1
        if len(row) != len(header):
            yield number, f"has {len(row)} fields, the header has {len(header)}"
        elif any(map(has_surrogates, row)):
            yield number, _UNDECODABLE_REASON
        else:
            yield number, dict(zip(header, row, strict=True))


def choose_delimiter(header: str, path: Path, column: str | None = None) -> str:
    """Choose the delimiter that makes `column` a field of the header.

    If no delimiter does, choose the delimiter that splits the header into the most fields.
    """
    choices = sorted(_DELIMITERS, key="\t".__ne__) if path.suffix.lower() == ".tsv" else _DELIMITERS
    line = [header.rstrip("\r\n")]
    fields = {choice: next(csv.reader(line, delimiter=choice), []) for choice in choices}
    return max(choices, key=lambda c: (column in fields[c], len(fields[c])))


def _check_csv_header(header: list[str], settings: LoadDocuments) -> None:
    """Raise UnreadableFile if the header lacks the text column or repeats a configured column."""
    column = settings.text_column
    # Match the text column as a whole word, next to an unknown delimiter.
    word = rf"(?<![\w.-]){re.escape(column)}(?![\w.-])"
    if len(header) == 1 and header[0] != column and re.search(word, header[0]):
        raise UnreadableFile(
            f"has a header of one field, {header[0]!r}: fields are separated by a comma, a "
            "semicolon, a tab or |, or by the character that a first line such as sep=: names"
        )
    _check_text_column(header, settings)
    used = (column, settings.title_column, settings.id_column, settings.date_column)
    for name in (*used, *settings.metadata_columns):
        if name is not None and header.count(name) > 1:
            raise UnreadableFile(
                f"has {header.count(name)} columns {name!r}: rename all but the one to read"
            )


def _make_column_names_unique(header: list[str]) -> list[str]:
    """Append numbers to repeated column names, so that each column keeps its values."""
    # Occurrences of each column name, in order of appearance.
    names: dict[str, int] = {}
    for name in header:
        new = name
        while new in names:
            names[name] += 1
            new = f"{name} ({names[name]})"
        names[new] = 1
    return list(names)


def _read_json_records(stream: JsonStream) -> Iterator[NumberedRecord]:
    for number, (value, source) in enumerate(stream, 1):
        is_only = isinstance(value, dict) and number == 1 and not stream.is_list
        if is_only and len(value) > 1 and all(isinstance(v, dict) for v in value.values()):
            raise UnreadableFile(
                "holds one JSON object: write a list of records, or one a line in a .jsonl file"
            )
        yield number, _check_json_record(value, source)


def _read_json_lines(lines: Iterable[str]) -> Iterator[NumberedRecord]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield number, _check_json_record(JSON_DECODER.decode(line), line)
        except json.JSONDecodeError as error:
            yield number, f"is not valid JSON: {error.msg}, character {error.pos + 1:,}"
        except (ValueError, RecursionError) as error:
            # Catch numbers with thousands of digits, and brackets nested thousands deep.
            yield number, f"is not valid JSON: {error}"


def _check_json_record(value: Any, source: str) -> Record | str:
    if has_surrogates(source):
        return _UNDECODABLE_REASON
    return value if isinstance(value, dict) else f"is {_describe_type(value)}, not an object"


def _read_parquet_records(path: Path, settings: LoadDocuments) -> Iterator[NumberedRecord]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as stream:
            # Set a buffer size, to read a column in chunks instead of a whole row group.
            file = pq.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
            schema, column = file.schema_arrow, settings.text_column
            _check_text_column(schema.names, settings)
            dtype = schema.field(column).type if column in schema.names else pa.null()
            if pa.types.is_struct(dtype):
                names = join_names([repr(f"{column}.{field.name}") for field in dtype])
                fix = f"set load_documents.text_column to a field of them: {names}"
                raise UnreadableFile(f"has objects in field {column!r}, not text; {fix}")
            if pa.types.is_nested(dtype):
                raise UnreadableFile(f"has lists in field {column!r}, not text")
            batches = file.iter_batches(batch_size=_PARQUET_BATCH_ROWS, use_threads=False)
            # Convert rows with polars, since pyarrow needs pandas for nanosecond timestamps.
            n_rows = 1
            for batch in batches:
                # Polars ends the program where a text is not valid UTF-8.
                batch.validate(full=True)
                yield from enumerate(pl.DataFrame(batch).iter_rows(named=True), n_rows)
                n_rows += batch.num_rows
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
        # Raise errors of the system, which have an errno. Without it, the file is damaged.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        reason = str(error).splitlines()[0]
        raise UnreadableFile(f"is not a readable Parquet file: {reason}") from error
