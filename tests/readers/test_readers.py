"""Each format: what its documents are, and what is said of what cannot be read."""

import codecs
import io
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.readers import Document, Unread, read_file
from graphrag_index.readers.document import UnreadableFile
from graphrag_index.readers.encodings import Encoding, detect_encoding
from graphrag_index.readers.html import Page
from graphrag_index.readers.json_stream import JsonStream
from graphrag_index.readers.text_pdf_and_office import first_heading, split_front_matter
from graphrag_index.schema.settings.embedded_steps import LoadDocuments
from graphrag_index.text.sentences import find_headings

GERMAN = (
    "Der Schriftsteller Günter Graß lebte in Lübeck; später zog er nach München. "
    "„Über die Brücke“, schrieb er, führt kein Weg zurück."
)
POLISH = (
    "Władysław Żeleński urodził się w Łodzi, gdzie później mieszkał z żoną Elżbietą. "
    "Książę Józef przyjechał również."
)


def read(path: Path, content: str | bytes, **settings: object) -> list[Document | Unread]:
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return list(read_file(path, path.name, LoadDocuments.model_validate(settings)))


def read_one(path: Path, content: str | bytes, **settings: object) -> Document:
    (document,) = read(path, content, **settings)
    assert isinstance(document, Document)
    return document


def reasons(path: Path, content: str | bytes, **settings: object) -> list[str]:
    return [item.reason for item in read(path, content, **settings) if isinstance(item, Unread)]


def texts(path: Path, content: str | bytes, **settings: object) -> list[str]:
    return [item.text for item in read(path, content, **settings) if isinstance(item, Document)]


class TestPlainText:
    def test_a_text_file_is_called_as_the_file_and_keeps_all_but_its_line_ends(
        self, tmp_path: Path
    ) -> None:
        found = read_one(
            tmp_path / "a.txt", "  One\r\n\r\ntwo\rthree\t\u2028e\u0301 <|endoftext|>\n"
        )
        assert found.text == "  One\n\ntwo\nthree\t\u2028e\u0301 <|endoftext|>\n"
        assert (found.title, found.creation_date, found.raw_data) == ("a.txt", "", None)

    @pytest.mark.parametrize("content", ["", " \n\t ", "\ufeff\n"])
    def test_a_file_without_text_is_not_a_document(self, tmp_path: Path, content: str) -> None:
        assert reasons(tmp_path / "a.txt", content) == ["has no text"]

    def test_a_binary_file_is_not_text(self, tmp_path: Path) -> None:
        said = "looks binary; if it is text, set load_documents.encoding"
        assert reasons(tmp_path / "a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0") == [said]
        assert reasons(tmp_path / "b.txt", bytes(range(1, 32)) * 9) == [said]
        late = b"a" * 100_000 + b"\0"
        assert reasons(tmp_path / "c.txt", late) == ["looks binary: null at byte 100,000"]

    def test_a_missing_file_says_so(self, tmp_path: Path) -> None:
        (unread,) = read_file(tmp_path / "no.txt", "no.txt", LoadDocuments())
        assert unread == Unread("cannot be read: No such file or directory")


