import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.text.sentences import segment_starts, split_sentences


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
    assert segment_starts("") == []


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
    starts = segment_starts(text)
    assert starts == sorted(set(starts))
    assert (starts[:1] == [0]) == bool(text)
    assert all(start < len(text) for start in starts)
