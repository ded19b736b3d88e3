import importlib.util
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local.local_models import (
    MINILM,
    EmbeddingModel,
    VectorCache,
    check_embedding_model,
    delete_vector_cache,
    download_model,
    load_embedding_model,
    model_folder,
)
from graphrag_index.llm.local.onnx_model import GRAPH_FILE, WEIGHTS_FILE
from tests.conftest import REPOSITORY
from tests.fixtures.examples import examples

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


@pytest.mark.parametrize("n_words", [1, 2, 5, 14, 62])
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

    shipped = files("graphrag_index.llm.local").joinpath(GRAPH_FILE).read_bytes()
    built = sentence_transformer(model_folder() / WEIGHTS_FILE)
    assert onnx.load_model_from_string(shipped) == built


class LengthModel:
    """A model whose vector of a text is its length and 1; remembers what it embedded."""

    name, dimension = "length", 2

    def __init__(self, version: str = "1") -> None:
        self.identity: tuple[str, int | None] = (f"length {version}", None)
        self.embedded: list[str] = []

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> npt.NDArray[np.float32]:
        self.embedded += texts
        return np.array([[len(text), 1] for text in texts], np.float32)


def test_a_passage_is_embedded_once_for_each_model(tmp_path: Path) -> None:
    model, other = LengthModel(), LengthModel("2")
    for _ in range(2):
        vectors = VectorCache(tmp_path / "v")
        assert vectors.embed(model, ["a", "bb", "a"]).tolist() == [[1, 1], [2, 1], [1, 1]]
        assert vectors.embed(other, ["bb"]).tolist() == [[2, 1]]
        vectors.close()
    assert (model.embedded, other.embedded) == (["a", "bb"], ["bb"])


@pytest.mark.parametrize("content", [None, b"no database, but many other bytes " * 100])
def test_vectors_are_kept_in_memory_where_no_file_can_be_used(
    content: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "missing" / "v"
    if content is not None:
        path.parent.mkdir()
        path.write_bytes(content)
    model, vectors = LengthModel(), VectorCache(path)
    for _ in range(2):
        assert vectors.embed(model, ["a"]).tolist() == [[1, 1]]
    vectors.close()
    assert model.embedded == ["a"]
    assert (path.read_bytes() if path.exists() else None) == content


def test_the_vector_cache_can_be_deleted(tmp_path: Path) -> None:
    vectors = VectorCache(tmp_path / "rerank_vectors.sqlite")
    vectors.embed(LengthModel(), ["a"])
    vectors.close()
    for _ in range(2):
        delete_vector_cache(tmp_path)
        assert not list(tmp_path.iterdir())


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        SettingsError, match=r"'word2vec': it is none of static, all-MiniLM-L6-v2, and no name in "
    ):
        load_embedding_model("word2vec")


def test_importing_the_module_imports_nothing_heavy() -> None:
    code = (
        "import sys, graphrag_index.llm.local.local_models\n"
        "print([m for m in ('numpy', 'onnxruntime', 'tokenizers', 'tiktoken') if m in sys.modules])"
    )
    python = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert python.stdout.strip() == "[]"


def test_a_missing_model_is_one_sentence_with_the_command_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHRAG_INDEX_CACHE", str(tmp_path))
    with pytest.raises(ModelError) as raised:
        load_embedding_model(MINILM.model)
    assert str(raised.value) == (
        "The embedding model all-MiniLM-L6-v2 is not on this machine: "
        "fetch it once with `graphrag-index download-model`."
    )


def test_a_missing_library_is_one_sentence_with_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else found(name)
    )
    with pytest.raises(ModelError) as raised:
        check_embedding_model(MINILM.model)
    assert str(raised.value).startswith(
        f"The embedding model {MINILM.model} needs the library onnxruntime"
    )
    assert str(raised.value).endswith('`pip install "graphrag-index[minilm]"`.')
