"""The command `tune`: prompts, types and examples for the documents, measured before use."""

import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli import (
    OnlyEstimate,
    Root,
    Set,
    describe_estimate,
    exit_on_ctrl_c,
    load_project,
    root_option,
)
from graphrag_index.cli.run_commands import Budget
from graphrag_index.errors import GraphRAGError, SettingsError, let_ctrl_c_end_waits
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_evaluation.tuning.tuning_run import Comparison, Tuning, TuningOptions
    from graphrag_index.pipeline.workflow import Workflow
    from graphrag_index.schema.settings.project_settings import Settings
    from graphrag_query.store.index_store import IndexStore

TunedModel = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Chat model to ask; if not given, that of extract_graph.",
    ),
]
NoModel = Annotated[
    bool, typer.Option("--no-model", help="Ask no model: propose from the index alone.")
]
Types = Annotated[
    str,
    typer.Option(
        "--types", metavar="TYPES", help="Types of entities to keep first, separated by commas."
    ),
]
Passages = Annotated[
    int,
    typer.Option(
        "--passages", metavar="N", min=2, help="Passages of the sample; half are held out."
    ),
]
ReferenceModel = Annotated[
    str | None,
    typer.Option(
        "--reference-model", metavar="MODEL", help="A stronger model to compare replies with."
    ),
]
To = Annotated[
    Path | None,
    typer.Option("--to", metavar="DIR", help="Folder of the proposal, instead of tuning/proposal."),
]
Install = Annotated[
    bool, typer.Option("--install", help="Put the proposal into force if it is better.")
]
Yes = Annotated[bool, typer.Option("--yes", help="With --install: do not ask.")]


def tune(
    root: Root = Path(),
    model: TunedModel = None,
    no_model: NoModel = False,
    types: Types = "",
    passages: Passages = 48,
    reference_model: ReferenceModel = None,
    budget: Budget = None,
    estimate: OnlyEstimate = False,
    to: To = None,
    install: Install = False,
    yes: Yes = False,
    set_: Set = None,
) -> None:
    """Propose prompts, types and examples for the documents, and measure them."""
    settings, workflow = load_project(root, set_)
    from graphrag_evaluation.project_folders import TUNING
    from graphrag_evaluation.tuning.tuning_run import TuningOptions, check_folder
    from graphrag_index.storage.atomic import lock_target
    from graphrag_query.store.index_store import IndexStore

    _check_options(model, no_model, install, yes)
    options = TuningOptions(
        None if no_model else model or _extracting_model(settings, workflow),
        tuple(filter(None, map(str.strip, types.split(",")))),
        passages,
        reference_model,
    )
    if options.model is None and install:
        raise SettingsError(
            "--install needs a model, since a prompt is measured by the replies to it: name a chat "
            "model of the settings with --model."
        )
    store = IndexStore.open(locate_output(root, settings))
    folder = to or root / TUNING / "proposal"
    check_folder(folder, root, locate_output(root, settings))
    if estimate:
        _print_estimate(store, root, settings, options, folder)
        return
    with lock_target(folder, "tuning"):
        with exit_on_ctrl_c("Stopped. The replies are kept: the same command goes on."):
            files, tuning = _propose(store, root, settings, workflow, options, folder, budget)
        print(f"\nThe proposal is in {folder}; changes.diff shows what it would change.")
        if install:
            _install(root, folder, files, tuning, yes)


def _check_options(model: str | None, no_model: bool, install: bool, yes: bool) -> None:
    if no_model and model:
        raise SettingsError("--no-model and --model exclude each other.")
    if install and not yes and not sys.stdin.isatty():
        raise SettingsError("--install changes prompts and settings: add --yes to confirm.")


def _extracting_model(settings: "Settings", workflow: "Workflow") -> str | None:
    """Return the model that extracts entities in the workflow; None if it uses none."""
    asks = any(step.name == "extract_graph" for step in workflow.steps)
    return settings.extract_graph.model if asks else None


def _propose(
    store: "IndexStore",
    root: Path,
    settings: "Settings",
    workflow: "Workflow",
    options: "TuningOptions",
    folder: Path,
    budget: float | None,
) -> "tuple[dict[str, str], Tuning]":
    """Make the proposal, print its figures, and write its files."""
    from graphrag_evaluation.tuning import tuning_run as proposed
    from graphrag_evaluation.tuning.prompt_trial import TUNE_STEP, ReusingModel
    from graphrag_evaluation.tuning.tuning_run import tune
    from graphrag_index.cli.terminal import temporary_bar
    from graphrag_index.llm.registry import Models

    output = locate_output(root, settings)
    # What would prevent the files is told before a model is paid.
    proposed.check_settings_text(root)
    let_ctrl_c_end_waits()
    with (
        closing(Models(settings.models, folder, budget=budget)) as models,
        temporary_bar(sys.stderr, "replies") as bar,
    ):
        # Replies that failed before may be readable now.
        models.ledger.reopen_quarantined([TUNE_STEP])

        def open_model(name: str) -> ReusingModel:
            return ReusingModel(models.open_chat_model(name, TUNE_STEP), output, bar.advance)

        tuning = tune(store, root, settings, options, open_model)
        spent = models.spent(0)
    _print_tuning(tuning)
    if not any(step.name == "extract_graph" for step in workflow.steps):
        print(
            f"The workflow {settings.workflow} asks no model for entities: the prompt takes effect "
            "with a workflow that has the step extract_graph."
        )
    files = proposed.proposed_files(root, settings, tuning)
    proposed.write_proposal(folder, root, files, proposed.report_tuning(tuning))
    if options.model is not None:
        cost = "at an unknown price" if spent.cost is None else f"for ${spent.cost:.4f}"
        print(f"\nThis proposal took {spent.calls:,} calls {cost}, with those of earlier runs.")
    return files, tuning


