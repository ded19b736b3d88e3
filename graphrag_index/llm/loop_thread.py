"""The event loop in which the calls of models run."""

import asyncio
import threading
from concurrent.futures import Future
from typing import Any


class LoopThread:
    """An event loop in a separate thread, for callers that are not asynchronous."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._thread.start()

    def start_coroutine(self, coroutine: Any) -> "Future[Any]":
        """Start a coroutine in the loop, without waiting for its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run_coroutine(self, coroutine: Any) -> Any:
        """Run a coroutine in the loop, wait for it, and return its result."""
        future = self.start_coroutine(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the loop; running tasks are cancelled."""

        async def cancel_others() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.run_coroutine(cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
