"""The commands `evaluate`, which measure searches and the graph of an index, and `tune`."""

import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from graphrag_index.cli import (
    Against,
    AsOf,
    Json,
    OnlyEstimate,
    Root,
    Set,
    describe_estimate,
    exit_on_ctrl_c,
    format_paid,
    load_project,
    load_project_settings,
    parse_limits,
)
from graphrag_index.cli.run_commands import Budget, Workers
from graphrag_index.errors import (
    BudgetError,
    ExitCode,
    GraphRAGError,
    ModelError,
    SettingsError,
    format_count,
    let_ctrl_c_end_waits,
)
from graphrag_index.explaining_command import ExplainingCommand
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_evaluation.generation.natural_questions import QuestionMaker
    from graphrag_evaluation.graph_quality.graph_measurement import GraphQuality
    from graphrag_evaluation.graph_quality.reference_comparison import ReferenceComparison
    from graphrag_evaluation.judge import PairVerdict
    from graphrag_evaluation.questions import EvaluationQuestion
    from graphrag_evaluation.report.evaluation_record import EvaluationRecord
    from graphrag_evaluation.runs import Result
    from graphrag_evaluation.summary import Evaluation
    from graphrag_evaluation.systems import System
    from graphrag_evaluation.tuned_prompt import Tuning
    from graphrag_index.llm.request import Request, RequestSender, Spending
    from graphrag_index.schema.settings.project_settings import Settings

NumberOfQuestions = Annotated[
    int, typer.Option("--n", metavar="N", min=1, help="Number of questions at most.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Equal seeds give equal questions.")]
Kinds = Annotated[
    str, typer.Option("--kinds", metavar="KINDS", help="Kinds of questions, separated by commas.")
]
Split = Annotated[
    str,
    typer.Option("--split", metavar="SPLIT", help="Only questions to tune on, or to report on."),
]
QuestionsFile = Annotated[
    Path, typer.Option("--to", metavar="FILE", help="The file: .json or .jsonl.")
]
Model = Annotated[
    str,
    typer.Option(
        "--model", metavar="MODEL", help="Chat model that writes and checks the questions."
    ),
]
FailBelow = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-below",
        metavar="MEASURE=VALUE",
        help="Exit with 1 if a measure is lower, as recall@10=0.9.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file.")]
NO_MODEL = "none"
TunedModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Chat model to ask, or none; if not given, that of extract_graph.",
    ),
]
Types = Annotated[
    str,
    typer.Option(
        "--types", metavar="TYPES", help="Types of entities to keep first, separated by commas."
    ),
]
Passages = Annotated[
    int, typer.Option("--passages", metavar="N", min=2, help="Passages of the sample.")
]


def make(
    root: Root = Path(),
    n: NumberOfQuestions = 300,
    seed: Seed = 17,
    kinds: Kinds = "local,two-hop,comparison,whole-corpus,temporal,unanswerable",
    split: Split = "",
    to: QuestionsFile = Path("questions.jsonl"),
    model: Model = "",
    budget: Budget = None,
    estimate: OnlyEstimate = False,
    force: Force = False,
    set_: Set = None,
) -> None:
    """Make questions with known answers from an index, without a model or in natural words."""
    import graphrag_query
    from graphrag_evaluation import EVALUATIONS
    from graphrag_evaluation.generation.make_questions import SPLITS, make_questions
    from graphrag_evaluation.generation.natural_questions import QuestionMaker
    from graphrag_evaluation.questions import write_questions
    from graphrag_index.cli import load_project_settings
    from graphrag_index.cli.printed_tables import align_columns
    from graphrag_index.llm.prompts import Prompts

    if split and split not in SPLITS:
        raise SettingsError(f"There is no split {split!r}, but {', '.join(SPLITS)}.")
    if not model and (estimate or budget is not None):
        raise SettingsError("--estimate and --budget need a model: name one with --model.")
    if to.exists() and not (force or estimate):
        raise SettingsError(f"{to} is there: choose another file with --to, or add --force.")
    settings = load_project_settings(root, set_)
    wanted = list(dict.fromkeys(kind.strip() for kind in kinds.split(",")))
    with graphrag_query.open(locate_output(root, settings), settings, root) as index:
        if model:
            if model not in settings.models:
                known = ", ".join(settings.models)
                raise SettingsError(f"--model {model}: there is no such model, but {known}.")
            prompts = Prompts(root, "graphrag_evaluation")
            splits = [split] if split else SPLITS
            maker = QuestionMaker(index, n, seed, wanted, prompts, splits)
            if estimate:
                _print_estimate(list(maker.expected_requests()), model, settings)
                return
            made = _ask_model(maker, model, settings, root / EVALUATIONS, budget)
        else:
            made = make_questions(index, n, seed, wanted)
    kept = [question for question in made if split in ("", question.split)]
    if not kept:
        raise GraphRAGError(
            f"None of the {len(made):,} questions is of the split {split}: raise --n."
        )
    write_questions(kept, to)
    counts = Counter((question.kind, question.split) for question in kept)
    rows: list[Sequence[str]] = [("kind", *SPLITS)]
    for kind in dict.fromkeys(question.kind for question in kept):
        rows.append((kind, *(f"{counts[kind, name]:,}" for name in SPLITS)))
    print(*align_columns(rows, left=[0]), sep="\n")
    if not model and len(made) < n:
        print(f"The index states enough for {len(made):,} questions, not for {n:,}.")
    print(f"{len(kept):,} questions: {to}", file=sys.stderr)


