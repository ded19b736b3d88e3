"""A language model as judge: criteria, pairs of answers, requests and verdicts.

A judge that sees two answers in only one order favours the first one, or the last one. So each pair
is shown in both orders: an answer wins if it wins twice, and any other pair is a tie.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_evaluation.runs import Result
from graphrag_evaluation.scores import count_words, first_words
from graphrag_evaluation.statistics import compare_paired, holm_p_values
from graphrag_evaluation.systems import System
from graphrag_index.errors import BudgetError, ModelError, SettingsError
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.limits import estimate_requests
from graphrag_index.llm.prompts import Prompts, quote_text
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import (
    Message,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    Spending,
    object_schema,
)
from graphrag_index.llm.request import (
    Outcome as ReplyOutcome,
)
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_nlp.text.sentences import find_quotation
from graphrag_query.answer import Outcome
from graphrag_query.llm import RATING_FORMAT, clean_text

TEXT, BOOLEAN, NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "integer"}
HIGHEST_RATING = 5
VERDICTS = {"right": 1.0, "partly": 0.5, "wrong": 0.0}
WINNERS = ("first", "second", "tie")
# Step under which the ledger stores the requests to judges.
LEDGER_STEP = "evaluate"
PAIRWISE = "pairwise"
# Passages that a judge of claims reads beside those that the answer cites.
MAX_PASSAGES = 12


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
    """List the pairs of answers to the same question, for each pair of systems."""
    return [
        Pair(first, second, (one, other))
        for first, second in combinations(results, 2)
        for one, other in zip(results[first], results[second], strict=True)
        if one.answer.outcome is other.answer.outcome is Outcome.ANSWERED
    ]


def summarize_pairs(verdicts: Sequence[PairVerdict]) -> list[PairSummary]:
    """Summarize the verdicts on each pair of systems."""
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


@dataclass(frozen=True)
class Verdicts:
    """The judgements of one judge, by (system, question, criterion) and by pair.

    `stopped` is the error that ended the judgements early; what was judged before is kept.
    """

    judgements: Mapping[tuple[str, str, str], Judgement]
    pairs: Sequence[PairVerdict]
    spent: Spending
    n_unread: int
    stopped: BudgetError | ModelError | None = None

    def add_scores(self, results: Mapping[str, Sequence[Result]]) -> dict[str, list[Result]]:
        """Return the results with the scores of the judge."""
        return {
            system: [
                replace(row, scores={**row.scores, **self._scores(system, row)}) for row in rows
            ]
            for system, rows in results.items()
        }

    def _scores(self, system: str, result: Result) -> dict[str, float]:
        scores, n_unread = {}, 0
        for name, criterion in CRITERIA.items():
            found = self.judgements.get((system, result.question.id, name))
            if found is None:
                continue
            n_unread += found.n_unread
            if found.score is not None:
                scores[criterion.measure] = found.score
        return {**scores, "judge_unread": float(n_unread)} if scores or n_unread else {}


@dataclass(frozen=True)
class Task:
    """A request to a judge, and what it judges; None for a pair of equal answers, a tie."""

    request: Request | None
    key: tuple[str, str, str] | None = None
    result: Result | None = None
    passages: Sequence[str] = ()
    pair: Pair | None = None


@dataclass
class Judge:
    """A chat model of the settings as judge; its replies are kept in the folder `ledger`.

    Equal requests, also of an evaluation that was killed, are paid for once. `budget` is the
    maximum cost in dollars of all that this ledger has paid for; None means no limit.
    """

    name: str
    settings: Settings
    root: Path
    ledger: Path
    budget: float | None = None
    models: Models = field(init=False)

    def __post_init__(self) -> None:
        check_judge(self.name, self.settings)
        self.models = Models(
            self.settings.models, self.ledger, needed={self.name: ""}, budget=self.budget
        )

    def judge(self, tasks: Sequence[Task]) -> Verdicts:
        """Send the requests of the tasks, and read the verdicts."""
        asked = [task for task in tasks if task.request is not None]
        judgements: dict[tuple[str, str, str], Judgement] = {}
        shown: dict[int, list[SingleVerdict | None]] = {}
        pairs: dict[int, Pair] = {}
        spent, n_unread_pairs, stopped = Spending(), 0, None
        outcomes: list[ReplyOutcome] = []
        model: ChatModel | None = None
        try:
            # Replies that failed before may be readable now.
            self.models.ledger.reopen_quarantined([LEDGER_STEP])
            opened = self.models.open_chat_model(self.name, LEDGER_STEP)
            assert isinstance(opened, ChatModel)
            model = opened
            outcomes.extend(model.replies(task.request for task in asked if task.request))
        except (BudgetError, ModelError) as error:
            stopped = error
        if stopped is not None:
            # Of the other requests, some have been answered in earlier evaluations.
            rest = [(task, task.request) for task in asked[len(outcomes) :] if task.request]
            kept = [(task, model.cached_values(request)) for task, request in rest if model]
            asked = asked[: len(outcomes)] + [task for task, values in kept if values]
            outcomes += [ReplyOutcome("", values) for _, values in kept if values]
        for task, outcome in zip(asked, outcomes, strict=True):
            spent.add(outcome.spent)
            value = outcome.values[0] if outcome.values and not outcome.failure else None
            if task.pair is not None:
                pairs[id(task.pair)] = task.pair
                shown.setdefault(id(task.pair), []).append(value)
                n_unread_pairs += value is None
            elif task.key is not None and task.result is not None:
                found = _read(value, task)
                judgements[task.key] = replace(found, n_unread=found.n_unread + outcome.dropped)
        verdicts = [
            PairVerdict(pair, (shown[key][0], shown[key][1]))
            for key, pair in pairs.items()
            if len(shown[key]) == 2
        ]
        equal = (task.pair for task in tasks if task.request is None)
        tie = SingleVerdict("tie", "The answers are equal.")
        verdicts += [PairVerdict(pair, (tie, tie)) for pair in equal if pair is not None]
        n_unread = n_unread_pairs + sum(one.n_unread for one in judgements.values())
        return Verdicts(judgements, verdicts, spent, n_unread, stopped)

    def estimate(self, tasks: Sequence[Task]) -> tuple[int, int, float | None]:
        """Return the maximum numbers of calls and of prompt tokens of tasks, and their cost.

        The cost is None if the price of the model is not known.
        """
        asked = [task.request for task in tasks if task.request is not None]
        return estimate_requests(asked, self.settings.models[self.name])

    def close(self) -> None:
        """Close the connections and the ledger."""
        self.models.close()


def check_judge(name: str, settings: Settings) -> None:
    """Raise `SettingsError` if the settings have no model of this name."""
    if name not in settings.models:
        known = ", ".join(settings.models) or "none"
        raise SettingsError(f"--judge {name}: there is no such model, but {known}.")


def check_criteria(names: Sequence[str]) -> None:
    """Raise `SettingsError` for a name that is no criterion."""
    known = (*CRITERIA, PAIRWISE)
    for name in names:
        if name not in known:
            raise SettingsError(f"--judge-with {name}: choose from {', '.join(known)}.")


def _read(value: Any, task: Task) -> Judgement:
    if value is None or task.key is None or task.result is None:
        return Judgement(None, n_unread=1)
    return CRITERIA[task.key[2]].read(value, task.result, task.passages)


def list_tasks(
    systems: Sequence[System],
    results: Mapping[str, Sequence[Result]],
    criteria: Sequence[str],
    root: Path,
) -> list[Task]:
    """List the requests that judge the answers of systems by the criteria that apply."""
    prompts = Prompts(root, "graphrag_evaluation")
    tasks = []
    for system in systems:
        for result in results[system.name]:
            passages = _passages(system, result) if "claims" in criteria else []
            for name in criteria:
                if name == PAIRWISE:
                    continue
                unit = f"{result.question.id}, {system.name}, {name}"
                request = build_request(CRITERIA[name], result, passages, prompts, unit)
                if request is not None:
                    key = system.name, result.question.id, name
                    tasks.append(Task(request, key, result, passages))
    if PAIRWISE in criteria:
        for pair in list_pairs(results):
            requests = [None] if pair.is_equal else pair.requests(prompts)
            tasks += [Task(request, pair=pair) for request in requests]
    return tasks


def _passages(system: System, result: Result) -> list[str]:
    """Return the texts that the answer cites, and the best of what the search read."""
    cited = [citation.text_unit for citation in result.answer.citations]
    numbers = dict.fromkeys([*cited, *result.passages[:MAX_PASSAGES]])
    units = system.index.store.text_units(numbers)
    return [units[number]["text"] for number in numbers if number in units]
