"""The communities of text units: their themes, and below them those of their entities."""

import polars as pl
import pytest

from graphrag_index.schema.tables import TABLES
from graphrag_index.storage.mapped_table import MappedTable
from graphrag_query.retrieval.community_paths import community_paths
from graphrag_query.searches.global_sentences import _measure_themes
from graphrag_query.store.index_store import IndexStore


def test_a_text_unit_is_under_the_theme_that_has_it(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    communities = store.scan("communities").select("community", "level", "parent").collect()
    coarsest = communities.filter(level=0)["community"].to_list()
    units = range(store.n_rows("text_units"))
    # The last text unit has no theme.
    theme_of = {number: coarsest[number % len(coarsest)] for number in units[:-1]}
    rows = pl.DataFrame(
        [(number, 0, theme) for number, theme in theme_of.items()],
        TABLES["themes_of_text_units"].schema,
        orient="row",
    )
    voted = community_paths(store, units[-1:])
    monkeypatch.setitem(store._mapped, "themes_of_text_units", MappedTable.of(rows))
    paths = community_paths(store, units)
    assert {number: paths[number][0] for number in theme_of} == theme_of
    assert paths[units[-1]] == voted[units[-1]]
    # Below the themes, the entities of a text unit choose its community.
    assert max(map(len, paths.values())) > 1
    parents = dict(communities.select("community", "parent").iter_rows())
    for path in paths.values():
        assert [parents[community] for community in path] == [-1, *path[:-1]]
    assert community_paths(store, units, 1) == {n: path[:1] for n, path in paths.items()}


def test_without_themes_the_entities_of_a_text_unit_choose(
    store: IndexStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_table = IndexStore.has_table
    monkeypatch.setattr(
        IndexStore,
        "has_table",
        lambda self, table: table != "themes_of_text_units" and has_table(self, table),
    )
    units = range(store.n_rows("text_units"))
    paths = community_paths(store, units)
    for number, path in paths.items():
        entities = store.links.entities_of(number).numbers.tolist()
        of_entities = [store.links.communities_of(entity)[1].tolist() for entity in entities]
        assert not path or any(known[: len(path)] == path for known in of_entities)


def test_the_shares_of_the_themes_sum_up_to_all_documents(store: IndexStore) -> None:
    coarsest = store.scan("communities").filter(level=0).collect()["community"]
    shares, text_units = _measure_themes(store, 0, coarsest)
    assert shares.keys() == text_units.keys()
    assert sum(shares.values()) == pytest.approx(1)
    assert len(shares) > 4
