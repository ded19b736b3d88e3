"""Types of entities and relationships in a request, and the records in its reply.

The first request about a text unit asks for all types. If types are added to the settings later,
another request asks only for the added types. So the requests about a text unit form a chain of
schemas; a schema is the list of types that one request asks for.

Small models write other keys, lists instead of objects, objects by name, strengths in words, and
quotation marks around names. All these are accepted. A record without a name is invalid, and
invalid records are counted.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, NamedTuple

from graphrag_index.llm.request import ParsedReply, ReplyError, ReplyFormat, object_schema
from graphrag_index.schema.settings.step_sections import ExtractGraph
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import remove_formatting, replace_surrogates, title_key

# Maximum number of characters of a name or a type. A longer text is probably a sentence.
MAX_NAME_CHARS = 200
# Strength of a relationship if the reply states none.
DEFAULT_STRENGTH = 5.0
# Names of fields, types and placeholders that models use in replies.
REPLY_WORDS = read_lists("graphrag_index/extraction/data/replies")
_NAMES_OF_FIELD = REPLY_WORDS["fields"]
_KIND_OF_WORD: dict[str, str] = REPLY_WORDS["kinds"]
_STRENGTH_OF_WORD: dict[str, float] = {
    text: value for value, texts in REPLY_WORDS["strengths"].items() for text in texts
}
_CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_DIGITS = re.compile(r"\d+(?:[.,]\d+)?")
_QUOTATION_MARK_PAIRS = ('""', "''", "“”", "„“", "«»", "‘’", "``")


class FoundEntity(NamedTuple):
    """An entity in a reply."""

    name: str
    type: str = ""
    description: str = ""


class FoundRelationship(NamedTuple):
    """A relationship in a reply. `strength` is between 1 and 10."""

    source: str
    target: str
    type: str = ""
    description: str = ""
    strength: float = DEFAULT_STRENGTH


# The keys of the reply schema. Most replies contain only these keys.
_SCHEMA_KEYS = {"entities", "relationships", *FoundEntity._fields, *FoundRelationship._fields}


class FoundRecords(NamedTuple):
    """The records of a reply."""

    entities: tuple[FoundEntity, ...] = ()
    relationships: tuple[FoundRelationship, ...] = ()


def read_records(data: Any) -> tuple[FoundRecords, int]:
    """Parse the records of a reply, and count the invalid records.

    Raises `ReplyError` if the reply has records but none is valid, or has no lists of records.
    """
    records = list(_walk_records(data))
    entities = [_read_entity(record) for kind, record in records if kind == "entity"]
    names = {title_key(entity.name) for entity in entities if entity}
    links = [_read_relationship(record, names) for kind, record in records if kind == "link"]
    found = FoundRecords(tuple(filter(None, entities)), tuple(filter(None, links)))
    n_bad = len(records) - len(found.entities) - len(found.relationships)
    if n_bad and n_bad == len(records):
        raise ReplyError(f"none of its {n_bad} records has a name, or a source and a target")
    return found, n_bad


def _read_entity(record: Any) -> FoundEntity | None:
    if isinstance(record, list):
        fields = record[1:] if _kind_in_first_field(record) else record
        name, kind, description = _pad_values(fields, 3)
    elif isinstance(record, str):
        name, kind, description = record, None, None
    else:
        name, kind, description = _read_values(record, "name", "type", "description")
    entity = FoundEntity(_read_name(name), _read_type(kind), clean_line(_to_text(description)))
    return entity if title_key(entity.name) else None


def _read_relationship(record: Any, names: Set[str]) -> FoundRelationship | None:
    kind = description = strength = None
    if isinstance(record, list):
        record = record[1:] if _kind_in_first_field(record) else record
        source, target, *others = _pad_values(record, max(2, len(record)))
        if len(record) == 3 and title_key(_read_name(record[1])) not in names:
            source, kind, target = record
        elif len(record) == 3 or (len(record) == 4 and _DIGITS.match(_to_text(record[3]))):
            description, strength = _pad_values(others, 2)
        else:
            kind, description, strength = _pad_values(others, 3)
    else:
        names_of_fields = ("source", "target", "link_type", "description", "strength")
        source, target, kind, description, strength = _read_values(record, *names_of_fields)
    kind, description = _read_type(kind), clean_line(_to_text(description))
    link = FoundRelationship(
        _read_name(source), _read_name(target), kind, description, read_strength(strength)
    )
    endpoints = title_key(link.source), title_key(link.target)
    return link if all(endpoints) and endpoints[0] != endpoints[1] else None


def _walk_records(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield (kind, record) for each record of a reply; the kind is "entity" or "link".

    Raises `ReplyError` if the reply has no lists of records.
    """
    if isinstance(data, list):
        for record in data:
            if isinstance(record, dict) and _record_lists(_lowercase_keys(record)):
                yield from _walk_records(record)
            else:
                yield _record_kind(record), record
        return
    if not isinstance(data, dict):
        raise ReplyError("it must be an object with the lists entities and relationships")
    fields = _lowercase_keys(data)
    lists = _record_lists(fields)
    if not lists:
        inner = [value for value in data.values() if isinstance(value, dict)]
        if len(data) == 1 and inner:
            yield from _walk_records(inner[0])
            return
        if _has_field(fields, "source") or ("name" in fields and "error" not in fields):
            yield _record_kind(data), data
            return
        raise ReplyError("it has neither of the lists entities and relationships")
    for kind, records in lists:
        if isinstance(records, dict):
            # Accept records by name, {"Ada": {"type": ...}}, or one record, instead of a list.
            fields = _lowercase_keys(records)
            if "name" in fields or _has_field(fields, "source"):
                yield kind, records
                continue
            for name, record in records.items():
                fields = record if isinstance(record, dict) else {"description": record}
                yield kind, {"name": name, **_lowercase_keys(fields)}
        elif isinstance(records, list):
            yield from ((kind, record) for record in records)
        elif records:
            raise ReplyError("entities and relationships must be lists")


