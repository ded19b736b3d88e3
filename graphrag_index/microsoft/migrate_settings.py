"""Conversion of Microsoft GraphRAG settings to our settings, with a report on each key.

Only keys in the settings file are converted; all other settings keep our defaults.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from graphrag_index.microsoft.migrate_models import convert_models
from graphrag_index.microsoft.migrate_project import (
    KEYS,
    PROMPT_KEYS,
    PROMPTS_LEFT,
    UNKNOWN,
    ConvertedSettings,
    MicrosoftProject,
    NotCarriedError,
    check_value,
    escape_dollars,
    find_prefix,
    find_variables,
    format_value,
    invert_section,
)
from graphrag_index.schema.settings.settings import Settings

# Our key by Microsoft's key. Keys in `_LEFT` have no key of ours, but a reason.
STEP_MODELS, _LEFT = invert_section("step_models"), invert_section("left")
# Our workflow `standard` extracts claims; Microsoft's extracts claims only if enabled.
WITHOUT_CLAIMS = "standard_without_claims"
# Names of text unit columns, which cannot be names of metadata columns.
_OWN_COLUMNS = {"id", "title", "text", "creation_date"}
_INPUT_FOLDERS = ("input_storage.base_dir", "input.storage.base_dir", "input.base_dir")
# File name extension by type of input, for settings without a file pattern.
_INPUT_TYPES = {"text": "txt", "csv": "csv", "json": "json", "jsonl": "jsonl", "parquet": "parquet"}
# Values of other settings that are valid together with any value of this key.
_TRIALS = {
    "create_text_units.overlap_tokens": {"max_tokens": 1_000_000},
    "create_text_units.max_tokens": {"overlap_tokens": 0},
}
# A regular expression for file name extensions: `.*\.txt$` or `.*\.(md|txt)$`.
_EXTENSION_PATTERN = re.compile(r"\^?(?:\.\*)?\\\.(?:(\w+)|\((?:\?:)?(\w+(?:\|\w+)*)\))\$?")


def convert_settings(project: MicrosoftProject) -> ConvertedSettings:
    """Return the values of our `settings.yaml`, and a report on each key of Microsoft's."""
    carried = ConvertedSettings(project)
    models = convert_models(carried)
    if models:
        carried.values["models"] = models
    _convert_input_folder(carried)
    _convert_input_pattern(carried)
    for key, value in project.all_values():
        for ours in (ours for ours, keys in KEYS["settings"].items() if key in keys):
            _convert_setting(carried, key, ours, value)
        if key in STEP_MODELS:
            _convert_step_model(carried, key, STEP_MODELS[key], value)
    _convert_search_models(carried)
    _choose_workflow(carried)
    _limit_overlap(carried)
    _report_others(carried)
    return carried


def _convert_input_folder(carried: ConvertedSettings) -> None:
    project = carried.project
    key = next((key for key in _INPUT_FOLDERS if project.get(key) is not None), "")
    kind = project.get("input_storage.type", "input.storage.type", "input.type")
    if kind in ("blob", "cosmosdb", "memory"):
        if key:
            carried.note_left(
                key, "documents are read from a local folder only: copy them into one"
            )
        return
    with carried.reason_for(key):
        folder = str(project.expand(project.get(key))) if key else "input"
        path = Path(os.path.abspath(project.root / folder))
        carried.values["load_documents"] = {"folder": str(path)}
        if key:
            carried.note_kept(key, "load_documents.folder", path)


def _convert_input_pattern(carried: ConvertedSettings) -> None:
    project = carried.project
    key = "input.file_type" if project.get("input.file_type") else "input.type"
    kind = str(project.get(key) or "")
    endings = [_INPUT_TYPES[kind]] if kind in _INPUT_TYPES else []
    pattern = project.get("input.file_pattern")
    if pattern is not None:
        key = "input.file_pattern"
        try:
            expression = str(project.expand(pattern))
        except NotCarriedError as error:
            carried.note_left(key, error)
            return
        if found := _EXTENSION_PATTERN.fullmatch(expression):
            endings = (found[1] or found[2]).split("|")
        else:
            why = f"the regular expression {expression} is no pattern"
            carried.note_left(key, f"{why}: write load_documents.include")
    if endings:
        include = [f"**/*.{ending}" for ending in endings]
        carried.values.setdefault("load_documents", {})["include"] = include
        carried.note_kept(key, "load_documents.include", format_value(include))


def _convert_setting(carried: ConvertedSettings, theirs: str, ours: str, value: Any) -> None:
    """Convert a value to our setting, or record why the setting does not accept it."""
    section, _, key = ours.partition(".")
    with carried.reason_for(theirs):
        if key in carried.values.get(section, {}):
            raise NotCarriedError(f"{ours} is set already")
        expanded = carried.project.expand(value)
        converted = _CONVERSIONS[ours](expanded) if ours in _CONVERSIONS else expanded
        # `_limit_overlap` checks size and overlap together.
        trial = {**_TRIALS.get(ours, {}), key: converted}
        check_value(Settings.model_fields[section].annotation, trial, ours)
        # Keep the variable in the settings unless its value was converted.
        is_same = converted == expanded and not isinstance(converted, list)
        kept = value if is_same and find_variables(value) else escape_dollars(converted)
        carried.values.setdefault(section, {})[key] = kept
        carried.note_kept(theirs, ours, format_value(kept))


def _convert_step_model(carried: ConvertedSettings, theirs: str, ours: str, value: Any) -> None:
    section, _, key = ours.partition(".")
    if (name := carried.names.get(str(value))) is None:
        carried.note_left(theirs, f"no model is called {value}")
        return
    if name != Settings.model_fields[section].default.model:
        carried.values.setdefault(section, {})[key] = name
    carried.note_kept(theirs, ours, name)


