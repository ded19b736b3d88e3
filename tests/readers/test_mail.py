"""E-mail: messages, their attachments and mailboxes."""

import json
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.readers import Document, ReadFailure, parse_process
from graphrag_index.readers.content import identify_content
from graphrag_index.readers.mail import read_mail
from graphrag_index.schema.settings.step_sections import LoadDocuments
from tests.fixtures.cases import cases
from tests.fixtures.read_documents import load, read, read_one, reasons, write
from tests.fixtures.sample_files import (
    make_compound,
    make_message,
    make_outlook,
    make_properties,
)

HEAD = "From: Anna Berg <anna@a.example>\nTo: Karl Ost <karl@a.example>\nSubject: Riga\n"
DATE = "Date: Fri, 4 May 2001 14:05:44 -0400\n"


def test_a_message_is_a_document_that_says_who_wrote_what_to_whom_and_when(tmp_path: Path) -> None:
    message = make_message("Re: Größe des Hafens")
    message["Message-ID"] = "<2@a.example>"
    message["In-Reply-To"] = "<1@a.example>"
    message["References"] = "<0@a.example> <1@a.example>"
    found = read_one(tmp_path / "a.eml", message.as_bytes())
    assert found.text == (
        "From: Jörg Müller <jm@a.example>\nTo: Karl Ost <karl@a.example>, eva@a.example\n"
        "Date: Mon, 14 May 2001 16:39:00 -0700\nSubject: Re: Größe des Hafens\n\n"
        "The port of Riga pays.\n"
    )
    assert (found.title, found.creation_date) == (
        "Re: Größe des Hafens",
        "2001-05-14T16:39:00-07:00",
    )
    assert json.loads(found.metadata or "") == {
        "from": ["Jörg Müller"],
        "to": ["Karl Ost", "eva@a.example"],
        "message_id": ["2@a.example"],
        "in_reply_to": ["1@a.example"],
        "thread": ["0@a.example"],
    }


def test_the_plain_form_of_a_text_is_read_and_html_only_without_one(tmp_path: Path) -> None:
    message = make_message()
    message.add_alternative("<p>The port of <b>Riga</b> pays more.", subtype="html")
    assert read_one(tmp_path / "a.eml", message.as_bytes()).text.endswith(
        "\n\nThe port of Riga pays.\n"
    )
    message.get_payload()[0].set_payload(" \n")  # type: ignore[union-attr, index]
    assert read_one(tmp_path / "a.eml", message.as_bytes()).text.endswith(
        "\n\nThe port of Riga pays more.\n"
    )


def test_attachments_are_documents_named_after_the_message(tmp_path: Path) -> None:
    inner = make_message("Inner", "Ida Holm signed.")
    inner.add_attachment(b"name,text\nx,Row one.\ny,Row two.\n", "text", "csv", filename="t.csv")
    message = make_message()
    message.add_attachment(b"<title>Plan</title><p>Dig.", "text", "html", filename="../p.html")
    message.add_attachment(b"\x89PNG\r\n\x1a\n\0", "image", "png")
    message.add_attachment(b" \n", "text", "plain", filename="empty.txt")
    message.add_attachment(inner)
    documents, unread = load(write(tmp_path, {"a.eml": message.as_bytes()}))
    assert unread.is_empty()
    assert documents.select("path", "title").rows() == [
        ("a.eml", "Budget"),
        ("a.eml/p.html", "Budget: Plan"),
        ("a.eml/attachment 4.eml", "Budget: Inner"),
        ("a.eml/attachment 4.eml/t.csv", "Budget: Inner: t.csv (1)"),
        ("a.eml/attachment 4.eml/t.csv", "Budget: Inner: t.csv (2)"),
    ]
    assert set(documents["creation_date"]) == {"2001-05-14T16:39:00-07:00"}
    skipped = [
        (one.member, one.is_skipped)
        for one in read(tmp_path / "a.eml", message.as_bytes())
        if isinstance(one, ReadFailure)
    ]
    assert skipped == [("attachment 2.png", True), ("empty.txt", True)]


def test_a_mailbox_is_a_document_for_each_message(tmp_path: Path) -> None:
    messages = (
        f"From anna@a.example Fri May  4 14:05:44 2001\n{HEAD}{DATE}\n"
        ">From Riga we went on.\n\nFrom here on, all is well.\n\n"
        "From karl@a.example Sat May  5 14:05:44 2001\n"
        "Subject: \nFrom: Karl Ost\n\nYes.\n"
    )
    found = read(tmp_path / "a.mbox", messages)
    assert [(d.title, d.member, d.text) for d in found if isinstance(d, Document)] == [
        (
            "Riga",
            "message 1",
            f"{HEAD.replace('Subject', DATE + 'Subject')}\n"
            "From Riga we went on.\n\nFrom here on, all is well.\n",
        ),
        ("a.mbox (2)", "message 2", "From: Karl Ost\n\nYes.\n"),
    ]
    assert [d.title for d in read(tmp_path / "Inbox", messages) if isinstance(d, Document)] == [
        "Riga",
        "Inbox (2)",
    ]
    assert reasons(tmp_path / "b.mbox", "No mail") == ["has no messages"]


