"""Requests to models that several machines share as tasks of a run.

The worker that leads the run prepares, counts and pays: the rate limits, the budget and the ledger
are its own, and hold for all workers. Another worker only sends the request, to the server and with
the key of its own settings, and returns the response.
"""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from hashlib import blake2b
from itertools import count
from typing import Any

from graphrag_index.errors import GraphRAGError, ModelError
from graphrag_index.llm.chat_model import LoopThread
from graphrag_index.llm.client import LLMClient, Response
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.retries import ReplyTimeoutError, RetryError
from graphrag_index.pipeline.task_board import TaskBoard
from graphrag_index.pipeline.tasks import Result
from graphrag_index.schema.settings.models import ModelSettings, find_model

CALL = "call-"
# Seconds until a call looks whether there is still another worker that could send it.
SECONDS_BETWEEN_LOOKS = 1.0
# Header fields that limits and errors are read from.
_FIELDS = ("retry-after", "x-ratelimit-")

Send = Callable[[str, bytes], Awaitable[Response]]


class SharedCalls:
    """The calls of the worker that leads a run: each n-th is sent here, the others elsewhere."""

    def __init__(self, board: TaskBoard) -> None:
        self._board, self._numbers = board, count()

    async def send(self, model: str, path: str, content: bytes, send_here: Send) -> Response:
        """Send a request from here or from another worker, unless its response is stored."""
        task = json.dumps({"model": model, "path": path}).encode() + b"\n" + content
        name = CALL + blake2b(task, digest_size=16).hexdigest()
        board = self._board
        n_workers = board.n_workers
        if not board.was_published(name) and next(self._numbers) % n_workers == 0:
            return await self._send_here(name, path, content, send_here)
        done = asyncio.wrap_future(board.submit(name, task))
        began = time.monotonic()
        while True:
            finished, _ = await asyncio.wait([done], timeout=SECONDS_BETWEEN_LOOKS)
            if finished:
                return read_response(done.result())
            board.check()
            # The last of the other workers may have gone, or none of them can send the request.
            if board.n_workers > 1 and time.monotonic() - began < board.seconds_to_wait:
                continue
            lease = await asyncio.to_thread(board.take_back, name)
            if lease is not None:
                try:
                    return await self._send_here(name, path, content, send_here)
                finally:
                    await asyncio.to_thread(board.give_up, name, lease)

    async def _send_here(self, name: str, path: str, content: bytes, send_here: Send) -> Response:
        response = await send_here(path, content)
        if response.status < 400:
            result = make_result(response)
            await asyncio.to_thread(self._board.store_result, name, result)
        return response


class CallSender:
    """The calls that this process sends for the worker that leads a run."""

    def __init__(self, models: Mapping[str, ModelSettings]) -> None:
        self._models = models
        self._lock = threading.Lock()
        self._loop: LoopThread | None = None
        self._clients: dict[str, LLMClient] = {}
        self._ledger = Ledger(None)

    def send(self, task: bytes) -> Result:
        """Send the request of a task; return its response, or its failure."""
        head, _, content = task.partition(b"\n")
        call = json.loads(head)
        with self._lock:
            self._loop = self._loop or LoopThread()
        try:
            return make_result(
                self._loop.run_coroutine(self._send(call["model"], call["path"], content))
            )
        except RetryError as error:
            kind = "timeout" if isinstance(error, ReplyTimeoutError) else "retry"
            failure = {"failed": kind, "text": str(error), "lost": error.lost}
        except GraphRAGError as error:  # such as a model that the settings lack
            failure = {"failed": "model", "text": str(error)}
        return Result(failure, b"")

    async def _send(self, model: str, path: str, content: bytes) -> Response:
        if model not in self._clients:
            settings = find_model(self._models, model, "worker")
            self._clients[model] = LLMClient(model, settings, self._ledger)
        return await self._clients[model].fetch(path, content)

    def close(self) -> None:
        if self._loop is not None:
            for client in self._clients.values():
                self._loop.run_coroutine(client.close())
            self._loop.close()
        self._ledger.close()


def make_result(response: Response) -> Result:
    """Return a response as the result of a task; after an error status it may be sent again."""
    fields = {
        name.lower(): value
        for name, value in response.headers.items()
        if name.lower().startswith(_FIELDS)
    }
    header: dict[str, Any] = {"status": response.status, "headers": fields}
    if response.status >= 400:
        header["failed"] = "status"
    return Result(header, response.content)


def read_response(result: Result) -> Response:
    """Return the response in the result of a task; raise the failure that another worker had."""
    header = result.header
    match header.get("failed"):
        case "timeout":
            raise ReplyTimeoutError(header["text"], lost=header["lost"])
        case "retry":
            raise RetryError(header["text"], lost=header["lost"])
        case "model":
            raise ModelError(header["text"])
    return Response(header["status"], header["headers"], result.content)
