"""Ask an index.

    import graphrag_query
    index = graphrag_query.open("output")
    answer = index.local("Who was Tom Crean?")
    print(answer.text, answer.citations[0].quote)

knowledge_model.py   the index, opened at one version
local_search.py      questions about an entity
global_search.py     questions about the whole corpus
main_entities.py     the main people, places, events, organizations
sentence_ranking.py  which sentences answer a question
question_names.py    which of its names the documents do not hold
answer.py            what a search returns

Importing this is cheap; what a search needs is imported when it runs.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_query.answer import Answer, Citation, Outcome

if TYPE_CHECKING:
    from graphrag_index.core.settings import Settings
    from graphrag_query.knowledge_model import KnowledgeModel

__all__ = ["Answer", "Citation", "Index", "Outcome", "open"]


def open(output: str | Path = "output", settings: "Settings | None" = None) -> "Index":
    """Open the index in an output folder, at its current version.

    `settings` are those of the searches; without them, those that the index was made with.

    Raises
    ------
    TableError
        There is no index in that folder, or it cannot be read.
    """
    from graphrag_query.knowledge_model import KnowledgeModel

    models = settings.models if settings else None
    return Index(KnowledgeModel.open(Path(output), models), settings)


class Index:
    """An opened index: one method a search."""

    def __init__(self, model: "KnowledgeModel", settings: "Settings | None" = None) -> None:
        self.model = model
        self.settings = settings or model.settings

    def local(self, question: str, **parameters: Any) -> "Answer":
        """Answer a question about an entity; `parameters` are those of `LocalSearch`."""
        from graphrag_query.local_search import local_search

        settings = self.settings.local_search.with_values(parameters)
        return _timed(lambda: local_search(self.model, _asked(question), settings))

    def global_(self, question: str, **parameters: Any) -> "Answer":
        """Answer a question about the whole corpus; `parameters` are those of `GlobalSearch`."""
        from graphrag_query.global_search import global_search

        settings = self.settings.global_search.with_values(parameters)
        return _timed(lambda: global_search(self.model, _asked(question), settings))


def _asked(question: str) -> str:
    from graphrag_index.core.errors import SettingsError

    if not question.strip():
        raise SettingsError("The question is empty.")
    # A question typed at a terminal or read from a file may hold bytes that are no text.
    return question.encode("utf-8", "replace").decode("utf-8")


def _timed(search: Any) -> "Answer":
    import time
    from dataclasses import replace

    started = time.perf_counter()
    answer: Answer = search()
    seconds = round(time.perf_counter() - started, 3)
    return replace(answer, usage=replace(answer.usage, seconds=seconds))
