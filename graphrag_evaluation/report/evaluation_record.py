"""The record of an evaluation, the content of `evaluation.json`: how it is made and read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

import polars as pl
from pydantic import BaseModel, ValidationError, field_validator, model_validator

import graphrag_index
from graphrag_evaluation.judge import PairSummary, PairVerdict, summarize_pairs
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.runs import Result
from graphrag_evaluation.scores import has_span
from graphrag_evaluation.statistics import Interval
from graphrag_evaluation.summary import Comparison, Evaluation
from graphrag_evaluation.systems import System
from graphrag_index.errors import GraphRAGError
from graphrag_nlp.text.normalize import replace_surrogates

Means = dict[str, dict[str, Interval]]
# Characters of a passage that the record keeps: the first limit with which all passages together
# have at most `MAX_TEXT_CHARS`, or else the last.
PASSAGE_CHARS = (4_000, 1_000, 300)
MAX_TEXT_CHARS = 4_000_000
# Characters of an answer, a gold item and a quotation that the record keeps.
ANSWER_CHARS, GOLD_CHARS, QUOTE_CHARS = 8_000, 1_000, 300
# Passages of a result that the record keeps: a long context has hundreds.
MAX_PASSAGES = 20


class _Record(BaseModel):
    @field_validator("*", mode="before")
    @classmethod
    def _replace_surrogates(cls, value: Any) -> Any:
        """Clean texts of questions and models: no JSON can hold a lone surrogate."""
        if isinstance(value, list):
            return [replace_surrogates(item) if isinstance(item, str) else item for item in value]
        return replace_surrogates(value) if isinstance(value, str) else value


class SystemRecord(_Record):
    """A system: a search of an index at a version. `settings` are those of the search."""

    name: str
    method: str
    index: str  # name of the folder
    version: int
    made: str  # end of the run that made the version, in UTC; empty if unknown
    settings: dict[str, Any]


class PassageRecord(_Record):
    """A text unit. `text` is cut to `passage_chars` of the record."""

    document: str  # title
    path: str
    start_char: int
    end_char: int
    text: str


class GoldRecord(_Record):
    """A gold document, or a gold span. `text` is the span, or the beginning of the document."""

    document: str  # id, path or title, as the questions name the document
    title: str  # empty if no index has the document, or if `document` is the title
    text: str


class QuestionRecord(_Record):
    """A question with what is known about its answer."""

    id: str
    text: str
    kind: str
    is_answerable: bool
    answers: list[str]
    statements: list[str]
    gold: list[GoldRecord]


class CitationRecord(_Record):
    """A citation of an answer: [`number`] in the text."""

    number: int
    document: str
    quote: str


class ResultRecord(_Record):
    """The result of a system for a question.

    `passages` are positions in the passages of the record, the best first. `holds` has, for each
    of these passages, the positions of the gold items of the question that the passage holds.
    """

    outcome: str
    answer: str
    notes: list[str]
    citations: list[CitationRecord]
    scores: dict[str, float]
    passages: list[int]
    holds: list[list[int]]


class PairRecord(_Record):
    """The verdicts of a judge on the answers of two systems to one question, in both orders.

    `shown` has a verdict for each order: `first`, `second` or `tie`, as the answers were shown,
    or "" if the reply could not be read. `winner` is a system, `tie`, or "" without two verdicts.
    """

    question: int  # position in the questions of the record
    first: str  # the system whose answer was shown first in the first order
    second: str
    winner: str
    shown: list[str]
    reasons: list[str]


class EvaluationSummary(_Record):
    """The systems of an evaluation, and the mean of each measure by system."""

    name: str
    date: str  # UTC
    program: str
    questions_file: str
    n_questions: int
    systems: list[SystemRecord]
    limits: dict[str, float]  # smallest means that the evaluation must reach
    means: Means  # by system, then by measure

    @property
    def measures(self) -> list[str]:
        """The measures of any system, in the order of the scores."""
        return list(dict.fromkeys(name for means in self.means.values() for name in means))

    @property
    def failures(self) -> list[tuple[str, str, str]]:
        """Each limit that a mean does not reach: system, measure, and what is wrong."""
        failures = []
        for system, intervals in self.means.items():
            for measure, limit in self.limits.items():
                interval = intervals.get(measure)
                if interval is None:
                    failures.append((system, measure, f"{system} has no {measure}"))
                elif interval.mean < limit:
                    said = f"{measure} of {system} is {interval.mean:.4g}, below {limit:g}"
                    failures.append((system, measure, said))
        return failures


class EvaluationRecord(EvaluationSummary):
    """An evaluation with its questions. `results` has, by system, a result for each question."""

    kind: Literal["graphrag-index evaluation"] = "graphrag-index evaluation"
    format: Literal[1] = 1
    comparisons: list[Comparison]
    passage_chars: int
    passages: list[PassageRecord]
    questions: list[QuestionRecord]
    results: dict[str, list[ResultRecord]]
    pairs: list[PairSummary] = []
    verdicts: list[PairRecord] = []

    @model_validator(mode="after")
    def _check_positions(self) -> Self:
        """Check that each system has a result for each question, and that positions exist."""
        names = {system.name for system in self.systems}
        if not names or self.results.keys() != names or self.means.keys() != names:
            raise ValueError("the systems of the results and of the means differ")
        for results in self.results.values():
            if len(results) != len(self.questions):
                raise ValueError("the number of results and of questions differ")
            for result, question in zip(results, self.questions, strict=True):
                held = {position for positions in result.holds for position in positions}
                if not held <= set(range(len(question.gold))):
                    raise ValueError("a result names a gold item that the question lacks")
                if not all(0 <= position < len(self.passages) for position in result.passages):
                    raise ValueError("a result names a passage that is not there")
                if len(result.holds) != len(result.passages):
                    raise ValueError("a passage has no list of the gold items that it holds")
        if not all(0 <= one.question < len(self.questions) for one in self.verdicts):
            raise ValueError("a verdict names a question that is not there")
        return self


def read_record(path: Path) -> EvaluationRecord:
    """Read and check an `evaluation.json`. Raises GraphRAGError if the file is not one."""
    try:
        return EvaluationRecord.model_validate_json(path.read_bytes())
    except OSError as error:
        raise GraphRAGError(f"{path} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise GraphRAGError(
            f"{path} is not an evaluation that this program can read ({place}: {first['msg']}): "
            "run `graphrag-index evaluate` again."
        ) from error


def record_evaluation(
    evaluation: Evaluation,
    systems: Sequence[System],
    *,
    name: str,
    questions_file: str,
    limits: Mapping[str, float],
    verdicts: Sequence[PairVerdict] = (),
) -> EvaluationRecord:
    """Record the results of systems whose indexes are still open."""
    questions = [result.question for result in next(iter(evaluation.results.values()))]
    passages = _Passages()
    results = {
        system.name: _record_results(system, evaluation.results[system.name], passages)
        for system in systems
    }
    texts, titles = _gold_texts(systems, questions)
    measures = evaluation.measures()
    limit, kept = passages.cut()
    return EvaluationRecord(
        name=name,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        program=f"graphrag-index {graphrag_index.__version__}",
        questions_file=questions_file,
        n_questions=len(questions),
        systems=[_record_system(system) for system in systems],
        limits=dict(limits),
        means={
            system.name: {
                measure: interval
                for measure in measures
                if (interval := evaluation.interval(system.name, measure))
            }
            for system in systems
        },
        comparisons=[one for measure in measures for one in evaluation.comparisons(measure)],
        passage_chars=limit,
        passages=kept,
        questions=[_record_question(question, texts, titles) for question in questions],
        results=results,
        pairs=summarize_pairs(verdicts),
        verdicts=list(_record_pairs(verdicts, questions)),
    )


class _Passages:
    """The passages of all results, each once, with their positions."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, str, int, int, str], int] = {}

    def add(self, unit: Mapping[str, Any]) -> int:
        """Return the position of a text unit."""
        place = unit["title"] or "", unit["path"] or "", unit["start_char"], unit["end_char"]
        return self._positions.setdefault((*place, unit["text"]), len(self._positions))

    def cut(self) -> tuple[int, list[PassageRecord]]:
        """Return the largest limit that leaves the record small, and the passages cut to it."""
        lengths = [len(text) for *_, text in self._positions]
        for limit in PASSAGE_CHARS:
            if sum(min(length, limit) for length in lengths) <= MAX_TEXT_CHARS:
                break
        return limit, [
            PassageRecord(
                document=title, path=path, start_char=start, end_char=end, text=_cut(text, limit)
            )
            for title, path, start, end, text in self._positions
        ]


