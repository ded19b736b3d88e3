"""Themes: what is grouped above the communities of the graph, and what an update keeps."""

import logging
import random
import re
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from graphrag_index.communities.simple_graph import build_graph
from graphrag_index.communities.text_clusters import (
    MAX_SECTION,
    add_section_vectors,
    find_cluster_means,
    find_highest,
    find_main_directions,
    find_most_similar,
    learn_word_vectors,
    number_sections,
)
from graphrag_index.communities.themes import find_themes, plan_levels, split_vectors
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_nlp.list_columns import NumberLists
from tests.fixtures.community_tables import (
    TOPICS,
    CommunityRuns,
    document_table,
    entity_table,
    relationship_table,
)
from tests.fixtures.examples import examples


class Corpus(CommunityRuns):
    """A text unit with a clique of four entities and three loose ones, for each (topic, number)."""

    def run(
        self,
        cliques: list[tuple[str, int]],
        *,
        texts: dict[str, str] | None = None,
        n_hubs: int = 0,
        shuffled: bool = False,
        **values: Any,
    ) -> pl.DataFrame:
        """Return the communities; `texts` replaces or adds texts of text units.

        Hubs are linked in the first text unit, and all text units name them.
        """
        named, links, said = {}, [], {}
        for topic, number in cliques:
            unit = f"{topic}{number:02}"
            words = random.Random(unit).sample(TOPICS[topic].split(), 6)
            said[unit] = f"Report {number}: " + " ".join(words)
            members = [f"{unit}-{letter}" for letter in "abcd"]
            loose = [f"{unit}-{letter}" for letter in "xyz"]
            named |= {name: [unit] for name in [*members, *loose]}
            links += [(*pair, 1.0, [unit]) for pair in combinations(members, 2)]
        hubs = [f"{min(said)}-hub{i}" for i in range(n_hubs)]
        links += [(*pair, 5.0, [min(said)]) for pair in combinations(hubs, 2)]
        said |= texts or {}
        named |= {hub: list(said) for hub in hubs}
        units = pl.DataFrame(
            {
                "id": list(said),
                "human_readable_id": range(len(said)),
                "document_id": [f"d{i}" for i in range(len(said))],
                "text": list(said.values()),
            }
        )
        tables = [
            entity_table(named),
            relationship_table(*links),
            units,
            document_table(*[""] * len(said)),
        ]
        if shuffled:
            tables = [table.sample(fraction=1, shuffle=True, seed=7) for table in tables]
        settings = CreateCommunities.model_validate({"max_themes": 5, **values})
        found = self.create(*tables, settings=settings)
        self.lineage = found["community_lineage"]
        self.keep(settings, communities=found["communities"], relationships=tables[1])
        return found["communities"]


EVERYTHING = [(topic, number) for topic in TOPICS for number in range(8)]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path)


def topics_of(themes: pl.DataFrame, column: str) -> list[list[str]]:
    return [sorted({re.sub("[0-9].*", "", id) for id in ids}) for ids in themes[column]]


def top(communities: pl.DataFrame) -> pl.DataFrame:
    return communities.filter(level=0)


@pytest.mark.parametrize(
    ("n_communities", "levels"),
    [
        (0, []),
        (24, []),
        (25, [5]),
        (60, [12]),
        (576, [24]),
        (577, [24, 118]),
        (49_103, [24, 305, 3868]),
    ],
)
def test_levels_of_themes_grow_with_the_number_of_communities(n_communities, levels):
    assert plan_levels(n_communities, 24) == levels


def test_no_levels_are_planned_if_themes_are_off():
    assert plan_levels(1000, 0) == []


def test_themes_have_one_topic_each_with_its_islands(corpus):
    communities = corpus.run(EVERYTHING)
    themes = top(communities)
    assert themes["theme"].to_list() == [True] * 5
    assert themes["title"].to_list() == [f"Theme {number}" for number in range(5)]
    assert sorted(topics_of(themes, "entity_ids")) == sorted([topic] for topic in TOPICS)
    assert topics_of(themes, "text_unit_ids") == topics_of(themes, "entity_ids")
    assert communities.filter("island").height == 8 * 5
    assert set(themes["size"]) == {8 * 7}