class TestEncodings:
    @pytest.mark.parametrize(
        ("text", "encoding"),
        [
            ("Lübeck 東京 🙂", "utf-8"),
            ("Lübeck 東京 🙂", "utf-8-sig"),
            ("Lübeck 東京 🙂", "utf-16"),
            ("Lübeck 東京 🙂", "utf-32"),
            ("\ufeffLübeck", "utf-16-be"),
            ("A plain sentence in sixteen bits, Müller.", "utf-16-le"),
            ("A plain sentence in sixteen bits, Müller.", "utf-16-be"),
            (GERMAN, "cp1252"),
            ("Käthe Müller aß Brötchen.", "cp1252"),
            ("“It’s over,” said Mr. Brown — and left for £5 and 3 m³ of coal.", "cp1252"),
            ("The café was closed on Monday.", "cp1252"),
            ("L’été dernier, François est allé à l’hôpital. Ça va, dit-elle.", "cp1252"),
            ("El señor Muñoz vivía en Córdoba; ¿quién lo conocía? ¡Nadie!", "cp1252"),
            ("Åke Öberg åkte från Malmö till Göteborg.", "cp1252"),
            (POLISH, "cp1250"),
            (POLISH, "iso8859_2"),
            ("Příliš žluťoučký kůň úpěl ďábelské ódy v Praze.", "cp1250"),
            ("Az őrült író, Petőfi Sándor, Kiskőrösön született.", "cp1250"),
            ("Atatürk Selanik'te doğdu, şehirde büyüdü ve İstanbul'a gitti.", "cp1254"),
            ("Лев Толстой родился в Ясной Поляне.", "cp1251"),
            ("Ο Αριστοτέλης γεννήθηκε στα Στάγειρα.", "cp1253"),
            ("東京は日本の首都です。夏目漱石は小説家でした。", "cp932"),
            ("北京是中华人民共和国的首都。鲁迅出生于浙江绍兴。", "gb18030"),
            (GERMAN.replace("„", '"').replace("“", '"'), "cp850"),
            (GERMAN, "mac_roman"),
            ("Władysław Żeleński urodził się w Łodzi.", "cp852"),
            ("Лев Толстой родился в Ясной Поляне.", "cp866"),
            ("北京是中华人民共和国的首都。\n鲁迅出生于浙江绍兴。", "utf-16-le"),
            ("北京是中华人民共和国的首都。\n鲁迅出生于浙江绍兴。", "utf-16-be"),
            ("北京是中华人民共和国的首都。", "utf-16-le"),
            ("東京は日本の首都です。\n夏目漱石は小説家でした。", "utf-16-le"),
            ("東京は日本の首都です。", "utf-16-be"),
            ("서울은 대한민국의 수도이다. 세종대왕은 조선의 왕이다.\n", "utf-16-le"),
        ],
    )
    def test_the_encoding_of_a_file_is_found(
        self, tmp_path: Path, text: str, encoding: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        found = read_one(tmp_path / "a.txt", text.encode(encoding))
        assert found.text == text.removeprefix("\ufeff")
        assert caplog.messages == []

    @given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
    def test_every_text_in_utf8_is_found_to_be_utf8(self, text: str) -> None:
        assert detect_encoding(io.BytesIO(("x" + text).encode("utf-8"))) == Encoding("utf-8")

    @pytest.mark.parametrize("length", range(65_530, 65_538))
    def test_a_character_at_the_edge_of_a_piece_stays_whole(
        self, tmp_path: Path, length: int
    ) -> None:
        text = "x" * length + "🙂東" + "y" * 2_000_000
        assert texts(tmp_path / "a.txt", text) == [text]

    def test_evidence_far_into_the_file_decides(self, tmp_path: Path) -> None:
        text = "Nothing but ASCII here.\n" * 10_000 + GERMAN
        assert texts(tmp_path / "a.txt", text.encode("cp1252")) == [text]

    def test_utf8_with_a_damaged_byte_is_not_taken_for_something_else(self, tmp_path: Path) -> None:
        damaged = GERMAN.encode("utf-8") + b" \xff\n"
        position = len(damaged) - 2
        assert reasons(tmp_path / "a.txt", damaged) == [
            f"is not valid utf-8: byte {position} is 0xff"
        ]

    @pytest.mark.parametrize(
        ("text", "encoding", "gives"),
        [
            ("Der König kam.", "cp850", "cp850, which gives 'König'"),
            ("Der König kam.", "mac_roman", "cp1250, which gives 'Kšnig'"),
            ("Ärger gab es nie.", "cp850", "cp1250, which gives 'Žrger'"),
            ("Die Tür stand offen.", "mac_roman", "cp1250, which gives 'Tźr'"),
            ("Лев Толстой родился в Ясной Поляне.", "mac_cyrillic", "cp1251, which gives '‹ев'"),
            ("ירושלים היא בירת ישראל.", "cp1255", "cp1251, which gives 'йшещмйн', 'дйа', 'бйшъ'"),
        ],
    )
    def test_a_guess_that_may_be_wrong_is_told_with_the_file_and_the_setting(
        self,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
        text: str,
        encoding: str,
        gives: str,
    ) -> None:
        path = tmp_path / "a.txt"
        read_one(path, text.encode(encoding))
        (said,) = caplog.messages
        assert said.startswith(f"{path}: its encoding is not certain; it is read as {gives}")
        assert said.endswith(" If that is wrong, set load_documents.encoding.")
        caplog.clear()
        assert texts(path, text.encode(encoding), encoding=encoding) == [text]
        assert caplog.messages == []

    @given(st.binary(max_size=80).map(lambda data: b"\x81\0" + data))
    def test_any_bytes_are_in_some_encoding_or_in_none(self, data: bytes) -> None:
        with suppress(UnreadableFile):
            assert codecs.lookup(detect_encoding(io.BytesIO(data)).name)

    def test_a_named_encoding_is_taken_strictly(self, tmp_path: Path) -> None:
        assert texts(tmp_path / "a.txt", b"\xe0", encoding="cp1251") == ["а"]
        assert reasons(tmp_path / "b.txt", b"\xe0", encoding="utf-8") == [
            "is not valid utf-8: byte 0 is 0xe0"
        ]
        # With or without its mark.
        assert texts(tmp_path / "c.txt", b"\xef\xbb\xbfa", encoding="utf-8") == ["a"]

    def test_an_unknown_encoding_is_refused_with_the_settings(self) -> None:
        with pytest.raises(ValueError, match="'utf-9' is no encoding"):
            LoadDocuments(encoding="utf-9")


class TestMarkdown:
    def test_front_matter_gives_title_date_and_metadata_and_leaves_the_text(
        self, tmp_path: Path
    ) -> None:
        found = read_one(
            tmp_path / "a.md",
            "---\ntitle: The  Voyage\ndate: 1914-08-01\ntags: [sea, ice]\nn: 1\n---\n\n# H\nText\n",
            metadata_columns=["tags", "missing"],
        )
        assert found == Document(
            text="\n# H\nText\n",
            title="The Voyage",
            creation_date="1914-08-01",
            metadata='{"tags": ["sea", "ice"]}',
        )

    @pytest.mark.parametrize(
        "text",
        [
            "---\ntitle: [broken\n---\nText",
            "---\njust words\n---\nText",
            "---\ndate: 2024-13-45\n---\nText",
            "---\ntitle: never closed\nText",
            "Text\n---\ntitle: too late\n---\n",
        ],
    )
    def test_front_matter_that_is_none_stays_in_the_text(self, text: str) -> None:
        assert split_front_matter(text) == ({}, text)

    def test_the_title_is_the_first_heading_else_the_file(self, tmp_path: Path) -> None:
        text = "## Second\n```sh\n# comment\n```\n# First #\n# Other\n"
        assert first_heading(text) == "First"
        assert read_one(tmp_path / "a.md", text).title == "First"
        assert read_one(tmp_path / "b.md", "#hashtag").title == "b.md"

    def test_times_of_day_are_kept_and_other_values_are_text(self, tmp_path: Path) -> None:
        at_noon = "---\ndate: 2024-05-01 12:00:00\n---\nText"
        assert read_one(tmp_path / "a.md", at_noon).creation_date == "2024-05-01T12:00:00"
        assert read_one(tmp_path / "a.md", "---\ndate: 1912\n---\nText").creation_date == "1912"
        assert read_one(tmp_path / "a.md", "---\ndate: [1]\n---\nText").creation_date == ""

    def test_front_matter_that_holds_itself_costs_only_its_file(self, tmp_path: Path) -> None:
        text = "---\ntags: &a [*a]\n---\nText"
        assert reasons(tmp_path / "a.md", text, metadata_columns=["tags"]) == [
            "is nested too deeply to be read"
        ]


class TestHtml:
    def test_what_a_reader_sees_becomes_markdown(self) -> None:
        page = Page(
            """<!DOCTYPE html><html><head><title>Polar &amp; Co</title><style>p{}</style></head>
            <body><header><h1>Site</h1></header><nav><ul><li>Home<li>About</ul></nav>
            <main><article><header><h1>Robert
            Scott</h1></header>
            <p>He was <b>born</b>&nbsp;in   1868.<br>In Devonport &#8211; <i>Devon</i>.
            <p>Second.
            <ul><li>one<li>two<ul><li>inner</ul></ul>
            <table><tr><th>Ship<th>Year<tr><td>Terra Nova</td><td>1910</td></tr>
            <tr><td></td><td>x</td></tr></table>
            <h2>Log</h2><pre>
  a
    b
</pre><script>no()</script><aside>no</aside><form>A <button>no</button>form</form>
            </article></main><footer>no</footer></body></html>"""
        )
        assert page.title == "Polar & Co"
        assert page.text == (
            "# Robert Scott\n\n"
            "He was born in 1868.\nIn Devonport – Devon.\n\n"
            "Second.\n\n"
            "- one\n- two\n  - inner\n\n"
            "Ship | Year\nTerra Nova | 1910\n | x\n\n"
            "## Log\n\n"
            "```\n  a\n    b\n```\n\n"
            "A form"
        )

    def test_a_table_that_lays_out_the_page_is_no_table(self) -> None:
        page = Page(
            "<table><tr><td><p>One</p><p>Two</p></td>"
            "<td><table><tr><td>a<td>b</table></td></tr></table>"
        )
        assert page.text == "One\n\nTwo\n\na | b"

    @pytest.mark.parametrize(
        ("source", "text"),
        [
            ("<p>a<p hidden>b<p>c", "a\n\nc"),
            ('<div style="color: red; Display : none !important">a<p>b</div>c', "c"),
            ('a <span style="visibility:hidden">b</span>c', "a c"),
            ('<div hidden="until-found">a</div><div hidden="">b</div>', "a"),
            ('<div style="overflow:hidden">a</div>', "a"),
            ('<body style="display:none"><p>Shown by a script.</body>', "Shown by a script."),
            ("<table><tr hidden><td>a<tr><td>b<td hidden>c<td>d</table>", "b | d"),
            ("<table><tr><td>a<table hidden><tr><td>b</table><td>c</table>", "a | c"),
            ("<ul><li hidden>a<li>b</ul>", "- b"),
        ],
    )
    def test_what_is_marked_as_hidden_is_left_out(self, source: str, text: str) -> None:
        assert Page(source).text == text

    @pytest.mark.parametrize(
        ("source", "text"),
        [
            ("<pre>\n# no heading\n\nls  -l\n</pre>a", "```\n# no heading\n\nls  -l\n```\n\na"),
            ("<pre>a\n```\nb</pre>", "```\na\n ```\nb\n```"),
            ("<pre><div># a</div><div>b\n</div><div>c</div></pre>", "```\n# a\nb\nc\n```"),
            ("<ul><li><pre># a</pre>b<li>c</ul>", "```\n# a\n```\nb\n- c"),
            ("<table><tr><td><pre>a</pre><td>b</table>", "a | b"),
            (
                "<table><tr><td><pre>1\n2</pre><td><pre># a\nb</pre></table>",
                "```\n1\n2\n```\n\n```\n# a\nb\n```",
            ),
            ("<pre> \n</pre>a", "a"),
        ],
    )
    def test_preformatted_text_is_a_fenced_block(self, source: str, text: str) -> None:
        page = Page(source)
        assert page.text == text
        assert find_headings(text) == []

    @pytest.mark.parametrize(
        "subset",
        [
            '<!ENTITY x "y">',
            "<!ENTITY x 'y>]'> <!-- don't ]> -->\n<!ELEMENT b (c)>",
            "",
        ],
    )
    def test_what_a_document_type_declares_is_no_text(self, subset: str) -> None:
        start = '<?xml version="1.0"?>\n<!doctype html PUBLIC "-//W3C//[DTD" "x.dtd" ['
        assert Page(f"{start}\n{subset}\n] >\n<p>a [b] > c").text == "a [b] > c"

    def test_an_element_left_open_hides_no_more_than_what_it_stands_in(self) -> None:
        assert Page("<div>a<nav>hidden</div>b").text == "a\n\nb"
        assert Page("<html><head><title>T</title><body>text").text == "text"

    def test_the_title_is_that_of_the_page_else_its_heading_else_the_file(
        self, tmp_path: Path
    ) -> None:
        assert read_one(tmp_path / "a.html", "<h1>Head <i>ing</i></h1>text").title == "Head ing"
        assert read_one(tmp_path / "a.html", "<p>text").title == "a.html"
        assert read_one(tmp_path / "a.html", "<title>T</title><h1>H</h1>").title == "T"

    def test_a_page_without_text_is_not_a_document(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.htm", "<nav>Home</nav><script>x</script>") == ["has no text"]

    def test_the_encoding_that_a_page_names_is_believed_where_bytes_do_not_tell(
        self, tmp_path: Path
    ) -> None:
        page = '<meta charset="{}"><p>Лев'
        assert texts(tmp_path / "a.html", page.format("koi8-r").encode("koi8-r")) == ["Лев"]
        assert texts(tmp_path / "b.html", page.format("koi8-r").encode("utf-8")) == ["Лев"]
        quoted = '<?xml version="1.0" encoding="iso-8859-1"?><p>“x”'.encode("cp1252")
        assert texts(tmp_path / "c.xhtml", quoted) == ["“x”"]

    @given(st.text(st.sampled_from("<>/!-[]&;#x=\"' \nabpliultdrhe1"), max_size=60))
    def test_no_markup_stops_the_program(self, source: str) -> None:
        with suppress(UnreadableFile):
            text = Page(source).text
            assert text == text.strip("\n")


class TestCsv:
    def test_each_row_is_a_document_with_its_record(self, tmp_path: Path) -> None:
        found = read(
            tmp_path / "a.csv",
            'id,title,text,date,tag\r\n1,One,"a ""b"",\r\nc",2024-05-01,x\r\n\r\n2,,d,,\r\n',
            id_column="id",
            metadata_columns=["tag"],
        )
        raw = {"id": "1", "title": "One", "text": 'a "b",\r\nc', "date": "2024-05-01", "tag": "x"}
        assert found == [
            Document(
                text='a "b",\nc',
                title="One",
                creation_date="2024-05-01",
                raw_data=json.dumps(raw),
                metadata='{"tag": "x"}',
                id="1",
                place="record 1",
            ),
            Document(
                text="d",
                title="a.csv (2)",
                raw_data='{"id": "2", "title": "", "text": "d", "date": "", "tag": ""}',
                metadata='{"tag": ""}',
                id="2",
                place="record 2",
            ),
        ]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.csv", "n;text\n1;x, y\n"),
            ("a.csv", "n\ttext\n1\tx, y\n"),
            ("a.csv", "n|text\n1|x, y\n"),
            ("a.csv", "sep=;\nn;text\n1;x, y\n"),
            ("a.csv", '\ufeff"sep=^"\r\nn^text\r\n1^x, y\r\n'),
            ("a.tsv", "n\ttext\n1\tx, y\n"),
            ("a.csv", '\ufeffn,text\n1,"x, y"\n'),
        ],
    )
    def test_the_header_tells_what_parts_the_fields(
        self, tmp_path: Path, name: str, content: str
    ) -> None:
        (found,) = read(tmp_path / name, content)
        assert isinstance(found, Document)
        # The only record of a file is called as the file.
        assert (found.text, found.title) == ("x, y", name)
        assert found.raw_data == '{"n": "1", "text": "x, y"}'

    def test_a_broken_row_costs_itself(self, tmp_path: Path) -> None:
        content = 'n,text\n1,a\n2,b,c\n3\n4,"d" e\n5,f\n6,\n7,"open\n'
        assert texts(tmp_path / "a.csv", content) == ["a", "f"]
        assert reasons(tmp_path / "a.csv", content) == [
            "record 2 has 3 fields, the header has 2",
            "record 3 has 1 fields, the header has 2",
            "record 4 (line 5) is not valid CSV: ',' expected after '\"'",
            "record 6: field 'text' has no text",
            "record 7 (line 8) is not valid CSV: "
            "a quotation mark is not closed, all after it is one field",
        ]

    def test_a_mark_that_is_never_closed_is_found_by_its_line(self, tmp_path: Path) -> None:
        content = 'sep=,\nn,text\n1,"a\nb"\n2,"c\n' + "3,d\n" * 100
        assert texts(tmp_path / "a.csv", content) == ["a\nb"]
        assert reasons(tmp_path / "a.csv", content) == [
            "record 2 (line 5) is not valid CSV: "
            "a quotation mark is not closed, all after it is one field"
        ]

    @pytest.mark.parametrize("column", ["text", "title", "tag"])
    def test_a_column_that_is_used_stands_there_once(self, tmp_path: Path, column: str) -> None:
        header = f"text,title,tag,{column}"
        assert reasons(tmp_path / "a.csv", f"{header}\na,b,c,d\n", metadata_columns=["tag"]) == [
            f"has 2 columns {column!r}: rename all but the one to be read"
        ]

    def test_other_columns_of_one_name_are_numbered(self, tmp_path: Path) -> None:
        found = read_one(tmp_path / "a.csv", "text,,n,n,n (2),n,\na,1,2,3,4,5,6\n")
        assert found.raw_data == (
            '{"text": "a", "": "1", "n": "2", "n (2)": "3", "n (2) (2)": "4", "n (3)": "5", '
            '" (2)": "6"}'
        )

    def test_what_parts_fields_but_is_not_understood_is_named(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.csv", "id^text\n1^a\n") == [
            "has a header of one field, 'id^text': what parts fields is a comma, a semicolon, "
            "a tab or |, or the character that a first line such as sep=: names"
        ]
        assert reasons(tmp_path / "b.csv", "id|Text\n1|a\n") == [
            "has no field 'text'; did you mean 'Text'? Set load_documents.text_column"
        ]

    def test_a_mark_that_swallows_too_much_ends_the_file(self, tmp_path: Path) -> None:
        rows = (
            "1,some text of a row that the open quotation mark swallows, with commas,\n" * 2_000_000
        )
        assert reasons(tmp_path / "a.csv", f'n,text\n0,"open\n{rows}') == [
            "has a field of more than 134,217,728 characters in record 1 (line 2): "
            "is its quotation mark closed? What follows is not read"
        ]

    def test_a_row_in_another_encoding_costs_itself(self, tmp_path: Path) -> None:
        rows = [f"Günter Graß {i}, Lübeck".encode() for i in range(9)]
        content = b"text\n" + b"\n".join(b'"' + row + b'"' for row in rows) + b"\nM\xfcnchen\n"
        assert len(texts(tmp_path / "a.csv", content)) == 9
        assert reasons(tmp_path / "a.csv", content) == [
            "record 10 holds bytes that are not in the file's encoding"
        ]

    def test_a_field_may_be_very_long(self, tmp_path: Path) -> None:
        text = "x" * 1_000_000
        assert texts(tmp_path / "a.csv", f"n,text\n1,{text}\n") == [text]

    def test_a_file_without_the_text_column_is_named_once(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.csv", "id,Texts\n1,a\n2,b\n") == [
            "has no field 'text'; did you mean 'Texts'? Set load_documents.text_column"
        ]
        assert reasons(tmp_path / "b.csv", "id,body\n1,a\n2,b\n") == [
            "has no field 'text'; its fields are id, body. Set load_documents.text_column"
        ]

    @pytest.mark.parametrize("content", ["", "n,text\n", "\n"])
    def test_a_file_without_rows_says_so(self, tmp_path: Path, content: str) -> None:
        assert reasons(tmp_path / "a.csv", content) == ["has no records"]


