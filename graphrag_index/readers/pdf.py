"""Reading of PDF: words by PDFium, the order of reading and tables by liteparse.

The text of a document is made of the words of its pages, so each word has its page and its box.
"""

import ctypes
import math
import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, groupby, pairwise, zip_longest
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from graphrag_index.readers.document import (
    PageText,
    RecognizedPage,
    UnreadableFile,
)
from graphrag_index.readers.parse_process import DamagedFile
from graphrag_nlp.text.lines import HyphenatedWords

# PDFium may be used by one thread at a time.
PDFIUM = Lock()
# A word; PDFium writes U+FFFE or U+0002 for a hyphen at the end of a line. Scripts without spaces
# are cut, so that the place of a character inside its box is known.
_WORD = re.compile(
    r"[^ \t\r\n\xa0\u2000-\u200a\u3000\ufffe\x02\u2e80-\ufffd]+[\ufffe\x02]?|[\ufffe\x02]"
    r"|[\u2e80-\u2fff\u3001-\uf8ff\uf900-\ufaff\ufb07-\ufffd]{1,4}|[\ufb00-\ufb06]+[\ufffe\x02]?"
)
# Ligatures, and those of a TeX font (encoding T1) whose characters the file does not name.
CHARACTERS = {
    **dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)),
    **dict(zip(range(0x10, 0x17), "“”„«»–—", strict=True)),
    **dict(zip(range(0x1B, 0x20), ("ff", "fi", "fl", "ffi", "ffl"), strict=True)),
    0x02: "-",
    0xFFFE: "-",
    0xFFFF: "",
    0xFEFF: "",  # a byte order mark
    0xAD: "-",
    0x0B: "ff",
    0x88: "•",  # in the TeX encoding TS1
}
CHARACTERS = dict.fromkeys((*range(32), *range(0x7F, 0xA0)), "") | CHARACTERS
_UNSPACED = re.compile(r"[\u2e80-\u2fff\u3001-\ua4cf\uf900-\ufaff\ufe30-\uff60]")
_HYPHENS = ("-", "\u2010")
_SENTENCE_END = re.compile(r"[.!?:;。！？：；…][\"'”’»)\]]*$")
_TOKEN = re.compile(r"[^\W_]+(?:[-\u2010][^\W_]+)*")
_BULLET = re.compile(r"[-*•‣◦▪●○■–·∙]|[\ue000-\uf8ff]")
# Of words in a fixed-pitch font: the share of a block that is code, and how widths may differ.
MIN_CODE_SHARE, MAX_PITCH_DIFFERENCE = 0.7, 0.03
# Share of a page at its top and bottom where running headers and footers stand.
EDGE_SHARE = 0.12
MAX_MEAN_WORDS = 14  # of a cell of a table
# The cells of a row have a gap between them, of a share of the height of a line; a few have none.
MIN_GAP_SHARE, MAX_NARROW_SHARE = 0.5, 0.15
# The least distance of two rows, of the height of a line; the lines of a cell are nearer.
MIN_ROW_PITCH = 1.15
# The width of the gap between a table and the labels of its rows, of the height of a line.
MAX_LABEL_GAP = 3
MAX_HEADING_WORDS = 20


