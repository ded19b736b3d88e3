"""Files of questions in the layouts of known evaluation sets, as `layouts.py` reads them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from graphrag_evaluation.questions import EvaluationQuestion
from graphrag_index.errors import ExportError, SettingsError
from graphrag_index.storage.atomic import write_text_file


def write_questions(
    questions: Sequence[EvaluationQuestion], path: Path, layout: str = "graphrag-index"
) -> None:
    """Write questions into a file: JSON Lines if its name ends with .jsonl, else a JSON list.

    A layout keeps what it has fields for; only `graphrag-index` keeps everything. Raises
    `SettingsError` for an unknown layout, and `ExportError` if the file cannot be written.
    """
    if layout not in LAYOUTS:
        raise SettingsError(f"There is no layout {layout!r}, but {', '.join(LAYOUTS)}.")
    records = [LAYOUTS[layout](question) for question in questions]
    if path.suffix == ".jsonl":
        text = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
    else:
        text = json.dumps(records, ensure_ascii=False, indent=1) + "\n"
    try:
        write_text_file(path, [text])
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.") from error


def _own_record(question: EvaluationQuestion) -> dict[str, Any]:
    record: dict[str, Any] = {
        "id": question.id,
        "question": question.text,
        "type": question.kind,
        "split": question.split,
        "answers": list(question.answers),
        "documents": list(question.documents),
        "spans": [vars(span) for span in question.spans],
        "statements": list(question.statements),
    }
    record = {name: value for name, value in record.items() if value}
    return record if question.is_answerable else {**record, "is_answerable": False}


def _benchmark_qed(question: EvaluationQuestion) -> dict[str, Any]:
    assertions = [{"statement": text} for text in question.statements]
    return {
        "question_id": question.id,
        "question_text": question.text,
        "question_type": question.kind,
        "assertions": assertions or [{"statement": text} for text in question.answers[:1]],
    }


def _ragas(question: EvaluationQuestion) -> dict[str, Any]:
    return {
        "user_input": question.text,
        "reference": _reference(question),
        "reference_contexts": [span.text for span in question.spans],
    }


def _hotpotqa(question: EvaluationQuestion) -> dict[str, Any]:
    return {
        "_id": question.id,
        "question": question.text,
        "answer": _reference(question),
        "type": question.kind,
        # A passage is a paragraph of one sentence: that of the span.
        "supporting_facts": [[span.document, 0] for span in question.spans],
        "context": [[span.document, [span.text]] for span in question.spans],
    }


def _musique(question: EvaluationQuestion) -> dict[str, Any]:
    return {
        "id": question.id,
        "question": question.text,
        "answer": _reference(question),
        "answer_aliases": list(question.answers[1:]),
        "answerable": question.is_answerable,
        "paragraphs": [
            {
                "idx": i,
                "title": span.document,
                "paragraph_text": span.text,
                "is_supporting": True,
            }
            for i, span in enumerate(question.spans)
        ],
    }


def _graphrag_bench(question: EvaluationQuestion) -> dict[str, Any]:
    return {
        "id": question.id,
        "source": next(iter(question.documents), ""),
        "question": question.text,
        "answer": _reference(question),
        "question_type": question.kind,
        "evidence": [span.text for span in question.spans],
    }


def _wildgraphbench(question: EvaluationQuestion) -> dict[str, Any]:
    return {
        "question": question.text,
        "question_type": question.kind,
        "answer": _reference(question),
        "gold_statements": list(question.statements),
        "ref_urls": list(question.documents),
    }


def _reference(question: EvaluationQuestion) -> str:
    return question.answers[0] if question.answers else " ".join(question.statements)


LAYOUTS: dict[str, Callable[[EvaluationQuestion], dict[str, Any]]] = {
    "graphrag-index": _own_record,
    "benchmark-qed": _benchmark_qed,
    "ragas": _ragas,
    "hotpotqa": _hotpotqa,
    "musique": _musique,
    "graphrag-bench": _graphrag_bench,
    "wildgraphbench": _wildgraphbench,
}
