"""Edit `resolutions.yaml` line by line, so that comments and order are kept.

What a person wrote keeps its comments and its order. A file whose form cannot be edited by lines
(such as `merge: {A: [B]}` on one line) is refused with what is to be done by hand.
"""

import os
import re
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import yaml

from graphrag_index.errors import SettingsError
from graphrag_index.resolution.decisions_file import Decisions, parse_decisions, read_text
from graphrag_index.storage.atomic import temporary_path
from graphrag_index.text.normalize import title_key

HEADER = (
    "# What is one thing and what is not, decided by people; `graphrag-index resolve` adds to it,\n"
    "# `graphrag-index run` applies it. Keep it with the documents.\n"
)
_NOT_BY_LINES = "{} has a form that is not edited by lines; write it by hand."
_SECTION = re.compile(r"^(merge|never|rename|split)\s*:\s*(#.*)?$")


def merge(path: Path, title: str, names: Sequence[str]) -> bool:
    """Merge names under one title; return whether that is new.

    Raises
    ------
    SettingsError
        It contradicts what the file says, or the file cannot be edited.
    """
    decisions = _read(path)
    title, *names = _spaced([title, *names])
    _check_names([title, *names])
    known = {key for key, to in decisions.titles.items() if title_key(to) == title_key(title)}
    new = [name for name in names if title_key(name) not in known | {title_key(title)}]
    new = list(dict.fromkeys(new))
    if not new:
        return False
    for name in (title, *new):
        to = decisions.titles.get(title_key(name))
        if to is None or title_key(to) == title_key(title):
            continue
        if title_key(to) != title_key(name):
            raise SettingsError(f"{path} merges {name!r} into {to!r}: name that title instead.")
        fix = f"put them under one of {title!r} and {name!r} there" if known else "name it first"
        raise SettingsError(f"{path} has {name!r} as the title of other names: {fix}.")
    for one, other in decisions.never_pairs():
        if {one, other} <= {*known, title_key(title), *map(title_key, new)}:
            a, b = (decisions.named[key][0] for key in (one, other))
            raise SettingsError(
                f"{path} says that {a!r} and {b!r} are never one: `graphrag-index resolve --undo "
                f'"{a}" "{b}"` takes that back.'
            )
    keys = set(map(title_key, new))

    def holds(now: Decisions) -> bool:
        return all(title_key(now.titles.get(key, "")) == title_key(title) for key in keys)

    _insert(path, "merge", f"  {_scalar(title)}: [{', '.join(map(_scalar, new))}]", holds, title)
    return True


def never(path: Path, names: Sequence[str]) -> bool:
    """Keep names apart; return whether that is new."""
    decisions = _read(path)
    names = _spaced(names)
    _check_names(names)
    keys = [title_key(name) for name in names]
    if len(set(keys)) < max(2, len(keys)):
        raise SettingsError("--never needs two names that differ by more than case.")
    pairs = {frozenset(pair) for pair in decisions.never_pairs()}
    wanted = {frozenset((a, b)) for i, a in enumerate(keys) for b in keys[i + 1 :]}
    if wanted <= pairs:
        return False
    for one, other in combinations(names, 2):
        if _are_merged(decisions, title_key(one), title_key(other)):
            raise SettingsError(
                f"{path} says that {one!r} and {other!r} are one: `graphrag-index resolve --undo "
                f'"{one}" "{other}"` takes that back.'
            )

    def holds(now: Decisions) -> bool:
        return wanted <= {frozenset(pair) for pair in now.never_pairs()}

    _insert(path, "never", f"  - [{', '.join(map(_scalar, names))}]", holds)
    return True


def _spaced(names: Sequence[str]) -> list[str]:
    """Collapse white space in names, no-break spaces too."""
    return [" ".join(name.split()) for name in names]


def undo(path: Path, one: str, other: str) -> bool:
    """Remove decisions about two names; return whether there were any."""
    before = _read(path)
    text = read_text(path)
    a, b = title_key(one), title_key(other)
    lines = text.splitlines(keepends=True)
    changed = _without_never(lines, a, b)
    if _are_merged(before, a, b):
        # One of them is the title, or neither: then the second leaves the group.
        leaving = a if b == title_key(before.titles[b]) else b
        changed |= _without_merge(lines, leaving)
    if not changed:
        if not _is_undone(before, a, b):
            raise SettingsError(_NOT_BY_LINES.format(path))
        return False
    _write(path, "".join(lines), lambda now: _is_undone(now, a, b))
    return True


def _is_undone(decisions: Decisions, a: str, b: str) -> bool:
    if _are_merged(decisions, a, b):
        return False
    return frozenset((a, b)) not in {frozenset(pair) for pair in decisions.never_pairs()}


def _are_merged(decisions: Decisions, a: str, b: str) -> bool:
    titles = [decisions.titles[key] for key in (a, b) if key in decisions.titles]
    return len(titles) == 2 and title_key(titles[0]) == title_key(titles[1])


def _check_names(names: Sequence[str]) -> None:
    if not all(map(title_key, names)):
        raise SettingsError("A name is empty: give two names.")


def _read(path: Path) -> Decisions:
    text = read_text(path)
    return parse_decisions(text, path) if text else Decisions()


