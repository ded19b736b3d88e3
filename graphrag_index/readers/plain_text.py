"""Plain text and Markdown readers: one file is one document with unchanged text."""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from graphrag_index.readers.document import (
    Document,
    Record,
    Unread,
    date_of,
    field,
    metadata_of,
    one_line,
)
from graphrag_index.readers.encodings import read_text
from graphrag_index.schema.settings.embedded_steps import LoadDocuments

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*$\n?", re.DOTALL | re.MULTILINE)
# Match a fenced block whole, so that a comment inside is not read as a heading.
_FENCE_OR_HEADING = re.compile(
    r"^(```|~~~).*?^\1[ \t]*$|^#[ \t]+(?P<title>\S.*?)[ \t]*#*$", re.DOTALL | re.MULTILINE
)


def read_text_file(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | Unread]:
    yield whole_file(read_text(path, settings.encoding), "", name, settings)


def read_markdown(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | Unread]:
    """Read Markdown unchanged, without its front matter."""
    front_matter, text = split_front_matter(read_text(path, settings.encoding))
    title = one_line(field(front_matter, settings.title_column)) if settings.title_column else ""
    yield whole_file(text, title or first_heading(text), name, settings, front_matter)


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
    if match is None:
        return {}, text
    try:
        values = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError):
        # ValueError: an invalid date.
        return {}, text
    if not isinstance(values, dict):
        return {}, text
    return {str(key): value for key, value in values.items()}, text[match.end() :]


def first_heading(markdown: str) -> str:
    """Return the first level-1 heading; empty if there is none."""
    for match in _FENCE_OR_HEADING.finditer(markdown):
        if match["title"]:
            return one_line(match["title"])
    return ""
