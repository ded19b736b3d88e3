"""Chat models that send their requests in the provider's batches.

Steps use a `BatchChatModel` like a `ChatModel`. While replies are missing, the run ends with a
`WaitingError`. Each run processes all requests of a step again: cached replies are returned,
new results are validated, and requests without a result are submitted in the next batch.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from graphrag_index.errors import WaitingError
from graphrag_index.llm.batch_ledger import BatchResult
from graphrag_index.llm.batch_queue import BatchQueue
from graphrag_index.llm.cached_model import CachedModel, RequestChain
from graphrag_index.llm.ledger import TRUNCATED, Ledger
from graphrag_index.llm.limits import Budget, max_reply_tokens
from graphrag_index.llm.protocol import Capabilities
from graphrag_index.llm.request import (
    Attempt,
    Outcome,
    ParsedReply,
    QuarantinedError,
    Reply,
    Request,
    prompt_tokens,
)
from graphrag_index.llm.retries import RetryError, UnsupportedError
from graphrag_index.schema.settings.models import ModelSettings

# Maximum number of batches in which a request fails before it is quarantined.
MAX_FAILURES = 3


class BatchChatModel(CachedModel):
    """A chat model that sends the requests of a step in batches; see `BatchQueue`."""

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        step: str,
        ledger: Ledger,
        folder: Path,
        budget: Budget,
        forget: bool,
    ) -> None:
        super().__init__(name, settings, step, ledger)
        self.queue = BatchQueue(self, folder, budget, forget)

    def replies(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """Yield the outcomes in the order of the requests, up to the first missing outcome.

        Raises `WaitingError` while requests are in a batch; replies that have arrived are kept.
        Raises `ModelError` if the provider does not answer or does not support batches, and
        `BudgetError` if every request could cost more than the rest of the budget.
        """
        is_waiting = False
        try:
            self.queue.process_open_batches()
            for request in requests:
                outcome = self._find_outcome(RequestChain(request, self.settings))
                if outcome is None:
                    is_waiting = True
                elif not is_waiting:
                    yield outcome
            self.queue.submit_added()
        finally:
            self.queue.discard_added()
            self._save_used_keys()
        if is_waiting:
            raise WaitingError(self.queue.progress_message())

    def close(self) -> None:
        self.queue.close()

    def _find_outcome(self, chain: RequestChain) -> Outcome | None:
        """Return the outcome of a request and its follow-ups; None while a reply is missing."""
        while (outcome := self._advance_over_cache(chain)) is None:
            try:
                parsed = self._validate_or_queue(chain.key, chain.request)
            except QuarantinedError as error:
                self.ledger.update_label(chain.key, chain.request.unit)
                return chain.failed_outcome(error)
            if parsed is None:
                return None
            chain.add_reply(parsed)
        return outcome

    def _validate_or_queue(self, key: str, request: Request) -> ParsedReply | None:
        """Validate the result of a request; if it is invalid or missing, queue the request.

        Returns None if the request is in a batch, or is queued for the next batch.
        """
        if self.queue.is_waiting(key):
            return None
        n_tokens = prompt_tokens(request, self.settings)
        result = self.queue.ledger.find_result(key)
        try:
            attempt = Attempt(max_reply_tokens(request, self.settings, n_tokens), is_last=True)
            if result is not None and result.reply is not None:
                reply, last = Reply(result.reply, result.finish), Attempt.decode(result.attempt)
                parsed = self._validate_reply(reply, request, last, n_tokens)
                if isinstance(parsed, ParsedReply):
                    reason = TRUNCATED if reply.finish == "length" else ""
                    self.ledger.record_replies({key: result.reply}, reason)
                    return parsed
                attempt = parsed
            if result is not None and result.status != 200:
                self._check_retryable(result, request, attempt)
        except QuarantinedError as error:
            if result is None:
                self.ledger.record_sent(key, self.step, request.unit, self.name)
            self.ledger.record_failure(key, str(error), error.raw)
            raise
        self.queue.add_request(key, request, attempt, n_tokens)
        return None

    def _check_retryable(self, result: BatchResult, request: Request, attempt: Attempt) -> None:
        """Check that a failed request can be retried, without unsupported parameters if need be.

        Raises `QuarantinedError` if a retry would fail too.
        """
        client = self.queue.client
        error = client.status_error(result.status, result.message)
        is_retryable = isinstance(error, RetryError) and result.failures < MAX_FAILURES
        if isinstance(error, UnsupportedError):
            messages = [*request.messages, *attempt.correction]
            body = client.writer.chat_body(messages, request.format, attempt.max_tokens)
            sent = Capabilities.from_json(self.settings, result.capabilities)
            is_retryable = client.writer.adapt_to_error(error, body, sent)
        if not is_retryable:
            times = f"failed in {result.failures} batches: " if result.failures else ""
            raise QuarantinedError(client.redact(f"{times}{error}"))
