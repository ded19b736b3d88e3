"""A workflow that goes on from an imported index, made of the one that the settings name."""

import re
from collections.abc import Sequence
from pathlib import Path

from graphrag_index.errors import WorkflowError
from graphrag_index.schema.yaml_text import read_yaml
from graphrag_index.storage.atomic import temporary_path

_ENDING = "_imported"
_WORKFLOW = re.compile(r"^workflow:[ \t]*([\w.-]+)[ \t]*(#.*)?$", re.MULTILINE)
_HEADING = (
    "# The workflow {name}, going on from the index in the folder imported/: only documents that\n"
    "# did not come with it are read.\n"
)


def continued_name(name: str) -> str:
    return name if name.endswith(_ENDING) else name + _ENDING


def continued(steps: Sequence[str]) -> list[str]:
    """Return the steps of a workflow such that new documents come behind what was imported.

    Raises
    ------
    WorkflowError
        It reads no documents, or finds nothing in them.
    """
    if "skip_imported" in steps:
        return list(steps)
    found = [step for step in ("extract_graph", "extract_graph_nlp") if step in steps]
    if "load_documents" not in steps or not found:
        raise WorkflowError(
            "A workflow that goes on from an imported index needs load_documents and "
            "extract_graph or extract_graph_nlp: name one with `--set workflow=NAME`."
        )
    # Claims are asked for in new text units alone, so before the others are there.
    has_claims = "extract_covariates" in steps
    made = []
    for step in steps:
        if step == "extract_covariates":
            continue
        made.append(step)
        if step == "load_documents":
            made.append("skip_imported")
        elif step == found[0]:
            made += ["extract_covariates"] * has_claims
            made.append("add_imported" if step == "extract_graph" else "add_imported_nlp")
    return made


def write_workflow(root: Path, name: str) -> str:
    """Write the workflow that goes on, if it is not there; returns its name.

    Raises
    ------
    WorkflowError
        There is no workflow of this name, or none can be made of it.
    """
    path = root / "workflows" / f"{name}.yaml"
    steps = read_yaml(path.read_text(encoding="utf-8-sig"))
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        raise WorkflowError(f"{path} must be a list of step names, one `- name` a line.")
    wanted = continued_name(name)
    target = root / "workflows" / f"{wanted}.yaml"
    if wanted != name and not target.exists():
        lines = "".join(f"- {step}\n" for step in continued(steps))
        _write(target, _HEADING.format(name=name) + lines)
    return wanted


def name_workflow(path: Path, old: str, new: str) -> bool:
    """Name another workflow in `settings.yaml`; False if the line of the old is not found."""
    text = path.read_text(encoding="utf-8")
    found = list(_WORKFLOW.finditer(text))
    if len(found) != 1 or found[0][1] != old:
        return False
    start, end = found[0].span(1)
    _write(path, text[:start] + new + text[end:])
    return True


def _write(path: Path, text: str) -> None:
    temporary = temporary_path(path)
    temporary.write_text(text, encoding="utf-8")
    if path.exists():
        temporary.chmod(path.stat().st_mode)
    temporary.replace(path)
