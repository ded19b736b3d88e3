"""Prices of calls, and a budget that no call exceeds."""

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
    """Return the price of a model: from its settings, or from the list; None if unknown."""
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
    """Return the date of the price list, as YYYY-MM-DD."""
    return str(_price_list()["date"])


@cache
def _price_list() -> dict[str, Any]:
    import yaml

    text = files("graphrag_index.llm").joinpath("prices.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """Return the cost of a call in dollars; None where the price is not known."""
    if price is None:
        return None
    cached = price.input if price.cached_input is None else price.cached_input
    return (
        (usage.prompt - usage.cached) * price.input
        + usage.cached * cached
        + usage.completion * price.output
    ) / MILLION


class Budget:
    """A budget in dollars. Before it is made, a call reserves its maximum cost."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self.limit, self.spent = limit, spent
        # Maximum cost of the batches that are not collected.
        self.held = 0.0
        self._reserved = 0.0
        self._changed: asyncio.Condition | None = None

    @asynccontextmanager
    async def reserve(self, max_cost: float) -> AsyncIterator[None]:
        """Reserve the maximum cost of a call; wait while calls under way may leave enough.

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
            while self.spent + self.held + self._reserved + max_cost > self.limit:
                if self._reserved <= 1e-12:
                    raise self.error(max_cost)
                await changed.wait()
            self._reserved += max_cost
        try:
            yield
        finally:
            async with changed:
                self._reserved = max(0.0, self._reserved - max_cost)
                changed.notify_all()

    def allows(self, max_cost: float) -> bool:
        """Tell whether the budget allows so many dollars more, with no call under way."""
        return self.limit is None or self.spent + self.held + max_cost <= self.limit

    def error(self, max_cost: float) -> BudgetError:
        """Return the error for a call that would exceed the budget."""
        held = f", ${self.held:.4f} is held for batches" if self.held else ""
        limit = self.limit or 0
        digits = 2 if round(limit, 2) == limit else 4
        return BudgetError(
            f"The budget of ${limit:.{digits}f} would be exceeded: ${self.spent:.4f} is "
            f"spent{held}, and the next call may cost ${max_cost:.4f}. Run again with a larger "
            "--budget to go on; what was answered is kept."
        )

    def spend(self, cost: float | None) -> None:
        """Count the cost of a call."""
        self.spent += cost or 0.0
