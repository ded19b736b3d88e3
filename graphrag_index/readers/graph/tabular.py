"""Read .csv, .tsv and .parquet files as columns of text."""

import csv
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl

from graphrag_index.errors import InputError, describe_error
from graphrag_index.schema.settings.embedded_steps import ReadGraph
from graphrag_index.schema.table import STRINGS

# Column for the line or row number; no column of a file has such a name.
ROW = "row of the file\0"
# Chooses the columns to read.
Choose = Callable[[Sequence[str]], list[str]]
Schema = dict[str, type[pl.DataType]]

_DELIMITERS = ",;\t|"
# Rows per frame.
_BATCH = 65_536
_MAX_FIELD = 16_000_000
# Floats up to this magnitude are exact integers, such as ids stored as floats.
_MAX_EXACT = 2**53


def read_csv(
    path: Path, name: str, choose: Choose, settings: ReadGraph
) -> tuple[pl.DataFrame, str]:
    """Read the chosen columns of a file with a header, and `ROW`, the first line of each row.

    Skips lines of only delimiters, as spreadsheets write them. Also returns the delimiter.

    Raises
    ------
    InputError
        The file is empty, in another encoding, or has a row that does not fit the header.
    """
    encoding = settings.encoding.replace("_", "-").casefold()
    encoding = "utf-8-sig" if encoding in ("utf-8", "utf8") else encoding
    csv.field_size_limit(_MAX_FIELD)
    begun = 0
    with path.open(encoding=encoding, newline="") as stream:
        try:
            first = stream.readline()
            if not first.strip():
                raise InputError(f"{name} is empty, or has no header in its first line.")
            stream.seek(0)
            delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(first)
            reader = csv.reader(stream, delimiter=delimiter, strict=True)
            header = [column.strip() for column in next(reader)]
            _check_header(header, name)
            chosen = choose(header)
            places = [header.index(column) for column in chosen]
            schema: Schema = {ROW: pl.Int64, **dict.fromkeys(chosen, pl.String)}
            parts = [pl.DataFrame(schema=schema)]
            lines: list[int] = []
            values: list[list[str]] = []
            begun = reader.line_num + 1
            for record in reader:
                line, begun = begun, reader.line_num + 1
                if not any(map(str.strip, record)):
                    continue
                if len(record) != len(header):
                    raise InputError(
                        f"{name}, line {line:,} has {len(record)} fields and the header "
                        f"{len(header)}: put quotation marks around a field that holds "
                        f"{_delimiter_name(delimiter)}."
                    )
                lines.append(line)
                values.append(record)
                if len(values) == _BATCH:
                    parts.append(_frame(lines, values, places, schema))
                    lines, values = [], []
            parts.append(_frame(lines, values, places, schema))
        except UnicodeError as error:
            raise InputError(
                f"{name}{_undecoded(path, encoding)} is not {settings.encoding}: save it in that "
                "encoding, or name its own in read_graph.encoding, such as cp1252."
            ) from error
        except csv.Error as error:
            what = str(error)
            if what == "unexpected end of data" or what.startswith("field larger"):
                what = "a quotation mark is not closed"
            raise InputError(f"{name}, line {begun:,} is not valid CSV: {what}.") from error
    return pl.concat(parts), delimiter


def _undecoded(path: Path, encoding: str) -> str:
    """Locate the first undecodable line, if the encoding has single-byte line ends."""
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                line.decode(encoding)
            except UnicodeError:
                # Iterating over bytes splits a two-byte line end, so line numbers would be wrong.
                return "" if b"\0" in line else f", line {number:,}"
    return ""


def _delimiter(header: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    return max(_DELIMITERS, key=bare.count)


def _delimiter_name(delimiter: str) -> str:
    return "a tab" if delimiter == "\t" else f"{delimiter!r}"


def _check_header(header: Sequence[str], name: str) -> None:
    twice = next((c for number, c in enumerate(header) if c and c in header[:number]), None)
    if twice is not None:
        raise InputError(f"{name} has two columns {twice!r}: rename one of them.")


def _frame(
    lines: list[int], values: list[list[str]], places: list[int], schema: Schema
) -> pl.DataFrame:
    columns = list(zip(*values, strict=True)) if values else []
    own = [columns[place] if columns else [] for place in places]
    return pl.DataFrame([lines, *own], schema=schema)


def read_parquet(path: Path, name: str, choose: Choose) -> pl.DataFrame:
    """Read the chosen columns of a Parquet file, and `ROW`, counted from 1.

    Raises
    ------
    InputError
        The file is damaged, or a column has a type that cannot be read as text.
    """
    try:
        table = pl.scan_parquet(path)
        schema = table.collect_schema()
        chosen = choose(schema.names())
        as_text = [_text(column, schema[column], name) for column in chosen]
        row = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias(ROW)
        return table.select(row, *as_text).collect()
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{name} is no whole Parquet file ({describe_error(error)}): write it again."
        ) from error


def _text(column: str, dtype: pl.DataType, name: str) -> pl.Expr:
    value = pl.col(column)
    if isinstance(dtype, pl.List | pl.Array):
        inner = dtype.inner
        if isinstance(inner, pl.DataType) and not inner.is_nested():
            return value.cast(STRINGS)
    elif dtype.is_float():
        is_whole = (value == value.floor()) & (value.abs() < _MAX_EXACT)
        return (
            pl.when(is_whole)
            .then(pl.when(is_whole).then(value).cast(pl.Int64).cast(pl.String))
            .otherwise(value.cast(pl.String))
            .alias(column)
        )
    elif not dtype.is_nested() and dtype != pl.Binary:
        return value.cast(pl.String)
    raise InputError(
        f"{name}: the column {column!r} is of the type {dtype}, which is no text: "
        "write it as text, or name another column."
    )
