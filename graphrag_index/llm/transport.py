"""HTTP transport of one model: its session, TLS, proxies and redirects."""

import asyncio
import functools
import os
import ssl
import sys
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from graphrag_index.errors import ModelError
from graphrag_index.llm.retries import AddressError, ReplyTimeoutError, RetryError
from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import aiohttp

# The default server, if the settings and the environment set no address.
OPENAI_ADDRESS = "https://api.openai.com/v1"
# Maximum idle time of a connection. A server may close a connection that is idle for longer,
# in the moment when the next request is sent.
MAX_IDLE_SECONDS = 5.0
MAX_CONNECT_SECONDS = 30.0
MAX_HEADER_BYTES = 100_000
MAX_REDIRECTS = 5
DEFAULT_PORTS = {"http": 80, "https": 443}


def server_address(settings: ModelSettings) -> str:
    """Return the base URL of a model's server, without a slash at the end."""
    base = settings.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_ADDRESS
    return base.rstrip("/")


class Transport:
    """HTTP connections to the server of one model, for use in one event loop only."""

    def __init__(self, name: str, settings: ModelSettings) -> None:
        self.name, self.settings = name, settings
        self.address = server_address(settings)
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def open_response(
        self, method: str, path: str, content: bytes | None = None
    ) -> AsyncIterator["aiohttp.ClientResponse"]:
        """Send a request with a JSON body, and open the response.

        Raises `RetryError` after a temporary failure, also of the reading of the response, and
        `AddressError` if the address leads to a server that must not get the key.
        """
        import aiohttp

        base, parameters = self.address, None
        if self.settings.provider == "azure":
            base, parameters = f"{base}/openai", {"api-version": self.settings.api_version}
            if content is not None:
                base = f"{base}/deployments/{self.settings.deployment or self.settings.model}"
        url = base + path
        try:
            for _ in range(MAX_REDIRECTS + 1):
                async with self._start_request(method, url, content, parameters) as response:
                    if not 300 <= response.status < 400:
                        yield response
                        return
                    location = response.headers.get("location", "")
                # The address of a redirect has parameters of its own.
                url, parameters = self._redirect_target(response.status, url, location, path), None
            raise AddressError(
                f"Model {self.name}: {self.address} redirects more than {MAX_REDIRECTS} times: "
                "set base_url of this model to the final address."
            )
        except aiohttp.ClientConnectorCertificateError as error:
            raise AddressError(
                f"Model {self.name}: the certificate of {urlsplit(url).netloc} is not valid "
                f"({root_cause_message(error)}): set base_url to the host that the certificate "
                "names, or the environment variable SSL_CERT_FILE to the certificate of the "
                "authority that signed it."
            ) from None
        except aiohttp.ClientConnectorError as error:
            raise RetryError(root_cause_message(error)) from None
        except aiohttp.ConnectionTimeoutError:
            seconds = min(MAX_CONNECT_SECONDS, self.settings.timeout)
            raise RetryError(f"no connection within {seconds:g} s") from None
        except TimeoutError:
            reason = f"no answer within {self.settings.timeout:g} s"
            raise ReplyTimeoutError(reason, lost=True) from None
        except (aiohttp.ClientError, OSError) as error:
            raise RetryError(root_cause_message(error), lost=True) from None

    def _start_request(
        self, method: str, url: str, content: bytes | None, parameters: dict[str, str] | None
    ) -> "aiohttp.client._RequestContextManager":
        if self._session is None:
            self._session = _new_session(self.settings)
            # Close the session when this object is garbage-collected. The finalizer must not
            # refer to the object itself.
            weakref.finalize(self, _schedule_close, self._session, asyncio.get_running_loop())
        return self._session.request(
            method,
            url,
            data=content,
            params=parameters,
            headers={"content-type": "application/json"} if content is not None else None,
            proxy=proxy_for(url),
            ssl=_ssl_context() if url.startswith("https") else True,
            # aiohttp would repeat a POST as a GET, without its body.
            allow_redirects=False,
        )

    def _redirect_target(self, status: int, url: str, location: str, path: str) -> str:
        """Return the address that a redirect leads to; raise `AddressError` for another server."""
        try:
            target = urljoin(url, location) if location else ""
            old, new = urlsplit(url), urlsplit(target)
            is_upgrade = (old.scheme, new.scheme) == ("http", "https")
            is_same = is_upgrade and old.hostname == new.hostname
            # 303 asks for another method, and other codes have no location.
            if status in (301, 302, 307, 308) and (is_same or _origin(old) == _origin(new)):
                return target
        except ValueError:  # The location is no address.
            target = location
        shown = target.partition("?")[0].removesuffix(path)
        raise AddressError(
            f"Model {self.name}: {self.address} redirects (HTTP {status}) to "
            f"{shown or 'no address'}, and requests with the key are not sent on to another "
            "server: set base_url of this model to the address that you trust."
        )


def _origin(address: SplitResult) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of an address."""
    return address.scheme, address.hostname, address.port or DEFAULT_PORTS.get(address.scheme)


def _new_session(settings: ModelSettings) -> "aiohttp.ClientSession":
    """Create the HTTP session of one model, with its key and its timeouts."""
    import aiohttp

    # Local servers need no key, but the header must not be empty.
    key = settings.key or "none"
    is_azure = settings.provider == "azure"
    login = {"api-key": key} if is_azure else {"authorization": f"Bearer {key}"}
    return aiohttp.ClientSession(
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


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    """Return the TLS context, with the certificates of the system or of `SSL_CERT_*`."""
    if sys.platform == "linux" or {"SSL_CERT_FILE", "SSL_CERT_DIR"} & os.environ.keys():
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _schedule_close(session: "aiohttp.ClientSession", loop: asyncio.AbstractEventLoop) -> None:
    """Close the session of a garbage-collected client, in the session's event loop."""
    if not session.closed and loop.is_running():
        asyncio.run_coroutine_threadsafe(session.close(), loop)


def proxy_for(url: str) -> str | None:
    """Return the proxy for an address from the environment variables; None if none is set."""
    parts, proxies = urlsplit(url), getproxies()
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


def root_cause_message(error: BaseException) -> str:
    """Return the message of the first exception in the chain that led to this error."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__
