"""Dates in a question, and the documents whose titles or dates are of these days."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from graphrag_nlp.text.languages import MONTHS, Language

if TYPE_CHECKING:
    from graphrag_query.store.index_store import IndexStore

_MONTH = "|".join(sorted(map(re.escape, MONTHS), key=len, reverse=True))
_YEAR = r"(?:19|20)\d\d"
_ORDINAL = r"(?:st|nd|rd|th|er|\.|º|ª)?"
_DATE = re.compile(
    rf"""
      \b(?P<year>{_YEAR})(?P<mark>[-./_]?)(?P<number>0[1-9]|1[0-2])
      (?:(?P=mark)(?P<day>0[1-9]|[12]\d|3[01]))?(?!\d)
    | \b(?P<day_before>[0-3]?\d){_ORDINAL}\s+(?:of\s+|de\s+)?(?P<month_after>{_MONTH})\b\.?
      (?:,?\s+(?:de\s+)?(?P<year_after>{_YEAR})\b)?
    | \b(?P<month>{_MONTH})\b\.?
      (?:\s+(?:the\s+)?(?P<day_after>[0-3]?\d){_ORDINAL}\b(?!\d))?
      (?:,?\s+(?:de\s+)?(?P<year_last>{_YEAR})\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_EAST_ASIAN_DATE = re.compile(
    r"(?:(?P<year>\d{4})\s?[年년]\s?)?(?P<month>\d{1,2})\s?[月월]\s?(?:(?P<day>\d{1,2})\s?[日号號일])?"
)
# Maximum number of documents of one date that are read.
MAX_DOCUMENTS = 2_000


class AskedDate(NamedTuple):
    """A day or a month that a question names. The year may be missing."""

    text: str
    year: int | None
    month: int
    day: int | None

    def compact_forms(self) -> list[str]:
        """Return the day as one number, such as 20260408; nothing if a part is missing."""
        return [] if self.year is None or self.day is None else self.titles(self.year)[:1]

    def titles(self, year: int) -> list[str]:
        """Return the beginnings of folded titles of documents of this date."""
        day = [] if self.day is None else [f"{self.day:02}"]
        parts = [str(year), f"{self.month:02}", *day]
        return ["".join(parts), " ".join(parts)]

    def matches(self, date: str) -> bool:
        """Return whether an ISO date is of this day or month."""
        year, month, day = (date[:4], date[5:7], date[8:10])
        return (
            (self.year is None or year == str(self.year))
            and month == f"{self.month:02}"
            and (self.day is None or day == f"{self.day:02}")
        )


def find_asked_dates(text: str, language: Language) -> list[AskedDate]:
    """Find the days and months that a question names."""
    dates = []
    for found in _DATE.finditer(text):
        name = found["month_after"] or found["month"]
        # Words such as "may" and "mars" are months if they have a capital or a number beside them.
        is_alone = name == found[0].rstrip(".")
        if is_alone and ((language.code in ("en", "de") and name.islower()) or found.start() == 0):
            continue
        year = found["year"] or found["year_after"] or found["year_last"]
        day = found["day"] or found["day_before"] or found["day_after"]
        month = MONTHS[name.lower()] if name else int(found["number"])
        dates.append(_build_date(found[0], year, month, day))
    for found in _EAST_ASIAN_DATE.finditer(text):
        dates.append(_build_date(found[0], found["year"], int(found["month"]), found["day"]))
    return [date for date in dates if 1 <= date.month <= 12 and (date.day or 1) <= 31]


def _build_date(text: str, year: str | None, month: int, day: str | None) -> AskedDate:
    return AskedDate(text, int(year) if year else None, month, int(day) if day else None)


def find_dated_text_units(
    index: "IndexStore", dates: Sequence[AskedDate], found: Iterable[int], most: int
) -> list[int]:
    """Return text units of documents whose title or date is one of the dates, ascending.

    Titles are searched in the whole index; if they have more than `most` text units, only those
    in `found` are returned. Dates of documents are compared for text units in `found`.
    """
    units, wanted = index.open_mapped("text_unit_rows"), sorted(found)
    starts, stops = units.bounds("document", np.sort(_find_titled_documents(index, dates)))
    titled = {n for first, stop in zip(starts, stops, strict=True) for n in range(first, stop)}
    if len(titled) > most:
        titled.intersection_update(wanted)
    documents = units.rows(wanted, "document")["document"]
    distinct = documents.unique().sort()
    days = index.documents(distinct)["creation_date"].to_list()
    of_date = {
        document
        for document, day in zip(distinct, days, strict=True)
        if day and any(date.matches(day) for date in dates)
    }
    dated = {n for n, document in zip(wanted, documents, strict=True) if document in of_date}
    return [n for n in sorted(titled | dated) if index.text_units_behind("Sources", n)]


def _find_titled_documents(index: "IndexStore", dates: Iterable[AskedDate]) -> list[int]:
    """Return the documents whose titles begin with one of the dates."""
    titles = index.open_mapped("title_names")
    found: dict[int, None] = {}
    for date in dates:
        for year in [date.year] if date.year else _years_of_titles(index):
            for title in date.titles(year):
                first = titles.find_row("name", title)
                stop = titles.find_row("name", title + "\U0010ffff", first)
                rows = titles.slice("document", first, min(stop, first + MAX_DOCUMENTS))
                found |= dict.fromkeys(rows.tolist())
    return list(found)


def _years_of_titles(index: "IndexStore") -> Iterator[int]:
    """Yield the years with which titles of documents begin, in ascending order."""
    titles = index.open_mapped("title_names")
    row = titles.find_row("name", "1900")
    while row < len(titles):
        year = re.match(_YEAR, titles.text("name", row))
        if year is None:
            return
        yield int(year[0])
        row = titles.find_row("name", str(int(year[0]) + 1), row)
