import polars as pl
import pytest
from hypothesis import given
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained. We stayed.", ["It rained.", "We stayed."]),
        ("Did it rain? Yes! We stayed.", ["Did it rain?", "Yes!", "We stayed."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("雨が降った。家にいた。", ["雨が降った。", "家にいた。"]),
        ("下雨了！我们在家。", ["下雨了！", "我们在家。"]),
        ("هل أمطرت؟ نعم. بقينا.", ["هل أمطرت؟", "نعم.", "بقينا."]),
        ("बारिश हुई। हम रुके।", ["बारिश हुई।", "हम रुके।"]),
    ],
)
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


@pytest.mark.parametrize(
    "text",
    [
        "Dr. Smith met Mrs. Jones at St. Mary's.",
        "The book of J. R. R. Tolkien sold well.",
        "It costs 3.50 euros, i.e. too much.",
        "Am 3. Oktober wurde gefeiert.",
        "Das gilt z. B. für Hunde.",
        "W 1918 r. Polska odzyskała wolność.",
        "He paused... and went on.",
        "The U.S. Army came.",
        "J.R.R. Tolkien wrote it.",
        "They served under J.R. Sorley and W.E.B. Du Bois.",
        "Jean-Paul (J.-P. Sartre) and C.M. von Weber agreed.",
        "The non-U.S. Navy left.",
        "It was the wife of Capt. Scott, incl. Evans and orig. Wilson.",
        "Das gilt z.B. Die Zeit und d.h. Der Spiegel.",
        "Er starb 44 v.Chr. Rom trauerte.",
        "Napisał to m.in. Jan Kowalski, tj. Jego brat.",
        "C'est l'œuvre de J.-J. Rousseau.",
    ],
)
def test_abbreviations_initials_and_ordinals_end_no_sentence(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("He was received by King George V.", "Scott was ill."),
        ("Das Reich regierte Kaiser Karl V.", "Luther kam."),
        ("The men had no vitamin C.", "Edward was weak."),
        ("It was below 0 °C.", "Evans froze."),
        ("He stayed and so did I.", "Then we left."),
        ("Brown was in World War I.", "Smith was not."),
    ],
)
def test_a_capital_that_is_no_initial_may_end_a_sentence(first: str, second: str) -> None:
    assert sentences(f"{first} {second}") == [first, second]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("He lived in the U.S.", "The next year he died."),
        ("They met in Washington, D.C.", "It was cold."),
        ("He left at 5 p.m.", "In the evening it rained."),
        ("She works for Foyn & Co.", "They sell oil."),
        ("The snow melted in the sun.", "The dogs drank."),
        ("Es gab Hunde, Ponys usw.", "Die Männer froren."),
        ("Były psy, konie itd.", "To był błąd."),
        ("Il vivait en U.R.S.S.", "Elle est restée."),
    ],
)
def test_an_abbreviation_ends_a_sentence_before_a_word_that_begins_one(
    first: str, second: str
) -> None:
    assert sentences(f"{first} {second}") == [first, second]


@pytest.mark.parametrize(
    "text",
    [
        "The song (Do You Hear Me? I Mean It) was sung.",
        '"Stop! Thief!" he cried.',
        "‘Stop! Thief!’ he cried.",
        "They read “The End. A Play” aloud.",
        "Er rief: „Halt! Ich komme.“",
        "Zawołał: „Stój! Złodziej!”",
        "Il cria : « Halte ! Au voleur ! » et partit.",
        "The letter [lost. A copy\nsurvives] was short.",
    ],
)
def test_short_brackets_and_quotations_are_not_cut(text: str) -> None:
    assert sentences(text) == [text]


