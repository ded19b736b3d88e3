import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.text.sentences import are_near_duplicates, telling_words

FRAM = "The Fram left Norway in August 1910."
CREW = (
    "Tom Crean was one of the six men who sailed the James Caird from Elephant Island to South "
    "Georgia in April and May 1916; the others were Ernest Shackleton, Frank Worsley, Harry "
    "McNish, John Vincent and Timothy McCarthy."
)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (FRAM, FRAM[:-1] + ", and most of the men learned the goal only at Madeira.", True),
        (
            "In 1911 the Northern Party also wintered at Cape Adare.",
            "The Northern Party wintered at Cape Adare in 1911.",
            True,
        ),
        (
            CREW,
            "Ernest Shackleton sailed for South Georgia in the James Caird with Frank Worsley, "
            "Tom Crean, Harry McNish, John Vincent and Timothy McCarthy.",
            True,
        ),
        (FRAM, "The Fram was launched in 1892 at Larvik in Norway.", False),
        (FRAM, "The Fram left the Bay of Whales in January 1912.", False),
        # Short words, and none that is long.
        ("다시 배가 왔다", "다시 배가 왔다", True),
        ("다시 배가 왔다", "그가 섬에 남다", False),
    ],
)
def test_a_sentence_that_another_repeats_with_more_around_it_is_alike(
    one: str, other: str, same: bool
) -> None:
    words = telling_words(one), telling_words(other)
    assert are_near_duplicates(*words) is same
    assert are_near_duplicates(*reversed(words)) is same


@given(st.text(), st.text())
def test_whatever_is_said_adds_nothing_to_itself(said: str, more: str) -> None:
    words = telling_words(said)
    assert are_near_duplicates(words, words) is bool(words)
    if words:
        assert are_near_duplicates(words, words | telling_words(more))
