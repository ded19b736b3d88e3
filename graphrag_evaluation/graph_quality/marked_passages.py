"""Files of passages with entities and relationships marked by hand, and the graphs of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_evaluation.graph_quality.stated_graph import (
    ENTITIES,
    NAMES,
    PAIRS,
    TYPE_SEPARATOR,
    StatedGraph,
)
from graphrag_index.errors import InputError, why_unread
from graphrag_nlp.text.normalize import fold_name, fold_names

_EXPECTED = (
    '{"document": …, "entities": [a name, or {"title": …, "type": …}], "relationships": '
    "[[name, name]]}"
)


@dataclass(frozen=True)
class MarkedEntity:
    """An entity of a passage; an optional one may be found or not: it counts nowhere."""

    title: str
    types: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    is_optional: bool = False


@dataclass(frozen=True)
class MarkedPassage:
    """A passage with all of its entities.

    `text` is None if the passage is the whole document. `relationships` are None if none were
    looked for.
    """

    where: str  # file and line, for messages
    document: str
    text: str | None
    entities: tuple[MarkedEntity, ...]
    relationships: tuple[tuple[str, str], ...] | None


def read_marked_passages(path: Path) -> list[MarkedPassage]:
    """Read a file of marked passages; raise `InputError` that names the file and the line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The reference {path} cannot be read: {why_unread(error)}.") from error
    passages = [
        _parse_passage(line, f"{path}, line {number}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    if not passages:
        raise InputError(f"The reference {path} has no passage.")
    return passages


def _parse_passage(line: str, where: str) -> MarkedPassage:
    try:
        record = json.loads(line)
        text = record.get("text")
        links = record.get("relationships")
        passage = MarkedPassage(
            where,
            _parse_name(record["document"]),
            None if text is None else str(text),
            tuple(map(_parse_entity, record["entities"])),
            None if links is None else tuple(map(_parse_link, links)),
        )
    except KeyError as error:
        raise InputError(f"{where}: expected {_EXPECTED}; {error} is missing.") from None
    except (ArithmeticError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{where}: expected {_EXPECTED} ({error}).") from None
    _check_passage(passage)
    return passage


def _parse_entity(entry: Any) -> MarkedEntity:
    if isinstance(entry, str):
        return MarkedEntity(_parse_name(entry))
    types = entry.get("type") or ()
    return MarkedEntity(
        _parse_name(entry["title"]),
        (types,) if isinstance(types, str) else tuple(map(str, types)),
        tuple(map(str, entry.get("aliases") or ())),
        bool(entry.get("optional", False)),
    )


def _parse_link(entry: Any) -> tuple[str, str]:
    one, other = (entry["source"], entry["target"]) if isinstance(entry, Mapping) else tuple(entry)
    return _parse_name(one), _parse_name(other)


def _parse_name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{value!r} is no name")
    return value


def _check_passage(passage: MarkedPassage) -> None:
    """Raise `InputError` for a relationship of entities that are not listed."""
    titles = {
        fold_name(name) for entity in passage.entities for name in (entity.title, *entity.aliases)
    }
    for pair in passage.relationships or ():
        for name in pair:
            if fold_name(name) not in titles:
                raise InputError(
                    f"{passage.where}: the relationship {list(pair)} names {name!r}, which is not "
                    "among the entities."
                )


def build_marked_graph(passages: Sequence[MarkedPassage]) -> StatedGraph:
    """Build the graph of marked passages; entities of a passage with equal titles are one."""
    entities: list[tuple[int, str, str, bool]] = []
    names, pairs = [], []
    for at, passage in enumerate(passages):
        groups: dict[str, list[MarkedEntity]] = {}
        for entity in passage.entities:
            groups.setdefault(fold_name(entity.title), []).append(entity)
        numbers = {title: len(entities) + rank for rank, title in enumerate(groups)}
        for title, marks in groups.items():
            types = sorted({fold_name(kind) for entity in marks for kind in entity.types} - {""})
            is_optional = all(entity.is_optional for entity in marks)
            entities.append((at, marks[0].title, TYPE_SEPARATOR.join(types), is_optional))
            names += [
                (at, numbers[title], name)
                for entity in marks
                for name in (entity.title, *entity.aliases)
            ]
        for title, marks in groups.items():
            for alias in (alias for entity in marks for alias in entity.aliases):
                numbers.setdefault(fold_name(alias), numbers[title])
        for one, other in passage.relationships or ():
            source, target = sorted((numbers[fold_name(one)], numbers[fold_name(other)]))
            pairs += [(at, source, target)] if source < target else []
    folded = pl.DataFrame(names, NAMES, orient="row").with_columns(fold_names(pl.col("name")))
    with_pairs = [at for at, one in enumerate(passages) if one.relationships is not None]
    return StatedGraph(
        pl.DataFrame(entities, ENTITIES, orient="row"),
        folded.filter(pl.col("name") != "").unique(),
        pl.DataFrame(pairs, PAIRS, orient="row").unique(),
        pl.Series("passage", with_pairs, pl.UInt32),
    )
