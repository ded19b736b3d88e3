"""The page `evaluation.html`: one file that shows an evaluation, and needs no network.

`evaluation_page.html` is its frame with its style, and `evaluation_page.js` lists the questions,
from the record that stands in the page as JSON. Texts of questions, documents and models are
escaped here, and become text nodes there, so that none can become markup. A project keeps a folder
for each report.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path

from graphrag_evaluation import EVALUATIONS
from graphrag_evaluation.report.evaluation_record import EvaluationRecord, SystemRecord
from graphrag_evaluation.statistics import Interval
from graphrag_evaluation.summary import EFFORT, Comparison, largest_cutoffs, meaning
from graphrag_index.errors import ExportError, SettingsError, format_count
from graphrag_index.export.explorer_page import security_policy
from graphrag_index.schema.settings.project_settings import SETTINGS_FILE
from graphrag_index.storage.atomic import lock_target, write_text_file

# The order of questions begins with this measure, if the evaluation has it.
FIRST_MEASURE = "recall@10"
# Parts of the record that the script of the page reads.
_LISTED = {"questions", "results", "passages", "passage_chars", "verdicts"}
_HEIGHT, _MIDDLE = 16, 8  # units of a drawing
# Colours of systems in the style of the page, used in turn.
N_COLOURS = 6
# With more pairs of systems, only those with the first system are shown.
MAX_PAIRS = 10
# Names of the files in the folder of a report.
RECORD, PAGE = "evaluation.json", "evaluation.html"


@cache
def page_policy() -> str:
    """Return a security policy that allows only the script and the style of the page."""
    return security_policy(read_frame(), connections="'none'")


def render_page(record: EvaluationRecord) -> Iterator[str]:
    """Yield the parts of the page of an evaluation."""
    parts = {
        "policy": escape(page_policy()),
        "name": escape(record.name),
        "limits": "".join(_limit_lines(record)),
        "measured": "".join(_measured_rows(record)),
        "systems": "".join(map(_system_row, record.systems)),
        "means": "".join(_mean_plots(record)),
        "differences": "".join(_difference_plots(record)),
        "effort": _effort_table(record),
        "judged": _judged_tables(record),
        "filters": "".join(_filters(record)),
        "record": _embed(record),
    }
    for at, piece in enumerate(re.split(r"\{\{(\w+)\}\}", read_frame())):
        yield piece if at % 2 == 0 else parts[piece]


def read_frame() -> str:
    """Return the page with its style and script, but without an evaluation."""
    folder = files(__package__)
    frame = folder.joinpath("evaluation_page.html").read_text(encoding="utf-8")
    script = folder.joinpath("evaluation_page.js").read_text(encoding="utf-8")
    return frame.replace("{{script}}", script)


def _embed(record: EvaluationRecord) -> str:
    """Return the element with the questions. No text can end it, since it has no "<"."""
    content = record.model_dump_json(include=_LISTED).replace("<", "\\u003c")
    kind = f'type="application/json" id="record" data-effort="{escape(json.dumps(EFFORT))}"'
    return f"<script {kind}>{content}</script>"


def _limit_lines(record: EvaluationRecord) -> Iterator[str]:
    failures = record.failures
    for *_, said in failures:
        yield f'<p class="verdict worse">Limit missed: {escape(said)}.</p>'
    if record.limits and not failures:
        limits = ", ".join(f"{name} ≥ {limit:g}" for name, limit in record.limits.items())
        yield f'<p class="verdict better">All limits are reached: {escape(limits)}.</p>'


def _measured_rows(record: EvaluationRecord) -> Iterator[str]:
    kinds = Counter(question.kind for question in record.questions)
    n_unanswerable = sum(not question.is_answerable for question in record.questions)
    values = {
        "Questions": f"{record.n_questions:,} of {record.questions_file}",
        "Kinds": ", ".join(f"{n:,} {kind or 'without a kind'}" for kind, n in kinds.items()),
        "Without an answer in the documents": f"{n_unanswerable:,}",
        "Date": _format_date(record.date),
        "Program": record.program,
    }
    for name, value in values.items():
        yield f'<div><dt>{name}</dt><dd dir="auto">{escape(value)}</dd></div>'


def _format_date(date: str) -> str:
    return f"{date[:16].replace('T', ' ')} UTC" if date else "date unknown"


def _system_row(system: SystemRecord) -> str:
    settings = "\n".join(f"{name}: {value}" for name, value in system.settings.items())
    made = f"{system.version} ({_format_date(system.made)})"
    cells = "".join(f"<td>{escape(text)}</td>" for text in (system.method, system.index, made))
    return (
        f'<tr><th scope="row" dir="auto">{escape(system.name)}</th>{cells}'
        f"<td><details><summary>Settings</summary><pre>{escape(settings)}</pre></details></td></tr>"
    )


def _mean_plots(record: EvaluationRecord) -> Iterator[str]:
    for measure in record.measures:
        if measure in EFFORT:
            continue
        found = {
            system: means[measure] for system, means in record.means.items() if measure in means
        }
        yield plot_means(measure, found)


def _difference_plots(record: EvaluationRecord) -> Iterator[str]:
    for measure in largest_cutoffs(record.measures):
        compared = [one for one in record.comparisons if one.measure == measure]
        yield plot_differences(measure, compared, record.systems[0].name)


def _effort_table(record: EvaluationRecord) -> str:
    rows = []
    for measure in (name for name in EFFORT if name in record.measures):
        intervals = [means.get(measure) for means in record.means.values()]
        cells = "".join(
            f'<td class="number">{_amount(i.mean)}<br><span class="range">'
            f"{_amount(i.mean * i.n)} in all</span></td>"
            if i
            else '<td class="number">–</td>'
            for i in intervals
        )
        told = f'<br><span class="muted">{escape(meaning(measure))}</span>'
        rows.append(f'<tr><th scope="row">{escape(measure)}{told}</th>{cells}</tr>')
    return _table([*record.means], rows)


def _judged_tables(record: EvaluationRecord) -> str:
    """Return the table of judged pairs, if there are any."""
    parts = []
    if record.pairs:
        heads = ("wins of first", "ties", "wins of second", "p", "flips", "first place")
        rows = []
        for pair in record.pairs:
            first_place = "–" if pair.first_place is None else f"{pair.first_place:.0%}"
            counts = (str(pair.wins[0]), str(pair.ties), str(pair.wins[1]))
            values = (*counts, f"{pair.p_value:.3f}", f"{pair.flip_rate:.0%}", first_place)
            rows.append(_row(f"{pair.first} and {pair.second}", values))
        told = (
            "Each pair is judged in both orders, cut to equal length; a win counts if both orders "
            "agree. “Flips”: how often the same place won twice. “First place”: how often the "
            "answer that was shown first won; 50 % is fair."
        )
        parts.append(
            f'<h2>Judged pairs</h2><p class="muted">{told}</p>{_table(heads, rows, "systems")}'
        )
    if n_unread := sum(not one.winner for one in record.verdicts):
        told = f"Pairs left out, without a readable verdict for each order: {n_unread:,}."
        parts.append(f'<p class="muted">{told}</p>')
    return "".join(parts)


def _row(name: str, values: Iterable[str]) -> str:
    cells = "".join(f'<td class="number">{escape(value)}</td>' for value in values)
    return f'<tr><th scope="row" dir="auto">{escape(name)}</th>{cells}</tr>'


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(columns: Iterable[str], rows: Iterable[str], first: str = "measure") -> str:
    head = "".join(
        f'<th scope="col" class="number" dir="auto">{escape(name)}</th>' for name in columns
    )
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr><th scope="col">{first}</th>{head}'
        f"</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _filters(record: EvaluationRecord) -> Iterator[str]:
    """Yield the controls of the list of questions."""
    measures = record.measures
    chosen = (
        FIRST_MEASURE if FIRST_MEASURE in measures else next(iter(largest_cutoffs(measures)), "")
    )
    systems = list(record.means)
    yield _select("measure", "Measure", {name: name for name in measures}, chosen)
    orders = {"lowest": "Worst score first"}
    if len(systems) > 1:
        orders["loss"] = f"Biggest loss against {systems[0]} first"
    yield _select("order", "Order", orders)
    yield _select("system", "System", {"": "All systems", **{name: name for name in systems}})
    kinds = dict.fromkeys(question.kind for question in record.questions)
    if len(kinds) > 1:
        options = {f"={kind}": kind or "without a kind" for kind in kinds}
        yield _select("kind", "Kind", {"": "All kinds", **options})


def _select(name: str, label: str, options: dict[str, str], chosen: str = "") -> str:
    items = "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>'
        f"{escape(text)}</option>"
        for value, text in options.items()
    )
    return f'<label>{label} <select id="{name}">{items}</select></label>'


def plot_means(measure: str, intervals: Mapping[str, Interval]) -> str:
    """Return the means of a measure, a row for each system.

    Here and in `plot_differences`, the figures stand beside each drawing, so that a reader without
    it loses nothing.
    """
    if not intervals:
        return ""
    low = min(0.0, *(interval.low for interval in intervals.values()))
    high = max(1.0, *(interval.high for interval in intervals.values()))
    rows = [
        f'<tr class="system{at % N_COLOURS}"><th scope="row" dir="auto">{escape(system)}</th>'
        f"<td>{_draw(interval, low, high)}</td>"
        f'<td class="number">{_format_interval(interval)}</td></tr>'
        for at, (system, interval) in enumerate(intervals.items())
    ]
    n = max(interval.n for interval in intervals.values())
    told = f"{escape(meaning(measure))}; {format_count('questions', n)}"
    caption = f'{escape(measure)} <span class="muted">{told}</span>'
    return _figure(caption, rows, f"{low:g}", f"{high:g}")


def plot_differences(measure: str, comparisons: Sequence[Comparison], first: str) -> str:
    """Return the differences of a measure, a row for each pair of systems; empty if all are 0."""
    if len(comparisons) > MAX_PAIRS:
        comparisons = [one for one in comparisons if one.first == first]
    intervals = [one.difference.interval for one in comparisons]
    reach = max((max(-interval.low, interval.high) for interval in intervals), default=0.0)
    if reach == 0:
        return ""
    return _figure(
        escape(measure),
        [_difference_row(one, reach) for one in comparisons],
        f"−{reach:.2g}",
        f"+{reach:.2g}",
    )


def _difference_row(one: Comparison, reach: float) -> str:
    interval = one.difference.interval
    verdict = "chance"
    if one.is_significant:
        verdict = "better" if interval.mean > 0 else "worse"
    return (
        f'<tr class="{verdict}"><th scope="row" dir="auto">{escape(one.second)} '
        f'<span class="muted">minus {escape(one.first)}</span></th>'
        f"<td>{_draw(interval, -reach, reach)}</td>"
        f'<td class="number">{_format_interval(interval, "+")}'
        f'<span class="muted">{_format_p(one.corrected_p)} · '
        f"{_format_power(one.difference.detectable)}</span></td></tr>"
    )


def _format_power(detectable: float | None) -> str:
    return "too few documents" if detectable is None else f"could show {detectable:.3f}"


def _format_p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _format_interval(interval: Interval, sign: str = "") -> str:
    low, high = f"{interval.low:{sign}.3f}", f"{interval.high:{sign}.3f}"
    return f'<b>{interval.mean:{sign}.3f}</b> <span class="range">[{low}, {high}]</span>'


def _draw(interval: Interval, low: float, high: float) -> str:
    """Draw an interval with its mean on a scale from `low` to `high`, in SVG.

    A drawing is as wide as its cell: the style of the page keeps the widths of lines and dots.
    """

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    grid = "".join(f"M{x} 0V{_HEIGHT}" for x in (0, 25, 50, 75, 100))
    return (
        f'<svg viewBox="0 0 100 {_HEIGHT}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="grid" d="{grid}"/>'
        f'<path class="zero" d="M{place(0)} 0V{_HEIGHT}"/>'
        f'<path class="interval" d="M{place(interval.low)} {_MIDDLE}H{place(interval.high)}"/>'
        # A line without length has round ends: a dot, whatever the width of the drawing.
        f'<path class="mean" d="M{place(interval.mean)} {_MIDDLE}h0.01"/></svg>'
    )


def _figure(caption: str, rows: Iterable[str], low: str, high: str) -> str:
    return (
        f'<div class="plot"><table><caption>{caption}</caption>'
        f"<tbody>{''.join(rows)}</tbody>"
        f'<tfoot aria-hidden="true"><tr><td></td><td class="scale"><span>{low}</span>'
        f"<span>{high}</span></td><td></td></tr></tfoot></table></div>"
    )


def report_name(questions: Path, name: str = "") -> str:
    """Return the name of an evaluation: `name`, or the name of the questions without suffixes.

    Raises SettingsError if the name cannot be that of a folder.
    """
    name = name or Path(questions.name.removesuffix(".gz")).stem
    # Windows removes dots and spaces at the end of a name, and forbids a colon in it.
    ends_well = bool(name) and name == name.strip().strip(".")
    if not ends_well or not name.isprintable() or set(name) & set("/\\:"):
        raise SettingsError(
            f"--name {name!r} cannot name a folder: use letters, digits and hyphens."
        )
    return name


def kept_folder(root: Path, name: str) -> Path | None:
    """Return the folder of an evaluation in a project; None if `root` is only an output folder."""
    return root / EVALUATIONS / name if (root / SETTINGS_FILE).exists() else None


@contextmanager
def reserved_folder(folder: Path) -> Iterator[None]:
    """Create the folder of a report, and keep other processes from writing a report there.

    Reserve it before an evaluation, which may take long and cost money: raises ExportError if
    the folder cannot be written, or is in use.
    """
    with ExitStack() as stack:
        with _explained(folder):
            stack.enter_context(lock_target(folder / RECORD, "evaluation"))
        yield


def write_report(folder: Path, record: EvaluationRecord) -> Path:
    """Write the files of a report, each atomically; return the path of its page."""
    with _explained(folder):
        write_text_file(folder / RECORD, [record.model_dump_json()])
        write_text_file(folder / PAGE, render_page(record))
    return folder / PAGE


def find_reports(root: Path) -> dict[str, Path]:
    """Return the files `evaluation.json` that a project keeps, by the name of the evaluation."""
    found = (root / EVALUATIONS).glob(f"[!.]*/{RECORD}")
    return {path.parent.name: path for path in sorted(found)}


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Convert an error of the file system to an ExportError that says what to do."""
    try:
        yield
    except OSError as error:
        raise ExportError(
            f"The report cannot be written to {folder} ({error.strerror or error}): name another "
            "folder with --to, or use --no-report."
        ) from error
