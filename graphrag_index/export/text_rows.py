"""Rows as text, written a column of lines at a time instead of row by row in Python."""

from pathlib import Path
from typing import Self

import polars as pl

# XML cannot hold these characters, and readers of CSV fail on some.
_FORBIDDEN = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x{FFFE}\x{FFFF}]"
_QUOTED = {chr(code): f"\\u{code:04X}" for code in (*range(0x20), 0x7F)}
_QUOTED |= {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
_XML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
# A parser turns line ends and tabs in an attribute into spaces, and a return into a line end.
_XML |= {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


class TextFile:
    """A UTF-8 file with plain line ends, to which columns of lines are written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        self.file = self.path.open("wb", buffering=1 << 20)
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, text: str) -> None:
        self.file.write(text.encode())

    def write_column(self, lines: pl.Series) -> None:
        """Write the texts of a column without nulls, one behind the other."""
        import numpy as np

        if not len(lines):
            return
        # Arrow stores them so already.
        array = lines.to_arrow(compat_level=pl.CompatLevel.oldest())
        _, offsets, data = array.buffers()
        places = np.frombuffer(offsets, np.int64)
        first, last = places[array.offset], places[array.offset + len(array)]
        if data is not None:
            self.file.write(memoryview(data)[first:last])


def clean(column: str | pl.Expr) -> pl.Expr:
    """Replace the control characters that XML forbids by the replacement character."""
    text = pl.col(column) if isinstance(column, str) else column
    return text.str.replace_all(_FORBIDDEN, "\ufffd")


def xml(column: str | pl.Expr) -> pl.Expr:
    """Escape a text for an element or an attribute of XML."""
    return clean(column).str.replace_many(list(_XML), list(_XML.values()))


def quoted(column: str | pl.Expr) -> pl.Expr:
    """Quote and escape a text as JSON, Cypher and N-Triples all read it."""
    text = pl.col(column) if isinstance(column, str) else column
    escaped = text.str.replace_many(list(_QUOTED), list(_QUOTED.values()))
    return pl.concat_str(pl.lit('"'), escaped, pl.lit('"'))


def literal(column: str, dtype: pl.DataType) -> pl.Expr:
    """Write a text, a number, or a list of texts as JSON and Cypher both read it."""
    if dtype == pl.String:
        return quoted(column)
    if isinstance(dtype, pl.List):
        items = pl.col(column).list.eval(quoted(pl.element())).list.join(",")
        return pl.concat_str(pl.lit("["), items, pl.lit("]"))
    return pl.col(column).cast(pl.String)


def fields(columns: dict[str, str], batch: pl.DataFrame) -> pl.Expr:
    """Write the columns of a row as the fields of a map, without nulls.

    `columns` has the key of each as it is written, with its colon.
    """
    parts = [
        pl.concat_str(pl.lit(f",{key}"), literal(name, batch.schema[name])).fill_null("")
        for name, key in columns.items()
    ]
    # Without the comma of the first field that is not null.
    return pl.concat_str(parts).str.slice(1)
