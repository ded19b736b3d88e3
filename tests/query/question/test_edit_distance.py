import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_query.question.edit_distance import edit_distance

WORDS = st.text("abc", max_size=7)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("", "", 0),
        ("", "ab", 2),
        ("amundsen", "amundsen", 0),
        ("amundsen", "amundson", 1),
        ("amundsen", "amunsden", 1),
        ("shackelton", "shackleton", 1),
        ("ca", "abc", 3),
        ("nansen", "hansen", 1),
        ("scott", "crean", 5),
    ],
)
def test_known_distances(one: str, other: str, distance: int) -> None:
    assert edit_distance(one, other, 9) == distance
    assert edit_distance(one, other, 3) == min(distance, 4)


def by_definition(one: str, other: str) -> int:
    """The recurrence as the paper has it."""
    if not one or not other:
        return len(one) + len(other)
    ways = [
        by_definition(one[:-1], other) + 1,
        by_definition(one, other[:-1]) + 1,
        by_definition(one[:-1], other[:-1]) + (one[-1] != other[-1]),
    ]
    if len(one) > 1 and len(other) > 1 and one[-2:] == other[-1] + other[-2]:
        ways.append(by_definition(one[:-2], other[:-2]) + 1)
    return min(ways)


@given(one=st.text("abc", max_size=5), other=st.text("abc", max_size=5))
def test_it_is_what_the_paper_says(one: str, other: str) -> None:
    assert edit_distance(one, other, 20) == by_definition(one, other)


@given(one=WORDS, other=WORDS, most=st.integers(0, 4))
def test_a_limit_changes_nothing_below_it(one: str, other: str, most: int) -> None:
    whole = edit_distance(one, other, 20)
    assert edit_distance(one, other, most) == min(whole, most + 1)
    assert edit_distance(other, one, most) == min(whole, most + 1)
