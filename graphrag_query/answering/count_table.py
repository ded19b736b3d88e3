"""Tables of counts with bars, and periods of dates: years, months or days."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

# Length of the longest bar in characters.
BAR_LENGTH = 20
PERIOD_NAMES = {4: "year", 7: "month", 10: "day"}


def choose_period(dates: pl.Series) -> int:
    """Choose days, months or years, so that a table has few rows."""
    length = int(dates.str.len_chars().min() or 4)  # type: ignore[arg-type]
    for period, most in ((10, 31), (7, 36)):
        if length >= period and dates.str.slice(0, period).n_unique() <= most:
            return period
    return 4


def fill_periods(dates: Sequence[str], length: int) -> list[str]:
    """Return all years or months from the first to the last date; only the known days."""
    if length == 10:
        return list(dates)
    if length == 4:
        return [f"{year:04}" for year in range(int(dates[0]), int(dates[-1]) + 1)]
    first, last = (int(date[:4]) * 12 + int(date[5:7]) - 1 for date in (dates[0], dates[-1]))
    return [f"{month // 12:04}-{month % 12 + 1:02}" for month in range(first, last + 1)]


def write_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as a Markdown table; bars show the first column of numbers."""
    names = [name for name in rows[0] if name != "footnote"]
    measure = next(name for name in names if isinstance(rows[0][name], int))
    longest = max(row[measure] for row in rows) or 1
    lines = [
        f"| {' | '.join(names)} | |",
        f"|{'|'.join(' ---: ' if isinstance(rows[0][n], int) else ' --- ' for n in names)}| --- |",
    ]
    for row in rows:
        cells = [f"{row[n]:,}" if isinstance(row[n], int) else row[n] for n in names]
        cells[0] = f"{cells[0].replace('|', '/')} {row.get('footnote', '')}".rstrip()
        bar = "█" * round(BAR_LENGTH * row[measure] / longest) or ("▏" if row[measure] else "")
        lines.append(f"| {' | '.join(cells)} | {bar} |")
    return "\n".join(lines)
