"""Operation: ids, logs, metrics, limits of questions, slow clients and a graceful end."""

import asyncio
import http.client
import json
import logging
import re
import shutil
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import Response
from fastapi.testclient import TestClient

from graphrag_server import app, request_recorder
from graphrag_server.app import JsonFormatter, create_app
from graphrag_server.hosted_index import HostedIndex
from graphrag_server.jobs.job_store import JobState, JobStore
from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.commands import call, wait_for
from tests.fixtures.served import Served, project_with_model, serve
from tests.model_server import Server
from tests.server.conftest import ADDRESS

ASK = "/v1/indexes/sample/search/basic"
QUESTION = {"question": "Who was Tom Crean?"}
SAMPLE = re.compile(r'graphrag_[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? [0-9.e+-]+')


@pytest.fixture
def priced_project(tmp_path: Path, sample_project: Path, model_server: Server) -> Path:
    return project_with_model(tmp_path / "priced", sample_project, model_server.url)


@pytest.mark.parametrize("path", ["/", "/health", "/v1/indexes", "/nothing", "/v1/indexes/x"])
def test_every_reply_has_an_id_and_allows_nothing_to_run(
    sample_client: TestClient, path: str
) -> None:
    headers = sample_client.get(path, headers={"X-Request-ID": "mine-1"}).headers
    assert headers["x-request-id"] == "mine-1"
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_an_id_that_could_forge_a_log_line_is_replaced(sample_client: TestClient) -> None:
    for given in ('a"b', "x" * 65, "a b", "é"):
        reply = sample_client.get("/health", headers={"X-Request-ID": given.encode("latin-1")})
        assert re.fullmatch(r"[0-9a-f]{16}", reply.headers["x-request-id"])


