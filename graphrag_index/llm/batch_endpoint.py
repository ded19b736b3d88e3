"""Files and batches at a provider, through the `openai` package: one call each, tried again."""

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
from graphrag_index.llm.caller import backoff
from graphrag_index.llm.endpoint import Endpoint
from graphrag_index.llm.failures import (
    RejectedError,
    RetryError,
    UnsupportedError,
    hide,
    said_in,
)
from graphrag_index.llm.http_replies import read_chat, read_usage
from graphrag_index.llm.prices import cost_of
from graphrag_index.schema.settings.models import Price

if TYPE_CHECKING:
    from openai.types import Batch

logger = logging.getLogger(__name__)

T = TypeVar("T")

# The name of our key in the metadata of a batch.
METADATA = "graphrag_index"
ENDED = ("completed", "failed", "expired", "cancelled")
# What a server answers that has no such thing as batches.
_NOT_THERE = (404, 405, 501)
# Our clock and the provider's may differ by so many seconds.
_CLOCKS = 3_600.0


class RefusedError(ModelError):
    """The provider has said that it does not take a batch: none was made."""


@dataclass(frozen=True)
class Standing:
    """How a batch stands."""

    said: str
    n_requests: int
    n_done: int  # failed requests too
    files: tuple[str, ...]  # what it has given so far: of replies, of errors
    errors: str = ""

    @property
    def has_ended(self) -> bool:
        return self.said in ENDED


class BatchEndpoint:
    """The batches of one model's account. Lives in one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        azure = endpoint.settings.provider == "azure"
        self.url: Any = "/chat/completions" if azure else "/v1/chat/completions"

    async def upload(self, path: Path) -> str:
        """Upload the requests of a batch; returns the id of the file.

        Raises
        ------
        RefusedError
            The provider has no batches, or does not take this one.
        ModelError
            It does not answer.
        """

        async def upload() -> str:
            with path.open("rb") as file:
                made = await self._endpoint.client.files.create(
                    file=(path.name, file), purpose="batch"
                )
            return made.id

        return await self._try(upload)

    async def create(self, file_id: str, key: str, since: float, perhaps_made: bool = False) -> str:
        """Make a batch of an uploaded file; returns its id. Raises as `upload` does.

        A call whose answer is lost may have made it: then, and when it is `perhaps_made`, it is
        looked for among the batches made `since`.
        """

        async def create() -> str:
            nonlocal perhaps_made
            found = await self._find(file_id, key, since) if perhaps_made else None
            if found is not None:
                return found
            perhaps_made = True
            made = await self._endpoint.client.batches.create(
                input_file_id=file_id,
                endpoint=self.url,
                completion_window="24h",
                metadata={METADATA: key},
            )
            return made.id

        return await self._try(create)

    async def look(self, id: str) -> Standing | None:
        """Return how a batch stands; None if the provider does not know it."""
        import openai

        async def look() -> Standing | None:
            try:
                return _standing(await self._endpoint.client.batches.retrieve(id))
            except openai.NotFoundError:
                return None

        return await self._try(look)

    async def download(self, file_id: str, path: Path) -> bool:
        """Write a file of the provider's to disk, in pieces; False if it is not there any more."""
        import openai

        async def download() -> bool:
            files = self._endpoint.client.files.with_streaming_response
            try:
                async with files.content(file_id) as response:
                    with path.open("wb") as file:
                        async for piece in response.iter_bytes(1 << 16):
                            file.write(piece)
            except openai.NotFoundError:
                return False
            return True

        return await self._try(download)

    async def delete(self, file_id: str) -> None:
        """Delete a file of the provider's, where it lets us: nothing rests on it any more."""
        import openai

        try:
            await self._endpoint.client.files.delete(file_id)
        except openai.OpenAIError as error:
            said = hide(str(error), self._endpoint.settings.key)
            logger.debug("File %s was not deleted at the provider: %s", file_id, said)

    async def _find(self, file_id: str, key: str, since: float) -> str | None:
        import openai

        try:
            async for batch in self._endpoint.client.batches.list(limit=100):
                if (batch.metadata or {}).get(METADATA) == key or batch.input_file_id == file_id:
                    return batch.id
                if batch.created_at < since - _CLOCKS:
                    break
        except openai.APIStatusError as error:
            if error.status_code not in _NOT_THERE:
                raise
        return None

    async def _try(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call again and again while its failures may pass."""
        import openai

        endpoint = self._endpoint
        name, seconds = endpoint.name, endpoint.settings.retry_seconds
        began, failures = time.monotonic(), 0
        while True:
            try:
                with endpoint.errors():
                    try:
                        return await call()
                    except openai.APIStatusError as error:
                        if error.status_code in _NOT_THERE:
                            raise RefusedError(
                                f"Model {name}: {endpoint.address} has no batches (HTTP "
                                f"{error.status_code}): run without --batch."
                            ) from None
                        raise
            except RetryError as error:
                failures += 1
                delay = error.after if error.after is not None else backoff(failures)
                if time.monotonic() - began + delay > seconds:
                    said = hide(str(error), endpoint.settings.key)
                    raise ModelError(
                        f"Model {name} has not answered for {seconds:g} s ({said}): run again "
                        "when it does; what was submitted is kept."
                    ) from None
            except (RejectedError, UnsupportedError) as error:
                said = hide(str(error), endpoint.settings.key)
                raise RefusedError(
                    f"Model {name}: {endpoint.address} does not take the batch: {said}."
                ) from None
            await asyncio.sleep(delay)


def _standing(batch: "Batch") -> Standing:
    counts, errors = batch.request_counts, batch.errors
    said = [one.message or one.code or "" for one in (errors.data if errors else None) or ()]
    return Standing(
        batch.status,
        counts.total if counts else 0,
        counts.completed + counts.failed if counts else 0,
        tuple(file for file in (batch.output_file_id, batch.error_file_id) if file),
        " ".join("; ".join(dict.fromkeys(said[:3])).split()),
    )


def read_lines(path: Path, endpoint: Endpoint, price: Price | None) -> Iterator[Received]:
    """Stream what a file of a batch gives for its requests; lines that say nothing are left out."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                data = json.loads(line)
                received = _read_line(str(data["custom_id"]), data, endpoint, price)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
            if received is not None:
                yield received


def _read_line(
    key: str, data: dict[str, Any], endpoint: Endpoint, price: Price | None
) -> Received | None:
    response = data.get("response") or {}
    status, body = int(response.get("status_code") or 0), response.get("body")
    said = said_in(body) or said_in(data)
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
        # It was not asked, since the batch ended before.
        if code.startswith("batch_"):
            return None
        status = 500
    may_pass = isinstance(endpoint.failure(status, said), RetryError)
    said = hide(said, endpoint.settings.key)
    return Received(key, status=status, said=said, may_pass=may_pass)
