"""Questions asked to a system, with the scores of what came back."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphrag_evaluation.answer_scores import citation_scores, outcome_scores
from graphrag_evaluation.coverage import THRESHOLD, statement_scores
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.retrieval_scores import retrieval_scores
from graphrag_evaluation.systems import System
from graphrag_index.errors import SettingsError
from graphrag_index.llm.request import ENCODING
from graphrag_index.text.normalize import fold
from graphrag_index.text.tokens import load_encoding
from graphrag_query.answer import Answer

CUTOFFS = (2, 5, 10)
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


def run_system(
    system: System,
    questions: Iterable[EvaluationQuestion],
    advance: Callable[[], None] = lambda: None,
    budgets: Sequence[int] = TOKEN_BUDGETS,
) -> list[Result]:
    """Ask a system all questions; `advance` is called after each.

    Raises `SettingsError` if no gold document of any question is in the index.
    """
    questions = list(questions)
    spans = (span.document for question in questions for span in question.spans)
    gold = {name for question in questions for name in question.documents} | set(spans) - {""}
    if gold and not gold & system.document_numbers.keys():
        raise SettingsError(
            f"None of the {len(gold)} gold documents is in the index of {system.name}: the "
            f"questions name documents such as {min(gold)!r}, and the index has documents such as "
            f"{min(system.document_numbers, default='none')!r}."
        )
    results = []
    for question in questions:
        results.append(_run_question(system, question, budgets))
        advance()
    return results


def _run_question(system: System, question: EvaluationQuestion, budgets: Sequence[int]) -> Result:
    started, cpu = time.perf_counter(), time.process_time()
    answer = system.index.search(system.method, question.text)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    passages = _ranked_passages(system, question, answer)
    ranked, gold = _find_gold(system, question, passages)
    scores = {
        **retrieval_scores(ranked, set(gold), CUTOFFS),
        **_coverage_scores(system, question, budgets),
        **outcome_scores(question, answer),
        **citation_scores(system.index, answer, system.word_weights),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "tokens": float(answer.usage.prompt_tokens + answer.usage.completion_tokens),
        "words": float(len(answer.text.split())),
    }
    if answer.usage.cost is not None:
        scores["cost"] = answer.usage.cost
    found = set().union(*ranked)
    missed = [name for item, name in gold.items() if item not in found]
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
    system: System, question: EvaluationQuestion, budgets: Sequence[int]
) -> dict[str, float]:
    """Return the share of the gold statements that the context states, for each token budget."""
    if not question.statements or system.method == "structured":
        return {}
    scores = {}
    for budget in budgets:
        texts = context_within(system, question.text, budget).splitlines()
        found = statement_scores(question.statements, texts, system.word_weights)
        n_covered = sum(score >= THRESHOLD for score in found)
        scores[f"coverage@{budget}"] = n_covered / len(found)
    return scores


def context_within(system: System, question: str, budget: int) -> str:
    """Return the text that a search would put before a model, cut at a budget of tokens.

    The search may fill the budget: its settings `max_context_tokens` and `top_k_text_units` are
    raised or lowered to the budget.
    """
    section = getattr(system.index.settings, f"{system.method}_search", None)
    fields = section.model_dump() if section is not None else {}
    values: dict[str, Any] = {}
    if "max_context_tokens" in fields:
        values["max_context_tokens"] = budget
    if "top_k_text_units" in fields:
        needed = min(MAX_TEXT_UNITS, budget // MIN_TEXT_UNIT_TOKENS)
        values["top_k_text_units"] = max(fields["top_k_text_units"], needed)
    context = system.index.context(question, system.method, **values)
    if context.n_tokens <= budget:
        return context.text
    encoding = load_encoding(ENCODING)
    return encoding.decode(encoding.encode_ordinary(context.text)[:budget])
