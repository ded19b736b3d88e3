"""A conversation: each question is made to stand by itself, and is then answered as any other."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphrag_index.errors import SettingsError
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request
from graphrag_index.storage.atomic import write_json
from graphrag_query.answer import Answer
from graphrag_query.answering.chat import Chat
from graphrag_query.retrieval.index_store import KnowledgeModel

# The newest turns say what a question leaves out; older ones mislead.
TURNS_READ = 4
_ANSWER_CHARS = 1_500
# Words that stand for a person or thing, and those of them that stand before what is owned.
_PRONOUNS = {
    "en": ("he she it they him her them", "his hers its their theirs"),
    "de": ("er sie es ihn ihm ihr ihnen", "sein seine seinen seiner seinem ihre ihren ihrer ihrem"),
    "fr": ("il elle ils elles lui leur", ""),
    "es": ("él ella ellos ellas", ""),
    "pl": ("on ona ono oni one jego go mu jej ją ich im", ""),
}
_STANDING_FOR = {word for words, _ in _PRONOUNS.values() for word in words.split()}
_OWNING = {word for _, words in _PRONOUNS.values() for word in words.split()}
# How a question begins that goes on from the last one.
_GOES_ON = re.compile(
    r"^\s*(?:and|but|what about|how about|und|aber|et|mais|y|pero|a|i|co z)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Turn:
    """A question as it was asked and as it was answered, and the answer."""

    question: str
    asked: str
    answer: str


class Conversation:
    """The turns so far, kept in a file if one is named: JSON, a list of turns.

    Raises
    ------
    SettingsError
        The file holds something else.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.turns: list[Turn] = [] if path is None else _read_turns(path)

    def add(self, question: str, answer: Answer) -> None:
        """Note a turn, in the file too, behind what others have noted there meanwhile."""
        turn = Turn(question, answer.question, answer.text)
        if self.path is None:
            self.turns.append(turn)
            return
        from filelock import FileLock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_name(f".{self.path.name}.lock")):
            self.turns = [*_read_turns(self.path), turn]
            write_json(self.path, [asdict(turn) for turn in self.turns])

    def rewrite(self, question: str, model: KnowledgeModel, chat: Chat | None) -> str:
        """Return a question that can be understood without the conversation.

        A model rewrites it; without one the name that the last question was about takes the
        place of the first word that stands for it.
        """
        if not self.turns:
            return question
        if chat is not None:
            return _rewritten_by_model(question, self.turns[-TURNS_READ:], chat)
        return _rewritten_by_rule(question, self.turns, model)


def _read_turns(path: Path) -> list[Turn]:
    if path.is_dir():
        raise SettingsError(f"{path} is a folder: name a file with --session.")
    if not path.exists():
        return []
    try:
        turns = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(turns, list):
            raise TypeError("no list")
        read = [Turn(**turn) for turn in turns]
        if not all(isinstance(text, str) for turn in read for text in asdict(turn).values()):
            raise TypeError("no text")
    except (ValueError, TypeError) as error:
        raise SettingsError(
            f"{path} is no session of this program: name another file with --session."
        ) from error
    return read


def _rewritten_by_model(question: str, turns: Sequence[Turn], chat: Chat) -> str:
    """Ask a model; what it cannot rewrite is asked as it is."""
    said = "\n\n".join(
        f"Question: {turn.asked}\nAnswer: {turn.answer[:_ANSWER_CHARS]}" for turn in turns
    )
    asked = f"Conversation:\n{said}\n\nNew question: {question}"
    messages = chat.messages("rewrite_question", asked)
    [outcome] = chat.replies([Request(question, messages, _FORMAT)], rating=True)
    return str(outcome.values[0]) if outcome.values else question


def _read(data: Any) -> ParsedReply:
    text = data.get("question") if isinstance(data, dict) else data
    if not isinstance(text, str) or not text.strip():
        raise ReplyError("it has no text `question`")
    return ParsedReply(" ".join(text.split()))


_FORMAT = ReplyFormat(
    "rewritten_question",
    {
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
        "additionalProperties": False,
    },
    _read,
    'Reply with JSON and nothing else: {"question": "the question, rewritten"}',
)


def _rewritten_by_rule(question: str, turns: Sequence[Turn], model: KnowledgeModel) -> str:
    """Put the last subject in the place of the first word that stands for it."""
    if names_of(model, question):
        return question
    subject = next((name for t in reversed(turns) if (name := _subject(model, t))), None)
    if subject is None:
        return question
    for word in _WORD.finditer(question):
        if word.group().lower() in _OWNING:
            return f"{question[: word.start()]}{_owner(subject)}{question[word.end() :]}"
        if word.group().lower() in _STANDING_FOR:
            # "her ship" owns, "met her" does not.
            owns = word.group().lower() == "her" and re.match(r"\s+\w", question[word.end() :])
            name = _owner(subject) if owns else subject
            return f"{question[: word.start()]}{name}{question[word.end() :]}"
    if _GOES_ON.match(question) or len(_WORD.findall(question)) <= 2:
        return f"{question.rstrip('?！？ ')} ({subject})?"
    return question


def _owner(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _subject(model: KnowledgeModel, turn: Turn) -> str | None:
    """Return the name that a turn was about: the first of its question."""
    return next(iter(names_of(model, turn.asked)), None)


def names_of(model: KnowledgeModel, question: str) -> list[str]:
    """Return the titles of the entities that a question names, the surest first."""
    from graphrag_query.question.entity_linking import names_in_question

    numbers = [named.entity for named in names_in_question(model, question)]
    return list(model.entities(numbers)["title"])
