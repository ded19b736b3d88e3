"""Questions over HTTP: answers of all searches, contexts, and judgements of answers."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from graphrag_evaluation import EVALUATIONS
from graphrag_evaluation.judgements import (
    FILE,
    JudgedAnswer,
    Judgement,
    add_judgement,
    read_judgements,
)
from graphrag_index.errors import why_unread
from graphrag_query.answer import Answer, Citation, Outcome, RatedReport, SubQuestion, Usage
from graphrag_query.index import Index
from graphrag_query.question.conversation import Turn
from graphrag_query.searches.router import METHODS
from graphrag_server.access import AskIndex, Caller, CurrentCaller, ReadIndex, WriteIndex
from graphrag_server.asking import (
    AnswerEvent,
    AskedQuestion,
    Asker,
    AskEvent,
    ErrorEvent,
    StatusEvent,
    TextEvent,
)
from graphrag_server.event_stream import stream_events, write_event
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.problems import RequestError, reason_not_stored
from graphrag_server.table_pages import MAX_LIMIT
from graphrag_server.tracing import current_record

router = APIRouter(prefix="/v1/indexes/{index}", tags=["ask"])

MAX_QUESTION_CHARS = 20_000
MAX_TURNS = 200


class QuestionFilters(BaseModel, extra="forbid"):
    """Restrictions of a question, as those of `Index.where`."""

    documents: dict[str, list[str]] = Field(
        {},
        description="Patterns like those for file names, by column (path, title, language) or "
        "metadata key. A document must match one pattern of each.",
    )
    entity_types: list[str] = Field([], description="Types of entities to keep.")
    since: str = Field("", description="First date, such as 1914 or 1914-08.")
    until: str = Field("", description="Last date; it is included.")

    def chosen(self) -> dict[str, Any]:
        """Return the filters that are set, as arguments of `Index.where`."""
        return {name: value for name, value in self.model_dump().items() if value}


class EarlierTurn(BaseModel, extra="forbid"):
    """One earlier question of a conversation, and its answer."""

    question: str = Field(max_length=MAX_QUESTION_CHARS)
    answer: str = ""
    asked: str | None = Field(None, description="The question as it was rewritten, if it was.")


class AskedBody(BaseModel, extra="forbid"):
    """A question to an index, and what decides which rows are read for it."""

    question: str = Field(min_length=1, max_length=MAX_QUESTION_CHARS)
    settings: dict[str, Any] = Field({}, description="Settings of the search to override.")
    filters: QuestionFilters = QuestionFilters()
    as_of: int | None = Field(None, ge=1, description="Version of the index; default: current.")

    def asked(self, index: HostedIndex, caller: Caller, method: str, **more: Any) -> AskedQuestion:
        """Return the question to an index."""
        return AskedQuestion(
            index,
            caller,
            self.question,
            method,
            settings=self.settings,
            filters=self.filters.chosen(),
            as_of=self.as_of,
            **more,
        )


class ContextBody(AskedBody):
    """A question whose context is wanted."""

    method: str = Field("local", description=f"One of {', '.join(METHODS)}.")


class QuestionBody(AskedBody):
    """A question that shall be answered."""

    names: list[str] = Field(
        [], max_length=20, description="Further names, for the searches path and neighbourhood."
    )
    conversation: list[EarlierTurn] = Field(
        [], max_length=MAX_TURNS, description="The turns before, the oldest first."
    )
    stream: bool = Field(False, description="Reply with server-sent events.")
    context: bool = Field(False, description="Add the rows that were read, and the sub-graph.")


class SuggestedSearch(BaseModel, extra="forbid"):
    """Another search, which finds evidence where this one found none."""

    method: str
    arguments: list[str] = Field(description="The question, or names of entities.")
    why: str
    command: str


class CoveredCell(BaseModel, extra="forbid"):
    """A thing and a period that the question names, and what the documents have on them."""

    thing: str
    period: str
    state: Literal["found", "no_thing", "no_period", "no_passage", "no_statement"]
    value: str = Field(description="The figure, as the passage writes it.")
    covered: str = Field(description="The periods of its documents, if not those asked for.")
    citations: list[int] = Field(description="Numbers of citations.")
    documents: list[int] = Field(description="Documents that were searched.")
    text_units: list[int] = Field(description="Passages of these documents, the best first.")


class AnswerReply(BaseModel, extra="forbid"):
    """An answer with its evidence.

    `context` and the fields after it are present if `context` was true and the search has them.
    """

    answer: str = Field(description="The text; [1] refers to the citation with that number.")
    question: str
    outcome: Outcome
    method: str
    citations: list[Citation]
    parameters: dict[str, Any]
    looked_at: dict[str, int] = Field(description="Numbers of rows read, by table.")
    usage: Usage
    version: int = Field(description="Version of the index.")
    notes: list[str]
    follow_ups: list[str]
    left_out: list[int] = Field(description="Reports that a global search did not use.")
    suggestion: SuggestedSearch | None
    cells: list[CoveredCell] = Field(description="Things and periods that the question names.")
    table: list[dict[str, Any]] = Field(description="The rows of a count or of a comparison.")
    request_id: str
    trace_id: str = Field(description="Empty if the server sends no traces.")
    context: dict[str, list[dict[str, Any]]] | None = Field(
        None, description="The rows that were read, by section."
    )
    graph: dict[str, Any] | None = Field(None, description="The sub-graph of a path search.")
    reports: list[RatedReport] | None = None
    sub_questions: list[SubQuestion] | None = None


class ContextReply(BaseModel):
    """The rows that a model would be shown, by section, and their text."""

    text: str
    n_tokens: int
    tables: dict[str, list[dict[str, Any]]]
    left_out: dict[str, int]  # number of rows that did not fit, by section


# What `/ask` and `/search` return. An answer is not validated, which would cost time.
_REPLIES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": AnswerReply,
        "description": "The answer. With `stream`, events of the types `status` (stage, message), "
        "`text` (text), `restart` (the text so far is discarded), and as the last one `answer` "
        "(the answer) or `error` (problem details).",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.post("/ask", response_model=None, responses=_REPLIES)
async def ask(
    body: QuestionBody, index: AskIndex, caller: CurrentCaller, request: Request
) -> Response | dict[str, Any]:
    """Answer a question with the search that fits it."""
    return await _answer("ask", body, index, caller, request)


@router.post("/search/{method}", response_model=None, responses=_REPLIES)
async def search(
    method: Annotated[str, Path(description=f"One of {', '.join(METHODS)}.")],
    body: QuestionBody,
    index: AskIndex,
    caller: CurrentCaller,
    request: Request,
) -> Response | dict[str, Any]:
    """Answer a question with one search."""
    return await _answer(method, body, index, caller, request)


@router.post("/context")
async def context(
    body: ContextBody, index: ReadIndex, caller: CurrentCaller, request: Request
) -> ContextReply:
    """Return the context of a question, as in the prompt, without calling a chat model."""
    asked = body.asked(index, caller, body.method)

    def read(opened: Index) -> ContextReply:
        found = opened.context(body.question, body.method, **asked.settings)
        return ContextReply(
            text=found.text,
            n_tokens=found.n_tokens,
            tables=found.to_dict(),
            left_out=dict(found.n_left_out),
        )

    asker: Asker = request.app.state.asker
    return await asker.read(asked, request, read)


async def _answer(
    method: str, body: QuestionBody, hosted: HostedIndex, caller: Caller, request: Request
) -> Response | dict[str, Any]:
    asker: Asker = request.app.state.asker
    turns = tuple(
        Turn(turn.question, turn.asked or turn.question, turn.answer) for turn in body.conversation
    )
    asked = body.asked(hosted, caller, method, names=tuple(body.names), conversation=turns)
    if not body.stream:
        return _reply(await asker.answer(asked, request), body.context)
    events = await asker.begin(asked)
    return stream_events(_write(event, body.context) async for event in events)


def _write(event: AskEvent, with_context: bool) -> bytes:
    if isinstance(event, TextEvent):
        return write_event("text", {"text": event.text})
    if isinstance(event, StatusEvent):
        return write_event("status", {"stage": event.stage, "message": event.message})
    if isinstance(event, AnswerEvent):
        return write_event("answer", _reply(event.answer, with_context))
    if isinstance(event, ErrorEvent):
        return write_event("error", event.error.body())
    return write_event("restart", {})


def _reply(answer: Answer, with_context: bool) -> dict[str, Any]:
    record = current_record()
    return answer.to_dict(with_context=with_context) | {
        "request_id": record.id if record else "",
        # Empty if the server sends no traces.
        "trace_id": record.trace_id if record else "",
    }


class Judgements(BaseModel):
    """The judgements that count, the newest first: the last one of each answer to a question.

    `problem` names the first line of the file that is no judgement; it is empty without one.
    """

    judgements: list[Judgement]
    total: int
    problem: str = ""


@router.get("/judgements")
def list_judgements(
    index: ReadIndex,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum judgements.")] = 50,
) -> Judgements:
    """List what people have judged of answers. `graphrag-index evaluate` reads the file."""
    try:
        found, problem = read_judgements(index.root / EVALUATIONS / FILE)
    except OSError as error:
        text = f"{FILE} cannot be read: {why_unread(error)}."
        raise RequestError(503, "unreadable_judgements", text) from None
    return Judgements(judgements=found[::-1][:limit], total=len(found), problem=problem)


@router.post("/judgements")
def judge_answer(body: JudgedAnswer, index: WriteIndex, caller: CurrentCaller) -> Judgement:
    """Keep the judgement of a person on an answer, in the project of the index."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    judgement = Judgement(**body.model_dump(), author=caller.name, date=date)
    try:
        add_judgement(index.root / EVALUATIONS, judgement)
    except OSError as error:
        reason = reason_not_stored(error)
        text = f"The judgement was not kept: {reason}; judge the answer again once that is mended."
        raise RequestError(507, "not_stored", text) from None
    return judgement
