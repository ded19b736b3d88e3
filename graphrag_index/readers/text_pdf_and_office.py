"""Readers of plain text, Markdown, PDF, Word, PowerPoint and Excel: one document per file.

The extra `documents` has markitdown, which converts PDF and Office files to Markdown.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from graphrag_index.readers.document import (
    Document,
    Record,
    Unread,
    UnreadableFile,
    date_of,
    field,
    metadata_of,
    normalize_newlines,
    one_line,
)
from graphrag_index.readers.encodings import read_text
from graphrag_index.schema.settings.embedded_steps import LoadDocuments

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
# Match a fenced block whole, so that a comment inside is not read as a heading.
_FENCE_OR_HEADING = re.compile(
    r"^(```|~~~).*?^\1[ \t]*$|^#[ \t]+(?P<title>\S.*?)[ \t]*#*$", re.DOTALL | re.MULTILINE
)
_INSTALL = 'needs more packages: pip install "graphrag-index[documents]"'
# Added by the converters: slide numbers, and NaN for empty cells.
_SLIDE = re.compile(r"^<!-- Slide number: \d+ -->\n?", re.MULTILINE)
_EMPTY_CELL = re.compile(r"(?<=\| )NaN(?= \|)")


def read_text_file(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | Unread]:
    yield whole_file(read_text(path, settings.encoding), "", name, settings)


def read_markdown(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | Unread]:
    """Read Markdown unchanged, without its front matter."""
    front_matter, text = split_front_matter(read_text(path, settings.encoding))
    title = one_line(field(front_matter, settings.title_column)) if settings.title_column else ""
    yield whole_file(text, title or first_heading(text), name, settings, front_matter)


def read_office(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | Unread]:
    """Convert a PDF or Office file to Markdown.

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
        # The message of the innermost library stands last.
        last = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        reason = last.rpartition("with message: ")[2].strip() or last.strip(" -")
        raise UnreadableFile(f"is not a readable {suffix} file: {reason}") from error
    text = _SLIDE.sub("", _EMPTY_CELL.sub("", normalize_newlines(found.markdown)))
    document = whole_file(text, one_line(found.title), name, settings)
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
    from markitdown import MarkItDown, converters

    converter = MarkItDown(enable_builtins=False, enable_plugins=False)
    # Such as PdfConverter.
    name = f"{suffix[1:].capitalize()}Converter"
    converter.register_converter(getattr(converters, name)())
    return converter


def whole_file(
    text: str, title: str, name: str, settings: LoadDocuments, record: Record | None = None
) -> Document | Unread:
    """Return the document of a whole file; the title defaults to the file name."""
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return Unread("has no text")
    values = record or {}
    return Document(
        text=text,
        title=title or PurePosixPath(name).name,
        creation_date=date_of(values, settings),
        metadata=metadata_of(values, settings),
        record=record or None,
    )


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Split YAML front matter off the text; anything but a mapping stays in the text."""
    match = _FRONT_MATTER.match(text)
    try:
        values = yaml.safe_load(match[1]) if match else None
    except (yaml.YAMLError, ValueError):
        # ValueError: an invalid date.
        return {}, text
    if match is None or not isinstance(values, dict):
        return {}, text
    return {str(key): value for key, value in values.items()}, text[match.end() :]


def first_heading(markdown: str) -> str:
    """Return the first level-1 heading; empty if there is none."""
    titles = (match["title"] for match in _FENCE_OR_HEADING.finditer(markdown))
    return one_line(next(filter(None, titles), ""))