class _Word(NamedTuple):
    """A word of a page; the box is in points from the top left, as the page is seen."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    before: str  # what is between the word before and this one: "", " " or "\n"
    font: str  # font of the first word of its line

    @property
    def height(self) -> float:
        return self.bottom - self.top


Line = list[_Word]


@dataclass
class _Block:
    """A paragraph, heading, list item, code, table or sideways text, from the top of a page."""

    kind: str
    lines: list[Line] = field(default_factory=list)
    level: int = 0
    cells: list[list[Line]] = field(default_factory=list)  # of a table, the header first

    @property
    def words(self) -> list[_Word]:
        return [word for line in self.lines for word in line]


def read_pdf(
    data: bytes, recognized: Mapping[int, RecognizedPage] | None = None
) -> tuple[str, list[PageText]]:
    """Return the text of a PDF as Markdown, and its pages.

    `recognized` has the words of pages that are pictures, by the number of the page. Raises
    UnreadableFile with a reason, or DamagedFile.
    """
    if b"%PDF-" not in data[:1_024]:
        raise DamagedFile("it has no header of PDF")
    recognized = recognized or {}
    with PDFIUM:
        parsed = _parse(data)
        words = _read_words(data)
    paragraphs = {number: _read_paragraphs(page) for number, page in recognized.items()}
    for number, found in paragraphs.items():
        words[number - 1] = [word for lines in found for line in lines for word in line]
    running = _find_running_lines(words, [page.height for page in parsed])
    layout = [
        _arrange_paragraphs(paragraphs[number], first_words)
        if number in paragraphs
        else _arrange(page, of_page, first_words)
        for number, (page, of_page, first_words) in enumerate(
            zip(parsed, words, running, strict=True), 1
        )
    ]
    labels = [page.page_label or str(page.page_num) for page in parsed]
    return _write_pages(layout, labels, [(page.width, page.height) for page in parsed], recognized)


def read_pictures(pages: Mapping[int, RecognizedPage]) -> tuple[str, list[PageText]]:
    """Return the text of the pictures of a file, and its pages."""
    layout = [_arrange_paragraphs(_read_paragraphs(page), set()) for page in pages.values()]
    sizes = [(page.width, page.height) for page in pages.values()]
    return _write_pages(layout, list(map(str, pages)), sizes, pages)


def _write_pages(
    layout: Sequence[list[_Block]],
    labels: Sequence[str],
    sizes: Sequence[tuple[float, float]],
    recognized: Mapping[int, RecognizedPage],
) -> tuple[str, list[PageText]]:
    writer = _Writer(layout)
    for blocks in layout:
        writer.start_page()
        for block, after in zip(blocks, [*blocks[1:], None], strict=False):
            writer.add(block, after)
    text, places = writer.finish()
    pages = list[PageText]()
    for label, size, (span, boxes) in zip(labels, sizes, places, strict=True):
        page = PageText(number := len(pages) + 1, label, *span, *size, boxes)
        if source := recognized.get(number):
            page = replace(page, engine=source.engine, picture_hash=source.picture_hash)
        pages.append(page)
    return text, pages


def _read_paragraphs(page: RecognizedPage) -> list[list[Line]]:
    """Return the lines of each paragraph of a page whose words were recognized."""
    paragraphs = []
    for lines in page.paragraphs:
        paragraph = []
        for line in lines:
            words: Line = []
            for text, left, top, right, bottom in line:
                last = words[-1].text[-1] if words else ""
                unspaced = last and _UNSPACED.match(last) and _UNSPACED.match(text[0])
                before = "\n" if not words else "" if unspaced else " "
                words.append(_Word(text, left, top, right, bottom, before, ""))
            paragraph.append(words)
        paragraphs.append(paragraph)
    return paragraphs


def _arrange_paragraphs(paragraphs: Sequence[Sequence[Line]], running: set[int]) -> list[_Block]:
    """Return the paragraphs of a page as blocks, without running headers and footers."""
    blocks = []
    for paragraph in paragraphs:
        runs = [
            [run for run in split_runs(line) if id(run[0]) not in running] for line in paragraph
        ]
        lines = [[word for run in line for word in run] for line in runs if line]
        if lines:
            blocks.append(_Block("paragraph", lines))
    return blocks


@cache
def _load_parser() -> Any:
    from liteparse import LiteParse

    return LiteParse(
        # Recognition of text in pictures would download models.
        ocr_enabled=False,
        # It takes the header of a table that goes on for a header of the pages.
        keep_headers_footers=True,
        output_format="json",
        extract_blocks=True,
        quiet=True,
    )


def _parse(data: bytes) -> list[Any]:
    from liteparse import ParseError

    try:
        return list(_load_parser().parse(data).pages)
    except ParseError as error:
        reason = str(error).removeprefix("PDF error: ")
        if "password" in reason:
            reason = "needs a password: save it without one"
            raise UnreadableFile(reason) from error
        if "invalid PDF" in reason:
            is_cut = b"%%EOF" not in data[-2_048:]
            reason = "its end is missing, it was cut off" if is_cut else "it has no valid structure"
        raise DamagedFile(reason) from error


def _read_words(data: bytes) -> list[list[_Word]]:
    """Read the words of each page with their boxes, in the order of the file."""
    import pypdfium2

    with pypdfium2.PdfDocument(data) as document:
        return [read_page(document, number) for number in range(len(document))]


def read_page(document: Any, number: int) -> list[_Word]:
    import pypdfium2.raw as raw

    page = document[number]
    textpage = page.get_textpage()
    source = textpage.get_text_range()
    is_direct = len(source) == textpage.count_chars()
    to_view = map_to_view(page)
    box = raw.FS_RECTF()
    reference, get_box = ctypes.byref(box), raw.FPDFText_GetLooseCharBox
    corners: list[tuple[float, float, float, float]] = []
    texts, reached, font = list[tuple[str, str, str]](), 0, ""
    name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
    for found in _WORD.finditer(source):
        start, last = found.start(), found.end() - 1
        first_index, last_index = start, last
        if not is_direct:
            first_index = raw.FPDFText_GetCharIndexFromTextIndex(textpage, start)
            last_index = raw.FPDFText_GetCharIndexFromTextIndex(textpage, last)
        if not get_box(textpage, first_index, reference):
            continue
        left, bottom, right, top = box.left, box.bottom, box.right, box.top
        # The box of a hyphen that PDFium replaced may be empty.
        if last > start and get_box(textpage, last_index, reference) and box.right > box.left:
            left, right = min(left, box.left), max(right, box.right)
            bottom, top = min(bottom, box.bottom), max(top, box.top)
        gap = source[reached:start]
        is_new_line = "\n" in gap or "\r" in gap or source[max(0, reached - 1)] in "\ufffe\x02"
        if is_new_line or not texts:
            raw.FPDFText_GetFontInfo(textpage, first_index, name, len(name), flags)
            font = name.value.decode("latin-1")
        texts.append((found[0].translate(CHARACTERS), "\n" if is_new_line else gap[:1], font))
        corners.append((left, bottom, right, top))
        reached = last + 1
    page.close()
    if not texts:
        return []
    boxes = np.asarray(corners)
    points = np.concatenate([boxes[:, :2], boxes[:, 2:]]) @ to_view[:2] + to_view[2]
    one, two = points[: len(boxes)], points[len(boxes) :]
    seen = np.hstack([np.minimum(one, two), np.maximum(one, two)]).tolist()
    rows = zip(texts, seen, strict=True)
    return [_Word(text, *place, *others) for (text, *others), place in rows if text]


def map_to_view(page: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the rows x, y and 1 of the map to points from the top left, as the page is seen."""
    from pypdfium2 import PdfPosConv

    # In pixels, of which a point has a hundred.
    to_view = PdfPosConv(page, (0, 0, *(round(100 * side) for side in page.get_size()), 0))
    points = ((0, 0), (1_000, 0), (0, 1_000))
    origin, along, up = (np.array(to_view.to_bitmap(*point)) / 100 for point in points)
    return np.array([(along - origin) / 1_000, (up - origin) / 1_000, origin])


