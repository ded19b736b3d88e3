"""Headings of the sections of an answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_query.answering.theme_answer import Point, Theme
from graphrag_query.index import Index
from graphrag_query.searches.theme_headings import name_by_contents
from tests.conftest import run_project
from tests.fixtures.fake_llm import question_to

FOOD = "In Norway Axel Holst and Theodor Frølich produced scurvy in guinea pigs in 1907"
LESSON = "The winter of 1898 in the Belgica was an early lesson."
# Titles and texts of documents; the names of files are no headlines.
DOCUMENTS = [
    ("The Ross Ice Shelf, then called by its finder the Great Ice Barrier", "Ice is cold here."),
    ("Mayor opens mill, bakery and school", "All of them are in the old town."),
    (
        "Oslo: many houses and two old bridges burned in the night of Sunday",
        "The old brewery by the river is gone.",
    ),
    ("a1.txt", "There is a worrying rise in knife crime in the town. Knife crime is a threat."),
    ("a2.txt", "The town is large, and the Minister spoke there. She spoke in the town."),
    ("a3.txt", "The town has a long bridge. Boats pass the town."),
    ("a4.txt", "Knife crime in the town was discussed, and so was the price of bread."),
]
NAMES = [
    (
        "b1.txt",
        "The Junta de Andalucía discussed the reforma laboral with Madrid in the morning. "
        "The Junta de Andalucía was in Madrid. The Junta de Andalucía spoke. "
        "Critics of the reforma laboral were in Madrid.",
    ),
    ("b2.txt", "The price of bread rose in the winter. Bakers said that flour is scarce."),
    ("b3.txt", "Boats pass the bridge in the spring. The bridge is long."),
    ("b4.txt", "The Junta de Andalucía was in Madrid."),
]


def open_documents(folder: Path, documents: list[tuple[str, str]]) -> Index:
    init_project(folder)
    records = [{"id": title, "title": title, "text": text} for title, text in documents]
    lines = "\n".join(map(json.dumps, records))
    (folder / "input" / "documents.jsonl").write_text(lines, encoding="utf-8")
    run_project(folder, "workflow=embedded")
    return graphrag_query.open(folder / "output")


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with open_documents(tmp_path_factory.mktemp("headings"), DOCUMENTS) as opened:
        yield opened


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with open_documents(tmp_path_factory.mktemp("names"), NAMES) as opened:
        yield opened


def headings_of(index: Index, *sentences: str, question: str = "What is there?") -> list[str]:
    """Name sections of one sentence each."""
    units = index.store.text_units(range(index.store.n_rows("text_unit_rows")))
    sections = [
        [Point(text, next(n for n in units if text in units[n]["text"]), 1.0)] for text in sentences
    ]
    return name_by_contents(question_to(index, question), sections, units)


def test_a_section_has_the_headline_of_the_document_of_its_best_sentence(index: Index) -> None:
    names = headings_of(index, FOOD, LESSON, question="What made men ill?")
    # No heading is used twice.
    assert names[0] == "Scurvy and Food in the Heroic Age"
    assert names[1]
    assert "Scurvy" not in names[1]


@pytest.mark.parametrize(
    ("sentence", "heading"),
    [
        # A long headline ends at its first mark; a short one is whole.
        ("Ice is cold here.", "The Ross Ice Shelf"),
        ("All of them are in the old town.", "Mayor opens mill, bakery and school"),
        # Too few words before the mark, and too many in all: a phrase instead.
        ("The old brewery by the river is gone.", "brewery"),
    ],
)
def test_long_headlines_end_at_their_first_mark(
    documents: Index, sentence: str, heading: str
) -> None:
    assert headings_of(documents, sentence) == [heading]


def test_phrases_of_a_section_are_rare_elsewhere(documents: Index) -> None:
    rise = "There is a worrying rise in knife crime in the town."
    assert headings_of(documents, rise) == ["knife crime"]


def test_headings_of_sections_share_no_words(documents: Index) -> None:
    rise = "There is a worrying rise in knife crime in the town."
    bread = "Knife crime in the town was discussed, and so was the price of bread."
    first, second = headings_of(documents, rise, bread, question="How is crime?")
    assert first == "knife crime"
    assert second.startswith("price of bread")
    assert "crime" not in second


def test_two_names_are_a_heading_only_without_another_phrase(names: Index) -> None:
    reform, visit = NAMES[0][1].split(". ")[0] + ".", NAMES[3][1]
    assert headings_of(names, reform) == ["reforma laboral, Junta de Andalucía"]
    assert set(headings_of(names, visit)[0].split(", ")) == {"Madrid", "Junta de Andalucía"}


@pytest.mark.parametrize(
    ("name", "extent", "heading"),
    [
        ("Fires and smoke: Sydney", "7 %", "Fires and smoke (7 %)"),
        (
            "Weather Service decided last minute not to cut snow forecast: Boston",
            "8 %",
            "Weather Service decided last minute … (8 %)",
        ),
        (
            "Different subjects: Leighton Hospital; Care and Support; Nursing Training; …",
            "under 1 %",
            "Leighton Hospital, Care and Support (under 1 %)",
        ),
        ("What is it that it was for all: Rome", "8 %", "What is it … (8 %)"),
        (
            "Edward Wilson; The Winter Journey: Rome",
            "8 %",
            "Edward Wilson, The Winter Journey (8 %)",
        ),
        ("Sydney, Hill Top", "3 documents", "Sydney, Hill Top"),
    ],
)
def test_a_list_of_themes_has_the_first_words_of_their_names(
    name: str, extent: str, heading: str
) -> None:
    assert Theme(name, extent, "", []).short_heading == heading


@pytest.mark.parametrize(
    ("title", "heading"),
    [
        ("Pack ice: Belgica and Henryk Arctowski", "Pack ice: Belgica and Henryk Arctowski"),
        (
            "Different subjects: fire in Rome; race of the year; bread and milk for the poor",
            "Different subjects: fire in Rome; race of the year; …",
        ),
        (
            "Different subjects: a man is held for a letter to the writer of a book; race",
            "Different subjects: a man is held for a letter to the writer …",
        ),
    ],
)
def test_a_heading_has_few_subjects(title: str, heading: str) -> None:
    assert Theme(title, "", "", []).heading == f"**{heading}**"
    assert Theme(title, "", "", []).n_words <= 13
