"""The rows of a query."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Result:
    """What a query gives: its columns, each name once, and its rows.

    Values are what JSON knows; dates are written as ISO 8601. `is_cut` tells that there were
    more rows than might be returned.
    """

    query: str
    engine: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    is_cut: bool = False
    version: int = 0
    seconds: float = 0.0

    @property
    def frame(self) -> "pl.DataFrame":
        """The rows as a table of polars."""
        import polars as pl

        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in self.columns]
        return pl.DataFrame(
            [
                pl.Series(name, values, strict=False)
                for name, values in zip(self.columns, columns, strict=True)
            ]
        )

    def to_dict(self) -> Mapping[str, Any]:
        """Return it as JSON knows it: a row is an object."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {**vars(self), "columns": list(self.columns), "rows": rows}

    def __len__(self) -> int:
        return len(self.rows)

    def _repr_html_(self) -> str:
        """Show the rows in a notebook."""
        return str(self.frame._repr_html_())


def as_text(value: Any) -> str:
    """Write a value in a cell: lists and objects as JSON, what is missing as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
