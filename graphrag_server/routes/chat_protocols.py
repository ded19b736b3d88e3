"""The chats of OpenAI and of Ollama, as Open WebUI and other front ends read them."""

import json
import re
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict

import graphrag_index
from graphrag_query.answer import Answer, Usage
from graphrag_query.answering.written_answer import RESTART_TEXT
from graphrag_query.question.conversation import Turn
from graphrag_query.searches.router import METHODS
from graphrag_server.access import Caller, CurrentCaller, visible_index
from graphrag_server.asking import (
    AnswerEvent,
    AskedQuestion,
    Asker,
    AskEvent,
    ErrorEvent,
    RestartEvent,
    StatusEvent,
    TextEvent,
)
from graphrag_server.event_stream import STREAM_HEADERS, stream_events, write_event
from graphrag_server.keys import Scope
from graphrag_server.problems import RequestError
from graphrag_server.routes.ask import MAX_QUESTION_CHARS, MAX_TURNS, QuestionFilters
from graphrag_server.server_settings import Protocol
from graphrag_server.tracing import current_request_id

router = APIRouter(tags=["OpenAI"])
ollama = APIRouter(prefix="/api", tags=["Ollama"])

# Open WebUI sends prompts with this beginning to the model of the chat: for a title, tags, further
# questions, search queries and so on. They are no questions to the documents. The prompt around a
# question with attached files or web pages begins in the same way, but has a question.
_BEGINNING = "### Task:"
_USER_LINE = re.compile(r"^[^\S\n]*(?:USER|User)[^\S\n]*:(.+)$", re.MULTILINE)
# The key of the JSON object that a prompt asks for.
_KEY = re.compile(r'"(title|tags|follow_ups|queries|text|prompt)"\s*:')
_MAX_TITLE_WORDS = 6
PREFIX = "graphrag"
_MARK = re.compile(r"\[(\d+)\]")
# The end of the text of a link or an image, the beginning of a tag, and the fence before the
# language of a block of code, behind the marks of lists and quotations.
_FENCE = r"(?<=[\r\n])[ \t>*+\-\d.)]*"
_ACTIVE = re.compile(
    rf"(?P<link>\])(?=[(:])|(?P<tag><)(?=[A-Za-z/!?])"
    rf"|(?P<code>{_FENCE}(?:`{{3,}}(?!`)|~{{3,}}(?!~))[ \t]*)(?=[^ \t\r\n])"
)
# An invisible character that keeps the two around it from being a tag or a link. Unlike escapes of
# Markdown, it does so within code too, where escapes are shown.
_WORD_JOINER = "\u2060"
# The end of a text that the next piece may make active.
_UNDECIDED = re.compile(rf"(?:{_FENCE}[`~]*[ \t]*[\]<]?|[\]<])\Z")
# A line of a source at the end of an earlier answer.
_SOURCE_LINE = re.compile(r"- \[\d+\] .*: https?://\S+")
# Fields that ask for something else than one text, and their values that do not.
_OTHER_REPLIES: dict[str, object] = {
    **{"n": 1, "tools": [], "functions": [], "response_format": {"type": "text"}, "format": ""},
    **{"logprobs": False, "modalities": ["text"]},
}


class PlainText:
    """A text in pieces, in which nothing is left that a page of Markdown loads, opens or runs.

    Documents are hostile, and models repeat what they read: an image would be fetched, the
    block of code of a web page would be run. The rest of the Markdown is kept.
    """

    def __init__(self) -> None:
        self.text = self._held = ""

    def add(self, piece: str, is_last: bool = False) -> str:
        """Add a piece, and return the text that later pieces cannot change."""
        # What is before decides whether a line begins here.
        piece = (self.text[-1:] or "\n") + self._held + piece
        undecided = None if is_last else _UNDECIDED.search(piece)
        end = undecided.start() if undecided else len(piece)
        self._held = piece[max(1, end) :]
        plain = _ACTIVE.sub(_make_plain, piece[:end])[1:]
        self.text += plain
        return plain


