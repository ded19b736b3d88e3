"""The format of what a model finds in a text unit, and what of a reply fits text and schema."""

from collections.abc import Callable, Mapping
from typing import Any

from graphrag_index.extraction.reply_records import (
    Found,
    FoundEntity,
    FoundRelationship,
    read_records,
)
from graphrag_index.extraction.schema_history import Schema, type_key
from graphrag_index.llm.request import ParsedReply, ReplyFormat
from graphrag_index.text.normalize import title_key

# What models write where they know no name.
NO_NAMES = frozenset(("none", "null", "n/a", "unknown", "unnamed"))


class ExtractionFormat:
    """The format of replies to requests for all types of a schema; one for all text units."""

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
            Whether the text names something.
        known
            What earlier replies about the text told of, by `title_key`.
        """

        def read(data: Any) -> ParsedReply:
            return _Reader(self, contains, known).read(data)

        return ReplyFormat("extraction", self.schema, read, IN_WORDS)

    def may_join(self, key: str, source: FoundEntity, target: FoundEntity) -> bool:
        """Tell whether the schema lets a type of relationship join two entities."""
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


class _Reader:
    """Reads one reply."""

    def __init__(
        self,
        format: ExtractionFormat,
        contains: Callable[[str], bool],
        known: Mapping[str, FoundEntity],
    ) -> None:
        self.format, self.contains = format, contains
        self.named = dict(known)
        # As keys, since models that fall into a loop repeat themselves.
        self.entities: dict[FoundEntity, None] = {}
        self.relationships: dict[FoundRelationship, None] = {}

    def read(self, data: Any) -> ParsedReply:
        found, dropped = read_records(data)
        dropped += sum(not self._add_entity(entity) for entity in found.entities)
        dropped += sum(not self._add_relationship(link) for link in found.relationships)
        return ParsedReply(Found(tuple(self.entities), tuple(self.relationships)), dropped)

    def _add_entity(self, entity: FoundEntity) -> bool:
        """Keep an entity, unless it has no name or no type of the schema."""
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
        """Keep a relationship whose ends are known or in the text, if the schema has it."""
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
        """Return the entity of a name: one that was told of, or a new one."""
        known = self.named.get(title_key(name))
        if known is not None or (self.format.strict and self.format.entity_types):
            return known
        return FoundEntity(name) if self.contains(name) else None


def json_schema(entity_types: list[str], link_types: list[str]) -> dict[str, Any]:
    """Return the JSON schema, in the subset that strict servers take."""
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
