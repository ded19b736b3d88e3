"""A new project for a language model, and what a newcomer gets wrong."""

import os
from pathlib import Path

import pytest
import yaml

from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.project_settings import load_settings
from tests.conftest import run_project
from tests.fixtures.commands import Call, Result
from tests.model_server import Server

KEY = "sk-do-not-show-me-0123456789"


class Init:
    """Calls `init` with a folder of one document, and reads what it has written."""

    def __init__(self, command: Call, tmp_path: Path, server: Server) -> None:
        self.command, self.root, self.server = command, tmp_path / "project", server
        (tmp_path / "in").mkdir()
        story = "Anna Berg met Karl Ost in Oslo. Karl Ost left Oslo."
        (tmp_path / "in" / "a.txt").write_text(story, encoding="utf-8")

    def __call__(self, *arguments: str, server: str | None = "/v1") -> Result:
        """`server` is the path behind the server's address; None is no option."""
        at = [] if server is None else ["--server", f"{self.server.origin}{server}"]
        documents = self.root.with_name("in")
        return self.command("init", self.root, "--input", documents, *at, *arguments)

    def chat(self) -> ModelSettings:
        return load_settings(self.root).models["chat"]


@pytest.fixture
def init(
    graphrag_index: Call, tmp_path: Path, model_server: Server, monkeypatch: pytest.MonkeyPatch
) -> Init:
    for name in os.environ:
        if "KEY" in name or name == "OPENAI_BASE_URL":
            monkeypatch.delenv(name)
    return Init(graphrag_index, tmp_path, model_server)


@pytest.mark.parametrize("workflow", ["standard", "fast"])
def test_one_command_leads_to_a_model(init: Init, graphrag_index: Call, workflow: str) -> None:
    result = init("--model", "test-model", "--embedding-model", "test-embedding")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-3:] == [
        "The model is asked about all; with --set workflow=fast, it writes the reports only.",
        f"To see what works with it: graphrag-index validate --probe --root {init.root}",
        f"Next: graphrag-index run --root {init.root}",
    ]
    probe = graphrag_index("validate", "--probe", "--root", init.root)
    assert probe.code == 0
    assert "The workflow standard runs" in probe.out
    run_project(init.root, f"workflow={workflow}")
    asked = {request.json["model"] for request in init.server.requests if request.body}
    assert asked == {"test-model", "test-embedding"}


def test_vectors_need_no_embedding_model(init: Init) -> None:
    assert init("--model", "test-model").code == 0
    assert list(load_settings(init.root).models) == ["chat"]
    run_project(init.root)
    assert not [request for request in init.server.requests if "embeddings" in request.path]


@pytest.mark.parametrize(
    "path", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/models", "/api", "/v2/x/"]
)
def test_the_address_is_found_from_one_like_it(init: Init, path: str) -> None:
    assert init("--model", "test-model", server=path).code == 0
    assert init.chat().base_url == init.server.url


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--model", "tset-model"],
            "Model chat: URL has no model 'tset-model'; it has test-embedding, test-model.",
        ),
        (
            ["--model", "test-model", "--embedding-model", "bge"],
            "Model embedding: URL has no model 'bge'; it has ",
        ),
    ],
)
def test_a_model_that_is_not_there_is_refused_with_those_that_are(
    init: Init, arguments: list[str], said: str
) -> None:
    result = init(*arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"Error: {said.replace('URL', init.server.url)}")
    assert result.err.count("\n") == 1
    assert not init.root.exists()


def test_a_server_that_is_down_is_told_and_the_project_written(init: Init) -> None:
    init.server.__exit__()
    result = init("--model", "test-model")
    init.server.__enter__()
    assert result.code == 0
    assert f"To do: no server answers at {init.server.url} (" in result.out
    assert init.chat().base_url == init.server.url


