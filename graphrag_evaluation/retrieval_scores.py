"""The contexts and passages that a search read for a question, and their scores."""

from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any, Literal

from graphrag_evaluation.coverage import THRESHOLD, statement_scores
from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.systems import System
from graphrag_index.llm.request import ENCODING
from graphrag_index.llm.tokens import load_encoding
from graphrag_nlp.text.normalize import fold
from graphrag_query.answer import Answer, Context
from graphrag_query.answering.written_answer import DeferredContext

CUTOFFS = (2, 5, 10)
# A passage has a gold span if it has this share of its characters.
MIN_SPAN_SHARE = 0.5
# Budgets of tokens for the coverage of statements by the context.
TOKEN_BUDGETS = (4_000, 12_000)
# A text unit is rarely shorter than this many tokens: enough of them fill any budget.
MIN_TEXT_UNIT_TOKENS = 40
# Maximum of the setting top_k_text_units.
MAX_TEXT_UNITS = 10_000


def retrieval_scores(
    ranked: Sequence[Set[Hashable]], gold: Set[Hashable], cutoffs: Sequence[int] = (2, 5, 10)
) -> dict[str, float]:
    """Return recall@k and all_gold@k for each cutoff, and mrr; empty without gold items.

    Each position of the ranking has the items that its passage holds: a passage can hold several
    gold spans, or none. recall@k is the share of the gold items in the first k positions, and
    all_gold@k is 1 if all are there. mrr is 1 / position of the first gold item, and 0 if there is
    none up to the last cutoff.
    """
    if not gold:
        return {}
    found: set[Hashable] = set()
    n_found = [0]
    for items in ranked:
        found |= gold & set(items)
        n_found.append(len(found))
    scores = {}
    for k in cutoffs:
        last = n_found[min(k, len(ranked))]
        scores[f"recall@{k}"] = last / len(gold)
        scores[f"all_gold@{k}"] = float(last == len(gold))
    first = next((i for i, n in enumerate(n_found) if n and i <= max(cutoffs)), 0)
    return {**scores, "mrr": 1 / first if first else 0.0}


def ranked_passages(system: System, question: EvaluationQuestion, answer: Answer) -> list[int]:
    """Return the numbers of the text units that the search read, the best first."""
    if system.method in ("local", "basic"):
        ranking: Literal["local", "basic"] = "basic" if system.method == "basic" else "local"
        found = system.index.passages(question.text, max(CUTOFFS), ranking)
        return [passage.number for passage in found]
    tables = answer.context.tables if answer.context is not None else {}
    return tables["Sources"]["id"].to_list() if "Sources" in tables else []


def find_gold(
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
