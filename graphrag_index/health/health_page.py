"""The page of `graphrag-index check --html`, with findings, statistics and plots.

The page is self-contained and runs no program: `health_page.html` holds its style.
"""

import html
import re
from collections.abc import Iterator, Sequence
from errno import EISDIR
from importlib.resources import files
from pathlib import Path

import polars as pl

from graphrag_index.health.checks import Health
from graphrag_index.health.health_text import describe, mark, verdict
from graphrag_index.health.index_statistics import IndexStatistics, histogram

_MAX_DOCUMENTS, _MAX_LANGUAGES = 200, 20
_MAX_TITLE = 80  # characters
# Units of the drawing; the page sets the width in pixels.
_WIDTH, _HEIGHT = 480, 190
_LEFT, _BOTTOM, _TOP = 8, 24, 18
_ROW, _NAME = 24, 150
# Wider bars look like blocks when there are few.
_WIDEST_BAR = 64
# Labels below bars that fit beside each other.
_LABELS = 12

Bars = Sequence[tuple[str, int]]


def write_page(health: Health, file: Path) -> None:
    """Write the page, replacing `file` atomically."""
    if file.is_dir():
        raise IsADirectoryError(EISDIR, "This is a folder, name a file in it", str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as page:
            page.write(_page(health))
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _page(health: Health) -> str:
    template = files(__package__).joinpath("health_page.html").read_text(encoding="utf-8")
    parts = {
        "place": html.escape(str(health.index.place)),
        "made_by": html.escape(health.index.made_by),
        "verdict": html.escape(verdict(health)),
        "outcome": "failed" if health.failed else "passed",
        "checks": "".join(_checks(health)),
        "findings": "".join(_findings(health)),
        "numbers": "".join(_numbers(health.statistics)),
        "plots": "".join(_plots(health.statistics)),
        "documents": _documents(health.statistics.documents),
    }
    pieces = re.split(r"\{\{(\w+)\}\}", template)
    return "".join(piece if at % 2 == 0 else parts[piece] for at, piece in enumerate(pieces))


def _checks(health: Health) -> Iterator[str]:
    for outcome in health.outcomes:
        state = mark(outcome)
        name = {"FAIL": "fail", "-": "none"}.get(state, state)
        yield (
            f'<tr class="{name}"><td><span class="mark">{html.escape(state)}</span></td>'
            f"<td>{html.escape(outcome.title)}</td>"
            f'<td class="number">{html.escape(describe(outcome))}</td></tr>'
        )


def _findings(health: Health) -> Iterator[str]:
    outcomes = sorted(health.outcomes, key=lambda outcome: not outcome.failed)
    found = [(outcome, finding) for outcome in outcomes for finding in outcome.result.findings]
    if found or health.skipped:
        yield "<h2>Findings</h2>"
    for outcome, finding in found:
        name = "fail" if outcome.failed else "note"
        yield f'<section class="finding {name}"><h3>{html.escape(outcome.title)}</h3>'
        yield f"<p>{html.escape(finding.means)}</p>"
        if finding.examples:
            items = "".join(f'<li dir="auto">{html.escape(e)}</li>' for e in finding.examples)
            yield f"<ul>{items}</ul>"
        yield "</section>"
    for note in health.skipped:
        yield f'<p class="muted">{html.escape(note)}</p>'


def _numbers(statistics: IndexStatistics) -> Iterator[str]:
    told = [(f"{count:,}", name.replace("_", " ")) for name, count in statistics.rows.items()]
    graph = statistics.graph
    if graph is not None:
        told += [
            (f"{graph.edges:,}", "edges"),
            (f"{graph.average_degree:.2f}", "average degree"),
            (f"{graph.components:,}", "components"),
            (f"{graph.largest_component:,}", "nodes in the largest component"),
            (f"{graph.isolated:,}", "isolated nodes"),
        ]
        if graph.modularity is not None:
            told += [
                (f"{graph.modularity:.3f}", "modularity"),
                (f"{graph.edges_between_communities:,}", "edges between communities"),
            ]
    for number, name in told:
        yield f"<div><dt>{html.escape(name)}</dt><dd>{number}</dd></div>"


def _plots(statistics: IndexStatistics) -> Iterator[str]:
    if statistics.graph is not None:
        yield _figure(
            "Entities by degree",
            vertical_bars(statistics.graph.degree_histogram, "Entities by degree", "entities"),
        )
    for level in statistics.levels:
        title = f"Communities of level {level.level} by entities"
        yield _figure(title, vertical_bars(level.size_histogram, title, "communities"))
    if statistics.documents.height:
        for name in ("text_units", "entities"):
            if statistics.documents[name].null_count():
                continue
            title = f"Documents by {name.replace('_', ' ')}"
            bars = histogram(statistics.documents[name].to_numpy())
            yield _figure(title, vertical_bars(bars, title, "documents"))
    languages = [
        (str(language["language"] or "und"), int(language["documents"]))
        for language in statistics.languages[:_MAX_LANGUAGES]
    ]
    yield _figure(
        "Documents by language", horizontal_bars(languages, "Documents by language", "documents")
    )


def _figure(title: str, drawing: str) -> str:
    if not drawing:
        return ""
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{drawing}</figure>"


def _number(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def _documents(documents: pl.DataFrame) -> str:
    if not documents.height:
        return ""
    head = ("document", "language", "text units", "tokens", "entities", "relationships")
    shown = documents.head(_MAX_DOCUMENTS)
    cells = []
    for row in shown.iter_rows(named=True):
        title = str(row["title"] or row["document"])
        title = title if len(title) <= _MAX_TITLE else f"{title[: _MAX_TITLE - 1]}…"
        numbers = "".join(
            f'<td class="number">{_number(row[name.replace(" ", "_")])}</td>' for name in head[2:]
        )
        cells.append(
            f'<tr><td dir="auto">{html.escape(title)}</td>'
            f"<td>{html.escape(str(row['language'] or 'und'))}</td>{numbers}</tr>"
        )
    names = "".join(
        f"<th{' class=number' if at > 1 else ''}>{name}</th>" for at, name in enumerate(head)
    )
    n_more = documents.height - shown.height
    more = f'<p class="muted">... and {n_more:,} more: --json lists them.</p>' if n_more else ""
    return (
        f'<h2>Documents</h2><div class="scroll"><table><thead><tr>{names}</tr></thead>'
        f"<tbody>{''.join(cells)}</tbody></table></div>{more}"
    )


def vertical_bars(bars: Bars, title: str, unit: str) -> str:
    """Draw a histogram as SVG; each bar shows its count on hover."""
    if not bars:
        return ""
    most = max(count for _, count in bars) or 1
    room = _HEIGHT - _BOTTOM - _TOP
    step = (_WIDTH - 2 * _LEFT) / len(bars)
    width = min(step * 0.82, _WIDEST_BAR)
    every = -(-len(bars) // _LABELS)
    parts = []
    for at, (name, count) in enumerate(bars):
        middle = _LEFT + step * (at + 0.5)
        # Even the smallest count must be visible.
        height = max(room * count / most, 1.5) if count else 0
        top = _HEIGHT - _BOTTOM - height
        parts.append(
            f"<g><title>{html.escape(name)}: {count:,} {html.escape(unit)}</title>"
            f'<rect class="bar" x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" rx="2"/>'
        )
        if count and len(bars) <= _LABELS:
            parts.append(f'<text class="value" x="{middle:.1f}" y="{top - 5:.1f}">{count:,}</text>')
        if at % every == 0:
            parts.append(
                f'<text class="name" x="{middle:.1f}" y="{_HEIGHT - 7}">{html.escape(name)}</text>'
            )
        parts.append("</g>")
    line = _HEIGHT - _BOTTOM
    axis = f'<line class="axis" x1="0" y1="{line}" x2="{_WIDTH}" y2="{line}"/>'
    return _svg(_HEIGHT, title, "".join(parts) + axis)


def horizontal_bars(bars: Bars, title: str, unit: str) -> str:
    """Draw bars with their names before them as SVG."""
    if not bars:
        return ""
    most = max(count for _, count in bars) or 1
    room = _WIDTH - _NAME - 70
    parts = []
    for at, (name, count) in enumerate(bars):
        y = at * _ROW
        width = max(room * count / most, 1.5) if count else 0
        shown = name if len(name) <= 22 else f"{name[:21]}…"
        parts.append(
            f"<g><title>{html.escape(name)}: {count:,} {html.escape(unit)}</title>"
            f'<text class="row" x="{_NAME - 8}" y="{y + 16}">{html.escape(shown)}</text>'
            f'<rect class="bar" x="{_NAME}" y="{y + 4}" width="{width:.1f}" height="16" rx="2"/>'
            f'<text class="count" x="{_NAME + width + 6:.1f}" y="{y + 16}">{count:,}</text></g>'
        )
    return _svg(len(bars) * _ROW + 4, title, "".join(parts))


def _svg(height: int, title: str, content: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{html.escape(title)}">'
        f"{content}</svg>"
    )
