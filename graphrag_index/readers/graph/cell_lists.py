"""Lists that stand in one cell as text: as JSON, as Python prints them, or parted by marks."""

import json
import re

import polars as pl

from graphrag_index.schema.table import STRINGS

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'')


def ids_of(cells: pl.Expr) -> pl.Expr:
    """Part ids by brackets, quotation marks, commas, semicolons, bars and spaces."""
    return cells.str.extract_all(r"[^\[\]'\",;|\s]+")


def aliases_of(cells: pl.Expr) -> pl.Expr:
    """Part names, in which apostrophes and spaces may stand."""
    return cells.map_elements(_aliases, return_dtype=STRINGS)


def _aliases(cell: str) -> list[str]:
    """Part the names of one cell: by commas only where nothing else parts them."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return re.split(r"[;|]" if re.search(r"[;|]", text) else ",", text)
    try:
        return [str(name) for name in json.loads(text) if name is not None]
    except ValueError:
        # As Python prints a list: quotation marks of both kinds.
        quoted = [double or single for double, single in _QUOTED.findall(text)]
        inside = [re.sub(r"\\(.)", r"\1", name) for name in quoted]
        return inside or text[1:-1].split(",")
