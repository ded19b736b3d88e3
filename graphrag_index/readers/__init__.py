"""Readers: one function per file type, chosen by suffix, else by content.

A reader yields `Document` and `ReadFailure` objects. It streams its file, so a file of records may
be larger than memory. To add a file type, write a reader and list it in `READERS`; if files of the
type often lack its suffix, let `identify_content` find it. Data in a text becomes a placeholder,
whatever the reader. `graph_rows.py`, `given_graph.py` and `graph_evidence.py` read a graph that the
user already has.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_index.readers.content import Content, identify_content
from graphrag_index.readers.document import (
    Document,
    NotText,
    ReadFailure,
    RecognizedPage,
    UnreadableFile,
    describe_os_error,
)
from graphrag_index.readers.embedded_data import is_only_data, replace_data
from graphrag_index.readers.record_files import read_csv, read_json, read_json_lines, read_parquet
from graphrag_index.readers.text_html_pdf_office import (
    OFFICE_SUFFIXES,
    read_html,
    read_markdown,
    read_office,
    read_text_file,
)
from graphrag_index.schema.settings.step_sections import LoadDocuments

# Function of (file, its path relative to the input folder, settings).
Reader = Callable[[Path, str, LoadDocuments], Iterator[Document | ReadFailure]]

READERS: dict[str, Reader] = {
    ".txt": read_text_file,
    **dict.fromkeys((".md", ".markdown"), read_markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), read_html),
    **dict.fromkeys((".csv", ".tsv"), read_csv),
    ".json": read_json,
    **dict.fromkeys((".jsonl", ".ndjson"), read_json_lines),
    ".parquet": read_parquet,
    **dict.fromkeys(OFFICE_SUFFIXES, read_office),
}


def find_type(path: Path) -> Content:
    """Return the type of a file: by its suffix if it is in `READERS`, else by its content."""
    suffix = path.suffix.lower()
    return Content(suffix, f"a {suffix} file") if suffix in READERS else identify_content(path)


def read_file(
    path: Path,
    name: str,
    settings: LoadDocuments,
    recognized: Mapping[int, RecognizedPage] | None = None,
) -> Iterator[Document | ReadFailure]:
    """Yield the documents of one file; a failure is yielded as a `ReadFailure` with its reason.

    `recognized` has the words of its pages that are pictures.
    """
    try:
        read = READERS.get(find_type(path).suffix, read_text_file)
        if recognized:
            read = partial(read_office, recognized=recognized)
        for item in read(path, name, settings):
            yield _without_data(item.to_printable())
    except UnreadableFile as error:
        is_skipped = isinstance(error, NotText) and path.suffix.lower() not in READERS
        yield ReadFailure(str(error), is_skipped).to_printable()
    except OSError as error:
        yield ReadFailure(f"cannot be read: {describe_os_error(error)}")
    except RecursionError:
        yield ReadFailure("is nested too deeply to be read")


def _without_data(item: Document | ReadFailure) -> Document | ReadFailure:
    """Replace data in a document by placeholders; a file of nothing else is skipped."""
    if isinstance(item, ReadFailure):
        return item
    changed = item.change_text(replace_data)
    if changed.text == item.text:
        return item
    if not item.place and is_only_data(changed.text):
        return ReadFailure("holds only data, such as base64 or a minified script", True)
    values = json.loads(item.metadata or "null")
    metadata = item.metadata and json.dumps(_replace_in(values), ensure_ascii=False)
    return replace(changed, title=replace_data(item.title), metadata=metadata)


def _replace_in(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replace_in(one) for name, one in value.items()}
    if isinstance(value, list):
        return list(map(_replace_in, value))
    return replace_data(value) if isinstance(value, str) else value


__all__ = ["READERS", "Document", "ReadFailure", "describe_os_error", "find_type", "read_file"]