def test_row_order_does_not_change_the_themes(corpus, tmp_path):
    ordered = corpus.run(EVERYTHING)
    shuffled = Corpus(tmp_path / "other").run(EVERYTHING, shuffled=True)
    columns = ["id", "community", "parent", "entity_ids", "text_unit_ids"]
    assert ordered.select(columns).equals(shuffled.select(columns))


def test_a_text_unit_without_entities_lies_under_the_theme_of_its_words(corpus, caplog):
    texts = {"extra": "The rocket reached its orbit near the moon.", "unknown": "Zzz qqq"}
    communities = corpus.run(EVERYTHING, texts=texts)
    units = top(communities)["text_unit_ids"].to_list()
    assert [ids for ids in units if "extra" in ids] == [ids for ids in units if "space01" in ids]
    assert not any("unknown" in ids for ids in units)
    assert "1 documents name no entity" in caplog.text


def test_entities_that_all_texts_name_draw_no_text_into_their_theme(corpus):
    themes = top(corpus.run(EVERYTHING, n_hubs=12))
    assert sorted(topics_of(themes, "text_unit_ids")) == sorted([topic] for topic in TOPICS)
    assert sum("hub" in id for ids in themes["entity_ids"] for id in ids) == 12
    assert themes["text_unit_ids"].explode().is_unique().all()


@pytest.mark.parametrize(("n_own", "n_themes"), [(2, 1), (8, 2)])
def test_a_topic_whose_texts_name_few_entities_of_its_own_is_no_theme(n_own, n_themes):
    # Eight communities have three texts on one topic, and two on another, which has communities
    # too: with one text each.
    topics = [[0, 0, 0, 1, 1]] * 8 + [[1]] * n_own
    texts = np.eye(2, dtype=np.float32)[np.concatenate(topics)]
    lengths = np.array([len(of) for of in topics])
    named = NumberLists(
        np.cumsum(lengths) - lengths, lengths, np.arange(len(texts), dtype=np.int32)
    )
    nodes = np.arange(len(topics))
    none = np.zeros(0, dtype=np.int32)
    graph = build_graph(len(nodes), none, none, np.zeros(0))
    found = find_themes(graph, nodes, named, texts, np.arange(len(texts)), 2, [])
    assert len(set(found.of_nodes[0].tolist())) == n_themes
    assert len(set(found.of_text_units[0].tolist())) == n_themes


@examples(15)
@given(
    st.sets(st.tuples(st.sampled_from(list(TOPICS)), st.integers(0, 9)), min_size=1, max_size=40)
)
def test_every_entity_lies_under_one_theme_and_every_document_under_some(cliques):
    with TemporaryDirectory() as folder:
        themes = top(Corpus(Path(folder)).run(sorted(cliques)))
    assert themes.height <= 5
    assert themes["entity_ids"].explode().is_unique().all()
    assert themes["entity_ids"].explode().len() == 7 * len(cliques)
    units = {f"{topic}{number:02}" for topic, number in cliques}
    assert set(themes["text_unit_ids"].explode()) == units


@pytest.mark.parametrize("values", [{"max_themes": 0}, {"max_themes": 1}, {"engine": "microsoft"}])
def test_themes_can_be_switched_off(corpus, values):
    assert not corpus.run(EVERYTHING, **values)["theme"].any()


def test_large_corpora_get_several_levels_of_themes(corpus):
    communities = corpus.run(EVERYTHING, max_themes=4)
    sizes = communities.filter("theme").group_by("level").agg(pl.len(), pl.col("size").sum())
    assert sizes.sort("level").rows() == [(0, 4, 280), (1, 10, 280), (2, 30, 280)]
    for row in communities.filter(pl.col("children").list.len() > 0).iter_rows(named=True):
        below = communities.filter(parent=row["community"])
        assert sorted(below["entity_ids"].explode()) == row["entity_ids"]
        if below["theme"].all():
            assert sorted(below["text_unit_ids"].explode()) == row["text_unit_ids"]