def _arrange(page: Any, words: list[_Word], running: set[int]) -> list[_Block]:
    """Put the words of a page into its blocks, without those of running headers and footers."""
    found = [block for block in page.blocks if block.bbox and block.kind not in ("rule", "figure")]
    blocks = [_Block(block.kind, level=block.level or 0) for block in found]
    words, sideways = _split_sideways(words)
    if not words:
        return [_Block("sideways", sideways)] if sideways else []
    places = np.array([word[1:5] for word in words])
    x, y = (places[:, 0] + places[:, 2]) / 2, (places[:, 1] + places[:, 3]) / 2
    sides = [(b.bbox.x, b.bbox.y, b.bbox.width, b.bbox.height) for b in found]
    left, top, width, height = np.array(sides).reshape(-1, 4).T[:, :, None]
    is_in = (x > left - 1) & (x < left + width + 1) & (y > top - 1) & (y < top + height + 1)
    area = np.where(is_in, width * height, np.inf)
    # The number of the smallest block around each word, or that of no block.
    smallest = np.vstack([area, np.full(len(words), 1e12)]).argmin(0).tolist()
    runs: list[list[Line]] = [[] for _ in (*blocks, None)]
    reached = 0
    for run in split_runs(words):
        if id(run[0]) in running:
            reached += len(run)
            continue
        numbers = smallest[reached : reached + len(run)]
        reached += len(run)
        if any(n < len(blocks) and blocks[n].kind == "table" for n in numbers):
            # A line of a table may go on in the text beside it.
            for block, part in groupby(zip(numbers, run, strict=True), lambda pair: pair[0]):
                runs[block].append([word for _, word in part])
        else:
            runs[Counter(numbers).most_common(1)[0][0]].append(run)
    for block, source, of_block in zip(blocks, found, runs, strict=False):
        block.lines = _join_runs(of_block)
        if block.kind == "table" and block.lines:
            block.cells = _read_cells(source, block.words)
            block.kind = "table" if block.cells else "paragraph"
    for block in blocks:
        if block.cells:
            _extend_table(block, blocks)
    blocks = [block for block in blocks if block.lines]
    for run in runs[-1]:
        _place_loose_line(blocks, run)
    return [*blocks, _Block("sideways", sideways)] if sideways else blocks


