"""Documents and text units, and windows of a document's text with the entities named in it."""

import atexit
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import BoundedSemaphore
from typing import Annotated, Any

import numpy as np
import polars as pl
from fastapi import APIRouter, Query
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel

from graphrag_index.export.explorer_page import file_type
from graphrag_index.readers.document import PageView, UnreadableFile
from graphrag_index.readers.input_files import input_folder
from graphrag_index.readers.parse_process import PICTURE_SUFFIXES, ChangedFile, FileParser
from graphrag_index.storage.skipped_files import IN_PART
from graphrag_nlp.text.document_dates import divide_time
from graphrag_query.store.index_store import IndexStore
from graphrag_server.access import WriteIndex
from graphrag_server.problems import RequestError
from graphrag_server.routes.entities import Entity, read_entities
from graphrag_server.table_pages import (
    OpenVersion,
    Page,
    Paging,
    Version,
    number_in,
    read_page,
    read_texts,
    scan_kept,
)

router = APIRouter(prefix="/v1/indexes/{index}", tags=["documents"])

# Maximum length of a window of text, in characters.
MAX_WINDOW = 100_000
# Seconds for the picture of a page, and the number of pictures that are kept (some 200 kB each).
MAX_DRAWING_SECONDS, MAX_PICTURES = 10, 64
_DRAWING = FileParser(MAX_DRAWING_SECONDS)
# Pictures that may wait for the process that draws them, so that other requests find a thread.
_WAITING = BoundedSemaphore(8)
atexit.register(_DRAWING.close)


# Columns by whose names documents are sorted.
_SORTED = ("path", "title", "type", "date", "n_text_units", "n_entities")


class Document(BaseModel):
    """One document. `path` is relative to the input folder; `id` stays with the document.

    `creation_date` is the date that the document states; `date` is that or else one in its title.
    """

    number: int
    id: str
    title: str
    path: str
    creation_date: str
    language: str
    metadata: str | None
    n_characters: int
    n_text_units: int
    type: str  # suffix of the file, such as "pdf"; empty if it has none
    date: str
    n_entities: int  # named in the document
    n_pages: int  # pages, slides or rows of a sheet; 0 for other types
    n_recognized: int  # pages whose text was recognized in a picture (OCR)
    unread: str  # what of the file was not read, such as "page 3 ..."; empty if all was


class TextUnitSpan(BaseModel):
    """The position of a text unit in its document, in characters."""

    number: int
    start_char: int
    end_char: int


class Mention(BaseModel):
    """A place where a text names an entity, in characters of the document."""

    entity: int
    title: str
    type: str
    start_char: int
    end_char: int


class PageSpan(BaseModel):
    """The position of a page, slide or row of a sheet in its document, in characters."""

    kind: str  # "page", "slide", "row", or "figure" for the description of one
    number: int
    label: str
    engine: str  # that recognized the text of the page or described the figure; else empty
    start_char: int
    end_char: int


class TextWindow(BaseModel):
    """A part of a document's text: ``text`` is that from `start_char` to `end_char`."""

    document: int
    title: str
    path: str
    start_char: int
    end_char: int
    n_characters: int  # length of the whole document
    text: str
    text_units: list[TextUnitSpan]
    mentions: list[Mention]
    pages: list[PageSpan]


class TextUnit(BaseModel):
    """One text unit with its position in its document."""

    number: int
    document: int
    document_title: str
    path: str
    start_char: int
    end_char: int
    n_tokens: int
    headings: str
    text: str


class TextUnitDetails(TextUnit):
    """A text unit with the entities that it names."""

    entities: list[Entity]


@router.get("/documents")
def list_documents(opened: Version, page: Paging) -> Page[Document]:
    """List documents in the order of their paths.

    Sort by number, path, title, type, date, length, n_text_units or n_entities.
    """
    rows = _describe_documents(scan_kept(opened.store, "documents"))
    if page.sort.removeprefix("-") in ("date", "n_entities"):
        found = pl.DataFrame(
            {
                "human_readable_id": pl.int_range(opened.whole.n_rows("document_rows"), eager=True),
                "date": opened.whole.document_dates,
                "n_entities": opened.whole.entity_counts,
            }
        )
        rows = rows.join(found.lazy(), on="human_readable_id")
    sorts = {"number": "human_readable_id", "length": "n_characters"}
    return read_page(
        *(opened, rows, page, _read_documents),
        sorts=sorts | {name: name for name in _SORTED},
        default_sort="number",
        searched=("title", "path"),
    )


