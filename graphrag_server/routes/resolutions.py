"""Decisions about names over HTTP: previewed, recorded in `resolutions.yaml`, and undone."""

import shutil
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from graphrag_index.errors import SettingsError
from graphrag_index.resolution import decisions_file
from graphrag_index.resolution.candidates import ExtractedEntities
from graphrag_index.resolution.decisions_file import Decisions, PartConditions, read_decisions
from graphrag_nlp.text.normalize import title_key
from graphrag_query.store.index_store import IndexStore
from graphrag_server.access import ReadIndex, WriteIndex
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.problems import RequestError, reason_not_stored
from graphrag_server.routes.entities import Entity, read_entities
from graphrag_server.table_pages import MAX_LIMIT

# Tables that divide the text units of a name into parts.
_SPLIT_TABLES = ("extracted_entities", "extracted_mentions", "base_text_units", "documents")
router = APIRouter(prefix="/v1/indexes/{index}/resolutions", tags=["resolutions"])

# Two requests that edit a file at the same time would lose one of the decisions.
_editing = threading.Lock()

Name = Annotated[str, Field(min_length=1, max_length=1_000)]
Values = Annotated[list[Name], Field(max_length=1_000)]


class PartPreview(BaseModel):
    """One part of a split name, with the text units and documents that would belong to it."""

    title: str
    n_text_units: int
    n_documents: int


class Preview(BaseModel):
    """The effect of a decision on the current index.

    Relationships, text units and documents are those of the entities, each counted once. `is_new`
    is false if the file has the decision.
    """

    is_new: bool
    entities: list[Entity]
    n_relationships: int
    n_text_units: int
    n_documents: int
    parts: list[PartPreview]


def preview_names(store: IndexStore, names: Sequence[str], is_new: bool) -> Preview:
    """Count what a decision about some names would change."""
    numbers = _find_entities(store, names)
    text_units = _join(store.links.text_units_of(number).numbers for number in numbers)
    links = _join(store.links.relationships_of(number).relationships for number in numbers)
    documents = store.open_mapped("text_unit_rows").rows(text_units, "document")["document"]
    return Preview(
        is_new=is_new,
        entities=read_entities(store, numbers),
        n_relationships=len(links),
        n_text_units=len(text_units),
        n_documents=documents.n_unique(),
        parts=[],
    )


def preview_split(
    store: IndexStore, name: str, parts: tuple[PartConditions, ...], is_new: bool
) -> Preview:
    """Count what a split of a name would change, and what each part would get.

    The conditions are tested by the code of the step resolve_entities. Text units that match no
    part keep the name. Raises RequestError if the index lacks the tables of this step.
    """
    if missing := [table for table in _SPLIT_TABLES if not store.has_table(table)]:
        raise RequestError(
            409,
            "not_resolvable",
            f"The index has no table {missing[0]}, so names cannot be split: run a workflow that "
            "has the step resolve_entities.",
        )
    decisions = Decisions(split={title_key(name): parts})
    entities, mentions, text_units, documents = map(store.scan, _SPLIT_TABLES)
    found = ExtractedEntities(entities, mentions, text_units, documents, decisions)
    preview = preview_names(store, [name], is_new)
    preview.parts = [
        PartPreview(
            title=part.title,
            n_text_units=len(part.units),
            n_documents=len({unit.document_id for unit in part.units}),
        )
        for part in found.parts
    ]
    return preview


def _find_entities(store: IndexStore, names: Sequence[str]) -> list[int]:
    """Return the entities with these titles, or else these aliases."""
    wanted = dict.fromkeys(map(title_key, names))
    rows = store.scan("entities").select("human_readable_id", "title", "aliases").collect()
    found = _match_names(rows.select("title", number="human_readable_id"), wanted)
    if left := wanted.keys() - found.keys():
        aliases = rows.select(title="aliases", number="human_readable_id").explode("title")
        found |= _match_names(aliases.drop_nulls(), left)
    numbers = [number for key in wanted for number in found.get(key, ())]
    return list(dict.fromkeys(numbers))