def make_plain(text: str) -> str:
    """Return a whole text as `PlainText` has it."""
    return PlainText().add(text, is_last=True)


def _make_plain(found: re.Match[str]) -> str:
    return f"{found[0]}text " if found["code"] else f"{found[0]}{_WORD_JOINER}"


def is_task(prompt: str) -> bool:
    """Return whether a message is a hidden prompt of Open WebUI."""
    return prompt.lstrip().startswith(_BEGINNING)


def unwrap_question(message: str) -> str:
    """Return the question in a prompt with attached texts; any other message as it is."""
    attached, _, rest = message.rpartition("</context>")
    if not is_task(message) or "<context>" not in attached:
        return message
    # The question is in a tag, or follows the texts.
    tagged = rest.partition("<user_query>")[2].partition("</user_query>")[0]
    return tagged.strip() or rest.strip() or message


def answer_task(prompt: str) -> str | None:
    """Return the reply to a hidden prompt, without a search; None if the prompt is a question."""
    if not is_task(prompt):
        return None
    history = prompt.partition("<chat_history>")[2].partition("</chat_history>")[0]
    questions = _USER_LINE.findall(history)
    first = questions[0].strip() if questions else ""
    last = questions[-1].strip() if questions else ""
    key = _KEY.search(prompt)
    replies: dict[str, object] = {
        "title": _make_title(first),
        "tags": ["Documents"],
        "follow_ups": [],
        "queries": [last] if last else [],
        "text": "",
        "prompt": last,
    }
    if key is None:
        return _make_title(first)
    return json.dumps({key[1]: replies[key[1]]}, ensure_ascii=False)


def _make_title(question: str) -> str:
    words = question.split()
    title = " ".join(words[:_MAX_TITLE_WORDS]).rstrip("?!.,;:")
    return (f"{title} …" if len(words) > _MAX_TITLE_WORDS else title) or "Conversation"


class ChatMessage(BaseModel):
    """One message. Its content is a text, or a list of parts."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[dict[str, Any]] | None = None
    images: list[Any] | None = None  # of Ollama

    def text(self) -> str:
        """Return the text of the message. Raises RequestError for images and other parts."""
        if self.images:
            raise RequestError(400, "unsupported_content", "A message has images: send texts only.")
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        texts = []
        for part in self.content:
            if part.get("type") != "text":
                raise RequestError(
                    400,
                    "unsupported_content",
                    f"A message has a part of the type {part.get('type')!r}: send texts only.",
                )
            texts.append(str(part.get("text", "")))
        return "\n".join(texts)


class ChatBody(BaseModel):
    """A request for an answer. Fields that steer how a model writes are ignored."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[ChatMessage]
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    # Options of a question in fields of our own.
    filters: QuestionFilters = QuestionFilters()
    settings: dict[str, Any] = {}
    as_of: int | None = None
    append_sources: bool | None = None
    protocol: ClassVar[Protocol] = "openai"

    def check_fields(self) -> None:
        """Raise RequestError for a field that asks for something else than one text."""
        for name, usual in _OTHER_REPLIES.items():
            if (value := (self.model_extra or {}).get(name)) is not None and value != usual:
                hint = f"{name!r} is not supported: a reply is one text, so leave it out."
                raise RequestError(400, "unsupported_parameter", hint)


def read_chat(messages: list[ChatMessage]) -> tuple[str, tuple[Turn, ...]]:
    """Return the last question of a chat, and the turns before it.

    A chat that ends with an answer asks for its question again ("continue"). System messages are
    ignored: the prompts are those of this program. Raises RequestError if there is no question.
    """
    turns: list[Turn] = []
    question = ""
    for message in messages:
        text = message.text().strip()
        if message.role == "user":
            question = unwrap_question(text)
        elif message.role == "assistant" and question:
            lines = text.split("\n")
            while lines and _SOURCE_LINE.fullmatch(lines[-1]):
                lines.pop()
            turns.append(Turn(question, question, "\n".join(lines).rstrip()))
            question = ""
    if turns and messages[-1].role == "assistant":
        question = turns.pop().question
    if not question:
        raise RequestError(400, "no_question", "The last message must be a question of the user.")
    # A hidden prompt holds the whole chat, and is not searched for.
    if len(question) > MAX_QUESTION_CHARS and not is_task(question):
        raise RequestError(
            400, "question_too_long", f"A question has at most {MAX_QUESTION_CHARS:,} characters."
        )
    return question, tuple(turns[-MAX_TURNS:])