def _insert(
    path: Path, section: str, line: str, holds: Callable[[Decisions], bool], title: str = ""
) -> None:
    """Add a line at the end of a section, or to the line of a title that is there."""
    text = read_text(path)
    lines = (text or HEADER).splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    start = next((i for i, row in enumerate(lines) if _section_of(row) == section), None)
    if start is None:
        lines += ["\n", f"{section}:\n", f"{line}\n"]
    else:
        end = _end_of_section(lines, start)
        at = _line_of_title(lines, start + 1, end, title) if title else None
        if at is None:
            indent = _indent(lines, start + 1, end)
            lines.insert(end, f"{indent}{line.strip()}\n")
        else:
            names = ", ".join(map(_scalar, _names_in(line) or ()))
            node = _list_node(lines[at])
            if node is None:
                raise SettingsError(
                    f"{path}, line {at + 1}: names are not on this line; add {names} there."
                )
            bracket = node.end_mark.index - 1
            head, tail = lines[at][:bracket].rstrip(), lines[at][bracket:]
            lines[at] = f"{head}{', ' if node.value else ''}{names}{tail}"
    _write(path, "".join(lines), holds)


def _section_of(line: str) -> str:
    found = _SECTION.match(line)
    return found[1] if found else ""


def _end_of_section(lines: Sequence[str], start: int) -> int:
    """Return the end of a section: behind its last indented line or item."""
    end = start + 1
    for at in range(start + 1, len(lines)):
        if lines[at].strip() and not lines[at].startswith((" ", "-", "#")):
            break
        if lines[at].strip() and not lines[at].startswith("#"):
            end = at + 1
    return end


def _indent(lines: Sequence[str], start: int, end: int) -> str:
    """Return the indentation of the entries of a section."""
    first = next((row for row in lines[start:end] if row.strip() and row.strip()[0] != "#"), "  x")
    return first[: len(first) - len(first.lstrip())]


def _line_of_title(lines: Sequence[str], start: int, end: int, title: str) -> int | None:
    for at in range(start, end):
        name = _key_of(lines[at])
        if name is not None and title_key(name) == title_key(title):
            return at
    return None


def _key_of(line: str) -> str | None:
    """Return the name before the colon of an entry on one line."""
    try:
        read = yaml.safe_load(line)
    except yaml.YAMLError:
        return None
    key = next(iter(read), None) if isinstance(read, dict) and len(read) == 1 else None
    return key if isinstance(key, str) else None


def _without_never(lines: list[str], a: str, b: str) -> bool:
    """Split lists of never that contain both names; other names stay apart from either."""
    changed = False
    for at in range(len(lines) - 1, -1, -1):
        names = _names_in(lines[at]) if lines[at].lstrip().startswith("- [") else None
        if names is None or not {a, b} <= set(map(title_key, names)):
            continue
        changed = True
        without = ([name for name in names if title_key(name) != key] for key in (b, a))
        lines[at] = "".join(_with_names(lines[at], kept) for kept in without if len(kept) > 1)
    return changed


def _list_node(line: str) -> yaml.SequenceNode | None:
    """Return the list in brackets of an entry on one line, `- [A, B]` or `Title: [A, B]`."""
    try:
        node = yaml.compose(line, yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    if isinstance(node, yaml.MappingNode) and len(node.value) == 1:
        node = node.value[0][1]
    elif isinstance(node, yaml.SequenceNode) and len(node.value) == 1:
        node = node.value[0]
    return node if isinstance(node, yaml.SequenceNode) and node.flow_style else None


def _names_in(line: str) -> list[str] | None:
    """Return the names of such an entry; None if it is no list of names."""
    node = _list_node(line)
    if node is None or not all(isinstance(value, yaml.ScalarNode) for value in node.value):
        return None
    return [value.value for value in node.value]


def _with_names(line: str, names: Sequence[str]) -> str:
    """Return an entry with other names; the text around the list is kept."""
    node = _list_node(line)
    if node is None:
        return line
    listed = f"[{', '.join(map(_scalar, names))}]"
    return f"{line[: node.start_mark.index]}{listed}{line[node.end_mark.index :].rstrip()}\n"


def _without_merge(lines: list[str], leaving: str) -> bool:
    """Remove a name from the entries of merge and rename."""
    section = ""
    for at in range(len(lines)):
        section = _section_of(lines[at]) or section
        title = _key_of(lines[at])
        if section not in ("merge", "rename") or title is None or _section_of(lines[at]):
            continue
        value = yaml.safe_load(lines[at])[title]
        if section == "rename" and title_key(title) == leaving:
            del lines[at]
            return True
        names = [value] if isinstance(value, str) else value
        if section == "rename" or leaving not in map(title_key, names or []):
            continue
        kept = [name for name in names if title_key(name) != leaving]
        if kept:
            lines[at] = _with_names(lines[at], kept)
        else:
            del lines[at]
        return True
    return False


def _scalar(name: str) -> str:
    """Format a name as YAML that reads as the same text, in lists too."""
    text = yaml.safe_dump([name], default_flow_style=True, allow_unicode=True, width=1_000_000)
    return text.strip()[1:-1]


def _write(path: Path, text: str, holds: Callable[[Decisions], bool]) -> None:
    """Replace the file atomically, if the new text parses to the wanted decisions.

    Raises
    ------
    SettingsError
        The file has a form that was not edited rightly; it stays as it was.
    """
    try:
        is_right = holds(parse_decisions(text, path))
    except SettingsError as error:
        raise SettingsError(
            f"{path} cannot be edited by lines; write it by hand. It would become wrong: {error}"
        ) from None
    if not is_right:
        raise SettingsError(_NOT_BY_LINES.format(path))
    # Replace the target of a symbolic link, not the link.
    path = path.resolve()
    temporary = temporary_path(path)
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
