"""Communities without a report, reports that say nothing, and citations that lead nowhere."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.health.finding import EXAMPLES, Finding, Looked, count_and_first, number_of_rows
from graphrag_index.health.opened_index import Opened, name_row
from graphrag_index.text.citations import find_citations

# Reports read at once.
_AT_ONCE = 4_096
# What the sections of a citation number, by table and column.
_CITED = {
    "Entities": ("entities", "human_readable_id"),
    "Relationships": ("relationships", "human_readable_id"),
    "Claims": ("covariates", "human_readable_id"),
    "Reports": ("communities", "community"),
    "Sources": ("text_units", "human_readable_id"),
}


def missing_reports(index: Opened) -> Looked:
    """Find communities without a report; where there are no reports at all, none is missing."""
    if not index.has("communities", "community") or not index.has("community_reports", "community"):
        return Looked(None)
    communities = index.tables["communities"].select("community")
    reports = index.tables["community_reports"].select("community")
    n_communities = number_of_rows(communities)
    count, first = count_and_first(
        communities.join(reports, on="community", how="anti"), ["community"]
    )
    if not count:
        return Looked(n_communities)
    examples = tuple(name_row("communities", number) for number in first["community"])
    means = (
        f"{count:,} of {n_communities:,} communities have no report: global search does not know "
        "them. `graphrag-index retry` asks again for reports that failed."
    )
    finding = Finding("community_reports", count, n_communities, examples, means)
    return Looked(n_communities, (finding,))


def empty_reports(index: Opened) -> Looked:
    """Find reports without a word, or with a title and nothing more."""
    parts = [c for c in ("summary", "full_content") if index.has("community_reports", c)]
    if not parts:
        return Looked(None)
    label = index.label("community_reports")
    reports = index.tables["community_reports"]
    n_reports = number_of_rows(reports)
    body = pl.col("full_content").fill_null("")
    if "full_content" in parts:
        # The heading of the whole is no content.
        content = body.str.replace(r"^\s*#[^\n]*", "").str.strip_chars()
        is_empty = content == ""
    else:
        is_empty = pl.col("summary").fill_null("").str.strip_chars() == ""
    empty = reports.filter(is_empty).select(row=pl.col(label))
    count, first = count_and_first(empty, ["row"])
    if not count:
        return Looked(n_reports)
    examples = tuple(name_row("community_reports", row) for row in first["row"])
    means = (
        f"{count:,} of {n_reports:,} reports say nothing: a global search reads them in vain. Make "
        "them again, with another model if they stay empty."
    )
    return Looked(n_reports, (Finding("community_reports", count, n_reports, examples, means),))


def unresolved_citations(index: Opened) -> Looked:
    """Find citations in reports of rows that are not there, in both ways of writing them."""
    text = next((c for c in ("full_content", "summary") if index.has("community_reports", c)), None)
    if text is None:
        return Looked(None)
    known = {section: _numbers(index, section) for section in _CITED}
    n_cited: dict[str, int] = defaultdict(int)
    wrong: dict[str, list[_Wrong]] = defaultdict(list)
    for row, content in _texts(index, text):
        for start, end, cited in find_citations(content):
            for section, numbers in _by_section(cited).items():
                # A table that is not there, or has no numbers, can confirm nothing.
                if section in known and known[section] is None:
                    continue
                n_cited[section] += len(numbers)
                unknown = sorted(numbers - _present(numbers, known.get(section)))
                if unknown:
                    wrong[section].append(_Wrong(row, unknown, content[start:end].strip()))
    quoted = _quoted(index, {citation.text for rows in wrong.values() for citation in rows})
    findings = []
    for section, rows in wrong.items():
        rows = [citation for citation in rows if citation.text not in quoted]
        if not rows:
            continue
        count = sum(len(citation.numbers) for citation in rows)
        table = _CITED[section][0].replace("_", " ") if section in _CITED else "table of this name"
        what = f"no {table} of these numbers" if section in _CITED else f"no {table}"
        means = (
            f"{count:,} of {n_cited[section]:,} citations of {section} in reports do not resolve: "
            f"there are {what}. Write the reports again."
        )
        examples = tuple(
            f"{name_row('community_reports', citation.row)}: {citation.text}"
            for citation in rows[:EXAMPLES]
        )
        findings.append(
            Finding(f"community_reports.{text}", count, n_cited[section], examples, means)
        )
    return Looked(sum(n_cited.values()), tuple(findings))


class _Wrong(NamedTuple):
    """A citation in a report, and what it names that is not there."""

    row: object
    numbers: list[int]
    text: str


def _by_section(cited: Sequence[tuple[str, int]]) -> dict[str, set[int]]:
    sections: dict[str, set[int]] = defaultdict(set)
    for section, number in cited:
        sections[section].add(number)
    return sections


def _quoted(index: Opened, citations: set[str]) -> set[str]:
    """Return those that a document itself has: a report quotes it, and they are none of ours."""
    if not citations or not index.has("text_units", "text"):
        return set()
    wanted = {" ".join(citation.split()): citation for citation in citations}
    found = (
        index.tables["text_units"]
        .select(pl.col("text").str.replace_all(r"\s+", " "))
        .select(pl.col("text").str.extract_many(list(wanted)).list.unique())
        .explode("text")
        .drop_nulls()
        .unique()
        .collect(engine="streaming")["text"]
    )
    return {wanted[citation] for citation in found}


def _texts(index: Opened, text: str) -> Iterator[tuple[object, str]]:
    label = index.label("community_reports")
    rows = index.tables["community_reports"].select(label, text)
    for start in range(0, number_of_rows(rows), _AT_ONCE):
        for row, content in rows.slice(start, _AT_ONCE).collect().iter_rows():
            yield row, content or ""


def _numbers(index: Opened, section: str) -> npt.NDArray[np.int64] | None:
    """Return the numbers of a table, ascending; None if it has none.

    Microsoft's searches number text units by their rows, which is what its citations name.
    """
    table, column = _CITED[section]
    if not index.has(table, column):
        return None
    numbers = index.tables[table].select(pl.col(column).cast(pl.Int64, strict=False)).drop_nulls()
    found = np.sort(numbers.collect(engine="streaming").to_series().to_numpy())
    if section == "Sources" and not index.is_own:
        found = np.union1d(found, np.arange(len(found)))
    return found if len(found) or index.is_own else None


def _present(numbers: set[int], known: npt.NDArray[np.int64] | None) -> set[int]:
    if known is None or not len(known):
        return set()
    wanted = np.fromiter(numbers, np.int64)
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return set(wanted[known[places] == wanted].tolist())
