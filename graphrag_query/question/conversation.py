"""Conversations: rewrite a question with the earlier turns, and suggest further questions."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from graphrag_index.errors import SettingsError
from graphrag_index.llm.prompts import quote_text
from graphrag_index.llm.request import ParsedReply, ReplyError, Request
from graphrag_index.storage.atomic import write_json
from graphrag_nlp.text.languages import detect_language
from graphrag_query.answer import Answer
from graphrag_query.llm import LLM, find_records, read_questions, reply_format
from graphrag_query.question.question import Mentions, Question
from graphrag_query.question.question_words import WORD_LISTS
from graphrag_query.store.index_store import IndexStore

# Maximum number of turns that a model sees; older turns mislead it.
MAX_TURNS_IN_PROMPT = 4
# Maximum characters of each answer in the prompt that rewrites a question.
_MAX_CHARS_TO_REWRITE = 1_500
# Maximum characters of the answer in the prompt that suggests questions.
_MAX_CHARS_TO_SUGGEST = 4_000
_PERSONAL, _POSSESSIVE = (
    {word for words in WORD_LISTS[kind].values() for word in words.split()}
    for kind in ("personal_pronouns", "possessive_pronouns")
)
# Words at the start of a question that continues the previous question.
_CONTINUING_START = re.compile(
    r"^\s*(?:and|but|what about|how about|und|aber|et|mais|y|pero|a|i|co z)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class Turn:
    """A question as the user wrote it, the rewritten question, and the answer."""

    question: str
    asked: str
    answer: str


class Conversation:
    """The turns of a conversation. If `path` is set, the file there stores them as a JSON list.

    Raises `SettingsError` if the file has other content.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.turns: list[Turn] = [] if path is None else _read_turns(path)

    def add(self, question: str, answer: Answer) -> None:
        """Append a turn to the conversation and its file.

        Turns that another process wrote to the file in the meantime are kept.
        """
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
        """Rewrite a question so that it can be understood without the conversation.

        A model rewrites it. Without a model, the last name mentioned replaces the first pronoun.
        """
        if not self.turns:
            return question
        if llm is not None:
            return _rewrite_by_model(question, self.turns[-MAX_TURNS_IN_PROMPT:], llm)
        return _rewrite_by_rule(question, self.turns, index)


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
            f"{path} contains no conversation: name another file with --session."
        ) from error
    return read


def _rewrite_by_model(question: str, turns: Sequence[Turn], llm: LLM) -> str:
    """Let a model rewrite a question. If the reply is invalid, return the question unchanged."""
    said = "\n\n".join(
        f"Question: {turn.asked}\nAnswer: {turn.answer[:_MAX_CHARS_TO_REWRITE]}" for turn in turns
    )
    asked = f"Conversation:\n{quote_text(said)}\n\nNew question: {question}"
    messages = llm.messages("rewrite_question", asked)
    [outcome] = llm.replies([Request(question, messages, _QUESTION_FORMAT)], rating=True)
    return str(outcome.values[0]) if outcome.values else question


def _parse_rewritten_question(data: Any) -> ParsedReply:
    text = data.get("question") if isinstance(data, dict) else data
    if not isinstance(text, str) or not text.strip():
        raise ReplyError("it has no text `question`")
    return ParsedReply(" ".join(text.split()))


_QUESTION_FORMAT = reply_format("rewritten_question", _parse_rewritten_question)


def _rewrite_by_rule(question: str, turns: Sequence[Turn], index: IndexStore) -> str:
    """Replace the first pronoun with the last name mentioned."""
    if _find_named_titles(index, question):
        return question
    subject = next(
        (names[0] for t in reversed(turns) if (names := _find_named_titles(index, t.asked))), None
    )
    if subject is None:
        return question
    for word in _WORD.finditer(question):
        pronoun, behind = word.group().lower(), question[word.end() :]
        if pronoun in _POSSESSIVE or pronoun in _PERSONAL:
            # In "her ship" the word "her" is possessive, in "met her" it is not.
            owns = pronoun in _POSSESSIVE or (pronoun == "her" and re.match(r"\s+\w", behind))
            ending = "" if not owns else "'" if subject.endswith("s") else "'s"
            return f"{question[: word.start()]}{subject}{ending}{behind}"
    if _CONTINUING_START.match(question) or len(_WORD.findall(question)) <= 2:
        return f"{question.rstrip('?！？ ')} ({subject})?"
    return question


def _find_named_titles(index: IndexStore, question: str) -> list[str]:
    """Return the titles of the entities that a question names, the highest weight first."""
    numbers = [mention.entity for mention in Mentions(index, question).entities]
    return list(index.entities(numbers)["title"])


def suggest_questions(answer: Answer, most: int, question: Question) -> tuple[str, ...]:
    """Suggest questions that follow from an answer; none if the model's reply is invalid.

    Without a model, the questions ask about entities that the search found near the question.
    """
    llm = question.llm
    names = _find_near_names(answer, question.index)
    if llm is None:
        templates = WORD_LISTS["suggestions"]
        person, other = templates.get(detect_language(answer.question), templates["en"])
        return tuple(
            (person if kind == "person" else other).format(name) for name, kind in names[:most]
        )
    near = ", ".join(name for name, _ in names)
    said = quote_text(answer.text[:_MAX_CHARS_TO_SUGGEST])
    asked = f"Question: {answer.question}\n\nAnswer: {said}\n\nNear: {near}"
    messages = llm.messages("suggest_questions", asked, most=str(most))
    [outcome] = llm.replies([Request(answer.question, messages, _SUGGESTIONS_FORMAT)], rating=True)
    return tuple(outcome.values[0][:most]) if outcome.values else ()


def _find_near_names(answer: Answer, index: IndexStore) -> list[tuple[str, str]]:
    """Return titles and types of entities near the question that the question does not name.

    Entities in the cited passages come first.
    """
    asked = answer.question.casefold()
    numbers: dict[int, None] = {}
    for text_unit in dict.fromkeys(citation.text_unit for citation in answer.citations):
        entities, is_subject = index.links.entities_of(text_unit)
        numbers |= dict.fromkeys(entities[is_subject].tolist())
    if answer.context is not None and "Entities" in answer.context.tables:
        numbers |= dict.fromkeys(answer.context.tables["Entities"].to_series(0).to_list())
    rows = index.entities(numbers).select("title", "type").iter_rows()
    # The last word of a title may be a family name. If the question contains the title, it also
    # contains this word.
    return [row for row in rows if not any(w in asked for w in row[0].casefold().split()[-1:])]


def _parse_suggested_questions(data: Any) -> ParsedReply:
    found = data.get("questions") if isinstance(data, dict) else data
    if not isinstance(found, list | str):
        raise ReplyError("it has no list `questions`")
    records = find_records(found, "questions", ())
    texts = read_questions(records)
    return ParsedReply(texts, len(records) - len(texts))


_SUGGESTIONS_FORMAT = reply_format("suggested_questions", _parse_suggested_questions)
