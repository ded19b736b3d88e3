"""Labelled texts for `type_weights.py`: the types of their names by hand, and their usage."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from graphrag_nlp.names import entity_types
from graphrag_nlp.names.type_classifier import KINDS

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
from labels import LABELLED, read_half  # noqa: E402

from tests.fixtures.extraction import extract  # noqa: E402

LABELS = Path(__file__).with_name("type_labels.yaml")
# The label of what is no name, or a part of two.
NO_NAME = "none"


class Usages(NamedTuple):
    """Names of labelled texts: the type by hand and by rules, and the features of the usage."""

    names: list[str]
    kinds: list[str]
    rules: list[str]
    usages: list[dict[str, float]]
    is_unsure: list[bool]


def read_usages(texts: Sequence[str], labels: Mapping[str, str], only_unsure: bool) -> Usages:
    """Index texts, and return the usage of their labelled names; other names are a "name"."""
    found = Usages([], [], [], [], [])

    class Recorder(entity_types._TypeFinder):
        def find_types(self) -> list[str]:
            types = super().find_types()
            for number, name in enumerate(self.names):
                is_unsure = number in self.unsure
                # What the rules are sure of must not tell the classifier its type.
                rule = self.unsure.get(number, "name")
                is_wanted = is_unsure if only_unsure else name in labels and types[number] in KINDS
                if not types[number] or not is_wanted or labels.get(name) == "unclear":
                    continue
                found.names.append(name)
                # A known place without a label is one.
                found.kinds.append(labels.get(name, rule if rule == "geo" else "name"))
                if only_unsure and name not in labels and rule == "person":
                    found.kinds[-1] = rule
                found.rules.append(rule)
                self.unsure[number] = rule
                found.usages.append(self.describe_usage(number))
                found.is_unsure.append(is_unsure)
            return types

    original = entity_types._TypeFinder
    entity_types._TypeFinder = Recorder  # type: ignore[misc]
    try:
        extract(*texts)
    finally:
        entity_types._TypeFinder = original  # type: ignore[misc]
    return found


def read_marks(half: str, folder: Path = LABELLED) -> tuple[list[str], dict[str, str]]:
    """Return the texts of a half of labelled passages, and the type of most marks of each name."""
    passages = read_half(half, folder)
    kinds = dict[str, Counter[str]]()
    for passage in passages:
        for mark in passage.marks:
            types = mark.types - {"acronym", "?"}
            for kind in sorted(types):
                name = passage.text[mark.start : mark.end]
                own = kinds.setdefault(name, Counter())
                own[kind if kind in KINDS else "name"] += 1
    return [p.text for p in passages], {n: k.most_common(1)[0][0] for n, k in kinds.items()}


def read_labels() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield numbers of documents of nlp-corpus, and the types of their names by hand."""
    for numbers, listed in yaml.safe_load(LABELS.read_text(encoding="utf-8")).items():
        yield (
            numbers,
            {name: kind for kind, names in listed.items() for name in names.split(" | ")},
        )
