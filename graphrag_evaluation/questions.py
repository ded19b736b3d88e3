"""Questions with known answers, and files of them in the layouts of known evaluation sets."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_index.errors import ExportError, SettingsError, why_unread
from graphrag_index.storage.atomic import write_text_file

# Names of each field in known evaluation sets. Of several names, the first with a value counts.
# HotpotQA: _id, answer, supporting_facts. MuSiQue: id, answer_aliases, answerable, paragraphs.
# RAGAS: user_input, reference. benchmark-qed: question_id, question_text, question_type,
# assertions. GraphRAG-Bench: id, question_type, evidence. WildGraphBench: ref_urls, statements.
_ID = ("id", "_id", "question_id", "qid")
_TEXT = ("question", "question_text", "user_input", "query", "text")
_KIND = ("type", "question_type", "kind")
_ANSWERS = ("answers", "answer", "reference", "aliases", "answer_aliases")
_STATEMENTS = ("statements", "gold_statements", "assertions", "evidence")
_CONTEXTS = ("reference_contexts",)
_DOCUMENTS = ("documents", "gold", "gold_documents", "ref_urls")
_IS_ANSWERABLE = ("is_answerable", "answerable")
_SPLIT = ("split",)


@dataclass(frozen=True)
class GoldSpan:
    """A passage that a right answer rests on: ``documents.text[start_char:end_char]``."""

    document: str
    start_char: int
    end_char: int
    text: str = ""


@dataclass(frozen=True)
class EvaluationQuestion:
    """A question with its known answer; empty fields are unknown.

    Documents are named by id, path or title. Each field allows its own measures: `documents` and
    `spans` those of retrieval, `statements` coverage, `answers` the short answer, and
    `is_answerable` the outcome `no_evidence`. If only `wrong_answers` are known, a right answer
    may be another one or a refusal.
    """

    id: str
    text: str
    kind: str = ""
    documents: tuple[str, ...] = ()
    spans: tuple[GoldSpan, ...] = ()
    statements: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()  # the answer, then other ways to write it
    wrong_answers: tuple[str, ...] = ()
    is_answerable: bool = True
    split: str = ""  # tune or report

    @property
    def cluster(self) -> str:
        """The document that the question is about; the question itself if none is known."""
        named = (*(span.document for span in self.spans), *self.documents)
        return min(named, default=self.id)


def read_questions(path: Path) -> list[EvaluationQuestion]:
    """Read the questions of a file: JSON, or JSON Lines, also compressed by gzip.

    Raises `SettingsError` if the file cannot be read, a record has no question, or two records
    have the same id.
    """
    return parse_questions(read_records(path), path)


def parse_questions(records: Iterable[Any], path: Path) -> list[EvaluationQuestion]:
    """Parse the records of a file of questions; `path` is its name in errors (SettingsError)."""
    questions = [
        _read_question(record, f"{path}, question {number}", str(number))
        for number, record in enumerate(records, start=1)
    ]
    if not questions:
        raise SettingsError(f"{path} has no questions.")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise SettingsError(f"{path}: two questions have the id {question.id!r}.")
        seen.add(question.id)
    return questions


def read_records(path: Path) -> Iterator[Any]:
    """Yield the records of a file of JSON or JSON Lines. Raises `SettingsError`."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {why_unread(error)}.") from error
    if path.name.removesuffix(".gz").endswith(".json"):
        data = _parse_json(text, str(path))
        records = data.get("questions", [data]) if isinstance(data, Mapping) else data
        if not isinstance(records, list):
            raise SettingsError(f"{path}: a list of questions is expected.")
        yield from records
        return
    # A text may have other line breaks: U+2028 needs no escape in JSON.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield _parse_json(line, f"{path}, line {number}")


def _parse_json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{place}: this is not JSON: {error}; correct it.") from error


