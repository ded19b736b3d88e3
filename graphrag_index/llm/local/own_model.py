"""Embedding models of the user: a folder with an ONNX graph, or with a static table.

A folder with `model.onnx` holds a sentence transformer, described by `embedding.yaml`. Any other
folder holds a static model as model2vec writes it: one safetensors file, whose tensor `embeddings`
has a row for each token of the tokenizer, and whose optional tensor `weights` has the weights of
the tokens. Both need `tokenizer.json`.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local.onnx_model import TOKENIZER_FILE, OnnxFiles, OnnxModel, Pooling
from graphrag_index.llm.local.static_model import StaticModel, read_safetensors
from graphrag_index.llm.local.word_pieces import check_libraries, encode_texts, open_tokenizer
from graphrag_index.schema.settings.section import (
    Section,
    describe_validation_error,
    read_settings_yaml,
    read_text_file,
    setting,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DESCRIPTION_FILE = "embedding.yaml"
GRAPH_FILE = "model.onnx"

Description = TypeVar("Description", bound=Section)


class ModelDescription(Section):
    """The file `embedding.yaml`: how the vectors of a text are made."""

    pooling: Pooling = setting(
        "mean",
        "The vector of a text: the mean of the vectors of its tokens, that of the first (cls) or "
        "the last token; none: the graph returns one vector per text.",
    )
    query_prefix: str = setting("", "Text before each question, such as 'query: '.")
    passage_prefix: str = setting("", "Text before each passage, such as 'passage: '.")
    max_tokens: int = setting(
        512, "Longest text in tokens; the rest is ignored. A static model reads all.", ge=1
    )
    dimensions: int | None = setting(None, "Dimension of the vectors; null: that of the model.")
    normalize: bool = setting(True, "Scale vectors to length 1; false: they have length 1 already.")
    sha256: dict[str, str] = setting({}, "Hash of each file of the model, by its name.")


@dataclass(frozen=True)
class ModelFolder:
    """A folder with a model: its description, and the files that the vectors depend on."""

    folder: Path
    description: ModelDescription
    # Path of the ONNX graph or of the static table.
    model: Path
    # File name → sha256, as the description says or, if it says nothing, of the file.
    hashes: Mapping[str, str]

    @property
    def identity(self) -> tuple[str, int | None]:
        """The name of the folder, with a hash of the description and of the files."""
        parts = self.description.model_dump(exclude={"sha256"}) | {"files": dict(self.hashes)}
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        return f"{self.folder.name} {digest[:8]}", None


class OwnModel:
    """A model of the user, which puts the prefix of the description before each text."""

    def __init__(self, name: str, found: ModelFolder, model: StaticModel | OnnxModel) -> None:
        self.name = name
        self.identity = found.identity
        self.dimension = model.dimension
        self._description, self._model = found.description, model

    def embed(
        self,
        texts: Sequence[str],
        advance: Callable[[int], None] | None = None,
        *,
        are_queries: bool = False,
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text: an array of shape (texts, dimension)."""
        description = self._description
        prefix = description.query_prefix if are_queries else description.passage_prefix
        return self._model.embed([prefix + text for text in texts] if prefix else texts, advance)


def read_model_folder(folder: Path) -> ModelFolder:
    """Read the description of a model, and the hashes of its files.

    Hashes that the description of a static model leaves out are computed. Raises `SettingsError`
    if the description is invalid, and `ModelError` if a file is missing.
    """
    graph = folder / GRAPH_FILE
    tables = sorted(folder.glob("*.safetensors"))
    if not graph.is_file() and len(tables) != 1:
        found = f"{len(tables)} files" if tables else "no file"
        raise ModelError(
            f"{folder} has no {GRAPH_FILE} and {found} *.safetensors: an embedding model "
            "has either the one file or the other."
        )
    path = folder / DESCRIPTION_FILE
    text = read_text_file(path)
    if text is None and graph.is_file():
        raise ModelError(
            f"{folder} has no {DESCRIPTION_FILE}, which says how {GRAPH_FILE} makes vectors: "
            "docs/embedding-models.md shows one."
        )
    description = parse_description(text or "", path, ModelDescription)
    model = graph if graph.is_file() else tables[0]
    # The weights of a large graph lie in further files.
    names = {model.name, TOKENIZER_FILE, *description.sha256}
    if graph.is_file():
        names |= {file.name for file in folder.glob("*.onnx*")}
    for name in sorted(names):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} has no {name}, which the embedding model needs.")
    if graph.is_file() and (missing := sorted(names - description.sha256.keys())):
        raise SettingsError(
            f"{path}: sha256 has no hash of {missing[0]}; the hash of the file is "
            f"{_hash_file(folder / missing[0])}."
        )
    hashes = {name: description.sha256.get(name) or _hash_file(folder / name) for name in names}
    return ModelFolder(folder, description, model, hashes)


