"""HTTP session of one model: its key, its timeouts and its end."""

import asyncio
import weakref
from typing import TYPE_CHECKING

from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import aiohttp

# Maximum idle time of a connection. A server may close a connection that is idle for longer,
# in the moment when the next request is sent.
MAX_IDLE_SECONDS = 5.0
MAX_CONNECT_SECONDS = 30.0
MAX_HEADER_BYTES = 100_000


def open_session(settings: ModelSettings, owner: object) -> "aiohttp.ClientSession":
    """Open the HTTP session of one model; it is closed when `owner` is garbage-collected."""
    import aiohttp

    # Local servers need no key, but the header must not be empty.
    key = settings.require_key() or "none"
    is_azure = settings.provider == "azure"
    login = {"api-key": key} if is_azure else {"authorization": f"Bearer {key}"}
    session = aiohttp.ClientSession(
        headers={"accept": "application/json", "user-agent": "graphrag-index", **login},
        timeout=aiohttp.ClientTimeout(
            total=None,
            sock_connect=min(MAX_CONNECT_SECONDS, settings.timeout),
            sock_read=settings.timeout,
        ),
        # `RateLimiter` limits the number of concurrent calls, so the session does not.
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=MAX_IDLE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
    )
    # The finalizer must not refer to the owner itself.
    weakref.finalize(owner, _schedule_close, session, asyncio.get_running_loop())
    return session


def _schedule_close(session: "aiohttp.ClientSession", loop: asyncio.AbstractEventLoop) -> None:
    """Close the session of a garbage-collected client, in the session's event loop."""
    if not session.closed and loop.is_running():
        asyncio.run_coroutine_threadsafe(session.close(), loop)
