"""A report that cites rows by their places in lists of its own, which no other document moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graphrag_index.reports.report import Finding, Report
from graphrag_index.schema.list_columns import Integers
from graphrag_index.text.citations import NumberOf, renumber_written

# Rows by section, such as Entities: each is cited by its place, from 0 on.
Rows = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Written:
    """A report, and the rows that it cites.

    The rows are those of `Holdings`, or in Reports of its communities.
    """

    report: Report
    rows: Rows

    def numbered(self, numbers: Mapping[str, Integers]) -> Report:
        """Return the report with the numbers that its rows have now, by section."""

        def number_of(section: str, place: int) -> int | None:
            rows = self.rows.get(section, ())
            return int(numbers[section][rows[place]]) if 0 <= place < len(rows) else None

        return renumbered(self.report, number_of)


def renumbered(report: Report, number_of: NumberOf) -> Report:
    """Return a report, whose citations were checked, with other numbers in all of them."""

    def text(said: str) -> str:
        return renumber_written(said, number_of)

    return replace(
        report,
        title=text(report.title),
        summary=text(report.summary),
        findings=tuple(
            Finding(text(found.summary), text(found.explanation)) for found in report.findings
        ),
        rating_explanation=text(report.rating_explanation),
    )
