"""What tests share: the model all-MiniLM-L6-v2, and the index of the sample, made once."""

import gc
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

# Processes that share the cores: threads of polars would only wait for each other, which takes a
# twentieth of the CPU time. polars reads the number when it is imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")

# The program flushes each file that it writes, and a disk lets the suite wait for that thousands of
# times. In memory it takes a tenth less CPU time, too. Containers often have 64 MB there.
if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 4 * 2**30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", "/dev/shm")

# Tests start the program hundreds of times, and each worker reads all tests. Compiled modules are
# kept even where Python is told not to: the collection takes 9 instead of 15 CPU seconds.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", ""):
    sys.dont_write_bytecode = False

import pytest
from filelock import FileLock
from hypothesis import settings as hypothesis_settings
from xdist.scheduler import LoadScopeScheduling

from graphrag_index.errors import ModelError
from graphrag_index.llm.local.local_models import MINILM, download_model
from graphrag_index.pipeline.run import run_workflow
from graphrag_index.pipeline.workflow import load_workflow, make_services
from graphrag_index.schema.settings.project_settings import init_project, load_settings
from graphrag_index.storage.lancedb_stubs import stub_unused_imports
from tests.fixtures.commands import Call
from tests.fixtures.examples import USUAL, n_examples
from tests.model_server import Server

# No test asserts how long something takes: machines are shared. In CI the examples are always
# the same, so that a failure there can be repeated.
hypothesis_settings.register_profile(
    "suite", deadline=None, derandomize=bool(os.environ.get("CI")), max_examples=n_examples(USUAL)
)
hypothesis_settings.load_profile("suite")

REPOSITORY = Path(__file__).parent.parent

# As the commands do: 0.7 CPU seconds of each process.
stub_unused_imports()

# The thousands of collected tests live to the end: the garbage collector need not look at them,
# which would take 5 of 13 CPU seconds of the collection, in each process.
gc.disable()


# What takes longest begins first, so that no process is left with it at the end.
FIRST = ("explorer", "server", "pipeline", "query")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {name: place for place, name in enumerate(FIRST)}
    items.sort(key=lambda item: order.get(item.path.relative_to(REPOSITORY).parts[1], len(FIRST)))


class ByFile(LoadScopeScheduling):
    """Let one process have a file, and one all that needs a browser.

    `--dist loadgroup` of xdist 3.8 has no effect with pytest 9.2, whose tests have another name.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "explorer" if "/explorer/" in file else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile:
    return ByFile(config, log)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def log_level() -> None:
    """Reset the level of the program's logger, which its command line sets.

    The fixtures of a session call the command line too, before the first test that uses them.
    """
    logging.getLogger("graphrag_index").setLevel(logging.NOTSET)


@pytest.fixture(scope="session")
def minilm_files() -> Path:
    """The folder of the model all-MiniLM-L6-v2; the model is downloaded if it is not there."""
    try:
        download_model()
    except ModelError as error:
        pytest.skip(str(error))
    return MINILM.folder


def copy_project(folder: Path) -> Path:
    """Copy the settings, workflows and sample documents of this repository."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(REPOSITORY / "settings.yaml", folder)
    for name in ("workflows", "input"):
        shutil.copytree(REPOSITORY / name, folder / name)
    return folder


def run_project(root: Path, *overrides: str) -> None:
    """Do what `graphrag-index run` does."""
    settings = load_settings(root, overrides)
    services = make_services(settings, None, root)
    run_workflow(load_workflow(root, settings.workflow), settings, root, services)


@pytest.fixture(scope="session")
def sample_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample project with its index in `output`. Tests must not change it."""
    return share_project(tmp_path_factory, "sample", lambda root: run_project(copy_project(root)))


@pytest.fixture(scope="session")
def project_of_two_versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose version 2 has another document, and one document less.

    Tests must not change it.
    """
    return share_project(tmp_path_factory, "versions", _run_twice)


def share_project(
    tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]
) -> Path:
    """Make a project once for all processes that share the tests."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    root = folder / name / "project"
    with FileLock(folder / f"{name}.lock"):
        if not (folder / name / "made").is_file():
            shutil.rmtree(root, ignore_errors=True)
            make(root)
            (folder / name / "made").touch()
    return root


def _run_twice(root: Path) -> None:
    root.mkdir(parents=True)
    init_project(root)
    documents = root / "input"
    fram = "Roald Amundsen sailed to the South Pole with the ship Fram. Fridtjof Nansen built it."
    (documents / "fram.txt").write_text(fram, encoding="utf-8")
    (documents / "belgica.txt").write_text("Adrien de Gerlache led the Belgica.", encoding="utf-8")
    run_project(root)
    (documents / "belgica.txt").unlink()
    (documents / "aurora.txt").write_text("Ernest Shackleton bought the Aurora.", encoding="utf-8")
    run_project(root)


@pytest.fixture
def model_server() -> Iterator[Server]:
    """An OpenAI-compatible server on loopback, to be told how to answer and what to do wrong."""
    with Server() as server:
        yield server


@pytest.fixture
def graphrag_index(capsys: pytest.CaptureFixture[str]) -> Call:
    """Call a command of `graphrag-index` inside this process."""
    return Call(capsys)
