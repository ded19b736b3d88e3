"""One document more in the sample: what is asked, and what of the communities stays."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.fixtures.living_folder import LivingFolder
from tests.fixtures.small_index import read_table
from tests.model_server import Server

REPOSITORY = Path(__file__).parents[2]
TEXTS = {".md", ".txt", ".html"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(dimensions=16) as server:
        yield server


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
