"""Records in the reply of a model, and a tolerant parser for them.

Small models write other keys, lists instead of objects, objects by name, strengths in words, and
quotation marks around names. All these are accepted. A record without a name is invalid, and
invalid records are counted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from graphrag_index.llm.request import ReplyError
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import replace_surrogates, title_key

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
    """Put a text on one line, and remove control characters and lone surrogates."""
    if text.isprintable() and "  " not in text:
        return text.strip()
    return " ".join(_CONTROL_CHARACTER.sub(" ", replace_surrogates(text)).split())


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
