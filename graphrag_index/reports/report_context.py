"""What stands in one prompt: rows of a community, each with a number of its own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from graphrag_index.llm.rendered_rows import (
    LONGEST_ROW,
    Budget,
    RenderedRows,
    count_lines,
    csv_line,
)
from graphrag_index.reports.local_citations import Rows, Written
from graphrag_index.schema.list_columns import Integers
from graphrag_index.text.citations import NumberOf, renumber_written

REPORTS = "-----Reports-----\nid,report\n"
HEADINGS = {
    "Entities": "-----Entities-----\nid,title,type,description\n",
    "Relationships": "-----Relationships-----\nid,source,target,type,description\n",
    "Claims": "-----Claims-----\n"
    "id,subject,object,type,status,start_date,end_date,source_text,description\n",
}
# A report that stands in for a community takes this part of the budget at most.
LONGEST_REPORT = 2
# A citation that was cut off at the end of a text.
_BROKEN_CITATION = re.compile(r"\s*[\[［【][^\]］】]*$")


class Lines:
    """The rows of a table as lines: the tokens of each, and the text of those that are shown."""

    def __init__(self, rows: pl.DataFrame, budget: Budget) -> None:
        # Each row takes more than a token, so that no number is longer than this one.
        widest = pl.Series("id", np.full(rows.height, budget.limit))
        self._rows, self._budget = rows.insert_column(0, widest), budget
        self.cost = RenderedRows.of(self._rows, budget).cost

    def texts(self, wanted: Iterable[int]) -> Mapping[int, str]:
        """Write the lines of some rows, without their numbers."""
        rows = sorted(set(wanted))
        rendered = RenderedRows.of(self._rows[rows], self._budget, self._count_long)
        texts = rendered.text.str.slice(len(str(self._budget.limit)))
        return dict(zip(rows, texts.to_list(), strict=True))

    def _count_long(self, lines: pl.Series) -> Integers:
        """Count the tokens of lines, but of one that needs no cutting only its bytes."""
        n_tokens = lines.str.len_bytes().cast(pl.Int64).to_numpy().copy()
        may_be_cut = n_tokens > self._budget.limit // LONGEST_ROW
        n_tokens[may_be_cut] = count_lines(lines.filter(pl.Series(may_be_cut)))
        return n_tokens


class StandIn:
    """A report that stands in for a community, as far as there is room, and what it takes."""

    def __init__(self, written: Written, budget: Budget) -> None:
        self._report, self._budget, self.rows = written.report, budget, written.rows

    @property
    def text(self) -> str:
        return self._fitted[0]

    @property
    def cost(self) -> int:
        return self._fitted[1]

    @cached_property
    def _fitted(self) -> tuple[str, int]:
        """The text and its cost, counted when it is wanted: few reports stand in for anything."""
        budget = self._budget
        whole = "\n".join(self._report.markdown().splitlines())

        def cost_of(text: str) -> int:
            widest = renumber_written(text, lambda _section, _place: budget.limit)
            return budget.cost_of(csv_line([str(budget.limit), widest]))

        text, width = whole, len(whole)
        while (cost := cost_of(text)) > budget.limit // LONGEST_REPORT and width:
            width //= 2
            text = _BROKEN_CITATION.sub("", whole[:width]).rstrip() + "…"
        return text, cost

    def line(self, number: int, number_of: NumberOf) -> str:
        """Write the report; `number_of` gives numbers to what it cites by its places."""
        return csv_line([str(number), renumber_written(self.text, number_of)])


@dataclass(frozen=True)
class Context:
    """What stands in one prompt.

    `shown` are the rows that may be cited, by section, in the order of their numbers, which
    begin with 1; the communities of `stand_ins` are shown by their reports.
    """

    text: str
    shown: Rows
    stand_ins: Sequence[int]


class Page:
    """Rows taken into a context, by section in their order, as long as there is room."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.rows: dict[str, dict[int, int]] = {name: {} for name in ("Reports", *HEADINGS)}

    def take(self, section: str, row: int, cost: int) -> bool:
        """Take a row if there is room for it."""
        if cost > self.room:
            return False
        self.room -= cost
        self.add(section, [row])
        return True

    def add(self, section: str, rows: Iterable[int]) -> None:
        """Give numbers to rows: 1 to the first of a section."""
        numbers = self.rows[section]
        for row in rows:
            numbers.setdefault(row, len(numbers) + 1)

    def written(
        self, lines: Mapping[str, Mapping[int, str]], reports: Mapping[int, StandIn]
    ) -> Context:
        """Write out the page; what its reports cite is numbered behind what it shows itself.

        `lines` are the texts of its rows, by section.
        """
        sections = []
        for name, heading in HEADINGS.items():
            if chosen := list(self.rows[name]):
                texts = (f"{n}{lines[name][row]}" for n, row in enumerate(chosen, 1))
                sections.append(heading + "".join(texts))
        stand_ins = list(self.rows["Reports"])
        if stand_ins:
            for part in stand_ins:
                for section, rows in reports[part].rows.items():
                    self.add(section, rows)
            rows_of_reports = (self._line(part, reports[part]) for part in stand_ins)
            sections.insert(0, REPORTS + "".join(rows_of_reports))
        shown = {section: tuple(rows) for section, rows in self.rows.items() if rows}
        return Context("\n".join(sections), shown, stand_ins)

    def _line(self, part: int, report: StandIn) -> str:
        def number_of(section: str, place: int) -> int | None:
            rows = report.rows.get(section, ())
            return self.rows[section][rows[place]] if 0 <= place < len(rows) else None

        return report.line(self.rows["Reports"][part], number_of)
