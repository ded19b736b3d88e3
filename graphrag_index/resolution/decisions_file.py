"""`resolutions.yaml`, the decisions of a person about names: its parser and its edits.

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

Names are titles of entities. Upper and lower case and white space do not matter. Edits
keep comments and order; a section to edit is in YAML block style, with one entry per line.
"""

import json
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations, islice
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
import yaml

from graphrag_index.errors import SettingsError, TableError
from graphrag_index.schema.settings.section import read_settings_yaml, read_text_file
from graphrag_index.storage.atomic import write_text_file
from graphrag_index.storage.table_store import TableStore
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import title_key

SECTIONS = ("merge", "never", "rename", "split")
# Keys in the section `split`: conditions for the text units that belong to a part of an entity.
SPLIT_KEYS = ("paths", "documents", "text_units", "types")
# Comment at the start of a new file.
FILE_HEADER: str = read_lists("graphrag_index/resolution/data/words")["file_header"]
_NOT_EDITABLE = "The file {} has a form that this command cannot edit: edit the file by hand."

Row = Mapping[str, Any]


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


def add_merge(path: Path, title: str, names: Sequence[str]) -> bool:
    """Write the decision to merge names under one title; return False if it exists already.

    Raises SettingsError if the decision contradicts the file, or the file cannot be edited.
    """
    decisions = read_decisions(path)
    title, *names = _normalize_names([title, *names])
    own = title_key(title)
    known = {key for key, to in decisions.titles.items() if title_key(to) == own}
    new = list(dict.fromkeys(name for name in names if title_key(name) not in {*known, own}))
    if not new:
        return False
    for name in (title, *new):
        to = decisions.titles.get(title_key(name))
        if to is None or title_key(to) == own:
            continue
        if title_key(to) != title_key(name):
            raise SettingsError(f"{path} merges {name!r} into {to!r}: use that title.")
        fix = "merge the two groups in the file" if known else "give this title first"
        raise SettingsError(f"{path} has {name!r} as the title of other names: {fix}.")
    keys = {title_key(name) for name in new}
    for pair in decisions.forbidden_pairs():
        if {*pair} <= {*known, own, *keys}:
            a, b = (decisions.named[key][0] for key in pair)
            raise SettingsError(f"{path} forbids to merge {a!r} and {b!r}: {_undo_hint(a, b)}")

    def extend(entry: Any) -> list[str] | None:
        listed, held = entry
        if title_key(listed) != own:
            return None
        return [f"{_format_name(listed)}: {_format_list([*_as_list(held), *new])}"]

    text = _read_text_to_edit(path)
    edited = _change_entries(text, "merge", path, extend)
    if edited == text:
        edited = _add_entry(text, "merge", path, f"{_format_name(title)}: {_format_list(new)}")
    _write_text(path, edited, lambda now: all(now.are_merged(key, own) for key in keys))
    return True


def forbid_merge(path: Path, names: Sequence[str]) -> bool:
    """Write the decision never to merge some names; return False if it exists already."""
    decisions = read_decisions(path)
    names = _normalize_names(names)
    wanted = {frozenset(map(title_key, pair)) for pair in combinations(names, 2)}
    if not wanted or any(len(pair) < 2 for pair in wanted):
        raise SettingsError(
            "Names to keep apart must be two or more, and differ by more than case."
        )
    if wanted <= _collect_forbidden_pairs(decisions):
        return False
    for one, other in combinations(names, 2):
        if decisions.are_merged(title_key(one), title_key(other)):
            raise SettingsError(f"{path} merges {one!r} and {other!r}: {_undo_hint(one, other)}")
    entry = f"- {_format_list(names)}"
    _write_entry(path, "never", entry, lambda now: wanted <= _collect_forbidden_pairs(now))
    return True


def add_rename(path: Path, name: str, title: str) -> bool:
    """Write the decision to give a name a new title; return False if it exists already."""
    decisions = read_decisions(path)
    name, title = _normalize_names([name, title])
    known = decisions.titles.get(title_key(name))
    if known == title:
        return False
    if known is not None:
        raise SettingsError(f"{path} gives {name!r} the title {known!r}: undo that decision first.")
    entry = f"{_format_name(name)}: {_format_name(title)}"
    _write_entry(path, "rename", entry, lambda now: now.titles.get(title_key(name)) == title)
    return True


