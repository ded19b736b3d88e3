"""Files that are one document each: text, Markdown, HTML, PDF and Office files."""

import io
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.readers import Document, ReadFailure, read_file
from graphrag_index.readers.content import BEFORE_2007
from graphrag_index.readers.document import UnreadableFile
from graphrag_index.readers.office import _WordPage, read_pptx, read_xlsx
from graphrag_index.readers.text_html_pdf_office import Page, find_first_heading, split_front_matter
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_nlp.text.sentences import find_headings
from tests.fixtures.cases import cases
from tests.fixtures.pdf import make_pdf
from tests.fixtures.read_documents import read_one, reasons, texts
from tests.fixtures.sample_files import FORMATS, make_odf, make_zip, write_docx


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
        assert unread == ReadFailure("cannot be read: No such file or directory")


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

    @cases("text")
    def test_front_matter_that_is_none_stays_in_the_text(self, text: str) -> None:
        assert split_front_matter(text) == ({}, text)

    def test_the_title_is_the_first_heading_else_the_file(self, tmp_path: Path) -> None:
        text = "## Second\n```sh\n# comment\n```\n# First #\n# Other\n"
        assert find_first_heading(text) == "First"
        assert read_one(tmp_path / "a.md", text).title == "First"
        assert read_one(tmp_path / "a.md", "Under  lined\n====\n# First").title == "Under lined"
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
            "Ship | Year\n--- | ---\nTerra Nova | 1910\n | x\n\n"
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

    @cases("rows, text")
    def test_cells_that_span_are_in_each_of_their_columns_and_rows(
        self, rows: str, text: str
    ) -> None:
        assert Page(f"<table>{rows}</table>").text == text

    def test_a_table_made_to_fill_the_memory_is_as_long_as_its_source(self) -> None:
        cell = "<td rowspan=999 colspan=999>" + "a" * 99
        source = f"<table>{f'<tr>{cell}{cell}' * 2_000}</table>"
        assert len(Page(source).text) < 3 * len(source)

    @cases("source, text")
    def test_what_is_marked_as_hidden_is_left_out(self, source: str, text: str) -> None:
        assert Page(source).text == text

    @cases("source, text")
    def test_preformatted_text_is_a_fenced_block(self, source: str, text: str) -> None:
        page = Page(source)
        assert page.text == text
        assert find_headings(text) == []

    @pytest.mark.parametrize(
        "subset", ['<!ENTITY x "y">', "<!ENTITY x 'y>]'> <!-- don't ]> -->\n<!ELEMENT b (c)>", ""]
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


class TestOffice:
    """Small files made by hand, as the formats allow."""

    pytest.importorskip("mammoth")

    def test_a_word_file_becomes_text(self, tmp_path: Path) -> None:
        path = tmp_path / "a.docx"
        write_docx(path, "Tom Crean was born in Annascaul.")
        (found,) = read_file(path, "b/a.docx", LoadDocuments())
        assert found == Document(text="Tom Crean was born in Annascaul.", title="a.docx")

    def test_a_pdf_becomes_text(self, tmp_path: Path) -> None:
        found = read_one(
            tmp_path / "a.pdf", make_pdf([[(72, 720, "Ernest Shackleton sailed south.")]])
        )
        assert found.text == "Ernest Shackleton sailed south."

    def test_a_pdf_without_text_says_so(self, tmp_path: Path) -> None:
        assert reasons(tmp_path / "a.pdf", make_pdf([[(72, 720, "")]])) == ["has no text"]

    def test_a_table_of_a_word_file_has_its_header(self, tmp_path: Path) -> None:
        def row(*cells: str) -> str:
            runs = "</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>".join(cells)
            return f"<w:tr><w:tc><w:p><w:r><w:t>{runs}</w:t></w:r></w:p></w:tc></w:tr>"

        path = tmp_path / "a.docx"
        table = f"</w:t></w:r></w:p><w:tbl>{row('Ship', 'Year')}{row('A|B', '1910')}</w:tbl>"
        write_docx(path, f"Before.{table}<w:p><w:r><w:t>After.")
        (found,) = read_file(path, "a.docx", LoadDocuments())
        assert isinstance(found, Document)
        rows = "| Ship | Year |\n| --- | --- |\n| A\\|B | 1910 |"
        assert found.text == f"Before.\n\n{rows}\n\nAfter."

    def test_merged_cells_of_office_files_are_in_each_of_their_columns_and_rows(self) -> None:
        openpyxl = pytest.importorskip("openpyxl")
        pptx = pytest.importorskip("pptx")
        rows = "<tr><td>Site<td colspan=2>2024<tr><td><td>Cost<td>Staff<tr><td>Riga<td>1<td>2"
        assert _WordPage(f"<table>{rows}</table>").text == (
            "| Site | 2024 Cost | 2024 Staff |\n| --- | --- | --- |\n| Riga | 1 | 2 |"
        )
        book = openpyxl.Workbook()
        for row in [["Pumps, 2024"], [], ["Zone", "Pump"], ["North", "P-1"], [None, "P-2"]]:
            book.active.append(row)
        book.active.merge_cells("A1:B1")
        book.active.merge_cells("A4:A9")
        book.save(stream := io.BytesIO())
        assert read_xlsx(stream.getvalue())[0] == (
            "## Sheet\nPumps, 2024\n\n"
            "| Zone | Pump |\n| --- | --- |\n| North | P-1 |\n| North | P-2 |"
        )
        book = openpyxl.Workbook()
        for row in [["Site", "2024"], [None, "Cost", "Staff"], ["Riga", 1, 2], ["Oslo", 5, 5]]:
            book.active.append(row)
        book.active.merge_cells("B1:C1")
        book.save(stream := io.BytesIO())
        text, rows = read_xlsx(stream.getvalue())
        assert text.splitlines()[1] == "| Site | 2024 Cost | 2024 Staff |"
        assert [row.number for row in rows] == [1, 3, 4]
        show = pptx.Presentation()
        shapes = show.slides.add_slide(show.slide_layouts[6]).shapes
        table = shapes.add_table(3, 2, 0, 0, 9, 9).table
        for i, word in enumerate(["Zone", "Pump", "North", "P-1", "", "P-2"]):
            table.cell(i // 2, i % 2).text = word
        table.cell(1, 0).merge(table.cell(2, 0))
        table = shapes.add_table(3, 3, 9, 9, 9, 9).table
        for i, word in enumerate(["Site", "2024", "", "", "Cost", "Staff", "Riga", "1", "2"]):
            table.cell(i // 3, i % 3).text = word
        table.cell(0, 1).merge(table.cell(0, 2))
        table.cell(0, 0).merge(table.cell(1, 0))
        show.save(stream := io.BytesIO())
        text, _ = read_pptx(stream.getvalue())
        assert "| North | P-1 |\n| North | P-2 |" in text
        assert "| Site | 2024 Cost | 2024 Staff |\n| --- | --- | --- |\n| Riga | 1 | 2 |" in text

    def test_a_pdf_with_a_password_and_a_cut_one_say_so(self, tmp_path: Path) -> None:
        page = make_pdf([[(72, 720, "Karl Ost.")]])
        keys = f"/O <{'0' * 64}> /U <{'1' * 64}>"
        lock = f"/Encrypt << /Filter /Standard /V 1 /R 2 {keys} /P -4 >> /ID [<00> <00>] /Root"
        locked = page.replace(b"/Root", lock.encode("ascii"))
        assert reasons(tmp_path / "a.pdf", locked) == ["needs a password: save it without one"]
        assert reasons(tmp_path / "b.pdf", page[: len(page) // 2]) == [
            "is a damaged or incomplete .pdf file: its end is missing, it was cut off"
        ]

    def test_slides_and_sheets_bear_no_marks_of_the_converter(self, tmp_path: Path) -> None:
        openpyxl = pytest.importorskip("openpyxl")
        pptx = pytest.importorskip("pptx")
        book = openpyxl.Workbook()
        for row in [["Name", "City"], ["Ada Lovelace", "London"], [None], ["Alan Turing", ""]]:
            book.active.append(row)
        dates = book.create_sheet("Dates")
        for row in [[None], ["Born"], [1815]]:
            dates.append(row)
        book.save(tmp_path / "a.xlsx")
        slides = pptx.Presentation()
        slide = slides.slides.add_slide(slides.slide_layouts[1])
        slide.shapes.title.text = "Terra Nova"
        slide.placeholders[1].text = "Scott led it."
        slides.slides.add_slide(slides.slide_layouts[1])
        slides.slides.add_slide(slides.slide_layouts[1]).placeholders[1].text = "The end."
        slides.save(tmp_path / "a.pptx")
        (sheet,) = read_file(tmp_path / "a.xlsx", "a.xlsx", LoadDocuments())
        (show,) = read_file(tmp_path / "a.pptx", "a.pptx", LoadDocuments())
        assert isinstance(sheet, Document)
        assert sheet.text.splitlines()[4] == "| Alan Turing |  |"
        rows = [(row.label, row.number, sheet.text[row.start : row.end]) for row in sheet.pages]
        assert rows == [
            ("Sheet", 1, "## Sheet\n| Name | City |\n| --- | --- |\n"),
            ("Sheet", 2, "| Ada Lovelace | London |\n"),
            ("Sheet", 4, "| Alan Turing |  |\n\n"),
            ("Dates", 2, "## Dates\n| Born |\n| --- |\n"),
            ("Dates", 3, "| 1815 |"),
        ]
        assert isinstance(show, Document)
        assert show.text == "# Terra Nova\nScott led it.\n\nThe end."
        assert [(s.number, show.text[s.start : s.end]) for s in show.pages] == [
            (1, "# Terra Nova\nScott led it.\n\n"),
            (3, "The end."),
        ]

    @pytest.mark.parametrize(
        ("module", "suffix", "extra"),
        [("liteparse", ".pdf", "documents"), ("kreuzberg", ".odt", "formats")],
    )
    def test_without_the_extra_the_reason_says_how_to_install_it(
        self, tmp_path: Path, module: str, suffix: str, extra: str
    ) -> None:
        # None in sys.modules is how Python is told that a module is not there.
        program = (
            f"import sys; sys.modules['{module}'] = None\n"
            "from pathlib import Path\n"
            "from graphrag_index.readers.parse_process import parse\n"
            f"Path('a').write_bytes(b'%PDF-1.4'); print(parse(Path('a'), '{suffix}'))"
        )
        found = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )
        assert found.stdout == f'needs more packages: pip install "graphrag-index[{extra}]"\n'

    @pytest.mark.parametrize("suffix", [".pdf", ".docx", ".pptx", ".xlsx"])
    def test_another_type_is_told_from_a_damaged_file_and_a_password(
        self, tmp_path: Path, suffix: str
    ) -> None:
        write_docx(tmp_path / "letter.docx", "Tom Crean was born in Annascaul.")
        letter, page = (tmp_path / "letter.docx").read_bytes(), make_pdf([[(72, 720, "Scott.")]])
        old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512
        contents = {
            b"These are not the bytes of such a file.": f"is not a {suffix} file but text",
            b"<!DOCTYPE html><p>Log in": f"is not a {suffix} file but a web page",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR": f"is not a {suffix} file but binary data",
            old: f"is not a {suffix} file but {BEFORE_2007.noun}",
            old + "EncryptedPackage".encode("utf-16-le"): "needs a password: save it without one",
            b"": "is empty",
        }
        contents[page if suffix != ".pdf" else letter] = (
            f"is not a {suffix} file but a {'PDF' if suffix != '.pdf' else '.docx file'}"
        )
        for content, said in contents.items():
            assert reasons(tmp_path / f"a{suffix}", content) == [said]
        cut = page[:300] if suffix == ".pdf" else letter[:300]
        (reason,) = reasons(tmp_path / f"a{suffix}", cut)
        assert reason.startswith(f"is a damaged or incomplete {suffix} file: ")

    def test_files_without_their_suffix_are_told_by_their_content(self, tmp_path: Path) -> None:
        write_docx(tmp_path / "a.bak", "Tom Crean was born in Annascaul.")
        (found,) = read_file(tmp_path / "a.bak", "a.bak", LoadDocuments())
        assert isinstance(found, Document)
        assert found.text == "Tom Crean was born in Annascaul."
        assert texts(tmp_path / "paper", make_pdf([[(72, 720, "Scott.")]])) == ["Scott."]
        assert texts(tmp_path / "page", "<!doctype HTML><p>One") == ["One"]


class TestFormats:
    """Files of the extra `formats`."""

    pytest.importorskip("kreuzberg")

    @pytest.mark.parametrize("suffix", FORMATS)
    def test_their_text_keeps_headings_lists_and_tables(self, tmp_path: Path, suffix: str) -> None:
        content, text = FORMATS[suffix]
        assert texts(tmp_path / f"a{suffix}", content) == [text]
        # So do files without the suffix, which are told by their content.
        assert texts(tmp_path / "b", content) == [text]

    @pytest.mark.parametrize("suffix", FORMATS)
    def test_other_types_and_damaged_files_are_told(self, tmp_path: Path, suffix: str) -> None:
        content, _ = FORMATS[suffix]
        path = tmp_path / f"a{suffix}"
        assert reasons(path, "Text.") == [f"is not a {suffix} file but text"]
        assert reasons(path, make_pdf([[(72, 720, "x")]])) == [f"is not a {suffix} file but a PDF"]
        if suffix != ".rtf":
            (reason,) = reasons(path, content[: len(content) // 2])
            assert reason.startswith(f"is a damaged or incomplete {suffix} file: ")

    def test_a_slide_is_a_page_and_one_without_text_is_counted(self, tmp_path: Path) -> None:
        found = read_one(tmp_path / "a.odp", FORMATS[".odp"][0])
        assert [(slide.kind, slide.number) for slide in found.pages] == [("slide", 1), ("slide", 3)]
        assert found.text[found.pages[1].start :].startswith("Above")

    @pytest.mark.parametrize("suffix", [".odt", ".ods", ".odp"])
    def test_a_file_with_a_password_says_so(self, tmp_path: Path, suffix: str) -> None:
        with zipfile.ZipFile(io.BytesIO(FORMATS[suffix][0])) as archive:
            parts = {one: archive.read(one) for one in archive.namelist()}
        parts["META-INF/manifest.xml"] += b"<manifest:encryption-data/>"
        parts["content.xml"] = bytes(range(256))
        said = ["needs a password: save it without one"]
        assert reasons(tmp_path / f"a{suffix}", make_zip(parts)) == said

    @pytest.mark.parametrize(
        "content",
        [
            '<!DOCTYPE a [<!ENTITY b "' + "x" * 10_000 + '">]><a>' + "&b;" * 100_000 + "</a>",
            '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>',
            "<page>" + "<g>" * 2_000 + "</g>" * 2_000 + "</page>",
        ],
    )
    def test_slides_made_to_fill_the_memory_are_named(self, tmp_path: Path, content: str) -> None:
        kind = b"application/vnd.oasis.opendocument.presentation"
        data = make_zip({"mimetype": kind, "content.xml": content.encode()})
        (reason,) = reasons(tmp_path / "a.odp", data)
        assert reason.startswith("is a damaged or incomplete .odp file: ")

    def test_charts_of_slides_that_name_each_other_are_read_once(self, tmp_path: Path) -> None:
        objects = '<draw:object xlink:href="Object 1"/>' * 2
        table = f"<table:table-cell><text:p>Crew</text:p>{objects}</table:table-cell>"
        chart = f"<chart:chart><table:table><table:table-row>{table}</table:table-row>"
        data = make_odf(
            "presentation",
            f"<draw:page>{objects}</draw:page>",
            f"{chart}</table:table></chart:chart>",
        )
        assert read_one(tmp_path / "a.odp", data).text == "| Crew |\n| --- |"

    def test_shapes_stand_where_they_are_not_where_their_parts_are(self, tmp_path: Path) -> None:
        glue = '<draw:glue-point svg:x="-5cm" svg:y="-5cm"/>'
        lower = f'<draw:custom-shape svg:x="1cm" svg:y="9cm"><text:p>Below</text:p>{glue}'
        upper = '<draw:custom-shape svg:x="1cm" svg:y="1cm"><text:p>Above</text:p>'
        slide = "".join(f"{shape}</draw:custom-shape>" for shape in (lower, upper))
        data = make_odf("presentation", f"<draw:page>{slide}</draw:page>")
        assert read_one(tmp_path / "a.odp", data).text == "Above\n\nBelow"

    def test_a_text_with_the_suffix_of_a_message_is_text(self, tmp_path: Path) -> None:
        assert texts(tmp_path / "de.msg", "::msgcat::mcset de Yes Ja") == [
            "::msgcat::mcset de Yes Ja"
        ]
        old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512)
        said = "is a damaged or incomplete .msg file: "
        part = "__properties_version1.0".encode("utf-16-le")
        assert reasons(tmp_path / "a.msg", old + part)[0].startswith(said)
