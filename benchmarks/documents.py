"""Measure the reading of PDF files, and prove each citation: python benchmarks/documents.py FOLDER.

FOLDER has at least 14 PDF files, among them some in two columns, with tables, and in Chinese or
Japanese, such as the documentation that packages of R and of Debian ship. `pdftotext` of
poppler-utils tells the order of lines in them. Tables and damaged files are made here. Time is that
of the CPU: a busy machine needs more.
"""

import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from html import unescape
from itertools import pairwise
from pathlib import Path

import polars as pl
import pypdfium2

from graphrag_index.readers.document import PageText, UnreadableFile
from graphrag_index.readers.parse_process import FileParser
from graphrag_index.readers.pdf import CHARACTERS, _parse, read_pdf
from graphrag_server.routes.documents import mark_lines
from tests.fixtures.pdf import Lines, make_pdf

SEED = 7
MIN_FILES, QUOTATIONS_PER_FILE = 14, 4  # quotations of each kind
TWO_COLUMN_SHARE = 0.5  # of the pages of a file


def main() -> None:
    files = {file: file.read_bytes() for file in sorted(Path(sys.argv[1]).glob("*.pdf"))}
    if len(files) < MIN_FILES:
        sys.exit(f"{sys.argv[1]} has {len(files)} PDF files: {MIN_FILES} are needed.")
    start = time.process_time()
    read = {file: read_pdf(data) for file, data in files.items()}
    middle = time.process_time()
    for data in files.values():
        _parse(data)
    n_pages = sum(len(pages) for _, pages in read.values())
    with_boxes = 1000 * (middle - start) / n_pages
    without = 1000 * (time.process_time() - middle) / n_pages
    print(f"{len(files)} files, {n_pages} pages")
    texts = "".join(text for text, _ in read.values())
    kept = total = 0
    for file, (text, _) in read.items():
        if (order := measure_order(file, text)) is not None:
            kept, total = kept + order[0], total + order[1]
            print(f"  {file.name}: {order[0]} of {order[1]}")
    print(f"lines in the order of two columns: {kept} of {total}")
    tables = list(make_tables())
    made = {f"table {n}": make_pdf(pages, size=10) for n, (_, pages) in enumerate(tables)}
    cited = measure_citations({file.name: data for file, data in files.items()} | made)
    measure_damage(list(files))
    rows = [
        ("CPU ms a page without boxes, by liteparse alone", without, "<=", 8),
        ("CPU ms a page with boxes", with_boxes, "<=", 15),
        ("lines of two-column pages in order, %", 100 * kept / max(total, 1), ">=", 92),
        ("made tables right, of 24", sum(is_right(*table) for table in tables), ">=", 22),
        ("citations on their text, %", cited, ">=", 98),
        (
            "(cid: and ligature characters",
            len(re.findall(r"\(cid:|[\ufb00-\ufb06]", texts)),
            "<=",
            0,
        ),
    ]
    for name, value, sign, bar in rows:
        is_met = value <= bar if sign == "<=" else value >= bar
        print(f"{'ok    ' if is_met else 'MISSED'} {name}: {value:.4g} ({sign} {bar})")


def squeeze(text: str) -> str:
    """Return the letters and digits of a text: lines differ in hyphens, spaces and marks."""
    return re.sub(r"[\W_]", "", text)


def measure_order(file: Path, text: str) -> tuple[int, int] | None:
    """Return (kept, all) of the pairs of lines of a column; None if the file has one column."""
    command = ["pdftotext", "-bbox-layout", str(file), "-"]
    layout = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    pairs, n_two, pages = [], 0, layout.split("<page ")[1:]
    for page in pages:
        width, height = (float(v) for v in re.findall(r'(?:width|height)="([\d.]+)"', page)[:2])
        columns: dict[bool, list[tuple[float, str]]] = {False: [], True: []}
        for line in re.findall(r"<line (.*?)</line>", page, re.DOTALL):
            left, top, right = (
                float(v) for v in re.findall(r'[xy]M(?:in|ax)="([\d.]+)"', line)[:3]
            )
            words = squeeze(unescape("".join(re.findall(r">([^<]+)</word>", line))))
            is_edge = not 0.08 * height < top < 0.92 * height
            if words and not is_edge and (right < 0.53 * width or left > 0.47 * width):
                columns[left > 0.47 * width].append((top, words))
        if min(map(len, columns.values())) > 10:
            n_two += 1
            for lines in columns.values():
                pairs += [(one[1], two[1]) for one, two in pairwise(sorted(lines))]
    if n_two < TWO_COLUMN_SHARE * len(pages):
        return None
    whole = squeeze(text)
    pairs = [
        (one, two)
        for one, two in pairs
        if min(len(one), len(two)) > 8 and one[-12:] in whole and two[:12] in whole
    ]
    return sum(one[-12:] + two[:12] in whole for one, two in pairs), len(pairs)


Table = list[list[str]]


