"""The commands `evaluate`: measure searches on questions with known answers."""

import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from graphrag_index.cli import Against, AsOf, Json, Root, exit_on_ctrl_c, format_paid, parse_limits
from graphrag_index.cli.graph_quality_command import graph
from graphrag_index.cli.judging import (
    ALL_CRITERIA,
    Estimate,
    JudgeBudget,
    JudgeModel,
    JudgeWith,
    Judging,
    SecondJudge,
    check_judging,
    judge_results,
    print_judged,
)
from graphrag_index.cli.question_commands import make
from graphrag_index.cli.run_commands import Workers
from graphrag_index.errors import ExitCode, GraphRAGError, SettingsError, format_count
from graphrag_index.explaining_command import ExplainingCommand

if TYPE_CHECKING:
    from graphrag_evaluation.questions import EvaluationQuestion
    from graphrag_evaluation.report.evaluation_record import EvaluationRecord
    from graphrag_evaluation.runs import Result
    from graphrag_evaluation.summary import Evaluation
    from graphrag_evaluation.systems import System
    from graphrag_index.llm.request import Spending

# Smallest budget of tokens in which a context has room.
MIN_BUDGET = 1_000
# With fewer questions, worker processes take longer to start than they save.
MIN_QUESTIONS_OF_WORKERS = 40
_STOPPED = (
    "Stopped; no report was written. Replies that were paid for are kept: the same command goes on."
)

Questions = Annotated[
    Path,
    typer.Argument(
        metavar="QUESTIONS",
        help="Questions with their answers or gold documents: .json or .jsonl",
    ),
]
Methods = Annotated[
    str,
    typer.Option("--methods", metavar="SEARCHES", help="Searches to compare, separated by commas."),
]
SetOrCompare = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a setting of a search; several values with commas are compared.",
    ),
]
Budgets = Annotated[
    str,
    typer.Option(
        "--budgets", metavar="TOKENS", help="Tokens of context at which coverage is measured."
    ),
]
FailBelow = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-below",
        metavar="MEASURE=VALUE",
        help="Exit with 1 if a mean is lower, as recall@10=0.9.",
    ),
]
Name = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Name of the report; if not given, that of the questions.",
    ),
]
To = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="DIR",
        help="Folder of the report; if not given, evaluations/NAME in the project.",
    ),
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Write no report.")]


