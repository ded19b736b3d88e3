"""From the settings of Microsoft GraphRAG to ours, with a line on each of its keys.

Only what its file says is carried over: where it is silent, ours has its own default.
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from graphrag_index.microsoft.migrate_keys import (
    ANSWERING,
    CARRIED,
    ELSEWHERE,
    EMBEDDING_QUESTIONS,
    LEFT,
    MODEL_OF,
)
from graphrag_index.microsoft.migrate_models import carry_models
from graphrag_index.microsoft.migrate_project import (
    UNKNOWN,
    Carried,
    MicrosoftProject,
    UnsetVariableError,
    references,
    shown,
)
from graphrag_index.microsoft.migrate_prompts import PROMPT_KEYS
from graphrag_index.schema.settings.section import describe_validation_error
from graphrag_index.schema.settings.settings import Settings

# The workflow without claims, which `standard` extracts.
WITHOUT_CLAIMS = "standard_without_claims"
# What text units cannot hold: the text itself and what has columns of its own.
_OWN_COLUMNS = {"id", "title", "text", "creation_date"}


class RefusedError(Exception):
    """A value that ours cannot have; the message says why."""


def carry_settings(project: MicrosoftProject) -> Carried:
    """Return our settings, as far as theirs say anything, and what became of each of their keys.

    `values` are those of `settings.yaml`: `models`, `workflow` and sections.
    """
    carried = Carried()
    models = carry_models(project, carried)
    if models:
        carried.values["models"] = models
    carry_documents(project, carried)
    for key, value in project.leaves():
        if value is None or value in ([], {}, ""):
            continue
        if key in CARRIED:
            for ours in CARRIED[key]:
                _carry(project, carried, key, ours, value)
        elif key in MODEL_OF:
            _step_model(carried, key, MODEL_OF[key], value)
    _answering(project, carried)
    _workflow(project, carried)
    _check_overlap(project, carried)
    _others(project, carried)
    return carried


def _carry(project: MicrosoftProject, carried: Carried, theirs: str, ours: str, value: Any) -> None:
    """Take one value over, if ours can have it."""
    section, _, key = ours.partition(".")
    if key in carried.values.get(section, {}):
        carried.left(theirs, f"{ours} is set already")
        return
    try:
        expanded = project.expand(value)
        convert = _CONVERSIONS.get(theirs)
        converted = convert(expanded) if convert else expanded
        _check(section, key, converted)
    except UnsetVariableError as error:
        carried.left(theirs, f"it uses the variable {error}, which is not set")
        return
    except RefusedError as error:
        carried.left(theirs, str(error))
        return
    is_same = converted == expanded and not isinstance(converted, list)
    kept = value if is_same and _has_reference(value) else _escaped(converted)
    carried.values.setdefault(section, {})[key] = kept
    carried.kept(theirs, ours, shown(kept))


def _check(section: str, key: str, value: Any) -> None:
    """See that a section of ours takes a value."""
    model: Any = Settings.model_fields[section].annotation
    trial = {key: value}
    if (section, key) == ("create_text_units", "overlap_tokens"):
        # Checked against the other when both are known.
        trial["max_tokens"] = 1_000_000
    elif (section, key) == ("create_text_units", "max_tokens"):
        trial["overlap_tokens"] = 0
    try:
        model.model_validate(trial)
    except ValidationError as error:
        why = describe_validation_error(error, model, "").partition(": ")[2]
        raise RefusedError(f"{section}.{key} cannot have this value ({why.rstrip('.')})") from None


def _step_model(carried: Carried, theirs: str, ours: str, value: Any) -> None:
    """Let a step ask the model that it asks there."""
    section, _, key = ours.partition(".")
    name = carried.names.get(str(value))
    if name is None:
        carried.left(theirs, f"no model is called {value}")
        return
    default = Settings.model_fields[section].default.model
    if name != default:
        carried.values.setdefault(section, {})[key] = name
    carried.kept(theirs, ours, name)


def _answering(project: MicrosoftProject, carried: Carried) -> None:
    """Take over who answers, if it is one model for all searches."""
    named = {key: project.get(key) for key in ANSWERING}
    named = {key: value for key, value in named.items() if value is not None}
    names = {carried.names.get(str(value), "") for value in named.values()}
    # What they paid for is written by a model, though not by a run of ours.
    name = names.pop() if len(names) == 1 else ""
    if name or carried.names:
        carried.values["search"] = {"model": name or "chat"}
    for key, value in named.items():
        own = carried.names.get(str(value))
        if own is None:
            carried.left(key, f"no model is called {value}")
        elif len({*map(str, named.values())}) > 1:
            carried.left(key, "one model answers all questions: name it in search.model")
        else:
            carried.kept(key, "search.model", own)
    for key in EMBEDDING_QUESTIONS:
        if project.get(key) is not None:
            carried.left(key, "not needed: questions are embedded by the model of the index")
    # There is no model of this machine in their index: vectors go on as they were.
    if "embedding" in carried.names.values():
        section = carried.values.setdefault("generate_text_embeddings", {})
        section.setdefault("model", "embedding")


def _workflow(project: MicrosoftProject, carried: Carried) -> None:
    """Choose the workflow that does what theirs did."""
    listed = project.get("workflows")
    steps = [str(step) for step in listed] if isinstance(listed, list) else _steps_run(project)
    claims_key = "extract_claims.enabled"
    claims = project.get(claims_key)
    if claims is None:
        claims_key, claims = "claim_extraction.enabled", project.get("claim_extraction.enabled")
    try:
        claims = project.expand(claims)
    except UnsetVariableError:
        claims = None
    fast = "extract_graph_nlp" in steps
    name = "fast" if fast else "standard" if claims is True else WITHOUT_CLAIMS
    carried.values["workflow"] = name
    if listed is not None:
        carried.kept("workflows", "workflow", name)
    elif fast:
        carried.kept("output/stats.json", "workflow", f"{name}; that index was made so")
    if project.get(claims_key) is not None:
        if fast and claims is True:
            carried.left(claims_key, "the workflow fast has no claims: standard has")
        else:
            carried.kept(claims_key, "workflow", name)


def _steps_run(project: MicrosoftProject) -> list[str]:
    """Return the steps of its last run, as its output tells; empty if it does not."""
    folder = project.get("output_storage.base_dir", "output.base_dir", "storage.base_dir")
    try:
        path = project.root / str(project.expand(folder or "output")) / "stats.json"
        steps = json.loads(path.read_text(encoding="utf-8"))["workflows"]
        return list(steps) if isinstance(steps, Mapping) else []
    except (OSError, ValueError, KeyError, TypeError, UnsetVariableError):
        return []


def _check_overlap(project: MicrosoftProject, carried: Carried) -> None:
    """Keep the overlap within half of a text unit, as ours must be."""
    section = carried.values.get("create_text_units", {})
    default: Any = Settings.model_fields["create_text_units"].default
    # Both are known, or they would not have been taken.
    size = project.expand(section.get("max_tokens", default.max_tokens))
    overlap = project.expand(section.get("overlap_tokens", default.overlap_tokens))
    if isinstance(size, int) and isinstance(overlap, int) and overlap * 2 > size:
        section["overlap_tokens"] = size // 2
        key = "chunks.overlap" if project.get("chunks") else "chunking.overlap"
        carried.left(key, f"it is at most half of max_tokens here, so {size // 2}")


def _others(project: MicrosoftProject, carried: Carried) -> None:
    """Say of each other key why it is not carried over; one line for those of one reason."""
    said = {line.theirs for line in carried.lines}
    known = [*CARRIED, *LEFT, *MODEL_OF, *PROMPT_KEYS]
    for key, value in project.leaves():
        if value is None or value in ([], {}, ""):
            continue
        handled = {*CARRIED, *MODEL_OF, *ANSWERING, *EMBEDDING_QUESTIONS, *PROMPT_KEYS}
        if key in handled or key in said or _within(key, ELSEWHERE):
            continue
        prefix = _within(key, LEFT)
        if prefix is None and _is_named(key):
            continue
        if prefix is None:
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.8)
            hint = f"; did you mean {close[0]}?" if close else ""
            carried.left(key, f"{UNKNOWN}{hint}")
        elif prefix not in said:
            said.add(prefix)
            carried.left(prefix, LEFT[prefix])


def _within(key: str, prefixes: Any) -> str | None:
    """Return the longest of some keys that is this one or stands above it."""
    parts = key.split(".")
    names = (".".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((name for name in names if name in prefixes), None)


def _is_named(key: str) -> bool:
    """Tell whether a key only names parts of their program."""
    last = key.rpartition(".")[2]
    return last in ("model_instance_name", "vector_store_id") or last.endswith("_model_id")


def _metadata(value: Any) -> list[str]:
    if not isinstance(value, list):
        raise RefusedError("name the fields in load_documents.metadata_columns")
    columns = [str(name) for name in value if str(name) not in _OWN_COLUMNS]
    if not columns:
        raise RefusedError("not needed: these have columns of their own")
    return columns


def _encoding(value: Any) -> str:
    if value not in ("o200k_base", "cl100k_base"):
        raise RefusedError("only o200k_base and cl100k_base are known: create_text_units.encoding")
    return str(value)


def _one_more(value: Any) -> int:
    if not isinstance(value, int):
        raise RefusedError("it is no number")
    # There the number of the deepest level, here how many there are from level 0 on.
    return value + 1


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "input.metadata": _metadata,
    "input.document_attribute_columns": _metadata,
    "chunking.prepend_metadata": _metadata,
    "chunking.encoding_model": _encoding,
    "chunks.encoding_model": _encoding,
    "encoding_model": _encoding,
    "global_search.dynamic_search_max_level": _one_more,
}


def _has_reference(value: Any) -> bool:
    return isinstance(value, str) and bool(references(value))


def _escaped(value: Any) -> Any:
    """Write a dollar sign that is no variable as our settings have it."""
    if isinstance(value, list):
        return [_escaped(part) for part in value]
    return value.replace("$", "$$") if isinstance(value, str) else value


# What was read there of each type, where no pattern is given.
_PATTERNS = {
    "text": ["**/*.txt"],
    "csv": ["**/*.csv"],
    "json": ["**/*.json"],
    "jsonl": ["**/*.jsonl"],
    "parquet": ["**/*.parquet"],
}
# `.*\.txt$`, `.*\.(md|txt)$` and the like.
_BY_ENDING = re.compile(r"\^?(?:\.\*)?\\\.(?:(\w+)|\((?:\?:)?(\w+(?:\|\w+)*)\))\$?")


def carry_documents(project: MicrosoftProject, carried: Carried) -> None:
    """Take over where the documents lie, and which of them are read."""
    key = next(
        (
            key
            for key in ("input_storage.base_dir", "input.storage.base_dir", "input.base_dir")
            if project.get(key) is not None
        ),
        "",
    )
    kind = project.get("input_storage.type", "input.storage.type", "input.type")
    elsewhere = kind in ("blob", "cosmosdb", "memory")
    if key and elsewhere:
        carried.left(key, "documents are read from a local folder only: copy them into one")
    elif key:
        try:
            folder = str(project.expand(project.get(key)))
            path = Path(os.path.abspath(project.root / folder))
            carried.values["load_documents"] = {"folder": str(path)}
            carried.kept(key, "load_documents.folder", path)
        except UnsetVariableError as error:
            carried.left(key, f"it uses the variable {error}, which is not set")
    elif not elsewhere:
        path = Path(os.path.abspath(project.root / "input"))
        carried.values["load_documents"] = {"folder": str(path)}
    _patterns(project, carried)


def _patterns(project: MicrosoftProject, carried: Carried) -> None:
    pattern = project.get("input.file_pattern")
    kind = str(project.get("input.file_type") or project.get("input.type") or "")
    if kind == "file":
        kind = ""
    include = _PATTERNS.get(kind)
    if pattern is not None:
        try:
            expression = str(project.expand(pattern))
        except UnsetVariableError as error:
            carried.left("input.file_pattern", f"it uses the variable {error}, which is not set")
            return
        found = _BY_ENDING.fullmatch(expression)
        if found is None:
            carried.left(
                "input.file_pattern",
                f"the regular expression {expression} is no pattern: write load_documents.include",
            )
        else:
            include = [f"**/*.{ending}" for ending in (found[1] or found[2]).split("|")]
    if include:
        section = carried.values.setdefault("load_documents", {})
        section["include"] = include
        by = "input.file_pattern" if pattern is not None else "input.type"
        if by == "input.type" and project.get("input.file_type"):
            by = "input.file_type"
        carried.kept(by, "load_documents.include", shown(include))
