"""Documents in a bucket, fetched to this machine."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_index.errors import InputError
from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.readers.input_files import find_files
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.settings.step_sections import LoadDocuments
from graphrag_index.steps.load_documents import load_documents
from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.fetched_folder import fetch_folder
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
    Bucket(address)._store.put("image.png", b"x")
    for include, message in (
        (["*.txt"], r"The only file in s3://bucket-\d+/base could not be read"),
        (["*e", "image*"], r"The input folder s3://bucket-\d+/base has no file of a type"),
        (["*.md"], r"No file in the input folder s3://bucket-\d+/base matches"),
    ):
        fetch_folder.cache_clear()
        settings = Settings(load_documents=LoadDocuments(folder=address, include=include))
        with pytest.raises(InputError, match=message):
            run_workflow(Workflow("w", (load_documents,)), settings, tmp_path, {})
