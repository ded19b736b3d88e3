"""Reader of messages of Outlook (.msg), which are read as messages of e-mail.

Such a file is a compound file [MS-CFB]. Its streams are the properties of the message, of its
recipients and of its attachments [MS-OXMSG]; their numbers are those of [MS-OXPROPS].
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email import message_from_string
from email.message import Message
from email.mime.application import MIMEApplication
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import format_datetime, formataddr, quote
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from graphrag_index.readers.document import UnreadableFile, as_one_line
from graphrag_index.readers.mail import Parts, decode, read_message
from graphrag_index.readers.parse_process import DamagedFile, call_parser
from graphrag_index.schema.settings.step_sections import LoadDocuments

Storage = dict[str, Any]  # streams, which are bytes, and storages, by their names


def read_outlook(path: Path, name: str, settings: LoadDocuments) -> Parts:
    """Read a message of Outlook; its attachments are read as files of their own."""
    try:
        mail = call_parser(path, "message of Outlook")
    except DamagedFile as error:
        raise UnreadableFile(f"is a damaged or incomplete .msg file: {error}") from error
    yield from read_message(mail, PurePosixPath(name).name, "")


def parse_outlook(data: bytes) -> Message:
    """Return a message of Outlook as one of e-mail. Raises DamagedFile if its streams overlap."""
    from olefile import STGTY_STREAM, OleFileIO

    left = len(data)

    def read_storage(storage: Any) -> Storage:
        nonlocal left
        found = Storage()
        for one in storage.kids:
            if one.entry_type == STGTY_STREAM:
                left -= one.size
                if left < 0:
                    raise DamagedFile("its streams overlap")
                # `openstream` compares the names of all streams.
                found[one.name] = file._open(one.isectStart, one.size).read()
            else:
                found[one.name] = read_storage(one)
        return found

    # A shorter text would be the path of a file.
    with OleFileIO(BytesIO(data)) as file:
        return _Properties(read_storage(file.root)).to_mail()


class _Properties:
    """A message, a recipient or an attachment, with its properties by their numbers."""

    def __init__(self, storage: Storage, codec: str = "") -> None:
        self.storage = storage
        rows = storage.get("__properties_version1.0", b"")
        # A header of 8, 24 or 32 bytes, and rows of 16 bytes.
        self._values = {
            int.from_bytes(rows[at + 2 : at + 4], "little"): rows[at + 8 : at + 16]
            for at in range(len(rows) % 16, len(rows) - 15, 16)
        }
        # The code pages of strings that are not in Unicode, and of a text in HTML.
        self.codec = codec or f"cp{self.read_number(0x3FFD) or self.read_number(0x3FDE) or 1252}"
        self.codec_of_html = f"cp{self.read_number(0x3FDE)}"

    def read_number(self, number: int, n_bytes: int = 4) -> int:
        return int.from_bytes(self._values.get(number, b"")[:n_bytes], "little")

    def read_text(self, *numbers: int) -> str:
        """Return the first of these properties that there is."""
        kinds = (("001F", "utf-16-le"), ("001E", self.codec), ("0102", self.codec_of_html))
        for number in numbers:
            for kind, codec in kinds:
                if data := self.storage.get(f"__substg1.0_{number:04X}{kind}"):
                    # Outlook cuts subjects and names, also inside of a character.
                    is_unicode = codec == "utf-16-le"
                    text = data.decode(codec, "replace") if is_unicode else decode(data, codec)
                    return text.rstrip("\0")
        return ""

    def read_date(self, *numbers: int) -> str:
        for number in numbers:
            if ticks := self.read_number(number, 8):  # tenths of microseconds since 1601
                with suppress(OverflowError):
                    date = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(0, 0, ticks / 10)
                    return format_datetime(date)
        return ""

    def read_person(self, name: int, *addresses: int) -> str:
        shown, address = as_one_line(self.read_text(name)), as_one_line(self.read_text(*addresses))
        if "@" in address and address.isascii() and not address.startswith("/"):
            return formataddr((shown if shown != address else "", address))
        return f'"{quote(shown)}"' if shown and "@" not in shown else shown

    def list_parts(self, kind: str) -> "Iterator[_Properties]":
        for name in sorted(self.storage):
            if name.startswith(f"__{kind}_version1.0_#"):
                yield _Properties(self.storage[name], self.codec)

    def to_mail(self) -> Message:
        """Return a message with its attachments as one of e-mail."""
        people: dict[int, list[str]] = {1: [], 2: [], 3: []}
        for one in self.list_parts("recip"):
            people.setdefault(one.read_number(0x0C15), []).append(
                one.read_person(0x3001, 0x39FE, 0x3003)
            )
        fields = {
            "From": self.read_person(0x0C1A, 0x5D01, 0x0C1F),
            "To": ", ".join(people[1]),
            "Cc": ", ".join(people[2]),
            "Date": self.read_date(0x0039, 0x0E06, 0x3007),
            "Subject": self.read_text(0x0037),
            "Message-ID": self.read_text(0x1035),
            "In-Reply-To": self.read_text(0x1042),
            "References": self.read_text(0x1039),
        }
        sent, mail = message_from_string(self.read_text(0x007D)), MIMEMultipart()
        for name, value in fields.items():
            mail[name] = as_one_line(", ".join(sent.get_all(name, ())) or value)
        if text := self.read_text(0x1000):
            mail.attach(MIMEText(text, "plain", "utf-8"))
        elif text := self.read_text(0x1013):
            mail.attach(MIMEText(text, "html", "utf-8"))
        elif rtf := self.storage.get("__substg1.0_10090102"):
            _attach(mail, MIMEApplication(rtf), "text in compressed RTF")
        for one in self.list_parts("attach"):
            name = as_one_line(one.read_text(0x3707, 0x3704, 0x3001))
            inner = one.storage.get("__substg1.0_3701000D", ())
            # An object of another program is a storage too.
            if "__properties_version1.0" in inner:
                _attach(mail, MIMEMessage(_Properties(inner).to_mail()), f"{name}.eml")
            else:
                data = one.storage.get("__substg1.0_37010102", b"")
                _attach(mail, MIMEApplication(data), name)
        return mail


def _attach(mail: Message, part: Message, name: str) -> None:
    part.add_header("Content-Disposition", "attachment", filename=name)
    mail.attach(part)
