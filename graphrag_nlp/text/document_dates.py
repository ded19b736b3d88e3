"""The dates of documents, stated or in their titles, and the periods of a timeline.

A title is often the name of a file, in which a number such as 1657 may count the files.
"""

import re
from datetime import date
from typing import NamedTuple

import polars as pl

# Dates in ISO 8601 can be compared as text. A time may follow the day.
ISO_DATE = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ].*)?)?)?$")
# The form in which Microsoft GraphRAG writes the time of a file.
_FILE_TIME = r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}$"
# Maximum number of periods of a timeline, and the possible lengths of a period in months.
MAX_PERIODS, PERIOD_MONTHS = 60, (1, 3, 12, 120, 1_200)
# A day in a title, such as 2026-04-08 or 20260408, and a month, such as 2026-04.
_DAY = r"(?:^|\D)((?:1[5-9]|20)\d\d)[-_./]?(0[1-9]|1[0-2])[-_./]?(0[1-9]|[12]\d|3[01])(?:\D|$)"
_MONTH = r"(?:^|[^\p{L}\d])((?:1[5-9]|20)\d\d)[-_.](0[1-9]|1[0-2])(?:[^\p{L}\d]|$)"
# Two numbers like those of a month, of which the second may be larger, such as 2026-13.
_LIKE_MONTH = r"(?:^|[^\p{L}\d])(?:1[5-9]|20)\d\d[-_.](\d{1,4})(?:[^\p{L}\d]|$)"
# A number that may be a year, or a year and a month: 2026 or 202604.
_YEAR = r"(?:^|[^\p{L}\d])((?:1[5-9]\d|20[0-4])\d)(0[1-9]|1[0-2])?(?:[^\p{L}\d]|$)"
# Words before a number that is no year, with other numbers or codes between, and "1984 by Orwell".
_NO_YEAR = (
    r"(?i)(?:^|[^\p{L}])(?:rfcs?|iso|iec|din|ieee|ansi|astm|pages?|pp?|seiten?|páginas?|pagina"
    r"|chapters?|kapitel|chapitre|capítulo|figures?|fig|abbildung|abb|tables?|tabelle|sections?"
    r"|windows|office|word|excel|access|outlook|powerpoint|exchange|server|visual studio)"
    r"(?:[\s_./:-]+(?:iec|ieee|en|\d+))*?[\s_./:-]+\d{4}(?:\D|$)"
    r"|(?:^|(?:din|bs|nf|une)[\s_-]+)en[\s_-]+\d"
    r"|^\d{4} (?:by|von|par|di|door) (?-i:\p{Lu})"
)
# Minimum share (0 to 1) of the titles of one form in which such a number may be a year.
MIN_SHARE_OF_YEARS = 0.6
# Minimum number of titles of one form, such as report-#. Two are enough if both have a year. Titles
# of rarer forms are compared as one group.
MIN_TITLES_OF_FORM = 3
# Minimum number of words of a headline. Among other titles, only those with a number are compared.
MIN_WORDS_OF_HEADLINE = 4
# Maximum number of years between the titles of one form, and the last year in several of them:
# numbers that go on behind it count the files.
MAX_SPREAD, LAST_YEAR = 200, 2040


def stated_date() -> pl.Expr:
    """Return the `creation_date` of documents, or an empty text if it is the time of a file.

    Microsoft GraphRAG writes that time, which says nothing about when the events were.
    """
    return pl.col("creation_date").fill_null("").str.replace(_FILE_TIME, "")


def find_document_dates(documents: pl.DataFrame) -> pl.Series:
    """Return the day, month or year of each document, or an empty text.

    `documents` has the columns title and creation_date of all documents of an index. Without a
    `creation_date`, the date is one in the title. A year there has to be a number of its own, and
    most titles of the same form have to have one: article-1657 is no date beside article-12. The
    numbers behind a year are months only if all of those in titles of the form may be.
    """
    # All documents together tell whether a number is a year: do not call this for some of them.
    title = pl.col("title").fill_null("")
    stated = stated_date().str.slice(0, 10)
    has_word = title.str.contains(_NO_YEAR)
    found = documents.select(
        title=title,
        stated=pl.when(stated.str.contains(r"^\d{4}")).then(stated),
        day=_extract(title, _DAY, 3),
        month=_extract(title, _MONTH, 2),
        like_month=title.str.extract(_LIKE_MONTH),
        year=pl.when(~has_word).then(_extract(title, _YEAR, 2)),
    )
    form = pl.col("title").str.replace_all(r"\d+", "#")
    is_month = pl.col("day", "month").is_not_null()
    all_months = (pl.any_horizontal(is_month) | pl.col("like_month").is_null()).all().over("form")
    found = found.with_columns(form=form).with_columns(month=pl.when(all_months).then("month"))
    found = found.with_columns(plain=pl.coalesce("day", "month"))
    if found["year"].null_count() < found.height:
        found = _keep_agreed_years(found)
    return found.select(date=pl.coalesce("stated", "plain", "year", pl.lit("")))["date"]


