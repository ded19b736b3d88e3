"""The explorer: one HTML file, the same for all indexes; it reads its data from the API."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

router = APIRouter()

_INLINE = {
    "script-src": re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL),
    "style-src": re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL),
}


@router.get("/", include_in_schema=False)
def read_explorer() -> HTMLResponse:
    """Return the page of the explorer. It holds no data, so it needs no key."""
    page, policy = _read_page()
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})


@cache
def _read_page() -> tuple[str, str]:
    """Return the page, and a security policy that allows only its own scripts and styles."""
    page = files("graphrag_index.export").joinpath("explorer.html").read_text(encoding="utf-8")
    sources = {
        name: " ".join(f"'sha256-{_digest(text)}'" for text in pattern.findall(page))
        for name, pattern in _INLINE.items()
    }
    parts = ["default-src 'none'", "connect-src 'self'", "img-src 'self' data: blob:"]
    parts += [f"{name} {allowed}" for name, allowed in sources.items() if allowed]
    parts += ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
    return page, "; ".join(parts)


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()
