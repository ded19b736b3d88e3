"""Questions asked to a system, with the scores of what came back."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from graphrag_evaluation.answer_scores import citation_scores, outcome_scores
from graphrag_evaluation.coverage import THRESHOLD, statement_scores
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.retrieval_scores import retrieval_scores
from graphrag_evaluation.systems import System, SystemPlan, open_systems
from graphrag_index.errors import GraphRAGError, SettingsError
from graphrag_index.llm.request import ENCODING
from graphrag_index.pipeline.shards import separate_processes
from graphrag_index.text.normalize import fold
from graphrag_index.text.tokens import load_encoding
from graphrag_query.answer import Answer, Outcome
from graphrag_query.answering.written_answer import Context, DeferredContext

CUTOFFS = (2, 5, 10)
# Questions that a worker process asks at once.
CHUNK = 8
# Budgets of tokens for the coverage of statements by the context.
TOKEN_BUDGETS = (4_000, 12_000)
# A passage has a gold span if it has this share of its characters.
MIN_SPAN_SHARE = 0.5
# A text unit is rarely shorter than this many tokens: enough of them fill any budget.
MIN_TEXT_UNIT_TOKENS = 40
# Maximum of the setting top_k_text_units.
MAX_TEXT_UNITS = 10_000


@dataclass(frozen=True)
class Result:
    """The answer of a system to one question, with its scores.

    `scores` has a value for each measure that applies to the question. `passages` are the numbers
    of the text units, the best first; `missed` names the gold documents outside them, or the
    documents of the gold spans outside them.
    """

    question: EvaluationQuestion
    answer: Answer
    scores: Mapping[str, float]
    passages: Sequence[int]
    missed: Sequence[str]


def run_systems(
    systems: Sequence[System],
    questions: Sequence[EvaluationQuestion],
    budgets: Sequence[int] = TOKEN_BUDGETS,
    n_workers: int = 1,
    advance: Callable[[int], None] = lambda n_questions: None,
) -> dict[str, list[Result]]:
    """Ask all systems all questions, and return the results by name of the system.

    `advance` is called with the number of questions that are done. With several workers, each
    process opens the systems, and asks some of the questions. If a model writes answers, this
    process asks them all, `CHUNK` at once: it waits for the model, not for the processor. Raises
    `SettingsError` if no gold document of any question is in an index.
    """
    for system in systems:
        _check_gold(system, questions)
    results: dict[str, list[Result]] = {system.name: [] for system in systems}
    chunks = [questions[at : at + CHUNK] for at in range(0, len(questions), CHUNK)]
    plans = [system.plan for system in systems if system.plan is not None]
    with ExitStack() as stack:
        found: Iterator[list[list[Result]]]
        if any(system.index.has_llm for system in systems):
            threads = stack.enter_context(ThreadPoolExecutor(CHUNK))
            run = partial(_run_chunk, systems, budgets=budgets, map_questions=threads.map)
            found = map(run, chunks)
        elif min(n_workers, len(chunks)) <= 1 or len(plans) < len(systems):
            found = map(partial(_run_chunk, systems, budgets=budgets), chunks)
        else:
            found = _run_in_processes(plans, chunks, budgets, n_workers)
        for chunk, of_chunk in zip(chunks, found, strict=True):
            for name, rows in zip(results, of_chunk, strict=True):
                results[name] += rows
            advance(len(chunk))
    return results


def run_system(
    system: System, questions: Sequence[EvaluationQuestion], budgets: Sequence[int] = TOKEN_BUDGETS
) -> list[Result]:
    """Ask a system all questions.

    Raises `SettingsError` if no gold document of any question is in the index.
    """
    _check_gold(system, questions)
    return [_run_question(system, question, budgets) for question in questions]


def _run_chunk(
    systems: Sequence[System],
    questions: Sequence[EvaluationQuestion],
    budgets: Sequence[int],
    map_questions: Callable[..., Iterator[list[Result]]] = map,
) -> list[list[Result]]:
    """Ask all systems each question in turn: the searches of one question share cached rows."""

    def run(question: EvaluationQuestion) -> list[Result]:
        return [_run_question(system, question, budgets) for system in systems]

    return [list(of_system) for of_system in zip(*map_questions(run, questions), strict=True)]


def _run_in_processes(
    plans: Sequence[SystemPlan],
    chunks: Sequence[Sequence[EvaluationQuestion]],
    budgets: Sequence[int],
    n_workers: int,
) -> Iterator[list[list[Result]]]:
    """Yield the results of each chunk of questions in order, from worker processes."""
    context = multiprocessing.get_context("spawn")
    n_workers = min(n_workers, len(chunks))
    pool = ProcessPoolExecutor(n_workers, context, _open_in_worker, (plans, budgets))
    try:
        with separate_processes(), _one_thread_each():
            futures = [pool.submit(_run_in_worker, chunk) for chunk in chunks]
        for future in futures:
            yield future.result()
    except BrokenProcessPool as error:
        raise GraphRAGError(
            "A worker process was killed, possibly because memory was short: run again with "
            "--workers 1."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let polars use one thread in processes that start in the `with` block.

    There are as many processes as cores: more threads cost a tenth of the time of the processor.
    """
    name = "POLARS_MAX_THREADS"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


