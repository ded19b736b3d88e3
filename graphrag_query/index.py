"""An opened index, with one method for each search."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_index.errors import ModelError, SettingsError
from graphrag_index.llm.request import TextSink
from graphrag_index.schema.settings.settings import Settings
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.llm import LLMPool
from graphrag_query.answering.written_answer import AnswerStream, Context, CountingSink
from graphrag_query.question.conversation import Conversation, suggest_questions
from graphrag_query.question.question import Question
from graphrag_query.retrieval.filtered_index import FilteredIndex, Filters
from graphrag_query.retrieval.index_store import IndexStore
from graphrag_query.searches.router import SEARCHES, check_method, choose
from graphrag_query.structured.queries import run_cypher, run_sql
from graphrag_query.structured.sandbox import QueryResult, limits_of


class Index:
    """An opened index. Its version is pinned, and several threads may ask it.

    Each search takes the question and, by name, settings of its section that are to differ.
    If a model does not answer, the outcome of the `Answer` is `provider_error`.
    """

    def __init__(
        self,
        store: IndexStore,
        settings: Settings | None = None,
        root: Path = Path(),
        llms: LLMPool | None = None,
    ) -> None:
        self.store = store
        self.settings = settings or store.settings
        self._llms = llms or LLMPool(self.settings, root, store.backend.output)

    def local(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question about an entity; `values` are those of `LocalSearch`."""
        return self.search("local", question, sink=sink, **values)

    def global_(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question about the whole corpus; `values` are those of `GlobalSearch`."""
        return self.search("global", question, sink=sink, **values)

    def basic(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question from similar passages; `values` are those of `BasicSearch`."""
        return self.search("basic", question, sink=sink, **values)

    def drift(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a broad question in steps; `values` are those of `DriftSearch`."""
        return self.search("drift", question, sink=sink, **values)

    def lazy(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question without reports, by testing passages; `values` are of `LazySearch`."""
        return self.search("lazy", question, sink=sink, **values)

    def ask(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Choose the search for a question and answer by it; the first note says which and why.

        `values` are those of the chosen search.
        """
        return self.search("ask", question, sink=sink, **values)

    def path(
        self, question: str, *names: str, sink: TextSink | None = None, **values: Any
    ) -> Answer:
        """Tell how the entities that a question names are connected; `values` are of `PathSearch`.

        Given several texts, each is the name of an entity: `index.path("Crean", "Nansen")`.
        """
        return self.search("path", question, *names, sink=sink, **values)

    def neighbourhood(
        self, question: str, *names: str, sink: TextSink | None = None, **values: Any
    ) -> Answer:
        """Return the relationships around an entity, by its name or a question about it.

        Given several texts, each is a name. `values` are those of `NeighbourhoodSearch`.
        """
        return self.search("neighbourhood", question, *names, sink=sink, **values)

    def structured(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question by a query that a model writes; `values` are of `StructuredSearch`.

        The notes of the answer show the query. Raises `SettingsError` if there is no chat model,
        or if the index is restricted by filters.
        """
        return self.search("structured", question, sink=sink, **values)

    def search(
        self,
        method: str,
        question: str,
        *names: str,
        sink: TextSink | None = None,
        **values: Any,
    ) -> Answer:
        """Answer by the search of this name; `values` are those of its section.

        With further `names`, which path and neighbourhood take, `question` is a name as well.
        Raises `SettingsError` if there is no such search, or if it has no such setting.
        """
        check_method(method)
        started = time.perf_counter()
        counting = CountingSink(sink) if sink else None
        asked = self._question(method, question, names, counting)
        notes: tuple[str, ...] = ()
        drops_llm = False
        if method == "ask":
            with self.store.pinned_version():
                choice = choose(asked)
            method, drops_llm = choice.method, choice.is_without_model
            notes = (f"Answered by {method} search: {choice.why}.", *choice.notes)
        chosen = SEARCHES[method]
        settings = getattr(self.settings, chosen.section).with_values(values)
        parameters = settings.model_dump()
        missing = [table for table in chosen.tables if not self.store.has(table)]
        try:
            with self.store.pinned_version():
                if missing:
                    answer, parameters = self._incomplete(asked, method, missing), {}
                else:
                    answer = self._with_follow_ups(chosen.run(asked, settings), asked)
                if answer.outcome is Outcome.ANSWERED and not chosen.names_entities:
                    notes += asked.mentions.spelling_notes()
        except ModelError as error:
            drops_llm = True
            # An outage is not "no record": the answer counts the rows read before it.
            answer = asked.answer(str(error), Outcome.PROVIDER_ERROR)
        if drops_llm:
            self._llms.drop()
        if counting and counting.is_empty:
            # Without a model, and when there is nothing to say, the text comes in one piece.
            counting.write(answer.text)
        elif counting and answer.outcome is Outcome.PROVIDER_ERROR:
            # The reader of half an answer is told why it ends.
            counting.write(f"\n\n{answer.text}")
        filters = {"filters": self.store.filters} if self.store.filters else {}
        seconds = round(time.perf_counter() - started, 3)
        return replace(
            answer,
            method=method,
            parameters={**parameters, **answer.parameters, **filters},
            usage=replace(answer.usage, seconds=seconds),
            notes=(*notes, *answer.notes, *self._gaps()),
        )

    def _question(
        self, method: str, text: str, names: tuple[str, ...], sink: CountingSink | None
    ) -> Question:
        if names:
            phrase = SEARCHES[method].phrase if method in SEARCHES else None
            if phrase is None:
                raise SettingsError(f"The search {method} takes one question, and no names.")
            names = (text, *names)
            text = phrase(names)
        search, local = self.settings.search, self.settings.local_search
        llm = self._llms.llm(self.store)
        return Question(_checked(text), self.store, llm, search, local, sink=sink, names=names)

    def _incomplete(self, question: Question, method: str, tables: Sequence[str]) -> Answer:
        workflow = self.store.version.workflow
        text = (
            f"This index has no {' and no '.join(tables)}, which {method} search reads: its "
            f"workflow, {workflow}, does not write them. Ask local, basic or lazy, or run another "
            "workflow."
        )
        return question.answer(text, Outcome.INDEX_INCOMPLETE)

    def _with_follow_ups(self, answer: Answer, question: Question) -> Answer:
        """Suggest further questions, if the settings ask for them and the search found none."""
        most = self.settings.search.follow_ups
        if not most or answer.outcome is not Outcome.ANSWERED or answer.follow_ups:
            return answer
        try:
            found = suggest_questions(answer, most, question)
        except ModelError as error:
            self._llms.drop()
            note = f"No questions to ask next, since no model suggested any: {error}"
            return replace(answer, notes=(*answer.notes, note))
        usage = question.llm.usage if question.llm is not None else answer.usage
        return replace(answer, follow_ups=found, usage=usage)

    def _gaps(self) -> tuple[str, ...]:
        """Describe missing parts of the index."""
        gaps = self.store.backend.gaps
        steps = [step for step in self.store.version.steps if step.quarantined]
        listed = ", ".join(f"{step.quarantined} of {step.name}" for step in steps)
        note = f"The index is not whole: requests to a model without a result: {listed}."
        return (*gaps, note) if steps else gaps

    def stream(self, method: str, question: str, **values: Any) -> AnswerStream:
        """Answer by the search of this name; the text can be read while it is being written."""
        return AnswerStream(lambda sink: self.search(method, question, sink=sink, **values))

    def ask_many(
        self, questions: Iterable[str], method: str = "ask", concurrency: int = 8, **values: Any
    ) -> list[Answer]:
        """Answer many questions concurrently, in the order of the questions."""
        with ThreadPoolExecutor(max(1, concurrency), "ask") as threads:
            return list(threads.map(lambda text: self.search(method, text, **values), questions))

    def context(self, question: str, method: str = "local", **values: Any) -> Context:
        """Return the context that a model would be given for a question, without asking one.

        Raises `SettingsError` if the search asks a model to find its context.
        """
        search = self.settings.search.with_values({"model": "none"})
        without_llm = Index(self.store, self.settings.model_copy(update={"search": search}))
        found = without_llm.search(method, question, **values)
        if found.context is None and found.outcome is Outcome.ANSWERED:
            raise SettingsError(
                f"The search {method} has no one context: it asks a model step by step. local, "
                "basic and global have."
            )
        return found.context or Context({}, "", 0, {})

    def where(
        self,
        documents: Mapping[str, str | Iterable[str]] | None = None,
        entity_types: Iterable[str] = (),
        since: str = "",
        until: str = "",
    ) -> "Index":
        """Return this index restricted to some documents, entities and times.

        `documents` has patterns, as for file names, by path, title, language, or a key of the
        metadata: `index.where({"path": "letters/*"}).local("...")`. Of several for one column a
        document must match one. `entity_types` do not restrict text units. `since` and `until`
        are dates as documents state them, such as 1914 or 1914-08; both ends are included.
        Raises `SettingsError` if nothing matches.
        """
        patterns = {
            name: (values,) if isinstance(values, str) else tuple(values)
            for name, values in (documents or {}).items()
        }
        filters = Filters(patterns, tuple(entity_types), since, until)
        return Index(FilteredIndex(self.store, filters), self.settings, llms=self._llms)

    def conversation(self, path: str | Path | None = None) -> Conversation:
        """Begin a conversation, or continue the one in a file."""
        return Conversation(Path(path) if path is not None else None)

    def converse(
        self,
        conversation: Conversation,
        question: str,
        method: str = "ask",
        *,
        sink: TextSink | None = None,
        **values: Any,
    ) -> Answer:
        """Answer the next question of a conversation, and add both to it.

        The question is first rewritten so that it stands by itself; `Answer.question` is that.
        """
        llm = self._llms.llm(self.store)
        notes: tuple[str, ...] = ()
        try:
            with self.store.pinned_version():
                rewritten = conversation.rewrite(_checked(question), self.store, llm)
        except ModelError as error:
            # If the model that answers fails too, the search says so.
            rewritten = _checked(question)
            notes = (f"The question was asked as it stands, since no model rewrote it: {error}",)
        answer = self.search(method, rewritten, sink=sink, **values)
        if notes:
            self._llms.drop()
        if llm is not None:
            answer = replace(answer, usage=llm.usage + answer.usage, notes=(*notes, *answer.notes))
        conversation.add(question, answer)
        return answer

    def sql(self, query: str, **values: Any) -> QueryResult:
        """Run a query in SQL over the public tables; `values` are those of `StructuredSearch`.

        It only reads, and reads nothing else: `index.sql("SELECT count(*) FROM entities").rows`.
        Raises `QueryError` if it is refused, wrong, or exceeds its limits.
        """
        with self.store.pinned_version():
            settings = self.settings.structured_search.with_values(values)
            return run_sql(self.store, query, limits_of(settings))

    def cypher(
        self, query: str, *, say: Callable[[str], None] = lambda text: None, **values: Any
    ) -> QueryResult:
        """Run a query in Cypher over the graph; `values` are those of `StructuredSearch`.

        It only reads: `index.cypher("MATCH (e:Entity) RETURN e.title LIMIT 3").rows`. The first
        one of a version builds a database from its tables, which takes a while; `say` is told.
        Raises `QueryError` if it is refused, wrong, or exceeds its limits, or if no engine is
        installed.
        """
        with self.store.pinned_version():
            settings = self.settings.structured_search.with_values(values)
            return run_cypher(self.store, query, limits_of(settings), say)

    def close(self) -> None:
        """Close connections to models, if any were opened; the next question opens them again."""
        self._llms.close()
        self.store.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _checked(question: str) -> str:
    """Return a question that is not empty, without bytes that are no text."""
    if not question.strip():
        raise SettingsError("The question is empty.")
    return question.encode("utf-8", "replace").decode("utf-8")
