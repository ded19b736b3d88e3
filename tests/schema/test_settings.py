"""Settings: what may stand in settings.yaml, .env and --set, and what is said about the rest."""

import json
import re
from pathlib import Path

import pytest
import yaml

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.project_settings import (
    Settings,
    load_settings,
    parse_settings,
    read_env_file,
    read_recorded_settings,
    settings_text,
)
from graphrag_index.schema.settings.step_sections import RelationshipType
from tests.fixtures.loaded_settings import load, refusal, unfit

REPOSITORY = Path(__file__).parents[2]


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Settings()
    assert load(tmp_path, "# nothing but a comment\n") == Settings()


def test_a_section_whose_keys_are_all_comments_means_its_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "load_documents:\n  # folder: other\noutput:\n") == Settings()


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert load(tmp_path, b"\xef\xbb\xbfoutput: there\n").output == "there"


def test_recorded_settings_that_are_gone_are_left_out() -> None:
    recorded = Settings().model_dump(mode="json")
    recorded["check"]["bridged_entities"] = 10
    recorded["create_communities"] |= {"engine": "core", "max_levels": 3}
    recorded["extract_graph"]["relationship_types"] = [{"type": "led", "gone": 1}]
    read = read_recorded_settings(recorded)
    assert read.check == Settings().check
    assert (read.create_communities.engine, read.create_communities.max_levels) == ("native", 3)
    assert read.extract_graph.relationship_types == [RelationshipType(type="led")]


def test_the_settings_of_this_repository_are_those_that_init_writes() -> None:
    assert (REPOSITORY / "settings.yaml").read_text(encoding="utf-8") == settings_text()


def test_the_settings_that_init_writes_are_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, settings_text()) == Settings()


def test_the_settings_that_init_writes_name_and_explain_every_key() -> None:
    text = settings_text()
    written = yaml.safe_load(text)
    default = Settings().model_dump(mode="json")
    del default["steps"]  # of steps that the user has yet to write
    models = written.pop("models")
    assert {name: model["model"] for name, model in models.items()} == {
        name: model["model"] for name, model in default.pop("models").items()
    }
    # The first explains every key.
    assert set(models["chat"]) == set(ModelSettings.model_fields)
    assert all(model["api_key"] == "${OPENAI_API_KEY:-}" for model in models.values())
    assert written == default
    lines = text.splitlines()
    keys = [i for i, line in enumerate(lines) if line and not line.lstrip().startswith("#")]
    assert all(lines[i - 1].lstrip().startswith("# ") for i in keys)


def test_a_value_replaces_a_default_in_the_text_of_settings(tmp_path: Path) -> None:
    text = settings_text({"load_documents": {"folder": "mój folder: #1"}})
    assert load(tmp_path, text).load_documents.folder == "mój folder: #1"


