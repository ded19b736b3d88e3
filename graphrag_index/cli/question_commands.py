"""The command `evaluate make`: questions of one's own, with known answers."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from graphrag_index.cli import Root, Set
from graphrag_index.errors import SettingsError


def make(
    root: Root = Path(),
    n: Annotated[int, typer.Option("--n", min=1, help="Number of questions at most.")] = 300,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal questions.")] = 17,
    kinds: Annotated[
        str, typer.Option("--kinds", help="Kinds of questions, separated by commas.")
    ] = "local,two-hop,comparison,whole-corpus,temporal,unanswerable",
    split: Annotated[
        str, typer.Option("--split", help="Only questions to tune on, or to report on.")
    ] = "",
    layout: Annotated[
        str,
        typer.Option(
            "--layout",
            help="graphrag-index, benchmark-qed, ragas, hotpotqa, musique, graphrag-bench or "
            "wildgraphbench.",
        ),
    ] = "graphrag-index",
    to: Annotated[
        Path, typer.Option("--to", metavar="FILE", help="The file: .json or .jsonl.")
    ] = Path("questions.jsonl"),
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    set_: Set = None,
) -> None:
    """Make questions with known answers from an index, without a model."""
    import graphrag_query
    from graphrag_evaluation.generation.make_questions import SPLITS, make_questions
    from graphrag_evaluation.layout_writers import LAYOUTS, write_questions
    from graphrag_index.cli import load_project_settings
    from graphrag_index.cli.index_tables import align_columns

    if layout not in LAYOUTS:
        raise SettingsError(f"There is no layout {layout!r}, but {', '.join(LAYOUTS)}.")
    if split and split not in SPLITS:
        raise SettingsError(f"There is no split {split!r}, but {', '.join(SPLITS)}.")
    if to.exists() and not force:
        raise SettingsError(f"{to} is there: choose another file with --to, or add --force.")
    settings = load_project_settings(root, set_)
    with graphrag_query.open(root / settings.output, settings, root) as index:
        made = make_questions(index, n, seed, [kind.strip() for kind in kinds.split(",")])
    kept = [question for question in made if split in ("", question.split)]
    write_questions(kept, to, layout)
    counts = Counter((question.kind, question.split) for question in kept)
    rows: list[Sequence[str]] = [("kind", *SPLITS)]
    for kind in dict.fromkeys(question.kind for question in kept):
        rows.append((kind, *(f"{counts[kind, name]:,}" for name in SPLITS)))
    print(*align_columns(rows, left=[0]), sep="\n")
    if len(made) < n:
        print(f"The index states enough for {len(made):,} questions, not for {n:,}.")
    print(f"{len(kept):,} questions: {to}", file=sys.stderr)