def test_a_server_that_demands_a_key_is_refused_until_one_is_named(
    init: Init, monkeypatch: pytest.MonkeyPatch
) -> None:
    init.server.api_keys = [KEY]
    monkeypatch.setenv("OPENAI_API_KEY", KEY)  # the key of another server
    monkeypatch.setenv("MY_KEY", KEY)
    result = init("--model", "test-model")
    assert result.code == 1
    assert f"{init.server.url} demands a key: set api_key of this model" in result.err
    assert result.err.endswith("written: see --model, --server and --key-variable.\n")
    assert not any(KEY in str(request.headers) for request in init.server.requests)
    assert init("--model", "test-model", "--key-variable", "MY_KEY").code == 0
    text = (init.root / "settings.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["models"]["chat"]["api_key"] == "${MY_KEY}"
    assert KEY not in text
    assert init.chat().key == KEY


def test_a_wrong_key_is_told_and_not_shown(init: Init, monkeypatch: pytest.MonkeyPatch) -> None:
    init.server.api_keys = ["another"]
    monkeypatch.setenv("MY_KEY", KEY)
    result = init("--model", "test-model", "--key-variable", "MY_KEY")
    assert (result.code, result.out) == (1, "")
    assert f"Model chat: {init.server.url} does not accept the key" in result.err
    assert KEY not in result.err
    assert not init.root.exists()


@pytest.mark.parametrize(
    ("variables", "arguments", "written", "said"),
    [
        ({"OPENAI_API_KEY": KEY}, [], "${OPENAI_API_KEY}", "The model is asked"),
        (
            {},
            [],
            "${OPENAI_API_KEY}",
            "To do: OPENAI_API_KEY is not set: set it to the API key, or in",
        ),
        ({"OPENAI_API_KEY": ""}, [], "${OPENAI_API_KEY}", "To do: OPENAI_API_KEY is not set"),
        ({"OPENAI_KEY": KEY}, [], "", "OPENAI_API_KEY is not set, but OPENAI_KEY: name the"),
        ({"OPENAI_APIKEY": KEY}, [], "", "OPENAI_API_KEY is not set, but OPENAI_APIKEY"),
        ({"GROQ_API_KEY": KEY}, [], "${OPENAI_API_KEY}", "To do: OPENAI_API_KEY is not set"),
        ({"MY_OPENAI_API_KEY": KEY}, [], "", "is not set, but MY_OPENAI_API_KEY: name the"),
        ({"OPENAI_KEY": KEY}, ["--key-variable", "OPENAI_KEY"], "${OPENAI_KEY}", "The model is"),
        ({}, ["--key-variable", "LATER"], "${LATER}", "To do: LATER is not set: set it"),
        ({}, ["--key-variable", KEY], "", "takes the name of a variable, not the key itself."),
    ],
)
def test_the_key_of_openai_comes_from_the_environment(
    init: Init,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    arguments: list[str],
    written: str,
    said: str,
) -> None:
    init.server.api_keys, init.server.models = [KEY], ["gpt-5-mini", "gpt-5"]
    monkeypatch.setenv("OPENAI_BASE_URL", init.server.url)  # in place of OpenAI itself
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    result = init("--model", "gpt-5-mini", *arguments, server=None)
    assert said in result.out + result.err
    assert KEY not in result.out + result.err
    assert init.root.exists() == bool(written) == (result.code == 0)
    if written:
        models = yaml.safe_load((init.root / "settings.yaml").read_text(encoding="utf-8"))["models"]
        assert (models["chat"]["api_key"], models["chat"]["base_url"]) == (written, None)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--server", "http://localhost:1/v1"],
            "--server, --key-variable and --embedding-model need --model.",
        ),
        (["--key-variable", "A"], "--server, --key-variable and --embedding-model need --model."),
        (
            ["--embedding-model", "a"],
            "--server, --key-variable and --embedding-model need --model.",
        ),
        (["--model", "a", "--from", "."], "--model does not go with --from"),
        (["--model", "a", "--server", "localhost:11434/v1"], "it must begin with http:// or https"),
        (["--model", "a", "--server", "http://["], "base_url: Invalid IPv6 URL."),
        (["--model", "a", "--server", "http://"], "base_url: it must name a server, such as"),
        (["--model", "a", "--server", "http://a:b@c/v1"], "it may hold no user or password"),
        (["--model", "a", "--server", "http://x/v1?key=a"], "it must end before the question mark"),
    ],
)
def test_wrong_use_writes_nothing(init: Init, arguments: list[str], said: str) -> None:
    result = init(*arguments, server=None)
    assert (result.code, result.out) == (2, "")
    assert said in " ".join(result.err.split())
    assert not init.root.exists()


def test_a_project_that_is_there_stays(init: Init) -> None:
    assert init("--model", "test-model").code == 0
    before = (init.root / "settings.yaml").read_bytes()
    n_requests = len(init.server.requests)
    result = init("--model", "other-model")
    assert (result.code, result.out) == (2, "")
    assert (
        result.err == f"Error: {init.root / 'settings.yaml'} already exists: nothing was written.\n"
    )
    assert (init.root / "settings.yaml").read_bytes() == before
    assert len(init.server.requests) == n_requests


def test_a_model_of_ones_own_machine_gets_few_requests_at_once(init: Init) -> None:
    assert init("--model", "test-model").code == 0
    assert (init.chat().concurrency, init.chat().stream) == (2, True)
