"""Contexts of reports that are larger than their budget, or of one document."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import SettingsError
from graphrag_index.llm.tokens import count_tokens
from graphrag_index.reports.report import CommunityMembers
from graphrag_index.reports.report_context import find_main_documents
from graphrag_nlp.list_columns import RowGroups
from graphrag_nlp.text.citations import check_citations
from tests.fixtures.report_contexts import (
    ENCODING,
    LONG,
    TRIANGLES,
    Contexts,
    communities,
    contexts,
    entities,
    ids,
    relationships,
    report,
    sections,
)


class TestWhatIsTooLarge:
    """Community 0 holds 1 (of 3 and 4) and 2; each leaf takes some 700 tokens."""

    tables = (
        communities(
            (0, -1, range(30), range(29)),
            (1, 0, range(20), range(19)),
            (1, 0, range(20, 30), range(20, 29)),
            (2, 1, range(11), range(10)),
            (2, 1, range(11, 20), range(11, 19)),
        ),
        entities(*[LONG] * 30),
        relationships(*((i, i + 1, LONG) for i in range(29))),
    )

    def with_reports(self, max_tokens: int, *reported: int) -> Contexts:
        made = contexts(*self.tables, max_tokens=max_tokens)
        for community in reported:
            made.add_report(community, report(f"{LONG * 6}[Data: Entities (0)]", Entities=[7]))
        return made

    def test_nothing_is_replaced_where_all_fits(self) -> None:
        made = self.with_reports(8_000, 1, 2, 3, 4)
        assert ids(made.of(0), "Reports") == []
        assert len(ids(made.of(0), "Relationships")) == 29

    def test_reports_of_the_deepest_level_stand_in_first_the_largest_first(self) -> None:
        whole = int(contexts(*self.tables).cost[0])
        context = self.with_reports(whole - 100, 1, 2, 3, 4).of(0)
        assert ids(context, "Reports") == [3]
        # What the report stands for is not shown beside it; what links it with the rest is.
        assert sorted(ids(context, "Relationships")) == list(range(10, 29))
        assert min(ids(context, "Entities")) == 11

    def test_less_room_takes_more_reports_and_then_those_of_coarser_levels(self) -> None:
        whole = int(contexts(*self.tables).cost[0])
        assert ids(self.with_reports(whole * 5 // 8, 1, 2, 3, 4).of(0), "Reports") == [3, 4]
        assert ids(self.with_reports(600, 1, 2, 3, 4).of(0), "Reports") == [3, 2, 4]
        assert ids(self.with_reports(420, 1, 2, 3, 4).of(0), "Reports") == [1, 2]

    def test_a_missing_report_is_replaced_by_those_below_it_or_by_rows(self) -> None:
        whole = int(contexts(*self.tables).cost[0])
        context = self.with_reports(whole // 2, 3, 4).of(0)
        assert ids(context, "Reports") == [3, 4]
        context = self.with_reports(whole // 2).of(0)
        assert ids(context, "Reports") == []
        assert 0 < len(ids(context, "Relationships")) < 29

    def test_what_a_report_cites_is_numbered_behind_the_rows_and_may_be_cited(self) -> None:
        made = contexts(*self.tables, max_tokens=int(contexts(*self.tables).cost[0]) - 100)
        # Rows of entities by title: Name 0, Name 1, Name 10, Name 11, ...
        made.add_report(3, report("A. [Data: Entities (1, 0); Reports (0)]",
                                  Entities=[0, 3], Reports=[4]))  # fmt: skip
        context = made.of(0)
        (row,) = sections(context)["Reports"]
        n_entities = len(ids(context, "Entities"))
        own = context.shown["Entities"].index(11) + 1
        assert row["report"] == (
            f"# Title\n\nA. [Data: Entities ({own}, {n_entities + 1}); Reports (2)]"
        )
        assert context.shown["Entities"][n_entities:] == [0]
        assert context.shown["Reports"] == [3, 4]
        assert list(context.substitutes) == [3]

    def test_a_report_that_is_cut_has_no_half_citation(self) -> None:
        citation = "[Data: Entities (0, 1, 2, 3, 4)]"
        made = contexts(*self.tables, max_tokens=600)
        made.add_report(3, report(f"So. {citation} " * 60, Entities=range(5)))
        (row,) = (row for row in sections(made.of(0))["Reports"])
        assert row["report"].endswith("…")
        text = row["report"].removesuffix("…")
        assert check_citations(text, {})[0].count("[") == 0
        assert made.reports[3].cost <= made.budget.limit // 2

    def test_a_report_longer_than_its_part_does_not_stand_in(self) -> None:
        made = contexts(*self.tables, max_tokens=int(contexts(*self.tables).cost[0]) - 100)
        made.add_report(3, report(LONG * 33))
        made.add_report(4, report("Short."))
        assert ids(made.of(0), "Reports") == [4]

    def test_reports_that_nothing_needs_are_not_kept(self) -> None:
        made = self.with_reports(8_000, 1, 2, 3, 4)
        assert made.reports == {}


def test_a_row_longer_than_the_budget_is_cut() -> None:
    made = contexts(
        communities((0, -1, [0, 1], [0])),
        entities(LONG * 100, LONG * 100),
        relationships((0, 1, LONG * 100)),
        max_tokens=400,
    )
    context = made.of(0)
    assert sorted(ids(context, "Entities")) == [0, 1]
    assert count_tokens(context.text, ENCODING) <= 400


def test_a_window_too_small_for_the_prompt_is_said() -> None:
    with pytest.raises(SettingsError, match="context_window"):
        contexts(*TRIANGLES, room=150)


def test_the_document_of_a_row_is_that_of_more_than_half_of_its_text_units() -> None:
    units = {0: [0, 1, 2], 1: [2, 3], 2: [], 3: [4], 4: [0, 1, 2, 3, 4]}
    rows = RowGroups(
        np.repeat([*units], [len(found) for found in units.values()]),
        np.concatenate([np.array(found, np.int64) for found in units.values()]),
        len(units),
    )
    # Text units 0 and 1 are of document 7.
    documents = np.array([7, 7, 8, 9, 9])
    assert find_main_documents(rows, documents).tolist() == [7, -1, -1, 9, -1]


@given(st.integers(1, 12), st.integers(0, 8))
def test_one_document_has_at_most_its_share_of_a_context(poisoned: int, others: int) -> None:
    n = poisoned + others
    links = [(0, at, f"Number {at} paid the hub a large sum.") for at in range(1, n + 1)]
    tables = (
        communities((0, -1, range(n + 1), range(n))),
        entities(*("A number." for _ in range(n + 1))),
        relationships(*links, weights=[9] * poisoned + [1] * others),
    )
    main = [0] * poisoned + [*range(1, others + 1)]
    documents = {"Entities": [-1] * (n + 1), "Relationships": main}
    made = Contexts(CommunityMembers(*tables, None), 8_000, 100_000, documents)
    context = made.of(0)
    shown = ids(context, "Relationships")
    assert {number for number in shown if number >= poisoned} == {*range(poisoned, n)}
    n_poisoned = len(shown) - others
    assert n_poisoned >= 1
    if n_poisoned > 1:
        costs = made.lines["Relationships"].cost
        entity_costs = made.lines["Entities"].cost[ids(context, "Entities")]
        of_poison = costs[[number for number in shown if number < poisoned]].sum()
        assert of_poison <= 0.5 * (costs[shown].sum() + entity_costs.sum())


def test_rows_of_a_document_that_repeats_itself_are_left_out() -> None:
    n, others = 10, 3
    links = [(0, 1, f"Zero paid One {number} pounds in gold and in silver.") for number in range(n)]
    links += [(0, 2, "Zero met Two in the street on a Sunday morning.") for _ in range(others)]
    tables = (
        communities((0, -1, range(3), range(n + others))),
        entities("", "", ""),
        relationships(*links, weights=[9] * n + [1] * others),
    )
    documents = {"Relationships": [0] * n + [1, 2, 3]}
    members = CommunityMembers(*tables, None)
    shown = ids(Contexts(members, 8_000, 100_000, documents).of(0), "Relationships")
    assert 3 <= sum(number < n for number in shown) <= 4
    assert {number for number in shown if number >= n} == {10, 11, 12}
    documents = {"Relationships": [0] * n + [1, 1, 1]}
    two = {**documents, "Entities": [0, 0, 1]}
    shown = ids(Contexts(members, 8_000, 100_000, two).of(0), "Relationships")
    assert len(shown) == n + others
