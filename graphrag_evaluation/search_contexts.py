"""The contexts of searches within budgets of tokens, and the statements that they cover."""

from collections.abc import Sequence
from typing import Any

from graphrag_evaluation.coverage import THRESHOLD, statement_scores
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.systems import System
from graphrag_index.llm.request import ENCODING
from graphrag_index.text.tokens import load_encoding
from graphrag_query.answer import Answer, Context
from graphrag_query.answering.written_answer import DeferredContext

# Budgets of tokens for the coverage of statements by the context.
TOKEN_BUDGETS = (4_000, 12_000)
# A text unit is rarely shorter than this many tokens: enough of them fill any budget.
MIN_TEXT_UNIT_TOKENS = 40
# Maximum of the setting top_k_text_units.
MAX_TEXT_UNITS = 10_000


def coverage_scores(
    system: System, question: EvaluationQuestion, answer: Answer, budgets: Sequence[int]
) -> dict[str, float]:
    """Return the share of the gold statements that the context states, for each token budget.

    There is no score if the search failed, or has no context before a model has replied.
    """
    if answer.outcome.is_failure or not (
        question.statements and _has_context(system, question.text)
    ):
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
