"""The record of an evaluation: the content of the file `evaluation.json`."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ValidationError, field_validator, model_validator

from graphrag_evaluation.judging.criteria import PairSummary
from graphrag_evaluation.statistics import Interval
from graphrag_evaluation.summary import Comparison
from graphrag_index.errors import GraphRAGError
from graphrag_nlp.text.normalize import replace_surrogates

Means = dict[str, dict[str, Interval]]


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