def make_tables() -> list[tuple[Table, list[Lines]]]:
    """Make tables in eight styles: their rows, the header first, and the lines of their pages."""
    chance = random.Random(SEED)
    tables = []
    for number in range(24):
        style, n_rows = number % 8, chance.randrange(6, 20)
        header = ["Pump", "Flow", "Hall", "Checked by"][: 3 + number % 2]
        rows = [
            [
                f"P-{chance.randrange(1000):03}",
                f"{chance.uniform(1, 900):.1f}",
                f"Hall {chance.choice('ABC')}",
                chance.choice(["Anna Berg", "Li Wei", "Tom Crean"]),
            ][: len(header)]
            for _ in range(n_rows * (3 if style == 5 else 1))
        ]
        if style == 6:
            rows = [
                [cell if n == 0 or chance.random() > 0.2 else "" for n, cell in enumerate(row)]
                for row in rows
            ]
        pitch, step = [(16, 110), (20, 130), (14, 90), (18, 120)][style % 4]
        size = 32 if style == 5 else len(rows)
        pages: list[Lines] = []
        for first in range(0, len(rows), size):
            lines = [] if first else [(72, 712, f"Report {number} names pumps of the harbour.")]
            for r, row in enumerate([header, *rows[first : first + size]]):
                lines += [
                    (72 + step * c, 680 - pitch * r, cell) for c, cell in enumerate(row) if cell
                ]
            pages.append(lines)
        tables.append(([header, *rows], pages))
    return tables


def is_right(rows: Table, pages: list[Lines]) -> bool:
    """Return whether the header, and nine of ten rows, are read as they are."""
    text, _ = read_pdf(make_pdf(pages, size=10))
    cells = [
        [c.strip() for c in line.strip("|").split("|")] for line in text.split("\n") if "|" in line
    ]
    header, *others = [[*row, *[""] * (len(rows[0]) - len(row))] for row in cells] or [[]]
    return header == rows[0] and sum(row in others for row in rows[1:]) >= 0.9 * (len(rows) - 1)


def read_under(
    document: pypdfium2.PdfDocument,
    page: PageText,
    marks: Sequence[tuple[int, int, int, int]],
) -> str:
    """Return the characters of a page whose middle lies in a mark, mark by mark."""
    if not marks:
        return ""
    textpage = document[page.number - 1].get_textpage()
    places = [textpage.get_charbox(n, loose=True) for n in range(textpage.count_chars())]
    found = []
    for left, top, width, height in marks:
        for n, (x0, y0, x1, y1) in enumerate(places):
            x, y = 5 * (x0 + x1), 10 * page.height - 5 * (y0 + y1)
            if 0 <= x - left <= width and 0 <= y - top <= height:
                found.append(textpage.get_text_range(n, 1))
    return "".join(found)


def choose_quotations(text: str, chance: random.Random, n: int) -> list[tuple[int, int]]:
    """Return spans of sentences, sentences in Chinese or Japanese, and rows of tables."""
    spans: list[tuple[int, int]] = []
    for pattern in (
        r"(?<=[.] )[A-Z][^|`#\n]{40,200}?[.](?=\s)",
        r"(?<=[。])[^。|`#\n\w]?[\u3040-\u9fff][^。|`#\n]{8,80}。",
        r"(?<=\n\| )(?!---)[^`\n]{20,200}(?= \|\n)",
    ):
        found = [one.span() for one in re.finditer(pattern, text)]
        spans += chance.sample(found, min(n, len(found)))
    return spans


def measure_citations(files: dict[str, bytes]) -> float:
    """Compare quotations with what PDFium finds under the rectangles that the server marks."""
    chance = random.Random(SEED)
    wrong, kinds = [], Counter[str]()
    for name, data in files.items():
        text, pages = read_pdf(data)
        with pypdfium2.PdfDocument(data) as document:
            for start, end in choose_quotations(text, chance, QUOTATIONS_PER_FILE):
                quotation, under = text[start:end], ""
                for page in pages:
                    sides = ("start_char", "end_char", "left", "top", "width", "height")
                    words = pl.DataFrame(page.word_boxes, sides).filter(
                        pl.col("start_char") < end, pl.col("end_char") > start
                    )
                    under += read_under(document, page, mark_lines(words, start, end))
                is_row, is_ascii = " | " in quotation, quotation.isascii()
                kind = "rows" if is_row else "sentences" if is_ascii else "sentences, not ASCII"
                kinds[kind] += 1
                if strip(under.translate(CHARACTERS)) != strip(quotation):
                    wrong.append((name, quotation, under))
    n, n_right = kinds.total(), kinds.total() - len(wrong)
    print(f"citations whose rectangles hold their text: {n_right} of {n}, {dict(kinds)}")
    for one in wrong[:20]:
        print("  ", *one, sep="\n    ")
    return 100 * n_right / max(n, 1)


def strip(text: str) -> str:
    """Return a text without spaces and hyphens, and without the marks of a table."""
    return re.sub(r"[\s\u00ad\u2010|-]|\\(?=\|)", "", text)


def measure_damage(files: list[Path]) -> None:
    """Read 100 damaged files, in the process with limits."""
    chance, parser = random.Random(SEED), FileParser()
    small = [file for file in files if file.stat().st_size < 400_000]
    named = whole = 0
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.pdf")
        for number in range(100):
            content = bytearray(chance.choice(small).read_bytes())
            if number % 2:
                del content[chance.randrange(len(content)) :]
            for _ in range(chance.randrange(1, 300) if content else 0):
                content[chance.randrange(len(content))] = chance.randrange(256)
            path.write_bytes(content)
            start = time.perf_counter()
            try:
                parser.parse(path, ".pdf")
                whole += 1
            except UnreadableFile:
                named += 1
            slowest = max(slowest, time.perf_counter() - start)
    parser.close()
    print(f"100 damaged files: {named} named with a reason, {whole} read, slowest {slowest:.1f} s")


if __name__ == "__main__":
    main()
