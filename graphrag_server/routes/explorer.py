"""The explorer: one HTML file, the same for all indexes; it reads its data from the API."""

from functools import cache

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from graphrag_evaluation.report.evaluation_page import read_frame
from graphrag_index.export.explorer_page import read_explorer as read_page
from graphrag_index.export.explorer_page import security_policy

router = APIRouter()


@router.get("/", include_in_schema=False)
def read_explorer() -> HTMLResponse:
    """Return the page of the explorer. It holds no data, so it needs no key."""
    page, policy = _read_page()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _read_page() -> tuple[str, str]:
    """Return the page, and a security policy that allows only its own scripts and styles.

    The policy also allows those of the report of an evaluation: the explorer opens a report,
    which it must fetch with its key, in a new tab, and the tab inherits the policy.
    """
    page = read_page()
    policy = security_policy(page + read_frame(), connections="'self'")
    return page, f"{policy}; frame-ancestors 'none'"
