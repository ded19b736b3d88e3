"""Request bodies adapted to the server; streams; Azure; errors and durations in headers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.client import StreamedReply, read_events
from graphrag_index.llm.limits import parse_duration, retry_after
from graphrag_index.llm.protocol import RESPONSE_FORMATS, RequestWriter, read_chat
from graphrag_index.llm.registry import Models
from graphrag_index.llm.reply_parser import VisibleText
from graphrag_index.llm.request import PLAIN_TEXT, Message, Outcome, Reply, Request, Usage
from graphrag_index.llm.retries import RetryError, UnsupportedError, redact
from graphrag_index.schema.settings.models import ModelSettings
from tests.fixtures.chat_requests import WORDS, Pieces, words_of_text
from tests.llm.conftest import OPENED
from tests.model_server import ChatRequest, Faults, Server

Open = Callable[..., ChatModel]


def ask(server: Server, output: Path, *texts: str, **settings: Any) -> list[Outcome]:
    values = {"model": "test-model", "base_url": server.url, "timeout": 1.0, **settings}
    OPENED.append(Models({"chat": ModelSettings.model_validate(values)}, output))
    chat = OPENED[-1].open_chat_model("chat", "step")
    system = Message(role="system", content="List the words.")
    return list(
        chat.replies(
            Request(text, [system, Message(role="user", content=text)], WORDS) for text in texts
        )
    )


def bodies(server: Server) -> list[dict[str, Any]]:
    return [json.loads(asked.body) for asked in server.requests if "chat" in asked.path]


@pytest.mark.parametrize("structured", RESPONSE_FORMATS)
def test_every_response_format_has_the_same_value(structured: str, tmp_path: Path) -> None:
    with Server(answer=words_of_text) as server:
        (outcome,) = ask(server, tmp_path, "a b", structured=structured)
        assert outcome.values == (["a", "b"],)
        (body,) = bodies(server)
    has = {"response_format", "tools"} & set(body)
    assert has == {"json_schema": {"response_format"}, "tool": {"tools"},
                   "json_object": {"response_format"}, "text": set()}[structured]  # fmt: skip


def test_an_ignored_format_is_described_in_words(tmp_path: Path) -> None:
    def heedless(chat: ChatRequest) -> str:
        told = WORDS.instructions in "".join(chat.texts)
        return json.dumps({"words": ["a"]}) if told else "The words are as follows: a."

    with Server(answer=heedless) as server:
        outcomes = ask(server, tmp_path, *"abcdefgh", concurrency=1)
        assert [outcome.values for outcome in outcomes] == [(["a"],)] * 8
        # Three were asked twice with a schema, three with a tool, and one each was on its way.
        n_asked = len(bodies(server))
        assert n_asked <= 8 + 2 * (3 + 1)
        assert bodies(server)[-1]["response_format"] == {"type": "json_object"}
        ask(server, tmp_path, "i")
        assert len(bodies(server)) == n_asked + 1


def test_one_invalid_reply_keeps_the_response_format(tmp_path: Path) -> None:
    # The first number is that of the list of models.
    faults = Faults(by_number=[None, None, *["wrong_schema"] * 3])
    with Server(answer=words_of_text, faults=faults) as server:
        ask(server, tmp_path, *"abcdef", concurrency=1)
        assert all("json_schema" in body["response_format"] for body in bodies(server))


@pytest.mark.parametrize("reason", ["Invalid value: 'lo'. Supported are low, high. effort",
                                    "The upstream provider failed."])  # fmt: skip
def test_an_error_about_no_parameter_drops_none(reason: str, tmp_path: Path) -> None:
    settings = {"base_url": "http://127.0.0.1:9", "parameters": {"effort": "lo"}}
    OPENED.append(Models({"chat": ModelSettings(model="m", **settings)}, tmp_path))
    writer = RequestWriter("chat", ModelSettings(model="m", **settings), OPENED[-1].ledger)
    body = writer.chat_body([], WORDS, 10, stream=True)
    assert not writer.adapt_to_error(UnsupportedError(reason), body, writer.capabilities)


def test_all_tool_calls_of_a_reply_are_read() -> None:
    calls = [{"function": {"arguments": arguments}} for arguments in ('{"a": 1}', {"b": "it's"})]
    message = {"content": None, "tool_calls": [*calls, {"function": {"arguments": None}}, {}]}
    reply = read_chat({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    assert reply.text == '{"a": 1}\n{"b": "it\'s"}'


@pytest.mark.parametrize("choice", ["x", {"message": "x"}, {"message": {"tool_calls": 5}}])
def test_a_malformed_reply_is_retryable(choice: Any) -> None:
    for event in ({"choices": [choice]}, {"choices": 5}, [choice]):
        with pytest.raises(RetryError, match="contains no reply"):
            read_chat(event)
        with pytest.raises(RetryError, match="contains an invalid event"):
            StreamedReply().add_event(event)


@pytest.mark.parametrize("bad", ["n/a", [], float("inf"), None])
def test_an_invalid_number_of_tokens_counts_as_none(bad: Any) -> None:
    usage = {"prompt_tokens": bad, "prompt_tokens_details": bad, "completion_tokens": 3}
    reply = {"choices": [{"message": {"content": 5}}], "usage": usage}
    assert read_chat(reply) == Reply("", "stop", Usage(0, 0, 3))
    assert read_chat({**reply, "usage": bad}).usage == Usage()


def test_a_stream_is_joined_and_counted(tmp_path: Path) -> None:
    with Server(answer=words_of_text) as server:
        (outcome,) = ask(server, tmp_path, "a b c", stream=True)
        assert outcome.values == (["a", "b", "c"],)
        assert bodies(server)[0]["stream"] is True
        status = OPENED[-1].ledger.step_statuses()
        assert status[0].prompt_tokens > 0
        assert status[0].completion_tokens > 0


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize(
    ("content", "reasoning", "words"),
    [
        ("", '{"words": ["a"]}', ["a"]),
        (None, 'I think.\n\n{"words": ["a"]}', ["a"]),
        ('{"words": ["a"]}', '{"words": ["b"]}', ["a"]),
        ("", "The words may be a, b or c.", None),
    ],
)
def test_an_answer_that_is_sent_as_reasoning_is_read(
    name: str, stream: bool, content: Any, reasoning: str, words: Any, tmp_path: Path
) -> None:
    """SGLang and vLLM do so if a model was told not to reason; LM Studio for JSON."""
    parts = [{name: reasoning[:5]}, {name: reasoning[5:], "content": content}]
    ends = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    sent = [json.dumps(event) for event in (*({"choices": [{"delta": p}]} for p in parts), ends)]
    answer: Any = "".join(f"data: {event}\n\n" for event in sent).encode()
    if not stream:
        answer = {"choices": [{"message": {name: reasoning, "content": content}}]}
    with Server(refuse=lambda endpoint, _: (200, answer) if "chat" in endpoint else None) as server:
        (outcome,) = ask(server, tmp_path, "a", stream=stream)
    if words is None:
        assert outcome.failure == "the reply is invalid: it contains reasoning and no answer"
    else:
        assert outcome.values == (words,)


def events(*chunks: bytes) -> list[Any]:
    async def main() -> list[Any]:
        async def stream() -> AsyncIterator[bytes]:
            for chunk in chunks:
                yield chunk

        return [event async for event in read_events(stream())]

    return asyncio.run(main())


def test_server_sent_events_are_parsed_from_any_chunks() -> None:
    assert events(b'data: {"a"', b': 1}\r\n\r\n: ping\n\ndata: {"b":\ndata: 2}\n', b"\n") == [
        {"a": 1},
        {"b": 2},
    ]
    assert events(b"event: x\ndata: 1\n\ndata: [DONE]\n\ndata: 2\n\n") == [1]
    assert events(b"data: 3") == [3]


def test_an_error_in_a_stream_is_retryable(tmp_path: Path) -> None:
    answers = [(200, b'data: {"error": {"message": "overloaded"}}\n\n')]
    with Server(answer=words_of_text) as server:
        server.refuse = lambda endpoint, _: (
            answers.pop() if "chat" in endpoint and answers else None
        )
        (outcome,) = ask(server, tmp_path, "a b", stream=True)
        assert outcome.values == (["a", "b"],)
        assert not answers


def test_a_stream_times_out_only_between_two_pieces(tmp_path: Path) -> None:
    # Longer than the timeout in all, but never without a piece for so long.
    with Server(answer=words_of_text, chunk_delay=0.05) as server:
        text = " ".join(f"word{n}" for n in range(30))
        (outcome,) = ask(server, tmp_path, text, stream=True, timeout=0.4)
        assert outcome.values == (text.split(),)
        assert len(bodies(server)) == 1
        # The first request is for the list of models.
        server.faults = Faults(by_number=[None, "stream_hang"])
        (outcome,) = ask(server, tmp_path, text[:-1], stream=True, timeout=0.4)
        assert outcome.values == (text[:-1].split(),)
        assert len(bodies(server)) == 3


def test_azure_is_asked_by_deployment_with_its_own_header(tmp_path: Path) -> None:
    with Server(answer=words_of_text, api_keys=["azure-key"]) as server:
        (outcome,) = ask(
            server,
            tmp_path,
            "a b",
            provider="azure",
            base_url=server.origin,
            deployment="mine",
            api_key="azure-key",
        )
        assert outcome.values == (["a", "b"],)
        assert server.requests[-1].path == "/openai/deployments/mine/chat/completions"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5", 1.5), ("120ms", 0.12), ("2s", 2.0), ("6m0s", 360.0), ("1h2m", 3720.0), ("", None),
     ("soon", None), ("5x", None), ("-3", 0.0)],
)  # fmt: skip
def test_durations_in_headers_are_parsed(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


def test_every_header_for_a_delay_is_parsed() -> None:
    assert retry_after({"retry-after": "3"}) == 3
    assert retry_after({"retry-after-ms": "250", "retry-after": "3"}) == 0.25
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "tomorrow"}) is None
    assert retry_after({}) is None


def test_a_key_is_redacted_in_messages_of_the_server() -> None:
    said = redact("Incorrect API key provided: sk-abcdef123456. Bearer abcdef123456", "secret-1")
    assert "abcdef" not in said
    assert said == "Incorrect API key provided: sk-***. Bearer ***"
    assert redact("wrong: secret-1!", "secret-1") == "wrong: ***!"
    assert redact("key_not_found, key ab**yz, Bearer token", "") == (
        "key_not_found, key ***, Bearer token"
    )


TEXT = "Crean was born in Annascaul. " * 20


def ask_for_text(chat: ChatModel, sink: Pieces | None) -> Outcome:
    messages = [Message(role="user", content="Who was Crean?")]
    [outcome] = chat.replies([Request("Crean", messages, PLAIN_TEXT, sink=sink)])
    return outcome


@pytest.fixture(params=["", "<think>Who was he?\n</think>\n\n"], ids=["plain", "thinking"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with Server(answer=lambda chat: request.param + TEXT) as server:
        yield server


def test_a_streamed_text_reaches_the_sink_in_pieces(server: Server, open_model: Open) -> None:
    sink = Pieces()
    outcome = ask_for_text(open_model(server), sink)
    assert outcome.values == (TEXT.strip(),)
    assert sink.text == TEXT
    assert len(sink.pieces) > 5
    assert outcome.spent.calls == 1
    assert outcome.spent.usage.completion > 0


def test_without_a_sink_the_reply_is_not_streamed(server: Server, open_model: Open) -> None:
    assert ask_for_text(open_model(server), None).values == (TEXT.strip(),)


def test_a_broken_stream_is_retried(open_model: Open) -> None:
    with Server(answer=lambda chat: TEXT, faults=Faults(by_number=["close_half"])) as server:
        sink = Pieces()
        assert ask_for_text(open_model(server), sink).values == (TEXT.strip(),)
    assert sink.text == TEXT


class ClosedPipe(Pieces):
    def write(self, piece: str) -> None:
        raise BrokenPipeError


def test_an_error_of_the_sink_is_no_error_of_the_server(server: Server, open_model: Open) -> None:
    with pytest.raises(BrokenPipeError):
        ask_for_text(open_model(server), ClosedPipe())
    assert len(server.requests) == 1


@given(
    thoughts=st.sampled_from(["", "<think>so { </b>\n</think>\n", "  <thinking>a\n</thinking> "]),
    text=st.text(min_size=1).filter(lambda text: text.strip()[:1] not in "<[◁"),
    cuts=st.lists(st.integers(1, 9)),
)
def test_no_piece_of_a_stream_is_lost(thoughts: str, text: str, cuts: list[int]) -> None:
    sink = Pieces()
    visible = VisibleText(sink)
    rest = thoughts + text
    for cut in cuts:
        visible.write(rest[:cut])
        rest = rest[cut:]
    visible.write(rest)
    visible.end()
    assert sink.text.strip() == text.strip()


def test_a_broken_stream_restarts_the_sink() -> None:
    sink = Pieces()
    visible = VisibleText(sink)
    visible.write("Half of a")
    visible.end(broken=True)
    assert sink.restarts == 1
