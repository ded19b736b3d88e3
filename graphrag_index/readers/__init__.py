"""Readers: one function per file type, chosen by suffix, else by content.

A reader yields `Document` and `ReadFailure` objects. It streams its file, so a file of records may
be larger than memory. A reader of files that hold files, such as archives, yields `Member` objects,
which are read in turn. To add a file type, write a reader and list it in `READERS`; if files of the
type often lack its suffix, let `identify_content` find it. Data in a text becomes a placeholder,
whatever the reader. `graph_rows.py`, `given_graph.py` and `graph_evidence.py` read a graph that the
user already has.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from graphrag_index.errors import GraphRAGError
from graphrag_index.readers.archives import (
    ARCHIVE_ERRORS,
    COMPRESSIONS,
    TAR_SUFFIXES,
    read_compressed,
    read_tar,
    read_zip,
)
from graphrag_index.readers.content import Content, identify_content
from graphrag_index.readers.document import (
    NO_TEXT,
    Document,
    Member,
    NotText,
    ReadFailure,
    UnreadableFile,
    describe_os_error,
)
from graphrag_index.readers.embedded_data import is_only_data, replace_data
from graphrag_index.readers.mail import read_mail, read_mailbox
from graphrag_index.readers.notebooks_subtitles import read_notebook, read_subtitles
from graphrag_index.readers.outlook import read_outlook
from graphrag_index.readers.record_files import read_csv, read_json, read_json_lines, read_parquet
from graphrag_index.readers.source_code import read_python
from graphrag_index.readers.text_html_pdf_office import (
    OFFICE_SUFFIXES,
    read_html,
    read_markdown,
    read_office,
    read_text_file,
)
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_nlp.text.normalize import replace_surrogates

# Function of (file, its path relative to the input folder, settings).
Reader = Callable[[Path, str, LoadDocuments], Iterator[Document | ReadFailure | Member]]

READERS: dict[str, Reader] = {
    ".txt": read_text_file,
    **dict.fromkeys((".md", ".markdown"), read_markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), read_html),
    **dict.fromkeys((".csv", ".tsv"), read_csv),
    ".json": read_json,
    **dict.fromkeys((".jsonl", ".ndjson"), read_json_lines),
    ".parquet": read_parquet,
    **dict.fromkeys(OFFICE_SUFFIXES, read_office),
    ".ipynb": read_notebook,
    **dict.fromkeys((".py", ".pyi"), read_python),
    **dict.fromkeys((".srt", ".vtt"), read_subtitles),
    ".eml": read_mail,
    ".mbox": read_mailbox,
    ".msg": read_outlook,
    ".zip": read_zip,
    **dict.fromkeys(TAR_SUFFIXES, read_tar),
    **dict.fromkeys(COMPRESSIONS, read_compressed),
}
READERS_OF_MEMBERS = (
    *(read_mail, read_mailbox, read_outlook),
    *(read_zip, read_tar, read_compressed),
)
# Limits of a file that holds files, with all that these hold: the number of files inside files
# inside files, and of the bytes that it unpacks to, also as a multiple of its own.
MAX_DEPTH, MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO = 4, 4 << 30, 100
# Reason of a file that is skipped as its name begins with a period.
IS_HIDDEN = "is hidden"
_HEADER_BYTES = 512  # counted for each file, so that there are not too many
_COPIED_BYTES = 1 << 18  # at once


def find_suffix(path: Path) -> str:
    """Return the suffix of a file in lower case; two of them where both name its type."""
    both = "".join(path.suffixes[-2:]).lower()
    return both if both in READERS else path.suffix.lower()


def find_type(path: Path) -> Content:
    """Return the type of a file: by its suffix if it is in `READERS`, else by its content."""
    suffix = find_suffix(path)
    # Programs give the suffix of a message of Outlook to texts too.
    is_told = suffix in READERS and suffix != ".msg"
    return Content(suffix, f"a {suffix} file") if is_told else identify_content(path)


def find_reader(path: Path) -> Reader:
    """Return the reader of a file by its type; a type without one is read as text."""
    return READERS.get(find_type(path).suffix, read_text_file)


@dataclass
class _Allowance:
    """The bytes that a file may still unpack to, and the depth of the files inside it."""

    n_bytes: int
    depth: int = 0

    def take(self, n_bytes: int) -> None:
        self.n_bytes -= n_bytes
        if self.n_bytes < 0:
            raise UnreadableFile("unpacks to too many bytes: the rest is not read")


def read_file(
    path: Path,
    name: str,
    settings: LoadDocuments,
    choose: Callable[[Path], Reader] = find_reader,
    *,
    allowance: _Allowance | None = None,
) -> Iterator[Document | ReadFailure]:
    """Yield the documents of one file; a failure is yielded as a `ReadFailure` with its reason.

    `choose` returns the reader of the file and of each file inside it. `allowance` is what is left
    of the limits of the file that holds this one.
    """
    try:
        for item in choose(path)(path, name, settings):
            if isinstance(item, Member):
                allowance = allowance or _allow(path.stat().st_size)
                yield from _read_member(item, name, settings, choose, allowance)
                if allowance.n_bytes < 0:
                    return
            else:
                yield _without_data(item.to_printable())
    except UnreadableFile as error:
        is_skipped = isinstance(error, NotText) and find_suffix(path) not in READERS
        yield ReadFailure(str(error), is_skipped).to_printable()
    except OSError as error:
        yield ReadFailure(f"cannot be read: {describe_os_error(error)}")
    except RecursionError:
        yield ReadFailure("is nested too deeply to be read")
    except GraphRAGError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file costs itself, whatever it causes
        yield ReadFailure(f"cannot be read: {error!r}").to_printable()


def _allow(n_bytes: int) -> _Allowance:
    most = max(MAX_UNPACKED_BYTES, 2 * n_bytes)
    return _Allowance(min(most, MAX_UNPACKED_RATIO * max(n_bytes, 1 << 20)))


def copy_members(
    path: Path, name: str, settings: LoadDocuments, suffixes: Collection[str], folder: Path
) -> Iterator[tuple[str, Path]]:
    """Copy the files of some types in an archive or a message; yield each path and its copy."""
    copies: list[Path] = []

    def keep(path: Path, name: str, settings: LoadDocuments) -> Iterator[ReadFailure]:
        copies.append(path.rename(folder / f"{uuid4().hex}{find_suffix(path)}"))
        yield ReadFailure("")

    def choose(path: Path) -> Reader:
        suffix = find_type(path).suffix
        read = READERS.get(suffix, read_text_file)
        if suffix in suffixes:
            return keep
        is_open = read in READERS_OF_MEMBERS
        return lambda *file: filter(_is_member, read(*file) if is_open else ())

    for item in read_file(path, name, settings, choose):
        if copies:
            yield f"{name}/{item.member}", copies.pop()


def _is_member(item: Any) -> bool:
    return isinstance(item, Member)


def _read_member(
    member: Member,
    name: str,
    settings: LoadDocuments,
    choose: Callable[[Path], Reader],
    allowance: _Allowance,
) -> Iterator[Document | ReadFailure]:
    """Read a file inside another one as if it lay in the input folder."""
    parts = [part for part in member.name.replace("\\", "/").split("/") if part.strip(". ")]
    inner = replace_surrogates("/".join(parts)) or "no name"
    last = inner.rpartition("/")[2]
    try:
        allowance.take(member.size + _HEADER_BYTES)
        if member.name.endswith("/"):
            return
        if any(part.startswith((".", "~$", "__MACOSX")) for part in parts):
            yield ReadFailure(IS_HIDDEN, True, inner)
        elif member.failure:
            yield replace(member.failure, member=inner)
        else:
            with TemporaryDirectory(prefix="graphrag-index-") as folder:
                path = Path(folder, _make_safe(last))
                _copy(member, path, allowance)
                # The title of an attachment is that of its message with its own.
                shown = last if member.title else f"{name}/{inner}"
                yield from _read_copy(path, shown, inner, member, settings, choose, allowance)
    except UnreadableFile as error:
        yield ReadFailure(str(error), member=inner)
    except OSError as error:
        yield ReadFailure(f"cannot be unpacked: {describe_os_error(error)}", member=inner)


def _make_safe(name: str) -> str:
    """Return a name for a file on this machine that keeps the suffixes."""
    return re.sub(r"[^\w. -]", "_", name)[-60:]


def _copy(member: Member, path: Path, allowance: _Allowance) -> None:
    """Copy a member to a file; what exceeds its stated size is taken from the allowance."""
    try:
        with path.open("xb") as target, member.open() or BytesIO() as source:
            n_bytes = 0
            while chunk := source.read(_COPIED_BYTES):
                n_bytes += len(chunk)
                if n_bytes > member.size:
                    allowance.take(len(chunk))
                target.write(chunk)
    except ARCHIVE_ERRORS as error:
        raise UnreadableFile(f"is damaged: {error}") from error


def _read_copy(
    path: Path,
    name: str,
    inner: str,
    member: Member,
    settings: LoadDocuments,
    choose: Callable[[Path], Reader],
    allowance: _Allowance,
) -> Iterator[Document | ReadFailure]:
    suffix, noun = find_type(path)
    if not suffix:
        yield ReadFailure(f"is {noun}", True, inner)
        return
    if allowance.depth == MAX_DEPTH:
        yield ReadFailure(f"is {noun} more than {MAX_DEPTH} files deep", member=inner)
        return
    allowance.depth += 1
    for item in read_file(path, name, settings, choose, allowance=allowance):
        is_itself = not item.member
        item = replace(item, member=f"{inner}/{item.member}" if item.member else inner)
        if isinstance(item, Document):
            item = replace(
                item,
                title=f"{member.title}: {item.title}" if member.title else item.title,
                creation_date=item.creation_date or member.creation_date,
            )
        elif member.title and is_itself and item.reason == NO_TEXT and suffix != ".pdf":
            # Mail programs attach empty pages between pictures.
            item = replace(item, is_skipped=True)
        yield item
    allowance.depth -= 1


def _without_data(item: Document | ReadFailure) -> Document | ReadFailure:
    """Replace data in a document by placeholders; a file of nothing else is skipped."""
    if isinstance(item, ReadFailure):
        return item
    changed = item.change_text(replace_data)
    if changed.text == item.text:
        return item
    if not item.place and is_only_data(changed.text):
        reason = "holds only data, such as base64 or a minified script"
        return ReadFailure(reason, True, item.member)
    values = json.loads(item.metadata or "null")
    metadata = item.metadata and json.dumps(_replace_in(values), ensure_ascii=False)
    return replace(changed, title=replace_data(item.title), metadata=metadata)


def _replace_in(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _replace_in(one) for name, one in value.items()}
    if isinstance(value, list):
        return list(map(_replace_in, value))
    return replace_data(value) if isinstance(value, str) else value


__all__ = [
    "IS_HIDDEN",
    "READERS",
    "READERS_OF_MEMBERS",
    "Document",
    "ReadFailure",
    "copy_members",
    "describe_os_error",
    "find_reader",
    "find_suffix",
    "find_type",
    "read_file",
]
