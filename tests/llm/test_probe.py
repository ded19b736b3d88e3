"""Servers that refuse parts of requests: each part is found out, given up alone and remembered."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import ModelError, OutageError
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.client import probe_server
from graphrag_index.llm.probe import PROBE_MESSAGE
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import PLAIN_TEXT, Message, Request
from graphrag_index.schema.settings.models import ModelSettings
from tests.fixtures.chat_requests import Pieces, request, words_of_text
from tests.llm.conftest import OPENED
from tests.model_server import Faults, Server

Open = Callable[..., ChatModel]
REFUSALS = ("unsupported", "422", "500", "silent")


def ask(chat: ChatModel, *texts: str) -> list[Any]:
    chat._client.calls.first_delay = 0.01
    return list(chat.replies([request(text) for text in texts]))


def bodies(server: Server) -> list[dict[str, Any]]:
    return [asked.json for asked in server.requests if asked.body]


def n_probes(server: Server) -> int:
    return sum(PROBE_MESSAGE in body.get("messages", ()) for body in bodies(server))


def refusing(*kinds: str) -> Faults:
    return Faults(rate=1, kinds=kinds)


def form_of(body: dict[str, Any]) -> str:
    return str(body.get("response_format", {}).get("type") or ("tool" if "tools" in body else ""))


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize(
    ("lacks", "last"),
    [
        (["json_schema"], "tool"),
        (["json_schema", "tools"], "json_object"),
        (["json_schema", "tools", "json_object"], ""),
    ],
)
def test_a_refused_format_is_given_up_and_remembered(
    lacks: Sequence[str], last: str, refusal: str, open_model: Open
) -> None:
    faults = refusing(*(f"{refusal}:{name}" for name in lacks))
    with Server(answer=words_of_text, faults=faults) as server:
        assert ask(open_model(server, retry_seconds=600), "a b")[0].values == (["a", "b"],)
        assert form_of(bodies(server)[-1]) == last
        # Errors that name the format need no tiny requests.
        assert bool(n_probes(server)) == (refusal == "silent")
        n_sent = len(server.requests)
        assert ask(open_model(server), "c")[0].values == (["c"],)
        assert len(server.requests) == n_sent + 1


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("name", ["temperature", "max_tokens", "seed", "stream_options", "stream"])
def test_each_refused_parameter_is_given_up_alone(
    name: str, refusal: str, open_model: Open
) -> None:
    own = {"stream": True, "parameters": {"seed": 7, "top_p": 0.5}, "retry_seconds": 600}
    with Server(answer=words_of_text, faults=refusing(f"{refusal}:{name}")) as server:
        assert ask(open_model(server, **own), "a b")[0].values == (["a", "b"],)
        last = bodies(server)[-1]
        kept = {"temperature", "max_tokens", "seed", "top_p", "stream", "stream_options"}
        assert kept - last.keys() == {name, *(["stream_options"] if name == "stream" else [])}
        assert form_of(last) == "json_schema"
        n_sent = len(server.requests)
        assert ask(open_model(server, **own), "c")[0].values == (["c"],)
        assert len(server.requests) == n_sent + 1


def test_several_refused_parts_are_found_together(open_model: Open) -> None:
    lacks = ("temperature", "max_tokens", "json_schema", "stream_options")
    faults = refusing(*(f"silent:{name}" for name in lacks))
    with Server(answer=words_of_text, faults=faults) as server:
        (outcome,) = ask(open_model(server, stream=True, retry_seconds=600), "a b")
        assert outcome.values == (["a", "b"],)
        last = bodies(server)[-1]
    assert last.keys() == {
        "model",
        "messages",
        "max_completion_tokens",
        "stream",
        "tools",
        "tool_choice",
    }


def test_requests_that_fail_together_are_probed_for_once(open_model: Open) -> None:
    faults = refusing("silent:json_schema", "silent:temperature")
    with Server(answer=words_of_text, faults=faults, latency=0.05) as server:
        texts = [f"text {n}" for n in range(24)]
        outcomes = ask(open_model(server, concurrency=24, retry_seconds=600), *texts)
        assert [outcome.values for outcome in outcomes] == [(text.split(),) for text in texts]
        # One that is answered, three each for what is refused, one for the next format.
        assert n_probes(server) <= 8
        # Each request was sent once or twice.
        assert len(server.requests) - n_probes(server) <= 2 * len(texts)


def test_an_answer_is_streamed_by_a_server_that_refuses_options(open_model: Open) -> None:
    faults = refusing("silent:stream_options")
    with Server(answer=lambda chat: "Fire is hot.", faults=faults) as server:
        sink = Pieces()
        messages = [Message(role="user", content="Is it?")]
        asked = Request("question", messages, PLAIN_TEXT, sink=sink)
        chat = open_model(server, retry_seconds=600)
        chat._client.calls.first_delay = 0.01
        (outcome,) = chat.replies([asked])
        assert (outcome.values, sink.text) == (("Fire is hot.",), "Fire is hot.")
        assert bodies(server)[-1].keys() >= {"stream", "temperature", "max_tokens"}


def test_a_format_is_not_changed_against_the_settings(open_model: Open) -> None:
    with Server(answer=words_of_text, faults=refusing("silent:json_schema")) as server:
        chat = open_model(server, structured="json_schema", retry_seconds=600)
        (outcome,) = ask(chat, "a")
    assert "HTTP 500" in outcome.failure
    assert "set structured of this model to auto" in outcome.failure


def test_a_format_of_the_settings_that_is_ignored_is_told(open_model: Open) -> None:
    with Server(answer=words_of_text, faults=refusing("ignores:json_schema")) as server:
        chat = open_model(server, structured="json_schema")
        with pytest.raises(ModelError, match=r"answers, but not in the .* set structured"):
            chat._loop.run_coroutine(probe_server(chat._client, embeds=False))


@pytest.mark.parametrize("kind", ["429", "429_retry_after"])
def test_a_tiny_request_is_sent_again_after_a_rate_limit(kind: str, open_model: Open) -> None:
    with Server(faults=Faults(rate=1, kinds=[f"{kind}*1"], retry_after=0.1)) as server:
        chat = open_model(server)
        trials = chat._loop.run_coroutine(probe_server(chat._client, embeds=False))
    assert {trial.n_requests for trial in trials} == {2}


def test_a_server_that_answers_nothing_is_an_outage(open_model: Open) -> None:
    with Server(answer=words_of_text, faults=refusing("500")) as server:
        with pytest.raises(OutageError, match=r"has not answered for 0\.2 s"):
            ask(open_model(server, retry_seconds=0.2), "a")
        server.faults = Faults()
        ask(open_model(server), "b")
        assert form_of(bodies(server)[-1]) == "json_schema"


def test_failures_at_random_give_up_nothing(open_model: Open) -> None:
    for seed in range(8):
        faults = Faults(rate=0.3, kinds=["500"], redraw=True, seed=seed)
        with Server(answer=words_of_text, faults=faults) as server:
            own = {"parameters": {"seed": seed}, "temperature": 0.5}
            outcomes = ask(open_model(server, **own), *"abcdef")
            assert [outcome.values for outcome in outcomes] == [([text],) for text in "abcdef"]
            last = bodies(server)[-1]
            assert (form_of(last), last["temperature"], last["seed"]) == ("json_schema", 0.5, seed)


def test_a_request_that_always_fails_is_quarantined_though_it_is_the_first(
    open_model: Open,
) -> None:
    faults = Faults(by_text={"poison": "500"})
    with Server(answer=words_of_text, faults=faults) as server:
        chat = open_model(server, retry_seconds=600, concurrency=1)
        (outcome,) = ask(chat, "poison")
        assert "failed 6 times: HTTP 500" in outcome.failure
        (outcome,) = ask(chat, "a")
        assert outcome.values == (["a"],)
        assert form_of(bodies(server)[-1]) == "json_schema"


def test_no_tiny_request_is_sent_once_a_request_is_answered(open_model: Open) -> None:
    with Server(answer=words_of_text) as server:
        chat = open_model(server)
        ask(chat, "a")
        server.faults = Faults(rate=1, kinds=["500"], attempts=2)
        assert ask(chat, "b")[0].values == (["b"],)
        assert len(server.requests) == 4
        assert n_probes(server) == 0


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("name", ["encoding_format", "dimensions"])
def test_a_refused_parameter_of_vectors_is_given_up(
    name: str, refusal: str, tmp_path: Path
) -> None:
    with Server(dimensions=8, faults=refusing(f"{refusal}:{name}")) as server:
        settings = ModelSettings(
            model="test-embedding", base_url=server.url, dimensions=8, retry_seconds=600
        )
        OPENED.append(Models({"embedding": settings}, tmp_path))
        model = OPENED[-1].open_embedding_model("embedding", "step")
        assert model.embed(["a", "b"]).shape == (2, 8)
        last = bodies(server)[-1]
    assert name not in last
    assert {"dimensions", "encoding_format"} - last.keys() == {name}


def test_a_wrong_key_is_no_refused_part(tmp_path: Path) -> None:
    with Server(api_keys=["another"]) as server:
        settings = ModelSettings(model="test-model", base_url=server.url, api_key="mine")
        OPENED.append(Models({"chat": settings}, tmp_path, check=False))
        chat = OPENED[-1].open_chat_model("chat", "step")
        with pytest.raises(ModelError, match="does not accept the key"):
            list(chat.replies([request("a")]))
        assert n_probes(server) == 0
