import re
from collections.abc import Iterator, Mapping, Sequence
from shutil import rmtree

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchmarks.synthetic
import graphrag_query
from benchmarks.synthetic import make_index
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from graphrag_query.question.question_words import language_in, name_spans
from graphrag_query.question.stem_matching import match_stems
from graphrag_query.retrieval.text_unit_ranking import (
    MAX_LINKED_TEXT_UNITS,
    MAX_TEXT_UNITS_OF_LINK,
    N_SEEDS,
    REFINED_WEIGHT,
    SIMILARITY_WEIGHT,
    TextUnitRanking,
    find_adjacent,
    named_entities,
    start_search,
    titled_text_units,
)
from graphrag_query.store.index_store import RankedTextUnit
from tests.conftest import copy_project, run_project
from tests.fixtures.fake_llm import question_to

N = 10_000
QUESTION = "What is known of Bell?"
CHAT = "Time: {}\nWolfgangSchulz: Let us meet {}.\nLiHua: Great, I am bringing {}!\n"
CHATS = {
    "20260408_1900": ("at the river", "bread"),
    "20260508_1900": ("at the lake", "cheese"),
    "20270408_1900": ("at the tower", "apples"),
}


class SmallLinks:
    """Links in memory; counts the text units that are handed out."""

    def __init__(self, n_text_units: int, pairs: Mapping[tuple[int, int], bool]) -> None:
        self.n_text_units, self.pairs, self.handed_out = n_text_units, pairs, 0
        self.kept_links: dict[int, dict[int, tuple[float, int | None]]] = {}

    def entities_of(self, text_unit: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        return self._rows(
            sorted((e, told) for (u, e), told in self.pairs.items() if u == text_unit)
        )

    def text_units_of(self, entity: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        found = self._rows(sorted((u, told) for (u, e), told in self.pairs.items() if e == entity))
        self.handed_out += len(found[0])
        return found

    def n_text_units_of(self, entities: npt.ArrayLike) -> npt.NDArray[np.int64]:
        numbers = np.asarray(entities, np.int64)
        return np.array([sum(e == n for _, e in self.pairs) for n in numbers], np.int64)

    def _rows(
        self, rows: list[tuple[int, bool]]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        return np.array([n for n, _ in rows], np.int32), np.array([t for _, t in rows], np.bool_)


def ranked(
    links: SmallLinks,
    similarity: Sequence[float],
    found: Sequence[int],
    named: Sequence[int] = (),
    titled: Mapping[int, float] | None = None,
    full_text: Mapping[int, float] | None = None,
    words: Mapping[int, Sequence[bool]] | None = None,
    adjacent: Mapping[int, list[int]] | None = None,
) -> list[RankedTextUnit]:
    n_words = len(next(iter(words.values()))) if words else 0

    def read(numbers: list[int]) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.bool_]]:
        held = [(words or {}).get(number, [False] * n_words) for number in numbers]
        similarities = np.array([similarity[number] for number in numbers])
        return similarities, np.array(held, np.bool_).reshape(len(numbers), n_words)

    near = adjacent or {}
    ranking = TextUnitRanking(
        full_text or {}, named, titled or {}, links, read, lambda number: near.get(number, [])
    )
    return ranking.rank(found)


def numbers(rows: Sequence[RankedTextUnit]) -> list[int]:
    return [row.number for row in rows]


# Text unit 0 tells about entity 0 and names 1, and so on: a chain. Others name nothing.
CHAIN = {(0, 0): True, (0, 1): False, (1, 1): True, (1, 2): False, (2, 2): True}


def test_without_links_the_best_match_comes_first() -> None:
    rows = ranked(SmallLinks(3, {}), [0.2, 0.6, 0.4], [0, 1, 2], full_text={0: 1.0, 1: 0.5})
    assert numbers(rows) == [1, 0, 2]
    assert {row.reason for row in rows} == {"match"}


def test_what_a_good_text_unit_names_is_found_though_it_matches_nothing() -> None:
    rows = ranked(SmallLinks(20, CHAIN), [0.8, 0.1, 0.0, 0.2, *[0.1] * 16], [0, 3, 4])
    assert numbers(rows)[:2] == [0, 1]
    link = rows[1]
    assert (link.reason, link.origin, link.entity) == ("link", 0, 1)


def test_the_text_unit_after_a_good_match_is_found() -> None:
    rows = ranked(SmallLinks(5, {}), [0.8, 0.1, 0.2, 0.1, 0.1], [0, 2], adjacent={0: [1], 1: [0]})
    assert numbers(rows) == [0, 1, 2]
    assert (rows[1].reason, rows[1].origin, rows[1].entity) == ("link", 0, None)


def test_other_similarities_change_the_seeds_and_what_is_linked_with_them() -> None:
    links = SmallLinks(20, {**CHAIN, (3, 3): True, (3, 4): False, (4, 4): True})
    similarity = [0.8, 0.1, 0.0, 0.2, *[0.1] * 16]

    def read(wanted: list[int]) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.bool_]]:
        return np.array([similarity[n] for n in wanted]), np.zeros((len(wanted), 0), np.bool_)

    ranking = TextUnitRanking({}, (), {}, links, read)
    assert numbers(ranking.rank([0, 3]))[:2] == [0, 1]
    changed = ranking.rerank({0: 0.0, 3: 0.8})
    assert numbers(changed)[:2] == [3, 4]
    # What differs from the mean, 0.4, counts more.
    more = 0.4 * (REFINED_WEIGHT / SIMILARITY_WEIGHT - 1)
    similarity[0], similarity[3] = -more, 0.8 + more
    again = TextUnitRanking({}, (), {}, links, read).rank(range(5))
    assert numbers(changed) == numbers(again)
    assert [row.score for row in changed] == pytest.approx([row.score for row in again])


