"""Systems on questions about the sample, and what is told of them."""

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import graphrag_query
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.runs import run_systems
from graphrag_evaluation.scores import contexts_within, has_span
from graphrag_evaluation.summary import Evaluation
from graphrag_evaluation.systems import Place, System, open_systems, plan_systems
from graphrag_index.errors import SettingsError
from graphrag_index.llm.request import ENCODING
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.storage.table_store import open_index
from graphrag_index.storage.versions import move_pointer
from graphrag_query.answer import Outcome

QUESTIONS = [
    EvaluationQuestion(
        "crean",
        "Where was Tom Crean born?",
        documents=("people/tom-crean.txt",),
        answers=("Annascaul",),
        statements=("Tom Crean was born near Annascaul in County Kerry.",),
    ),
    EvaluationQuestion("bakery", "Who runs the bakery in Zürich?", is_answerable=False),
]


@pytest.fixture(scope="module")
def evaluation(sample_project: Path) -> Evaluation:
    with graphrag_query.open(sample_project / "output") as index:
        systems = [System(name, index, name) for name in ("local", "basic")]
        return Evaluation(run_systems(systems, QUESTIONS))


def test_each_question_gets_the_measures_that_apply_to_it(evaluation: Evaluation) -> None:
    crean, bakery = evaluation.results["local"]
    assert crean.scores["recall@10"] == crean.scores["said"] == crean.scores["citations_valid"] == 1
    assert crean.scores["outcome_right"] == bakery.scores["outcome_right"] == 1
    assert crean.scores["coverage@4000"] == crean.scores["supported"] == 1
    assert bakery.scores["no_evidence_precision"] == bakery.scores["no_evidence_recall"] == 1
    answered = {"recall@10", "said", "citations_valid", "supported", "coverage@4000"}
    assert not answered & bakery.scores.keys()
    assert crean.missed == []


def test_two_systems_are_compared_question_by_question(evaluation: Evaluation) -> None:
    [comparison] = evaluation.comparisons("outcome_right")
    assert (comparison.first, comparison.second) == ("local", "basic")
    assert comparison.difference.interval.n == 2
    # Two questions can prove nothing.
    assert not comparison.is_significant


def test_questions_about_other_documents_are_told(sample_project: Path) -> None:
    question = EvaluationQuestion("1", "Who?", documents=("nowhere.txt",))
    with (
        graphrag_query.open(sample_project / "output") as index,
        pytest.raises(SettingsError, match=r"None of the 1 gold documents .* 'nowhere.txt'"),
    ):
        run_systems([System("local", index, "local")], [question])


def test_gold_spans_are_found_in_the_passages_that_hold_them(sample_project: Path) -> None:
    path = "people/tom-crean.txt"
    text = (sample_project / "input" / path).read_text(encoding="utf-8")
    start = text.index("Annascaul")
    question = EvaluationQuestion(
        "crean",
        "Where was Tom Crean born?",
        spans=(
            GoldSpan(path, start, start + len("Annascaul")),
            GoldSpan("", 0, 0, text[start - 20 : start + 30]),
            GoldSpan(path, 10**6, 10**6 + 20),
        ),
    )
    with graphrag_query.open(sample_project / "output") as index:
        [result] = run_systems([System("local", index, "local")], [question])["local"]
    assert result.scores["recall@10"] == pytest.approx(2 / 3)
    assert result.scores["all_gold@10"] == 0
    assert result.missed == [path]


@pytest.mark.parametrize(
    ("span", "is_held"),
    [
        (GoldSpan("a", 110, 120), True),
        (GoldSpan("a", 90, 110), True),  # half of it
        (GoldSpan("a", 90, 109), False),
        (GoldSpan("a", 140, 160), True),
        (GoldSpan("a", 141, 160), False),
        (GoldSpan("b", 110, 120), False),  # another document
        (GoldSpan("", 0, 0, "ice  was"), True),
        (GoldSpan("", 0, 0, "snow"), False),
    ],
)
def test_a_passage_holds_a_span_if_it_has_half_of_it(span: GoldSpan, is_held: bool) -> None:
    unit = {"document": 3, "start_char": 100, "end_char": 150, "text": "The Ice was thick."}
    assert has_span(unit, span, {"a": 3, "b": 4}.get(span.document, -1)) is is_held


def test_contexts_keep_to_the_budget(sample_project: Path) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        for method in ("local", "basic", "global", "lazy", "drift", "ask", "neighbourhood"):
            system = System(method, index, method)
            texts = contexts_within(system, "What did Ernest Shackleton do?", (500, 1_500))
            assert list(texts) == [500, 1_500]
            n_tokens = {n: count_tokens(text, load_encoding(ENCODING)) for n, text in texts.items()}
            assert 0 < n_tokens[500] <= 500, method
            assert n_tokens[500] <= n_tokens[1_500] <= 1_500, method
            for budget, text in texts.items():
                assert contexts_within(system, "What did Ernest Shackleton do?", [budget]) == {
                    budget: text
                }, method


