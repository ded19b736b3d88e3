"""The command `evaluate make`: questions of one's own, with known answers."""

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
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
)
from graphrag_index.cli.run_commands import Budget
from graphrag_index.errors import GraphRAGError, SettingsError, let_ctrl_c_end_waits
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_evaluation.generation.natural_questions import QuestionMaker
    from graphrag_evaluation.questions import EvaluationQuestion
    from graphrag_index.llm.request import Request
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
To = Annotated[Path, typer.Option("--to", metavar="FILE", help="The file: .json or .jsonl.")]
Model = Annotated[
    str,
    typer.Option(
        "--model", metavar="MODEL", help="Chat model that writes and checks the questions."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the file.")]


def make(
    root: Root = Path(),
    n: NumberOfQuestions = 300,
    seed: Seed = 17,
    kinds: Kinds = "local,two-hop,comparison,whole-corpus,temporal,unanswerable",
    split: Split = "",
    to: To = Path("questions.jsonl"),
    model: Model = "",
    budget: Budget = None,
    estimate: OnlyEstimate = False,
    force: Force = False,
    set_: Set = None,
) -> None:
    """Make questions with known answers from an index, without a model or in natural words."""
    import graphrag_query
    from graphrag_evaluation.generation.make_questions import SPLITS, make_questions
    from graphrag_evaluation.generation.natural_questions import QuestionMaker
    from graphrag_evaluation.project_folders import EVALUATIONS
    from graphrag_evaluation.questions import write_questions
    from graphrag_index.cli import load_project_settings
    from graphrag_index.cli.index_tables import align_columns
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
    from graphrag_index.cli.index_tables import align_columns
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