def test_a_second_step_finds_what_is_two_links_away() -> None:
    rows = ranked(SmallLinks(20, CHAIN), [0.8, 0.4, 0.1, *[0.05] * 17], [0, *range(3, 20)])
    assert numbers(rows)[:3] == [0, 1, 2]
    assert (rows[2].reason, rows[2].origin, rows[2].entity) == ("link", 1, 2)


def test_to_tell_about_an_entity_counts_more_than_to_name_it() -> None:
    pairs = {(0, 1): False, (1, 1): False, (2, 1): True}
    rows = ranked(SmallLinks(20, pairs), [0.8, *[0.1] * 19], [0])
    assert numbers(rows) == [0, 2, 1]


def test_a_text_unit_about_a_name_of_the_question_counts_more() -> None:
    links = SmallLinks(20, {(1, 0): True, (3, 1): True})
    rows = ranked(links, [0.3] * 20, [0, 2], named=[0, 7])
    assert numbers(rows) == [1, 0, 2]
    assert (rows[0].reason, rows[0].entity) == ("name", 0)


def test_a_text_unit_whose_title_the_question_names_counts_more() -> None:
    rows = ranked(SmallLinks(20, {}), [0.3] * 20, [0, 2], titled={1: 1.0, 2: 0.5})
    assert [(row.number, row.reason) for row in rows] == [
        *((1, "name"), (2, "name"), (0, "match")),
    ]


def test_a_link_to_words_of_the_question_that_its_seed_lacks_counts_more() -> None:
    pairs = {(0, 1): False, (1, 1): True, (2, 1): True}
    words = {0: [True, False], 1: [True, False], 2: [False, True]}
    rows = ranked(SmallLinks(20, pairs), [0.8, *[0.1] * 19], [0], words=words)
    assert numbers(rows) == [0, 2, 1]


def test_a_text_unit_with_rarer_words_of_the_question_counts_more() -> None:
    words = {0: [True, False], 1: [False, True], 2: [True, False]}
    rows = ranked(SmallLinks(3, {}), [0.3, 0.3, 0.3], [0, 1, 2], words=words)
    assert numbers(rows) == [1, 0, 2]