def _record_system(system: System) -> SystemRecord:
    store, settings = system.index.store, system.index.settings
    section = getattr(settings, f"{system.method}_search", None)
    return SystemRecord(
        name=system.name,
        method=system.method,
        index=store.root.resolve().name,
        version=store.version.number,
        made=store.version.made.date if store.version.made else "",
        settings=section.model_dump(mode="json") if section is not None else {},
    )


def _record_results(
    system: System, results: Iterable[Result], passages: _Passages
) -> list[ResultRecord]:
    results = list(results)
    # One read for all questions: most passages are read for several of them.
    shown = {number for result in results for number in result.passages[:MAX_PASSAGES]}
    units = system.index.store.text_units(shown)
    records = []
    for result in results:
        answer = result.answer
        found = [units[n] for n in result.passages[:MAX_PASSAGES] if n in units]
        records.append(
            ResultRecord(
                outcome=answer.outcome.value,
                answer=_cut(answer.text, ANSWER_CHARS),
                notes=list(answer.notes),
                citations=[
                    CitationRecord(
                        number=one.number, document=one.document, quote=_cut(one.quote, QUOTE_CHARS)
                    )
                    for one in answer.citations
                ],
                scores={measure: round(score, 6) for measure, score in result.scores.items()},
                passages=[passages.add(unit) for unit in found],
                holds=[_held_gold(system, result.question, unit) for unit in found],
            )
        )
    return records


