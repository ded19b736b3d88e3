"""Requests to a model about doubtful pairs, one each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Message, ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.step import Progress

# Characters of each description in the prompt.
MAX_DESCRIPTION = 600
_SAME = ("same", "same_entity", "is_same", "match", "equal", "merge", "answer", "result", "verdict")
_YES = frozenset("yes true same y 1 match merge equal identical".split())
_NO = frozenset(
    ("no false different n 0 distinct separate not_same none unsure unknown unclear").split()
)


@dataclass(frozen=True)
class PromptEntity:
    """One entity as the prompt shows it."""

    title: str
    type: str
    description: str

    def text(self) -> str:
        lines = [f"Name: {self.title}"]
        lines += [f"Type: {self.type}"] if self.type else []
        description = " ".join(self.description.split())
        if len(description) > MAX_DESCRIPTION:
            description = description[:MAX_DESCRIPTION].rpartition(" ")[0] + " ..."
        lines += [f"Description: {description}"] if description else []
        return "\n".join(lines)


def ask(
    pairs: Sequence[tuple[PromptEntity, PromptEntity]],
    chat_model: ChatModel,
    prompts: Prompts,
    progress: Progress,
) -> list[bool | None]:
    """Ask a model whether each pair is one thing; None without an answer."""
    system = Message(role="system", content=prompts.fill("resolve_entities", {}).strip())

    def requests() -> Iterator[Request]:
        for one, other in pairs:
            user = f"First:\n{one.text()}\n\nSecond:\n{other.text()}"
            label = f"{one.title} and {other.title}"
            yield Request(label, [system, Message(role="user", content=user)], FORMAT)

    progress.start(len(pairs), "doubtful pairs")
    answers: list[bool | None] = []
    for outcome in chat_model.replies(requests()):
        answers.append(outcome.values[0] if outcome.values and not outcome.failure else None)
        progress.advance()
    return answers


def _read(data: Any) -> ParsedReply:
    """Parse {"same": true}, and a few variants of it.

    Raises
    ------
    ReplyError
        It says neither yes nor no.
    """
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, Mapping):
        fields = {str(key).strip().lower(): value for key, value in data.items()}
        data = next((fields[name] for name in _SAME if name in fields), None)
    if isinstance(data, bool):
        return ParsedReply(data)
    word = str(data).strip().strip(".!\"'").casefold().replace(" ", "_") if data is not None else ""
    if word in _YES:
        return ParsedReply(True)
    if word in _NO:
        return ParsedReply(False)
    raise ReplyError("it must be an object with `same`, which is true or false")


FORMAT = ReplyFormat(
    "same_entity",
    {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "same": {"type": "boolean"}},
        "required": ["reason", "same"],
        "additionalProperties": False,
    },
    _read,
    'Reply with one JSON object and nothing else: {"reason": "...", "same": true or false}',
)
