"""Files of the input folder over HTTP: uploads with safe names and types, and removals."""

import os
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Container, Mapping
from itertools import compress
from pathlib import Path, PurePosixPath
from typing import Annotated, BinaryIO
from uuid import uuid4

from fastapi import APIRouter, Form, Request, UploadFile
from pydantic import BaseModel, Field

from graphrag_index.readers import READERS, find_suffix
from graphrag_index.readers.archives import COMPRESSIONS, TAR_SUFFIXES
from graphrag_index.readers.content import (
    DAMAGED_ARCHIVE,
    TEXT_SUFFIXES,
    WITH_PASSWORD,
    WITHOUT_TEXT,
    identify_content,
)
from graphrag_index.readers.input_files import UPLOAD_FOLDER, find_files, input_folder
from graphrag_index.readers.parse_process import PICTURE_SUFFIXES
from graphrag_index.readers.text_html_pdf_office import OFFICE_SUFFIXES
from graphrag_index.storage.bucket import Bucket, fetch_folder, is_bucket
from graphrag_index.storage.skipped_files import SkippedFile, describe_skipped, read_skipped
from graphrag_index.storage.table_store import scan_table
from graphrag_server.access import ReadIndex, WriteIndex
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.parse_check import check_parsing
from graphrag_server.problems import RequestError, reason_not_stored

MAX_NAME_CHARS = 120
_MAX_SUFFIX_CHARS = 20
_UNSAFE = re.compile(r"[^\w .()+-]+")


class InputFolder:
    """The folder of the documents of a project."""

    def __init__(self, index: HostedIndex) -> None:
        self._settings = index.settings.load_documents
        self._root = index.root
        # A server runs for long: look again at what is in a bucket.
        fetch_folder.cache_clear()
        self._folder = input_folder(self._settings, index.root)

    def files(self, skipped: list[SkippedFile] | None = None) -> dict[str, int]:
        """Return the sizes of the files that a run would read, by path; `skipped` gets all others.

        There are none without a folder.
        """
        files = find_files(self._settings, self._root, may_be_empty=True, skipped=skipped)
        return {file.name: file.size for file in files}

    def add(self, client_name: str, content: BinaryIO, replace: bool) -> str:
        """Store an uploaded file after parsing it once, and return its path.

        Raises RequestError if its name or type is not allowed, if it cannot be parsed, or if there
        is another of its name and not `replace`.
        """
        self._check_is_folder()
        name = safe_name(client_name)
        target = self._folder / UPLOAD_FOLDER / name
        temporary = self._folder / UPLOAD_FOLDER / f".{uuid4().hex}{find_suffix(target)}"
        hint = f"There is a file {name!r}: send replace=true to replace it."
        file_exists = RequestError(409, "file_exists", hint)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and not replace:
                raise file_exists
            with temporary.open("xb") as file:
                shutil.copyfileobj(content, file)
            check_type(name, temporary)
            if reason := check_parsing(temporary):
                raise RequestError(422, "unreadable_file", f"{name} cannot be read: {reason}.")
            if not replace:
                # Of several uploads at once, only the one that creates the name goes on.
                try:
                    target.open("xb").close()
                except FileExistsError:
                    raise file_exists from None
            os.replace(temporary, target)
        except OSError as error:
            text = f"{name} was not stored: {reason_not_stored(error)}."
            raise RequestError(507, "not_stored", text) from None
        finally:
            temporary.unlink(missing_ok=True)
        return f"{UPLOAD_FOLDER}/{name}"

    def remove(self, path: str) -> None:
        """Delete a file of the list. Raises RequestError if the list has no such path."""
        # Only paths that were listed are deleted, so a path cannot lead out of the folder.
        if path not in self.files():
            raise RequestError(404, "no_such_file", f"There is no file {path!r}: GET /files.")
        self._check_is_folder()
        (self._folder / path).unlink(missing_ok=True)

    def _check_is_folder(self) -> None:
        """Raise RequestError if the documents are in a bucket, of which this is a copy."""
        if is_bucket(self._settings.folder):
            url = Bucket(self._settings.folder).url
            raise RequestError(
                409, "documents_in_bucket", f"The documents are in {url}: put or delete them there."
            )


def safe_name(client_name: str) -> str:
    """Return the base name of a client's file, without characters that a path could abuse.

    Raises RequestError if the name is that of a hidden file, or has no letter.
    """
    name = unicodedata.normalize("NFC", client_name.replace("\\", "/").rpartition("/")[2])
    is_hidden = name.startswith(".")
    stem, suffix = os.path.splitext(_UNSAFE.sub("_", name).strip(" ."))
    if is_hidden or not stem.strip(" ._"):
        text = f"A file with the name {client_name[:80]!r} is not read: rename it."
        raise RequestError(415, "unknown_type", text)
    suffix = suffix[:_MAX_SUFFIX_CHARS]
    return stem[: MAX_NAME_CHARS - len(suffix)].strip(" .") + suffix


