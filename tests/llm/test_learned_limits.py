"""Limits of servers that are learned, and errors and texts as real servers send them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.embeddings import MIN_PIECE_CHARS, normalize_vector
from graphrag_index.llm.ledger import QuarantinedRequest
from graphrag_index.llm.limits import read_length_refusal
from graphrag_index.llm.protocol import (
    error_in_body,
    error_message,
    parse_json,
    read_chat,
    read_embeddings,
)
from graphrag_index.llm.request import PLAIN_TEXT, Request, cut_text
from graphrag_index.llm.retries import RetryError
from tests.fixtures.chat_requests import Pieces, refuses, request, words_of_text
from tests.fixtures.commands import REPOSITORY
from tests.fixtures.model_project import run, write_project
from tests.fixtures.small_index import read_table
from tests.llm.conftest import embedding
from tests.model_server import ChatRequest, Server
from tests.model_server.chat import Json
from tests.model_server.embeddings import embed

Open = Callable[..., ChatModel]
# Limits in the wordings of OpenAI, Azure, vLLM, llama.cpp, TEI, TGI, LM Studio, Mistral, Cohere,
# Google, Bedrock, Anthropic, Jina, Voyage, DashScope, DeepSeek, Moonshot, Groq, OpenRouter.
NAMED: list[tuple[int, str]] = [
    (
        4097,
        "This model's maximum context length is 4097 tokens. However, you requested 5360 "
        "tokens (1360 in the messages, 4000 in the completion). Please reduce the length of "
        "the messages or completion.",
    ),
    (
        128000,
        "This model's maximum context length is 128000 tokens. However, your messages "
        "resulted in 130000 tokens. Please reduce the length of the messages.",
    ),
    (
        8192,
        "This model's maximum context length is 8192 tokens, however you requested 9000 "
        "tokens (9000 in your prompt; 0 for the completion). Please reduce your prompt; or "
        "completion length.",
    ),
    (
        8192,
        "Invalid 'input[0]': maximum input length is 8192 tokens.",
    ),
    (
        300000,
        "Invalid 'input': maximum request size is 300000 tokens per request.",
    ),
    (
        4096,
        "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum "
        "context length is 4096 tokens and your request has 3500 input tokens (1000 > 4096 - "
        "3500).",
    ),
    (
        4096,
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. "
        "Make sure that `max_model_len` is no smaller than the number of text tokens.",
    ),
    (
        4096,
        "You passed 5001 input tokens and requested 1000 output tokens. However, the model's "
        "context length is only 4096 tokens, resulting in a maximum input length of 3096 "
        "tokens. Please reduce the length of the input prompt.",
    ),
    (
        4096,
        "request (5036 tokens) exceeds the available context size (4096 tokens), try increasing it",
    ),
    (
        512,
        "input (700 tokens) is too large to process. increase the physical batch size "
        "(current batch size: 512)",
    ),
    (
        512,
        "Input validation error: `inputs` must have less than 512 tokens. Given: 700",
    ),
    (
        4096,
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: "
        "3500 `inputs` tokens and 1000 `max_new_tokens`",
    ),
    (
        4096,
        "Trying to keep the first 5036 tokens when context the overflows. However, the model "
        "is loaded with context length of only 4096 tokens, which is not enough. Try to load "
        "the model with a larger context length, or provide a shorter input",
    ),
    (
        32768,
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
        "maximum context length",
    ),
    (
        8192,
        "Input id 0 has 9000 tokens, exceeding max 8192 tokens.",
    ),
    (
        128000,
        "too many tokens: size limit exceeded by 2000 tokens. Try using shorter or fewer "
        "inputs. The limit for this model is 128000 tokens.",
    ),
    (
        4081,
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
    ),
    (
        1048576,
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    (
        32768,
        "Unable to submit request because the input token count is 40000 but the model only "
        "supports up to 32768. Reduce the input token count and try again.",
    ),
    (
        8192,
        "400 Bad Request: Too many input tokens. Max input tokens: 8192, request input token "
        "count: 9000",
    ),
    (
        50000,
        "Malformed input request: expected maxLength: 50000, actual: 60000, please reformat "
        "your input and try again.",
    ),
    (
        4096,
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a "
        "maximum tokens value that is lower than 4096.",
    ),
    (
        200000,
        "prompt is too long: 210000 tokens > 200000 maximum",
    ),
    (
        200000,
        "input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, "
        "decrease input length or `max_tokens` and try again",
    ),
    (
        8192,
        "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for "
        "claude-3",
    ),
    (
        8194,
        "Single text cannot exceed 8194 tokens. 10340 tokens given.",
    ),
    (
        4000,
        "The example at index 0 in your batch has too many tokens and does not fit into the "
        "model's context window of 4000 tokens. Please lower the number of tokens in the "
        "listed example(s) or use truncation.",
    ),
    (
        120000,
        "Request to model 'voyage-2' failed. The max allowed tokens per submitted batch is "
        "120000. Your batch has 150000 tokens after truncation.",
    ),
    (
        512,
        "Range of input length should be [1, 512]",
    ),
    (
        8192,
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 8192]",
    ),
    (
        8192,
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
    ),
    (
        8192,
        "Invalid request: Your request exceeded model token limit: 8192",
    ),
    (
        512,
        "input must have less than 512 tokens",
    ),
    (
        131072,
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
    ),
    (
        131072,
        "The prompt is too long: 140000, model maximum context length: 131072",
    ),
    (
        6000,
        "Request too large for model `llama-3.1-8b-instant` in organization `org_01` service "
        "tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 9000, please "
        "reduce your message size and try again.",
    ),
    (
        32768,
        "This endpoint's maximum context length is 32768 tokens. However, you requested about"
        " 40000 tokens (38000 of text input, 2000 in the output).",
    ),
    (
        8192,
        "Please reduce the length of the messages or completion. Current length is 9000 while"
        " limit is 8192",
    ),
    (
        8000,
        "Request body too large for gpt-4o model. Max size: 8000 tokens.",
    ),
    (
        512,
        "Input length 600 exceeds maximum allowed token size 512",
    ),
    (
        4096,
        "Requested tokens (5000) exceed context window of 4096",
    ),
    (
        16384,
        "max_tokens is too large: 100000. This model supports at most 16384 completion "
        "tokens, whereas you provided 100000.",
    ),
    (
        20480,
        "the max input characters is 20480",
    ),
    (
        1000000,
        "The input token count (1,200,000) exceeds the maximum number of tokens allowed "
        "(1,000,000).",
    ),
]
UNNAMED = [
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "the request exceeds the available context size. try increasing the context "
    "size or enable context shift",
    "input is too large to process. increase the physical batch size",
    "the input length exceeds the context length",
    "batch size 64 > maximum allowed batch size 32",
    "The number of tokens to keep from the initial prompt is greater than the context length.",
    "Input is too long for requested model.",
    "temperature must be less than 2",
    "Rate limit reached for requests. Please try again later.",
    "Unsupported parameter: 'max_tokens' is not supported with this model. "
    "Use 'max_completion_tokens' instead.",
    "Prompt 超长",
    "Rate limit reached on tokens per min (TPM): Limit 40, Used 39, Requested 12.",
    "Incorrect API key provided.",
    "context deadline exceeded (limit 600 seconds)",
    "context deadline exceeded; request id 123456",
    "Invalid 'input': array too long. Expected an array with maximum length 2048.",
    "'messages' must contain the word 'json' in some form.",
]


@pytest.mark.parametrize(("limit", "message"), NAMED)
def test_a_limit_is_read_in_the_words_of_a_server(limit: int, message: str) -> None:
    found = read_length_refusal(message)
    assert found is not None
    assert found.limit == limit


@pytest.mark.parametrize("message", UNNAMED)
def test_other_messages_name_no_limit_of_length(message: str) -> None:
    assert read_length_refusal(message) is None


def test_only_a_request_that_exceeds_a_rate_by_itself_is_too_long() -> None:
    rate = "on tokens per min (TPM): Limit 40000, {}. Please try again in 2s."
    for said, is_final in (("Used 39900, Requested 1200", False), ("Requested 41000", True)):
        found = read_length_refusal(rate.format(said))
        assert found is not None
        assert found.is_final == is_final


def long_request(n_words: int) -> Request:
    """A request for a list of words, which keeps four fifths of them when it is shortened."""
    shorter = n_words * 4 // 5
    text = " ".join(f"word{n:04}" for n in range(n_words))
    return request(text, shorten=lambda: long_request(shorter) if shorter > 9 else None)


def count_words(chat: ChatRequest) -> str:
    return json.dumps({"words": [str(len(chat.texts[-1].split()))]})


@pytest.mark.parametrize(
    ("message", "n_refused"),
    [
        ("This model's maximum context length is 1500 tokens, your prompt has {} tokens.", 1),
        ("request ({} tokens) exceeds the available context size (1500 tokens)", 1),
        ("Das war zu viel.", 3),
    ],
)
def test_a_refused_prompt_is_sent_shorter_and_the_limit_is_kept(
    message: str, n_refused: int, tmp_path: Path, open_model: Open
) -> None:
    def statuses(server: Server) -> list[int | None]:
        """Without the tiny requests that find out which parts of a request are refused."""
        return [asked.status for asked in server.requests if b"word0" in asked.body]

    with Server(answer=count_words, refuse=refuses(4000, message)) as server:
        chat = open_model(server, max_output_tokens=400)
        (outcome,) = chat.replies([long_request(1000)])
        assert not outcome.failure
        assert 150 < int(outcome.values[0][0]) < 450
        *before, last = statuses(server)
        assert (set(before), last) == ({400}, 200)
        assert len(before) <= n_refused
        # The next run sends nothing.
        again = open_model(server, max_output_tokens=400)
        assert list(again.replies([long_request(1000)])) == [outcome]
        assert len(statuses(server)) == len(before) + 1
        # Another prompt fits at once, or soon if the server names no limit.
        (other,) = again.replies([long_request(1300)])
        assert not other.failure
        assert len(statuses(server)) - len(before) <= 1 + n_refused
        assert chat.ledger.quarantined_requests(["step"]) == []


def test_what_is_refused_at_every_length_is_quarantined_once(open_model: Open) -> None:
    with Server(answer=words_of_text, refuse=refuses(10, "No.")) as server:
        chat = open_model(server)
        (outcome,) = chat.replies([long_request(100)])
        assert outcome.failure == "HTTP 400: No."
        assert len(chat.ledger.quarantined_requests(["step"])) == 1
        assert chat.tokens.refused is None
        n_sent = len(server.requests)
        assert [o.failure for o in chat.replies([long_request(100)])] == ["HTTP 400: No."]
        assert len(server.requests) == n_sent


def test_usage_teaches_how_a_server_counts(open_model: Open) -> None:
    def refuse(endpoint: str, body: Json) -> tuple[int, Json]:
        text = body["messages"][-1]["content"]
        message = {"content": json.dumps({"words": [str(len(text.split()))]})}
        usage = {"prompt_tokens": 2 * len(text) // 3, "completion_tokens": 9}
        return 200, {"choices": [{"message": message}], "usage": usage}

    with Server(refuse=refuse) as server:
        chat = open_model(server, context_window=4000, max_output_tokens=400)
        (short,) = chat.replies([long_request(300)])
        (long,) = chat.replies([long_request(1000)])
    assert short.values == (["300"],)
    assert chat.tokens.ratio > 1.8
    # 9,000 characters are 6,000 of its tokens.
    assert 400 < int(long.values[0][0]) < 650


def test_a_reply_limit_that_a_server_names_is_kept(open_model: Open) -> None:
    def refuse(endpoint: str, body: Json) -> tuple[int, Json] | None:
        most = body.get("max_tokens") or body.get("max_completion_tokens")
        said = f"max_tokens is too large: {most}. This model supports at most 900 completion tokens"
        return (400, {"error": {"message": said}}) if not most or most > 900 else None

    with Server(answer=words_of_text, refuse=refuse) as server:
        outcomes = list(open_model(server).replies([request("a b"), request("c")]))
    assert [outcome.values for outcome in outcomes] == [(["a", "b"],), (["c"],)]
    # Two requests were written before the limit was known.
    assert [asked.status for asked in server.requests].count(400) <= 2


TOO_LONG = "林海是青石港的第一任港务长。" * 60


@pytest.mark.parametrize("text", [TOO_LONG, "Anna Berg founded the society. " * 30, "x" * 1000])
@pytest.mark.parametrize(
    "message",
    ["Range of input length should be [1, 512]", "Trop long !", "max 100 tokens, got 700"],
)
def test_a_text_that_is_too_long_gets_the_mean_of_its_pieces(
    text: str, message: str, tmp_path: Path
) -> None:
    pieces: list[str] = []

    def vector(piece: str, dimensions: int) -> Any:
        pieces.append(piece)
        return embed(piece, dimensions)

    def refuse(endpoint: str, body: Json) -> tuple[int, Json] | None:
        is_long = max(map(len, body.get("input", [""]))) > 300
        return (
            (400, {"error": {"message": message, "code": "InvalidParameter"}}) if is_long else None
        )

    with Server(refuse=refuse, vector=vector) as server:
        model = embedding(server, tmp_path)
        pieces.clear()
        (found, short) = model.embed([text, "short"])
        assert len(short) == 64
        used = [piece for piece in pieces if piece != "short"]
        assert "".join(used).split() == text.split()
        total = sum(len(piece) * np.array(embed(piece, 64)) for piece in used)
        assert np.allclose(found, normalize_vector(total), atol=1e-6)
        n_sent = len(server.requests)
        assert np.array_equal(model.embed([text])[0], found)
        assert len(server.requests) == n_sent
        # What was learned holds for other texts.
        (other,) = model.embed([text + text[:40]])
        assert other.any()
        assert len(server.requests) - n_sent <= 4
        assert model.ledger.quarantined_requests(["step"]) == []


@given(st.text(min_size=2, max_size=500), st.integers(2, 9))
def test_pieces_hold_the_whole_text(text: str, n_pieces: int) -> None:
    pieces = cut_text(text, n_pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(len(piece) <= 2 * len(text) // n_pieces + 2 for piece in pieces)
    assert MIN_PIECE_CHARS > 0


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"error": {"message": "slow down", "code": 429}}, 429, "slow down"),
        ({"error": {"message": "used up", "code": "rate_limit_exceeded"}}, 429, "used up"),
        ({"error": "model is overloaded"}, 503, "overloaded"),
        ({"error": {"message": "no", "code": "400"}, "choices": []}, 400, "no"),
        ({"choices": None, "base_resp": {"status_code": 1026, "status_msg": "new_sensitive"}}, 400,
         "new_sensitive"),
        ({"choices": None, "base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, 429,
         "rate limit"),
        ({"error_code": 17, "error_msg": "daily quota reached"}, 429, "daily quota"),
        ({"code": 20042, "message": "input is not valid", "data": None}, 400, "not valid"),
        ({"object": "error", "message": "engine died", "code": 500}, 500, "engine died"),
        ([{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}], 400, "bad"),
        ({"choices": [{"error": {"code": 502, "message": "upstream"}}]}, 502, "upstream"),
        ({"detail": "Service Unavailable, try again"}, 503, "try again"),
        ({"error": {"message": "flagged, try again", "code": "content_filter"}}, 400, "flagged"),
        ({"success": False, "msg": "余额不足"}, 400, "余额不足"),
    ],
)  # fmt: skip
def test_an_error_with_status_200_is_read_by_its_code(body: Any, status: int, words: str) -> None:
    found = error_in_body(body)
    assert found is not None
    assert found[0] == status
    assert words in found[1]


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"content": "error"}}], "error": None},
        {"choices": [], "usage": {"prompt_tokens": 3}},
        {"data": [{"index": 0, "embedding": [1.0]}], "message": ""},
        {"choices": [{"delta": {}}], "base_resp": {"status_code": 0, "status_msg": ""}},
        {"results": [{"index": 0, "relevance_score": 1}]},
        [{"index": 0, "score": 1}],
    ],
)
def test_an_answer_reports_no_error(body: Any) -> None:
    assert error_in_body(body) is None


FILTERED = {"error": {"message": "The response was filtered, try again", "code": "content_filter"}}


@pytest.mark.parametrize("status", [200, 400, 403])
@pytest.mark.parametrize("stream", [False, True])
def test_a_refusal_of_the_content_is_sent_once(status: int, stream: bool, open_model: Open) -> None:
    def refuse(endpoint: str, body: Json) -> tuple[int, Any] | None:
        if "poison" not in body["messages"][-1]["content"]:
            return None
        event = f"data: {json.dumps(FILTERED)}\n\n".encode()
        return status, event if stream and status == 200 else FILTERED

    with Server(answer=words_of_text, refuse=refuse) as server:
        chat = open_model(server, stream=stream)
        outcomes = list(chat.replies([request("a"), request("poison"), request("b")]))
        assert [bool(outcome.failure) for outcome in outcomes] == [False, True, False]
        assert "The response was filtered" in outcomes[1].failure
        (put_aside,) = chat.ledger.quarantined_requests(["step"])
        assert put_aside.is_final
    assert sum(b"poison" in asked.body for asked in server.requests) == 1


@pytest.mark.parametrize(
    ("reason", "is_final"),
    [
        ("HTTP 400: The content is not allowed.", True),
        ("too long: HTTP 500: input is too large to process", True),
        ("error in the answer: input new_sensitive 1026", True),
        ("the model refused (content_filter)", True),
        ("failed 6 times: HTTP 503: overloaded", False),
        ("the reply is invalid: it contains no answer", False),
        ("no reply within 5 s, although the server answers other requests", False),
        ("its vector is zero or not finite", False),
    ],
)
def test_retry_is_offered_only_for_what_can_succeed(reason: str, is_final: bool) -> None:
    assert QuarantinedRequest("step", "unit", reason, "").is_final == is_final


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb'"a \ud83d b"', "a \ufffd b"),
        (rb'"\uDE00"', "\ufffd"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (rb'"\\ud83d"', r"\ud83d"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (rb'"\ud83d\n"', "\ufffd\n"),
        (b'"\xed\xa0\xbd"', "\ufffd\ufffd\ufffd"),
        (b'"\xff"', "\ufffd"),
        (b'"caf\xe9"', "caf\ufffd"),
        (b'\xef\xbb\xbf"\xd0\x96"', "Ж"),
        ('"日本"'.encode("utf-16"), "日本"),
        (rb'"\u0000"', "\x00"),
    ],
)
def test_a_body_is_read_as_valid_unicode(body: bytes, text: str) -> None:
    assert parse_json(body) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from("choices message content data embedding index error code usage "
                        "prompt_tokens finish_reason refusal tool_calls function detail".split()),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_nothing_that_a_server_sends_is_an_unexpected_error(data: Any) -> None:
    parsed = parse_json(json.dumps(data).encode())
    error_message(parsed)
    error_in_body(parsed)
    for read in (read_chat, lambda body: read_embeddings(body, 1)):
        try:
            read(parsed)
        except RetryError as error:
            str(error).encode()


@pytest.mark.parametrize("depth", [100_000])
def test_a_body_that_is_nested_too_deeply_is_no_json(depth: int) -> None:
    with pytest.raises(RetryError):
        parse_json(b"[" * depth)


@pytest.mark.parametrize(
    "content",
    [r'{"words": ["a", "\ud83d"]}', r'{"words": ["a", "\\ud83d"]}', r'{"words": ["a", "\udc00" '],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_with_half_a_character_is_paid_once(
    content: str, stream: bool, open_model: Open
) -> None:
    body = b'{"choices": [{"message": {"content": %s}, "finish_reason": "stop"}]}'
    escaped = json.dumps(content).replace(r"\\ud", r"\ud").encode()

    with Server(refuse=lambda endpoint, _: (200, body % escaped)) as server:
        chat = open_model(server)
        (outcome,) = chat.replies([request("a")])
        assert outcome.values[0][0] == "a"
        "".join(outcome.values[0]).encode()
        assert list(chat.replies([request("a")])) == [outcome]
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ([r"a \ud83d", r"\ude00 b"], "a 😀 b"),
        ([r"\ud83d", "", r"\ude00"], "😀"),
        ([r"\ud83d\ude00\uD83D", r"\uDE01"], "😀😁"),
        ([r"a\ud83d", "b", r"\ude00"], "a\ufffdb\ufffd"),
        ([r"a \ud83d"], "a \ufffd"),
        ([r"\\ud83d", r"\\ude00"], r"\ud83d\ude00"),
    ],
)
@pytest.mark.parametrize("field", ["content", "refusal"])
def test_halves_of_a_character_in_two_events_are_joined(
    field: str, pieces: list[str], text: str, open_model: Open
) -> None:
    events = ["".join(('{"choices": [{"delta": {"', field, '": "', p, '"}}]}')) for p in pieces]
    ends = ['{"choices": [{"delta": {}, "finish_reason": "stop"}]}', "[DONE]"]
    body = "".join(f"data: {event}\n\n" for event in (*events, *ends)).encode()
    sink = Pieces()
    with Server(refuse=lambda endpoint, _: (200, body)) as server:
        plain = replace(request("a"), format=PLAIN_TEXT, sink=sink)
        (outcome,) = open_model(server).replies([plain])
    if field == "content":
        assert (outcome.values, sink.text) == ((text,), text)
    else:
        assert text in outcome.failure


def test_an_error_with_half_a_character_is_written(open_model: Open) -> None:
    body = rb'data: {"error": {"code": "content_filter", "message": "no \ud83d"}}' + b"\n\n"
    with Server(refuse=lambda endpoint, _: (200, body)) as server:
        (outcome,) = open_model(server, stream=True).replies([request("a")])
    assert outcome.failure == "error in the answer: no \ufffd content_filter"


@pytest.mark.parametrize("message", ["A prompt has at most 12000 characters.", "Nein."])
def test_a_passage_that_is_too_long_is_read_in_parts(message: str, tmp_path: Path) -> None:
    found, people = [], sorted((REPOSITORY / "input/people").glob("*.txt"))[:3]
    for name, most in (("whole", 99_999), ("parts", 12_000)):
        with Server(refuse=refuses(most, message)) as server:
            project = write_project(tmp_path / name, server.url, 1)
            texts = [path.read_text("utf-8") for path in people]
            (project / "input/people.txt").write_text("\n".join(texts), "utf-8")
            steps = yaml.safe_load((project / "workflows/standard.yaml").read_text("utf-8"))
            steps = steps[: steps.index("extract_covariates") + 1]
            (project / "workflows/standard.yaml").write_text(yaml.safe_dump(steps), "utf-8")
            result = run(project, "--set", "create_text_units.max_tokens=4000")
        assert result.returncode == 0, result.stderr
        tables = read_table(project, "entities"), read_table(project, "covariates")
        found.append([set(t[c]) for t, c in zip(tables, ["title", "description"], strict=True)])
        assert any(asked.status == 400 for asked in server.requests) == (name == "parts")
    # Nothing is lost; the model of the tests also takes the first word of a part for a name.
    assert [one - two for one, two in zip(*found, strict=True)] == [set(), set()]
    assert all(found[0])
