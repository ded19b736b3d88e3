"""Asks a model through its provider's batches: submit, leave, come back, collect.

To the steps it is like a `ChatModel`, but that it ends the run with a `WaitingError` while
replies are missing. Each run goes through the requests of a step anew: what the ledger has is
given, what came back is read, and what is missing goes into the next batch.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from graphrag_index.errors import WaitingError
from graphrag_index.llm.batch_ledger import Kept
from graphrag_index.llm.batch_queue import BatchQueue
from graphrag_index.llm.caller import LoopThread
from graphrag_index.llm.capabilities import Capabilities
from graphrag_index.llm.failures import RetryError, UnsupportedError, hide
from graphrag_index.llm.ledger import QUARANTINED, Ledger
from graphrag_index.llm.prices import Budget
from graphrag_index.llm.request import Outcome, ParsedReply, Reply, Request
from graphrag_index.llm.request_chain import (
    Attempt,
    QuarantinedError,
    RequestChain,
    attempt_of,
    cached_values,
    first_attempt,
    prompt_tokens,
    read_cached,
    request_key,
    validate_reply,
)
from graphrag_index.schema.settings.models import ModelSettings

# A request that failed in so many batches is at fault itself.
MAX_FAILURES = 3


class BatchChatModel:
    """One model, as one step asks it in batches. See `BatchQueue` for the parameters."""

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        step: str,
        ledger: Ledger,
        loop: LoopThread,
        folder: Path,
        budget: Budget | None = None,
        forget: bool = False,
    ) -> None:
        self.name, self.settings, self.step, self.ledger = name, settings, step, ledger
        budget = budget or Budget(None)
        self.queue = BatchQueue(name, settings, step, ledger, loop, folder, budget, forget)
        self._used: list[str] = []

    @property
    def max_prompt_tokens(self) -> int:
        """How long a prompt may be, in tokens."""
        return self.settings.context_window - self.settings.max_output_tokens

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Give the outcomes in the order of the requests, once all are known.

        Raises
        ------
        WaitingError
            Some are in a batch now. What was answered is kept.
        ModelError
            The provider does not answer, has no batches, or refuses them.
        BudgetError
            Not one request fits what the budget leaves.
        """
        is_waiting = False
        self.queue.n_later = 0
        self.queue.made.clear()
        try:
            self.queue.settle()
            for request in requests:
                outcome = self._outcome(request)
                if outcome is None:
                    is_waiting = True
                elif not is_waiting:
                    yield outcome
            self.queue.flush()
        finally:
            self.queue.discard()
            self.ledger.mark_used(self._used)
            self._used.clear()
        if is_waiting:
            raise WaitingError(self._sentence())

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        """Return the values that are kept for a request and those that follow; asks nothing."""
        return cached_values(self.ledger.find, request, self.settings)

    def reply_hashes(self, keys: Iterable[str]) -> list[str]:
        """Return a hash of the reply that is kept under each key; empty where none is."""
        return self.ledger.reply_hashes(keys)

    def get_meta(self, name: str) -> str | None:
        """Return what was remembered beside the replies."""
        return self.ledger.get_meta(name)

    def set_meta(self, name: str, value: str) -> None:
        """Keep something beside the replies, for the next run."""
        self.ledger.set_meta(name, value)

    def mark_used(self, keys: Iterable[str]) -> None:
        """Note that what was made of these requests before stays, though they are not asked."""
        self._used += keys

    def close(self) -> None:
        """Close the connections."""
        self.queue.close()

    def _outcome(self, request: Request) -> Outcome | None:
        """Answer a request and those that follow; None while one of them is in a batch."""
        conversation = RequestChain(request)
        while (asked := conversation.asked) is not None:
            key = request_key(asked, self.settings)
            self._used.append(key)
            try:
                reading = read_cached(self.ledger.find(key), asked) or self._read(key, asked)
            except QuarantinedError as error:
                self.ledger.relabel(key, asked.unit)
                return conversation.outcome(str(error))
            if reading is None:
                return None
            conversation.advance(reading, key)
        return conversation.outcome()

    def _read(self, key: str, request: Request) -> ParsedReply | None:
        """Read what came back for a request; if nothing good did, put it into the next batch."""
        if self.queue.is_waiting(key):
            return None
        n_tokens = prompt_tokens(request, self.settings)
        kept = self.queue.record.kept(key)
        try:
            attempt: ParsedReply | Attempt = first_attempt(request, self.settings, n_tokens)
            if kept is not None and kept.reply is not None:
                reply = Reply(kept.reply, kept.finish)
                room = self.settings.context_window - n_tokens
                attempt = validate_reply(reply, request, attempt_of(kept.attempt), room, self._hide)
            if isinstance(attempt, ParsedReply):
                assert kept is not None
                self.queue.record.record_reply(key, kept.reply or "")
                return attempt
            if kept is not None and kept.status != 200:
                self._see_whether_it_may_pass(kept, request, attempt)
        except QuarantinedError as error:
            if kept is None:
                self.ledger.record_sent(key, self.step, request.unit, self.name)
            self.queue.record.record_failure(key, error.state, str(error), error.raw)
            raise
        self.queue.add(key, request, attempt, n_tokens)
        return None

    def _see_whether_it_may_pass(self, kept: Kept, request: Request, attempt: Attempt) -> None:
        """Find out from an error whether to ask again, and how.

        Raises
        ------
        QuarantinedError
            It is no use.
        """
        endpoint = self.queue.endpoint
        failure = endpoint.failure(kept.status, kept.said)
        again = isinstance(failure, RetryError) and kept.failures < MAX_FAILURES
        if isinstance(failure, UnsupportedError):
            body = endpoint.body(attempt.messages(request), request.format, attempt.max_tokens)
            sent = Capabilities.of(self.settings, kept.capabilities)
            again = endpoint.adapt(failure, body, sent)
        if not again:
            times = f"failed in {kept.failures} batches: " if kept.failures else ""
            raise QuarantinedError(QUARANTINED, self._hide(f"{times}{failure}"))

    def _hide(self, text: str) -> str:
        return hide(text, self.settings.key)

    def _sentence(self) -> str:
        """Say what is submitted and how far it is."""
        made = {batch.id for batch in self.queue.made}
        submitted = [batch for batch in self.queue.open() if batch.id in made]
        others = [batch for batch in self.queue.open() if batch.id not in made]
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
            f"batch {batch.id} of {self.step} is {batch.said.replace('_', ' ') or 'submitted'}: "
            f"{batch.n_done:,} of {batch.n_requests:,} requests are done"
            for batch in others
        ]
        if self.queue.n_later:
            parts.append(f"{self.queue.n_later:,} more follow when these are done")
        said = "; ".join(parts)
        return f"{said[:1].upper()}{said[1:]}."