def _split_sideways(words: list[_Word]) -> tuple[list[_Word], list[Line]]:
    """Return the words of a page that stand upright, and the lines of words that run up or down."""
    upright, sideways, line = list[_Word](), list[Line](), list[_Word]()
    for word, after in zip(words, [*words[1:], None], strict=False):
        line.append(word)
        width = word.right - word.left
        if after and abs(after.left - word.left) + abs(after.right - word.right) < width / 4:
            continue
        longest = max(line, key=lambda word: len(word.text))
        is_tall = longest.height > 1.1 * width and len(longest.text) > 2
        if len(line) > 1 and is_tall:
            sideways.append(line)
        else:
            upright += line
        line = []
    return upright, sideways


def split_runs(words: list[_Word], share: float = 3.0) -> Iterator[Line]:
    """Split words into pieces of lines without gaps as wide as a share of their height."""
    run = [words[0]]
    for one, two in pairwise(words):
        high = max(one.height, two.height)
        is_off = abs(one.top + one.bottom - two.top - two.bottom) > high
        if two.before == "\n" or is_off or not -high < two.left - one.right < share * high:
            yield run
            run = []
        run.append(two)
    yield run


def _join_runs(runs: list[Line]) -> list[Line]:
    """Return the lines of a block: in the order of the file, or of the page where that jumps."""

    def middle(run: Line) -> float:
        return (run[0].top + run[0].bottom) / 2

    n_jumps = sum(middle(two) < middle(one) - one[0].height for one, two in pairwise(runs))
    if 5 * n_jumps > len(runs):
        runs = sorted(runs, key=middle)
    lines: list[Line] = []
    for run in runs:
        last = lines[-1] if lines else None
        if last and abs(middle(run) - middle(last)) < min(run[0].height, last[0].height) / 2:
            last.extend(run)
            if run[0].left < last[-len(run) - 1].left:
                last.sort(key=lambda word: word.left)
        else:
            lines.append(list(run))
    return lines


def _read_cells(table: Any, words: list[_Word]) -> list[list[Line]]:
    """Return the rows of a table, the header first; none for code or prose."""
    rows = [*([table.header] if table.header else ()), *(table.rows or ())]
    n_columns = max(map(len, rows), default=0)
    texts = [[" ".join(cell.text.split()) for cell in row] for row in rows]
    n_filled = sum(map(bool, (cell for row in texts for cell in row)))
    n_words = sum(len(cell.split()) for row in texts for cell in row)
    cells = [part for row in _fill_cells(rows, words) for part in _split_row(row) if any(part)]
    pairs = [(one[-1], two[0]) for row in cells for one, two in pairwise(row) if one and two]
    n_narrow = sum(two.left - one.right < MIN_GAP_SHARE * one.height for one, two in pairs)
    if (
        min(n_columns, len(rows), len(cells)) < 2
        or n_words > MAX_MEAN_WORDS * n_filled
        or n_narrow > MAX_NARROW_SHARE * len(pairs)
        or _is_fixed_pitch(words)
    ):
        return []
    below = min((cell[0].top for cell in cells[1] if cell), default=0.0)
    header = sorted((w for w in words if w.bottom - w.height / 4 < below), key=lambda w: w.left)
    n_parts, row = _place(header, _find_columns(cells[1:])) if header else (0, [])
    if not n_parts:
        return cells
    if any(one and one is two for one, two in pairwise(row)) and not _has_digits(_texts(cells[1])):
        # The row below a header with cells that span columns names the columns.
        row = [above + names for above, names in zip(row, cells.pop(1), strict=True)]
    return [row, *cells[1:]]


def _find_columns(rows: Sequence[Sequence[Line]]) -> list[tuple[float, float]]:
    """Return the left and the right of each column of a table; none if two of them overlap."""
    n_columns = max(map(len, rows))
    columns = [
        [w for row in rows for cell in row[n : n + 1] for w in cell] for n in range(n_columns)
    ]
    edges = [_edges(column) for column in columns if column]
    is_apart = all(one[1] < two[0] for one, two in pairwise(edges))
    return edges if is_apart and len(edges) == n_columns else []


