"""Figures of PDF files, slides and picture files: pictures, and drawings above a caption.

`find_figures` and `draw_figure` run in the process of a `FileParser`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag_index.readers.page_pictures import (
    MIN_SIDE,
    PICTURE_FORMATS,
    count_frames,
    open_picture,
)
from graphrag_index.readers.pdf import PDFIUM, map_to_view, read_page, split_runs
from graphrag_nlp.text.languages import read_lists, word_set

# Pixels of the longer side, and bytes of a picture that is sent.
MAX_SENT_SIDE, MAX_SENT_BYTES = 2_048, 1_000_000
JPEG_SIDES = (MAX_SENT_SIDE, 1_434, 1_024, 717, 512)  # of a JPEG, if the PNG has too many bytes
# Pixels a point of what is drawn: 200 an inch.
DRAWN_SCALE = 200 / 72
# A smaller share of a page is an icon or a rule, a larger one a background or a scan.
MIN_SHARE, MAX_SHARE = 0.02, 0.9
# Lengths in points: from a drawing to its caption, between two of its parts, and to a label.
MAX_TO_CAPTION, MAX_GAP_DOWN, MAX_GAP_ACROSS, MAX_LABEL_GAP = 72.0, 72.0, 12.0, 30.0
# A line of more words is prose, not a label; so many of these may be above a caption.
MAX_LABEL_WORDS, MAX_LINES_BETWEEN = 6, 2
MAX_PARTS = 50_000  # of a page that are looked at
_WORDS = "|".join(
    re.escape(word)
    for word in sorted(word_set(read_lists("graphrag_index/readers/data/figures")["words"]))
)
# The name and the number of a figure, such as "Fig. 2a", and what follows a number of a caption.
FIGURE_NAME = re.compile(rf"(?<!\w)(?i:{_WORDS})\.?\s?(\d{{1,3}}(?:[.\-–]\d{{1,3}}){{0,2}})(?!\d)")
_POINT = 12_700  # in the units of Office
_CAPTION_MARK = re.compile(r"[a-z]?\s*[.:：．|–—-]|\n|\Z")

Boxes = npt.NDArray[np.float64]  # one row a box: left, top, right, bottom in points, as it is seen


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure on a page; lengths are tenths of points, those of the page points.

    `name` is that of its caption, such as "Figure 2", and `caption` the first line of it.
    """

    page: int
    label: str
    left: int
    top: int
    width: int
    height: int
    page_width: float
    page_height: float
    scale: float  # pixels a point at which it is drawn
    name: str = ""
    caption: str = ""
    content_hash: str = ""  # of a picture on a slide: several may lie on one place


def name_place(label: str) -> str:
    """Return the words for the page or slide of a figure."""
    return label if label.startswith("slide ") else f"page {label}"


def is_caption(text: str, name: re.Match[str]) -> bool:
    """Return whether a text that names a figure goes on as a caption, not as a sentence."""
    after = text[name.end() : name.end() + 2]
    is_title = after[:1].isspace() and not after[1:].islower()
    return is_title or _CAPTION_MARK.match(text, name.end()) is not None


def find_figures(data: bytes, suffix: str, max_figures: int) -> tuple[list[Figure], int]:
    """Return the first figures of a file in the order of its pages, and the number of all."""
    if suffix not in (".pdf", ".pptx"):
        return _find_in_picture(data, max_figures)
    is_pdf = suffix == ".pdf"
    found = list(_find_in_pdf(data)) if is_pdf else [figure for figure, _ in _find_in_slides(data)]
    return found[:max_figures], len(found)


def draw_figure(data: bytes, suffix: str, figure: Figure) -> tuple[bytes, str, int, int, str]:
    """Draw a figure, on white, with its longer side at most `MAX_SENT_SIDE`.

    Return a PNG or JPEG, its type, its width and height in pixels, and a hash of the pixels.
    """
    from PIL import Image

    if suffix == ".pdf":
        picture = _draw_of_pdf(data, figure)
    elif suffix == ".pptx":
        content = next(content for one, content in _find_in_slides(data) if one == figure)
        picture = Image.fromarray(open_picture(content, 1, "RGB")[0])
    else:
        picture = Image.fromarray(open_picture(data, figure.page, "RGB")[0])
    picture.thumbnail((MAX_SENT_SIDE, MAX_SENT_SIDE))
    digest = blake2b(repr(picture.size).encode() + picture.tobytes(), digest_size=16).hexdigest()
    for kind, side in (("PNG", MAX_SENT_SIDE), *(("JPEG", side) for side in JPEG_SIDES)):
        picture.thumbnail((side, side))
        picture.save(stream := BytesIO(), kind, quality=85)
        if stream.tell() <= MAX_SENT_BYTES:
            break
    return stream.getvalue(), f"image/{kind.lower()}", *picture.size, digest


