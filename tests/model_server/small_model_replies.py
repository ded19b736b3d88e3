"""Replies of small models to a request for entities and relationships.

The replies stand in `small_model_replies.txt`: a title with the form that was asked for, the
reply, and what a tolerant parser keeps: a name, or `source -> target`, a line each; `maybe` before
a name says that either is right. Nothing else may be kept.

The forms are `json`, an object ``{"entities": [{"name", "type", "description"}],
"relationships": [{"source", "target", "description", "strength"}]}``; `lines`, as
``entity | name | type | description`` and ``relationship | source | target | description |
strength``; and `tuples`, the same fields as ``("entity"<|>name<|>…)##``.
"""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SmallModelReply:
    """One reply; names are as the reply has them, with runs of white space as one space."""

    title: str
    form: str
    text: str
    entities: frozenset[str]
    relationships: frozenset[tuple[str, str]]
    maybe: frozenset[str]


def _read(part: str) -> SmallModelReply:
    head, _, rest = part.partition("\n")
    title, form = head.split(" | ")
    text, _, kept = rest.partition("\n@@@ keep")
    names, pairs, maybe = set(), set(), set()
    for line in filter(None, kept.splitlines()):
        source, arrow, target = line.partition(" -> ")
        if arrow:
            pairs.add((source, target))
        elif line.startswith("maybe "):
            maybe.add(line.removeprefix("maybe "))
        else:
            names.add(line)
    return SmallModelReply(title, form, text, frozenset(names), frozenset(pairs), frozenset(maybe))


def read_replies() -> list[SmallModelReply]:
    """Read all replies of the file."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    return [_read(part) for part in re.split(r"(?m)^@@@ (?!keep$)", text)[1:]]


SMALL_MODEL_REPLIES = read_replies()
