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
from concurrent.futures import Future
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any

from graphrag_index.errors import GraphRAGError, ModelError
from graphrag_index.llm.chat_model import LoopThread
from graphrag_index.llm.client import LLMClient, Response
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.retries import ReplyTimeoutError, RetryError
from graphrag_index.pipeline.shards import write_file
from graphrag_index.pipeline.task_board import TaskBoard
from graphrag_index.pipeline.tasks import Result
from graphrag_index.pipeline.worker_processes import MIN_BYTES_FOR_WORKERS, Workers
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


class ShardMaker:
    """The processes of this machine that make shards, for as many threads as processes.

    Parts lie in `folder` until they are read.
    """

    def __init__(self, n: int, folder: Path) -> None:
        self.n, self._folder = n, folder
        self.workers, self._lock = Workers(n), threading.Lock()

    def make(self, function: Path, shard: bytes, name: str) -> Result:
        """Make the part of a shard."""
        part = self._folder / name
        cpu = time.thread_time()
        with self._lock:
            # With one process, this thread makes the part.
            started = self.workers.start(function, shard, part)
        cpu = started.result().cpu_seconds or time.thread_time() - cpu
        with self._lock:
            self.workers.wait(started)
        content = part.read_bytes()
        part.unlink()
        return Result({"cpu_seconds": round(cpu, 3)}, content)

    def close(self) -> None:
        self.workers.close()


class SharedRunner:
    """Runner of the worker that leads a run."""

    seconds_alone = 0.0

    def __init__(self, board: TaskBoard, maker: ShardMaker) -> None:
        self._board, self._maker = board, maker
        self._parts: dict[Future[Result], Path] = {}

    @property
    def n(self) -> int:
        """The number of processes of all workers."""
        return self._board.n_slots

    @property
    def min_bytes(self) -> int:
        return MIN_BYTES_FOR_WORKERS

    def start(self, function: Path, shard: bytes, part: Path) -> "Future[Result]":
        """Start to make a part, on this machine or another one."""
        done = self._board.submit(part.name, shard, function)
        self._parts[done] = part
        return done

    def wait(self, started: "Future[Result]") -> None:
        """Wait for a part, and write it; raises the exception of its function."""
        result = self._board.wait(started)
        part = self._parts.pop(started, None)
        if part is not None:
            write_file(part, result.content)

    def count_cpu_seconds(self) -> float:
        """Return the CPU time of this process, and of all processes that made parts."""
        return self._maker.workers.count_cpu_seconds() + self._board.cpu_seconds_of_others

    def measure_peak_memory(self) -> int | None:
        """Return the peak memory of the largest process of this machine, in bytes."""
        return self._maker.workers.measure_peak_memory()

    def close(self) -> None:
        """Leave the processes running: they belong to the worker, not to the run."""
