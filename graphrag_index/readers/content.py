"""Type of a file by its content."""

import zipfile
from mimetypes import MimeTypes
from pathlib import Path
from typing import NamedTuple

from graphrag_index.readers.encodings import SAMPLE_BYTES, looks_binary

# The types that Python knows, without those of the machine.
_TYPES = MimeTypes(filenames=())
_MEDIA = ("image/", "audio/", "video/", "application/octet-stream", "application/zip")
# Name of the part that holds an encrypted Office file, in the container of old Office files.
_ENCRYPTED_PART = "EncryptedPackage".encode("utf-16-le")
# Folder in the archive of an Office file → suffix of the file.
_OFFICE_FOLDERS = {"word": ".docx", "ppt": ".pptx", "xl": ".xlsx"}


class Content(NamedTuple):
    """Type of a file: the suffix of its reader, "" without one, and a noun for messages."""

    suffix: str
    noun: str


WITHOUT_TEXT = Content("", "without text")
WITH_PASSWORD = Content("", "an Office file with a password")
DAMAGED_ARCHIVE = Content("", "a damaged ZIP archive")


def identify_content(path: Path) -> Content:
    """Identify the type of a file by its content. Raises OSError if it cannot be read."""
    # Believe the suffix of a picture, since there may be many; its text is a pointer of Git LFS.
    expected = _TYPES.guess_type(f"a{path.suffix}")[0] or ""
    if expected.startswith(_MEDIA) and not expected.endswith("+xml"):
        return Content("", f"{expected} by its suffix")
    with path.open("rb") as stream:
        head = stream.read(SAMPLE_BYTES)
    start = head[:1_024].lstrip(b"\xef\xbb\xbf \t\r\n\0").lower()
    # Other bytes may stand before a PDF, and a text may tell of its first bytes.
    if start.startswith(b"%pdf-") or (b"%pdf-" in start and looks_binary(head)):
        return Content(".pdf", "a PDF")
    if head.startswith(b"PAR1"):
        return Content(".parquet", "a Parquet file")
    if head.startswith(b"PK\x03\x04"):
        return _identify_archive(path)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        is_encrypted = _ENCRYPTED_PART in path.read_bytes()
        return WITH_PASSWORD if is_encrypted else Content("", "a file of an Office before 2007")
    if looks_binary(head):
        return Content("", "binary data")
    if not head.strip():
        return WITHOUT_TEXT
    if start.startswith((b"<!doctype html", b"<html")):
        return Content(".html", "a web page")
    return Content(".txt", "text")


def _identify_archive(path: Path) -> Content:
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return DAMAGED_ARCHIVE
    # A small archive that unpacks to gigabytes is an attack.
    if sum(part.file_size for part in parts) > 100 * max(path.stat().st_size, 1 << 20):
        return Content("", "an archive that unpacks to a hundred times its size")
    folders = {part.filename.partition("/")[0] for part in parts}
    suffix = next((_OFFICE_FOLDERS[name] for name in folders if name in _OFFICE_FOLDERS), "")
    is_office = suffix and "[Content_Types].xml" in folders
    return Content(suffix, f"a {suffix} file") if is_office else Content("", "a ZIP archive")
