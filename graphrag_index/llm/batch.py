"""Chat models that send their requests in the provider's batches.

Steps use a `BatchChatModel` like a `ChatModel`. While replies are missing, the run ends with a
`WaitingError`. Each run processes all requests of a step again: cached replies are returned,
new results are validated, and requests without a result are submitted in the next batch.

The import of `openai` is slow: only a run with batches imports this module.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import httpx2
import openai
from openai.types import Batch as ProviderBatch

from graphrag_index.errors import ModelError, WaitingError
from graphrag_index.llm.chat_model import CachedModel, RequestChain
from graphrag_index.llm.client import MAX_CONNECT_SECONDS, LLMClient, root_cause_message
from graphrag_index.llm.ledger import (
    COLLECTED,
    PREPARED,
    SUBMITTED,
    TRUNCATED,
    UPLOADED,
    Batch,
    BatchLedger,
    BatchResult,
    Ledger,
    ReceivedResult,
)
from graphrag_index.llm.limits import Budget, cost_of, max_cost_of, price_of_model
from graphrag_index.llm.protocol import (
    Capabilities,
    encode_json,
    error_in_body,
    error_message,
    parse_json,
    read_chat,
    read_usage,
)
from graphrag_index.llm.request import (
    Attempt,
    Outcome,
    ParsedReply,
    QuarantinedError,
    Reply,
    Request,
    TooLongError,
)
from graphrag_index.llm.retries import (
    LengthError,
    RejectedError,
    RetryError,
    UnsupportedError,
    backoff_seconds,
)
from graphrag_index.schema.settings.models import ModelSettings, Price

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The metadata field of a batch at the provider that stores its key in the ledger.
METADATA_KEY = "graphrag_index"
# Statuses of a batch that the provider does not process any more.
ENDED_STATUSES = ("completed", "failed", "expired", "cancelled")
# HTTP statuses that show that a server does not support batches.
_UNSUPPORTED_STATUSES = (404, 405, 501)
# Maximum difference between the clocks of this machine and of the provider, in seconds.
_MAX_CLOCK_DIFFERENCE = 3_600.0

# Number of results recorded in one transaction. It limits memory, and loss if a run is killed.
RESULTS_PER_TRANSACTION = 500


class RefusedError(ModelError):
    """The provider refuses to create a batch, or does not support batches."""


class BatchStatus(NamedTuple):
    """Status and progress of a batch at the provider."""

    status: str
    n_done: int  # processed requests, including failed requests
    files: tuple[str, ...]  # ids of the files with the results so far: replies, errors
    errors: str = ""  # the provider's error messages


class BatchEndpoint:
    """The batches of one model in the user's account at the provider.

    Methods raise `RefusedError` if the provider refuses a batch or does not support batches,
    and `ModelError` if the provider does not answer.
    """

    def __init__(self, client: LLMClient) -> None:
        self._client = client
        azure = client.settings.provider == "azure"
        self.url: Any = "/chat/completions" if azure else "/v1/chat/completions"

    @cached_property
    def _openai_client(self) -> openai.OpenAI:
        settings = self._client.settings
        connect = min(MAX_CONNECT_SECONDS, settings.timeout)
        options: dict[str, Any] = {
            # Local servers need no key, but the header must not be empty.
            "api_key": settings.require_key() or "none",
            "timeout": openai.Timeout(settings.timeout, connect=connect),
            "max_retries": 0,
        }
        if settings.provider == "azure":
            return openai.AzureOpenAI(
                azure_endpoint=settings.base_url or "", api_version=settings.api_version, **options
            )
        return openai.OpenAI(base_url=settings.base_url, **options)

    def close(self) -> None:
        if "_openai_client" in self.__dict__:
            self._openai_client.close()

    def upload_file(self, path: Path) -> str:
        """Upload the file with the requests of a batch; returns the provider's id of the file."""

        def upload() -> str:
            with path.open("rb") as file:
                created = self._openai_client.files.create(file=(path.name, file), purpose="batch")
            return _get_id(created)

        return self._call_with_retries(upload)

    def create_batch(self, file_id: str, key: str, since: float, may_exist: bool = False) -> str:
        """Create a batch from an uploaded file; returns the provider's id of the batch.

        A call whose answer was lost may have created the batch already. After such a call, or
        if `may_exist`, the batch is first searched for among the batches created `since`
        this time (seconds since 1970).
        """

        def create() -> str:
            nonlocal may_exist
            if may_exist and (found := self._find_batch(file_id, key, since)):
                return found
            may_exist = True
            created = self._openai_client.batches.create(
                input_file_id=file_id,
                endpoint=self.url,
                completion_window="24h",
                metadata={METADATA_KEY: key},
            )
            return _get_id(created)

        return self._call_with_retries(create)

    def get_status(self, id: str) -> BatchStatus | None:
        """Return the status of a batch; None if the provider does not know it."""

        def retrieve() -> BatchStatus | None:
            try:
                return _parse_status(self._openai_client.batches.retrieve(id))
            except openai.NotFoundError:
                return None

        return self._call_with_retries(retrieve)

    def download_file(self, file_id: str, path: Path) -> bool:
        """Download a file from the provider to `path`; False if the file does not exist."""

        def download() -> bool:
            try:
                with self._openai_client.files.with_streaming_response.content(file_id) as response:
                    response.stream_to_file(path, chunk_size=1 << 16)
            except openai.NotFoundError:
                return False
            return True

        return self._call_with_retries(download)

    def delete_file(self, file_id: str) -> None:
        """Delete a file at the provider, if the provider allows it."""
        try:
            self._openai_client.files.delete(file_id)
        except openai.OpenAIError as error:
            message = self._client.redact(str(error))
            logger.debug("File %s was not deleted at the provider: %s", file_id, message)

    def _find_batch(self, file_id: str, key: str, since: float) -> str | None:
        """Find a batch by its key or its file; None if the provider does not list it."""
        try:
            for batch in self._openai_client.batches.list(limit=100):
                batch_key = (batch.metadata or {}).get(METADATA_KEY)
                if batch_key == key or batch.input_file_id == file_id:
                    return _get_id(batch)
                if (batch.created_at or since) < since - _MAX_CLOCK_DIFFERENCE:
                    break
        except openai.APIStatusError as error:
            if error.status_code not in _UNSUPPORTED_STATUSES:
                raise
        return None

    def _call_with_retries(self, call: Callable[[], T]) -> T:
        """Make a call, and retry it after temporary failures."""
        client = self._client
        seconds = client.settings.retry_seconds
        began, failures = time.monotonic(), 0
        while True:
            try:
                return self._call_once(call)
            except RetryError as error:
                failures += 1
                delay = backoff_seconds(failures) if error.after is None else error.after
                if time.monotonic() - began + delay > seconds:
                    raise ModelError(
                        f"Model {client.name} has not answered for {seconds:g} s "
                        f"({client.redact(str(error))}): run again when it does; the submitted "
                        "batches are kept."
                    ) from None
            except RejectedError as error:
                raise RefusedError(
                    f"Model {client.name}: {client.address} refuses the batch: "
                    f"{client.redact(str(error))}."
                ) from None
            time.sleep(delay)

    def _call_once(self, call: Callable[[], T]) -> T:
        """Make a call once, and map the errors of `openai` and httpx2 to our exceptions."""
        client = self._client
        try:
            return call()
        except openai.APIStatusError as error:
            status, response = error.status_code, error.response
            if status in _UNSUPPORTED_STATUSES:
                raise RefusedError(
                    f"Model {client.name}: {client.address} does not support batches "
                    f"(HTTP {status}): run without --batch."
                ) from None
            raise client.response_error(status, response.headers, response.content) from None
        except (openai.APITimeoutError, httpx2.TimeoutException):
            raise RetryError(f"no answer within {client.settings.timeout:g} s") from None
        except (openai.APIError, httpx2.HTTPError) as error:
            raise RetryError(root_cause_message(error)) from None
        except (ValueError, TypeError, AttributeError) as error:
            raise RetryError(f"the answer is malformed: {error}") from None


