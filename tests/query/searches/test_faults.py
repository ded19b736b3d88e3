"""What searches say when a model does not answer, or not to the end, over HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import graphrag_query
from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.project_settings import load_settings
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.cited_text import CitedText
from graphrag_query.answering.written_answer import OUTPUT_LIMIT_NOTE, describe_citation_errors
from graphrag_query.index import Index
from graphrag_query.terminal import summarize_answer
from tests.fixtures.commands import ask
from tests.model_server import Faults, Server

SEARCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "local": ("Who was Tom Crean?", {}),
    "basic": ("Which fossil plant was found?", {}),
    "global": (
        "How did the expeditions fight scurvy?",
        {"selection": "level", "level": 0, "max_context_tokens": 2_000},
    ),
    "drift": ("How did scurvy shape the expeditions?", {"rounds": 1}),
    "lazy": ("How did dogs and ponies serve the expeditions?", {"budget": 10}),
    "ask": ("What did Tom Crean do in the war?", {}),
    "path": ("How is Tom Crean connected to Fridtjof Nansen?", {}),
}


def options(server: Server, *more: str) -> list[str]:
    """Settings by which the server writes and rates, as two models."""
    of_both = f"base_url: '{server.url}', retry_seconds: 0.2, timeout: 0.5"
    return [
        f"models.chat={{model: writer, {of_both}}}",
        f"models.rating={{model: rater, {of_both}}}",
        "search.model=chat",
        "search.rating_model=rating",
        *more,
    ]


@pytest.fixture
def index(sample_project: Path, model_server: Server) -> Iterator[Index]:
    settings = load_settings(sample_project, options(model_server))
    with graphrag_query.open(sample_project / "output", settings, sample_project) as opened:
        yield opened


def asked_of(server: Server, store: str) -> int:
    return sum(request.json.get("model") == store for request in server.requests if request.body)


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        *((method, "500") for method in SEARCHES),
        *(("local", "401"), ("global", "401"), ("drift", "hang"), ("ask", "hang")),
        *(("lazy", "close_half"), ("path", "close_half"), ("basic", "truncated_json")),
    ],
)
def test_an_outage_tells_what_was_looked_at(
    index: Index, model_server: Server, method: str, kind: str
) -> None:
    question, values = SEARCHES[method]
    model_server.faults = Faults(rate=1.0, kinds=[kind])
    answer = index.search(method, question, **values)
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert answer.parameters
    # Lazy search asks for sub-queries before it looks at anything.
    assert any(answer.looked_at.values()) == (method != "lazy")
    assert "looked at" in summarize_answer(answer)


@pytest.mark.parametrize("method", SEARCHES)
@pytest.mark.parametrize("kind", ["500", "length"])
def test_where_some_calls_fail_no_failure_reads_as_an_empty_corpus(
    index: Index, model_server: Server, method: str, kind: str
) -> None:
    question, values = SEARCHES[method]
    model_server.faults = Faults(rate=0.5, kinds=[kind], seed=3)
    answer = index.search(method, question, **values)
    failed = sum(n for name, n in answer.looked_at.items() if name.endswith("_failed"))
    if answer.outcome is Outcome.NO_EVIDENCE:
        assert any("failed" in note for note in answer.notes) == bool(failed)
    assert any(answer.looked_at.values()) or answer.outcome is Outcome.PROVIDER_ERROR


@pytest.mark.parametrize(
    ("name", "limits"), [("chat", "max_output_tokens: 7900"), ("rating", "max_output_tokens: 6801")]
)
def test_a_context_window_without_room_for_a_prompt_is_told(
    sample_project: Path, model_server: Server, name: str, limits: str
) -> None:
    window = f"models.{name}={{model: m, base_url: '{model_server.url}', context_window: 8000, "
    settings = load_settings(sample_project, options(model_server, window + limits + "}"))
    with (
        graphrag_query.open(sample_project / "output", settings, sample_project) as index,
        pytest.raises(SettingsError, match=f"models.{name} .* lower max_output_tokens"),
    ):
        index.lazy("Who was Tom Crean?")


@pytest.mark.parametrize("kind", ["500", "hang"])
def test_ask_waits_for_an_endpoint_once(index: Index, model_server: Server, kind: str) -> None:
    question, _ = SEARCHES["ask"]
    model_server.faults = Faults(rate=1.0, kinds=[kind])
    answer = index.ask(question)
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert "chosen by rules" in answer.notes[1]
    assert asked_of(model_server, "rater") > 0
    assert asked_of(model_server, "writer") == 0
    # When it answers again, the next question is asked of it.
    model_server.faults = Faults()
    assert index.ask(question).outcome is Outcome.ANSWERED


def test_a_question_of_a_conversation_waits_once_too(index: Index, model_server: Server) -> None:
    conversation = index.conversation()
    index.converse(conversation, "Who was Tom Crean?", "local")
    n_before = asked_of(model_server, "writer")
    model_server.faults = Faults(rate=1.0, kinds=["500"])
    answer = index.converse(conversation, "Where was he born?", "local")
    assert answer.outcome is Outcome.PROVIDER_ERROR
    assert asked_of(model_server, "writer") == n_before


def test_a_rating_model_elsewhere_takes_none_along(
    sample_project: Path, model_server: Server
) -> None:
    with Server(faults=Faults(rate=1.0, kinds=["500"])) as down:
        elsewhere = f"models.rating={{model: rater, base_url: '{down.url}', retry_seconds: 0.2}}"
        settings = load_settings(sample_project, options(model_server, elsewhere))
        with graphrag_query.open(sample_project / "output", settings, sample_project) as index:
            answer = index.ask(SEARCHES["ask"][0])
    assert answer.outcome is Outcome.ANSWERED
    assert "chosen by rules" in answer.notes[1]


@pytest.mark.parametrize("method", ["local", "basic", "global", "path"])
def test_an_answer_that_was_cut_off_says_so(
    index: Index, model_server: Server, method: str
) -> None:
    question, values = SEARCHES[method]
    whole = index.search(method, question, **values)
    assert OUTPUT_LIMIT_NOTE not in whole.notes
    model_server.faults = Faults(rate=1.0, kinds=["length"])
    answer = index.search(method, f"{question} All of it?", **values)
    assert OUTPUT_LIMIT_NOTE in answer.notes
    assert answer.outcome is Outcome.ANSWERED


def test_the_exit_code_of_an_outage_is_1(sample_project: Path, model_server: Server) -> None:
    model_server.faults = Faults(rate=1.0, kinds=["500"])
    more = [text for option in options(model_server) for text in ("--set", option)]
    result = ask("local", "Who was Tom Crean?", "--root", str(sample_project), *more)
    assert result.returncode == 1
    assert "provider_error: looked at 10 entities" in result.stdout
    assert "ask again when it does." in result.stdout
    assert not result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chat", "--method", "nosuch"], "There is no search 'nosuch'. Choose one of ask, local,"),
        (["chat", "--session", "."], ". is a folder: name a file with --session."),
        (["local", "Who?", "--session", "."], ". is a folder: name a file with --session."),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(
    sample_project: Path, arguments: list[str], said: str
) -> None:
    result = ask(*arguments, "--root", str(sample_project))
    assert result.returncode == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_counts_of_one_are_written_as_one() -> None:
    looked_at = {"sub_queries": 1, "text_units": 2, "communities": 1, "map_calls_failed": 1}
    answer = Answer("Who?", "", Outcome.ANSWERED, "lazy", looked_at=looked_at)
    counted = "looked at 1 sub query, 2 text units, 1 community, 1 map call failed"
    assert counted in summarize_answer(answer)


@pytest.mark.parametrize(("n_quoted", "n_notes"), [(2, 2), (4, 4), (5, 4), (40, 4)])
def test_of_many_quotations_that_are_not_there_few_are_told(
    sample_project: Path, n_quoted: int, n_notes: int
) -> None:
    lines = [f"“He sang song number {n} loudly” [Data: Sources (0)]" for n in range(n_quoted)]
    cited = CitedText(graphrag_query.open(sample_project / "output").store, {"Sources": {0}})
    cited.add_piece("\n\n".join(lines), is_last=True)
    notes = describe_citation_errors(cited)
    assert len(notes) == n_notes
    if n_quoted > n_notes:
        assert notes[-1].startswith(f"{n_quoted - 3} more quotations")
