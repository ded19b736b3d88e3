"""PDF files: the order of reading, tables, broken words, places, and files that are damaged."""

import random
import re
from base64 import b64encode
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.readers import pdf
from graphrag_index.readers.document import Document, PageText, UnreadableFile
from graphrag_index.readers.embedded_data import replace_data
from graphrag_index.readers.parse_process import FileParser
from graphrag_index.readers.pdf import read_pdf
from tests.fixtures.examples import examples
from tests.fixtures.pdf import make_pdf
from tests.fixtures.read_documents import read_one

LEFT = ["The harbour of Port Lockroy was", "built by whalers in the year 1911", "and left again."]
RIGHT = ["A survey of the bay was made by", "the crew of the second expedition", "before winter."]


def test_columns_are_read_one_after_the_other_also_if_drawn_by_turns() -> None:
    lines = []
    for row in range(12):
        y = 700 - 14 * row
        lines += [(72, y, f"{LEFT[row % 3]}"), (320, y, f"{RIGHT[row % 3]}")]
    text, _ = read_pdf(make_pdf([lines], size=10))
    assert " ".join(text.split()) == " ".join([*LEFT * 4, *RIGHT * 4])


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        # A word that the document has whole elsewhere, and one whose parts are no words.
        (["The harbour is old and the har-", "bour is deep."], "the harbour is deep"),
        (["They sailed with great enthu-", "siasm to the south."], "great enthusiasm to"),
        # A hyphen that is a part of the word.
        (["The state-of-the-art pump is a state-", "of-the-art one."], "is a state-of-the-art one"),
        (["The flow of the pump is given for P-", "001 alone."], "given for P-001 alone"),
        (["A well-known ship, and a well-", "known captain."], "a well-known captain"),
        (["The ship was built for Jean-", "Pierre in Rouen."], "for Jean-Pierre in"),
        (["We know of the cases of COVID-", "19 in the town."], "of COVID-19 in"),
        (["The user-defined type and the user-", "defined name."], "the user-defined name"),
        (["The pumps of both halls were re-", "placed by new ones."], "were replaced by"),
        (["The non-local and linear case is non-", "linear here."], "is non-linear here"),
    ],
)
def test_a_hyphen_at_the_end_of_a_line_is_left_out_where_it_divides_a_word(
    lines: list[str], text: str
) -> None:
    found, _ = read_pdf(make_pdf([[(72, 700 - 14 * n, line) for n, line in enumerate(lines)]]))
    assert text in found


def test_running_headers_and_footers_are_left_out() -> None:
    pages = [
        [
            (72, 760, "Annual report of the harbour"),
            *(
                (72, 700 - 14 * n, f"Ship {page}{n} came from the south with coal.")
                for n in range(9)
            ),
            (300, 30, f"Page {page}"),
        ]
        for page in range(1, 5)
    ]
    text, _ = read_pdf(make_pdf(pages))
    assert "Annual report" not in text
    assert "Page" not in text
    assert text.count("came from the south") == 36


def table(rows: list[tuple[str, ...]], top: int) -> list[tuple[float, float, str]]:
    return [
        (72 + 130 * c, top - 18 * r, cell)
        for r, row in enumerate(rows)
        for c, cell in enumerate(row)
    ]


PUMPS = [(f"P-{n:03}", str(290 + n), f"Hall {n % 4}") for n in range(1, 61)]


def test_a_table_has_its_header_and_goes_on_over_pages() -> None:
    header = ("Pump", "Flow", "Place")
    pages = [table([header, *PUMPS[:30]], 700), table([header, *PUMPS[30:]], 700)]
    text, (first, second) = read_pdf(make_pdf(pages, size=10))
    assert text.splitlines() == [
        "| Pump | Flow | Place |",
        "| --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in PUMPS),
    ]
    assert text[first.start : first.end].strip(" |\n").endswith("Hall 2")
    assert text[second.start :].startswith("P-031")


def test_rows_of_numbers_alone_are_a_table() -> None:
    rows = [(str(n), str(290 + n), f"{n}.5") for n in range(1, 9)]
    text, _ = read_pdf(make_pdf([table(rows, 700)], size=10))
    first, _, *others = text.splitlines()
    assert [first, *others] == [f"| {' | '.join(row)} |" for row in rows]


ROWS = [(f"P-{n:03}", str(290 + n), str(100 + 3 * n), f"Hall {n % 4}") for n in range(1, 9)]


