"""Previews of decisions about names: which rows of the index the next run would change."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import polars as pl
from pydantic import BaseModel

from graphrag_index.resolution.candidates import ExtractedEntities
from graphrag_index.resolution.decisions_file import Decisions, PartConditions
from graphrag_index.text.normalize import title_key
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_server.problems import RequestError
from graphrag_server.routes.entities import Entity, read_entities

# Tables that divide the text units of a name into parts.
_SPLIT_TABLES = ("extracted_entities", "extracted_mentions", "base_text_units", "documents")


class PartPreview(BaseModel):
    """One part of a split name, with the text units and documents that would belong to it."""

    title: str
    n_text_units: int
    n_documents: int


class Preview(BaseModel):
    """The effect of a decision on the current index.

    `title` is the title that the entities would get; empty if the decision gives none.
    `unknown_names` are no titles or aliases of entities; a new title is not listed. Relationships,
    text units and documents are those of the entities, each counted once. `is_new` is false if the
    file has the decision.
    """

    is_new: bool
    title: str
    entities: list[Entity]
    unknown_names: list[str]
    n_relationships: int
    n_text_units: int
    n_documents: int
    parts: list[PartPreview]


def preview_names(store: IndexStore, names: Sequence[str], title: str, is_new: bool) -> Preview:
    """Count what a decision about some names, and about their title, would change."""
    numbers, unknown = _find_entities(store, [title, *names] if title else names)
    text_units = _join(store.links.text_units_of(number).numbers for number in numbers)
    links = _join(store.links.relationships_of(number).relationships for number in numbers)
    documents = store.open_mapped("text_unit_rows").rows(text_units, "document")["document"]
    return Preview(
        is_new=is_new,
        title=title,
        entities=read_entities(store, numbers),
        unknown_names=[name for name in unknown if name != title],
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
    preview = preview_names(store, [name], "", is_new)
    preview.parts = [
        PartPreview(
            title=part.title,
            n_text_units=len(part.units),
            n_documents=len({unit.document_id for unit in part.units}),
        )
        for part in found.parts
    ]
    return preview


def _find_entities(store: IndexStore, names: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return the entities with these titles, or else these aliases, and the names of none."""
    wanted = {title_key(name): name for name in names}
    rows = store.scan("entities").select("human_readable_id", "title", "aliases").collect()
    found = _match_names(rows.select("title", number="human_readable_id"), wanted)
    if left := wanted.keys() - found.keys():
        aliases = rows.select(title="aliases", number="human_readable_id").explode("title")
        found |= _match_names(aliases.drop_nulls(), left)
    numbers = [number for key in wanted for number in found.get(key, ())]
    return list(dict.fromkeys(numbers)), [name for key, name in wanted.items() if key not in found]


def _match_names(rows: pl.DataFrame, keys: Collection[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for title, number in rows.iter_rows():
        if (key := title_key(title)) in keys:
            found.setdefault(key, []).append(number)
    return found


def _join(parts: Iterable[np.ndarray]) -> "np.ndarray":
    """Return the different numbers of several arrays, ascending."""
    return np.unique(np.concatenate([np.zeros(0, np.int32), *parts]))
