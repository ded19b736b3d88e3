"""HTTP sessions over aiohttp, and the thread whose event loop they live in."""

import asyncio
import functools
import os
import ssl
import sys
import threading
import weakref
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from graphrag_index.errors import ModelError
from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import aiohttp

# Unused for longer, a connection may be closed by the server just as the next request is sent.
MAX_IDLE_SECONDS = 5.0
MAX_CONNECT_SECONDS = 30.0
MAX_HEADER_BYTES = 100_000


class LoopThread:
    """An event loop in a thread of its own, for code that is not asynchronous."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="models", daemon=True)
        self._thread.start()

    def start(self, coroutine: Any) -> "Future[Any]":
        """Run a coroutine there."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def wait(self, coroutine: Any) -> Any:
        """Run a coroutine there, and return its result."""
        future = self.start(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the loop; tasks that still run are cancelled."""
        self.wait(_cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_all() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def new_session(settings: ModelSettings, address: str) -> "aiohttp.ClientSession":
    """Make the session of one model, at an address, with its key and its timeouts."""
    import aiohttp

    # Local servers need no key, but a header cannot be empty.
    key = settings.key or "none"
    is_azure = settings.provider == "azure"
    return aiohttp.ClientSession(
        headers={
            "accept": "application/json",
            "user-agent": "graphrag-index",
            **({"api-key": key} if is_azure else {"authorization": f"Bearer {key}"}),
        },
        timeout=aiohttp.ClientTimeout(
            total=None,
            sock_connect=min(MAX_CONNECT_SECONDS, settings.timeout),
            sock_read=settings.timeout,
        ),
        # The number at once is limited by the pace.
        connector=aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=MAX_IDLE_SECONDS,
            ssl=_ssl_context() if address.startswith("https") else True,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
    )


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    """Return the context of all connections: the certificates of the system or of `SSL_CERT_*`."""
    if sys.platform == "linux" or {"SSL_CERT_FILE", "SSL_CERT_DIR"} & os.environ.keys():
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment sets for an address.

    Raises
    ------
    ModelError
        It is none that speaks HTTP.
    """
    proxies = getproxies()
    if not proxies:
        return None
    parts = urlsplit(url)
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.netloc):
        return None
    scheme, has_scheme, _ = proxy.partition("://")
    if has_scheme and scheme not in ("http", "https"):
        raise ModelError(
            f"The environment sets a proxy of the kind {scheme}, which is not supported: set an "
            f"HTTP proxy, or name {parts.hostname} in NO_PROXY."
        )
    return proxy if has_scheme else f"http://{proxy}"


def close_when_dropped(owner: object, session: "aiohttp.ClientSession") -> None:
    """Close a session of the running loop when its owner is garbage, or at exit."""
    weakref.finalize(owner, _close_soon, session, asyncio.get_running_loop())


def _close_soon(session: "aiohttp.ClientSession", loop: asyncio.AbstractEventLoop) -> None:
    if not session.closed and loop.is_running():
        asyncio.run_coroutine_threadsafe(session.close(), loop)


def cause_of(error: BaseException) -> str:
    """Return the innermost reason of a failed connection."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__
