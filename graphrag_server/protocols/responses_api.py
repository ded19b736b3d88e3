"""Responses of OpenAI (Open Responses, 2026): one reply, whole or streamed."""

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
    TextEvent,
)
from graphrag_server.event_stream import stream_events, write_event
from graphrag_server.problems import RequestError
from graphrag_server.protocols.chat_completions import check_provider
from graphrag_server.protocols.chat_request import (
    Annotation,
    ChatMessage,
    SearchOptions,
    annotate,
    answer_task,
    ask_model,
    describe,
    read_chat,
)

router = APIRouter(tags=["OpenAI"])


class ResponseBody(SearchOptions):
    """A request for a response. Fields of OpenAI without a use here are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str
    input: str | list[ChatMessage]
    stream: bool = False
    previous_response_id: str | None = None


@router.post("/v1/responses", response_model=None)
async def create_response(body: ResponseBody, request: Request, caller: CurrentCaller) -> Response:
    """Answer the last question of the input, whole or streamed, with citations as annotations."""
    if body.previous_response_id:
        raise RequestError(
            400,
            "unsupported_field",
            "previous_response_id is not supported, because responses are not stored: "
            "send the whole conversation in `input`.",
        )
    messages = (
        [ChatMessage(role="user", content=body.input)]
        if isinstance(body.input, str)
        else body.input
    )
    asker: Asker = request.app.state.asker
    chat = read_chat(messages)
    asked = ask_model(request, caller, body.model, chat, body)
    writer = _ResponseWriter(body.model, asked, request)
    if (task := answer_task(chat.question)) is not None:
        if body.stream:
            return stream_events(writer.stream_text(task))
        return JSONResponse(writer.response("completed", task))
    if not body.stream:
        answer = await asker.answer(asked, request)
        check_provider(answer)
        return JSONResponse(writer.answered(answer.text, answer))
    events = asker.events(asked)
    # The first event is awaited here, so that a refused question gets its status.
    await anext(events)
    return stream_events(writer.stream(events))


class _ResponseWriter:
    """The replies to one request, which share the ids of the response and of its message."""

    def __init__(self, model: str, asked: AskedQuestion, request: Request) -> None:
        self._asked, self._request, self._model = asked, request, model
        self._id, self._item = f"resp_{uuid4().hex}", f"msg_{uuid4().hex}"
        self._created = int(time.time())
        self._sequence = 0

    def response(
        self,
        status: str,
        text: str | None,
        annotations: list[Annotation] | None = None,
        usage: Usage | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return the response; without a text, its output is empty."""
        output = [] if text is None else [self._message("completed", text, annotations or [])]
        fields = {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self._model,
            "output": output,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "store": False,
            "tool_choice": "none",
            "tools": [],
            "usage": None if usage is None else _write_usage(usage),
        }
        return fields | more

    def answered(self, text: str, answer: Answer) -> dict[str, Any]:
        """Return the response of an answer whose text was written as `text`."""
        annotations = annotate(text, answer, self._asked, self._request)
        return self.response(
            "completed", text, annotations, answer.usage, graphrag=describe(answer)
        )

    async def stream_text(self, text: str) -> AsyncIterator[bytes]:
        """Yield the events of a text that is already there."""
        for event in (*self._begin(), self._delta(text), *self._close_text(text, [])):
            yield event
        yield self._event("response.completed", response=self.response("completed", text))

    async def stream(self, events: Any) -> AsyncIterator[bytes]:
        """Yield the events of an answer, in the order of the specification."""
        for event in self._begin():
            yield event
        written = ""
        async with aclosing(events):
            async for event in events:
                if isinstance(event, TextEvent | RestartEvent):
                    text = event.text if isinstance(event, TextEvent) else RESTART_TEXT
                    written += text
                    yield self._delta(text)
                elif isinstance(event, ErrorEvent):
                    yield self._fail(event.error)
                elif isinstance(event, AnswerEvent):
                    for chunk in self._end(written, event.answer):
                        yield chunk

    def _end(self, written: str, answer: Answer) -> list[bytes]:
        try:
            check_provider(answer)
        except RequestError as error:
            return [self._fail(error)]
        annotations = annotate(written, answer, self._asked, self._request)
        whole = self.answered(written, answer)
        return [
            *self._close_text(written, annotations),
            self._event("response.completed", response=whole),
        ]

    def _begin(self) -> list[bytes]:
        started = self.response("in_progress", None)
        item = self._message("in_progress", None, [])
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        return [
            self._event("response.created", response=started),
            self._event("response.in_progress", response=started),
            self._event("response.output_item.added", output_index=0, item=item),
            self._event("response.content_part.added", **self._place(), part=part),
        ]

    def _delta(self, text: str) -> bytes:
        name = "response.output_text.delta"
        return self._event(name, **self._place(), delta=text, logprobs=[])

    def _close_text(self, text: str, annotations: list[Annotation]) -> list[bytes]:
        item = self._message("completed", text, annotations)
        part = item["content"][0]
        added = [
            self._event(
                "response.output_text.annotation.added",
                **self._place(),
                annotation_index=at,
                annotation=_write_annotation(annotation),
            )
            for at, annotation in enumerate(annotations)
        ]
        name = "response.output_text.done"
        return [
            *added,
            self._event(name, **self._place(), text=text, logprobs=[]),
            self._event("response.content_part.done", **self._place(), part=part),
            self._event("response.output_item.done", output_index=0, item=item),
        ]

    def _fail(self, error: RequestError) -> bytes:
        failure = {"code": error.code, "message": error.detail}
        response = self.response("failed", None, error=failure)
        return self._event("response.failed", response=response)

    def _message(
        self, status: str, text: str | None, annotations: list[Annotation]
    ) -> dict[str, Any]:
        part = {
            "type": "output_text",
            "text": text,
            "annotations": list(map(_write_annotation, annotations)),
            "logprobs": [],
        }
        content = [] if text is None else [part]
        head = {"id": self._item, "type": "message", "role": "assistant"}
        return {**head, "status": status, "content": content}

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item, "output_index": 0, "content_index": 0}

    def _event(self, name: str, **fields: Any) -> bytes:
        number = self._sequence
        self._sequence += 1
        return write_event(name, {"type": name, "sequence_number": number, **fields})


def _write_annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "type": "url_citation",
        "start_index": annotation.start,
        "end_index": annotation.end,
        "url": annotation.url,
        "title": annotation.title,
    }


def _write_usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "cost": usage.cost,
    }
