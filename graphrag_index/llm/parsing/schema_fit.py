"""Matching of replies to a schema despite other spellings of keys or another nesting."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from graphrag_index.text.normalize import letters

MAX_WRAPS = 4  # levels of nesting around the requested object
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Shape:
    """The shape of the object that a schema describes.

    Attributes
    ----------
    properties
        The keys, and the schema of each.
    lists
        The keys whose values are lists of records, that is of objects.
    required
        The keys that must be present.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.properties: dict[str, Any] = dict(schema.get("properties", {}))
        self.lists = [name for name, part in self.properties.items() if fields_of(part)]
        self.required = frozenset(schema.get("required", self.properties))

    @property
    def is_records(self) -> bool:
        """Whether every property is a list of records, so that a reply can do without some."""
        return bool(self.lists) and len(self.lists) == len(self.properties)

    def fields(self, property: str) -> list[str]:
        """Return the keys of the records in a list."""
        return list(fields_of(self.properties[property]))

    @cached_property
    def list_names(self) -> dict[str, str]:
        """Map lower-case names of each list and of its records to the key of the list."""
        kinds = {}
        for name in self.lists:
            kinds[name.lower()] = name
            if name.endswith("ies"):
                kinds[name[:-3].lower() + "y"] = name
            elif name.endswith("s"):
                kinds[name[:-1].lower()] = name
        return kinds

    @cached_property
    def _by_letters(self) -> dict[str, str]:
        return {letters(name): name for name in self.properties}

    def matches(self, value: Any) -> bool:
        """Tell whether a value is an object with all required keys and unquoted lists."""
        if not isinstance(value, dict) or not self.required <= value.keys():
            return False
        for name in self.lists:
            records = value.get(name)
            if isinstance(records, str) or (
                isinstance(records, list)
                and any(isinstance(part, str) and part.startswith("{") for part in records)
            ):
                return False
        return True

    def has_any_key(self, value: Any) -> bool:
        """Tell whether a value is an object with a key of the schema, in any spelling."""
        return isinstance(value, dict) and any(
            key in self.properties or letters(str(key)) in self._by_letters for key in value
        )

    def find(self, value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
        """Yield the objects with keys of the schema, also inside other objects and lists."""
        if isinstance(value, str):
            value = as_json(value)
        if self.has_any_key(value):
            yield value
        elif isinstance(value, dict | list) and depth < MAX_WRAPS:
            for inner in value.values() if isinstance(value, dict) else value:
                if isinstance(inner, dict | list | str):
                    yield from self.find(inner, depth + 1)

    def fit(self, value: Any) -> Any:
        """Rename keys to the spelling of the schema, and move nested lists to the top."""
        fitted: dict[str, Any] = _rename_keys(value, self.properties)
        self._name_lists(fitted)
        for name in self.lists:
            records = fitted.get(name)
            if isinstance(records, str):
                fitted[name] = records = as_json(records)
            if isinstance(records, dict) and records.keys() & fields_of(self.properties[name]):
                # A single record without its list.
                fitted[name] = records = [records]
            if isinstance(records, list):
                fields = fields_of(self.properties[name])
                fitted[name] = [_record(record, fields) for record in records]
        for name in self.lists:
            if name not in fitted:
                inner = list(_nested_records(fitted, name, self.lists))
                if inner:
                    fitted[name] = [_record(r, fields_of(self.properties[name])) for r in inner]
        return fitted

    def assign_records(self, records: list[Any]) -> Any:
        """Assign records to lists by their keys; return them unchanged if one is ambiguous."""
        if not self.is_records:
            return records
        if len(self.lists) == 1:
            return self.fit({self.lists[0]: records})
        assigned: dict[str, list[Any]] = {name: [] for name in self.lists}
        for record in records:
            if not isinstance(record, dict):
                return records
            keys = {letters(str(key)) for key in record}
            fits = [len(keys & set(map(letters, self.fields(name)))) for name in self.lists]
            if fits.count(max(fits)) > 1:
                return records
            assigned[self.lists[fits.index(max(fits))]].append(record)
        return self.fit(assigned)

    def name_by_position(self, value: Any) -> Any:
        """Name the fields of records by position, for keys in another language."""
        if not isinstance(value, dict):
            return value
        named = dict(value)
        for name in self.lists:
            records = named.get(name)
            if isinstance(records, list):
                fields = self.fields(name)
                named[name] = [
                    _name_by_position(record, fields) if isinstance(record, dict) else record
                    for record in records
                ]
        return named

    def _name_lists(self, value: dict[str, Any]) -> None:
        """Name lists by position, for keys in another language."""
        missing = [name for name in self.lists if name not in value]
        others = [
            key
            for key, part in value.items()
            if key not in self.properties
            and isinstance(part, list)
            and part
            and all(isinstance(record, dict) for record in part)
        ]
        if len(missing) == len(others):
            for name, key in zip(missing, others, strict=True):
                value[name] = value.pop(key)


def fields_of(part: Any) -> Mapping[str, Any]:
    """Return the properties of the objects in a list; empty for another schema."""
    items = part.get("items") if isinstance(part, dict) else None
    fields = items.get("properties") if isinstance(items, dict) else None
    return fields if isinstance(fields, dict) else {}


def as_json(text: str) -> Any:
    """Parse JSON in a string; return the string if it has none."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return text
    return text


def is_schema(value: Any) -> bool:
    """Tell whether a model returned the schema instead of an answer."""
    return isinstance(value, dict) and isinstance(value.get("properties"), dict)


def _rename_keys(value: Mapping[Any, Any], names: Iterable[str]) -> dict[str, Any]:
    """Rename keys that differ from these names only in case and punctuation."""
    if all(key in value for key in names):
        return dict(value)
    wanted = {letters(name): name for name in names if name not in value}
    spelled: dict[str, Any] = {}
    for key, part in value.items():
        spelled.setdefault(wanted.get(letters(str(key)), key), part)
    return spelled


def _record(record: Any, fields: Mapping[str, Any]) -> Any:
    if isinstance(record, str):
        record = as_json(record)
    if not isinstance(record, dict) or all(key in record for key in fields):
        return record
    spelled = _rename_keys(record, fields)
    # entityType becomes entity_type.
    return {_CAMEL.sub("_", key): value for key, value in spelled.items()}


def _nested_records(value: Mapping[str, Any], name: str, lists: list[str]) -> Iterator[Any]:
    """Yield the records of a list that is nested in records of another list."""
    for other in lists:
        records = value.get(other)
        for record in records if isinstance(records, list) else ():
            inner = record.get(name) if isinstance(record, dict) else None
            yield from inner if isinstance(inner, list) else ()


def _name_by_position(record: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Name unknown fields by the position that they have in the schema."""
    if len(record) < len(names) - 1:
        return record
    named: dict[str, Any] = {}
    at = 0
    for key, value in record.items():
        if key in names:
            at = names.index(key) + 1
            named[key] = value
        elif at < len(names) and names[at] not in record:
            named[names[at]] = value
            at += 1
        else:
            named[key] = value
    return named
