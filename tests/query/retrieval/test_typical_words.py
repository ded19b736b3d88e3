from pathlib import Path

import graphrag_query
from graphrag_index.schema.settings.project_settings import init_project
from graphrag_query.retrieval.typical_words import find_typical_words
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
        assert "Typical words: " in index.global_("What are the main themes?").text