def _draw_of_pdf(data: bytes, figure: Figure) -> Any:
    import pypdfium2

    left, top = figure.left / 10, figure.top / 10
    right = figure.page_width - left - figure.width / 10
    bottom = figure.page_height - top - figure.height / 10
    with PDFIUM, pypdfium2.PdfDocument(data) as document:
        page = document[figure.page - 1]
        crop = tuple(max(side, 0.0) for side in (left, bottom, right, top))
        bitmap = page.render(scale=figure.scale, crop=crop, may_draw_forms=False)
        return bitmap.to_pil().convert("RGB")


def _find_in_picture(data: bytes, max_figures: int) -> tuple[list[Figure], int]:
    n_frames, found = count_frames(data), list[Figure]()
    for number in range(1, min(n_frames, max_figures) + 1):
        pixels, scale = open_picture(data, number)
        height, width = (side / scale for side in pixels.shape)
        place = (0, 0, round(10 * width), round(10 * height))
        found.append(Figure(number, str(number), *place, width, height, scale))
    return found, n_frames


def _find_in_slides(data: bytes) -> Iterator[tuple[Figure, bytes]]:
    """Yield the pictures of slides that are figures, with their files."""
    import pptx
    from PIL import Image

    def list_pictures(shapes: Any) -> Iterator[tuple[Any, bytes]]:
        for shape in shapes:
            if hasattr(shape, "shapes"):
                yield from list_pictures(shape.shapes)
            elif embedded := shape._element.xpath(".//a:blip/@r:embed")[:1]:
                # A link may be broken, or lead out of the file.
                with suppress(KeyError, ValueError):
                    yield shape, shape.part.related_part(embedded[0]).blob

    show = pptx.Presentation(BytesIO(data))
    width, height = show.slide_width / _POINT, show.slide_height / _POINT
    slides = [list(list_pictures(slide.shapes)) for slide in show.slides]
    # A picture on several slides is a logo or a background.
    n_slides = Counter(chain.from_iterable({content for _, content in slide} for slide in slides))
    for number, slide in enumerate(slides, 1):
        for shape, content in slide:
            sides = (shape.left, shape.top, shape.width, shape.height)
            left, top, across, down = ((side or 0) / _POINT for side in sides)
            share = across * down / (width * height)
            if n_slides[content] > 1 or not MIN_SHARE <= share <= MAX_SHARE:
                continue
            try:
                with Image.open(BytesIO(content), formats=PICTURE_FORMATS) as picture:
                    picture.load()
            except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
                continue  # damaged, or drawings that only Windows draws
            if min(picture.size) >= MIN_SIDE:
                size = (round(10 * across), round(10 * down), width, height)
                place = (round(10 * left), round(10 * top), *size)
                key = blake2b(content, digest_size=16).hexdigest()
                yield Figure(number, f"slide {number}", *place, 1.0, content_hash=key), content


def _find_in_pdf(data: bytes) -> Iterator[Figure]:
    import pypdfium2

    with PDFIUM, pypdfium2.PdfDocument(data) as document:
        pages = [_PageParts(document, number) for number in range(len(document))]
    # A picture on several pages is a logo or a background.
    n_pages = Counter(chain.from_iterable({key for key, *_ in page.pictures} for page in pages))
    for page in pages:
        yield from page.find_figures({key for key, n in n_pages.items() if n > 1})


