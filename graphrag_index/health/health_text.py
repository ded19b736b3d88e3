"""The output of `graphrag-index check`: at most a screen of lines, or all of it as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from graphrag_index.health.checked_index import SINGULAR
from graphrag_index.health.checks import Health, Outcome
from graphrag_index.health.figures import Figures, spread
from graphrag_index.text.terminal_line import fit_line

_COLUMNS = 100
_MAX_FINDINGS, _MAX_EXAMPLES = 6, 3
_MAX_FIGURES = 6  # levels of the hierarchy, languages and notes
_MAX_DOCUMENTS = 10_000  # in JSON


def as_text(health: Health) -> str:
    """Return a line for each check, the findings with examples, and the figures."""
    lines = [f"{health.index.place}", f"  {health.index.made_by}", ""]
    width = max(len(outcome.title) for outcome in health.outcomes)
    for outcome in health.outcomes:
        lines.append(f"  {mark(outcome):<5} {outcome.title:<{width}}  {describe(outcome)}".rstrip())
    lines += _findings(health)
    lines += ["", *(f"  {line}" for line in describe_figures(health.figures))]
    if health.not_looked_at:
        lines.append("")
        for note in health.not_looked_at[:_MAX_FIGURES]:
            lines += wrap(note, _COLUMNS, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, "", verdict(health)]) + "\n"


def mark(outcome: Outcome) -> str:
    if outcome.failed:
        return "FAIL"
    if outcome.result.count:
        return "note"
    return "ok" if outcome.result.of is not None else "-"


def describe(outcome: Outcome) -> str:
    """Describe the number of findings: "7 of 814, at most 0"."""
    count, of = outcome.result.count, outcome.result.of
    if of is None:
        return "not looked at"
    if not count:
        return f"none of {of:,}"
    limit = f"{outcome.limit:.0%}" if outcome.is_share else f"{outcome.limit:,}"
    return f"{count:,} of {of:,}" + (f", at most {limit}" if outcome.failed else "")


def verdict(health: Health) -> str:
    failed = [outcome for outcome in health.outcomes if outcome.failed]
    if failed:
        return f"Failed: {', '.join(f'{o.title} ({o.result.count:,})' for o in failed)}."
    if any(outcome.result.count for outcome in health.outcomes):
        return "Passed: what was found is within the limits of the section check in settings.yaml."
    return "Passed: nothing was found."


def _findings(health: Health) -> Iterator[str]:
    # Failed checks first.
    outcomes = sorted(health.outcomes, key=lambda outcome: not outcome.failed)
    found = [finding for outcome in outcomes for finding in outcome.result.findings]
    for finding in found[:_MAX_FINDINGS]:
        yield ""
        yield from wrap(finding.means, _COLUMNS, initial_indent="  ", subsequent_indent="  ")
        for example in finding.examples[:_MAX_EXAMPLES]:
            yield f"    {fit_line(example, _COLUMNS - 4)}"
    if len(found) > _MAX_FINDINGS:
        yield ""
        yield f"  ... and {len(found) - _MAX_FINDINGS} more kinds: --json or --html FILE tells all."


def describe_figures(figures: Figures) -> Iterator[str]:
    """Yield the figures line by line."""
    if figures.rows:
        rows = (counted(n, name) for name, n in figures.rows.items())
        yield from wrap(", ".join(rows), _COLUMNS - 2)
    graph = figures.graph
    if graph is not None:
        yield (
            f"graph: {graph.nodes:,} nodes, {graph.edges:,} edges, average degree "
            f"{graph.average_degree:.2f}, highest {graph.largest_degree:,}"
        )
        said = (
            f"{graph.components:,} component{'s' * (graph.components != 1)}, the largest of "
            f"{graph.largest_component:,}; {graph.isolated:,} nodes alone"
        )
        if graph.modularity is not None:
            said += (
                f"; modularity {graph.modularity:.3f}, {graph.edges_between_communities:,} edges "
                "between communities"
            )
        yield from wrap(f"graph: {said}", _COLUMNS - 2)
    for level in figures.levels[:_MAX_FIGURES]:
        yield (
            f"level {level.level}: {counted(level.communities, 'communities')} of "
            f"{_range(level.smallest, level.median, level.largest, 'entities')}"
        )
    if figures.documents.height:
        parts: list[str] = []
        for name in ("text_units", "entities", "relationships"):
            if figures.documents[name].null_count():
                continue
            parts.append(_range(*spread(figures.documents[name]), name.replace("_", " ")))
        if parts:
            yield from wrap(f"a document: {'; '.join(parts)}", _COLUMNS - 2)
    if figures.languages:
        named = [
            f"{language['language'] or 'und'} {language['documents']:,}"
            for language in figures.languages[:_MAX_FIGURES]
        ]
        yield f"languages: {', '.join(named)}{', ...' * (len(figures.languages) > _MAX_FIGURES)}"


def counted(n: int, table: str) -> str:
    """Render a number of rows: "1 document"."""
    return f"{n:,} {SINGULAR[table] if n == 1 else table.replace('_', ' ')}"


def _range(smallest: int, median: float, largest: int, what: str) -> str:
    if smallest == largest:
        return f"{smallest:,} {what}"
    return f"{smallest:,} to {largest:,} {what}, median {median:g}"


def as_json(health: Health) -> dict[str, Any]:
    """Return the whole report as JSON values."""
    figures = health.figures
    documents = figures.documents.head(_MAX_DOCUMENTS)
    graph = None if figures.graph is None else asdict(figures.graph)
    if graph is not None:
        graph["degree_histogram"] = _bins(graph["degree_histogram"])
    return {
        "index": str(health.index.place),
        "made_by": health.index.made_by,
        "version": health.index.version,
        "failed": health.failed,
        "checks": [_check(outcome) for outcome in health.outcomes],
        "not_looked_at": list(health.not_looked_at),
        "rows": dict(figures.rows),
        "graph": graph,
        "levels": [
            {**asdict(level), "size_histogram": _bins(level.size_histogram)}
            for level in figures.levels
        ],
        "languages": [dict(language) for language in figures.languages],
        "documents": documents.to_dicts(),
        "documents_left_out": figures.documents.height - documents.height,
    }


def _check(outcome: Outcome) -> Mapping[str, Any]:
    return {
        "name": outcome.name,
        "title": outcome.title,
        "count": outcome.result.count,
        "of": outcome.result.of,
        "limit": outcome.limit,
        "limit_is_share": outcome.is_share,
        "failed": outcome.failed,
        "findings": [
            {**asdict(finding), "examples": list(finding.examples)}
            for finding in outcome.result.findings
        ],
    }


def _bins(bins: tuple[tuple[str, int], ...]) -> list[dict[str, Any]]:
    return [{"bin": name, "count": count} for name, count in bins]
