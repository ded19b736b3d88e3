"""Sentences chosen for a report without a model, and the texts that are written from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from graphrag_index.reports.report import Finding, format_citation
from graphrag_index.reports.statements import SourceSpan, Statement


@dataclass(frozen=True, eq=False)
class Evidence:
    """A sentence that mentions entities of the community.

    `entities` are the numbers of these entities, `relationships` of those between them. `source`
    is the number of the text unit, `document` that of its document, `place` the position of the
    sentence in the document. `days` are the first and last day of a date in the sentence.
    """

    text: str
    entities: Sequence[int]
    relationships: Sequence[int]
    source: int
    document: int
    score: float
    days: tuple[date, date] | None = None
    place: tuple[int, int] = (0, 0)

    @property
    def span(self) -> SourceSpan:
        return SourceSpan(self.source, self.document, *self.place)


class Choice(NamedTuple):
    """A sentence chosen for a report, as positions in its evidence.

    `finding` is the number of its finding, from 0; None: the summary. `sentences` are the positions
    of the sentence and of others that state the same, and `n_documents` counts their documents.
    """

    finding: int | None
    n_documents: int
    sentences: Sequence[int]


def write_findings(
    evidence: Mapping[int, Evidence], headings: Sequence[str], choices: Sequence[Choice]
) -> tuple[str, tuple[Finding, ...], list[Statement]]:
    """Write the summary, the findings and the statements of the chosen sentences.

    `evidence` has the sentences by their positions.
    """
    cited: dict[int | None, list[str]] = {}
    statements = []
    for finding, n_documents, sentences in choices:
        own = evidence[sentences[0]]
        cited.setdefault(finding, []).append(_cite_sentence(own))
        spans = [evidence[at].span for at in sentences]
        statements.append(Statement(finding, own.text, n_documents, spans))
    findings = (Finding(heading, " ".join(cited[at])) for at, heading in enumerate(headings))
    return " ".join(cited.get(None, ())), tuple(findings), statements


def _cite_sentence(sentence: Evidence) -> str:
    """Return a sentence that cites its entities, their relationships and its text unit."""
    rows = {
        "Entities": sentence.entities,
        "Relationships": sentence.relationships,
        "Sources": (sentence.source,),
    }
    return f"{sentence.text} {format_citation(rows)}"
