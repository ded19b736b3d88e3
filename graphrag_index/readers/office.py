"""Reading of office files, books and messages as Markdown, with the tables as pipe tables."""

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time
from functools import partial
from html import escape
from itertools import accumulate, pairwise, takewhile
from math import inf
from typing import Any
from xml.etree import ElementTree

from graphrag_index.readers.document import PageText, normalize_newlines
from graphrag_index.readers.parse_process import DamagedFile
from graphrag_index.readers.text_html_pdf_office import Page, join_headers
from graphrag_nlp.text.tables import MAX_WORDS_OF_CELL

_MERGED = re.compile(rb"""<mergeCell\s[^<>]*?\bref=["']([A-Z]{1,3}\d+:[A-Z]{1,3}\d+)["']""")
_RTF_SPACE = re.compile(rb"(?<!\\)((?:\\\\)*)\\~")
_BAR = re.compile(r"(?<!\\)\|")
# Elements of OpenDocument, without their namespaces, and the tags of web pages for them.
_HTML_TAGS = {
    **dict.fromkeys(("p", "h"), "p"),
    **dict.fromkeys(("list-item", "list-header"), "li"),
    **{"list": "ul", "line-break": "br", "table": "table", "table-row": "tr", "table-cell": "td"},
}
_SPANS = {"colspan": "number-columns-spanned", "rowspan": "number-rows-spanned"}
# Comments, descriptions of shapes, merged cells and numbers of slides, and kinds of edges.
_NO_TEXT = {"annotation", "title", "desc", "covered-table-cell", "page-number", "notes"}
_EDGES = {"header", "footer", "date-time", "page-number"}
_LENGTH = re.compile(r"-?\d+(?:\.\d+)?")


def read_docx(data: bytes) -> tuple[str, tuple[()]]:
    """Return the text of a Word file, and no pages: a program lays them out when it opens it."""
    import mammoth

    picture = mammoth.images.img_element(lambda _: {"src": ""})
    html = mammoth.convert_to_html(io.BytesIO(data), convert_image=picture).value
    return _WordPage(html).text, ()


class _WordPage(Page):
    """Page whose tables are pipe tables with a header, also where a cell has several blocks."""

    n_rows: Sequence[int] = ()  # of each open table
    n_tables = 0  # closed tables

    def _end_table_row(self) -> None:
        self._end_block()
        row, depth = self._take_row() if self.rows[-1] else [], len(self.rows)
        self.n_rows = [*self.n_rows[:depth], *[0] * (depth - len(self.n_rows))]
        cells = [" ".join(" ".join(cell).split()) for cell in row]
        if not any(cells):
            return
        # The row below a header with cells that span columns names the columns.
        if depth == 1 == self.n_rows[-1] and len(cells) == len(self.header):
            cells = join_headers(self.header, cells)
            del self.blocks[-2:]
            self.n_rows = [0]
        self.header = cells if self.is_wide and not self.n_rows[-1] else []
        for line in _format_rows([cells], has_header=not self.n_rows[-1]):
            self._add_block(line, f"row of {self.n_tables}", self.rows[:-1])
        self.n_rows = [*self.n_rows[:-1], self.n_rows[-1] + 1]

    def _close_element(self) -> str:
        depth, tag = len(self.rows), super()._close_element()
        if len(self.rows) < depth:
            self.n_rows = self.n_rows[: len(self.rows)]
            self.n_tables += 1
        return tag


def read_xlsx(data: bytes) -> tuple[str, list[PageText]]:
    """Return the text of an Excel file, a heading and a table for each sheet, and its rows.

    Rows of one cell above the table are its title.
    """
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    places = []
    for sheet in book.worksheets:
        rows = [list(map(_format_value, row)) for row in sheet.iter_rows(values_only=True)]
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            wide = _fill_merged_cells(rows, archive.read(sheet._worksheet_path))
        numbers = [number for number, row in enumerate(rows, 1) if any(row)]
        rows = [rows[number - 1] for number in numbers]
        used = [
            i
            for i in range(max(map(len, rows), default=0))
            if any(row[i : i + 1] != [""] for row in rows)
        ]
        table = [[row[i] if i < len(row) else "" for i in used] for row in rows]
        above = list(takewhile(lambda row: len({*row, ""}) <= 2, table[:-1]))
        titles = [next(filter(None, row)) for row in above] if len(used) > 1 else []
        if table:
            # The row below a header with cells that span columns names the columns.
            at = len(titles)
            if numbers[at] in wide and len(table) > at + 2:
                table[at : at + 2] = [join_headers(*table[at : at + 2])]
                del numbers[at + 1]
            header, rule, *others = _format_rows(table[len(titles) :])
            lines = [*titles, f"{header}\n{rule}", *others]
            lines[0] = f"## {sheet.title}\n{lines[0]}"
            for last in {len(titles), len(lines)} - {0}:
                lines[last - 1] += "\n"
            places += [
                (n, sheet.title, f"{line}\n") for n, line in zip(numbers, lines, strict=True)
            ]
    return _join_places("row", places)


