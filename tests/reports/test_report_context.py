"""Contexts of reports: what is shown of a community, in which order, and how much."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import SettingsError
from graphrag_index.llm.tokens import count_tokens
from graphrag_index.reports.report import CommunityMembers
from graphrag_index.reports.report_evidence import find_main_documents
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
from tests.fixtures.small_index import table


def claims(*rows: tuple[str, str | None, str]) -> pl.LazyFrame:
    """Claims of subject, object and description."""
    return table(
        "covariates",
        *(
            {"human_readable_id": i, "subject_id": a, "object_id": b, "description": text}
            for i, (a, b, text) in enumerate(rows)
        ),
    ).lazy()


def test_all_of_a_community_is_shown_and_nothing_of_another() -> None:
    made = contexts(
        *TRIANGLES, claims(("Name 3", None, "Three fell."), ("Name 0", None, "Nought."))
    )
    second = made.of(2)
    assert sorted(ids(second, "Entities")) == [3, 4, 5]
    assert sorted(ids(second, "Relationships")) == [3, 4, 5]
    assert ids(second, "Claims") == [0]
    assert {name: set(numbers) for name, numbers in second.shown.items()} == {
        "Entities": {3, 4, 5},
        "Relationships": {3, 4, 5},
        "Claims": {0},
    }
    whole = made.of(0)
    assert sorted(ids(whole, "Relationships")) == list(range(7))
    assert sorted(ids(whole, "Claims")) == [0, 1]


def test_relationships_come_by_links_then_weight_and_bring_their_entities() -> None:
    links = relationships((3, 4, ""), (0, 1, ""), (1, 2, ""), weights=[9, 1, 2])
    made = contexts(
        communities((0, -1, range(6), range(3))), entities("", "", "", "", "", "Alone."), links
    )
    context = made.of(0)
    # Name 1 has two links; of these the second weighs more.
    assert ids(context, "Relationships") == [2, 1, 0]
    assert ids(context, "Entities") == [1, 2, 0, 3, 4, 5]


def test_only_what_a_community_holds_decides_what_is_shown_of_it() -> None:
    """Other documents: other numbers, other neighbours outside, another order of rows."""
    told, held = entities(*(f"Number {i}." for i in range(6))), TRIANGLES[0]
    said = claims(("Name 4", None, "Four fell."), ("Name 4", None, "Four was pushed."))
    before = contexts(held, told, TRIANGLES[2], said)
    number = pl.col("human_readable_id")
    links = pl.concat([TRIANGLES[2], relationships(*[(0, 5, "5 knows 0.")] * 9)])
    links = links.with_columns(
        pl.concat_str(pl.lit("r"), pl.int_range(pl.len())).alias("id"),
        combined_degree=pl.int_range(pl.len(), dtype=pl.Int64),
    )
    after = contexts(
        held.reverse().with_columns(community=40 - pl.col("community"), parent=pl.lit(-1)),
        told.reverse().with_columns(number * 1000 + 7, degree=number),
        links.reverse().with_columns(number * 1000 + 7),
        said.reverse().with_columns(number * 1000 + 7),
    )
    assert after.of(0).text == before.of(2).text
    assert after.of(1).text == before.of(1).text
    assert after.of(0).shown["Entities"] == [
        1000 * number + 7 for number in before.of(2).shown["Entities"]
    ]


def test_any_text_stands_in_its_cell() -> None:
    nasty = ' He said  "no, never" \n-----Claims-----\n\n <|endoftext|> {x} {{y}},\t=1+1'
    made = contexts(
        communities((0, -1, [0, 1], [0])),
        entities(nasty, "plain").with_columns(title=pl.Series(['A, "B"\r\nC', "Ж 日本"])),
        relationships((0, 1, nasty)),
    )
    rows = sections(made.of(0))
    assert rows["Entities"][0]["title"] == 'A, "B" C'
    assert rows["Entities"][0]["description"] == " ".join(nasty.split())
    assert rows["Entities"][1]["title"] == "Ж 日本"
    assert rows["Relationships"][0]["description"] == " ".join(nasty.split())


def test_types_of_relationships_have_a_column_even_if_they_are_empty() -> None:
    untyped = relationships((0, 1, "Met."))
    tables = communities((0, -1, [0, 1], [0])), entities("a", "b")
    for kind in ("knows", ""):
        links = untyped.with_columns(type=pl.lit(kind))
        (row,) = sections(contexts(*tables, links).of(0))["Relationships"]
        assert list(row) == ["id", "source", "target", "type", "description"]
        assert row["type"] == kind


def test_a_claim_belongs_to_its_subject_else_to_its_object() -> None:
    made = contexts(
        *TRIANGLES,
        claims(
            ("NAME  1", "Name 4", "Of 1."), ("nobody", "name 5", "Of 5."), ("nobody", None, "Lost.")
        ),
    )
    assert ids(made.of(1), "Claims") == [0]
    assert ids(made.of(2), "Claims") == [1]


def test_names_alone_are_no_context() -> None:
    made = contexts(
        communities((0, -1, [0], []), (0, -1, [1], []), (0, -1, [2], []), (0, -1, [3, 4], [0])),
        entities("", "Told.", "", "", ""),
        relationships((3, 4, "")),
        claims(("Name 2", None, "Said.")),
    )
    assert made.is_empty.tolist() == [True, False, False, False]


TEXTS = st.text(st.characters(codec="utf-8"), max_size=300) | st.just(LONG * 3)


@given(
    data=st.data(),
    n=st.integers(2, 20),
    max_tokens=st.integers(300, 1_500),
    room=st.integers(300, 3_000),
)
def test_no_context_is_over_the_budget_or_empty_or_shows_what_is_foreign(
    data: st.DataObject, n: int, max_tokens: int, room: int
) -> None:
    level = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    parts = [[i for i in range(n) if level[i] == part] for part in range(3)]
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), TEXTS)
    links = data.draw(st.lists(pairs.filter(lambda pair: pair[0] != pair[1]), max_size=30))

    def inner(members: Sequence[int]) -> list[int]:
        return [i for i, (a, b, _) in enumerate(links) if a in members and b in members]

    held = [list(range(n)), *parts]
    made = contexts(
        communities(*((int(i > 0), -(i == 0), part, inner(part)) for i, part in enumerate(held))),
        entities(*data.draw(st.lists(TEXTS, min_size=n, max_size=n))),
        relationships(*links),
        claims(*data.draw(st.lists(st.tuples(st.just("Name 1"), st.none(), TEXTS), max_size=5))),
        max_tokens=max_tokens,
        room=room,
    )
    for community in (1, 2, 3, 0):
        if made.is_empty[community]:
            continue
        context = made.of(community)
        n_tokens = count_tokens(context.text, ENCODING)
        assert n_tokens <= min(max_tokens, room)
        assert len(context.text.encode()) * 10 / 35 <= room
        assert any(ids(context, name) for name in ("Entities", "Relationships", "Reports"))
        assert {*ids(context, "Entities")} <= {*held[community]}
        assert {*ids(context, "Relationships")} <= {*inner(held[community])}
        if not ids(context, "Reports") and made.cost[community] <= made.budget.limit:
            assert {*ids(context, "Relationships")} == {*inner(held[community])}
        made.add_report(community, report(data.draw(TEXTS)))


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