def model_names(request: Request, caller: Caller) -> list[str]:
    """Return the names of the models: one for each index and search that the caller may use."""
    visible = caller.visible(request.app.state.indexes)
    return [f"{PREFIX}/{index.name}/{method}" for index in visible for method in METHODS]


def read_question(body: ChatBody, request: Request, caller: Caller) -> AskedQuestion:
    """Return the last question of a chat, to the index and the search that its model names.

    The name of a model is `graphrag/INDEX/SEARCH`. Raises RequestError for any other name.
    """
    body.check_fields()
    question, turns = read_chat(body.messages)
    known, model = model_names(request, caller), body.model.removesuffix(":latest")
    if model not in known:
        hint = f", such as {known[0]}" if known else ""
        raise RequestError(
            404, "model_not_found", f"There is no model {model!r}: GET /v1/models lists them{hint}."
        )
    _, name, method = model.split("/")
    return AskedQuestion(
        visible_index(request, caller, name, Scope.ASK),
        caller,
        question,
        method,
        settings=body.settings,
        filters=body.filters.chosen(),
        as_of=body.as_of,
        conversation=turns,
    )


class Source(NamedTuple):
    """The quotation of a citation, and the address of its passage in the explorer."""

    title: str
    url: str
    quote: str


class ReplyText:
    """The text of the reply to one question, and the sources of its citations."""

    def __init__(self, body: "ChatBody", asked: AskedQuestion, request: Request) -> None:
        self._asked, self._request, self._plain = asked, request, PlainText()
        by_default = body.protocol in request.app.state.settings.append_sources
        self._with_lines = by_default if body.append_sources is None else body.append_sources
        self.sources: dict[int, Source] = {}  # by the numbers of citations

    def read(self, event: AskEvent) -> str:
        """Return the text of an event. Raises RequestError if it is the end of a failed answer."""
        if isinstance(event, TextEvent | RestartEvent):
            return self._plain.add(event.text if isinstance(event, TextEvent) else RESTART_TEXT)
        if isinstance(event, ErrorEvent):
            raise event.error
        return self._end(event.answer) if isinstance(event, AnswerEvent) else ""

    def read_whole(self, answer: Answer) -> str:
        """Return the text of a whole answer. Raises RequestError if the model failed."""
        return self._plain.add(answer.text) + self._end(answer)

    def _end(self, answer: Answer) -> str:
        """Return the rest of the text, with a line for each source if the reply shall have them."""
        if answer.outcome == "provider_error":
            # This is no answer, but a failure.
            raise RequestError(502, "provider_error", answer.text)
        rest = self._plain.add("", is_last=True)
        self.sources = self._read_sources(answer)
        lines = [f"- [{number}] {one.title}: {one.url}" for number, one in self.sources.items()]
        return "\n".join([f"{rest}\n", *lines]) if lines and self._with_lines else rest

    def _read_sources(self, answer: Answer) -> dict[int, Source]:
        asked = self._asked
        store = asked.hosted.open(asked.as_of).store
        if store.version.number != answer.version:
            store = asked.hosted.open(answer.version).store
        rows = store.text_units(citation.text_unit for citation in answer.citations)
        base = f"{str(self._request.base_url).rstrip('/')}/#/{asked.hosted.name}/document"
        return {
            citation.number: Source(
                make_plain(" ".join(citation.name.split())),
                f"{base}/{rows[citation.text_unit]['document']}/"
                f"{citation.start_char}-{citation.end_char}{citation.anchor}",
                make_plain(citation.quote),
            )
            for citation in answer.citations
            if citation.text_unit in rows
        }

    def annotations(self) -> list[dict[str, Any]]:
        """Return an annotation for each citation mark in the text; offsets count code points."""
        return [
            {
                "type": "url_citation",
                "url_citation": {
                    "start_index": mark.start(),
                    "end_index": mark.end(),
                    "url": source.url,
                    "title": source.title,
                },
            }
            for mark in _MARK.finditer(self._plain.text)
            if (source := self.sources.get(int(mark[1])))
        ]

    def source_events(self) -> list[dict[str, Any]]:
        """Return an event of Open WebUI for each source: `[2]` opens the second one.

        Its names are different, because it counts sources of one name as one.
        """
        titles = [source.title for source in self.sources.values()]
        counts = [titles[:i].count(title) for i, title in enumerate(titles, 1)]
        names = [f"{t} ({n})" if n > 1 else t for t, n in zip(titles, counts, strict=True)]
        return [
            {
                "source": {"name": one.title, "url": one.url},
                "document": [one.quote],
                "metadata": [{"source": one.url, "source_url": one.url, "name": name}],
            }
            for one, name in zip(self.sources.values(), names, strict=True)
        ]


