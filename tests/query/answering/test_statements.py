import pytest

from graphrag_query.answering.extractive import as_one_line
from graphrag_query.answering.statements import (
    NO_OPENING,
    Opening,
    find_statements,
)

CHAT = """Time: 20260106_09:00
AnnLee: Do you know the password? 🎉 And the rules?
BobRay: It is "Family123".

No noise at night! 😊
AnnLee: Got it"""


def quotations(text: str, opening: Opening = NO_OPENING) -> list[tuple[str, str]]:
    """Return the label and the text of the statements that are no headings or fragments."""
    found = find_statements(text, opening)
    assert [(s.start, s.end) for s in found] == sorted((s.start, s.end) for s in found)
    return [
        (f"{s.label} ({s.time})" if s.time else s.label, text[s.start : s.end])
        for s in found
        if s.prose
    ]


def test_sentences_of_a_chat_have_the_speaker_and_the_time_of_the_session() -> None:
    ann, bob = "AnnLee (20260106_09:00)", "BobRay (20260106_09:00)"
    assert quotations(CHAT) == [
        (ann, "Do you know the password?"),
        (ann, "And the rules?"),
        (bob, 'It is "Family123".'),
        (bob, "No noise at night!"),
        (ann, "Got it"),
    ]


def test_you_is_about_the_other_speaker_of_two() -> None:
    about = [statement.about.split() for statement in find_statements(CHAT)]
    assert about[0] == ["Bob", "Ray", "Ann", "Lee", "20260106_09:00"]
    assert about[2] == ["Bob", "Ray", "20260106_09:00"]


def test_a_text_unit_inside_a_chat_begins_with_the_speaker_of_the_text_unit_before() -> None:
    found = quotations("It is pizza.\nEve: I like soup.", Opening("Ann", "Monday"))
    assert found == [("Ann (Monday)", "It is pizza."), ("Eve (Monday)", "I like soup.")]


@pytest.mark.parametrize(
    ("line", "label", "text"),
    [
        ("[12:03] Bob> Hi to all of you.", "Bob (12:03)", "Hi to all of you."),
        ("<Eve> Hi to all of you.", "Eve", "Hi to all of you."),
        ("12/03/24, 10:22 - Al: At 5.", "Al (12/03/24, 10:22)", "At 5."),
        ("**Dr. Who** (9:15): At 5.", "Dr. Who (9:15)", "At 5."),
        ("JUDGE ROY: Sit down, please.", "JUDGE ROY", "Sit down, please."),
        ("张三：晚上七点。", "张三", "晚上七点。"),
    ],
)
def test_speakers_are_found_in_many_layouts(line: str, label: str, text: str) -> None:
    assert quotations(f"{line}\n{line}") == [(label, text)] * 2


def test_a_letter_is_what_its_sender_says() -> None:
    head = "From: Ann Lee <a@x.org>\nTo: Bob\nDate: 3 May 2024\nSubject: Budget\n\n"
    assert quotations(head + "It is 5 euros.") == [("Ann Lee (3 May 2024)", "It is 5 euros.")]


def test_sentences_of_a_letter_go_on_in_the_next_line_and_end_with_a_short_one() -> None:
    head = "From: Ann\nDate: 3 May\n\n"
    body = "I still think that the oldest solution is to\nrestrict posts.\n"
    quoted = "> We have had so much of it that nobody can\n> read it.\n"
    found = quotations(head + body + quoted + "Ann\nBern")
    assert [as_one_line(text) for _, text in found] == [
        "I still think that the oldest solution is to restrict posts.",
        "We have had so much of it that nobody can read it.",
        "Ann",
        "Bern",
    ]


HEAD = "From: Ann\nDate: 3 May\n\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Another writer, a signature, verses, items and code do not go on with a sentence.
        (
            f"{HEAD}Bob says that he has bought a house in the old town\n> I never said that.",
            ["Bob says that he has bought a house in the old town", "I never said that."],
        ),
        (
            f"{HEAD}On Monday we meet as always at ten in room five\nAnn Lee",
            ["On Monday we meet as always at ten in room five", "Ann Lee"],
        ),
        (
            f"{HEAD}The ships of summer sail beyond the quiet bay\nThe birds are gone.",
            ["The ships of summer sail beyond the quiet bay", "The birds are gone."],
        ),
        (
            f"{HEAD}two litres of warm milk from the farm of the Lees\nfour fresh eggs",
            ["two litres of warm milk from the farm of the Lees", "four fresh eggs"],
        ),
        (
            f"{HEAD}Here is the loop that sends the letter to all users\nfor user in users:",
            ["Here is the loop that sends the letter to all users", "for user in users:"],
        ),
        # Messages of a chat end with their line.
        (
            f"Ann: {'We go to the lake and stay there until it is ' * 2}dark\nsee you there.\n"
            "Bob: Yes, we do.",
            [
                f"{'We go to the lake and stay there until it is ' * 2}dark",
                "see you there.",
                "Yes, we do.",
            ],
        ),
        # A function word at the end of a line needs another word.
        (
            f"{HEAD}> I think that all of them have moved from Basel to\n> Bern by now.",
            ["I think that all of them have moved from Basel to\n> Bern by now."],
        ),
    ],
)
def test_other_lines_than_those_of_one_letter_are_apart(text: str, expected: list[str]) -> None:
    assert [said for _, said in quotations(text)] == expected


