"""Contexts of reports: what is shown of a community, and in which order."""

from collections.abc import Sequence

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.tokens import count_tokens
from tests.fixtures.report_contexts import (
    ENCODING,
    LONG,
    TRIANGLES,
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