def test_worker_processes_give_the_same_results(sample_project: Path) -> None:
    questions = [
        EvaluationQuestion(str(n), f"Who was {name}?", documents=("people/tom-crean.txt",))
        for n, name in enumerate(["Tom Crean", "Frank Wild", "Robert Scott"] * 4)
    ]
    with ExitStack() as stack:
        systems = open_systems(stack, plan_systems([Place(sample_project)], ["local", "basic"]))
        alone, shared = (
            {
                name: [
                    (row.question.id, row.answer.text, row.passages, row.scores["recall@10"])
                    for row in rows
                ]
                for name, rows in run_systems(systems, questions, budgets=(), n_workers=n).items()
            }
            for n in (1, 2)
        )
    assert alone == shared
    assert [row[0] for row in alone["basic"]] == [question.id for question in questions]


def test_ask_fills_the_budget_like_the_search_that_it_chooses(sample_project: Path) -> None:
    question = "What did Ernest Shackleton do?"
    with graphrag_query.open(sample_project / "output") as index:
        assert index.chosen_method(question) == "local"
        ask, local = (
            contexts_within(System(name, index, name), question, [8_000])
            for name in ("ask", "local")
        )
    assert ask == local


def test_a_search_without_a_context_has_no_coverage(sample_project: Path, tmp_path: Path) -> None:
    dynamic = "global_search.selection=dynamic"
    with ExitStack() as stack:
        systems = open_systems(
            stack, plan_systems([Place(sample_project)], ["global", "local"], [dynamic])
        )
        results = run_systems(systems, QUESTIONS[:1])
    covered = {name: "coverage@4000" in row.scores for name, [row] in results.items()}
    assert covered == {"global": False, "local": True}

    shutil.copytree(sample_project / "output", tmp_path / "output", symlinks=True)
    store, version = open_index(tmp_path / "output")
    steps = tuple(s for s in version.steps if s.name != "create_community_reports_nlp")
    move_pointer(store.output, replace(version, steps=steps))
    with graphrag_query.open(tmp_path / "output") as index:
        [result] = run_systems([System("global", index, "global")], QUESTIONS[:1])["global"]
    assert result.answer.outcome is Outcome.INDEX_INCOMPLETE
    assert result.scores["outcome_right"] == 0
    assert "coverage@4000" not in result.scores


def names(places: Sequence[Place], methods: Sequence[str], *overrides: str) -> list[str]:
    with ExitStack() as stack:
        return [
            system.name for system in open_systems(stack, plan_systems(places, methods, overrides))
        ]


def test_settings_with_several_values_make_a_matrix(sample_project: Path) -> None:
    place = Place(sample_project)
    assert names([place], ["local"], "local_search.top_k_text_units=5") == ["local"]
    assert names([place], ["local", "basic"], "basic_search.mode=text, vector") == [
        "local basic_search.mode=text",
        "basic basic_search.mode=text",
        "local basic_search.mode=vector",
        "basic basic_search.mode=vector",
    ]


def test_a_value_of_the_matrix_reaches_the_search(sample_project: Path) -> None:
    with ExitStack() as stack:
        overrides = ["basic_search.top_k_text_units=2,5"]
        systems = open_systems(stack, plan_systems([Place(sample_project)], ["basic"], overrides))
        read = [
            system.index.search("basic", "Who was Tom Crean?").looked_at["text_units"]
            for system in systems
        ]
    assert read == [2, 5]


def test_places_are_named_by_what_differs(sample_project: Path) -> None:
    root = sample_project
    places = [Place(root), Place.parse("@1", root)]
    assert names(places, ["basic"]) == ["basic now", "basic @1"]
    places = [Place(root), Place.parse(f"{root / 'output'}@1", root)]
    assert names(places, ["basic"]) == [f"basic {root.name}", "basic output@1"]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("create_text_units.max_tokens=100", "has no effect on an index that is there"),
        ("basic_search.speed=1", "unknown key 'basic_search.speed'"),
    ],
)
def test_settings_that_cannot_be_compared_are_told(
    sample_project: Path, override: str, told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        names([Place(sample_project)], ["basic"], override)


@pytest.mark.parametrize(
    ("against", "methods", "overrides"),
    [
        ([], ["basic", "basic"], []),
        ([""], ["basic"], []),
        (["@1", "@1"], ["basic"], []),
        ([], ["basic"], ["basic_search.mode=text,text"]),
    ],
)
def test_a_system_is_not_compared_with_itself(
    sample_project: Path, against: Sequence[str], methods: Sequence[str], overrides: Sequence[str]
) -> None:
    places = [Place(sample_project)]
    places += [Place.parse(text or str(sample_project), sample_project) for text in against]
    with pytest.raises(SettingsError, match=r"'basic.*' would be compared with itself"):
        plan_systems(places, methods, overrides)


def test_an_output_folder_alone_has_no_settings_to_change(sample_project: Path) -> None:
    with pytest.raises(SettingsError, match="name the project instead"):
        names([Place(sample_project / "output")], ["basic"], "basic_search.mode=text,vector")
