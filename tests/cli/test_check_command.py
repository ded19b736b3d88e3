"""`graphrag-index check`: what it prints, its JSON and its exit code."""

import json
import re
from pathlib import Path

import pytest

from graphrag_index.health.checked_index import open_for_check
from graphrag_index.health.checks import check_index
from graphrag_index.health.health_report import report_as_json, report_as_text
from graphrag_index.schema.settings.step_sections import Check
from tests.conftest import REPOSITORY
from tests.fixtures.checked import change, check, found, healthy
from tests.fixtures.commands import Call
from tests.fixtures.small_index import write_index


def broken(output: Path) -> Path:
    tables = healthy()
    tables["entities"] = change(tables["entities"], 0, text_unit_ids=["u0", "u9"])
    return write_index(output, **tables)


def test_nothing_is_found_in_the_index_of_the_sample(sample_project: Path) -> None:
    health = check_index(open_for_check(sample_project / "output"), Check())
    assert found(health) == {}
    assert health.skipped == ()
    # Everything was looked at.
    assert all(outcome.result.of for outcome in health.outcomes)


def test_the_text_fits_a_screen_and_says_what_failed(tmp_path: Path) -> None:
    health = check_index(open_for_check(broken(tmp_path)), Check())
    text = report_as_text(health)
    assert len(text.splitlines()) <= 45
    assert max(map(len, text.splitlines())) <= 102
    assert re.search(r"^  FAIL  ids that do not resolve +1 of 55, at most 0$", text, re.MULTILINE)
    assert re.search(r"^  ok    duplicate rows +none of 40$", text, re.MULTILINE)
    assert re.search(r"^  -     stale rows of search tables +not checked$", text, re.MULTILINE)
    assert "1 of 5 ids in entities.text_unit_ids belong to no row of text_units" in text
    assert "\n    entity 0: u9\n" in text
    assert text.endswith("\nFailed: ids that do not resolve (1).\n")


def test_the_verdict_tells_findings_within_the_limits_from_none(tmp_path: Path) -> None:
    whole = check(tmp_path / "a", healthy())
    assert report_as_text(whole).endswith("\nPassed: no defects were found.\n")
    tables = healthy()
    tables["documents"] = change(tables["documents"], 1, text=tables["documents"]["text"][0])
    text = report_as_text(check(tmp_path / "b", tables))
    assert re.search(r"^  note  documents with equal text +1 of 2$", text, re.MULTILINE)
    assert "Passed: all findings are within the limits" in text


def test_the_exit_code_is_1_above_a_limit(tmp_path: Path, graphrag_index: Call) -> None:
    (tmp_path / "settings.yaml").write_text("output: there\n", encoding="utf-8")
    broken(tmp_path / "there")
    result = graphrag_index("check", "--root", tmp_path)
    assert (result.code, result.err) == (1, "")
    assert "Failed: ids that do not resolve (1)." in result.out
    result = graphrag_index("check", "--root", tmp_path, "--set", "check.max_dangling_ids=1")
    assert result.code == 0
    assert "Passed: all findings are within the limits" in result.out


def test_vectors_of_another_model_than_the_settings_name_are_found(
    tmp_path: Path, graphrag_index: Call
) -> None:
    write_index(tmp_path / "output", vectors_by="one", **healthy())
    for model, code in (("one", 0), ("two", 1)):
        settings = f"generate_text_embeddings: {{model: {model}}}\n"
        (tmp_path / "settings.yaml").write_text(settings, encoding="utf-8")
        result = graphrag_index("check", "--root", tmp_path)
        assert (result.code, result.err) == (code, "")
    assert "Failed: stale vectors (1)." in result.out
    assert "The settings embed with two, and another model made these vectors" in result.out
    assert "\n    entity_description: one\n" in result.out
    # Without settings nobody asks.
    assert graphrag_index("check", tmp_path, "--root", tmp_path).code == 0


def test_a_folder_is_checked_without_settings(tmp_path: Path, graphrag_index: Call) -> None:
    folder = write_index(tmp_path / "index" / "output", **healthy())
    for named in (folder, folder.parent):
        result = graphrag_index("check", named, "--root", tmp_path)
        assert (result.code, result.err) == (0, "")
    assert graphrag_index("check", folder, "--root", tmp_path, "--as-of", "1").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["check"], 2, "There is no settings.yaml in "),
        (["check", "empty"], 1, "neither index.json nor a table such as entities.parquet."),
        (["check", "nowhere"], 1, "does not exist: name the folder of an index."),
        (["check", "index", "--as-of", "7"], 1, "has no version 7; it has: 1."),
        (["check", "empty", "--as-of", "1"], 2, "--as-of needs its versions."),
        (["check", "index", "--set", "check.max_dangling=1"], 2, "did you mean 'max_dangling_ids'"),
        (["check", "index", "--set", "check.max_empty_reports=2"], 2, "less than or equal to 1"),
    ],
)
def test_what_cannot_be_checked_is_said_in_a_sentence(
    tmp_path: Path,
    graphrag_index: Call,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    write_index(tmp_path / "index", **healthy())
    result = graphrag_index(*arguments)
    assert result.code == code
    assert result.err.startswith("Error: ")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_the_json_says_everything_in_one_shape(tmp_path: Path, graphrag_index: Call) -> None:
    output = broken(tmp_path)
    result = graphrag_index("check", output, "--root", tmp_path, "--json")
    assert (result.code, result.err) == (1, "")
    said = json.loads(result.out)
    assert list(said) == [
        *("index", "made_by", "version", "failed", "checks", "not_looked_at", "rows", "graph"),
        *("levels", "languages", "documents", "documents_left_out"),
    ]
    assert (said["version"], said["failed"], said["documents_left_out"]) == (1, True, 0)
    assert [check["name"] for check in said["checks"]] == [
        "unreadable_tables",
        *(name.removeprefix("max_") for name in Check.model_fields if name.startswith("max_")),
    ]
    for check_ in said["checks"]:
        assert list(check_) == [
            *("name", "title", "count", "of", "limit", "limit_is_share", "failed", "findings")
        ]
    (failed,) = (check for check in said["checks"] if check["failed"])
    assert failed["count"] == sum(finding["count"] for finding in failed["findings"]) == 1
    (finding,) = failed["findings"]
    assert finding.pop("means").startswith("1 of 5 ids in entities.text_unit_ids")
    assert finding == {
        **{"table": "entities.text_unit_ids", "count": 1, "of": 5},
        "examples": ["entity 0: u9"],
    }
    assert said["rows"]["entities"] == 4
    assert said["graph"]["edges"] == 2
    assert [level["largest"] for level in said["levels"]] == [3, 2]
    assert said["documents"][1] == {
        **{"document": "1.txt", "title": "Document 1", "language": "en", "text_units": 1},
        **{"tokens": 5, "entities": 1, "relationships": 0},
    }


def test_the_page_of_the_docs_names_every_check_and_key(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "health.md").read_text(encoding="utf-8")
    health = check(tmp_path, healthy())
    checks, said = page.partition("## What is checked")[2].split("## In CI")
    assert re.findall(r"^\| `(\w+)` ", checks, re.MULTILINE) == [o.name for o in health.outcomes]
    named = re.findall(r"^\| (`.*?`) \|", said, re.MULTILINE)
    assert re.findall(r"`(\w+)`", " ".join(named)) == list(report_as_json(health))
