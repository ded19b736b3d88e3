"""The report of `graphrag-index check` as text or as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from statistics import median
from textwrap import wrap
from typing import Any

from graphrag_index.errors import format_count
from graphrag_index.health.checks import CheckOutcome, IndexHealth
from graphrag_index.health.index_statistics import IndexStatistics, LevelStatistics
from graphrag_nlp.text.normalize import fit_line

LINE_WIDTH = 100  # characters per line of the text report, unless the caller gives another width
# Limits of the text report: numbers of findings and examples.
_MAX_FINDINGS, _MAX_EXAMPLES = 6, 3
_MAX_LISTED = 6  # maximum levels, languages and notes in the text report
_MAX_JSON_DOCUMENTS = 10_000


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


def _finding_lines(health: IndexHealth, columns: int) -> Iterator[str]:
    """Describe the first findings; findings of failed checks come first."""
    outcomes = sorted(health.outcomes, key=lambda outcome: not outcome.failed)
    found = [finding for outcome in outcomes for finding in outcome.result.findings]
    for finding in found[:_MAX_FINDINGS]:
        yield ""
        yield from wrap(finding.means, columns, initial_indent="  ", subsequent_indent="  ")
        for example in finding.examples[:_MAX_EXAMPLES]:
            yield f"    {fit_line(example, columns - 4)}"
    if len(found) > _MAX_FINDINGS:
        yield ""
        yield f"  ... and {len(found) - _MAX_FINDINGS} more findings: see --json."


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
    graph = statistics.graph
    if graph is not None and graph.weight_within_communities is not None:
        said += f"; {graph.weight_within_communities:.0%} of the weight of edges is within"
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
        "graph": graph and asdict(graph),
        "levels": list(map(asdict, statistics.levels)),
        "languages": list(statistics.languages),
        "documents": documents.to_dicts(),
        "documents_left_out": statistics.documents.height - documents.height,
    }
