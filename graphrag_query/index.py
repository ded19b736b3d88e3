"""An opened index: one method a search."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.core.errors import ModelError, SettingsError
from graphrag_query.answer import Answer, Outcome

if TYPE_CHECKING:
    from graphrag_index.core.models.registry import Models
    from graphrag_index.core.models.request import TextSink
    from graphrag_index.core.settings import Settings
    from graphrag_query.chat import AsksModel, Chat
    from graphrag_query.context import Context
    from graphrag_query.conversation import Conversation
    from graphrag_query.knowledge_model import KnowledgeModel
    from graphrag_query.question import Question
    from graphrag_query.stream import AnswerStream

# The steps that ask a model for what answers are made of: the first that ran names who answers.
_WRITING_STEPS = ("create_community_reports", "extract_graph")
# The searches, by the names of their methods.
METHODS = ("ask", "local", "global", "basic", "drift", "lazy", "path", "neighbourhood")
# What the ledger calls requests of searches.
STEP = "search"
# What each search reads beyond text units and entities.
_READS = {"global": ("community_reports",), "drift": ("community_reports",)}


class Index:
    """An opened index. Its version is pinned, and several threads may ask it.

    Each search takes the question and, by name, settings of its section that are to differ.
    It returns an `Answer`; a model that does not answer is one too, with the outcome
    `provider_error`.
    """

    def __init__(
        self, model: "KnowledgeModel", settings: "Settings | None" = None, root: Path = Path()
    ) -> None:
        self.model = model
        self.settings = settings or model.settings
        self._root = root
        self._writes = True  # False: no model is asked for an answer
        self._models: Models | None = None
        self._chats: dict[str, AsksModel] = {}
        self._lock = threading.Lock()

    def local(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a question about an entity; `values` are those of `LocalSearch`."""
        from graphrag_query.local_search import local_search

        settings = self.settings.local_search.with_values(values)
        return self._ask("local", question, sink, lambda asked: local_search(asked, settings))

    def global_(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a question about the whole corpus; `values` are those of `GlobalSearch`."""
        from graphrag_query.global_search import global_search

        settings = self.settings.global_search.with_values(values)
        return self._ask("global", question, sink, lambda asked: global_search(asked, settings))

    def basic(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a question from the passages that resemble it; `values` are of `BasicSearch`."""
        from graphrag_query.basic_search import basic_search

        settings = self.settings.basic_search.with_values(values)
        return self._ask("basic", question, sink, lambda asked: basic_search(asked, settings))

    def search(
        self, method: str, question: str, *, sink: "TextSink | None" = None, **values: Any
    ) -> Answer:
        """Answer by the search of this name; `values` are those of its section.

        Raises
        ------
        SettingsError
            There is no such search, or it does not know such a value.
        """
        if method not in METHODS:
            raise SettingsError(f"There is no search {method!r}; there are: {', '.join(METHODS)}.")
        name = "global_" if method == "global" else method
        answer: Answer = getattr(self, name)(question, sink=sink, **values)
        return answer

    def stream(self, method: str, question: str, **values: Any) -> "AnswerStream":
        """Answer by the search of this name; the text can be read while it is being written."""
        from graphrag_query.stream import AnswerStream

        return AnswerStream(lambda sink: self.search(method, question, sink=sink, **values))

    def ask_many(
        self, questions: Iterable[str], method: str = "ask", concurrency: int = 8, **values: Any
    ) -> list[Answer]:
        """Answer many questions, some at once; the answers are in the order of the questions."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max(1, concurrency), "ask") as threads:
            return list(threads.map(lambda text: self.search(method, text, **values), questions))

    def context(self, question: str, method: str = "local", **values: Any) -> "Context":
        """Return what a model would be shown for a question, without asking one.

        Raises
        ------
        SettingsError
            This search finds its context by asking a model.
        """
        from graphrag_query.context import Context

        without_model = Index(self.model, self.settings, self._root)
        without_model._writes = False
        found = without_model.search(method, question, **values)
        if found.context is None and found.outcome is Outcome.ANSWERED:
            raise SettingsError(
                f"The search {method} has no one context: it asks a model step by step. local, "
                "basic and global have."
            )
        return found.context or Context({}, "", 0, {})

    def conversation(self, path: "str | Path | None" = None) -> "Conversation":
        """Begin a conversation, or go on with the one in a file."""
        from graphrag_query.conversation import Conversation

        return Conversation(Path(path) if path is not None else None)

    def converse(
        self,
        conversation: "Conversation",
        question: str,
        method: str = "ask",
        *,
        sink: "TextSink | None" = None,
        **values: Any,
    ) -> Answer:
        """Answer the next question of a conversation, and note both there.

        The question is first written so that it stands by itself; `Answer.question` is that.
        """
        chat = self._chat()
        rewritten = conversation.rewrite(_asked(question), self.model, chat)
        answer = self.search(method, rewritten, sink=sink, **values)
        if chat is not None:
            answer = replace(answer, usage=chat.usage + answer.usage)
        conversation.add(question, answer)
        return answer

    def close(self) -> None:
        """Close connections to models, if any were opened."""
        with self._lock:
            if self._models is not None:
                self._models.close()
            self._models, self._chats = None, {}

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(
        self,
        method: str,
        text: str,
        sink: "TextSink | None",
        search: "Callable[[Question], Answer]",
    ) -> Answer:
        """Run a search; turn what can go wrong outside of the corpus into outcomes."""
        from graphrag_query.question import Question
        from graphrag_query.stream import Counted

        started = time.perf_counter()
        counted = Counted(sink) if sink else None
        question = Question(_asked(text), self.model, self._chat(), self.settings.search, counted)
        lacking = [table for table in _READS.get(method, ()) if not self.model.has(table)]
        try:
            answer = self._lacks(question, method, lacking) if lacking else search(question)
        except ModelError as error:
            # A model that failed asks nothing more; the next question gets a new one.
            self._chats = {}
            answer = question.answer(str(error), method, {}, {}, Outcome.PROVIDER_ERROR)
        if counted and counted.is_empty:
            # Without a model, and when there is nothing to say, the text comes in one piece.
            counted.write(answer.text)
        seconds = round(time.perf_counter() - started, 3)
        return replace(
            answer,
            usage=replace(answer.usage, seconds=seconds),
            notes=(*answer.notes, *self._gaps()),
        )

    def _lacks(self, question: "Question", method: str, tables: list[str]) -> Answer:
        workflow = self.model.version.workflow
        text = (
            f"This index has no {' and no '.join(tables)}, which {method} search reads: its "
            f"workflow, {workflow}, does not write them. Ask local, basic or lazy, or run another "
            "workflow."
        )
        return question.answer(text, method, {}, {}, Outcome.INDEX_INCOMPLETE)

    def _gaps(self) -> tuple[str, ...]:
        """Tell which part of the documents the index does not hold, if a run left any out."""
        steps = [step for step in self.model.version.steps if step.quarantined]
        if not steps:
            return ()
        what = ", ".join(f"{step.quarantined} of {step.name}" for step in steps)
        return (f"The index is not whole: requests to a model without a result: {what}.",)

    def _chat(self) -> "Chat | None":
        """Make the chat of one question; None if no model writes answers."""
        from graphrag_query.chat import Chat

        search = self.settings.search
        name = self._writer() if self._writes else None
        if name is None:
            return None
        from graphrag_index.core.prompts import Prompts

        prompts = Prompts(self._root, "graphrag_query")
        rating = self._chat_model(search.rating_model) if search.rating_model else None
        return Chat(self._chat_model(name), prompts, rating)

    def _writer(self) -> str | None:
        """Return the name of the model that writes answers, in the section `models`."""
        name = self.settings.search.model
        if name != "auto":
            return None if name == "none" else name
        ran = {step.name for step in self.model.version.steps}
        for step in _WRITING_STEPS:
            if step in ran:
                return str(getattr(self.model.settings, step).model)
        return None

    def _chat_model(self, name: str) -> "AsksModel":
        """Return a model by name; all questions share its connections and limits."""
        from graphrag_index.core.models.chat_model import ChatModel
        from graphrag_index.core.models.registry import Models

        with self._lock:
            if self._models is None:
                self._models = Models(_patient(self.settings), check=False)
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


def _asked(question: str) -> str:
    if not question.strip():
        raise SettingsError("The question is empty.")
    # A question typed at a terminal or read from a file may hold bytes that are no text.
    return question.encode("utf-8", "replace").decode("utf-8")