def _get_id(created: Any) -> str:
    # `openai` does not validate responses: a missing field is None.
    if not created.id:
        raise ValueError("the new file or batch has no id")
    return str(created.id)


def _parse_status(batch: ProviderBatch) -> BatchStatus:
    if not batch.status:
        raise ValueError("the batch has no status")
    counts = batch.request_counts
    errors = (batch.errors.data if batch.errors else None) or ()
    messages = [error.message or error.code or "" for error in errors]
    return BatchStatus(
        batch.status,
        (counts.completed or 0) + (counts.failed or 0) if counts else 0,
        tuple(file for file in (batch.output_file_id, batch.error_file_id) if file),
        " ".join("; ".join(dict.fromkeys(messages[:3])).split()),
    )


def read_results(path: Path, client: LLMClient, price: Price | None) -> Iterator[ReceivedResult]:
    """Yield the results in a result file of a batch; malformed lines are skipped."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                data = parse_json(line.encode("utf-8", "replace"))
                received = _parse_result(str(data["custom_id"]), data, client, price)
            except (RetryError, ValueError, KeyError, TypeError, AttributeError):
                continue
            if received is not None:
                yield received


def _parse_result(
    key: str, data: dict[str, Any], client: LLMClient, price: Price | None
) -> ReceivedResult | None:
    """Parse one result; None if the batch ended before the request was processed."""
    response = data.get("response") or {}
    status, body = int(response.get("status_code") or 0), response.get("body")
    message = error_message(body) or error_message(data)
    if status == 200 and (error := error_in_body(body)) is not None:
        status, message = error
    if status == 200:
        usage = read_usage(body.get("usage") if isinstance(body, dict) else None)
        cost = cost_of(usage, price)
        try:
            reply = read_chat(body)
        except RetryError as error:
            return ReceivedResult(key, None, "", usage, cost, 500, str(error), is_temporary=True)
        return ReceivedResult(key, reply.text, reply.finish, usage, cost)
    if status == 0:
        if str((data.get("error") or {}).get("code") or "").startswith("batch_"):
            return None
        status = 500
    is_temporary = isinstance(client.status_error(status, message), RetryError)
    return ReceivedResult(
        key, status=status, message=client.redact(message), is_temporary=is_temporary
    )


@dataclass
class _BatchFile:
    """The file of the next batch, the requests written so far, and the sums over them."""

    path: Path
    out: IO[bytes]
    # Maps the key of each request to (label, attempt).
    requests: dict[str, tuple[str, str]] = field(default_factory=dict)
    n_tokens: int = 0  # estimated tokens of prompts and replies
    max_cost: float = 0.0  # in dollars


class BatchQueue:
    """The batches of one model for one step.

    `folder` stores the files of batches. With `forget`, a batch that the provider does not
    know is deleted, and its requests are submitted again.
    """

    def __init__(self, model: CachedModel, folder: Path, budget: Budget, forget: bool) -> None:
        self.name, self.settings, self.step = model.name, model.settings, model.step
        self.ledger = BatchLedger(model.ledger)
        # Only writes request bodies and interprets errors; `endpoint` sends the requests.
        self.client = LLMClient(self.name, self.settings, model.ledger)
        self.endpoint = BatchEndpoint(self.client)
        price = price_of_model(self.settings)
        self.price = price.in_batch() if price else None
        self._folder, self._budget, self._forget = folder, budget, forget
        self._file: _BatchFile | None = None
        # Ids of the batches that this run has created.
        self._created_ids: set[str] = set()
        # Number of requests that exceed a limit and wait for a later batch, and the lowest
        # maximum cost among these requests, in dollars.
        self._n_deferred = 0
        self._min_deferred_cost = 0.0

    def close(self) -> None:
        self.discard_added()
        self.endpoint.close()

    def open_batches(self) -> list[Batch]:
        """Return the batches of this model and step that are not collected yet."""
        return self.ledger.open_batches(self.step, self.name)

    def process_open_batches(self) -> None:
        """Process all open batches: create unfinished ones, and collect those that have ended.

        Raises `ModelError` if the provider does not answer, does not know a batch, or two
        batches in a row have failed as a whole.
        """
        self._n_deferred = 0
        self._created_ids.clear()
        # Delete files that were left by runs killed before they recorded their batch.
        keys = {batch.key for batch in self.ledger.open_batches()}
        for path in self._folder.glob("*.jsonl"):
            if path.stem not in keys:
                path.unlink()
        for batch in self.open_batches():
            if batch.state != SUBMITTED:
                self._upload_batch(batch)
        for batch, status in self._update_statuses():
            if status is None and not self._forget:
                raise ModelError(
                    f"Model {self.name}: {self.client.address} does not know batch {batch.id}, "
                    f"which has {batch.n_requests} requests of {batch.step}: use the key of the "
                    "account that submitted the batch. If the batch was deleted, "
                    "`graphrag-index retry --batch` submits its requests again."
                )
            if status is None:
                logger.warning(
                    "Batch %s is unknown to the provider: its requests are submitted again.",
                    batch.id,
                )
                self._delete_batch(batch)
            elif status.status in ENDED_STATUSES:
                self._collect_results(batch, status)

    def get_progress(self) -> tuple[int, int, bool]:
        """Return (requests in open batches, processed requests, whether a batch has ended)."""
        statuses = self._update_statuses()
        return (
            sum(batch.n_requests for batch, _ in statuses),
            sum(status.n_done for _, status in statuses if status),
            any(status is None or status.status in ENDED_STATUSES for _, status in statuses),
        )

    def progress_message(self) -> str:
        """Return a sentence for the user about the submitted batches and their progress."""
        submitted = [batch for batch in self.open_batches() if batch.id in self._created_ids]
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
            for batch in self.open_batches()
            if batch.id not in self._created_ids
        ]
        if self._n_deferred:
            parts.append(f"{self._n_deferred:,} more follow when these are done")
        text = "; ".join(parts)
        return f"{text[:1].upper()}{text[1:]}."

    def is_waiting(self, key: str) -> bool:
        """Tell whether a request is in an open batch or in the file of the next batch."""
        is_added = self._file is not None and key in self._file.requests
        return is_added or self.ledger.is_in_batch(key)

    def add_request(self, key: str, request: Request, attempt: Attempt, n_tokens: int) -> None:
        """Add a request with a prompt of about `n_tokens` to the next batch.

        If the request exceeds a limit, it is only counted: a later run adds it.
        """
        max_cost = max_cost_of(n_tokens, attempt.max_tokens, self.price) or 0.0
        n_tokens += attempt.max_tokens
        if not self._has_room(max_cost, n_tokens):
            self._n_deferred += 1
            self._min_deferred_cost = min(self._min_deferred_cost or max_cost, max_cost)
            return
        body = self.client.writer.chat_body(
            [*request.messages, *attempt.correction], request.format, attempt.max_tokens
        )
        body.pop("stream", None)
        body.pop("stream_options", None)
        line = {"custom_id": key, "method": "POST", "url": self.endpoint.url, "body": body}
        data = encode_json(line) + b"\n"
        limits = self.settings.batch
        file = self._file
        if file and (
            len(file.requests) >= limits.max_requests
            or file.out.tell() + len(data) > limits.max_bytes
        ):
            self._submit_file(file)
            file = None
        if file is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{secrets.token_hex(8)}.jsonl"
            file = self._file = _BatchFile(path, path.open("wb"))
        file.out.write(data)
        file.requests[key] = (request.unit, attempt.encode())
        file.n_tokens += n_tokens
        file.max_cost += max_cost

    def submit_added(self) -> None:
        """Submit the requests that were added.

        Raises `BudgetError` if requests exceed the budget and there is no open batch to wait for.
        """
        if self._file is not None:
            self._submit_file(self._file)
        if self._n_deferred and not self.open_batches():
            raise self._budget.exceeded_error(self._min_deferred_cost)

    def discard_added(self) -> None:
        """Discard the requests that were added and not submitted."""
        if self._file is not None:
            self._file.out.close()
            self._file.path.unlink(missing_ok=True)
            self._file = None

    def _has_room(self, max_cost: float, n_tokens: int) -> bool:
        """Tell whether the account's token limit and the budget allow one more request."""
        limit = self.settings.batch.max_tokens
        if limit is not None:
            waiting = sum(batch.n_tokens for batch in self.open_batches())
            waiting += self._file.n_tokens if self._file else 0
            if waiting and waiting + n_tokens > limit:
                return False
        return self._budget.allows(max_cost + (self._file.max_cost if self._file else 0.0))

    def _submit_file(self, file: _BatchFile) -> None:
        self._file = None
        file.out.close()
        key, known = file.path.stem, self.client.writer.capabilities.to_json()
        sums = (len(file.requests), file.n_tokens, file.max_cost)
        batch = Batch(key, self.step, self.name, PREPARED, "", "", *sums, known, time.time())
        self.ledger.record_batch(batch, file.requests)
        self._budget.held_for_batches += batch.max_cost
        self._upload_batch(batch)

    def _upload_batch(self, batch: Batch) -> None:
        """Upload and create a batch, or resume an upload that an earlier run did not finish."""
        path = self._folder / f"{batch.key}.jsonl"
        # If the id of the file is recorded already, an earlier run may have created the batch.
        may_exist = bool(batch.file_id)
        if not batch.file_id and not path.exists():
            self._delete_batch(batch)
            return
        try:
            if not batch.file_id:
                batch = batch._replace(state=UPLOADED, file_id=self.endpoint.upload_file(path))
                self.ledger.update_batch(batch)
            id = self.endpoint.create_batch(batch.file_id, batch.key, batch.submitted, may_exist)
        except RefusedError:
            if batch.file_id:
                self.endpoint.delete_file(batch.file_id)
            self._delete_batch(batch)
            path.unlink(missing_ok=True)
            raise
        self.ledger.update_batch(batch._replace(state=SUBMITTED, id=id))
        path.unlink(missing_ok=True)
        self._created_ids.add(id)

    def _update_statuses(self) -> list[tuple[Batch, BatchStatus | None]]:
        statuses = []
        for batch in self.open_batches():
            if batch.state != SUBMITTED:
                continue
            status = self.endpoint.get_status(batch.id)
            if status is not None:
                batch = batch._replace(status=status.status, n_done=status.n_done)
                self.ledger.update_batch(batch)
            statuses.append((batch, status))
        return statuses

    def _collect_results(self, batch: Batch, status: BatchStatus) -> None:
        """Record the results of a batch; requests without a result go into the next batch."""
        path = self._folder / f"{batch.key}.result.jsonl"
        for file_id in status.files:
            if not self.endpoint.download_file(file_id, path):
                # A killed run may have recorded all results and deleted the file.
                if self.ledger.unanswered_keys(batch):
                    logger.warning("Batch %s: a file with replies is gone.", batch.id)
                continue
            lines = read_results(path, self.client, self.price)
            while received := list(islice(lines, RESULTS_PER_TRANSACTION)):
                self._budget.add_cost(self.ledger.record_results(batch, received))
        path.unlink(missing_ok=True)
        left = self.ledger.unanswered_keys(batch)
        if status.status == "completed":
            reason = "the batch ended without a result for this request"
            failed = ReceivedResult("", status=500, message=reason, is_temporary=True)
            self.ledger.record_results(batch, [replace(failed, key=key) for key in left])
        for file_id in (batch.file_id, *status.files):
            self.endpoint.delete_file(file_id)
        self.ledger.update_batch(batch._replace(state=COLLECTED))
        self._budget.held_for_batches = max(0.0, self._budget.held_for_batches - batch.max_cost)
        if status.status != "completed":
            self._report_failure(batch, status, len(left))

    def _report_failure(self, batch: Batch, status: BatchStatus, n_left: int) -> None:
        """Log a warning about a batch that ended early; raise an error if two failed in a row."""
        message = self.client.redact(status.errors)
        reason = f" ({message})" if message else ""
        advice = "run again to submit its requests once more"
        if "token" in message.lower() and "limit" in message.lower():
            limit = "the number of tokens that the account allows"
            advice = f"set batch.max_tokens of this model to {limit}, then {advice}"
        if self.ledger.has_failed_twice(self.step, self.name):
            raise ModelError(
                f"Model {self.name}: batch {batch.id} failed{reason}, and so did the batch "
                f"before: {advice}."
            )
        ended = f"Batch {batch.id} of {self.step} has ended as {status.status}{reason}"
        missing = f"{n_left} of {batch.n_requests} requests"
        logger.warning("%s: %s were not answered and are submitted again.", ended, missing)

    def _delete_batch(self, batch: Batch) -> None:
        self.ledger.delete_batch(batch)
        self._budget.held_for_batches = max(0.0, self._budget.held_for_batches - batch.max_cost)


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
        self.tokens = self.queue.client.tokens

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
        while True:
            outcome, n_tokens = self._prepare_request(chain)
            if outcome is not None:
                return outcome
            try:
                parsed = self._validate_or_queue(chain.key, chain.request, n_tokens)
            except QuarantinedError as error:
                if self._shorten_after(error, chain):
                    continue
                self.ledger.update_label(chain.full_key, chain.request.unit)
                return chain.failed_outcome(error)
            if parsed is None:
                return None
            chain.add_reply(parsed)

    def _is_sent(self, key: str) -> bool:
        return self.queue.is_waiting(key) or self.queue.ledger.find_result(key) is not None

    def _validate_or_queue(self, key: str, request: Request, n_tokens: int) -> ParsedReply | None:
        """Validate the result of a request; if it is invalid or missing, queue the request.

        Returns None if the request is in a batch, or is queued for the next batch.
        """
        if self.queue.is_waiting(key):
            return None
        result = self.queue.ledger.find_result(key)
        if result is None:
            self.ledger.record_sent(key, self.step, request.unit, self.name)
        attempt = Attempt(self.tokens.max_reply_tokens(request, n_tokens), is_last=True)
        if result is not None and result.reply is not None:
            reply, last = Reply(result.reply, result.finish), Attempt.decode(result.attempt)
            parsed = self._validate_reply(reply, request, last, n_tokens)
            if isinstance(parsed, ParsedReply):
                reason = TRUNCATED if reply.finish == "length" else ""
                self.ledger.record_replies({key: result.reply}, reason)
                return parsed
            attempt = parsed
        if result is not None and result.status != 200:
            self._check_retryable(result, request, attempt, n_tokens)
            most = self.tokens.max_reply_tokens(request, n_tokens)
            attempt = replace(attempt, max_tokens=min(attempt.max_tokens, most))
        self.queue.add_request(key, request, attempt, n_tokens)
        return None

    def _check_retryable(
        self, result: BatchResult, request: Request, attempt: Attempt, n_tokens: int
    ) -> None:
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
        if isinstance(error, LengthError) or (
            not is_retryable
            and isinstance(error, RejectedError)
            and self._may_be_too_long(error, request, n_tokens)
        ):
            most = Attempt.decode(result.attempt).max_tokens
            refusal = error.refusal if isinstance(error, LengthError) else None
            self.tokens.note_refusal(n_tokens, most, refusal)
            has_less_room = self.tokens.max_reply_tokens(request, n_tokens) < most
            is_retryable = has_less_room and result.reply is None
            if self._is_too_long(request, n_tokens) or not is_retryable:
                raise TooLongError(client.redact(str(error)))
        if not is_retryable:
            times = f"failed in {result.failures} batches: " if result.failures else ""
            raise QuarantinedError(client.redact(f"{times}{error}"))
