"""The types that text units were asked for, and what is left to ask when the settings change.

A text unit is asked for all types at once. When types are added later, a further request asks
for those alone: the requests that a text unit was sent are a path of schemas. The paths of an
index are remembered beside the replies, so that these are found again.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from graphrag_index.schema.settings.llm_steps import ExtractGraph
from graphrag_index.text.normalize import title_key


@lru_cache(maxsize=4_096)
def type_key(name: str) -> str:
    """Equal types have equal keys: WORKS_FOR is works for."""
    return title_key(name.replace("_", " "))


class Kind(NamedTuple):
    """A type of relationship, and which types of entities it joins; None: any."""

    type: str
    source: str | None = None
    target: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return type_key(self.type), type_key(self.source or ""), type_key(self.target or "")


@dataclass(frozen=True)
class Schema:
    """What one request asks for.

    A list without types asks for whatever fits, if the request is the first of a path; in a
    later one, which adds to it, for none.
    """

    entity_types: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    strict: bool = False

    @cached_property
    def names(self) -> dict[str, str]:
        """The types of entities by their keys."""
        return {type_key(name): name for name in self.entity_types}

    @cached_property
    def joined(self) -> dict[str, list[Kind]]:
        """What each type of relationship joins, by its key."""
        joined: dict[str, list[Kind]] = {}
        for kind in self.kinds:
            joined.setdefault(type_key(kind.type), []).append(kind)
        return joined

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal schemas have equal keys, however their types are spelled and ordered."""
        return frozenset(self.names), frozenset(kind.key for kind in self.kinds), self.strict

    def is_kin(self, other: "Schema") -> bool:
        """Tell whether two first requests differ by nothing but the types in their lists.

        To ask for the types of a list is another question than to ask for whatever fits.
        """
        mine, others = (
            (schema.strict, not schema.entity_types, not schema.kinds) for schema in (self, other)
        )
        return mine == others


# Schemas in the order in which a text unit was asked.
Path = tuple[Schema, ...]


def schema_of(settings: ExtractGraph) -> Schema:
    """Return what the settings ask for."""
    kinds = (
        Kind(entry) if isinstance(entry, str) else Kind(entry.type, entry.source, entry.target)
        for entry in settings.relationship_types
    )
    return Schema(tuple(settings.entity_types), tuple(kinds), settings.strict)


def whole(path: Sequence[Schema]) -> Schema:
    """Return all that the requests of a path ask for; equal types as they were spelled first."""
    names: dict[str, str] = {}
    kinds: dict[tuple[str, str, str], Kind] = {}
    for schema in path:
        for key, name in schema.names.items():
            names.setdefault(key, name)
        for kind in schema.kinds:
            kinds.setdefault(kind.key, kind)
    return Schema(tuple(names.values()), tuple(kinds.values()), path[0].strict)


def choose_path(answered: Iterable[Path], wanted: Schema) -> Path:
    """Return what a text unit is asked so that all wanted types were asked for.

    Parameters
    ----------
    answered
        Paths to whose requests there are replies. Of those that have most of the wanted types
        the shortest is taken, of equal ones the first. What it lacks is asked for in one more
        request. If none has a wanted type of entities, all are asked for anew.
    """
    missing = {path: _missing(path, wanted) for path in answered if path[0].is_kin(wanted)}
    best = min(missing, key=lambda path: (_n_types(missing[path]), len(path)), default=())
    if not best or (wanted.names and missing[best].names == wanted.names):
        return (wanted,)
    return (*best, missing[best]) if _n_types(missing[best]) else best


def _missing(path: Path, wanted: Schema) -> Schema:
    """Return the wanted types that no request of a path asks for."""
    asked = whole(path)
    names = (name for key, name in wanted.names.items() if key not in asked.names)
    kinds = (kind for kind in wanted.kinds if not any(_has(other, kind) for other in asked.kinds))
    return Schema(tuple(names), tuple(kinds), wanted.strict)


def _has(asked: Kind, kind: Kind) -> bool:
    """Tell whether who asks for one kind of relationship asks for another with it."""
    return all(
        mine == other or (number and not mine)
        for number, (mine, other) in enumerate(zip(asked.key, kind.key, strict=True))
    )


def _n_types(schema: Schema) -> int:
    return len(schema.names) + len(schema.kinds)


class History:
    """All paths of requests that text units of an index were sent, in the order of their time."""

    def __init__(self, text: str | None = None) -> None:
        self.paths: list[Path] = [
            tuple(
                Schema(tuple(names), tuple(Kind(*kind) for kind in kinds), strict)
                for names, kinds, strict in path
            )
            for path in json.loads(text or "[]")
        ]

    def text(self) -> str:
        """Write the paths as JSON, to be read again."""
        return json.dumps(
            [
                [[schema.entity_types, schema.kinds, schema.strict] for schema in path]
                for path in self.paths
            ],
            ensure_ascii=False,
        )

    def after(self, path: Path) -> list[Schema]:
        """Return what was asked after the requests of a path."""
        n = len(path)
        longer = (other for other in self.paths if len(other) > n and other[:n] == path)
        return list(dict.fromkeys(other[n] for other in longer))

    def find(self, path: Path) -> Path | None:
        """Return the path that asks for the same, spelled as it was then."""
        keys = [schema.key for schema in path]
        for other in self.paths:
            if [schema.key for schema in other[: len(path)]] == keys:
                return other[: len(path)]
        return None

    def taken_out(self, wanted: Schema) -> tuple[frozenset[str], frozenset[str]]:
        """Return the types of entities and relationships that are no longer wanted, as keys.

        Where whatever fits is wanted, none is taken out.
        """
        schemas = [schema for path in self.paths for schema in path]
        names = frozenset(key for schema in schemas for key in schema.names)
        kinds = frozenset(key for schema in schemas for key in schema.joined)
        return (
            names - wanted.names.keys() if wanted.entity_types else frozenset(),
            kinds - wanted.joined.keys() if wanted.kinds else frozenset(),
        )
