"""What a call costs, and a budget that no call exceeds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any

from graphrag_index.errors import BudgetError
from graphrag_index.llm.request import Usage
from graphrag_index.schema.settings.models import ModelSettings, Price

MILLION = 1_000_000


def price_of(settings: ModelSettings) -> Price | None:
    """Return the price of a model: the user's, or the list's; None if neither has it."""
    if settings.price is not None:
        return settings.price
    if settings.base_url and "openai" not in settings.base_url:
        return None
    known = _price_list()["models"]
    # "gpt-5-mini-2025-08-07" is a gpt-5-mini.
    names = [
        name for name in known if settings.model == name or settings.model.startswith(name + "-20")
    ]
    return Price.model_validate(known[max(names, key=len)]) if names else None


def price_list_date() -> str:
    """Return the day on which the list was written, as YYYY-MM-DD."""
    return str(_price_list()["date"])


@cache
def _price_list() -> dict[str, Any]:
    import yaml

    text = files("graphrag_index.llm").joinpath("prices.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """Return what a call costs in dollars; None where the price is not known."""
    if price is None:
        return None
    cached = price.input if price.cached_input is None else price.cached_input
    return (
        (usage.prompt - usage.cached) * price.input
        + usage.cached * cached
        + usage.completion * price.output
    ) / MILLION


class Budget:
    """Dollars that may be spent: before it is made, a call reserves the most it can cost."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self.limit, self.spent = limit, spent
        # For batches that were submitted and are not collected.
        self.held = 0.0
        self._reserved = 0.0
        self._changed: asyncio.Condition | None = None

    @asynccontextmanager
    async def reserve(self, most: float) -> AsyncIterator[None]:
        """Hold back what a call may cost; wait while calls under way may still leave enough.

        Raises
        ------
        BudgetError
            Nothing is under way, and the call could still cost more than is left.
        """
        if self.limit is None:
            yield
            return
        changed = self._changed = self._changed or asyncio.Condition()
        async with changed:
            while self.spent + self.held + self._reserved + most > self.limit:
                if self._reserved <= 1e-12:
                    raise self.error(most)
                await changed.wait()
            self._reserved += most
        try:
            yield
        finally:
            async with changed:
                self._reserved = max(0.0, self._reserved - most)
                changed.notify_all()

    def allows(self, most: float) -> bool:
        """Whether so much more may be held or spent, with no call under way."""
        return self.limit is None or self.spent + self.held + most <= self.limit

    def error(self, most: float) -> BudgetError:
        """Say that a call which may cost so much would exceed the budget."""
        held = f", ${self.held:.4f} is held for batches" if self.held else ""
        limit = self.limit or 0
        digits = 2 if round(limit, 2) == limit else 4
        return BudgetError(
            f"The budget of ${limit:.{digits}f} would be exceeded: ${self.spent:.4f} is "
            f"spent{held}, and the next call may cost ${most:.4f}. Run again with a larger "
            "--budget to go on; what was answered is kept."
        )

    def spend(self, cost: float | None) -> None:
        """Count what a call has cost."""
        self.spent += cost or 0.0
