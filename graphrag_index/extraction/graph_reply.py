"""Types of entities and relationships in a request, and the validation of its reply.

The first request about a text unit asks for all types. If types are added to the settings later,
another request asks only for the added types. So the requests about a text unit form a chain of
schemas; a schema is the list of types that one request asks for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

from graphrag_index.extraction.reply_records import (
    REPLY_WORDS,
    FoundEntity,
    FoundRecords,
    FoundRelationship,
    read_records,
)
from graphrag_index.llm.request import ParsedReply, ReplyFormat, object_schema
from graphrag_index.schema.settings.step_sections import ExtractGraph
from graphrag_nlp.text.normalize import title_key

# Words that models write instead of an unknown name, such as "none".
NAME_PLACEHOLDERS = frozenset(REPLY_WORDS["no_names"])
EXTRACTION_INSTRUCTIONS: str = REPLY_WORDS["instructions"]["extraction"]


@lru_cache(maxsize=4_096)
def type_key(name: str) -> str:
    """Return the normalized name of a type: "WORKS_FOR" and "works for" are the same type."""
    return title_key(name.replace("_", " "))


class RelationshipKind(NamedTuple):
    """A type of relationship with the entity types of its ends. None means any entity type."""

    type: str
    source: str | None = None
    target: str | None = None

    @property
    def type_keys(self) -> tuple[str, str, str]:
        return type_key(self.type), type_key(self.source or ""), type_key(self.target or "")

    def allows_entity_types(self, source: str, target: str) -> bool:
        """Return whether this relationship may join entities of two types (`type_key`)."""
        _, own_source, own_target = self.type_keys
        return own_source in ("", source) and own_target in ("", target)


@dataclass(frozen=True)
class Schema:
    """The types that one request asks for.

    An empty list means in a first request that the model chooses the types, and in a later request
    that no records of this kind are wanted.
    """

    entity_types: tuple[str, ...] = ()
    kinds: tuple[RelationshipKind, ...] = ()
    strict: bool = False

    @cached_property
    def types_by_key(self) -> dict[str, str]:
        """Map the `type_key` of each entity type to the type."""
        return {type_key(name): name for name in self.entity_types}

    @cached_property
    def kinds_by_type(self) -> dict[str, list[RelationshipKind]]:
        """Map the `type_key` of each relationship type to its allowed pairs of entity types."""
        joined: dict[str, list[RelationshipKind]] = {}
        for kind in self.kinds:
            joined.setdefault(type_key(kind.type), []).append(kind)
        return joined

    @cached_property
    def link_types_by_key(self) -> dict[str, str]:
        """Map the `type_key` of each relationship type to the type."""
        return {key: kinds[0].type for key, kinds in self.kinds_by_type.items()}

    @cached_property
    def identity(self) -> tuple[object, ...]:
        """Return a value to compare schemas, in which spelling and order do not count."""
        kinds = frozenset(kind.type_keys for kind in self.kinds)
        return frozenset(self.types_by_key), kinds, self.strict

    def is_comparable(self, other: "Schema") -> bool:
        """Return whether two schemas agree in `strict` and in which types the model chooses."""
        lists = bool(self.entity_types), bool(self.kinds), self.strict
        return lists == (bool(other.entity_types), bool(other.kinds), other.strict)

    def allows_link(self, key: str, source: FoundEntity, target: FoundEntity) -> bool:
        """Return whether a relationship of type `key` may join two entities.

        Without `strict`, relationships of any type may join any entities.
        """
        kinds = self.kinds_by_type.get(key, ())
        endpoints = type_key(source.type), type_key(target.type)
        is_free = not self.strict or not self.kinds
        return is_free or any(kind.allows_entity_types(*endpoints) for kind in kinds)


# The schemas of the requests about one text unit, in the order of the requests.
SchemaChain = tuple[Schema, ...]


def schema_from_settings(settings: ExtractGraph) -> Schema:
    """Return the schema of the types that the settings list."""
    kinds = (
        RelationshipKind(entry)
        if isinstance(entry, str)
        else RelationshipKind(entry.type, entry.source, entry.target)
        for entry in settings.relationship_types
    )
    return Schema(tuple(settings.entity_types), tuple(kinds), settings.strict)


def merge_schemas(chain: Sequence[Schema]) -> Schema:
    """Merge the schemas of a chain. The first spelling of a type is kept."""
    if len(chain) == 1:
        return chain[0]
    names: dict[str, str] = {}
    kinds: dict[tuple[str, str, str], RelationshipKind] = {}
    for schema in chain:
        for key, name in schema.types_by_key.items():
            names.setdefault(key, name)
        for kind in schema.kinds:
            kinds.setdefault(kind.type_keys, kind)
    return Schema(tuple(names.values()), tuple(kinds.values()), chain[0].strict)


class ExtractionFormat:
    """Format of replies to the last request of a chain. It is the same for all text units."""

    def __init__(self, chain: SchemaChain) -> None:
        self.wanted, self.merged, self.is_added = chain[-1], merge_schemas(chain), len(chain) > 1
        # The JSON schema of replies is limited to features that strict mode supports.
        text: dict[str, Any] = {"type": "string"}
        kinds = FoundEntity, FoundRelationship
        entity, link = (dict.fromkeys(kind._fields, text) for kind in kinds)
        link["strength"] = {"type": "integer"}
        if self.merged.strict:
            # New entities may have relationships of all types, so offer all types to the model.
            links = self.merged if self.wanted.types_by_key else self.wanted
            names = self.wanted.types_by_key or self.merged.types_by_key
            for record, types in ((entity, names), (link, links.link_types_by_key)):
                if types:
                    record["type"] = {**text, "enum": list(types.values())}
        lists = {"entities": object_schema(entity), "relationships": object_schema(link)}
        self.schema = object_schema(
            {name: {"type": "array", "items": record} for name, record in lists.items()}
        )

    def reply_format(
        self, contains: Callable[[str], object], known: FoundRecords, own: FoundRecords
    ) -> ReplyFormat:
        """Return the format of one reply about a text unit.

        `contains` returns a true value if the text mentions a name. `known` are the records in all
        earlier replies about the text unit; `own` are those in replies to the same request.
        """
        return ReplyFormat(
            "extraction",
            self.schema,
            lambda data: _ReplyReader(self, contains, known, own).read_reply(data),
            EXTRACTION_INSTRUCTIONS,
        )


class _ReplyReader:
    """Validator of the records in one reply.

    If the request asks for added types, an entity is kept if it has an added type. A relationship
    is kept if it has an added type, or if one of its ends is a new entity.
    """

    def __init__(
        self,
        format: ExtractionFormat,
        contains: Callable[[str], object],
        known: FoundRecords,
        own: FoundRecords,
    ) -> None:
        self.wanted, self.merged, self.is_added = format.wanted, format.merged, format.is_added
        self.contains = contains
        # The known entities by `title_key`. Of several entities with one name, the first is used.
        self.named = {title_key(entity.name): entity for entity in reversed(known.entities)}
        # The `title_key` of the entities of a wanted type in the replies to this request.
        self.new = {
            title_key(entity.name)
            for entity in own.entities
            if type_key(entity.type) in self.wanted.types_by_key
        }
        # Entities of other types by `title_key`. They are kept only as ends of new relationships.
        self.offered: dict[str, FoundEntity] = {}
        # Use dicts to drop duplicates: a model may repeat the same record many times.
        self.entities: dict[FoundEntity, None] = {}
        self.relationships: dict[FoundRelationship, None] = {}

    def read_reply(self, data: Any) -> ParsedReply:
        found, dropped = read_records(data)
        dropped += sum(not self._add_entity(entity) for entity in found.entities)
        dropped += sum(not self._add_relationship(link) for link in found.relationships)
        # An entity of another type is counted as dropped, unless it was known before.
        dropped += len(self.offered.keys() - self.named.keys())
        return ParsedReply(FoundRecords(tuple(self.entities), tuple(self.relationships)), dropped)

    def _add_entity(self, entity: FoundEntity) -> bool:
        """Add an entity if it has a name and a wanted type. Return whether it is valid."""
        types, key, kind = self.wanted.types_by_key, title_key(entity.name), type_key(entity.type)
        has_no_name = key in NAME_PLACEHOLDERS and not self.contains(entity.name)
        if self.is_added:
            if has_no_name or kind not in types:
                self.offered.setdefault(key, entity)
                return True
        elif has_no_name or (self.wanted.strict and types and kind not in types):
            return False
        entity = entity._replace(type=types.get(kind, entity.type))
        self.entities[entity] = None
        self.new.add(key)
        # Replace the earlier type of a known entity by the added type.
        if self.is_added or key not in self.named:
            self.named[key] = entity
        return True

    def _add_relationship(self, link: FoundRelationship) -> bool:
        """Add a relationship of a wanted type with valid ends. Return whether it is valid."""
        source, target = self._find_entity(link.source), self._find_entity(link.target)
        if source is None or target is None:
            return False
        key, endpoints = type_key(link.type), (source, target)
        is_wanted = key in self.wanted.kinds_by_type or any(
            title_key(e.name) in self.new for e in endpoints
        )
        if self.is_added and not is_wanted:
            # Ignore the relationship: an earlier request asked for its type.
            return True
        if not self.merged.allows_link(key, source, target):
            return False
        for end in endpoints:
            if title_key(end.name) not in self.named:
                self.named[title_key(end.name)] = end
                self.entities[end] = None
        kind = self.merged.link_types_by_key.get(key, link.type)
        self.relationships[link._replace(source=source.name, target=target.name, type=kind)] = None
        return True

    def _find_entity(self, name: str) -> FoundEntity | None:
        """Return the known, offered or new entity with a name; None if the name is invalid."""
        key, types = title_key(name), self.merged.types_by_key
        if key in self.named:
            return self.named[key]
        offered = self.offered.get(key)
        if self.merged.strict and types:
            kind = type_key(offered.type) if offered else ""
            return offered._replace(type=types[kind]) if offered and kind in types else None
        if offered is not None and key not in NAME_PLACEHOLDERS:
            return offered
        return FoundEntity(name) if self.contains(name) else None


def drop_removed_types(
    found: FoundRecords, wanted: Schema, removed: tuple[Set[str], Set[str]]
) -> FoundRecords:
    """Drop records of types that the settings no longer list, and spell types as in `wanted`.

    `removed` are the keys of the removed types: (types of entities, types of relationships).
    The relationships of a dropped entity are dropped too. An entity without type and description
    is dropped if all its relationships are dropped.
    """
    names, types = wanted.types_by_key, wanted.link_types_by_key
    entities = [
        entity._replace(type=names.get(type_key(entity.type), entity.type))
        for entity in found.entities
        if type_key(entity.type) not in removed[0]
    ]
    named: dict[str, list[FoundEntity]] = defaultdict(list)
    for entity in entities:
        named[title_key(entity.name)].append(entity)

    def is_wanted(link: FoundRelationship) -> bool:
        key = type_key(link.type)
        # An entity may occur with several types. One allowed pair of types is enough.
        pairs = product(named[title_key(link.source)], named[title_key(link.target)])
        return key not in removed[1] and any(wanted.allows_link(key, *pair) for pair in pairs)

    links = list(filter(is_wanted, found.relationships))
    loose = _title_keys_of_ends(found.relationships) - _title_keys_of_ends(links)
    return FoundRecords(
        tuple(e for e in entities if e != FoundEntity(e.name) or title_key(e.name) not in loose),
        tuple(link._replace(type=types.get(type_key(link.type), link.type)) for link in links),
    )


def _title_keys_of_ends(links: Iterable[FoundRelationship]) -> set[str]:
    return {title_key(end) for link in links for end in (link.source, link.target)}
