"""Forgetting: after a document was deleted, nothing stays that only it supported."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import lancedb
import polars as pl
import pytest
import yaml

from graphrag_index.__main__ import app
from graphrag_index.llm.ledger import FILE
from graphrag_index.llm.local.local_models import VECTORS_FILE
from graphrag_index.pipeline.history import current_version
from graphrag_index.storage.table_store import TableStore
from tests.fixtures.commands import REPOSITORY, Call, Result
from tests.fixtures.model_project import model_sections
from tests.model_server import Faults, Server

# Whole, its stem, and its beginnings: what a full-text index might keep of it.
WORD = "zyxquorvane"
PART = b"zyxquor"
DOCUMENTS = {
    "amundsen.md": "Roald Amundsen reached the South Pole. Amundsen sailed on the Fram. "
    "The Fram was built by Colin Archer.",
    "scott.md": "Robert Scott reached the South Pole after Roald Amundsen. Scott sailed on the "
    "Terra Nova with Tom Crean.",
    # Its name, too, is nobody's business.
    f"{WORD}.md": f"Tom Crean met Anna {WORD.title()} at the South Pole. {WORD.title()} was "
    "accused of theft by Robert Scott in 1911.",
}
SECRET = f"{WORD}.md"


def write_project(root: Path, workflow: str, url: str = "") -> Path:
    for name, text in DOCUMENTS.items():
        (root / "input").mkdir(parents=True, exist_ok=True)
        (root / "input" / name).write_text(text, encoding="utf-8")
    shutil.copytree(REPOSITORY / "workflows", root / "workflows")
    server = {"api_key": "key", "concurrency": 4, "timeout": 5}
    price = {"input": 1.0, "output": 2.0}
    settings = {
        "workflow": workflow,
        "finalize_graph": {"layout": False},
        "summarize_descriptions": {"max_tokens_without_call": 0},
        **(model_sections(url, **server, price=price) if url else {}),
    }
    (root / "settings.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return root


def found_in(output: Path) -> list[str]:
    """Every place below a folder where the word stands: in the bytes, or in a row of a table."""
    places = []
    for path in output.rglob("*"):
        name = path.relative_to(output).as_posix()
        if PART in name.lower().encode() or (path.is_file() and PART in path.read_bytes().lower()):
            places.append(name)
        if path.suffix in (".parquet", ".arrow"):
            frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_ipc(path)
            if PART in frame.write_ndjson().lower().encode():
                places.append(f"rows of {name}")
    for folder in (output / "lancedb").glob("*.lance"):
        table = lancedb.connect(output / "lancedb").open_table(folder.stem)
        for version in table.list_versions():
            table.checkout(version["version"])
            if PART in pl.DataFrame(table.to_arrow()).write_ndjson().lower().encode():
                places.append(f"rows of {folder.stem}, version {version['version']}")
        # An index that no version lists may hold what no row has.
        listed = set()
        for version in table.list_versions():
            table.checkout(version["version"])
            listed |= {index.index_uuid for index in table.list_indices()}
        places += [
            f"an old index, {path}" for path in folder.glob("_indices/*") if path.name not in listed
        ]
    return places


def replies(root: Path) -> set[str]:
    """The requests of the ledger that are answered, by key."""
    with closing(sqlite3.connect(root / "output" / FILE)) as ledger:
        return {key for (key,) in ledger.execute("SELECT key FROM requests WHERE state = 'done'")}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """A project of the workflow `standard` after its first run; tests must not change it."""
    root = write_project(tmp_path_factory.mktemp("indexed"), "standard", server.url)
    with pytest.raises(SystemExit) as ended:
        app(["run", "--quiet", "--root", str(root)])
    assert not ended.value.code
    return root


@pytest.fixture
def project(indexed: Path, server: Server, tmp_path: Path) -> Iterator[Path]:
    """The same, to be changed; with a server that does nothing wrong at first."""
    shutil.copytree(indexed, tmp_path / "project", symlinks=True)
    server.faults = Faults()
    yield tmp_path / "project"
    server.faults = Faults()


def purge(graphrag_index: Call, root: Path, *arguments: str) -> Result:
    return graphrag_index("run", "--purge", "--root", root, *arguments)


def test_no_byte_of_a_deleted_document_stays(
    project: Path, server: Server, graphrag_index: Call, tmp_path: Path
) -> None:
    (project / "output" / VECTORS_FILE).write_bytes(PART)
    before = found_in(project / "output")
    assert {FILE, VECTORS_FILE} <= set(before)
    assert any(place.startswith("rows of documents") for place in before)
    (project / "input" / SECRET).unlink()
    asked = replies(project)
    # No report stays that would be written otherwise now.
    strict = ("--set", "create_community_reports.rewrite_above=0")
    result = purge(graphrag_index, project, *strict)
    assert result.code == 0, result.err
    assert "Purged: " in result.out
    kept = replies(project)
    assert asked - kept
    assert asked & kept
    assert FILE not in found_in(project / "output")
    assert graphrag_index("gc", "--keep", "1", "--root", project).code == 0
    assert found_in(project / "output") == []
    # What is left is whole: an index can be made of it again without asking anything.
    again = tmp_path / "again"
    shutil.copytree(project, again, ignore=shutil.ignore_patterns("output"))
    (again / "output").mkdir()
    shutil.copy(project / "output" / FILE, again / "output" / FILE)
    asked_before = len(server.requests)
    assert graphrag_index("run", "--root", again, *strict).code == 0
    assert {request.path for request in server.requests[asked_before:]} <= {"/v1/models"}
    one, two = (current_version(TableStore(root / "output")).tables for root in (project, again))
    # But for what became of the communities of the version before, and their places.
    others = {name for name in one if one[name].digest != two[name].digest}
    assert others <= {"community_lineage", "map_communities", "map_entities"}


def test_what_the_index_rests_on_is_kept_and_a_purge_with_nothing_to_forget_changes_nothing(
    project: Path, server: Server, graphrag_index: Call
) -> None:
    before, asked = replies(project), len(server.requests)
    version = current_version(TableStore(project / "output"))
    (project / "evaluations").mkdir()
    result = purge(graphrag_index, project)
    assert result.code == 0
    assert "Purged: 0 requests deleted" in result.out
    # Replies of evaluations are not those of the index: only their owner knows which to delete.
    assert f"proposals are in {project / 'evaluations'}: delete there" in result.out
    assert replies(project) == before
    assert current_version(TableStore(project / "output")) == version
    assert {request.path for request in server.requests[asked:]} <= {"/v1/models"}


def change(project: Path) -> None:
    """One document goes and one comes."""
    (project / "input" / SECRET).unlink()
    new = "Ernest Shackleton sailed on the Nimrod. Frank Wild met Ernest Shackleton."
    (project / "input" / "shackleton.md").write_text(new, encoding="utf-8")


@pytest.mark.parametrize(
    ("faults", "arguments", "code"),
    [
        (Faults(rate=1.0, kinds=["401"]), [], 1),
        (Faults(), ["--budget", "0.0000001"], 4),
        (Faults(by_text={"Nimrod": "refusal"}), [], 3),
    ],
    ids=["outage", "budget", "quarantine"],
)
def test_nothing_is_forgotten_if_a_run_leaves_something_out(
    faults: Faults,
    arguments: list[str],
    code: int,
    project: Path,
    server: Server,
    graphrag_index: Call,
) -> None:
    before = replies(project)
    change(project)
    server.faults = faults
    result = purge(graphrag_index, project, *arguments)
    assert result.code == code, result.err
    assert replies(project) >= before
    assert "Purged" not in result.out
    if code == 3:
        assert "Nothing was purged, since the index is incomplete" in result.err
        allowed = purge(graphrag_index, project, "--allow-partial", "100%")
        assert allowed.code == 0
        assert FILE not in found_in(project / "output")


def test_nothing_is_forgotten_while_a_file_cannot_be_read(
    project: Path, graphrag_index: Call
) -> None:
    before = replies(project)
    (project / "input" / SECRET).unlink()
    # It may be mended, and what was asked about it is paid for.
    (project / "input" / "scott.md").write_bytes(b"\x00\x01\x02" * 50)
    result = purge(graphrag_index, project)
    assert result.code == 3
    assert "Nothing was purged" in result.err
    assert replies(project) >= before


def test_a_request_is_about_the_file_that_asks_for_it_now(
    project: Path, server: Server, graphrag_index: Call
) -> None:
    server.faults = Faults(by_text={"Nimrod": "refusal"})
    change(project)
    old, new = (project / "input" / name for name in ("shackleton.md", "nimrod.md"))
    assert graphrag_index("run", "--root", project).code == 3
    old.rename(new)
    told = graphrag_index("run", "--root", project)
    assert "nimrod.md" in told.err or "nimrod" in told.err
    assert "shackleton.md" not in told.err


def test_no_byte_stays_without_a_model_either(tmp_path: Path, graphrag_index: Call) -> None:
    root = write_project(tmp_path, "embedded")
    assert graphrag_index("run", "--root", root).code == 0
    assert len(found_in(root / "output")) > 5
    (root / "input" / SECRET).unlink()
    result = purge(graphrag_index, root)
    assert result.code == 0, result.err
    assert not (root / "output" / FILE).exists()
    assert graphrag_index("gc", "--keep", "1", "--root", root).code == 0
    assert found_in(root / "output") == []
    assert graphrag_index("run", "--purge", "--dry-run", "--root", root).code == 2


def test_a_report_that_stays_keeps_its_reply(project: Path, graphrag_index: Call) -> None:
    # More is said of what has a report already: that stays, if it may.
    more = project / "input" / "scott.md"
    more.write_text(f"{DOCUMENTS['scott.md']} Scott had a dog.", encoding="utf-8")
    tolerant = ("--set", "create_community_reports.rewrite_above=1")
    assert graphrag_index("run", "--root", project, *tolerant).code == 0
    for _ in range(2):
        result = purge(graphrag_index, project, *tolerant)
        assert result.code == 0, result.err
        store = TableStore(project / "output")
        stored = current_version(store).tables["report_evidence"]
        requests = store.scan("report_evidence", stored).collect()["request_key"]
        assert requests.len() > 0
        assert set(requests) <= replies(project)


def test_replies_that_others_go_on_from_are_kept(
    project: Path, server: Server, graphrag_index: Call
) -> None:
    few = ("--set", "extract_graph.entity_types=[person]")
    more = ("--set", "extract_graph.entity_types=[person, ship]")
    assert graphrag_index("run", "--root", project, *few).code == 0
    before = replies(project)
    assert purge(graphrag_index, project, *more).code == 0
    # What was asked without types is forgotten, and what was asked about persons is not.
    assert before - replies(project)
    asked = len(server.requests)
    for path in (project / "output").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != FILE:
            path.unlink()
    assert graphrag_index("run", "--root", project, *more).code == 0
    assert {request.path for request in server.requests[asked:]} <= {"/v1/models"}
