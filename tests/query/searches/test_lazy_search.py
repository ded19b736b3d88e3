import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_index.errors import ModelError
from graphrag_index.llm.request import ReplyError, Request
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_index.schema.settings.searches import LazySearch
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index
from graphrag_query.question.question import Question
from graphrag_query.searches.lazy_search import (
    Claim,
    claims_request,
    lazy_search,
    relevance_request,
    sub_query_request,
)
from tests.conftest import REPOSITORY, copy_project, run_project
from tests.fixtures.cases import cases
from tests.fixtures.examples import examples
from tests.fixtures.fake_llm import FakeLLM, question_to
from tests.fixtures.sample_questions import QUESTIONS, check_citations
from tests.model_server import ChatRequest, Faults, Server

DOGS = "Which dogs did the expeditions use, and what became of them?"


def reader(word: str, fails: Callable[[Request, int], bool] = lambda *_: False) -> FakeLLM:
    """A model for which the passages that hold a word are relevant, and each claims its id."""
    seen: dict[str, int] = {}

    def answer(request: Request) -> Any:
        name = request.format.name
        seen[name] = seen.get(name, 0) + 1
        if fails(request, seen[name]):
            return None
        content = request.messages[-1]["content"]
        if name == "questions":
            return {"questions": ["How did the sledge dogs die?"]}
        if name == "rating":
            passage = content.rpartition("\n\nQuestion:")[0]
            return {"rating": 5 if re.search(rf"\b{word}\b", passage) else 1}
        if name == "claims":
            numbers = [int(row.split(",")[0]) for row in content.splitlines() if row[:1].isdigit()]
            return {
                "claims": [
                    {"claim": f"Dogs are told of in {n}.", "sources": [n], "score": 50 + n % 50}
                    for n in numbers
                ]
            }
        shown = [row.split(",")[3] for row in content.splitlines() if row[:1].isdigit()]
        return " ".join(f"Dogs pulled sledges [Data: Sources ({n})]." for n in shown[:3])

    return FakeLLM(answer)


def asked_of(llm: FakeLLM, name: str) -> list[Request]:
    return [request for request in llm.asked if request.format.name == name]


class TestWithoutAModel:
    def test_a_refusal_speaks_the_language_of_the_question(self, index: Index) -> None:
        settings = LazySearch(min_similarity=1.0)
        answer = lazy_search(Question("Wer gewann das Schachturnier?", index.store), settings)
        assert answer.outcome is Outcome.NO_EVIDENCE
        assert answer.text.startswith("Keine gelesene Stelle beantwortet das.")

    def test_a_question_is_answered_with_sentences(
        self, index: Index, sample_project: Path
    ) -> None:
        answer = index.lazy("When were the men rescued from Elephant Island?")
        assert answer.outcome is Outcome.ANSWERED
        assert "September 1916" in answer.text
        assert 0 < answer.looked_at["relevance_tests"] <= 100
        assert 0 < answer.looked_at["relevant_text_units"] <= answer.looked_at["relevance_tests"]
        assert answer.looked_at["communities"] > 1
        check_citations(answer, sample_project / "output")

    @pytest.mark.parametrize("question", ["What is the capital of Brazil?", "How is bread baked?"])
    def test_what_the_documents_do_not_say_is_no_evidence(
        self, index: Index, question: str
    ) -> None:
        answer = index.lazy(question)
        assert answer.outcome is Outcome.NO_EVIDENCE
        assert answer.citations == ()
        assert "relevance_tests" in answer.looked_at

    def test_a_name_that_the_documents_do_not_hold_is_said_so(self, index: Index) -> None:
        answer = index.lazy("Did Marie Curie meet Ernest Shackleton?")
        assert (answer.outcome, answer.text) == (
            Outcome.NO_EVIDENCE,
            "The documents do not mention Marie Curie.",
        )

    @cases("question, parts")
    def test_a_question_is_cut_where_a_second_thing_is_asked(
        self, index: Index, question: str, parts: list[str]
    ) -> None:
        from graphrag_query.searches.lazy_search import _split_question

        assert _split_question(question) == parts

    @examples(6)
    @given(QUESTIONS, st.integers(1, 60), st.integers(200, 2_000))
    def test_budgets_hold_citations_resolve_and_the_answer_is_the_same_again(
        self, sample_project: Path, question: str, budget: int, max_tokens: int
    ) -> None:
        with graphrag_query.open(sample_project / "output") as index:
            values = {"budget": budget, "max_context_tokens": max_tokens}
            answer, again = (index.lazy(question, **values) for _ in range(2))
        check_citations(answer, sample_project / "output")
        assert answer.looked_at["relevance_tests"] <= budget
        assert (answer.text, answer.looked_at) == (again.text, again.looked_at)
        if answer.context is not None and again.context is not None:
            n_tokens = count_tokens(answer.context.text, load_encoding("o200k_base"))
            assert n_tokens <= answer.context.n_tokens <= max_tokens
            assert answer.context.text == again.context.text


