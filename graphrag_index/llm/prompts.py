"""Prompts: text files of this package; one of the same name in `prompts/` overrides it.

A placeholder is written `{{name}}`. Values are inserted verbatim: a brace, a marker or a
special token in a document is text like any other.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from graphrag_index.errors import SettingsError

FOLDER = "prompts"
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


class Prompts:
    """The prompts of one project."""

    def __init__(self, root: Path, package: str = "graphrag_index") -> None:
        self.root, self.package = root, package

    def text(self, name: str) -> str:
        """Return a prompt by its name: the project's own, or the default."""
        own = self.root / FOLDER / f"{name}.txt"
        try:
            return own.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return files(self.package).joinpath(FOLDER, f"{name}.txt").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"The prompt {own} cannot be read: {error}.") from error

    def own(self) -> dict[str, str]:
        """Return the project's own prompts, by name."""
        paths = sorted((self.root / FOLDER).glob("*.txt"))
        return {path.stem: self.text(path.stem) for path in paths}

    def fill(self, name: str, values: Mapping[str, str]) -> str:
        """Fill the placeholders of a prompt.

        Raises
        ------
        SettingsError
            No value fills one of them.
        """

        def value(place: re.Match[str]) -> str:
            if place[1] not in values:
                known = ", ".join(f"{{{{{known}}}}}" for known in values)
                raise SettingsError(
                    f"The prompt {name} has the place {place.group()}, which nothing fills; "
                    f"known: {known}."
                )
            return values[place[1]]

        return _PLACEHOLDER.sub(value, self.text(name))
