"""How long a query may take, and how much it may return."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from graphrag_index.schema.settings.searches import StructuredSearch


class Limits(NamedTuple):
    """What a query may use: rows of its result, seconds, and megabytes of memory."""

    max_rows: int = 1_000
    timeout: float = 30.0
    max_memory: int = 1_024

    @property
    def max_bytes(self) -> int:
        """How long the rows may be as text, so that who reads them needs no more memory."""
        return self.max_memory << 18


def limits_of(settings: "StructuredSearch") -> Limits:
    """Return the limits that the settings set."""
    return Limits(settings.max_rows, settings.timeout, settings.max_memory)
