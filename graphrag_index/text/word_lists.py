"""Word lists, kept as YAML in the `data` folders of the package."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]


@cache
def read_lists(name: str) -> Mapping[str, Any]:
    """Read a YAML file of the package once, such as `text/data/languages`."""
    import yaml

    text = (_PACKAGE / f"{name}.yaml").read_text(encoding="utf-8")
    lists: Mapping[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return lists


def word_set(text: str) -> frozenset[str]:
    """Split a list of words at its spaces."""
    return frozenset(text.split())