class TestVariables:
    def test_a_variable_of_the_env_file_is_put_in(self, tmp_path: Path) -> None:
        settings = load(tmp_path, "output: here/${PLACE_IN_TEST}", env="PLACE_IN_TEST=there\n")
        assert settings.output == "here/there"

    def test_the_environment_wins_over_the_env_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PLACE_IN_TEST", "environment")
        assert (
            load(tmp_path, "output: ${PLACE_IN_TEST}", env="PLACE_IN_TEST=file").output
            == "environment"
        )

    def test_a_default_stands_for_what_is_unset_or_empty(self, tmp_path: Path) -> None:
        text = "output: ${UNSET_IN_TEST:-one}/${EMPTY_IN_TEST:-two}/${SET_IN_TEST:-three}"
        assert load(tmp_path, text, env="EMPTY_IN_TEST=\nSET_IN_TEST=3").output == "one/two/3"

    def test_an_unset_variable_is_refused_by_name(self, tmp_path: Path) -> None:
        said = refusal(tmp_path, "output: ${UNSET_IN_TEST}")
        assert said == (
            "settings.yaml uses ${UNSET_IN_TEST}, which is not set: "
            "export UNSET_IN_TEST or write it into .env."
        )

    def test_an_unset_key_is_refused_only_when_the_model_is_asked(self, tmp_path: Path) -> None:
        text = "models: {m: {model: gpt, api_key: '${UNSET_IN_TEST}'}}"
        model = load(tmp_path, text).models["m"]
        assert model.key == ""
        said = (
            "The key of the model gpt is ${UNSET_IN_TEST}, which is not set or empty: export UNSE"
        )
        with pytest.raises(SettingsError, match=f"^{re.escape(said)}"):
            model.require_key()
        with pytest.raises(SettingsError, match=f"^{re.escape(said)}"):
            load(tmp_path, text, env="UNSET_IN_TEST=").models["m"].require_key()
        assert load(tmp_path, text, env="UNSET_IN_TEST=abc").models["m"].require_key() == "abc"

    @pytest.mark.parametrize("text", ["${PLACE", "${my place}", "${}", "${1A}"])
    def test_what_is_no_variable_is_refused(self, tmp_path: Path, text: str) -> None:
        said = refusal(tmp_path, f"output: '{text}'")
        assert said == (
            f"settings.yaml has {text!r}: write ${{NAME}} or ${{NAME:-default}}, "
            "or $$ for a dollar sign."
        )

    def test_two_dollar_signs_are_one_and_one_is_itself(self, tmp_path: Path) -> None:
        assert load(tmp_path, "output: $$a/$b/$${c}").output == "$a/$b/${c}"

    def test_a_number_from_a_variable_is_a_number(self, tmp_path: Path) -> None:
        text = "create_text_units: {max_tokens: '${N_IN_TEST}'}\nfinalize_graph: {layout: '${L}'}"
        settings = load(tmp_path, text, env="N_IN_TEST=99\nL=false")
        assert settings.create_text_units.max_tokens == 99
        assert settings.finalize_graph.layout is False

    def test_text_from_a_variable_stays_text_whatever_it_looks_like(self, tmp_path: Path) -> None:
        for value in ("0123", "null", "a: b", "[", "@x", "#x"):
            assert (
                load(tmp_path, "output: ${V_IN_TEST}", env=f'V_IN_TEST="{value}"').output == value
            )

    def test_variables_stand_in_lists_too(self, tmp_path: Path) -> None:
        settings = load(
            tmp_path, "load_documents: {include: ['${V_IN_TEST}/*']}", env="V_IN_TEST=notes"
        )
        assert settings.load_documents.include == ["notes/*"]

    @pytest.mark.parametrize(
        ("line", "variables"),
        [
            ("A=1", {"A": "1"}),
            ("  A = b c  ", {"A": "b c"}),
            ("export A=1", {"A": "1"}),
            ("A=x=y", {"A": "x=y"}),
            ("A=a#b # comment", {"A": "a#b"}),
            ("A= # comment", {"A": ""}),
            ("A=", {"A": ""}),
            ("A=\"b # c\" # d\nB=' e '", {"A": "b # c", "B": " e "}),
            ("# comment\n\nA=1\nA=2", {"A": "2"}),
        ],
    )
    def test_lines_of_the_env_file(
        self, tmp_path: Path, line: str, variables: dict[str, str]
    ) -> None:
        (tmp_path / ".env").write_text(line, encoding="utf-8")
        assert read_env_file(tmp_path / ".env") == variables

    def test_a_line_that_says_nothing_is_refused_by_number(self, tmp_path: Path) -> None:
        assert refusal(tmp_path, "", env="A=1\nB\n") == ".env, line 2: expected NAME=value."

    def test_no_env_file_means_no_variables(self, tmp_path: Path) -> None:
        assert read_env_file(tmp_path / ".env") == {}


