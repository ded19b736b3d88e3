"""Scores of one question: of the passages, contexts and answer of a search."""

import re
from collections.abc import Hashable, Mapping, Sequence, Set
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from graphrag_evaluation.questions import EvaluationQuestion, GoldSpan
from graphrag_evaluation.stated_shares import (
    THRESHOLD,
    WordWeights,
    stated_shares,
    statement_scores,
)
from graphrag_evaluation.systems import System
from graphrag_index.llm.request import ENCODING
from graphrag_index.llm.tokens import load_encoding
from graphrag_nlp.text.citations import check_citations, find_cited_rows
from graphrag_nlp.text.normalize import UNSPACED, fold
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.answer import Answer, Context, Outcome
from graphrag_query.answering.written_answer import DeferredContext
from graphrag_query.index import Index
from graphrag_query.question.question_words import content_words

CUTOFFS = (2, 5, 10)
# A passage has a gold span if it has at least this share of the span's characters.
MIN_SPAN_SHARE = 0.5
# Budgets of tokens for the coverage of statements by the context.
TOKEN_BUDGETS = (4_000, 12_000)
# A text unit is rarely shorter than this many tokens: enough of them fill any budget.
MIN_TEXT_UNIT_TOKENS = 40
# Maximum of the setting top_k_text_units.
MAX_TEXT_UNITS = 10_000
# In a script without spaces between words, each letter counts as a word.
_WORD = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})\S)+")
_CITATION_MARK = re.compile(r"\s*\[(\d+)\]")
_MARKS_AFTER_STOP = re.compile(r"([.!?…][\"'”’)]*)((?:\s*\[(?:\d+|Data: [^]]*)\])+)")
# Sentences with fewer content words, such as headings and greetings, state nothing to support.
MIN_WORDS_OF_STATEMENT = 2
# Minimum share of the information of a sentence that the cited text units must have.
MIN_SUPPORTED_SHARE = 0.5


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


def count_words(text: str) -> int:
    """Count the words of a text."""
    return sum(1 for _ in _WORD.finditer(text))


def first_words(text: str, n: int) -> str:
    """Return a text up to its word number `n`, with single spaces."""
    plain = " ".join(text.split())
    ends = [word.end() for word in _WORD.finditer(plain)][:n]
    return plain[: ends[-1]] if ends else ""


def outcome_scores(question: EvaluationQuestion, answer: Answer) -> dict[str, float]:
    """Score the outcome, and whether the answer has the short answer.

    A search that failed has neither answered nor refused: its outcome is wrong, and that is all.
    The mean of `no_evidence_precision` over the questions that the search refused is the share
    that it refused rightly; that of `no_evidence_recall`, over the questions that cannot be
    answered, is the share that it refused. Of a question of which only wrong answers are known,
    `not_wrong` is the only score.
    """
    if answer.outcome.is_failure:
        return {"outcome_right": 0.0}
    refused = answer.outcome is Outcome.NO_EVIDENCE
    scores: dict[str, float] = {}
    if question.wrong_answers:
        scores["not_wrong"] = float(fold(answer.text) not in map(fold, question.wrong_answers))
        if question.is_answerable and not question.answers:
            return scores
    scores["outcome_right"] = float(refused != question.is_answerable)
    if refused:
        scores["no_evidence_precision"] = float(not question.is_answerable)
    if not question.is_answerable:
        scores["no_evidence_recall"] = float(refused)
    elif question.answers:
        said = f" {fold(answer.text)} "
        wanted = filter(None, map(fold, question.answers))
        scores["said"] = float(any(f" {text} " in said for text in wanted))
    return scores


def citation_scores(index: Index, answer: Answer, weights: WordWeights) -> dict[str, float]:
    """Score the citations of an answer; empty if the search gave no answer.

    `citations_valid` is the share of citations whose quotation is found at its place in the
    document. `supported` is the share of the answer's sentences that the cited text units or
    reports support, by the lexical test of `stated_shares`.
    """
    if answer.outcome is not Outcome.ANSWERED:
        return {}
    units = index.store.text_units(citation.text_unit for citation in answer.citations)
    n_valid = 0
    texts: dict[int, list[str]] = {}
    for citation in answer.citations:
        unit = units.get(citation.text_unit)
        if unit is not None:
            start = max(0, citation.start_char - unit["start_char"])
            end = citation.end_char - unit["start_char"]
            n_valid += unit["text"][start:end] == citation.quote
            texts.setdefault(citation.number, []).append(unit["text"])
    scores = {"citations_valid": n_valid / len(answer.citations)} if answer.citations else {}
    supported = []
    sentences = cited_sentences(answer.text)
    reports = _read_reports(index, {n for s in sentences for n in s.rows.get("Reports", ())})
    for sentence in sentences:
        evidence = [text for number in sentence.citations for text in texts.get(number, ())]
        cited = sorted(sentence.rows.get("Reports", ()))
        evidence += [reports[number] for number in cited if number in reports]
        [share] = stated_shares([sentence.text], evidence, weights)
        supported.append(share >= MIN_SUPPORTED_SHARE)
    return scores | ({"supported": sum(supported) / len(supported)} if supported else {})


def _read_reports(index: Index, communities: Set[int]) -> dict[int, str]:
    """Read the titles and texts of reports by community; those without a report are left out."""
    if not communities:
        return {}
    store = index.store
    reports = store.with_texts(store.reports(sorted(communities)), "full_content")
    columns = reports.select("community", "title", "full_content")
    return {number: f"{title}\n{text}" for number, title, text in columns.iter_rows()}


class CitedSentence(NamedTuple):
    """A sentence without its marks, and the numbers of citations and of rows that it names.

    `rows` has the numbers of rows by section, as in `[Data: Entities (1, 2); Reports (3)]`.
    """

    text: str
    citations: Sequence[int]
    rows: Mapping[str, Set[int]] = MappingProxyType({})


def cited_sentences(text: str) -> list[CitedSentence]:
    """Return the sentences of an answer or a report that state something.

    A sentence without citations has those of the next sentence of its paragraph that has some.
    Headings, and lines that end with a colon, state nothing.
    """
    found: list[CitedSentence] = []
    for paragraph in reversed(text.split("\n")):
        following = CitedSentence("", ())
        # A mark after the full stop belongs to the sentence before it.
        marked = _MARKS_AFTER_STOP.sub(r"\2\1", paragraph)
        for sentence in reversed(split_sentences(marked)):
            said = marked[sentence.start : sentence.end]
            rows = find_cited_rows(said)
            cited = [int(number) for number in _CITATION_MARK.findall(said)]
            plain = _CITATION_MARK.sub("", check_citations(said, {})[0]).strip()
            if cited or rows:
                following = CitedSentence(plain, cited, rows)
            states = len(content_words(plain)) >= MIN_WORDS_OF_STATEMENT
            if states and not plain.endswith(":") and not paragraph.startswith("#"):
                found.append(following._replace(text=plain))
    return found[::-1]
