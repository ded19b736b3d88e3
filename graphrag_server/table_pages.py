"""Pages of tables, from a cursor on; passages of documents that support a row."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import polars as pl
from fastapi import Depends, Query, Response
from pydantic import BaseModel

from graphrag_query.index import Index
from graphrag_query.store.filtered_index import FilteredIndex
from graphrag_query.store.index_store import IndexStore
from graphrag_server.access import ReadIndex
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.problems import RequestError

MAX_LIMIT = 500
# Polars takes positions of rows of 32 bits.
MAX_OFFSET = 2**32 - 1
_T = TypeVar("_T")
VERSION_HEADER = "X-Index-Version"
AsOf = Annotated[int | None, Query(ge=1, description="Version of the index; default: current.")]


def read_filters(
    where: Annotated[
        list[str],
        Query(
            description="COLUMN=PATTERN on documents: path, title, language or a metadata key; "
            "repeat it for several."
        ),
    ] = [],  # noqa: B006 - never changed
    type_: Annotated[
        list[str], Query(alias="type", description="Type of entities; repeat it for several.")
    ] = [],  # noqa: B006 - never changed
    since: Annotated[str, Query(description="First date of documents, such as 1914.")] = "",
    until: Annotated[str, Query(description="Last date of documents; it is included.")] = "",
) -> dict[str, Any]:
    """Return the filters that a request sets, as arguments of `Index.where`.

    Raises RequestError if a condition has no equals sign.
    """
    documents: dict[str, list[str]] = {}
    for condition in where:
        column, equals, pattern = condition.partition("=")
        if not (column and equals):
            raise RequestError(400, "invalid_filter", f"where={condition}: write COLUMN=PATTERN.")
        documents.setdefault(column, []).append(pattern)
    filters = {"documents": documents, "entity_types": type_, "since": since, "until": until}
    return {name: value for name, value in filters.items() if value}


@dataclass(frozen=True)
class OpenVersion:
    """An index at one version, for a request. `store` is restricted by the request's filters."""

    hosted: HostedIndex
    index: Index
    store: IndexStore
    whole: IndexStore  # without the filters
    offset: int = 0  # of the first row of the page, from its cursor

    @property
    def version(self) -> int:
        """The number of the version."""
        return self.index.store.version.number

    def check_row(self, table: str, number: int, what: str) -> None:
        """Raise RequestError if a mapped table has no row of this number."""
        if not (self.whole.has_table(table) and 0 <= number < self.whole.n_rows(table)):
            raise no_such_row(what, number)


def no_such_row(what: str, number: object) -> RequestError:
    """Return the error for a number that no row has."""
    return RequestError(404, "no_such_row", f"This version of the index has no {what} {number}.")


def open_version(
    index: ReadIndex,
    response: Response,
    filters: Annotated[dict[str, Any], Depends(read_filters)],
    as_of: AsOf = None,
    cursor: Annotated[str, Query(description="`next_cursor` of the page before.")] = "",
) -> OpenVersion:
    """Open the version of a request. A page stays in the version of the page before."""
    version, offset = read_cursor(cursor)
    if cursor and as_of is None:
        as_of = version
        if as_of == index.open().store.version.number:
            as_of = None
    opened = index.open(as_of)
    response.headers[VERSION_HEADER] = str(opened.store.version.number)
    store = opened.where(**filters).store if filters else opened.store
    return OpenVersion(index, opened, store, opened.store, offset)


Version = Annotated[OpenVersion, Depends(open_version)]


@dataclass(frozen=True)
class PageQuery:
    """The position and the length of a page."""

    limit: int
    offset: int
    sort: str
    text: str  # folded text that the rows contain; empty: all rows


def read_page_query(
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = 50,
    cursor: str = "",
    sort: Annotated[
        str, Query(description="Column to sort by; a minus sign sorts descending.")
    ] = "",
    q: Annotated[str, Query(max_length=200, description="Text that the rows contain.")] = "",
) -> PageQuery:
    """Read the position of a page."""
    return PageQuery(limit, read_cursor(cursor)[1], sort, q.strip().lower())


Paging = Annotated[PageQuery, Depends(read_page_query)]


def read_cursor(cursor: str) -> tuple[int | None, int]:
    """Return the version and the position of a cursor; (None, 0) without one.

    Raises RequestError if it is no cursor of this server.
    """
    if not cursor:
        return None, 0
    version, _, offset = cursor.partition(".")
    if not (version.isdecimal() and offset.isdecimal() and len(cursor) < 24):
        raise RequestError(400, "invalid_cursor", "The cursor is not that of an earlier page.")
    return int(version), int(offset)


class Page(BaseModel, Generic[_T]):
    """A page of rows. `total` counts the rows of all pages."""

    items: list[_T]
    total: int
    next_cursor: str | None


