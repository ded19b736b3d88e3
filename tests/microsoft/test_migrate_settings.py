"""Settings and prompts of Microsoft GraphRAG converted to ours, and the reasons for others."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_index.errors import SettingsError
from graphrag_index.microsoft.migrate import STEP_MODELS, convert_settings
from graphrag_index.microsoft.migrate_project import RULES, ConvertedSettings, read_project
from graphrag_index.schema.settings.project_settings import Settings
from tests.fixtures.microsoft_projects import V2, V3, write


def carry(
    tmp_path: Path, settings: str, name: str = "settings.yaml", **files: str
) -> ConvertedSettings:
    return convert_settings(read_project(write(tmp_path / "theirs", settings, name, **files)))


def test_what_version_3_says(tmp_path: Path) -> None:
    result = carry(tmp_path, V3)
    assert result.values == {
        "workflow": "standard",
        "models": {
            "chat": {
                "model": "gpt-4.1-mini",
                "api_key": "${GRAPHRAG_API_KEY}",
                "temperature": 0.3,
                "max_output_tokens": 4000,
                "concurrency": 12,
                "parameters": {"top_p": 0.9},
            },
            "judge": {
                "provider": "azure",
                "model": "gpt-4.1",
                "base_url": "https://mine.openai.azure.com",
                "api_key": "${AZURE_KEY}",
                "api_version": "2024-12-01-preview",
                "deployment": "judge-4",
                "concurrency": 12,
            },
            "embedding": {
                "model": "text-embedding-3-small",
                "api_key": "${GRAPHRAG_API_KEY}",
                "dimensions": 512,
                "concurrency": 12,
            },
        },
        "load_documents": {
            "folder": str(tmp_path / "theirs" / "texts"),
            "include": ["**/*.csv"],
            "text_column": "body",
            "title_column": "name",
            "id_column": "nr",
            "metadata_columns": ["author"],
        },
        "create_text_units": {"max_tokens": 600, "overlap_tokens": 60, "encoding": "o200k_base"},
        "extract_graph": {"entity_types": ["ship", "person"], "max_gleanings": 1},
        "summarize_descriptions": {"max_words": 200},
        "extract_covariates": {"description": "Who owes whom money.", "max_gleanings": 0},
        "create_community_reports": {"model": "judge", "max_words": 900, "max_input_tokens": 6000},
        "create_communities": {"max_cluster_size": 12, "seed": 3735928559},
        "generate_text_embeddings": {"model": "embedding"},
        "search": {"model": "judge"},
        "local_search": {
            "text_unit_share": 0.4,
            "report_share": 0.2,
            "top_k_entities": 7,
            "max_context_tokens": 9000,
        },
        "global_search": {"max_levels": 4, "min_rating": 1},
        "drift_search": {"rounds": 1, "top_k_reports": 5, "follow_ups": 5},
        "basic_search": {"top_k_text_units": 15},
    }
    why = dict(result.skipped)
    assert why["cluster_graph.use_lcc"] == "not needed: every part of the graph is split"
    assert why["completion_models.default_completion_model.retry"] == (
        "not needed: failed calls are tried again for retry_seconds"
    )
    assert "graphrag-index export" in why["snapshots"]
    assert why["vector_store.vector_size"].startswith("not needed: the model tells the length")


def test_what_version_2_says(tmp_path: Path) -> None:
    result = carry(tmp_path, V2, **{".env": "AZURE_BASE=https://mine.openai.azure.com\n"})
    assert result.values == {
        "workflow": "standard_without_claims",
        "models": {
            "chat": {
                "provider": "azure",
                "model": "gpt-4o",
                "base_url": "${AZURE_BASE}",
                "api_key": "${GRAPHRAG_API_KEY_CHAT}",
                "api_version": "2024-05-01-preview",
                "deployment": "my-gpt",
                "concurrency": 25,
                "requests_per_minute": 300,
                "parameters": {"reasoning_effort": "low"},
            },
            "embedding": {"model": "text-embedding-3-small", "api_key": "${GRAPHRAG_API_KEY}"},
        },
        "load_documents": {
            "folder": str(tmp_path / "theirs" / "input"),
            "include": ["**/*.md", "**/*.txt"],
            "metadata_columns": ["author"],
        },
        "create_text_units": {"max_tokens": 300, "overlap_tokens": 150},
        "extract_graph": {"entity_types": ["ship"]},
        "generate_text_embeddings": {"model": "embedding"},
        "search": {"model": "chat"},
    }
    # A key that stood in the settings themselves goes elsewhere, and in no other's place.
    assert result.secrets == {"GRAPHRAG_API_KEY_CHAT": "sk-a-literal-key"}
    assert dict(result.skipped)["chunks.overlap"] == "the maximum is half of max_tokens: 150"
    assert "sk-a-literal-key" not in repr(result)


def test_every_setting_of_the_table_is_one_of_ours() -> None:
    for ours in (*RULES["settings"], *STEP_MODELS.values()):
        section, _, key = ours.partition(".")
        annotation: Any = Settings.model_fields[section].annotation
        assert key in annotation.model_fields, ours


@pytest.mark.parametrize(
    ("pattern", "include"),
    [
        (r".*\.md$$", ["**/*.md"]),
        (r".*\.(txt|csv)", ["**/*.txt", "**/*.csv"]),
        (r"\.html$$", ["**/*.html"]),
        (r"(?P<year>\d+)/.*\.txt", None),
    ],
)
def test_a_regular_expression_becomes_patterns_if_it_names_endings_alone(
    tmp_path: Path, pattern: str, include: list[str] | None
) -> None:
    result = carry(tmp_path, f"models: {{}}\ninput: {{file_pattern: '{pattern}'}}\n")
    assert result.values["load_documents"].get("include") == include
    assert ("input.file_pattern" in dict(result.skipped)) == (include is None)


def test_the_listed_steps_choose_the_workflow(tmp_path: Path) -> None:
    text = "chunking: {size: 300}\n"
    assert carry(tmp_path, text).values["workflow"] == "standard_without_claims"
    listed = "chunking: {size: 300}\nworkflows: [extract_graph_nlp]\n"
    assert carry(tmp_path, listed).values["workflow"] == "fast"


def test_a_value_that_ours_cannot_have_is_left_and_said(tmp_path: Path) -> None:
    result = carry(
        tmp_path,
        "chunking: {size: 0, encoding_model: p50k_base, prepend_metadata: [title]}\n"
        "basic_search: {k: ${HOW_MANY}}\nglobal_search: {max_context_tokens: '$$5'}\n"
        "local_serach: {top_k_entities: 5}\n",
    )
    assert set(result.values) == {"load_documents", "workflow"}
    assert dict(result.skipped) == {
        "chunking.size": "create_text_units.max_tokens cannot have this value (max_tokens is 0: "
        "input should be greater than or equal to 8)",
        "chunking.encoding_model": "only o200k_base and cl100k_base are known: "
        "create_text_units.encoding",
        "chunking.prepend_metadata": "not needed: columns exist for creation_date, id, text, title",
        "basic_search.k": "the value uses the variable HOW_MANY, which is not set",
        "global_search.max_context_tokens": "global_search.max_context_tokens cannot have this "
        "value (max_context_tokens is '$5': input should be a valid integer, unable to parse "
        "string as an integer)",
        "local_serach.top_k_entities": "this key is not known to this program; did you mean "
        "local_search.top_k_entities?",
    }


def test_numbers_and_lists_may_come_from_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIZE", "700")
    text = (
        "chunking:\n  size: $SIZE\n  overlap: ${LAP}\nextract_graph:\n  entity_types: ${TYPES}\n"
        "completion_models:\n  a: {model: $NAME, model_provider: openai}\n"
    )
    env = "SIZE=5\nLAP=10\nTYPES=[a, b]\nNAME=some-model\n"
    values = carry(tmp_path, text, **{".env": env}).values
    assert values["create_text_units"] == {"max_tokens": "${SIZE}", "overlap_tokens": "${LAP}"}
    assert values["extract_graph"] == {"entity_types": ["a", "b"]}
    assert values["models"]["chat"] == {"model": "${NAME}"}


@pytest.mark.parametrize(
    ("provider", "base", "address"),
    [
        ("ollama", None, "http://localhost:11434/v1"),
        ("ollama", "http://box:11434/", "http://box:11434/v1"),
        ("mistral", None, "https://api.mistral.ai/v1"),
        ("openai", "http://box/v1", "http://box/v1"),
        # OpenAI is not asked what another was meant to be asked.
        ("bedrock", None, "${GRAPHRAG_API_BASE_CHAT}"),
        # What may be a key is not repeated.
        ("openai", "https://me:sk-hidden@box/v1", "${GRAPHRAG_API_BASE_CHAT}"),
        ("ollama", "http://box:11434?a=b", "${GRAPHRAG_API_BASE_CHAT}"),
        ("openai", None, None),
    ],
)
def test_the_address_of_a_provider(
    tmp_path: Path, provider: str, base: str | None, address: str | None
) -> None:
    own = f", api_base: '{base}'" if base else ""
    text = f"completion_models: {{default_completion_model: {{model: m, model_provider: {provider}"
    result = carry(tmp_path, f"{text}{own}}}}}\n")
    assert result.values["models"]["chat"].get("base_url") == address
    assert "sk-hidden" not in repr(result)


def test_what_may_hold_a_secret_is_neither_copied_nor_told(tmp_path: Path) -> None:
    result = carry(
        tmp_path,
        "completion_models:\n  default_completion_model:\n    model: m\n    model_provider: azure\n"
        "    api_base: https://x.openai.azure.com\n    auth_method: azure_managed_identity\n"
        "    call_args: {api_key: sk-hidden, extra_headers: {x: sk-hidden}, seed: 5}\n"
        "input_storage: {type: blob, connection_string: sk-hidden, base_dir: docs}\n"
        "vector_store: {type: azure_ai_search, api_key: sk-hidden, url: u}\n",
    )
    assert "sk-hidden" not in repr(result)
    model = result.values["models"]["chat"]
    assert model["parameters"] == {"seed": 5}
    assert model["api_key"] == "${AZURE_OPENAI_API_KEY:-}"
    assert "load_documents" not in result.values


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("settings.yaml", "llm: [", "settings.yaml is not valid YAML: "),
        ("settings.yaml", "llm: {}\nllm: {}\n", "the key 'llm' occurs twice"),
        ("settings.json", '{"llm": ', "settings.json is not valid YAML: "),
        ("settings.yaml", "", "settings.yaml is empty or holds no settings"),
        ("settings.yaml", "- llm\n", "settings.yaml is empty or holds no settings"),
        ("settings.yaml", "a: 1\nb: 2\n", "such as completion_models or models; it has: a, b."),
        (
            "settings.yaml",
            "llm: {}\n",
            "settings.yaml has llm, settings of Microsoft GraphRAG 0 or 1",
        ),
        ("settings.yaml", "load_documents: {}\n", "settings.yaml has settings of this program"),
        ("other.yaml", "llm: {}\n", "There is no settings.yaml, settings.yml or settings.json in "),
    ],
)
def test_settings_that_cannot_be_read_are_one_sentence(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        carry(tmp_path, text, name)
    assert said in str(caught.value)
    assert str(caught.value).count("\n") == 0


def test_json_and_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    text = '{"models": {"a": {"model": "m", "api_key": "${KEY}"}}, "chunks": {"size": 90}}'
    values = carry(tmp_path, text, "settings.json").values
    assert values["create_text_units"] == {"max_tokens": 90}
    assert values["models"]["chat"] == {"model": "m", "api_key": "${KEY}"}
    (tmp_path / "theirs" / "settings.yaml").write_bytes(b"llm: \xff\n")
    with pytest.raises(SettingsError, match="is not UTF-8"):
        read_project(tmp_path / "theirs")
