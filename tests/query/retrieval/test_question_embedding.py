"""Questions and vectors: made by one model, of one dimension, or the index says what to do."""

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import graphrag_query
from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.local.local_models import load_embedding_model
from graphrag_index.pipeline.run import RunResult, run_workflow
from graphrag_index.pipeline.workflow import load_workflow, make_services, open_models
from graphrag_index.schema.settings.project_settings import init_project, load_settings
from graphrag_index.storage.table_store import open_index
from graphrag_index.storage.versions import Vectors
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from tests.fixtures.model_project import KEY, write_project
from tests.model_server import Server

TABLES = ("text_unit_text", "entity_description", "community_full_content")
STEP = "generate_text_embeddings"
OTHER = "models.embedding.model=other-embedding"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    models = ["test-model", "test-embedding", "other-embedding"]
    with Server(dimensions=32, models=models) as server:
        yield server


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """A project after a run with models; tests must not change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODEL_KEY", KEY)
        root = write_project(tmp_path_factory.mktemp("vectors") / "project", server.url, 1)
        run(root)
    return root


@pytest.fixture
def project(indexed: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(indexed, tmp_path / "project", symlinks=True))


def run(root: Path, *overrides: str) -> RunResult:
    settings = load_settings(root, overrides)
    workflow = load_workflow(root, settings.workflow)
    models = open_models(workflow, settings, root)
    try:
        return run_workflow(workflow, settings, root, make_services(settings, models, root))
    finally:
        models.close()


def opened(root: Path, *overrides: str, as_of: int | None = None) -> Index:
    settings = load_settings(root, ("search.model=none", *overrides))
    return graphrag_query.open(root / "output", settings, root, as_of)


def finds_its_own(index: Index) -> bool:
    """Whether the text of a text unit is nearest to itself."""
    (vector,) = index.store.embedder.embed([index.store.text_units([2])[2]["text"]])
    table = index.store.vectors("text_unit_text")
    found = table.nearest(vector, 1, ["human_readable_id"])
    return bool(found["human_readable_id"][0] == 2 and found["similarity"][0] > 0.999)


def vectors_of(root: Path) -> dict[str, Vectors | None]:
    _, version = open_index(root / "output")
    return {name: table.vectors for name, table in version.tables.items() if table.lance_version}


def test_the_index_says_what_its_vectors_are(indexed: Path) -> None:
    assert vectors_of(indexed) == dict.fromkeys(TABLES, Vectors(32, True, "test-embedding", None))


def test_the_static_model_is_noted_by_its_table(sample_project: Path) -> None:
    model = load_embedding_model("static")
    noted = Vectors(model.dimension, True, *model.identity)
    assert vectors_of(sample_project) == dict.fromkeys(TABLES, noted)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (OTHER, "other-embedding"),
        ("models.embedding.dimensions=16", r"test-embedding \(16 dimensions\)"),
        ("generate_text_embeddings.model=all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("generate_text_embeddings.model=static", "static [0-9a-f]{8}"),
    ],
)
def test_another_model_is_refused_when_the_index_is_opened(
    change: str, says: str, indexed: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        opened(indexed, change)
    assert caught.match(
        rf"^The vectors of {indexed / 'output'} were made by test-embedding, and the settings now "
        rf"say {says}: run `graphrag-index run`, or restore the setting\.$"
    )


def test_what_vectors_do_not_depend_on_may_change(indexed: Path, server: Server) -> None:
    embedding = load_settings(indexed).models["embedding"].model_dump()
    called_otherwise = json.dumps({**embedding, "api_key": KEY, "temperature": 1, "concurrency": 1})
    index = opened(
        indexed, f"models.renamed={called_otherwise}", "generate_text_embeddings.model=renamed"
    )
    assert finds_its_own(index)
    assert finds_its_own(opened(indexed, "models.embedding.temperature=1"))


@pytest.mark.parametrize("change", [OTHER, "models.embedding.dimensions=16"])
def test_after_a_change_only_vectors_are_made_and_no_chat_model_is_asked(
    change: str, project: Path, server: Server
) -> None:
    n_asked = len(server.requests)
    result = run(project, change)
    assert result.steps_run == (STEP,)
    paths = {request.path for request in server.requests[n_asked:]}
    assert paths == {"/v1/models", "/v1/embeddings"}
    dimension = 16 if "dimensions" in change else 32
    assert {vectors and vectors.dimension for vectors in vectors_of(project).values()} == {
        dimension
    }
    assert finds_its_own(opened(project, change))
    with pytest.raises(SettingsError, match="run `graphrag-index run`, or restore the setting"):
        opened(project)
    # The version before has its own vectors, and is asked by the model that made them, as long
    # as the settings know it.
    assert finds_its_own(opened(project, as_of=1))
    with pytest.raises(SettingsError, match=r"version 1, were made by .*: restore the setting"):
        opened(project, change, as_of=1).basic("Who sailed?")


def test_another_model_by_the_same_name_is_told_by_its_dimension(project: Path) -> None:
    with Server(dimensions=48) as other:
        moved = f"models.embedding.base_url={other.url}"
        with pytest.raises(ModelError) as caught:
            opened(project, moved).store.embedder.embed(["Who sailed?"])
        assert str(caught.value) == (
            f"The vectors of {project / 'output'} have 32 numbers, and model embedding gives 48 "
            "for a question: another model now has this name. Restore the old model, "
            "or set models.embedding.dimensions to 48 and run `graphrag-index run`."
        )
        answer = opened(project, moved).basic("Who sailed?")
        assert answer.outcome == Outcome.PROVIDER_ERROR
        # What the message says helps.
        mended = (moved, f"models.chat.base_url={other.url}", "models.embedding.dimensions=48")
        assert run(project, *mended).steps_run == (STEP,)
        assert finds_its_own(opened(project, *mended))


def test_a_suggestion_has_no_sentences_embedded(indexed: Path, server: Server) -> None:
    with opened(indexed) as index:
        n_asked = len(server.requests)
        assert index.path("Which fossil plant was found in the rocks?").suggestion is None
        assert len(server.requests) == n_asked
        assert index.path("What are the main themes?").suggestion is None
        assert len(server.requests) == n_asked


def test_without_settings_an_index_is_asked_by_its_own(indexed: Path) -> None:
    index = graphrag_query.open(indexed / "output")
    assert index.store.embedder.identity == ("test-embedding", None)


def test_the_model_for_questions_is_closed_with_the_index(indexed: Path) -> None:
    # Threads of indexes that other tests left open may end meanwhile.
    before = set(threading.enumerate())
    with opened(indexed) as index:
        index.store.embedder.embed(["ship"])
        assert set(threading.enumerate()) - before
    assert not set(threading.enumerate()) - before
    # A closed index may be asked again.
    assert index.store.embedder.embed(["ice"]).shape == (1, 32)
    index.close()
    assert not set(threading.enumerate()) - before


def test_an_index_of_an_earlier_default_is_refused_and_embedded_anew(
    tmp_path: Path, minilm_files: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "project"
    init_project(root)
    (root / "input" / "a.txt").write_text("The ship carried coal.", encoding="utf-8")
    run(root, "generate_text_embeddings.model=all-MiniLM-L6-v2")
    with pytest.raises(
        SettingsError, match=r"by all-MiniLM-L6-v2, and the settings now say static "
    ):
        opened(root)
    assert run(root).steps_run == (STEP,)
    (message,) = caplog.messages
    assert message.startswith(
        "Another model made the vectors of the last version (all-MiniLM-L6-v2"
    )
    assert opened(root).store.embedder.identity[0].startswith("static ")
