"""The files that an evaluation leaves behind."""

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import graphrag_query
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.report import evaluation_record
from graphrag_evaluation.report.evaluation_page import (
    MAX_PAIRS,
    find_reports,
    kept_folder,
    plot_differences,
    render_page,
    report_name,
    reserved_folder,
    write_report,
)
from graphrag_evaluation.report.evaluation_record import read_record, record_evaluation
from graphrag_evaluation.runs import run_systems
from graphrag_evaluation.statistics import Difference, Interval
from graphrag_evaluation.summary import Comparison, Evaluation, meaning
from graphrag_evaluation.systems import System
from graphrag_index.errors import ExportError, GraphRAGError, SettingsError
from graphrag_index.readers.input_files import find_files
from graphrag_index.schema.settings.step_sections import LoadDocuments
from tests.fixtures.page_parser import HOSTILE, Page
from tests.fixtures.reports import literal_record


def test_a_page_has_means_differences_and_limits() -> None:
    page = "".join(render_page(literal_record()))
    assert "recall@10 of basic is 0.5, below 0.9." in page
    assert '<b>0.500</b> <span class="range">[0.250, 0.750]</span>' in page
    assert "p = 1.000 · could show 0.500" in page
    # Of several cutoffs the differences show the largest, the means all.
    assert page.count("<caption>recall@10<") == page.count("<caption>recall@2 <") == 1
    assert "<caption>recall@2<" not in page
    assert "in the first k passages; 1 question</span>" in page
    assert '<th scope="row" dir="auto">basic and Who?</th><td class="number">0</td>' in page
    assert "Pairs left out" not in page
    [pair] = literal_record().verdicts
    unread = pair.model_copy(update={"winner": ""})
    assert "readable verdict for each order: 1." in "".join(
        render_page(literal_record(verdicts=[pair, unread]))
    )
    without = "".join(render_page(literal_record(pairs=[], verdicts=[])))
    assert "Judged pairs</h2>" not in without


def test_effort_has_a_table_of_its_own_with_sums() -> None:
    seconds = {name: {"seconds": Interval(0.5, 0.25, 0.75, 8)} for name in ("basic", "Who?")}
    page = "".join(render_page(literal_record(means=seconds)))
    assert page.count('<th scope="row">seconds<') == 1
    assert '0.5<br><span class="range">4 in all</span>' in page


@pytest.mark.parametrize(("limit", "n_failures"), [(0.9, 2), (0.5, 0), (0.4, 0)])
def test_a_limit_is_one_of_the_mean(limit: float, n_failures: int) -> None:
    assert len(literal_record(limits={"recall@10": limit}).failures) == n_failures


def compare(name: str, mean: float, p: float) -> Comparison:
    return Comparison("said", "a", name, Difference(Interval(mean, mean, mean, 9), p, None, 2), p)


def test_differences_are_marked_as_better_worse_or_chance() -> None:
    compared = [compare("b", 0.5, 0.01), compare("c", -0.5, 0.01), compare("d", 0.5, 0.2)]
    plot = plot_differences("said", compared, "a")
    assert re.findall(r'<tr class="(\w+)">', plot) == ["better", "worse", "chance"]
    assert "p = 0.200 · too few documents" in plot
    assert plot_differences("said", [compare("b", 0, 1)], "a") == ""


def test_of_many_pairs_those_with_the_first_system_are_shown() -> None:
    names = [chr(ord("a") + number) for number in range(6)]
    pairs = [
        replace(compare(second, 0.5, 1), first=first) for first, second in combinations(names, 2)
    ]
    assert plot_differences("said", pairs, "a").count("<tr class=") == 5
    assert plot_differences("said", pairs[:MAX_PAIRS], "a").count("<tr class=") == MAX_PAIRS


def test_no_text_becomes_markup() -> None:
    shown = Page("".join(render_page(literal_record(HOSTILE))))
    plain = Page("".join(render_page(literal_record())))
    assert shown.tags == plain.tags
    assert len(shown.scripts) == 2
    # Nothing is loaded, and only the script and the style of the page itself are allowed.
    assert "default-src 'none'" in shown.policy
    assert "unsafe" not in shown.policy
    assert not {"src", "onerror"} & {name for name, _ in shown.attributes}
    assert shown.data["questions"][0]["text"] == HOSTILE
    assert shown.data["passages"][0]["text"] == HOSTILE


