"""Chat models over the provider's batches: submit, leave, come back, collect.

Steps use them like a `ChatModel`, but while replies are missing the run ends with a
`WaitingError`. Each run goes through the requests of a step again: cached replies are
returned, results are validated, and the rest is submitted in the next batch.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from graphrag_index.errors import WaitingError
from graphrag_index.llm.batch_ledger import Result
from graphrag_index.llm.batch_queue import BatchQueue
from graphrag_index.llm.call_errors import RetryError, UnsupportedError, status_error
from graphrag_index.llm.chat_model import CachedChatModel
from graphrag_index.llm.http_session import LoopThread
from graphrag_index.llm.ledger import QUARANTINED, Ledger
from graphrag_index.llm.prices import Budget
from graphrag_index.llm.request import Outcome, ParsedReply, Reply, Request
from graphrag_index.llm.request_body import Capabilities
from graphrag_index.llm.request_chain import (
    Attempt,
    QuarantinedError,
    RequestChain,
    attempt_of,
    first_attempt,
    prompt_tokens,
    request_key,
    validate_reply,
)
from graphrag_index.schema.settings.models import ModelSettings

# A request that failed in so many batches is at fault itself.
MAX_FAILURES = 3


class BatchChatModel(CachedChatModel):
    """The chat model of one step, in batches. See `BatchQueue` for the parameters."""

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
        super().__init__(name, settings, step, ledger)
        budget = budget or Budget(None)
        self.queue = BatchQueue(name, settings, step, ledger, loop, folder, budget, forget)

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Return the outcomes in the order of the requests, once all are known.

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
            self._save_used()
        if is_waiting:
            raise WaitingError(self._progress_message())

    def close(self) -> None:
        """Close the connections."""
        self.queue.close()

    def _outcome(self, request: Request) -> Outcome | None:
        """Answer a request and its follow-ups; None while one of them is in a batch."""
        chain = RequestChain(request)
        while (outcome := self._follow_cached(chain)) is None:
            pending = chain.pending
            assert pending is not None
            key = request_key(pending, self.settings)
            try:
                parsed = self._read(key, pending)
            except QuarantinedError as error:
                self.ledger.relabel(key, pending.unit)
                return chain.outcome(str(error))
            if parsed is None:
                return None
            chain.advance(parsed, key)
        return outcome

    def _read(self, key: str, request: Request) -> ParsedReply | None:
        """Validate the result of a request; without a valid one, add it to the next batch."""
        if self.queue.is_waiting(key):
            return None
        n_tokens = prompt_tokens(request, self.settings)
        result = self.queue.record.result(key)
        try:
            attempt: ParsedReply | Attempt = first_attempt(request, self.settings, n_tokens)
            if result is not None and result.reply is not None:
                reply = Reply(result.reply, result.finish)
                room = self.settings.context_window - n_tokens
                attempt = validate_reply(
                    reply, request, attempt_of(result.attempt), room, self.queue.client.redact
                )
            if isinstance(attempt, ParsedReply):
                assert result is not None
                self.queue.record.record_reply(key, result.reply or "")
                return attempt
            if result is not None and result.status != 200:
                self._check_retryable(result, request, attempt)
        except QuarantinedError as error:
            if result is None:
                self.ledger.record_sent(key, self.step, request.unit, self.name)
            self.queue.record.record_failure(key, error.state, str(error), error.raw)
            raise
        self.queue.add(key, request, attempt, n_tokens)
        return None

    def _check_retryable(self, result: Result, request: Request, attempt: Attempt) -> None:
        """Check that a failed request may be sent again, and adapt to what is unsupported.

        Raises
        ------
        QuarantinedError
            It is no use.
        """
        client = self.queue.client
        error = status_error(result.status, result.message, client.error_texts)
        is_retryable = isinstance(error, RetryError) and result.failures < MAX_FAILURES
        if isinstance(error, UnsupportedError):
            messages = attempt.messages(request)
            body = client.writer.chat_body(messages, request.format, attempt.max_tokens)
            sent = Capabilities.of(self.settings, result.capabilities)
            is_retryable = client.writer.adapt(error, body, sent)
        if not is_retryable:
            times = f"failed in {result.failures} batches: " if result.failures else ""
            raise QuarantinedError(QUARANTINED, client.redact(f"{times}{error}"))

    def _progress_message(self) -> str:
        """Describe the batches that are submitted, and their progress."""
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
            f"batch {batch.id} of {self.step} is {batch.status.replace('_', ' ') or 'submitted'}: "
            f"{batch.n_done:,} of {batch.n_requests:,} requests are done"
            for batch in others
        ]
        if self.queue.n_later:
            parts.append(f"{self.queue.n_later:,} more follow when these are done")
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."