@router.get("/documents/{number}")
def read_document(opened: Version, number: int) -> Document:
    """Return a document without its text."""
    opened.check_row("document_rows", number, "document")
    return _read_documents(opened.whole, [number])[0]


def _read_documents(store: IndexStore, numbers: list[int]) -> list[Document]:
    """Read documents by number, in this order."""
    rows = _describe_documents(store.scan("documents").filter(number_in(numbers))).collect()
    found = {row["human_readable_id"]: row for row in rows.to_dicts()}
    dates, n_entities = store.document_dates, store.entity_counts
    pages, unread = _count_pages(store, numbers), _read_unread(store)
    return [
        Document(
            **found[number],
            number=number,
            date=dates[number],
            n_entities=n_entities[number],
            n_pages=pages.get(number, (0, 0))[0],
            n_recognized=pages.get(number, (0, 0))[1],
            unread=unread.get(found[number]["path"], ""),
        )
        for number in numbers
    ]


def _count_pages(store: IndexStore, documents: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Count the pages of documents, and those with recognized text, by document."""
    if not store.has_table("page_rows"):
        return {}
    table = store.open_mapped("page_rows")
    rows = [row for number in documents for row in table.find_rows("document", number)]
    found = table.rows(rows, "document", "engine").group_by("document")
    counts = found.agg(n=pl.len(), recognized=(pl.col("engine") != "").sum())
    return {document: (n, recognized) for document, n, recognized in counts.iter_rows()}


def _read_unread(store: IndexStore) -> dict[str, str]:
    """Return what of files was not read by path, of those that were read in part."""
    if not store.has_table("skipped_files"):
        return {}
    rows = store.scan("skipped_files").filter(kind=IN_PART).select("path", "reason").collect()
    return dict(rows.iter_rows())


def _describe_documents(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Select what describes documents, and count their characters and text units."""
    return rows.select(
        "human_readable_id",
        "id",
        pl.col("title", "path", "creation_date", "language").fill_null(""),
        "metadata",
        n_characters=pl.col("text").str.len_chars(),
        n_text_units=pl.col("text_unit_ids").list.len(),
        type=file_type("path"),
    )


class TimelinePeriod(BaseModel):
    """A period, as the filters `since` and `until` take it, with what it has."""

    since: str
    until: str
    documents: int
    mentions: int


class Timeline(BaseModel):
    """The periods from the first date of a document to the last, all of one length."""

    periods: list[TimelinePeriod]
    n_undated: int  # documents without a date


@router.get("/timeline")
def read_timeline(
    opened: Version,
    entity: Annotated[int | None, Query(description="Entity whose mentions are counted.")] = None,
) -> Timeline:
    """Count documents by the period of their dates, and the text units that mention an entity.

    The periods are days, months, quarters, years, ten years or a hundred: at most 60 of them.
    """
    store = opened.store
    periods, found = divide_time(opened.whole.document_dates)
    positions = found.fill_null(len(periods)).to_numpy()
    units: Sequence[int] = []
    if entity is not None:
        opened.check_row("entity_rows", entity, "entity")
        units = store.links.text_units_of(entity).numbers.tolist()
    mentioned = store.open_mapped("text_unit_rows").rows(units, "document")["document"].to_numpy()
    kept = store.row_flags("documents")
    documents, mentions = (
        np.bincount(numbers, minlength=len(periods) + 1).tolist()
        for numbers in (positions if kept is None else positions[kept], positions[mentioned])
    )
    return Timeline(
        periods=[
            TimelinePeriod(since=since, until=until, documents=n_documents, mentions=n_mentions)
            for (since, until), n_documents, n_mentions in zip(
                periods, documents, mentions, strict=False
            )
        ],
        n_undated=documents[-1],
    )


@router.get("/documents/{number}/text")
def read_document_text(
    opened: Version,
    number: int,
    start: Annotated[int, Query(ge=0, description="First character.")] = 0,
    end: Annotated[int | None, Query(ge=0, description="Character after the last.")] = None,
) -> TextWindow:
    """Return a part of a document's text, with its text units and the entities named in it."""
    store = opened.whole
    opened.check_row("document_rows", number, "document")
    row = store.documents([number]).row(0, named=True)
    text = read_texts(store, [number])[number]
    start = min(start, len(text))
    end = min(len(text) if end is None else max(start, end), start + MAX_WINDOW, len(text))
    units = _text_units_in_window(store, number, start, end)
    return TextWindow(
        document=number,
        title=row["title"] or "",
        path=row["path"] or "",
        start_char=start,
        end_char=end,
        n_characters=len(text),
        text=text[start:end],
        text_units=units,
        mentions=_read_mentions(store, units, start, end),
        pages=[PageSpan.model_validate(page) for page in store.pages(number, start, end)],
    )


@router.get(
    "/documents/{number}/pages/{page}.jpg",
    response_class=Response,
    responses={200: {"content": {"image/jpeg": {}}}},
)
def read_page_picture(
    opened: Version,
    number: int,
    page: int,
    span: Annotated[
        str, Query(pattern=r"^\d{1,9}:\d{1,9}$", description="First character:character after.")
    ] = "0:0",
) -> Response:
    """Return the picture of a page of a PDF or picture file, with a span of characters marked."""
    opened.check_row("document_rows", number, "document")
    file = _find_file(opened, number)
    if file.suffix.lower() not in (".pdf", *PICTURE_SUFFIXES):
        raise RequestError(415, "no_pdf", f"{file.name} is no PDF: only these have pictures.")
    found = opened.whole.page_boxes(number, page)
    if found is None:
        raise RequestError(404, "no_such_page", f"{file.name} has no page {page} in the index.")
    boxes, engine, picture_hash = found
    start, _, end = span.partition(":")
    marks = boxes.filter(
        pl.col("start_char") < int(end),
        pl.col("end_char") > int(start),
        # A word of invisible characters has none in the text.
        pl.col("start_char") < pl.col("end_char"),
    )
    words, figures = (marks.filter(kind=kind).drop("kind") for kind in ("page", "figure"))
    places = ("left", "top", "width", "height")
    view = PageView(
        page,
        # Recognized words are not in the file, but the picture is.
        () if engine else tuple(boxes.filter(kind="page").select("left", "top").iter_rows()),
        # A figure is marked whole.
        (*mark_lines(words, int(start), int(end)), *figures.select(places).iter_rows()),
        picture_hash,
    )
    status = file.stat()
    picture = _draw(file, (status.st_mtime_ns, status.st_size), view)
    # A browser asks again for a page after five minutes: the file may have changed.
    return Response(
        picture, media_type="image/jpeg", headers={"Cache-Control": "private, max-age=300"}
    )


@lru_cache(MAX_PICTURES)
def _draw(file: Path, stamp: tuple[int, int], view: PageView) -> bytes:
    """Draw a page in a process with limits; `stamp` tells a changed file."""
    if not _WAITING.acquire(blocking=False):
        raise RequestError(503, "busy", "Too many pages are being drawn: try again later.")
    try:
        picture: bytes = _DRAWING.call(file, "drawn page", file.suffix.lower(), view)
    except UnreadableFile as error:
        text = f"Page {view.number} of {file.name} cannot be shown: the file {error}."
        if isinstance(error, ChangedFile):
            raise RequestError(404, "file_changed", text) from None
        raise RequestError(422, "unreadable_file", text) from None
    finally:
        _WAITING.release()
    return picture


def mark_lines(words: pl.DataFrame, start: int, end: int) -> tuple[tuple[int, int, int, int], ...]:
    """Return a rectangle (left, top, width, height) for each line of the words of a span."""
    lines: list[list[int]] = []
    for first, last, left, top, width, height in words.iter_rows():
        # Of a word that the span cuts, a part as long as its characters is marked.
        before = width * max(start - first, 0) // (last - first)
        after = width * max(last - end, 0) // (last - first)
        left, right, bottom = left + before, left + width - after, top + height
        line = lines[-1] if lines else [0, 0, 0, 0]
        is_beside = left - line[2] + height >= 0 and left - line[2] < 2 * height
        if lines and is_beside and abs(top + bottom - line[1] - line[3]) < height:
            line[:] = [line[0], min(line[1], top), max(line[2], right), max(line[3], bottom)]
        else:
            lines.append([left, top, right, bottom])
    return tuple((left, top, right - left, bottom - top) for left, top, right, bottom in lines)


@router.get(
    "/documents/{number}/file",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}, "application/pdf": {}}}},
)
def download_file(opened: Version, index: WriteIndex, number: int) -> FileResponse:
    """Return the file of a document as it is now; it takes the scope of those who upload files."""
    opened.check_row("document_rows", number, "document")
    file = _find_file(opened, number)
    is_pdf = file.suffix.lower() == ".pdf"
    return FileResponse(
        file,
        # Only a PDF is shown: other files could hold a web page.
        media_type="application/pdf" if is_pdf else "application/octet-stream",
        filename=file.name,
        content_disposition_type="inline" if is_pdf else "attachment",
        headers={"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox"},
    )


