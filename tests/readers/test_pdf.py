"""PDF files: the order of reading, tables, broken words, places, and files that are damaged."""

import random
import re
from pathlib import Path

import pytest

from graphrag_index.readers.document import PageText, UnreadableFile
from graphrag_index.readers.parse_process import FileParser
from graphrag_index.readers.pdf import read_pdf
from tests.fixtures.pdf import make_pdf

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


def test_each_word_has_its_place_on_its_page() -> None:
    text, pages = read_pdf(make_pdf([[(72, 700, "One two.")], [(100, 250, "three")]], size=10))
    assert text == "One two.\n\nthree"
    assert [page.label for page in pages] == ["1", "2"]
    words = [(text[start:end], left, bottom) for start, end, left, bottom in read_boxes(pages)]
    # The base line of Helvetica lies about two points above the bottom of its box.
    assert [word for word, _, _ in words] == ["One", "two.", "three"]
    assert [round(left) for _, left, _ in words] == [72, 94, 100]
    assert [round(bottom) for _, _, bottom in words] == [94, 94, 544]


def read_boxes(pages: list[PageText]) -> list[tuple[int, int, float, float]]:
    found = []
    for page in pages:
        end = page.start
        for n in range(0, len(page.boxes), 6):
            gap, length, left, top, _, height = page.boxes[n : n + 6]
            start = end + gap
            end = start + length
            found.append((start, end, left / 10, (top + height) / 10))
    return found


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
