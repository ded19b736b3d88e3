"""The systems that an evaluation compares: searches of indexes with settings."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import yaml

import graphrag_query
from graphrag_evaluation.coverage import WordWeights
from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.project_settings import Settings, load_settings
from graphrag_query.index import Index
from graphrag_query.searches.router import check_method

# Text units that word weights are estimated from.
MAX_SAMPLED_TEXT_UNITS = 5_000
SETTINGS_FILE = "settings.yaml"


@dataclass(frozen=True)
class System:
    """A search of an opened index; `name` says what differs from the other systems."""

    name: str
    index: Index
    method: str

    @cached_property
    def document_numbers(self) -> dict[str, int]:
        """The numbers of the documents by id, path and title; titles that repeat are left out."""
        rows = self.index.store.scan("documents").select("human_readable_id", "id", "path", "title")
        frame, numbers = rows.collect(), dict[str, int]()
        for name in ("title", "path", "id"):
            unique = frame.filter(frame[name].is_unique()) if frame.height else frame
            numbers |= dict(unique.select(name, "human_readable_id").iter_rows())
        return numbers

    @cached_property
    def word_weights(self) -> WordWeights:
        """The information of words, from an evenly spaced sample of the text units."""
        n = self.index.store.n_rows("text_units")
        step = max(1, n // MAX_SAMPLED_TEXT_UNITS)
        sampled = self.index.store.scan("text_units").select("text").gather_every(step).collect()
        return WordWeights(sampled["text"])


@dataclass(frozen=True)
class Place:
    """An index to evaluate: a project or an output folder, at a version; None is the current."""

    folder: Path
    version: int | None = None

    @classmethod
    def parse(cls, text: str, root: Path) -> "Place":
        """Parse `FOLDER`, `FOLDER@VERSION` or `@VERSION`; without a folder, `root` is meant."""
        folder, mark, number = text.rpartition("@")
        if not mark or not number.isdecimal():
            return cls(Path(text))
        return cls(Path(folder) if folder else root, int(number))

    def __str__(self) -> str:
        folder = str(self.folder)
        return folder if self.version is None else f"{folder}@{self.version}"


def open_systems(
    stack: ExitStack,
    places: Sequence[Place],
    methods: Sequence[str],
    overrides: Sequence[str] = (),
) -> list[System]:
    """Open every search of every index with every combination of settings.

    An override with several values, such as ``local_search.top_k_text_units=10,20``, gives a
    system for each value. The indexes are closed with `stack`. Raises `SettingsError` for an
    unknown search, and for an override that only changes how an index is built.
    """
    for method in methods:
        check_method(method)
    names = _short_names(places)
    systems = []
    for place, name in zip(places, names, strict=True):
        for combination in product(*map(split_values, overrides)):
            index = _open_index(place, combination)
            stack.enter_context(index)
            varied = [
                text
                for text, override in zip(combination, overrides, strict=True)
                if text != override
            ]
            for method in methods:
                label = " ".join([method, *varied, *([name] if len(places) > 1 else [])])
                systems.append(System(label, index, method))
    return systems


def _open_index(place: Place, overrides: Sequence[str]) -> Index:
    """Open an index with the settings of its project, or those it was made with."""
    if (place.folder / SETTINGS_FILE).exists():
        settings = load_settings(place.folder, tuple(overrides))
        _check_effect(load_settings(place.folder), settings)
        output = place.folder / settings.output
        return graphrag_query.open(output, settings, place.folder, place.version)
    if overrides:
        raise SettingsError(
            f"{place.folder} has no {SETTINGS_FILE}, which --set changes: name the project instead "
            "of its output folder."
        )
    return graphrag_query.open(place.folder, as_of=place.version)


def _check_effect(before: Settings, after: Settings) -> None:
    """Raise `SettingsError` if overrides change how an index is built: it is built already."""
    searched = ("search", "models", "output")
    for section in type(after).model_fields:
        if section in searched or section.endswith("_search"):
            continue
        if getattr(before, section) != getattr(after, section):
            raise SettingsError(
                f"--set {section} has no effect on an index that is there: run the indexer with "
                "this setting in another project, and compare both with --against."
            )


def split_values(override: str) -> Iterator[str]:
    """Yield an override for each of its values, which commas separate."""
    name, mark, values = override.partition("=")
    try:
        parsed = yaml.safe_load(f"[{values}]") if mark else []
    except yaml.YAMLError:
        parsed = []
    if len(parsed) < 2:
        yield override
        return
    for value in parsed:
        yield f"{name}={_as_text(value)}"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _short_names(places: Sequence[Place]) -> list[str]:
    """Name places by what differs: the version, the last part of the folder, or the folder."""
    if len({place.folder.resolve() for place in places}) == 1:
        return [f"@{place.version}" if place.version is not None else "now" for place in places]
    short = [Place(Path(place.folder.resolve().name), place.version) for place in places]
    return list(map(str, short if len(set(short)) == len(places) else places))
