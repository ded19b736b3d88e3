"""Judgements of answers by people: kept in a file, and read as questions with known answers."""

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from graphrag_evaluation.questions import (
    EvaluationQuestion,
    GoldSpan,
    parse_questions,
    read_records,
)
from graphrag_evaluation.scores import cited_sentences
from graphrag_index.errors import SettingsError
from graphrag_nlp.text.normalize import fold

FILE = "judgements.jsonl"
# Seconds to wait for another process that writes the file.
LOCK_SECONDS = 10


class JudgedCitation(BaseModel):
    """A passage that the answer cites: the characters `start_char` to `end_char` of a document."""

    number: int
    document: str = Field("", max_length=10_000, description="Title of the document.")
    document_id: str = Field(max_length=1_000)
    start_char: int = Field(ge=0)
    end_char: int
    quote: str = Field("", max_length=100_000)
    text_unit: int


class JudgedAnswer(BaseModel, extra="forbid"):
    """An answer with the verdict of a person, from which the page or a program sends it.

    `up` means that the answer and its citations are those to expect, `down` that the answer is
    wrong. `withdrawn` takes back what was said of the same answer to the same question before.
    """

    verdict: Literal["up", "down", "withdrawn"]
    reason: str = Field("", max_length=5_000)
    question: str = Field(min_length=1, max_length=20_000, description="As it was understood.")
    method: str = Field(max_length=100)
    parameters: dict[str, Any] = Field({}, description="Settings of the search.")
    filters: dict[str, Any] = Field({}, description="Filters of the question; empty if none.")
    version: int = Field(ge=1, description="Version of the index.")
    outcome: Literal["answered", "no_evidence"]
    answer: str = Field(max_length=200_000)
    citations: list[JudgedCitation] = Field([], max_length=1_000)


class Judgement(JudgedAnswer):
    """A judgement as it is kept: with the name of the key of its author, and its time (UTC)."""

    author: str
    date: str


def add_judgement(folder: Path, judgement: Judgement) -> None:
    """Append a judgement to the file in a folder, whole or not at all.

    Raises OSError if it cannot be written, also if another process keeps the file locked.
    """
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    left = f"{judgement.model_dump_json()}\n".encode()
    try:
        held = FileLock(folder / f".{FILE}.lock").acquire(timeout=LOCK_SECONDS)
    except Timeout:
        raise OSError(errno.EAGAIN, f"another process holds {FILE}") from None
    with held, (folder / FILE).open("a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        # What a killed writer or an editor left without a line break stays a line of its own.
        left = left if file.read(1) in (b"\n", b"") else b"\n" + left
        try:
            while left:
                # A disk with little space takes only a part.
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise


def read_judgements(path: Path) -> tuple[list[Judgement], str]:
    """Return the judgements that count, the oldest first, and the first line that is none.

    The last judgement of an answer to a question counts, whoever made it. No file has none.
    Raises OSError if the file cannot be read.
    """
    if not path.exists():
        return [], ""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    found, problem = [], ""
    for number, line in enumerate(lines, start=1):
        try:
            found += [Judgement.model_validate_json(line)] if line.strip() else []
        except ValidationError:
            problem = problem or f"Line {number} of {path.name} is no judgement: delete the line."
    return _last_of_each_answer(found), problem


def _last_of_each_answer(judgements: Iterable[Judgement]) -> list[Judgement]:
    last: dict[tuple[str, str], Judgement] = {}
    for judgement in judgements:
        key = (fold(judgement.question), judgement.answer)
        last.pop(key, None)
        if judgement.verdict != "withdrawn":
            last[key] = judgement
    return list(last.values())


def read_known_answers(path: Path) -> list[EvaluationQuestion]:
    """Read a file of questions with known answers, or of judgements, as such questions.

    Raises `SettingsError` if a record is neither, or if no judgement can be used.
    """
    records = list(read_records(path))
    if not any(isinstance(record, dict) and "verdict" in record for record in records):
        return parse_questions(records, path)
    judgements = []
    for number, record in enumerate(records, start=1):
        try:
            judgements.append(Judgement.model_validate(record))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"])) or "record"
            raise SettingsError(
                f"{path}, record {number} is no judgement: {field}: {first['msg']}; correct or "
                "delete its line."
            ) from error
    # An evaluation asks the whole index, so it cannot repeat a question under filters.
    kept = [one for one in _last_of_each_answer(judgements) if not one.filters]
    if not kept:
        raise SettingsError(
            f"{path} has no judgement for an evaluation: those that were withdrawn, or were made "
            "under filters, do not count."
        )
    return list(_as_questions(kept))


def _as_questions(judgements: Iterable[Judgement]) -> Iterator[EvaluationQuestion]:
    """Yield a question with known answers for each question that was judged.

    The last answer that was approved has the gold spans and statements; other approved answers
    count as other ways to answer.
    """
    by_question: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        by_question.setdefault(fold(judgement.question), []).append(judgement)
    for number, judged in enumerate(by_question.values(), start=1):
        approved = [one for one in reversed(judged) if one.verdict == "up"]
        answers = [one.answer for one in approved if one.outcome == "answered"]
        wrong = [one for one in judged if one.verdict == "down" and one.outcome == "answered"]
        gold = approved[0] if approved and approved[0].outcome == "answered" else None
        yield EvaluationQuestion(
            id=str(number),
            text=judged[-1].question,
            kind="approved" if approved else "rejected",
            spans=tuple(map(_as_span, gold.citations)) if gold else (),
            statements=tuple(one.text for one in cited_sentences(gold.answer)) if gold else (),
            answers=tuple(dict.fromkeys(answers)) if gold else (),
            wrong_answers=tuple(dict.fromkeys(one.answer for one in wrong)),
            is_answerable=gold is not None or not approved,
        )


def _as_span(citation: JudgedCitation) -> GoldSpan:
    return GoldSpan(citation.document_id, citation.start_char, citation.end_char, citation.quote)
