from collections.abc import Mapping
from pathlib import Path

import pytest

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_query.retrieval.typical_words import find_common_words, find_typical_words
from graphrag_query.searches.periods import divide_corpus
from tests.conftest import run_project


def test_words_of_few_documents_are_typical_and_those_of_all_are_not(tmp_path: Path) -> None:
    subjects = ("Harbour", "Orchard", "Glacier")
    init_project(tmp_path)
    for number in range(24):
        subject = subjects[number % 3]
        text = f"Ann saw the {subject} of Bern. Bern was quiet. Bob and Ann liked the {subject}."
        (tmp_path / "input" / f"{number}.txt").write_text(text, encoding="utf-8")
    run_project(tmp_path, "workflow=embedded")
    with graphrag_query.open(tmp_path / "output") as index:
        found = find_typical_words(index.store, 10)
        assert sorted(found) == ["Glacier", "Harbour", "Orchard"]
        assert find_typical_words(index.store, 2) == found[:2]
        assert {"quiet", "liked"} <= find_common_words(index.store)
        assert "Typical words: " in index.global_("What are the main themes?").text


def test_what_changed_is_told_by_periods_with_the_words_of_each(tmp_path: Path) -> None:
    subjects = ("Harbour", "Orchard", "Glacier")
    init_project(tmp_path)
    for number in range(24):
        subject = subjects[number // 8]
        text = f"Ann saw the {subject} of Bern. Bob and Ann liked the {subject}."
        (tmp_path / "input" / f"{2000 + number}.txt").write_text(text, encoding="utf-8")
    run_project(tmp_path, "workflow=embedded")
    with graphrag_query.open(tmp_path / "output") as index:
        periods = divide_corpus(index.store)
        assert sum(len(period.documents) for period in periods) == 24
        assert (periods[0].name, periods[-1].name) == ("2000 to 2003", "2020 to 2023")
        # What all periods say, such as "Bern", sets none apart.
        assert [words for _, _, words in periods] == [[s] for s in subjects for _ in range(2)]
        answer = index.global_("What changed?")
        assert index.global_("What changed over time?").text == answer.text
        assert "1. **2000 to 2003: Harbour" in answer.text
        assert answer.citations
        assert answer.parameters["level"] is None
        assert answer.looked_at["community_reports"] == index.store.n_rows("community_reports")
        assert answer.to_dict(with_context=True)["context"]["Reports"]
        at_level = index.global_("What changed?", level=0)
        assert at_level.parameters["level"] == 0
        # Each period has its sentences, or is listed without.
        for period in periods:
            assert f"{period.name}: {period.words[0]}" in answer.text


@pytest.mark.parametrize(
    ("texts", "opening"),
    [
        (
            {
                "1990.txt": "Ann saw the harbour of Bern.",
                "1995.txt": "Bob liked the orchard of Bern.",
                "2000.txt": "Carla left the glacier of Bern.",
            },
            "No words with sentences set the periods of the documents apart. The largest themes",
        ),
        (
            {
                "a.txt": "Ann saw the harbour of Bern.",
                "b.txt": "Bob liked the orchard of Bern.",
                "c.txt": "Carla left the glacier of Bern.",
            },
            "The documents have no dates, or too few, to compare periods. The largest themes",
        ),
    ],
)
def test_what_changed_is_answered_by_themes_where_no_words_set_periods_apart(
    tmp_path: Path, texts: Mapping[str, str], opening: str
) -> None:
    init_project(tmp_path)
    for name, text in texts.items():
        (tmp_path / "input" / name).write_text(text, encoding="utf-8")
    run_project(tmp_path, "workflow=embedded")
    with graphrag_query.open(tmp_path / "output") as index:
        answer = index.global_("What changed?")
        assert answer.text.startswith(opening)
        assert answer.citations
