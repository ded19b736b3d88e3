"""Ollama's chat, for its clients and the front ends that speak its protocol."""

import json
import time
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import ConfigDict, Field

import graphrag_index
from graphrag_query.answer import Answer
from graphrag_query.answering.written_answer import RESTART_TEXT
from graphrag_server.access import CurrentCaller
from graphrag_server.asking import AnswerEvent, Asker, AskEvent, ErrorEvent, RestartEvent, TextEvent
from graphrag_server.event_stream import STREAM_HEADERS
from graphrag_server.problems import RequestError
from graphrag_server.routes.chat_completions import (
    ChatMessage,
    SearchOptions,
    answer_task,
    ask_model,
    check_provider,
    describe,
    model_names,
    read_chat,
)

router = APIRouter(prefix="/api", tags=["Ollama"])

_MEDIA_TYPE = "application/x-ndjson"


class OllamaBody(SearchOptions):
    """A request for a chat or a text. Fields of Ollama without a use here are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str
    messages: list[ChatMessage] = Field([], description="The chat; the last question is answered.")
    prompt: str = ""
    stream: bool = True


def ollama_error(error: RequestError) -> dict[str, Any]:
    """Return an error in the shape of Ollama's API."""
    return {"error": error.detail}


@router.get("/version")
def read_version() -> dict[str, str]:
    """Return the version of this program."""
    return {"version": graphrag_index.__version__}


@router.get("/tags")
def list_tags(request: Request, caller: CurrentCaller) -> dict[str, Any]:
    """List the models: one for each index and search."""
    return {
        "models": [
            {
                "name": f"{name}:latest",
                "model": f"{name}:latest",
                "modified_at": "1970-01-01T00:00:00Z",
                "size": 0,
                "digest": "",
                "details": _DETAILS,
            }
            for name in model_names(request, caller)
        ]
    }


@router.post("/show")
def show_model(body: OllamaBody, request: Request, caller: CurrentCaller) -> dict[str, Any]:
    """Describe one model."""
    if body.model.removesuffix(":latest") not in model_names(request, caller):
        raise RequestError(404, "model_not_found", f"There is no model {body.model!r}.")
    return {"details": _DETAILS, "model_info": {}, "capabilities": ["completion"]}


@router.post("/chat", response_model=None)
async def chat(body: OllamaBody, request: Request, caller: CurrentCaller) -> Response:
    """Answer the last question of a chat; the reply is streamed unless `stream` is false."""
    return await _answer(body, body.messages, "message", request, caller)


@router.post("/generate", response_model=None)
async def generate(body: OllamaBody, request: Request, caller: CurrentCaller) -> Response:
    """Answer a prompt; the reply is streamed unless `stream` is false."""
    messages = [ChatMessage(role="user", content=body.prompt)]
    return await _answer(body, messages, "response", request, caller)


_DETAILS = {
    "parent_model": "",
    "format": "graphrag",
    "family": "graphrag",
    "families": ["graphrag"],
    "parameter_size": "",
    "quantization_level": "",
}


async def _answer(
    body: OllamaBody,
    messages: list[ChatMessage],
    field: str,
    request: Request,
    caller: CurrentCaller,
) -> Response:
    asker: Asker = request.app.state.asker
    chat = read_chat(messages)
    asked = ask_model(request, caller, body.model, chat, body)
    lines = _Lines(body.model, field)
    if (task := answer_task(chat.question)) is not None:
        return lines.reply_at_once(task, body.stream)
    if not body.stream:
        answer = await asker.answer(asked, request)
        check_provider(answer)
        return JSONResponse(lines.last(answer.text, answer))
    events = await asker.begin(asked)
    written = (line async for event in events if (line := lines.write_event(event)))
    return StreamingResponse(written, media_type=_MEDIA_TYPE, headers=STREAM_HEADERS)


class _Lines:
    """The replies of Ollama: one JSON object, or a stream with one on each line."""

    def __init__(self, model: str, field: str) -> None:
        self._model, self._field = model, field
        self._started = time.perf_counter_ns()

    def reply_at_once(self, text: str, is_stream: bool) -> Response:
        """Return a reply whose text is already there."""
        if not is_stream:
            return JSONResponse(self.last(text))
        lines = [_write_line(self._part(text)), _write_line(self.last(""))]
        return StreamingResponse(iter(lines), media_type=_MEDIA_TYPE)

    def write_event(self, event: AskEvent) -> bytes:
        """Write an event as a line; empty for an event that Ollama does not have."""
        if isinstance(event, TextEvent):
            return _write_line(self._part(event.text))
        if isinstance(event, RestartEvent):
            return _write_line(self._part(RESTART_TEXT))
        if isinstance(event, ErrorEvent):
            return _write_line(ollama_error(event.error))
        if isinstance(event, AnswerEvent):
            try:
                check_provider(event.answer)
            except RequestError as error:
                return _write_line(ollama_error(error))
            return _write_line(self.last("", event.answer))
        return b""

    def last(self, text: str, answer: Answer | None = None) -> dict[str, Any]:
        """Return the last object of a reply, with its counts."""
        more: dict[str, Any] = {"done": True, "done_reason": "stop"}
        more["total_duration"] = time.perf_counter_ns() - self._started
        if answer is not None:
            more["prompt_eval_count"] = answer.usage.prompt_tokens
            more["eval_count"] = answer.usage.completion_tokens
            more["graphrag"] = describe(answer)
        return {**self._part(text), **more}

    def _part(self, text: str) -> dict[str, Any]:
        message: Any = {"role": "assistant", "content": text}
        created = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        return {
            "model": self._model,
            "created_at": created,
            self._field: message if self._field == "message" else text,
            "done": False,
        }


def _write_line(content: dict[str, Any]) -> bytes:
    return json.dumps(content, ensure_ascii=False, default=str).encode() + b"\n"
