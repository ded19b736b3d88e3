"""Convert the settings of Microsoft GraphRAG to ours, and report on each of its keys.

Only what its file says is carried over; for all else our defaults hold.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from graphrag_index.microsoft.migrate_models import carry_models
from graphrag_index.microsoft.migrate_project import (
    KEYS,
    UNKNOWN,
    Carried,
    MicrosoftProject,
    NotCarriedError,
    by_their_key,
    escape_dollars,
    prefix_in,
    shown,
    variables_in,
)
from graphrag_index.microsoft.migrate_prompts import PROMPT_KEYS
from graphrag_index.schema.settings.section import describe_validation_error
from graphrag_index.schema.settings.settings import Settings

# Their key: ours, and the reasons for those that have none of ours.
CARRIED = by_their_key("settings")
STEP_MODELS = {theirs: ours[0] for theirs, ours in by_their_key("step_models").items()}
_LEFT = {theirs: why[0] for theirs, why in by_their_key("left").items()}
# Our workflow `standard` extracts claims, theirs does so only if told.
WITHOUT_CLAIMS = "standard_without_claims"
# Columns of text units, which cannot be metadata.
_OWN_COLUMNS = {"id", "title", "text", "creation_date"}
_INPUT_FOLDERS = ("input_storage.base_dir", "input.storage.base_dir", "input.base_dir")
# The types of input that their default pattern `*.<type>` reads.
_INPUT_TYPES = ("text", "csv", "json", "jsonl", "parquet")
# `.*\.txt$`, `.*\.(md|txt)$` and the like.
_BY_ENDING = re.compile(r"\^?(?:\.\*)?\\\.(?:(\w+)|\((?:\?:)?(\w+(?:\|\w+)*)\))\$?")


def carry_settings(project: MicrosoftProject) -> Carried:
    """Return the values of our `settings.yaml`, and a line on each of their keys."""
    carried = Carried()
    models = carry_models(project, carried)
    if models:
        carried.values["models"] = models
    _carry_input_folder(project, carried)
    _carry_input_pattern(project, carried)
    for key, value in project.leaves():
        for ours in CARRIED.get(key, ()):
            _carry(project, carried, key, ours, value)
        if key in STEP_MODELS:
            _carry_step_model(carried, key, STEP_MODELS[key], value)
    _carry_search_models(project, carried)
    _choose_workflow(project, carried)
    _limit_overlap(project, carried)
    _report_others(project, carried)
    return carried


def _carry_input_folder(project: MicrosoftProject, carried: Carried) -> None:
    key = next((key for key in _INPUT_FOLDERS if project.get(key) is not None), "")
    kind = project.get("input_storage.type", "input.storage.type", "input.type")
    is_remote = kind in ("blob", "cosmosdb", "memory")
    if key and is_remote:
        carried.left(key, "documents are read from a local folder only: copy them into one")
    if is_remote:
        return
    try:
        folder = str(project.expand(project.get(key))) if key else "input"
    except NotCarriedError as error:
        carried.left(key, error)
        return
    path = Path(os.path.abspath(project.root / folder))
    carried.values["load_documents"] = {"folder": str(path)}
    if key:
        carried.kept(key, "load_documents.folder", path)


def _carry_input_pattern(project: MicrosoftProject, carried: Carried) -> None:
    pattern, key = project.get("input.file_pattern"), "input.file_pattern"
    kind = str(project.get("input.file_type") or project.get("input.type") or "")
    include = []
    if kind in _INPUT_TYPES:
        include = [f"**/*.{'txt' if kind == 'text' else kind}"]
    if pattern is None:
        key = "input.file_type" if project.get("input.file_type") else "input.type"
    else:
        try:
            expression = str(project.expand(pattern))
        except NotCarriedError as error:
            carried.left(key, error)
            return
        found = _BY_ENDING.fullmatch(expression)
        if found is None:
            why = f"the regular expression {expression} is no pattern"
            carried.left(key, f"{why}: write load_documents.include")
        else:
            include = [f"**/*.{ending}" for ending in (found[1] or found[2]).split("|")]
    if include:
        carried.values.setdefault("load_documents", {})["include"] = include
        carried.kept(key, "load_documents.include", shown(include))


def _carry(project: MicrosoftProject, carried: Carried, theirs: str, ours: str, value: Any) -> None:
    """Carry a value over if our setting accepts it."""
    section, _, key = ours.partition(".")
    if key in carried.values.get(section, {}):
        carried.left(theirs, f"{ours} is set already")
        return
    try:
        expanded = project.expand(value)
        converted = _CONVERSIONS[theirs](expanded) if theirs in _CONVERSIONS else expanded
        _validate(section, key, converted)
    except NotCarriedError as error:
        carried.left(theirs, error)
        return
    # A variable stays a variable unless its value was converted.
    is_same = converted == expanded and not isinstance(converted, list)
    kept = value if is_same and variables_in(value) else escape_dollars(converted)
    carried.values.setdefault(section, {})[key] = kept
    carried.kept(theirs, ours, shown(kept))


def _validate(section: str, key: str, value: Any) -> None:
    model: Any = Settings.model_fields[section].annotation
    trial = {key: value}
    # Size and overlap depend on each other, which `_limit_overlap` checks.
    if (section, key) == ("create_text_units", "overlap_tokens"):
        trial["max_tokens"] = 1_000_000
    elif (section, key) == ("create_text_units", "max_tokens"):
        trial["overlap_tokens"] = 0
    try:
        model.model_validate(trial)
    except ValidationError as error:
        why = describe_validation_error(error, model, "").partition(": ")[2].rstrip(".")
        raise NotCarriedError(f"{section}.{key} cannot have this value ({why})") from None


def _carry_step_model(carried: Carried, theirs: str, ours: str, value: Any) -> None:
    section, _, key = ours.partition(".")
    name = carried.names.get(str(value))
    if name is None:
        carried.left(theirs, f"no model is called {value}")
        return
    if name != Settings.model_fields[section].default.model:
        carried.values.setdefault(section, {})[key] = name
    carried.kept(theirs, ours, name)


def _carry_search_models(project: MicrosoftProject, carried: Carried) -> None:
    """Set `search.model` if one model answers in all searches, and the embedding model."""
    found = ((key, project.get(key)) for key in KEYS["answering_models"])
    named = {key: str(value) for key, value in found if value is not None}
    names = {carried.names.get(value, "") for value in named.values()}
    name = names.pop() if len(names) == 1 else ""
    if name or carried.names:
        # Not `auto`, which would look for the model that wrote the reports here.
        carried.values["search"] = {"model": name or "chat"}
    for key, value in named.items():
        own = carried.names.get(value)
        if own is None:
            carried.left(key, f"no model is called {value}")
        elif len({*named.values()}) > 1:
            carried.left(key, "one model answers all questions: name it in search.model")
        else:
            carried.kept(key, "search.model", own)
    for key in KEYS["question_embedding_models"]:
        if project.get(key) is not None:
            carried.left(key, "not needed: questions are embedded by the model of the index")
    # Our default is a local model, which made none of their vectors.
    if "embedding" in carried.names.values():
        section = carried.values.setdefault("generate_text_embeddings", {})
        section.setdefault("model", "embedding")


def _choose_workflow(project: MicrosoftProject, carried: Carried) -> None:
    """Choose the workflow that extracts as theirs does."""
    listed = project.get("workflows")
    steps = [str(step) for step in listed] if isinstance(listed, list) else _last_steps(project)
    keys = ("extract_claims.enabled", "claim_extraction.enabled")
    key = next((key for key in keys if project.get(key) is not None), "")
    has_claims = bool(key) and project.expanded(key) is True
    is_fast = "extract_graph_nlp" in steps
    name = "fast" if is_fast else "standard" if has_claims else WITHOUT_CLAIMS
    carried.values["workflow"] = name
    if listed is not None:
        carried.kept("workflows", "workflow", name)
    elif is_fast:
        carried.kept("output/stats.json", "workflow", f"{name}; that index was made so")
    if is_fast and has_claims:
        carried.left(key, "the workflow fast has no claims: standard has")
    elif key:
        carried.kept(key, "workflow", name)


def _last_steps(project: MicrosoftProject) -> list[str]:
    """Return the steps of its last run; empty if unknown."""
    folder = project.get("output_storage.base_dir", "output.base_dir", "storage.base_dir")
    try:
        path = project.root / str(project.expand(folder or "output")) / "stats.json"
        steps = json.loads(path.read_text(encoding="utf-8"))["workflows"]
        return list(steps) if isinstance(steps, Mapping) else []
    except (OSError, ValueError, KeyError, TypeError, NotCarriedError):
        return []


def _limit_overlap(project: MicrosoftProject, carried: Carried) -> None:
    """Reduce the overlap to half of a text unit, which is our maximum."""
    section = carried.values.get("create_text_units", {})
    default: Any = Settings.model_fields["create_text_units"].default
    size = project.expand(section.get("max_tokens", default.max_tokens))
    overlap = project.expand(section.get("overlap_tokens", default.overlap_tokens))
    if isinstance(size, int) and isinstance(overlap, int) and overlap * 2 > size:
        section["overlap_tokens"] = size // 2
        key = "chunks.overlap" if project.get("chunks") else "chunking.overlap"
        carried.left(key, f"it is at most half of max_tokens here, so {size // 2}")


def _report_others(project: MicrosoftProject, carried: Carried) -> None:
    """Say of each other key why it is not carried over, once for all keys below a known one."""
    told = {line.theirs for line in carried.lines}
    handled = {*CARRIED, *STEP_MODELS, *PROMPT_KEYS}
    handled |= {*KEYS["answering_models"], *KEYS["question_embedding_models"]}
    for key, _ in project.leaves():
        if key in handled or key in told or prefix_in(key, KEYS["handled"]):
            continue
        prefix = prefix_in(key, _LEFT)
        if prefix is not None:
            if prefix not in told:
                told.add(prefix)
                carried.left(prefix, _LEFT[prefix])
        elif not _names_own_parts(key):
            known = [*CARRIED, *_LEFT, *STEP_MODELS, *PROMPT_KEYS]
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.8)
            carried.left(key, UNKNOWN + (f"; did you mean {close[0]}?" if close else ""))


def _names_own_parts(key: str) -> bool:
    """Tell whether a key only names a part of their program."""
    last = key.rpartition(".")[2]
    return last in ("model_instance_name", "vector_store_id") or last.endswith("_model_id")


def _metadata(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise NotCarriedError("name the fields in load_documents.metadata_columns")
    columns = [str(name) for name in value if str(name) not in _OWN_COLUMNS]
    if not columns:
        raise NotCarriedError("not needed: these have columns of their own")
    return columns


def _encoding(value: Any) -> str:
    if value not in ("o200k_base", "cl100k_base"):
        raise NotCarriedError(
            "only o200k_base and cl100k_base are known: create_text_units.encoding"
        )
    return str(value)


def _n_levels(value: Any) -> int:
    if not isinstance(value, int):
        raise NotCarriedError("it is no number")
    # Theirs is the number of the deepest level, ours a count.
    return value + 1


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "input.metadata": _metadata,
    "input.document_attribute_columns": _metadata,
    "chunking.prepend_metadata": _metadata,
    "chunking.encoding_model": _encoding,
    "chunks.encoding_model": _encoding,
    "encoding_model": _encoding,
    "global_search.dynamic_search_max_level": _n_levels,
}
