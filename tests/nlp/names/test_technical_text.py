"""Names in manuals, changelogs and code."""

import pytest

from graphrag_index.steps.create_text_units import find_cut_offsets, make_sentence_rows
from graphrag_nlp.names.name_shapes import is_coded, is_plural_acronym
from tests.fixtures.extraction import extract


def test_code_and_comments_name_nothing() -> None:
    found = extract(
        "Alice Moreno met Bob Hartley in the library.\n\n```js\nconst Zorkel = new Blimpo();\n"
        "// Bob Hartley and Alarmo print this long line of code.\n```\n\n"
        "<!-- Added by Quentin Marsh -->\nAlice Moreno and Bob Hartley read on."
    )
    assert set(found.titles) == {"Alice Moreno", "Bob Hartley"}
    assert found.mentioned == {"Alice Moreno": 2, "Bob Hartley": 2}


@pytest.mark.parametrize(("language", "is_prose"), [("js", False), ("text", True)])
def test_sentences_in_code_are_no_prose(language: str, is_prose: bool) -> None:
    line = "Then the two of them print this line."
    text = f"We print it.\n\n```{language}\n\n{line}\n\n```\n"
    _, starts = find_cut_offsets(text)
    prose = {text[row[1] : row[2]]: row[3] for row in make_sentence_rows(0, text, starts)}
    assert prose[line] is is_prose


def test_a_letter_between_fences_is_read() -> None:
    found = extract("```\nDear Emma Wilson, we met Ralph Linden in Oslo last week.\n```\n")
    assert {"Emma Wilson", "Ralph Linden", "Oslo"} <= {*found.titles}


def test_labels_of_lines_and_verbs_behind_them_are_no_names() -> None:
    found = extract(
        "Solution:   Add Quorix to the list. We add it each time, and we add more.\n"
        "Problem:    Quorix crashes, and then they add it.\n"
        "Solution:   Add Blimpo to the list. We know that Quorix is old. The solution is old."
    )
    assert "Quorix" in found.titles
    assert not {"Solution", "Problem", "Add", "Add Quorix", "Add Blimpo"} & {*found.titles}


def test_numbered_headings_of_a_table_of_contents_show_no_names() -> None:
    contents = "1.1. The Legal Framework\n\n1.2 New Mirrors\n\nA.3. Quorix\n\nA.4. DKIM\n\n"
    found = extract(
        contents, f"# Home\n\n- {contents}", "We all know Quorix, which is in the list."
    )
    assert set(found.types) == {"Quorix", "DKIM"}


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("Calendly is slow. Calendly is big. Calendly is old. We use Calendly.", {"Calendly"}),
        ("Feedly is slow. Feedly is big. Feedly is old. We use Feedly.", {"Feedly"}),
        ("Grammarly said no. Grammarly hired two. We all use Grammarly.", {"Grammarly"}),
        ("Emily ran. Emily sat down. Emily slept. We saw Emily.", {"Emily"}),
        ("Kelly ran. Kelly sat down. Kelly slept. We saw Kelly.", {"Kelly"}),
        ("Sicily is hot. Sicily is big. Sicily is old. We left Sicily.", {"Sicily"}),
    ],
)
def test_names_that_end_like_adverbs_are_names(text: str, types: set[str]) -> None:
    found = extract(text, "The harbour was busy when Emil Rau came home.").types
    assert {name for name, kind in found.items() if kind != "noun phrase"} == {*types, "Emil Rau"}


def test_fingerprints_of_keys_are_no_names() -> None:
    found = extract(
        "Alice Moreno signed the key 4F5A 0CC7 8BD4 1B2E  F3D1 A1B2 C3D4 E5F6 in Oslo.\n"
        "The key AB12CD34 is old, and Alice Moreno flew there."
    )
    assert found.mentioned == {"Alice Moreno": 2, "Oslo": 1}


def test_systems_before_colons_are_no_persons() -> None:
    text = (
        "Win32: the window is closed by a click. We like Win32 more than ArrayBuffer.\n"
        "Unix: the window is open. The users of Unix know Win32 well."
    )
    assert extract(text, text).types == {"Win32": "name", "Unix": "name", "ArrayBuffer": "name"}


def test_a_nickname_in_a_chat_is_a_person() -> None:
    lines = ["Alex99: are you there?", "mina: yes, I am", "Alex99: good, and the boat?"] * 3
    assert extract("\n".join(lines)).types["Alex99"] == "person"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("Win32", "ArrayBuffer", "CAs", "NaN", "DEP0044", "GTK+ aB")),
        *((name, False) for name in ("McDonald", "DeVito", "Ann O'Hara", "Jean-Luc", "API", "d'A")),
        *((name, False) for name in ("JoAnn Falletta", "Mohamed ElBaradei", "Ada BenSalem")),
    ],
)
def test_writing_of_software(name: str, expected: bool) -> None:
    assert is_coded(name) is expected


def test_acronyms_in_the_plural() -> None:
    assert all(map(is_plural_acronym, ["SDKs", "IBM PCs"]))
    assert not any(map(is_plural_acronym, ["Ross", "AS", "DoS"]))