class _DefaultRun(TyperGroup):
    """A group whose command `run` is meant if no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self._with_command(args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, self._with_command(args))

    def _with_command(self, args: list[str]) -> list[str]:
        return args if not args or args[0] in (*self.commands, "--help") else ["run", *args]


evaluate = typer.Typer(
    cls=_DefaultRun,
    help="Measure searches on questions with known answers.",
    epilog="`evaluate QUESTIONS` is `evaluate run QUESTIONS`.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


evaluate.command("make", cls=ExplainingCommand, short_help="Make questions with known answers.")(
    make
)
evaluate.command(
    "graph", cls=ExplainingCommand, short_help="Measure the graph and the reports of an index."
)(graph)


@evaluate.command(
    "run", cls=ExplainingCommand, short_help="Measure searches on questions; a model may judge."
)
def run_evaluation(
    questions: Questions,
    root: Root = Path(),
    methods: Methods = "local,basic",
    set_: SetOrCompare = None,
    as_of: AsOf = None,
    against: Against = None,
    budgets: Budgets = "4000,12000",
    workers: Workers = None,
    fail_below: FailBelow = None,
    judge: JudgeModel = "",
    second_judge: SecondJudge = "",
    judge_with: JudgeWith = ALL_CRITERIA,
    budget: JudgeBudget = None,
    estimate: Estimate = False,
    name: Name = "",
    to: To = None,
    no_report: NoReport = False,
    as_json: Json = False,
) -> None:
    """Measure searches on questions with known answers; a model may judge the answers."""
    from graphrag_evaluation.questions import read_questions
    from graphrag_evaluation.report import evaluation_page as reports
    from graphrag_evaluation.report.record_results import record_evaluation
    from graphrag_evaluation.summary import Evaluation, check_measures
    from graphrag_evaluation.systems import Place, open_systems, plan_systems
    from graphrag_index.pipeline.local_runner import count_cores

    criteria = [criterion.strip() for criterion in judge_with.split(",")]
    judging = Judging(root, judge, second_judge, criteria, budget, estimate)
    check_judging(judging)
    limits = parse_limits("--fail-below", fail_below)
    check_measures(limits)
    tokens = _parse_budgets(budgets)
    asked = read_questions(questions)
    places = [Place(root, as_of), *(Place.parse(text, root) for text in against or ())]
    searches = [method.strip() for method in methods.split(",")]
    name = reports.report_name(questions, name)
    n_workers = workers or (count_cores() if len(asked) >= MIN_QUESTIONS_OF_WORKERS else 1)
    with ExitStack() as stack:
        stack.enter_context(exit_on_ctrl_c(_STOPPED))
        folder = None if no_report else to or reports.kept_folder(root, name)
        if folder is not None:
            stack.enter_context(reports.reserved_folder(folder))
        systems = open_systems(stack, plan_systems(places, searches, set_ or ()))
        if estimate:
            _check_answers_cost_nothing(systems)
        _tell_missing(systems, asked)
        # The versions of one project have one ledger.
        projects = {place.folder.resolve() for place in places}
        results = _ask_systems(systems, asked, tokens, n_workers, projects)
        judged = judge_results(systems, results, judging)
        if judged is None:
            return
        evaluation = Evaluation(judged.results)
        record = record_evaluation(
            evaluation,
            systems,
            name=name,
            questions_file=questions.name,
            limits=limits,
            verdicts=judged.verdicts,
            agreements=judged.agreements,
        )
        if as_json:
            print(record.model_dump_json(indent=2))
        else:
            _print_tables(evaluation, len(asked))
            print_judged(judged)
        if not no_report:
            _keep_report(record, folder, root)
    n_failed = _tell_failed(results)
    if judged.stopped is not None:
        raise judged.stopped
    _check_limits(record)
    if n_failed:
        raise typer.Exit(ExitCode.QUARANTINED)


def _check_answers_cost_nothing(systems: "Sequence[System]") -> None:
    if any(system.index.has_llm for system in systems):
        raise SettingsError(
            "--estimate needs answers, which a model would be paid for: add "
            "--set search.model=none to estimate with answers without a model."
        )


def _keep_report(record: "EvaluationRecord", folder: Path | None, root: Path) -> None:
    """Write the report into its folder, if there is one, and say where it is."""
    from graphrag_evaluation.report.evaluation_page import write_report

    said = f"Not kept, since {root} is no project: name a folder with --to."
    if folder is not None:
        said = f"Report: {write_report(folder, record)}"
    print(said, file=sys.stderr)


def _tell_missing(systems: "Sequence[System]", questions: "Sequence[EvaluationQuestion]") -> None:
    """Print how many gold documents an index does not have."""
    from graphrag_evaluation.runs import missing_documents

    told: set[frozenset[str]] = {frozenset()}
    for system in systems:
        # The searches of one index lack the same documents.
        if (missing := frozenset(missing_documents(system, questions))) not in told:
            told.add(missing)
            print(
                f"Not in the index of {system.name}: {format_count('gold documents', len(missing))}"
                f", such as {min(missing)!r}, which count as missed.",
                file=sys.stderr,
            )


def _tell_failed(results: "Mapping[str, Sequence[Result]]") -> int:
    """Print how many searches of each system failed, and why; return their number."""
    n_failed = 0
    for system, rows in results.items():
        failed = [row.answer.text for row in rows if row.answer.outcome.is_failure]
        n_failed += len(failed)
        if failed:
            first = " ".join(failed[0].split())
            print(
                f"{len(failed):,} of {len(rows):,} searches of {system} failed, the first one "
                f"since: {first}",
                file=sys.stderr,
            )
    return n_failed


def _ask_systems(
    systems: "Sequence[System]",
    questions: "Sequence[EvaluationQuestion]",
    budgets: Sequence[int],
    n_workers: int,
    projects: Collection[Path],
) -> "dict[str, list[Result]]":
    """Ask all systems all questions; print what was paid now for answers of a model."""
    from graphrag_evaluation.runs import run_systems
    from graphrag_index.cli.terminal import temporary_bar

    before = _sum_spending(projects)
    with temporary_bar(sys.stderr, "evaluate") as bar:
        bar.start(len(questions), " questions")
        results = run_systems(systems, questions, budgets, n_workers, bar.advance)
    if any(system.index.has_llm for system in systems):
        after = _sum_spending(projects)
        n_calls, paid = after.calls - before.calls, None
        if before.cost is not None and after.cost is not None:
            paid = after.cost - before.cost
        print(f"Answers: {n_calls:,} requests sent for {format_paid(paid)}.", file=sys.stderr)
    return results


def _sum_spending(projects: Collection[Path]) -> "Spending":
    from graphrag_evaluation.project_folders import spent_in
    from graphrag_index.llm.request import Spending

    total = Spending()
    for project in projects:
        total.add(spent_in(project))
    return total


def _check_limits(record: "EvaluationRecord") -> None:
    """Raise an error if a mean misses its limit, or if a measure with a limit is missing."""
    if unknown := record.limits.keys() - set(record.measures):
        known = ", ".join(record.measures)
        raise SettingsError(f"There is no measure {min(unknown)!r} here, but {known}.")
    if record.failures:
        raise GraphRAGError("; ".join(said for *_, said in record.failures) + ".")


def _parse_budgets(text: str) -> list[int]:
    values = [value.strip() for value in text.split(",")]
    if not all(value.isdecimal() and int(value) >= MIN_BUDGET for value in values):
        raise SettingsError(
            f"--budgets {text}: write numbers of tokens from {MIN_BUDGET} on, as 4000,12000."
        )
    return list(map(int, values))


def _print_tables(evaluation: "Evaluation", n_questions: int) -> None:
    """Print the means with their intervals, then the differences with their p-values."""
    from graphrag_index.cli.index_tables import align_columns

    print(f"{n_questions:,} questions; in brackets the interval of 95 %\n")
    rows: list[Sequence[str]] = [("measure", *evaluation.results, "questions")]
    for measure in evaluation.measures():
        intervals = [evaluation.interval(system, measure) for system in evaluation.results]
        cells = [f"{i.mean:.3f} [{i.low:.3f}, {i.high:.3f}]" if i else "-" for i in intervals]
        n = max((i.n for i in intervals if i), default=0)
        rows.append((measure, *cells, str(n)))
    print(*align_columns(rows, left=[0]), sep="\n")
    found = [one for measure in evaluation.measures() for one in evaluation.comparisons(measure)]
    if not found:
        return
    clear = [one for one in found if one.is_significant]
    print(
        f"\nOf {len(found):,} differences, {len(clear):,} are more than chance (p by permutation, "
        "corrected by Holm)."
    )
    if not clear:
        return
    print("Second minus first; the last column is the smallest difference that would be found:\n")
    rows = [("measure", "first", "second", "difference", "p", "could show")]
    for one in clear:
        i = one.difference.interval
        cell = f"{i.mean:+.3f} [{i.low:+.3f}, {i.high:+.3f}]"
        detectable = one.difference.detectable
        numbers = (f"{one.corrected_p:.4f}", "-" if detectable is None else f"{detectable:.3f}")
        rows.append((one.measure, one.first, one.second, cell, *numbers))
    print(*align_columns(rows, left=[0, 1, 2]), sep="\n")
