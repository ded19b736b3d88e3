"""An opened index, with one method for each search."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from graphrag_index.errors import ModelError, SettingsError, TableError
from graphrag_index.llm.request import TextSink
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.spans import span
from graphrag_query.answer import Answer, Context, Outcome, Passage
from graphrag_query.answering.written_answer import AnswerStream, CountingSink
from graphrag_query.llm import LLMPool, run_within_limits, usage_of
from graphrag_query.question.conversation import Conversation, suggest_questions
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import check_question, check_questions
from graphrag_query.retrieval.text_unit_ranking import start_search
from graphrag_query.searches.basic_search import rank_text_units
from graphrag_query.searches.global_search import report_context
from graphrag_query.searches.router import METHODS, SEARCHES, check_method, choose_search
from graphrag_query.searches.suggestion import suggest_search
from graphrag_query.store.filtered_index import FilteredIndex, Filters
from graphrag_query.store.index_store import IndexStore
from graphrag_query.structured.queries import run_cypher, run_sql
from graphrag_query.structured.sandbox import QueryResult, read_limits

# Text of an answer that may be in texts without a vector; an outage is no missing evidence.
MISSING_VECTORS = (
    "No passage that was read answers this, but {} texts of the index have no vector, and the "
    "answer may be in them: `graphrag-index status --all` says why."
)


class Index:
    """An opened index. Its version is pinned, and several threads may use it.

    Each search method takes a question. Keyword arguments override settings in the section of the
    search. If a model does not answer, the outcome of the `Answer` is `provider_error`.
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

    @property
    def has_llm(self) -> bool:
        """Whether a chat model writes answers, as the settings say."""
        return self._llms.llm(self.store, self.settings.search.model) is not None

    def local(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question about an entity; `values` override settings of `LocalSearch`."""
        return self.search("local", question, sink=sink, **values)

    def global_(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question about the whole corpus; `values` override `GlobalSearch`."""
        return self.search("global", question, sink=sink, **values)

    def basic(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question from similar passages; `values` override `BasicSearch`."""
        return self.search("basic", question, sink=sink, **values)

    def drift(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a broad question in steps; `values` override settings of `DriftSearch`."""
        return self.search("drift", question, sink=sink, **values)

    def lazy(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question by relevance tests, without reports; `values` override `LazySearch`."""
        return self.search("lazy", question, sink=sink, **values)

    def compare(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Compare the things or periods that a question names, in a table.

        `Answer.table` has a row for each cell. `values` override settings of `CompareSearch`.
        """
        return self.search("compare", question, sink=sink, **values)

    def ask(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Choose a search for a question, and answer the question with that search.

        The first note of the answer says which search was chosen and why. `values` override
        settings of the chosen search.
        """
        return self.search("ask", question, sink=sink, **values)

    def path(
        self, question: str, *names: str, sink: TextSink | None = None, **values: Any
    ) -> Answer:
        """Explain how the entities that a question names are connected.

        With several texts, each text is the name of an entity: `index.path("Crean", "Nansen")`.
        `values` override settings of `PathSearch`.
        """
        return self.search("path", question, *names, sink=sink, **values)

    def neighbourhood(
        self, question: str, *names: str, sink: TextSink | None = None, **values: Any
    ) -> Answer:
        """Return the relationships around an entity. `question` may be the entity's name.

        With several texts, each text is a name. `values` override settings of
        `NeighbourhoodSearch`.
        """
        return self.search("neighbourhood", question, *names, sink=sink, **values)

    def structured(self, question: str, *, sink: TextSink | None = None, **values: Any) -> Answer:
        """Answer a question with a SQL or Cypher query that a model writes.

        The notes of the answer show the query. `values` override settings of `StructuredSearch`.
        Raises `SettingsError` if there is no chat model, or if the index is restricted by
        filters.
        """
        return self.search("structured", question, sink=sink, **values)

    def search(
        self, method: str, question: str, *names: str, sink: TextSink | None = None, **values: Any
    ) -> Answer:
        """Answer a question with the search `method`; `values` override settings of the search.

        The searches path and neighbourhood also take names of entities: then `question` is the
        first name, and `names` are the others. Raises `SettingsError` if there is no search of
        this name, or if the search does not have one of the settings.
        """
        check_method(method)
        started = time.perf_counter()
        counting = CountingSink(sink) if sink else None
        asked = self._build_question(method, question, names, counting)
        notes: tuple[str, ...] = ()
        drops_llm = False
        if method == "ask":
            with self.store.pinned_version():
                choice = choose_search(asked)
            method, drops_llm = choice.method, choice.is_without_model
            notes = (f"Answered by {method} search: {choice.why}.", *choice.notes)
            asked.tell("search", f"Chose {method} search: {choice.why}.")
        chosen = SEARCHES[method]
        settings = getattr(self.settings, f"{method}_search").with_values(values)
        parameters = settings.model_dump()
        missing = [table for table in chosen.tables if not self.store.has_table(table)]
        try:
            with self.store.pinned_version():
                if missing:
                    answer, parameters = self._incomplete_answer(asked, method, missing), {}
                else:
                    with span("retrieval", method=method, question=question) as retrieval:
                        answer = run_within_limits(partial(chosen.run, asked, settings), asked.llm)
                        answer = self._with_follow_ups(answer, asked)
                        retrieval.set(n_citations=len(answer.citations))
                n_missing = self._n_missing_vectors()
                if answer.outcome is Outcome.NO_EVIDENCE and n_missing and not asked.refuse():
                    text = MISSING_VECTORS.format(n_missing)
                    answer = replace(answer, text=text, outcome=Outcome.INDEX_INCOMPLETE)
                if answer.outcome is Outcome.NO_EVIDENCE:
                    suggestion = suggest_search(asked, method, self.settings)
                    answer = replace(answer, suggestion=suggestion)
                if answer.outcome is Outcome.ANSWERED and not chosen.names_entities:
                    notes += asked.mentions.spelling_notes()
        except ModelError as error:
            drops_llm = True
            # The answer has the counts of the rows that were read before the model failed.
            answer = asked.answer(str(error), Outcome.PROVIDER_ERROR)
        look = asked.reranking
        if drops_llm or look.warnings:
            self._llms.discard_models()
        if counting and counting.is_empty:
            # Nothing was streamed, for example without a model: write the whole text.
            if asked.llm is None:
                asked.tell_writing()
            counting.write(answer.text)
        elif counting and answer.outcome is Outcome.PROVIDER_ERROR:
            # The user has read a part of the answer: add why the answer ends.
            counting.write(f"\n\n{answer.text}")
        filters = {"filters": self.store.filters} if self.store.filters else {}
        seconds = round(time.perf_counter() - started, 3)
        return replace(
            answer,
            method=method,
            citations=self.store.locate(answer.citations),
            parameters={**parameters, **answer.parameters, **filters},
            usage=replace(answer.usage + usage_of(look.spent), seconds=seconds),
            notes=(*notes, *answer.notes, *look.warnings, *asked.warnings, *self._describe_gaps()),
        )

    def _build_question(
        self, method: str, text: str, names: tuple[str, ...], sink: CountingSink | None
    ) -> Question:
        if names:
            phrase = SEARCHES[method].phrase if method in SEARCHES else None
            if phrase is None:
                raise SettingsError(f"The search {method} takes one question, and no names.")
            names = (text, *names)
            text = phrase(names)
        search, local = self.settings.search, self.settings.local_search
        llm = self._llms.llm(self.store, self.settings.search.model)
        look = self._llms.reranking(self.store)
        return Question(
            *(check_question(text), self.store, llm, search, local),
            sink=sink,
            names=names,
            reranking=look,
        )

    def _incomplete_answer(self, question: Question, method: str, tables: Sequence[str]) -> Answer:
        workflow = self.store.version.workflow
        text = (
            f"This index has no {' and no '.join(tables)}, which {method} search reads: its "
            f"workflow, {workflow}, does not write them. Ask local, basic or lazy, or run another "
            "workflow."
        )
        return question.answer(text, Outcome.INDEX_INCOMPLETE)

    def _with_follow_ups(self, answer: Answer, question: Question) -> Answer:
        """Add suggested questions if the settings ask for them and the answer has none."""
        most = self.settings.search.follow_ups
        if not most or answer.outcome is not Outcome.ANSWERED or answer.follow_ups:
            return answer
        try:
            found = suggest_questions(answer, most, question)
        except ModelError as error:
            self._llms.discard_models()
            note = f"No questions are suggested, because the model failed: {error}"
            return replace(answer, notes=(*answer.notes, note))
        usage = question.llm.usage if question.llm is not None else answer.usage
        return replace(answer, follow_ups=found, usage=usage)

    def _n_missing_vectors(self) -> int:
        """Return how many texts of the index have no vector, because their requests failed."""
        steps = self.store.version.steps
        return sum(step.quarantined for step in steps if step.name == "generate_text_embeddings")

    def _describe_gaps(self) -> tuple[str, ...]:
        """Return notes on missing parts of the index."""
        gaps = self.store.backend.gaps
        steps = [step for step in self.store.version.steps if step.quarantined]
        listed = ", ".join(f"{step.quarantined} of {step.name}" for step in steps)
        note = f"The index is incomplete. Requests to a model without a result: {listed}."
        return (*gaps, note) if steps else gaps

    def stream(self, method: str, question: str, **values: Any) -> AnswerStream:
        """Answer with the search `method`. The text can be read while it is being written."""
        return AnswerStream(lambda sink: self.search(method, question, sink=sink, **values))

    def ask_many(
        self, questions: Iterable[str], method: str = "ask", concurrency: int = 8, **values: Any
    ) -> list[Answer]:
        """Answer many questions concurrently. The answers are in the order of the questions."""
        asked = check_questions(questions)
        with ThreadPoolExecutor(max(1, concurrency), "ask") as threads:
            return list(threads.map(lambda text: self.search(method, text, **values), asked))

    def context(self, question: str, method: str = "local", **values: Any) -> Context:
        """Return the context of a question, as in the prompt, without calling a chat model.

        For global search, the context has all reports that the calls would read. Drift and lazy
        search choose further passages by replies of a model; here they choose as without a
        model. Raises `SettingsError` if the search cannot choose without a model, `TableError` if
        the index lacks a table of the search, and `ModelError` if the embedding model fails.
        """
        check_method(method)
        if method == "structured":
            having = ", ".join(name for name in METHODS if name != method)
            raise SettingsError(
                "The search structured has no context before a model has written its query. These "
                f"searches have one: {having}."
            )
        method = self.chosen_method(question) if method == "ask" else method
        without_llm = self._without_llm()
        asked = without_llm._build_question(method, question, (), None)
        with self.store.pinned_version():
            if method == "global" and all(map(self.store.has_table, SEARCHES[method].tables)):
                # Without a model, a global answer reads sentences of reports, not whole reports.
                return report_context(asked, self.settings.global_search.with_values(values))
        found = without_llm.search(method, question, **values)
        if found.outcome is Outcome.INDEX_INCOMPLETE:
            raise TableError(found.text)
        if found.outcome is Outcome.PROVIDER_ERROR:
            raise ModelError(found.text)
        return found.context or Context({}, "", 0, {})

    def chosen_method(self, question: str) -> str:
        """Return the search that `ask` chooses for a question without a model."""
        asked = self._without_llm()._build_question("ask", question, (), None)
        with self.store.pinned_version():
            return choose_search(asked).method

    def _without_llm(self) -> "Index":
        search = self.settings.search.with_values({"model": "none"})
        settings = self.settings.model_copy(update={"search": search})
        return Index(self.store, settings, llms=self._llms)

    def passages(
        self, question: str, limit: int = 10, method: Literal["local", "basic"] = "local"
    ) -> list[Passage]:
        """Return the passages that fit a question best, with scores, without a chat model.

        The ranking is that of local or basic search. Raises `TableError` if the index has no
        vectors, and `ModelError` if the embedding model fails.
        """
        asked = self._build_question(method, question, (), None)
        with self.store.pinned_version():
            if method == "local":
                ranked = asked.cell_coverage.rank_first(start_search(asked)(), limit)[:limit]
                # Scores of cells are above all others, up to twice the best of these.
                scale = ranked[0].score if ranked and asked.cell_coverage.order else 1.0
                scores = {unit.number: unit.score / scale for unit in ranked}
            else:
                basic = self.settings.basic_search.with_values({"top_k_text_units": limit})
                scores = rank_text_units(asked, basic)
            rows = self.store.text_units(scores)
            return [
                Passage(
                    number=number,
                    score=max(0.0, min(1.0, score)),
                    document=rows[number]["document"],
                    title=rows[number]["title"] or "",
                    path=rows[number]["path"] or "",
                    start_char=rows[number]["start_char"],
                    end_char=rows[number]["end_char"],
                    text=rows[number]["source"],
                )
                for number, score in scores.items()
            ]

    def where(
        self,
        documents: Mapping[str, str | Iterable[str]] | None = None,
        entity_types: Iterable[str] = (),
        since: str = "",
        until: str = "",
    ) -> "Index":
        """Return this index restricted to some documents, entities and dates.

        `documents` maps a column (path, title, language, or a metadata key) to one or more
        patterns like those for file names: `index.where({"path": "letters/*"}).local("...")`. A
        document must match one pattern of each column. `entity_types` does not restrict text
        units. `since` and `until` are the first and the last date, such as 1914 or 1914-08; both
        are included. Filters that this index already has are kept. Raises `SettingsError` if
        nothing matches.
        """
        patterns = {
            name: (values,) if isinstance(values, str) else tuple(values)
            for name, values in (documents or {}).items()
        }
        filters = Filters(patterns, tuple(entity_types), since, until)
        return Index(FilteredIndex(self.store, filters), self.settings, llms=self._llms)

    def conversation(self, path: str | Path | None = None) -> Conversation:
        """Start a conversation, or continue the conversation stored in a file."""
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
        """Answer the next question of a conversation, and add the question and the answer to it.

        The question is first rewritten, so that it can be understood without the conversation.
        `Answer.question` is the rewritten question.
        """
        llm = self._llms.llm(self.store, self.settings.search.model)
        notes: tuple[str, ...] = ()
        try:
            with self.store.pinned_version():
                rewritten = conversation.rewrite(check_question(question), self.store, llm)
        except ModelError as error:
            # Continue without a rewritten question. The search reports any further failure.
            rewritten = check_question(question)
            notes = (f"The question was not rewritten, because the model failed: {error}",)
        answer = self.search(method, rewritten, sink=sink, **values)
        if notes:
            self._llms.discard_models()
        if llm is not None:
            answer = replace(answer, usage=llm.usage + answer.usage, notes=(*notes, *answer.notes))
        conversation.add(question, answer)
        return answer

    def sql(self, query: str, **values: Any) -> QueryResult:
        """Run a SQL query over the public tables: `index.sql("SELECT title FROM entities").rows`.

        A query can only read the public tables. `values` override settings of
        `StructuredSearch`. Raises `QueryError` if the query is not allowed, is invalid, or exceeds
        its limits.
        """
        with self.store.pinned_version():
            settings = self.settings.structured_search.with_values(values)
            return run_sql(self.store, query, read_limits(settings))

    def cypher(
        self, query: str, *, say: Callable[[str], None] = lambda text: None, **values: Any
    ) -> QueryResult:
        """Run a Cypher query over the graph.

        For example: `index.cypher("MATCH (e:Entity) RETURN e.title LIMIT 3").rows`. A query can
        only read. The first query of a version builds a graph database from the tables, which
        takes some time; `say` is called with a message about it. `values` override settings of
        `StructuredSearch`. Raises `QueryError` if the query is not allowed, is invalid, or exceeds
        its limits, or if no engine is installed.
        """
        with self.store.pinned_version():
            settings = self.settings.structured_search.with_values(values)
            return run_cypher(self.store, query, read_limits(settings), say)

    def close(self) -> None:
        """Close the connections to models. The next question opens them again."""
        self._llms.close()
        self.store.embedder.close()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
