"""Hostile requests: none gets in, and each gets one clean error in the usual shape."""

import http.client
import json
import shutil
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.hostile_requests import HostileRequest, hostile_requests
from tests.fixtures.served import Served, serve

PROBLEM = {"type", "title", "status", "detail", "code", "request_id"}
SHAPES = {
    "/v1/indexes": ("application/problem+json", PROBLEM),
    "/v1/": ("application/json", {"error"}),
    "/api/": ("application/json", {"error"}),
}

Reply = tuple[int, dict[str, str], bytes]


class RawConnection(http.client.HTTPConnection):
    """A connection that sends paths as they are; others would repair or refuse them."""

    def _validate_path(self, url: str) -> None:
        pass


@pytest.fixture(scope="module")
def attacked(
    sample_project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, RawConnection, str]]:
    """A server with the indexes `open` and `secret`, and a key for `open` alone."""
    folder = tmp_path_factory.mktemp("attacked")
    keys = KeyFile(folder)
    key = keys.add("attacker", frozenset({Scope.READ, Scope.ASK}), frozenset({"open"}))
    keys.close()
    (folder / "secret").mkdir()
    shutil.copy(sample_project / "settings.yaml", folder / "secret")
    indexes = {"open": sample_project, "secret": folder / "secret"}
    with serve(ServerSettings(indexes=indexes, state_folder=folder)) as served:
        connection = RawConnection("127.0.0.1", served.port, timeout=30)
        yield served, connection, key
        connection.close()


def send(connection: http.client.HTTPConnection, request: HostileRequest, key: str) -> Reply:
    connection.putrequest(request.method, request.path, skip_accept_encoding=True)
    for name, value in {"X-API-Key": key, **request.headers}.items():
        connection.putheader(name, value)
    connection.putheader("Content-Length", str(len(request.body)))
    connection.endheaders(request.body)
    reply = connection.getresponse()
    return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()


def fault_of(
    request: HostileRequest, status: int, headers: dict[str, str], body: bytes
) -> str | None:
    """Return the fault of a reply; None if it has none."""
    if status >= 500:
        return "failed"
    if request.is_refused and status < 400:
        return "got in"
    if not 200 <= status < 300 and not 400 <= status < 500:
        return "neither refused nor answered"
    if request.kind == "agent":
        # Errors have the shape of the agents' protocol.
        return "tells of the other index" if b'"tables"' in body and b"secret" in body else None
    kind = headers.get("content-type", "").partition(";")[0]
    if status >= 400:
        # Other protocols have errors of their own shapes.
        shapes = [shape for start, shape in SHAPES.items() if request.path.startswith(start)]
        media, shape = shapes[0] if shapes else ("application/problem+json", PROBLEM)
        if kind != media or set(json.loads(body)) != shape:
            return "not in the shape of errors"
    elif kind not in ("application/json", "text/event-stream", "application/octet-stream"):
        return f"could be shown as {kind}"
    if headers.get("x-content-type-options") != "nosniff" or "set-cookie" in headers:
        return "headers are wrong"
    if "x-evil" in headers or b"root:" in body or b"Traceback" in body or b"site-packages" in body:
        return "gives something away"
    return None


def test_no_hostile_request_gets_in(
    attacked: tuple[Served, RawConnection, str], sample_project: Path
) -> None:
    served, connection, key = attacked
    requests = list(hostile_requests(served.app.openapi()))
    faults, kinds = [], Counter(request.kind for request in requests)
    for request in requests:
        status, headers, body = send(connection, request, key)
        fault = fault_of(request, status, headers, body)
        if str(sample_project.parent).encode() in body:
            fault = "tells a path of the server"
        if fault:
            faults.append(f"{status} {fault}: {request} -> {body[:200]!r}")
    assert not faults, "\n".join(faults)
    assert min(kinds[kind] for kind in ("path", "index", "query", "body", "method")) >= 10
    assert sum(kinds.values()) >= 300


@pytest.mark.parametrize(
    "credential",
    [
        "",
        "Bearer",
        "Bearer null",
        "Bearer gri_000000000000_" + "A" * 43,
        "Bearer ' OR '1'='1",
        "Bearer " + "x" * 10_000,
        "Bearer %00",
        "Basic Z3JpXw==",
        "Bearer \xff\xfe",
        "Bearer gri_*_*",
    ],
)
def test_no_guessed_key_gets_in(
    attacked: tuple[Served, RawConnection, str], credential: str
) -> None:
    _, connection, key = attacked
    for value in (credential, credential.removeprefix("Bearer ")):
        for name in ("Authorization", "X-API-Key"):
            request = HostileRequest("key", "GET", "/v1/indexes", {"X-API-Key": "", name: value})
            status, headers, body = send(connection, request, "")
            assert status == 401
            assert fault_of(request, status, headers, body) is None
    # Part of a valid key is not valid.
    cut = HostileRequest("key", "GET", "/v1/indexes", {"X-API-Key": key[:-1]})
    assert send(connection, cut, "")[0] == 401


@pytest.mark.parametrize(("is_known", "status"), [(False, 401), (True, 403)])
def test_an_upload_is_refused_before_it_is_read(
    attacked: tuple[Served, RawConnection, str], is_known: bool, status: int
) -> None:
    served, _, key = attacked
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.putrequest("POST", "/v1/indexes/open/files")
    connection.putheader("X-API-Key", key if is_known else "guess")
    connection.putheader("Content-Type", "multipart/form-data; boundary=x")
    connection.putheader("Content-Length", "50000000")
    # Nothing of the body is ever sent.
    connection.endheaders()
    reply = connection.getresponse()
    assert (reply.status, set(json.loads(reply.read()))) == (status, PROBLEM)
    connection.close()


SMUGGLED = b"GET /v1/indexes/secret HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        f"Content-Length: {len(SMUGGLED)}\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        f"Content-Length: 0\r\nContent-Length: {len(SMUGGLED)}\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "X-Forwarded-For: 127.0.0.1\r\nX-Original-URL: /metrics\r\n",
        "X-Forwarded-Host: localhost\r\nForwarded: for=127.0.0.1\r\n",
        "X-HTTP-Method-Override: DELETE\r\nConnection: X-API-Key\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade\r\n",
        "Expect: 100-continue\r\n",
        "Fold: a\r\n X-API-Key: b\r\n",
        "Null: a\x00b\r\n",
    ],
)
def test_no_smuggled_header_gets_in(attacked: tuple[Served, RawConnection, str], head: str) -> None:
    """Neither the outer request nor the one in its body gets data: both lack a key."""
    served, _, _ = attacked
    start = "POST /v1/indexes/open/ask HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(f"{start}{head}\r\n".encode("latin-1") + SMUGGLED)
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    statuses = [line.split()[1] for line in received.split(b"\r\n") if line.startswith(b"HTTP/1.1")]
    assert statuses
    assert {status[:1] for status in statuses} <= {b"1", b"4", b"5"}
    assert b'"version"' not in received
    assert b"500" not in statuses
