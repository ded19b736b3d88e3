"""Documents in a bucket, fetched to this machine."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from graphrag_index.errors import InputError, TableError
from graphrag_index.llm.ledger import DONE, FILE, OPEN, Ledger
from graphrag_index.llm.request import Usage
from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import Workflow, make_services
from graphrag_index.readers.input_files import find_files
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.steps.load_documents import load_documents
from graphrag_index.storage.bucket import Bucket, fetch_folder
from graphrag_index.storage.working_copy import copy_ledger, merge_ledger
from tests.fixtures.object_server import FaultyProxy, new_bucket, set_credentials


@pytest.fixture
def proxy(server: str) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(server)
    yield proxy
    proxy.close()


@pytest.fixture
def address(
    server: str, proxy: FaultyProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    set_credentials(monkeypatch)
    monkeypatch.setenv("GRAPHRAG_INDEX_CACHE", str(tmp_path))
    return new_bucket(server).replace(server, proxy.address)


def put(address: str, **contents: str) -> None:
    bucket = Bucket(address)
    for name, content in contents.items():
        bucket._store.put(f"{name.replace('__', '/')}.txt", content.encode())


def fetched(address: str) -> dict[str, str]:
    fetch_folder.cache_clear()
    folder = fetch_folder(address)
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def test_new_changed_and_deleted_objects_are_followed(address: str, proxy: FaultyProxy) -> None:
    put(address, a="one", folder__b="two")
    assert fetched(address) == {"a.txt": "one", "folder/b.txt": "two"}
    assert [file.name for file in find_files(LoadDocuments(folder=address), Path())] == [
        "a.txt",
        "folder/b.txt",
    ]
    put(address, a="new", c="three")
    Bucket(address).delete(["folder/b.txt"])
    proxy.requests.clear()
    assert fetched(address) == {"a.txt": "new", "c.txt": "three"}
    assert {path.rpartition("/")[2] for _, path in proxy.requests if "list-type" not in path} == {
        "a.txt",
        "c.txt",
    }


def test_a_fetch_that_was_interrupted_is_taken_up(address: str, proxy: FaultyProxy) -> None:
    put(address, a="one", b="two")
    assert fetched(address)
    put(address, a="new", b="newer")
    proxy.faults += [("GET", "/b.txt", 403)]
    with pytest.raises(Exception, match="check the credentials"):
        fetched(address)
    assert fetched(address) == {"a.txt": "new", "b.txt": "newer"}


def test_a_folder_without_objects_is_told(address: str) -> None:
    with pytest.raises(InputError, match="There is no document in s3://bucket-"):
        fetched(address)


def test_documents_that_cannot_be_read_are_told_with_their_address(
    address: str, tmp_path: Path
) -> None:
    put(address, a="")
    Bucket(address)._store.put("image.gif", b"x")
    for include, message in (
        (["*.txt"], r"The only file in s3://bucket-\d+/base could not be read"),
        (["*e", "image*"], r"The input folder s3://bucket-\d+/base has no file of a type"),
        (["*.md"], r"No file in the input folder s3://bucket-\d+/base matches"),
    ):
        fetch_folder.cache_clear()
        settings = Settings(load_documents=LoadDocuments(folder=address, include=include))
        services = make_services(settings, None, tmp_path)
        with pytest.raises(InputError, match=message):
            run_workflow(Workflow("w", (load_documents,)), settings, tmp_path, services)


def write(folder: Path, replies: dict[str, str | None]) -> Path:
    """Write requests with their replies, each of one call; None: no reply yet."""
    with closing(Ledger(folder, 1)) as ledger:
        for key, reply in replies.items():
            ledger.record_sent(key, "step", f"unit {key}", "model")
            if reply is not None:
                ledger.record_call(key, "step", "model", Usage(10, 0, 5), 0.5)
                ledger.record_replies({key: reply})
    return folder / FILE


def replies_of(folder: Path) -> dict[str, tuple[str, str]]:
    query = "SELECT key, state, cast(coalesce(reply, '') AS TEXT) FROM requests"
    with closing(Ledger(folder, read_only=True)) as ledger:
        return {key: (state, reply) for key, state, reply in ledger.fetch_rows(query)}


def test_a_copy_has_all_that_is_written(tmp_path: Path) -> None:
    path = write(tmp_path / "a", {"x": "one", "y": None})
    (tmp_path / "b").mkdir()
    # The ledger is open, and its last rows are in its write-ahead log.
    with closing(Ledger(tmp_path / "a", 1)) as ledger, copy_ledger(path) as snapshot:
        assert ledger.find_entry("x") is not None
        snapshot.rename(tmp_path / "b" / FILE)
    assert replies_of(tmp_path / "b") == {"x": (DONE, "one"), "y": (OPEN, "")}
    assert not list((tmp_path / "a").glob("*.tmp"))


def test_replies_that_a_ledger_lacks_are_added(tmp_path: Path) -> None:
    ours = write(tmp_path / "ours", {"x": "one", "y": None, "z": "ours"})
    theirs = write(tmp_path / "theirs", {"w": "new", "y": "two", "z": "theirs", "v": None})
    for _ in range(2):
        merge_ledger(theirs, ours)
    assert replies_of(tmp_path / "ours") == {
        **{"w": (DONE, "new"), "x": (DONE, "one"), "y": (DONE, "two")},
        **{"z": (DONE, "ours"), "v": (OPEN, "")},
    }
    with closing(Ledger(tmp_path / "ours", read_only=True)) as ledger:
        # The calls of x, y, z and w, each once.
        assert ledger.fetch_rows("SELECT count(*), sum(cost) FROM calls") == [(4, 2.0)]


def test_a_missing_ledger_becomes_a_copy(tmp_path: Path) -> None:
    theirs = write(tmp_path / "theirs", {"w": "new"})
    (tmp_path / "ours").mkdir()
    merge_ledger(theirs, tmp_path / "ours" / FILE)
    assert replies_of(tmp_path / "ours") == {"w": (DONE, "new")}
    assert theirs.exists()


def test_a_damaged_ledger_is_told(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(b"no database" * 100)
    with pytest.raises(TableError, match=r"ledger\.sqlite cannot be copied"), copy_ledger(path):
        pass
    theirs = write(tmp_path / "theirs", {"w": "new"})
    with pytest.raises(TableError, match="replies of a bucket cannot be added"):
        merge_ledger(theirs, path)