class TestJson:
    def test_a_file_is_one_record_or_a_list_of_them(self, tmp_path: Path) -> None:
        one = read_one(tmp_path / "a.json", '{"text": "a", "n": 1}')
        assert (one.text, one.title, one.raw_data) == ("a", "a.json", '{"text": "a", "n": 1}')
        both = read(tmp_path / "b.json", '[{"text": "a"}, {"text": "b", "title": "B"}]')
        assert [(d.text, d.title) for d in both if isinstance(d, Document)] == [
            ("a", "b.json (1)"),
            ("b", "B"),
        ]

    def test_json_lines_are_read_under_either_name(self, tmp_path: Path) -> None:
        content = '{"text": "a"}\n\n{"text": "b"}\n'
        assert texts(tmp_path / "a.jsonl", content) == ["a", "b"]
        assert texts(tmp_path / "a.ndjson", content) == ["a", "b"]
        assert texts(tmp_path / "a.json", content) == ["a", "b"]

    def test_an_object_of_records_is_an_error(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.json", '{"1": {"text": "a"}, "2": {"text": "b"}}') == [
            "is an object of records: write a list of them, or one a line in a .jsonl file"
        ]

    def test_a_broken_line_costs_itself(self, tmp_path: Path) -> None:
        content = '{"text": "a"}\n{"text": \n[1]\n{"text": "b"}\n{"text": ' + "1" * 5000 + "}\n"
        assert texts(tmp_path / "a.jsonl", content) == ["a", "b"]
        found = reasons(tmp_path / "a.jsonl", content)
        assert found[:2] == [
            "line 2 is not valid JSON: Expecting value, character 11",
            "line 3 is a list, not an object",
        ]
        assert found[2].startswith("line 5 is not valid JSON: Exceeds the limit")

    def test_a_broken_list_keeps_what_stands_before_the_break(self, tmp_path: Path) -> None:
        content = '[{"text": "a"}, {"text": "b" "c"}, {"text": "d"}]'
        assert texts(tmp_path / "a.json", content) == ["a"]
        assert reasons(tmp_path / "a.json", content) == [
            "is not valid JSON in or after record 2 (character 30): "
            "Expecting ',' delimiter; what follows is not read"
        ]

    def test_brackets_thousands_deep_cost_their_record(self, tmp_path: Path) -> None:
        deep = '{"text": "a"}\n{"text": ' + "[" * 100_000 + "\n"
        assert texts(tmp_path / "a.jsonl", deep) == ["a"]
        assert len(reasons(tmp_path / "a.jsonl", deep)) == 1

    def test_numbers_become_text_and_other_values_do_not(self, tmp_path: Path) -> None:
        content = "\n".join(
            f'{{"text": {value}}}' for value in ["12", "1.5", "null", "true", "[1]", "{}", '" "']
        )
        assert texts(tmp_path / "a.jsonl", content) == ["12", "1.5"]
        assert reasons(tmp_path / "a.jsonl", content) == [
            "line 3: field 'text' is null",
            "line 4: field 'text' is true or false, not text",
            "line 5: field 'text' is a list, not text",
            "line 6: field 'text' is an object, not text",
            "line 7: field 'text' has no text",
        ]

    def test_a_record_without_the_text_names_its_fields(self, tmp_path: Path) -> None:
        content = '[{"id": 1, "body": "x"}, {"text": "a"}, {"id": 2}]'
        assert texts(tmp_path / "a.json", content) == ["a"]
        assert reasons(tmp_path / "a.json", content) == [
            "record 1 has no field 'text'; its fields are id, body",
            "record 3 has no field 'text'; its fields are id",
        ]

    def test_reasons_stay_short(self, tmp_path: Path) -> None:
        wide = {f"field number {i} with a long name " + "x" * 40: i for i in range(100)}
        (reason,) = reasons(tmp_path / "a.json", json.dumps([wide, wide]))
        assert reason.startswith("has no field 'text'")
        assert len(reason) < 300

    def test_half_a_character_becomes_the_replacement_character(self, tmp_path: Path) -> None:
        found = read_one(
            tmp_path / "a.json", r'{"text": "a\ud83d b\ud83d\ude42", "title": "\udc00", "n": NaN}'
        )
        assert (found.text, found.title) == ("a\ufffd b🙂", "\ufffd")
        assert found.raw_data == '{"text": "a\ufffd b🙂", "title": "\ufffd", "n": null}'

    def test_fields_of_nested_records_are_named_by_a_path(self, tmp_path: Path) -> None:
        found = read_one(
            tmp_path / "a.json",
            '{"a": {"body": "x", "n": {"t": "T"}}, "b.c": 1}',
            text_column="a.body",
            title_column="a.n.t",
            metadata_columns=["b.c"],
        )
        assert (found.text, found.title, found.metadata) == ("x", "T", '{"b.c": 1}')

    def test_a_record_without_its_id_is_not_read(self, tmp_path: Path) -> None:
        content = '[{"text": "a", "id": 7}, {"text": "b"}, {"text": "c", "id": null}]'
        found = read(tmp_path / "a.json", content, id_column="id")
        assert [item.id for item in found if isinstance(item, Document)] == ["7"]
        assert [item.reason for item in found if isinstance(item, Unread)] == [
            "record 2 has no id in field 'id'",
            "record 3 has no id in field 'id'",
        ]

    @given(
        st.lists(
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=8,
            )
        ),
        st.integers(1, 9),
    )
    def test_a_list_read_in_pieces_is_the_list(self, values: list[object], size: int) -> None:
        class Dripping(io.StringIO):
            """Gives less than it is asked for, as a stream may."""

            def read(self, _: int | None = -1, /) -> str:
                return super().read(size)

        source = json.dumps(values, indent=1, ensure_ascii=False)
        assert [value for value, _ in JsonStream(Dripping(source))] == values

    @pytest.mark.parametrize("source", ["[1, 2", "[1 2]", "[1] 2", "[1,]", '["a', "[tru]", '{"a"'])
    def test_what_is_no_json_is_refused(self, source: str) -> None:
        with pytest.raises(UnreadableFile, match="is not valid JSON"):
            list(JsonStream(io.StringIO(source)))