def add_split(path: Path, name: str, parts: Sequence[PartConditions]) -> bool:
    """Write the decision to split a name into parts; return False if it exists already."""
    decisions = read_decisions(path)
    [name] = _normalize_names([name])
    known = decisions.split.get(title_key(name))
    if known is not None:
        if set(known) == set(parts):
            return False
        raise SettingsError(f"{path} splits {name!r} in another way: undo that decision first.")
    entry = f"{_format_name(name)}: [{', '.join(map(_format_part, parts))}]"
    _write_entry(path, "split", entry, lambda now: title_key(name) in now.split)
    return True


def undo_split(path: Path, name: str) -> bool:
    """Remove the decision to split a name; return False if there is none."""
    key = title_key(name)
    if key not in read_decisions(path).split:
        return False
    text = _read_text_to_edit(path)
    edited = _change_entries(
        text, "split", path, lambda entry: [] if title_key(entry[0]) == key else None
    )
    _write_text(path, edited, lambda now: key not in now.split)
    return True


def undo_decisions(path: Path, one: str, other: str) -> bool:
    """Remove the decisions to merge, or never to merge, two names; return False if none exist."""
    before = read_decisions(path)
    a, b = title_key(one), title_key(other)

    def is_undone(now: Decisions) -> bool:
        return not now.are_merged(a, b) and frozenset((a, b)) not in _collect_forbidden_pairs(now)

    if is_undone(before):
        return False
    text = _read_text_to_edit(path)
    if frozenset((a, b)) in _collect_forbidden_pairs(before):

        def part(names: Any) -> list[str] | None:
            if not {a, b} <= set(map(title_key, names)):
                return None
            kept = ([name for name in names if title_key(name) != key] for key in (b, a))
            return [f"- {_format_list(held)}" for held in kept if len(held) > 1]

        text = _change_entries(text, "never", path, part)
    if before.are_merged(a, b):
        # Remove the second name from its group; if it is the title of the group, the first name.
        leaving = a if b == title_key(before.titles[b]) else b

        def leave(entry: Any) -> list[str] | None:
            title, names = entry
            kept = [name for name in _as_list(names) if title_key(name) != leaving]
            if len(kept) == len(_as_list(names)):
                return None
            return [f"{_format_name(title)}: {_format_list(kept)}"] if kept else []

        text = _change_entries(text, "merge", path, leave)
        text = _change_entries(
            text, "rename", path, lambda entry: [] if title_key(entry[0]) == leaving else None
        )
    _write_text(path, text, is_undone)
    return True


def _normalize_names(names: Sequence[str]) -> list[str]:
    """Collapse white space in names; raise SettingsError if a name is empty."""
    if not all(map(title_key, names)):
        raise SettingsError("A name is empty: give two names.")
    return [" ".join(name.split()) for name in names]


def _undo_hint(one: str, other: str) -> str:
    return f'`graphrag-index resolve --undo "{one}" "{other}"` removes this decision.'


def _collect_forbidden_pairs(decisions: Decisions) -> Set[frozenset[str]]:
    return {frozenset(pair) for pair in decisions.forbidden_pairs()}


def _read_text_to_edit(path: Path) -> str:
    text = read_text_file(path) or FILE_HEADER
    return text if text.endswith("\n") else f"{text}\n"


def _find_section(text: str, name: str, path: Path) -> tuple[yaml.Node | None, list[Any]]:
    """Return the YAML nodes of a section (None if it is missing) and of its entries."""
    root = yaml.compose(text, yaml.SafeLoader)
    sections = root.value if root else ()
    section = next((value for key, value in sections if key.value == name), None)
    if not isinstance(section, yaml.CollectionNode):
        return section, []
    if section.flow_style:
        raise SettingsError(_NOT_EDITABLE.format(path))
    return section, section.value


def _add_entry(text: str, name: str, path: Path, entry: str) -> str:
    """Add an entry at the end of a section."""
    section, _ = _find_section(text, name, path)
    if section is None:
        return f"{text}\n{name}:\n  {entry}\n"
    indent = section.start_mark.column if isinstance(section, yaml.CollectionNode) else 2
    last = _find_last_value(section)
    _, end = _find_line_span(text, last, last)
    return f"{text[:end]}{' ' * indent}{entry}\n{text[end:]}"


