"""The command `tune`: prompts, types and examples for the documents of an index."""

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
    format_paid,
    load_project,
)
from graphrag_index.cli.run_commands import Budget
from graphrag_index.errors import format_count, let_ctrl_c_end_waits
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_evaluation.tuned_prompt import Tuning
    from graphrag_index.llm.request import RequestSender

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
    from graphrag_index.cli.index_tables import align_columns

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
