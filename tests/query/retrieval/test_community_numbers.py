"""Numbers of communities have gaps after an update, and no search minds."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import graphrag_query
from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import Workflow, load_workflow, make_services
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_index.step import Step
from graphrag_index.storage.memo import join_batches
from graphrag_query.index import Index

QUESTIONS = [
    ("global", "What are the main themes?", {}),
    ("global", "How did the expeditions fight scurvy?", {"level": 1}),
    ("drift", "How did scurvy shape the expeditions?", {"rounds": 1}),
    ("local", "Who was Tom Crean?", {}),
    ("basic", "Which fossil plant was found?", {}),
    ("lazy", "How did dogs and ponies serve the expeditions?", {"budget": 40}),
    ("path", "How is Tom Crean connected to Fridtjof Nansen?", {}),
    ("neighbourhood", "Tom Crean", {}),
]


def renumbered(number: int, level: int) -> int:
    """Return the number of a community after many updates: level 1 begins before level 0."""
    return number if number < 0 else 7 * number + (5_000 if level == 0 else 3)


def with_gaps(step: Step) -> Step:
    """Return the step that makes communities, as one that gives them other numbers."""
    function: Callable[..., Any] = step.function

    @wraps(function)
    def renumber(*tables: Any, **services: Any) -> dict[str, pl.DataFrame]:
        written = join_batches(function(*tables, **services))
        made = written["communities"]
        rows = []
        for row in made.iter_rows(named=True):
            level = row["level"]
            number = renumbered(row["community"], level)
            changed = {
                "human_readable_id": number,
                "community": number,
                "parent": renumbered(row["parent"], level - 1),
                "children": [renumbered(child, level + 1) for child in row["children"]],
            }
            rows.append({**row, **changed})
        changed_rows = pl.DataFrame(rows, made.schema).sort("level", "community")
        return {**written, "communities": changed_rows}

    return replace(step, function=renumber, code_version=1_000)


@pytest.fixture(scope="module")
def with_other_numbers(
    sample_project: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Index, dict[int, int]]:
    """The sample's index with gaps in the numbers of communities, and the numbers before."""
    root = tmp_path_factory.mktemp("gaps") / "project"
    shutil.copytree(sample_project, root, symlinks=True)
    settings = load_settings(root)
    workflow = load_workflow(root, settings.workflow)
    steps = tuple(
        with_gaps(step) if step.name == "create_communities" else step for step in workflow.steps
    )
    run_workflow(
        Workflow(workflow.name, steps), settings, root, make_services(settings, None, root)
    )
    before = graphrag_query.open(sample_project / "output").store.scan("communities")
    numbers = {
        renumbered(number, level): number
        for number, level in before.select("community", "level").collect().iter_rows()
    }
    return graphrag_query.open(root / "output"), numbers


def told(index: Index, method: str, question: str, values: dict[str, Any], number_of: Any) -> str:
    """Write out an answer, with the numbers of communities as they were."""
    found = index.search(method, question, **values).to_dict()
    left_out = [number_of(number) for number in found["left_out"]]
    text = json.dumps({**found, "left_out": left_out, "usage": 0, "version": 0}, indent=1)
    return re.sub(
        r"(Reports \()(\d+)(?=\))", lambda cited: cited[1] + str(number_of(int(cited[2]))), text
    )


@pytest.mark.parametrize(("method", "question", "values"), QUESTIONS)
@pytest.mark.parametrize("filters", [{}, {"path": "expeditions/*"}], ids=["all", "a part"])
def test_an_answer_is_the_same_but_for_the_numbers(
    sample_project: Path,
    with_other_numbers: tuple[Index, dict[int, int]],
    method: str,
    question: str,
    values: dict[str, Any],
    filters: dict[str, str],
) -> None:
    index, numbers = with_other_numbers
    before = graphrag_query.open(sample_project / "output")
    if filters:
        index, before = index.where(filters), before.where(filters)
    after = told(index, method, question, values, numbers.__getitem__)
    assert after == told(before, method, question, values, int)


def test_communities_are_fetched_by_number(
    sample_project: Path, with_other_numbers: tuple[Index, dict[int, int]]
) -> None:
    index, numbers = with_other_numbers
    before = graphrag_query.open(sample_project / "output").store
    columns = ["level", "size", "entities"]
    found = index.store.communities(numbers).select(columns)
    assert found.equals(before.communities(numbers.values()).select(columns))
    titles = index.store.reports(numbers)["title"].to_list()
    assert titles == before.reports(numbers.values())["title"].to_list()
    unknown = [-1, 4, 10**5, 2**40]
    assert index.store.communities(unknown).is_empty()
    assert index.store.reports(unknown).is_empty()
    assert index.store.report(2**40) is None