class _PageParts:
    """The drawings and the lines of text of a page of a PDF."""

    def __init__(self, document: Any, number: int) -> None:
        import pypdfium2
        import pypdfium2.raw as raw

        page = document[number]
        self.number = number + 1
        self.size: tuple[float, float] = page.get_size()
        self.label = document.get_page_label(number) or str(number + 1)
        boxes = list[tuple[float, ...]]()
        # Of each picture: a hash of what it holds, its place in `boxes` and its sides in pixels.
        self.pictures = list[tuple[str, int, int, int]]()
        for item in islice(page.get_objects(max_depth=1), MAX_PARTS):
            # What has no size has no bounds.
            with suppress(pypdfium2.PdfiumError):
                if item.type != raw.FPDF_PAGEOBJ_TEXT:
                    boxes.append(item.get_bounds())
                if item.type == raw.FPDF_PAGEOBJ_IMAGE:
                    key = blake2b(bytes(item.get_data()), digest_size=16).hexdigest()
                    self.pictures.append((key, len(boxes) - 1, *item.get_px_size()))
        corners = np.array(boxes).reshape(-1, 4)
        to_view = map_to_view(page)
        ends = [corners[:, sides] @ to_view[:2] + to_view[2] for sides in ([0, 1], [2, 3])]
        limit = [*self.size, *self.size]
        self.boxes = np.clip(np.hstack([np.minimum(*ends), np.maximum(*ends)]), 0, limit)
        page.close()
        words = read_page(document, number)
        runs = list(split_runs(words)) if words else []
        # The lines of the page: their texts, their boxes, and their numbers of words.
        self.texts = ["".join(word.before + word.text for word in run).strip() for run in runs]
        places = (np.array([word[1:5] for word in run]) for run in runs)
        sides = [[*place[:, :2].min(0), *place[:, 2:].max(0)] for place in places]
        self.lines: Boxes = np.array(sides).reshape(-1, 4)
        self.n_words = np.array([len(run) for run in runs], int)

    def find_figures(self, repeated: set[str]) -> list[Figure]:
        """Return the figures from the top, but no pictures that are `repeated` on other pages."""
        found, regions = list[Figure](), list[Boxes]()
        for caption, text in zip(self.lines, self.texts, strict=True):
            match = FIGURE_NAME.match(text)
            if match is None or not is_caption(text, match):
                continue
            region = self._find_region(caption)
            if region is not None:
                regions.append(region)
                found.append(self._make_figure(region, DRAWN_SCALE, match[0].strip(), text))
        for key, at, width, height in self.pictures:
            box = self.boxes[at]
            x, y = (box[:2] + box[2:]) / 2
            is_known = any(r[0] < x < r[2] and r[1] < y < r[3] for r in regions)
            if key in repeated or is_known or min(width, height) < MIN_SIDE or not self._fits(box):
                continue
            # As fine as the picture is, whichever way it is turned.
            scale = max(width, height) / float(max(box[2:] - box[:2]))
            regions.append(box)
            found.append(self._make_figure(box, scale))
        return sorted(found, key=lambda figure: (figure.top, figure.left))

    def _make_figure(self, box: Boxes, scale: float, name: str = "", text: str = "") -> Figure:
        left, top = (round(10 * side) for side in box[:2])
        width, height = (round(10 * side) for side in box[2:] - box[:2])
        scale = min(scale, 10 * MAX_SENT_SIDE / max(width, height))
        place = (left, top, width, height, *self.size)
        return Figure(self.number, self.label, *place, scale, name, text)

    def _fits(self, box: Boxes) -> bool:
        return bool(MIN_SHARE <= np.prod(box[2:] - box[:2]) / np.prod(self.size) <= MAX_SHARE)

    def _find_region(self, caption: Boxes) -> Boxes | None:
        """Return the box of what is drawn above a caption, with its labels; None if nothing is.

        It grows from the part that is nearest to the caption over those that are near to it.
        """
        left, top, right, _ = caption
        parts = self.boxes[self.boxes[:, 3] < top + 6]
        is_near = (parts[:, 2] > left) & (parts[:, 0] < right)
        is_near &= top - parts[:, 3] < MAX_TO_CAPTION
        if not is_near.any():
            return None
        region = parts[is_near][parts[is_near][:, 3].argmax()].copy()
        prose = self.lines[(self.lines[:, 3] <= top + 2) & (self.n_words > MAX_LABEL_WORDS)]
        prose = prose[(prose[:, 0] < right) & (prose[:, 2] > left)]
        if (prose[:, 1] > region[3] - 2).sum() > MAX_LINES_BETWEEN:
            return None
        highest = prose[prose[:, 3] <= region[1] + 2, 3].max(initial=0.0)
        is_label = (self.lines[:, 3] <= top + 2) & (self.n_words <= MAX_LABEL_WORDS)
        labels = self.lines[is_label & (self.lines[:, 1] >= highest)]
        parts = parts[parts[:, 1] >= highest - 2]
        before = None
        while before is None or (region != before).any():
            before = region.copy()
            for boxes, across, down in (
                (parts, MAX_GAP_ACROSS, MAX_GAP_DOWN),
                (labels, MAX_GAP_ACROSS, MAX_LABEL_GAP),
            ):
                is_near = (boxes[:, 0] < region[2] + across) & (boxes[:, 2] > region[0] - across)
                # A figure may have several panels side by side.
                is_near |= (boxes[:, 0] < right) & (boxes[:, 2] > left) & (boxes is parts)
                is_near &= (boxes[:, 1] < region[3] + down) & (boxes[:, 3] > region[1] - down)
                region[:2] = boxes[is_near, :2].min(0, initial=np.inf).clip(max=region[:2])
                region[2:] = boxes[is_near, 2:].max(0, initial=0).clip(min=region[2:])
        region[3] = max(region[3], top - 1)
        return region if self._fits(region) else None
