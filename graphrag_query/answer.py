"""What a search returns: the text, the passages that prove it, and how it came about."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a search ended. Missing evidence and a failure are never the same."""

    ANSWERED = "answered"
    NO_EVIDENCE = "no_evidence"


@dataclass(frozen=True)
class Citation:
    """A passage that proves a sentence of the answer, which names it as [`number`].

    `quote` is ``documents.text[start_char:end_char]`` of the document.
    """

    number: int
    document: str  # its title
    document_id: str
    path: str  # of its file, relative to the input folder
    start_char: int
    end_char: int
    quote: str
    text_unit: int  # human_readable_id


@dataclass(frozen=True)
class Usage:
    """What an answer cost. The embedded searches call no model that is paid for."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Answer:
    """An answer with its evidence.

    `looked_at` counts what the search read ("reports": 12), so that "no evidence" can
    be told from "nothing was looked at". `parameters` are those that the search ran with.
    """

    question: str
    text: str
    outcome: Outcome
    method: str
    citations: tuple[Citation, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    looked_at: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    version: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON knows it; the text is under `answer`."""
        content = asdict(self)
        content["answer"] = content.pop("text")
        return {"answer": content.pop("answer"), **content}

    def __str__(self) -> str:
        return self.text
