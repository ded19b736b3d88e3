"""Titles of reports and headings of findings."""

from collections.abc import Sequence
from itertools import combinations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.reports.findings import Finding, Sentence
from graphrag_nlp.reports.titles import (
    MAX_COMMON_SHARE,
    Namer,
    TitleParts,
    Titles,
    compose_titles,
    flag_weak_names,
    fold_words,
    is_vague,
)
from tests.fixtures.cases import cases

TITLES = {0: "Tom Crean", 1: "Endurance", 2: "Scott", 3: "Terra Nova"}
WEIGHT = {0: 4.0, 1: 3.0, 2: 2.0, 3: 1.0}


def namer(
    *said: tuple[str, Sequence[int], int, str], headlines: dict[int, str] | None = None
) -> Namer:
    """Make the namer of a report on sentences: (text, entities, document, terms)."""
    ranked = [
        Sentence(row, text, list(entities), terms, row, document, 0, 80, 1.0)
        for row, (text, entities, document, terms) in enumerate(said)
    ]
    words = dict.fromkeys(word for *_, terms in said for word in terms.split())
    weights = {word: 9.0 - at for at, word in enumerate(words)}
    return Namer(ranked, TITLES, WEIGHT, weights, headlines or {}, "en")


def title(*said: tuple[str, Sequence[int], int, str], **options: dict[int, str]) -> str:
    parts = namer(*said, **options).find_parts([0], ["Rome: fire", "Ann: race", "Bob"])
    return Titles().choose(0, -1, parts)


def test_a_title_has_the_main_names_and_then_a_theme() -> None:
    assert (
        title(
            ("Tom Crean pulled the heavy sledges.", (0, 1), 0, "sledge"),
            ("The heavy sledges broke when Tom Crean fell.", (0,), 1, "sledge"),
            ("Scott waited.", (2,), 0, ""),
        )
        == "Tom Crean, Endurance: heavy sledges"
    )


def test_names_are_cut_from_a_theme() -> None:
    said = "The jute manufacturer of Dundee paid for the Endurance of Tom Crean."
    assert title((said, (0, 1), 0, "manufacturer")) == "Tom Crean, Endurance: jute manufacturer"
    said = "The drivers of Scott's motor sledges saw Tom Crean."
    assert title((said, (0,), 0, "sledge")) == "Tom Crean: motor sledges"


def test_a_phrase_of_one_of_many_sentences_is_no_theme() -> None:
    said = [
        (f"Tom Crean saw the {word} ship.", (0,), at, "ship")
        for at, word in enumerate(("sealing", "sunken", "small", "whaling"))
    ]
    assert title(*said) == "Tom Crean: ship"


def test_a_theme_that_most_documents_share_stands_without_names() -> None:
    said = [("Here is a song.", (at % 2,) * (at < 2), at, "song") for at in range(24)]
    assert title(*said) == "Song"


def test_two_words_of_about_equal_weight_are_a_theme() -> None:
    said = ("Tom Crean saw the fires; others saw the floods.", (0,), 0, "fire flood")
    assert title(said, said) == "Tom Crean: fires and floods"


def test_vague_words_give_way_to_others() -> None:
    said = ("Tom Crean saw the project; the harbour was new.", (0,), 0, "project harbour")
    assert title(said, said) == "Tom Crean: harbour"
    assert is_vague("decisions", "en")
    assert is_vague("parties", "en")
    assert is_vague("Sitzungen", "de")
    assert not is_vague("harbour", "en")


def test_the_headline_of_the_documents_is_the_theme_unless_it_is_a_name() -> None:
    said = ("Tom Crean saw the ship.", (0,), 0, "ship")
    assert title(said, headlines={0: "The last voyage"}) == "Tom Crean: The last voyage"
    assert title(said, headlines={0: "Tom Crean"}) == "Tom Crean: ship"


def test_documents_with_nothing_in_common_have_two_things_for_a_title() -> None:
    said = [("Something else happened.", (at,), at, "") for at in range(4)]
    assert title(*said) == "Rome: fire; Ann: race"
    # With a name in half of them, they are on one subject.
    assert title(*said[:2], *((text, (0,), at, "") for text, _, at, _ in said[2:])) == (
        "Tom Crean, Endurance"
    )


def test_a_report_without_sentences_has_the_main_members() -> None:
    assert title() == "Tom Crean"


def test_headings_have_the_subject_and_what_is_said_of_it() -> None:
    said = [
        ("Tom Crean mended the leaky boats with Scott.", (0, 2), 0, "boat"),
        ("Tom Crean sold the leaky boats to Scott.", (0, 2), 0, "boat"),
        ("Nothing.", (), 1, ""),
    ]
    own = namer(*said, headlines={0: "Boats of Kerry"})
    first, second, third = (Finding(0, [sentence]) for sentence in own._ranked)
    assert own.compose_heading(first, is_theme=False) == "Tom Crean, Scott: leaky boats"
    # No heading is used twice.
    assert own.compose_heading(second, is_theme=False) == "Tom Crean: leaky boats"
    assert own.compose_heading(third, is_theme=False) == ""
    # The finding of a theme is about a document.
    assert own.compose_heading(first, is_theme=True) == "Boats of Kerry"


@cases("names, themes, expected")
def test_titles_are_composed_of_names_and_a_theme(
    names: list[str], themes: list[str], expected: list[str]
) -> None:
    assert [*compose_titles(names, themes)][:3] == expected


def test_a_child_and_its_parent_have_different_titles() -> None:
    parts = TitleParts(["Ann", "Bob"], [], ["race"])
    titles = Titles()
    assert titles.choose(7, 3, parts) == "Ann, Bob: race"
    assert titles.choose(3, -1, parts) == "Ann"
    # So have communities that are no family.
    assert titles.choose(9, 5, parts) == "Ann: race"


NAMES = st.lists(st.integers(0, 99).map("Name{}".format), min_size=8, max_size=8, unique=True)


@given(st.lists(st.tuples(NAMES, st.lists(st.sampled_from(["ice", "old ship"]))), max_size=6))
def test_no_two_siblings_have_nearly_the_same_title(
    reports: list[tuple[list[str], list[str]]],
) -> None:
    titles = Titles()
    # Siblings share no member.
    parts = [
        TitleParts([f"{name}of{at}" for name in names], [], themes)
        for at, (names, themes) in enumerate(reports)
    ]
    found = [titles.choose(at, 100, one) for at, one in enumerate(parts)]
    for a, b in combinations(map(fold_words, found), 2):
        assert len(a & b) <= MAX_COMMON_SHARE * len(a | b)


def test_noun_phrases_media_and_vague_words_are_weak_names() -> None:
    titles = ["ABC News", "Bern", "Newport News", "AFP", "lake", "Members", "Post Office"]
    types = ["organization", "geo", "city", "organization", "noun phrase", "name", "organization"]
    weak = flag_weak_names(pl.DataFrame({"title": titles, "type": types}))
    assert weak.to_list() == [True, False, False, True, True, True, False]
