"""An opened index: one method a search."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import ModelError, SettingsError
from graphrag_query.answer import Answer, Outcome, Usage

if TYPE_CHECKING:
    from graphrag_index.llm.request import TextSink
    from graphrag_index.schema.settings.section import Section
    from graphrag_index.schema.settings.settings import Settings
    from graphrag_query.answering.chat import Chat
    from graphrag_query.answering.chat_models import Chats
    from graphrag_query.answering.context import Context
    from graphrag_query.answering.stream import AnswerStream
    from graphrag_query.question.conversation import Conversation
    from graphrag_query.question.question import Question
    from graphrag_query.retrieval.index_store import KnowledgeModel
    from graphrag_query.structured.result import Result

# The searches, by the names of their methods.
METHODS = (
    "ask",
    "local",
    "global",
    "basic",
    "drift",
    "lazy",
    "path",
    "neighbourhood",
    "structured",
)
# What each search reads beyond text units and entities.
_READS = {"global": ("community_reports",), "drift": ("community_reports",)}


class Index:
    """An opened index. Its version is pinned, and several threads may ask it.

    Each search takes the question and, by name, settings of its section that are to differ.
    It returns an `Answer`; a model that does not answer is one too, with the outcome
    `provider_error`.
    """

    def __init__(
        self,
        model: "KnowledgeModel",
        settings: "Settings | None" = None,
        root: Path = Path(),
        chats: "Chats | None" = None,
    ) -> None:
        from graphrag_query.answering.chat_models import Chats

        self.model = model
        self.settings = settings or model.settings
        self._chats: Chats | None = chats or Chats(self.settings, root, model.store.output)

    def local(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a question about an entity; `values` are those of `LocalSearch`."""
        from graphrag_query.searches.local_search import local_search

        settings = self.settings.local_search.with_values(values)
        return self._ask(
            "local", question, sink, settings, lambda asked: local_search(asked, settings)
        )

    def global_(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a question about the whole corpus; `values` are those of `GlobalSearch`."""
        from graphrag_query.searches.global_search import global_search

        settings = self.settings.global_search.with_values(values)
        return self._ask(
            "global", question, sink, settings, lambda asked: global_search(asked, settings)
        )

    def basic(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a question from the passages that resemble it; `values` are of `BasicSearch`."""
        from graphrag_query.searches.basic_search import basic_search

        settings = self.settings.basic_search.with_values(values)
        return self._ask(
            "basic", question, sink, settings, lambda asked: basic_search(asked, settings)
        )

    def drift(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a broad question in steps; `values` are those of `DriftSearch`."""
        from graphrag_query.searches.drift_search import drift_search

        settings, local = self.settings.drift_search.with_values(values), self.settings.local_search
        return self._ask(
            "drift", question, sink, settings, lambda asked: drift_search(asked, settings, local)
        )

    def lazy(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a question without reports, by testing passages; `values` are of `LazySearch`."""
        from graphrag_query.searches.lazy_search import lazy_search

        settings = self.settings.lazy_search.with_values(values)
        return self._ask(
            "lazy", question, sink, settings, lambda asked: lazy_search(asked, settings)
        )

    def ask(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Choose the search for a question, and answer by it; the first note says which and why.

        `values` are those of the search that is chosen.
        """
        from graphrag_query.searches.router import choose

        started = time.perf_counter()
        chat = self._chat()
        with self.model.while_kept():
            choice = choose(self.model, _asked(question), chat)
        seconds = time.perf_counter() - started
        answer = self.search(choice.method, question, sink=sink, **values)
        if choice.is_without_model and self._chats is not None:
            # The search was not to wait for it once more; the next question may.
            self._chats.drop()
        chosen = replace(chat.usage if chat else Usage(), seconds=round(seconds, 3))
        why = f"Answered by {choice.method} search: {choice.why}."
        return replace(
            answer, usage=chosen + answer.usage, notes=(why, *choice.notes, *answer.notes)
        )

    def path(
        self, question: str, *names: str, sink: "TextSink | None" = None, **values: Any
    ) -> Answer:
        """Tell how the entities that a question names are connected; `values` are of `PathSearch`.

        Given several texts, each is the name of an entity: `index.path("Crean", "Nansen")`.
        """
        from graphrag_query.searches.path_search import path_search

        settings = self.settings.path_search.with_values(values)
        names = (question, *names) if names else ()
        if names:
            question = f"How are {' and '.join(names)} connected?"
        return self._ask(
            "path", question, sink, settings, lambda asked: path_search(asked, settings, names)
        )

    def neighbourhood(
        self, question: str, *names: str, sink: "TextSink | None" = None, **values: Any
    ) -> Answer:
        """Give what surrounds an entity, by its name or a question that holds it.

        Given several texts, each is a name. `values` are those of `NeighbourhoodSearch`.
        """
        from graphrag_query.searches.neighbourhood import neighbourhood_search

        settings = self.settings.neighbourhood_search.with_values(values)
        names = (question, *names) if names else ()
        text = ", ".join(names) or question
        return self._ask(
            "neighbourhood",
            text,
            sink,
            settings,
            lambda asked: neighbourhood_search(asked, settings, names),
        )

    def structured(self, question: str, *, sink: "TextSink | None" = None, **values: Any) -> Answer:
        """Answer a question by a query that a model writes; `values` are of `StructuredSearch`.

        The notes of the answer show the query.

        Raises
        ------
        SettingsError
            There is no chat model, or the index is held to filters.
        """
        from graphrag_query.structured.structured_search import structured_search

        settings, local = (
            self.settings.structured_search.with_values(values),
            self.settings.local_search,
        )
        return self._ask(
            "structured",
            question,
            sink,
            settings,
            lambda asked: structured_search(asked, settings, local),
        )

    def sql(self, query: str, **values: Any) -> "Result":
        """Run a query in SQL over the public tables; `values` are those of `StructuredSearch`.

        It only reads, and reads nothing else: `index.sql("SELECT count(*) FROM entities").rows`.

        Raises
        ------
        QueryError
            It is refused, wrong, or takes more than it may.
        """
        from graphrag_query.structured.limits import limits_of
        from graphrag_query.structured.sql import run_sql

        with self.model.while_kept():
            settings = self.settings.structured_search.with_values(values)
            return run_sql(self.model, query, limits_of(settings))

    def cypher(
        self, query: str, *, say: "Callable[[str], None]" = lambda text: None, **values: Any
    ) -> "Result":
        """Run a query in Cypher over the graph; `values` are those of `StructuredSearch`.

        It only reads: `index.cypher("MATCH (e:Entity) RETURN e.title LIMIT 3").rows`. The first
        one of a version makes a database of its tables, which takes a while; `say` is told so.

        Raises
        ------
        QueryError
            It is refused, wrong, or takes more than it may; or no engine is installed.
        """
        from graphrag_query.structured.cypher import run_cypher
        from graphrag_query.structured.limits import limits_of

        with self.model.while_kept():
            settings = self.settings.structured_search.with_values(values)
            return run_cypher(self.model, query, limits_of(settings), say)

    def where(
        self,
        documents: "Mapping[str, str | Iterable[str]] | None" = None,
        entity_types: Iterable[str] = (),
        since: str = "",
        until: str = "",
    ) -> "Index":
        """Return this index as it is for some documents, entities and times only.

        Every search of it is held to them: `index.where({"path": "letters/*"}).local("...")`.

        Parameters
        ----------
        documents
            Patterns, as for file names, by path, title, language, or a key of the metadata;
            of several of one column a document fits one.
        entity_types
            Types of entities; text units are not chosen by them.
        since, until
            Dates as documents state them, such as 1914 or 1914-08; both ends belong to it.

        Raises
        ------
        SettingsError
            Nothing fits.
        """
        from graphrag_query.retrieval.filtered_index import ScopedModel
        from graphrag_query.retrieval.filters import Filters

        patterns = {
            name: (values,) if isinstance(values, str) else tuple(values)
            for name, values in (documents or {}).items()
        }
        filters = Filters(patterns, tuple(entity_types), since, until)
        return Index(ScopedModel(self.model, filters), self.settings, chats=self._chats)

    def search(
        self,
        method: str,
        question: str,
        *names: str,
        sink: "TextSink | None" = None,
        **values: Any,
    ) -> Answer:
        """Answer by the search of this name; `values` are those of its section.

        With further `names`, which path and neighbourhood take, `question` is a name as well.

        Raises
        ------
        SettingsError
            There is no such search, or it does not know such a value.
        """
        check_method(method)
        name = "global_" if method == "global" else method
        answer: Answer = getattr(self, name)(question, *names, sink=sink, **values)
        return answer

    def stream(self, method: str, question: str, **values: Any) -> "AnswerStream":
        """Answer by the search of this name; the text can be read while it is being written."""
        from graphrag_query.answering.stream import AnswerStream

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
        from graphrag_query.answering.context import Context

        without_model = Index(self.model, self.settings)
        without_model._chats = None
        found = without_model.search(method, question, **values)
        if found.context is None and found.outcome is Outcome.ANSWERED:
            raise SettingsError(
                f"The search {method} has no one context: it asks a model step by step. local, "
                "basic and global have."
            )
        return found.context or Context({}, "", 0, {})

    def conversation(self, path: "str | Path | None" = None) -> "Conversation":
        """Begin a conversation, or go on with the one in a file."""
        from graphrag_query.question.conversation import Conversation

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
        notes: tuple[str, ...] = ()
        try:
            with self.model.while_kept():
                rewritten = conversation.rewrite(_asked(question), self.model, chat)
        except ModelError as error:
            # If the model that answers fails too, the search says so.
            rewritten = _asked(question)
            notes = (f"The question was asked as it stands, since no model rewrote it: {error}",)
        answer = self.search(method, rewritten, sink=sink, **values)
        if notes and self._chats is not None:
            self._chats.drop()
        if chat is not None:
            answer = replace(answer, usage=chat.usage + answer.usage, notes=(*notes, *answer.notes))
        conversation.add(question, answer)
        return answer

    def close(self) -> None:
        """Close connections to models, if any were opened."""
        if self._chats is not None:
            self._chats.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ask(
        self,
        method: str,
        text: str,
        sink: "TextSink | None",
        settings: "Section",
        search: "Callable[[Question], Answer]",
    ) -> Answer:
        """Run a search; turn what can go wrong outside of the corpus into outcomes."""
        from graphrag_query.answering.stream import Counted
        from graphrag_query.question.question import Question

        started = time.perf_counter()
        counted = Counted(sink) if sink else None
        question = Question(_asked(text), self.model, self._chat(), self.settings.search, counted)
        lacking = [table for table in _READS.get(method, ()) if not self.model.has(table)]
        try:
            with self.model.while_kept():
                answer = self._lacks(question, method, lacking) if lacking else search(question)
                answer = self._with_spellings(answer, question)
                answer = self._with_follow_ups(answer, question)
        except ModelError as error:
            if self._chats is not None:
                self._chats.drop()
            # What was looked at before is told: an outage is not "nothing there".
            answer = question.answer(
                str(error), method, settings.model_dump(), question.counts, Outcome.PROVIDER_ERROR
            )
        if counted and counted.is_empty:
            # Without a model, and when there is nothing to say, the text comes in one piece.
            counted.write(answer.text)
        elif counted and answer.outcome is Outcome.PROVIDER_ERROR:
            # Whoever has read half an answer is to know why there is no more.
            counted.write(f"\n\n{answer.text}")
        seconds = round(time.perf_counter() - started, 3)
        filters = self.model.filters
        return replace(
            answer,
            parameters={**answer.parameters, "filters": filters} if filters else answer.parameters,
            usage=replace(answer.usage, seconds=seconds),
            notes=(*answer.notes, *self._gaps()),
        )

    def _chat(self) -> "Chat | None":
        return self._chats.chat(self.model) if self._chats is not None else None

    def _with_spellings(self, answer: Answer, question: "Question") -> Answer:
        """Tell for which name one of another spelling was taken, if the search does not."""
        if answer.outcome is not Outcome.ANSWERED or answer.method in (
            "path",
            "neighbourhood",
            "structured",
        ):
            return answer
        from graphrag_query.question.asked_entities import spelt_otherwise

        return replace(answer, notes=(*spelt_otherwise(self.model, question.text), *answer.notes))

    def _with_follow_ups(self, answer: Answer, question: "Question") -> Answer:
        """Suggest what could be asked next, if that is wanted and nothing suggests it yet."""
        most = self.settings.search.follow_ups
        if not most or answer.outcome is not Outcome.ANSWERED or answer.follow_ups:
            return answer
        from graphrag_query.answering.follow_ups import suggest_questions

        try:
            found = suggest_questions(answer, most, self.model, question.chat)
        except ModelError as error:
            if self._chats is not None:
                self._chats.drop()
            note = f"No questions to ask next, since no model suggested any: {error}"
            return replace(answer, notes=(*answer.notes, note))
        usage = question.chat.usage if question.chat is not None else answer.usage
        return replace(answer, follow_ups=found, usage=usage)

    def _lacks(self, question: "Question", method: str, tables: list[str]) -> Answer:
        workflow = self.model.version.workflow
        text = (
            f"This index has no {' and no '.join(tables)}, which {method} search reads: its "
            f"workflow, {workflow}, does not write them. Ask local, basic or lazy, or run another "
            "workflow."
        )
        return question.answer(text, method, {}, {}, Outcome.INDEX_INCOMPLETE)

    def _gaps(self) -> tuple[str, ...]:
        """Tell which part of the documents the index does not hold, if a run left any out, and
        what the index of another program lacks.
        """
        gaps = self.model.store.gaps
        steps = [step for step in self.model.version.steps if step.quarantined]
        if not steps:
            return gaps
        what = ", ".join(f"{step.quarantined} of {step.name}" for step in steps)
        return (
            *gaps,
            f"The index is not whole: requests to a model without a result: {what}.",
        )


def check_method(method: str) -> None:
    """See that there is a search of this name.

    Raises
    ------
    SettingsError
        There is none.
    """
    if method not in METHODS:
        raise SettingsError(f"There is no search {method!r}; there are: {', '.join(METHODS)}.")


def _asked(question: str) -> str:
    if not question.strip():
        raise SettingsError("The question is empty.")
    # A question typed at a terminal or read from a file may hold bytes that are no text.
    return question.encode("utf-8", "replace").decode("utf-8")
