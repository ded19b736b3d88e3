import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.text.citations import (
    check_citations,
    find_citations,
    find_cited_rows,
    renumber_canonical,
    renumber_citations,
)
from tests.fixtures.cases import cases


@cases("citation, rows")
def test_citations_are_read_in_every_form_that_models_write(
    citation: str, rows: dict[str, list[int]]
) -> None:
    expected = {name: {*numbers} for name, numbers in rows.items()}
    assert find_cited_rows(f"So it is {citation}.") == expected


def test_what_was_not_shown_is_removed_and_counted() -> None:
    text = (
        "A [Data: Sources (1, 2, +more); Claims (3)]. B [Data: Documents (1)]. C [Sources: 1, 9]."
    )
    checked, n_removed = check_citations(text, {"Sources": {1}})
    assert checked == "A [Data: Sources (1, +more)]. B. C [Data: Sources (1)]."
    assert n_removed == 4


def test_citations_are_found_where_they_stand() -> None:
    text = "A 【Sources (1)】 and [2]."
    assert list(find_citations(text)) == [(1, text.index(" and"), [("Sources", 1)])]


@pytest.mark.parametrize("around", ["**{}**", "*{}*", "_{}_", "`{}`", "[{}]", "({})"])
@pytest.mark.parametrize("citation", ["[Data: Sources (1)]", "(Data: Sources (1))"])
def test_what_stands_around_a_citation_goes_with_it(around: str, citation: str) -> None:
    checked, _ = check_citations(f"So {around.format(citation)}.", {"Sources": {1}})
    assert checked == "So [Data: Sources (1)]."


@cases("prose")
def test_a_bracket_of_prose_stays(prose: str) -> None:
    for text in (f"So {prose} it is.", f"So {prose}."):
        assert check_citations(text, {}) == (text, 0)


def test_a_year_that_was_shown_is_a_row() -> None:
    checked = check_citations("So (Source: 1914).", {"Sources": {1914}})
    assert checked == ("So [Data: Sources (1914)].", 0)


pieces = st.sampled_from(
    [
        *("[Data: Entities (1, 2); Reports (3, +more)]", "(Sources: 4, 1)", "[Data: 1-3]"),
        *("[Data: Claims (9)]", "(Source: 1914)", "Data: Reports (1).", "The ship", "[note]", "; "),
        *("[[Data: Entities (2)]]", "(1)", "【Data: 来源（3）】", "[Data: Ships (2)]", "+more"),
    ]
)


@given(text=st.lists(pieces, max_size=8).map(" ".join), removed=st.sets(st.integers(0, 9)))
def test_what_was_written_is_renumbered_as_any_text(text: str, removed: set[int]) -> None:
    written, _ = renumber_citations(text, lambda section, number: number + 1)

    def number_of(section: str, number: int) -> int | None:
        return None if number in removed else 10 * number

    assert renumber_canonical(written, number_of) == renumber_citations(written, number_of)[0]