def _ask_model(
    maker: "QuestionMaker", model: str, settings: "Settings", ledger: Path, budget: float | None
) -> "list[EvaluationQuestion]":
    """Let a model make questions, and print what was dropped."""
    from graphrag_evaluation.generation.natural_questions import LEDGER_STEP
    from graphrag_index.cli.printed_tables import align_columns
    from graphrag_index.cli.terminal import temporary_bar
    from graphrag_index.llm.registry import Models

    let_ctrl_c_end_waits()
    needed = {model: ""}
    with (
        closing(Models(settings.models, ledger, needed=needed, budget=budget)) as models,
        temporary_bar(sys.stderr, "replies") as bar,
    ):
        # Replies that failed before may be readable now.
        models.ledger.reopen_quarantined([LEDGER_STEP])
        with exit_on_ctrl_c("Stopped. The replies are kept: the same command goes on."):
            found = maker.make(models.open_chat_model(model, LEDGER_STEP), bar.advance)
    paid = format_paid(found.spent.cost)
    print(f"{model}: {found.spent.calls:,} requests sent for {paid}.", file=sys.stderr)
    if found.dropped:
        rows = [("dropped questions", "")]
        rows += [(reason, f"{number:,}") for reason, number in found.dropped.most_common()]
        print(*align_columns(rows, left=[0]), "", sep="\n")
    if not found.questions:
        raise GraphRAGError(f"No question passed the checks of {model}: the table above says why.")
    if len(found.questions) < maker.n_wanted:
        print(
            f"{len(found.questions):,} of {maker.n_wanted:,} questions were made: the others were "
            "dropped, or the index has no more passages for their kind.\n"
        )
    return found.questions


def _print_estimate(requests: "Sequence[Request]", model: str, settings: "Settings") -> None:
    """Print what the requests for questions and their checks cost, if none is dropped."""
    from graphrag_evaluation.generation.natural_questions import MAX_ROUNDS
    from graphrag_index.llm.limits import estimate_requests

    said = describe_estimate(model, *estimate_requests(requests, settings.models[model]))
    print(f"{said}. Others replace dropped questions: at most {MAX_ROUNDS} times as much.")


# Examples of a measure in the terminal, and their maximum length.
_MAX_EXAMPLES, _MAX_CHARACTERS = 3, 160
# Compared documents below which the terminal says that intervals are too narrow.
_MIN_DOCUMENTS = 10