def read_table(header: list[tuple[float, float, str]]) -> list[str]:
    """Return the lines of a table below the lines of a header."""
    lines = [
        (left, 640 - 18 * y, row[x])
        for y, row in enumerate(ROWS)
        for x, left in enumerate((72, 160, 240, 330))
    ]
    return read_pdf(make_pdf([[*header, *lines]], size=10))[0].splitlines()


PLACES = [(160.0, 658.0, "Before"), (240.0, 658.0, "After"), (330.0, 658.0, "Place")]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        # Labels of rows have no name.
        (PLACES, " | Before | After | Place"),
        # A gap inside a name that is wider than that between two names.
        (
            [(148, 658, "The old flow"), (216, 658, "After some days"), *PLACES[2:]],
            " | The old flow | After some days | Place",
        ),
        # A name of two columns, and one above their names.
        (
            [(160, 658, "Flow in litres a minute"), *PLACES[2:]],
            " | Flow in litres a minute | Flow in litres a minute | Place",
        ),
        (
            [(160, 676, "Flow in litres a minute"), (72, 658, "Pump"), *PLACES],
            "Pump | Flow in litres a minute Before | Flow in litres a minute After | Place",
        ),
    ],
)
def test_each_name_of_a_header_stands_above_its_columns(
    header: list[tuple[float, float, str]], names: str
) -> None:
    found = read_table(header)
    assert [line.strip("| ") for line in found[:1]] == [names.strip("| ")]
    assert found[0].count("|") == 5
    assert found[2:] == [f"| {' | '.join(row)} |" for row in ROWS]


def test_a_table_gets_the_header_above_it_and_the_labels_beside_it() -> None:
    def line(top: float, *cells: tuple[float, str]) -> pdf.Line:
        return [
            pdf._Word(word, left + 20 * n, top, left + 20 * n + 18, top + 10, " ", "")
            for left, cell in cells
            for n, word in enumerate(cell.split())
        ]

    rows = [line(20 + 14 * n, (100, f"{n}.5"), (160, f"{n}.7")) for n in range(3)]
    table = pdf._Block("table", rows, cells=[[[one], [two]] for one, two in rows])
    prose = line(-8, (40, "A sentence that stands above the table"))
    above = pdf._Block("paragraph", [prose, line(6, (100, "Mean"), (160, "Error"))])
    labels = [line(20, (50, "Iron")), line(48, (50, "Cold tin"))]
    beside = pdf._Block("paragraph", labels)
    # A line that is level with no row is no label.
    other = pdf._Block("paragraph", [line(27, (50, "Note"))])
    pdf._extend_table(table, [other, beside, above, table])
    assert [[" ".join(word.text for word in cell) for cell in row] for row in table.cells] == [
        ["", "Mean", "Error"],
        ["Iron", "0.5", "0.7"],
        ["", "1.5", "1.7"],
        ["Cold tin", "2.5", "2.7"],
    ]
    assert (above.lines, beside.lines, len(other.lines)) == ([prose], [], 1)


def test_each_word_has_its_place_on_its_page() -> None:
    text, pages = read_pdf(make_pdf([[(72, 700, "One two.")], [(100, 250, "three")]], size=10))
    assert text == "One two.\n\nthree"
    assert [page.label for page in pages] == ["1", "2"]
    boxes = [box for page in pages for box in page.word_boxes.tolist()]
    words = [(text[box[0] : box[1]], box[2] / 10, (box[3] + box[5]) / 10) for box in boxes]
    # The base line of Helvetica lies about two points above the bottom of its box.
    assert [word for word, _, _ in words] == ["One", "two.", "three"]
    assert [round(left) for _, left, _ in words] == [72, 94, 100]
    assert [round(bottom) for _, _, bottom in words] == [94, 94, 544]


PICTURE = b64encode(random.Random(5).randbytes(400)).decode("ascii")
INVISIBLE = "[\u00ad\u200b\u200d\ufeff]"


def test_words_keep_their_places_where_invisible_characters_and_data_go(tmp_path: Path) -> None:
    first = [(72, 700, "^The har~bour is de|ep."), (72, 600, f"See {PICTURE[:200]} here.")]
    mapped = {"^": "\ufeff", "~": "\u200b", "|": "\u2060"}
    source = make_pdf([first, [(72, 700, "The ~second page.")]], size=4, mapped=mapped)
    found = read_one(tmp_path / "a.pdf", source)
    data = "[data, 200 characters]"
    assert found.text == f"The harbour is deep.\n\nSee {data} here.\n\nThe second page."
    assert [(page.start, page.end) for page in found.pages] == [(0, 56), (56, 72)]
    words = [[found.text[a:b] for a, b, *_ in page.word_boxes.tolist()] for page in found.pages]
    assert words == [
        ["The", "harbour", "is", "deep.", "See", data, "here."],
        ["The", "second", "page."],
    ]