class TestWithAModel:
    def ask(self, index: Index, llm: FakeLLM, **values: Any) -> Answer:
        return lazy_search(question_to(index, DOGS, llm), LazySearch(**values))

    def test_it_tests_claims_and_writes(self, index: Index, sample_project: Path) -> None:
        llm = reader("dogs")
        answer = self.ask(index, llm, budget=60)
        assert answer.outcome is Outcome.ANSWERED
        assert len(answer.citations) == 3
        # The model has said "Dogs pulled sledges" of each passage.
        said = re.compile(r"\b(?:dog|pull|sledg)")
        assert all(said.search(citation.quote.lower()) for citation in answer.citations)
        check = [len(asked_of(llm, name)) for name in ("questions", "rating", "text")]
        assert check == [1, answer.looked_at["relevance_tests"], 1]
        assert answer.looked_at["relevant_text_units"] > 3
        assert answer.looked_at["claims"] == answer.looked_at["relevant_text_units"]
        assert answer.parameters["queries"] == [DOGS, "How did the sledge dogs die?"]
        assert answer.notes == ()

    def test_no_more_is_tested_than_the_budget_also_if_calls_fail(self, index: Index) -> None:
        llm = reader("dogs", lambda r, n: r.format.name == "rating" and n % 3 == 0)
        answer = self.ask(index, llm, budget=45)
        assert len(asked_of(llm, "rating")) == answer.looked_at["relevance_tests"] <= 45
        assert len({r.unit for r in asked_of(llm, "rating")}) == len(asked_of(llm, "rating"))
        n_failed = answer.looked_at["relevance_tests_failed"]
        assert n_failed == len(asked_of(llm, "rating")) // 3 > 0
        n_tests = answer.looked_at["relevance_tests"]
        assert answer.notes == (f"{n_failed} of {n_tests} relevance tests failed.",)

    def test_claims_of_a_community_stand_together_and_the_best_comes_first(
        self, index: Index
    ) -> None:
        llm = reader("dogs")
        self.ask(index, llm, budget=60)
        [written] = asked_of(llm, "text")
        rows = [r.split(",") for r in written.messages[-1]["content"].splitlines()]
        claims = [(int(r[1]), int(r[4])) for r in rows if r[0].isdigit()]
        groups = [group for group, _ in claims]
        assert len(groups) > len(set(groups)) > 1
        first = [groups.index(group) for group in dict.fromkeys(groups)]
        assert groups == sorted(groups, key=lambda g: list(dict.fromkeys(groups)).index(g))
        best = [claims[place][1] for place in first]
        assert best == sorted(best, reverse=True)

    def test_every_call_fits_the_context(self, index: Index) -> None:
        llm = reader("expedition")
        answer = self.ask(index, llm, budget=60, max_context_tokens=1_500)
        encoding = load_encoding("o200k_base")
        sent = [*asked_of(llm, "claims"), *asked_of(llm, "text")]
        assert len(sent) > 3
        for request in sent:
            context = request.messages[-1]["content"].rpartition("\nQuestion:")[0]
            assert count_tokens(context, encoding) <= 1_500
        n_read = sum(
            len(re.findall(r"(?m)^\d+,", r.messages[-1]["content"]))
            for r in asked_of(llm, "claims")
        )
        assert n_read == answer.looked_at["relevant_text_units"]

    def test_sub_queries_that_fail_are_made_by_rules(self, index: Index) -> None:
        llm = reader("dogs", lambda r, _: r.format.name == "questions")
        answer = self.ask(index, llm, budget=20)
        assert answer.outcome is Outcome.ANSWERED
        assert answer.notes[0].startswith("No sub-queries by the model:")

    def test_a_failing_call_for_claims_costs_its_passages(self, index: Index) -> None:
        llm = reader("expedition", lambda r, n: r.format.name == "claims" and n == 1)
        answer = self.ask(index, llm, budget=40, max_context_tokens=2_000)
        assert answer.outcome is Outcome.ANSWERED
        assert answer.looked_at["claim_calls_failed"] == 1
        assert "calls for claims failed" in answer.notes[0]

    @pytest.mark.parametrize("name", ["rating", "claims", "text"])
    def test_a_model_that_fails_throughout_is_an_error(self, index: Index, name: str) -> None:
        llm = reader("dogs", lambda r, _: r.format.name == name)
        with pytest.raises(ModelError):
            self.ask(index, llm, budget=40)
        assert len(asked_of(llm, "rating")) <= 40

    def test_nothing_relevant_is_no_evidence(self, index: Index) -> None:
        llm = reader("zebra")
        answer = self.ask(index, llm, budget=30)
        assert answer.outcome is Outcome.NO_EVIDENCE
        assert answer.looked_at["relevance_tests"] == 30
        assert asked_of(llm, "claims") == []

    def test_claims_without_a_source_are_no_evidence(self, index: Index) -> None:
        def answer(request: Request) -> Any:
            replies = {"questions": {"questions": []}, "rating": {"rating": 5}}
            return replies.get(request.format.name, {"claims": [{"claim": "x", "sources": [-1]}]})

        found = self.ask(index, FakeLLM(answer), budget=10)
        assert found.outcome is Outcome.NO_EVIDENCE
        assert found.looked_at["claims"] == 0