def load_own_model(name: str, folder: Path) -> OwnModel:
    """Load the model in a folder, and check that its files are those of the description."""
    found = read_model_folder(folder)
    description = found.description
    check_hashes(folder / DESCRIPTION_FILE, description.sha256)
    if found.model.name == GRAPH_FILE:
        check_libraries(f"embedding model {name}", "onnxruntime", "tokenizers")
        model: StaticModel | OnnxModel = OnnxModel(
            name,
            found.identity,
            OnnxFiles(
                found.model,
                folder / TOKENIZER_FILE,
                description.pooling,
                description.max_tokens,
                description.normalize,
            ),
        )
    else:
        check_libraries(f"embedding model {name}", "tokenizers")
        model = _load_table(name, found)
    if description.dimensions not in (None, model.dimension):
        raise ModelError(
            f"{found.model} gives vectors of {model.dimension} numbers, and "
            f"{folder / DESCRIPTION_FILE} says {description.dimensions}."
        )
    return OwnModel(name, found, model)


def parse_description(text: str, path: Path, kind: type[Description]) -> Description:
    """Parse the description of a model, the text of a file. Raises `SettingsError`."""
    values = read_settings_yaml(text, str(path))
    try:
        return kind.model_validate({} if values is None else values)
    except ValidationError as error:
        raise SettingsError(describe_validation_error(error, kind, str(path))) from None


def check_hashes(description: Path, hashes: Mapping[str, str]) -> None:
    """Check the files beside a description, whose hashes it states. Raises `ModelError`."""
    for name, expected in hashes.items():
        file = description.parent / name
        if (actual := _hash_file(file)) != expected:
            raise ModelError(
                f"{file} is not the file that {description} describes: its sha256 should be "
                f"{expected} and is {actual}."
            )


def _load_table(name: str, found: ModelFolder) -> StaticModel:
    import numpy as np

    tensors = read_safetensors(found.model, "get the file again").tensors
    path = found.folder / TOKENIZER_FILE
    tokenizer = open_tokenizer(path, f"embedding model {name}")
    n_tokens = tokenizer.get_vocab_size()
    if found.description.pooling != "mean":
        raise ModelError(
            f"{found.model} is a static model, which has no pooling {found.description.pooling}: "
            f"set pooling to mean in {found.folder / DESCRIPTION_FILE}."
        )
    if not {"embeddings"} <= tensors.keys() <= {"embeddings", "weights"}:
        raise ModelError(
            f"{found.model} has the tensors {', '.join(sorted(tensors))}: a static model has "
            "embeddings and, optionally, weights."
        )
    rows: Any = tensors["embeddings"]
    weights: Any = tensors.get("weights", np.ones(len(rows)))
    if rows.ndim != 2 or len(rows) < n_tokens or weights.shape != (len(rows),):
        raise ModelError(
            f"{found.model} has embeddings of the shape {rows.shape} and weights of the shape "
            f"{weights.shape}, which do not fit the {n_tokens:,} tokens of {path}."
        )
    # model2vec leaves out unknown tokens; they have no meaning of their own.
    settings = json.loads(path.read_text(encoding="utf-8"))["model"]
    unknown_token = settings.get("unk_token")
    unknown = tokenizer.token_to_id(unknown_token) if unknown_token else settings.get("unk_id")

    def cut(texts: Sequence[str]) -> tuple[Any, Any]:
        tokens = [
            [token for token in text if token != unknown]
            for text in encode_texts(tokenizer, texts, add_special_tokens=False)
        ]
        numbers = np.fromiter(chain.from_iterable(tokens), np.int64)
        return numbers, np.fromiter(map(len, tokens), np.int64)

    return StaticModel(name, found.identity, rows, weights, cut, unknown or 0)


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
