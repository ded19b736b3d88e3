"""Settings that are refused, with the sentence that says what would be right."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.project_settings import Settings, load_settings, parse_settings
from tests.fixtures.loaded_settings import refusal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("outptu: x", "settings.yaml: unknown key 'outptu'; did you mean 'output'?"),
        (
            "load_document: {folder: x}",
            "settings.yaml: unknown key 'load_document'; did you mean 'load_documents'?",
        ),
        (
            "create_text_units: {max_token: 9}",
            "settings.yaml: unknown key 'create_text_units.max_token'; did you mean 'max_tokens'?",
        ),
        (
            "finalize_graph: {zoom: 2}",
            "settings.yaml: unknown key 'finalize_graph.zoom'; known: layout, seed.",
        ),
        (
            "models: {chat: {model: x, base_ur: y}}",
            "settings.yaml: unknown key 'models.chat.base_ur'; did you mean 'base_url'?",
        ),
        (
            "models: {chat: {model: x, price: {prompt: 1}}}",
            "settings.yaml: unknown key 'models.chat.price.prompt'; known: input, cached_input, "
            "output, batch_discount.",
        ),
        (
            "create_text_units: {max_tokens: many}",
            "settings.yaml: create_text_units.max_tokens is 'many': input should be a valid "
            "integer, unable to parse string as an integer.",
        ),
        (
            "create_text_units: {max_tokens: 7}",
            "settings.yaml: create_text_units.max_tokens is 7: input should be greater than "
            "or equal to 8.",
        ),
        (
            "create_text_units: {max_tokens: 100, overlap_tokens: 51}",
            "settings.yaml: create_text_units: overlap_tokens must be at most half of max_tokens.",
        ),
        (
            "load_documents: {include: '*.md'}",
            "settings.yaml: load_documents.include is '*.md': input should be a valid list.",
        ),
        (
            "load_documents: {encoding: utf8000}",
            "settings.yaml: load_documents.encoding: 'utf8000' is not an encoding; "
            "try auto, utf-8, utf-16 or cp1252.",
        ),
        (
            "create_communities: {engine: louvain}",
            "settings.yaml: create_communities.engine is 'louvain': input should be 'native', "
            "'igraph', 'leidenalg' or 'microsoft'.",
        ),
        (
            "load_documents: [input]",
            "settings.yaml: load_documents is ['input']: it must hold keys and their values.",
        ),
        (
            "steps: {redact: 3}",
            "settings.yaml: steps.redact is 3: it must hold keys and their values.",
        ),
        ("1: 2", "settings.yaml: 1 is 1: keys should be strings."),
        ("- a\n- b", "settings.yaml must hold sections of `key: value`, not a list."),
        ("output", "settings.yaml must hold sections of `key: value`, not a single value."),
        ("42", "settings.yaml must hold sections of `key: value`, not a single value."),
    ],
)
def test_unknown_keys_and_wrong_values_are_refused_by_name(
    tmp_path: Path, text: str, said: str
) -> None:
    assert refusal(tmp_path, text) == said


def test_every_mistake_gets_its_sentence(tmp_path: Path) -> None:
    said = refusal(tmp_path, "outptu: x\nfinalize_graph: {seed: -1}")
    assert said.splitlines() == [
        "settings.yaml: finalize_graph.seed is -1: input should be greater than or equal to 0.",
        "settings.yaml: unknown key 'outptu'; did you mean 'output'?",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("output: x\nload_documents: [a\nworkflow: b: c\n", "line 3"),
        ("output: 2024-13-45", "month must be in 1..12"),
        ("check: {}\noutput: x\ncheck: {}\n", "the key 'check' occurs twice"),
        ("check: {}\noutput: x\ncheck: {}\n", "the key 'check' occurs twice in line 3, column 1:"),
        ("output: x: y", "line 1, column 10: output: x: y ^"),
        ("output:\tx", "found character '\\t' that cannot start any token"),
    ],
)
def test_what_is_no_yaml_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    message = refusal(tmp_path, text)
    assert message.startswith("settings.yaml is not valid YAML: ")
    assert said in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "load_documents: &x {folder: *x}",
            "it is nested too deeply, or an alias refers to a value around it.",
        ),
        ("a: &x [*x]", "it is nested too deeply, or an alias refers to a value around it."),
        ("[" * 3000, "it is nested too deeply."),
        (
            "a: &a [1,1,1,1,1,1,1,1,1]\n"
            + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefgh")),
            "it has more than 100,000 values.",
        ),
        ('output: "a\\0b"', "'a\\x00b' has a null character, which no name or text can have."),
        ('output: !!int ""', "a value does not fit the tag before it, such as `!!int`."),
    ],
)
def test_yaml_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text) == f"settings.yaml is not valid YAML: {said}"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "create_communities.seed=99999999999999999999",
            "create_communities.seed is 99999999999999999999: "
            "input should be less than or equal to 4294967295.",
        ),
        (
            "finalize_graph.seed=4294967296",
            "finalize_graph.seed is 4294967296: input should be less than or equal to 4294967295.",
        ),
        (
            "create_communities.iterations=100000000000",
            "create_communities.iterations is 100000000000: "
            "input should be less than or equal to 1000.",
        ),
        (
            "create_communities.resolution=.inf",
            "create_communities.resolution is inf: input should be a finite number.",
        ),
        (
            "extract_graph_nlp.min_weight=.nan",
            "extract_graph_nlp.min_weight is nan: input should be a finite number.",
        ),
    ],
)
def test_a_number_with_which_nothing_can_be_computed_is_refused(
    tmp_path: Path, override: str, said: str
) -> None:
    assert refusal(tmp_path, "", override) == f"settings.yaml with --set: {said}"


def test_every_number_has_a_lower_and_every_integer_an_upper_bound() -> None:
    for name, section in Settings.model_json_schema()["$defs"].items():
        if name.endswith("Settings"):
            continue
        for key, field in section["properties"].items():
            for kind in field.get("anyOf", [field]):
                if kind.get("type") in ("integer", "number"):
                    assert "minimum" in kind or "exclusiveMinimum" in kind, (name, key)
                if kind.get("type") == "integer":
                    assert "maximum" in kind, (name, key)


def test_settings_in_another_encoding_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, "output: Straße".encode("cp1252"))
    assert said == "settings.yaml is not UTF-8: save it in that encoding."


def test_a_missing_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="`graphrag-index init`"):
        load_settings(tmp_path / "nowhere")


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").mkdir()
    with pytest.raises(SettingsError, match=r"settings\.yaml cannot be read: "):
        load_settings(tmp_path)


@given(
    st.dictionaries(
        st.sampled_from([*Settings.model_fields]) | st.text(max_size=8),
        st.integers() | st.text(max_size=8) | st.none() | st.dictionaries(st.text(), st.none()),
    )
)
def test_any_keys_and_values_are_settings_or_are_refused_in_sentences(
    values: dict[str, object],
) -> None:
    try:
        settings, said = parse_settings(dict(values)), ""
    except SettingsError as error:
        settings, said = None, str(error)
    if settings:
        assert values.keys() <= settings.model_dump().keys()
    else:
        assert said.startswith("settings.yaml: ")
