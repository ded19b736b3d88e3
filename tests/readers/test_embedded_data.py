"""Data in a text becomes a placeholder, and the text around it stays as it is."""

import base64
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.readers.embedded_data import replace_data
from tests.fixtures.cases import cases
from tests.fixtures.read_documents import read_one, reasons

BYTES = bytes(number * number % 251 for number in range(3_000))
LINE = base64.b64encode(BYTES).decode("ascii")
PEM = base64.encodebytes(BYTES).decode("ascii")
SCRIPT = '!function(e,t){"use strict";var n=e.length;for(i=0;i<n;i++)t(e[i]);return(n)}(a,b);' * 9
SVG = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><path d='M1 2 L3 4'/></svg>"
DUMP = "".join(
    f"{start:08x}  {BYTES[start : start + 16].hex(' ')}  |................|\n"
    for start in range(0, 96, 16)
)
DATA = {
    "picture": (f"data:image/png;base64,{LINE}", "image/png"),
    "link": (f"data:text/html;charset=utf-8;base64,{LINE}", "text/html"),
    "untyped address": (f"data:;base64,{LINE}", "data"),
    "percent-encoded": (
        "data:text/plain,%D0%9F%D1%80%D0%B8%D0%B2%D0%B5%D1%82%21" * 2,
        "text/plain",
    ),
    "drawing": (f"data:image/svg+xml;utf8,{SVG}", "image/svg+xml"),
    "wrapped picture": (f"data:image/gif;base64,{PEM[:500].rstrip()}", "image/gif"),
    "base64": (LINE, "data"),
    "base64 for addresses": (base64.urlsafe_b64encode(BYTES[::-1]).decode("ascii"), "data"),
    "key in JSON": (PEM[:600].replace("\n", "\\n"), "data"),
    "hexadecimal": (BYTES[:200].hex(), "data"),
    "certificate": (PEM.rstrip(), "data"),
    "quoted mail": (re.sub("^", "> ", PEM.rstrip(), flags=re.M), "data"),
    "ascii85": (base64.a85encode(BYTES, wrapcol=70).decode("ascii").replace(" ", "!"), "data"),
    "hex dump": (DUMP + "00000060", "data"),
    "script": (SCRIPT, "script"),
    "style sheet": (".a{color:#fff;margin:0}.b>li:after{content:'';width:9px;}" * 12, "script"),
}


@pytest.mark.parametrize("name", DATA)
def test_data_becomes_a_placeholder_with_its_length(name: str) -> None:
    data, kind = DATA[name]
    for before, after in (
        ("Anna Berg saw it.\n\n", "\n\nKarl Ost left."),
        ("東京へ。\n", "\nΤέλος."),
    ):
        assert replace_data(before + data + after) == (
            f"{before}[{kind}, {len(data):,} characters]{after}"
        )


@pytest.mark.parametrize(
    "around", ["![photo]({})", '<a href="{}">', "url('{}')", "[1]: {} ", "<{}>"]
)
def test_an_address_ends_where_its_markup_ends(around: str) -> None:
    address = f"data:image/png;base64,{LINE}"
    text = f"See {around.format(address)} in Riga."
    shown = around.format(f"[image/png, {len(address):,} characters]")
    assert replace_data(text) == f"See {shown} in Riga."


@pytest.mark.parametrize(
    "text", [">" * 100_000, "data:,<svg " * 20_000, "0000010\n" + "aaaaaaa\t\t" * 16_000]
)
def test_a_text_made_to_be_searched_for_hours_stays(text: str) -> None:
    assert replace_data(text) == text


@cases("text")
def test_text_that_looks_like_data_stays(text: str) -> None:
    assert replace_data(text) == text
    assert replace_data(f"{text}\n" * 4) == f"{text}\n" * 4


@given(
    st.lists(
        st.one_of(
            st.sampled_from([data for data, _ in DATA.values()]),
            st.text(st.characters(codec="utf-8", exclude_characters="[]"), max_size=60),
        ),
        max_size=5,
    )
)
def test_positions_in_the_file_follow_from_the_placeholders(parts: list[str]) -> None:
    text = "\n\n".join(parts)
    position = 0
    for piece in re.split(r"(\[[\w./+-]+, [\d,]+ characters\])", replace_data(text)):
        found = re.fullmatch(r"\[[\w./+-]+, ([\d,]+) characters\]", piece)
        if found is None:
            assert text[position : position + len(piece)] == piece
            position += len(piece)
        else:
            position += int(found[1].replace(",", ""))
    assert position == len(text)


def test_every_reader_does_so(tmp_path: Path) -> None:
    address = f"data:image/png;base64,{LINE}"
    shown = f"![a]([image/png, {len(address):,} characters])"
    text = f"Anna Berg.\n\n![a]({address})\n\nKarl Ost."
    for name in ("a.txt", "a.md", "a.rst", "noname"):
        assert read_one(tmp_path / name, text).text == f"Anna Berg.\n\n{shown}\n\nKarl Ost."
    record = {"text": text, "title": f"T {LINE}", "picture": LINE}
    for name, content in {
        "a.json": json.dumps([record]),
        "a.jsonl": json.dumps(record),
        "a.csv": f'text,title,picture\n"{text}",T {LINE},{LINE}\n',
    }.items():
        found = read_one(tmp_path / name, content, metadata_columns=["picture"])
        assert found.text == f"Anna Berg.\n\n{shown}\n\nKarl Ost."
        assert found.title == f"T [data, {len(LINE):,} characters]"
        assert json.loads(found.metadata or "") == {"picture": f"[data, {len(LINE):,} characters]"}
        assert LINE in (found.raw_data or "")
    quoted = json.dumps([{"text": text, "said": f'He said: "{LINE}"', "n": [1, LINE]}])
    found = read_one(tmp_path / "b.json", quoted, metadata_columns=["said", "n"])
    held = f"[data, {len(LINE):,} characters]"
    assert json.loads(found.metadata or "") == {"said": f'He said: "{held}"', "n": [1, held]}
    page = f"<h1>Site</h1><p>Zed Moor saw it.</p><img src='{address}'><pre>{PEM}</pre>"
    assert read_one(tmp_path / "a.html", page).text.splitlines()[4:6] == [
        "```",
        f"[data, {len(PEM) - 1:,} characters]",
    ]


def test_a_file_of_nothing_but_data_is_skipped(tmp_path: Path) -> None:
    said = "holds only data, such as base64 or a minified script"
    assert reasons(tmp_path / "a.min.js", SCRIPT) == [said]
    assert reasons(tmp_path / "a.txt", f"{PEM}\n\n{PEM}") == [said]
