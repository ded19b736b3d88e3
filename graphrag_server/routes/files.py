"""Documents over HTTP: the files of the input folder are listed, uploaded and removed."""

from typing import Annotated

import polars as pl
from fastapi import APIRouter, Form, Request, UploadFile
from pydantic import BaseModel

from graphrag_index.readers import READERS
from graphrag_index.storage.table_store import scan_table
from graphrag_server.access import ReadIndex, WriteIndex
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.uploads import InputFolder, StoredFile

router = APIRouter(prefix="/v1/indexes/{index}/files", tags=["files"])


class InputFileStatus(BaseModel):
    """A file of the input folder.

    `n_documents` are those of the current index; 0 before the run that reads the file. `problem`
    says why the last run could not read it.
    """

    path: str
    size: int  # bytes
    modified: float  # seconds since 1970
    n_documents: int
    problem: str


class FileList(BaseModel):
    """The files that a run would read, ordered by path, and the limits of uploads."""

    files: list[InputFileStatus]
    max_bytes: int  # of an uploaded file
    types: list[str]  # of uploaded files: suffixes such as ".txt"


class StoredFiles(BaseModel):
    """The files that were stored. A run adds them to the index."""

    stored: list[str]


@router.get("")
def list_files(index: ReadIndex, request: Request) -> FileList:
    """List the files that a run would read, with the documents that the index has of each."""
    counts, problems = _read_status(index)
    return FileList(
        files=[
            InputFileStatus(
                path=file.path,
                size=file.size,
                modified=file.modified,
                n_documents=counts.get(file.path, 0),
                problem=problems.get(file.path, ""),
            )
            for file in _folder(index, request).files()
        ],
        max_bytes=request.app.state.settings.max_upload_bytes,
        types=sorted(READERS),
    )


@router.post("", status_code=201)
def upload_files(
    index: WriteIndex,
    request: Request,
    files: list[UploadFile],
    replace: Annotated[bool, Form(description="Replace files of the same name.")] = False,
) -> StoredFiles:
    """Store uploaded files. The name of a file is reduced to a safe base name."""
    folder = _folder(index, request)
    stored: list[StoredFile] = []
    for file in files:
        stored.append(folder.add(file.filename or "", file.file, replace))
    return StoredFiles(stored=[file.path for file in stored])


@router.delete("/{path:path}", status_code=204)
def remove_file(path: str, index: WriteIndex, request: Request) -> None:
    """Delete a file of the input folder. A run removes its documents from the index."""
    _folder(index, request).remove(path)


def _folder(index: HostedIndex, request: Request) -> InputFolder:
    max_bytes: int = request.app.state.settings.max_upload_bytes
    return InputFolder(index.settings, index.root, max_bytes)


def _read_status(index: HostedIndex) -> tuple[dict[str, int], dict[str, str]]:
    """Return the documents of each path in the current index, and the problems of the last run."""
    version = index.store.read_pointer()
    if version is None:
        return {}, {}
    documents = scan_table(index.store, version, "documents").group_by("path").agg(pl.len())
    unread = scan_table(index.store, version, "unread_files").select("path", "reason")
    return dict(documents.collect().iter_rows()), dict(unread.collect().iter_rows())
