from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_index.llm.request import Request
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.searches import BasicSearch
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.searches.basic_search import basic_search, rank_text_units
from tests.fixtures.examples import examples
from tests.fixtures.fake_llm import FakeLLM, question_to
from tests.fixtures.sample_questions import QUESTIONS, check_citations


@pytest.mark.parametrize("mode", ["vector", "text", "hybrid"])
def test_a_passage_is_found_and_quoted(index: Index, sample_project: Path, mode: str) -> None:
    answer = index.basic("Which fossil plant was found in the rocks?", mode=mode)
    assert answer.outcome is Outcome.ANSWERED
    assert "fossil" in answer.text.lower()
    assert answer.method == "basic"
    assert answer.looked_at == {"text_units": 10}
    check_citations(answer, sample_project / "output")


def test_the_hybrid_score_is_the_mean_of_the_scaled_similarity_and_the_full_text_score(
    index: Index,
) -> None:
    question = question_to(index, "Which fossil plant was found in the rocks?")
    near, matching, cosines = (
        rank_text_units(question, BasicSearch(mode=mode, top_k_text_units=top_k))
        for mode, top_k in (("vector", 50), ("text", 50), ("vector", 1_000))
    )
    found = {*near, *matching}
    # Some text units are found by only one of the rankings.
    assert found != {*near}
    assert found != {*matching}
    lowest, highest = (limit(cosines[number] for number in found) for limit in (min, max))
    expected = {
        number: (cosines[number] - lowest) / (highest - lowest) / 2 + matching.get(number, 0.0) / 2
        for number in found
    }
    hybrid = rank_text_units(question, BasicSearch(top_k_text_units=5))
    assert hybrid == pytest.approx({n: expected[n] for n in hybrid}, abs=1e-5)
    assert min(hybrid.values()) == pytest.approx(sorted(expected.values())[-5], abs=1e-5)


def test_words_that_nothing_holds_leave_the_ranking_to_the_vectors(index: Index) -> None:
    question = question_to(index, "zxcv qwer")
    rankings = [
        list(rank_text_units(question, BasicSearch(mode=mode, top_k_text_units=5)))
        for mode in ("vector", "hybrid")
    ]
    assert rankings[0] == rankings[1]


@pytest.mark.parametrize("mode", ["vector", "text", "hybrid"])
def test_text_units_come_best_first_and_none_too_many(index: Index, mode: str) -> None:
    question = question_to(index, "Who wintered at Cape Adare?")
    scores = rank_text_units(question, BasicSearch(mode=mode, top_k_text_units=7))
    assert len(scores) == 7
    assert list(scores.values()) == sorted(scores.values(), reverse=True)


@pytest.mark.parametrize(
    "question", ["What is the capital of Mongolia?", "How do I bake sourdough bread?", "zxcv qwer"]
)
def test_what_the_documents_do_not_say_is_no_evidence(index: Index, question: str) -> None:
    answer = index.basic(question)
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.citations == ()
    assert answer.looked_at["text_units"] == 10


def test_a_name_that_the_documents_do_not_hold_is_said_so(index: Index) -> None:
    answer = index.basic("Did Marie Curie travel to Antarctica?")
    assert (answer.outcome, answer.text) == (
        Outcome.NO_EVIDENCE,
        "The documents do not mention Marie Curie.",
    )


def test_words_that_nothing_holds_give_no_text_units_by_full_text(index: Index) -> None:
    answer = index.basic("船はどこ", mode="text")
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.looked_at == {"text_units": 0}


def _cites_first(request: Request) -> str:
    number = request.messages[-1]["content"].splitlines()[2].split(",")[0]
    return f"It was a plant [Data: Sources ({number}, 999999)]."


def test_a_model_writes_from_the_passages_and_is_followed(
    index: Index, sample_project: Path
) -> None:
    llm = FakeLLM(_cites_first)
    asked = question_to(index, "Which fossil plant was found in the rocks?", llm)
    answer = basic_search(asked, BasicSearch())
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text == "It was a plant [1]."
    assert "fossils" in answer.citations[0].quote.lower()
    assert answer.notes == ("1 citation was removed, because the context has no such row.",)
    assert answer.context is not None
    assert list(answer.context.tables) == ["Sources"]
    assert answer.context.text in llm.prompts_sent[0]


def test_a_model_that_finds_no_record_is_no_evidence(index: Index) -> None:
    llm = FakeLLM(lambda _: "NO_RECORD The passages are about ice.")
    answer = basic_search(question_to(index, "How is bread baked?", llm), BasicSearch())
    assert (answer.outcome, answer.text) == (Outcome.NO_EVIDENCE, "The passages are about ice.")


@examples(10)
@given(QUESTIONS, st.sampled_from(["vector", "text", "hybrid"]), st.integers(200, 3_000))
def test_the_budget_holds_and_citations_resolve(
    sample_project: Path, question: str, mode: Any, max_tokens: int
) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        answer = index.basic(question, mode=mode, max_context_tokens=max_tokens)
        again = index.basic(question, mode=mode, max_context_tokens=max_tokens)
    check_citations(answer, sample_project / "output")
    assert bool(answer.citations) == (answer.outcome is Outcome.ANSWERED)
    if answer.context is not None and again.context is not None:
        n_tokens = count_tokens(answer.context.text, load_encoding("o200k_base"))
        assert n_tokens <= answer.context.n_tokens <= max_tokens
        assert again.context.text == answer.context.text
