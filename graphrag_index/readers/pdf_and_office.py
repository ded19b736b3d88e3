"""PDF, Word, PowerPoint and Excel reader, by markitdown from the extra `documents`."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from graphrag_index.readers.document import Document, Unread, UnreadableFile, normalize_newlines
from graphrag_index.readers.plain_text import whole_file
from graphrag_index.schema.settings.embedded_steps import LoadDocuments

_INSTALL = 'needs more packages: pip install "graphrag-index[documents]"'
# Added by the converters: slide numbers, and NaN for empty cells.
_SLIDE = re.compile(r"^<!-- Slide number: \d+ -->\n?", re.MULTILINE)
_EMPTY_CELL = re.compile(r"(?<=\| )NaN(?= \|)")


def read_office(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | Unread]:
    """Convert a file to Markdown.

    Raises
    ------
    UnreadableFile
        The file is damaged or locked, or the extra is not installed.
    """
    suffix = path.suffix.lower()
    try:
        from markitdown import MarkItDownException, StreamInfo

        converter = _converter(suffix)
    except ImportError as error:
        raise UnreadableFile(_INSTALL) from error
    try:
        with path.open("rb") as stream:
            found = converter.convert_stream(stream, stream_info=StreamInfo(extension=suffix))
    except MarkItDownException as error:
        if "MissingDependencyException" in str(error):
            raise UnreadableFile(_INSTALL) from error
        raise UnreadableFile(
            f"is not a readable {suffix} file: {_innermost_message(error)}"
        ) from error
    text = _SLIDE.sub("", _EMPTY_CELL.sub("", normalize_newlines(found.markdown)))
    document = whole_file(text, " ".join((found.title or "").split()), name, settings)
    if suffix == ".pdf" and isinstance(document, Unread):
        document = Unread(f"{document.reason}: a scanned PDF needs text recognition (OCR) first")
    yield document


def office_version() -> str:
    """Return the installed version of markitdown; empty if there is none."""
    try:
        return version("markitdown")
    except PackageNotFoundError:
        return ""


@cache
def _converter(suffix: str) -> Any:
    """Load only the converter of one type: the others would read a damaged file as text."""
    from markitdown import MarkItDown
    from markitdown import converters as known

    converter = MarkItDown(enable_builtins=False, enable_plugins=False)
    converter.register_converter(
        {
            ".pdf": known.PdfConverter,
            ".docx": known.DocxConverter,
            ".pptx": known.PptxConverter,
            ".xlsx": known.XlsxConverter,
        }[suffix]()
    )
    return converter


def _innermost_message(error: Exception) -> str:
    """Return the message of the innermost library, without markitdown's wrapping."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].rpartition("with message: ")[2].strip() or lines[-1].strip(" -")
