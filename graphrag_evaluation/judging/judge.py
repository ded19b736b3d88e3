"""A language model as judge: its requests, its scores, and what could not be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphrag_evaluation.judging.criteria import (
    CRITERIA,
    Judgement,
    Pair,
    PairVerdict,
    SingleVerdict,
    build_request,
    list_pairs,
)
from graphrag_evaluation.runs import Result
from graphrag_evaluation.systems import System
from graphrag_index.errors import BudgetError, ModelError, SettingsError
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.limits import estimate_requests
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import Outcome, Request, Spending
from graphrag_index.schema.settings.project_settings import Settings

# Step under which the ledger stores the requests to judges.
LEDGER_STEP = "evaluate"
PAIRWISE = "pairwise"
JUDGED_BY = (*CRITERIA, PAIRWISE)
# Passages that a judge of claims reads beside those that the answer cites.
MAX_PASSAGES = 12


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
    """A request to a judge, and what it judges; a pair of equal answers needs none."""

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
        outcomes: list[Outcome] = []
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
            outcomes += [Outcome("", values) for _, values in kept if values]
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
        """Return the calls, the tokens of the prompts, and the cost of tasks at most.

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
    for name in names:
        if name not in JUDGED_BY:
            raise SettingsError(f"--judge-with {name}: choose from {', '.join(JUDGED_BY)}.")


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
