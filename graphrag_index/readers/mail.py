"""Readers of e-mail: a file with one message, and mailboxes in the format mbox.

A message is a document, and each of its attachments is a file of its own. RFC 5322, 2045 and 2047.
"""

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from functools import partial
from io import BytesIO
from mimetypes import guess_extension
from pathlib import Path, PurePosixPath

from graphrag_index.readers.content import FROM_LINE
from graphrag_index.readers.document import (
    Document,
    Member,
    ReadFailure,
    UnreadableFile,
    as_one_line,
    has_surrogates,
    normalize_newlines,
    to_json,
)
from graphrag_index.readers.encodings import detect_encoding
from graphrag_index.readers.text_html_pdf_office import Page
from graphrag_index.schema.settings.step_sections import LoadDocuments

# Header fields that the text of a message begins with.
_SHOWN_FIELDS = ("From", "To", "Cc", "Date", "Subject")
_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
# Maximum number of bytes of a message with its attachments.
MAX_MESSAGE_BYTES = 1 << 28

Parts = Iterator[Document | ReadFailure | Member]


def read_mail(path: Path, name: str, settings: LoadDocuments) -> Parts:
    """Read a message; its attachments are read as files of their own."""
    data = path.read_bytes()
    # A mailbox may have the suffix of a message.
    if FROM_LINE.match(data[: data.find(b"\n") + 1]):
        yield from read_mailbox(path, name, settings)
    else:
        yield from read_message(message_from_bytes(data), PurePosixPath(name).name, "")


def read_mailbox(path: Path, name: str, settings: LoadDocuments) -> Parts:
    """Read a mailbox message by message; each is a member of the file, such as `message 7`."""
    n_messages = 0
    for n_messages, data in enumerate(_split_mailbox(path), 1):
        member = f"message {n_messages:,}"
        if len(data) > MAX_MESSAGE_BYTES:
            yield ReadFailure(f"is larger than {MAX_MESSAGE_BYTES >> 20} MB", member=member)
        else:
            try:
                title = f"{PurePosixPath(name).name} ({n_messages:,})"
                yield from read_message(message_from_bytes(data), title, member)
            except Exception as error:  # noqa: BLE001 - the messages after a damaged one are read
                yield ReadFailure(f"is damaged: {error!r}"[:200], member=member)
    if not n_messages:
        raise UnreadableFile("has no messages")


def _split_mailbox(path: Path) -> Iterator[bytes]:
    """Yield the messages of a mailbox, cut after `MAX_MESSAGE_BYTES` and a line."""
    with path.open("rb") as stream:
        lines: list[bytes] = []
        size, is_after_blank, has_begun = 0, True, False
        for line in stream:
            if is_after_blank and line.startswith(b"From ") and FROM_LINE.match(line):
                if has_begun:
                    yield _QUOTED_FROM.sub(rb"\1", b"".join(lines))
                lines, size, has_begun = [], 0, True
            elif has_begun and size <= MAX_MESSAGE_BYTES:
                lines.append(line)
                size += len(line)
            is_after_blank = not line.strip()
        if has_begun:
            yield _QUOTED_FROM.sub(rb"\1", b"".join(lines))


def read_message(message: Message, title: str, member: str) -> Parts:
    """Yield the message and its attachments. `title` is that of a message without a subject."""
    bodies: list[str] = []
    attachments: list[Message] = []
    _sort_parts(message, bodies, attachments)
    fields = {name: _read_field(message, name) for name in _SHOWN_FIELDS}
    head = "\n".join(f"{name}: {value}" for name, value in fields.items() if value)
    body = "\n\n".join(filter(None, bodies)).strip("\n")
    title, date = fields["Subject"] or title, _read_date(fields["Date"])
    if not head:
        yield ReadFailure("is not an e-mail: it has no sender, date or subject", member=member)
        return
    yield Document(
        text=f"{head}\n\n{body}\n",
        title=title,
        creation_date=date,
        metadata=_describe_thread(message),
        member=member,
    )
    for number, part in enumerate(attachments, 1):
        content = _read_payload(part)
        file = _name_attachment(part, number)
        member_name = f"{member}/{file}" if member else file
        stream = partial(BytesIO, content)
        yield Member(member_name, len(content), stream, title=title, creation_date=date)


