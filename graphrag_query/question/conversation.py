"""Conversations: each question is rewritten so that it stands by itself, then answered."""

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
from graphrag_query.answering.llm import LLM
from graphrag_query.question.mentions import Mentions
from graphrag_query.retrieval.index_store import IndexStore

# Older turns mislead.
MAX_TURNS = 4
_ANSWER_CHARS = 1_500
# Personal and possessive pronouns, by language.
_PRONOUNS = {
    "en": ("he she it they him her them", "his hers its their theirs"),
    "de": ("er sie es ihn ihm ihr ihnen", "sein seine seinen seiner seinem ihre ihren ihrer ihrem"),
    "fr": ("il elle ils elles lui leur", ""),
    "es": ("él ella ellos ellas", ""),
    "pl": ("on ona ono oni one jego go mu jej ją ich im", ""),
}
_PERSONAL = {word for words, _ in _PRONOUNS.values() for word in words.split()}
_POSSESSIVE = {word for _, words in _PRONOUNS.values() for word in words.split()}
# Beginnings of a question that continues the last one.
_CONTINUES = re.compile(
    r"^\s*(?:and|but|what about|how about|und|aber|et|mais|y|pero|a|i|co z)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Turn:
    """A question as the user wrote it, as it was asked, and the answer."""

    question: str
    asked: str
    answer: str


class Conversation:
    """The turns so far, stored in a file if one is named: JSON, a list of turns.

    Raises
    ------
    SettingsError
        The file has other content.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.turns: list[Turn] = [] if path is None else _read_turns(path)

    def add(self, question: str, answer: Answer) -> None:
        """Append a turn, also to the file, behind those of concurrent conversations."""
        turn = Turn(question, answer.question, answer.text)
        if self.path is None:
            self.turns.append(turn)
            return
        from filelock import FileLock

        self.path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(self.path.with_name(f".{self.path.name}.lock")):
            self.turns = [*_read_turns(self.path), turn]
            write_json(self.path, [asdict(turn) for turn in self.turns])

    def rewrite(self, question: str, index: IndexStore, llm: LLM | None) -> str:
        """Return a question that can be understood without the conversation.

        A model rewrites it; without one, the last name mentioned replaces the first pronoun.
        """
        if not self.turns:
            return question
        if llm is not None:
            return _rewritten_by_model(question, self.turns[-MAX_TURNS:], llm)
        return _rewritten_by_rule(question, self.turns, index)


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


def _rewritten_by_model(question: str, turns: Sequence[Turn], llm: LLM) -> str:
    """Let a model rewrite a question; unchanged if the reply is invalid."""
    said = "\n\n".join(
        f"Question: {turn.asked}\nAnswer: {turn.answer[:_ANSWER_CHARS]}" for turn in turns
    )
    asked = f"Conversation:\n{said}\n\nNew question: {question}"
    messages = llm.messages("rewrite_question", asked)
    [outcome] = llm.replies([Request(question, messages, _FORMAT)], rating=True)
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


def _rewritten_by_rule(question: str, turns: Sequence[Turn], index: IndexStore) -> str:
    """Replace the first pronoun by the last name mentioned."""
    if _named(index, question):
        return question
    subject = next((name for t in reversed(turns) if (name := _subject(index, t))), None)
    if subject is None:
        return question
    for word in _WORD.finditer(question):
        if word.group().lower() in _POSSESSIVE:
            return f"{question[: word.start()]}{_possessive(subject)}{question[word.end() :]}"
        if word.group().lower() in _PERSONAL:
            # "her ship" is possessive, "met her" is not.
            owns = word.group().lower() == "her" and re.match(r"\s+\w", question[word.end() :])
            name = _possessive(subject) if owns else subject
            return f"{question[: word.start()]}{name}{question[word.end() :]}"
    if _CONTINUES.match(question) or len(_WORD.findall(question)) <= 2:
        return f"{question.rstrip('?！？ ')} ({subject})?"
    return question


def _possessive(name: str) -> str:
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def _subject(index: IndexStore, turn: Turn) -> str | None:
    """Return the title of the first entity that a turn's question names."""
    return next(iter(_named(index, turn.asked)), None)


def _named(index: IndexStore, question: str) -> list[str]:
    """Return the titles of the entities that a question names, the heaviest first."""
    numbers = [mention.entity for mention in Mentions(index, question).entities]
    return list(index.entities(numbers)["title"])
