"""Parsing of PDF and Office files in a process with limits of time and memory.

A file can be made so that its parser takes all memory, never ends or crashes. One process parses
all files of a run; it is started anew after a file that ended it.
"""

import atexit
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock, Timer
from typing import Any, BinaryIO

from graphrag_index.readers.document import PageText, RecognizedPage, UnreadableFile

# Limits for one file: seconds, seconds more for each byte, and bytes of memory.
MAX_SECONDS, SECONDS_PER_BYTE = 60, 1e-5
MAX_BYTES = 3 << 30
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
# Module and function that parse the bytes of a file: each returns the text and the pages.
PARSERS = {
    ".pdf": ("graphrag_index.readers.pdf", "read_pdf"),
    ".docx": ("graphrag_index.readers.office", "read_docx"),
    ".pptx": ("graphrag_index.readers.office", "read_pptx"),
    ".xlsx": ("graphrag_index.readers.office", "read_xlsx"),
    ".rtf": ("graphrag_index.readers.office", "read_rtf"),
    ".odt": ("graphrag_index.readers.office", "read_odt"),
    ".ods": ("graphrag_index.readers.office", "read_ods"),
    ".odp": ("graphrag_index.readers.office", "read_odp"),
    ".epub": ("graphrag_index.readers.office", "read_epub"),
    **dict.fromkeys(PICTURE_SUFFIXES, ("graphrag_index.readers.recognition", "read_picture")),
    "message of Outlook": ("graphrag_index.readers.outlook", "parse_outlook"),
    # Return a page as JPEG with marks, the pages that are pictures, and the words of one.
    "drawn page": ("graphrag_index.readers.page_pictures", "draw_page"),
    "pictures": ("graphrag_index.readers.page_pictures", "find_pictures"),
    "words of a page": ("graphrag_index.readers.recognition", "recognize_page"),
    # Return the figures of a file, and the picture of one.
    "figures": ("graphrag_index.readers.figures", "find_figures"),
    "picture of a figure": ("graphrag_index.readers.figures", "draw_figure"),
}
# The types of the extra `formats`; the others are those of `documents`.
_FORMATS = {".rtf", ".odt", ".ods", ".epub", "message of Outlook"}
_COMMAND = f"from {__name__} import main; main()"


def limit_process(max_seconds: int | None = None, max_written: int = 0) -> None:
    """Limit the memory, the seconds of CPU and the bytes of a file that this process writes.

    Systems other than Unix have no such limits.
    """
    try:
        import resource
    except ImportError:  # Windows
        return
    limits = [
        (resource.RLIMIT_AS, MAX_BYTES),
        (resource.RLIMIT_FSIZE, max_written),
        (resource.RLIMIT_CORE, 0),
    ]
    if max_seconds is not None:
        limits.append((resource.RLIMIT_CPU, max_seconds))
    for limit, value in limits:
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (value if hard < 0 else min(value, hard), hard))


class DamagedFile(UnreadableFile):
    """Error of a parser for a file that is not as its type must be. Its message has the reason."""


class ChangedFile(UnreadableFile):
    """Error for a file that has other contents than those that were read from it."""


class FileParser:
    """The process, which is started when the first file is parsed."""

    def __init__(self, max_seconds: float = MAX_SECONDS) -> None:
        self._max_seconds = max_seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def parse(
        self, path: Path, suffix: str, recognized: Mapping[int, RecognizedPage] | None = None
    ) -> tuple[str, Sequence[PageText]]:
        """Return the text and the pages of a file. Raises UnreadableFile with the reason.

        `recognized` has the words of its pages that are pictures.
        """
        text, pages = self.call(path, suffix, *((recognized,) if recognized else ()))
        return text, pages

    def call(self, path: Path, parser: str, *arguments: Any) -> Any:
        """Return what one of `PARSERS` makes of a file. Raises UnreadableFile with the reason."""
        with self._lock:
            if self._process and self._process.poll() is not None:
                self._stop()
            process = self._process or self._start()
            seconds = self._max_seconds + SECONDS_PER_BYTE * path.stat().st_size
            timer = Timer(seconds, process.kill)
            timer.start()
            try:
                assert process.stdin
                assert process.stdout
                # The process may have been started in another folder.
                pickle.dump((path.absolute(), parser, *arguments), process.stdin)
                process.stdin.flush()
                found = pickle.load(process.stdout)
            except (EOFError, OSError, pickle.UnpicklingError) as error:
                is_late = not timer.is_alive()
                self._stop()
                limit = f"{seconds:.0f} s" if is_late else f"{MAX_BYTES >> 30} GB of memory"
                what = f"its parser needs more than {limit}{'' if is_late else ', or fails'}"
                raise UnreadableFile(f"cannot be read: {what}") from error
            except BaseException:
                # The answer to a question that was interrupted is not that to the next one.
                self._stop()
                raise
            finally:
                timer.cancel()
        if isinstance(found, UnreadableFile):
            raise found
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            # -P: a folder of documents provides no modules.
            [sys.executable, "-P", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # What parsers say of damaged files is told by their errors.
            stderr=subprocess.DEVNULL,
        )
        return self._process

    def _stop(self) -> None:
        """End the process; the next file starts another one."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        with self._lock:
            self._stop()


_PARSER = FileParser()
parse_file, call_parser, close_parser = _PARSER.parse, _PARSER.call, _PARSER.close
atexit.register(close_parser)


def main() -> None:
    """Parse the files whose paths come in, until there are no more."""
    limit_process()
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        _answer(parse(*request), answers)


def _answer(found: Any, stream: BinaryIO) -> None:
    pickle.dump(found, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def parse(path: Path, parser: str, *arguments: Any) -> Any:
    """Return what one of `PARSERS` makes of a file, or the error that says why it cannot."""
    module, function = PARSERS[parser]
    try:
        return getattr(import_module(module), function)(path.read_bytes(), *arguments)
    except UnreadableFile as error:
        return error
    except ImportError:
        extra = "formats" if parser in _FORMATS else "documents"
        return UnreadableFile(f'needs more packages: pip install "graphrag-index[{extra}]"')
    except MemoryError:
        what = f"its parser needs more than {MAX_BYTES >> 30} GB of memory"
        return UnreadableFile(f"cannot be read: {what}")
    except Exception as error:  # noqa: BLE001 - for a damaged file, parsers raise any error
        lines = str(error).strip().splitlines()
        return DamagedFile(lines[-1] if lines else type(error).__name__)
