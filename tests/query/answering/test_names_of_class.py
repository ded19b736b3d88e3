"""Names beside which a noun stands, and lists, counts and yes or no on the sample."""

import re

import pytest

from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answering.list_answer import find_more_text_units
from graphrag_query.answering.names_of_class import find_names, find_names_of_class
from graphrag_query.index import Index
from graphrag_query.question.question import Question


@pytest.mark.parametrize(
    ("code", "noun", "text", "names"),
    [
        ("en", "ship", "He left on the relief ship Alpha.", {"alpha"}),
        ("en", "ship", "Two ships came, the Alpha was first.", set()),
        ("en", "ship", "He saw two ships, the Alpha and others.", {"alpha"}),
        ("en", "ship", "The Alpha, a small old sealing ship, sank.", {"alpha"}),
        ("en", "ship", "The Alpha was a ship of oak.", {"alpha"}),
        ("en", "ship", "At Altdorf, the ship stopped.", set()),
        ("en", "ship", "Later Olga Nowak, the ship's cook, sang.", set()),
        ("en", "ship", "Later Olga Nowak, a ship owner, sang.", set()),
        ("en", "ship", "On the ship Olga Nowak sang.", set()),
        ("en", "ship", "Later Olga Nowak, the cook of the ship, sang.", set()),
        ("de", "schiff", "Das Schiff Alpha sank.", {"alpha"}),
        ("fr", "navire", "Le navire Alpha coula.", {"alpha"}),
        ("es", "barco", "El barco Alpha se hundió.", {"alpha"}),
    ],
)
def test_a_noun_beside_a_name_says_what_it_names(
    code: str, noun: str, text: str, names: set[str]
) -> None:
    types = {"olga nowak": "person", "altdorf": "geo"}
    assert find_names_of_class([text], stem_word(noun), language_of(code), types) == names


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Das Schiff Alpha sank.", "Alpha"),
        ("Das Schiff-Alpha sank.", "Alpha"),
        ("Ein Schiff.", "Schiff"),
    ],
)
def test_the_noun_before_a_name_does_not_belong_to_it(text: str, name: str) -> None:
    found = find_names(text, stem_word("schiff"), language_of("de"), {})
    assert [one.text for one in found] == [name]


def test_a_definite_noun_says_what_a_vague_name_names_if_it_does_so_twice() -> None:
    texts = ["The Alpha was beset, and the ship sank.", "The Alpha left when the ship was ready."]
    english = language_of("en")
    assert find_names_of_class(texts, "ship", english, {}) == {"alpha"}
    assert not find_names_of_class(texts[:1], "ship", english, {})
    assert not find_names_of_class(texts, "ship", english, {"alpha": "geo"})


def test_a_name_of_another_type_needs_two_kinds_of_sentences() -> None:
    english, types = language_of("en"), {"alpha": "organization"}
    beside, again = "He left on the ship Alpha.", "The Alpha was beset, and the ship sank."
    others = [f"The Alpha passed island {number}." for number in range(40)]
    assert find_names_of_class([beside, again, *others], "ship", english, types) == {"alpha"}
    assert not find_names_of_class([beside, *others], "ship", english, types)
    assert not find_names_of_class([again, *others], "ship", english, types)


def test_a_list_is_gathered_from_the_sample(index: Index) -> None:
    answer = index.search("local", "Which ships did Shackleton use?")
    members = dict(line.removeprefix("- ").rsplit(" ", 1) for line in answer.text.split("\n"))
    assert {"Nimrod", "Endurance"} <= members.keys()
    assert not {"Terra Nova", "Fram", "Shackleton"} & members.keys()
    quotes = {f"[{citation.number}]": citation.quote for citation in answer.citations}
    assert all(name in quotes[number] for name, number in members.items())


def list_names(index: Index, question: str) -> set[str]:
    """Return the names of a list: on lines of their own, or before the sentences."""
    text = index.search("local", question).text
    lines = re.findall(r"^- (.+) \[\d+\]$", text, re.MULTILINE)
    return set(lines or text.split(" — ")[0].split(", "))


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (
            "Which expeditions did Ernest Shackleton take part in?",
            {"Discovery expedition", "Nimrod expedition", "Imperial Trans-Antarctic Expedition"},
        ),
        ("Which ships were crushed by ice?", {"Endurance", "Antarctic"}),
        ("Welche Schiffe benutzte Ernest Shackleton?", {"Nimrod", "Endurance"}),
    ],
)
def test_lists_on_the_sample(index: Index, question: str, names: set[str]) -> None:
    """A name with its noun, what something was done to, and documents in another language."""
    assert names <= list_names(index, question)


def test_who_reached_another_pole_is_no_member(index: Index) -> None:
    names = list_names(index, "Which men reached the South Pole?")
    assert {"Roald Amundsen", "Bowers", "Wisting"} <= names
    assert not names & {"James Clark Ross", "Mawson"}


def test_further_text_units_of_a_list_are_the_best_matches(index: Index) -> None:
    """Shackleton is in more text units than a list reads; the first by number are no better."""
    question = Question("Which ships did Ernest Shackleton use?", index.store)
    [shackleton] = [mention.entity for mention in question.mentions.likeliest_mentions]
    linked = index.store.links.text_units_of(shackleton).numbers.tolist()
    assert len(linked) > 60
    found = find_more_text_units(question, linked[:1])
    assert len(found) == 60
    assert linked[0] not in found
    by_number = index.store.text_units(linked[:60]).values()
    best = index.store.text_units(found).values()
    n_best, n_first = (sum("ship" in unit["text"] for unit in units) for units in (best, by_number))
    assert n_best > n_first


def test_further_text_units_of_a_list_are_those_that_filters_keep(index: Index) -> None:
    filtered = index.where({"path": "expeditions/*"})
    answer = filtered.search("local", "Which ships did Shackleton use?")
    assert answer.citations
    assert all((citation.path or "").startswith("expeditions/") for citation in answer.citations)


def test_the_ponies_of_scott_are_counted_on_the_sample(index: Index) -> None:
    answer = index.search("local", "How many ponies did Scott take?")
    assert "nineteen ponies" in answer.citations[0].quote


@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("Hat Scott den Südpol erreicht?", "Ja"),
        ("Erreichte Shackleton den Südpol?", "Nein"),
        ("Did Shackleton reach the South Pole?", "No"),
    ],
)
def test_yes_or_no_on_the_sample(index: Index, question: str, word: str) -> None:
    assert index.search("local", question).text.startswith(f"{word} — ")


def test_what_the_sample_does_not_say_is_not_listed(index: Index) -> None:
    answer = index.search("local", "Which submarines did Shackleton use?")
    assert "- " not in answer.text
    before, *after = answer.text.lower().split('nearest, without "submarines": ')
    assert len(after) == 1
    assert "submarine" not in before + after[0]
    assert not any("submarine" in citation.quote.lower() for citation in answer.citations)
