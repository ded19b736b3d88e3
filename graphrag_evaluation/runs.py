"""Questions asked to a system, with the scores of what came back."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.retrieval_scores import retrieval_scores
from graphrag_index.errors import SettingsError
from graphrag_index.text.normalize import fold
from graphrag_query.answer import Answer, Outcome
from graphrag_query.index import Index

CUTOFFS = (2, 5, 10)


@dataclass(frozen=True)
class System:
    """A search of an index with settings: what is compared with other systems."""

    name: str
    index: Index
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def document_numbers(self) -> dict[str, int]:
        """The numbers of the documents by id, path and title; titles that repeat are left out."""
        rows = self.index.store.scan("documents").select("human_readable_id", "id", "path", "title")
        numbers: dict[str, int] = {}
        frame = rows.collect()
        unique = frame.filter(frame["title"].is_unique()) if frame.height else frame
        paths = frame.filter(frame["path"].is_unique()) if frame.height else frame
        for names, table in (("title", unique), ("path", paths), ("id", frame)):
            numbers |= dict(table.select(names, "human_readable_id").iter_rows())
        return numbers


@dataclass(frozen=True)
class Result:
    """The answer of a system to one question, with its scores.

    `scores` has a value for each measure that applies to the question. `passages` are the numbers
    of the text units, the best first; `missed` names the gold documents outside them.
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
) -> list[Result]:
    """Ask a system all questions; `advance` is called after each.

    Raises `SettingsError` if no gold document of any question is in the index.
    """
    questions = list(questions)
    gold = {name for question in questions for name in question.documents}
    if gold and not gold & system.document_numbers.keys():
        raise SettingsError(
            f"None of the {len(gold)} gold documents is in the index of {system.name}: the "
            f"questions name documents such as {min(gold)!r}, and the index has documents such as "
            f"{min(system.document_numbers, default='none')!r}."
        )
    results = []
    for question in questions:
        results.append(_run_question(system, question))
        advance()
    return results


def _run_question(system: System, question: EvaluationQuestion) -> Result:
    started, cpu = time.perf_counter(), time.process_time()
    answer = system.index.search(system.method, question.text, **system.settings)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    passages = _ranked_passages(system, question, answer)
    documents = _documents_of(system.index, passages)
    wanted = {system.document_numbers.get(name, name) for name in question.documents}
    scores = {
        **retrieval_scores([{number} for number in dict.fromkeys(documents)], wanted, CUTOFFS),
        **_outcome_scores(question, answer),
        **_citation_scores(system.index, answer),
        "seconds": seconds,
        "cpu_seconds": cpu,
        "tokens": float(answer.usage.prompt_tokens + answer.usage.completion_tokens),
        "words": float(len(answer.text.split())),
    }
    if answer.usage.cost is not None:
        scores["cost"] = answer.usage.cost
    found = set(documents)
    missed = [n for n in question.documents if system.document_numbers.get(n) not in found]
    return Result(question, answer, scores, passages, missed)


def _ranked_passages(system: System, question: EvaluationQuestion, answer: Answer) -> list[int]:
    """Return the numbers of the text units that the search read, the best first."""
    if system.method in ("local", "basic"):
        ranking: Literal["local", "basic"] = "basic" if system.method == "basic" else "local"
        found = system.index.passages(question.text, max(CUTOFFS), ranking)
        return [passage.number for passage in found]
    tables = answer.context.tables if answer.context is not None else {}
    return tables["Sources"]["id"].to_list() if "Sources" in tables else []


def _documents_of(index: Index, passages: Sequence[int]) -> list[int]:
    rows = index.store.text_units(passages)
    return [rows[number]["document"] for number in passages if number in rows]


def _outcome_scores(question: EvaluationQuestion, answer: Answer) -> dict[str, float]:
    """Return whether the outcome is right, and whether the answer says the short answer."""
    refused = answer.outcome is Outcome.NO_EVIDENCE
    scores = {"outcome_right": float(refused != question.is_answerable)}
    if question.is_answerable and question.answers:
        said = f" {fold(answer.text)} "
        wanted = filter(None, map(fold, question.answers))
        scores["said"] = float(any(f" {text} " in said for text in wanted))
    return scores


def _citation_scores(index: Index, answer: Answer) -> dict[str, float]:
    """Return the share of citations whose quotation stands at its place in the document."""
    if not answer.citations:
        return {}
    texts = {}
    rows = index.store.text_units(citation.text_unit for citation in answer.citations)
    for citation in answer.citations:
        row = rows.get(citation.text_unit)
        if row is None:
            texts[citation.number] = False
            continue
        start = citation.start_char - row["start_char"]
        end = citation.end_char - row["start_char"]
        texts[citation.number] = row["text"][max(0, start) : end] == citation.quote
    return {"citations_valid": sum(texts.values()) / len(texts)}
