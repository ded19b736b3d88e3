"""Islands: small components of one document, and of documents with similar texts."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.communities import islands
from graphrag_index.communities.islands import MAX_COMPARED, merge_groups
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.schema.tables import TABLES
from tests.fixtures import community_tables
from tests.fixtures.community_tables import (
    CommunityRuns,
    document_table,
    entity_table,
    relationship_table,
)
from tests.fixtures.examples import examples

TOPICS = {name: words for name, words in community_tables.TOPICS.items() if name != "money"}
# Documents of all topics, one after the other.
MIXED = [f"{topic}{number}" for number in range(6) for topic in TOPICS]


class Corpus(CommunityRuns):
    """Documents of one text unit and as many entities without relationships as it is told."""

    def run(self, documents: list[str], n_entities: int = 1, **values: Any) -> list[list[str]]:
        """Return the entities of each island, by its number."""
        said = {}
        for name in documents:
            words = TOPICS[name.rstrip("0123456789")].split()
            said[name] = " ".join(random.Random(name).sample(words, 6))
        units = {
            "id": list(said),
            "human_readable_id": range(len(said)),
            "document_id": [f"d{i}" for i in range(len(said))],
            "text": list(said.values()),
        }
        settings = CreateCommunities.model_validate({"max_themes": 0, **values})
        communities = self.create(
            entity_table({f"{name}-{i}": [name] for name in said for i in range(n_entities)}),
            relationship_table(),
            pl.DataFrame(units),
            document_table(*[""] * len(said)),
            settings=settings,
        )["communities"]
        relationships = TABLES["relationships"].empty()
        self.keep(settings, communities=communities, relationships=relationships)
        return communities.sort("community")["entity_ids"].to_list()


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path)


def topics_of(island: list[str]) -> set[str]:
    return {entity.rstrip("-0123456789") for entity in island}


@pytest.mark.parametrize("n_entities", [1, 2])
def test_documents_with_similar_texts_share_an_island(corpus: Corpus, n_entities: int) -> None:
    islands = corpus.run(MIXED, n_entities)
    assert [len(topics_of(island)) for island in islands] == [1] * len(islands)
    assert min(map(len, islands)) >= 3


def test_documents_with_enough_entities_have_islands_of_their_own(corpus: Corpus) -> None:
    islands = corpus.run(MIXED, 3)
    assert sorted(islands) == sorted([f"{name}-{i}" for i in range(3)] for name in MIXED)


def test_an_update_keeps_islands_and_adds_to_the_most_similar(corpus: Corpus) -> None:
    before = corpus.run(MIXED)
    assert corpus.run(MIXED) == before
    after = corpus.run(["space90", *MIXED, "sport91"])
    (space,) = [island for island in after if "space90-0" in island]
    (sport,) = [island for island in after if "sport91-0" in island]
    assert (topics_of(space), topics_of(sport)) == ({"space"}, {"sport"})
    added = {"space90-0", "sport91-0"}
    assert [[one for one in island if one not in added] for island in after] == before
    assert corpus.run(MIXED) == before


def test_the_last_of_its_topic_joins_others_rather_than_stay_alone(corpus: Corpus) -> None:
    islands = corpus.run(["space0", "sport0", "sport1", "sport2", "sport3"])
    assert min(map(len, islands)) >= 3


def test_similar_groups_come_together_in_whatever_leaf_they_are() -> None:
    rng = np.random.default_rng(1)
    topic = rng.integers(0, 8, 5 * MAX_COMPARED)
    vectors = np.eye(8)[topic] + 0.2 * rng.standard_normal((len(topic), 8))
    sizes = np.ones(len(topic), dtype=np.int64)
    labels = merge_groups(vectors, sizes, 0, CreateCommunities())
    n_topics = [len(set(topic[labels == label])) for label in set(labels)]
    assert n_topics.count(1) >= 0.9 * len(n_topics)


def test_islands_do_not_depend_on_the_sign_of_an_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(5).standard_normal((2 * MAX_COMPARED + 1, 16))
    sizes = np.ones(len(vectors), dtype=np.int64)
    labels = merge_groups(vectors, sizes, 0, CreateCommunities())
    find = islands.find_main_directions
    monkeypatch.setattr(islands, "find_main_directions", lambda rows: -find(rows))
    assert merge_groups(vectors, sizes, 0, CreateCommunities()).tolist() == labels.tolist()


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 10), st.booleans()), max_size=30),
    min_size=st.integers(1, 5),
)
@examples(40)
def test_merged_groups_fit_and_kept_ones_stay_apart(
    rows: list[tuple[int, int, bool]], min_size: int
) -> None:
    rows.sort(key=lambda row: not row[2])
    sizes = np.array([size for _, size, _ in rows], dtype=np.int64)
    n_kept = sum(is_kept for _, _, is_kept in rows)
    # The last axis has no texts.
    sums = np.eye(4)[[axis for axis, _, _ in rows]].reshape(-1, 4)
    sums[:, 3] = 0
    settings = CreateCommunities(min_component_size=min_size, max_cluster_size=10)
    labels = merge_groups(sums, sizes, n_kept, settings)
    for label in set(labels.tolist()):
        members = np.flatnonzero(labels == label)
        assert label in members
        assert sizes[members].sum() <= 10
        assert (members < n_kept).sum() <= 1
    merged = np.bincount(labels, sizes, len(rows))
    has_kept = np.isin(np.arange(len(rows)), labels[:n_kept])
    small = [at for at in set(labels.tolist()) if merged[at] < min_size and not has_kept[at]]
    # No small group is left that fits into another group.
    assert all(merged[a] + merged[b] > 10 for a in small for b in set(labels.tolist()) - {a})
