"""Readers of text, Markdown, HTML, PDF and Office files: one document per file.

The extras `documents` and `formats` install the packages that `pdf.py` and `office.py` need.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, groupby
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from graphrag_index.readers.content import DAMAGED_ARCHIVE, WITH_PASSWORD, identify_content
from graphrag_index.readers.document import (
    NO_TEXT,
    NO_TEXT_IN_PICTURE,
    Document,
    ReadFailure,
    RecognizedPage,
    Record,
    UnreadableFile,
    as_one_line,
    format_date,
    format_metadata,
    get_field,
)
from graphrag_index.readers.encodings import read_text
from graphrag_index.readers.parse_process import PARSERS, PICTURE_SUFFIXES, DamagedFile, parse_file
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_nlp.text.languages import read_lists, word_set
from graphrag_nlp.text.sentences import find_headings
from graphrag_nlp.text.tables import MAX_WORDS_OF_CELL

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
OFFICE_SUFFIXES = tuple(name for name in PARSERS if name.startswith("."))
# A DOCTYPE with an internal subset in [...], at whose first ">" the HTML parser would stop.
_DOCTYPE_WITH_SUBSET = re.compile(
    r"""<!DOCTYPE(?:[^"'\[>]|"[^"]*"|'[^']*')*\[
    (?:<!--.*?-->|<\?.*?\?>|"[^"]*"|'[^']*'|[^\]"'])*+
    \]\s*>""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_CHARSET = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)

_TAG_LISTS = read_lists("graphrag_index/readers/data/html")
_VOID_TAGS, _HIDDEN_TAGS = word_set(_TAG_LISTS["void"]), word_set(_TAG_LISTS["hidden"])
_EDGE_TAGS, _MAIN_TAGS = word_set(_TAG_LISTS["edges"]), word_set(_TAG_LISTS["content"])
_BLOCKS = word_set(_TAG_LISTS["blocks"])
_CLOSED_BY_TAG = {tag: word_set(closed) for tag, closed in _TAG_LISTS["implied_end"].items()}
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_HIDING_STYLE = re.compile(r"(?i)(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b")
NEEDS_PASSWORD = "needs a password: save it without one"
_FENCE = "```"
# Most columns or rows that a cell is taken to span, whatever it says.
_MAX_SPAN = 1_000


def read_text_file(
    path: Path, name: str, settings: LoadDocuments
) -> Iterator[Document | ReadFailure]:
    yield make_document(read_text(path, name, settings.encoding), "", name, settings)


def read_markdown(
    path: Path, name: str, settings: LoadDocuments
) -> Iterator[Document | ReadFailure]:
    """Read a Markdown file; its front matter is removed from the text."""
    front_matter, text = split_front_matter(read_text(path, name, settings.encoding))
    title = (
        as_one_line(get_field(front_matter, settings.title_column)) if settings.title_column else ""
    )
    yield make_document(text, title or find_first_heading(text), name, settings, front_matter)


def read_html(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | ReadFailure]:
    page = Page(read_text(path, name, settings.encoding, _CHARSET))
    yield make_document(page.text, page.title, name, settings)


def read_office(
    path: Path,
    name: str,
    settings: LoadDocuments,
    recognized: Mapping[int, RecognizedPage] | None = None,
) -> Iterator[Document | ReadFailure]:
    """Read a PDF, office file, book or picture as Markdown, if its extra is installed.

    `recognized` has the words of its pages that are pictures.
    """
    suffix = path.suffix.lower()
    if suffix not in OFFICE_SUFFIXES:
        suffix = identify_content(path).suffix
    try:
        text, pages = parse_file(path, suffix, recognized)
    except DamagedFile as error:
        raise UnreadableFile(_describe_office_error(str(error), suffix, path)) from error
    except UnreadableFile as error:
        if suffix not in PICTURE_SUFFIXES:
            raise
        # A folder may have many pictures, and no document is missed with one that is damaged.
        yield ReadFailure(str(error), is_skipped=True)
        return
    document = make_document(text, "", name, settings)
    if isinstance(document, ReadFailure):
        # kreuzberg finds no tables in a workbook that it cannot decrypt.
        if identify_content(path) == WITH_PASSWORD:
            raise UnreadableFile(NEEDS_PASSWORD)
        is_picture = suffix in PICTURE_SUFFIXES
        yield ReadFailure(NO_TEXT_IN_PICTURE, True) if is_picture else document
    else:
        yield replace(document, pages=pages)


