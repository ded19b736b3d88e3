"""One step of drift search: a question that is answered on the way, and what it leads to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.text.citations import Shown, check_citations
from graphrag_query.answering.chat import Chat
from graphrag_query.answering.cited_text import NO_RECORD
from graphrag_query.answering.context import Context
from graphrag_query.answering.scores import read_score

HIGHEST = 100
# Of an answer whose reply has none.
NO_SCORE = 50.0
# A longer text is no question, in characters.
LONGEST_QUESTION = 400
SCHEMA = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "score": {"type": "integer"},
        "follow_ups": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["answer", "score", "follow_ups"],
    "additionalProperties": False,
}
IN_WORDS = (
    'Reply with one JSON object and nothing else: {"answer": "text [Data: Sources (ids)]", '
    '"score": number from 0 to 100, "follow_ups": ["question", ...]}'
)
# Other names that models give to the parts of a reply.
_ANSWERS = ("answer", "intermediate_answer", "response", "text", "summary")
_FOLLOW_UPS = ("follow_ups", "follow_up_queries", "follow_up_questions", "questions", "queries")
_QUESTIONS = ("question", "query", "text", "follow_up")


@dataclass(frozen=True)
class StepAnswer:
    """What was found out in one step; `answer` cites rows that the step was shown."""

    answer: str
    score: float  # 0 to 100; 0 if there is no answer
    follow_ups: tuple[str, ...]


def step_request(chat: Chat, whole: str, asked: str, context: Context) -> Request:
    """Ask one of the questions that belong to a whole one."""
    lines = [context.text, f"The larger question: {whole}", f"Question: {asked}"]
    return Request(
        asked,
        chat.messages("drift_step", "\n".join(lines)),
        ReplyFormat("drift_step", SCHEMA, partial(_read, context.shown), IN_WORDS),
    )


def _read(shown: Shown, data: Any) -> ParsedReply:
    """Make an answer of a reply; what is dropped are citations and follow-ups."""
    if isinstance(data, Sequence) and not isinstance(data, str) and data:
        data = data[0]
    if isinstance(data, str):
        data = {"answer": data}
    if not isinstance(data, Mapping):
        raise ReplyError("it is no JSON object with answer, score and follow_ups")
    text = next((t for key in _ANSWERS if isinstance(t := data.get(key), str)), "")
    text = text.encode("utf-8", "replace").decode()
    answer, dropped = check_citations(text, shown)
    if answer.upper().startswith(NO_RECORD):
        answer = ""
    listed: Any = next((f for key in _FOLLOW_UPS if (f := data.get(key))), [])
    follow_ups, n_bad = _questions(listed)
    if not answer and not follow_ups and not any(key in data for key in _ANSWERS):
        raise ReplyError("it has no answer and no follow_ups")
    score = read_score(data.get("score", data.get("rating")), HIGHEST)
    score = NO_SCORE if score is None else score
    return ParsedReply(StepAnswer(answer, score if answer else 0.0, follow_ups), dropped + n_bad)


def _questions(listed: Any) -> tuple[tuple[str, ...], int]:
    """Return the questions in a list, a text of several lines or an object; count the rest."""
    if isinstance(listed, str):
        listed = listed.splitlines()
    elif isinstance(listed, Mapping):
        one = any(key in listed for key in _QUESTIONS)
        listed = [listed] if one else list(listed.values())
    elif not isinstance(listed, Sequence):
        listed = [listed]
    questions = []
    for entry in listed:
        if isinstance(entry, Mapping):
            entry = next((q for key in _QUESTIONS if (q := entry.get(key))), None)
        if isinstance(entry, str):
            text = " ".join(entry.encode("utf-8", "replace").decode().split()).lstrip(
                "-*•0123456789.) "
            )
            if text and len(text) <= LONGEST_QUESTION:
                questions.append(text)
    return tuple(dict.fromkeys(questions)), len(listed) - len(questions)
