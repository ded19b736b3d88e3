"""Readers: one function per file type, chosen by the suffix of the file.

A reader yields `Document` and `ReadFailure` objects. It streams its file, so a file of records may
be larger than memory. To add a file type, write a reader and list it in `READERS`. `graph_rows.py`,
`given_graph.py` and `graph_evidence.py` read a graph that the user already has.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from graphrag_index.readers.document import Document, ReadFailure, UnreadableFile, describe_os_error
from graphrag_index.readers.record_files import read_csv, read_json, read_json_lines, read_parquet
from graphrag_index.readers.text_html_pdf_office import (
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
    **dict.fromkeys((".pdf", ".docx", ".pptx", ".xlsx"), read_office),
}


def read_file(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | ReadFailure]:
    """Yield the documents of one file; a failure is yielded as a `ReadFailure` with its reason."""
    try:
        for item in READERS[path.suffix.lower()](path, name, settings):
            yield item.to_printable()
    except UnreadableFile as error:
        yield ReadFailure(str(error)).to_printable()
    except OSError as error:
        yield ReadFailure(f"cannot be read: {describe_os_error(error)}")
    except RecursionError:
        yield ReadFailure("is nested too deeply to be read")


__all__ = ["READERS", "Document", "ReadFailure", "describe_os_error", "read_file"]
