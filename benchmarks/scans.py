"""Word recall and time of the recognition of text in scanned pages (OCR), by each engine.

    python benchmarks/scans.py [--pages 10] [--engine tesseract|rapidocr]

Pages of the program's own documentation are rendered at 200 to 300 dpi, turned by 0.5 to 1.5
degrees, blurred and covered with noise, written to a PDF of pictures, and read by the readers.
"""

import argparse
import random
import re
import resource
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as raw
from PIL import Image, ImageFilter

from graphrag_index.llm.ledger import Ledger
from graphrag_index.readers import Document, read_file, recognition
from graphrag_index.readers.input_files import InputFile
from graphrag_index.readers.parse_process import close_parser
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.step import Silent

ROOT = Path(__file__).parents[1]
FONTS = (b"Times-Roman", b"Helvetica", b"Courier")
LINES_PER_PAGE, CHARACTERS_PER_LINE = 44, 78


def make_texts(n: int) -> list[list[str]]:
    """Return the lines of pages of plain prose."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    prose = re.sub(r"```.*?```", " ", "\n".join(texts), flags=re.DOTALL)
    prose = re.sub(r"`[^`\n]*`|^\|.*$|https?:\S+|[#*_<>\[\]()|]", " ", prose, flags=re.MULTILINE)
    words = [word for word in prose.split() if word.isascii()]
    lines, line = list[str](), ""
    for word in words:
        if len(line) + len(word) > CHARACTERS_PER_LINE:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    step = len(lines) // n
    return [lines[start : start + LINES_PER_PAGE] for start in range(0, step * n, step)]


def draw_page(lines: list[str], number: int) -> Image.Image:
    """Return a page as a scanner would give it."""
    chance = random.Random(number)
    document = pdfium.PdfDocument.new()
    page = document.new_page(595, 842)
    for row, line in enumerate(lines):
        item = raw.FPDFPageObj_NewTextObj(document, FONTS[number % 3], 10)
        text = (line + "\0").encode("utf-16-le")
        raw.FPDFText_SetText(item, pdfium.raw.cast(text, pdfium.raw.FPDF_WIDESTRING))
        raw.FPDFPageObj_Transform(item, 1, 0, 0, 1, 60, 780 - 16 * row)
        raw.FPDFPage_InsertObject(page, item)
    page.gen_content()
    dpi = chance.choice((200, 250, 300))
    image = page.render(scale=dpi / 72, grayscale=True).to_pil()
    angle = chance.choice((-1, 1)) * chance.uniform(0.5, 1.5)
    image = image.rotate(angle, Image.Resampling.BICUBIC, fillcolor=255)
    image = image.filter(ImageFilter.GaussianBlur(0.6))
    pixels = np.asarray(image).astype(float)
    noise = np.random.default_rng(number)
    pixels += noise.normal(-10, 25, pixels.shape)
    pixels[noise.random(pixels.shape) < 0.002] = 0  # specks
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    image.info["dpi"] = (dpi, dpi)
    return image


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--engine", choices=("tesseract", "rapidocr"))
    options = parser.parse_args()
    if options.engine == "rapidocr":
        recognition.shutil.which = lambda name: None  # as if tesseract were not installed
    texts = make_texts(options.pages)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, lines in enumerate(texts):
            path, image = Path(folder) / f"{number}.pdf", draw_page(lines, number)
            image.save(path, resolution=image.info["dpi"][0])
            files.append(InputFile(path.name, path, path.stat().st_size, type=".pdf"))
        ledger, settings = Ledger(None), LoadDocuments(ocr="en")
        reader = recognition.PageReader(lambda: ledger, print)
        wall = time.perf_counter()
        reader.read(files, settings, Silent())
        wall = time.perf_counter() - wall
        close_parser()
        cpu = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        n_found = n_words = 0
        for file, lines in zip(files, texts, strict=True):
            read = next(read_file(file.path, file.name, settings, reader.find_reader))
            found = re.findall(r"\w+", read.text if isinstance(read, Document) else "")
            wanted = Counter(re.findall(r"\w+", " ".join(lines)))
            hits = (wanted & Counter(found)).total()
            print(f"{file.name}: {hits / wanted.total():.1%} {reader.explain(file.name)}")
            n_found, n_words = n_found + hits, n_words + wanted.total()
    print(f"{recognition.find_engine()}: {n_found / n_words:.1%} of {n_words:,} words,", end=" ")
    print(
        f"{cpu / len(files):.1f} CPU s a page, {wall / len(files):.1f} s on {options.pages} pages"
    )


if __name__ == "__main__":
    main()
