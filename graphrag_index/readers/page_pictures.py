"""Pages of PDF files and picture files as pictures: those without text, and their drawing.

What uses a file runs in the process of a `FileParser`.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np

from graphrag_index.readers.document import PageView, UnreadableFile
from graphrag_index.readers.parse_process import ChangedFile
from graphrag_index.readers.pdf import PDFIUM, read_page
from graphrag_nlp.text.languages import detect_language

# Of the picture of a page; a page has at least this share of the words that were read from it.
PICTURE_DPI, MAX_PICTURE_PIXELS, MARK_COLOUR = 110, 4_000_000, (255, 236, 110)
MIN_SAME_WORDS = 0.5
MAX_SIDE = 5_000  # pixels of a picture
MIN_SIDE = 100  # pixels; a smaller picture is an icon
# What is read; Pillow would start another program for EPS, under any suffix.
PICTURE_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP")
MAX_FRAMES = 2_000  # pages of a picture file
# A page is a picture if its pictures cover this share of it and it has at most so many characters,
# such as those of a stamp; or if it has none, and a picture or outlines of letters.
MIN_PICTURE_SHARE, MAX_STAMP_CHARACTERS = 0.5, 200
MIN_SMALL_SHARE, MIN_OUTLINES = 0.02, 200
# Characters of a sample of the text of a file, for its language.
SAMPLE_CHARACTERS = 4_000
# The first pages tell whether a file has text. Of text, letters a word and the share of signs.
N_FIRST_PAGES, MAX_NOISE_LETTERS, MAX_SIGN_SHARE = 3, 12, 0.3


class FoundPictures(NamedTuple):
    """The pages of a file that are pictures, each with a hash of what is on it."""

    hashes: dict[int, str]  # by the number of the page, from 1
    sample: str = ""  # of the text of other pages
    is_garbled: bool = False  # the fonts do not tell the characters of these pages


def find_pictures(data: bytes, suffix: str) -> FoundPictures:
    """Find the pages of a file that are pictures."""
    import pypdfium2

    if suffix != ".pdf":
        whole = blake2b(data, digest_size=16).hexdigest()
        return FoundPictures({n: f"{whole} {n}" for n in range(1, count_frames(data) + 1)})
    hashes, sample = dict[int, str](), ""
    with pypdfium2.PdfDocument(data) as document:
        text, is_garbled = _read_first_pages(document)
        # A stream is never compressed with its dictionary, so pictures are visible.
        if len(text) > MAX_STAMP_CHARACTERS and not is_garbled and b"/Image" not in data:
            return FoundPictures({})
        for number in range(len(document)):
            if found := _hash_picture(document, number, is_garbled):
                hashes[number + 1] = found
        for number in range(len(document) if hashes else 0):
            if number + 1 not in hashes and len(sample) < SAMPLE_CHARACTERS:
                sample += document[number].get_textpage().get_text_range() + "\n"
    return FoundPictures(hashes, sample[:SAMPLE_CHARACTERS], is_garbled)


def _read_first_pages(document: Any) -> tuple[str, bool]:
    """Return the text of the first pages, and whether it is noise.

    It is if the fonts have no Unicode map, and the text is in no language and has hardly a space
    or many signs. Most text of fonts without a map is good: the names of glyphs tell it.
    """
    from pypdfium2 import raw

    text, n_unknown = "", 0
    for number in range(min(len(document), N_FIRST_PAGES)):
        textpage = document[number].get_textpage()
        text += textpage.get_text_range() + "\n"
        n_unknown += sum(
            raw.FPDFText_HasUnicodeMapError(textpage, at) == 1
            for at in range(textpage.count_chars())
        )
    words = text.split()
    n_letters = sum(map(str.isalnum, text))
    n_signs = sum(map(len, words)) - n_letters
    is_noise = n_letters > MAX_NOISE_LETTERS * len(words) or n_signs > MAX_SIGN_SHARE * len(text)
    is_unknown = len(text) > MAX_STAMP_CHARACTERS and n_unknown > len(text) / 2
    return text, is_unknown and is_noise and detect_language(text) == "und"


def _hash_picture(document: Any, number: int, is_garbled: bool) -> str:
    """Return a hash of what is on a page, if it is a picture or garbled; else an empty string."""
    from pypdfium2 import raw

    page = document[number]
    textpage = page.get_textpage()
    n_characters = textpage.count_chars()
    if n_characters > MAX_STAMP_CHARACTERS and not is_garbled:
        return ""
    width, height = page.get_size()
    share, n_outlines = 0.0, 0
    seen = (round(width), round(height), textpage.get_text_range())
    whole = blake2b(repr(seen).encode("utf-8", "replace"), digest_size=16)
    for item in page.get_objects():
        left, bottom, right, top = item.get_bounds()
        place = [item.type, *(round(10 * side) for side in (left, bottom, right, top))]
        whole.update(repr(place).encode())
        if item.type == raw.FPDF_PAGEOBJ_IMAGE:
            whole.update(bytes(item.get_data()))
            share += (right - left) * (top - bottom) / (width * height)
        n_outlines += item.type == raw.FPDF_PAGEOBJ_PATH
    page.close()
    is_picture = share >= MIN_PICTURE_SHARE or (
        not n_characters and (share >= MIN_SMALL_SHARE or n_outlines >= MIN_OUTLINES)
    )
    return whole.hexdigest() if is_picture or (is_garbled and n_characters) else ""


def draw_page(data: bytes, suffix: str, view: PageView) -> bytes:
    """Draw a page as JPEG, with marks behind what is on it.

    Raises ChangedFile if the page has other words, or another picture, than the view tells.
    """
    import pypdfium2
    from PIL import Image, ImageChops, ImageDraw

    if suffix == ".pdf":
        with PDFIUM, pypdfium2.PdfDocument(data) as document:
            has_page = view.number <= len(document)
            words = read_page(document, view.number - 1) if has_page else []
            places = {(round(10 * word.left), round(10 * word.top)) for word in words}
            n_same = len(places.intersection(view.words))
            _check(has_page and n_same >= MIN_SAME_WORDS * len(view.words))
            if view.picture_hash:
                _check(view.picture_hash == _hash_picture(document, view.number - 1, True))
            page = document[view.number - 1]
            scale = _limit_scale(*page.get_size())
            image = page.render(scale=scale).to_pil().convert("RGB")
    else:
        _check(view.picture_hash in ("", find_pictures(data, suffix).hashes.get(view.number)))
        pixels, dots = open_picture(data, view.number)
        height, width = pixels.shape
        scale = min(dots, _limit_scale(width / dots, height / dots))
        size = [max(1, round(side * scale / dots)) for side in (width, height)]
        image = Image.fromarray(pixels).resize(size).convert("RGB")
    marked = Image.new("RGB", image.size, "white")
    for left, top, width, height in view.marks:
        sides = (left, top, left + width, top + height)
        ImageDraw.Draw(marked).rectangle([side * scale / 10 for side in sides], fill=MARK_COLOUR)
    stream = BytesIO()
    ImageChops.multiply(image, marked).save(stream, "JPEG", quality=85)
    return stream.getvalue()


def _check(is_same: bool) -> None:
    if not is_same:
        raise ChangedFile("has changed since it was read")


def _limit_scale(width: float, height: float) -> float:
    """Return the pixels a point of the picture of a page of so many points."""
    return min(PICTURE_DPI / 72, math.sqrt(MAX_PICTURE_PIXELS / (width * height)))


def render_page(data: bytes, suffix: str, number: int, dpi: int) -> tuple[Any, float]:
    """Return a page as an array of grey pixels, at most `MAX_SIDE` long, and pixels a point.

    A page of a PDF has `dpi` pixels an inch, if that is not too long.
    """
    import pypdfium2

    if suffix != ".pdf":
        return open_picture(data, number)
    with pypdfium2.PdfDocument(data) as document:
        page = document[number - 1]
        scale = min(dpi / 72, MAX_SIDE / max(page.get_size()))
        bitmap = page.render(scale=scale, grayscale=True, may_draw_forms=False, draw_annots=False)
        return bitmap.to_numpy().copy(), scale


def open_picture(data: bytes, number: int, mode: str = "L") -> tuple[Any, float]:
    """Return a picture as an array of pixels, grey by default, and its pixels a point."""
    from PIL import Image, ImageOps

    with open_image(data) as picture:
        picture.seek(number - 1)
        dpi = float(picture.info.get("dpi", (0, 0))[0])
        upright = ImageOps.exif_transpose(picture)
        # What is transparent is white.
        if "A" in upright.getbands() or "transparency" in upright.info:
            upright = upright.convert("RGBA")
            upright = Image.alpha_composite(Image.new("RGBA", upright.size, "white"), upright)
        shown = upright.convert(mode)
    factor = min(1.0, MAX_SIDE / max(shown.size))
    if factor < 1:
        shown = shown.resize([max(1, round(side * factor)) for side in shown.size])
    # Cameras and programs write 72 or 96 without meaning it.
    dpi = dpi * factor if dpi > 96 else max(shown.size) / 11.7
    return np.asarray(shown), dpi / 72


def count_frames(data: bytes) -> int:
    """Return the number of pages of a picture file; 0 for an icon."""
    with open_image(data) as picture:
        n_frames = min(getattr(picture, "n_frames", 1), MAX_FRAMES)
        return n_frames if min(picture.size) >= MIN_SIDE else 0


@contextmanager
def open_image(data: bytes) -> Iterator[Any]:
    """Open a picture file. Raises UnreadableFile if it is damaged."""
    from PIL import Image

    try:
        with Image.open(BytesIO(data), formats=PICTURE_FORMATS) as picture:
            yield picture
    except (OSError, ValueError) as error:  # also if it is no picture
        raise UnreadableFile("is a damaged picture, or no picture") from error
