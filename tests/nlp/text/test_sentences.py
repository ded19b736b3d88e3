import re

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_index.schema.settings.step_sections import CreateTextUnits
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.create_text_units import create_text_units
from graphrag_nlp.text.code import blank_code, find_code
from graphrag_nlp.text.sentences import (
    are_near_duplicates,
    are_quotable,
    distinctive_words,
    find_quotation,
    find_segment_starts,
    join_lines,
    split_sentences,
)
from tests.fixtures.cases import cases
from tests.fixtures.fake_model import EarlierTables

FRAM = "The Fram left Norway in August 1910."
CREW = (
    "Tom Crean was one of the six men who sailed the James Caird from Elephant Island to South "
    "Georgia in April and May 1916; the others were Ernest Shackleton, Frank Worsley, Harry "
    "McNish, John Vincent and Timothy McCarthy."
)
FOOTER = "Sign up for the newsletter today!"
LONG = "The expedition went on over the ice. " * 6 + "Then it came home at last."


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end, _ in split_sentences(text)]


def prose(text: str) -> list[str]:
    return [text[start:end] for start, end, whole in split_sentences(text) if whole]


@cases("text, expected")
def test_sentences_end_at_their_punctuation(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_sentences_of_a_text_without_capitals_begin_in_lower_case() -> None:
    said = [
        "the player broke after two weeks, e.g. it read no disc at all.",
        "who wants that?",
        "the picture froze and i had to unplug the whole thing every single time.",
        "i sent it back to the shop and bought another one of a better known brand.",
    ]
    assert sentences(" ".join(said)) == said
    assert prose(" ".join(said)) == [said[0], *said[2:]]
    # One capital shows that a lower-case letter after a full stop begins no sentence.
    assert len(sentences("The" + " ".join(said)[3:])) == 1


def test_abbreviations_end_no_sentence_of_a_text_without_capitals() -> None:
    said = [
        "the charger of acme inc. and the cable by bolt ltd. in a box cost 20 usd.",
        "it takes 5 min. to load and 3 hrs. with the old cable, as i saw at acme inc.",
        "the shop on main st. took it back after i had called them on three days in a row.",
    ]
    assert sentences(" ".join(said)) == said


@cases("text")
def test_abbreviations_initials_and_ordinals_end_no_sentence(text: str) -> None:
    assert sentences(text) == [text]


@cases("first, second")
def test_a_capital_that_is_no_initial_may_end_a_sentence(first: str, second: str) -> None:
    assert sentences(f"{first} {second}") == [first, second]


@cases("first, second")
def test_an_abbreviation_ends_a_sentence_before_a_word_that_begins_one(
    first: str, second: str
) -> None:
    assert sentences(f"{first} {second}") == [first, second]


@cases("text")
def test_short_brackets_and_quotations_are_not_cut(text: str) -> None:
    assert sentences(text) == [text]


@cases("text")
def test_brackets_that_do_not_close_soon_do_not_hold_sentences_together(text: str) -> None:
    assert len(sentences(text)) > 1


def test_headings_lists_and_tables_are_units_of_their_own() -> None:
    text = "# Ships\n\nThey were slow.\n- Fram\n- Gauss\n\n| name | year |\n| Fram | 1892 |\n"
    assert sentences(text) == [
        "Ships",
        "They were slow.",
        "Fram",
        "Gauss",
        "| name | year |",
        "| Fram | 1892 |",
    ]


def test_only_whole_sentences_are_prose() -> None:
    text = "# The ships of 1901\n\nThe ship left the harbour in May.\n\nand so on\n\n- Fram"
    assert prose(text) == ["The ship left the harbour in May."]


def test_half_a_bracket_is_no_prose() -> None:
    assert prose("The ship left (in May of that year.") == []
    assert prose("The ship [Fram] left (in May of that year).") != []


def test_an_empty_text_has_no_sentences() -> None:
    assert split_sentences("") == []
    assert find_segment_starts("") == []


@given(st.text(alphabet=st.sampled_from("aB1 .!?\n#|-。।\"'()“”😀́א")))
def test_sentences_hold_every_letter_once_and_in_order(text: str) -> None:
    found = split_sentences(text)
    reached = 0
    for start, end, _ in found:
        assert reached <= start < end <= len(text)
        assert not any(character.isalpha() for character in text[reached:start])
        reached = end
    assert not any(character.isalpha() for character in text[reached:])


@given(st.text())
def test_segments_begin_at_the_start_and_ascend(text: str) -> None:
    starts = find_segment_starts(text)
    assert starts == sorted(set(starts))
    assert (starts[:1] == [0]) == bool(text)
    assert all(start < len(text) for start in starts)


@cases("one, other, same")
def test_a_sentence_that_another_repeats_with_more_around_it_is_alike(
    one: str, other: str, same: bool
) -> None:
    words = distinctive_words(one), distinctive_words(other)
    assert are_near_duplicates(*words) is same
    assert are_near_duplicates(*reversed(words)) is same


@given(st.text(), st.text())
def test_whatever_is_said_adds_nothing_to_itself(said: str, more: str) -> None:
    words = distinctive_words(said)
    assert are_near_duplicates(words, words) is bool(words)
    if words:
        assert are_near_duplicates(words, words | distinctive_words(more))


def quoted(*texts: str) -> list[list[str]]:
    """What can be quoted of each text."""
    rows = [
        {"id": f"{number}", "title": "", "text": text, "creation_date": ""}
        | {"raw_data": None, "path": "", "metadata": None}
        for number, text in enumerate(texts)
    ]
    documents = pl.DataFrame(rows, schema=TABLES["loaded_documents"].schema).lazy()
    batches = create_text_units(
        documents,
        settings=CreateTextUnits(),
        previous=EarlierTables(),
        progress=Silent(),
        shards=SerialShards(),
    )
    sentences = pl.concat([batch["sentences"] for batch in batches])
    sentences = sentences.with_columns(are_quotable(sentences)).filter("quotable")
    places = sentences.select("document", "start_char", "end_char").rows()
    return [
        [texts[number][start:end] for document, start, end in places if document == number]
        for number in range(len(texts))
    ]


def test_lines_of_three_documents_are_not_quoted() -> None:
    texts = [
        f"The ship {name} sailed in May.\n\n{FOOTER}\n" for name in ("Fram", "Gauss", "Nimrod")
    ]
    assert quoted(*texts) == [[text.split("\n")[0]] for text in texts]
    assert quoted(*texts[:2])[0] == [texts[0].split("\n")[0], FOOTER]


def test_lines_that_stand_three_times_in_one_document_are_not_quoted() -> None:
    parts = [f"The ship {name} sailed in May." for name in ("Fram", "Gauss", "Nimrod")]
    assert quoted(f"\n\n{FOOTER}\n\n".join([*parts, "They all came home again."])) == [
        [*parts, "They all came home again."]
    ]


def test_all_sentences_of_a_repeated_line_are_furniture() -> None:
    footer = "We use cookies on this page. You may say no to that."
    own = "The ship {} sailed in May. The crew of {} slept a lot. Nobody was left on the quay."
    texts = [f"{own.format(name, name)}\n{footer}" for name in ("Fram", "Gauss", "Nimrod")]
    assert [len(found) for found in quoted(*texts)] == [3, 3, 3]


def test_a_sentence_repeated_in_one_line_is_no_furniture() -> None:
    line = "One sentence is here. " * 3
    assert quoted(f"{line}\n\nAnother one stands over there.") == [
        [*["One sentence is here."] * 3, "Another one stands over there."]
    ]


def test_copies_and_long_paragraphs_stay_quotable() -> None:
    wrapped = "The ship sailed in May.\nThe crew slept a lot.\nNobody was left behind."
    assert [len(found) for found in quoted(*[wrapped] * 4)] == [3] * 4
    assert [len(found) for found in quoted(*[LONG] * 4)] == [7] * 4
    nearly = (f"{wrapped}\n{wrapped.upper()}\nThis is the copy called {n}." for n in "123")
    assert [len(found) for found in quoted(*nearly)] == [7] * 3


def test_no_sentences_no_flags() -> None:
    assert are_quotable(TABLES["sentences"].empty()).to_list() == []


@cases("text, expected")
def test_a_quotation_stands_on_one_line_without_marks_of_layout(text: str, expected: str) -> None:
    assert join_lines(text) == expected
    start, end = find_quotation(expected, f"(Before.\n{text}\nAfter.)") or (0, 0)
    assert start == 9
    assert join_lines(f"(Before.\n{text}\nAfter.)"[start:end]) == expected


def test_what_a_text_does_not_say_is_not_found() -> None:
    assert find_quotation("It rained.", "It snowed.") is None
    assert find_quotation(" - ", "It snowed - much.") is None


@given(st.text(alphabet="aB.>- \n\u00ad1"), st.integers(0, 9), st.integers(0, 60))
def test_every_piece_of_a_text_is_found_in_it(text: str, start: int, length: int) -> None:
    quotation = join_lines(text[start : start + length])
    place = find_quotation(quotation, text)
    assert (place is None) == (not any(c in "aB.1" for c in quotation))
    if place:
        letters = [c for c in quotation if c in "aB.1"]
        assert [c for c in text[slice(*place)] if c in "aB.1"] == letters


def test_a_headline_above_a_long_line_is_a_sentence_of_its_own() -> None:
    body = "A dam burst in western Kenya before dawn on Monday, " * 5 + "police said."
    text = f"Kenya Floods Kill 70 as Dam Bursts in Rift Valley\n{body}\nBy Jane Smith\n"
    found = [text[s.start : s.end] for s in split_sentences(text)]
    assert found == ["Kenya Floods Kill 70 as Dam Bursts in Rift Valley", body, "By Jane Smith"]
    wrapped = "The dam burst in western Kenya before dawn on the first\nMonday of May, police said."
    assert len(list(split_sentences(wrapped))) == 1


POEM = "Tell me, Muse, of the man\nof many ways, who wandered far"


@cases("text, code")
def test_code_is_found(text: str, code: list[str]) -> None:
    assert [text[start:end] for start, end in find_code(text)] == code


@given(st.text("ab`~\n <!->{};"))
@example("~~~")
@example("a\n~~~\nb\n```\nc")
def test_blanking_moves_and_adds_nothing(text: str) -> None:
    blanked = blank_code(text)
    assert len(blanked) == len(text)
    inside = {at for start, end in find_code(text) for at in range(start, end)}
    # A fence that nothing closes is removed alone, unless it underlines a heading.
    fences = (m.span() for m in re.finditer(r"(?m)^ *(?:~~~|```).*$", text))
    inside |= {
        at for start, end in fences if blanked[start:end].isspace() for at in range(start, end)
    }
    for at, (before, after) in enumerate(zip(text, blanked, strict=True)):
        assert after == (" " if at in inside and before != "\n" else before)


def test_prose_before_a_block_of_another_fence_is_kept() -> None:
    text = "Anna wrote the guide in Oslo.\n\n````\n```js\nf(a);\n```\n````\n\nBob lives in Kiel."
    assert blank_code(text, is_part=True).startswith("Anna wrote the guide in Oslo.")
