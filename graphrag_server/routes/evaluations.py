"""Evaluations: the reports that a project keeps of `graphrag-index evaluate`."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as PathParameter
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from graphrag_evaluation.report.evaluation_page import find_reports, page_policy, render_page
from graphrag_evaluation.report.evaluation_record import (
    EvaluationSummary,
    read_record,
)
from graphrag_evaluation.summary import largest_cutoffs
from graphrag_index.errors import GraphRAGError
from graphrag_server.access import ReadIndex
from graphrag_server.problems import RequestError
from graphrag_server.request_record import hide_roots

router = APIRouter(prefix="/v1/indexes/{index}/evaluations", tags=["evaluations"])

Name = Annotated[str, PathParameter(description="Name of an evaluation, as the list has it.")]


class ListedEvaluation(BaseModel):
    """An evaluation; `problem` says why its file cannot be read, and `summary` is null then.

    The means of the summary are those of the main measures: of each cutoff, the largest one.
    """

    name: str
    summary: EvaluationSummary | None
    problem: str = ""


class EvaluationList(BaseModel):
    """The evaluations of a project, the newest first; files that cannot be read are last."""

    evaluations: list[ListedEvaluation]


@router.get("")
def list_evaluations(index: ReadIndex) -> EvaluationList:
    """List the evaluations that the project of an index keeps."""
    found = [_list_evaluation(*report) for report in find_reports(index.root).items()]
    found.sort(key=lambda item: item.summary.date if item.summary else "", reverse=True)
    return EvaluationList(evaluations=found)


@router.get("/{name}/page", response_class=HTMLResponse)
def read_evaluation_page(index: ReadIndex, name: Name) -> HTMLResponse:
    """Return an evaluation as one page of HTML, which needs no further request."""
    path = find_reports(index.root).get(name)
    if path is None:
        raise RequestError(
            404, "no_such_evaluation", f"The index {index.name} has no evaluation {name!r}."
        )
    try:
        page = "".join(render_page(read_record(path)))
    except GraphRAGError as error:
        raise RequestError(503, "unreadable_evaluation", str(error)) from None
    policy = f"{page_policy()}; frame-ancestors 'none'"
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


def _list_evaluation(name: str, path: Path) -> ListedEvaluation:
    try:
        summary = _read_summary(path, path.stat().st_mtime_ns)
    except (GraphRAGError, OSError) as error:
        return ListedEvaluation(name=name, summary=None, problem=hide_roots(str(error)))
    return ListedEvaluation(name=name, summary=summary)


@lru_cache(maxsize=256)
def _read_summary(path: Path, changed: int) -> EvaluationSummary:
    """Return the summary of a file; `changed` is the time of its last change."""
    record = read_record(path)
    kept = largest_cutoffs(record.measures)
    means = {
        system: {name: interval for name, interval in found.items() if name in kept}
        for system, found in record.means.items()
    }
    names = EvaluationSummary.model_fields
    return EvaluationSummary.model_validate(
        {name: getattr(record, name) for name in names} | {"means": means}
    )
