"""The question and its history in the messages of a chat, and the model that is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict

from graphrag_query.question.conversation import Turn
from graphrag_query.searches.router import METHODS
from graphrag_server.access import Caller, visible_index
from graphrag_server.asking import AskedQuestion
from graphrag_server.hosted_index import HostedIndexes
from graphrag_server.keys import Scope
from graphrag_server.problems import RequestError
from graphrag_server.protocols.task_prompts import is_task, unwrap_question
from graphrag_server.routes.ask import MAX_QUESTION_CHARS, MAX_TURNS, QuestionFilters

PREFIX = "graphrag"


class ChatMessage(BaseModel):
    """One message. Its content is a text, or a list of parts."""

    model_config = ConfigDict(extra="ignore")

    role: str
    content: str | list[dict[str, Any]] | None = None

    def text(self) -> str:
        """Return the text of the message. Raises RequestError for images and other parts."""
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        texts = []
        for part in self.content:
            if part.get("type") not in ("text", "input_text", "output_text"):
                raise RequestError(
                    400,
                    "unsupported_content",
                    f"A message has a part of the type {part.get('type')!r}: send texts only.",
                )
            texts.append(str(part.get("text", "")))
        return "\n".join(texts)


class SearchOptions(BaseModel):
    """Options of a question in fields of our own."""

    filters: QuestionFilters = QuestionFilters()
    settings: dict[str, Any] = {}
    as_of: int | None = None


@dataclass(frozen=True)
class Chat:
    """The last question of a chat, and the turns before it."""

    question: str
    turns: tuple[Turn, ...]


def read_chat(messages: list[ChatMessage]) -> Chat:
    """Return the last question of a chat and its history. Raises RequestError if there is none.

    System messages are ignored: the prompts are those of this program.
    """
    turns: list[Turn] = []
    question = ""
    for message in messages:
        text = message.text().strip()
        if message.role == "user":
            question = unwrap_question(text)
        elif message.role == "assistant" and question:
            turns.append(Turn(question, question, text))
            question = ""
    if not question:
        raise RequestError(400, "no_question", "The last message must be a question of the user.")
    # A hidden prompt holds the whole chat, and is not searched for.
    if len(question) > MAX_QUESTION_CHARS and not is_task(question):
        raise RequestError(
            400, "question_too_long", f"A question has at most {MAX_QUESTION_CHARS:,} characters."
        )
    return Chat(question, tuple(turns[-MAX_TURNS:]))


def model_names(request: Request, caller: Caller) -> list[str]:
    """Return the names of the models: one for each index and search that the caller may use."""
    indexes: HostedIndexes = request.app.state.indexes
    return [
        f"{PREFIX}/{index.name}/{method}"
        for index in indexes
        if caller.may_see(index.name)
        for method in METHODS
    ]


def ask_model(
    request: Request, caller: Caller, model: str, chat: Chat, options: SearchOptions
) -> AskedQuestion:
    """Return the question to the index and the search that the name of a model says.

    The name is `graphrag/INDEX/SEARCH`. Raises RequestError for any other name.
    """
    parts = model.removesuffix(":latest").split("/")
    if parts[0] == PREFIX:
        parts = parts[1:]
    name, method = [*parts, "ask"][:2] if len(parts) <= 2 else ("", "")
    known = model_names(request, caller)
    if method not in METHODS or f"{PREFIX}/{name}/{method}" not in known:
        hint = f", such as {known[0]}" if known else ""
        raise RequestError(
            404, "model_not_found", f"There is no model {model!r}: GET /v1/models lists them{hint}."
        )
    hosted = visible_index(request, caller, name, Scope.ASK)
    return AskedQuestion(
        hosted,
        caller,
        chat.question,
        method,
        settings=options.settings,
        filters=_set_filters(options.filters),
        as_of=options.as_of,
        conversation=chat.turns,
    )


def _set_filters(filters: QuestionFilters) -> Mapping[str, Any]:
    return {name: value for name, value in filters.model_dump().items() if value}
