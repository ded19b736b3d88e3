"""Sending of answers, with faults of the connection."""

import asyncio
import json

from tests.server.chat import Json, pieces
from tests.server.connection import Connection
from tests.server.errors import HTML


async def forever() -> None:
    """Wait until the client leaves or the server stops, which cancels this."""
    await asyncio.Event().wait()


def send_answer(
    connection: Connection,
    status: int,
    answer: Json | bytes,
    headers: dict[str, str],
    fault: str | None = None,
) -> None:
    """Send an answer whole, as far as the fault allows."""
    if fault == "502_html":
        connection.send(status, HTML, headers, content_type="text/html")
        return
    content_type = "application/json"
    if isinstance(answer, dict):
        answer = json.dumps(answer, ensure_ascii=False).encode()
    else:
        content_type = "application/octet-stream"
    if fault == "truncated_json":
        answer = answer[: len(answer) // 2]
    half = len(answer) // 2 if fault == "close_half" else None
    connection.send(status, answer, headers, content_type=content_type, cut_at=half)
    if fault == "close_half":
        connection.close()


async def send_stream(
    connection: Connection,
    completion: Json,
    headers: dict[str, str],
    fault: str | None,
    *,
    with_usage: bool,
    chunk_delay: float,
) -> None:
    """Send a completion as server-sent events."""
    events = [
        b"data: %b\n\n" % json.dumps(piece, ensure_ascii=False).encode()
        for piece in pieces(completion, with_usage=with_usage)
    ]
    events.append(b"data: [DONE]\n\n")
    if fault in ("stream_hang", "close_half", "truncated_json"):
        events = events[: (len(events) + 1) // 2]
    if fault == "truncated_json":
        events.append(events.pop()[:-20] + b"\n\n")
    connection.start_stream(headers)
    if chunk_delay:
        for event in events:
            connection.send_chunk(event)
            await asyncio.sleep(chunk_delay)
    else:
        connection.send_chunk(b"".join(events))
    if fault == "stream_hang":
        await forever()
    if fault == "close_half":
        connection.close()
    else:
        connection.send_chunk(b"")
