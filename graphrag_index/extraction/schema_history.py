"""The types requested for text units so far, and those to request after the settings change.

One request asks for all types of a text unit. When types are added later, a further request asks
for these alone: so the requests of a text unit form a chain of schemas. All chains of an index
are stored beside the replies, so that the replies are found again.
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
    """Return the identity of a type: WORKS_FOR equals works for."""
    return title_key(name.replace("_", " "))


class Kind(NamedTuple):
    """A type of relationship, and the types of entities that it joins; None: any."""

    type: str
    source: str | None = None
    target: str | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        return type_key(self.type), type_key(self.source or ""), type_key(self.target or "")


@dataclass(frozen=True)
class Schema:
    """The types that one request asks for.

    An empty list lets the model choose types in the first request of a chain; in a later request
    it asks for none.
    """

    entity_types: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    strict: bool = False

    @cached_property
    def names(self) -> dict[str, str]:
        """The types of entities by key."""
        return {type_key(name): name for name in self.entity_types}

    @cached_property
    def joined(self) -> dict[str, list[Kind]]:
        """The kinds of each type of relationship, by its key."""
        joined: dict[str, list[Kind]] = {}
        for kind in self.kinds:
            joined.setdefault(type_key(kind.type), []).append(kind)
        return joined

    @cached_property
    def key(self) -> tuple[object, ...]:
        """The identity of the schema, whatever the spelling and order of types."""
        return frozenset(self.names), frozenset(kind.key for kind in self.kinds), self.strict

    def is_comparable(self, other: "Schema") -> bool:
        """Return whether two first requests differ in the types of their lists only.

        A list of types and a free choice are different questions.
        """
        mine, others = (
            (schema.strict, not schema.entity_types, not schema.kinds) for schema in (self, other)
        )
        return mine == others


# The schemas of the requests of one text unit, in order.
SchemaChain = tuple[Schema, ...]


def schema_of(settings: ExtractGraph) -> Schema:
    """Return the schema of the settings."""
    kinds = (
        Kind(entry) if isinstance(entry, str) else Kind(entry.type, entry.source, entry.target)
        for entry in settings.relationship_types
    )
    return Schema(tuple(settings.entity_types), tuple(kinds), settings.strict)


def merge_schemas(chain: Sequence[Schema]) -> Schema:
    """Merge the schemas of a chain; equal types keep their first spelling."""
    names: dict[str, str] = {}
    kinds: dict[tuple[str, str, str], Kind] = {}
    for schema in chain:
        for key, name in schema.names.items():
            names.setdefault(key, name)
        for kind in schema.kinds:
            kinds.setdefault(kind.key, kind)
    return Schema(tuple(names.values()), tuple(kinds.values()), chain[0].strict)


def choose_chain(answered: Iterable[SchemaChain], wanted: Schema) -> SchemaChain:
    """Return the chain of requests that covers all wanted types of a text unit.

    Parameters
    ----------
    answered
        Chains whose requests have replies. The one with most of the wanted types is chosen, then
        the shortest, then the first. One more request asks for the missing types. If no chain
        has a wanted type of entities, all types are requested again.
    """
    missing = {
        chain: _missing(chain, wanted) for chain in answered if chain[0].is_comparable(wanted)
    }
    best = min(missing, key=lambda chain: (_n_types(missing[chain]), len(chain)), default=())
    if not best or (wanted.names and missing[best].names == wanted.names):
        return (wanted,)
    return (*best, missing[best]) if _n_types(missing[best]) else best


def _missing(chain: SchemaChain, wanted: Schema) -> Schema:
    """Return the wanted types that no request of a chain asks for."""
    asked = merge_schemas(chain)
    names = (name for key, name in wanted.names.items() if key not in asked.names)
    kinds = (kind for kind in wanted.kinds if not any(_has(other, kind) for other in asked.kinds))
    return Schema(tuple(names), tuple(kinds), wanted.strict)


def _has(asked: Kind, kind: Kind) -> bool:
    """Return whether a request for one kind of relationship includes another."""
    return all(
        mine == other or (number and not mine)
        for number, (mine, other) in enumerate(zip(asked.key, kind.key, strict=True))
    )


def _n_types(schema: Schema) -> int:
    return len(schema.names) + len(schema.kinds)


class History:
    """All chains of requests of an index, oldest first."""

    def __init__(self, text: str | None = None) -> None:
        self.chains: list[SchemaChain] = [
            tuple(
                Schema(tuple(names), tuple(Kind(*kind) for kind in kinds), strict)
                for names, kinds, strict in chain
            )
            for chain in json.loads(text or "[]")
        ]

    def as_json(self) -> str:
        """Return the chains as JSON."""
        return json.dumps(
            [
                [[schema.entity_types, schema.kinds, schema.strict] for schema in chain]
                for chain in self.chains
            ],
            ensure_ascii=False,
        )

    def next_schemas(self, chain: SchemaChain) -> list[Schema]:
        """Return the schemas that were requested after a chain."""
        n = len(chain)
        longer = (other for other in self.chains if len(other) > n and other[:n] == chain)
        return list(dict.fromkeys(other[n] for other in longer))

    def find(self, chain: SchemaChain) -> SchemaChain | None:
        """Return the stored chain with the same types, in its own spelling."""
        keys = [schema.key for schema in chain]
        for other in self.chains:
            if [schema.key for schema in other[: len(chain)]] == keys:
                return other[: len(chain)]
        return None

    def removed_types(self, wanted: Schema) -> tuple[frozenset[str], frozenset[str]]:
        """Return the keys of the types of entities and relationships that were removed.

        If the model may choose types, none is removed.
        """
        schemas = [schema for chain in self.chains for schema in chain]
        names = frozenset(key for schema in schemas for key in schema.names)
        kinds = frozenset(key for schema in schemas for key in schema.joined)
        return (
            names - wanted.names.keys() if wanted.entity_types else frozenset(),
            kinds - wanted.joined.keys() if wanted.kinds else frozenset(),
        )
