"""A model decides about doubtful pairs: one request for each, so that an answer is kept with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Message, ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.step import Progress

# What is shown of each description, in characters.
MAX_DESCRIPTION = 600
_SAME = ("same", "same_entity", "is_same", "match", "equal", "merge", "answer", "result", "verdict")
_YES = frozenset("yes true same y 1 match merge equal identical".split())
_NO = frozenset(
    ("no false different n 0 distinct separate not_same none unsure unknown unclear").split()
)


@dataclass(frozen=True)
class Shown:
    """What a model is shown of one entity."""

    title: str
    type: str
    description: str

    def text(self) -> str:
        lines = [f"Name: {self.title}"]
        lines += [f"Type: {self.type}"] if self.type else []
        said = " ".join(self.description.split())
        if len(said) > MAX_DESCRIPTION:
            said = said[:MAX_DESCRIPTION].rpartition(" ")[0] + " ..."
        lines += [f"Description: {said}"] if said else []
        return "\n".join(lines)


def ask(
    pairs: Sequence[tuple[Shown, Shown]],
    chat_model: ChatModel,
    prompts: Prompts,
    progress: Progress,
) -> list[bool | None]:
    """Ask of each pair whether it is one thing; None where there was no answer."""
    system = Message(role="system", content=prompts.fill("resolve_entities", {}).strip())

    def requests() -> Iterator[Request]:
        for one, other in pairs:
            user = f"First:\n{one.text()}\n\nSecond:\n{other.text()}"
            label = f"{one.title} and {other.title}"
            yield Request(label, [system, Message(role="user", content=user)], FORMAT)

    progress.start(len(pairs), "doubtful pairs")
    said: list[bool | None] = []
    for outcome in chat_model.replies(requests()):
        said.append(outcome.values[0] if outcome.values and not outcome.failure else None)
        progress.advance()
    return said


def _read(data: Any) -> ParsedReply:
    """Read {"same": true}, with a few liberties.

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
