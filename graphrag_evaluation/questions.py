"""Evaluation questions with their known answers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GoldSpan:
    """A passage that a right answer rests on: ``documents.text[start_char:end_char]``."""

    document: str
    start_char: int
    end_char: int
    text: str = ""


@dataclass(frozen=True)
class EvaluationQuestion:
    """A question with its known answer; empty fields are unknown.

    Documents are named by id, path or title. Each field allows its own measures: `documents` and
    `spans` those of retrieval, `statements` coverage, `answers` the short answer, and
    `is_answerable` the outcome `no_evidence`.
    """

    id: str
    text: str
    kind: str = ""
    documents: tuple[str, ...] = ()
    spans: tuple[GoldSpan, ...] = ()
    statements: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()  # the answer, then other ways to write it
    is_answerable: bool = True
    split: str = ""  # tune or report

    @property
    def cluster(self) -> str:
        """The document that the question is about; the question itself if none is known."""
        named = (*(span.document for span in self.spans), *self.documents)
        return min(named, default=self.id)