def _place(line: Line, columns: Sequence[tuple[float, float]]) -> tuple[int, list[Line]]:
    """Return the number of parts of a line, and its cells; 0 if a part is in no column alone.

    A part that spans columns is in each of them.
    """
    row: list[Line] = [[] for _ in columns]
    n_parts = 0
    for part in split_runs(line, MIN_GAP_SHARE):
        left, right = _edges(part)
        inside = [n for n, column in enumerate(columns) if left < column[1] and right > column[0]]
        if not inside or any(row[n] for n in inside):
            return 0, row
        row[inside[0] : inside[-1] + 1] = [part] * len(inside)
        n_parts += 1
    return n_parts, row


def _extend_table(table: _Block, blocks: Sequence[_Block]) -> None:
    """Add the rows right above and below a table to it, and the labels to the left of its rows."""
    at = blocks.index(table)
    others = [block if block.kind == "paragraph" else _Block("") for block in blocks]
    for block, end in zip(
        others[max(at - 1, 0) : at + 2 : 2], (-1, 0) if at else (0,), strict=False
    ):
        while block.lines:
            n_parts, row = _place(block.lines[end], _find_columns(table.cells))
            if n_parts < 2:
                break
            table.cells.insert(0 if end else len(table.cells), row)
            table.lines.insert(0 if end else len(table.lines), block.lines.pop(end))
    left = _edges(table.words)[0]
    labels: list[tuple[Line, list[Line]]] = []
    for block in others[:at]:
        pairs = [(line, row) for line in block.lines for row in table.cells if _is_level(line, row)]
        gap = left - _edges(block.words)[1] if pairs else 0
        if 0 < gap < MAX_LABEL_GAP * table.words[0].height and len(pairs) == len(block.lines):
            labels += pairs
            table.lines += block.lines
            block.lines = []
    for row in table.cells if labels else ():
        row.insert(0, next((line for line, level in labels if level is row), []))


def _is_level(line: Line, row: Sequence[Line]) -> bool:
    first = next((cell[0] for cell in row if cell), line[0])
    return abs(first.top + first.bottom - line[0].top - line[0].bottom) < line[0].height / 2


def _split_row(row: list[Line]) -> list[list[Line]]:
    """Split a row whose lines are as far apart as rows, not as the lines of one cell."""
    words = sorted((word for cell in row for word in cell), key=lambda word: word.top)
    starts = [
        two.top - 0.1
        for one, two in pairwise(words)
        if two.top - one.top > MIN_ROW_PITCH * one.height > 0
    ]
    n_lines = sum(two.top - one.top > one.height / 2 for one, two in pairwise(words))
    if not starts or len(starts) < n_lines:
        return [row]
    return [
        [[word for word in cell if low <= word.top < high] for cell in row]
        for low, high in pairwise([-math.inf, *starts, math.inf])
    ]


