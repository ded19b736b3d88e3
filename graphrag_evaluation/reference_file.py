"""Files of passages with entities and relationships marked by hand, as JSON Lines."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_index.errors import InputError, why_unread
from graphrag_nlp.text.normalize import fold_name

_EXPECTED = (
    '{"document": …, "entities": [a name, or {"title": …, "type": …, "start_char": …, '
    '"end_char": …}], "relationships": [[name, name]]}'
)


@dataclass(frozen=True)
class MarkedEntity:
    """An entity of a passage, or one of its mentions if it is listed more than once.

    `span` has offsets in the text of the line, or in the document if the line has no text. An
    optional entity may be found or not: it counts nowhere.
    """

    title: str
    types: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    span: tuple[int, int] | None = None
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
    span = None
    if entry.get("start_char") is not None or entry.get("end_char") is not None:
        span = (int(entry["start_char"]), int(entry["end_char"]))
    return MarkedEntity(
        _parse_name(entry["title"]),
        (types,) if isinstance(types, str) else tuple(map(str, types)),
        tuple(map(str, entry.get("aliases") or ())),
        span,
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
    """Raise `InputError` for an impossible span, or a relationship of entities not listed."""
    length = None if passage.text is None else len(passage.text)
    for entity in passage.entities:
        if entity.span is not None:
            check_span(entity, length, passage.where)
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


def check_span(entity: MarkedEntity, length: int | None, where: str) -> None:
    """Raise `InputError` if the span of an entity is empty or ends after `length` characters."""
    assert entity.span is not None
    start, end = entity.span
    if not 0 <= start < end or (length is not None and end > length):
        of = "" if length is None else f" of {length:,} characters"
        raise InputError(
            f"{where}: the span {start} to {end} of {entity.title!r} is not in the text{of}."
        )