def test_an_address_is_printed_only_if_the_server_starts(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").touch()
    served = call(tmp_path, "serve", "--port", "0")
    assert (served.returncode, served.stdout) == (2, "")
    assert "workflows/embedded.yaml is missing" in served.stderr


def test_an_unexpected_failure_is_told_without_its_text(
    sample_project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(ServerSettings(indexes={"sample": sample_project}))

    @app.get("/broken")
    def break_down() -> None:
        raise ZeroDivisionError("a secret")

    with TestClient(app, base_url=ADDRESS) as client:
        reply = client.get("/broken")
    assert (reply.status_code, reply.json()["code"]) == (500, "internal_error")
    assert "a secret" not in reply.text
    assert reply.headers["content-security-policy"]
    assert "a secret" in caplog.text


def test_pages_of_allowed_origins_read_replies(sample_project: Path) -> None:
    settings = ServerSettings(indexes={"s": sample_project}, allowed_origins=["https://x.org"])
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        headers = {"Origin": "https://x.org", "Access-Control-Request-Method": "POST"}
        assert client.options("/v1/indexes", headers=headers).is_success
        replies = [
            client.get("/v1/indexes", headers={"Origin": origin}).headers
            for origin in ("https://x.org", "https://y.org")
        ]
    allowed = [headers.get("access-control-allow-origin") for headers in replies]
    assert allowed == ["https://x.org", None]


def test_a_large_body_is_refused(sample_client: TestClient) -> None:
    reply = sample_client.post(ASK, json={"question": "x" * 1_000_001})
    assert (reply.status_code, reply.headers["content-type"]) == (413, "application/problem+json")


def test_a_log_line_is_json_without_the_question(
    sample_client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "graphrag_server")
    assert sample_client.get("/v1/indexes/sample/entities?q=Crean").is_success
    reply = sample_client.post(ASK, json=QUESTION)
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert "Crean" not in "".join(lines)
    listed, *requests = [line for line in map(json.loads, lines) if line["message"] == "request"]
    assert listed["path"] == "/v1/indexes/sample/entities"
    questions = [line for line in map(json.loads, lines) if line["message"] == "question"]
    assert len(requests) == len(questions) == 1
    assert {line["request_id"] for line in requests + questions} == {reply.headers["x-request-id"]}
    assert (requests[0]["status"], requests[0]["path"], requests[0]["caller"]) == (
        200,
        ASK,
        "local",
    )
    assert (questions[0]["outcome"], questions[0]["index"]) == ("answered", "sample")


def test_a_log_record_is_one_line_of_ascii() -> None:
    record = logging.makeLogRecord({"msg": "a\nb\u2028\x1b[31m", "levelname": "INFO"})
    assert JsonFormatter().format(record).isascii()
    assert "\n" not in JsonFormatter().format(record)


def test_metrics_count_requests_and_questions(priced_project: Path, model_server: Server) -> None:
    with TestClient(
        create_app(ServerSettings(indexes={"sample": priced_project})), base_url=ADDRESS
    ) as client:
        assert client.post(ASK, json=QUESTION).is_success
        assert client.get("/v1/indexes/x").status_code == 404
        text = client.get("/metrics").text
    values = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in values)
    found = dict(line.rsplit(" ", 1) for line in values)
    request = 'route="/v1/indexes/{index}",method="GET",status="404"'
    assert found[f"graphrag_requests_total{{{request}}}"] == "1"
    outcome = 'index="sample",method="basic",outcome="answered"'
    assert found[f"graphrag_questions_total{{{outcome}}}"] == "1"
    assert float(found['graphrag_question_seconds_total{method="basic"}']) > 0
    assert float(found['graphrag_tokens_total{index="sample",kind="prompt"}']) > 100
    assert float(found['graphrag_cost_dollars_total{index="sample"}']) > 0
    assert found['graphrag_index_version{index="sample"}'] == "1"
    assert found["graphrag_questions_running"] == "0"
    assert found['graphrag_jobs{index="sample",state="running"}'] == "0"


def test_limits_of_a_key_refuse_its_questions(priced_project: Path, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path)
    ask = frozenset({Scope.ASK})
    quick = {"X-API-Key": keys.add("quick", ask, questions_per_minute=1)}
    cheap = {"X-API-Key": keys.add("cheap", ask, daily_cost=0.000001)}
    settings = ServerSettings(indexes={"sample": priced_project}, state_folder=tmp_path)
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        assert client.get("/metrics", headers=quick).status_code == 403
        # A repeated question is answered from the ledger, at no cost.
        for question, headers in (("Who was Tom Crean?", quick), ("Who was Amundsen?", cheap)):
            assert client.post(ASK, json={"question": question}, headers=headers).is_success
        fast = client.post(ASK, json={**QUESTION, "stream": True}, headers=quick)
        paid = client.post(ASK, json=QUESTION, headers=cheap)
    assert (fast.status_code, fast.json()["code"]) == (429, "rate_limit")
    assert 0 < int(fast.headers["retry-after"]) <= 60
    assert (paid.status_code, paid.json()["code"]) == (402, "daily_cost_limit")
    spent = {key.name: cost for key, cost in keys.list()}
    assert min(spent.values()) > 0.000001
    keys.close()


def test_a_damaged_index_is_not_ready_and_nobody_is_told_which(
    sample_project: Path, tmp_path: Path
) -> None:
    root = tmp_path / "broken"
    root.mkdir()
    shutil.copy(sample_project / "settings.yaml", root)
    (root / "output").mkdir()
    settings = ServerSettings(indexes={"secret": root})
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        replies = [client.get("/ready")]
        (root / "output" / "index.json").write_text("{", encoding="utf-8")
        replies.append(client.get("/ready"))
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/metrics").is_success
        shutil.copytree(sample_project / "output", root / "output", dirs_exist_ok=True)
        assert client.get("/ready").json() == {"status": "ready"}
    for reply, said in zip(replies, ("not been built", "log has the reason"), strict=True):
        assert (reply.status_code, reply.json()["code"]) == (503, "not_ready")
        assert said in reply.json()["detail"]
        assert "secret" not in reply.text
        assert str(root) not in reply.text


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no-output": lambda root: shutil.rmtree(root / "output"),
    "cut-pointer": lambda root: (root / "output" / "index.json").write_text("{"),
    "list-pointer": lambda root: (root / "output" / "index.json").write_text("[]"),
    "no-tables": lambda root: [path.unlink() for path in root.rglob("*.parquet")],
    "no-rows": lambda root: [path.unlink() for path in root.rglob("*.arrow")],
    "no-vectors": lambda root: shutil.rmtree(root / "output" / "lancedb"),
    "cut-tables": lambda root: [path.write_bytes(b"PAR1") for path in root.rglob("*.parquet")],
    "no-input": lambda root: shutil.rmtree(root / "input"),
    "resolutions": lambda root: (root / "resolutions.yaml").write_text("merge: 1"),
    "no-jobs": lambda root: (root / "output" / "jobs.db").write_bytes(b"no database"),
}


