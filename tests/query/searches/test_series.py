"""Questions about things and periods of a series: each cell has its own figure, or says why not."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

import graphrag_query
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.store.index_store import RankedTextUnit
from tests.fixtures.cases import cases
from tests.fixtures.commands import REPOSITORY, ask
from tests.fixtures.planted_series import (
    MARGINS,
    evidence,
    planted_dated_news,
    planted_fiscal_years,
    planted_series,
)
from tests.model_server import Faults, Server
from tests.model_server.chat import ChatRequest

SEARCHES = ("local", "basic", "drift", "lazy")
OF_ALL = f"Compare the operating margin of {', '.join(MARGINS)} from Q1 to Q4 2022."
TWO = "What was the operating margin of Galemark Group and Ostwick in Q3 2022?"
PERCENT = re.compile(r"\d[\d.]*%")


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted_series(tmp_path_factory)


@pytest.fixture(scope="module")
def index(series: Path) -> Index:
    return graphrag_query.open(series / "output")


def cells_of(answer: Answer) -> list[str]:
    """The thing, period and state of each cell, and its figure or what is covered."""
    return [" | ".join((c.thing, c.period, c.state, c.value or c.covered)) for c in answer.cells]


@cases("question, text, cells")
def test_an_answer_by_cell(index: Index, question: str, text: str, cells: Sequence[str]) -> None:
    answer = index.local(question)
    assert answer.text == text.rstrip()
    assert cells_of(answer) == list(cells)
    is_found = any(" | found | " in cell for cell in cells)
    assert answer.outcome == (Outcome.ANSWERED if is_found else Outcome.NO_EVIDENCE)
    numbers = [number for cell in answer.cells for number in cell.citations]
    assert numbers == [citation.number for citation in answer.citations]


@pytest.fixture(scope="module")
def fiscal_years(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return graphrag_query.open(planted_fiscal_years(tmp_path_factory) / "output")


@cases("question, cells")
def test_fiscal_periods_are_those_that_the_documents_tell(
    fiscal_years: Index, question: str, cells: Sequence[str]
) -> None:
    for method in ("local", "basic"):
        assert cells_of(fiscal_years.search(method, question)) == list(cells)


def test_a_passage_is_of_the_month_of_its_document(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with graphrag_query.open(planted_dated_news(tmp_path_factory) / "output") as news:
        for period in ("May 2024", "2024"):
            answer = news.local(f"What happened in Austin in {period}?")
            assert answer.outcome is Outcome.ANSWERED
            assert "Austin, Texas - A strike of train drivers entered day" in answer.text
            # Not "without May": the date of the document says it.
            assert '"' not in answer.text
        other = news.local("What happened in Austin in May 2019?")
        assert other.outcome is Outcome.NO_EVIDENCE


@pytest.mark.parametrize("question", [OF_ALL, TWO, "How did Ostwick fare in the latest quarter?"])
def test_all_searches_answer_alike_by_cell(index: Index, question: str) -> None:
    answers = [index.search(method, question) for method in SEARCHES]
    assert {(answer.text, *cells_of(answer)) for answer in answers} == {
        (answers[0].text, *cells_of(answers[0]))
    }


@cases("question, text")
def test_a_comparison_is_a_table(index: Index, question: str, text: str) -> None:
    answer = index.ask(question)
    assert (answer.method, answer.outcome) == ("compare", "answered")
    assert answer.text == text.rstrip()


def test_each_figure_belongs_to_its_company_and_quarter(index: Index) -> None:
    for method, (company, margins), quarter in product(
        ("local", "compare"), MARGINS.items(), range(1, 5)
    ):
        answer = index.search(
            method, f"What was the operating margin of {company} in Q{quarter} 2022?"
        )
        assert set(PERCENT.findall(answer.text)) == {f"{margins[quarter - 1]}%"}
        assert [cited.quote for cited in answer.citations] == [evidence(company, quarter)]


def test_global_search_quotes_only_the_documents_of_the_cells(index: Index) -> None:
    answer = index.global_("How did the operating margin of Ostwick develop in 2022?")
    assert {citation.path for citation in answer.citations} <= {
        f"ostwick-2022-q{quarter}.txt" for quarter in range(1, 5)
    }
    assert answer.citations


def test_a_table_has_amounts_that_can_be_compared(index: Index) -> None:
    first, second = index.search("compare", TWO).table
    assert first == {
        **{"thing": "Galemark Group", "period": "Q3 2022", "state": "found", "value": "11.2%"},
        **{"amount": 11.2, "unit": "%", "citations": [1]},
        "statement": f"{evidence('Galemark Group', 3)} [1]",
    }
    assert (second["thing"], second["amount"]) == ("Ostwick", 33.9)


def test_a_question_without_cells_is_not_compared(index: Index) -> None:
    answer = index.search("compare", "Who thanks the colleagues?")
    assert (answer.outcome, answer.cells, answer.table) == (Outcome.NO_EVIDENCE, (), ())
    assert answer.text.startswith("The question names no two things or periods")


def test_a_filter_hides_the_documents_of_others(index: Index) -> None:
    held = index.where({"path": "ostwick*"})
    answer = held.local(TWO)
    assert "11.2%" not in answer.text
    assert "33.9%" in answer.text
    assert held.where({"path": "*q3.txt"}).local(
        "What was the operating margin of Ostwick in Q2 2022?"
    ).outcome is Outcome.NO_EVIDENCE  # fmt: skip


def test_the_table_is_printed_as_csv(series: Path) -> None:
    result = ask("compare", "--csv", TWO, "--root", str(series))
    assert result.stdout.splitlines() == [
        "thing,period,state,value,amount,unit,statement,citations",
        f'Galemark Group,Q3 2022,found,11.2%,11.2,%,"{evidence("Galemark Group", 3)} [1]",[1]',
        f'Ostwick,Q3 2022,found,33.9%,33.9,%,"{evidence("Ostwick", 3)} [2]",[2]',
    ]
    nothing = ask("compare", "--csv", "Who thanks the colleagues?", "--root", str(series))
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "names no two things" in nothing.stderr
    assert ask("local", "--csv", TWO, "--root", str(series)).returncode == 2


def test_questions_of_one_thing_keep_their_ranking(sample_project: Path) -> None:
    path = REPOSITORY / "benchmarks" / "labelled" / "questions.yaml"
    asked = yaml.safe_load(path.read_text(encoding="utf-8"))
    with graphrag_query.open(sample_project / "output") as opened:
        for one in asked:
            if one["corpus"] == "sample":
                found = opened._build_question("local", one["question"], (), None).cell_coverage
                assert (found.cells, found.order) == ((), ()), one["question"]
        ranked = [RankedTextUnit(number, 1 / number, 0.0, "match") for number in (3, 1, 2)]
        assert found.rank_first(ranked, 2) == ranked[:2]
        assert found.score_first({3: 0.5, 1: 0.4, 2: 0.1}, 2) == {3: 0.5, 1: 0.4}


def test_an_index_without_subjects_answers_as_before(series: Path, tmp_path: Path) -> None:
    shutil.copytree(series / "output", tmp_path / "output")
    with graphrag_query.open(tmp_path / "output") as opened:
        for step, name in product(
            opened.store.version.steps, ("subject_names", "subject_words", "document_subjects")
        ):
            step.tables.pop(name, None)  # type: ignore[attr-defined]
        answer = opened.local("What was the operating margin of Galemark Group in Q3 2022?")
        assert (answer.outcome, answer.cells) == (Outcome.ANSWERED, ())
        assert opened.search("compare", TWO).outcome is Outcome.NO_EVIDENCE


# With a model.


@pytest.fixture
def with_model(series: Path, model_server: Server) -> Iterator[Index]:
    model = f"{{model: writer, base_url: '{model_server.url}', retry_seconds: 0.1, timeout: 5}}"
    settings = load_settings(series, (f"models.chat={model}", "search.model=chat"))
    with graphrag_query.open(series / "output", settings, series) as opened:
        yield opened


def test_the_prompt_has_the_passages_of_all_cells(with_model: Index, model_server: Server) -> None:
    question = OF_ALL.replace("Compare", "Without Morewick, compare")
    answer = with_model.local(question, max_context_tokens=12_000)
    prompt = "\n".join(ChatRequest(model_server.requests[-1].json).texts)
    context = prompt[prompt.index("-----Coverage-----") :]
    assert count_tokens(context, load_encoding("o200k_base")) < 12_000
    coverage, sources = context.split("-----Sources-----\nid,document,period,headings,text\n")
    assert "Morewick,2022,The documents do not mention Morewick." in coverage
    rows = re.findall(r'^(\d+),(".*?"|[^",]*),(Q\d 2022),.*?,(.*)$', sources, re.M)
    places = {company: place for place, company in enumerate(MARGINS)}
    order = []
    for (company, _), quarter in product(MARGINS.items(), range(1, 5)):
        [(number, document, period)] = [
            row[:3] for row in rows if evidence(company, quarter) in row[3]
        ]
        assert company.lower() in document.lower()
        assert period == f"Q{quarter} 2022"
        assert re.search(rf"^{company},{period},[\d ]*\b{number}\b", coverage, re.M)
        order.append((places[company], period))
    # Rows of a cell stand together.
    found = [
        (company, row[2])
        for row in rows
        for company in MARGINS
        if company.lower() in row[1].lower()
    ]
    assert [places[company] for company, _ in dict.fromkeys(found)] == [at for at, _ in order]
    assert answer.cells[-1].state == "no_thing"


@pytest.mark.parametrize("method", ["basic", "drift", "lazy", "global"])
def test_other_searches_read_the_passages_of_all_cells(
    with_model: Index, model_server: Server, method: str
) -> None:
    with_model.search(method, TWO)
    read = "\n".join(t for r in model_server.requests for t in ChatRequest(r.json).texts)
    assert evidence("Galemark Group", 3) in read
    assert evidence("Ostwick", 3) in read


def reply_with(model_server: Server, reply: Callable[[Mapping[str, str]], Any]) -> None:
    """Answer with what a function makes of the number of each source by its margin."""

    def answer(request: ChatRequest) -> Any:
        found = re.findall(r"^(\d+),.*came in at ([\d.]+%)", request.texts[-1], re.M)
        return reply({margin: number for number, margin in found})

    model_server.answer = answer


def cell(number: int, value: str, *sources: Any, statement: str = "") -> dict[str, Any]:
    return {"cell": number, "value": value, "statement": statement, "sources": list(sources)}


def test_a_model_fills_the_cells_from_their_own_sources(
    with_model: Index, model_server: Server
) -> None:
    own, other = "Margin: 11.2%.", "Margin: 33.9%."
    reply_with(
        model_server,
        lambda numbers: {
            "cells": [
                cell(0, "11.2%", int(numbers["11.2%"]), statement=own),
                cell(1, "33.9%", int(numbers["33.9%"]), statement=other),
            ]
        },
    )
    answer = with_model.search("compare", TWO)
    assert answer.text.startswith("From highest to lowest: Ostwick, Q3 2022 (33.9%), Galemark")
    assert "| Galemark Group | 11.2% [1] |\n| Ostwick | 33.9% [2] |" in answer.text
    assert [row["statement"] for row in answer.table] == [f"{own} [1]", f"{other} [2]"]
    quotes = [evidence("Galemark Group", 3), evidence("Ostwick", 3)]
    assert [citation.quote for citation in answer.citations] == quotes
    assert answer.notes == ()
    assert len(model_server.requests) == 1


@pytest.mark.parametrize(
    "value",
    ["33.9%", "12.3%", "1.2%", "112%", "11.20%", "0.2%"],
    ids=["of another cell", "of none", "end", "no point", "more digits", "other digits"],
)
def test_a_figure_that_its_sources_lack_is_dropped(
    with_model: Index, model_server: Server, value: str
) -> None:
    def reply(numbers: Mapping[str, str]) -> Any:
        ids = [int(number) for number in numbers.values()]
        return {"cells": [cell(0, value, *ids), cell(1, "33.9%", *ids)]}

    reply_with(model_server, reply)
    answer = with_model.search("compare", TWO)
    assert cells_of(answer) == [
        "Galemark Group | Q3 2022 | no_statement | ",
        "Ostwick | Q3 2022 | found | 33.9%",
    ]
    assert "- Galemark Group, Q3 2022: no passage states this." in answer.text
    assert answer.notes == ("Dropped 1 cell of the model without a figure of its sources.",)


@pytest.mark.parametrize(
    "shape",
    [
        lambda one: [one],
        lambda one: {"rows": [one]},
        lambda one: one,
        lambda one: {"cells": [one, "text", None, {"cell": "0"}, {"cell": [0]}, {"cell": 99}]},
        lambda one: {"cells": [one | {"sources": [[1], {"id": 1}, "x", None, *one["sources"]]}]},
        lambda one: {"cells": [one | {"sources": None}]},
        lambda one: {"cells": [one | {"statement": 5, "sources": "x"}]},
    ],
)
def test_other_forms_of_replies_are_read(
    with_model: Index, model_server: Server, shape: Callable[[Any], Any]
) -> None:
    reply_with(
        model_server, lambda numbers: shape(cell(1, "33.9%", int(numbers["33.9%"]), statement="S"))
    )
    answer = with_model.search("compare", TWO)
    assert cells_of(answer)[1] == "Ostwick | Q3 2022 | found | 33.9%"
    assert [cited.quote for cited in answer.citations] == [evidence("Ostwick", 3)]


def test_a_failed_call_leaves_its_cells_empty(with_model: Index, model_server: Server) -> None:
    def reply(numbers: Mapping[str, str]) -> Any:
        if "9.6%" not in numbers:
            return "no JSON"
        return {"cells": [cell(0, "9.6%", int(numbers["9.6%"]))]}

    reply_with(model_server, reply)
    answer = with_model.search("compare", OF_ALL)
    assert answer.outcome is Outcome.ANSWERED
    assert {c.state for c in answer.cells[1:]} == {"no_statement"}
    assert len(answer.notes) == 1
    assert answer.notes[0].startswith("A call failed (")
    model_server.faults = Faults(rate=1.0, kinds=["500"])
    answer = with_model.search("compare", TWO)
    assert answer.outcome is Outcome.PROVIDER_ERROR
