"""The HTTP client behind an endpoint: that of the `openai` package, and connections of our own.

What is sent thousands of times, chat and embeddings, goes past its layers of objects, which
take longer than the rest of the call; all else (models, streams, files, batches, Azure, proxies,
redirects) through them.
"""

import functools
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from graphrag_index.core.models.settings import ModelSettings

if TYPE_CHECKING:
    import ssl

    import httpx2
    import openai


CONNECTIONS_OF_A_POOL = 4


@dataclass(frozen=True)
class Answer:
    """What came back: the HTTP status, its headers, and the body."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """Posts JSON to one server."""

    def __init__(self, settings: ModelSettings) -> None:
        import httpx2
        import openai

        from graphrag_index.core.models.connections import Connections

        timeout = httpx2.Timeout(settings.timeout, connect=min(30.0, settings.timeout), pool=None)
        # A client that is given its transport goes past the proxies of the environment.
        has_proxies = bool(getproxies())
        pools = settings.concurrency // CONNECTIONS_OF_A_POOL + 1
        transport = None if has_proxies else _spread(pools)
        self._http = openai.DefaultAsyncHttpxClient(timeout=timeout, transport=transport)
        self.openai = _openai_client(settings, self._http)
        base = self.openai.base_url
        self._direct: Connections | None = None
        if settings.provider != "azure" and not has_proxies and not base.userinfo:
            self._direct = Connections(base, _ssl_context(), settings.timeout)
        self._headers = {
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "content-type": "application/json",
            "user-agent": "graphrag-index",
            **self.openai.auth_headers,
        }

    async def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        """Post to a path below the base address.

        Raises
        ------
        openai.APIError, httpx2.HTTPError
            There is no answer, or through the `openai` package one that tells of an error.
        """
        import httpx2

        if self._direct is not None:
            # As openai sends it: a lone surrogate cannot be UTF-8.
            content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
            answer = Answer(*await self._direct.post(path, self._headers, content))
            if not 300 <= answer.status < 400:
                return answer
        response = await self.openai.post(path, body=body, cast_to=httpx2.Response)
        return Answer(response.status_code, response.headers, response.content)

    async def close(self) -> None:
        if self._direct is not None:
            self._direct.close()
        await self.openai.close()


def _openai_client(settings: ModelSettings, http: "httpx2.AsyncClient") -> "openai.AsyncOpenAI":
    """Make the client of the `openai` package; local servers need no key."""
    import openai

    key = settings.key or "none"
    if settings.provider == "azure":
        return openai.AsyncAzureOpenAI(
            azure_endpoint=settings.base_url or "",
            api_key=key,
            api_version=settings.api_version,
            max_retries=0,
            http_client=http,
        )
    return openai.AsyncOpenAI(
        base_url=settings.base_url, api_key=key, max_retries=0, http_client=http
    )


@functools.cache
def _ssl_context() -> "ssl.SSLContext":
    """Make the context of all connections once: to read the certificates takes 20 ms."""
    import httpx2

    return httpx2.create_ssl_context()


def _spread(n_pools: int) -> "httpx2.AsyncBaseTransport":
    """Spread requests over several pools of connections.

    One pool looks at all of its connections for each request, which with 64 of them takes
    longer than all the rest.
    """
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=CONNECTIONS_OF_A_POOL)
    context = _ssl_context()
    pools = [httpx2.AsyncHTTPTransport(verify=context, limits=limits) for _ in range(n_pools)]
    turns = itertools.cycle(pools)

    class Spread(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return await next(turns).handle_async_request(request)

        async def aclose(self) -> None:
            for pool in pools:
                await pool.aclose()

    return Spread()
