"""Writing rows as text: a column of lines at a time, never row by row in Python."""

from pathlib import Path
from types import TracebackType
from typing import Self

import polars as pl

# XML has no way at all to write these, and what reads CSV stumbles over some.
_FORBIDDEN = r"[\x00-\x08\x0B\x0C\x0E-\x1F\x{FFFE}\x{FFFF}]"
_QUOTED = {
    **{chr(code): f"\\u{code:04X}" for code in (*range(0x20), 0x7F)},
    **{"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"},
}
# Line ends and tabs in an attribute would be read as spaces, and a return as a line end.
_XML = {
    **{"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"},
    **{"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"},
}


class TextFile:
    """A file of UTF-8 with plain line ends, to which columns of lines are written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Self:
        self.file = self.path.open("wb", buffering=1 << 20)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.file.close()

    def write(self, text: str) -> None:
        self.file.write(text.encode())

    def write_column(self, lines: pl.Series) -> None:
        """Write the texts of a column one behind the other; none is null."""
        import numpy as np

        if not len(lines):
            return
        # Arrow keeps them so already.
        array = lines.to_arrow(compat_level=pl.CompatLevel.oldest())
        _, offsets, data = array.buffers()
        places = np.frombuffer(offsets, np.int64)
        first, last = places[array.offset], places[array.offset + len(array)]
        if data is not None:
            self.file.write(memoryview(data)[first:last])


def clean(column: str | pl.Expr) -> pl.Expr:
    """Put the mark for an unknown letter where XML forbids a control character."""
    text = pl.col(column) if isinstance(column, str) else column
    return text.str.replace_all(_FORBIDDEN, "\ufffd")


def xml(column: str | pl.Expr) -> pl.Expr:
    """Write a text so that it can stand in an element and in an attribute of XML."""
    return clean(column).str.replace_many(list(_XML), list(_XML.values()))


def quoted(column: str | pl.Expr) -> pl.Expr:
    """Write a text in quotation marks, as JSON, Cypher and N-Triples all read it."""
    text = pl.col(column) if isinstance(column, str) else column
    escaped = text.str.replace_many(list(_QUOTED), list(_QUOTED.values()))
    return pl.concat_str(pl.lit('"'), escaped, pl.lit('"'))


def literal(column: str, dtype: pl.DataType) -> pl.Expr:
    """Write a value as JSON and Cypher both read it: text, number, or a list of texts."""
    if dtype == pl.String:
        return quoted(column)
    if isinstance(dtype, pl.List):
        items = pl.col(column).list.eval(quoted(pl.element())).list.join(",")
        return pl.concat_str(pl.lit("["), items, pl.lit("]"))
    return pl.col(column).cast(pl.String)


def fields(columns: dict[str, str], batch: pl.DataFrame) -> pl.Expr:
    """Write columns as what stands between the braces of a map; nulls are left out.

    `columns` has for each the key as it is written, with its colon.
    """
    parts = [
        pl.concat_str(pl.lit(f",{key}"), literal(name, batch.schema[name])).fill_null("")
        for name, key in columns.items()
    ]
    # A first comma, which no null keeps from standing there.
    return pl.concat_str(parts).str.slice(1)