def _join_places(kind: str, places: list[tuple[int, str, str]]) -> tuple[str, list[PageText]]:
    """Return the joined texts of places (number, label, text) without the last line ends."""
    text = "".join(text for _, _, text in places).rstrip("\n")
    ends = accumulate((len(text) for _, _, text in places), initial=0)
    spans = pairwise(min(end, len(text)) for end in ends)
    return text, [
        PageText(number, label, *span, kind=kind)
        for (number, label, _), span in zip(places, spans, strict=True)
    ]


def _fill_merged_cells(rows: list[list[str]], xml: bytes) -> set[int]:
    """Give merged cells their value; return the numbers of rows where a cell spans columns.

    The library tells which cells are merged only where it holds all cells.
    """
    from openpyxl.utils import range_boundaries

    has_values, wide = list(map(any, rows)), set[int]()
    for found in _MERGED.finditer(xml):
        left, top, right, bottom = range_boundaries(found[1].decode("ascii"))
        value = "".join(rows[top - 1][left - 1 : left] if top <= len(rows) else [])
        is_value = 0 < len(value.split()) <= MAX_WORDS_OF_CELL
        # A range may reach over empty rows of a whole column.
        for i in range(top - 1, min(bottom, len(rows))) if is_value else ():
            if has_values[i]:
                stop = min(right, len(rows[i]))
                rows[i][left - 1 : stop] = [value] * (stop - left + 1)
        if is_value and left < right:
            wide.add(top)
    return wide


def _format_value(value: Any) -> str:
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, date | time):
        return value.isoformat()
    is_whole = isinstance(value, float) and value.is_integer()
    return "" if value is None else " ".join(str(int(value) if is_whole else value).split())


def read_pptx(data: bytes) -> tuple[str, list[PageText]]:
    """Return the text of a PowerPoint file: its slides with their notes, in order."""
    import pptx

    places = []
    for number, slide in enumerate(pptx.Presentation(io.BytesIO(data)).slides, 1):
        title = slide.shapes.title
        parts = [part for shape in _sort_shapes(slide.shapes) for part in _read_shape(shape, title)]
        notes = slide.has_notes_slide and slide.notes_slide.notes_text_frame
        if notes and notes.text.strip():
            parts.append(f"### Notes\n{notes.text.strip()}")
        text = normalize_newlines("\n".join(parts)).replace("\v", "\n").replace("\ufeff", "")
        if text:
            places.append((number, str(number), f"{text}\n\n"))
    return _join_places("slide", places)


def read_odp(data: bytes) -> tuple[str, list[PageText]]:
    """Return the text of a presentation in OpenDocument format, and its slides."""
    places = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        content = ElementTree.fromstring(archive.read("content.xml"))
        slides = (element for element in content.iter() if _get_name(element) == "page")
        for number, slide in enumerate(slides, 1):
            html = "".join(_convert_shapes(slide, archive))
            for part in slide:
                notes = part if _get_name(part) == "notes" else ()
                if _WordPage(noted := "".join(_convert_shapes(notes, archive))).text:
                    html += f"<h3>Notes</h3>{noted}"
            if text := _WordPage(html).text:
                places.append((number, str(number), f"{text}\n\n"))
    return _join_places("slide", places)