class TestOverrides:
    @pytest.mark.parametrize(
        ("override", "section", "key", "value"),
        [
            ("create_text_units.max_tokens=99", "create_text_units", "max_tokens", 99),
            ("load_documents.include=[a, '*.b']", "load_documents", "include", ["a", "*.b"]),
            ("load_documents.title_column=null", "load_documents", "title_column", None),
            ("load_documents.title_column=", "load_documents", "title_column", None),
            ("load_documents.folder=a=b", "load_documents", "folder", "a=b"),
            ("finalize_graph.layout=false", "finalize_graph", "layout", False),
            ("local_search.min_similarity=1e-3", "local_search", "min_similarity", 0.001),
        ],
    )
    def test_an_override_is_read_as_yaml(
        self, tmp_path: Path, override: str, section: str, key: str, value: object
    ) -> None:
        settings = load(tmp_path, "", override)
        assert getattr(getattr(settings, section), key) == value

    def test_an_override_wins_over_the_file_and_keeps_the_rest(self, tmp_path: Path) -> None:
        text = "create_text_units: {max_tokens: 50, overlap_tokens: 5}\nload_documents:\n"
        settings = load(
            tmp_path, text, "create_text_units.max_tokens=60", "load_documents.folder=there"
        )
        assert settings.create_text_units.max_tokens == 60
        assert settings.create_text_units.overlap_tokens == 5
        assert settings.load_documents.folder == "there"

    def test_variables_stand_in_overrides_too(self, tmp_path: Path) -> None:
        settings = load(
            tmp_path,
            "",
            "output=${V_IN_TEST}/${W_IN_TEST:-$$x}",
            "load_documents.include=['${V_IN_TEST}/*']",
            env="V_IN_TEST=there",
        )
        assert settings.output == "there/$$x"
        assert settings.load_documents.include == ["there/*"]
        assert refusal(tmp_path, "", "output=${UNSET_IN_TEST}") == (
            "--set output=${UNSET_IN_TEST} uses ${UNSET_IN_TEST}, which is not set: "
            "export UNSET_IN_TEST or write it into .env."
        )

    @pytest.mark.parametrize("text", ["*", "*.txt", "@id", "%n", "&a", "`t`"])
    def test_a_sign_of_yaml_begins_a_text_of_an_override(self, tmp_path: Path, text: str) -> None:
        settings = load(tmp_path, "", f"load_documents.text_column={text}")
        assert settings.load_documents.text_column == text

    def test_the_last_override_of_a_key_wins(self, tmp_path: Path) -> None:
        assert load(tmp_path, "", "output=a", "output=b").output == "b"

    def test_an_override_reaches_steps_of_ones_own(self, tmp_path: Path) -> None:
        assert load(tmp_path, "", "steps.redact.words=[a]").steps == {"redact": {"words": ["a"]}}

    @pytest.mark.parametrize(
        ("override", "said"),
        [
            ("output", "--set output: expected section.key=value."),
            ("=3", "--set =3: expected section.key=value."),
            ("output.a=3", "--set output.a=3: output is a value, not a section."),
            (
                "finalize_graph.sed=3",
                "settings.yaml with --set: unknown key 'finalize_graph.sed'; did you mean 'seed'?",
            ),
        ],
    )
    def test_an_override_that_cannot_be_meant_is_refused(
        self, tmp_path: Path, override: str, said: str
    ) -> None:
        assert refusal(tmp_path, "output: x", override) == said

    def test_broken_yaml_in_an_override_is_refused(self, tmp_path: Path) -> None:
        said = refusal(tmp_path, "", "output=[a")
        assert said.startswith("--set output=[a is not valid YAML: ")


def test_a_home_folder_is_found_in_output() -> None:
    assert parse_settings({"output": "~/index"}).output == str(Path.home() / "index")


class TestWithValues:
    def test_some_values_are_replaced(self) -> None:
        section = Settings().local_search
        changed = section.with_values({"max_sentences": 2})
        assert changed.max_sentences == 2
        assert changed.top_k_entities == section.top_k_entities
        assert section.max_sentences == Settings().local_search.max_sentences

    def test_values_are_checked(self) -> None:
        with pytest.raises(SettingsError) as caught:
            Settings().local_search.with_values({"max_sentence": 2, "max_sentences": 0})
        assert str(caught.value).splitlines() == [
            "LocalSearch: max_sentences is 0: input should be greater than or equal to 1.",
            "LocalSearch: unknown key 'max_sentence'; did you mean 'max_sentences'?",
        ]


def test_a_section_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().finalize_graph.seed = 3


def test_the_json_schema_knows_the_keys_of_the_settings_and_explains_each() -> None:
    schema = Settings.model_json_schema()
    assert json.loads(json.dumps(schema)) == schema
    written = yaml.safe_load((REPOSITORY / "settings.yaml").read_text(encoding="utf-8"))
    assert unfit(written, schema, schema) == []
    assert unfit({**written, "outptu": 1}, schema, schema) == ["outptu"]
    assert unfit({"finalize_graph": {"seed": "a"}}, schema, schema) == ["seed"]
    sections = [schema, *schema["$defs"].values()]
    for section in sections:
        for name, field in section["properties"].items():
            assert "description" in field or "$ref" in field, name


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://me:pa55word@host/v1", "it may hold no user or password"),
        ("https://host/v1?api-key=pa55word", "a key goes into api_key"),
        ("localhost:11434/v1", "it must begin with http:// or https://"),
    ],
)
def test_an_address_holds_no_secret(tmp_path: Path, address: str, said: str) -> None:
    message = refusal(tmp_path, f"models: {{chat: {{model: m, base_url: '{address}'}}}}")
    assert said in message
    assert "pa55word" not in message


@pytest.mark.parametrize("key", ["pa55\u200bword", "pa55–word", "pa55 word"])
def test_a_key_that_no_header_can_have_is_told_and_not_shown(
    tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", key)
    message = refusal(tmp_path, "models: {chat: {model: m, api_key: '${A_KEY}'}}")
    assert "api_key: character 5 of 9 cannot be in a key" in message
    assert "pa55" not in message
    monkeypatch.setenv("A_KEY", " pa55word\n")
    assert load_settings(tmp_path).models["chat"].key == "pa55word"
