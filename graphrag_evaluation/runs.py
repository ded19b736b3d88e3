"""Questions asked to systems, with the scores of the answers."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial

from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.scores import (
    CUTOFFS,
    TOKEN_BUDGETS,
    citation_scores,
    count_words,
    coverage_scores,
    find_gold,
    outcome_scores,
    ranked_passages,
    retrieval_scores,
)
from graphrag_evaluation.systems import System, SystemPlan, open_systems
from graphrag_index.errors import GraphRAGError, SettingsError
from graphrag_index.pipeline.shards import separate_processes
from graphrag_index.storage.lancedb_stubs import stub_unused_imports
from graphrag_query.answer import Answer

# Number of questions in one task of a worker process.
CHUNK = 8
# Number of questions that are asked in parallel if a model writes answers.
N_THREADS = 8


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
    process asks them all, `N_THREADS` in parallel: it waits for the model, not for the processor.
    Raises `SettingsError` if no gold document of any question is in an index.
    """
    for system in systems:
        missing_documents(system, questions)
    results: dict[str, list[Result]] = {system.name: [] for system in systems}
    has_llm = any(system.index.has_llm for system in systems)
    # With one question in a chunk, no question waits for the model's reply to another one.
    size = 1 if has_llm else CHUNK
    chunks = [questions[at : at + size] for at in range(0, len(questions), size)]
    run = partial(_run_chunk, systems, budgets=budgets)
    plans = [system.plan for system in systems if system.plan is not None]
    with ExitStack() as stack:
        found: Iterator[list[list[Result]]]
        if has_llm:
            threads = stack.enter_context(ThreadPoolExecutor(N_THREADS))
            # After an error or Ctrl-C, no further question is asked.
            stack.callback(threads.shutdown, cancel_futures=True)
            found = threads.map(run, chunks)
        elif min(n_workers, len(chunks)) <= 1 or len(plans) < len(systems):
            found = map(run, chunks)
        else:
            found = _run_in_processes(plans, chunks, budgets, n_workers)
        for chunk, of_chunk in zip(chunks, found, strict=True):
            for name, rows in zip(results, of_chunk, strict=True):
                results[name] += rows
            advance(len(chunk))
    return results


def _run_chunk(
    systems: Sequence[System], questions: Sequence[EvaluationQuestion], budgets: Sequence[int]
) -> list[list[Result]]:
    """Ask all systems each question in turn: the searches of one question share cached rows."""
    rows = [
        [_run_question(system, question, budgets) for system in systems] for question in questions
    ]
    return [list(of_system) for of_system in zip(*rows, strict=True)]


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
    stub_unused_imports()
    # The end of the process closes the indexes.
    _worker_systems.extend(open_systems(ExitStack(), plans))
    _worker_budgets.extend(budgets)


def _run_in_worker(questions: Sequence[EvaluationQuestion]) -> list[list[Result]]:
    return _run_chunk(_worker_systems, questions, _worker_budgets)


def missing_documents(system: System, questions: Sequence[EvaluationQuestion]) -> set[str]:
    """Return the names of gold documents that the index does not have.

    Raises `SettingsError` if it has none of them.
    """
    spans = (span.document for question in questions for span in question.spans)
    gold = {name for question in questions for name in question.documents} | set(spans) - {""}
    missing = gold - system.document_numbers.keys()
    if gold and missing == gold:
        raise SettingsError(
            f"None of the {len(gold)} gold documents is in the index of {system.name}: the "
            f"questions name documents such as {min(gold)!r}, and the index has documents such as "
            f"{min(system.document_numbers, default='none')!r}."
        )
    return missing


def _run_question(system: System, question: EvaluationQuestion, budgets: Sequence[int]) -> Result:
    # Clear the cache: rows that another search has read must not make this one faster.
    system.index.store.kept_rankings.clear()
    started, cpu = time.perf_counter(), time.process_time()
    answer = system.index.search(system.method, question.text)
    effort = {"seconds": time.perf_counter() - started}
    if not system.index.has_llm:
        # With a model, questions are asked in parallel: the CPU time is that of all of them.
        effort["cpu_seconds"] = time.process_time() - cpu
    passages = ranked_passages(system, question, answer)
    ranked, gold = find_gold(system, question, passages)
    scores = {
        **retrieval_scores(ranked, set(gold), CUTOFFS),
        **coverage_scores(system, question, answer, budgets),
        **outcome_scores(question, answer),
        **citation_scores(system.index, answer, system.word_weights),
        **effort,
        "tokens": float(answer.usage.prompt_tokens + answer.usage.completion_tokens),
    }
    if not answer.outcome.is_failure:
        scores["words"] = float(count_words(answer.text))
    if answer.usage.cost is not None:
        scores["cost"] = answer.usage.cost
    found = set().union(*ranked)
    missed = [name for item, name in gold.items() if item not in found]
    # A context can hold the whole index open, and cannot be sent by a worker process.
    answer = replace(answer, context=None)
    return Result(question, answer, scores, passages, list(dict.fromkeys(missed)))