def describe(answer: Answer) -> dict[str, Any]:
    """Return the outcome, cost, citations and so on, for which other protocols have no field."""
    content = answer.to_dict()
    names = (
        *("outcome", "method", "question", "citations", "notes", "follow_ups", "suggestion"),
        *("usage", "version", "cells", "table"),
    )
    return {**{name: content[name] for name in names}, "request_id": current_request_id()}


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
    asked = read_question(body, request, caller)
    completion = _Completion(body.model, ReplyText(body, asked, request))
    if (task := answer_task(asked.question)) is not None:
        if not body.stream:
            return JSONResponse(completion.whole(task))
        return stream_events(completion.stream_text(task))
    if not body.stream:
        return JSONResponse(completion.answered(await asker.answer(asked, request)))
    with_usage = bool((body.stream_options or {}).get("include_usage"))
    return stream_events(completion.stream(await asker.begin(asked), with_usage))


class _Completion:
    """The replies to one request, which share an id."""

    def __init__(self, model: str, reply: ReplyText) -> None:
        self._reply = reply
        self._head = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": model}

    def whole(self, text: str, **more: Any) -> dict[str, Any]:
        """Return a whole completion."""
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        message["annotations"] = self._reply.annotations()
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        usage = more.pop("usage", write_usage(Usage()))
        head = {**self._head, "object": "chat.completion"}
        return {**head, "choices": [choice], "usage": usage, **more}

    def answered(self, answer: Answer) -> dict[str, Any]:
        """Return the completion of an answer. Raises RequestError if the model failed."""
        text = self._reply.read_whole(answer)
        return self.whole(text, usage=write_usage(answer.usage), graphrag=describe(answer))

    async def stream_text(self, text: str) -> AsyncIterator[bytes]:
        """Yield the chunks of a text."""
        yield self._chunk({"role": "assistant", "content": text})
        yield self._chunk({}, finish="stop")
        yield _DONE

    async def stream(self, events: AsyncIterator[Any], with_usage: bool) -> AsyncIterator[bytes]:
        """Yield the chunks of an answer; a failure is the last chunk before the end."""
        yield self._chunk({"role": "assistant", "content": ""})
        try:
            async for event in events:
                if isinstance(event, StatusEvent):
                    yield self._status(event.message, done=False)
                if text := self._reply.read(event):
                    yield self._chunk({"content": text})
                if isinstance(event, AnswerEvent):
                    for chunk in self._end(event.answer, with_usage):
                        yield chunk
        except RequestError as error:
            yield write_event(None, openai_error(error))
        yield _DONE

    def _end(self, answer: Answer, with_usage: bool) -> Iterator[bytes]:
        yield self._status(f"Answered by {answer.method} search.", done=True)
        for source in self._reply.source_events():
            yield self._chunk({}, event={"type": "source", "data": source})
        if annotations := self._reply.annotations():
            yield self._chunk({"annotations": annotations})
        yield self._chunk({}, finish="stop", graphrag=describe(answer))
        if with_usage:
            usage = {"choices": [], "usage": write_usage(answer.usage)}
            head = {**self._head, "object": "chat.completion.chunk"}
            yield write_event(None, {**head, **usage})

    def _status(self, message: str, done: bool) -> bytes:
        """Return a chunk with a status, which Open WebUI shows; other clients ignore it."""
        event = {"type": "status", "data": {"description": message, "done": done}}
        return self._chunk({}, event=event)

    def _chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        head = {**self._head, "object": "chat.completion.chunk"}
        return write_event(None, {**head, "choices": [choice], **more})