class TestParquet:
    def test_values_that_json_lacks_become_text(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        table = pa.table(
            {
                "text": ["Lübeck", None],
                "date": pa.array([datetime(2024, 5, 1)] * 2, pa.timestamp("ns")),
                "day": [date(2024, 5, 2), None],
                "share": [float("nan"), 0.5],
                "tags": [["a"], None],
            }
        )
        pq.write_table(table, path)
        found = list(read_file(path, "a.parquet", LoadDocuments()))
        assert found == [
            Document(
                text="Lübeck",
                title="a.parquet (1)",
                creation_date="2024-05-01",
                raw_data='{"text": "Lübeck", "date": "2024-05-01T00:00:00", '
                '"day": "2024-05-02", "share": null, "tags": ["a"]}',
                place="record 1",
            ),
            Unread("record 2: field 'text' is null"),
        ]

    @pytest.mark.parametrize(
        ("values", "said"),
        [
            (
                [{"body": "x", "n": 1}],
                "has objects in field 'text', not text; set load_documents.text_column "
                "to a field of them: 'text.body', 'text.n'",
            ),
            ([["x"]], "has lists in field 'text', not text"),
        ],
    )
    def test_a_text_column_without_text_is_named_once(
        self, tmp_path: Path, values: list[object], said: str
    ) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": values * 9}), path)
        assert list(read_file(path, "a.parquet", LoadDocuments())) == [Unread(said)]

    def test_a_field_of_a_struct_is_named_by_its_path(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": [{"body": "x"}]}), path)
        (found,) = read_file(path, "a.parquet", LoadDocuments(text_column="text.body"))
        assert isinstance(found, Document)
        assert found.text == "x"

    def test_a_missing_file_is_not_said_to_be_damaged(self, tmp_path: Path) -> None:
        (unread,) = read_file(tmp_path / "a.parquet", "a.parquet", LoadDocuments())
        assert unread == Unread("cannot be read: No such file or directory")

    def test_a_truncated_file_says_so(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": ["a"] * 1000}), path)
        (reason,) = reasons(path, path.read_bytes()[:-20])
        assert reason.startswith("is not a readable Parquet file: ")

    def test_a_damaged_row_group_costs_itself_and_what_follows(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        column = [f"text {i}" for i in range(600)]
        pq.write_table(
            pa.table({"text": column}), path, row_group_size=300, write_page_checksum=True
        )
        offset = pq.ParquetFile(path).metadata.row_group(1).column(0).dictionary_page_offset
        data = bytearray(path.read_bytes())
        data[offset : offset + 40] = b"\xff" * 40
        found = read(path, bytes(data))
        assert [d.text for d in found if isinstance(d, Document)] == column[: len(found) - 1]
        assert len(found) > 256
        assert isinstance(found[-1], Unread)

    def test_a_file_without_the_text_column_is_named_once(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"content": ["a", "b"]}), path)
        assert list(read_file(path, "a.parquet", LoadDocuments())) == [
            Unread("has no field 'text'; did you mean 'content'? Set load_documents.text_column")
        ]


RECORD = {"text": "word " * 60, "n": 1}


def write_records(path: Path, n: int) -> None:
    """Write equal records of 320 characters."""
    line = json.dumps(RECORD)
    with path.open("w", encoding="utf-8", newline="") as stream:
        match path.suffix:
            case ".json":
                stream.write("[" + ",\n".join([line] * n) + "]")
            case ".jsonl":
                stream.write((line + "\n") * n)
            case ".csv":
                stream.write("n,text\n" + f"1,{RECORD['text']}\n" * n)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_a_large_file_of_records_is_never_in_memory_at_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    write_records(path, 16_000)
    size = path.stat().st_size
    found: Iterator[Document | Unread] = read_file(path, path.name, LoadDocuments())
    tracemalloc.start()
    try:
        assert sum(isinstance(item, Document) for item in found) == 16_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size / 3


class TestOffice:
    """Small files made by hand, as the formats allow."""

    pytest.importorskip("markitdown")

    def test_a_word_file_becomes_text(self, tmp_path: Path) -> None:
        path = tmp_path / "a.docx"
        write_docx(path, "Tom Crean was born in Annascaul.")
        (found,) = read_file(path, "b/a.docx", LoadDocuments())
        assert found == Document(text="Tom Crean was born in Annascaul.", title="a.docx")

    def test_a_pdf_becomes_text(self, tmp_path: Path) -> None:
        found = read_one(tmp_path / "a.pdf", pdf("Ernest Shackleton sailed south."))
        assert found.text.strip() == "Ernest Shackleton sailed south."

    def test_a_pdf_of_pictures_says_what_it_needs(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.pdf", pdf("")) == [
            "has no text: a scanned PDF needs text recognition (OCR) first"
        ]

    def test_slides_and_sheets_bear_no_marks_of_the_converter(self, tmp_path: Path) -> None:
        openpyxl = pytest.importorskip("openpyxl")
        pptx = pytest.importorskip("pptx")
        book = openpyxl.Workbook()
        for row in [["Name", "City"], ["Ada Lovelace", "London"], ["Alan Turing", None]]:
            book.active.append(row)
        book.save(tmp_path / "a.xlsx")
        slides = pptx.Presentation()
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = "Terra Nova"
        slide.placeholders[1].text = "Scott led it."
        slides.save(tmp_path / "a.pptx")
        (sheet,) = read_file(tmp_path / "a.xlsx", "a.xlsx", LoadDocuments())
        (show,) = read_file(tmp_path / "a.pptx", "a.pptx", LoadDocuments())
        assert isinstance(sheet, Document)
        assert sheet.text.splitlines()[-1] == "| Alan Turing |  |"
        assert isinstance(show, Document)
        assert show.text == "# Terra Nova\nScott led it."

    def test_without_the_extra_the_reason_says_how_to_install_it(self) -> None:
        # None in sys.modules is how Python is told that a module is not there.
        program = (
            "import sys; sys.modules['markitdown'] = None\n"
            "from pathlib import Path\n"
            "from graphrag_index.schema.settings.embedded_steps import LoadDocuments\n"
            "from graphrag_index.readers import read_file\n"
            "print(next(read_file(Path('a.pdf'), 'a.pdf', LoadDocuments())).reason)"
        )
        found = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert found.stdout == 'needs more packages: pip install "graphrag-index[documents]"\n'

    @pytest.mark.parametrize("suffix", [".pdf", ".docx", ".pptx", ".xlsx"])
    def test_a_damaged_file_does_not_pass_for_text(self, tmp_path: Path, suffix: str) -> None:
        (reason,) = reasons(tmp_path / f"a{suffix}", "These are not the bytes of such a file.")
        assert reason.startswith(f"is not a readable {suffix} file: ")


def write_docx(path: Path, text: str) -> None:
    kind = "application/vnd.openxmlformats-"
    office = "http://schemas.openxmlformats.org"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{office}/package/2006/content-types">'
        f'<Default Extension="rels" ContentType="{kind}package.relationships+xml"/>'
        '<Override PartName="/word/document.xml" '
        f'ContentType="{kind}officedocument.wordprocessingml.document.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{office}/package/2006/relationships">'
        f'<Relationship Id="r" Type="{office}/officeDocument/2006/relationships/officeDocument" '
        'Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{office}/wordprocessingml/2006/main">'
        f"<w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, '<?xml version="1.0"?>' + content)


def pdf(text: str) -> bytes:
    """Write a PDF of one page with one line."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    content, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(content))
        content += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    return (
        f"{content}xref\n0 6\n0000000000 65535 f \n{table}"
        f"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n{len(content)}\n%%EOF\n"
    ).encode("ascii")
