"""OpenAI's models and chat completions, as Open WebUI and other front ends read them."""

import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ConfigDict

from graphrag_query.answer import Answer, Usage
from graphrag_query.answering.written_answer import RESTART_TEXT
from graphrag_server.access import CurrentCaller
from graphrag_server.asking import (
    AnswerEvent,
    AskedQuestion,
    Asker,
    ErrorEvent,
    RestartEvent,
    StatusEvent,
    TextEvent,
)
from graphrag_server.event_stream import stream_events, write_event
from graphrag_server.problems import RequestError
from graphrag_server.protocols.chat_request import (
    Annotation,
    ChatMessage,
    SearchOptions,
    annotate,
    answer_task,
    ask_model,
    describe,
    model_names,
    read_chat,
)

router = APIRouter(tags=["OpenAI"])


class ChatBody(SearchOptions):
    """A request for a chat completion. Fields of OpenAI without a use here are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str
    messages: list[ChatMessage]
    stream: bool = False
    stream_options: dict[str, Any] | None = None


wrong_bases = APIRouter(include_in_schema=False)


@wrong_bases.api_route("/v1/v1/{path:path}", methods=["GET", "POST"])
@wrong_bases.api_route("/v1/chat/completions/{path:path}", methods=["GET", "POST"])
@wrong_bases.api_route("/chat/completions", methods=["GET", "POST"])
@wrong_bases.api_route("/models", methods=["GET"])
def explain_base(request: Request, path: str = "") -> None:
    """Refuse a request with the wrong base address, which users of front ends often enter."""
    base = f"{str(request.base_url).rstrip('/')}/v1"
    raise RequestError(404, "wrong_base_url", f"Set the base URL of the client to {base}.")


def openai_error(error: RequestError) -> dict[str, Any]:
    """Return an error in the shape of OpenAI's API."""
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    body = {"message": error.detail, "type": kind, "param": None, "code": error.code}
    return {"error": body}


@router.get("/v1/models")
def list_models(request: Request, caller: CurrentCaller) -> dict[str, Any]:
    """List the models: one for each index and search."""
    names = model_names(request, caller)
    return {"object": "list", "data": [_describe_model(name) for name in names]}


@router.get("/v1/models/{model:path}")
def read_model(model: str, request: Request, caller: CurrentCaller) -> dict[str, Any]:
    """Return one model."""
    if model not in model_names(request, caller):
        raise RequestError(404, "model_not_found", f"There is no model {model!r}: GET /v1/models.")
    return _describe_model(model)


def _describe_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "graphrag-index"}


@router.post("/v1/chat/completions", response_model=None)
async def complete_chat(body: ChatBody, request: Request, caller: CurrentCaller) -> Response:
    """Answer the last question of a chat, whole or streamed, with citations as annotations."""
    asker: Asker = request.app.state.asker
    chat = read_chat(body.messages)
    asked = ask_model(request, caller, body.model, chat, body)
    completion = _Completion(body.model, asked, request)
    if (task := answer_task(chat.question)) is not None:
        if not body.stream:
            return JSONResponse(completion.whole(task))
        return stream_events(completion.stream_text(task))
    if not body.stream:
        answer = await asker.answer(asked, request)
        return JSONResponse(completion.answered(answer))
    events = asker.events(asked)
    # The first event is awaited here, so that a refused question gets its status.
    first = await anext(events)
    with_usage = bool((body.stream_options or {}).get("include_usage"))

    async def all_events() -> AsyncIterator[Any]:
        async with aclosing(events):
            yield first
            async for event in events:
                yield event

    return stream_events(completion.stream(all_events(), with_usage))


class _Completion:
    """The replies to one request, which share an id."""

    def __init__(self, model: str, asked: AskedQuestion, request: Request) -> None:
        self._asked, self._request = asked, request
        self._head = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": model}

    def whole(self, text: str, **more: Any) -> dict[str, Any]:
        """Return a whole completion."""
        message = {"role": "assistant", "content": text, "refusal": None}
        message |= {"annotations": more.pop("annotations", [])}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        usage = more.pop("usage", write_usage(Usage()))
        head = {**self._head, "object": "chat.completion"}
        return {**head, "choices": [choice], "usage": usage, **more}

    def answered(self, answer: Answer) -> dict[str, Any]:
        """Return the completion of an answer. Raises RequestError if the model failed."""
        check_provider(answer)
        annotations = annotate(answer.text, answer, self._asked, self._request)
        return self.whole(
            answer.text,
            annotations=list(map(write_annotation, annotations)),
            usage=write_usage(answer.usage),
            graphrag=describe(answer),
        )

    async def stream_text(self, text: str) -> AsyncIterator[bytes]:
        """Yield the chunks of a text."""
        yield self._chunk({"role": "assistant", "content": text})
        yield self._chunk({}, finish="stop")
        yield _DONE

    async def stream(self, events: AsyncIterator[Any], with_usage: bool) -> AsyncIterator[bytes]:
        """Yield the chunks of an answer; a failure is the last chunk before the end."""
        yield self._chunk({"role": "assistant", "content": ""})
        written = ""
        async for event in events:
            if isinstance(event, StatusEvent):
                yield self._status(event.message, done=False)
            elif isinstance(event, TextEvent | RestartEvent):
                text = event.text if isinstance(event, TextEvent) else RESTART_TEXT
                written += text
                yield self._chunk({"content": text})
            elif isinstance(event, ErrorEvent):
                yield write_event(None, openai_error(event.error))
            elif isinstance(event, AnswerEvent):
                for chunk in self._end(written, event.answer, with_usage):
                    yield chunk
        yield _DONE

    def _end(self, written: str, answer: Answer, with_usage: bool) -> list[bytes]:
        try:
            check_provider(answer)
        except RequestError as error:
            return [write_event(None, openai_error(error))]
        annotations = annotate(written, answer, self._asked, self._request)
        chunks = [self._status(f"Answered by {answer.method} search.", done=True)]
        if annotations:
            chunks.append(self._chunk({"annotations": list(map(write_annotation, annotations))}))
        chunks.append(self._chunk({}, finish="stop", graphrag=describe(answer)))
        if with_usage:
            usage = {"choices": [], "usage": write_usage(answer.usage)}
            head = {**self._head, "object": "chat.completion.chunk"}
            chunks.append(write_event(None, {**head, **usage}))
        return chunks

    def _status(self, message: str, done: bool) -> bytes:
        """Return a chunk with a status, which Open WebUI shows; other clients ignore it."""
        event = {"type": "status", "data": {"description": message, "done": done}}
        return self._chunk({}, event=event)

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        head = {**self._head, "object": "chat.completion.chunk"}
        return write_event(None, {**head, "choices": [choice], **more})


_DONE = b"data: [DONE]\n\n"


def check_provider(answer: Answer) -> None:
    """Raise RequestError if a model did not answer: this is no answer, but a failure."""
    if answer.outcome == "provider_error":
        raise RequestError(502, "provider_error", answer.text)


def write_annotation(annotation: Annotation) -> dict[str, Any]:
    """Return an annotation of chat completions."""
    citation = {
        "start_index": annotation.start,
        "end_index": annotation.end,
        "url": annotation.url,
        "title": annotation.title,
    }
    return {"type": "url_citation", "url_citation": citation}


def write_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens of an answer; its cost in dollars is null if a price is unknown."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "cost": usage.cost,
    }
