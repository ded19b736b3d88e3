"""Common options of the commands of `graphrag-index`, and loading of a project.

The commands import heavy modules inside their functions, so that `--help` is fast.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.errors import ExitCode, SettingsError, print_lines, quote_argument

if TYPE_CHECKING:
    from graphrag_index.pipeline.workflow import Workflow
    from graphrag_index.schema.settings.project_settings import Settings
    from graphrag_index.storage.table_store import TableStore

Root = Annotated[Path, typer.Option("--root", help="Folder of settings.yaml.", metavar="DIR")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting: section.key=value.", metavar="KEY=VALUE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as JSON.")]
AsOf = Annotated[
    int | None, typer.Option("--as-of", metavar="VERSION", help="Version of the index.")
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="INDEX",
        help="Another version (@3), project or output folder (path or path@3) to compare with.",
    ),
]
OnlyEstimate = Annotated[
    bool, typer.Option("--estimate", help="Print the requests and their price; send nothing.")
]


def root_option(root: Path) -> str:
    """Return the option `--root` for a folder; empty for the current folder."""
    return "" if root.resolve() == Path.cwd() else f" --root {quote_argument(str(root))}"


def format_paid(dollars: float | None) -> str:
    """Format a cost within a sentence."""
    return "an unknown cost" if dollars is None else f"${dollars:,.4f}"


def describe_estimate(model: str, n_requests: int, n_tokens: int, cost: float | None) -> str:
    """Describe what requests to a model would cost."""
    price = "unknown price" if cost is None else f"at most about ${cost:,.2f}"
    return f"{model}: {n_requests:,} requests, {n_tokens:,} tokens of prompts, {price}"


def indent_first_lines(lines: Sequence[str], at_most: int, hint: str = "") -> list[str]:
    """Indent the first `at_most` lines; add a line that counts the lines left out."""
    n_more = len(lines) - at_most
    more = [f"  ... and {n_more:,} more{hint}"] if n_more > 0 else []
    return [*(f"  {line}" for line in lines[:at_most]), *more]


def parse_limits(option: str, texts: Sequence[str] | None) -> dict[str, float]:
    """Parse the values of an option such as `--fail-below recall@10=0.9`, by measure."""
    limits = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        try:
            limits[name] = float(value)
        except ValueError:
            limits[name] = nan
        if isnan(limits[name]):
            raise SettingsError(f"{option} {text}: write it as measure=0.9.")
    return limits


def load_project_settings(
    root: Path, overrides: Sequence[str] | None, *, needed: bool = True
) -> "Settings":
    """Load `settings.yaml` and apply overrides; if `needed`, a missing file is an error."""
    from graphrag_index.schema.settings.project_settings import load_settings

    return load_settings(root, tuple(overrides or ()), needed=needed)


def open_store(root: Path, overrides: Sequence[str] | None) -> "TableStore":
    """Return the output folder of a project."""
    from graphrag_index.storage.table_store import TableStore
    from graphrag_index.storage.working_copy import locate_output

    return TableStore(locate_output(root, load_project_settings(root, overrides)))


def load_project(root: Path, overrides: Sequence[str] | None) -> "tuple[Settings, Workflow]":
    """Load the settings of a project, apply overrides, and load its workflow."""
    from graphrag_index.pipeline.workflow import load_workflow

    settings = load_project_settings(root, overrides)
    return settings, load_workflow(root, settings.workflow)


@contextmanager
def exit_on_ctrl_c(message: str) -> Iterator[None]:
    """On Ctrl-C, print a message and exit."""
    try:
        yield
    except KeyboardInterrupt:
        print_lines(message, sys.stderr)
        raise typer.Exit(ExitCode.INTERRUPTED) from None


@contextmanager
def traced() -> Iterator[None]:
    """Send spans of the run to the collector of traces that the environment names, if any."""
    stop = None
    if any(name.startswith("OTEL_EXPORTER_OTLP_") for name in os.environ):
        from graphrag_server.tracing import start_tracing

        stop = start_tracing()
    try:
        yield
    finally:
        if stop is not None:
            stop()