def _sort_parts(message: Message, bodies: list[str] | None, attachments: list[Message]) -> None:
    """Add the texts of a message, if they are wanted, and its attachments to lists."""
    kind = message.get_content_type()
    payload = message.get_payload()
    parts = [one for one in payload if isinstance(one, Message)] if message.is_multipart() else []
    if kind == "multipart/alternative" and parts:
        # The first form is plain text; a form without words is there for programs only.
        found: list[str] = []
        for part in parts:
            _sort_parts(part, None if bodies is None or any(found) else found, attachments)
        if bodies is not None:
            bodies += found
    elif message.get_content_maintype() == "multipart" and parts:
        for part in parts:
            _sort_parts(part, bodies, attachments)
    elif kind in ("text/plain", "text/html") and not _is_attachment(message):
        if bodies is not None:
            bodies.append(_read_body(message))
    else:
        attachments.append(message)


def _is_attachment(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or bool(_get_file_name(part))


def _get_file_name(part: Message) -> str:
    try:
        return _decode_words(part.get_filename() or "")
    except (LookupError, TypeError, ValueError):  # a parameter in an unknown encoding
        return ""


def _name_attachment(part: Message, number: int) -> str:
    name = _get_file_name(part).replace("\\", "/").rpartition("/")[2]
    if not name and part.get_content_type() == "message/rfc822":
        name = f"attachment {number}.eml"
    return name or f"attachment {number}{guess_extension(part.get_content_type()) or ''}"


def _read_payload(part: Message) -> bytes:
    payload = part.get_payload()
    try:
        if isinstance(payload, list):  # an attached message
            return b"".join(one.as_bytes() for one in payload[:1] if isinstance(one, Message))
        decoded = part.get_payload(decode=True)
    except (LookupError, ValueError, AttributeError, TypeError):
        decoded = None  # a damaged header
    return decoded if isinstance(decoded, bytes) else str(payload).encode("utf-8", "replace")


def _read_body(part: Message) -> str:
    charset = part.get_content_charset()
    text = normalize_newlines(decode(_read_payload(part), charset))
    if part.get_content_type() == "text/html":
        text = Page(text).text
    return text if text.strip() else ""


def decode(data: bytes, charset: str | None) -> str:
    """Decode bytes by the stated encoding, or by that which is detected if it does not fit."""
    for name in (charset, "utf-8"):
        try:
            if name:
                return data.decode(name)
        except (LookupError, ValueError):
            continue
    try:
        return data.decode(detect_encoding(BytesIO(data), charset).name, "replace")
    except (UnreadableFile, LookupError):
        return data.decode("utf-8", "replace")


def _read_fields(message: Message, name: str) -> list[str]:
    raw = [str(value) for key, value in message.raw_items() if key.lower() == name.lower()]
    return [
        decode(value.encode("ascii", "surrogateescape"), None) if has_surrogates(value) else value
        for value in raw
    ]


def _read_field(message: Message, name: str) -> str:
    return as_one_line(_decode_words(", ".join(_read_fields(message, name))))


def _decode_words(value: str) -> str:
    """Decode the encoded words of a header field, such as ``=?utf-8?q?M=C3=BCller?=``."""
    try:
        return "".join(
            part if isinstance(part, str) else decode(part, charset)
            for part, charset in decode_header(value)
        )
    except (HeaderParseError, ValueError):
        return value


def _read_date(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, OverflowError, IndexError):
        return text


def _describe_thread(message: Message) -> str:
    """Return as JSON who wrote to whom, and the ids of the message, its parent and its thread."""
    own, parents, references = (
        _MESSAGE_ID.findall(" ".join(_read_fields(message, name)))
        for name in ("Message-ID", "In-Reply-To", "References")
    )
    parents = parents or references[-1:]
    people = {
        key: [
            _decode_words(name) or address
            for name, address in getaddresses(fields)
            if name or address
        ]
        for key, fields in {
            "from": _read_fields(message, "From"),
            "to": _read_fields(message, "To") + _read_fields(message, "Cc"),
        }.items()
    }
    ids = {
        "message_id": own[:1],
        "in_reply_to": parents[:1],
        "thread": (references or parents or own)[:1],
    }
    return to_json({key: value for key, value in (people | ids).items() if value})
