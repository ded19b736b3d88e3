"""What turns one file into documents: a reader for each type of file, found by its suffix.

A reader is a function from a file to an iterator of `Document` and `Unread`, which
reads no more at once than it must, so that a file of records larger than memory
can be read. To add a type, write such a function and name it in `READERS`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from graphrag_index.readers.document import Document, Unread, UnreadableFile, system_reason
from graphrag_index.readers.html import read_html
from graphrag_index.readers.office import read_office
from graphrag_index.readers.plain_text import read_markdown, read_text_file
from graphrag_index.readers.record_files import read_csv, read_json, read_json_lines, read_parquet
from graphrag_index.schema.settings.embedded_steps import LoadDocuments

# The file, its path below the input folder, the settings.
Reader = Callable[[Path, str, LoadDocuments], Iterator[Document | Unread]]

READERS: dict[str, Reader] = {
    ".txt": read_text_file,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".parquet": read_parquet,
    ".pdf": read_office,
    ".docx": read_office,
    ".pptx": read_office,
    ".xlsx": read_office,
}


def read_file(path: Path, name: str, settings: LoadDocuments) -> Iterator[Document | Unread]:
    """Read the documents of one file; what cannot be read comes as `Unread` with its reason."""
    try:
        for item in READERS[path.suffix.lower()](path, name, settings):
            yield item.printable()
    except UnreadableFile as error:
        yield Unread(str(error)).printable()
    except OSError as error:
        yield Unread(f"cannot be read: {system_reason(error)}")
    except RecursionError:
        yield Unread("is nested too deeply to be read")


__all__ = ["READERS", "Document", "Unread", "read_file", "system_reason"]