def _find_file(opened: OpenVersion, number: int) -> Path:
    """Return the file of a document. Raises RequestError if it is gone."""
    path = opened.whole.documents([number])["path"][0] or ""
    folder = input_folder(opened.hosted.settings.load_documents, opened.hosted.root).resolve()
    file = (folder / path).resolve()
    # The paths of an imported index may lead anywhere.
    if not (path and file.is_relative_to(folder) and file.is_file()):
        above = (one for one in file.parents if one.is_relative_to(folder))
        if holder := next((one for one in above if one.is_file()), None):
            text = f"{file.name} is inside {holder.name}: only files of the input folder are shown."
            raise RequestError(404, "no_such_file", text)
        raise RequestError(404, "no_such_file", f"The file {path!r} is not in the input folder.")
    return file


@router.get("/text_units")
def list_text_units(
    opened: Version,
    page: Paging,
    document: Annotated[int | None, Query(description="Number of a document.")] = None,
) -> Page[TextUnit]:
    """List text units in the order of their documents. Sort by number or n_tokens."""
    rows = scan_kept(opened.store, "text_units")
    if document is not None:
        opened.check_row("document_rows", document, "document")
        found = opened.whole.open_mapped("text_unit_rows").find_rows("document", document)
        rows = rows.filter(pl.col("human_readable_id").is_between(found.start, found.stop - 1))
    return read_page(
        *(opened, rows, page, _read_text_units),
        sorts={"number": "human_readable_id", "n_tokens": "n_tokens"},
        default_sort="number",
        searched=("text",),
    )