def _print_tuning(tuning: "Tuning") -> None:
    from graphrag_index.cli.index_tables import align_columns
    from graphrag_index.errors import format_count

    sample = tuning.sample
    print(
        f"Tuned on {format_count('passages', len(sample.tuning))} of "
        f"{format_count('documents', sample.n_documents)}; "
        f"languages: {', '.join(f'{code} {n:,}' for code, n in sample.languages.items())}."
    )
    if tuning.domain:
        print(f"Documents: {tuning.domain}")
    rows: list[Sequence[str]] = [("type of entities", "passages", "")]
    rows += [
        (one.name, f"{one.n_passages:,}", "given" if one.is_given else "") for one in tuning.types
    ]
    print("", *align_columns(rows, left=[0, 2]), sep="\n")
    print(f"\n{format_count('examples', len(tuning.examples))} from the documents.")
    if tuning.n_unreadable:
        print(f"{format_count('replies or records', tuning.n_unreadable)} could not be read.")
    if tuning.comparison is None:
        print("Not measured, since no model was asked.")
    else:
        _print_comparison(tuning.comparison)


def _print_comparison(comparison: "Comparison") -> None:
    from graphrag_evaluation.tuning.prompt_trial import mean_parts
    from graphrag_index.cli.index_tables import align_columns

    before, after = mean_parts(comparison.before), mean_parts(comparison.after)
    n = len(comparison.before)
    print(f"\n{n:,} held-out passages, compared with {comparison.reference}\n")
    rows: list[Sequence[str]] = [("", "in force", "proposed")]
    for part in before:
        digits = 0 if part in ("tokens", "unreadable") else 3
        rows.append((part, f"{before[part]:,.{digits}f}", f"{after[part]:,.{digits}f}"))
    print(*align_columns(rows, left=[0]), sep="\n")
    print(f"\n{describe_difference(comparison)}")


def describe_difference(comparison: "Comparison") -> str:
    """Describe the difference of the scores, and whether it may be chance."""
    from graphrag_evaluation.statistics import MIN_CLUSTERS

    found = comparison.difference
    if found is None:
        return "There is no held-out passage: an evaluation needs at least two documents."
    i = found.interval
    by_more = "by more than chance"
    verdict = f"better {by_more}" if comparison.is_better else f"not better {by_more}"
    power = f"Fewer than {MIN_CLUSTERS} held-out documents show no difference: index more."
    if found.detectable is not None:
        power = f"Such a sample can show a difference of {found.detectable:.3f}."
    return (
        f"Difference {i.mean:+.3f} [{i.low:+.3f}, {i.high:+.3f}], p = {found.p_value:.4f}, "
        f"{found.n_clusters:,} documents: the proposal is {verdict}. {power}"
    )


def _install(
    root: Path, folder: Path, files: "dict[str, str]", tuning: "Tuning", yes: bool
) -> None:
    """Install a proposal that is better by more than chance; raise `GraphRAGError` otherwise."""
    from graphrag_evaluation.tuning.tuning_run import install_files

    comparison = tuning.comparison
    if comparison is None or not comparison.is_better:
        raise GraphRAGError(
            "Nothing was installed, since the proposal is not better than the prompt in force by "
            "more than chance."
        )
    if not yes and not typer.confirm("Put the prompt and the types into force?"):
        print("Nothing was installed.")
        return
    changed, kept = install_files(folder, root, files)
    if not changed:
        print("The proposal is in force already.")
        return
    before = f" What was there before is in {kept}." if kept else ""
    print(f"Installed: {', '.join(changed)}.{before}")
    print(f"`graphrag-index run{root_option(root)}` extracts again with it.")


def _print_estimate(
    store: "IndexStore", root: Path, settings: "Settings", options: "TuningOptions", folder: Path
) -> None:
    """Print the requests of a tuning that its ledger and that of the index do not answer."""
    from graphrag_evaluation.tuning.prompt_trial import TUNE_STEP, UnsentRequests
    from graphrag_evaluation.tuning.tuning_run import tune
    from graphrag_index.llm.ledger import FILE, Ledger
    from graphrag_index.llm.limits import estimate_requests
    from graphrag_index.schema.settings.models import find_model

    if options.model is None:
        print("No model is asked: the proposal costs nothing.")
        return
    models: dict[str, UnsentRequests] = {}
    with ExitStack() as stack:
        ledgers = [
            stack.enter_context(closing(Ledger(place, read_only=True)))
            for place in (folder, locate_output(root, settings))
            if (place / FILE).exists()
        ]

        def open_model(name: str) -> UnsentRequests:
            found = find_model(settings.models, name, TUNE_STEP)
            return models.setdefault(name, UnsentRequests(name, found, ledgers))

        tune(store, root, settings, options, open_model)
    for name, model in models.items():
        print(describe_estimate(name, *estimate_requests(model.requests, model.settings)))
