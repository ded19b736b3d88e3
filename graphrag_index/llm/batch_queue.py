"""The queue of batches: requests are submitted in batches, and their results collected.

The file of a batch is deleted here when the batch is created, and at the provider, with its
results, when these are recorded.
"""

import logging
import secrets
import time
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO

from graphrag_index.errors import ModelError
from graphrag_index.llm.batch_endpoint import (
    ENDED,
    BatchEndpoint,
    BatchStatus,
    RefusedError,
    read_results,
)
from graphrag_index.llm.batch_ledger import (
    COLLECTED,
    PREPARED,
    SUBMITTED,
    UPLOADED,
    Batch,
    BatchLedger,
    Received,
)
from graphrag_index.llm.chat_model import Attempt, CachedModel
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.limits import Budget, max_cost_of, price_of
from graphrag_index.llm.protocol import encode
from graphrag_index.llm.request import Request

logger = logging.getLogger(__name__)

# Results that are recorded together: bounds memory and the loss by a kill.
RESULTS_AT_ONCE = 500


@dataclass
class _BatchFile:
    """The file of the next batch, with the requests written so far and their sums."""

    path: Path
    out: IO[bytes]
    # The label and the attempt of each request, by its key.
    requests: dict[str, tuple[str, str]] = field(default_factory=dict)
    n_tokens: int = 0
    max_cost: float = 0.0


