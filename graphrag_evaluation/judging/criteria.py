"""Requests to a judge about one answer or two, and the reading of its replies.

A judge that sees two answers in one order only favours what stands first, or last. So each pair is
shown in both orders: an answer wins if it wins twice, and any other pair is a tie.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

from graphrag_evaluation.answer_scores import count_words, first_words
from graphrag_evaluation.runs import Result
from graphrag_evaluation.statistics import compare_paired, holm_p_values
from graphrag_index.llm.prompts import Prompts, quote_text
from graphrag_index.llm.request import (
    Message,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    object_schema,
)
from graphrag_nlp.text.sentences import find_quotation
from graphrag_query.answer import Outcome
from graphrag_query.llm import RATING_FORMAT, clean_text

TEXT, BOOLEAN, NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
HIGHEST_RATING = 5
VERDICTS = {"right": 1.0, "partly": 0.5, "wrong": 0.0}
WINNERS = ("first", "second", "tie")


@dataclass(frozen=True)
class Judgement:
    """The judgement of one answer by one criterion.

    `n_unread` counts the verdicts that could not be read, or whose evidence is not in the text:
    they do not count as passed, nor does a claim that the answer does not make.
    """

    score: float | None
    n_unread: int = 0


@dataclass(frozen=True)
class Criterion:
    """A property of an answer that a judge is asked for.

    `measure` is the name of the score. `ask` returns the text that is judged, or "" if the
    question does not allow this criterion; `read` turns the value of a reply into a judgement.
    """

    name: str
    measure: str
    format: ReplyFormat
    ask: Callable[[Result, Sequence[str]], str]
    read: Callable[[Any, Result, Sequence[str]], Judgement]


def build_request(
    criterion: Criterion, result: Result, passages: Sequence[str], prompts: Prompts, unit: str
) -> Request | None:
    """Return the request to judge an answer; None if the criterion does not apply to it."""
    if result.answer.outcome is not Outcome.ANSWERED:
        return None
    asked = criterion.ask(result, passages)
    name = f"judge_{criterion.name}"
    return make_request(name, asked, criterion.format, prompts, unit) if asked else None


def make_request(
    prompt: str, asked: str, reply_format: ReplyFormat, prompts: Prompts, unit: str
) -> Request:
    """Return a request with a prompt and a text."""
    messages = [
        Message(role="system", content=prompts.read_prompt(prompt)),
        Message(role="user", content=asked),
    ]
    return Request(unit, messages, reply_format)


def _records_format(name: str, fields: Mapping[str, Any], instructions: str) -> ReplyFormat:
    def read(data: Any) -> ParsedReply:
        records = data.get(name) if isinstance(data, Mapping) else data
        if not isinstance(records, list):
            raise ReplyError(f"it has no list of {name}")
        kept = [record for record in records if isinstance(record, Mapping)]
        return ParsedReply(kept, len(records) - len(kept))

    schema = object_schema({name: {"type": "array", "items": object_schema(fields)}})
    return ReplyFormat(f"judge_{name}", schema, read, instructions)


def _quotes(record: Mapping[str, Any], texts: Sequence[str]) -> bool:
    """Return whether the quotation of a record stands in one of the texts."""
    quotation = clean_text(record.get("quotation")).strip(" \"'“”…")
    return any(find_quotation(quotation, text) is not None for text in texts)


def _ask_statements(result: Result, passages: Sequence[str]) -> str:
    statements = result.question.statements
    listed = "\n".join(f"{number}. {text}" for number, text in enumerate(statements, start=1))
    return f"Answer:\n{result.answer.text}\n\nStatements:\n{listed}" if statements else ""


def _read_statements(records: Any, result: Result, passages: Sequence[str]) -> Judgement:
    labels: list[bool | None] = [None] * len(result.question.statements)
    for record in records:
        number, made = record.get("statement"), record.get("made")
        if not isinstance(number, int) or not 1 <= number <= len(labels):
            continue
        if made is False or (made is True and _quotes(record, [result.answer.text])):
            labels[number - 1] = made
    passed = sum(label is True for label in labels)
    return Judgement(passed / len(labels), labels.count(None))


def _ask_claims(result: Result, passages: Sequence[str]) -> str:
    listed = "\n\n".join(
        f"[{number}] {quote_text(text)}" for number, text in enumerate(passages, start=1)
    )
    return f"Passages:\n{listed}\n\nAnswer:\n{result.answer.text}" if passages else ""


def _read_claims(records: Any, result: Result, passages: Sequence[str]) -> Judgement:
    supported: list[bool] = []
    n_unread, answer = 0, result.answer.text
    seen: set[str] = set()
    for record in records:
        claim, verdict = clean_text(record.get("claim")), record.get("supported")
        # A reply that repeats itself until it is cut off has the same claims again and again.
        if claim in seen:
            continue
        seen.update(filter(None, [claim]))
        if find_quotation(claim, answer) is None or not isinstance(verdict, bool):
            n_unread += 1
            continue
        # A claim whose evidence is not in the passages is not shown to be supported.
        is_shown = verdict and _quotes(record, passages)
        n_unread += verdict and not is_shown
        supported.append(is_shown)
    score = sum(supported) / len(supported) if supported else None
    return Judgement(score, n_unread)


def _ask_relevance(result: Result, passages: Sequence[str]) -> str:
    return f"Question: {result.question.text}\n\nAnswer:\n{result.answer.text}"


def _read_relevance(rating: Any, result: Result, passages: Sequence[str]) -> Judgement:
    return Judgement(rating / HIGHEST_RATING)


def _ask_correctness(result: Result, passages: Sequence[str]) -> str:
    if not result.question.answers:
        return ""
    right, *others = result.question.answers
    other = f" (or: {'; '.join(others)})" if others else ""
    return f"{_ask_relevance(result, passages)}\n\nRight answer: {right}{other}"


def _read_verdict(data: Any) -> ParsedReply:
    if not isinstance(data, Mapping) or data.get("verdict") not in VERDICTS:
        raise ReplyError(f"its verdict is not one of {', '.join(VERDICTS)}")
    return ParsedReply(data)


def _read_correctness(record: Any, result: Result, passages: Sequence[str]) -> Judgement:
    verdict = record["verdict"]
    if verdict != "wrong" and not _quotes(record, [result.answer.text]):
        return Judgement(None, n_unread=1)
    return Judgement(VERDICTS[verdict])


CRITERIA = {
    criterion.name: criterion
    for criterion in (
        Criterion(
            "statements",
            "judged_statements",
            _records_format(
                "verdicts",
                {"statement": NUMBER, "made": BOOLEAN, "quotation": TEXT},
                'Reply with one JSON object and nothing else: {"verdicts": [{"statement": number, '
                '"made": true or false, "quotation": "words of the answer"}, ...]}',
            ),
            _ask_statements,
            _read_statements,
        ),
        Criterion(
            "claims",
            "judged_faithful",
            _records_format(
                "claims",
                {"claim": TEXT, "supported": BOOLEAN, "quotation": TEXT},
                'Reply with one JSON object and nothing else: {"claims": [{"claim": "words of the '
                'answer", "supported": true or false, "quotation": "words of a passage"}, ...]}',
            ),
            _ask_claims,
            _read_claims,
        ),
        Criterion("relevance", "judged_relevant", RATING_FORMAT, _ask_relevance, _read_relevance),
        Criterion(
            "correctness",
            "judged_correct",
            ReplyFormat(
                "judge_verdict",
                object_schema({"verdict": {**TEXT, "enum": [*VERDICTS]}, "quotation": TEXT}),
                _read_verdict,
                'Reply with one JSON object and nothing else: {"verdict": "right", "partly" or '
                '"wrong", "quotation": "words of the answer"}',
            ),
            _ask_correctness,
            _read_correctness,
        ),
    )
}


class SingleVerdict(NamedTuple):
    """The verdict on a pair in one order: `first`, `second` or `tie`, as it was shown."""

    winner: str
    reason: str = ""


def _read_winner(data: Any) -> ParsedReply:
    if not isinstance(data, Mapping) or data.get("winner") not in WINNERS:
        raise ReplyError(f"its winner is not one of {', '.join(WINNERS)}")
    return ParsedReply(SingleVerdict(data["winner"], clean_text(data.get("reason"))))


WINNER_FORMAT = ReplyFormat(
    "judge_winner",
    object_schema({"reason": TEXT, "winner": {**TEXT, "enum": [*WINNERS]}}),
    _read_winner,
    'Reply with one JSON object and nothing else: {"reason": "one sentence", "winner": "first", '
    '"second" or "tie"}',
)


@dataclass(frozen=True)
class Pair:
    """The answers of two systems to one question."""

    first: str  # name of a system
    second: str
    results: tuple[Result, Result]

    @property
    def is_equal(self) -> bool:
        """Whether both answers have the same text: a tie, which no judge is asked for."""
        return self.results[0].answer.text == self.results[1].answer.text

    def requests(self, prompts: Prompts) -> list[Request]:
        """Return the requests for both orders, with the answers cut to the same length."""
        texts = [result.answer.text for result in self.results]
        n_words = min(map(count_words, texts))
        answers = [first_words(text, n_words) for text in texts]
        question = self.results[0].question
        return [
            make_request(
                "judge_pair",
                f"Question: {question.text}\n\nFirst answer:\n{one}\n\nSecond answer:\n{other}",
                WINNER_FORMAT,
                prompts,
                f"{question.id}, {self.first} and {self.second}, order {order}",
            )
            for order, (one, other) in enumerate((answers, answers[::-1]), start=1)
        ]


@dataclass(frozen=True)
class PairVerdict:
    """The verdicts on a pair in both orders; `None` if a reply could not be read."""

    pair: Pair
    orders: tuple[SingleVerdict | None, SingleVerdict | None]

    @property
    def shown(self) -> tuple[str | None, ...]:
        """The winners in both orders, as the answers were shown."""
        return tuple(one.winner if one else None for one in self.orders)

    @property
    def winner(self) -> str | None:
        """The name of the winner, `tie`, or None without two readable verdicts."""
        if None in self.shown:
            return None
        if self.shown == ("first", "second"):
            return self.pair.first
        return self.pair.second if self.shown == ("second", "first") else "tie"

    @property
    def is_flip(self) -> bool:
        """Whether the same place won in both orders: the judge looked at the order."""
        return self.shown in (("first", "first"), ("second", "second"))


@dataclass(frozen=True)
class PairSummary:
    """The verdicts on two systems over all questions.

    `difference` is the share of wins of the second system minus that of the first, with the
    p-value of a permutation test, corrected by Holm. `first_place` is the share of single
    verdicts, without ties, for the answer that was shown first: 0.5 is fair.
    """

    first: str
    second: str
    n: int
    wins: tuple[int, int]
    ties: int
    flip_rate: float
    first_place: float | None
    difference: float
    low: float
    high: float
    p_value: float
    n_unread: int


def list_pairs(results: Mapping[str, Sequence[Result]]) -> list[Pair]:
    """List the pairs of answers to the same question, of every two systems."""
    return [
        Pair(first, second, (one, other))
        for first, second in combinations(results, 2)
        for one, other in zip(results[first], results[second], strict=True)
        if one.answer.outcome is other.answer.outcome is Outcome.ANSWERED
    ]


def summarize_pairs(verdicts: Sequence[PairVerdict]) -> list[PairSummary]:
    """Summarize the verdicts on each two systems."""
    names = dict.fromkeys((one.pair.first, one.pair.second) for one in verdicts)
    found = []
    for first, second in names:
        of_pair = [v for v in verdicts if (v.pair.first, v.pair.second) == (first, second)]
        read = [verdict for verdict in of_pair if verdict.winner is not None]
        if not read:
            continue
        scores = [[float(v.winner == name) for v in read] for name in (first, second)]
        clusters = [verdict.pair.results[0].question.cluster for verdict in read]
        difference = compare_paired(scores[0], scores[1], clusters)
        assert difference is not None
        decided = [shown for v in read for shown in v.shown if shown != "tie"]
        found.append(
            PairSummary(
                first=first,
                second=second,
                n=len(read),
                wins=(int(sum(scores[0])), int(sum(scores[1]))),
                ties=sum(verdict.winner == "tie" for verdict in read),
                flip_rate=sum(verdict.is_flip for verdict in read) / len(read),
                first_place=decided.count("first") / len(decided) if decided else None,
                difference=difference.interval.mean,
                low=difference.interval.low,
                high=difference.interval.high,
                p_value=difference.p_value,
                n_unread=len(of_pair) - len(read),
            )
        )
    corrected = holm_p_values([summary.p_value for summary in found])
    return [replace(summary, p_value=p) for summary, p in zip(found, corrected, strict=True)]