def _convert_search_models(carried: ConvertedSettings) -> None:
    """Set the embedding model, and `search.model` if all searches use the same model."""
    found = ((key, carried.project.get(key)) for key in KEYS["answering_models"])
    named = {key: str(value) for key, value in found if value is not None}
    names = {carried.names.get(value, "") for value in named.values()}
    name = names.pop() if len(names) == 1 else ""
    if name or carried.names:
        # The value `auto` would look for the model of the reports, which this index lacks.
        carried.values["search"] = {"model": name or "chat"}
    for key, value in named.items():
        own = carried.names.get(value)
        if own is None:
            carried.note_left(key, f"no model is called {value}")
        elif len({*named.values()}) > 1:
            carried.note_left(key, "one model answers all questions: name it in search.model")
        else:
            carried.note_kept(key, "search.model", own)
    for key in KEYS["question_embedding_models"]:
        if carried.project.get(key) is not None:
            carried.note_left(key, "not needed: questions are embedded by the model of the index")
    # Our default is a local model, which is not the model of Microsoft's vectors.
    if "embedding" in carried.names.values():
        section = carried.values.setdefault("generate_text_embeddings", {})
        section.setdefault("model", "embedding")


def _choose_workflow(carried: ConvertedSettings) -> None:
    """Choose our workflow with the same extraction as the project's workflow."""
    project = carried.project
    listed = project.get("workflows")
    steps = [str(step) for step in listed] if isinstance(listed, list) else _last_steps(project)
    keys = ("extract_claims.enabled", "claim_extraction.enabled")
    key = next((key for key in keys if project.get(key) is not None), "")
    has_claims = bool(key) and project.get_expanded(key) is True
    is_fast = "extract_graph_nlp" in steps
    name = "fast" if is_fast else "standard" if has_claims else WITHOUT_CLAIMS
    carried.values["workflow"] = name
    if listed is not None:
        carried.note_kept("workflows", "workflow", name)
    elif is_fast:
        carried.note_kept("output/stats.json", "workflow", f"{name}; that index was made so")
    if is_fast and has_claims:
        carried.note_left(key, "the workflow fast has no claims: standard has")
    elif key:
        carried.note_kept(key, "workflow", name)


def _last_steps(project: MicrosoftProject) -> list[str]:
    """Return the steps of the project's last run; empty if they are unknown."""
    folder = project.get("output_storage.base_dir", "output.base_dir", "storage.base_dir")
    try:
        path = project.root / str(project.expand(folder or "output")) / "stats.json"
        steps = json.loads(path.read_text(encoding="utf-8"))["workflows"]
        return list(steps) if isinstance(steps, Mapping) else []
    except (OSError, ValueError, KeyError, TypeError, NotCarriedError):
        return []


def _limit_overlap(carried: ConvertedSettings) -> None:
    """Reduce the overlap to our maximum, half of the tokens of a text unit."""
    project, section = carried.project, carried.values.get("create_text_units", {})
    default: Any = Settings.model_fields["create_text_units"].default
    size = project.expand(section.get("max_tokens", default.max_tokens))
    overlap = project.expand(section.get("overlap_tokens", default.overlap_tokens))
    if isinstance(size, int) and isinstance(overlap, int) and overlap * 2 > size:
        section["overlap_tokens"] = size // 2
        key = "chunks.overlap" if project.get("chunks") else "chunking.overlap"
        carried.note_left(key, f"it is at most half of max_tokens here, so {size // 2}")


def _report_others(carried: ConvertedSettings) -> None:
    """Report why the remaining keys are not converted; report a known parent key once."""
    reported = {key for key, _ in (*carried.kept, *carried.left)}
    converted = [*invert_section("settings"), *STEP_MODELS, *PROMPT_KEYS, *PROMPTS_LEFT]
    handled = {*converted, *KEYS["answering_models"], *KEYS["question_embedding_models"]}
    for key, _ in carried.project.all_values():
        if key in handled or key in reported or find_prefix(key, KEYS["handled"]):
            continue
        if prefix := find_prefix(key, _LEFT):
            if prefix not in reported:
                reported.add(prefix)
                carried.note_left(prefix, _LEFT[prefix])
        # Keys with these endings only name a part of Microsoft GraphRAG: do not report them.
        elif not f".{key}".endswith((".model_instance_name", ".vector_store_id", "_model_id")):
            close = difflib.get_close_matches(key, [*converted, *_LEFT], n=1, cutoff=0.8)
            carried.note_left(key, UNKNOWN + (f"; did you mean {close[0]}?" if close else ""))


def _convert_metadata(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise NotCarriedError("name the fields in load_documents.metadata_columns")
    columns = [str(name) for name in value if str(name) not in _OWN_COLUMNS]
    if not columns:
        raise NotCarriedError("not needed: these have columns of their own")
    return columns


def _convert_encoding(value: Any) -> str:
    if value in ("o200k_base", "cl100k_base"):
        return str(value)
    raise NotCarriedError("only o200k_base and cl100k_base are known: create_text_units.encoding")


def _convert_levels(value: Any) -> int:
    if not isinstance(value, int):
        raise NotCarriedError("it is no number")
    # Microsoft's value is the number of the deepest level, from 0; ours is a count.
    return value + 1


# Functions that convert a value, by our key.
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "load_documents.metadata_columns": _convert_metadata,
    "create_text_units.encoding": _convert_encoding,
    "global_search.max_levels": _convert_levels,
}