class TestReplies:
    def request(self, index: Index, name: str) -> Request:
        llm = FakeLLM(lambda _: None)
        if name == "questions":
            return sub_query_request(llm, "Who?", 3)
        units = index.store.text_units([3, 4])
        if name == "rating":
            return relevance_request(llm, "Who?", units[3])
        from graphrag_query.answering.written_answer import Section, pack_sections, source_rows

        context = pack_sections([Section("Sources", source_rows(units), 1)], 2_000)
        return claims_request(llm, "Who?", context)

    @pytest.mark.parametrize(
        ("reply", "queries"),
        [
            ({"questions": ["A b?", " a  B? ", "Who?", "", None, 7]}, ["A b?"]),
            (["A?", "B?", "C?", "D?"], ["A?", "B?", "C?"]),
            ({"questions": "1. A?\n2) B?\n"}, ["A?", "B?"]),
            ({"sub_queries": [{"query": "A?"}, {"text": "B?"}]}, ["A?", "B?"]),
            ({"questions": []}, []),
            ({}, []),
            (None, []),
            ({"questions": ["a" * 1_000]}, []),
        ],
    )
    def test_sub_queries(self, index: Index, reply: Any, queries: list[str]) -> None:
        assert self.request(index, "questions").format.read(reply).value == queries

    @cases("reply, rating")
    def test_ratings(self, index: Index, reply: Any, rating: float) -> None:
        assert self.request(index, "rating").format.read(reply).value == rating

    @pytest.mark.parametrize("reply", [{}, [], None, "very", {"rating": None}])
    def test_a_reply_without_a_rating_is_refused(self, index: Index, reply: Any) -> None:
        with pytest.raises(ReplyError):
            self.request(index, "rating").format.read(reply)

    @pytest.mark.parametrize(
        ("reply", "claims", "n_dropped"),
        [
            ({"claims": [{"claim": "a", "sources": [3, 3, 9], "score": 80}]}, [("a", 80, 3)], 0),
            ({"claims": {"claim": "a", "sources": "3", "score": "4/5"}}, [("a", 80, 3)], 0),
            ([{"statement": "a", "source": 4}], [("a", 50, 4)], 0),
            ({"claim": "a", "sources": ["Sources (3)"]}, [("a", 50, 3)], 0),
            ({"claims": ["a [Data: Sources (3)]"]}, [("a", 50, 3)], 0),
            ({"claims": [{"claim": "a", "sources": [9]}, 7, {"sources": [3]}]}, [], 3),
            ({"claims": []}, [], 0),
            ({}, [], 0),
        ],
    )
    def test_claims(
        self, index: Index, reply: Any, claims: list[tuple[str, float, int]], n_dropped: int
    ) -> None:
        reading = self.request(index, "claims").format.read(reply)
        assert reading.value == [Claim(text, score, (n,)) for text, score, n in claims]
        assert reading.dropped == n_dropped

    @examples(60)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["claims", "claim", "sources", "score", "rating", "x"]), inner
                )
            ),
            max_leaves=8,
        )
    )
    def test_any_reply_is_read_or_refused(self, index: Index, reply: Any) -> None:
        for name in ("questions", "rating", "claims"):
            try:
                reading = self.request(index, name).format.read(reply)
            except ReplyError:
                continue
            assert reading.dropped >= 0


