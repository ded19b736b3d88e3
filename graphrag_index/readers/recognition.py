"""Recognition of text (OCR) in pages that are pictures: of scanned PDFs, and picture files.

The program `tesseract` reads them, or RapidOCR, which the extra `ocr` installs. Pages are read by
processes with limits of time and memory. The words of a page are kept in the ledger by a hash of
the page, so that it is read once.
"""

import json
import logging
import math
import os
import re
import shutil
import signal
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import replace
from functools import cache, lru_cache, partial
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_index.errors import SettingsError, join_names
from graphrag_index.readers import (
    READERS,
    Reader,
    find_reader,
    find_type,
    read_file,
)
from graphrag_index.readers.document import (
    Document,
    PageText,
    RecognizedPage,
    RecognizedWord,
    UnreadableFile,
)
from graphrag_index.readers.input_files import SCAN_SUFFIXES, InputFile, open_inside
from graphrag_index.readers.parse_process import PICTURE_SUFFIXES, FileParser, call_parser
from graphrag_index.readers.text_html_pdf_office import read_office
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.storage.atomic import digest_file
from graphrag_nlp.text.languages import detect_language

if TYPE_CHECKING:
    from graphrag_index.llm.ledger import Ledger
    from graphrag_index.step import Progress

logger = logging.getLogger(__name__)

TESSERACT, RAPIDOCR = "tesseract", "rapidocr"
INSTALL_HINT = 'install the program tesseract, or pip install "graphrag-index[ocr]"'
# Pixels an inch of the pictures that are read, and seconds of a core for a page of text.
RESOLUTIONS = {TESSERACT: 300, RAPIDOCR: 200}
SECONDS_PER_PAGE = {TESSERACT: 3.0, RAPIDOCR: 8.0}
# Limit of the time for one page, in seconds; a page is read at most three times.
MAX_PAGE_SECONDS = 120.0
# Limits in seconds for the version of tesseract, and for the start of a process and the picture.
_TIMEOUT_OF_QUESTIONS, _START_SECONDS = 20, 60
# Maximum size of a file that is read for the language of the pictures beside it.
MAX_SAMPLE_BYTES = 200_000
_STEP = "load_documents"
# Codes of tesseract for languages that are detected; "da" is Norwegian too.
_CODES = dict(
    pair.split(":")
    for pair in """en:eng de:deu pl:pol fr:fra es:spa it:ita pt:por nl:nld sv:swe da:dan cs:ces
    ru:rus el:ell tr:tur hu:hun fi:fin ro:ron id:ind ja:jpn ko:kor zh:chi_sim ar:ara he:heb hi:hin
    bn:ben pa:pan gu:guj ta:tam te:tel kn:kan ml:mal si:sin th:tha lo:lao my:mya ka:kat am:amh
    km:khm""".split()
)
# Languages that the models of RapidOCR read.
_BY_RAPIDOCR = tuple("eng deu pol fra spa ita por nld swe dan ces fin ron ind jpn chi_sim".split())
# Scripts that tesseract detects, and languages to try for them, the most common first.
_SCRIPTS = dict(
    pair.split(":")
    for pair in """Cyrillic:rus,ukr,bul,srp,bel,mkd Greek:ell Japanese:jpn Han:chi_sim,chi_tra
    Hangul:kor Korean:kor Arabic:ara,fas,urd Hebrew:heb Devanagari:hin,mar,nep Thai:tha
    Georgian:kat Armenian:hye""".split()
)


class Engine(NamedTuple):
    """A program that recognizes text."""

    name: str
    version: str
    command: str = ""
    languages: tuple[str, ...] = _BY_RAPIDOCR  # codes of tesseract

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def find_engine() -> Engine | None:
    """Return tesseract if it is on the PATH and works, else RapidOCR; None without both."""
    if command := shutil.which(TESSERACT):
        try:
            return _ask_tesseract(command, os.stat(command).st_mtime_ns)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            logger.warning("%s does not work: %s", command, error)
    try:
        found = version(RAPIDOCR)
    except PackageNotFoundError:
        return None
    return Engine(RAPIDOCR, found) if found.startswith("3.") else None