class BatchQueue:
    """The batches of one model for one step.

    With `forget`, batches that the provider does not know are dropped.
    """

    def __init__(self, model: CachedModel, folder: Path, budget: Budget, forget: bool) -> None:
        self.name, self.settings, self.step = model.name, model.settings, model.step
        self.record = BatchLedger(model.ledger)
        # Writes the requests, and reads the errors; `batches` sends.
        self.client = LLMClient(self.name, self.settings, model.ledger)
        self.batches = BatchEndpoint(self.client)
        price = price_of(self.settings)
        self.price = price.in_batch() if price else None
        self._folder, self._budget, self._forget = folder, budget, forget
        self._file: _BatchFile | None = None
        # Ids of the batches that this run has created.
        self._made: set[str] = set()
        # Requests that wait until others are collected, and the lowest maximum cost of one.
        self._n_later = 0
        self._min_cost = 0.0

    def close(self) -> None:
        self.discard()
        self.batches.close()

    def open(self) -> list[Batch]:
        """Return the batches that are not collected."""
        return self.record.open(self.step, self.name)

    def settle(self) -> None:
        """Advance every batch as far as possible: create, check and collect it.

        Raises `ModelError` if the provider does not answer, does not know a batch, or has refused
        two as a whole.
        """
        self._n_later = 0
        self._made.clear()
        # Files of runs that were killed before their batch was recorded.
        keys = {batch.key for batch in self.record.open()}
        for path in self._folder.glob("*.jsonl"):
            if path.stem not in keys:
                path.unlink()
        for batch in self.open():
            if batch.state != SUBMITTED:
                self._send(batch)
        for batch, status in self._update_status():
            if status is None:
                self._give_up(batch)
            elif status.status in ENDED:
                self._collect(batch, status)

    def progress(self) -> tuple[int, int, bool]:
        """Count the requests of all open batches and those done; whether a batch has ended."""
        statuses = self._update_status()
        return (
            sum(batch.n_requests for batch, _ in statuses),
            sum(status.n_done for _, status in statuses if status),
            any(status is None or status.status in ENDED for _, status in statuses),
        )

    def progress_message(self) -> str:
        """Describe the batches that are submitted, and their progress."""
        submitted = [batch for batch in self.open() if batch.id in self._made]
        parts = []
        if submitted:
            n = sum(batch.n_requests for batch in submitted)
            ids = ", ".join(batch.id for batch in submitted)
            parts.append(
                f"{n:,} request{'' if n == 1 else 's'} of {self.step} "
                f"{'is' if n == 1 else 'are'} submitted in "
                f"{'batch' if len(submitted) == 1 else 'the batches'} {ids}"
            )
        parts += [
            f"batch {batch.id} of {self.step} is {batch.status.replace('_', ' ') or 'submitted'}: "
            f"{batch.n_done:,} of {batch.n_requests:,} requests are done"
            for batch in self.open()
            if batch.id not in self._made
        ]
        if self._n_later:
            parts.append(f"{self._n_later:,} more follow when these are done")
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."

    def is_waiting(self, key: str) -> bool:
        """Tell whether a request is in a batch, or about to be."""
        is_added = self._file is not None and key in self._file.requests
        return is_added or self.record.is_in_batch(key)

    def add(self, key: str, request: Request, attempt: Attempt, n_tokens: int) -> None:
        """Add a request of about `n_tokens` to the next batch, if the limits allow it."""
        max_cost = max_cost_of(n_tokens, attempt.max_tokens, self.price) or 0.0
        n_tokens += attempt.max_tokens
        if not self._has_room(max_cost, n_tokens):
            self._n_later += 1
            self._min_cost = min(self._min_cost or max_cost, max_cost)
            return
        body = self.client.writer.chat_body(
            attempt.messages(request), request.format, attempt.max_tokens
        )
        body.pop("stream", None)
        body.pop("stream_options", None)
        line = {"custom_id": key, "method": "POST", "url": self.batches.url, "body": body}
        data = encode(line) + b"\n"
        limits = self.settings.batch
        file = self._file
        if file and (
            len(file.requests) >= limits.max_requests
            or file.out.tell() + len(data) > limits.max_bytes
        ):
            self._submit(file)
            file = None
        if file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{secrets.token_hex(8)}.jsonl"
            file = self._file = _BatchFile(path, path.open("wb"))
        file.out.write(data)
        file.requests[key] = (request.unit, attempt.encode())
        file.n_tokens += n_tokens
        file.max_cost += max_cost

    def flush(self) -> None:
        """Submit what was added.

        Raises `BudgetError` if not one request fits the budget, and no batch is on its way.
        """
        if self._file is not None:
            self._submit(self._file)
        if self._n_later and not self.open():
            raise self._budget.error(self._min_cost)

    def discard(self) -> None:
        """Drop the requests that were added and not submitted."""
        if self._file is not None:
            self._file.out.close()
            self._file.path.unlink(missing_ok=True)
            self._file = None

    def _has_room(self, max_cost: float, n_tokens: int) -> bool:
        """Tell whether the limits of the account and the budget allow one request more."""
        limit = self.settings.batch.max_tokens
        if limit is not None:
            waiting = sum(batch.n_tokens for batch in self.open())
            waiting += self._file.n_tokens if self._file else 0
            if waiting and waiting + n_tokens > limit:
                return False
        return self._budget.allows(max_cost + (self._file.max_cost if self._file else 0.0))

    def _submit(self, file: _BatchFile) -> None:
        self._file = None
        file.out.close()
        key, known = file.path.stem, self.client.writer.capabilities.json()
        sums = (len(file.requests), file.n_tokens, file.max_cost)
        batch = Batch(key, self.step, self.name, PREPARED, "", "", *sums, known, time.time())
        self.record.prepare(batch, file.requests)
        self._budget.held += batch.max_cost
        self._send(batch)

    def _send(self, batch: Batch) -> None:
        """Upload a batch and create it, resuming where an earlier run was stopped."""
        path = self._folder / f"{batch.key}.jsonl"
        # If the file's id is recorded already, the batch may have been created of it.
        perhaps_made = bool(batch.file_id)
        if not batch.file_id and not path.exists():
            self._drop(batch)
            return
        try:
            if not batch.file_id:
                batch = batch._replace(state=UPLOADED, file_id=self.batches.upload(path))
                self.record.update(batch)
            id = self.batches.create(batch.file_id, batch.key, batch.submitted, perhaps_made)
        except RefusedError:
            if batch.file_id:
                self.batches.delete(batch.file_id)
            self._drop(batch)
            path.unlink(missing_ok=True)
            raise
        self.record.update(batch._replace(state=SUBMITTED, id=id))
        path.unlink(missing_ok=True)
        self._made.add(id)

    def _update_status(self) -> list[tuple[Batch, BatchStatus | None]]:
        statuses = []
        for batch in self.open():
            if batch.state != SUBMITTED:
                continue
            status = self.batches.get_status(batch.id)
            if status is not None:
                batch = batch._replace(status=status.status, n_done=status.n_done)
                self.record.update(batch)
            statuses.append((batch, status))
        return statuses

    def _collect(self, batch: Batch, status: BatchStatus) -> None:
        """Record the results of a batch; requests without a result go into the next one."""
        path = self._folder / f"{batch.key}.result.jsonl"
        for file_id in status.files:
            if not self.batches.download(file_id, path):
                # A run that was killed may have recorded it all and deleted it.
                if self.record.unanswered(batch):
                    logger.warning("Batch %s: a file of its replies is gone.", batch.id)
                continue
            lines = read_results(path, self.client, self.price)
            while received := list(islice(lines, RESULTS_AT_ONCE)):
                self._budget.spend(self.record.record_results(batch, received))
        path.unlink(missing_ok=True)
        left = self.record.unanswered(batch)
        if status.status == "completed":
            failed = Received("", status=500, message="the batch ended without it", may_pass=True)
            self.record.record_results(batch, [replace(failed, key=key) for key in left])
        for file_id in (batch.file_id, *status.files):
            self.batches.delete(file_id)
        self.record.update(batch._replace(state=COLLECTED))
        self._budget.held = max(0.0, self._budget.held - batch.max_cost)
        if status.status != "completed":
            self._report_failure(batch, status, len(left))

    def _report_failure(self, batch: Batch, status: BatchStatus, n_left: int) -> None:
        message = self.client.redact(status.errors)
        reason = f" ({message})" if message else ""
        is_tokens = "token" in message.lower() and "limit" in message.lower()
        advice = "run again to submit its requests once more"
        if is_tokens:
            advice = f"set batch.max_tokens of this model to what its account allows, then {advice}"
        if self.record.n_failed_last(self.step, self.name) > 1:
            raise ModelError(
                f"Model {self.name}: batch {batch.id} failed{reason}, as one before it did: "
                f"{advice}."
            )
        logger.warning(
            "Batch %s of %s has ended as %s%s: %d of %d requests were not answered and are "
            "submitted again.",
            batch.id,
            self.step,
            status.status,
            reason,
            n_left,
            batch.n_requests,
        )

    def _give_up(self, batch: Batch) -> None:
        if not self._forget:
            raise ModelError(
                f"Model {self.name}: {self.client.address} does not know batch {batch.id}, which "
                f"has {batch.n_requests} requests of {batch.step}: use the key of the account that "
                "submitted it. If it is gone, `graphrag-index retry --batch` submits them again."
            )
        logger.warning("Batch %s is given up: the provider does not know it.", batch.id)
        self._drop(batch)

    def _drop(self, batch: Batch) -> None:
        self.record.drop(batch)
        self._budget.held = max(0.0, self._budget.held - batch.max_cost)