def graph(
    root: Root = Path(),
    as_of: AsOf = None,
    against: Against = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="PATH",
            help="Another index of the same documents to compare with.",
        ),
    ] = None,
    fail_below: FailBelow = None,
    fail_above: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-above",
            metavar="MEASURE=VALUE",
            help="Exit with 1 if higher, as duplicate_names=0.02.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the graph of an index: grounding, duplicates, components, reports."""
    from graphrag_evaluation.graph_quality.graph_measurement import measure_graph
    from graphrag_evaluation.systems import Place
    from graphrag_index.cli.terminal import temporary_bar

    lowest = parse_limits("--fail-below", fail_below)
    highest = parse_limits("--fail-above", fail_above)
    _check_measures({**lowest, **highest}, has_reference=reference is not None)
    places = [Place(root, as_of), *(Place.parse(text, root) for text in against or ())]
    other = None if reference is None else Place.parse(reference, root)
    measured = []
    for place in places:
        with temporary_bar(sys.stderr, "evaluate graph") as progress:
            measured.append(measure_graph(place, progress=progress, reference=other))
    if as_json:
        found = {quality.name: quality.to_dict() for quality in measured}
        print(json.dumps({"indexes": found}, ensure_ascii=False, indent=2))
    else:
        _print_figures(measured)
    _check_graph_limits(measured, lowest, highest)


def _check_measures(names: Iterable[str], has_reference: bool) -> None:
    """Raise SettingsError if a measure is unknown, or needs a reference that is not given."""
    from graphrag_evaluation.graph_quality.grounding import GRAPH_MEANINGS, REFERENCE_MEANINGS

    known = [*GRAPH_MEANINGS, *REFERENCE_MEANINGS]
    for name in names:
        if name not in known:
            raise SettingsError(f"There is no measure {name!r} of a graph, but {', '.join(known)}.")
        if name in REFERENCE_MEANINGS and not has_reference:
            raise SettingsError(f"The measure {name} needs --reference.")


def _print_figures(measured: "Sequence[GraphQuality]") -> None:
    """Print the figures of the indexes side by side, then examples and reasons."""
    from graphrag_index.cli.printed_tables import align_columns

    names = list(dict.fromkeys(name for quality in measured for name in quality.figures))
    rows: list[Sequence[str]] = [("measure", *(q.name for q in measured), "rows")]
    for name in names:
        figures = [quality.figures.get(name) for quality in measured]
        found = [figure.interval for figure in figures if figure]
        cells = [
            f"{f.interval.mean:.3f} [{f.interval.low:.3f}, {f.interval.high:.3f}]" if f else "-"
            for f in figures
        ]
        rows.append((name, *cells, " ".join(f"{interval.n:,}" for interval in found)))
    print("In brackets the interval of 95 %\n", *align_columns(rows, left=[0]), sep="\n")
    for quality in measured:
        heading = f" of {quality.name}" if len(measured) > 1 else ""
        for name, figure in quality.figures.items():
            if figure.examples:
                print(f"\nExamples for {name}{heading}")
                for example in figure.examples[:_MAX_EXAMPLES]:
                    line = " ".join(example.split())
                    print(f"  {line[:_MAX_CHARACTERS]}{'…' * (len(line) > _MAX_CHARACTERS)}")
        if quality.comparison is not None:
            _print_comparison(quality.comparison, heading)
        if quality.not_measured:
            print(f"\nNot measured{heading}")
            print(*(f"  {name}: {why}" for name, why in quality.not_measured.items()), sep="\n")


def _print_comparison(comparison: "ReferenceComparison", heading: str) -> None:
    """Print the number of compared documents, and documents that were not found."""
    n_missing = len(comparison.not_found)
    print(
        f"\nCompared{heading} with {comparison.reference}: {comparison.n_documents:,} of "
        f"{comparison.n_documents_of_index:,} documents; {n_missing:,} of the reference were not "
        f"found{': ' * bool(n_missing)}{', '.join(comparison.not_found[:_MAX_EXAMPLES])}"
        f"{', …' * (n_missing > _MAX_EXAMPLES)}"
    )
    if comparison.n_documents < _MIN_DOCUMENTS:
        print(f"Intervals over fewer than {_MIN_DOCUMENTS} documents are too narrow.")


def _check_graph_limits(
    measured: "Sequence[GraphQuality]", lowest: Mapping[str, float], highest: Mapping[str, float]
) -> None:
    """Raise `GraphRAGError` if a figure misses a limit, or a figure with a limit is missing."""
    failures = []
    for limits, word, sign in ((lowest, "below", 1), (highest, "above", -1)):
        for name, limit in limits.items():
            for quality in measured:
                figure = quality.figures.get(name)
                if figure is None:
                    why = quality.not_measured[name]
                    failures.append(f"{name} of {quality.name} cannot be measured: {why}")
                elif sign * (figure.interval.mean - limit) < 0:
                    mean = figure.interval.mean
                    failures.append(f"{name} of {quality.name} is {mean:.4g}, {word} {limit:g}")
    if failures:
        raise GraphRAGError("; ".join(failures) + ".")


