"""`init --from` writes valid settings, and keeps keys out of them."""

import os
import re
import stat
from pathlib import Path

import pytest
import yaml

from graphrag_index.errors import GraphRAGError, SettingsError
from graphrag_index.llm.prompts import Prompts
from graphrag_index.microsoft.migrate import convert_project
from graphrag_index.pipeline.workflow import (
    check_services,
    load_workflow,
    make_services,
    select_sections,
)
from graphrag_index.schema.settings.project_settings import load_settings, read_env_file
from tests.fixtures.commands import call
from tests.fixtures.microsoft_projects import EXTRACTION, V2, V3, write

KEYS = {"GRAPHRAG_API_KEY": "sk-from-env", "AZURE_KEY": "k", "AZURE_BASE": "https://a.azure.com"}
ENV = "".join(f"{name}={value}\n" for name, value in KEYS.items())


def files_of(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("text", [V3, V2.replace("sk-a-literal-key", "${AZURE_KEY}")])
def test_a_project_of_each_version_can_be_run_as_it_is(tmp_path: Path, text: str) -> None:
    theirs = write(
        tmp_path / "theirs", text, **{".env": ENV, "prompts__extract_graph.txt": EXTRACTION}
    )
    ours = tmp_path / "ours"
    taken = convert_project(ours, theirs)
    assert taken.written[0] == ours / "settings.yaml"
    assert all(path.is_file() for path in taken.written)
    settings = load_settings(ours)
    workflow = load_workflow(ours, settings.workflow)
    check_services(
        workflow, select_sections(workflow, settings), make_services(settings, None, ours)
    )
    assert settings.models["chat"].key in KEYS.values()
    if text == V3:
        filled = Prompts(ours).fill("extract_graph", {"entity_types": "any"})
        assert filled.startswith("List who is named, as TUPLES of the types any: ")


def test_keys_stand_in_no_file_but_env(tmp_path: Path) -> None:
    theirs = write(tmp_path / "theirs", V2, **{".env": ENV})
    ours = tmp_path / "ours"
    convert_project(ours, theirs)
    for path in files_of(ours) - {".env"}:
        text = (ours / path).read_text(encoding="utf-8")
        assert "sk-" not in text, path
    assert read_env_file(ours / ".env") == {
        "AZURE_BASE": "https://a.azure.com",
        "GRAPHRAG_API_KEY": "sk-from-env",
        "GRAPHRAG_API_KEY_CHAT": "sk-a-literal-key",
    }
    if os.name != "nt":
        assert stat.S_IMODE((ours / ".env").stat().st_mode) == 0o600
    models = load_settings(ours).models
    assert models["chat"].key == "sk-a-literal-key"
    assert models["embedding"].key == "sk-from-env"


def test_models_without_a_key_or_with_one_that_env_cannot_hold(tmp_path: Path) -> None:
    text = "completion_models: {default_completion_model: {model: m, model_provider: ollama%s}}\n"
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    assert convert_project(ours, write(theirs, text % "")).to_do[1:] == []
    assert load_settings(ours).models["chat"].key == ""
    taken = convert_project(tmp_path / "other", write(theirs, text % """, api_key: "a'b\\"c" """))
    assert taken.to_do[1:] == [
        "Set the variable GRAPHRAG_API_KEY_CHAT: .env cannot hold its value."
    ]


def test_an_env_of_ones_own_stays_and_gets_what_is_missing(tmp_path: Path) -> None:
    theirs = write(tmp_path / "theirs", V2, **{".env": ENV.replace("GRAPHRAG_API_KEY", "OTHER")})
    ours = write(tmp_path / "ours", "MINE=1\nAZURE_BASE=https://mine.azure.com", ".env")
    convert_project(ours, theirs)
    assert read_env_file(ours / ".env") == {
        "MINE": "1",
        "AZURE_BASE": "https://mine.azure.com",
        "GRAPHRAG_API_KEY_CHAT": "sk-a-literal-key",
    }
    (ours / "settings.yaml").unlink()
    (ours / ".env").write_text("GRAPHRAG_API_KEY_CHAT=sk-another", encoding="utf-8")
    with pytest.raises(
        SettingsError, match=r"\.env has another value of GRAPHRAG_API_KEY_CHAT "
    ) as caught:
        convert_project(ours, theirs)
    assert "sk-" not in str(caught.value)


def test_a_key_that_is_not_there_yet_is_to_be_done(tmp_path: Path) -> None:
    env = "GRAPHRAG_API_KEY=<API_KEY>\n"
    theirs = write(tmp_path / "theirs", V3, **{".env": env})
    taken = convert_project(tmp_path / "ours", theirs)
    assert taken.to_do == [
        "Set the variable AZURE_KEY, or write it into .env.",
        "Set the variable GRAPHRAG_API_KEY, or write it into .env.",
        f"There are no documents in {theirs / 'texts'}: correct load_documents.folder.",
    ]
    assert not (tmp_path / "ours" / ".env").exists()


@pytest.mark.parametrize("version", [2, 3])
def test_it_is_told_what_became_of_each_key(tmp_path: Path, version: int) -> None:
    settings = {2: V2, 3: V3}[version]
    theirs = write(tmp_path / "theirs", settings, **{".env": ENV})
    taken = convert_project(tmp_path / "ours", theirs)
    text = (tmp_path / "ours" / "settings.yaml").read_text(encoding="utf-8")
    comment = re.split(r"\n\n", text)[0]
    assert (
        f"# Made from {theirs / 'settings.yaml'} of Microsoft GraphRAG, version {version}."
        in comment
    )
    for line in taken.skipped:
        assert f"#   {line}\n" in f"{comment}\n"
    lines = [*taken.converted, *taken.skipped]
    theirs_keys = {line.split(" -> ")[0].split(": ")[0] for line in lines}
    for key in _keys("", yaml.safe_load(settings)):
        assert any(key == told or key.startswith(f"{told}.") for told in theirs_keys), key


def _keys(prefix: str, values: object) -> list[str]:
    if not isinstance(values, dict):
        return [prefix]
    return [
        key for name, part in values.items() for key in _keys(f"{prefix}.{name}".strip("."), part)
    ]


def test_documents_elsewhere_and_those_named_by_a_dollar_sign(tmp_path: Path) -> None:
    theirs = write(tmp_path / "the$irs", V3, **{"texts__a.csv": "body,name,nr\nx,y,1\n"})
    convert_project(tmp_path / "ours", theirs)
    assert load_settings_with_keys(tmp_path / "ours").load_documents.folder == str(theirs / "texts")
    other = tmp_path / "more"
    other.mkdir()
    convert_project(tmp_path / "again", theirs, other)
    assert load_settings_with_keys(tmp_path / "again").load_documents.folder == str(other)


def load_settings_with_keys(root: Path):  # type: ignore[no-untyped-def]
    (root / ".env").write_text(ENV, encoding="utf-8")
    return load_settings(root)


def test_the_folder_of_theirs_is_not_written_to(tmp_path: Path) -> None:
    theirs = write(tmp_path, V3, "settings.yml")
    with pytest.raises(SettingsError, match="name another folder for the new project; nothing"):
        convert_project(tmp_path / "." / "", theirs)
    assert files_of(tmp_path) == {"settings.yml"}


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ("settings.yaml", "settings.yaml already exists: nothing was written."),
        ("prompts/extract_graph.txt", "extract_graph.txt already exists: nothing was written."),
        ("prompts", "prompts is not a folder: name another one"),
    ],
)
def test_what_is_in_the_way_stays(tmp_path: Path, there: str, said: str) -> None:
    theirs = write(tmp_path / "theirs", V3, **{"prompts__extract_graph.txt": EXTRACTION})
    ours = write(tmp_path / "ours", "mine", there)
    with pytest.raises(SettingsError, match=re.escape(said)):
        convert_project(ours, theirs)
    assert files_of(ours) == {there}


def test_settings_that_would_not_load_are_not_written(tmp_path: Path) -> None:
    text = "chunking: {size: 300}\ncluster_graph: {max_cluster_size: 5}\n"
    theirs = write(tmp_path / "theirs", text)
    (theirs / ".env").write_text("no line of a file like this\n", encoding="utf-8")
    with pytest.raises(GraphRAGError, match=r"\.env, line 1: expected NAME=value"):
        convert_project(tmp_path / "ours", theirs)
    assert not (tmp_path / "ours").exists()


def test_the_command_says_what_is_next(tmp_path: Path) -> None:
    write(tmp_path / "theirs", V3, **{"texts__a.csv": "body,name,nr\nx,y,1\n"})
    result = call(tmp_path, "init", "ours", "--from", "theirs")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == f"Wrote {Path('ours', 'settings.yaml')}"
    assert "Next: graphrag-index import theirs --root ours, which imports its index;" in (
        result.stdout
    )
    assert result.stdout.count("\nCarried over:\n") == result.stdout.count("\nTo do:\n") == 1
