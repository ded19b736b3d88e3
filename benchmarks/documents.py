"""Measure the reading of PDF files: python benchmarks/documents.py FOLDER.

FOLDER has PDF files; `pdftotext` of poppler-utils tells the order of lines in them. Tables and
damaged files are made here.
"""

import random
import re
import subprocess
import sys
import tempfile
import time
from html import unescape
from itertools import pairwise
from pathlib import Path

import pypdfium2

from graphrag_index.readers.document import PageText, UnreadableFile
from graphrag_index.readers.parse_process import FileParser
from graphrag_index.readers.pdf import CHARACTERS, read_pdf
from tests.fixtures.pdf import Lines, make_pdf

SEED = 7
TWO_COLUMN_SHARE = 0.5  # of the pages of a file


def main() -> None:
    files = sorted(Path(sys.argv[1]).glob("*.pdf"))
    read = {}
    start = time.process_time()
    for file in files:
        read[file] = read_pdf(file.read_bytes())
    n_pages = sum(len(pages) for _, pages in read.values())
    cost = 1000 * (time.process_time() - start) / n_pages
    print(f"{len(files)} files, {n_pages} pages: {cost:.1f} CPU ms a page with boxes")
    texts = "".join(text for text, _ in read.values())
    print("(cid:", texts.count("(cid:"), "ligatures", len(re.findall("[\ufb00-\ufb06]", texts)))
    kept = total = 0
    for file, (text, _) in read.items():
        if (order := measure_order(file, text)) is not None:
            kept, total = kept + order[0], total + order[1]
            print(f"  {file.name}: {order[0]} of {order[1]}")
    print(f"order of lines in two columns: {kept} of {total}, {kept / max(total, 1):.1%}")
    right = sum(is_right(rows, pages) for rows, pages in make_tables())
    print(f"tables right: {right} of 24")
    measure_spans(read)
    measure_damage(files)


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


def boxes_of(page: PageText, start: int, end: int) -> list[tuple[float, float, float, float]]:
    return [
        (left / 10, top / 10, (left + width) / 10, (top + height) / 10)
        for first, last, left, top, width, height in page.word_boxes.tolist()
        if first < end and last > start
    ]


def read_under(
    document: pypdfium2.PdfDocument,
    page: PageText,
    boxes: list[tuple[float, float, float, float]],
) -> str:
    """Return the characters of a page whose middle lies in a box, box by box."""
    textpage = document[page.number - 1].get_textpage()
    places = [textpage.get_charbox(n, loose=True) for n in range(textpage.count_chars())]
    found = []
    for left, top, right, bottom in boxes:
        for n, (x0, y0, x1, y1) in enumerate(places):
            x, y = (x0 + x1) / 2, page.height - (y0 + y1) / 2
            if left <= x <= right and top <= y <= bottom:
                found.append(textpage.get_text_range(n, 1))
    return "".join(found)


def measure_spans(read: dict[Path, tuple[str, list[PageText]]]) -> None:
    """Compare 200 sentences with what PDFium finds under their boxes."""
    chance = random.Random(SEED)
    n_right, wrong = 0, []
    files = [file for file, (text, _) in read.items() if len(text) > 5_000]
    sentences = {
        f: list(re.finditer(r"(?<=[.] )[A-Z][^|`#\n]{40,200}?[.](?=\s)", read[f][0])) for f in files
    }
    for _ in range(200):
        file = chance.choice([f for f in files if sentences[f]])
        span = chance.choice(sentences[file]).span()
        text, pages = read[file]
        under = ""
        with pypdfium2.PdfDocument(file) as document:
            for page in pages:
                if page.start < span[1] and page.end > span[0]:
                    under += read_under(document, page, boxes_of(page, *span))
        if squeeze(under.translate(CHARACTERS)) == squeeze(text[slice(*span)]):
            n_right += 1
        else:
            wrong.append((file.name, text[slice(*span)], under))
    print(f"spans whose boxes hold their text: {n_right} of 200")
    for one in wrong[:14]:
        print("  ", *one, sep="\n    ")


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
