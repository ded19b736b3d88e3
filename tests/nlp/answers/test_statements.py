"""Statements of texts: sentences, turns of chats and letters, list items, rows, fields."""

import pytest

from graphrag_nlp.answers.statements import find_statements, find_stems
from graphrag_nlp.text.sentences import split_sentences
from tests.fixtures.cases import cases

CHAT = """Time: 20260106_09:00
AnnLee: Do you know the password? 🎉 And the rules?
BobRay: It is "Family123".

No noise at night! 😊
AnnLee: Got it"""


def said(text: str, *before: str) -> list[str]:
    """Return what the statements of a text say, with their labels, in the order of the text."""
    found = find_statements(text, before)
    assert [s.start for s in found] == sorted(s.start for s in found)
    assert all(text[s.start : s.end] == s.text for s in found)
    return [statement.said for statement in found]


def test_a_turn_of_a_chat_has_the_speaker_and_the_time_of_the_session() -> None:
    assert said(CHAT) == [
        "AnnLee (20260106_09:00): Do you know the password? 🎉 And the rules?",
        'BobRay (20260106_09:00): It is "Family123". No noise at night!',
        "AnnLee (20260106_09:00): Got it",
    ]


def test_a_long_turn_is_cut_between_sentences() -> None:
    sentence = "We went to the lake and stayed there until it was dark."
    [first, second] = said(f"Time: 5 May\nAnn: {' '.join([sentence] * 4)}")
    assert (first.count("lake"), second.count("lake")) == (3, 1)


def test_a_text_unit_inside_a_chat_begins_with_the_speaker_before() -> None:
    before = "Time: Monday\nAnn: What do you like?\nEve: I do not know it.\nAnn: I like"
    assert said("It is pizza.\nEve: I like soup.", before) == [
        "Ann (Monday): It is pizza.",
        "Eve (Monday): I like soup.",
    ]


def split_segments(text: str) -> list[str]:
    return [text[start:end] for start, end, _ in split_sentences(text)]


@cases("line, expected")
def test_speakers_are_found_in_many_layouts(line: str, expected: str) -> None:
    assert said(f"{line}\n{line}") == [expected] * 2


def test_a_letter_is_what_its_sender_says_in_sentences() -> None:
    head = "From: Ann Lee <a@x.org>\nTo: Bob\nDate: 3 May 2024\nSubject: Budget\n\n"
    assert said(head + "It is 5 euros. That is a lot.") == [
        "Ann Lee (3 May 2024): It is 5 euros.",
        "Ann Lee (3 May 2024): That is a lot.",
    ]


def test_a_row_of_a_table_has_the_names_of_its_columns() -> None:
    table = "| City | Mayor | Area |\n| --- | --- | --- |\n| Berlin | Kai Wegner | 891 |\n"
    expected = ["Berlin; Mayor: Kai Wegner; Area: 891"]
    assert said(table) == expected
    web = "City | Mayor | Area\nBerlin | Kai Wegner | 891\nBern | Marieke Kruit | 51\n"
    tabs = web.replace(" | ", "\t")
    assert said(web) == said(tabs) == [*expected, "Bern; Mayor: Marieke Kruit; Area: 51"]
    [row] = find_statements(table)
    assert find_stems("mayor area") <= row.label_stems


def test_a_table_with_a_long_cell_is_text() -> None:
    long = " ".join(["word"] * 20)
    assert not any(s.cells for s in find_statements(f"A\n\n{long} | b\nc | d\ne | f\n"))


def test_a_record_of_short_fields_is_one_row() -> None:
    record = "Pump: P-1\nDepth (m): 468\nKeeper: Ruth Vane\n"
    assert said(record) == ["Pump: P-1; Depth (m): 468; Keeper: Ruth Vane"]
    sentence = "It was built in the year of the great flood."
    assert not any(s.cells for s in find_statements(f"{record}{sentence}"))
    # A text with a long field is none, which shows at once.
    long = f"Keeper: {'longest ' * 16}"
    assert not any(s.cells for s in find_statements(f"{record}{long}"))


def test_a_line_of_a_log_is_a_statement() -> None:
    lines = ["2024-05-06 07:08:09 INFO core: started", "  at main", "[06/May/2024:07:10:11] GET /"]
    lines += ["May 16 07:08 host cron: done", "07:08:09 stopped"]
    assert said("\n".join(lines)) == [line for line in lines if line[0] != " "]
    assert [text for text in split_segments("\n".join(lines)) if "stop" in text] == [lines[-1]]


def test_contents_and_fences_state_nothing() -> None:
    contents = "1 Aim ........ 2 2 Method of the drilling ...... 12\n3 Use . . . . . . . 14"
    sentence = "The deepest hole was found in the north....."
    assert said(f"{contents}\n\n```\n{sentence}\n```\n") == [sentence]
    assert said(f"{sentence}\n\n```\nfor hole in holes:\n    print(hole[1])") == [sentence]


def test_a_field_has_the_first_value_of_its_record_or_the_heading() -> None:
    records = "Name: Ann\nAge: 5\n\nName: Bob\nAge: 7\nThis is a whole sentence."
    assert said(records) == [
        "Name: Ann",
        "Ann, Age: 5",
        "Name: Bob",
        "Bob, Age: 7",
        "This is a whole sentence.",
    ]
    assert "Berlin, Area: 891" in said("# Berlin\nMayor: Kai\nArea: 891")


def test_a_list_item_has_the_line_above_the_list() -> None:
    assert said("Ingredients:\n- 200 g flour\n- 3 eggs\n")[-2:] == [
        "Ingredients: 200 g flour",
        "Ingredients: 3 eggs",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "He said: it is over.\n\nThe answer is no. Note: do not open the door.",
        "GNU/Linux : the guide for users.\n\nGNU/Linux : the guide for admins.\n\nIt works.",
        "The race of last year took place in two parts, and the\nsecond race: Ann won it, as "
        "everybody had thought she would.\nNote: it rained.\n",
        "Never use vinegar, because it damages the seals.\nUse water.\n"
        "Step 1: Empty the tray. Step 2: Fill the tank with half a litre of warm water and "
        "one tablet. Rinse twice.\n"
        "Warranty: two years. Keep the receipt and send it to the shop where you bought it.\n",
    ],
    ids=("prose", "product", "fixed width", "manual"),
)
def test_other_colons_begin_no_turn(text: str) -> None:
    assert not any(statement.is_turn for statement in find_statements(text))


def test_the_text_before_the_first_speaker_is_kept() -> None:
    text = f"They met on Monday in the old town.\n\n{CHAT.split(chr(10), 1)[1]}"
    assert said(text)[0] == "They met on Monday in the old town."


def test_code_comments_and_headings_state_nothing() -> None:
    text = (
        "# The exit\n\n<!-- YAML\nadded: v0.1.13\n-->\nThe exit is quiet and takes no time.\n\n"
        "```js\nconst shown = { colour: 'red' };\n// colour: red\n```\n\nIt ends there, as it did."
    )
    assert said(text) == ["The exit is quiet and takes no time.", "It ends there, as it did."]


def test_what_a_page_puts_around_a_sentence_is_no_part_of_it() -> None:
    text = "Share this with Coach Ann Berg left Bern in May. es/tj (AFP, dpa)"
    assert said(text) == ["Coach Ann Berg left Bern in May."]


@pytest.mark.parametrize("text", ["", "\n\n", "#", "|", "Ann:", "a\tb"])
def test_a_text_without_a_statement_has_none(text: str) -> None:
    assert said(text) == []