_DONE = b"data: [DONE]\n\n"


def write_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens of an answer; its cost in dollars is null if a price is unknown."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "cost": usage.cost,
    }


class OllamaBody(ChatBody):
    """A request of Ollama's protocol, whose replies are streamed by default."""

    stream: bool = True
    protocol: ClassVar[Protocol] = "ollama"


def ollama_error(error: RequestError) -> dict[str, Any]:
    """Return an error in the shape of Ollama's API."""
    return {"error": error.detail}


@ollama.get("/version")
def read_version() -> dict[str, str]:
    """Return the version of this program."""
    return {"version": graphrag_index.__version__}


@ollama.get("/tags")
def list_tags(request: Request, caller: CurrentCaller) -> dict[str, Any]:
    """List the models: one for each index and search."""
    names = [f"{name}:latest" for name in model_names(request, caller)]
    same = {"modified_at": "1970-01-01T00:00:00Z", "size": 0, "digest": "", "details": {}}
    return {"models": [{"name": name, "model": name, **same} for name in names]}


@ollama.post("/chat", response_model=None)
async def chat(body: OllamaBody, request: Request, caller: CurrentCaller) -> Response:
    """Answer the last question of a chat; the reply is streamed unless `stream` is false."""
    asker: Asker = request.app.state.asker
    asked = read_question(body, request, caller)
    replies = _OllamaReplies(body.model, ReplyText(body, asked, request))
    if (task := answer_task(asked.question)) is not None:
        return JSONResponse(replies.last(task))
    if not body.stream:
        return JSONResponse(replies.answered(await asker.answer(asked, request)))
    events = await asker.begin(asked)
    lines = (
        json.dumps(reply, ensure_ascii=False, default=str).encode() + b"\n"
        async for event in events
        for reply in replies.of_event(event)
    )
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=STREAM_HEADERS)


class _OllamaReplies:
    """The replies of Ollama to one request, of which the last one has counts."""

    def __init__(self, model: str, reply: ReplyText) -> None:
        self._model, self._reply, self._started = model, reply, time.perf_counter_ns()

    def of_event(self, event: AskEvent) -> Iterator[dict[str, Any]]:
        """Yield the replies for an event. The last one of an answer has no text."""
        try:
            if text := self._reply.read(event):
                yield self._part(text)
            if isinstance(event, AnswerEvent):
                yield self.last("", event.answer)
        except RequestError as error:
            yield ollama_error(error)

    def answered(self, answer: Answer) -> dict[str, Any]:
        """Return the one reply of an answer. Raises RequestError if the model failed."""
        return self.last(self._reply.read_whole(answer), answer)

    def last(self, text: str, answer: Answer | None = None) -> dict[str, Any]:
        """Return the last reply, with its counts."""
        duration = time.perf_counter_ns() - self._started
        more = {"done": True, "done_reason": "stop", "total_duration": duration}
        if answer is not None:
            more["prompt_eval_count"] = answer.usage.prompt_tokens
            more["eval_count"] = answer.usage.completion_tokens
            more["graphrag"] = describe(answer)
        return {**self._part(text), **more}

    def _part(self, text: str) -> dict[str, Any]:
        created = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        message = {"role": "assistant", "content": text}
        return {"model": self._model, "created_at": created, "message": message, "done": False}
