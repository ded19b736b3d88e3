"""Tables of counts with bars, and dates of documents by year, month or day."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

# Length of the longest bar in characters.
BAR_LENGTH = 20
# A date in the title of a document: 2026-04-08, 20260408, 2026-04 or 2026.
DATE_IN_TITLE = (
    r"(?:^|\D)((?:1[5-9]|20)\d\d)(?:[-_./]?(0[1-9]|1[0-2])(?:[-_./]?(0[1-9]|[12]\d|3[01]))?)?"
    r"(?:\D|$)"
)
PERIOD_NAMES = {4: "year", 7: "month", 10: "day"}


def find_dates(documents: pl.DataFrame) -> pl.DataFrame:
    """Return the documents with a date, in order of the dates: year, month or day.

    The date is `creation_date`, or else a date in the title.
    """
    title = [pl.col("title").str.extract(DATE_IN_TITLE, group) for group in (1, 2, 3)]
    in_title = pl.concat_str(title, separator="-", ignore_nulls=True)
    stated = pl.col("creation_date").fill_null("")
    date = pl.when(stated != "").then(stated).otherwise(in_title).str.slice(0, 10)
    dated = documents.select("document", date=date)
    return dated.filter(pl.col("date").str.contains(r"^\d{4}")).sort("date", "document")


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