@lru_cache(maxsize=4)
def _ask_tesseract(command: str, changed: int) -> Engine:
    def ask(option: str) -> list[str]:
        done = subprocess.run(
            [command, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_OF_QUESTIONS,
            check=True,
        )
        return (done.stdout or done.stderr).decode("utf-8", "replace").splitlines()

    found = re.match(r"tesseract v?([\d.]+)", "".join(ask("--version")[:1]))
    languages = {line.strip() for line in ask("--list-langs")[1:]} - {"osd", ""}
    if not found or not languages:
        raise ValueError("it names no version or no language")
    return Engine(TESSERACT, found[1], command, tuple(sorted(languages)))


def describe_engine() -> str:
    """Describe the engine and its languages, which decide the text of pages that are pictures."""
    engine = find_engine()
    return f"{engine.name} {'+'.join(engine.languages)}" if engine else ""


class _File(NamedTuple):
    """A file with pages that are pictures, or a copy of such a file in an archive or a message."""

    key: tuple[str, str]  # its name, and a digest of its content
    place: int  # number of the input file that it is, or is in
    path: Path
    suffix: str
    hashes: Mapping[int, str]  # by the number of the page
    sample: str
    is_garbled: bool

    @property
    def name(self) -> str:
        return self.key[0]


class _Page(NamedTuple):
    """A page to recognize: its request in the ledger has the key."""

    file: _File
    number: int
    key: str
    languages: str  # codes of tesseract joined by +; "auto" if they are not known


class PageReader:
    """Reader of the pages that are pictures, of all files of a folder.

    `open_ledger` returns the ledger that keeps the words. `announce` gets a line before pages are
    read. With `only_known`, only words in the ledger are used, and nothing is written.
    """

    def __init__(
        self,
        open_ledger: Callable[[], "Ledger"],
        announce: Callable[[str], None] = lambda line: None,
        *,
        only_known: bool = False,
        max_seconds: float = MAX_PAGE_SECONDS,
    ) -> None:
        self._open_ledger, self._announce = open_ledger, announce
        self._only_known, self._max_seconds = only_known, max_seconds
        self._files: dict[str, _File] = {}  # by the digest
        self._pages: dict[tuple[str, str], list[_Page]] = defaultdict(list)
        self._unread: dict[str, str] = {}  # reason why pages of a file are not read
        self.n_missing = 0  # pages that are to be read
        self.seconds = 0.0  # that these pages take, about

    def read(
        self, files: Sequence[InputFile], settings: LoadDocuments, progress: "Progress"
    ) -> None:
        """Read all pages that are pictures and not in the ledger."""
        with TemporaryDirectory(prefix="graphrag-index-") as folder:
            if found := list(_find_pictures(files, settings, Path(folder))):
                self._read(found, files, settings, progress)

    def _read(
        self,
        found: Sequence[_File],
        files: Sequence[InputFile],
        settings: LoadDocuments,
        progress: "Progress",
    ) -> None:
        self._files = {file.key[1]: file for file in found}
        is_off = settings.ocr == "none"
        engine = None if is_off else find_engine()
        if engine is None:
            reason = "load_documents.ocr is none" if is_off else INSTALL_HINT
            self._unread = {file.name: f"{_describe_pages(file)}: {reason}" for file in found}
            if not self._only_known and not is_off:
                n_pages = sum(len(file.hashes) for file in found)
                logger.warning("%s: %s, and run again.", _count_pictures(n_pages), reason)
            return
        languages = _Languages(settings, engine, files)
        for file in found:
            of_file = languages.find(file)
            self._pages[file.key] = [
                _Page(file, number, _make_key(picture, engine, of_file), of_file)
                for number, picture in file.hashes.items()
            ]
        missing = self._find_missing()
        cores = _count_cores()
        self.n_missing = len(missing)
        self.seconds = self.n_missing * SECONDS_PER_PAGE[engine.name] / cores
        if missing and not self._only_known:
            told = describe_pictures(self.n_missing, self.seconds)
            self._announce(f"{told} ({engine}).")
            progress.start(len(missing), "pages")
            with closing(_Pool(cores, engine, self._max_seconds)) as pool:
                self._recognize(missing, pool, languages, progress)
        if self._pages and not self._only_known:
            self._open_ledger().mark_used(page.key for page in self._list_pages())
            languages.warn()
        self._note_failures()

    def find_reader(self, path: Path) -> Reader:
        """Return the reader of a file, with the words of its pages that are pictures."""
        has_pages = bool(self._files) and find_type(path).suffix in SCAN_SUFFIXES
        file = self._files.get(digest_file(path)) if has_pages else None
        words = self._find_words(file) if file else {}
        return partial(read_office, recognized=words) if words else find_reader(path)

    def _find_words(self, file: _File) -> dict[int, RecognizedPage]:
        # The text of a garbled page is left out even if nothing better is known.
        garbled = file.hashes if file.is_garbled else ()
        pages = {number: RecognizedPage("", 0, 0, ()) for number in garbled}
        for page in self._pages.get(file.key, ()):
            entry = self._open_ledger().find_entry(page.key)
            if entry is not None and entry.state == "done":
                found = RecognizedPage(**json.loads(entry.reply))
                found = replace(found, picture_hash=file.hashes[page.number])
                pages[page.number] = found
        return pages

    def explain(self, name: str) -> str:
        """Return why pages of a file are not read; empty if all are."""
        return self._unread.get(name, "")

    def _list_pages(self) -> Iterator[_Page]:
        return (page for pages in self._pages.values() for page in pages)

    def _find_missing(self) -> list[_Page]:
        """Return one page of each content that the ledger neither has nor could read."""
        missing = dict[str, _Page]()
        for page in self._list_pages():
            entry = self._open_ledger().find_entry(page.key)
            if entry is None or entry.state == "open":
                missing.setdefault(page.key, page)
        return list(missing.values())

    def _recognize(
        self, missing: list[_Page], pool: "_Pool", languages: "_Languages", progress: "Progress"
    ) -> None:
        """Recognize pages; the first of a file without text tells the language of the others."""
        unclear = {page.file.key: page for page in reversed(missing) if page.languages == "auto"}
        found = {
            page.key: code
            for key, text in list(self._run(unclear.values(), pool, progress))
            if (code := languages.choose(detect_language(text)))
            for page in self._pages[key]
        }
        first = {page.key for page in unclear.values()}
        rest = (page for page in missing if page.key not in first)
        known = (p._replace(languages=found.get(p.key, p.languages)) for p in rest)
        list(self._run(known, pool, progress))

    def _run(
        self, pages: Iterable[_Page], pool: "_Pool", progress: "Progress"
    ) -> Iterator[tuple[tuple[str, str], str]]:
        """Recognize pages in parallel and keep their words; yield keys of files and texts."""
        ledger = self._open_ledger()
        for page, found in pool.recognize(pages):
            label = f"{page.file.name}, page {page.number}"
            ledger.record_sent(page.key, _STEP, label, pool.engine.name)
            if isinstance(found, UnreadableFile):
                ledger.record_failure(page.key, str(found))
            else:
                reply = {name: getattr(found, name) for name in RecognizedPage.__slots__}
                ledger.record_replies({page.key: json.dumps(reply, ensure_ascii=False)})
                words = (w[0] for lines in found.paragraphs for line in lines for w in line)
                yield page.file.key, " ".join(words)
            progress.advance()

    def _note_failures(self) -> None:
        for (name, _), pages in self._pages.items():
            failed = []
            for page in pages:
                entry = self._open_ledger().find_entry(page.key)
                if entry is None or entry.state != "done":
                    reason = entry.reason if entry else "a picture that is not read yet"
                    failed.append(f"page {page.number}: {reason}")
            if failed:
                more = f" and {len(failed) - 1:,} more" * (len(failed) > 1)
                self._unread[name] = f"{failed[0]}{more}"


def describe_pictures(n: int, seconds: float) -> str:
    """Say how many pages are to be read, and how long: "9 pages are pictures: about 9 s"."""
    time = f"{max(seconds, 1):.0f} s" if seconds < 60 else f"{seconds / 60:,.0f} min"
    return f"{_count_pictures(n)}: about {time}"


def _count_pictures(n: int) -> str:
    return "1 page is a picture" if n == 1 else f"{n:,} pages are pictures"


def _describe_pages(file: _File) -> str:
    if file.suffix in PICTURE_SUFFIXES:
        return "is a picture"
    numbers = join_names([str(number) for number in file.hashes], 5)
    if file.is_garbled:
        return f"its fonts do not tell the characters of its text (pages {numbers})"
    return f"{_count_pictures(len(file.hashes))} ({numbers})"


def _make_key(page_hash: str, engine: Engine, languages: str) -> str:
    parts = f"{page_hash} {engine.name} {languages} {RESOLUTIONS[engine.name]}"
    return blake2b(parts.encode(), digest_size=16).hexdigest()


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _find_pictures(
    files: Iterable[InputFile], settings: LoadDocuments, folder: Path
) -> Iterator[_File]:
    """Yield the files with pages that are pictures. A file that cannot be read has none.

    Those in archives and messages are copied to a folder.
    """
    for place, file in enumerate(files):
        for name, path in open_inside(file, settings, SCAN_SUFFIXES, folder):
            suffix = find_type(path).suffix
            try:
                hashes, *others = call_parser(path, "pictures", suffix)
                if hashes:
                    key = name, digest_file(path)
                    yield _File(key, place, path, suffix, hashes, *others)
            except (UnreadableFile, OSError):
                continue


class _Languages:
    """The choice of the languages of each file."""

    def __init__(self, settings: LoadDocuments, engine: Engine, files: Sequence[InputFile]) -> None:
        self._engine, self._files, self._settings = engine, files, settings
        self._set = "" if settings.ocr == "auto" else _check_languages(settings.ocr, engine)
        self._detect = cache(self._detect_of_file)
        self._unavailable: set[str] = set()

    def find(self, file: _File) -> str:
        """Return the languages of a file, by its own text or that of the nearest files."""
        if self._set:
            return self._set
        code = detect_language(file.sample) if file.sample.strip() else "und"
        if code == "und":
            code = self._ask_neighbours(file)
        return self.choose(code) or ("auto" if self._engine.name == TESSERACT else "")

    def choose(self, code: str) -> str:
        """Return the code of a detected language; empty if the engine does not have or need it."""
        found = _CODES.get(code, "")
        if found and found not in self._engine.languages:
            self._unavailable.add(code)
            return ""
        return found if self._engine.name == TESSERACT else ""

    def warn(self) -> None:
        """Name the languages of pages that the engine does not have."""
        for code in sorted(self._unavailable):
            pack = f"tesseract-ocr-{_CODES[code].replace('_', '-')}"
            logger.warning(
                "Pages that are pictures may be in the language %s, which %s does not have here: "
                "install %s.",
                code,
                self._engine.name,
                pack if self._engine.name == TESSERACT else f"tesseract with {pack}",
            )

    def _ask_neighbours(self, file: _File) -> str:
        """Return the language of the message that a file is in, or of one of 20 files near it."""
        near = range(max(file.place - 10, 0), min(file.place + 11, len(self._files)))
        ordered = sorted(near, key=lambda n: abs(n - file.place))
        return next((code for n in ordered if (code := self._detect(n)) != "und"), "und")

    def _detect_of_file(self, place: int) -> str:
        """Return the language of a small file that can have no pictures; "und" for others."""
        file = self._files[place]
        is_parsed = READERS.get(file.type) is read_office
        if file.problem or file.size > MAX_SAMPLE_BYTES or is_parsed:
            return "und"
        first = next(read_file(file.path, file.name, self._settings), None)
        return detect_language(first.text) if isinstance(first, Document) else "und"


def _check_languages(setting: str, engine: Engine) -> str:
    """Return languages of the settings as codes of the engine; raise SettingsError for others."""
    if engine.name == RAPIDOCR:
        return ""
    codes = [_CODES.get(code, code) for code in setting.split("+")]
    for code in codes:
        if code not in engine.languages:
            raise SettingsError(
                f"load_documents.ocr: tesseract has no language {code} here, only "
                f"{join_names(engine.languages, 8)}: install tesseract-ocr-{code}, or change it."
            )
    return "+".join(codes)


class _Pool:
    """Processes that recognize pages in parallel, each with one thread."""

    def __init__(self, n: int, engine: Engine, max_seconds: float) -> None:
        self.engine, self._max_seconds = engine, max_seconds
        # A process ends its tesseract by itself; it is ended only if it hangs in PDFium.
        self._all = [FileParser(_START_SECONDS + 3 * max_seconds) for _ in range(n)]
        self._free = list(self._all)

    def recognize(
        self, pages: Iterable[_Page]
    ) -> Iterator[tuple[_Page, RecognizedPage | UnreadableFile]]:
        """Yield pages as they are done, each with its words or with the reason for none."""
        with ThreadPoolExecutor(len(self._all)) as threads:
            started = {threads.submit(self._recognize, page): page for page in pages}
            try:
                for future in as_completed(started):
                    yield started[future], future.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _recognize(self, page: _Page) -> RecognizedPage | UnreadableFile:
        parser, file = self._free.pop(), page.file
        task = (file.suffix, page.number, self.engine, page.languages, self._max_seconds)
        try:
            found: RecognizedPage = parser.call(file.path, "words of a page", *task)
            return found
        except UnreadableFile as error:
            return error
        except OSError as error:
            return UnreadableFile(f"cannot be read: {error.strerror or error}")
        finally:
            self._free.append(parser)

    def close(self) -> None:
        for parser in self._all:
            parser.close()


# What follows runs in the process of a `FileParser`.


def read_picture(
    data: bytes, recognized: Mapping[int, RecognizedPage] | None = None
) -> tuple[str, list[PageText]]:
    """Return the text of a picture file, if it was recognized. Raises UnreadableFile."""
    if recognized:
        from graphrag_index.readers.pdf import read_pictures

        return read_pictures(recognized)
    from graphrag_index.readers.page_pictures import open_image

    with open_image(data):
        return "", []


def recognize_page(
    data: bytes, suffix: str, number: int, engine: Engine, languages: str, max_seconds: float
) -> RecognizedPage:
    """Recognize the words of a page. Raises UnreadableFile with the reason."""
    from graphrag_index.readers.page_pictures import render_page

    pixels, scale = render_page(data, suffix, number, RESOLUTIONS[engine.name])
    label = str(engine)
    if engine.name == TESSERACT:
        used, paragraphs = _read_by_tesseract(pixels, scale, engine, languages, max_seconds)
        label += f" ({used})"
    else:
        paragraphs = _read_by_rapidocr(pixels, scale)
    height, width = (round(side / scale, 1) for side in pixels.shape)
    return RecognizedPage(label, width, height, paragraphs)


Paragraphs = list[list[list[RecognizedWord]]]


def _place_word(text: str, scale: float, *sides: float) -> RecognizedWord:
    left, top, right, bottom = (round(float(side) / scale, 1) for side in sides)
    return text.strip(), left, top, right, bottom


def _read_by_tesseract(
    pixels: Any, scale: float, engine: Engine, languages: str, max_seconds: float
) -> tuple[str, Paragraphs]:
    """Return the languages that were used, and the words."""
    picture = b"P5 %d %d 255\n" % (pixels.shape[1], pixels.shape[0]) + pixels.tobytes()
    dpi = str(round(min(max(72 * scale, 70), 2_400)))

    def read(languages: str) -> tuple[str, Paragraphs]:
        options = ("-l", languages, "--dpi", dpi, "-c", "tessedit_create_tsv=1")
        found = _run_tesseract(engine.command, picture, options, max_seconds)
        return languages, _parse_tsv(found, scale)

    if languages != "auto":
        return read(languages)
    installed = engine.languages
    first = "eng" if "eng" in installed else installed[0]
    _, paragraphs = read(first)
    text = " ".join(word[0] for lines in paragraphs for line in lines for word in line)
    code = detect_language(text)
    better = _CODES.get(code, "")
    if code == "und" and text:
        try:
            found = _run_tesseract(engine.command, picture, ("--psm", "0"), max_seconds)
        except UnreadableFile:
            found = ""  # for a page of few letters
        script = re.search(r"^Script: (\w+)", found, re.MULTILINE)
        names = _SCRIPTS.get(script[1], "").split(",") if script else []
        better = next((name for name in names if name in installed), "")
    return read(better) if better in installed and better != first else (first, paragraphs)


def _run_tesseract(command: str, picture: bytes, options: Sequence[str], max_seconds: float) -> str:
    try:
        process = subprocess.Popen(
            [command, "stdin", "stdout", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # It slows down if it has several threads.
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},
            start_new_session=True,
        )
    except OSError as error:
        raise UnreadableFile(f"{TESSERACT} cannot be started: {error.strerror}") from error
    with process:
        try:
            out, messages = process.communicate(picture, timeout=max_seconds)
        except subprocess.TimeoutExpired as error:
            raise UnreadableFile(f"{TESSERACT} needs more than {max_seconds:g} s") from error
        finally:
            if process.poll() is None:
                # A script may have started the program.
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
    if process.returncode:
        lines = messages.decode("utf-8", "replace").strip().splitlines()
        reason = lines[-1] if lines else f"exit code {process.returncode}"
        raise UnreadableFile(f"{TESSERACT} failed: {reason}")
    return out.decode("utf-8", "replace")


def _parse_tsv(table: str, scale: float) -> Paragraphs:
    """Return the words of a table of tesseract in their order."""
    paragraphs: dict[tuple[str, ...], dict[str, list[RecognizedWord]]] = {}
    for row in table.splitlines():
        cells = row.split("\t", 11)
        if len(cells) < 12 or cells[0] != "5" or not cells[11].strip():
            continue
        left, top, width, height = map(int, cells[6:10])
        word = _place_word(cells[11], scale, left, top, left + width, top + height)
        paragraphs.setdefault(tuple(cells[2:4]), {}).setdefault(cells[4], []).append(word)
    return [list(lines.values()) for lines in paragraphs.values()]


@cache
def _load_rapidocr() -> Any:
    import rapidocr

    # With the models of the package named, it never downloads others.
    models = Path(rapidocr.__file__).parent / "models"
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.use_cls": False,
            "Global.text_score": 0.0,
            "Det.model_path": str(next(models.glob("*_det_*.onnx"))),
            "Rec.model_path": str(next(models.glob("*_rec_*.onnx"))),
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )


def _read_by_rapidocr(pixels: Any, scale: float) -> Paragraphs:
    """Return the words of the lines that were found, in the order of reading."""
    found = _load_rapidocr()(pixels, return_word_box=True)
    if found.boxes is None or not len(found.boxes):
        return []
    lines: list[list[RecognizedWord]] = []
    for box, text, parts in zip(found.boxes, found.txts, found.word_results, strict=True):
        words = [(word, corners) for word, _, corners in parts if word.strip()] or [(text, box)]
        sides = ((word, *zip(*corners, strict=True)) for word, corners in words)
        lines.append(
            [_place_word(word, scale, min(x), min(y), max(x), max(y)) for word, x, y in sides]
        )
    return [[lines[n] for n in block] for block in _order_lines(found.boxes)]


def _order_lines(boxes: Any) -> list[list[int]]:
    """Return the numbers of lines by paragraphs, in the order of reading.

    The page is turned upright by the angle of its lines, and cut at its widest gaps (XY-cut).
    """
    import numpy as np

    corners = np.asarray(boxes, float)
    along = corners[:, 1] - corners[:, 0]
    is_long = along[:, 0] >= np.median(along[:, 0])
    angle = float(np.median(np.arctan2(along[is_long, 1], along[is_long, 0])))
    x = corners[:, :, 0] * math.cos(angle) + corners[:, :, 1] * math.sin(angle)
    y = corners[:, :, 1] * math.cos(angle) - corners[:, :, 0] * math.sin(angle)
    sides = np.stack([x.min(1), y.min(1), x.max(1), y.max(1)], 1)
    height = float(np.median(sides[:, 3] - sides[:, 1]))
    middle = sides[:, 1::2].mean(1)

    def cut(of: list[int]) -> Iterator[list[int]]:
        # Columns have two lines, and paragraphs a smaller gap between them.
        for axis, min_gap, min_lines in ((0, height, 2), (1, 0.8 * height, 1)):
            ordered = sorted(of, key=lambda n: sides[n, axis])
            ends = np.maximum.accumulate(sides[ordered, axis + 2])
            gaps = sides[ordered[1:], axis] - ends[:-1]
            at = int(gaps.argmax()) + 1 if len(gaps) else 0
            if at and gaps[at - 1] > min_gap and min(at, len(of) - at) >= min_lines:
                yield from cut(ordered[:at])
                yield from cut(ordered[at:])
                return
        ordered = sorted(of, key=middle.__getitem__)
        rows = np.cumsum(np.diff(middle[ordered], prepend=0) > height / 2)
        yield [ordered[n] for n in np.lexsort((sides[ordered, 0], rows))]

    return list(cut(list(range(len(sides)))))
