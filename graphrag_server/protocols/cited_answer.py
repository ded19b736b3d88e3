"""Citations of an answer as annotations, with links that open the passage in the explorer."""

import re
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from graphrag_query.answer import Answer
from graphrag_server.asking import AskedQuestion
from graphrag_server.request_record import current_request_id

_MARK = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True)
class Annotation:
    """A citation mark in a text: ``text[start:end]`` is the mark; offsets count code points."""

    start: int
    end: int
    url: str
    title: str


def annotate(text: str, answer: Answer, asked: AskedQuestion, request: Request) -> list[Annotation]:
    """Return an annotation for each citation mark in a text, in the order of the text."""
    links = _link_citations(answer, asked, request)
    return [
        Annotation(mark.start(), mark.end(), *links[int(mark[1])])
        for mark in _MARK.finditer(text)
        if int(mark[1]) in links
    ]


def _link_citations(
    answer: Answer, asked: AskedQuestion, request: Request
) -> dict[int, tuple[str, str]]:
    """Map the numbers of citations to an address in the explorer and a title."""
    store = asked.hosted.open(asked.as_of).store
    if store.version.number != answer.version:
        store = asked.hosted.open(answer.version).store
    rows = store.text_units(citation.text_unit for citation in answer.citations)
    base = f"{str(request.base_url).rstrip('/')}/#/{asked.hosted.name}/document"
    return {
        citation.number: (
            f"{base}/{rows[citation.text_unit]['document']}/"
            f"{citation.start_char}-{citation.end_char}",
            citation.document,
        )
        for citation in answer.citations
        if citation.text_unit in rows
    }


def describe(answer: Answer) -> dict[str, Any]:
    """Return the outcome, cost, citations and so on, for which other protocols have no field."""
    content = answer.to_dict()
    names = (
        *("outcome", "method", "question", "citations", "notes", "follow_ups", "suggestion"),
        *("usage", "version", "table"),
    )
    return {**{name: content[name] for name in names}, "request_id": current_request_id()}