@examples(100)
@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [
                    *("Oslo", "har\u00adbour", "a\u200bb", "\ufeffx", "👩\u200d🚀", "\n"),
                    *(PICTURE, f"data:image/png;base64,{PICTURE}", PICTURE[:60]),
                ]
            ),
            max_size=8,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_pages_keep_their_characters_whatever_is_replaced_in_a_text(
    pages: list[list[str]],
) -> None:
    text, places = "", []
    for number, words in enumerate(pages, 1):
        start, boxes = len(text), list[int]()
        for word in words:
            if word != "\n":
                boxes += [len(text), len(text) + len(word), 1, 2, 3, 4]
            text += f"{word} "
        text += "\n"
        places.append(PageText(number, str(number), start, len(text), boxes=boxes))
    read = Document(text, "a.pdf", pages=places).to_printable()
    found = read.change_text(replace_data)
    assert found.text == replace_data(read.text)
    ends = [found.pages[0].start, *(page.end for page in found.pages)]
    assert (ends[0], ends[-1]) == (0, len(found.text))
    assert [(page.start, page.end) for page in found.pages] == list(pairwise(ends))
    for before, page in zip(places, found.pages, strict=True):
        spans = zip(before.word_boxes.tolist(), page.word_boxes.tolist(), strict=True)
        for (a, b, *there), (start, end, *here) in spans:
            assert here == there
            word, now = text[a:b], found.text[start:end]
            if re.sub(INVISIBLE, "", now) != re.sub(INVISIBLE, "", word):
                assert PICTURE[:60] in word
                assert re.fullmatch(r"\[[\w/]+, [\d,]+ characters\]", now)
        if PICTURE[:60] not in text:
            page_text = found.text[page.start : page.end]
            was = text[before.start : before.end]
            assert re.sub(INVISIBLE, "", page_text) == re.sub(INVISIBLE, "", was)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<html>", "it has no header of PDF"),
        (b"", "it has no header of PDF"),
        (b"%PDF-1.4 hello", "its end is missing, it was cut off"),
        (b"%PDF-1.4 hello %%EOF", "it has no valid structure"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=f"^{re.escape(reason)}$"):
        read_pdf(content)


def test_damage_ends_neither_the_parser_nor_its_process(tmp_path: Path) -> None:
    whole = make_pdf([table(PUMPS[:20], 700)])
    parser, path = FileParser(), tmp_path / "a.pdf"
    reasons: list[str] = []
    for seed in range(30):
        chance = random.Random(seed)
        content = bytearray(whole[: chance.randrange(len(whole) // 4, len(whole))])
        for _ in range(20):
            content[chance.randrange(8, len(content))] = chance.randrange(256)
        path.write_bytes(content)
        try:
            parser.parse(path, ".pdf")
        except UnreadableFile as error:
            reasons.append(str(error))
    assert all(reasons)
    path.write_bytes(whole)
    assert "P-001" in parser.parse(path, ".pdf")[0]
    parser.close()


def test_a_file_that_takes_too_long_is_named_and_the_next_one_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(make_pdf([[(72, 700, "One")]]))
    parser = FileParser(max_seconds=0)
    with pytest.raises(UnreadableFile, match=r"^cannot be read: its parser needs more than 0 s$"):
        parser.parse(path, ".pdf")
    parser = FileParser()
    assert parser.parse(path, ".pdf")[0] == "One"
    parser.close()


def test_sideways_text_keeps_its_words_in_order() -> None:
    lines = [(100 + 14 * n, 100, f"The harbour {n} is old and deep.") for n in range(5)]
    upright = [(72, 700, "A page."), (72, 686, "It is short.")]
    content = make_pdf([[*upright, *lines], []]).decode("ascii")
    text, (page, _) = read_pdf(
        re.sub(r"1 0 0 1 (1\d\d) ", r"0 1 -1 0 \1 ", content).encode("ascii")
    )
    assert text == "A page. It is short.\n\n" + " ".join(line for _, _, line in lines)
    assert len(page.word_boxes) == len(text.split())
