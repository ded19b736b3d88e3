"""A model whose replies depend on the prompt: better instructions find more names."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tests.model_server.answers import extract, passage
from tests.model_server.chat import ChatRequest
from tests.model_server.reading import sentences_with_names

Json = dict[str, Any]
NAMES_OF_SHIPS = re.compile(r"\b(?:Aurora|Belgica|Discovery|Endurance|Fram|Nimrod|Terra Nova)\b")


@dataclass
class PromptDependentModel:
    """Finds all names if the prompt has one of the `hints`, and the first of a passage if not.

    The model `strong_model` always finds all.
    `improvements` are added one after the other to the instructions that it is asked to improve.
    """

    hints: Collection[str] = ()
    improvements: list[str] = field(default_factory=list)
    strong_model: str = ""
    n_improved: int = 0

    def __call__(self, request: ChatRequest) -> Json | str:
        wanted = set((request.schema or {}).get("properties", {}))
        if "domain" in wanted:
            return self._describe(request)
        if "instructions" in wanted:
            return self._improve(request)
        found = extract(request)
        is_strong = request.body["model"] == self.strong_model
        if not is_strong and not any(hint in request.texts[0] for hint in self.hints):
            found = {"entities": found["entities"][:1], "relationships": []}
        entities = [
            {"name": one["title"], "type": one["type"], "description": one["description"]}
            for one in found["entities"]
        ]
        return {"entities": entities, "relationships": found["relationships"]}

    def _describe(self, request: ChatRequest) -> Json:
        """Describe documents: the names of ships are a type, and one type has invented names."""
        ships = sorted(set(NAMES_OF_SHIPS.findall(request.texts[-1])))
        people = [n for _, names in sentences_with_names(passage(request)) for n in names][:2]
        return {
            "domain": "Accounts of expeditions to the Antarctic.",
            "types": [
                {"name": "ship", "names": ships},
                {"name": "person", "names": people},
                {"name": "submarine", "names": ["Nautilus of Nowhere"]},
            ],
        }

    def _improve(self, request: ChatRequest) -> Json:
        present = request.texts[-1].partition("Instructions:\n")[2].partition("\n\nPassage:")[0]
        added = self.improvements[self.n_improved % len(self.improvements)]
        self.n_improved += 1
        return {"instructions": f"{present}\n{added}"}
