"""What is asked again when documents come and go, over HTTP, and what becomes of reports."""

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
import yaml

from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import load_workflow, make_services, open_models
from graphrag_index.schema.settings.project_settings import load_settings
from tests.fixtures.commands import REPOSITORY
from tests.fixtures.small_index import read_files, read_table
from tests.model_server import Server

STEPS = [
    *("load_documents", "create_text_units", "extract_graph", "summarize_descriptions"),
    *("finalize_graph", "extract_covariates", "create_communities", "create_community_reports"),
]
DOCUMENTS = ["cape-evans-and-the-huts.md"]
# Of what the others hardly tell.
OTHER = """# Gorlovina

Ilse Quandt founded Zubrowka Works in 1903. Ilse Quandt hired Jaro Veltin, who dug Lower Canal
with Zubrowka Works. In 1911 Jaro Veltin sold Lower Canal to Ilse Quandt. Of huts like that on
Cape Royds, Ilse Quandt built nine.
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def write_project(root: Path, server: Server) -> Path:
    (root / "workflows").mkdir(parents=True)
    (root / "workflows" / "reports.yaml").write_text(yaml.safe_dump(STEPS), encoding="utf-8")
    (root / "input").mkdir()
    for name in DOCUMENTS:
        shutil.copy(REPOSITORY / "input" / "places" / name, root / "input")
    model = {"model": "test-model", "base_url": server.url, "api_key": "key"}
    settings = {
        "workflow": "reports",
        "models": {"chat": model},
        "finalize_graph": {"layout": False},
        "create_communities": {"max_cluster_size": 6},
    }
    (root / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return root


ALL = "create_community_reports.rewrite_above=0"
NONE = "create_community_reports.rewrite_above=1"
ANEW = "create_communities.stability=rebuild"


def index(root: Path, *overrides: str) -> Counter[str]:
    """Bring the index up to date; how many requests each step sent."""
    settings = load_settings(root, overrides)
    workflow = load_workflow(root, settings.workflow)
    with closing(open_models(workflow, settings, root)) as models:
        services = make_services(settings, models, root)
        version = run_workflow(workflow, settings, root, services).version.number
    with closing(sqlite3.connect(root / "output" / "ledger.sqlite")) as ledger:
        query = "SELECT step, count(*) FROM calls WHERE version = ? GROUP BY step"
        return Counter(dict(ledger.execute(query, (version,)).fetchall()))


def holdings(root: Path) -> set[str]:
    """What each community holds that is worth a report."""
    said = {
        row["id"]: json.dumps([row[name] for name in ("title", "type", "description")])
        for row in read_table(root, "entities").iter_rows(named=True)
    }
    links = read_table(root, "relationships").select("id", "description", "type", "weight").rows()
    said |= {row[0]: json.dumps(row) for row in links}
    claims = read_table(root, "covariates").drop("human_readable_id", "text_unit_id", "id")
    by_name = claims.rows_by_key("subject_id")
    titles = dict(read_table(root, "entities").select("id", "title").rows())
    return {
        json.dumps(
            [
                sorted(said[one] for one in (*row["entity_ids"], *row["relationship_ids"])),
                sorted(str(by_name.get(titles[one])) for one in row["entity_ids"]),
            ]
        )
        for row in read_table(root, "communities").filter(~pl.col("island")).iter_rows(named=True)
    }


def test_only_what_a_document_touches_is_asked_again_and_nothing_of_it_stays_behind(
    tmp_path: Path, server: Server
) -> None:
    root = write_project(tmp_path / "updated", server)
    first = index(root)
    before = holdings(root)
    assert first["create_community_reports"] == len(before) > 5
    # The first of all: every number of the index is another.
    (root / "input" / "aaa.md").write_text(OTHER, encoding="utf-8")
    second = index(root, ALL)
    assert second["extract_graph"] == second["extract_covariates"] == 1
    assert second["summarize_descriptions"] <= 5
    assert "Ilse Quandt" in read_table(root, "entities")["title"][:5].to_list()
    new = holdings(root) - before
    assert second["create_community_reports"] == len(new) < len(before) / 2
    assert "Quandt" in str(read_table(root, "community_reports").rows())
    # Deleted, it is in no report, however much may change before these are written again.
    (root / "input" / "aaa.md").unlink()
    third = index(root, NONE)
    assert third["create_community_reports"] < len(before)
    for name in ("community_reports", "report_evidence"):
        assert "Quandt" not in str(read_table(root, name).rows())
    # Made anew, nothing tells what was there before, not even where nothing is asked.
    index(root, ANEW)
    clean = write_project(tmp_path / "clean", server)
    index(clean, ANEW)
    assert read_files(root) == read_files(clean)