# The systems of a worker process, and its token budgets; empty in the main process.
_worker_systems: list[System] = []
_worker_budgets: list[int] = []


def _open_in_worker(plans: Sequence[SystemPlan], budgets: Sequence[int]) -> None:
    # The end of the process closes the indexes.
    _worker_systems.extend(open_systems(ExitStack(), plans))
    _worker_budgets.extend(budgets)


def _run_in_worker(questions: Sequence[EvaluationQuestion]) -> list[list[Result]]:
    return _run_chunk(_worker_systems, questions, _worker_budgets)


def _check_gold(system: System, questions: Sequence[EvaluationQuestion]) -> None:
    """Raise `SettingsError` if the index has no gold document of any question."""
    spans = (span.document for question in questions for span in question.spans)
    gold = {name for question in questions for name in question.documents} | set(spans) - {""}
    if gold and not gold & system.document_numbers.keys():
        raise SettingsError(
            f"None of the {len(gold)} gold documents is in the index of {system.name}: the "
            f"questions name documents such as {min(gold)!r}, and the index has documents such as "
            f"{min(system.document_numbers, default='none')!r}."
        )


def _run_question(system: System, question: EvaluationQuestion, budgets: Sequence[int]) -> Result:
    # What another search has read for this question must not make this one faster.
    system.index.store.kept_rankings.clear()
    started, cpu = time.perf_counter(), time.process_time()
    answer = system.index.search(system.method, question.text)
    effort = {"seconds": time.perf_counter() - started}
    if not system.index.has_llm:
        # With a model, several questions are asked at once: the CPU time is that of all of them.
        effort["cpu_seconds"] = time.process_time() - cpu
    passages = _ranked_passages(system, question, answer)
    ranked, gold = _find_gold(system, question, passages)
    scores = {
        **retrieval_scores(ranked, set(gold), CUTOFFS),
        **_coverage_scores(system, question, answer, budgets),
        **outcome_scores(question, answer),
        **citation_scores(system.index, answer, system.word_weights),
        **effort,
        "tokens": float(answer.usage.prompt_tokens + answer.usage.completion_tokens),
        "words": float(len(answer.text.split())),
    }
    if answer.usage.cost is not None:
        scores["cost"] = answer.usage.cost
    found = set().union(*ranked)
    missed = [name for item, name in gold.items() if item not in found]
    # A context can hold the whole index open, and cannot be sent by a worker process.
    answer = replace(answer, context=None)
    return Result(question, answer, scores, passages, list(dict.fromkeys(missed)))


def _ranked_passages(system: System, question: EvaluationQuestion, answer: Answer) -> list[int]:
    """Return the numbers of the text units that the search read, the best first."""
    if system.method in ("local", "basic"):
        ranking: Literal["local", "basic"] = "basic" if system.method == "basic" else "local"
        found = system.index.passages(question.text, max(CUTOFFS), ranking)
        return [passage.number for passage in found]
    tables = answer.context.tables if answer.context is not None else {}
    return tables["Sources"]["id"].to_list() if "Sources" in tables else []


