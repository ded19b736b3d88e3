"""Ids of rows for agents: `letters/text-unit/12?version=3`.

Numbers of rows change between versions, so an id names its version. The URI of the resource is the
id after `graphrag://`.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from graphrag_server.problems import RequestError

SCHEME = "graphrag://"
# The kinds of rows, and the names of their tables in addresses of the explorer.
EXPLORER_KINDS = {
    "text-unit": "text_unit",
    "entity": "entity",
    "report": "community",
    "document": "document",
}
_ID = re.compile(r"([a-z0-9._-]+)/([a-z-]+)/([^/?]+)(?:\?version=(\d{1,9}))?")


@dataclass(frozen=True)
class RowId:
    """The id of a row. `name` is its number; that of an entity may be its title.

    The version is None for the current version.
    """

    index: str
    kind: str
    name: str
    version: int | None = None

    def __str__(self) -> str:
        end = "" if self.version is None else f"?version={self.version}"
        return f"{self.index}/{self.kind}/{quote(self.name, safe='')}{end}"

    @property
    def uri(self) -> str:
        """The URI of the resource."""
        return f"{SCHEME}{self}"

    @property
    def number(self) -> int:
        """The number of the row. Raises RequestError if the id has a title instead."""
        if not (self.name.isascii() and self.name.isdecimal() and len(self.name) < 12):
            raise RequestError(
                400, "invalid_id", f"The id {str(self)!r} needs a number at its end."
            )
        return int(self.name)

    def address(self, base_url: str, span: str = "") -> str:
        """Return the address of the row in the explorer; without a server, the URI."""
        if not base_url:
            return self.uri
        end = "" if self.version is None else f"?version={self.version}"
        kind = EXPLORER_KINDS[self.kind]
        return f"{base_url}#/{self.index}/{kind}/{self.name}{span and '/' + span}{end}"


def parse_row_id(text: str) -> RowId:
    """Parse an id or a URI. Raises RequestError."""
    found = _ID.fullmatch(text.removeprefix(SCHEME))
    if found is None or found[2] not in EXPLORER_KINDS:
        raise RequestError(
            400,
            "invalid_id",
            "An id looks like letters/text-unit/12?version=3: take one of search.",
        )
    version = int(found[4]) if found[4] else None
    return RowId(found[1], found[2], unquote(found[3]), version)
