"""Server-sent events: the reply of routes that stream."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

from fastapi.responses import StreamingResponse
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event

# Seconds without an event after which a comment keeps the connection open.
KEEPALIVE_SECONDS = 15.0
# Proxies must not collect the events of a stream.
STREAM_HEADERS = {"X-Accel-Buffering": "no"}


def write_event(event: str | None, data: Any, event_id: str | None = None) -> bytes:
    """Write one event with `data` as JSON. `event` is its type; None: the default, `message`."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
    return format_sse_event(data_str=text, event=event, id=event_id)


def stream_events(events: AsyncIterator[bytes]) -> StreamingResponse:
    """Return a reply that sends events, and comments while there are none.

    If the client disconnects, the iterator is closed.
    """
    return StreamingResponse(
        _with_keepalives(events), media_type="text/event-stream", headers=STREAM_HEADERS
    )


async def _with_keepalives(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    pending: asyncio.Future[bytes] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(events))
            done, _ = await asyncio.wait((pending,), timeout=KEEPALIVE_SECONDS)
            if not done:
                yield KEEPALIVE_COMMENT
                continue
            try:
                event = pending.result()
            except StopAsyncIteration:
                return
            pending = None
            yield event
    finally:
        if pending is not None:
            pending.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await pending
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()