def _describe_office_error(message: str, suffix: str, path: Path) -> str:
    """Tell a file with a password, an empty one, one of another type and a damaged one apart."""
    content = identify_content(path)
    if content == WITH_PASSWORD:
        return NEEDS_PASSWORD
    if content.suffix == suffix or (content == DAMAGED_ARCHIVE and suffix != ".pdf"):
        return f"is a damaged or incomplete {suffix} file: {message}"
    return "is empty" if not path.stat().st_size else f"is not a {suffix} file but {content.noun}"


def get_parser_versions() -> str:
    """Return the versions of the packages of `documents` and `formats` that are installed."""
    found = []
    for package in ("liteparse", "pypdfium2", "mammoth", "openpyxl", "python-pptx", "kreuzberg"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def make_document(
    text: str, title: str, name: str, settings: LoadDocuments, record: Record | None = None
) -> Document | ReadFailure:
    """Make one document of a whole file; the title defaults to the file name."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return ReadFailure(NO_TEXT)
    values = record or {}
    return Document(
        text=text,
        title=title or PurePosixPath(name).name,
        creation_date=format_date(values, settings),
        metadata=format_metadata(values, settings),
        record=record or None,
    )


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Split a text into its YAML front matter and the rest; keep invalid front matter as text."""
    match = _FRONT_MATTER.match(text)
    try:
        values = yaml.safe_load(match[1]) if match else None
    except (yaml.YAMLError, ValueError):
        # Catch ValueError too: YAML raises it for an invalid date.
        return {}, text
    if match is None or not isinstance(values, dict):
        return {}, text
    return {str(key): value for key, value in values.items()}, text[match.end() :]


def find_first_heading(markdown: str) -> str:
    """Return the first level-1 heading; empty if there is none."""
    titles = (as_one_line(h.words) for h in find_headings(markdown) if h.depth == 1)
    return next(filter(None, titles), "")


class Page(HTMLParser):
    """Parser that extracts the text and the title of an HTML page.

    An empty line separates paragraphs. List items begin with ``- ``. The cells of a table row
    become one line. Navigation, page headers and footers, scripts, controls and hidden elements
    are left out. Preformatted text becomes a fenced block, so its lines are never headings.
    """

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []  # tags of the open elements
        self.hides: list[bool] = []  # whether each open element hides its content
        self.hidden = 0  # number of open elements that hide their content
        self.content = 0  # number of open elements of the main content
        self.preformatted = 0  # number of open `pre` elements
        self.lines: list[list[str]] = [[]]  # lines of the current block, as pieces of text
        self.prefix = ""  # prefix of the current block, such as "# "
        self.kind = ""  # kind of the current block: "item" or ""
        # Current row of each open table: a list of cells; a cell is a list of blocks.
        self.rows: list[list[list[str]]] = []
        self.spans: list[list[tuple[int, int]]] = []  # columns and rows that those cells span
        self.room = len(source)  # characters that cells may still be repeated with
        self.is_wide = False  # whether a cell of the last row spans columns
        # Cells of each open table that reach below their row, by column: rows to come, the cell.
        self.reaching: list[dict[int, tuple[int, list[str]]]] = []
        self.n_tables = 0  # number of tables begun
        self.n_header_cells = 0  # number of `th` elements of the current row
        self.header: list[str] = []  # cells of the header that the last row ended with
        # (text, kind), kind: "item", "row" with the number of a table, or "".
        self.blocks: list[tuple[str, str]] = []
        self.page_title: list[str] = []
        self.heading = ""
        try:
            self.feed(_DOCTYPE_WITH_SUBSET.sub("", source, count=1))
            self.close()
        except AssertionError as error:
            # The parser raises AssertionError for a malformed declaration.
            raise UnreadableFile(f"is not valid HTML: {error}") from error
        self._end_block()
        while self.rows:
            self._end_table()

    @property
    def title(self) -> str:
        return " ".join("".join(self.page_title).split()) or self.heading

    @property
    def text(self) -> str:
        # Join list items, and table rows, without empty lines between them.
        groups = groupby(enumerate(self.blocks), lambda block: block[1][1] or block[0])
        return "\n\n".join("\n".join(text for _, (text, _) in group) for _, group in groups)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self.open and self.open[-1] in _CLOSED_BY_TAG.get(tag, ()):
            self._close_element()
        if tag == "br":
            self.lines.append([])
        elif tag in _BLOCKS or tag == "li" or tag in _HEADINGS or tag in ("table", "tr", "caption"):
            self._end_block_at(tag)
        if tag in _VOID_TAGS:
            return
        self.open.append(tag)
        self.hides.append(self._hides_content(tag, dict(attrs)))
        self.hidden += self.hides[-1]
        self.content += tag in _MAIN_TAGS
        self.preformatted += tag == "pre"
        if self.hidden:
            return
        if tag in _HEADINGS:
            self.prefix = _HEADINGS[tag]
        elif tag == "li":
            lists = sum(element in ("ul", "ol") for element in self.open)
            self.prefix, self.kind = "  " * max(lists - 1, 0) + "- ", "item"
        elif tag == "table":
            self.rows.append([])
            self.spans.append([])
            self.reaching.append({})
            self.n_tables += 1
        elif tag == "tr" and self.rows:
            self._end_table_row()
        elif tag in ("td", "th") and self.rows:
            self._end_block()
            self.rows[-1].append([])
            self.spans[-1].append((_read_span(attrs, "colspan"), _read_span(attrs, "rowspan")))
            self.n_header_cells += tag == "th"

    def handle_endtag(self, tag: str) -> None:
        # Close the open elements inside the element too.
        while tag in self.open:
            if self._close_element() == tag:
                return

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "title" and "svg" not in self.open:
            self.page_title.append(data)
        elif not self.hidden:
            self.lines[-1].append(data)

    def _hides_content(self, tag: str, attributes: dict[str, str | None]) -> bool:
        if tag in _HIDDEN_TAGS or (tag in _EDGE_TAGS and not self.content):
            return True
        # Ignore that the whole page is hidden: a script shows the page later.
        if tag in ("html", "body"):
            return False
        # Keep content that is hidden "until-found": the search of a browser finds it.
        is_hidden = (attributes.get("hidden", "until-found") or "").lower() != "until-found"
        return is_hidden or bool(_HIDING_STYLE.search(attributes.get("style") or ""))

    def _close_element(self) -> str:
        """Close the innermost open element and return its tag."""
        element, hides = self.open.pop(), self.hides.pop()
        if element in _BLOCKS or element in _HEADINGS or element in ("li", "td", "th", "caption"):
            self._end_block_at(element)
        was_hidden = self.hidden
        self.content -= element in _MAIN_TAGS
        self.hidden -= hides
        self.preformatted -= element == "pre"
        if was_hidden:
            return element
        if element in _HEADINGS or element == "li":
            self.prefix = self.kind = ""
        elif element == "tr" and self.rows:
            self._end_table_row()
        elif element == "table" and self.rows:
            self._end_table()
        return element

    def _end_block_at(self, tag: str) -> None:
        """End the current block at an element; inside a `pre` element, end only the line."""
        if not self.preformatted or tag == "pre":
            self._end_block()
        elif self.lines[-1] and not self.lines[-1][-1].endswith("\n"):
            self.lines.append([])

    def _end_block(self) -> None:
        lines = ["".join(line) for line in self.lines]
        self.lines = [[]]
        if self.preformatted:
            text = "\n".join(lines).strip("\n")
            if not text.strip():
                return
            in_line = self.rows and "\n" not in text
            if not in_line and not self.prefix.startswith("#"):
                # Indent a code fence inside the text, which would end the block.
                text = "\n".join([_FENCE, re.sub(rf"^(?={_FENCE})", " ", text, flags=re.M), _FENCE])
                self.prefix = ""
        else:
            lines = [" ".join(line.split()) for line in lines]
            text = "\n".join(line for line in lines if line)
        if not text:
            return
        if self.prefix.startswith("#"):
            text = " ".join(text.split())
            if self.prefix == "# ":
                self.heading = self.heading or text
        self._add_block(self.prefix + text, self.kind, self.rows)
        self.prefix = ""

    def _add_block(self, text: str, kind: str, rows: Sequence[list[list[str]]]) -> None:
        """Add a block to the last cell of the innermost table, or to the page outside tables."""
        if rows and rows[-1]:
            rows[-1][-1].append(text)
        else:
            self.blocks.append((text, kind))

    def _end_table_row(self) -> None:
        """End the row of the innermost table, and add its text to the enclosing cell or page."""
        self._end_block()
        if not self.rows[-1]:
            return
        is_header, self.n_header_cells = self.n_header_cells == len(self.rows[-1]), 0
        is_layout = any(len(cell) > 1 or "".join(cell).startswith(_FENCE) for cell in self.rows[-1])
        cells, outside, kind = self._take_row(), self.rows[:-1], f"row {self.n_tables}"
        if is_layout:
            # Treat a row with several blocks or code in a cell as page layout, not as data.
            for block in chain.from_iterable(cells):
                self._add_block(block, "", outside)
            return
        texts = [" ".join(" ".join(cell).split()) for cell in cells]
        if not any(texts):
            return
        is_first = not self.blocks or self.blocks[-1][1] != kind
        if is_header and not is_first and not outside and len(self.header) == len(texts):
            texts = join_headers(self.header, texts)
            del self.blocks[-2:]
            is_first = True
        self._add_block(" | ".join(texts), kind, outside)
        is_header = is_header and is_first and not outside and len(texts) > 1
        self.header = texts if is_header else []
        if is_header:
            self.blocks.append((" | ".join(["---"] * len(texts)), kind))

    def _take_row(self) -> list[list[str]]:
        """Take the cells of the current row. A cell of data is repeated wherever it spans."""
        cells, self.rows[-1] = self.rows[-1], []
        spans, self.spans[-1] = self.spans[-1], []
        self.is_wide = any(n_columns > 1 for n_columns, _ in spans)
        reaching, self.reaching[-1] = self.reaching[-1], {}
        row: list[list[str]] = []

        def add(cell: list[str], n_rows: int) -> None:
            if n_rows > 1:
                self.reaching[-1][len(row)] = (n_rows - 1, cell)
            row.append(cell)

        def repeat(cell: list[str], n_rows: int) -> None:
            self.room -= len("".join(cell)) + 1
            add(cell if self.room > 0 else [], n_rows if self.room > 0 else 1)

        def add_from_above() -> None:
            while len(row) in reaching:
                n_rows, cell = reaching[len(row)]
                repeat(cell, n_rows)

        for cell, (n_columns, n_rows) in zip(cells, spans, strict=True):
            add_from_above()
            # A text is no value of a table, and a cell alone is a title of the rows below it.
            is_value = len(cell) == 1 and len(cell[0].split()) <= MAX_WORDS_OF_CELL
            is_value = is_value and not cell[0].startswith(_FENCE)
            n_rows = n_rows if is_value else 1
            add(cell, n_rows)
            for _ in range(1, n_columns if len(cells) > 1 or len(row) > 1 else 1):
                if self.room > 0:
                    repeat(cell if is_value else [], n_rows)
        add_from_above()
        return row

    def _end_table(self) -> None:
        self._end_table_row()
        for stack in (self.rows, self.spans, self.reaching):
            stack.pop()


def join_headers(above: Sequence[str], below: Sequence[str]) -> list[str]:
    """Join two rows of a header: "2024" above "Costs" names the column "2024 Costs"."""
    pairs = zip(above, below, strict=True)
    return [" ".join(dict.fromkeys(filter(None, pair))) for pair in pairs]


def _read_span(attributes: list[tuple[str, str | None]], name: str) -> int:
    """Return how many columns or rows a cell spans; 1 for what is no number of them."""
    value = dict(attributes).get(name) or ""
    return min(max(1, int(value)), _MAX_SPAN) if value.isascii() and value.isdigit() else 1