def _change_entries(
    text: str, name: str, path: Path, change: Callable[[Any], list[str] | None]
) -> str:
    """Replace entries of a section by the lines that `change` returns; None keeps an entry.

    An entry is a pair of a name and its value or, in the section `never`, a list of names. A
    comment at the end of its last line is kept.
    """
    section, nodes = _find_section(text, name, path)
    content = (yaml.safe_load(text) or {}).get(name) or ()
    values = content.items() if isinstance(content, dict) else content
    for node, value in reversed(list(zip(nodes, values, strict=True))):
        lines = change(value)
        if lines is None:
            continue
        first, last = node if isinstance(node, tuple) else (node, node)
        last = _find_last_value(last)
        start, end = _find_line_span(text, first, last)
        assert section is not None  # it has the changed entries
        indent, rest = " " * section.start_mark.column, text[last.end_mark.index : end]
        text = text[:start] + "".join(f"{indent}{line}{rest}" for line in lines) + text[end:]
    return text


def _find_last_value(node: yaml.Node) -> yaml.Node:
    """Return the last value in a block: in PyYAML, a block ends only where the next one begins."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return node


def _find_line_span(text: str, first: yaml.Node, last: yaml.Node) -> tuple[int, int]:
    """Return the (start, end) of the text lines from the first YAML node to the last."""
    start = text.rfind("\n", 0, first.start_mark.index) + 1
    return start, text.find("\n", last.end_mark.index) + 1 or len(text)


def _as_list(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else names


def _format_list(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_format_name, names))}]"


def _format_part(part: PartConditions) -> str:
    conditions = {key: values for key in SPLIT_KEYS if (values := getattr(part, key))}
    fields = [f"title: {_format_name(part.title)}"]
    fields += [f"{key}: {_format_list(values)}" for key, values in conditions.items()]
    return f"{{{', '.join(fields)}}}"


def _format_name(name: str) -> str:
    """Format a name as a YAML scalar, with quotes if it needs them in a list."""
    text = yaml.safe_dump([name], default_flow_style=True, allow_unicode=True, width=1_000_000)
    return text.strip()[1:-1]


def _write_entry(path: Path, name: str, entry: str, is_right: Callable[[Decisions], bool]) -> None:
    """Write an entry at the end of a section; see `_write_text`."""
    _write_text(path, _add_entry(_read_text_to_edit(path), name, path, entry), is_right)


def _write_text(path: Path, text: str, is_right: Callable[[Decisions], bool]) -> None:
    """Write the edited text; raise SettingsError if `is_right` rejects the new decisions."""
    try:
        decisions = DecisionsParser(text, path).parse()
    except SettingsError as error:
        raise SettingsError(
            f"{path} would become invalid, so edit the file by hand: {error}"
        ) from None
    if not is_right(decisions):
        raise SettingsError(_NOT_EDITABLE.format(path))
    write_text_file(path, [text])


def doubtful_pairs(output: Path, path: Path) -> list[Row]:
    """Return the doubtful pairs without a decision in the file `path`, highest score first."""
    decisions = read_decisions(path)
    decided = {frozenset(pair) for pair in decisions.forbidden_pairs()}
    titles = {key: title_key(title) for key, title in decisions.titles.items()}
    rows: list[Row] = []
    for row in read_resolution_table(output, "doubtful_pairs").iter_rows(named=True):
        one, other = title_key(row["title"]), title_key(row["other"])
        same = titles.get(one, one) == titles.get(other, other)
        if frozenset((one, other)) not in decided and not same:
            rows.append(row)
    return rows


def are_merged_in_index(output: Path, one: str, other: str) -> bool:
    """Return whether the index has two different names as one entity."""
    resolved = read_resolution_table(output, "entity_resolutions").select("title", "resolved")
    titles = {title_key(title): title_key(become) for title, become in resolved.iter_rows()}
    keys = title_key(one), title_key(other)
    return keys[0] != keys[1] and len({titles.get(key, key) for key in keys}) == 1


def read_resolution_table(output: Path, name: str) -> pl.DataFrame:
    """Read `entity_resolutions` or `doubtful_pairs`. Raises TableError if the index lacks it."""
    store = TableStore(output)
    version = store.read_pointer()
    if version is None:
        raise TableError(f"There is no index in {output}: `graphrag-index run` builds it.")
    if name not in version.tables:
        raise TableError(
            f"The workflow {version.workflow} wrote the index in {output} without the step "
            "resolve_entities: add the step to the workflow before finalize_graph and "
            "summarize_descriptions, and run it."
        )
    return store.scan(name, version.tables[name]).collect()