def test_what_leads_to_a_good_text_unit_gains_by_it() -> None:
    pairs = {(0, 1): False, (5, 1): True}
    rows = ranked(SmallLinks(20, pairs), [0.50, 0.51, *[0.0] * 18], [0, 1])
    assert numbers(rows) == [0, 1, 5]


def test_an_entity_of_too_many_text_units_links_nothing() -> None:
    everywhere = {(unit, 0): False for unit in range(MAX_TEXT_UNITS_OF_LINK + 1)}
    rows = ranked(SmallLinks(200, everywhere), [0.5] * 200, [0, 1])
    assert numbers(rows) == [0, 1]


def test_nothing_found_is_nothing_ranked() -> None:
    assert ranked(SmallLinks(0, {}), [], []) == []


def test_the_cost_is_bounded_however_many_text_units_there_are() -> None:
    pairs = {(u, e): False for e in range(30) for u in range(e * 7, e * 7 + 90)}
    links = SmallLinks(1_000_000, pairs)
    rows = ranked(links, [0.1] * 400, [100, 101])
    assert len(rows) <= 2 + 2 * N_SEEDS * MAX_LINKED_TEXT_UNITS
    assert links.handed_out <= 2 * N_SEEDS * 30 * MAX_TEXT_UNITS_OF_LINK


@given(
    st.dictionaries(st.tuples(st.integers(0, 9), st.integers(0, 5)), st.booleans()),
    st.lists(st.floats(-1, 1), min_size=10, max_size=10),
    st.sets(st.integers(0, 9)),
    st.sets(st.integers(0, 6)),
)
def test_every_text_unit_is_ranked_once_best_first_and_says_why(
    pairs: dict[tuple[int, int], bool],
    similarity: list[float],
    found: set[int],
    named: set[int],
) -> None:
    links = SmallLinks(10, pairs)
    rows = ranked(links, similarity, sorted(found), sorted(named))
    assert rows == ranked(links, similarity, sorted(found, reverse=True), sorted(named))
    assert len(set(numbers(rows))) == len(rows)
    assert found <= set(numbers(rows))
    assert [row.score for row in rows] == sorted((row.score for row in rows), reverse=True)
    for row in rows:
        assert row.score >= row.own_score
        if row.reason == "link":
            assert (row.number, row.entity) in pairs
            assert (row.origin, row.entity) in pairs
        elif row.reason == "name":
            assert row.entity in named
            assert pairs[row.number, row.entity]
        else:
            assert row.number in found


def test_words_are_held_with_other_endings_and_not_inside_of_words() -> None:
    texts = pl.Series(["Two countries.", "In this country", "Upcountry", "A ship", "Worship"])
    assert match_stems(texts, [stem_word("country"), stem_word("ship")]).tolist() == [
        *([True, False], [True, False], [False, False], [False, True], [False, False]),
    ]


def test_the_entities_of_whole_names_are_named(index: Index) -> None:
    question = question_to(index, "Did Tom Crean meet Roald Amundsen at the South Pole?")
    titles = index.store.entities(named_entities(question))["title"]
    assert {"Tom Crean", "Roald Amundsen", "South Pole"} <= set(titles)


def test_the_text_units_of_a_title_in_the_question_are_found(index: Index) -> None:
    title = index.store.documents([0])["title"][0]
    found = titled_text_units(question_to(index, f"What is told in {title} of ships?"))
    documents = index.store.open_mapped("text_unit_rows").rows(list(found), "document")["document"]
    assert set(documents) == {0}
    assert all(0 <= worth <= 1 for worth in found.values())


@pytest.mark.parametrize("question", ["", "?!", "the of it", "吉田", "Tom " * 40])
def test_any_question_gets_text_units_once_each(index: Index, question: str) -> None:
    asked = question_to(index, question or " ")
    numbers = [unit.number for unit in start_search(asked)()]
    assert numbers
    assert len(numbers) == len(set(numbers))


