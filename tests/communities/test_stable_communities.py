"""Communities from one run to the next: which are the same, what became of the others."""

import errno
import logging
import random
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.communities.lineage import read_old_communities
from graphrag_index.pipeline.history import roll_back
from graphrag_index.schema.settings.step_sections import CreateCommunities
from graphrag_index.storage.table_store import Previous
from graphrag_index.storage.versions import move_pointer
from tests.fixtures.community_tables import (
    CommunityRuns,
    document_table,
    entity_table,
    relationship_table,
    text_unit_table,
)
from tests.fixtures.examples import examples

Links = list[tuple[str, str, float]]


class Corpus(CommunityRuns):
    """Runs of one step over a graph that changes, each with the tables of the one before."""

    def run(
        self, links: Links, alone: tuple[str, ...] = (), **values: object
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the communities and their lineage."""
        names = {*alone, *(name for link in links for name in link[:2])}
        entities = entity_table({name: ["t0"] for name in sorted(names)})
        relationships = relationship_table(*((*link, ["t0"]) for link in links))
        chosen = CreateCommunities.model_validate(values)
        found = self.create(
            entities, relationships, text_unit_table(2), document_table(""), settings=chosen
        )
        self.keep(chosen, **found, relationships=relationships)
        move_pointer(self.store.output, self.version)
        check_whole(found["communities"], found["community_lineage"], names)
        return found["communities"], found["community_lineage"]

    def roll_back(self, number: int) -> None:
        self.version = roll_back(self.store, number)
        self.number = self.version.number


def check_whole(communities: pl.DataFrame, lineage: pl.DataFrame, names: set[str]) -> None:
    rows = communities.to_dicts()
    by_number = {row["community"]: row for row in rows}
    assert len(by_number) == len(rows)
    assert communities.select("level", "community").rows() == sorted(
        communities.select("level", "community").rows()
    )
    assert communities["human_readable_id"].to_list() == communities["community"].to_list()
    top = [name for row in rows if row["level"] == 0 for name in row["entity_ids"]]
    assert sorted(top) == sorted(names)
    for row in rows:
        assert row["children"] == [
            child["community"] for child in rows if child["parent"] == row["community"]
        ]
        assert str(row["community"]) in row["title"]
        if row["parent"] >= 0:
            parent = by_number[row["parent"]]
            assert parent["level"] == row["level"] - 1
            assert {*row["entity_ids"]} < {*parent["entity_ids"]}
    alive = lineage.filter(pl.col("status") != "died")
    columns = ["community", "level", "size"]
    assert alive.select(columns).rows() == communities.select(columns).rows()
    assert not set(lineage.filter(status="died")["community"]) & set(by_number)


def clique(prefix: str, size: int) -> Links:
    names = [f"{prefix}{i}" for i in range(size)]
    return [(a, b, 5.0) for a, b in combinations(names, 2)]


THREE: Links = [*clique("a", 5), *clique("b", 5), *clique("c", 5), ("a0", "b0", 0.5)]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path)


def members(communities: pl.DataFrame) -> dict[int, str]:
    """The letters of the members of each top community by its number."""
    rows = communities.filter(level=0).select("community", "entity_ids").iter_rows()
    return {number: "".join(sorted({name[0] for name in names})) for number, names in rows}


def told(lineage: pl.DataFrame) -> dict[int, tuple[str, list[int], list[int]]]:
    rows = lineage.filter(level=0).select("community", "status", "came_from", "went_to")
    return {number: (status, came, went) for number, status, came, went in rows.iter_rows()}


def test_a_full_disk_is_no_damaged_table(corpus: Corpus) -> None:
    corpus.run([("a", "b", 1.0), ("b", "c", 1.0)])

    def allocate(*_shape: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        read_old_communities(
            Previous(corpus.store, corpus.version), pl.Series(["a", "b", "c"]), allocate
        )


def test_in_a_first_run_all_are_born(corpus: Corpus) -> None:
    communities, lineage = corpus.run(THREE)
    assert members(communities) == {0: "a", 1: "b", 2: "c"}
    assert told(lineage) == dict.fromkeys(range(3), ("born", [], []))


def test_a_run_without_a_change_keeps_all(corpus: Corpus) -> None:
    before, _ = corpus.run(THREE)
    communities, lineage = corpus.run(THREE)
    assert communities.equals(before)
    assert told(lineage) == {number: ("kept", [number], [number]) for number in range(3)}
    assert lineage["overlap"].to_list() == [1.0] * 3


def test_what_comes_first_in_the_order_does_not_take_the_numbers(corpus: Corpus) -> None:
    corpus.run(THREE)
    communities, lineage = corpus.run([*clique("A", 8), *THREE, ("c0", "d", 5.0)])
    assert members(communities) == {0: "a", 1: "b", 2: "cd", 3: "A"}
    assert told(lineage) == {
        0: ("kept", [0], [0]),
        1: ("kept", [1], [1]),
        2: ("grown", [2], [2]),
        3: ("born", [], []),
    }
    row = lineage.row(by_predicate=pl.col("community") == 2, named=True)
    assert (row["size"], row["previous_size"], row["overlap"]) == (6, 5, pytest.approx(5 / 6))


def test_what_is_gone_died_and_its_number_never_comes_again(corpus: Corpus) -> None:
    corpus.run(THREE)
    without_c = [link for link in THREE if link[0][0] != "c"]
    communities, lineage = corpus.run([link for link in without_c if link[1] != "a4"])
    assert members(communities) == {0: "a", 1: "b"}
    assert told(lineage) == {0: ("shrunk", [0], [0]), 1: ("kept", [1], [1]), 2: ("died", [], [])}
    corpus.run(without_c)
    communities, lineage = corpus.run(THREE)
    assert members(communities) == {0: "a", 1: "b", 3: "c"}
    # Not even when two runs lie between.
    assert told(lineage)[3] == ("born", [], [])


def test_when_all_are_gone_their_numbers_never_come_again(corpus: Corpus) -> None:
    corpus.run(THREE)
    communities, lineage = corpus.run([])
    assert communities.is_empty()
    assert told(lineage) == dict.fromkeys(range(3), ("died", [], []))
    corpus.run([])
    communities, lineage = corpus.run(THREE)
    assert members(communities) == {3: "a", 4: "b", 5: "c"}
    assert told(lineage) == {2: ("died", [], []), **dict.fromkeys(range(3, 6), ("born", [], []))}


@pytest.mark.parametrize("name", ["communities", "relationships", "community_lineage"])
def test_what_cannot_be_read_any_more_is_made_anew(
    corpus: Corpus, name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corpus.run(THREE)
    assert corpus.version is not None
    path = tmp_path / str(corpus.version.tables[name].file)
    # As long as it was: only reading it tells.
    path.write_bytes(bytes(path.stat().st_size))
    communities, lineage = corpus.run([*clique("A", 8), *THREE])
    assert members(communities) == {0: "A", 1: "a", 2: "b", 3: "c"}
    assert set(lineage["status"]) == {"born"}
    assert "cannot be read: its rows are computed again" in caplog.text


@pytest.mark.parametrize("values", [{}, {"max_cluster_size": 4}, {"max_levels": 1}])
def test_what_microsoft_has_split_stays_split_whatever_our_own_limits_are(
    corpus: Corpus, values: dict[str, int]
) -> None:
    draw = random.Random(1)
    drawn = [
        (draw.randrange(30), draw.randrange(30), draw.choice([1.0, 2.0, 5.0])) for _ in range(80)
    ]
    links = [(f"n{a:02}", f"n{b:02}", weight) for a, b, weight in drawn if a != b]
    before, _ = corpus.run(links, engine="microsoft", **values)
    # It splits what has ten members or more.
    assert before.filter(pl.col("children").list.len() > 0)["size"].to_list() == [10]
    after, lineage = corpus.run(links, engine="microsoft", **values)
    assert after.equals(before)
    assert set(lineage["status"]) == {"kept"}


def test_one_that_falls_apart_is_split_and_those_that_join_are_merged(corpus: Corpus) -> None:
    bridges = [(f"a{i}", f"c{j}", 5.0) for i in range(5) for j in range(3)]
    whole = [*clique("a", 5), *clique("c", 3), *bridges, *clique("z", 6)]
    communities, _ = corpus.run(whole)
    number = next(number for number, letters in members(communities).items() if letters == "ac")
    apart, lineage = corpus.run([*clique("a", 5), *clique("c", 3), *clique("z", 6)])
    assert members(apart)[number] == "a"
    new = next(number for number, letters in members(apart).items() if letters == "c")
    assert told(lineage)[number] == ("split", [number], [number, new])
    assert told(lineage)[new] == ("split", [number], [])
    again, lineage = corpus.run(whole)
    assert members(again)[number] == "ac"
    assert told(lineage)[number] == ("merged", [number, new], [number])
    assert told(lineage)[new] == ("died", [], [number])


def test_after_a_rollback_numbers_of_the_versions_left_behind_never_come_again(
    corpus: Corpus,
) -> None:
    corpus.run(THREE)
    communities, _ = corpus.run([*THREE, *clique("d", 5)])
    assert members(communities) == {0: "a", 1: "b", 2: "c", 3: "d"}
    corpus.roll_back(1)
    communities, _ = corpus.run([*THREE, *clique("e", 5)])
    assert members(communities) == {0: "a", 1: "b", 2: "c", 4: "e"}


def test_rebuild_forgets_the_numbers(corpus: Corpus, tmp_path: Path) -> None:
    corpus.run(THREE)
    changed = [*clique("A", 8), *THREE]
    communities, lineage = corpus.run(changed, stability="rebuild")
    clean, born = Corpus(tmp_path / "clean").run(changed, stability="rebuild")
    assert communities.equals(clean)
    assert lineage.equals(born)
    # The next run keeps these.
    assert corpus.run(changed)[0].equals(clean)


def test_with_other_settings_communities_are_made_anew_and_matched(
    corpus: Corpus, tmp_path: Path
) -> None:
    corpus.run([*clique("x", 8), *THREE])
    coarse = {"max_cluster_size": 4}
    communities, lineage = corpus.run(THREE, **coarse)
    clean, _ = Corpus(tmp_path / "clean").run(THREE, **coarse)
    columns = ["level", "entity_ids"]
    assert sorted(communities.select(columns).rows()) == sorted(clean.select(columns).rows())
    assert members(communities) == {1: "a", 2: "b", 3: "c"}
    assert told(lineage)[0][0] == "died"


def test_islands_stay_what_they_are(corpus: Corpus) -> None:
    alone = tuple(f"m{i}" for i in range(6))
    before, _ = corpus.run(THREE, alone, max_cluster_size=6)
    # What would come first goes where there is room, or begins an island.
    after, lineage = corpus.run(THREE, ("k0", *alone), max_cluster_size=6)
    old = dict(before.filter("island").select("community", "entity_ids").iter_rows())
    new = dict(after.filter("island").select("community", "entity_ids").iter_rows())
    assert old == {number: new[number] for number in old}
    assert [status for status, *_ in told(lineage).values()] == ["kept"] * 4 + ["born"]


def test_a_drift_is_told_with_both_modularities(
    corpus: Corpus, caplog: pytest.LogCaptureFixture
) -> None:
    # Link by link a ring becomes another, of the same entities in another order.
    shuffled = random.Random(1).sample(range(48), 48)
    old = ring([f"n{i:02}" for i in range(48)])
    new = ring([f"n{i:02}" for i in shuffled])
    for n in range(41):
        with caplog.at_level(logging.WARNING):
            caplog.clear()
            corpus.run([*old[n:], *new[:n]], max_drift=0.05)
    (message,) = [record.getMessage() for record in caplog.records]
    now, then = (float(number) for number in re.findall(r"\d\.\d+", message))
    assert then - now > 0.05
    assert "--set create_communities.stability=rebuild" in message
    caplog.clear()
    corpus.run([*old[40:], *new[:40]], stability="rebuild")
    corpus.run([*old[40:], *new[:40]], max_drift=0.05)
    assert not caplog.records


def ring(names: list[str]) -> Links:
    return [(a, b, 1.0) for a, b in zip(names, [*names[1:], names[0]], strict=True)]


@st.composite
def histories(draw: st.DrawFn) -> list[Links]:
    name = st.integers(0, 25).map("n{:02}".format)
    link = st.tuples(name, name, st.sampled_from([1.0, 2.0, 5.0])).filter(
        lambda ends: ends[0] != ends[1]
    )
    return draw(st.lists(st.lists(link, min_size=1, max_size=40), min_size=2, max_size=4))


@given(history=histories())
@examples(12)
def test_whatever_happens_the_hierarchy_and_its_lineage_are_whole(
    tmp_path_factory: pytest.TempPathFactory, history: list[Links]
) -> None:
    corpus = Corpus(tmp_path_factory.mktemp("history"))
    given: set[int] = set()
    for links in history:
        communities, lineage = corpus.run(links, max_cluster_size=4, min_component_size=2)
        new = lineage.filter((pl.col("previous_size") == 0) & (pl.col("status") != "died"))
        assert not given & set(new["community"])
        given |= set(communities["community"])
    again, lineage = corpus.run(history[-1], max_cluster_size=4, min_component_size=2)
    assert again.equals(communities)
    assert set(lineage["status"]) <= {"kept", "died"}
