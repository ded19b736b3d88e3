"""Client of a provider's files and batches: the `openai` package, with retries.

The import of `openai` is slow: only a run with batches imports this module.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx2
import openai
from openai.types import Batch

from graphrag_index.errors import ModelError
from graphrag_index.llm.client import MAX_CONNECT_SECONDS, LLMClient, root_cause_message
from graphrag_index.llm.ledger import ReceivedResult
from graphrag_index.llm.limits import cost_of
from graphrag_index.llm.protocol import error_message, read_chat, read_usage
from graphrag_index.llm.retries import RejectedError, RetryError, backoff_seconds
from graphrag_index.schema.settings.models import Price

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


def _parse_status(batch: Batch) -> BatchStatus:
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
                data = json.loads(line)
                received = _parse_result(str(data["custom_id"]), data, client, price)
            except (ValueError, KeyError, TypeError, AttributeError):
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
