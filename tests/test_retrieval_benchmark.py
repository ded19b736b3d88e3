"""The sets of the retrieval benchmark become projects; what they measure is in RESULTS.md."""

import json
from pathlib import Path

import pytest

from benchmarks.retrieval import write_project


class SmallSet:
    """A set of the retrieval harness, of two passages."""

    name = "small"
    corpus = (
        {"id": "p1", "title": "Tom Crean", "text": "He was an Irish seaman."},
        {"id": "p2", "title": "", "text": "The Fram was a ship."},
    )
    extractions = None


@pytest.mark.parametrize(("titled", "first"), [(True, "Tom Crean"), (False, "")])
def test_a_passage_of_a_retrieval_set_is_one_document(
    titled: bool, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETRIEVAL_CACHE", str(tmp_path))
    project = write_project(SmallSet(), "embedded", {"workflow": "embedded"}, titled=titled)
    lines = (project / "input/passages.jsonl").read_text("utf-8").splitlines()
    text = "He was an Irish seaman."
    assert [json.loads(line) for line in lines] == [
        {"id": "p1", "title": first, "text": f"{first}\n{text}" if first else text},
        {"id": "p2", "title": "", "text": "The Fram was a ship."},
    ]
    assert project == write_project(SmallSet(), "embedded", {"workflow": "embedded"}, titled=titled)
