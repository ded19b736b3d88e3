"""The HTTP client behind an endpoint: that of the `openai` package, and connections of our own.

What is sent thousands of times, chat and embeddings, goes past its layers of objects, which
take longer than the rest of the call; all else (streams, files, batches, Azure, proxies,
redirects) through them. The package is loaded when it is needed.
"""

import functools
import itertools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.request import getproxies

from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import ssl

    import httpx2
    import openai


CONNECTIONS_OF_A_POOL = 4
# Where the `openai` package looks too if no address is given.
OPENAI, OPENAI_VARIABLE = "https://api.openai.com/v1", "OPENAI_BASE_URL"


@dataclass(frozen=True)
class Answer:
    """What came back: the HTTP status, its headers, and the body."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def is_redirection(self) -> bool:
        return 300 <= self.status < 400

    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """Posts JSON to one server, and gets it. Lives in one event loop."""

    def __init__(self, settings: ModelSettings) -> None:
        import httpx2

        from graphrag_index.llm.connections import Connections

        self._settings = settings
        base = httpx2.URL(settings.base_url or os.environ.get(OPENAI_VARIABLE) or OPENAI)
        self._direct: Connections | None = None
        if settings.provider != "azure" and not getproxies() and not base.userinfo:
            context = _ssl_context() if base.scheme == "https" else None
            self._direct = Connections(base, context, settings.timeout)
        self._headers = {
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "user-agent": "graphrag-index",
            "authorization": f"Bearer {_key(settings)}",
        }
        self._openai: openai.AsyncOpenAI | None = None

    @property
    def openai(self) -> "openai.AsyncOpenAI":
        """The client of the `openai` package, made at first use."""
        if self._openai is None:
            self._openai = _openai_client(self._settings)
        return self._openai

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
            headers = {**self._headers, "content-type": "application/json"}
            answer = Answer(*await self._direct.post(path, headers, content))
            if not answer.is_redirection:
                return answer
        response = await self.openai.post(path, body=body, cast_to=httpx2.Response)
        return Answer(response.status_code, response.headers, response.content)

    async def get(self, path: str) -> Answer:
        """Get what lies at a path below the base address.

        Raises
        ------
        httpx2.HTTPError, OSError
            There is no answer.
        """
        import httpx2

        if self._direct is not None:
            answer = Answer(*await self._direct.get(path, self._headers))
            if not answer.is_redirection:
                return answer
        import openai

        try:
            response = await self.openai.get(path, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            response = error.response
        except openai.APIConnectionError as error:
            raise error.__cause__ or error from None
        return Answer(response.status_code, response.headers, response.content)

    async def close(self) -> None:
        if self._direct is not None:
            self._direct.close()
        if self._openai is not None:
            await self._openai.close()


def _key(settings: ModelSettings) -> str:
    """The key; local servers need none, but a header cannot be empty."""
    return settings.key or "none"


def _openai_client(settings: ModelSettings) -> "openai.AsyncOpenAI":
    import httpx2
    import openai

    timeout = httpx2.Timeout(settings.timeout, connect=min(30.0, settings.timeout), pool=None)
    # A client that is given its transport goes past the proxies of the environment.
    pools = settings.concurrency // CONNECTIONS_OF_A_POOL + 1
    transport = None if getproxies() else _spread(pools)
    http = openai.DefaultAsyncHttpxClient(timeout=timeout, transport=transport)
    key = _key(settings)
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
