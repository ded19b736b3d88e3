"""The report of `graphrag-index check` as text, as JSON, or as a page with plots.

The page is self-contained and has no script: `health_page.html` has its style.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from statistics import median
from textwrap import wrap
from typing import Any

import polars as pl

from graphrag_index.errors import format_count
from graphrag_index.health.checked_index import Finding
from graphrag_index.health.checks import CheckOutcome, IndexHealth
from graphrag_index.health.index_statistics import IndexStatistics, LevelStatistics, count_in_bins
from graphrag_index.storage.atomic import write_text_file
from graphrag_nlp.text.normalize import fit_line

LINE_WIDTH = 100  # characters per line of the text report, unless the caller gives another width
# Limits of the text report: numbers of findings and examples.
_MAX_FINDINGS, _MAX_EXAMPLES = 6, 3
_MAX_LISTED = 6  # maximum levels, languages and notes in the text report
_MAX_JSON_DOCUMENTS = 10_000
# Maximum number of documents and languages on the page.
_MAX_DOCUMENTS, _MAX_LANGUAGES = 200, 20
_MAX_TITLE_CHARS = 80

# (label, count) of each bar.
Bars = Sequence[tuple[str, int]]


def report_as_text(health: IndexHealth, columns: int = LINE_WIDTH) -> str:
    """Return the text report: a line per check, findings with examples, and statistics."""
    lines = [f"{health.index.place}", f"  {health.index.made_by}", ""]
    width = max(len(outcome.title) for outcome in health.outcomes)
    for outcome in health.outcomes:
        head = f"  {_state_label(outcome):<5} {outcome.title:<{width}}"
        lines.append(f"{head}  {_describe_count(outcome)}".rstrip())
    lines += _finding_lines(health, columns)
    lines += ["", *(f"  {line}" for line in _describe_statistics(health.statistics, columns))]
    if health.skipped:
        lines.append("")
        for note in health.skipped[:_MAX_LISTED]:
            lines += wrap(note, columns, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, "", *wrap(_describe_outcome(health), columns)]) + "\n"


def _state_label(outcome: CheckOutcome) -> str:
    if outcome.failed:
        return "FAIL"
    if outcome.result.count:
        return "note"
    return "ok" if outcome.result.of is not None else "-"


def _describe_count(outcome: CheckOutcome) -> str:
    """Describe the number of defects: "7 of 814, at most 0"."""
    count, of = outcome.result.count, outcome.result.of
    if of is None:
        return "not checked"
    if not count:
        return f"none of {of:,}"
    limit = f"{outcome.limit:.0%}" if outcome.is_share else f"{outcome.limit:,}"
    return f"{count:,} of {of:,}" + (f", at most {limit}" if outcome.failed else "")


def _describe_outcome(health: IndexHealth) -> str:
    failed = [outcome for outcome in health.outcomes if outcome.failed]
    if failed:
        return f"Failed: {', '.join(f'{o.title} ({o.result.count:,})' for o in failed)}."
    if any(outcome.result.count for outcome in health.outcomes):
        return "Passed: all findings are within the limits of the section check in settings.yaml."
    return "Passed: no defects were found."


def _sorted_findings(health: IndexHealth) -> list[tuple[CheckOutcome, Finding]]:
    """Return all findings; findings of failed checks come first."""
    outcomes = sorted(health.outcomes, key=lambda outcome: not outcome.failed)
    return [(outcome, finding) for outcome in outcomes for finding in outcome.result.findings]


def _finding_lines(health: IndexHealth, columns: int) -> Iterator[str]:
    found = _sorted_findings(health)
    for _, finding in found[:_MAX_FINDINGS]:
        yield ""
        yield from wrap(finding.means, columns, initial_indent="  ", subsequent_indent="  ")
        for example in finding.examples[:_MAX_EXAMPLES]:
            yield f"    {fit_line(example, columns - 4)}"
    if len(found) > _MAX_FINDINGS:
        yield ""
        yield f"  ... and {len(found) - _MAX_FINDINGS} more findings: see --json or --html FILE."


def _describe_statistics(statistics: IndexStatistics, columns: int) -> Iterator[str]:
    if statistics.rows:
        rows = (format_count(name, n) for name, n in statistics.rows.items())
        yield from wrap(", ".join(rows), columns - 2)
    graph = statistics.graph
    if graph is not None:
        yield (
            f"graph: {graph.nodes:,} nodes, {graph.edges:,} edges, average degree "
            f"{graph.average_degree:.2f}, highest {graph.largest_degree:,}"
        )
        line = (
            f"graph: {format_count('components', graph.components)}, the largest of "
            f"{graph.largest_component:,}; {graph.isolated:,} isolated"
        )
        if graph.modularity is not None:
            between = f"{graph.edges_between_communities:,} edges between communities"
            line += f"; modularity {graph.modularity:.3f}, {between}"
        yield from wrap(line, columns - 2)
    for level in statistics.levels[:_MAX_LISTED]:
        yield (
            f"level {level.level}: {format_count('communities', level.communities)} of "
            f"{_format_range(level.smallest, level.median, level.largest, 'entities')}"
        )
        if level.level == 0:
            yield from wrap(_describe_coarsest_level(statistics, level), columns - 2)
    if statistics.documents.height:
        counts = {
            name.replace("_", " "): statistics.documents[name].to_list()
            for name in ("text_units", "entities", "relationships")
            if not statistics.documents[name].null_count()
        }
        parts = [_format_range(min(n), median(n), max(n), name) for name, n in counts.items()]
        if parts:
            yield from wrap(f"per document: {'; '.join(parts)}", columns - 2)
    names = [f"{row['language'] or 'und'} {row['documents']:,}" for row in statistics.languages]
    if names:
        more = ", ..." if len(names) > _MAX_LISTED else ""
        yield f"languages: {', '.join(names[:_MAX_LISTED])}{more}"


def _describe_coarsest_level(statistics: IndexStatistics, level: LevelStatistics) -> str:
    """Describe how even and how coherent the communities of level 0 are."""
    said = (
        f"level 0: as even as {level.effective_communities:,.1f} equal communities, the largest "
        f"has {level.largest_share:.0%}"
    )
    graph, texts = statistics.graph, statistics.text_similarity
    if graph is not None and graph.weight_within_communities is not None:
        said += f"; {graph.weight_within_communities:.0%} of the weight of edges is within"
    if texts is not None:
        said += f"; mean similarity of texts {texts.within:.2f} within, {texts.across:.2f} across"
    return said


def _format_range(smallest: int, median: float, largest: int, what: str) -> str:
    if smallest == largest:
        return f"{smallest:,} {what}"
    return f"{smallest:,} to {largest:,} {what}, median {median:g}"


def report_as_json(health: IndexHealth) -> dict[str, Any]:
    statistics = health.statistics
    documents = statistics.documents.head(_MAX_JSON_DOCUMENTS)
    graph = statistics.graph
    return {
        "index": health.index.place,
        "made_by": health.index.made_by,
        "version": health.index.version,
        "failed": health.failed,
        "checks": [
            {
                "name": outcome.name,
                "title": outcome.title,
                "count": outcome.result.count,
                "of": outcome.result.of,
                "limit": outcome.limit,
                "limit_is_share": outcome.is_share,
                "failed": outcome.failed,
                "findings": [asdict(finding) for finding in outcome.result.findings],
            }
            for outcome in health.outcomes
        ],
        "not_looked_at": list(health.skipped),
        "rows": dict(statistics.rows),
        "graph": graph
        and {**asdict(graph), "degree_histogram": _bars_as_json(graph.degree_histogram)},
        "levels": [
            {**asdict(level), "size_histogram": _bars_as_json(level.size_histogram)}
            for level in statistics.levels
        ],
        "text_similarity": statistics.text_similarity and asdict(statistics.text_similarity),
        "languages": list(statistics.languages),
        "documents": documents.to_dicts(),
        "documents_left_out": statistics.documents.height - documents.height,
    }


def _bars_as_json(bins: Bars) -> list[dict[str, Any]]:
    return [{"bin": name, "count": count} for name, count in bins]


def write_page(health: IndexHealth, file: Path) -> None:
    """Write the report as an HTML page; replace `file` atomically."""
    template = files(__package__).joinpath("health_page.html").read_text(encoding="utf-8")
    parts = {
        "place": escape(health.index.place),
        "made_by": escape(health.index.made_by),
        "verdict": escape(_describe_outcome(health)),
        "outcome": "failed" if health.failed else "passed",
        "checks": "".join(_check_rows(health)),
        "findings": "".join(_finding_sections(health)),
        "numbers": "".join(_number_items(health.statistics)),
        "plots": "".join(_plot_figures(health.statistics)),
        "documents": _document_table(health.statistics.documents),
    }
    pieces = re.split(r"\{\{(\w+)\}\}", template)
    write_text_file(
        file, (piece if at % 2 == 0 else parts[piece] for at, piece in enumerate(pieces))
    )


def _check_rows(health: IndexHealth) -> Iterator[str]:
    for outcome in health.outcomes:
        state = _state_label(outcome)
        name = {"FAIL": "fail", "-": "none"}.get(state, state)
        yield (
            f'<tr class="{name}"><td><span class="mark">{escape(state)}</span></td>'
            f"<td>{escape(outcome.title)}</td>"
            f'<td class="number">{escape(_describe_count(outcome))}</td></tr>'
        )


def _finding_sections(health: IndexHealth) -> Iterator[str]:
    found = _sorted_findings(health)
    if found or health.skipped:
        yield "<h2>Findings</h2>"
    for outcome, finding in found:
        name = "fail" if outcome.failed else "note"
        yield f'<section class="finding {name}"><h3>{escape(outcome.title)}</h3>'
        yield f"<p>{escape(finding.means)}</p>"
        if finding.examples:
            items = "".join(f'<li dir="auto">{escape(e)}</li>' for e in finding.examples)
            yield f"<ul>{items}</ul>"
        yield "</section>"
    for note in health.skipped:
        yield f'<p class="muted">{escape(note)}</p>'


def _number_items(statistics: IndexStatistics) -> Iterator[str]:
    numbers = {name.replace("_", " "): f"{n:,}" for name, n in statistics.rows.items()}
    graph = statistics.graph
    if graph is not None:
        numbers |= {
            "edges": f"{graph.edges:,}",
            "average degree": f"{graph.average_degree:.2f}",
            "components": f"{graph.components:,}",
            "nodes in the largest component": f"{graph.largest_component:,}",
            "isolated nodes": f"{graph.isolated:,}",
        }
        if graph.modularity is not None:
            numbers["modularity"] = f"{graph.modularity:.3f}"
            numbers["edges between communities"] = f"{graph.edges_between_communities:,}"
            numbers["weight within communities"] = f"{graph.weight_within_communities:.0%}"
    if statistics.levels:
        coarsest = statistics.levels[0]
        numbers["largest community of level 0"] = f"{coarsest.largest_share:.0%}"
        numbers["as even as equal communities"] = f"{coarsest.effective_communities:,.1f}"
    if statistics.text_similarity is not None:
        similarity = statistics.text_similarity
        numbers["similarity of texts within communities"] = f"{similarity.within:.2f}"
        numbers["similarity of texts across"] = f"{similarity.across:.2f}"
    for name, number in numbers.items():
        yield f"<div><dt>{escape(name)}</dt><dd>{number}</dd></div>"


def _plot_figures(statistics: IndexStatistics) -> Iterator[str]:
    plots: list[tuple[str, Bars]] = []
    if statistics.graph is not None:
        plots.append(("Entities by degree", statistics.graph.degree_histogram))
    for level in statistics.levels:
        plots.append((f"Communities of level {level.level} by entities", level.size_histogram))
    documents = statistics.documents
    for name in ("text_units", "entities") if documents.height else ():
        if not documents[name].null_count():
            counts = count_in_bins(documents[name].to_numpy())
            plots.append((f"Documents by {name.replace('_', ' ')}", counts))
    languages = [
        (str(language["language"] or "und"), int(language["documents"]))
        for language in statistics.languages[:_MAX_LANGUAGES]
    ]
    for title, bars in [*plots, ("Documents by language", languages)]:
        if bars:
            yield f"<figure><figcaption>{title}</figcaption>{draw_bars(bars)}</figure>"


def _document_table(documents: pl.DataFrame) -> str:
    if not documents.height:
        return ""
    head = ("document", "language", "text units", "tokens", "entities", "relationships")
    shown = documents.head(_MAX_DOCUMENTS)
    cells = []
    for row in shown.iter_rows(named=True):
        title = str(row["title"] or row["document"])
        title = title if len(title) <= _MAX_TITLE_CHARS else f"{title[: _MAX_TITLE_CHARS - 1]}…"
        counts = (row[name.replace(" ", "_")] for name in head[2:])
        numbers = "".join(
            f'<td class="number">{"–" if n is None else f"{n:,}"}</td>' for n in counts
        )
        cells.append(
            f'<tr><td dir="auto">{escape(title)}</td>'
            f"<td>{escape(str(row['language'] or 'und'))}</td>{numbers}</tr>"
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


def draw_bars(bars: Bars) -> str:
    """Return a table with a bar for each count."""
    most = max(count for _, count in bars) or 1
    rows = (
        f'<tr><th dir="auto">{escape(name)}</th>'
        f'<td><div class="bar" style="width:{100 * count / most:.1f}%"></div></td>'
        f'<td class="number">{count:,}</td></tr>'
        for name, count in bars
    )
    return f'<table class="bars"><tbody>{"".join(rows)}</tbody></table>'
