"""The format of a reply about a text unit, and the records that fit text and schema.

`ExtractionFormat` is the format of a request for all types of a schema, `AddedFormat` that of a
request for added types alone. `TypeFilter` drops records of types that were removed.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from itertools import product
from typing import Any

from graphrag_index.extraction.reply_records import (
    Found,
    FoundEntity,
    FoundRelationship,
    read_records,
)
from graphrag_index.extraction.schema_history import Schema, SchemaChain, merge_schemas, type_key
from graphrag_index.llm.request import ParsedReply, ReplyFormat
from graphrag_index.text.normalize import title_key

# Placeholders that models write for an unknown name.
NO_NAMES = frozenset(("none", "null", "n/a", "unknown", "unnamed"))


class ExtractionFormat:
    """The format of replies to requests for all types of a schema, for all text units."""

    def __init__(self, schema: Schema) -> None:
        self.strict, self.entity_types, self.joined = schema.strict, schema.names, schema.joined
        self.link_types = {key: kinds[0].type for key, kinds in self.joined.items()}
        self.schema = json_schema(
            list(self.entity_types.values()) if self.strict else [],
            list(self.link_types.values()) if self.strict else [],
        )

    def reply_format(
        self, contains: Callable[[str], bool], known: Mapping[str, FoundEntity]
    ) -> ReplyFormat:
        """Return the format of one reply.

        Parameters
        ----------
        contains
            Whether the text mentions a name.
        known
            Entities in earlier replies about the text, by `title_key`.
        """

        def read(data: Any) -> ParsedReply:
            return _ReplyReader(self, contains, known).read(data)

        return ReplyFormat("extraction", self.schema, read, IN_WORDS)

    def may_join(self, key: str, source: FoundEntity, target: FoundEntity) -> bool:
        """Return whether the schema allows a type of relationship between two entities."""
        return not self.joined or any(
            (kind.source is None or type_key(kind.source) == type_key(source.type))
            and (kind.target is None or type_key(kind.target) == type_key(target.type))
            for kind in self.joined.get(key, ())
        )


IN_WORDS = """\
Reply with one JSON object and nothing else, each record on a line of its own:
{"entities": [
{"name": "...", "type": "...", "description": "..."}
], "relationships": [
{"source": "...", "target": "...", "type": "...", "description": "...", "strength": 5}
]}"""


class _ReplyReader:
    """Validates one reply."""

    def __init__(
        self,
        format: ExtractionFormat,
        contains: Callable[[str], bool],
        known: Mapping[str, FoundEntity],
    ) -> None:
        self.format, self.contains = format, contains
        self.named = dict(known)
        # Keys of a dict, since models in a loop repeat records.
        self.entities: dict[FoundEntity, None] = {}
        self.relationships: dict[FoundRelationship, None] = {}

    def read(self, data: Any) -> ParsedReply:
        found, dropped = read_records(data)
        dropped += sum(not self._add_entity(entity) for entity in found.entities)
        dropped += sum(not self._add_relationship(link) for link in found.relationships)
        return ParsedReply(Found(tuple(self.entities), tuple(self.relationships)), dropped)

    def _add_entity(self, entity: FoundEntity) -> bool:
        """Keep an entity with a name and a type of the schema; return whether it was kept."""
        types = self.format.entity_types
        key, kind = title_key(entity.name), type_key(entity.type)
        if key in NO_NAMES and not self.contains(entity.name):
            return False
        if self.format.strict and types and kind not in types:
            return False
        entity = entity._replace(type=types.get(kind, entity.type))
        self.entities[entity] = None
        self.named.setdefault(key, entity)
        return True

    def _add_relationship(self, link: FoundRelationship) -> bool:
        """Keep a relationship of the schema whose ends are known or in the text."""
        source, target = self._end(link.source), self._end(link.target)
        if source is None or target is None:
            return False
        key = type_key(link.type)
        if self.format.strict and not self.format.may_join(key, source, target):
            return False
        for end in (source, target):
            if title_key(end.name) not in self.named:
                self.named[title_key(end.name)] = end
                self.entities[end] = None
        kind = self.format.link_types.get(key, link.type)
        link = link._replace(source=source.name, target=target.name, type=kind)
        self.relationships[link] = None
        return True

    def _end(self, name: str) -> FoundEntity | None:
        """Return the entity of a name: a known or a new one."""
        known = self.named.get(title_key(name))
        if known is not None or (self.format.strict and self.format.entity_types):
            return known
        return FoundEntity(name) if self.contains(name) else None


class AddedFormat:
    """The format of replies to the last request of a chain, for all text units."""

    def __init__(self, chain: SchemaChain) -> None:
        added = chain[-1]
        self.merged = ExtractionFormat(merge_schemas(chain))
        self.entity_types = added.names
        self.link_types = {key: kinds[0].type for key, kinds in added.joined.items()}
        # New entities may have relationships of any type.
        asked = self.merged if self.entity_types else self
        enums: list[list[str]] = [[], []]
        if self.merged.strict:
            names = self.entity_types or self.merged.entity_types
            enums = [list(names.values()), list(asked.link_types.values())]
        self.schema = json_schema(*enums)

    def reply_format(
        self,
        contains: Callable[[str], bool],
        known: Mapping[str, FoundEntity],
        before: Found,
    ) -> ReplyFormat:
        """Return the format of one reply.

        Parameters
        ----------
        contains
            Whether the text mentions a name.
        known
            Entities in all earlier replies about the text, by `title_key`.
        before
            Records in earlier replies to requests for the added types.
        """

        def read(data: Any) -> ParsedReply:
            return _AddedReader(self, contains, known, before).read(data)

        return ReplyFormat("extraction", self.schema, read, IN_WORDS)


class _AddedReader:
    """Validates one reply: entities of added types, and their relationships."""

    def __init__(
        self,
        format: AddedFormat,
        contains: Callable[[str], bool],
        known: Mapping[str, FoundEntity],
        before: Found,
    ) -> None:
        self.format, self.contains = format, contains
        self.named = dict(known)
        # Entities of an added type, by `title_key`.
        self.new = {
            title_key(entity.name)
            for entity in before.entities
            if type_key(entity.type) in format.entity_types
        }
        # Entities of other types; they may be ends of new relationships.
        self.offered: dict[str, FoundEntity] = {}
        self.entities: dict[FoundEntity, None] = {}
        self.relationships: dict[FoundRelationship, None] = {}

    def read(self, data: Any) -> ParsedReply:
        found, dropped = read_records(data)
        for entity in found.entities:
            self._sort(entity)
        dropped += sum(not self._add_relationship(link) for link in found.relationships)
        # Repeating a known entity is no mistake.
        dropped += len(self.offered.keys() - self.named.keys())
        return ParsedReply(Found(tuple(self.entities), tuple(self.relationships)), dropped)

    def _sort(self, entity: FoundEntity) -> None:
        """Keep an entity of an added type; store any other as offered."""
        key, kind = title_key(entity.name), type_key(entity.type)
        types = self.format.entity_types
        if kind not in types or (key in NO_NAMES and not self.contains(entity.name)):
            self.offered.setdefault(key, entity)
            return
        entity = entity._replace(type=types[kind])
        self.entities[entity] = None
        self.new.add(key)
        # An entity that is known under another type takes part under the added one.
        self.named[key] = entity

    def _add_relationship(self, link: FoundRelationship) -> bool:
        """Keep a relationship of an added type or entity; False if it is invalid."""
        ends = self._end(link.source), self._end(link.target)
        if ends[0] is None or ends[1] is None:
            return False
        key, schema = type_key(link.type), self.format.merged
        is_new = any(title_key(end.name) in self.new for end in ends if end)
        if not is_new and key not in self.format.link_types:
            # An earlier request asked for it.
            return True
        if schema.strict and not schema.may_join(key, ends[0], ends[1]):
            return False
        for end in ends:
            if end and title_key(end.name) not in self.named:
                self.named[title_key(end.name)] = end
                self.entities[end] = None
        kind = schema.link_types.get(key, link.type)
        link = link._replace(source=ends[0].name, target=ends[1].name, type=kind)
        self.relationships[link] = None
        return True

    def _end(self, name: str) -> FoundEntity | None:
        """Return the entity of a name: a known, offered or new one."""
        key, schema = title_key(name), self.format.merged
        if key in self.named:
            return self.named[key]
        offered = self.offered.get(key)
        if schema.strict and schema.entity_types:
            kind = type_key(offered.type) if offered else ""
            if offered is None or kind not in schema.entity_types:
                return None
            return offered._replace(type=schema.entity_types[kind])
        if offered is not None and key not in NO_NAMES:
            return offered
        return FoundEntity(name) if self.contains(name) else None


class TypeFilter:
    """Drops records of removed types, and spells types as the settings do.

    Parameters
    ----------
    wanted
        The schema of the settings.
    removed
        Keys of the removed types of entities and of relationships.
    """

    def __init__(self, wanted: Schema, removed: tuple[Set[str], Set[str]]) -> None:
        self.format = ExtractionFormat(wanted)
        self.entity_types, self.link_types = removed

    def filter(self, found: Found) -> Found:
        """Return the records of wanted types, in their order.

        Relationships of a dropped entity are dropped; so are entities without type and
        description that were only the end of a dropped relationship.
        """
        entities = [self._spelled(e) for e in found.entities if self._is_wanted(e)]
        named: dict[str, list[FoundEntity]] = {}
        for entity in entities:
            named.setdefault(title_key(entity.name), []).append(entity)
        links = [link for link in found.relationships if self._may_stay(link, named)]
        if len(links) < len(found.relationships):
            joined, loose = _ends(links), _ends(found.relationships)
            entities = [
                entity
                for entity in entities
                if entity != FoundEntity(entity.name)
                or title_key(entity.name) not in loose - joined
            ]
        types = self.format.link_types
        return Found(
            tuple(entities),
            tuple(link._replace(type=types.get(type_key(link.type), link.type)) for link in links),
        )

    def _is_wanted(self, entity: FoundEntity) -> bool:
        return type_key(entity.type) not in self.entity_types

    def _spelled(self, entity: FoundEntity) -> FoundEntity:
        return entity._replace(
            type=self.format.entity_types.get(type_key(entity.type), entity.type)
        )

    def _may_stay(self, link: FoundRelationship, named: dict[str, list[FoundEntity]]) -> bool:
        ends = [named.get(title_key(end), []) for end in (link.source, link.target)]
        key = type_key(link.type)
        if not all(ends) or key in self.link_types:
            return False
        # An entity of several types takes part under each.
        return not self.format.strict or any(
            self.format.may_join(key, source, target) for source, target in product(*ends)
        )


def _ends(links: Iterable[FoundRelationship]) -> set[str]:
    return {title_key(end) for link in links for end in (link.source, link.target)}


def json_schema(entity_types: list[str], link_types: list[str]) -> dict[str, Any]:
    """Return the JSON schema, in the subset that strict servers support."""
    text = {"type": "string"}

    def one_of(names: list[str]) -> dict[str, Any]:
        return {"type": "string", "enum": names} if names else text

    entity = {"name": text, "type": one_of(entity_types), "description": text}
    link = {"source": text, "target": text, "type": one_of(link_types), "description": text}
    return _object(
        {
            "entities": {"type": "array", "items": _object(entity)},
            "relationships": {
                "type": "array",
                "items": _object({**link, "strength": {"type": "integer"}}),
            },
        }
    )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
