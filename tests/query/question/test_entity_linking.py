"""Names in a question, found in an index of a few entities."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.generate_text_embeddings import create_search_tables
from graphrag_query.question.entity_linking import is_other_spelling
from graphrag_query.question.question import Mentions
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.cases import cases
from tests.fixtures.small_index import table, write_index

# Title, degree, aliases.
ENTITIES = [
    ("Ernest Shackleton", 9, ["Shackleton"]),
    ("Emily Shackleton", 2, []),
    ("Robert Falcon Scott", 8, []),
    ("Roald Amundsen", 7, []),
    ("Leon Amundsen", 1, []),
    ("Albert Armitage", 1, []),
    ("South Pole", 9, []),
    ("Pole", 1, []),
    ("Łódź", 1, []),
    ("罗伯特·斯科特", 3, ["斯科特"]),
    ("南极洲", 3, []),
    ("Pyotr Tchaikovsky", 2, []),
    ("It", 1, []),
    *((f"John Smith {n}", n, []) for n in range(9)),
]
TITLES = [title for title, _, _ in ENTITIES]


def index_of(entities: Sequence[tuple[str, int, list[str]]], folder: Path) -> IndexStore:
    rows = [
        {"id": str(n), "human_readable_id": n, "title": title, "degree": degree, "aliases": aliases}
        for n, (title, degree, aliases) in enumerate(entities)
    ]
    names = ("documents", "text_units", "relationships", "mentions", "communities")
    empty = {name: TABLES[name].empty().lazy() for name in names}
    named = table("entities", *rows).lazy()
    frames = create_search_tables(
        *(empty["documents"], empty["text_units"], named, empty["relationships"]),
        *(empty["mentions"], empty["communities"]),
    )
    written = {name: frame for batch in frames for name, frame in batch.items()}
    tables: dict[str, pl.DataFrame] = {
        definition.name: written.get(definition.name, definition.empty())
        for definition in create_search_tables.writes
    }
    return IndexStore.open(write_index(folder, **tables))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> IndexStore:
    return index_of(ENTITIES, tmp_path_factory.mktemp("names"))


def found(store: IndexStore, question: str) -> list[tuple[str, str]]:
    return [(TITLES[m.entity], m.kind) for m in Mentions(store, question).entities]


@cases("question, names")
def test_whole_names_are_exact_and_the_longest_wins(
    store: IndexStore, question: str, names: list[str]
) -> None:
    assert sorted(found(store, question)) == sorted((name, "exact") for name in names)


@cases("question, names")
def test_parts_and_other_endings_are_found_the_best_linked_first(
    store: IndexStore, question: str, names: list[str]
) -> None:
    assert {how for _, how in found(store, question)} == {"part"}
    assert {name for name, _ in found(store, question)} == set(names)


@cases("question, name")
def test_other_spellings_are_found(store: IndexStore, question: str, name: str) -> None:
    assert (name, "fuzzy") in found(store, question)
    assert {how for _, how in found(store, question)} == {"fuzzy"}


@cases("question")
def test_other_names_are_not_taken_for_those_of_the_index(store: IndexStore, question: str) -> None:
    assert found(store, question) == []


def test_a_part_that_many_have_gives_the_best_linked_and_weighs_little(
    store: IndexStore,
) -> None:
    named = Mentions(store, "Where did Smith live?").entities
    assert [TITLES[name.entity] for name in named] == [f"John Smith {n}" for n in (4, 5, 6, 7, 8)]
    assert {name.weight for name in named} == {round((1 + 1 / 3) / 2 / 3, 6)}


@cases("one, other, distance, same_sound, are_one")
def test_what_differs_little_is_one_name(
    one: str, other: str, distance: int, same_sound: bool, are_one: bool
) -> None:
    assert is_other_spelling(one, other, distance, same_sound) is are_one


@given(st.text(max_size=40) | st.lists(st.sampled_from([*TITLES, "and", "Amunsen"])).map(" ".join))
def test_any_question_gives_each_entity_once_with_a_weight(
    store: IndexStore, question: str
) -> None:
    named = Mentions(store, question).entities
    assert len({name.entity for name in named}) == len(named)
    assert all(0 < name.weight <= 1 for name in named)
    assert named == Mentions(store, question).entities
    assert [-name.weight for name in named] == sorted(-name.weight for name in named)


def test_every_title_is_found_in_itself(store: IndexStore) -> None:
    for number, title in enumerate(TITLES):
        if title != "It":
            assert number in {mention.entity for mention in Mentions(store, title).entities}


INFLECTED = [
    "Иван Петров",
    "Мария Иванова",
    "Анна Каренина",
    "Москва",
    "Санкт-Петербург",
    "Kraków",
    "Warszawa",
    "Jan Kowalski",
    "Maria Nowak",
    "Adam Mickiewicz",
    "Łódź",
    "Poznań",
    "Gdańsk",
    "Piotr Wilk",
    "Karel Čapek",
    "Brno",
    "Martin Luther",
    "Martina Navratilova",
    "Rom",
    "Roman Polański",
    "Петр Первый",
    "Петрова Анна",
    "Wiedeń",
    "Frank Wild",
    "Павел Чехов",
]


@pytest.fixture(scope="module")
def inflected(tmp_path_factory: pytest.TempPathFactory) -> IndexStore:
    return index_of([(title, 1, []) for title in INFLECTED], tmp_path_factory.mktemp("names"))


@cases("question, names")
def test_names_are_found_in_their_case_and_others_are_not(
    inflected: IndexStore, question: str, names: list[str]
) -> None:
    found = [INFLECTED[mention.entity] for mention in Mentions(inflected, question).entities]
    assert sorted(found) == sorted(names)
