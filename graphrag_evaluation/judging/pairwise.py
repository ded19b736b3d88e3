"""Two answers to one question, judged in both orders.

A judge that sees one order only favours what stands first, or last. So each pair is shown twice:
an answer wins if it wins in both orders, and any other pair is a tie.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

from graphrag_evaluation.answer_scores import count_words, first_words
from graphrag_evaluation.judging.criteria import TEXT, make_request
from graphrag_evaluation.runs import Result
from graphrag_evaluation.statistics import compare_paired, holm_p_values
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, Request, object_schema
from graphrag_query.answer import Outcome
from graphrag_query.llm import clean_text

WINNERS = ("first", "second", "tie")


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