def test_messages_name_indexes_and_never_paths(
    project_of_two_versions: Path, tmp_path: Path
) -> None:
    indexes = {name: tmp_path / f"machine-{name}" for name in DAMAGES}
    for number, (name, root) in enumerate(indexes.items()):
        shutil.copytree(project_of_two_versions, root)
        DAMAGES[name](root)
        # Tables outside of the project have a path, too.
        moved = tmp_path / f"elsewhere-{name}" if number % 2 else root / "output"
        if (root / "output").exists():
            (root / "output").rename(moved)
        settings = f"workflow: embedded\noutput: {moved}\n"
        (root / "settings.yaml").write_text(settings, encoding="utf-8")
    jobs = JobStore(tmp_path / "elsewhere-no-vectors")
    job = jobs.create("run", None).id
    jobs.finish(job, JobState.FAILED, f"{indexes['no-vectors']}/settings.yaml is not valid.")
    app = create_app(ServerSettings(indexes=indexes, state_folder=tmp_path))
    paths = [path for path, operations in app.openapi()["paths"].items() if "get" in operations]
    replies = []
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        for name in indexes:
            chat = {"model": f"graphrag/{name}/ask", "messages": [{"role": "user", "content": "?"}]}
            replies.append(client.post("/v1/chat/completions", json=chat))
            replies.append(client.post(ASK.replace("sample", name), json=QUESTION))
            for path in paths:
                filled = path.replace("{index}", name).replace("{job}", job)
                filled = filled.replace("{table}", "entities")
                replies.append(client.get(re.sub(r"\{.*?\}", "0", filled)))
    assert [reply.text for reply in replies if str(tmp_path) in reply.text] == []
    assert "no-vectors/settings.yaml is not valid." in "".join(reply.text for reply in replies)
    statuses = Counter(reply.status_code for reply in replies)
    assert statuses[500] == 0
    assert statuses[503] > 50


@pytest.mark.parametrize("prefix", ["", "/docs/graph"])
def test_a_proxy_may_keep_or_cut_the_root_path(sample_project: Path, prefix: str) -> None:
    settings = ServerSettings(indexes={"s": sample_project}, root_path="/docs/graph")
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        assert client.get(f"{prefix}/v1/indexes").json()["indexes"][0]["name"] == "s"
        assert client.get(f"{prefix}/").headers["content-type"].startswith("text/html")


@pytest.fixture
def served(sample_project: Path) -> Iterator[Served]:
    with serve(ServerSettings(indexes={"sample": sample_project})) as served:
        yield served


def exchange(port: int, sent: bytes) -> tuple[int, dict[str, str]]:
    """Send bytes to a server, and return the status and the problem details of its reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(sent)
        with http.client.HTTPResponse(connection) as reply:
            reply.begin()
            return reply.status, json.loads(reply.read())


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 100_000,
        b"POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"POST /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: bad\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_invalid_http_gets_problem_details(served: Served, sent: bytes) -> None:
    status, problem = exchange(served.port, sent)
    assert (status, problem["code"]) in ((400, "invalid_http"), (501, "invalid_http"))


def test_slow_clients_are_ended(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "HEADER_SECONDS", 0.05)
    monkeypatch.setattr(request_recorder, "BODY_SECONDS", 0.05)
    status, problem = exchange(served.port, b"GET /health HT")
    assert (status, problem["code"]) == (408, "slow_headers")
    host = f"Host: 127.0.0.1:{served.port}\r\nContent-Type: application/json\r\n"
    body = f"POST {ASK} HTTP/1.1\r\n{host}Content-Length: 50\r\n\r\n{{"
    status, problem = exchange(served.port, body.encode())
    assert (status, problem["code"]) == (408, "request_timeout")
    monkeypatch.setattr(app, "MAX_CONNECTIONS", 0)
    assert exchange(served.port, b"")[1]["code"] == "too_many_connections"


def test_a_client_that_does_not_read_is_left(
    sample_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "UNREAD_SECONDS", 0.05)
    with serve(ServerSettings(indexes={"sample": sample_project})) as served:

        @served.app.get("/large")
        def read_large() -> Response:
            return Response(b"x" * 50_000_000)

        with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
            connection.sendall(b"GET /large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            connection.recv(1)
            wait_for(lambda: not served.server.server_state.connections)


def test_a_stopping_server_ends_its_streams_with_an_error(
    priced_project: Path, model_server: Server
) -> None:
    model_server.latency = 3.0
    with serve(ServerSettings(indexes={"sample": priced_project}), 0.1) as served:
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        body = json.dumps({**QUESTION, "stream": True})
        connection.request("POST", ASK, body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        wait_for(lambda: model_server.requests)
        served.stop()
        last = reply.read().decode().strip().split("\n\n")[-1]
        connection.close()
    assert last.startswith("event: error\n")
    assert json.loads(last.partition("data: ")[2])["code"] == "server_stopping"


def test_requests_wait_for_the_same_check(sample_project: Path) -> None:
    checked: list[int] = []

    class CountedIndex(HostedIndex):
        def _check(self, version: int) -> dict[str, int]:
            checked.append(version)
            time.sleep(0.05)
            if version == 3 and checked.count(3) == 1:
                raise OSError("broken")
            return {"version": version}

    async def ask() -> None:
        index = CountedIndex("sample", sample_project)
        found = await asyncio.gather(*(index.check(version) for version in (1, 2, 1)))
        assert [result["version"] for result in found] == [1, 2, 1]
        assert checked == [1, 2]
        # A check that failed is not kept.
        with pytest.raises(OSError, match="broken"):
            await index.check(3)
        assert await index.check(3) == {"version": 3}

    asyncio.run(ask())