@pytest.mark.parametrize(
    "text",
    [
        # Forgotten marks, inches, an end far away, another paragraph, a list.
        "He said (as ever. They left.",
        'He cut a 6" hole. They had 5" pipes.',
        f"It was (so. {'They went on and on, ' * 10}). The end.",
        "He wrote (in May.\n\nThey came later.) The end.",
        "They took (all. There was:\n- One dog) Then they left.",
    ],
)
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


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (FRAM, FRAM[:-1] + ", and most of the men learned the goal only at Madeira.", True),
        (
            "In 1911 the Northern Party also wintered at Cape Adare.",
            "The Northern Party wintered at Cape Adare in 1911.",
            True,
        ),
        (
            CREW,
            "Ernest Shackleton sailed for South Georgia in the James Caird with Frank Worsley, "
            "Tom Crean, Harry McNish, John Vincent and Timothy McCarthy.",
            True,
        ),
        (FRAM, "The Fram was launched in 1892 at Larvik in Norway.", False),
        (FRAM, "The Fram left the Bay of Whales in January 1912.", False),
        # Short words, and none that is long.
        ("다시 배가 왔다", "다시 배가 왔다", True),
        ("다시 배가 왔다", "그가 섬에 남다", False),
    ],
)
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was as secu-\nrity for it.", "It was as security for it."),
        ("He wrote:\n> What does\n> > it mean?", "He wrote: What does it mean?"),
        ("It was quoted secu-\n> rity.", "It was quoted security."),
        ("Die Vor-\nund Nachteile des Vor-\ntrags.", "Die Vor- und Nachteile des Vortrags."),
        ("Ein Nord-\nAtlantik-Schiff.", "Ein Nord-Atlantik-Schiff."),
        ("Zażół-\n  ćmy to.", "Zażółćmy to."),
        ("C'est le capi-\r\ntaine.", "C'est le capitaine."),
        ("It measured\n> 5 mm - and\n-3 degrees.", "It measured > 5 mm - and -3 degrees."),
        ("The limit is\n>= 5 mm here.", "The limit is >= 5 mm here."),
        ("a  b\n c > d - e-f", "a b c > d - e-f"),
    ],
)
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


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Before\n```js\nconst a = 1;\n```\nafter", ["```js\nconst a = 1;\n```"]),
        ("~~~\nx = f(y);\n~~~~", ["~~~\nx = f(y);\n~~~~"]),
        ("* item:\n\n  ```\n  f(x);\n  ```\n\nafter", ["  ```\n  f(x);\n  ```"]),
        ("````\n```\nf(x);\n```\n````", ["````\n```\nf(x);\n```\n````"]),
        (f"```\n{POEM}\n```", []),
        (f"```text\n{POEM}\n```", []),
        (f"```lisp\n{POEM}\n```", [f"```lisp\n{POEM}\n```"]),
        ("```js\nan open block is none = 1;", []),
        ("words with ``` inside a line = 1;\n```", []),
        ("a <!-- by\nAnn Lee --> b <!-- open", ["<!-- by\nAnn Lee -->"]),
        ("```html\n<!-- a -->\n```", ["```html\n<!-- a -->\n```"]),
        ("First\n~~~~~\nf(x); by Ann (see y)\n\nSecond\n~~~~~~\ntext", []),
        ("* item\n\n  ~~~\n  f(x);\n  ~~~", ["  ~~~\n  f(x);\n  ~~~"]),
        ("```a`b`c\nf(x);\n```", []),
        ("", []),
    ],
)
def test_code_is_found(text: str, code: list[str]) -> None:
    assert [text[start:end] for start, end in find_code(text)] == code


@given(st.text("ab`~\n <!->{};"))
def test_blanking_moves_and_adds_nothing(text: str) -> None:
    blanked = blank_code(text)
    assert len(blanked) == len(text)
    inside = {at for start, end in find_code(text) for at in range(start, end)}
    for at, (before, after) in enumerate(zip(text, blanked, strict=True)):
        assert after == (" " if at in inside and before != "\n" else before)


def test_prose_before_a_block_of_another_fence_is_kept() -> None:
    text = "Anna wrote the guide in Oslo.\n\n````\n```js\nf(a);\n```\n````\n\nBob lives in Kiel."
    assert blank_code(text, is_part=True).startswith("Anna wrote the guide in Oslo.")
