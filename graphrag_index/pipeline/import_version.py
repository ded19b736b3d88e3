"""Import of an index of Microsoft GraphRAG, or of an export of this program, as a version."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from graphrag_index.errors import InputError, SettingsError, WorkflowError
from graphrag_index.llm.local.local_models import find_vector_identity, load_embedding_model
from graphrag_index.microsoft.import_folder import (
    ImportedIndex,
    ImportSource,
    has_imported,
    open_source,
    write_imported,
)
from graphrag_index.pipeline.history import lock_output
from graphrag_index.pipeline.run import RunSetup, Watcher, run_workflow
from graphrag_index.pipeline.workflow import Workflow, load_step, make_services, read_step_names
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.storage.atomic import write_text_file
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version
from graphrag_index.storage.working_copy import locate_output

# Name of a step: a workflow with this step adds new documents to an imported index.
_SKIP_IMPORTED_STEP = "skip_imported"
# Name of an extraction step → name of the step that adds the imported rows to its rows.
_MERGE_STEP_AFTER = {"extract_graph": "add_imported", "extract_graph_nlp": "add_imported_nlp"}
# Names of steps: a version with one of these steps contains the imported index.
_IMPORT_STEPS = ("read_imported", _SKIP_IMPORTED_STEP)
_WORKFLOW_LINE = re.compile(r"^workflow:[ \t]*([\w.-]+)[ \t]*(#.*)?$", re.MULTILINE)
_WORKFLOW_HEADING = (
    "# The workflow {name} for an update of the index in the folder imported/. Documents that the\n"
    "# imported index has already are not read again.\n"
)


@dataclass(frozen=True)
class ImportResult:
    """The imported version, and counts of the rows that the first run will change."""

    version: Version
    generation: str
    n_both_ways: int  # relationships that also exist in the other direction
    n_dangling: int  # relationships whose source or target is not an entity
    n_outside: int  # entities without a community
    without_vectors: Mapping[str, int]  # rows without a vector, by imported vector table


@dataclass(frozen=True)
class _VectorModel:
    """A placeholder for the model that created the imported vectors; it cannot embed."""

    name: str
    identity: tuple[str, int | None]
    dimension: int


def import_index(
    folder: Path,
    settings: Settings,
    root: Path,
    *,
    replace: bool = False,
    vectors: bool = True,
    watcher: Watcher | None = None,
) -> ImportResult:
    """Copy an index into the project, and make the copy the current version.

    No model is called. Raises InputError if the project has an index, and `replace` is False.
    """
    store = TableStore(locate_output(root, settings))
    source = open_source(folder)
    if store.output.resolve() == source.path.resolve():
        raise InputError(
            f"{source.path} is the output folder of this project: name another one with "
            "`--set output=FOLDER`, for the import and for each run."
        )
    current = store.read_pointer()
    if current is not None and not replace:
        raise InputError(
            f"{store.place} already has an index (version {current.number}). With --replace, the "
            "imported index becomes current; `graphrag-index rollback` restores the old index."
        )
    model = _check_vector_model(source, settings) if vectors and source.vectors else None
    with lock_output(store):
        write_imported(root, source, model.identity if model else None)
    return _build_import_result(_run_import(settings, root, model, watcher), source, root, store)


def restore_imported(
    workflow: Workflow, settings: Settings, root: Path, watcher: Watcher | None = None
) -> Version | None:
    """Restore the version of the imported index, if the current version does not contain it.

    The imported index is missing after `output/` was deleted, or after a rollback to a version
    before the import. A run reuses the communities and reports of the restored version, so they
    are not paid for again. Return None if nothing must be restored.
    """
    extends_import = any(step.name == _SKIP_IMPORTED_STEP for step in workflow.steps)
    current = TableStore(locate_output(root, settings)).read_pointer()
    has_version = current and any(record.name in _IMPORT_STEPS for record in current.steps)
    if not extends_import or has_version or not has_imported(root):
        return None
    imported = ImportedIndex(root)
    name = settings.generate_text_embeddings.model
    identity = find_vector_identity(settings)
    # Use the vectors only if the model of the settings created them; else a run replaces them.
    is_same = imported.vectors and imported.embedded_by == identity
    model = _VectorModel(name, identity, max(imported.vectors.values())) if is_same else None
    return _run_import(settings, root, model, watcher)


def _run_import(
    settings: Settings, root: Path, model: _VectorModel | None, watcher: Watcher | None
) -> Version:
    """Make a version of the folder `imported/`; read its vectors unless `model` is None."""
    vectors = ["read_imported_vectors"] if model else []
    names = ["read_imported", *vectors, "create_search_tables"]
    steps = tuple(load_step(name, root, "import") for name in names)
    services = make_services(settings, None, root)
    embeds = services["embedding_model"]
    # Do not check or open the embedding model, because the vectors exist already.
    services["embedding_model"] = replace(
        embeds, open=lambda step, section: model, check=lambda step, section: None
    )
    setup = RunSetup(watcher=watcher or Watcher())
    return run_workflow(Workflow("imported", steps), settings, root, services, setup).version


def _check_vector_model(source: ImportSource, settings: Settings) -> _VectorModel:
    """Check that the embedding model of the settings may have created the vectors.

    Model name and dimension are compared. Raises SettingsError if one of them differs.
    """
    name = settings.generate_text_embeddings.model
    identity = find_vector_identity(settings)
    fix = (
        "name that model in generate_text_embeddings.model, or import without them "
        "(--no-vectors) and have them made by `graphrag-index run --set workflow=imported`"
    )
    if source.model not in (None, identity[0]):
        raise SettingsError(
            f"The vectors of {source.path} were made by {source.model}, and the settings say "
            f"{identity[0]}: {fix}."
        )
    if name in settings.models:
        expected = settings.models[name].dimensions
    else:
        expected = load_embedding_model(name).dimension
    for vectors in source.vectors.values():
        expected = expected or vectors.dimension
        if vectors.dimension != expected:
            raise SettingsError(
                f"The column vector of {vectors.label} has {vectors.dimension} numbers, and the "
                f"embedding model {identity[0]} gives {expected}: {fix}."
            )
    return _VectorModel(name, identity, expected or 1)


def _build_import_result(
    version: Version, source: ImportSource, root: Path, store: TableStore
) -> ImportResult:
    imported = ImportedIndex(root)
    columns = ("source", "target", "source_id", "target_id")
    rows = imported.scan("relationships").select(columns).collect()
    is_link = (rows["source_id"] != "") & (rows["target_id"] != "")
    pairs = rows.filter(is_link).select(
        one=pl.min_horizontal("source", "target"), other=pl.max_horizontal("source", "target")
    )
    members = imported.scan("communities").select(pl.col("entity_ids").explode()).collect()
    entities = imported.scan("entities").select("id").collect()["id"]
    is_zero = ~pl.col("vector").arr.to_list().list.eval(pl.element() != 0).list.any()
    without_vectors = {
        name: store.scan(name, version.tables[name]).select(is_zero.sum()).collect().item()
        for name in imported.vectors
    }
    return ImportResult(
        version,
        source.generation,
        pairs.height - pairs.n_unique(),
        int((~is_link).sum()),
        int((~entities.is_in(members["entity_ids"].implode())).sum()),
        without_vectors,
    )


def add_merge_steps(steps: Sequence[str]) -> list[str]:
    """Return the steps of a workflow, plus the steps that merge the imported index."""
    if _SKIP_IMPORTED_STEP in steps:
        return list(steps)
    extraction = next((step for step in _MERGE_STEP_AFTER if step in steps), None)
    if "load_documents" not in steps or extraction is None:
        raise WorkflowError(
            "A workflow that updates an imported index needs load_documents and "
            "extract_graph or extract_graph_nlp: name one with `--set workflow=NAME`."
        )
    # Move extract_covariates before the step that adds imported text units, because claims are
    # extracted from new text units only.
    claims = [step for step in steps if step == "extract_covariates"]
    added = {
        "load_documents": [_SKIP_IMPORTED_STEP],
        extraction: [*claims, _MERGE_STEP_AFTER[extraction]],
    }
    return [name for step in steps if step not in claims for name in (step, *added.get(step, ()))]


def write_updating_workflow(root: Path, name: str) -> str:
    """Write the workflow `<name>_imported` if it does not exist; return its name."""
    steps = read_step_names(root / "workflows" / f"{name}.yaml")
    if name.endswith("_imported"):
        return name
    new_name = f"{name}_imported"
    target = root / "workflows" / f"{new_name}.yaml"
    if not target.exists():
        lines = "".join(f"- {step}\n" for step in add_merge_steps(steps))
        write_text_file(target, [_WORKFLOW_HEADING.format(name=name), lines])
    return new_name


def replace_workflow(path: Path, old: str, new: str) -> bool:
    """Replace the workflow name in `settings.yaml`; return False if the name is not `old`."""
    text = path.read_text(encoding="utf-8")
    found = list(_WORKFLOW_LINE.finditer(text))
    if len(found) != 1 or found[0][1] != old:
        return False
    start, end = found[0].span(1)
    write_text_file(path, [text[:start], new, text[end:]])
    return True