def _find_gold(
    system: System, question: EvaluationQuestion, passages: Sequence[int]
) -> tuple[list[set[Any]], dict[Any, str]]:
    """Find the gold spans in each passage, or the gold documents if there are no spans.

    Returns the gold items of each position of the ranking, and the names of all gold items. A
    ranking of documents has each document once.
    """
    rows = system.index.store.text_units(passages)
    units = [rows[number] for number in passages if number in rows]
    numbers = system.document_numbers
    if question.spans:
        held = [
            {
                span
                for span in question.spans
                if has_span(unit, span, numbers.get(span.document, -1))
            }
            for unit in units
        ]
        return held, {span: span.document or span.text for span in question.spans}
    gold = {numbers.get(name, name): name for name in question.documents}
    documents = dict.fromkeys(unit["document"] for unit in units)
    return [{document} for document in documents], gold


def has_span(unit: Mapping[str, Any], span: GoldSpan, document: int) -> bool:
    """Return whether a text unit has a gold span; `document` is the number of its document."""
    if not span.end_char:
        return fold(span.text) in fold(unit["text"])
    overlap = min(unit["end_char"], span.end_char) - max(unit["start_char"], span.start_char)
    wanted = MIN_SPAN_SHARE * (span.end_char - span.start_char)
    return bool(unit["document"] == document and overlap >= max(1, wanted))


def _coverage_scores(
    system: System, question: EvaluationQuestion, answer: Answer, budgets: Sequence[int]
) -> dict[str, float]:
    """Return the share of the gold statements that the context states, for each token budget.

    There is no score if the search failed, or has no context before a model has replied.
    """
    has_failed = answer.outcome in (Outcome.PROVIDER_ERROR, Outcome.INDEX_INCOMPLETE)
    if not question.statements or has_failed or not _has_context(system, question.text):
        return {}
    scores = {}
    for budget, text in contexts_within(system, question.text, budgets).items():
        lines = text.splitlines()
        found = statement_scores(question.statements, lines, system.word_weights)
        n_covered = sum(score >= THRESHOLD for score in found)
        scores[f"coverage@{budget}"] = n_covered / len(found)
    return scores


def _has_context(system: System, question: str) -> bool:
    """Return whether a search has a context before a model has replied."""
    method = _chosen_method(system, question)
    if method == "global":
        return system.index.settings.global_search.selection != "dynamic"
    return method != "structured"


def _chosen_method(system: System, question: str) -> str:
    return system.index.chosen_method(question) if system.method == "ask" else system.method


def contexts_within(system: System, question: str, budgets: Sequence[int]) -> dict[int, str]:
    """Map budgets of tokens to the text that a search would put before a model, cut at each.

    The search may fill the budget: its settings `max_context_tokens` and `top_k_text_units` are
    raised or lowered to the budget. A search whose budget decides only how much of what it has
    found is shown is asked once, with the largest budget.
    """
    texts = {}
    largest: Context | None = None
    for budget in sorted(budgets, reverse=True):
        if isinstance(largest, DeferredContext):
            context = largest.within(budget)
        else:
            context = largest = _context_within(system, question, budget)
        texts[budget] = context.text
        if context.n_tokens > budget:
            encoding = load_encoding(ENCODING)
            texts[budget] = encoding.decode(encoding.encode_ordinary(context.text)[:budget])
    return {budget: texts[budget] for budget in budgets}


def _context_within(system: System, question: str, budget: int) -> Context:
    method = _chosen_method(system, question)
    fields = getattr(system.index.settings, f"{method}_search").model_dump()
    values: dict[str, Any] = {}
    if "max_context_tokens" in fields:
        values["max_context_tokens"] = budget
    if "top_k_text_units" in fields:
        needed = min(MAX_TEXT_UNITS, budget // MIN_TEXT_UNIT_TOKENS)
        values["top_k_text_units"] = max(fields["top_k_text_units"], needed)
    return system.index.context(question, method, **values)
