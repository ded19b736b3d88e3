"""Which sentences of which themes an answer in themes quotes."""

from graphrag_query.answering.theme_answer import Point, Theme, choose_points

WORDS = "amber birch cedar daisy elder fennel ginger hazel".split()


def make_theme(name: str, weight: float) -> Theme:
    points = [Point(f"{name}{word} grows", 0, 1.0 - i / 100) for i, word in enumerate(WORDS)]
    return Theme(name, "", "", points, weight)


def test_a_theme_of_sixteen_times_the_weight_gets_twice_as_many_sentences() -> None:
    large, small = make_theme("large", 16.0), make_theme("small", 1.0)
    # Each sentence takes three words, and each heading two.
    choose_points([large, small], 2 * 2 + 6 * 3, [], 8, count_names=True)
    assert [len(large.chosen), len(small.chosen)] == [4, 2]