def _record_pairs(
    verdicts: Sequence[PairVerdict], questions: Sequence[EvaluationQuestion]
) -> Iterator[PairRecord]:
    positions = {question.id: at for at, question in enumerate(questions)}
    for verdict in verdicts:
        yield PairRecord(
            question=positions[verdict.pair.results[0].question.id],
            first=verdict.pair.first,
            second=verdict.pair.second,
            winner=verdict.winner or "",
            shown=[winner or "" for winner in verdict.shown],
            reasons=[_cut(one.reason, QUOTE_CHARS) if one else "" for one in verdict.orders],
        )


def _held_gold(
    system: System, question: EvaluationQuestion, unit: Mapping[str, object]
) -> list[int]:
    """Return the positions of the gold items that a text unit holds."""
    numbers = system.document_numbers
    if question.spans:
        return [
            i
            for i, span in enumerate(question.spans)
            if has_span(unit, span, numbers.get(span.document, -1))
        ]
    return [i for i, name in enumerate(question.documents) if numbers.get(name) == unit["document"]]


def _gold_texts(
    systems: Sequence[System], questions: Sequence[EvaluationQuestion]
) -> tuple[dict[tuple[str, int, int], str], dict[str, str]]:
    """Read the texts of gold spans and the beginnings of gold documents, by name and place.

    Returns also the titles of the documents by name. The first system whose index has a
    document gives its text.
    """
    wanted: dict[str, set[tuple[int, int]]] = {}
    for question in questions:
        for name, start, end, _ in _gold_places(question):
            wanted.setdefault(name, set()).add((start, end))
    found: dict[tuple[str, int, int], str] = {}
    titles: dict[str, str] = {}
    for system in systems:
        numbers = {name: n for name, n in system.document_numbers.items() if name in wanted}
        known = pl.Series(sorted(set(numbers.values())), dtype=pl.Int64).implode()
        rows = system.index.store.scan("documents").select("human_readable_id", "title", "text")
        read = rows.filter(pl.col("human_readable_id").is_in(known)).collect()
        texts = {number: (title or "", text) for number, title, text in read.iter_rows()}
        for name, number in numbers.items():
            titles[name], text = texts[number]
            for start, end in wanted.pop(name):
                found[name, start, end] = text[start:end]
    return found, titles


def _gold_places(question: EvaluationQuestion) -> Iterator[tuple[str, int, int, str]]:
    """Yield document, start, end and known text of each gold span, or of each gold document."""
    if question.spans:
        for span in question.spans:
            yield span.document, span.start_char, span.end_char, span.text
    else:
        for name in question.documents:
            yield name, 0, GOLD_CHARS + 1, ""


def _record_question(
    question: EvaluationQuestion,
    texts: Mapping[tuple[str, int, int], str],
    titles: Mapping[str, str],
) -> QuestionRecord:
    return QuestionRecord(
        id=question.id,
        text=question.text,
        kind=question.kind,
        is_answerable=question.is_answerable,
        answers=list(question.answers),
        statements=list(question.statements),
        gold=[
            GoldRecord(
                document=name,
                title=titles.get(name, "") if titles.get(name) != name else "",
                text=_cut(text or texts.get((name, start, end), ""), GOLD_CHARS),
            )
            for name, start, end, text in _gold_places(question)
        ],
    )


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"