JudgeModel = Annotated[
    str, typer.Option("--judge", metavar="MODEL", help="Chat model that judges the answers.")
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
    """The options of the judge; `root` is the folder of the project."""

    root: Path
    judge: str
    criteria: Sequence[str]
    budget: float | None
    only_estimates: bool


class Judged(NamedTuple):
    """The results with the scores of the judge, and its verdicts on pairs.

    `stopped` is the error that ended the judgements before all were made.
    """

    results: "Mapping[str, Sequence[Result]]"
    verdicts: "Sequence[PairVerdict]" = ()
    stopped: BudgetError | ModelError | None = None


def check_judging(options: Judging) -> None:
    """Check the options before any answer is paid for; raise `SettingsError` for a wrong one."""
    given = {
        "--estimate": options.only_estimates,
        "--budget": options.budget is not None,
    }
    if not options.judge:
        if alone := [name for name, value in given.items() if value]:
            raise SettingsError(f"{alone[0]} needs --judge, with a chat model of settings.yaml.")
        return
    from graphrag_evaluation.judge import check_criteria, check_judge

    check_criteria(options.criteria)
    settings = load_project_settings(options.root, None)
    check_judge(options.judge, settings)


def judge_results(
    systems: "Sequence[System]", results: "Mapping[str, Sequence[Result]]", options: Judging
) -> Judged | None:
    """Let the judge of the options judge; None if only the cost was asked for."""
    if not options.judge:
        return Judged(results)
    from graphrag_evaluation import EVALUATIONS
    from graphrag_evaluation.judge import Judge, list_tasks

    settings = load_project_settings(options.root, None)
    tasks = list_tasks(systems, results, options.criteria, options.root)
    judge = Judge(options.judge, settings, options.root, options.root / EVALUATIONS, options.budget)
    with closing(judge):
        if options.only_estimates:
            print(describe_estimate(options.judge, *judge.estimate(tasks)))
            return None
        verdicts = judge.judge(tasks)
    print(
        f"{options.judge}: {verdicts.spent.calls:,} requests sent for "
        f"{format_paid(verdicts.spent.cost)}; "
        f"{verdicts.n_unread:,} verdicts could not be read or lack their evidence.",
        file=sys.stderr,
    )
    return Judged(verdicts.add_scores(results), verdicts.pairs, verdicts.stopped)


def print_judged(judged: Judged) -> None:
    """Print the pairs with the flips of the judge."""
    from graphrag_evaluation.judge import summarize_pairs
    from graphrag_index.cli.printed_tables import align_columns

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
    judge_with: JudgeWith = ALL_CRITERIA,
    budget: JudgeBudget = None,
    estimate: Estimate = False,
    name: Name = "",
    to: To = None,
    no_report: NoReport = False,
    as_json: Json = False,
) -> None:
    """Measure searches on questions with known answers; a model may judge the answers."""
    from graphrag_evaluation.judgements import read_known_answers
    from graphrag_evaluation.report import evaluation_page as reports
    from graphrag_evaluation.report.evaluation_record import record_evaluation
    from graphrag_evaluation.summary import Evaluation, check_measures
    from graphrag_evaluation.systems import Place, open_systems, plan_systems
    from graphrag_index.pipeline.shards import count_cores

    criteria = [criterion.strip() for criterion in judge_with.split(",")]
    judging = Judging(root, judge, criteria, budget, estimate)
    check_judging(judging)
    limits = parse_limits("--fail-below", fail_below)
    check_measures(limits)
    tokens = _parse_budgets(budgets)
    asked = read_known_answers(questions)
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
    """Return what all evaluations of projects have paid for so far, answers and judgements."""
    from graphrag_evaluation import EVALUATIONS
    from graphrag_index.llm.ledger import FILE, Ledger
    from graphrag_index.llm.request import Spending

    total = Spending()
    for folder in (project / EVALUATIONS for project in projects):
        if not (folder / FILE).exists():
            continue
        with closing(Ledger(folder, read_only=True)) as ledger:
            # A full disk leaves a file without tables.
            if ledger.fetch_rows("SELECT 1 FROM sqlite_schema WHERE name = 'calls'"):
                total.add(ledger.spent_for(ledger.version))
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
    from graphrag_index.cli.printed_tables import align_columns

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


