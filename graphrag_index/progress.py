"""How a step tells how far it has come."""

from typing import Protocol


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
