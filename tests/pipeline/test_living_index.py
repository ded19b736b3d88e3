"""Random edits of a folder: an update is a rebuild, pays nothing twice, and leaves no trace."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from graphrag_index.health.checked_index import open_for_check
from graphrag_index.health.checks import check_index
from graphrag_index.schema.settings.step_sections import Check
from graphrag_index.storage.table_store import open_index
from tests.fixtures.living_folder import SAME, SAME_WITH_REBUILD, LivingFolder
from tests.fixtures.small_index import read_table
from tests.model_server import Server

PEOPLE = ["Ada Vance", "Boris Kemp", "Carla Diem", "Dora Lund", "Emil Roth", "Fay Moor"]
PLACES = ["Oslo", "Bergen", "Turku", "Narvik"]
VERBS = ["met", "accused", "followed", "wrote to"]
# Before and after all others, and in folders of their own.
NAMES = ["a.txt", "b.md", "m/c.txt", "m/d.txt", "x.txt", "z/y.txt"]

sentences = st.builds(
    "{} {} {} in {} in {}.".format,
    st.sampled_from(PEOPLE),
    st.sampled_from(VERBS),
    st.sampled_from(PEOPLE),
    st.sampled_from(PLACES),
    st.integers(1900, 1904),
)
bodies = st.lists(sentences, min_size=1, max_size=6).map(" ".join)


class Edits(RuleBasedStateMachine):
    """Each rule is one run after one change; what must hold is looked at after each."""

    server: Server
    numbers = count()
    n_rebuilt = 0

    @initialize(
        first=bodies,
        second=bodies,
        sections=st.sampled_from(
            [
                {},
                {"create_communities": {"max_cluster_size": 3}},
                {
                    "create_communities": {"stability": "rebuild", "max_cluster_size": 3},
                    "create_community_reports": {"rewrite_above": 0},
                },
            ]
        ),
    )
    def begin(self, first: str, second: str, sections: dict[str, dict[str, object]]) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.is_rebuilt = "rebuild" in json.dumps(sections)
        self.project = LivingFolder(self.folder / "project", self.server.url, **sections)
        self.documents: dict[str, str] = {}
        self.gone: set[str] = set()
        self.is_updated = False
        self.n_before = len(self.server.requests)
        self._write("m/c.txt", first)
        self._write("x.txt", second)
        self._update()

    def _write(self, name: str, body: str) -> None:
        # A word that stands nowhere else tells where the text of a document is.
        word = f"Qx{next(self.numbers):06}"
        if name in self.documents:
            self.gone.add(self.documents[name])
        self.documents[name] = word
        self.project.write(name, f"# {word}\n\n{body} The note {word} lies in {PLACES[0]}.")

    def _update(self) -> None:
        self.is_updated = False
        result = self.project.update()
        assert not any(step.quarantined for step in result.version.steps)
        texts = self.project.texts()
        assert [word for word in self.gone if word in texts] == []
        assert [word for word in self.documents.values() if word not in texts] == []
        asked = [
            request.body
            for request in self.server.requests[self.n_before :]
            if request.path.endswith("/chat/completions")
        ]
        assert len(set(asked)) == len(asked)
        health = check_index(open_for_check(self.project.output), Check())
        found = {outcome.name: outcome.result for outcome in health.outcomes}
        assert {name: looked.findings for name, looked in found.items() if looked.count} == {}
        self.is_updated = True

    @rule(name=st.sampled_from(NAMES), body=bodies)
    def write(self, name: str, body: str) -> None:
        self._write(name, body)
        self._update()

    @precondition(lambda self: len(self.documents) > 1)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.documents)))
        self.project.delete(name)
        self.gone.add(self.documents.pop(name))
        self._update()

    @precondition(lambda self: len(self.documents) < len(NAMES))
    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(sorted(self.documents)))
        new = data.draw(st.sampled_from(sorted({*NAMES} - {*self.documents})))
        self.project.rename(old, new)
        self.documents[new] = self.documents.pop(old)
        self._update()

    @rule()
    def nothing(self) -> None:
        number = self._number()
        n_asked = len(self.server.requests)
        result = self.project.update()
        assert not result.new_version
        assert self._number() == number
        assert len(self.server.requests) == n_asked

    def _number(self) -> int:
        _, version = open_index(self.project.output)
        return version.number

    def teardown(self) -> None:
        if not hasattr(self, "folder") or not self.is_updated:
            return
        names = SAME_WITH_REBUILD if self.is_rebuilt else SAME
        try:
            clean = self.project.rebuilt(self.folder / "clean")
            assert clean.digests(names) == self.project.digests(names)
            Edits.n_rebuilt += 1
        finally:
            shutil.rmtree(self.folder)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(dimensions=16) as server:
        yield server


@pytest.mark.parametrize(
    ("n_sequences", "n_steps"), [(1, 4), pytest.param(200, 5, marks=pytest.mark.slow)]
)
def test_random_edits(server: Server, n_sequences: int, n_steps: int) -> None:
    Edits.server, n_before = server, Edits.n_rebuilt
    run_state_machine_as_test(
        Edits,
        settings=settings(
            max_examples=n_sequences,
            stateful_step_count=n_steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    # Every sequence came to its end, where its index was compared.
    assert Edits.n_rebuilt - n_before >= n_sequences


REPOSITORY = Path(__file__).parents[2]
TEXTS = {".md", ".txt", ".html"}


@pytest.mark.slow
@pytest.mark.parametrize("position", [0, 11, 24])
def test_one_of_25_documents_is_added(server: Server, tmp_path: Path, position: int) -> None:
    folder = LivingFolder(tmp_path / "project", server.url)
    paths = sorted(p for p in (REPOSITORY / "input").rglob("*.*") if p.suffix in TEXTS)[:25]
    assert len(paths) == 25
    for path in paths:
        if path is not paths[position]:
            folder.write(path.name, path.read_text(encoding="utf-8"))
    folder.update()
    before = steps_asked(folder)
    communities = set(read_table(folder.root, "communities")["community"])
    descriptions = texts(folder)

    folder.write(paths[position].name, paths[position].read_text(encoding="utf-8"))
    folder.update()
    after = steps_asked(folder)
    new = {step: after[step] - before[step] for step in before}
    units = read_table(folder.root, "text_units").join(
        read_table(folder.root, "documents").filter(pl.col("path") == paths[position].name),
        left_on="document_id",
        right_on="id",
    )
    assert new["extract_graph"] == new["extract_covariates"] == len(units)
    assert new["summarize_descriptions"] <= len(texts(folder) - descriptions)
    assert new["create_community_reports"] <= 0.15 * before["create_community_reports"]
    kept = communities & set(read_table(folder.root, "communities")["community"])
    assert len(kept) >= 0.9 * len(communities)


def steps_asked(folder: LivingFolder) -> dict[str, int]:
    """How many requests of each step have a reply in the ledger."""
    import sqlite3

    with sqlite3.connect(folder.output / "ledger.sqlite") as ledger:
        rows = ledger.execute("SELECT step, count(*) FROM requests WHERE state = 'done' GROUP BY 1")
        return dict(rows.fetchall())


def texts(folder: LivingFolder) -> set[str]:
    """The descriptions of entities and relationships."""
    tables = (read_table(folder.root, name) for name in ("entities", "relationships"))
    return {text for table in tables for text in table["description"]}
