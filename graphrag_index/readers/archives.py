"""Readers of archives: each file of a ZIP or tar archive is read as a file of its own.

So is the one in a file that gzip, bzip2 or xz has compressed.
"""

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from graphrag_index.readers.document import Member, ReadFailure, UnreadableFile
from graphrag_index.schema.settings.step_sections import LoadDocuments

TAR_SUFFIXES = (".tar", ".tgz", ".tar.gz", ".tbz2", ".tar.bz2", ".txz", ".tar.xz")
COMPRESSIONS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
# Errors of damaged archives and of their members; RuntimeError tells of a password.
ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)
# Maximum number of bytes of the long name of a file in a tar archive.
_MAX_HEADER_BYTES = 1 << 16
_HEADERS = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)


def read_zip(path: Path, name: str, settings: LoadDocuments) -> Iterator[Member]:
    """Yield the files and folders of a ZIP archive, in its order."""
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            for one in archive.infolist():
                failure = ReadFailure("needs a password") if one.flag_bits & 1 else None
                yield Member(one.filename, one.file_size, partial(archive.open, one), failure)
    except ARCHIVE_ERRORS as error:
        raise UnreadableFile(f"is a damaged or incomplete ZIP archive: {error}") from error


def read_compressed(path: Path, name: str, settings: LoadDocuments) -> Iterator[Member]:
    """Yield the file in a compressed file; its size is not known before it is read."""
    # An upload that is checked has the name of a hidden file.
    inner = PurePosixPath(name).stem.lstrip(".")
    yield Member(inner, 0, partial(COMPRESSIONS[path.suffix.lower()], path))


class _Header(tarfile.TarInfo):
    """A header that does not take all memory by the length of a name or a map of blocks."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> "_Header":
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADERS and found.size > _MAX_HEADER_BYTES:
            raise tarfile.ReadError(f"a name has {found.size:,} bytes")
        if found.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("it holds a sparse file")
        return found


def read_tar(path: Path, name: str, settings: LoadDocuments) -> Iterator[Member]:
    """Yield the files and folders of a tar archive, compressed or not, in its order."""
    try:
        with (
            path.open("rb") as stream,
            tarfile.open(fileobj=stream, mode="r|*", tarinfo=_Header) as archive,
        ):
            while one := archive.next():
                # Names are not kept.
                archive.members.clear()  # type: ignore[attr-defined]
                if one.size < 0:
                    raise tarfile.ReadError("a size is negative")
                failure = None if one.isfile() else ReadFailure("is not a regular file", True)
                inner = f"{one.name}/" if one.isdir() else one.name
                yield Member(inner, one.size, partial(archive.extractfile, one), failure)
    except ARCHIVE_ERRORS as error:
        raise UnreadableFile(f"is a damaged or incomplete tar archive: {error}") from error