def test_a_message_without_the_suffix_is_told_by_its_header(tmp_path: Path) -> None:
    assert read_one(tmp_path / "1.", f"{HEAD}{DATE}\nYes.\n").title == "Riga"
    # A text may begin with such lines; without a blank line after them it is none.
    assert read_one(tmp_path / "notes", f"{HEAD}{DATE}").title == "notes"
    assert read_one(tmp_path / "log", "From: a\nSubject: b\n\nx").title == "log"


@cases("header, title")
def test_headers_are_decoded(tmp_path: Path, header: str, title: str) -> None:
    content = header.encode("latin-1")
    assert read_one(tmp_path / "a.eml", b"Subject: " + content + b"\n\nx").title == title


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/plain; charset=koi8-r", "Лев пишет из Риги.".encode("koi8-r")),
        ("text/plain; charset=no-such", "Лев пишет из Риги.".encode()),
        ("text/plain; charset=us-ascii", "Лев пишет из Риги.".encode()),
    ],
)
def test_bodies_are_decoded_also_if_their_encoding_is_stated_wrongly(
    tmp_path: Path, kind: str, body: bytes
) -> None:
    head = f"{HEAD}Content-Type: {kind}\nContent-Transfer-Encoding: 8bit\n\n".encode()
    assert read_one(tmp_path / "a.eml", head + body).text.endswith("\n\nЛев пишет из Риги.\n")


def test_what_is_no_message_says_so(tmp_path: Path) -> None:
    (reason,) = reasons(tmp_path / "a.eml", "Just a text.")
    assert reason == "is not an e-mail: it has no sender, date or subject"