@router.get("/text_units/{number}")
def read_text_unit(opened: Version, number: int) -> TextUnitDetails:
    """Return a text unit with the entities that it names."""
    opened.check_row("text_unit_rows", number, "text unit")
    store = opened.whole
    row = store.text_units([number])[number]
    entities = store.links.entities_of(number).numbers.tolist()
    return TextUnitDetails(
        **build_text_unit(row).model_dump(), entities=read_entities(store, entities)
    )


def _read_text_units(store: IndexStore, numbers: list[int]) -> list[TextUnit]:
    rows = store.text_units(numbers)
    return [build_text_unit(rows[number]) for number in numbers]


def build_text_unit(row: Any) -> TextUnit:
    """Build a text unit from a row of `IndexStore.text_units`."""
    return TextUnit(
        number=row["human_readable_id"],
        document_title=row["title"] or "",
        path=row["path"] or "",
        headings=row["headings"] or "",
        text=row["source"],
        **{name: row[name] for name in ("document", "start_char", "end_char", "n_tokens")},
    )


def _text_units_in_window(
    store: IndexStore, document: int, start: int, end: int
) -> list[TextUnitSpan]:
    table = store.open_mapped("text_unit_rows")
    found = table.find_rows("document", document)
    starts = table.slice("start_char", found.start, found.stop).tolist()
    ends = table.slice("end_char", found.start, found.stop).tolist()
    return [
        TextUnitSpan(number=number, start_char=first, end_char=stop)
        for number, first, stop in zip(found, starts, ends, strict=True)
        if first < end and stop > start
    ]


def _read_mentions(
    store: IndexStore, units: list[TextUnitSpan], start: int, end: int
) -> list[Mention]:
    """Return the mentions of entities in a window; empty if the index has no table of them."""
    if not units or not store.has_table("mentions"):
        return []
    first, last = units[0].number, units[-1].number
    # Offsets of mentions are those of the document. Text units may overlap: keep each place once.
    rows = (
        store.scan("mentions")
        .filter(
            pl.col("text_unit").is_between(first, last),
            pl.col("start_char") >= start,
            pl.col("end_char") <= end,
        )
        .select("entity", "start_char", "end_char")
        .unique()
        .sort("start_char", "end_char", "entity")
        .collect()
    )
    numbers = rows["entity"].unique().sort()
    named = store.entities(numbers).select("human_readable_id", "title", "type")
    names = {number: (title or "", kind or "") for number, title, kind in named.iter_rows()}
    return [
        Mention(
            entity=entity,
            title=names[entity][0],
            type=names[entity][1],
            start_char=start_char,
            end_char=end_char,
        )
        for entity, start_char, end_char in rows.iter_rows()
    ]
