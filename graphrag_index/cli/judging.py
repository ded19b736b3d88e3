"""The judges of `evaluate run`: their options, what they cost, and their verdicts."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from graphrag_index.cli import describe_estimate, format_paid, load_project_settings
from graphrag_index.errors import BudgetError, ModelError, SettingsError

if TYPE_CHECKING:
    from graphrag_evaluation.judging.criteria import PairVerdict
    from graphrag_evaluation.runs import Result
    from graphrag_evaluation.statistics import Agreement
    from graphrag_evaluation.systems import System

JudgeModel = Annotated[
    str, typer.Option("--judge", metavar="MODEL", help="Chat model that judges the answers.")
]
SecondJudge = Annotated[
    str, typer.Option("--second-judge", metavar="MODEL", help="Model whose agreement is measured.")
]
JudgeWith = Annotated[
    str,
    typer.Option(
        "--judge-with", metavar="CRITERIA", help="What the judge is asked, separated by commas."
    ),
]
JudgeBudget = Annotated[
    float | None,
    typer.Option("--budget", min=0, metavar="DOLLARS", help="Stop judging before this cost."),
]
Estimate = Annotated[
    bool, typer.Option("--estimate", help="Print the requests to judges and their cost at most.")
]
ALL_CRITERIA = "statements,claims,relevance,correctness,pairwise"


class Judging(NamedTuple):
    """The options of the judges; `root` is the folder of the project."""

    root: Path
    judge: str
    second: str
    criteria: Sequence[str]
    budget: float | None
    only_estimates: bool


class Judged(NamedTuple):
    """The results with the scores of the first judge, and all verdicts.

    `stopped` is the error that ended the judgements before all were made.
    """

    results: "Mapping[str, Sequence[Result]]"
    verdicts: "Sequence[PairVerdict]" = ()
    agreements: "Sequence[Agreement]" = ()
    stopped: BudgetError | ModelError | None = None


def check_judging(options: Judging) -> None:
    """Check the options before any answer is paid for; raise `SettingsError` for a wrong one."""
    given = {
        "--second-judge": options.second,
        "--estimate": options.only_estimates,
        "--budget": options.budget is not None,
    }
    if not options.judge:
        if alone := [name for name, value in given.items() if value]:
            raise SettingsError(f"{alone[0]} needs --judge, with a chat model of settings.yaml.")
        return
    from graphrag_evaluation.judging.judge import check_criteria, check_judge

    check_criteria(options.criteria)
    settings = load_project_settings(options.root, None)
    judges = [*filter(None, (options.judge, options.second))]
    for name in judges:
        check_judge(name, settings)
    # A model under two names agrees with itself, which says nothing about its verdicts.
    models = {settings.models[name].identity()["model"] for name in judges}
    if len(models) < len(judges):
        raise SettingsError(
            f"--second-judge {options.second} is the judge itself, {models.pop()}: name another "
            "chat model."
        )


def judge_results(
    systems: "Sequence[System]", results: "Mapping[str, Sequence[Result]]", options: Judging
) -> Judged | None:
    """Let the judges of the options judge; None if only the cost was asked for."""
    if not options.judge:
        return Judged(results)
    from graphrag_evaluation.judging.judge import Judge, compare_judges, list_tasks
    from graphrag_evaluation.project_folders import EVALUATIONS

    settings = load_project_settings(options.root, None)
    tasks = list_tasks(systems, results, options.criteria, options.root)
    found = []
    with ExitStack() as stack:
        for name in filter(None, (options.judge, options.second)):
            ledger = options.root / EVALUATIONS
            judge = Judge(name, settings, options.root, ledger, options.budget)
            stack.callback(judge.close)
            if options.only_estimates:
                calls, tokens, cost = judge.estimate(tasks)
                print(describe_estimate(name, calls, tokens, cost))
                continue
            verdicts = judge.judge(tasks)
            print(
                f"{name}: {verdicts.spent.calls:,} requests sent for "
                f"{format_paid(verdicts.spent.cost)}; "
                f"{verdicts.n_unread:,} verdicts could not be read or lack their evidence.",
                file=sys.stderr,
            )
            found.append(verdicts)
            if verdicts.stopped is not None:
                break
    if options.only_estimates:
        return None
    agreements = compare_judges(*found) if len(found) == 2 else []
    scored = found[0].add_scores(results)
    return Judged(scored, found[0].pairs, agreements, found[-1].stopped)


def print_judged(judged: Judged) -> None:
    """Print the pairs with the flips of the judge, and the agreement of two judges."""
    from graphrag_evaluation.judging.criteria import summarize_pairs
    from graphrag_index.cli.index_tables import align_columns

    pairs = summarize_pairs(judged.verdicts)
    if pairs:
        print("\nPairs, each judged in both orders; a win counts if both orders agree\n")
        rows: list[Sequence[str]] = [
            ("first", "second", "wins", "ties", "wins", "difference", "p", "flips", "first place")
        ]
        for one in pairs:
            share = "-" if one.first_place is None else f"{one.first_place:.0%}"
            difference = f"{one.difference:+.3f} [{one.low:+.3f}, {one.high:+.3f}]"
            counts = (str(one.wins[0]), str(one.ties), str(one.wins[1]))
            numbers = (f"{one.p_value:.4f}", f"{one.flip_rate:.0%}", share)
            rows.append((one.first, one.second, *counts, difference, *numbers))
        print(*align_columns(rows, left=[0, 1]), sep="\n")
    if n_unread := sum(verdict.winner is None for verdict in judged.verdicts):
        print(f"\nPairs left out, without a readable verdict for each order: {n_unread:,}")
    if judged.agreements:
        print("\nAgreement of the two judges\n")
        rows = [("criterion", "verdicts of both", "of one", "equal", "kappa")]
        for found in judged.agreements:
            kappa = "-" if found.kappa is None else f"{found.kappa:.2f}"
            n_both, n_one = f"{found.n:,}", f"{found.n_of_one:,}"
            rows.append((found.criterion, n_both, n_one, f"{found.share:.0%}", kappa))
        print(*align_columns(rows, left=[0]), sep="\n")
