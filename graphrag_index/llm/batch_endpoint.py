"""Files and batches at a provider, through the `openai` package, with retries."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_index.errors import ModelError
from graphrag_index.llm.batch_ledger import Received
from graphrag_index.llm.call_errors import (
    HttpResponse,
    RejectedError,
    RetryError,
    UnsupportedError,
    message_in,
    status_error,
)
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.http_replies import read_chat, read_usage
from graphrag_index.llm.http_session import MAX_CONNECT_SECONDS, cause_of
from graphrag_index.llm.pacing import backoff
from graphrag_index.llm.prices import cost_of
from graphrag_index.schema.settings.models import ModelSettings, Price

if TYPE_CHECKING:
    import openai
    from openai.types import Batch

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The name of our key in the metadata of a batch.
METADATA = "graphrag_index"
ENDED = ("completed", "failed", "expired", "cancelled")
# Statuses of a server without batches.
_NO_BATCHES = (404, 405, 501)
# Our clock and the provider's may differ by so many seconds.
_CLOCKS = 3_600.0


class RefusedError(ModelError):
    """The provider refuses a batch: none was made."""


@dataclass(frozen=True)
class BatchStatus:
    """Status and progress of a batch at the provider."""

    status: str
    n_requests: int
    n_done: int  # failed requests too
    files: tuple[str, ...]  # results so far: replies, errors
    errors: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether the batch gives nothing more."""
        return self.status in ENDED


class BatchEndpoint:
    """Batches of one model's account. Lives in one event loop.

    Methods raise `RefusedError` where the provider has no batches or refuses this one, and
    `ModelError` where it does not answer.
    """

    def __init__(self, client: LLMClient) -> None:
        self._client = client
        self._openai: openai.AsyncOpenAI | None = None
        azure = client.settings.provider == "azure"
        self.url: Any = "/chat/completions" if azure else "/v1/chat/completions"

    @property
    def _api(self) -> "openai.AsyncOpenAI":
        if self._openai is None:
            self._openai = _openai_client(self._client.settings)
        return self._openai

    async def close(self) -> None:
        """Close the connections."""
        if self._openai is not None:
            await self._openai.close()

    async def upload(self, path: Path) -> str:
        """Upload the requests of a batch; returns the id of the file."""

        async def upload() -> str:
            with path.open("rb") as file:
                made = await self._api.files.create(file=(path.name, file), purpose="batch")
            return _id_of(made)

        return await self._retry(upload)

    async def create(self, file_id: str, key: str, since: float, perhaps_made: bool = False) -> str:
        """Create a batch of an uploaded file; returns its id.

        A call whose answer is lost may have created it. Then, and when it is `perhaps_made`,
        the batch is looked for among those made `since`.
        """

        async def create() -> str:
            nonlocal perhaps_made
            found = await self._find(file_id, key, since) if perhaps_made else None
            if found is not None:
                return found
            perhaps_made = True
            made = await self._api.batches.create(
                input_file_id=file_id,
                endpoint=self.url,
                completion_window="24h",
                metadata={METADATA: key},
            )
            return _id_of(made)

        return await self._retry(create)

    async def look(self, id: str) -> BatchStatus | None:
        """Return the status of a batch; None if the provider does not know it."""
        import openai

        async def look() -> BatchStatus | None:
            try:
                return _batch_status(await self._api.batches.retrieve(id))
            except openai.NotFoundError:
                return None

        return await self._retry(look)

    async def download(self, file_id: str, path: Path) -> bool:
        """Write a file of the provider to disk, in chunks; False if it does not exist."""
        import openai

        async def download() -> bool:
            files = self._api.files.with_streaming_response
            try:
                async with files.content(file_id) as response:
                    with path.open("wb") as file:
                        async for chunk in response.iter_bytes(1 << 16):
                            file.write(chunk)
            except openai.NotFoundError:
                return False
            return True

        return await self._retry(download)

    async def delete(self, file_id: str) -> None:
        """Delete a file of the provider that is not needed any more, if it lets us."""
        import openai

        try:
            await self._api.files.delete(file_id)
        except openai.OpenAIError as error:
            message = self._client.redact(str(error))
            logger.debug("File %s was not deleted at the provider: %s", file_id, message)

    async def _find(self, file_id: str, key: str, since: float) -> str | None:
        """Find a batch by its key or its file; None where the provider lists none."""
        import openai

        try:
            async for batch in self._api.batches.list(limit=100):
                if (batch.metadata or {}).get(METADATA) == key or batch.input_file_id == file_id:
                    return _id_of(batch)
                if (batch.created_at or since) < since - _CLOCKS:
                    break
        except openai.APIStatusError as error:
            if error.status_code not in _NO_BATCHES:
                raise
        return None

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call again and again while its failures may pass."""
        client = self._client
        seconds = client.settings.retry_seconds
        began, failures = time.monotonic(), 0
        while True:
            try:
                return await self._once(call)
            except RetryError as error:
                failures += 1
                delay = backoff(failures) if error.after is None else error.after
                if time.monotonic() - began + delay > seconds:
                    raise ModelError(
                        f"Model {client.name} has not answered for {seconds:g} s "
                        f"({client.redact(str(error))}): run again when it does; what was "
                        "submitted is kept."
                    ) from None
            except (RejectedError, UnsupportedError) as error:
                raise RefusedError(
                    f"Model {client.name}: {client.address} does not take the batch: "
                    f"{client.redact(str(error))}."
                ) from None
            await asyncio.sleep(delay)

    async def _once(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call, and map the errors of `openai` to ours.

        A download that breaks off raises an error of httpx2, over which `openai` sends.
        """
        import httpx2
        import openai

        client = self._client
        try:
            return await call()
        except openai.APIStatusError as error:
            if error.status_code in _NO_BATCHES:
                raise RefusedError(
                    f"Model {client.name}: {client.address} has no batches (HTTP "
                    f"{error.status_code}): run without --batch."
                ) from None
            answer = error.response
            response = HttpResponse(answer.status_code, answer.headers, answer.content)
            raise response.to_error(client.error_texts) from None
        except (openai.APITimeoutError, httpx2.TimeoutException):
            raise RetryError(f"no answer within {client.settings.timeout:g} s") from None
        except (openai.APIError, httpx2.HTTPError) as error:
            raise RetryError(cause_of(error)) from None
        except (ValueError, TypeError, AttributeError) as error:
            raise RetryError(f"the answer is malformed: {error}") from None