def _keep_agreed_years(found: pl.DataFrame) -> pl.DataFrame:
    """Drop the years in titles with whose form they do not agree."""
    has_year = pl.coalesce("plain", "year").is_not_null()
    n_same = pl.len().over("form")
    agrees = (n_same >= MIN_TITLES_OF_FORM) | ((n_same > 1) & has_year.all().over("form"))
    year = pl.col("year").str.slice(0, 4).cast(pl.Int32)
    first, last = year.min().over("form"), year.max().over("form")
    is_year = (n_same == 1) | ((last - first <= MAX_SPREAD) & (last <= LAST_YEAR))
    n_words = pl.col("title").str.replace(r"\.\w{2,4}$", "").str.count_matches(r"\p{L}+")
    is_compared = agrees | (n_words >= MIN_WORDS_OF_HEADLINE) | pl.col("title").str.contains(r"\d")
    return (
        found.with_columns(has_year=has_year, is_compared=is_compared, is_year=is_year)
        .with_columns(group=pl.when(agrees).then("form").otherwise(pl.lit("")))
        .with_columns(share=pl.col("has_year").filter("is_compared").mean().over("group"))
        .with_columns(year=pl.when("is_year", pl.col("share") >= MIN_SHARE_OF_YEARS).then("year"))
    )


def _extract(title: pl.Expr, pattern: str, n_groups: int) -> pl.Expr:
    """Join the groups of a pattern in a title by hyphens; null where it is not found."""
    groups = [title.str.extract(pattern, group) for group in range(1, n_groups + 1)]
    joined = pl.concat_str(groups, separator="-", ignore_nulls=True)
    return pl.when(groups[0].is_not_null()).then(joined)


class Period(NamedTuple):
    """The first and the last day, month or year of a period; filters take both."""

    since: str
    until: str


def divide_time(dates: pl.Series) -> tuple[list[Period], pl.Series]:
    """Divide the time of documents into at most `MAX_PERIODS` periods of one length.

    `dates` are those of `find_document_dates`. Returns the periods without a gap, and for each
    document the position of its period; null without a date. The length is a day, a month, a
    quarter, a year, ten years or a hundred, and not shorter than a date that states only a year
    or a month.
    """
    known = dates.set(~dates.str.contains(f"^{ISO_DATE.pattern}"), None)
    if known.null_count() == len(known):
        return [], known.cast(pl.Int64)
    year, month = pl.col("date").str.slice(0, 4), pl.col("date").str.slice(5, 2)
    numbers = pl.DataFrame({"date": known}).select(
        month=year.cast(pl.Int64) * 12 + month.replace("", "1").cast(pl.Int64) - 1,
        day=pl.col("date").str.to_date("%Y-%m-%d", strict=False).cast(pl.Int64),
        n_parts=pl.col("date").str.len_chars() // 3,  # 1: a year, 2: a month, 3: a day
    )
    n_parts, first_day, last_day, first, last = numbers.select(
        pl.min("n_parts"), a=pl.min("day"), b=pl.max("day"), c=pl.min("month"), d=pl.max("month")
    ).row(0)
    if n_parts == 3 and first_day is not None and last_day - first_day < MAX_PERIODS:
        epoch = date(1970, 1, 1).toordinal()
        days = [date.fromordinal(epoch + n).isoformat() for n in range(first_day, last_day + 1)]
        return [Period(day, day) for day in days], numbers["day"] - first_day
    steps = PERIOD_MONTHS[0 if n_parts > 1 else 2 :]
    step = next(n for n in steps if last // n - first // n < MAX_PERIODS or n == steps[-1])
    starts = range(first // step * step, last + 1, step)
    periods = [Period(_name_month(m, step), _name_month(m + step - 1, step)) for m in starts]
    return periods, numbers["month"] // step - first // step


def _name_month(month: int, step: int) -> str:
    """Name a month, or the year of it if the periods are years."""
    year = f"{month // 12:04}"
    return year if step >= 12 else f"{year}-{month % 12 + 1:02}"
