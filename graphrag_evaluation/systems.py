"""The systems that an evaluation compares: searches of indexes with settings."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from threading import Lock
from weakref import WeakKeyDictionary

import polars as pl
import yaml

import graphrag_query
from graphrag_evaluation import EVALUATIONS
from graphrag_evaluation.stated_shares import WordWeights
from graphrag_index.errors import SettingsError
from graphrag_index.schema.settings.project_settings import SETTINGS_FILE, Settings, load_settings
from graphrag_index.storage.working_copy import locate_output
from graphrag_query.index import Index
from graphrag_query.searches.router import check_method

# Maximum number of text units from which word weights are estimated.
MAX_SAMPLED_TEXT_UNITS = 5_000


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


@dataclass(frozen=True)
class SystemPlan:
    """A system before its index is opened: a worker process opens it again."""

    name: str
    place: Place
    method: str
    overrides: tuple[str, ...] = ()


@dataclass(frozen=True)
class System:
    """A search of an opened index; `name` says what differs from the other systems.

    With a `plan`, worker processes can open the index again.
    """

    name: str
    index: Index
    method: str
    plan: SystemPlan | None = None

    @property
    def document_numbers(self) -> dict[str, int]:
        """The numbers of the documents by id, path and title; titles that repeat are left out."""
        with _lock:
            if self.index not in _document_numbers:
                _document_numbers[self.index] = _number_documents(self.index)
            return _document_numbers[self.index]

    @property
    def word_weights(self) -> WordWeights:
        """The information of words, from an evenly spaced sample of the text units."""
        with _lock:
            if self.index not in _word_weights:
                _word_weights[self.index] = weigh_words(self.index)
            return _word_weights[self.index]


# The systems of one index share these, as long as the index is open. The lock keeps threads that
# ask questions in parallel from computing them several times.
_lock = Lock()
_document_numbers: WeakKeyDictionary[Index, dict[str, int]] = WeakKeyDictionary()
_word_weights: WeakKeyDictionary[Index, WordWeights] = WeakKeyDictionary()


def _number_documents(index: Index) -> dict[str, int]:
    rows = index.store.scan("documents").select("human_readable_id", "id", "path", "title")
    frame, numbers = rows.collect(), dict[str, int]()
    for name in ("title", "path", "id"):
        unique = frame.filter(pl.col(name).is_unique() & pl.col(name).is_not_null())
        numbers |= dict(unique.select(name, "human_readable_id").iter_rows())
    return numbers


def weigh_words(index: Index) -> WordWeights:
    """Estimate the information of words from an evenly spaced sample of the text units."""
    step = max(1, index.store.n_rows("text_units") // MAX_SAMPLED_TEXT_UNITS)
    sampled = index.store.scan("text_units").select("text").gather_every(step).collect()
    return WordWeights(sampled["text"])


def plan_systems(
    places: Sequence[Place], methods: Sequence[str], overrides: Sequence[str] = ()
) -> list[SystemPlan]:
    """Plan every search of every index with every combination of settings.

    An override with several values, such as ``local_search.top_k_text_units=10,20``, gives a
    system for each value. Raises `SettingsError` for an unknown search, and for a system that is
    named twice.
    """
    for method in methods:
        check_method(method)
    plans = []
    for place, name in zip(places, _short_names(places), strict=True):
        for combination in product(*map(split_values, overrides)):
            pairs = zip(combination, overrides, strict=True)
            varied = [text for text, override in pairs if text != override]
            for method in methods:
                label = " ".join([method, *varied, *([name] if len(places) > 1 else [])])
                plans.append(SystemPlan(label, place, method, combination))
    names = [plan.name for plan in plans]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(
            f"The system {repeated!r} would be compared with itself: name each search of "
            "--methods, value of --set and index of --against once."
        )
    return plans


def open_systems(stack: ExitStack, plans: Sequence[SystemPlan]) -> list[System]:
    """Open the systems of plans; searches of one index with equal settings share it.

    The indexes are closed with `stack`. Raises `SettingsError` for an override that only changes
    how an index is built.
    """
    opened: dict[tuple[Place, tuple[str, ...]], Index] = {}
    systems = []
    for plan in plans:
        key = plan.place, plan.overrides
        if key not in opened:
            opened[key] = stack.enter_context(_open_index(*key))
        systems.append(System(plan.name, opened[key], plan.method, plan))
    return systems


def _open_index(place: Place, overrides: Sequence[str]) -> Index:
    """Open an index with the settings of its project, or those it was made with."""
    if (place.folder / SETTINGS_FILE).exists():
        settings = load_settings(place.folder, tuple(overrides))
        _check_effect(load_settings(place.folder), settings)
        output = locate_output(place.folder, settings)
        ledger = place.folder / EVALUATIONS
        return graphrag_query.open(output, settings, place.folder, place.version, ledger)
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
        yield f"{name}={value if isinstance(value, str) else json.dumps(value)}"


def _short_names(places: Sequence[Place]) -> list[str]:
    """Name indexes by what differs: the version, or else the end of the folder, or the folder."""
    if len({place.folder.resolve() for place in places}) == 1:
        return [f"@{place.version}" if place.version is not None else "now" for place in places]
    short = [Place(Path(place.folder.resolve().name), place.version) for place in places]
    return list(map(str, short if len(set(short)) == len(places) else places))
