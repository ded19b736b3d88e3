"""A folder of Microsoft's, or an export, as a new version of the index."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.errors import InputError, SettingsError
from graphrag_index.microsoft.import_folder import Imported, has_imported
from graphrag_index.microsoft.import_source import Source, new_imported, open_source
from graphrag_index.pipeline.run import Watcher, lock, run_workflow
from graphrag_index.pipeline.workflow import Workflow, load_step
from graphrag_index.schema.settings.models import vector_identity
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import Version

NAME = "imported"
# Steps of versions from which a run goes on.
_HOLD_IMPORTED = ("read_imported", "skip_imported")


@dataclass(frozen=True)
class Result:
    """What was imported, and what is to be told about it."""

    version: Version
    generation: str
    # What the first run makes otherwise: how many relationships are the other direction of
    # another, have an end that is no entity, and how many entities are in no community.
    n_both_ways: int
    n_dangling: int
    n_outside: int
    # Of each table of vectors, the rows that have none.
    without_vectors: Mapping[str, int]
    has_vectors: bool


@dataclass(frozen=True)
class _GivenModel:
    """Stands for the model that made the vectors; it is never asked."""

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
) -> Result:
    """Copy an index into the project, and make it the current version; no model is asked.

    Raises
    ------
    TableError
        Something of the index is missing or damaged.
    SettingsError
        Its vectors cannot be those of the embedding model of the settings.
    InputError
        There is an index already, and not `replace`.
    """
    store = TableStore(root / settings.output)
    source = open_source(folder)
    if store.output.resolve() == source.place.resolve():
        raise InputError(
            f"{source.place} is where this project writes its own tables: name another folder with "
            "`--set output=FOLDER`, there and for each run."
        )
    current = store.read_pointer()
    if current is not None and not replace:
        raise InputError(
            f"{store.output} holds an index already (version {current.number}): with --replace "
            "the imported one takes its place, and `graphrag-index rollback` brings it back."
        )
    has_vectors = vectors and bool(source.vectors)
    model = _model(source, settings) if has_vectors else None
    with lock(store), new_imported(root, source, model.identity if model else None):
        pass
    return _result(_make_version(settings, root, model, watcher), source, root, store)


def restore_imported(
    settings: Settings, root: Path, watcher: Watcher | None = None
) -> Version | None:
    """Make a version of what was imported, where a run that goes on from it has none before it.

    Communities and reports are kept from the version before, so without it they would be paid
    again: after `output/` was deleted, or a rollback to a version without them. No model is
    asked. None if there is nothing to do.

    Raises
    ------
    InputError
        A file of what was imported is missing or damaged.
    """
    if not has_imported(root):
        return None
    current = TableStore(root / settings.output).read_pointer()
    if current and any(record.name in _HOLD_IMPORTED for record in current.steps):
        return None
    imported = Imported(root)
    name = settings.generate_text_embeddings.model
    identity = vector_identity(settings.models, name)
    model = None
    # Those of another model are of no use: a run makes them anew.
    if imported.vectors and imported.embedded_by == identity:
        model = _GivenModel(name, identity, max(imported.vectors.values()))
    return _make_version(settings, root, model, watcher)


def _make_version(
    settings: Settings, root: Path, model: "_GivenModel | None", watcher: Watcher | None
) -> Version:
    """Make what lies in `imported/` the current version, with vectors if their model is given."""
    vectors = ["read_imported_vectors"] if model else []
    names = ["read_imported", *vectors, "create_search_tables"]
    steps = tuple(load_step(name, root, "import") for name in names)
    services: dict[str, Any] = {"embedding_model": lambda step: model}
    return run_workflow(Workflow(NAME, steps), settings, root, services, watcher).version


def _model(source: Source, settings: Settings) -> _GivenModel:
    """See that the vectors can be those of the model of the settings."""
    name = settings.generate_text_embeddings.model
    identity = vector_identity(settings.models, name)
    fix = (
        "name that model in generate_text_embeddings.model, or import without them "
        "(--no-vectors) and have them made by `graphrag-index run --set workflow=imported`"
    )
    if source.model not in (None, identity[0]):
        raise SettingsError(
            f"The vectors of {source.place} were made by {source.model}, and the settings say "
            f"{identity[0]}: {fix}."
        )
    expected = _dimension(settings)
    for vectors in source.vectors.values():
        expected = expected or vectors.dimension
        if vectors.dimension != expected:
            raise SettingsError(
                f"The column vector of {vectors.place} has {vectors.dimension} numbers, and the "
                f"embedding model {identity[0]} gives {expected}: {fix}."
            )
    return _GivenModel(name, identity, expected or 1)


def _dimension(settings: Settings) -> int | None:
    """How many numbers the model gives, as far as that is known without asking it."""
    name = settings.generate_text_embeddings.model
    if name in settings.models:
        return settings.models[name].dimensions
    from graphrag_index.llm.local_embeddings import load_embedding_model

    return load_embedding_model(name).dimension


def _result(version: Version, source: Source, root: Path, store: TableStore) -> Result:
    imported = Imported(root)
    links = imported.scan("relationships").select("source", "target", "source_id", "target_id")
    rows = links.collect()
    is_link = (rows["source_id"] != "") & (rows["target_id"] != "")
    pairs = rows.filter(is_link).select(
        one=pl.min_horizontal("source", "target"), other=pl.max_horizontal("source", "target")
    )
    members = imported.scan("communities").select(pl.col("entity_ids").explode()).collect()
    entities = imported.scan("entities").select("id").collect()["id"]
    without = {
        name: int((~_has_direction(store, version, name)).sum()) for name in imported.vectors
    }
    return Result(
        version,
        source.generation,
        pairs.height - pairs.n_unique(),
        int((~is_link).sum()),
        int((~entities.is_in(members["entity_ids"].implode())).sum()),
        without,
        bool(imported.vectors),
    )


def _has_direction(store: TableStore, version: Version, name: str) -> pl.Series:
    rows = store.scan(name, version.tables[name]).select(
        pl.col("vector").arr.to_list().list.eval(pl.element() != 0).list.any()
    )
    return rows.collect().to_series()
