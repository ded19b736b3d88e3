"""The record of the results of systems, with the texts of passages and gold items."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import polars as pl

import graphrag_index
from graphrag_evaluation.judging.criteria import PairVerdict, summarize_pairs
from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_evaluation.report.evaluation_record import (
    CitationRecord,
    EvaluationRecord,
    GoldRecord,
    PairRecord,
    PassageRecord,
    QuestionRecord,
    ResultRecord,
    SystemRecord,
)
from graphrag_evaluation.retrieval_scores import has_span
from graphrag_evaluation.runs import Result
from graphrag_evaluation.summary import Evaluation
from graphrag_evaluation.systems import System

# Characters of a passage that the record keeps: the first limit with which all passages together
# have at most `MAX_TEXT_CHARS`, or else the last.
PASSAGE_CHARS = (4_000, 1_000, 300)
MAX_TEXT_CHARS = 4_000_000
# Characters of an answer, a gold item and a quotation that the record keeps.
ANSWER_CHARS, GOLD_CHARS, QUOTE_CHARS = 8_000, 1_000, 300
# Passages of a result that the record keeps: a long context has hundreds.
MAX_PASSAGES = 20


def record_evaluation(
    evaluation: Evaluation,
    systems: Sequence[System],
    *,
    name: str,
    questions_file: str,
    limits: Mapping[str, float],
    verdicts: Sequence[PairVerdict] = (),
) -> EvaluationRecord:
    """Record the results of systems whose indexes are still open."""
    questions = [result.question for result in next(iter(evaluation.results.values()))]
    passages = _Passages()
    results = {
        system.name: _record_results(system, evaluation.results[system.name], passages)
        for system in systems
    }
    texts, titles = _gold_texts(systems, questions)
    measures = evaluation.measures()
    limit, kept = passages.cut()
    return EvaluationRecord(
        name=name,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        program=f"graphrag-index {graphrag_index.__version__}",
        questions_file=questions_file,
        n_questions=len(questions),
        systems=[_record_system(system) for system in systems],
        limits=dict(limits),
        means={
            system.name: {
                measure: interval
                for measure in measures
                if (interval := evaluation.interval(system.name, measure))
            }
            for system in systems
        },
        comparisons=[one for measure in measures for one in evaluation.comparisons(measure)],
        passage_chars=limit,
        passages=kept,
        questions=[_record_question(question, texts, titles) for question in questions],
        results=results,
        pairs=summarize_pairs(verdicts),
        verdicts=list(_record_pairs(verdicts, questions)),
    )


class _Passages:
    """The passages of all results, each once, with their positions."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, str, int, int, str], int] = {}

    def add(self, title: str, path: str, start: int, end: int, text: str) -> int:
        """Return the position of a passage."""
        key = (title, path, start, end, text)
        return self._positions.setdefault(key, len(self._positions))

    def cut(self) -> tuple[int, list[PassageRecord]]:
        """Return the largest limit that leaves the record small, and the passages cut to it."""
        lengths = [len(text) for *_, text in self._positions]
        for limit in PASSAGE_CHARS:
            if sum(min(length, limit) for length in lengths) <= MAX_TEXT_CHARS:
                break
        return limit, [
            PassageRecord(
                document=title, path=path, start_char=start, end_char=end, text=_cut(text, limit)
            )
            for title, path, start, end, text in self._positions
        ]


def _record_system(system: System) -> SystemRecord:
    store, settings = system.index.store, system.index.settings
    section = getattr(settings, f"{system.method}_search", None)
    return SystemRecord(
        name=system.name,
        method=system.method,
        index=store.root.resolve().name,
        version=store.version.number,
        made=store.version.made.date if store.version.made else "",
        settings=section.model_dump(mode="json") if section is not None else {},
    )