def _match_names(rows: pl.DataFrame, keys: Collection[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for title, number in rows.iter_rows():
        if (key := title_key(title)) in keys:
            found.setdefault(key, []).append(number)
    return found


def _join(parts: Iterable[np.ndarray]) -> "np.ndarray":
    """Return the different numbers of several arrays, ascending."""
    return np.unique(np.concatenate([np.zeros(0, np.int32), *parts]))


class Merge(BaseModel, extra="forbid"):
    """The names mean the same thing, which gets the title."""

    kind: Literal["merge"]
    title: Name
    names: list[Name] = Field(min_length=1, max_length=100)


class KeepApart(BaseModel, extra="forbid"):
    """No two of the names mean the same thing."""

    kind: Literal["never"]
    names: list[Name] = Field(min_length=2, max_length=100)


class Rename(BaseModel, extra="forbid"):
    """The name gets a new title."""

    kind: Literal["rename"]
    name: Name
    title: Name


class Part(BaseModel, extra="forbid"):
    """One of several things with the same name. A text unit must match all given conditions."""

    title: Name
    paths: Values = Field([], description="Patterns of paths of documents.")
    documents: Values = Field([], description="Titles or ids of documents.")
    text_units: Values = Field([], description="Ids of text units.")
    types: Values = Field([], description="Types that a model gave in its reply on a text unit.")


class Split(BaseModel, extra="forbid"):
    """Several things have the name; the first part that matches a text unit gets the text unit."""

    kind: Literal["split"]
    name: Name
    parts: list[Part] = Field(min_length=1, max_length=100)

    def conditions(self) -> tuple[PartConditions, ...]:
        """Return the parts, with the part without conditions last, as in the decisions file."""
        parts = []
        for part in self.parts:
            values = part.model_dump(exclude={"title"})
            title = " ".join(part.title.split())
            parts.append(PartConditions(title, **{key: tuple(values[key]) for key in values}))
        return tuple(sorted(parts, key=lambda part: part == PartConditions(part.title)))


AnyDecision = Merge | KeepApart | Rename | Split
Decision = Annotated[AnyDecision, Field(discriminator="kind")]


class Title(BaseModel):
    """A name with the title that a person has chosen for the name."""

    name: str
    title: str


class SplitName(BaseModel):
    """A name that a person has split."""

    name: str
    parts: list[Part]


class Resolutions(BaseModel):
    """The decisions of the file, and the names that the current index has resolved or doubts.

    `resolved` and `doubtful` have the rows of the tables entity_resolutions and doubtful_pairs.
    """

    titles: list[Title]
    never: list[list[str]]
    split: list[SplitName]
    resolved: list[dict[str, Any]]
    n_resolved: int
    doubtful: list[dict[str, Any]]
    n_doubtful: int


class Recorded(BaseModel):
    """Whether the file was changed. The next run applies the decisions of the file."""

    is_changed: bool


@router.get("")
def list_resolutions(
    index: ReadIndex,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum rows of each list.")] = 50,
) -> Resolutions:
    """List the decisions about names, and the doubtful pairs without one, highest score first."""
    path, output = _decisions_path(index), index.store.output
    decisions = read_decisions(path)
    resolved: list[dict[str, Any]] = []
    doubtful: list[Any] = []
    version = index.store.read_pointer()
    if version is not None and {"entity_resolutions", "doubtful_pairs"} <= version.tables.keys():
        resolved = decisions_file.read_resolution_table(output, "entity_resolutions").to_dicts()
        doubtful = decisions_file.doubtful_pairs(output, path)
    named = {key: name for key, (name, _) in decisions.named.items()}
    return Resolutions(
        titles=[
            Title(name=named[key], title=title)
            for key, title in decisions.titles.items()
            if named[key] != title
        ],
        never=[[named[key] for key in keys] for keys in decisions.never],
        split=[
            SplitName(name=named[key], parts=[Part(**asdict(part)) for part in parts])
            for key, parts in decisions.split.items()
        ],
        resolved=resolved[:limit],
        n_resolved=len(resolved),
        doubtful=doubtful[:limit],
        n_doubtful=len(doubtful),
    )


@router.post("/preview")
def preview_resolution(decision: Decision, index: WriteIndex) -> Preview:
    """Count what a decision would change, without recording the decision.

    A decision that `POST /resolutions` would refuse is refused here too.
    """
    store = index.open().store
    is_new = _try(decision, _decisions_path(index))
    if isinstance(decision, Split):
        return preview_split(store, decision.name, decision.conditions(), is_new)
    if isinstance(decision, KeepApart):
        return preview_names(store, decision.names, is_new)
    names = decision.names if isinstance(decision, Merge) else [decision.name]
    return preview_names(store, [" ".join(decision.title.split()), *names], is_new)


@router.post("")
def record_resolution(decision: Decision, index: WriteIndex) -> Recorded:
    """Record a decision in the decisions file. A run applies the decision."""
    path = _decisions_path(index)
    with _edited(path):
        return Recorded(is_changed=_record(decision, path))


@router.delete("")
def undo_resolution(
    index: WriteIndex,
    name: Annotated[
        list[Name],
        Query(min_length=1, max_length=2, description="Two names, or one name that was split."),
    ],
) -> Recorded:
    """Undo the decisions about two names, or the split of one name. A run applies the change.

    If a rule or a model has merged the two names, the file gets the decision to keep them apart.
    """
    path = _decisions_path(index)
    with _edited(path):
        if len(name) == 1:
            is_changed = decisions_file.undo_split(path, name[0])
        else:
            is_changed = decisions_file.undo_decisions(path, name[0], name[1])
            if not is_changed and decisions_file.are_merged_in_index(
                index.store.output, name[0], name[1]
            ):
                is_changed = decisions_file.forbid_merge(path, name)
    if not is_changed:
        raise RequestError(
            404, "no_such_decision", f"There is no decision about {' and '.join(name)} to undo."
        )
    return Recorded(is_changed=True)


def _decisions_path(index: HostedIndex) -> Path:
    return index.root / index.settings.resolve_entities.file


def _record(decision: AnyDecision, path: Path) -> bool:
    """Write a decision into a file; return False if the file has it already."""
    if isinstance(decision, Merge):
        return decisions_file.add_merge(path, decision.title, decision.names)
    if isinstance(decision, KeepApart):
        return decisions_file.forbid_merge(path, decision.names)
    if isinstance(decision, Rename):
        return decisions_file.add_rename(path, decision.name, decision.title)
    return decisions_file.add_split(path, decision.name, decision.conditions())


def _try(decision: AnyDecision, path: Path) -> bool:
    """Write a decision into a copy of the file; return False if the file has it already."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        if path.exists():
            shutil.copyfile(path, copy)
        try:
            return _record(decision, copy)
        except SettingsError as error:
            raise SettingsError(str(error).replace(str(copy), str(path))) from None


@contextmanager
def _edited(path: Path) -> Iterator[None]:
    """Let one request edit decisions at a time; answer 507 if the file cannot be written."""
    with _editing:
        try:
            yield
        except OSError as error:
            text = f"{path.name} is unchanged: {reason_not_stored(error)}."
            raise RequestError(507, "not_stored", text) from None