def _convert_shapes(shapes: Iterable[Any], archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield shapes of an OpenDocument slide as HTML, from the top."""

    def find_place(shape: Any) -> tuple[float, float]:
        own = _get_length(shape, "y"), _get_length(shape, "x")
        # The place of a group is that of its parts; parts of others have places inside of them.
        return own if own[0] < inf else min(map(find_place, shape), default=own)

    for shape in sorted(shapes, key=find_place):
        yield from _convert(shape, archive)


def _convert(element: Any, archive: zipfile.ZipFile) -> Iterator[str]:
    name, kind = _get_name(element), _get(element, "class")
    if name in _NO_TEXT or kind in _EDGES:
        return
    if name == "g":
        yield from _convert_shapes(element, archive)
    elif name == "object":
        part = f"{_get(element, 'href').removeprefix('./')}/content.xml"
        # A chart is read once: many that name each other would have a text without an end.
        if found := archive.NameToInfo.pop(part, None):
            yield from _convert_chart(ElementTree.fromstring(archive.read(found)), archive)
    elif name in ("s", "tab"):
        yield " "
    elif kind == "title":
        title = _WordPage("".join(_convert_parts(element, archive))).text
        yield f"<h1>{escape(' '.join(title.split()))}</h1>"
    elif tag := _HTML_TAGS.get(name):
        spans = (f' {span}="{escape(_get(element, key))}"' for span, key in _SPANS.items())
        yield f"<{tag}{''.join(spans)}>"
        # A chart lacks this value.
        if _get(element, "value") != "NaN":
            yield from _convert_parts(element, archive)
        yield f"</{tag}>"
    else:
        yield from _convert_parts(element, archive)


def _convert_parts(element: Any, archive: zipfile.ZipFile) -> Iterator[str]:
    yield escape(element.text or "")
    for part in element:
        yield from _convert(part, archive)
        yield escape(part.tail or "")


def _convert_chart(content: Any, archive: zipfile.ZipFile) -> Iterator[str]:
    """Yield the title and the values of a chart."""
    for chart in content.iter():
        for part in chart if _get_name(chart) == "chart" else ():
            if _get_name(part) == "title":
                yield f"<h3>{''.join(_convert_parts(part, archive))}</h3>"
            elif _get_name(part) == "table":
                yield from _convert(part, archive)


def _get_name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _get(element: Any, name: str) -> str:
    """Return an attribute by its name without the namespace."""
    return next((text for key, text in element.items() if key.rpartition("}")[2] == name), "")


def _get_length(element: Any, name: str) -> float:
    found = _LENGTH.match(_get(element, name))
    return float(found[0]) if found else inf


def _read_format(mime_type: str, data: bytes) -> tuple[str, tuple[()]]:
    """Return the text of a file that kreuzberg converts to a web page."""
    import kreuzberg

    # Recognition of text in pictures would load models.
    config = kreuzberg.ExtractionConfig(disable_ocr=True, use_cache=False, output_format="html")
    page = kreuzberg.extract_bytes_sync(data, mime_type, config=config).content
    return _WordPage(page).text, ()


read_odt = partial(_read_format, "application/vnd.oasis.opendocument.text")
read_ods = partial(_read_format, "application/vnd.oasis.opendocument.spreadsheet")
read_epub = partial(_read_format, "application/epub+zip")


def read_rtf(data: bytes) -> tuple[str, tuple[()]]:
    """Return the text of a file in Rich Text Format."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise DamagedFile("it has no header of this format")
    # kreuzberg reads the mark of a space without a line break as ~.
    return _read_format("application/rtf", _RTF_SPACE.sub(rb"\1\'a0", data))


def _sort_shapes(shapes: Iterable[Any]) -> list[Any]:
    # A placeholder without a place of its own stands where that of its layout does.
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _read_shape(shape: Any, title: Any) -> Iterator[str]:
    if hasattr(shape, "shapes"):
        for inner in _sort_shapes(shape.shapes):
            yield from _read_shape(inner, title)
    elif getattr(shape, "has_table", False):
        rows = [[" ".join(cell.text.split()) for cell in row.cells] for row in shape.table.rows]
        is_wide = False
        for y, row in enumerate(shape.table.rows):
            for x, cell in enumerate(row.cells):
                bottom = y + cell.span_height if cell.is_merge_origin else y
                for i in range(y, min(bottom, len(rows))):
                    rows[i][x : x + cell.span_width] = [rows[y][x]] * cell.span_width
                is_wide |= y == 0 and cell.span_width > 1
        # The row below a header with cells that span columns names the columns.
        if is_wide and len(rows) > 2:
            rows[:2] = [join_headers(*rows[:2])]
        yield "\n".join(["", *_format_rows(rows), ""])
    elif getattr(shape, "has_chart", False):
        yield from _read_chart(shape.chart)
    elif shape.has_text_frame and (text := shape.text_frame.text.strip()):
        is_title = title is not None and shape.shape_id == title.shape_id
        yield f"# {' '.join(text.split())}" if is_title else text


def _read_chart(chart: Any) -> Iterator[str]:
    if chart.has_title and chart.chart_title.has_text_frame:
        yield f"### {chart.chart_title.text_frame.text}"
    for plot in chart.plots:
        names = ["", *(series.name or "" for series in plot.series)]
        values = zip(*(series.values for series in plot.series), strict=False)
        rows = [
            [str(c), *map(_format_value, v)] for c, v in zip(plot.categories, values, strict=False)
        ]
        yield "\n".join(["", *_format_rows([names, *rows]), ""])


def _format_rows(rows: Sequence[Sequence[str]], *, has_header: bool = True) -> list[str]:
    cells = [[_BAR.sub(r"\|", cell) for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]] if has_header else lines