def tune(
    root: Root = Path(),
    model: TunedModel = None,
    types: Types = "",
    passages: Passages = 24,
    budget: Budget = None,
    estimate: OnlyEstimate = False,
    set_: Set = None,
) -> None:
    """Propose prompts, types and examples for the documents of an index."""
    import yaml

    from graphrag_evaluation import TUNING
    from graphrag_evaluation.tuned_prompt import (
        TUNE_STEP,
        UnsentRequests,
        tune,
        write_proposal,
    )
    from graphrag_index.llm.limits import estimate_requests
    from graphrag_index.llm.registry import Models
    from graphrag_index.schema.settings.models import find_model
    from graphrag_index.storage.atomic import lock_target
    from graphrag_query.store.index_store import IndexStore

    settings, workflow = load_project(root, set_)
    asks = any(step.name == "extract_graph" for step in workflow.steps)
    name = model or (settings.extract_graph.model if asks else NO_MODEL)
    wanted = tuple(filter(None, map(str.strip, types.split(","))))
    store = IndexStore.open(locate_output(root, settings))
    folder = root / TUNING

    def propose(asked: "RequestSender | None") -> "Tuning":
        return tune(store, root, settings, types=wanted, n_passages=passages, model=asked)

    if estimate:
        if name == NO_MODEL:
            print("No model is asked: the proposal costs nothing.")
            return
        unsent, known = UnsentRequests(), find_model(settings.models, name, TUNE_STEP)
        propose(unsent)
        print(describe_estimate(name, *estimate_requests(unsent.requests, known)))
        return
    let_ctrl_c_end_waits()
    with ExitStack() as stack:
        stack.enter_context(lock_target(folder, "tuning"))
        stack.enter_context(
            exit_on_ctrl_c("Stopped. The replies are kept: the same command goes on.")
        )
        if name == NO_MODEL:
            tuning = propose(None)
        else:
            models = stack.enter_context(closing(Models(settings.models, folder, budget=budget)))
            # Replies that failed before may be readable now.
            models.ledger.reopen_quarantined([TUNE_STEP])
            tuning = propose(models.open_chat_model(name, TUNE_STEP))
            spent = models.spent(0)
            told = f"{name}: {spent.calls:,} requests for {format_paid(spent.cost)}"
            print(f"{told}, with those of earlier runs.", file=sys.stderr)
        write_proposal(folder, root, tuning.prompts)
    _print_tuning(tuning)
    if not asks:
        print(
            f"The workflow {settings.workflow} asks no model for entities: the prompt takes effect "
            "with a workflow that has the step extract_graph."
        )
    listed = yaml.safe_dump(
        [*tuning.types], default_flow_style=True, allow_unicode=True, width=9_999
    )
    print(
        f"\nThe prompts are in {folder / 'prompts'}, and changes.diff beside it shows what they "
        f"change. To use them, copy them to {root / 'prompts'}, and set in settings.yaml:\n"
        f"extract_graph: {{entity_types: {listed.strip()}}}"
    )


def _print_tuning(tuning: "Tuning") -> None:
    from graphrag_index.cli.printed_tables import align_columns

    languages = ", ".join(f"{code} {n:,}" for code, n in tuning.languages.items())
    n_documents = format_count("documents", sum(tuning.languages.values()))
    passages = format_count("passages", tuning.n_passages)
    print(f"Made from {passages} of {n_documents}; languages: {languages}.")
    if tuning.description.domain:
        print(f"Documents: {tuning.description.domain}")
    if tuning.description.persona:
        print(f"Reader: {tuning.description.persona}")
    rows: list[Sequence[str]] = [("type of entities", "passages")]
    rows += [(name, f"{n:,}") for name, n in tuning.types.items()]
    print("", *align_columns(rows, left=[0]), sep="\n")
    print(f"\n{format_count('examples', len(tuning.examples))} from the documents.")
    if tuning.n_unreadable:
        print(f"{format_count('replies or records', tuning.n_unreadable)} could not be read.")
