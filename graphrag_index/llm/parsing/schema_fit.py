"""What a schema asks for, and a reply in other keys or another nesting made to fit it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from graphrag_index.text.normalize import letters

# How deep what was asked for may be wrapped.
MAX_WRAPS = 4
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Shape:
    """The object that a schema asks for.

    Attributes
    ----------
    properties
        Its keys, and the schema of each.
    lists
        Those whose values are lists of objects.
    required
        Those that must be there.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.properties: dict[str, Any] = dict(schema.get("properties", {}))
        self.lists = [name for name, part in self.properties.items() if fields_of(part)]
        self.required = frozenset(schema.get("required", self.properties))

    @property
    def is_records(self) -> bool:
        """Whether all of it is lists of records, each of which can be done without."""
        return bool(self.lists) and len(self.lists) == len(self.properties)

    def fields(self, property: str) -> list[str]:
        """Return the keys of the records in a list."""
        return list(fields_of(self.properties[property]))

    @cached_property
    def kinds(self) -> dict[str, str]:
        """What one record of a list, or the list, may be called; and the list."""
        kinds = {}
        for name in self.lists:
            kinds[name.lower()] = name
            if name.endswith("ies"):
                kinds[name[:-3].lower() + "y"] = name
            elif name.endswith("s"):
                kinds[name[:-1].lower()] = name
        return kinds

    @cached_property
    def _by_plain(self) -> dict[str, str]:
        return {letters(name): name for name in self.properties}

    def is_met(self, value: Any) -> bool:
        """Tell whether a value is an object with all keys, and lists where there should be."""
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

    def has_some(self, value: Any) -> bool:
        """Tell whether a value is an object with a key that is asked for, in any spelling."""
        return isinstance(value, dict) and any(
            key in self.properties or letters(str(key)) in self._by_plain for key in value
        )

    def find(self, value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
        """Give the objects with keys that are asked for in what they are wrapped in."""
        if isinstance(value, str):
            value = as_json(value)
        if self.has_some(value):
            yield value
        elif isinstance(value, dict | list) and depth < MAX_WRAPS:
            for inner in value.values() if isinstance(value, dict) else value:
                if isinstance(inner, dict | list | str):
                    yield from self.find(inner, depth + 1)

    def fit(self, value: Any) -> Any:
        """Spell the keys of an object as the schema does, and take lists out of records."""
        fitted: dict[str, Any] = _spelled(value, self.properties)
        self._name_lists(fitted)
        for name in self.lists:
            records = fitted.get(name)
            if isinstance(records, str):
                fitted[name] = records = as_json(records)
            if isinstance(records, dict) and records.keys() & fields_of(self.properties[name]):
                # One record without the list around it.
                fitted[name] = records = [records]
            if isinstance(records, list):
                fields = fields_of(self.properties[name])
                fitted[name] = [_record(record, fields) for record in records]
        for name in self.lists:
            if name not in fitted:
                inner = list(_inner_lists(fitted, name, self.lists))
                if inner:
                    fitted[name] = [_record(r, fields_of(self.properties[name])) for r in inner]
        return fitted

    def sort(self, records: list[Any]) -> Any:
        """Put records under the lists whose keys they have; as they are, if one fits none."""
        if not self.is_records:
            return records
        if len(self.lists) == 1:
            return self.fit({self.lists[0]: records})
        sorted_: dict[str, list[Any]] = {name: [] for name in self.lists}
        for record in records:
            if not isinstance(record, dict):
                return records
            keys = {letters(str(key)) for key in record}
            fits = [len(keys & set(map(letters, self.fields(name)))) for name in self.lists]
            if fits.count(max(fits)) > 1:
                return records
            sorted_[self.lists[fits.index(max(fits))]].append(record)
        return self.fit(sorted_)

    def in_order(self, value: Any) -> Any:
        """Name the fields of records by their order, where their keys are in another language."""
        if not isinstance(value, dict):
            return value
        named = dict(value)
        for name in self.lists:
            records = named.get(name)
            if isinstance(records, list):
                fields = self.fields(name)
                named[name] = [
                    _in_order(record, fields) if isinstance(record, dict) else record
                    for record in records
                ]
        return named

    def _name_lists(self, value: dict[str, Any]) -> None:
        """Name lists by their order, where their keys are in another language."""
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
    """Read JSON in a string; the string itself if it holds none."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text, strict=False)
        except (ValueError, RecursionError):
            return text
    return text


def is_schema(value: Any) -> bool:
    """Tell whether a model gave the schema back in place of an answer."""
    return isinstance(value, dict) and isinstance(value.get("properties"), dict)


def _spelled(value: Mapping[Any, Any], names: Iterable[str]) -> dict[str, Any]:
    """Give keys that differ from these names in case and punctuation only their spelling."""
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
    spelled = _spelled(record, fields)
    # entityType is entity_type.
    return {_CAMEL.sub("_", key): value for key, value in spelled.items()}


def _inner_lists(value: Mapping[str, Any], name: str, lists: list[str]) -> Iterator[Any]:
    """Give the records that stand inside of records of another list."""
    for other in lists:
        records = value.get(other)
        for record in records if isinstance(records, list) else ():
            inner = record.get(name) if isinstance(record, dict) else None
            yield from inner if isinstance(inner, list) else ()


def _in_order(record: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Name the fields between those that are known by what the schema has there."""
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