def test_without_texts_links_group_the_communities(corpus):
    links = [
        (f"n{i:03}", f"n{j:03}", 1.0 if i // 4 == j // 4 else 0.05, [])
        for i, j in combinations(range(160), 2)
        if i // 4 == j // 4 or (i // 40 == j // 40 and i % 4 == j % 4 == 1)
    ]
    columns = {"id": pl.String, "human_readable_id": pl.Int64}
    found = corpus.create(
        entity_table({f"n{i:03}": [] for i in range(160)}),
        relationship_table(*links),
        pl.DataFrame(schema=columns | dict.fromkeys(["document_id", "text"], pl.String)),
        document_table(),
        settings=CreateCommunities(max_themes=4, max_cluster_size=4, resolution=8),
    )
    themes = top(found["communities"])
    assert sorted(themes["entity_ids"].to_list()) == [
        [f"n{i:03}" for i in range(start, start + 40)] for start in range(0, 160, 40)
    ]


def test_an_update_keeps_themes_and_their_numbers_and_adds_to_the_nearest(corpus):
    before = top(corpus.run(EVERYTHING))
    after = top(corpus.run([*EVERYTHING, ("money", 8), ("money", 9)]))
    old = dict(before.select("community", "entity_ids").iter_rows())
    new = dict(after.select("community", "entity_ids").iter_rows())
    assert old.keys() == new.keys()
    for number, members in old.items():
        more = {id for id in new[number] if id.startswith(("money08", "money09"))}
        assert set(new[number]) == {*members, *more}
        assert len(more) == (14 if members[0].startswith("money") else 0)
    assert corpus.lineage.filter(level=0)["status"].sort().to_list() == ["grown", *["kept"] * 4]


def test_a_version_without_themes_gets_them_and_keeps_its_communities(corpus):
    before = corpus.run(EVERYTHING, max_themes=0)
    after = corpus.run(EVERYTHING)
    below = after.filter(~pl.col("theme"))
    columns = ["community", "entity_ids", "island"]
    assert below.select(columns).equals(before.select(columns))
    assert below["level"].to_list() == [level + 2 for level in before["level"]]
    assert top(after)["community"].min() > before["community"].max()


def test_kept_themes_that_no_longer_fit_the_texts_are_warned_about(corpus, caplog):
    rng = random.Random(0)
    words = " ".join(TOPICS.values()).split()
    mixed = {f"{topic}{n:02}": " ".join(rng.sample(words, 6)) for topic, n in EVERYTHING}
    before = top(corpus.run(EVERYTHING, texts=mixed))
    with caplog.at_level(logging.WARNING):
        after = top(corpus.run(EVERYTHING))
    assert after["entity_ids"].to_list() == before["entity_ids"].to_list()
    assert "The texts of the kept themes have a mean similarity of" in caplog.text
    caplog.clear()
    rebuilt = top(corpus.run(EVERYTHING, stability="rebuild"))
    assert sorted(topics_of(rebuilt, "entity_ids")) == sorted([topic] for topic in TOPICS)
    assert not caplog.text


@examples(40)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=40), st.integers(0, 12))
def test_a_part_has_at_least_two_vectors(rows, n_parts):
    vectors = np.eye(4)[[axis for axis, _ in rows]].reshape(len(rows), 4)
    sizes = np.array([size for _, size in rows], dtype=float)
    labels = split_vectors(vectors, sizes, n_parts)
    counts = np.bincount(labels)
    assert len(counts) <= max(n_parts, 1)
    assert len(labels) == len(rows)
    assert (counts >= min(2, len(rows))).all()


