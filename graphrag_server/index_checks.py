"""Checks of an index: one at a time, each kept for its version."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from fastapi.concurrency import run_in_threadpool

# Maximum number of versions whose results are kept.
_MAX_KEPT = 8


class IndexChecks:
    """The results of the checks of one index, by version.

    A check of a large index takes half a minute. Requests for the same version wait for the same
    check, without a thread of their own.
    """

    def __init__(self, check: Callable[[int], dict[str, Any]]) -> None:
        self._check = check
        self._turn = asyncio.Lock()
        self._tasks: OrderedDict[int, asyncio.Task[dict[str, Any]]] = OrderedDict()

    async def result(self, version: int) -> dict[str, Any]:
        """Return the result of a version; check the version if there is none yet."""
        task = self._tasks.get(version)
        if task is None:
            task = asyncio.create_task(self._run(version))
            self._tasks[version] = task
            if len(self._tasks) > _MAX_KEPT:
                self._tasks.popitem(last=False)
        # A client that disconnects does not cancel the check of the others.
        return await asyncio.shield(task)

    def known(self, version: int) -> dict[str, Any] | None:
        """Return the result of a version if there is one. Other threads may call this."""
        task = self._tasks.get(version)
        if task is None or not task.done() or task.cancelled() or task.exception():
            return None
        return task.result()

    async def _run(self, version: int) -> dict[str, Any]:
        try:
            async with self._turn:
                return await run_in_threadpool(self._check, version)
        except BaseException:
            self._tasks.pop(version, None)
            raise
