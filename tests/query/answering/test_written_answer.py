from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.request import Request
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.searches import LocalSearch
from graphrag_query.answer import Context, Outcome
from graphrag_query.answering.written_answer import DeferredContext, Section, pack_sections
from graphrag_query.index import Index
from graphrag_query.searches.local_search import local_search
from tests.fixtures.cases import cases
from tests.fixtures.chat_requests import Pieces
from tests.fixtures.fake_llm import FakeLLM, index_behind, question_to
from tests.model_server import ChatRequest, Faults, Server


def sources(*texts: str) -> pl.DataFrame:
    numbers = range(10, 10 + len(texts))
    return pl.DataFrame({"id": numbers, "text": texts}, schema={"id": pl.Int64, "text": pl.String})


def test_a_context_is_packed_when_it_is_read_and_only_once() -> None:
    packed: list[Context] = []

    def pack(max_tokens: int) -> Context:
        rows = {"Sources": pl.DataFrame({"id": [3]})}
        packed.append(Context(rows, "text", max_tokens, {"Sources": 1}))
        return packed[-1]

    context = DeferredContext(pack, 9)
    assert not packed
    assert (context.text, context.n_tokens, context.n_left_out) == ("text", 9, {"Sources": 1})
    assert (context.shown, context.n_rows("Sources"), context.is_empty) == (
        {"Sources": {3}},
        1,
        False,
    )
    assert len(packed) == 1
    assert context.within(5).n_tokens == 5
    assert not hasattr(context, "none")


def test_rows_stand_in_sections_under_their_names() -> None:
    reports = pl.DataFrame({"id": [3], "title": ["Ice, and ships"], "summary": ['They "sailed"']})
    context = pack_sections(
        [Section("Sources", sources("One.", "Two."), 1), Section("Reports", reports, 1)], 500
    )
    assert context.text == (
        "-----Sources-----\nid,text\n10,One.\n11,Two.\n\n"
        '-----Reports-----\nid,title,summary\n3,"Ice, and ships","They ""sailed"""\n'
    )
    assert context.shown == {"Sources": {10, 11}, "Reports": {3}}
    assert context.n_left_out == {"Sources": 0, "Reports": 0}


def test_each_section_gets_its_share_the_best_rows_first() -> None:
    many = sources(*["word " * 20] * 50)
    context = pack_sections([Section("Sources", many, 3), Section("Claims", many, 1)], 1_000)
    n_sources, n_claims = (context.tables[name].height for name in ("Sources", "Claims"))
    assert 2 <= n_sources / n_claims <= 4
    assert context.tables["Sources"].equals(many.head(n_sources))
    assert context.n_left_out == {"Sources": 50 - n_sources, "Claims": 50 - n_claims}


def test_what_one_section_leaves_goes_to_the_others() -> None:
    many = Section("Sources", sources(*["word " * 20] * 50), 1)
    alone = pack_sections([many], 1_000)
    beside = pack_sections([Section("Reports", sources("Short."), 9), many], 1_000)
    assert beside.tables["Sources"].height >= alone.tables["Sources"].height - 3


def test_nothing_found_is_an_empty_context() -> None:
    context = pack_sections([Section("Sources", sources(), 1)], 1_000)
    assert context.is_empty
    assert context.text == ""
    assert context.n_tokens == 0


def test_a_text_longer_than_all_is_shortened() -> None:
    context = pack_sections([Section("Sources", sources("word " * 10_000), 1)], 400)
    assert context.tables["Sources"].height == 1
    assert count_tokens(context.text, load_encoding("o200k_base")) <= 400


@given(
    texts=st.lists(st.lists(st.text(max_size=60), max_size=12), max_size=4),
    max_tokens=st.integers(0, 300),
)
def test_the_budget_is_never_exceeded(texts: list[list[str]], max_tokens: int) -> None:
    shares = range(1, len(texts) + 1)
    sections = [
        Section(f"Section{share}", sources(*rows), share)
        for share, rows in zip(shares, texts, strict=True)
    ]
    context = pack_sections(sections, max_tokens)
    assert count_tokens(context.text, load_encoding("o200k_base")) <= context.n_tokens
    assert context.n_tokens <= max_tokens
    assert pack_sections(sections, max_tokens).text == context.text


QUESTION = "Where was Tom Crean born?"


def first_source(prompt: str) -> int:
    """The number of the first source in a prompt."""
    return int(prompt.partition("-----Sources-----\n")[2].splitlines()[1].partition(",")[0])


def from_first_source(request: Request) -> str:
    number = first_source(request.messages[-1]["content"])
    return f"Crean was born on a farm near Annascaul [Data: Sources ({number}, 999999)]."


def test_a_model_writes_from_what_fits_the_context(index: Index) -> None:
    llm = FakeLLM(from_first_source)
    answer = local_search(question_to(index, QUESTION, llm), LocalSearch())
    assert answer.text == "Crean was born on a farm near Annascaul [1]."
    assert answer.outcome is Outcome.ANSWERED
    assert "Annascaul" in answer.citations[0].quote
    assert answer.notes == ("1 citation was removed, because the context has no such row.",)
    assert answer.context is not None
    assert {"Sources", "Entities", "Relationships", "Reports"} <= set(answer.context.tables)
    [prompt] = llm.prompts_sent
    assert answer.context.text in prompt
    assert prompt.endswith(f"Question: {QUESTION}")


@pytest.mark.parametrize("max_tokens", [200, 1_000, 4_000])
def test_the_context_keeps_its_budget(index: Index, max_tokens: int) -> None:
    llm = FakeLLM(from_first_source)
    local_search(question_to(index, QUESTION, llm), LocalSearch(max_context_tokens=max_tokens))
    [request] = llm.asked
    asked = request.messages[-1]["content"]
    assert count_tokens(asked, load_encoding("o200k_base")) <= max_tokens + 20


