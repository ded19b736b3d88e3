"""How a step tells how far it has come."""

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class Progress(Protocol):
    """What a step is given to report its progress; the command line draws it."""

    def start(self, total: int | None, unit: str) -> None:
        """Begin counting `total` units ("text units"); None if nobody knows how many."""

    def advance(self, n: int = 1) -> None:
        """Say that n more are done."""


class Silent:
    """Progress that nobody watches."""

    def start(self, total: int | None, unit: str) -> None: ...

    def advance(self, n: int = 1) -> None: ...


def track(
    items: Iterable[Item], progress: Progress, unit: str, total: int | None = None
) -> Iterator[Item]:
    """Pass items through and count each."""
    progress.start(total, unit)
    for item in items:
        yield item
        progress.advance()