def test_results_are_recorded_with_their_passages(sample_project: Path, tmp_path: Path) -> None:
    path = "people/tom-crean.txt"
    questions = [
        EvaluationQuestion(
            "crean \ud800",
            "Where was Tom Crean born?",
            spans=(
                GoldSpan("", 0, 0, "near Annascaul in County Kerry"),
                GoldSpan(path, 10**6, 10**6 + 20),
            ),
        ),
        EvaluationQuestion("kerry", "Who came from Kerry?", documents=(path, "nowhere.txt")),
    ]
    with graphrag_query.open(sample_project / "output") as index:
        systems = [System("basic", index, "basic")]
        evaluation = Evaluation(run_systems(systems, questions))
        record = record_evaluation(
            evaluation, systems, name="first", questions_file="first.jsonl", limits={}
        )
    write_report(tmp_path / "evaluations" / "first", record)
    # A report below the input folder is no document of the next run.
    (tmp_path / "notes.txt").touch()
    found = find_files(LoadDocuments(folder="."), tmp_path)
    assert [file.path.name for file in found] == ["notes.txt"]
    kept = find_reports(tmp_path)
    assert list(kept) == ["first"]
    assert read_record(kept["first"]) == record
    assert [question.id for question in record.questions] == ["crean \ufffd", "kerry"]
    spans, documents = record.results["basic"]
    # The second span and the second document are nowhere.
    for result, question in ((spans, record.questions[0]), (documents, record.questions[1])):
        assert {position for held in result.holds for position in held} == {0}
        assert question.gold[0].text
        assert question.gold[1].text == ""
    [first] = [passage for passage, held in zip(spans.passages, spans.holds, strict=True) if held]
    assert "near Annascaul in County Kerry" in record.passages[first].text
    assert record.questions[1].gold[0].text.startswith("Tom Crean")
    assert record.questions[1].gold[0].title == "tom-crean.txt"
    assert all(map(meaning, record.measures))


def test_long_passages_are_cut_until_the_record_is_small(
    sample_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = EvaluationQuestion("crean", "Where was Tom Crean born?")
    lengths = []
    with graphrag_query.open(sample_project / "output") as index:
        systems = [System("basic", index, "basic")]
        evaluation = Evaluation(run_systems(systems, [question]))
        for max_chars in (10**6, 5_000, 1):
            monkeypatch.setattr(evaluation_record, "MAX_TEXT_CHARS", max_chars)
            record = record_evaluation(evaluation, systems, name="a", questions_file="a", limits={})
            assert record.passage_chars in evaluation_record.PASSAGE_CHARS
            lengths.append((record.passage_chars, max(len(one.text) for one in record.passages)))
    whole, cut, shortest = lengths
    assert whole[0] == max(evaluation_record.PASSAGE_CHARS) > whole[1]
    # With the mark of the cut.
    assert cut == shortest == (300, 301)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kind": "something else"}, r"kind: Input should be 'graphrag-index evaluation'"),
        ({"format": 2}, "format: Input should be 1"),
        ({"questions": []}, "number of results and of questions differ"),
        ({"passages": []}, "names a passage that is not there"),
        ({"means": {}}, "systems of the results and of the means differ"),
        ({"n_questions": "many"}, "n_questions: "),
        (
            {
                "verdicts": [
                    {
                        "question": 1,
                        "first": "a",
                        "second": "b",
                        "winner": "",
                        "shown": [],
                        "reasons": [],
                    }
                ]
            },
            "a verdict names a question that is not there",
        ),
    ],
)
def test_a_file_that_is_no_evaluation_is_told(
    changes: dict[str, Any], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "evaluation.json"
    path.write_text(json.dumps(literal_record().model_dump(mode="json") | changes))
    with pytest.raises(GraphRAGError, match=f"is not an evaluation that .*{told}"):
        read_record(path)
    path.write_bytes(b"\xff{")
    with pytest.raises(GraphRAGError, match="the file: Invalid JSON"):
        read_record(path)


def test_a_folder_that_cannot_be_written_is_told_before_the_evaluation(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match="a file is there"), reserved_folder(tmp_path / "file"):
        pass
    with reserved_folder(tmp_path / "report"):
        with (
            pytest.raises(ExportError, match="Another evaluation is writing"),
            reserved_folder(tmp_path / "report"),
        ):
            pass
        (tmp_path / "report" / "evaluation.html").mkdir()
        with pytest.raises(
            ExportError, match=r"\(This is a folder.*\): name another folder with --to"
        ):
            write_report(tmp_path / "report", literal_record())


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "a\\b", "a\nb", "a:b", "a.", "a "])
def test_a_name_that_is_no_folder_is_told(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot name a folder"):
        report_name(Path("questions.jsonl"), name)


def test_only_a_project_keeps_reports(sample_project: Path) -> None:
    assert kept_folder(sample_project, "first") == sample_project / "evaluations" / "first"
    assert kept_folder(sample_project / "output", "first") is None


def test_an_evaluation_has_the_name_of_its_questions() -> None:
    assert report_name(Path("sets/hotpot v1.2.jsonl.gz")) == "hotpot v1.2"
    assert report_name(Path("questions")) == "questions"