def _record_lists(fields: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return (kind, records) for the entities and the links of a reply. Strings are skipped."""
    found = [
        (kind, next((fields[name] for name in names if name in fields), ""))
        for kind, names in REPLY_WORDS["records"].items()
    ]
    return [(kind, records) for kind, records in found if not isinstance(records, str)]


def _record_kind(record: Any) -> str:
    """Return the kind of a record, `entity` or `link`, by its first field, its type or its keys."""
    if isinstance(record, list):
        return _kind_in_first_field(record) or ("entity" if len(record) < 4 else "link")
    if not isinstance(record, dict):
        return "entity"
    fields = _lowercase_keys(record)
    for name in ("kind", "record", "record_type", "type"):
        value = fields.get(name)
        if isinstance(value, str) and value.lower() in _KIND_OF_WORD and "source" not in fields:
            return _KIND_OF_WORD[value.lower()]
    return "link" if _has_field(fields, "source") and _has_field(fields, "target") else "entity"


def _kind_in_first_field(record: list[Any]) -> str:
    """Return the kind of record that the first field names; "" if it names no kind."""
    first = record[0] if record else None
    return _KIND_OF_WORD.get(first.strip("\"'( ").lower(), "") if isinstance(first, str) else ""


def _pad_values(values: Sequence[Any], n: int) -> Any:
    return (*values, *[None] * n)[:n]


def _lowercase_keys(record: dict[Any, Any]) -> dict[str, Any]:
    if record.keys() <= _SCHEMA_KEYS:
        return record
    return {str(key).strip().lower().replace(" ", "_"): value for key, value in record.items()}


def _has_field(fields: Mapping[str, Any], field: str) -> bool:
    return not fields.keys().isdisjoint(_NAMES_OF_FIELD[field])


def _read_values(record: Any, *fields: str) -> Iterator[Any]:
    """Yield the value of each field, or None. Models use several names for one field."""
    values = _lowercase_keys(record) if isinstance(record, dict) else {}
    return (_first_value_of(values, _NAMES_OF_FIELD[field]) for field in fields)


def _first_value_of(values: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((values[name] for name in names if values.get(name) not in (None, "")), None)


def _to_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(filter(None, map(_to_text, value)))
    if isinstance(value, dict):
        names = [*_NAMES_OF_FIELD["name"], *_NAMES_OF_FIELD["description"], "text"]
        return _to_text(_first_value_of(_lowercase_keys(value), names))
    return "" if value is None or isinstance(value, bool) else str(value)


def _read_type(value: Any) -> str:
    """Parse a type. Return the first of several types, or "" if the value is invalid."""
    kind = clean_line(_to_text(value[0] if isinstance(value, list) and value else value))
    return kind if len(kind) <= MAX_NAME_CHARS else ""


def _read_name(value: Any) -> str:
    """Parse a name, and remove quotation marks around it. Return "" if the value is invalid."""
    name = clean_line(_to_text(value))
    while len(name) > 2 and name[0] + name[-1] in _QUOTATION_MARK_PAIRS:
        name = name[1:-1].strip()
    return name if len(name) <= MAX_NAME_CHARS and any(map(str.isalnum, name)) else ""


def clean_line(text: str) -> str:
    """Put a text on one line, without control, formatting and invalid characters."""
    if text.isprintable() and "  " not in text:
        return text.strip()
    text = remove_formatting(replace_surrogates(text))
    return " ".join(_CONTROL_CHARACTER.sub(" ", text).split())


def read_strength(value: Any) -> float:
    """Parse a strength between 1 and 10 from a number, "8/10", "80 %" or "high"."""
    if isinstance(value, bool) or value is None:
        return DEFAULT_STRENGTH
    text = _to_text(value).strip().lower()
    number = _DIGITS.search(text)
    if number is None:
        return _STRENGTH_OF_WORD.get(text, DEFAULT_STRENGTH)
    strength = float(number[0].replace(",", "."))
    if "%" in text:
        strength /= 10
    elif 0 < strength < 1:
        # The model wrote a fraction (0–1) instead of a number from 1 to 10.
        strength *= 10
    return min(max(strength, 1.0), 10.0)


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
        """Return whether this relationship may join entities of two types.

        `source` and `target` are normalized by `type_key`.
        """
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
