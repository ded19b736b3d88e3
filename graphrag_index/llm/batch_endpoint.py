"""Files and batches at a provider: one call each, with retries."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

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
from graphrag_index.llm.pacing import backoff
from graphrag_index.llm.prices import cost_of
from graphrag_index.schema.settings.models import Price

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
        azure = client.settings.provider == "azure"
        self.url = "/chat/completions" if azure else "/v1/chat/completions"

    async def upload(self, path: Path) -> str:
        """Upload the requests of a batch; returns the id of the file."""
        import aiohttp

        async def upload() -> str:
            with path.open("rb") as file:
                form = aiohttp.FormData({"purpose": "batch"})
                form.add_field("file", file, filename=path.name)
                return str((await self._json("POST", "/files", form))["id"])

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
            body = {
                "input_file_id": file_id,
                "endpoint": self.url,
                "completion_window": "24h",
                "metadata": {METADATA: key},
            }
            return str((await self._json("POST", "/batches", json.dumps(body).encode()))["id"])

        return await self._retry(create)

    async def look(self, id: str) -> BatchStatus | None:
        """Return the status of a batch; None if the provider does not know it."""

        async def look() -> BatchStatus | None:
            answer = await self._client.send("GET", f"/batches/{id}")
            return None if answer.status == 404 else _batch_status(self._checked(answer).json())

        return await self._retry(look)

    async def download(self, file_id: str, path: Path) -> bool:
        """Write a file of the provider to disk, in chunks; False if it does not exist."""

        async def download() -> bool:
            async with self._client.open("GET", f"/files/{file_id}/content") as response:
                if response.status < 400:
                    with path.open("wb") as file:
                        async for chunk in response.content.iter_chunked(1 << 16):
                            file.write(chunk)
                    return True
                answer = HttpResponse(response.status, response.headers, await response.read())
            if answer.status != 404:
                self._checked(answer)
            return False

        return await self._retry(download)

    async def delete(self, file_id: str) -> None:
        """Delete a file of the provider that is not needed any more, if it lets us."""
        try:
            answer = await self._client.send("DELETE", f"/files/{file_id}")
            message = answer.error_message() if answer.status >= 400 else ""
        except RetryError as error:
            message = str(error)
        if message:
            message = self._client.redact(message)
            logger.debug("File %s was not deleted at the provider: %s", file_id, message)

    async def _find(self, file_id: str, key: str, since: float) -> str | None:
        """Find a batch by its key or its file; None where the provider lists none."""
        query = {"limit": "100"}
        while True:
            answer = await self._client.send("GET", "/batches", query=query)
            if answer.status in _NO_BATCHES:
                return None
            page = self._checked(answer).json()
            batches = page.get("data") or []
            for batch in batches:
                metadata = batch.get("metadata") or {}
                if metadata.get(METADATA) == key or batch.get("input_file_id") == file_id:
                    return str(batch["id"])
                if batch.get("created_at", since) < since - _CLOCKS:
                    return None
            if not batches or page.get("has_more") is False:
                return None
            query["after"] = str(batches[-1]["id"])

    async def _json(self, method: str, path: str, content: Any) -> Any:
        answer = await self._client.send(method, path, content)
        if answer.status in _NO_BATCHES:
            raise RefusedError(
                f"Model {self._client.name}: {self._client.address} has no batches (HTTP "
                f"{answer.status}): run without --batch."
            )
        return self._checked(answer).json()

    def _checked(self, answer: HttpResponse) -> HttpResponse:
        if answer.status >= 400:
            raise answer.to_error(self._client.error_texts)
        return answer

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call again and again while its failures may pass."""
        client = self._client
        seconds = client.settings.retry_seconds
        began, failures = time.monotonic(), 0
        while True:
            try:
                return await call()
            except (RetryError, ValueError, KeyError, TypeError, AttributeError) as error:
                # All but the first: the response is not what the protocol says.
                failures += 1
                after = error.after if isinstance(error, RetryError) else None
                delay = backoff(failures) if after is None else after
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


def _batch_status(batch: dict[str, Any]) -> BatchStatus:
    counts = batch.get("request_counts") or {}
    errors = (batch.get("errors") or {}).get("data") or ()
    messages = [str(error.get("message") or error.get("code") or "") for error in errors]
    files = (batch.get("output_file_id"), batch.get("error_file_id"))
    return BatchStatus(
        str(batch["status"]),
        int(counts.get("total") or 0),
        int(counts.get("completed") or 0) + int(counts.get("failed") or 0),
        tuple(str(file) for file in files if file),
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