@given(
    st.lists(
        st.sampled_from(
            [
                *("From: a@b\n", "Subject: =?utf-8?q?=C3=BC?=\n", "Date: 99 99\n", "\n", "x\n"),
                *("Content-Type: multipart/mixed; boundary=b\n", "--b\n", "--b--\n", " =\n"),
                *("Content-Type: message/rfc822\n", "Content-Transfer-Encoding: base64\n", "A=\n"),
                *("Content-Disposition: attachment; filename*=x''%\n", "To: =?x?b?=?=\n", "\xff\n"),
                *("Content-Type: text/html; charset=utf-16\n", "<p>\n", "Message-ID: <a>\n", ":\n"),
            ]
        ),
        max_size=14,
    )
)
def test_no_header_stops_the_program(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.eml"
    path.write_bytes("".join(lines).encode("latin-1"))
    for item in read_mail(path, "any.eml", LoadDocuments()):
        assert not isinstance(item, Document) or item.to_printable().text


@pytest.mark.parametrize(
    "field",
    [
        "Content-Type: multipart/mixed; boundary*=idna''abc",
        "Content-Type: text/plain; charset*=a\0b''utf-8",
        "From: " + "(" * 3_000,
    ],
)
def test_a_damaged_message_costs_no_other(tmp_path: Path, field: str) -> None:
    whole = "From: eva@a.example\nSubject: One\n\nThe port of Riga pays.\n"
    begin = "From eva Mon May 14 16:39:00 2001\n"
    mailbox = f"{begin}{whole}\n{begin}{field}\nSubject: Two\n\nNo.\n\n{begin}{whole}"
    found = read(tmp_path / "a.mbox", mailbox.encode())
    assert [item.member for item in found if isinstance(item, Document)][::2] == ["message 1"]
    assert found[-1].member == "message 3"
    assert read(tmp_path / "a.eml", f"{field}\nSubject: Two\n\nNo.\n".encode())


@pytest.mark.parametrize("name", ["...", ".", ". .", "..", "a/.."])
def test_an_attachment_without_a_name_is_read(tmp_path: Path, name: str) -> None:
    message = make_message()
    message.add_attachment("Karl Ost left.", filename=name)
    found = read(tmp_path / "a.eml", message.as_bytes())
    assert [type(item) for item in found] == [Document, Document]


def test_text_that_looks_like_the_head_of_a_message_is_told_at_once(tmp_path: Path) -> None:
    for text in ("key: value\r\n" * 5_000, "From " + "11:11 1111 " * 20_000, "a: b\n c\n" * 5_000):
        (tmp_path / "a").write_bytes(text.encode())
        assert identify_content(tmp_path / "a").suffix == ".txt"


def test_a_message_of_outlook_is_read_like_one_of_e_mail(tmp_path: Path) -> None:
    files = {"quay.txt": b"The quay is old. " * 300, "a.md": b"# Port"}
    found, quay, port = read(tmp_path / "a.msg", make_outlook(files))
    assert isinstance(found, Document)
    assert isinstance(quay, Document)
    assert isinstance(port, Document)
    assert found.text == (
        "From: Jörg Müller <jm@a.example>\nTo: Karl Ost <karl@a.example>\n"
        'Cc: "Berg, Anna"\nDate: Mon, 14 May 2001 23:39:00 +0000\nSubject: Größe des Hafens\n\n'
        "The port of Riga pays.\n\nYours\n"
    )
    assert found.title == "Größe des Hafens"
    assert found.creation_date == quay.creation_date == "2001-05-14T23:39:00+00:00"
    assert json.loads(found.metadata or "") == {
        "from": ["Jörg Müller"],
        "to": ["Karl Ost", "Berg, Anna"],
        "message_id": ["2@a.example"],
        "in_reply_to": ["1@a.example"],
        "thread": ["1@a.example"],
    }
    assert (quay.member, quay.text) == ("quay.txt", files["quay.txt"].decode())
    assert (port.title, port.member) == ("Größe des Hafens: Port", "a.md")


def read_outlook(path: Path, *properties: dict[int, Any], **parts: Any) -> list[Any]:
    return read(path, make_compound(make_properties(*properties, **parts)))


def test_a_message_attached_to_one_of_outlook_is_read_in_its_own_right(tmp_path: Path) -> None:
    inner = make_properties(
        {0x0037: "Größe", 0x1013: b"<p>F\xfcr <b>Anna</b>", 0x3FDE: 1252},
        recip=[make_properties({0x0C15: 1, 0x3001: "anna@a.example"})],
    )
    attached = make_properties({0x3001: "Re: Größe"})
    attached["__substg1.0_3701000D"] = inner
    whole, one = read_outlook(
        tmp_path / "a.msg", {0x0037: "Port", 0x1000: "See."}, attach=[attached]
    )
    assert whole.text == "Subject: Port\n\nSee.\n"
    assert (one.member, one.title) == ("Re: Größe.eml", "Port: Größe")
    assert one.text == "To: anna@a.example\nSubject: Größe\n\nFür Anna\n"


def test_the_header_that_was_sent_and_the_code_page_are_believed(tmp_path: Path) -> None:
    sent = "From: Anna <a@a.example>\r\nDate: Fri, 4 May 2001 14:05:44 -0400\r\n"
    properties = make_properties({0x007D: sent, 0x0C1A: "A", 0x0037: "Порт", 0x3FFD: 1251})
    properties["__substg1.0_1000001E"] = "Порт Риги".encode("cp1251") + b"\0"
    (found,) = read(tmp_path / "a.msg", make_compound(properties))
    assert isinstance(found, Document)
    assert found.text == f"From: Anna <a@a.example>\n{DATE}Subject: Порт\n\nПорт Риги\n"


def test_a_text_in_compressed_rtf_only_and_an_embedded_object_are_listed(tmp_path: Path) -> None:
    sheet = make_properties({0x3001: "Sheet"}) | {"__substg1.0_3701000D": {"Workbook": b"x"}}
    properties = {0x0037: "Port", 0x1009: bytes(99) + b"LZFu"}
    _, rtf, embedded = read_outlook(tmp_path / "a.msg", properties, attach=[sheet])
    assert rtf == ReadFailure("is binary data", True, "text in compressed RTF")
    assert embedded == ReadFailure("is without text", True, "Sheet")


def test_a_message_of_outlook_made_to_fill_the_memory_is_named(tmp_path: Path) -> None:
    content = make_outlook({f"{n}.txt": b"x" * 5_000 for n in range(9)})
    # Each attachment begins with the first sector, and the table of sectors leads back to it.
    entry = "__substg1.0_37010102".encode("utf-16-le").ljust(64, b"\0")
    at = -1
    for _ in range(9):
        at = content.index(entry, at + 1)
        content = content[: at + 116] + pack("<IQ", 0, len(content)) + content[at + 128 :]
    said = "is a damaged or incomplete .msg file: "
    assert reasons(tmp_path / "a.msg", content) == [f"{said}its streams overlap"]
    (reason,) = reasons(tmp_path / "a.msg", content[:30] + b"\2" + content[31:])
    assert reason.startswith(said)


def test_a_table_of_sectors_without_an_end_costs_its_file_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_process._PARSER, "_max_seconds", 3)
    content, n_blocks = bytearray(make_outlook({})), 1 << 20
    # A block of the table of sectors that names itself as the next one.
    at = len(content) // 512 - 1
    content += pack("<128I", *[0] * 127, at)
    content[44:48] = pack("<I", 109 + 127 * n_blocks)
    content[68:76] = pack("<II", at, n_blocks)
    (reason,) = reasons(tmp_path / "a.msg", bytes(content))
    assert reason == "cannot be read: its parser needs more than 3 s"


def test_odd_properties_of_a_message_of_outlook_cost_themselves_only(tmp_path: Path) -> None:
    properties = make_properties({0x1000: "See.", 0x0039: 2**63, 0x0C1A: 'Karl "K" Ost, Riga'})
    # Half of a character is cut off.
    properties["__substg1.0_0037001F"] = "Größe 😀".encode("utf-16-le")[:-2]
    (found,) = read(tmp_path / "a.msg", make_compound(properties))
    assert isinstance(found, Document)
    assert (found.title, found.creation_date) == ("Größe \ufffd", "")
    assert json.loads(found.metadata or "") == {"from": ['Karl "K" Ost, Riga']}
