"""The question in the messages of a chat, the model that is asked, and the cited answer."""

import json
import re
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from pydantic import BaseModel, ConfigDict

from graphrag_query.answer import Answer
from graphrag_query.question.conversation import Turn
from graphrag_query.searches.router import METHODS
from graphrag_server.access import Caller, visible_index
from graphrag_server.asking import AskedQuestion
from graphrag_server.hosted_index import HostedIndexes
from graphrag_server.keys import Scope
from graphrag_server.problems import RequestError
from graphrag_server.request_record import current_request_id
from graphrag_server.routes.ask import MAX_QUESTION_CHARS, MAX_TURNS, QuestionFilters

# Open WebUI sends prompts with this beginning to the model of the chat: for a title, tags, further
# questions, search queries and so on. They are no questions to the documents. The prompt around a
# question with attached files or web pages begins in the same way, but has a question.
_BEGINNING = "### Task:"
_HISTORY = re.compile(r"<chat_history>\s*(.*?)\s*</chat_history>", re.DOTALL)
_USER_LINE = re.compile(r"^\s*(?:USER|User)\s*:\s*(.+)$", re.MULTILINE)
# The key of the JSON object that a prompt asks for.
_KEY = re.compile(r'"(title|tags|follow_ups|queries|text|prompt)"\s*:')
_MAX_TITLE_WORDS = 6
# The end of the prompt with attached texts: the question is in a tag, or follows the texts.
_ATTACHED_TEXTS = re.compile(r"<context>.*</context>", re.DOTALL)
_TAGGED_QUESTION = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
PREFIX = "graphrag"
_MARK = re.compile(r"\[(\d+)\]")


def is_task(prompt: str) -> bool:
    """Return whether a message is a hidden prompt of Open WebUI."""
    return prompt.lstrip().startswith(_BEGINNING)


def unwrap_question(message: str) -> str:
    """Return the question in a prompt with attached texts; any other message as it is."""
    attached = _ATTACHED_TEXTS.search(message) if is_task(message) else None
    if attached is None:
        return message
    rest = message[attached.end() :]
    tagged = _TAGGED_QUESTION.search(rest)
    return (tagged[1] if tagged else rest).strip() or message


def answer_task(prompt: str) -> str | None:
    """Return the reply to a hidden prompt, without a search; None if the prompt is a question."""
    if not is_task(prompt):
        return None
    history = _HISTORY.search(prompt)
    questions = _USER_LINE.findall(history[1]) if history else []
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

    def text(self) -> str:
        """Return the text of the message. Raises RequestError for images and other parts."""
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
        filters=options.filters.chosen(),
        as_of=options.as_of,
        conversation=chat.turns,
    )


@dataclass(frozen=True)
class Annotation:
    """A citation mark in a text: ``text[start:end]`` is the mark; offsets count code points."""

    start: int
    end: int
    url: str
    title: str


def annotate(text: str, answer: Answer, asked: AskedQuestion, request: Request) -> list[Annotation]:
    """Return an annotation for each citation mark in a text, in the order of the text."""
    links = _link_citations(answer, asked, request)
    return [
        Annotation(mark.start(), mark.end(), *links[int(mark[1])])
        for mark in _MARK.finditer(text)
        if int(mark[1]) in links
    ]


def _link_citations(
    answer: Answer, asked: AskedQuestion, request: Request
) -> dict[int, tuple[str, str]]:
    """Map the numbers of citations to an address in the explorer and a title."""
    store = asked.hosted.open(asked.as_of).store
    if store.version.number != answer.version:
        store = asked.hosted.open(answer.version).store
    rows = store.text_units(citation.text_unit for citation in answer.citations)
    base = f"{str(request.base_url).rstrip('/')}/#/{asked.hosted.name}/document"
    return {
        citation.number: (
            f"{base}/{rows[citation.text_unit]['document']}/"
            f"{citation.start_char}-{citation.end_char}",
            citation.document,
        )
        for citation in answer.citations
        if citation.text_unit in rows
    }


def describe(answer: Answer) -> dict[str, Any]:
    """Return the outcome, cost, citations and so on, for which other protocols have no field."""
    content = answer.to_dict()
    names = (
        *("outcome", "method", "question", "citations", "notes", "follow_ups", "suggestion"),
        *("usage", "version", "table"),
    )
    return {**{name: content[name] for name in names}, "request_id": current_request_id()}
