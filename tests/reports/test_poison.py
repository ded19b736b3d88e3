"""A document that repeats a false claim about a well-known entity."""

import json
from pathlib import Path

import polars as pl
import pytest

from benchmarks.planted_news import PEOPLE, make_articles, write_articles
from benchmarks.poison import PLACE, Counts, measure, write_poison
from tests.conftest import REPOSITORY, run_project

TARGET, NEIGHBOURS = PEOPLE[0], ["Caldwell Institute", "Ohio", "Marta Delgado"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("poison")
    (root / "settings.yaml").write_text("workflow: embedded\n", encoding="utf-8")
    (root / "workflows").symlink_to(REPOSITORY / "workflows")
    write_articles(make_articles(60), root / "input")
    record = {"id": "false", "title": "Notes", "text": write_poison(TARGET, NEIGHBOURS, 70)}
    (root / "input" / "false.jsonl").write_text(json.dumps(record), encoding="utf-8")
    run_project(root)
    return root


def test_each_false_statement_is_told_as_one_of_a_single_document(project: Path) -> None:
    found = Counts()
    measure(project, TARGET, NEIGHBOURS, 0.5, found)
    assert found.stating
    assert found.single == found.statements > 0
    reports = pl.read_parquet(project / "output" / "community_reports.parquet")
    records = [one for statements in reports["statements"] for one in statements]
    assert len({one["document_id"] for one in records if PLACE in one["text"]}) == 1
    # What several articles state is told as such.
    assert any(one["n_documents"] > 2 for one in records)


def test_the_false_document_has_at_most_half_of_a_context(project: Path) -> None:
    found = Counts()
    measure(project, TARGET, NEIGHBOURS, 0.5, found)
    assert 0 < max(found.context_shares) <= 0.5
