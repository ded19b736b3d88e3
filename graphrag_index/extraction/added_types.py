"""The format of what is found when a text unit is asked again, for added types alone."""

from collections.abc import Callable, Mapping
from typing import Any

from graphrag_index.extraction.graph_reply import IN_WORDS, NO_NAMES, ExtractionFormat, json_schema
from graphrag_index.extraction.reply_records import (
    Found,
    FoundEntity,
    FoundRelationship,
    read_records,
)
from graphrag_index.extraction.schema_history import Path, type_key, whole
from graphrag_index.llm.request import ParsedReply, ReplyFormat
from graphrag_index.text.normalize import title_key


class AddedFormat:
    """The format of replies to the last request of a path; one for all text units."""

    def __init__(self, path: Path) -> None:
        added = path[-1]
        self.whole = ExtractionFormat(whole(path))
        self.entity_types = added.names
        self.link_types = {key: kinds[0].type for key, kinds in added.joined.items()}
        # New entities may have relationships of any type.
        asked = self.whole if self.entity_types else self
        enums: list[list[str]] = [[], []]
        if self.whole.strict:
            names = self.entity_types or self.whole.entity_types
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
            Whether the text names something.
        known
            What all earlier replies about the text told of, by `title_key`.
        before
            What earlier replies to requests for the added types told.
        """

        def read(data: Any) -> ParsedReply:
            return _Reader(self, contains, known, before).read(data)

        return ReplyFormat("extraction", self.schema, read, IN_WORDS)


class _Reader:
    """Reads one reply: entities of added types, and the relationships that come with them."""

    def __init__(
        self,
        format: AddedFormat,
        contains: Callable[[str], bool],
        known: Mapping[str, FoundEntity],
        before: Found,
    ) -> None:
        self.format, self.contains = format, contains
        self.named = dict(known)
        # What was found under an added type, by `title_key`.
        self.new = {
            title_key(entity.name)
            for entity in before.entities
            if type_key(entity.type) in format.entity_types
        }
        # Entities that were not asked for: they count as ends of new relationships.
        self.offered: dict[str, FoundEntity] = {}
        # As keys, since models that fall into a loop repeat themselves.
        self.entities: dict[FoundEntity, None] = {}
        self.relationships: dict[FoundRelationship, None] = {}

    def read(self, data: Any) -> ParsedReply:
        found, dropped = read_records(data)
        for entity in found.entities:
            self._sort(entity)
        dropped += sum(not self._add_relationship(link) for link in found.relationships)
        # To name again what is known is no fault.
        dropped += len(self.offered.keys() - self.named.keys())
        return ParsedReply(Found(tuple(self.entities), tuple(self.relationships)), dropped)

    def _sort(self, entity: FoundEntity) -> None:
        """Keep an entity of an added type, and remember any other."""
        key, kind = title_key(entity.name), type_key(entity.type)
        types = self.format.entity_types
        if kind not in types or (key in NO_NAMES and not self.contains(entity.name)):
            self.offered.setdefault(key, entity)
            return
        entity = entity._replace(type=types[kind])
        self.entities[entity] = None
        self.new.add(key)
        # What is known under another type takes part under the added one.
        self.named[key] = entity

    def _add_relationship(self, link: FoundRelationship) -> bool:
        """Keep a relationship of an added type or entity; False if it is no good."""
        ends = self._end(link.source), self._end(link.target)
        if ends[0] is None or ends[1] is None:
            return False
        key, schema = type_key(link.type), self.format.whole
        is_new = any(title_key(end.name) in self.new for end in ends if end)
        if not is_new and key not in self.format.link_types:
            # Asked for before: what it adds would be said of what did not change.
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
        """Return the entity of a name: one that is known, or was told of, or a new one."""
        key, schema = title_key(name), self.format.whole
        if key in self.named:
            return self.named[key]
        told = self.offered.get(key)
        if schema.strict and schema.entity_types:
            kind = type_key(told.type) if told else ""
            if told is None or kind not in schema.entity_types:
                return None
            return told._replace(type=schema.entity_types[kind])
        if told is not None and key not in NO_NAMES:
            return told
        return FoundEntity(name) if self.contains(name) else None
