"""The files of a proposal: prompts, settings, differences and report; installation."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from graphrag_evaluation.tuning.extraction_score import mean_parts
from graphrag_evaluation.tuning.prompt_trial import PROMPT
from graphrag_evaluation.tuning.tuned_prompt import compose_prompt, split_prompt
from graphrag_evaluation.tuning.tuning_run import Tuning
from graphrag_index.errors import SettingsError, why_unread
from graphrag_index.llm.ledger import FILE as LEDGER_FILE
from graphrag_index.llm.prompts import FOLDER, Prompts
from graphrag_index.pipeline.workflow import load_workflow
from graphrag_index.schema.settings.project_settings import SETTINGS_FILE, Settings
from graphrag_index.storage.atomic import check_outside, write_text_file

DIFF_FILE, REPORT_FILE, PREVIOUS_FOLDER = "changes.diff", "tuning.json", "previous"
# Prompts that get the description of the documents too, by the step that uses them. The score is
# about extraction only, so they are proposed, but never installed.
DESCRIBED_PROMPTS = {
    "extract_covariates": "extract_covariates",
    "create_community_reports": "create_community_reports",
}
SECTION, KEY = "extract_graph", "entity_types"


def replace_entity_types(text: str, types: Sequence[str]) -> str:
    """Set `extract_graph.entity_types` in the text of a settings file, and keep the rest.

    Raises `SettingsError` if the text is written so that the key cannot be replaced.
    """
    value = yaml.safe_dump(list(types), default_flow_style=True, allow_unicode=True, width=10_000)
    value = value.strip()
    edited = _edit_yaml(text, value)
    expected = yaml.safe_load(text) or {}
    expected[SECTION] = {**(expected.get(SECTION) or {}), KEY: list(types)}
    try:
        is_right = yaml.safe_load(edited) == expected
    except yaml.YAMLError:
        is_right = False
    if not is_right:
        raise SettingsError(
            f"{SETTINGS_FILE} is written in a form that cannot be edited here: write "
            f"{SECTION}.{KEY}: {value} yourself."
        )
    return edited


def check_settings_text(root: Path) -> None:
    """Raise `SettingsError` if the types cannot be set in the settings file of a project."""
    replace_entity_types(_read_settings(root), ["type"])


def _edit_yaml(text: str, value: str) -> str:
    root = yaml.compose(text, yaml.SafeLoader)
    section = _find_value(root, SECTION)
    if section is None:
        end = "" if not text or text.endswith("\n") else "\n"
        return f"{text}{end}{SECTION}:\n  {KEY}: {value}\n"
    key = _find_value(section, KEY)
    if key is not None:
        start, end_mark = key.start_mark.index, key.end_mark.index
        # A list in block style ends at the start of the next key: keep the line break.
        rest = text[start:end_mark]
        tail = rest[len(rest.rstrip()) :]
        # In block style the value begins on a line of its own, or right after the key if null.
        before = text[:start].rstrip(" \n") + " "
        return f"{before}{value}{tail}{text[end_mark:]}"
    if not isinstance(section, yaml.MappingNode) or section.flow_style or not section.value:
        if isinstance(section, yaml.MappingNode) and section.flow_style:
            at = section.start_mark.index + 1
            comma = ", " if section.value else ""
            return f"{text[:at]}{KEY}: {value}{comma}{text[at:]}"
        # The section is empty: its keys may be commented out below it.
        line_end = text.find("\n", _find_key_end(root))
        at = len(text) if line_end < 0 else line_end + 1
        start = text[:at] if text[:at].endswith("\n") else text[:at] + "\n"
        return f"{start}  {KEY}: {value}\n{text[at:]}"
    at, column = section.start_mark.index, section.start_mark.column
    return f"{text[:at]}{KEY}: {value}\n{' ' * column}{text[at:]}"


def _find_value(node: Any, key: str) -> Any:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _find_key_end(root: Any) -> int:
    return next(int(name.end_mark.index) for name, _ in root.value if name.value == SECTION)


def proposed_files(root: Path, settings: Settings, tuning: Tuning) -> dict[str, str]:
    """Return the texts of the proposed prompts and settings, by path in the project."""
    files = {f"{FOLDER}/{PROMPT}.txt": tuning.prompt}
    steps = {step.name for step in load_workflow(root, settings.workflow).steps}
    prompts = Prompts(root)
    for name, step in DESCRIBED_PROMPTS.items():
        if step in steps and tuning.about:
            instructions = split_prompt(prompts.read_prompt(name))
            files[f"{FOLDER}/{name}.txt"] = compose_prompt(instructions, tuning.about, ())
    if tuning.settings.entity_types != settings.extract_graph.entity_types:
        text = _read_settings(root)
        files[SETTINGS_FILE] = replace_entity_types(text, tuning.settings.entity_types)
    return files


def _read_settings(root: Path) -> str:
    try:
        return (root / SETTINGS_FILE).read_text(encoding="utf-8-sig")
    except OSError as error:
        where = root / SETTINGS_FILE
        raise SettingsError(f"{where} cannot be read: {why_unread(error)}.") from error


def text_in_force(root: Path, path: str) -> str:
    """Return the text that a proposed file would replace: a prompt, or the settings."""
    return _read_settings(root) if path == SETTINGS_FILE else Prompts(root).read_prompt(
        Path(path).stem
    )  # fmt: skip


def unified_diff(root: Path, files: Mapping[str, str]) -> str:
    """Return the differences between the files in force and the proposed files."""
    parts = []
    for path, text in files.items():
        before = text_in_force(root, path)
        old, new = (part.splitlines(keepends=True) for part in (before, text))
        for line in difflib.unified_diff(old, new, f"in force/{path}", f"proposed/{path}"):
            parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)


def report_tuning(tuning: Tuning) -> dict[str, Any]:
    """Return everything about a tuning, for `tuning.json`."""
    comparison = tuning.comparison
    evaluation: dict[str, Any] | None = None
    if comparison is not None:
        evaluation = {
            "reference": comparison.reference,
            "before": mean_parts(comparison.before),
            "after": mean_parts(comparison.after),
            "difference": asdict(comparison.difference) if comparison.difference else None,
            "is_better": comparison.is_better,
            "passages": [
                {
                    "label": one.passage.label,
                    "before": one.total,
                    "after": other.total,
                    "missed": other.missed,
                    "ungrounded": other.ungrounded,
                    "failure": other.failure,
                }
                for one, other in zip(comparison.before, comparison.after, strict=True)
            ],
        }
    return {
        "documents": tuning.sample.n_documents,
        "languages": tuning.sample.languages,
        "tuned_on": [passage.label for passage in tuning.sample.tuning],
        "domain": tuning.domain,
        "types": [asdict(one) for one in tuning.types],
        "examples": [asdict(example) for example in tuning.examples],
        "unreadable": tuning.n_unreadable,
        "evaluation": evaluation,
    }


def write_proposal(
    folder: Path, root: Path, files: Mapping[str, str], report: Mapping[str, Any]
) -> None:
    """Write the proposed files, their differences and the report; remove earlier ones."""
    report_text = json.dumps(report, ensure_ascii=False, indent=1) + "\n"
    texts = {**files, DIFF_FILE: unified_diff(root, files), REPORT_FILE: report_text}
    for path in (folder / SETTINGS_FILE, *(folder / FOLDER).glob("*.txt")):
        if path.relative_to(folder).as_posix() not in texts:
            path.unlink(missing_ok=True)
    for name, text in texts.items():
        write_text_file(folder / name, [text])


def check_folder(folder: Path, root: Path, output: Path) -> None:
    """Raise an error if a proposal would overwrite a project, an index or foreign files."""
    check_outside(folder, output)
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    is_own = bool(present & {REPORT_FILE, LEDGER_FILE})
    if folder.resolve() == root.resolve() or (present and not is_own) or folder.is_file():
        raise SettingsError(f"{folder} holds other files: name an empty or a new folder with --to.")


def install_files(
    folder: Path, root: Path, files: Mapping[str, str]
) -> tuple[list[str], Path | None]:
    """Put the measured prompt and the types into force.

    The files that are replaced are kept first, in a new folder of `previous/` of the proposal.
    Each file is replaced atomically, and an installation that was interrupted can be repeated.
    Returns the changed files, and the folder of the previous ones; None if all files are new.
    """
    present = {}
    for name in (f"{FOLDER}/{PROMPT}.txt", SETTINGS_FILE):
        path = root / name
        text = path.read_text(encoding="utf-8") if path.exists() else None
        if name in files and text != files[name]:
            present[name] = text
    earlier = folder / PREVIOUS_FOLDER
    n = sum(1 for _ in earlier.iterdir()) if earlier.is_dir() else 0
    kept = earlier / str(n + 1)
    replaced = {name: text for name, text in present.items() if text is not None}
    for name, text in replaced.items():
        write_text_file(kept / name, [text])
    for name in present:
        write_text_file(root / name, [files[name]])
    return list(present), kept if replaced else None