def _fill_cells(rows: Sequence[Sequence[Any]], words: Iterable[_Word]) -> list[list[Line]]:
    """Put each word of a table into a cell: of the row that begins above it, the nearest one."""
    boxes = [[cell.bbox for cell in row] for row in rows]
    tops = [min((box.y for box in row if box), default=0.0) for row in boxes]
    columns: list[tuple[float, float]] = []
    for column in zip_longest(*boxes):
        sides = sorted((box.x, box.x + box.width) for box in column if box)
        columns.append(sides[len(sides) // 2] if sides else (math.inf, -math.inf))
    cells: list[list[Line]] = [[[] for _ in columns] for _ in rows]
    lines: list[Line] = []
    for word in sorted(words, key=lambda word: word.top + word.bottom):
        if not lines or not _is_level(lines[-1], [[word]]):
            lines.append([])
        lines[-1].append(word)
    for word in chain(*(sorted(line, key=lambda word: word.left) for line in lines)):
        x, y = (word.left + word.right) / 2, (word.top + word.bottom) / 2
        n = max(bisect_right(tops, y) - 1, 0)
        inside = [i for i, b in enumerate(boxes[n]) if b and b.x - 1 <= x <= b.x + b.width + 1]
        away = [max(left - x, x - right) for left, right in columns]
        cells[n][inside[0] if len(inside) == 1 else away.index(min(away))].append(word)
    return cells


def _is_fixed_pitch(words: Sequence[_Word]) -> bool:
    """Return whether most words have characters of one width, as those of code do."""
    long = [word for word in words if len(word.text) > 2 and word.text.isascii()]
    lettered = [word for word in long if any(map(str.isalpha, word.text))]
    # Digits have one width in most fonts.
    chosen = lettered if len(lettered) > 2 else long
    pitches = [(word.right - word.left) / len(word.text) for word in chosen]
    if len(pitches) < 2:
        return False
    pitch = sorted(pitches)[len(pitches) // 2]
    n_alike = sum(abs(other - pitch) < MAX_PITCH_DIFFERENCE * pitch for other in pitches)
    return n_alike >= MIN_CODE_SHARE * len(pitches)


def _find_running_lines(pages: Sequence[list[_Word]], heights: Sequence[float]) -> list[set[int]]:
    """Return for each page the ids of the first words of its running headers and footers.

    Those stand alone at the top or bottom of a page, and alike, but for numbers, on other pages.
    """
    found: list[dict[int, str]] = []
    for words, height in zip(pages, heights, strict=True):
        runs = list(split_runs(words)) if words else []
        outer: dict[int, str] = {}
        for is_top in (True, False):
            ordered = sorted(runs, key=lambda run: run[0].top if is_top else -run[0].bottom)
            for one in ordered[:4]:
                first = one[0]
                middle = (first.top + first.bottom) / 2
                is_edge = (
                    middle < EDGE_SHARE * height if is_top else middle > (1 - EDGE_SHARE) * height
                )
                inner = [
                    run[0].top - first.bottom if is_top else first.top - run[0].bottom
                    for run in runs
                    if abs(run[0].top - first.top) > first.height / 2
                    and (run[0].top > first.top) == is_top
                ]
                if not is_edge or (inner and min(inner) < first.height):
                    break
                text = " ".join(word.text for word in one)
                outer[id(first)] = re.sub(r"\d+|\b[ivxl]+\b", "#", text)
        found.append(outer)
    n_pages = Counter(key for outer in found for key in set(outer.values()))
    return [{first for first, key in outer.items() if n_pages[key] > 1} for outer in found]


def _place_loose_line(blocks: list[_Block], line: Line) -> None:
    """Add a line outside all blocks to the nearest one."""
    first = line[0]
    number, away = _find_nearest(blocks, line)
    if number < 0:
        blocks.append(_Block("paragraph", [line]))
        return
    block = blocks[number]
    is_after = first.top > block.lines[0][0].top
    if away < first.height and block.kind != "table":
        block.lines = _join_runs([*block.lines, line] if is_after else [line, *block.lines])
    else:
        blocks.insert(number + is_after, _Block("paragraph", [line]))


def _find_nearest(blocks: Sequence[_Block], line: Line) -> tuple[int, float]:
    """Return the number of the block that is nearest to a line, or -1, and the distance."""
    first, last = line[0], line[-1]
    nearest, shortest = -1, 0.0
    for number, block in enumerate(blocks):
        words = block.words
        top, bottom = min(w.top for w in words), max(w.bottom for w in words)
        left, right = _edges(words)
        away = max(top - first.bottom, first.top - bottom, 0)
        away += 3 * max(left - last.right, first.left - right, 0)
        if nearest < 0 or away < shortest:
            nearest, shortest = number, away
    return nearest, shortest


def _edges(words: Sequence[_Word]) -> tuple[float, float]:
    return min(word.left for word in words), max(word.right for word in words)


class _Writer:
    """The text of a document, written block by block, with the page and box of each word."""

    def __init__(self, pages: Sequence[Sequence[_Block]]) -> None:
        words = [word for blocks in pages for block in blocks for word in block.words]
        fonts = Counter[tuple[str, float]]()
        for word in words:
            fonts[word.font, round(word.height, 1)] += len(word.text)
        self._body = max(fonts, key=fonts.__getitem__, default=("", 0.0))
        # In a document of one fixed pitch, that pitch is no sign of code.
        self._has_code = not _is_fixed_pitch(words)
        pieces = (("\n" if word.before == "\n" else " ", word.text) for word in words)
        self._words = HyphenatedWords("".join(chain.from_iterable(pieces)))
        self._parts: list[str] = []
        self._length = 0
        self._boxes: list[array[int]] = []
        self._starts: list[int | None] = []
        self._last: _Block | None = None
        self._last_page = -1

    def start_page(self) -> None:
        self._boxes.append(array("i"))
        self._starts.append(None)

    def finish(self) -> "tuple[str, list[tuple[tuple[int, int], array[int]]]]":
        """Return the text, and the span and the boxes of each page."""
        if self._last and self._last.kind == "code":
            self._write("```")
        starts, end = list[int](), self._length
        for start in reversed(self._starts):
            starts.append(end if start is None else start)
            end = starts[-1]
        starts = [*starts[::-1][1:], self._length] if starts else []
        spans = list(pairwise([0, *starts]))
        return "".join(self._parts), list(zip(spans, self._boxes, strict=True))

    def add(self, block: _Block, after: _Block | None) -> None:
        """Write a block, which stands before `after` on its page. Lines of code become code."""
        if block.kind in ("table", "sideways"):
            self._add(block)
            return
        for kind, lines in self._split_lines(block):
            if kind == "heading":
                for part in self._split_heading(_Block(kind, lines, block.level), after):
                    self._add(part)
            else:
                self._add(_Block(kind, lines, block.level))

    def _split_lines(self, block: _Block) -> list[tuple[str, list[Line]]]:
        """Split the lines of a block into code, list items and others, each with its kind."""
        if self._has_code and len(block.lines) > 1 and _is_fixed_pitch(block.words):
            return [("code", block.lines)]
        is_code = [self._has_code and _is_fixed_pitch(line) for line in block.lines]
        parts: list[tuple[str, list[Line]]] = []
        for number, line in enumerate(block.lines):
            # One line of code is a part of a sentence, unless it is alone.
            code = is_code[number] and (
                any(is_code[max(number - 1, 0) : number] + is_code[number + 1 : number + 2])
                or (len(is_code) == 1 and block.kind == "code")
            )
            kind = "paragraph" if block.kind in ("code", "table") else block.kind
            is_item = bool(_BULLET.fullmatch(line[0].text)) and len(line) > 1
            kind = "code" if code else "list_item" if is_item else kind
            if (
                parts
                and (kind == "code") == (parts[-1][0] == "code")
                and not (is_item and not code)
            ):
                parts[-1][1].append(line)
            else:
                parts.append((kind, [line]))
        return parts

    def _add(self, block: _Block) -> None:
        last, self._last, page = self._last, block, len(self._boxes)
        is_next_page, self._last_page = page != self._last_page, page
        if last and block.kind == "paragraph" and self._goes_on(last, block):
            self._write_lines(block.lines, last.words[-1])
            self._last = _Block(last.kind, block.lines, last.level)
            return
        if (
            last
            and last.kind == block.kind == "table"
            and is_next_page
            and _texts(last.cells[0]) == _texts(block.cells[0])
        ):
            self._write("\n")
            self._write_rows(block.cells[1:], has_header=False)
            return
        if last:
            is_code = last.kind == block.kind == "code"
            if last.kind == "code" and not is_code:
                self._write("```\n\n")
            elif not is_code:
                self._write("\n" if last.kind == block.kind == "list_item" else "\n\n")
        match block.kind:
            case "heading":
                self._write("#" * min(max(block.level, 1), 6) + " ")
                self._write_lines(block.lines)
            case "list_item":
                first = block.lines[0][0]
                self._write("  " * min(block.level, 4))
                if _BULLET.fullmatch(first.text) and len(block.words) > 1:
                    block.lines[0][0] = first._replace(text="-")
                self._write_lines(block.lines)
            case "code":
                self._write("" if last and last.kind == "code" else "```\n")
                self._write_code(block.lines)
            case "table":
                self._write_rows(block.cells, has_header=True)
            case _:
                self._write_lines(block.lines)

    def _split_heading(self, block: _Block, after: _Block | None) -> list[_Block]:
        """Return a heading and the paragraph that liteparse joined to it, or a paragraph alone."""

        def font(line: Line) -> tuple[str, float]:
            return line[0].font, round(line[0].height, 1)

        n_lines = 1
        while n_lines < len(block.lines) and font(block.lines[n_lines]) == font(block.lines[0]):
            n_lines += 1
        heading, rest = block.lines[:n_lines], block.lines[n_lines:]
        below = rest or (after.lines if after and after.kind == "paragraph" else [])
        words = [word.text for line in heading for word in line]
        is_heading = (
            font(heading[0]) != self._body
            and len(words) <= MAX_HEADING_WORDS
            and any(c.isalpha() for word in words for c in word)
            and not words[-1].endswith((*_HYPHENS, ",", ";"))
            and not (below and below[0][0].text[0].islower())
            and not (self._has_code and _is_fixed_pitch(heading[0]))
        )
        if not is_heading:
            return [_Block("paragraph", block.lines)]
        parts = [_Block("heading", heading, block.level)]
        return [*parts, _Block("paragraph", rest)] if rest else parts

    def _goes_on(self, last: _Block, block: _Block) -> bool:
        """Return whether a paragraph is the rest of the last one."""
        if last.kind not in ("paragraph", "list_item"):
            return False
        one, two = last.words[-1], block.lines[0][0]
        if _SENTENCE_END.search(one.text) or abs(one.height - two.height) > 0.05 * one.height:
            return False
        if two.text[0].islower() or one.text.endswith(_HYPHENS):
            return True
        is_full = one.right > _edges([*last.words, *block.words])[1] - 2 * one.height
        is_indented = len(block.lines) > 1 and two.left > _edges(block.words)[0] + one.height / 2
        return is_full and len(last.words) > 5 and not is_indented

    def _write_lines(self, lines: Sequence[Line], last: _Word | None = None) -> None:
        for line in lines:
            for word in line:
                between = word.before if last else ""
                if last and word is line[0] and between != " ":
                    between = self._join(last, word)
                if between == "\b":
                    self._cut_hyphen()
                    between = ""
                self._write(" " if between.strip(" ") else between)
                self._write_word(word)
                last = word

    def _join(self, one: _Word, two: _Word) -> str:
        """Return what is between the last word of a line and the first of the next line.

        A backspace means that the hyphen of the first one only divides a word.
        """
        if not one.text.endswith(_HYPHENS):
            unspaced = _UNSPACED.match(one.text[-1]) and _UNSPACED.match(two.text[0])
            return "" if unspaced else " "
        before, after = _TOKEN.findall(one.text[:-1]), _TOKEN.match(two.text)
        if not before or not one.text[:-1].endswith(before[-1]) or not after:
            return "" if after and before else " "
        return "" if self._words.keep_hyphen(before[-1], after[0]) else "\b"

    def _cut_hyphen(self) -> None:
        self._parts[-1] = self._parts[-1][:-1]
        self._length -= 1
        boxes = next(boxes for boxes in reversed(self._boxes) if boxes)
        boxes[-5] = min(boxes[-5], self._length)

    def _write_code(self, lines: Sequence[Line]) -> None:
        words = [word for line in lines for word in line]
        left = _edges(words)[0]
        pitch = sorted((w.right - w.left) / len(w.text) for w in words)[len(words) // 2]
        for line in lines:
            reached = left
            for word in line:
                n_spaces = max(round((word.left - reached) / (pitch or 1)), 0)
                self._write(" " * min(n_spaces, 40))
                self._write_word(word)
                reached = word.right
            self._write("\n")

    def _write_rows(self, rows: Sequence[Sequence[Line]], *, has_header: bool) -> None:
        n_columns = max(map(len, rows), default=0)
        for number, row in enumerate(rows):
            self._write("|")
            for cell in row:
                self._write(" ")
                cell = [word._replace(text=word.text.replace("|", "\\|")) for word in cell]
                self._write_lines([cell])
                self._write(" |" if cell else "|")
            self._write(" |" * (n_columns - len(row)))
            if has_header and number == 0:
                self._write("\n" + "| --- " * n_columns + "|")
            if number + 1 < len(rows):
                self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._length += len(text)

    def _write_word(self, word: _Word) -> None:
        start = self._length
        if self._starts[-1] is None:
            # The first page begins with the text, also before a mark such as that of a heading.
            self._starts[-1] = start if len(self._starts) > 1 else 0
        self._write(word.text)
        place = (word.left, word.top, word.right - word.left, word.height)
        if word.right > word.left:
            self._boxes[-1].extend((start, self._length, *(round(10 * side) for side in place)))


def _texts(row: Sequence[Line]) -> list[str]:
    return [" ".join(word.text for word in cell) for cell in row]


def _has_digits(texts: Sequence[str]) -> bool:
    return any(c.isdigit() for text in texts for c in text)
