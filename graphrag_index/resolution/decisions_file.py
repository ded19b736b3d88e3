"""Parser of `resolutions.yaml`, the decisions of a person about names.

The file lies in the folder of settings.yaml:

    merge:
      Royal Geographical Society: [RGS, Royal Geographic Society]
    never:
      - [Apollo 11, Apollo 12]
    rename:
      Terra Nova Expedition: British Antarctic Expedition 1910
    split:
      John Smith:
        - {title: John Smith (sailor), paths: ["letters/*"]}
        - {title: John Smith (banker), types: [person]}

Names are titles of entities. Upper and lower case and white space do not matter.
"""

import json
from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations, islice
from pathlib import Path
from typing import Any, NoReturn

import yaml

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.section import read_settings_yaml, read_text_file
from graphrag_nlp.text.normalize import title_key

SECTIONS = ("merge", "never", "rename", "split")
# Keys in the section `split`: conditions for the text units that belong to a part of an entity.
SPLIT_KEYS = ("paths", "documents", "text_units", "types")


@dataclass(frozen=True)
class PartConditions:
    """One of several things with the same name, and the conditions for its text units.

    A text unit must match one value of every condition that is not empty. A part without any
    condition gets the text units that match no other part.
    """

    title: str
    paths: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    text_units: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decisions:
    """The decisions of a person. A key is a name normalized by `title_key`."""

    # The new title of a name, by the key of the name. A rename is stored like a merge.
    titles: Mapping[str, str] = field(default_factory=dict)
    # Groups of keys; the entities of any two keys of a group must not be merged.
    never: tuple[tuple[str, ...], ...] = ()
    split: Mapping[str, tuple[PartConditions, ...]] = field(default_factory=dict)
    # By key: (name as written in the file, first section that contains the name).
    named: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def forbidden_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every pair of keys that must not be merged."""
        for keys in self.never:
            yield from combinations(keys, 2)

    def are_merged(self, a: str, b: str) -> bool:
        """Tell whether the names with the keys `a` and `b` get the same title."""
        titles = [self.titles.get(key, "") for key in (a, b)]
        return all(titles) and title_key(titles[0]) == title_key(titles[1])

    def fingerprint(self) -> str:
        """Hash the decisions; comments and the order of entries do not change the hash."""
        content = [
            sorted(self.titles.items()),
            sorted(sorted(keys) for keys in self.never),
            sorted((key, [vars(part) for part in parts]) for key, parts in self.split.items()),
        ]
        return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def read_decisions(path: Path) -> Decisions:
    """Read the decisions of a person; a missing file means no decisions.

    Raises SettingsError if the file cannot be read, is not YAML, or contradicts itself.
    """
    return DecisionsParser(read_text_file(path) or "", path).parse()


class DecisionsParser:
    """A parser of the text of `resolutions.yaml`; its errors name `path` and a line number."""

    def __init__(self, text: str, path: Path) -> None:
        self.text, self.path = text, path
        self.titles: dict[str, str] = {}
        self.named: dict[str, tuple[str, str]] = {}

    def parse(self) -> Decisions:
        content = read_settings_yaml(self.text, str(self.path))
        if content is None:
            return Decisions()
        if not isinstance(content, dict):
            self._raise_error("", f"the file must hold the sections {', '.join(SECTIONS)}")
        for section in content:
            if section not in SECTIONS:
                self._raise_error(section, f"known sections are {', '.join(SECTIONS)}")
        for title, names in self._get_section_items(content, "merge"):
            title = self._check_text(title, "merge")
            self._add_title(title, title, "merge", must_be_new=False)
            for name in self._check_texts(names, f"merge: {title}"):
                self._add_title(name, title, "merge")
        for name, title in self._get_section_items(content, "rename"):
            if not isinstance(title, str):
                self._raise_error(name, "a new title must be a text")
            title = self._check_text(title, "rename")
            self._add_title(name, title, "rename")
            self._add_title(title, title, "rename", must_be_new=False)
        never = tuple(self._parse_never(content.get("never")))
        split = {
            self._add_name(name, "split"): self._parse_parts(name, parts)
            for name, parts in self._get_section_items(content, "split")
        }
        decisions = Decisions(self.titles, never, split, self.named)
        for pair in decisions.forbidden_pairs():
            if decisions.are_merged(*pair):
                a, b = (self.named[key][0] for key in pair)
                self._raise_error(b, f"{a!r} and {b!r} are in both sections, merge and never")
        return decisions

    def _add_title(self, name: Any, title: str, section: str, must_be_new: bool = True) -> None:
        key = self._add_name(name, section)
        known = self.titles.get(key, title)
        if title_key(known) != title_key(title):
            if not must_be_new:
                self._raise_error(name, f"{name!r} is merged into {known!r}: use that title")
            self._raise_error(name, f"{name!r} would have two titles, {known!r} and {title!r}")
        self.titles[key] = title

    def _parse_never(self, groups: Any) -> Iterator[tuple[str, ...]]:
        if not isinstance(groups, list | None):
            self._raise_error("never", "never must be a list of lists of names")
        for names in groups or ():
            if not isinstance(names, list):
                self._raise_error(names, "never must be a list of lists: write `- [A, B]`")
            found = self._check_texts(names, "never")
            keys = tuple(self._add_name(name, "never") for name in found)
            if len(set(keys)) < max(2, len(keys)):
                wrong = "the same name twice" if len(keys) > 1 else "fewer than two names"
                self._raise_error([*found, "never"][0], f"a list of never has {wrong}")
            yield keys

    def _parse_parts(self, name: str, parts: Any) -> tuple[PartConditions, ...]:
        if not isinstance(parts, list) or not parts:
            self._raise_error(name, f"split: {name} must be a list of parts")
        found = [self._parse_part(name, part) for part in parts]
        if len({title_key(part.title) for part in found}) < len(found):
            self._raise_error(name, f"split: {name} has two parts with the same title")
        if sum(part == PartConditions(part.title) for part in found) > 1:
            self._raise_error(name, f"split: {name} has two parts without conditions")
        # Sort the part without conditions last, since it matches every text unit.
        return tuple(sorted(found, key=lambda part: part == PartConditions(part.title)))

    def _parse_part(self, name: str, part: Any) -> PartConditions:
        if not isinstance(part, dict) or "title" not in part:
            self._raise_error(name, f"a part of split: {name} must have a title")
        conditions = {key: values for key, values in part.items() if key != "title"}
        for key, values in conditions.items():
            if key not in SPLIT_KEYS:
                self._raise_error(key, f"conditions of split: {name} are {', '.join(SPLIT_KEYS)}")
            conditions[key] = tuple(self._check_texts(values, f"split: {name}: {key}"))
        return PartConditions(self._check_text(part["title"], "split"), **conditions)

    def _get_section_items(self, content: Mapping[str, Any], section: str) -> ItemsView[Any, Any]:
        found = content.get(section)
        if not isinstance(found, dict | None):
            self._raise_error(section, f"{section} must hold names, each with its titles or parts")
        return (found or {}).items()

    def _check_texts(self, values: Any, place: str) -> list[str]:
        values = [values] if isinstance(values, str) else values
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            problem = f"{place} must be a list of texts; a name such as 1914 or Yes needs quotes"
            self._raise_error(place.rpartition(": ")[2], problem)
        return values

    def _add_name(self, name: Any, section: str) -> str:
        """Return the key of a name, and store the name with its section in `named`."""
        self._check_text(name, section)
        key = title_key(name)
        self.named.setdefault(key, (name, section))
        return key

    def _check_text(self, text: Any, section: str) -> str:
        """Collapse the white space of a name or title; raise SettingsError if it is empty."""
        if not isinstance(text, str) or not title_key(text):
            self._raise_error(
                text, f"{section} has {text!r}, which is not a name; put numbers in quotes"
            )
        return " ".join(text.split())

    def _raise_error(self, near: Any, problem: str) -> NoReturn:
        """Raise SettingsError with the line where the value `near` first occurs."""
        lines = (
            token.start_mark.line + 1
            for token in yaml.scan(self.text, yaml.SafeLoader)
            if isinstance(token, yaml.ScalarToken) and near and token.value == str(near)
        )
        place = "".join(f", line {line}" for line in islice(lines, 1))
        raise SettingsError(f"{self.path}{place}: {problem}.")
