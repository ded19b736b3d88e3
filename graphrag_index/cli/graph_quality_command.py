"""The command `evaluate graph`: the quality of the graph of an index."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.cli import Against, AsOf, Json, Root, parse_limits
from graphrag_index.errors import GraphRAGError, SettingsError

if TYPE_CHECKING:
    from graphrag_evaluation.graph_quality.graph_measurement import GraphQuality
    from graphrag_evaluation.graph_quality.reference_comparison import ReferenceComparison

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
            help="Marked passages (JSON Lines), or another index, to compare with.",
        ),
    ] = None,
    resamples: Annotated[
        int,
        typer.Option(
            "--resamples", metavar="N", min=1, help="Samples of documents for the stability."
        ),
    ] = 20,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of all samples.")
    ] = 17,
    fail_below: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-below",
            metavar="MEASURE=VALUE",
            help="Exit with 1 if lower, as grounded_mentions=0.9.",
        ),
    ] = None,
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
    """Measure the graph of an index: grounding, duplicates, reports, stability."""
    from graphrag_evaluation.graph_quality.graph_measurement import measure_graph, open_reference
    from graphrag_evaluation.systems import Place
    from graphrag_index.cli.terminal import temporary_bar

    lowest = parse_limits("--fail-below", fail_below)
    highest = parse_limits("--fail-above", fail_above)
    _check_measures({**lowest, **highest}, has_reference=reference is not None)
    places = [Place(root, as_of), *(Place.parse(text, root) for text in against or ())]
    opened = None if reference is None else open_reference(reference, root)
    measured = []
    for place in places:
        with temporary_bar(sys.stderr, "evaluate graph") as progress:
            measured.append(
                measure_graph(
                    place, n_resamples=resamples, seed=seed, progress=progress, reference=opened
                )
            )
    if as_json:
        found = {quality.name: quality.to_dict() for quality in measured}
        print(json.dumps({"indexes": found, "seed": seed}, ensure_ascii=False, indent=2))
    else:
        _print_figures(measured)
    _check_limits(measured, lowest, highest)


def _check_measures(names: Iterable[str], has_reference: bool) -> None:
    """Raise SettingsError if a measure is unknown, or needs a reference that is not given."""
    from graphrag_evaluation.graph_quality.graph_figures import GRAPH_MEANINGS, REFERENCE_MEANINGS

    known = [*GRAPH_MEANINGS, *REFERENCE_MEANINGS]
    for name in names:
        if name not in known:
            raise SettingsError(f"There is no measure {name!r} of a graph, but {', '.join(known)}.")
        if name in REFERENCE_MEANINGS and not has_reference:
            raise SettingsError(f"The measure {name} needs --reference.")


def _print_figures(measured: "Sequence[GraphQuality]") -> None:
    """Print the figures of the indexes side by side, then examples and reasons."""
    from graphrag_index.cli.index_tables import align_columns

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


def _check_limits(
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