def test_texts_about_one_topic_are_similar():
    rng = random.Random(1)
    texts = [
        (topic, " ".join(rng.sample(words.split(), 5)))
        for topic, words in TOPICS.items()
        for _ in range(40)
    ]
    said = pl.Series([text for _, text in texts])
    vectors = learn_word_vectors(said).embed(said)
    similarity = (vectors @ vectors.T).reshape(5, 40, 5, 40).mean(axis=(1, 3))
    assert similarity.diagonal().min() > 0.5
    assert (similarity - np.diag(similarity.diagonal())).max() < 0.1


def test_a_text_without_known_words_has_a_vector_of_zeros():
    assert not learn_word_vectors(pl.Series(["one two"] * 4)).embed(pl.Series(["three", ""])).any()
    assert learn_word_vectors(pl.Series([], dtype=pl.String)).vectors.shape == (0, 1)


def test_a_matrix_of_zeros_gives_vectors_of_zeros():
    assert not find_main_directions(csr_array((4, 3))).any()
    assert len(find_main_directions(csr_array((4, 3)))) == 3


def text_units(*documents: int) -> pl.DataFrame:
    """Text units in reading order, one for each number of a document."""
    return pl.DataFrame({"document": documents, "position": range(len(documents))})


def near(axes: list[int], n_axes: int) -> np.ndarray:
    """Return unit vectors near to these axes."""
    vectors = np.eye(n_axes)[axes] + 0.02 * np.random.default_rng(3).random((len(axes), n_axes))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_short_document_is_one_section_and_a_long_one_several_of_similar_size() -> None:
    found = number_sections(text_units(7, 7, *[4] * (2 * MAX_SECTION + 1), 5))
    assert found[:2].tolist() == [0, 0]
    assert np.bincount(found).tolist() == [2, 6, 6, 5, 1]
    assert np.all(np.diff(found) >= 0)


@pytest.mark.parametrize("seed", range(3))
def test_sections_are_numbered_by_rows_whatever_the_numbers_of_documents(seed: int) -> None:
    units = text_units(*[0] * 20, *[1] * 3, *[2] * 9).sample(fraction=1, shuffle=True, seed=seed)
    other = units.with_columns(document=pl.col("document").replace({0: 2, 2: 0}))
    found = number_sections(units)
    assert found.tolist() == number_sections(other).tolist()
    first = np.unique(found, return_index=True)[1]
    assert np.all(np.diff(first) > 0)


def test_no_text_units_have_no_sections() -> None:
    assert not len(number_sections(text_units().cast(pl.Int64)))
    assert add_section_vectors(np.zeros((0, 4), np.float32), np.zeros(0, np.int64)).shape == (0, 4)


def test_a_text_unit_without_words_is_about_what_its_section_is_about() -> None:
    texts = np.array([[1, 0], [0, 0], [0, 0]], np.float32)
    assert add_section_vectors(texts, np.array([0, 0, 1])).tolist() == [[1, 0], [0, 0]]
    assert texts.tolist() == [[1, 0], [1, 0], [0, 0]]


def test_clusters_of_very_different_size_are_found() -> None:
    axes = [0] * 300 + [1] * 3 + [2] * 40 + [3] * 4
    vectors = near(axes, 4)
    means = find_cluster_means(np.vstack([vectors, np.zeros((5, 4))]), 4)
    found = find_most_similar(vectors, means)
    assert sorted(np.bincount(found).tolist()) == [3, 4, 40, 300]
    assert len(set(zip(axes, found.tolist(), strict=True))) == 4


def test_equal_vectors_give_one_cluster_and_vectors_of_zeros_none() -> None:
    assert find_cluster_means(np.tile([0.6, 0.8], (9, 1)), 5).shape == (1, 2)
    assert find_cluster_means(np.zeros((9, 2)), 5).shape == (0, 2)


def test_the_first_of_scores_that_differ_in_last_digits_only_is_the_highest() -> None:
    scores = np.array([[0.1, 0.5, 0.5 + 1e-9], [-0.2, -0.2 + 1e-5, -0.2], [0.0, -1e-9, 1e-9]])
    assert find_highest(scores).tolist() == [1, 1, 0]