def check_type(name: str, file: Path) -> None:
    """Raise RequestError if the content of a file is not that of its suffix, or is not text."""
    suffix, content = find_suffix(Path(name)), identify_content(file)
    if suffix in PICTURE_SUFFIXES:
        fits = True  # `check_parsing` opens it
    elif suffix in (*OFFICE_SUFFIXES, ".parquet", ".zip", ".msg"):
        fits = content.suffix == suffix or content == WITH_PASSWORD
        if content == DAMAGED_ARCHIVE:
            text = f"{name} cannot be read: it is broken, such as a file that was cut off."
            raise RequestError(415, "broken_file", text)
    else:
        # Parsing tells whether another archive is one.
        is_text = content.suffix in TEXT_SUFFIXES or content == WITHOUT_TEXT
        fits = is_text or suffix in (*TAR_SUFFIXES, *COMPRESSIONS)
    if not fits and suffix not in READERS:
        known = f"Types that can: text of any suffix, {', '.join(sorted(READERS))}."
        text = f"This type of file cannot be read: it is {content.noun}. {known}"
        raise RequestError(415, "unknown_type", text)
    if not fits:
        text = f"The content of {name} is not that of a {suffix} file: it is {content.noun}."
        raise RequestError(415, "wrong_type", text)


router = APIRouter(prefix="/v1/indexes/{index}/files", tags=["files"])


class InputFileStatus(BaseModel):
    """A file of the input folder.

    `n_documents` are those of the current index; 0 before the run that reads the file. `problem`
    says why the last run could not read it.
    """

    path: str
    size: int  # bytes
    n_documents: int
    problem: str


class FileList(BaseModel):
    """The files that a run would read or skip, ordered by path, and the limits of uploads.

    Skipped files inside others are those of the last run.
    """

    files: list[InputFileStatus]
    skipped: list[SkippedFile]
    skipped_summary: str  # such as "3 files skipped: .png 2, hidden 1."; empty if none
    max_bytes: int  # of an uploaded file
    types: list[str]  # suffixes with a reader; text with any other suffix is read too


class Upload(BaseModel, extra="forbid"):
    """Files to store."""

    files: list[UploadFile]
    replace: bool = Field(False, description="Replace files of the same name.")


class StoredFiles(BaseModel):
    """The files that were stored. A run adds them to the index."""

    stored: list[str]


@router.get("")
def list_files(index: ReadIndex, request: Request) -> FileList:
    """List the files that a run would read, with the documents of each, and those it skips."""
    skipped: list[SkippedFile] = []
    sizes = InputFolder(index).files(skipped)
    counts, problems, inside = _read_status(index, sizes)
    skipped = sorted(skipped + inside)
    return FileList(
        files=[
            InputFileStatus(
                path=path,
                size=size,
                n_documents=counts.get(path, 0),
                problem=problems.get(path, ""),
            )
            for path, size in sizes.items()
        ],
        skipped=skipped,
        skipped_summary=describe_skipped(skipped),
        max_bytes=request.app.state.settings.max_upload_bytes,
        types=sorted(READERS),
    )


@router.post("", status_code=201)
def upload_files(
    index: WriteIndex, form: Annotated[Upload, Form(media_type="multipart/form-data")]
) -> StoredFiles:
    """Store uploaded files. The name of a file is reduced to a safe base name."""
    folder, stored = InputFolder(index), list[str]()
    names = [safe_name(one.filename or "") for one in form.files]
    if twice := {name for name in names if names.count(name) > 1}:
        hint = f"The request has several files named {min(twice)!r}: nothing was stored."
        raise RequestError(409, "file_exists", hint)
    for one in form.files:
        try:
            stored.append(folder.add(one.filename or "", one.file, form.replace))
        except RequestError as error:
            before = f" Stored before it: {', '.join(stored)}." if stored else ""
            raise RequestError(error.status, error.code, f"{error.detail}{before}") from None
    return StoredFiles(stored=stored)


@router.delete("/{path:path}", status_code=204)
def remove_file(path: str, index: WriteIndex) -> None:
    """Delete a file of the input folder. A run removes its documents from the index."""
    InputFolder(index).remove(path)


def _read_status(
    index: HostedIndex, paths: Container[str]
) -> tuple[Mapping[str, int], dict[str, str], list[SkippedFile]]:
    """Return the number of documents of each file in the index, and problems of the last run.

    The last value are files that it skipped inside others.
    """
    version = index.store.read_pointer()
    if version is None:
        return {}, {}, []
    documents = scan_table(index.store, version, "documents").group_by("path").len()
    unread = scan_table(index.store, version, "unread_files").select("path", "reason").collect()
    skipped = read_skipped(index.store, version)
    counts = Counter[str]()
    for path, n_documents in documents.collect().iter_rows():
        counts[_find_owner(path, paths)] += n_documents
    problems = {one.path: one.reason for one in skipped if one.path in paths}
    for path, reason in unread.rows():
        owner = _find_owner(path, paths)
        inner = path[len(owner) + 1 :]
        problems.setdefault(owner, f"{inner}: {reason}" if inner else reason)
    is_inside = (one.path not in paths and _find_owner(one.path, paths) in paths for one in skipped)
    return counts, problems, list(compress(skipped, is_inside))


def _find_owner(path: str, paths: Container[str]) -> str:
    """Return the file of the list that holds a document; other paths are returned as they are."""
    parents = (str(parent) for parent in PurePosixPath(path).parents)
    return path if path in paths else next(filter(paths.__contains__, parents), path)
