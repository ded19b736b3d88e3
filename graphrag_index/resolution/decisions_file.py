"""Decisions by a person about names: `resolutions.yaml`, beside settings.yaml.

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

Names are those of entities, in any case and spacing.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

import yaml

from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.section import read_yaml
from graphrag_index.text.normalize import title_key

SECTIONS = ("merge", "never", "rename", "split")
# Marks that distinguish the parts of a split.
MARKS = ("paths", "documents", "text_units", "types")
# A larger file was not written by a person, and must not fill the memory.
MAX_BYTES = 50_000_000


@dataclass(frozen=True)
class Part:
    """One of the entities with a common name, and the text units that mean it.

    A text unit must have all that is named, one of each: a path, a document, ... A part that
    names nothing is where no other is.
    """

    title: str
    paths: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    text_units: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decisions:
    """Decisions by a person; keys of titles are those of `title_key`."""

    # Title that names take, by the key of each; a rename is the merge of one name.
    titles: Mapping[str, str] = field(default_factory=dict)
    # Groups of keys that are pairwise different entities.
    never: tuple[tuple[str, ...], ...] = ()
    split: Mapping[str, tuple[Part, ...]] = field(default_factory=dict)
    # Each name as it is written, by its key, with the section that names it first.
    named: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def never_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield every pair of names to keep apart."""
        for keys in self.never:
            for at, one in enumerate(keys):
                for other in keys[at + 1 :]:
                    yield one, other

    def fingerprint(self) -> str:
        """Hash the decisions, without comments and order of the file."""
        content = [
            sorted(self.titles.items()),
            sorted(sorted(keys) for keys in self.never),
            sorted((key, [vars(part) for part in parts]) for key, parts in self.split.items()),
        ]
        return blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


def read_decisions(path: Path) -> Decisions:
    """Read the decisions of a person; a missing file contains none.

    Raises
    ------
    SettingsError
        The file cannot be read, is no YAML, or says what cannot be meant.
    """
    text = read_text(path)
    return parse_decisions(text, path) if text else Decisions()


