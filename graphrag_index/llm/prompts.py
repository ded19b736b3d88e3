"""The prompts: text files of this package, each replaced by one of the same name in `prompts/`.

A place for a value is written `{{name}}`. Values are put in as they are: a brace, a marker or
a special token in a document is text like any other, and is never looked at again.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from graphrag_index.errors import SettingsError

FOLDER = "prompts"
_PLACE = re.compile(r"\{\{(\w+)\}\}")


class Prompts:
    """The prompts of one project."""

    def __init__(self, root: Path, package: str = "graphrag_index") -> None:
        self.root, self.package = root, package

    def text(self, name: str) -> str:
        """Return a prompt by its name: the user's own, or that of this program."""
        own = self.root / FOLDER / f"{name}.txt"
        try:
            return own.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return files(self.package).joinpath(FOLDER, f"{name}.txt").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"The prompt {own} cannot be read: {error}.") from error

    def own(self) -> dict[str, str]:
        """Return the prompts that stand in for those of this program, by name."""
        paths = sorted((self.root / FOLDER).glob("*.txt"))
        return {path.stem: self.text(path.stem) for path in paths}

    def fill(self, name: str, values: Mapping[str, str]) -> str:
        """Put values into a prompt.

        Raises
        ------
        SettingsError
            The prompt has a place that nothing fills.
        """

        def value(place: re.Match[str]) -> str:
            if place[1] not in values:
                known = ", ".join(f"{{{{{known}}}}}" for known in values)
                raise SettingsError(
                    f"The prompt {name} has the place {place.group()}, which nothing fills; "
                    f"known: {known}."
                )
            return values[place[1]]

        return _PLACE.sub(value, self.text(name))