def read_page(
    opened: OpenVersion,
    rows: pl.LazyFrame,
    page: PageQuery,
    read_items: Callable[[IndexStore, list[int]], list[_T]],
    *,
    sorts: Mapping[str, str],
    default_sort: str,
    searched: Sequence[str],
) -> Page[_T]:
    """Return a page of rows; only the columns that find them are read of the others.

    `read_items` reads rows by `human_readable_id`. `sorts` maps the names of sort orders to
    columns. `searched` are the columns of text in which `page.text` is looked for.
    """
    if page.text:
        contains = [
            pl.col(name).fill_null("").str.to_lowercase().str.contains(page.text, literal=True)
            for name in searched
        ]
        rows = rows.filter(pl.any_horizontal(contains))
    sort = page.sort or default_sort
    name = sort.removeprefix("-")
    if name not in sorts:
        known = ", ".join(sorts)
        raise RequestError(400, "invalid_sort", f"sort={sort}: choose one of {known}.")
    keys = rows.select(pl.col("human_readable_id"), pl.col(sorts[name]).alias("key"))
    order = keys.sort(
        "key", "human_readable_id", descending=[sort.startswith("-"), False], nulls_last=True
    )
    offset = min(page.offset, MAX_OFFSET)
    found = order.select("human_readable_id").slice(offset, page.limit)
    numbers, count = pl.collect_all([found, rows.select(pl.len())])
    items = read_items(opened.whole, numbers["human_readable_id"].to_list())
    return make_page(opened, items, offset + numbers.height, count.item())


def make_page(opened: OpenVersion, items: list[_T], stop: int, total: int) -> Page[_T]:
    """Return the page that ends before row `stop` of `total`."""
    next_cursor = f"{opened.version}.{stop}" if stop < total else None
    return Page(items=items, total=total, next_cursor=next_cursor)


def scan_kept(store: IndexStore, table: str) -> pl.LazyFrame:
    """Open a table, with the rows that the filters keep."""
    rows = store.scan(table)
    if not isinstance(store, FilteredIndex):
        return rows
    return rows.filter(number_in(np.flatnonzero(getattr(store.masks, table))))


def number_in(numbers: "np.ndarray[Any, Any] | Sequence[int]") -> pl.Expr:
    """Return the condition that `human_readable_id` is one of `numbers`."""
    wanted, number = pl.Series(numbers, dtype=pl.Int64), pl.col("human_readable_id")
    # The limits spare Polars the row groups without such a number.
    return number.is_between(wanted.min(), wanted.max()) & number.is_in(wanted.implode())


# Maximum number of spans of one row.
MAX_SPANS = 200


class Span(BaseModel):
    """A passage: ``documents.text[start_char:end_char]`` of the document of this number.

    `text_unit` is the first text unit that contains the passage.
    """

    document: int
    title: str
    start_char: int
    end_char: int
    text: str
    text_unit: int | None = None


def read_spans(store: IndexStore, places: Sequence[Mapping[str, Any]] | None) -> list[Span]:
    """Read the texts of the places of a row, at most `MAX_SPANS`."""
    places = list(places or ())[:MAX_SPANS]
    documents = sorted({place["document"] for place in places})
    titles = dict(zip(documents, store.documents(documents)["title"], strict=True))
    spans = [_read_span(store, place, titles[place["document"]] or "") for place in places]
    # A place that no text unit contains: only the table of documents has its text.
    texts = read_texts(store, sorted({span.document for span in spans if span.text_unit is None}))
    for span in spans:
        if span.text_unit is None:
            span.text = texts[span.document][span.start_char : span.end_char]
    return spans


def _read_span(store: IndexStore, place: Mapping[str, Any], title: str) -> Span:
    """Read a place from the first text unit that contains it; without one, leave its text empty."""
    document, start, end = place["document"], place["start_char"], place["end_char"]
    span = Span(document=document, title=title, start_char=start, end_char=end, text="")
    units = store.open_mapped("text_unit_rows")
    found = units.find_rows("document", document)
    firsts = units.slice("start_char", found.start, found.stop)
    ends = units.slice("end_char", found.start, found.stop)
    holding = np.flatnonzero((firsts <= start) & (ends >= end))
    if len(holding):
        at = int(holding[0])
        rows = units.rows([found.start + at], "text", "source")
        text = rows.select(pl.coalesce("source", "text")).item()
        first = int(firsts[at])
        # A text unit that begins with metadata has other offsets: its text is longer than its span.
        if len(text) == ends[at] - first:
            span.text_unit, span.text = found.start + at, text[start - first : end - first]
    return span


def read_texts(store: IndexStore, documents: Sequence[int]) -> dict[int, str]:
    """Read the texts of documents by number."""
    if not documents:
        return {}
    rows = store.scan("documents").select("human_readable_id", "text")
    return dict(rows.filter(number_in(documents)).collect().iter_rows())