def test_the_context_fits_the_window_of_the_model(index: Index) -> None:
    llm = FakeLLM(from_first_source, max_prompt_tokens=2_500)
    local_search(question_to(index, QUESTION, llm), LocalSearch(max_context_tokens=100_000))
    [prompt] = llm.prompts_sent
    assert count_tokens(prompt, load_encoding("o200k_base")) <= 2_500


def test_a_model_that_finds_no_record_is_no_evidence(index: Index) -> None:
    def nothing(request: Request) -> str:
        number = first_source(request.messages[-1]["content"])
        return f"NO_RECORD His shoe size is not told [Data: Sources ({number})]."

    llm = FakeLLM(nothing)
    answer = local_search(question_to(index, "Which shoe size had Tom Crean?", llm), LocalSearch())
    assert answer.outcome is Outcome.NO_EVIDENCE
    assert answer.text == "His shoe size is not told [1]."
    assert [citation.number for citation in answer.citations] == [1]


def test_a_name_that_is_nowhere_costs_no_call(index: Index) -> None:
    llm = FakeLLM(from_first_source)
    question = question_to(index, "What did Napoleon Bonaparte do at Waterloo?", llm)
    assert local_search(question, LocalSearch()).outcome is Outcome.NO_EVIDENCE
    assert llm.asked == []


def test_an_answer_that_cites_nothing_says_so(index: Index) -> None:
    llm = FakeLLM(lambda request: "Crean was born in 1877.")
    answer = local_search(question_to(index, QUESTION, llm), LocalSearch())
    assert answer.notes == ("The model cites no passage for this.",)


def test_citations_can_stay_as_microsoft_writes_them(index: Index) -> None:
    llm = FakeLLM(from_first_source)
    answer = local_search(question_to(index, QUESTION, llm, citations="data"), LocalSearch())
    assert "[Data: Sources (" in answer.text
    assert "999999" not in answer.text


# Over HTTP.


def answered(llm: ChatRequest) -> str:
    if "-----Sources-----" not in llm.texts[-1]:
        return f'{{"question": "{QUESTION}"}}'
    return f"Near Annascaul [Data: Sources ({first_source(llm.texts[-1])})]. " + "He went far. " * 9


@pytest.fixture
def asked(sample_project: Path) -> Iterator[tuple[Server, Index]]:
    with Server(answer=answered) as server, index_behind(server, sample_project) as index:
        yield server, index


def test_an_answer_is_streamed_with_its_citations_checked(asked: tuple[Server, Index]) -> None:
    _, index = asked
    sink = Pieces()
    answer = index.local(QUESTION, sink=sink)
    assert answer.text.startswith("Near Annascaul [1]. He went far.")
    assert "".join(sink.pieces).strip() == answer.text
    assert len(sink.pieces) > 3
    assert answer.usage.calls == 1
    assert answer.usage.prompt_tokens > 500
    assert answer.usage.cost is None


def test_a_stream_that_breaks_off_is_written_anew(asked: tuple[Server, Index]) -> None:
    server, index = asked
    server.faults = Faults(by_number=["close_half"])
    sink = Pieces()
    answer = index.local(QUESTION, sink=sink)
    assert answer.outcome is Outcome.ANSWERED
    assert "".join(sink.pieces).strip() == answer.text


@cases("kind, said")
def test_an_outage_never_reads_like_missing_evidence(
    asked: tuple[Server, Index], kind: str, said: str
) -> None:
    server, index = asked
    server.faults = Faults(rate=1.0, kinds=[kind])
    answer = index.local(QUESTION)
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert said in answer.text
    assert answer.citations == ()
    # When it is over, the same index answers.
    server.faults = Faults()
    assert index.local(QUESTION).outcome is Outcome.ANSWERED


def test_whoever_read_half_a_stream_is_told_why_there_is_no_more(
    asked: tuple[Server, Index],
) -> None:
    server, index = asked
    server.faults = Faults(rate=1.0, kinds=["close_half"])
    stream = index.stream("local", QUESTION)
    read = "".join(stream)
    assert stream.answer.outcome is Outcome.PROVIDER_ERROR
    assert read.startswith("Near Annascaul")
    assert read.endswith(f"\n\n{stream.answer.text}")


def test_an_answer_is_kept_if_nothing_suggests_further_questions(
    asked: tuple[Server, Index],
) -> None:
    server, index = asked
    search = index.settings.search.with_values({"follow_ups": 2})
    index.settings = index.settings.model_copy(update={"search": search})
    server.faults = Faults(by_number=[None], rate=1.0, kinds=["500"])
    answer = index.local(QUESTION)
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text.startswith("Near Annascaul [1].")
    assert answer.follow_ups == ()
    assert answer.usage.calls == 1
    [note] = answer.notes
    assert note.startswith("No questions are suggested")
    server.faults = Faults()
    assert index.local(QUESTION).outcome is Outcome.ANSWERED


def test_a_conversation_goes_on_after_an_outage(asked: tuple[Server, Index]) -> None:
    server, index = asked
    conversation = index.conversation()
    index.converse(conversation, QUESTION, "local")
    server.faults = Faults(rate=1.0, kinds=["500"])
    answer = index.converse(conversation, "And where did he die?", "local")
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert answer.notes[0].startswith("The question was not rewritten")
    server.faults = Faults()
    again = index.converse(conversation, "And where did he die?", "local")
    assert again.outcome is Outcome.ANSWERED
