"""Plots of means and differences with intervals: rows of tables with drawings in SVG.

The figures stand beside each drawing, so that a reader without it loses nothing. A drawing is as
wide as its cell: lines and dots keep their widths, which the style of the page sets.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from graphrag_evaluation.measures import meaning
from graphrag_evaluation.statistics import Interval
from graphrag_evaluation.summary import Comparison

_HEIGHT, _MIDDLE = 16, 8  # units of a drawing
# Colours of systems in the style of the page, used in turn.
N_COLOURS = 6
# With more pairs of systems, only those with the first system are shown.
MAX_PAIRS = 10


def plot_means(measure: str, intervals: Mapping[str, Interval]) -> str:
    """Return the means of a measure, a row for each system."""
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
    caption = f'{escape(measure)} <span class="muted">{escape(meaning(measure))}</span>'
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
    """Draw an interval with its mean on a scale from `low` to `high`."""

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