def _openai_client(settings: ModelSettings) -> "openai.AsyncOpenAI":
    import openai

    # Local servers need no key, but a header cannot be empty.
    key = settings.key or "none"
    connect = min(MAX_CONNECT_SECONDS, settings.timeout)
    timeout = openai.Timeout(settings.timeout, connect=connect)
    if settings.provider == "azure":
        return openai.AsyncAzureOpenAI(
            azure_endpoint=settings.base_url or "",
            api_key=key,
            api_version=settings.api_version,
            timeout=timeout,
            max_retries=0,
        )
    return openai.AsyncOpenAI(
        base_url=settings.base_url, api_key=key, timeout=timeout, max_retries=0
    )


def _id_of(made: Any) -> str:
    # Fields that an answer lacks are None: openai does not validate it.
    if not made.id:
        raise ValueError("it has no id")
    return str(made.id)


def _batch_status(batch: "Batch") -> BatchStatus:
    if not batch.status:
        raise ValueError("it has no status")
    counts = batch.request_counts
    errors = (batch.errors.data if batch.errors else None) or ()
    messages = [error.message or error.code or "" for error in errors]
    return BatchStatus(
        batch.status,
        (counts.total or 0) if counts else 0,
        (counts.completed or 0) + (counts.failed or 0) if counts else 0,
        tuple(file for file in (batch.output_file_id, batch.error_file_id) if file),
        " ".join("; ".join(dict.fromkeys(messages[:3])).split()),
    )


def read_results(path: Path, client: LLMClient, price: Price | None) -> Iterator[Received]:
    """Stream the results in a file of a batch; malformed lines are skipped."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                data = json.loads(line)
                received = _read_result(str(data["custom_id"]), data, client, price)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            if received is not None:
                yield received


def _read_result(
    key: str, data: dict[str, Any], client: LLMClient, price: Price | None
) -> Received | None:
    response = data.get("response") or {}
    status, body = int(response.get("status_code") or 0), response.get("body")
    message = message_in(body) or message_in(data)
    if status == 200:
        try:
            reply = read_chat(body)
        except RetryError as error:
            usage = read_usage(body.get("usage") if isinstance(body, dict) else None)
            cost = cost_of(usage, price)
            return Received(key, None, "", usage, cost, 500, str(error), may_pass=True)
        cost = cost_of(reply.usage, price)
        return Received(key, reply.text, reply.finish, reply.usage, cost)
    if status == 0:
        code = str((data.get("error") or {}).get("code") or "")
        # It was not sent, since the batch ended before.
        if code.startswith("batch_"):
            return None
        status = 500
    may_pass = isinstance(status_error(status, message, client.error_texts), RetryError)
    return Received(key, status=status, message=client.redact(message), may_pass=may_pass)