def test_text_units_beside_one_are_of_its_document(index: Index) -> None:
    documents = index.store.open_mapped("text_unit_rows").slice("document", 0, 60).tolist()
    beside = [
        [n for n in (at - 1, at + 1) if n >= 0 and documents[n] == documents[at]]
        for at in range(len(documents) - 1)
    ]
    assert {len(numbers) for numbers in beside} >= {0, 1}
    assert [find_adjacent(index.store, at) for at in range(len(beside))] == beside


def test_only_text_units_that_may_be_searched_are_ranked(index: Index) -> None:
    question = question_to(index, "Who was Tom Crean?")
    best = [unit.number for unit in start_search(question)()]
    allowed = set(best[5:15])
    assert {unit.number for unit in start_search(question, allowed)()} <= allowed
    assert len(best) > 15


@pytest.fixture(scope="module")
def bells(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("bells")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmarks.synthetic, "title_of", lambda number: f"Bell {number}")
        make_index(folder, N)
    with graphrag_query.open(folder / "output") as index:
        assert index.store.n_rows("entities") == N
        yield index


@pytest.mark.parametrize("method", ["local", "basic", "global", "drift", "lazy", "ask"])
def test_a_search_answers(bells: Index, method: str) -> None:
    answer = bells.search(method, QUESTION)
    assert answer.outcome in (Outcome.ANSWERED, Outcome.NO_EVIDENCE)
    assert any(answer.looked_at.values())
    assert len(answer.text) < 20_000


def test_the_context_keeps_to_its_budget(bells: Index) -> None:
    context = bells.context(QUESTION, method="local", max_context_tokens=2_000)
    assert 0 < count_tokens(context.text, load_encoding("o200k_base")) <= 2_000
    assert 0 < context.tables["Entities"].height < N


def test_one_of_them_is_found_by_its_whole_name(bells: Index) -> None:
    found = bells.neighbourhood("Bell 7", hops=1, max_relationships=10)
    assert "Bell 7" in found.text
    context = bells.context("What is known of Bell 7?", method="local")
    assert re.search(r"\bBell 7\b", context.text)


def test_names_that_many_have_are_connected_by_none_or_by_short_paths(bells: Index) -> None:
    answer = bells.path("How is Bell 3 connected with Bell 9000?")
    assert answer.outcome in (Outcome.ANSWERED, Outcome.NO_EVIDENCE)


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Index:
    root = copy_project(tmp_path_factory.mktemp("chats") / "project")
    rmtree(root / "input")
    (root / "input").mkdir()
    for title, words in CHATS.items():
        (root / "input" / f"{title}.txt").write_text(CHAT.format(title, *words), encoding="utf-8")
    run_project(root)
    return graphrag_query.open(root / "output")


@pytest.mark.parametrize(
    ("question", "document"),
    [
        ("Where does Wolfgang Schulz meet LiHua on 8 May?", "20260508_1900.txt"),
        ("Where does Wolfgang Schulz meet LiHua on 2027-04-08?", "20270408_1900.txt"),
    ],
)
def test_documents_of_the_date_that_is_asked_come_first(
    chats: Index, question: str, document: str
) -> None:
    assert chats.local(question).citations[0].document == document


@pytest.mark.parametrize("name", ["Wolfgang Schulz", "WolfgangSchulz"])
def test_a_name_is_found_in_both_spacings(chats: Index, name: str) -> None:
    answer = chats.local(f"Where does {name} meet Li Hua in April?")
    assert answer.outcome == "answered"
    # The question writes Li Hua as two words, and so the answer writes all names like that.
    assert "Wolfgang Schulz (" in answer.text
    [span] = name_spans(f"Who is {name}?", language_in("Who is it?"))
    assert {span.words, *span.other_spacings} == {("wolfgang", "schulz"), ("wolfgangschulz",)}