def _read_question(record: Any, place: str, number: str) -> EvaluationQuestion:
    try:
        return _parse_question(record, place, number)
    except (LookupError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
        raise SettingsError(
            f"{place}: a field has another form than in the known layouts ({error!r})."
        ) from error


def _parse_question(record: Any, place: str, number: str) -> EvaluationQuestion:
    if not isinstance(record, Mapping):
        raise SettingsError(f"{place}: a record with the field question is expected.")
    text = _first_value(record, _TEXT)
    if not isinstance(text, str) or not text.strip():
        raise SettingsError(
            f"{place}: there is no text of a question; name it {' or '.join(_TEXT)}."
        )
    answers = [answer for name in _ANSWERS for answer in _texts(record.get(name))]
    return EvaluationQuestion(
        id=str(_first_value(record, _ID) or number),
        text=text.strip(),
        kind=str(_first_value(record, _KIND) or ""),
        documents=tuple(dict.fromkeys(_gold_documents(record))),
        spans=tuple(
            _parse_span(span)
            for span in record.get("spans") or _texts(_first_value(record, _CONTEXTS))
        ),
        statements=tuple(_texts(_first_value(record, _STATEMENTS))),
        answers=tuple(dict.fromkeys(answers)),
        wrong_answers=tuple(_texts(record.get("wrong_answers"))),
        is_answerable=_parse_flag(_first_value(record, _IS_ANSWERABLE)),
        split=str(_first_value(record, _SPLIT) or ""),
    )


def _parse_span(span: Any) -> GoldSpan:
    """Return a gold span; the place of a passage that is only a text is found by its text."""
    fields = {"text": span} if isinstance(span, str) else span
    document, text = str(fields.get("document", "")), str(fields.get("text", ""))
    if text.strip() and not fields.get("end_char"):
        return GoldSpan(document, 0, 0, text)
    start, end = int(fields["start_char"]), int(fields["end_char"])
    if not (document and 0 <= start < end):
        raise ValueError(f"the span {start} to {end} is not in a document")
    return GoldSpan(document, start, end, text)


def _parse_flag(value: Any) -> bool:
    """Return whether a value means yes, as a missing value does."""
    # A table of texts has "False" and "True".
    said = {"true": True, "1": True, "false": False, "0": False, "none": True}
    return said[str(value).strip().lower()]


def _gold_documents(record: Mapping[str, Any]) -> Iterator[str]:
    yield from _texts(_first_value(record, _DOCUMENTS))
    # HotpotQA lists [title, number of the sentence] pairs, MuSiQue marks its paragraphs.
    facts = record.get("supporting_facts") or ()
    pairs = facts.get("title", ()) if isinstance(facts, Mapping) else facts
    yield from (str(fact if isinstance(fact, str) else fact[0]) for fact in pairs)
    for paragraph in record.get("paragraphs") or ():
        if paragraph.get("is_supporting"):
            yield str(paragraph["title"])


def _first_value(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((value for name in names if (value := record.get(name)) is not None), None)


def _texts(value: Any) -> list[str]:
    """Return the texts of a value that are not blank: one text, a list, or statements."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    texts = (
        str(item.get("statement", item.get("text", ""))) if isinstance(item, Mapping) else str(item)
        for item in values
    )
    return [text for text in texts if text.strip()]


def write_questions(questions: Sequence[EvaluationQuestion], path: Path) -> None:
    """Write questions into a file: JSON Lines if its name ends with .jsonl, else a JSON list.

    Raises `ExportError` if the file cannot be written.
    """
    records = list(map(_make_record, questions))
    if path.suffix == ".jsonl":
        text = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
    else:
        text = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    try:
        write_text_file(path, [text])
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.") from error


def _make_record(question: EvaluationQuestion) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": question.id,
        "question": question.text,
        "type": question.kind,
        "split": question.split,
        "answers": list(question.answers),
        "wrong_answers": list(question.wrong_answers),
        "documents": list(question.documents),
        "spans": [vars(span) for span in question.spans],
        "statements": list(question.statements),
    }
    record = {name: value for name, value in record.items() if value}
    return record if question.is_answerable else {**record, "is_answerable": False}
