"""Type of a file by its content."""

import re
import zipfile
from mimetypes import MimeTypes
from pathlib import Path
from typing import NamedTuple

from graphrag_index.readers.archives import ARCHIVE_ERRORS
from graphrag_index.readers.encodings import SAMPLE_BYTES, looks_binary

# The types that Python knows, without those of the machine.
_TYPES = MimeTypes(filenames=())
_MEDIA = ("image/", "audio/", "video/", "application/octet-stream")
# Name of the part that holds an encrypted Office file, in the container of old Office files.
_ENCRYPTED_PART = "EncryptedPackage".encode("utf-16-le")
# Name of a part of a message of Outlook.
_MESSAGE_PART = "__properties_version1.0".encode("utf-16-le")
# Type of an archive whose first file names it.
_NAMED_TYPES = {
    b"application/vnd.oasis.opendocument.text": ".odt",
    b"application/vnd.oasis.opendocument.spreadsheet": ".ods",
    b"application/vnd.oasis.opendocument.presentation": ".odp",
    b"application/epub+zip": ".epub",
}
# Folder in the archive of an Office file → suffix of the file.
_OFFICE_FOLDERS = {"word": ".docx", "ppt": ".pptx", "xl": ".xlsx"}
# The fields of the header of an e-mail, up to the first empty line, and some that all have.
_HEADER = re.compile(rb"(?>[!-9;-~]+:[^\n]*\n(?>[ \t]+[^\n]*\n)*+)++\r?\n")
_MAIL_FIELDS = (b"from", b"to", b"date", b"subject", b"message-id", b"received", b"mime-version")
_MIN_MAIL_FIELDS = 3


# The line before each message of a mailbox; a line of a text may also begin with "From ".
FROM_LINE = re.compile(rb"From [^\n]{0,200}?\d\d:\d\d[^\n]{0,60}\d{4}\r?\n?$")


# Suffixes of types of text that are told by their content.
TEXT_SUFFIXES = (".txt", ".html", ".eml", ".mbox")


class Content(NamedTuple):
    """Type of a file: the suffix of its reader, "" without one, and a noun for messages."""

    suffix: str
    noun: str


WITHOUT_TEXT = Content("", "without text")
WITH_PASSWORD = Content("", "an Office file with a password")
MESSAGE = Content(".msg", "a message of Outlook")
BEFORE_2007 = Content("", "a file of an Office before 2007: save it in a newer format")
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
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        data = path.read_bytes()
        if _ENCRYPTED_PART in data:
            return WITH_PASSWORD
        return MESSAGE if _MESSAGE_PART in data else BEFORE_2007
    # Other bytes may stand before a PDF, and a text may tell of its first bytes.
    if start.startswith(b"%pdf-") or (b"%pdf-" in start and looks_binary(head)):
        return Content(".pdf", "a PDF")
    if head.startswith(b"PAR1"):
        return Content(".parquet", "a Parquet file")
    if head.startswith(b"PK\x03\x04"):
        return _identify_archive(path)
    if start.startswith(b"{\\rtf"):
        return Content(".rtf", "a file in Rich Text Format")
    if looks_binary(head):
        return Content("", "binary data")
    if not head.strip():
        return WITHOUT_TEXT
    if start.startswith((b"<!doctype html", b"<html")):
        return Content(".html", "a web page")
    if FROM_LINE.match(head[: head.find(b"\n") + 1]):
        return Content(".mbox", "a mailbox")
    if (header := _HEADER.match(head)) and _is_mail(header[0]):
        return Content(".eml", "an e-mail")
    return Content(".txt", "text")


def _is_mail(header: bytes) -> bool:
    names = {line.partition(b":")[0].lower() for line in header.splitlines()}
    return b"from" in names and len(names.intersection(_MAIL_FIELDS)) >= _MIN_MAIL_FIELDS


def _identify_archive(path: Path) -> Content:
    is_locked = False
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            is_named = bool(parts) and parts[0].filename == "mimetype" and parts[0].file_size < 99
            suffix = _NAMED_TYPES.get(archive.read(parts[0]).strip(), "") if is_named else ""
            manifest = archive.NameToInfo.get("META-INF/manifest.xml")
            if manifest and manifest.file_size < 1 << 20:
                is_locked = b"encryption-data" in archive.read(manifest)
    except (*ARCHIVE_ERRORS, OSError):
        return DAMAGED_ARCHIVE
    # A small archive that unpacks to gigabytes is an attack.
    if sum(part.file_size for part in parts) > 100 * max(path.stat().st_size, 1 << 20):
        return Content("", "an archive that unpacks to a hundred times its size")
    if suffix and is_locked:
        return WITH_PASSWORD
    folders = {part.filename.partition("/")[0] for part in parts}
    if "[Content_Types].xml" in folders:
        suffix = next((_OFFICE_FOLDERS[name] for name in folders if name in _OFFICE_FOLDERS), "")
    if suffix:
        return Content(suffix, f"a {suffix} file")
    # Programs and data of many types are archives too; only one that says so is opened.
    return Content(".zip" if path.suffix.lower() == ".zip" else "", "a ZIP archive")
