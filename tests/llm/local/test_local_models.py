import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local.local_models import check_embedding_model, load_embedding_model
from graphrag_index.llm.local.model_package import MINILM
from tests.fixtures.own_models import write_own_model

REPOSITORY = Path(__file__).parents[3]


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