def test_a_cell_has_its_row_and_its_column() -> None:
    table = "| City | Mayor | Area |\n| --- | --- | --- |\n| Berlin | Kai Wegner | 891 |\n"
    wanted = [("Berlin, Mayor", "Kai Wegner"), ("Berlin, Area", "891")]
    assert quotations(table) == wanted
    assert quotations("City\tMayor\tArea\nBerlin\tKai Wegner\t891\n") == wanted


def test_a_field_has_the_first_value_of_its_record_or_the_heading() -> None:
    records = "Name: Ann\nAge: 5\n\nName: Bob\nAge: 7\nThis is a whole sentence."
    assert quotations(records) == [
        ("Name", "Ann"),
        ("Ann, Age", "5"),
        ("Name", "Bob"),
        ("Bob, Age", "7"),
        ("", "This is a whole sentence."),
    ]
    assert quotations("# Berlin\nMayor: Kai\nArea: 891")[1] == ("Berlin, Area", "891")
    assert quotations('{\n  "name": "Nut",\n  "price": 5\n}')[1] == ("Nut, price", "5")


def test_a_list_item_has_the_line_above_the_list() -> None:
    assert quotations("Ingredients:\n- 200 g flour\n- 3 eggs\n") == [
        ("Ingredients", "200 g flour"),
        ("Ingredients", "3 eggs"),
    ]


def test_a_colon_in_prose_begins_no_turn() -> None:
    text = "He said: it is over.\n\nThe answer is no. Note: do not open the door."
    assert [statement.label for statement in find_statements(text)] == ["", ""]


def test_a_line_of_fixed_width_that_goes_on_with_a_sentence_has_no_label() -> None:
    text = (
        "The race of last year took place in two parts, and the\n"
        "second race: Ann won it, as everybody had thought she would.\nNote: it rained.\n"
    )
    assert "second race" not in {statement.label for statement in find_statements(text)}


def test_the_text_before_the_first_speaker_is_kept() -> None:
    text = f"They met on Monday in the old town.\n\n{CHAT.split(chr(10), 1)[1]}"
    assert quotations(text)[0] == ("", "They met on Monday in the old town.")


def test_steps_of_a_manual_are_no_chat() -> None:
    text = (
        "Never use vinegar, because it damages the seals.\nUse water.\n"
        "Step 1: Empty the tray. Step 2: Fill the tank with half a litre of warm water and "
        "one tablet. Rinse twice.\n"
        "Warranty: two years. Keep the receipt and send it to the shop where you bought it.\n"
    )
    assert ("", "Never use vinegar, because it damages the seals.") in quotations(text)
    assert ("", "Step 1: Empty the tray.") in quotations(text)


def test_a_product_with_a_slash_is_no_speaker() -> None:
    text = "GNU/Linux : the guide for users.\n\nGNU/Linux : the guide for admins.\n\nIt works."
    assert all(statement.label == "" for statement in find_statements(text))


def test_a_row_of_a_web_page_is_one_statement_about_its_columns() -> None:
    found = find_statements("Ships\n\nName | Built\nFram | 1892\nGauss | 1901\n")
    rows = [(s.about, s.start) for s in found if s.prose]
    assert rows == [("Name | Built", 20), ("Name | Built", 32)]
    long = " ".join(["word"] * 20)
    assert not any("|" in s.about for s in find_statements(f"A\n\n{long} | b\nc | d\ne | f\n"))


def test_code_and_comments_state_nothing() -> None:
    text = (
        "<!-- YAML\nadded: v0.1.13\n-->\nThe exit is quiet and takes no time.\n\n"
        "```js\nconst shown = { colour: 'red' };\n// colour: red\n```\n\nIt ends there, as it did."
    )
    said = [text[one.start : one.end] for one in find_statements(text)]
    assert said == ["The exit is quiet and takes no time.", "It ends there, as it did."]
