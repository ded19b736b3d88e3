"""Progress of a run on the terminal: a bar for a long step, a line for a finished step."""

import logging
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from graphrag_index.errors import format_count, print_lines
from graphrag_index.pipeline.run import Watcher
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, Silent, Step
from graphrag_index.storage.versions import StepRecord

if TYPE_CHECKING:
    from rich.progress import Task

# Tables whose row counts are printed when a step finishes. Other tables are intermediate.
_PRINTED_TABLES = frozenset(
    """loaded_documents base_text_units extracted_entities extracted_relationships entities
    relationships communities text_units community_reports covariates entity_resolutions
    doubtful_pairs""".split()
)
# Columns of a terminal in which the rate fits beside the bar.
_WIDE_TERMINAL = 100
_TABLE_NAME_PREFIX = re.compile(r"^(?:extracted|described|base|loaded)_")


class TerminalWatcher(Watcher):
    """Watcher that draws progress bars on a terminal, and prints plain lines elsewhere.

    Without `bars`, it also prints plain lines on a terminal, so that log messages fit between the
    lines. `remark` may return text about a finished step, which is printed above its line.
    """

    def __init__(
        self,
        bars: bool = True,
        out: TextIO | None = None,
        remark: Callable[[StepRecord], str] = lambda record: "",
    ) -> None:
        self.remark = remark
        self.out = out or sys.stdout
        self.bars = bars and self.out.isatty()
        self.bar: ProgressBar | None = None
        self.number = 0
        # Names of the printed steps. A run that waited for a batch repeats its steps.
        self.printed: set[str] = set()

    def step_started(self, step: Step, number: int, of: int) -> Progress:
        if not self.bars:
            return Silent()
        self.bar = ProgressBar(self.out, step.name)
        return self.bar

    def step_finished(self, record: StepRecord, reused: bool) -> None:
        self.close()
        if reused and record.name in self.printed:
            return
        self.printed.add(record.name)
        self.number += 1
        if remark := self.remark(record):
            print_lines(remark, self.out)
        time = "unchanged" if reused else f"{record.seconds:.1f} s"
        start = f"{self.number:>3}  {record.name:<28} {time:>10}  "
        print_lines(f"{start}{describe_tables(record)}".rstrip(), self.out, indent=len(start) - 2)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.bars.stop()
            self.bar = None


class BarWatcher(TerminalWatcher):
    """Watcher that draws progress bars on a terminal, and prints no lines."""

    def step_finished(self, record: StepRecord, reused: bool) -> None:
        self.close()


class ProgressBar:
    """Progress bar of one step: its count, its remaining time and, if it fits, its rate."""

    def __init__(self, out: TextIO, name: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
        from rich.table import Column
        from rich.text import Text

        console = Console(file=out)

        class CountColumn(ProgressColumn):
            def render(self, task: "Task") -> Text:
                # The whole count must fit into one line.
                speed = task.speed if console.width >= _WIDE_TERMINAL else None
                unit = task.fields["unit"]
                return Text(describe_progress(task.completed, task.total, unit, speed))

        self.bars: Bars = Bars(
            TextColumn("     {task.description:<28}"),
            # Only the bar gets narrower if a line does not fit.
            BarColumn(bar_width=None),
            CountColumn(Column(min_width=12, no_wrap=True)),
            TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
            console=console,
            transient=True,
            expand=True,
            # A file that stderr is redirected to must get the messages itself.
            redirect_stderr=sys.stderr.isatty(),
        )
        self.task = self.bars.add_task(name, total=None, unit="")
        self.bars.start()

    def start(self, total: int | None, unit: str) -> None:
        self.bars.reset(self.task, total=total, unit=unit)

    def advance(self, n: int = 1) -> None:
        self.bars.advance(self.task, n)


def describe_progress(done: float, total: float | None, unit: str, speed: float | None) -> str:
    """Describe the progress of a step, such as "1,024/8,093 texts, 512 a second"."""
    if not unit:
        return ""
    form, rate_unit = ",.0f", ""
    if unit == "bytes":
        done, total, speed = done / 1e6, total and total / 1e6, speed and speed / 1e6
        unit, form, rate_unit = "MB", ",.1f", "MB "
    of = "" if total is None else f"/{total:{form}}"
    rate = f", {speed:{form}} {rate_unit}a second" if speed else ""
    return f"{done:{form}}{of} {unit}{rate}"


class MessageHandler(logging.Handler):
    """Handler that prints messages on stderr; in a terminal above the bar, which redirects it."""

    def emit(self, record: logging.LogRecord) -> None:
        print_lines(self.format(record), sys.stderr)


@contextmanager
def temporary_bar(out: TextIO, name: str) -> Iterator[Progress]:
    """Draw a progress bar while a `with` block runs, if the output is a terminal."""
    if not out.isatty():
        yield Silent()
        return
    bar = ProgressBar(out, name)
    with bar.bars:
        yield bar


def wait_for_batches(
    progress: Callable[[], tuple[int, int, bool]], seconds: float, out: TextIO | None
) -> None:
    """Poll the state of batches, at growing intervals, until a batch has ended.

    `progress` returns (number of requests, number of finished requests, whether a batch has
    ended). On a terminal the line is rewritten after each poll; elsewhere a line is printed
    when it changes.
    """
    delay, printed, has_ended = seconds, "", False
    is_terminal = out is not None and out.isatty()
    while not has_ended:
        time.sleep(delay)
        delay = min(delay * 1.5, seconds * 10)
        n_requests, n_done, has_ended = progress()
        line = f"     {n_done:,} of {n_requests:,} requests in batches are done"
        if out is not None and line != printed:
            text = f"\r{line}" if is_terminal else line
            print(text, end="" if is_terminal else "\n", file=out, flush=True)
            printed = line
    if is_terminal:
        print(file=out)


def describe_tables(record: StepRecord) -> str:
    """Describe the tables that a step wrote, such as "27 documents, 94 text units"."""
    vectors = [table.rows for table in record.tables.values() if table.lance_version is not None]
    if vectors:
        return f"{sum(vectors):,} vectors"
    return ", ".join(
        format_count(_TABLE_NAME_PREFIX.sub("", name), table.rows)
        for name, table in record.tables.items()
        if name in _PRINTED_TABLES or name not in TABLES
    )
