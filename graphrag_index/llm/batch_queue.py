"""Requests go out in batches, and what these give goes into the ledger.

The file of a batch is deleted here when the batch is made, and at the provider, with its replies,
when these are noted.
"""

import json
import logging
import time
from collections.abc import Coroutine
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from graphrag_index.errors import ModelError
from graphrag_index.llm.batch_endpoint import (
    BatchEndpoint,
    RefusedError,
    Standing,
    read_lines,
)
from graphrag_index.llm.batch_file import BatchFile, new_file
from graphrag_index.llm.batch_ledger import (
    PREPARED,
    SUBMITTED,
    UPLOADED,
    Batch,
    BatchLedger,
    Line,
    Received,
)
from graphrag_index.llm.caller import LoopThread
from graphrag_index.llm.endpoint import Endpoint
from graphrag_index.llm.failures import hide
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.prices import Budget, cost_of, price_of
from graphrag_index.llm.request import Request, Usage
from graphrag_index.llm.request_chain import Attempt
from graphrag_index.schema.settings.models import ModelSettings

logger = logging.getLogger(__name__)

# Lines of a result that are noted together: bounds memory and what a kill loses.
LINES_AT_ONCE = 500

T = TypeVar("T")


class BatchQueue:
    """The batches of one model, as one step asks it.

    With `forget`, batches that the provider does not know are given up.
    """

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        step: str,
        ledger: Ledger,
        loop: LoopThread,
        folder: Path,
        budget: Budget,
        forget: bool = False,
    ) -> None:
        self.name, self.settings, self.step = name, settings, step
        self.record = BatchLedger(ledger)
        self.endpoint = Endpoint(name, settings, ledger)
        self.batches = BatchEndpoint(self.endpoint)
        price = price_of(settings)
        self.price = price.in_batch() if price else None
        self._loop, self._folder, self._budget, self._forget = loop, folder, budget, forget
        self._file: BatchFile | None = None
        # Batches that this run has made.
        self.made: list[Batch] = []
        # Requests that follow when others are collected, and the least that one may cost.
        self.n_later = 0
        self._least = 0.0

    def close(self) -> None:
        """Close the connections."""
        self.discard()
        self._wait(self.endpoint.close())

    def open(self) -> list[Batch]:
        """Return the batches that are not collected."""
        return self.record.open(self.step, self.name)

    def settle(self) -> None:
        """Bring every batch as far as it goes: made, looked at, collected if it has ended.

        Raises
        ------
        ModelError
            The provider does not answer, does not know a batch, or has refused two as a whole.
        """
        prepared = self.open()
        self._remove_leftovers({batch.key for batch in self.record.open()})
        for batch in prepared:
            if batch.state != SUBMITTED:
                self._send(batch)
        for batch, standing in self._look():
            if standing is None:
                self._give_up(batch)
            elif standing.has_ended:
                self._collect(batch, standing)

    def standing(self) -> tuple[int, int, bool]:
        """Look at all open batches: requests, how many are done, whether any batch has ended."""
        looks = self._look()
        return (
            sum(batch.n_requests for batch, _ in looks),
            sum(standing.n_done for _, standing in looks if standing),
            any(standing is None or standing.has_ended for _, standing in looks),
        )

    def is_waiting(self, key: str) -> bool:
        """Whether a request is in a batch, or about to be."""
        return (self._file is not None and key in self._file.lines) or self.record.is_in_batch(key)

    def add(self, key: str, request: Request, attempt: Attempt, n_tokens: int) -> None:
        """Put a request of about so many tokens into the next batch, if the limits allow it."""
        # No text has more tokens than bytes, and what is guessed is more than a quarter of these.
        usage = Usage(4 * n_tokens, 0, attempt.max_tokens)
        most, n_tokens = cost_of(usage, self.price) or 0.0, n_tokens + attempt.max_tokens
        if not self._has_room(most, n_tokens):
            self.n_later += 1
            self._least = min(self._least or most, most)
            return
        body = self.endpoint.body(attempt.messages(request), request.format, attempt.max_tokens)
        body.pop("stream", None)
        body.pop("stream_options", None)
        line = {"custom_id": key, "method": "POST", "url": self.batches.url, "body": body}
        data = json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        limits = self.settings.batch
        if self._file and (
            len(self._file.lines) >= limits.max_requests
            or self._file.n_bytes + len(data) > limits.max_bytes
        ):
            self._submit()
        if self._file is None:
            self._file = new_file(self._folder)
        self._file.add(Line(key, request.unit, attempt.code), data, n_tokens, most)

    def flush(self) -> None:
        """Submit what was added.

        Raises
        ------
        BudgetError
            Not one request fits what the budget leaves, and no batch is on its way.
        """
        if self._file is not None:
            self._submit()
        if self.n_later and not self.open():
            raise self._budget.error(self._least)

    def discard(self) -> None:
        """Forget what was added and is not submitted."""
        if self._file is not None:
            self._file.out.close()
            self._file.path.unlink(missing_ok=True)
            self._file = None

    def _has_room(self, most: float, n_tokens: int) -> bool:
        added = self._file
        limit = self.settings.batch.max_tokens
        if limit is not None:
            waiting = sum(batch.n_tokens for batch in self.open())
            waiting += added.n_tokens if added else 0
            if waiting and waiting + n_tokens > limit:
                return False
        return self._budget.allows(most + (added.most if added else 0.0))

    def _submit(self) -> None:
        file, self._file = self._file, None
        assert file is not None
        file.out.close()
        batch = Batch(
            file.path.stem,
            self.step,
            self.name,
            PREPARED,
            "",
            "",
            len(file.lines),
            file.n_tokens,
            file.most,
            self.endpoint.capabilities.json(),
            time.time(),
        )
        self.record.prepare(batch, list(file.lines.values()))
        self._budget.held += batch.most
        self._send(batch)

    def _send(self, batch: Batch) -> None:
        """Upload a batch and make it, from where an earlier run was stopped."""
        path = self._folder / f"{batch.key}.jsonl"
        # When the file's id was noted already, the batch may have been made of it.
        perhaps_made = bool(batch.file_id)
        if not batch.file_id and not path.exists():
            self._drop(batch)
            return
        try:
            if not batch.file_id:
                file_id = self._wait(self.batches.upload(path))
                batch = replace(batch, state=UPLOADED, file_id=file_id)
                self.record.update(batch)
            id = self._wait(
                self.batches.create(batch.file_id, batch.key, batch.submitted, perhaps_made)
            )
        except RefusedError:
            if batch.file_id:
                self._wait(self.batches.delete(batch.file_id))
            self._drop(batch)
            path.unlink(missing_ok=True)
            raise
        batch = replace(batch, state=SUBMITTED, id=id)
        self.record.update(batch)
        path.unlink(missing_ok=True)
        self.made.append(batch)

    def _look(self) -> list[tuple[Batch, Standing | None]]:
        looks = []
        for batch in self.open():
            if batch.state != SUBMITTED:
                continue
            standing = self._wait(self.batches.look(batch.id))
            if standing is not None:
                batch = replace(batch, said=standing.said, n_done=standing.n_done)
                self.record.update(batch)
            looks.append((batch, standing))
        return looks

    def _collect(self, batch: Batch, standing: Standing) -> None:
        """Note all that a batch gave; what it did not answer goes into the next."""
        path = self._folder / f"{batch.key}.result.jsonl"
        for file_id in standing.files:
            if not self._wait(self.batches.download(file_id, path)):
                # A run that was killed may have taken it all and deleted it.
                if self.record.left(batch):
                    logger.warning("Batch %s: a file of its replies is gone.", batch.id)
                continue
            lines = read_lines(path, self.endpoint, self.price)
            while received := list(islice(lines, LINES_AT_ONCE)):
                self._budget.spend(self.record.take(batch, received))
        path.unlink(missing_ok=True)
        left = self.record.left(batch)
        if standing.said == "completed" and left:
            missing = "the batch ended without it"
            self.record.take(
                batch, (Received(key, status=500, said=missing, may_pass=True) for key in left)
            )
        for file_id in (batch.file_id, *standing.files):
            self._wait(self.batches.delete(file_id))
        self.record.collected(batch)
        self._budget.held = max(0.0, self._budget.held - batch.most)
        if standing.said != "completed":
            self._tell_of_end(batch, standing, len(left))

    def _tell_of_end(self, batch: Batch, standing: Standing, n_left: int) -> None:
        said = hide(standing.errors, self.settings.key)
        reason = f" ({said})" if said else ""
        is_tokens = "token" in said.lower() and "limit" in said.lower()
        hint = "set batch.max_tokens of this model to what its account allows, then r" * is_tokens
        if self.record.n_failed_of_late(self.step, self.name) > 1:
            raise ModelError(
                f"Model {self.name}: batch {batch.id} failed{reason}, as one before it did: "
                f"{hint or 'r'}un again to submit its requests once more."
            )
        logger.warning(
            "Batch %s of %s has ended as %s%s: %d of %d requests were not answered and are "
            "submitted again.",
            *(batch.id, self.step, standing.said, reason, n_left, batch.n_requests),
        )

    def _give_up(self, batch: Batch) -> None:
        if not self._forget:
            raise ModelError(
                f"Model {self.name}: {self.endpoint.address} does not know batch {batch.id}, which "
                f"has {batch.n_requests} requests of {batch.step}: use the key of the account that "
                "submitted it. If it is gone, `graphrag-index retry --batch` submits them again."
            )
        logger.warning("Batch %s is given up: the provider does not know it.", batch.id)
        self._drop(batch)

    def _drop(self, batch: Batch) -> None:
        self.record.drop(batch)
        self._budget.held = max(0.0, self._budget.held - batch.most)

    def _remove_leftovers(self, keys: set[str]) -> None:
        """Delete files of runs that were killed before their batch was noted."""
        for path in self._folder.glob("*.jsonl"):
            if path.stem not in keys:
                path.unlink()

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future = self._loop.start(coroutine)
        try:
            result: T = future.result()
        except BaseException:
            future.cancel()
            raise
        return result
