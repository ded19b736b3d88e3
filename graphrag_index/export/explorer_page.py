"""The explorer as one HTML file: as the server sends it, and as a static page with its data.

`explorer.html` is built from `explorer/`. A static page has the data in a script element as
compressed JSON in base64, so that no text of a document can become markup.
"""

import gzip
import html
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from graphrag_index.errors import format_count
from graphrag_index.export.embedded_index import PartLimits, embed_index
from graphrag_index.storage.atomic import write_text_file
from graphrag_index.storage.table_store import open_index

# Maximum size of a static page.
MAX_BYTES = 2_000_000
# Parts of an index, the largest first: the first one that fits into the page is embedded.
PARTS = (
    PartLimits(entities=10_000, relationships=30_000, characters=4_000_000),
    PartLimits(entities=6_000, relationships=20_000, characters=1_500_000),
    PartLimits(entities=4_000, relationships=12_000, characters=500_000),
    PartLimits(entities=2_000, relationships=6_000, characters=200_000),
    PartLimits(entities=500, relationships=1_500, characters=50_000),
)
_INLINE = {
    "script-src": re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL),
    "style-src": re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL),
}
_ROOT, _CHARSET, _TITLE = '<div id="app"></div>', '<meta charset="utf-8" />', r"<title>.*?</title>"


def read_explorer() -> str:
    """Return the page of the explorer. It holds no data."""
    return files(__package__).joinpath("explorer.html").read_text(encoding="utf-8")


def security_policy(page: str, connections: str) -> str:
    """Return a security policy that allows only the scripts and styles of the page."""
    parts = ["default-src 'none'", f"connect-src {connections}", "img-src data: blob:"]
    for name, pattern in _INLINE.items():
        digests = [
            b64encode(sha256(text.encode()).digest()).decode() for text in pattern.findall(page)
        ]
        if digests:
            parts.append(" ".join([name, *(f"'sha256-{digest}'" for digest in digests)]))
    return "; ".join([*parts, "base-uri 'none'", "form-action 'none'"])


def write_page(output: Path, file: Path, *, name: str, max_bytes: int = MAX_BYTES) -> str:
    """Write the explorer with the data of an index as one file, replacing `file` atomically.

    If the index is too large for a page of `max_bytes`, the page shows the entities with the most
    neighbours and says so. Returns what the page holds, in words. Raises TableError if the index
    has no entities.
    """
    store, version = open_index(output)
    page = read_explorer()
    for limits in PARTS:
        part = {"name": name, **embed_index(store, version, limits)}
        content = json.dumps(part, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        data = b64encode(gzip.compress(content.encode(), 9, mtime=0)).decode()
        if len(page.encode()) + len(data) <= max_bytes:
            break
    title = f"{name}: {format_count('entities', version.tables['entities'].rows)}"
    policy = html.escape(security_policy(page, "'none'"))
    head, root, tail = page.rpartition(_ROOT)
    data_element = f'<script type="text/plain" id="index-data">{data}</script>'
    head = re.sub(_TITLE, lambda _: f"<title>{html.escape(title)}</title>", head, count=1)
    rule = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    head = head.replace(_CHARSET, _CHARSET + rule, 1)
    write_text_file(file, [head, root, data_element, tail])
    return _describe_part(part)


def _describe_part(part: Mapping[str, Any]) -> str:
    """Describe what a page holds: "2,248 of 2,248 entities, the texts of 9 of 10 documents"."""
    held = {name: len(part["tables"][name]["number"]) for name in ("entities", "documents")}
    entities, documents = (f"{n:,} of {part['rows'].get(name, n):,}" for name, n in held.items())
    return f"{entities} entities, the texts of {documents} documents"
