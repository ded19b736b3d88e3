"""What is taken over from a project of Microsoft GraphRAG, and what is to be said of it."""

from dataclasses import dataclass, field
from typing import Any

# Why a key is not carried over that stands in no table of ours.
UNKNOWN = "it is not known to this program"


@dataclass(frozen=True)
class Line:
    """What became of one setting: ours and its value as shown, or why it has none."""

    theirs: str
    ours: str = ""
    shown: str = ""
    why: str = ""


@dataclass
class Carried:
    """What is taken over, and what is to be said about it."""

    values: dict[str, Any] = field(default_factory=dict)
    # Keys that stood in the settings themselves, and go into .env.
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    # Names of the models here, by those that they have there.
    names: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def left(self, theirs: str, why: str) -> None:
        self.lines.append(Line(theirs, why=why))

    def kept(self, theirs: str, ours: str, value: object) -> None:
        self.lines.append(Line(theirs, ours, str(value)))


def shown(value: Any) -> str:
    """Write a value as it is told."""
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    text = " ".join(str(value).split())
    return text if len(text) <= 80 else f"{text[:79]}…"
