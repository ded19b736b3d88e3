"""The output of `graphrag-index check`: at most a screen of lines, or all of it as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from textwrap import wrap
from typing import Any

from graphrag_index.health.checked_index import SINGULAR
from graphrag_index.health.checks import Health, Outcome
from graphrag_index.health.index_statistics import IndexStatistics, spread
from graphrag_index.text.terminal_line import fit_line

_COLUMNS = 100
_MAX_FINDINGS, _MAX_EXAMPLES = 6, 3
_MAX_LISTED = 6  # levels of the hierarchy, languages and notes
_MAX_DOCUMENTS = 10_000  # in JSON


def as_text(health: Health) -> str:
    """Return a line for each check, the findings with examples, and the statistics."""
    lines = [f"{health.index.place}", f"  {health.index.made_by}", ""]
    width = max(len(outcome.title) for outcome in health.outcomes)
    for outcome in health.outcomes:
        lines.append(f"  {mark(outcome):<5} {outcome.title:<{width}}  {describe(outcome)}".rstrip())
    lines += _findings(health)
    lines += ["", *(f"  {line}" for line in describe_statistics(health.statistics))]
    if health.skipped:
        lines.append("")
        for note in health.skipped[:_MAX_LISTED]:
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
        return "not checked"
    if not count:
        return f"none of {of:,}"
    limit = f"{outcome.limit:.0%}" if outcome.is_share else f"{outcome.limit:,}"
    return f"{count:,} of {of:,}" + (f", at most {limit}" if outcome.failed else "")


def verdict(health: Health) -> str:
    failed = [outcome for outcome in health.outcomes if outcome.failed]
    if failed:
        return f"Failed: {', '.join(f'{o.title} ({o.result.count:,})' for o in failed)}."
    if any(outcome.result.count for outcome in health.outcomes):
        return "Passed: all findings are within the limits of the section check in settings.yaml."
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
        yield f"  ... and {len(found) - _MAX_FINDINGS} more findings: see --json or --html FILE."


def describe_statistics(statistics: IndexStatistics) -> Iterator[str]:
    """Yield the statistics line by line."""
    if statistics.rows:
        rows = (counted(n, name) for name, n in statistics.rows.items())
        yield from wrap(", ".join(rows), _COLUMNS - 2)
    graph = statistics.graph
    if graph is not None:
        yield (
            f"graph: {graph.nodes:,} nodes, {graph.edges:,} edges, average degree "
            f"{graph.average_degree:.2f}, highest {graph.largest_degree:,}"
        )
        line = (
            f"{graph.components:,} component{'s' * (graph.components != 1)}, the largest of "
            f"{graph.largest_component:,}; {graph.isolated:,} isolated"
        )
        if graph.modularity is not None:
            line += (
                f"; modularity {graph.modularity:.3f}, {graph.edges_between_communities:,} edges "
                "between communities"
            )
        yield from wrap(f"graph: {line}", _COLUMNS - 2)
    for level in statistics.levels[:_MAX_LISTED]:
        yield (
            f"level {level.level}: {counted(level.communities, 'communities')} of "
            f"{_range(level.smallest, level.median, level.largest, 'entities')}"
        )
    if statistics.documents.height:
        parts: list[str] = []
        for name in ("text_units", "entities", "relationships"):
            if statistics.documents[name].null_count():
                continue
            parts.append(_range(*spread(statistics.documents[name]), name.replace("_", " ")))
        if parts:
            yield from wrap(f"per document: {'; '.join(parts)}", _COLUMNS - 2)
    if statistics.languages:
        named = [
            f"{language['language'] or 'und'} {language['documents']:,}"
            for language in statistics.languages[:_MAX_LISTED]
        ]
        yield f"languages: {', '.join(named)}{', ...' * (len(statistics.languages) > _MAX_LISTED)}"


def counted(n: int, table: str) -> str:
    """Render a number of rows: "1 document"."""
    return f"{n:,} {SINGULAR[table] if n == 1 else table.replace('_', ' ')}"


def _range(smallest: int, median: float, largest: int, what: str) -> str:
    if smallest == largest:
        return f"{smallest:,} {what}"
    return f"{smallest:,} to {largest:,} {what}, median {median:g}"


def as_json(health: Health) -> dict[str, Any]:
    """Return the whole report as JSON values."""
    statistics = health.statistics
    documents = statistics.documents.head(_MAX_DOCUMENTS)
    graph = None if statistics.graph is None else asdict(statistics.graph)
    if graph is not None:
        graph["degree_histogram"] = _bins(graph["degree_histogram"])
    return {
        "index": str(health.index.place),
        "made_by": health.index.made_by,
        "version": health.index.version,
        "failed": health.failed,
        "checks": [_check(outcome) for outcome in health.outcomes],
        "not_looked_at": list(health.skipped),
        "rows": dict(statistics.rows),
        "graph": graph,
        "levels": [
            {**asdict(level), "size_histogram": _bins(level.size_histogram)}
            for level in statistics.levels
        ],
        "languages": [dict(language) for language in statistics.languages],
        "documents": documents.to_dicts(),
        "documents_left_out": statistics.documents.height - documents.height,
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
