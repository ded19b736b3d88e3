"""The language models of an opened index: opened when first asked, shared by all its questions."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_query.answering.chat import Chat

if TYPE_CHECKING:
    from graphrag_index.llm.chat_model import ChatModel
    from graphrag_index.llm.registry import Models
    from graphrag_index.schema.settings.settings import Settings
    from graphrag_query.retrieval.index_store import KnowledgeModel

# The steps that ask a model for what answers are made of: the first that ran names who answers.
_WRITING_STEPS = ("create_community_reports", "extract_graph")
# What the ledger calls requests of searches.
STEP = "search"


class Chats:
    """Makes the chat of each question. Several threads may share it.

    `root` is the folder where `prompts/` may replace the prompts, `output` that of the index.
    """

    def __init__(self, settings: "Settings", root: Path, output: Path) -> None:
        self._settings, self._root, self._output = settings, root, output
        self._models: Models | None = None
        self._chats: dict[str, ChatModel] = {}
        self._lock = threading.Lock()

    def chat(self, model: "KnowledgeModel") -> Chat | None:
        """Make the chat of one question to an index; None if no model writes its answers."""
        name = self._writer(model)
        if name is None:
            return None
        from graphrag_index.llm.prompts import Prompts

        prompts, rating = Prompts(self._root, "graphrag_query"), self._settings.search.rating_model
        writes = self._chat_model(name)
        if not rating:
            return Chat(writes, prompts)
        rates = self._chat_model(rating)
        if rates.settings.base_url != writes.settings.base_url:
            return Chat(writes, prompts, rates)
        return Chat(writes, prompts, rates, writes.stop)

    def drop(self) -> None:
        """Let the next question open the models anew: one that failed asks nothing more."""
        with self._lock:
            self._chats = {}

    def close(self) -> None:
        """Close the connections, if any were opened."""
        with self._lock:
            if self._models is not None:
                self._models.close()
            self._models, self._chats = None, {}

    def _writer(self, model: "KnowledgeModel") -> str | None:
        """Return the name of the model that writes answers, in the section `models`."""
        name = self._settings.search.model
        if name != "auto":
            return None if name == "none" else name
        ran = {step.name for step in model.version.steps}
        for step in _WRITING_STEPS:
            if step in ran:
                return str(getattr(model.settings, step).model)
        return None

    def _chat_model(self, name: str) -> "ChatModel":
        from graphrag_index.llm.chat_model import ChatModel
        from graphrag_index.llm.registry import Models

        with self._lock:
            if self._models is None:
                self._models = Models(_patient(self._settings), check=False)
                # A run has found out what the endpoint supports.
                self._models.ledger.copy_capabilities(self._output)
            # What a model refused for an earlier question, it may answer now.
            self._models.ledger.release([STEP])
            if name not in self._chats:
                chat = self._models.chat(name, STEP)
                # Nobody waits a day for an answer: searches use no batches.
                assert isinstance(chat, ChatModel)
                self._chats[name] = chat
            return self._chats[name]


def _patient(settings: "Settings") -> Mapping[str, Any]:
    """Return the models, with the patience of somebody who waits for an answer."""
    longest = settings.search.retry_seconds
    return {
        name: model.model_copy(update={"retry_seconds": min(longest, model.retry_seconds)})
        for name, model in settings.models.items()
    }
