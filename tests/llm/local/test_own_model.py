"""Embedding models of a user: what they compute, and what is refused in one sentence."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphrag_index.errors import GraphRAGError, ModelError, SettingsError
from graphrag_index.llm.local.local_models import (
    MINILM,
    check_embedding_model,
    find_vector_identity,
    load_embedding_model,
)
from graphrag_index.schema.settings.project_settings import parse_settings
from tests.fixtures.own_models import (
    TABLE,
    describe_files,
    write_graph,
    write_own_model,
    write_own_table,
)

R2 = 0.5**0.5
REPOSITORY = Path(__file__).parents[3]


def identity(root: Path) -> tuple[str, int | None]:
    settings = parse_settings({"generate_text_embeddings": {"model": "models/mine"}})
    return find_vector_identity(settings, root)


@pytest.mark.parametrize(
    ("pooling", "vector"), [("mean", [R2, R2, 0, 0]), ("cls", [1, 0, 0, 0]), ("last", [0, 1, 0, 0])]
)
def test_the_vectors_of_tokens_are_pooled(
    tmp_path: Path, pooling: str, vector: list[float]
) -> None:
    write_own_model(tmp_path / "models/mine", pooling=pooling)
    model = load_embedding_model("models/mine", tmp_path)
    # Texts of other lengths in the same call change nothing.
    found = model.embed(["coal", "ice ship", "ice ice ship ship coal"])
    assert found.dtype == np.float32
    assert found[1].tolist() == pytest.approx(vector)
    assert (model.name, model.dimension) == ("models/mine", 4)


def test_a_graph_may_pool_itself(tmp_path: Path) -> None:
    write_own_model(tmp_path / "mine", n_axes=2, pooling="none")
    assert load_embedding_model("mine", tmp_path).embed(["ice ship"])[0].tolist() == pytest.approx(
        [R2, R2, 0, 0]
    )


def test_questions_and_passages_have_their_prefixes(tmp_path: Path) -> None:
    write_own_model(
        tmp_path / "mine", pooling="cls", query_prefix="query: ", passage_prefix="passage: "
    )
    model = load_embedding_model("mine", tmp_path)
    assert model.embed(["ice"]).tolist() == [[0, 0, 0, 1]]
    assert model.embed(["ice"], are_queries=True)[0].tolist() == pytest.approx([0, 0, 0.8, 0.6])


def test_a_long_text_is_cut_and_an_empty_text_has_a_vector(tmp_path: Path) -> None:
    write_own_model(tmp_path / "mine", pooling="last", max_tokens=2)
    vectors = load_embedding_model("mine", tmp_path).embed(["ice ship coal", "", "ice \ud800"])
    assert vectors.tolist() == [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]]


def test_a_static_model_of_model2vec_is_the_weighted_mean_of_known_tokens(tmp_path: Path) -> None:
    folder = write_own_table(tmp_path / "mine")
    model = load_embedding_model("mine", tmp_path)
    found = model.embed(["ice ship unknown", "unknown", "ship " * 600 + "ice"])
    expected = [[R2, R2, 0, 0], [0, 0, 0, 1], [1 / 600, 1, 0, 0]]
    assert found == pytest.approx(np.array(expected), abs=2e-6)
    write_own_table(folder, weights=np.array([1, 1, 1, 3, 4, 0], "<f4"))
    model = load_embedding_model("mine", tmp_path)
    assert model.embed(["coal ice ship"])[0].tolist() == pytest.approx([0.6, 0.8, 0, 0])
    describe_files(folder, query_prefix="coal ", passage_prefix="ship ")
    model = load_embedding_model("mine", tmp_path)
    assert model.embed(["ice"])[0].tolist() == pytest.approx([0.6, 0.8, 0, 0])


@pytest.mark.parametrize("dtype", ["<f2", "<f8", "|i1"])
def test_a_table_may_have_other_numbers(tmp_path: Path, dtype: str) -> None:
    write_own_table(tmp_path / "mine", embeddings=TABLE.astype(dtype))
    found = load_embedding_model("mine", tmp_path).embed(["ice ship"])
    assert found[0].tolist() == pytest.approx([R2, R2, 0, 0])


def test_the_identity_is_that_of_the_settings_and_of_the_files(tmp_path: Path) -> None:
    folder = write_own_model(tmp_path / "models/mine")
    first = identity(tmp_path)
    assert first == load_embedding_model("models/mine", tmp_path).identity
    assert first[0].startswith("mine ")
    # The same model elsewhere is the same model.
    shutil.copytree(folder, tmp_path / "elsewhere/models/mine")
    assert identity(tmp_path / "elsewhere") == first
    identities = {first}
    for change in ({"query_prefix": "query: "}, {"pooling": "cls"}, {"max_tokens": 9}):
        describe_files(folder, **change)
        identities.add(identity(tmp_path))
    write_graph(folder / "model.onnx", ("input_ids",))
    describe_files(folder)
    identities.add(identity(tmp_path))
    shutil.rmtree(folder)
    write_own_table(folder)
    identities.add(identity(tmp_path))
    write_own_table(folder, embeddings=TABLE + 1)
    identities.add(identity(tmp_path))
    assert len(identities) == 7


def spoil(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def spoil_and_describe(name: str, content: bytes, **description: Any) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(content)
        describe_files(folder, **description)

    return change


def with_graph(n_axes: int = 3, *inputs: str, **description: Any) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        write_graph(folder / "model.onnx", inputs or ("input_ids",), n_axes)
        describe_files(folder, **description)

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda folder: describe_files(folder, pooling="max"),
            r"FOLDER/embedding\.yaml: pooling is 'max': input should be 'mean', 'cls', .*",
        ),
        (
            lambda folder: describe_files(folder, poolin="max"),
            r"FOLDER/embedding\.yaml: unknown key 'poolin'; did you mean 'pooling'\?",
        ),
        (spoil("embedding.yaml", b"a: b: c"), r"FOLDER/embedding\.yaml is not valid YAML: .*"),
        (
            lambda folder: describe_files(folder, dimensions=3),
            r"FOLDER/model\.onnx gives vectors of 4 numbers, and FOLDER/embedding\.yaml says 3\.",
        ),
        (
            spoil("tokenizer.json", b"{}"),
            r"FOLDER/tokenizer\.json is not the file that FOLDER/embedding\.yaml describes: its "
            r"sha256 should be [0-9a-f]{64} and is [0-9a-f]{64}\.",
        ),
        (
            lambda folder: describe_files(folder, sha256={}),
            r"FOLDER/embedding\.yaml: sha256 has no hash of model\.onnx; the hash of the file is "
            r"[0-9a-f]{64}\.",
        ),
        (
            spoil("model.onnx_data", b"weights"),
            r"FOLDER/embedding\.yaml: sha256 has no hash of model\.onnx_data; the hash of .*",
        ),
        (
            lambda folder: (folder / "tokenizer.json").unlink(),
            r"FOLDER has no tokenizer\.json, which the embedding model needs\.",
        ),
        (
            lambda folder: (folder / "embedding.yaml").unlink(),
            r"FOLDER has no embedding\.yaml, which says how model\.onnx makes vectors: docs/.*",
        ),
        (
            lambda folder: (folder / "model.onnx").unlink(),
            r"FOLDER has no model\.onnx and no file \*\.safetensors: an embedding model has .*",
        ),
        (
            with_graph(3, "pixels"),
            r"FOLDER/model\.onnx has the input pixels, which is not known; known: input_ids, .*",
        ),
        (
            with_graph(2),
            r"FOLDER/model\.onnx has no output for the pooling mean, which needs one with 3 axes; "
            r"it has: sums with 2\.",
        ),
        (
            with_graph(2, pooling="none", normalize=False),
            r"FOLDER/model\.onnx gives vectors of length \S+ instead of 1: set normalize to true\.",
        ),
        (
            spoil_and_describe("model.onnx", b"no graph"),
            r"onnxruntime cannot load FOLDER/model\.onnx: .*",
        ),
        (
            spoil_and_describe("tokenizer.json", b"{}"),
            r"FOLDER/tokenizer\.json, the tokenizer of the embedding model mine, cannot be .*",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    tmp_path: Path, change: Callable[[Path], object], sentence: str
) -> None:
    folder = write_own_model(tmp_path / "mine")
    change(folder)
    with pytest.raises(GraphRAGError, match=f"^{sentence.replace('FOLDER', str(folder))}$"):
        check_embedding_model("mine", tmp_path)


@pytest.mark.parametrize(
    ("tensors", "description", "sentence"),
    [
        (
            {"embeddings": TABLE[:3]},
            {},
            r"FILE has embeddings of the shape \(3, 4\) and weights of the shape \(3,\), which do "
            r"not fit the 6 tokens of .*/tokenizer\.json\.",
        ),
        (
            {"weights": TABLE[0]},
            {},
            r"FILE has embeddings of the shape \(6, 4\) and weights of the shape \(4,\), which .*",
        ),
        (
            {"mapping": TABLE[0]},
            {},
            r"FILE has the tensors embeddings, mapping: a static model has embeddings and, .*",
        ),
        ({}, {"pooling": "cls"}, r"FILE is a static model, which has no pooling cls: set .*"),
        ({}, {"dimensions": 9}, r"FILE gives vectors of 4 numbers, and .*embedding.yaml says 9\."),
    ],
)
def test_a_table_that_is_wrong_is_one_sentence(
    tmp_path: Path, tensors: Any, description: Any, sentence: str
) -> None:
    folder = describe_files(write_own_table(tmp_path / "mine", **tensors), **description)
    path = str(folder / "model.safetensors")
    with pytest.raises(ModelError, match=f"^{sentence.replace('FILE', path)}$"):
        check_embedding_model("mine", tmp_path)


def test_two_tables_are_refused(tmp_path: Path) -> None:
    folder = write_own_table(tmp_path / "mine")
    shutil.copy(folder / "model.safetensors", folder / "other.safetensors")
    with pytest.raises(ModelError, match=r"has no model\.onnx and 2 files \*\.safetensors: an "):
        load_embedding_model("mine", tmp_path)


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        SettingsError, match=r"'word2vec': it is none of static, all-MiniLM-L6-v2, no name in "
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


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "mine"])
def test_a_missing_library_is_one_sentence_with_the_extra_that_brings_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_own_model(tmp_path / "mine")
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxruntime" else found(name)
    )
    with pytest.raises(ModelError) as raised:
        check_embedding_model(name, tmp_path)
    assert str(raised.value).startswith(f"The embedding model {name} needs the library onnxruntime")
    assert str(raised.value).endswith('`pip install "graphrag-index[minilm]"`.')
