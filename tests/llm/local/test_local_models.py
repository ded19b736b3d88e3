import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local.local_models import load_embedding_model
from graphrag_index.llm.local.model_package import MINILM

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
