"""The dates of documents: those that they state, or else those in their titles.

A title is often the name of a file, in which a number such as 1657 may count the files.
"""

import polars as pl

# A day in a title, such as 2026-04-08 or 20260408, and a month, such as 2026-04.
_DAY = r"(?:^|\D)((?:1[5-9]|20)\d\d)[-_./]?(0[1-9]|1[0-2])[-_./]?(0[1-9]|[12]\d|3[01])(?:\D|$)"
_MONTH = r"(?:^|[^\p{L}\d])((?:1[5-9]|20)\d\d)[-_.](0[1-9]|1[0-2])(?:[^\p{L}\d]|$)"
# A number that may be a year, or a year and a month: 2026 or 202604.
_YEAR = r"(?:^|[^\p{L}\d])((?:1[5-9]\d|20[0-4])\d)(0[1-9]|1[0-2])?(?:[^\p{L}\d]|$)"
# Minimum share (0 to 1) of the titles of one form in which such a number may be a year.
MIN_SHARE_OF_YEARS = 0.6
# Minimum number of titles of one form, such as report-#; the others are compared together.
MIN_TITLES_OF_FORM = 3


def find_document_dates(documents: pl.DataFrame) -> pl.Series:
    """Return the day, month or year of each document, or an empty text.

    `documents` has the columns title and creation_date of all documents of an index. Without a
    `creation_date`, the date is one in the title. A year there has to be a number of its own, and
    most titles of the same form have to have one: article-1657 is no date beside article-12.
    """
    # All documents together tell whether a number is a year: do not call this for some of them.
    title = pl.col("title").fill_null("")
    stated = pl.col("creation_date").fill_null("").str.slice(0, 10)
    plain = pl.coalesce(_extract(title, _DAY, 3), _extract(title, _MONTH, 2))
    found = documents.select(
        title=title,
        stated=pl.when(stated.str.contains(r"^\d{4}")).then(stated),
        plain=plain,
        year=_extract(title, _YEAR, 2),
    )
    if found["year"].null_count() < found.height:
        form = pl.col("title").str.replace_all(r"\d+", "#")
        is_shared = pl.len().over("form") >= MIN_TITLES_OF_FORM
        has_year = pl.coalesce("plain", "year").is_not_null()
        found = (
            found.with_columns(form=form)
            .with_columns(form=pl.when(is_shared).then("form").otherwise(pl.lit("")))
            .with_columns(share=has_year.mean().over("form"))
            .with_columns(year=pl.when(pl.col("share") >= MIN_SHARE_OF_YEARS).then("year"))
        )
    return found.select(date=pl.coalesce("stated", "plain", "year", pl.lit("")))["date"]


def _extract(title: pl.Expr, pattern: str, n_groups: int) -> pl.Expr:
    """Join the groups of a pattern in a title by hyphens; null where it is not found."""
    groups = [title.str.extract(pattern, group) for group in range(1, n_groups + 1)]
    joined = pl.concat_str(groups, separator="-", ignore_nulls=True)
    return pl.when(groups[0].is_not_null()).then(joined)