def _record_results(
    system: System, results: Iterable[Result], passages: _Passages
) -> list[ResultRecord]:
    results = list(results)
    # One read for all questions: most passages are read for several of them.
    shown = {number for result in results for number in result.passages[:MAX_PASSAGES]}
    units = system.index.store.text_units(shown)
    records = []
    for result in results:
        answer = result.answer
        found = [units[n] for n in result.passages[:MAX_PASSAGES] if n in units]
        records.append(
            ResultRecord(
                outcome=answer.outcome.value,
                answer=_cut(answer.text, ANSWER_CHARS),
                notes=list(answer.notes),
                citations=[
                    CitationRecord(
                        number=one.number, document=one.document, quote=_cut(one.quote, QUOTE_CHARS)
                    )
                    for one in answer.citations
                ],
                scores={measure: round(score, 6) for measure, score in result.scores.items()},
                passages=[
                    passages.add(
                        unit["title"] or "",
                        unit["path"] or "",
                        unit["start_char"],
                        unit["end_char"],
                        unit["text"],
                    )
                    for unit in found
                ],
                holds=[_held_gold(system, result.question, unit) for unit in found],
            )
        )
    return records


def _record_pairs(
    verdicts: Sequence[PairVerdict], questions: Sequence[EvaluationQuestion]
) -> Iterator[PairRecord]:
    positions = {question.id: at for at, question in enumerate(questions)}
    for verdict in verdicts:
        yield PairRecord(
            question=positions[verdict.pair.results[0].question.id],
            first=verdict.pair.first,
            second=verdict.pair.second,
            winner=verdict.winner or "",
            shown=[winner or "" for winner in verdict.shown],
            reasons=[_cut(one.reason, QUOTE_CHARS) if one else "" for one in verdict.orders],
        )


def _held_gold(
    system: System, question: EvaluationQuestion, unit: Mapping[str, object]
) -> list[int]:
    """Return the positions of the gold items that a text unit holds."""
    numbers = system.document_numbers
    if question.spans:
        return [
            i
            for i, span in enumerate(question.spans)
            if has_span(unit, span, numbers.get(span.document, -1))
        ]
    return [i for i, name in enumerate(question.documents) if numbers.get(name) == unit["document"]]


def _gold_texts(
    systems: Sequence[System], questions: Sequence[EvaluationQuestion]
) -> tuple[dict[tuple[str, int, int], str], dict[str, str]]:
    """Read the texts of gold spans and the beginnings of gold documents, by name and place.

    Returns also the titles of the documents by name. The first system whose index has a
    document gives its text.
    """
    wanted: dict[str, set[tuple[int, int]]] = {}
    for question in questions:
        for name, start, end, _ in _gold_places(question):
            wanted.setdefault(name, set()).add((start, end))
    found: dict[tuple[str, int, int], str] = {}
    titles: dict[str, str] = {}
    for system in systems:
        numbers = {name: n for name, n in system.document_numbers.items() if name in wanted}
        known = pl.Series(sorted(set(numbers.values())), dtype=pl.Int64).implode()
        rows = system.index.store.scan("documents").select("human_readable_id", "title", "text")
        read = rows.filter(pl.col("human_readable_id").is_in(known)).collect()
        texts = {number: (title or "", text) for number, title, text in read.iter_rows()}
        for name, number in numbers.items():
            titles[name], text = texts[number]
            for start, end in wanted.pop(name):
                found[name, start, end] = text[start:end]
    return found, titles


def _gold_places(question: EvaluationQuestion) -> Iterator[tuple[str, int, int, str]]:
    """Yield document, start, end and known text of each gold span, or of each gold document."""
    if question.spans:
        for span in question.spans:
            yield span.document, span.start_char, span.end_char, span.text
    else:
        for name in question.documents:
            yield name, 0, GOLD_CHARS + 1, ""


def _record_question(
    question: EvaluationQuestion,
    texts: Mapping[tuple[str, int, int], str],
    titles: Mapping[str, str],
) -> QuestionRecord:
    return QuestionRecord(
        id=question.id,
        text=question.text,
        kind=question.kind,
        is_answerable=question.is_answerable,
        answers=list(question.answers),
        statements=list(question.statements),
        gold=[
            GoldRecord(
                document=name,
                title=titles.get(name, "") if titles.get(name) != name else "",
                text=_cut(text or texts.get((name, start, end), ""), GOLD_CHARS),
            )
            for name, start, end, text in _gold_places(question)
        ],
    )


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]}…"