def over_http(llm: ChatRequest) -> Any:
    """What `reader` says, for a server."""
    kind = next(iter((llm.schema or {}).get("properties", {"text": None})))
    numbers = [row.split(",")[0] for row in llm.texts[-1].splitlines() if row[:1].isdigit()]
    return {
        "questions": {"questions": ["How did the sledge dogs die?"]},
        "rating": {"rating": 5 if "dogs" in llm.texts[-1].rpartition("Question:")[0] else 0},
        "claims": {
            "claims": [{"claim": "Dogs.", "sources": [int(n)], "score": 9} for n in numbers]
        },
        "text": "Dogs pulled sledges [Data: Sources (1)].",
    }[kind]


def test_over_http_failing_tests_are_told_and_an_outage_is_an_outcome(sample_project: Path) -> None:
    with Server(answer=over_http) as server:
        llm = f"models.chat={{model: test-model, base_url: '{server.url}', retry_seconds: 0.5}}"
        settings = load_settings(sample_project, [llm, "search.model=chat"])
        with graphrag_query.open(sample_project / "output", settings, sample_project) as index:
            server.faults = Faults(by_text={"Passage of Dogs, Ponies and Motors": "content_filter"})
            part = index.lazy(DOGS, budget=30)
            n_failed = part.looked_at["relevance_tests_failed"]
            assert 0 < n_failed < part.looked_at["relevance_tests"] == 30
            assert f"{n_failed} of 30 relevance tests failed." in part.notes
            server.faults = Faults(rate=1.0, kinds=["500"])
            out = index.lazy(f"{DOGS} Again?", budget=30)
            assert out.outcome is Outcome.PROVIDER_ERROR
            assert out.citations == ()


@pytest.fixture(scope="module")
def lazy_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_project(tmp_path_factory.mktemp("lazy") / "project")
    for path in sorted((root / "input").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name in ("tom-crean.txt", "ernest-shackleton.txt"):
        [path] = (REPOSITORY / "input").rglob(name)
        (root / "input" / name).write_bytes(path.read_bytes())
    run_project(root, "workflow=lazy")
    return root


class TestAnIndexWithoutReports:
    def test_lazy_search_answers_from_it(self, lazy_project: Path) -> None:
        index = graphrag_query.open(lazy_project / "output")
        assert not index.store.has_table("community_reports")
        answer = index.lazy("Where was Tom Crean born?")
        assert answer.outcome is Outcome.ANSWERED
        assert "Annascaul" in answer.text
        check_citations(answer, lazy_project / "output")

    def test_basic_and_local_answer_and_global_says_what_is_missing(
        self, lazy_project: Path
    ) -> None:
        index = graphrag_query.open(lazy_project / "output")
        assert index.basic("Where was Tom Crean born?").outcome is Outcome.ANSWERED
        assert index.local("Where was Tom Crean born?").outcome is Outcome.ANSWERED
        answer = index.global_("What are the main themes?")
        assert answer.outcome is Outcome.INDEX_INCOMPLETE

    def test_filters_hold(self, lazy_project: Path) -> None:
        index = graphrag_query.open(lazy_project / "output")
        answer = index.where({"path": "ernest-shackleton.txt"}).lazy("Who was Ernest Shackleton?")
        assert {citation.path for citation in answer.citations} == {"ernest-shackleton.txt"}
