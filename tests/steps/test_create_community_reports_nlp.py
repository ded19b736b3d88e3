"""Reports without a model, from the tables of an index."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from graphrag_index.schema.settings.step_sections import CreateCommunityReportsNlp
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps import create_community_reports_nlp as step_module
from graphrag_index.steps.create_community_reports_nlp import OwnSentences, _read_own_sentences
from graphrag_index.storage.table_store import open_index
from graphrag_nlp.reports.titles import MAX_COMMON_SHARE, fold_words
from tests.conftest import copy_project, run_project
from tests.fixtures.small_index import read_table


def table(*rows: tuple[int, int, bool, list[str]]) -> pl.LazyFrame:
    return pl.LazyFrame(
        rows, ["community", "level", "theme", "text_unit_ids"], orient="row", infer_schema_length=9
    )


def select(own: OwnSentences, *pairs: tuple[int, int]) -> list[bool]:
    report, sentence = np.array(pairs).T
    return own.select(report, sentence.astype(np.int32)).tolist()


def test_a_theme_quotes_its_own_text_units_and_other_communities_quote_all() -> None:
    communities = table(
        (0, 0, True, ["t0", "t1"]),
        (1, 0, True, ["t2"]),
        (2, 1, True, ["t0"]),
        (3, 2, False, ["t0", "t1", "t2"]),
    )
    # The reports are on the communities 3, 2, 0 and 1; sentence n is in text unit n.
    own = _read_own_sentences(
        communities,
        pl.Series([3, 2, 0, 1]),
        pl.Series(["t0", "t1", "t2"]),
        np.arange(3),
    )
    assert select(own, (0, 0), (0, 1), (0, 2)) == [True, True, True]
    assert select(own, (1, 0), (1, 1), (1, 2)) == [True, False, False]
    assert select(own, (2, 0), (2, 1), (2, 2)) == [True, True, False]
    assert select(own, (3, 0), (3, 1), (3, 2)) == [False, False, True]


def test_a_theme_without_a_sentence_of_its_own_quotes_all() -> None:
    own = OwnSentences(np.arange(3), [(np.array([0, 1]), np.array([0, 0, 1]))])
    assert select(own, (1, 0), (1, 1), (0, 0), (0, 2)) == [True, True, True, False]


def test_a_community_without_any_sentence_to_quote_has_a_title(tmp_path: Path) -> None:
    root = copy_project(tmp_path / "project")
    shutil.rmtree(root / "input")
    (root / "input").mkdir()
    (root / "input/a.txt").write_text("Tom Crean, Kerry", encoding="utf-8")
    run_project(root)
    assert read_table(root, "community_reports")["title"].to_list() == ["Tom Crean, Kerry"]


def write_sample(project: Path) -> pl.DataFrame:
    """Write the reports of the index of the sample anew."""
    step = step_module.create_community_reports_nlp
    store, version = open_index(project / "output")
    tables = {name: store.scan(name, found) for name, found in version.tables.items()}
    written = step.function(
        *(tables[read.table] for read in step.reads),
        settings=CreateCommunityReportsNlp(),
        progress=Silent(),
        shards=SerialShards(),
    )
    return pl.concat(part["community_reports"] for part in written)


def test_sizes_of_shards_and_partitions_do_not_matter(
    sample_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (
        ("SHARD_REPORTS", 7),
        ("PARTITION_REPORTS", 21),
        ("SHARD_SENTENCES", 50),
        ("PARTITION_SENTENCES", 100),
    ):
        monkeypatch.setattr(step_module, name, size)
    assert write_sample(sample_project).equals(read_table(sample_project, "community_reports"))


def test_no_two_siblings_of_the_sample_have_nearly_the_same_title(sample_project: Path) -> None:
    reports = read_table(sample_project, "community_reports")
    titles = reports.group_by("parent").agg("title")["title"].to_list()
    for siblings in titles:
        words = [fold_words(title) for title in siblings]
        for at, one in enumerate(words):
            for other in words[:at]:
                assert len(one & other) <= MAX_COMMON_SHARE * len(one | other)
    assert "Different subjects" not in "".join(reports["title"])
