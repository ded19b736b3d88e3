"""Names in manuals, changelogs and code."""

from collections.abc import Callable

import pytest

from graphrag_index.steps.create_text_units import find_cut_offsets, make_sentence_rows
from graphrag_nlp.names.name_shapes import (
    ends_in_noun,
    is_coded,
    is_joined_adjective,
    is_joined_word,
    is_plural_acronym,
    is_written_together,
)
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


def test_frequent_words_in_title_case_at_the_start_of_a_line_are_no_name() -> None:
    found = extract(
        "Standard Reports show how money moved through the accounts of Quorix in a year.\n\n"
        "Supreme Court of Norway decided that Quorix pays."
    )
    assert "Standard Reports" not in found.titles
    assert {"Quorix", "Supreme Court of Norway"} <= {*found.titles}


def test_numbered_headings_of_a_table_of_contents_show_no_names() -> None:
    contents = "1.1. The Legal Framework\n\n1.2 New Mirrors\n\nA.3. Quorix\n\nA.4. DKIM\n\n"
    found = extract(
        contents, f"# Home\n\n- {contents}", "We all know Quorix, which is in the list."
    )
    assert set(found.types) == {"Quorix", "DKIM"}


@pytest.mark.parametrize(("opening", "closing"), ["“”", '""', "„“", "«»"])
def test_titles_of_referenced_sections_are_no_names(opening: str, closing: str) -> None:
    found = extract(
        f"Quorix is told in Section 6.16, {opening}Checking Package Health{closing} of this.",
        f"Read Section 1.2, {opening}Inspecting the Packages{closing} before you use Quorix.",
    )
    assert set(found.types) == {"Quorix"}


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


@pytest.mark.parametrize(
    ("test", "names", "others"),
    [
        (is_plural_acronym, ["SDKs", "IBM PCs"], ["Ross", "AS", "DoS"]),
        (is_written_together, ["MaxSpareThreads", "FreeTDS"], ["RheinEnergie", "BB&T", "DoD"]),
        (is_joined_word, ["How-To", "HTTP-aware"], ["Ha-young", "Smith-Jones", "Oracle"]),
        (is_joined_adjective, ["Balto-Slavic", "Non-native"], ["Ann-Margret", "Saudi", "Non"]),
        (ends_in_noun, ["Marvel Comics"], ["Charles II", "Roger Rabbit", "Comics", "Al Gore"]),
    ],
)
def test_shapes_of_names_of_software(
    test: Callable[[str], bool], names: list[str], others: list[str]
) -> None:
    assert all(map(test, names))
    assert not any(map(test, others))
