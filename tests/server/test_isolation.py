"""No reply holds data of an index that its key may not see, however requests are interleaved."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.schema.settings.project_settings import init_project
from graphrag_server.app import create_app
from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.conftest import run_project
from tests.fixtures.examples import examples
from tests.fixtures.hostile_requests import AGENT_PATH, agent_call
from tests.server.conftest import ADDRESS

# The unique word of each index. All indexes hold the same sentences with another word.
WORDS = ("Quillbrook", "Marrowfen", "Tansyholt", "Oxlipdale", "Wyvernstow")
TEXT = """{word} Harbour is a port in Norway. Captain Ada {word} keeps the lighthouse of {word}
Harbour. In 1911 Ada {word} met Roald Amundsen at {word} Harbour. Roald Amundsen sailed to the
South Pole from {word} Harbour with the ship Fram. The ship Fram belongs to the {word} Museum."""
QUESTION = "Who keeps the lighthouse and met Roald Amundsen?"
AGENT_CALLS: Mapping[str, Mapping[str, Any]] = {
    "ask": {"question": QUESTION},
    "search": {"query": "lighthouse"},
    "context": {"question": QUESTION},
    "graph": {"entity": "Roald Amundsen"},
    "reports": {},
    "status": {},
}
MODEL = "graphrag/{index}/local"
MESSAGES = [{"role": "user", "content": QUESTION}]
PROTOCOL_CALLS: tuple[tuple[str, Mapping[str, Any] | None], ...] = (
    ("/v1/models", None),
    (f"/v1/models/{MODEL}", None),
    ("/v1/chat/completions", {"model": MODEL, "messages": MESSAGES}),
    ("/v1/chat/completions", {"model": MODEL, "messages": MESSAGES, "stream": True}),
    ("/api/tags", None),
    ("/api/chat", {"model": MODEL, "messages": MESSAGES, "stream": False}),
)
# Values of parameters that a route needs.
NEEDED = {"q": "Amundsen", "entity": "0", "from": "1", "to": "1", "number": "0", "community": "0"}


@dataclass(frozen=True)
class Route:
    """A route under an index, with a valid request for it."""

    method: str
    path: str
    body: Mapping[str, Any] | None
    headers: Mapping[str, str] = field(default_factory=dict)
    # Whether an index that the key may not see is told by the status.
    has_status: bool = True


def routes_of(openapi: Mapping[str, Any]) -> Iterator[Route]:
    """Yield a valid request for each route that reads an index, and for each protocol."""
    for tool, arguments in AGENT_CALLS.items():
        headers, call = agent_call(tool, {"index": "{index}", **arguments})
        yield Route("POST", AGENT_PATH, call, headers, has_status=False)
    for path, body in PROTOCOL_CALLS:
        yield Route("GET" if body is None else "POST", path, body, has_status=False)
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            if "{index}" not in path or method not in ("get", "post"):
                continue
            filled = path.replace("{method}", "local").replace("{table}", "entities")
            query = "&".join(
                f"{parameter['name']}={NEEDED[parameter['name']]}"
                for parameter in operation.get("parameters", ())
                if parameter.get("required") and parameter["in"] == "query"
            )
            for name, value in NEEDED.items():
                filled = filled.replace(f"{{{name}}}", value)
            if "{" in filled.replace("{index}", ""):
                continue  # for example the id of a job, of which there is none
            if method == "get":
                yield Route("GET", f"{filled}?{query}", None)
            elif path.endswith(("/ask", "/{method}", "/context")):
                yield Route("POST", filled, {"question": QUESTION})


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a server with an index, and a key for it, for each word."""
    folder = tmp_path_factory.mktemp("isolated")
    keys, tokens = KeyFile(folder), {}
    for word in WORDS:
        root = folder / word.lower()
        init_project(root)
        (root / "input" / "harbour.txt").write_text(TEXT.format(word=word), encoding="utf-8")
        run_project(root)
        indexes = frozenset({word.lower()})
        tokens[word] = keys.add(word, frozenset(Scope) - {Scope.ADMIN}, indexes)
    keys.close()
    indexes_of = {word.lower(): folder / word.lower() for word in WORDS}
    app = create_app(ServerSettings(indexes=indexes_of, state_folder=folder))
    app.state.tokens = tokens
    with TestClient(app, base_url=ADDRESS) as client:
        yield client


def send(client: TestClient, route: Route, word: str, key: str) -> tuple[int, str]:
    body = json.dumps(route.body).replace("{index}", word.lower())
    reply = client.request(
        route.method,
        route.path.replace("{index}", word.lower()),
        json=route.body and json.loads(body),
        headers={**route.headers, "X-API-Key": client.app.state.tokens[key]},
    )
    return reply.status_code, reply.text


def test_a_key_reads_its_index_by_most_routes(client: TestClient) -> None:
    """Without this, the property below could hold for replies that are all empty."""
    word, texts = WORDS[0], []
    for route in routes_of(client.app.openapi()):
        status, text = send(client, route, word, word)
        assert status == 200, (route, text)
        texts.append(text)
    assert sum(word in text for text in texts) > len(texts) / 2


@examples(20)
@given(data=st.data())
def test_no_reply_holds_data_of_another_index(client: TestClient, data: st.DataObject) -> None:
    routes = list(routes_of(client.app.openapi()))
    request = st.tuples(st.sampled_from(routes), st.sampled_from(WORDS), st.sampled_from(WORDS))
    requests = data.draw(st.lists(request, min_size=4, max_size=16))
    with ThreadPoolExecutor(4) as threads:
        replies = list(threads.map(lambda request: send(client, *request), requests))
    for (route, word, key), (status, text) in zip(requests, replies, strict=True):
        folded = text.casefold()
        if word == key:
            assert status == 200, (route, text)
            others = [other for other in WORDS if other != word]
        else:
            assert status == 404 or not route.has_status, (route, text)
            # A message may repeat the name of the index, or list the indexes of the key.
            others = [other for other in WORDS if other not in (word, key)] + [f"{word} harbour"]
        assert not [other for other in others if other.casefold() in folded], (route, text)