def read_text(path: Path) -> str:
    """Read the file; empty if it is missing."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SettingsError(f"{path} is larger than {MAX_BYTES:,} bytes: it is no such file.")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not UTF-8: save it in that encoding.") from error


def parse_decisions(text: str, path: Path) -> Decisions:
    """Parse and check the text of a file."""
    return _Reader(text, path).read()


class _Reader:
    """A parser of one file, whose errors name the line."""

    def __init__(self, text: str, path: Path) -> None:
        self.text, self.path = text, path
        self.titles: dict[str, str] = {}
        self.named: dict[str, tuple[str, str]] = {}

    def read(self) -> Decisions:
        try:
            content = read_yaml(self.text)
        except ValueError as error:
            raise SettingsError(f"{self.path} is not valid YAML: {error}.") from error
        if content is None:
            return Decisions()
        if not isinstance(content, dict):
            self._refuse("", f"it must hold the sections {', '.join(SECTIONS)}")
        for section in content:
            if section not in SECTIONS:
                self._refuse(str(section), f"known sections are {', '.join(SECTIONS)}")
        merge, rename = (self._mapping(content, name) for name in ("merge", "rename"))
        for title, names in merge.items():
            title = self._title(title, "merge")
            self._decide(title, title, "merge", must_be_new=False)
            for name in self._strings(names, f"merge: {title}"):
                self._decide(name, title, "merge")
        for name, title in rename.items():
            if not isinstance(title, str):
                self._refuse(str(name), "a new title must be a text")
            title = self._title(title, "rename")
            self._decide(name, title, "rename")
            self._decide(title, title, "rename", must_be_new=False)
        never = tuple(self._never(content.get("never")))
        split = dict(self._split(self._mapping(content, "split")))
        decisions = Decisions(self.titles, never, split, self.named)
        self._check(decisions)
        return decisions

    def _decide(self, name: Any, title: str, section: str, must_be_new: bool = True) -> None:
        key = self._name(name, section)
        known = self.titles.get(key)
        if known is not None and title_key(known) != title_key(title):
            if not must_be_new:
                self._refuse(str(name), f"{name!r} itself becomes {known!r}: name that instead")
            self._refuse(str(name), f"{name!r} would have two titles, {known!r} and {title!r}")
        self.titles[key] = title

    def _never(self, groups: Any) -> Iterator[tuple[str, ...]]:
        if groups is None:
            return
        if not isinstance(groups, list):
            self._refuse("never", "never must be a list of lists of names")
        for names in groups:
            if not isinstance(names, list):
                self._refuse(str(names), "never must be a list of lists: write `- [A, B]`")
            found = self._strings(names, "never")
            keys = tuple(self._name(name, "never") for name in found)
            if len(set(keys)) < max(2, len(keys)):
                what = "the same name twice" if len(keys) > 1 else "fewer than two names"
                self._refuse(found[0] if found else "never", f"a list of never has {what}")
            yield keys

    def _split(self, names: Mapping[Any, Any]) -> Iterator[tuple[str, tuple[Part, ...]]]:
        for name, parts in names.items():
            key = self._name(name, "split")
            if not isinstance(parts, list) or not parts:
                self._refuse(str(name), f"split: {name} must be a list of parts")
            found = tuple(self._part(name, part) for part in parts)
            # The part for all other text units comes last.
            found = tuple(sorted(found, key=lambda part: part == Part(part.title)))
            if len({title_key(part.title) for part in found}) < len(found):
                self._refuse(str(name), f"split: {name} has two parts of one title")
            if sum(part == Part(part.title) for part in found) > 1:
                self._refuse(str(name), f"split: {name} has two parts for all the rest")
            yield key, found

    def _part(self, name: Any, part: Any) -> Part:
        if not isinstance(part, dict) or "title" not in part:
            self._refuse(str(name), f"a part of split: {name} must have a title")
        for mark in part:
            if mark != "title" and mark not in MARKS:
                self._refuse(str(mark), f"a part of split: {name} is told by {', '.join(MARKS)}")
        marks = {
            mark: tuple(self._strings(part[mark], f"split: {name}: {mark}"))
            for mark in MARKS
            if mark in part
        }
        return Part(self._title(part["title"], "split"), **marks)

    def _check(self, decisions: Decisions) -> None:
        for one, other in decisions.never_pairs():
            title = decisions.titles.get(one)
            again = decisions.titles.get(other)
            if title is not None and again is not None and title_key(title) == title_key(again):
                names = [decisions.named[key][0] for key in (one, other)]
                self._refuse(names[1], f"{names[0]!r} and {names[1]!r} are both merged and never")

    def _mapping(self, content: Mapping[str, Any], section: str) -> Mapping[Any, Any]:
        found = content.get(section)
        if found is None:
            return {}
        if not isinstance(found, dict):
            self._refuse(section, f"{section} must hold names, each with what becomes of it")
        return dict(found)

    def _strings(self, values: Any, where: str) -> Sequence[str]:
        values = [values] if isinstance(values, str) else values
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            last = where.rpartition(": ")[2]
            hint = "a list of texts; a name such as 1914 or Yes needs quotes"
            self._refuse(last, f"{where} must be {hint}")
        return list(values)

    def _name(self, name: Any, section: str) -> str:
        self._title(name, section)
        key = title_key(name)
        self.named.setdefault(key, (name, section))
        return key

    def _title(self, title: Any, section: str) -> str:
        if not isinstance(title, str) or not title_key(title):
            self._refuse(
                str(title), f"{section} has {title!r}, which is no name; put a number in quotes"
            )
        return " ".join(str(title).split())

    def _refuse(self, near: str, problem: str) -> NoReturn:
        raise SettingsError(f"{self.path}{self._line(near)}: {problem}.")

    def _line(self, near: str) -> str:
        """Name the line of the first occurrence of a value."""
        for node in _scalars(yaml.compose(self.text, yaml.SafeLoader)):
            if near and node.value == near:
                return f", line {node.start_mark.line + 1}"
        return ""


def _scalars(node: Any) -> Iterator[yaml.ScalarNode]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _scalars(value)
    elif isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from (scalar for value in pair for scalar in _scalars(value))
