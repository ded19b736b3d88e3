"""Keys: their commands, what each allows, and its limits."""

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphrag_index.errors import GraphRAGError, SettingsError
from graphrag_server.access import AccessControl
from graphrag_server.app import create_app
from graphrag_server.keys import KEYS_FILE, DailyCostError, Key, KeyFile, RateError, Scope
from graphrag_server.server_settings import ServerSettings
from tests.fixtures.commands import Call
from tests.server.conftest import ADDRESS

READ = frozenset({Scope.READ})


@pytest.fixture
def keys(tmp_path: Path) -> Iterator[KeyFile]:
    file = KeyFile(tmp_path)
    yield file
    file.close()


@pytest.fixture
def client(sample_project: Path, keys: KeyFile) -> Iterator[TestClient]:
    """A client of a server with two names of one index, whose keys are those of `keys`."""
    indexes = {"one": sample_project, "two": sample_project}
    settings = ServerSettings(indexes=indexes, state_folder=keys.path.parent)
    with TestClient(create_app(settings), base_url=ADDRESS) as client:
        yield client


def found(keys: KeyFile, token: str) -> Key:
    key = keys.find(token)
    assert key is not None
    return key


def test_the_first_key_closes_a_running_server_and_revoking_it_does_not_open_it(
    client: TestClient, keys: KeyFile
) -> None:
    assert client.get("/v1/indexes").status_code == 200
    token = keys.add("ana", READ)
    reply = client.get("/v1/indexes")
    assert (reply.status_code, reply.json()["code"]) == (401, "missing_key")
    assert reply.headers["www-authenticate"] == "Bearer"
    bearer = {"Authorization": f"Bearer {token}"}
    assert client.get("/v1/indexes", headers=bearer).status_code == 200
    keys.revoke("ana")
    reply = client.get("/v1/indexes", headers=bearer)
    assert (reply.status_code, reply.json()["code"]) == (401, "invalid_key")


def test_any_valid_credential_is_enough_and_the_first_valid_one_counts(
    client: TestClient, keys: KeyFile
) -> None:
    one = keys.add("one", READ, frozenset({"one"}))
    two = keys.add("two", READ, frozenset({"two"}))

    def visible(*headers: tuple[str, str]) -> list[str]:
        reply = client.get("/v1/indexes", headers=list(headers))
        assert reply.status_code == 200, reply.text
        return [index["name"] for index in reply.json()["indexes"]]

    assert visible(("X-API-Key", one)) == ["one"]
    assert visible(("Authorization", f"bearer  {two} ")) == ["two"]
    assert visible(("Authorization", "Bearer wrong"), ("X-API-Key", one)) == ["one"]
    assert visible(("Authorization", f"Basic {two}"), ("X-API-Key", one)) == ["one"]
    assert visible(("X-API-Key", one), ("Authorization", f"Bearer {two}")) == ["two"]
    assert visible(("X-API-Key", "wrong"), ("X-API-Key", two)) == ["two"]


def test_an_index_of_another_key_looks_like_no_index(client: TestClient, keys: KeyFile) -> None:
    token = keys.add("one", READ, frozenset({"one"}))
    headers = {"X-API-Key": token, "X-Request-ID": "same"}
    assert client.get("/v1/indexes/one", headers=headers).json()["scopes"] == ["read"]
    other = client.get("/v1/indexes/two", headers=headers)
    missing = client.get("/v1/indexes/six", headers=headers)
    assert other.status_code == missing.status_code == 404
    assert other.text.replace("two", "six") == missing.text


def test_a_route_needs_its_scope(client: TestClient, keys: KeyFile) -> None:
    headers = {"X-API-Key": keys.add("one", frozenset({Scope.INDEX}))}
    reply = client.get("/v1/indexes/one", headers=headers)
    assert (reply.status_code, reply.json()["code"]) == (403, "missing_scope")


def test_a_token_is_stored_hashed_and_only_the_whole_token_is_valid(keys: KeyFile) -> None:
    token = keys.add("ana", READ)
    secret = token[-43:]
    for path in keys.path.parent.iterdir():
        assert secret.encode() not in path.read_bytes()
    assert keys.path.stat().st_mode & 0o077 == 0
    assert found(keys, token).name == "ana"
    last = "A" if token[-1] != "A" else "B"
    for wrong in ("", secret, token[:-1], token + "A", token[:-1] + last, token + "\n", "é" * 60):
        assert keys.find(wrong) is None


def test_names_of_valid_keys_are_unique(keys: KeyFile) -> None:
    keys.add("ana", READ)
    with pytest.raises(SettingsError, match="already"):
        keys.add("ana", READ)
    keys.revoke("ana")
    keys.add("ana", READ)
    assert [key.revoked is None for key, _ in keys.list()] == [False, True]


def test_questions_of_a_minute_are_counted_across_processes(keys: KeyFile, tmp_path: Path) -> None:
    """Each thread opens the file anew, as another process or a restarted server does."""
    token = keys.add("ana", READ, questions_per_minute=5)
    allowed, refused = [], []

    def ask() -> None:
        file = KeyFile(tmp_path)
        try:
            file.count_question(found(file, token))
            allowed.append(1)
        except RateError as error:
            refused.append(error.wait)
        file.close()

    threads = [threading.Thread(target=ask) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(allowed), len(refused)) == (5, 4)
    assert all(0 < wait <= 60 for wait in refused)
    # A minute later.
    with sqlite3.connect(keys.path) as database:
        database.execute("UPDATE questions SET asked = asked - 61")
    database.close()
    keys.count_question(found(keys, token))


def test_the_cost_of_a_day_is_limited(keys: KeyFile) -> None:
    key = found(keys, keys.add("ana", READ, daily_cost=0.5))
    for _ in range(3):
        keys.count_question(key)
        keys.add_cost(key, 0.2)
    with pytest.raises(DailyCostError, match=r"0\.5 dollars") as error:
        keys.count_question(key)
    assert 0 < error.value.wait <= 86_400
    assert [cost for _, cost in keys.list()] == [pytest.approx(0.6)]
    # The next day.
    with sqlite3.connect(keys.path) as database:
        database.execute("UPDATE spending SET day = '2000-01-01'")
    database.close()
    keys.count_question(key)


def test_a_damaged_file_closes_the_server(client: TestClient, keys: KeyFile) -> None:
    keys.path.write_bytes(b"no database" * 100)
    with pytest.raises(GraphRAGError, match=KEYS_FILE):
        keys.has_keys()
    reply = client.get("/v1/indexes")
    assert (reply.status_code, reply.json()["code"]) == (503, "keys_unavailable")
    assert str(keys.path.parent) not in reply.text


def test_keys_are_created_listed_and_revoked_by_commands(
    graphrag_index: Call, tmp_path: Path
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    assert (
        "create one with `graphrag-index keys add"
        in graphrag_index("keys", "list", "--root", root).out
    )
    limits = ("--questions-per-minute", "20", "--daily-cost", "1.5", "--index", "docs")
    added = graphrag_index("keys", "add", "ana", "--root", root, "--scope", "read", *limits)
    token = added.out.strip()
    file = KeyFile(root)
    key = found(file, token)
    file.close()
    assert (key.scopes, key.indexes) == (READ, frozenset({"docs"}))
    assert (key.questions_per_minute, key.daily_cost) == (20, 1.5)
    listed = graphrag_index("keys", "list", "--root", root).out
    assert "ana" in listed
    assert token[-43:] not in listed
    assert graphrag_index("keys", "revoke", "ana", "--root", root).out == "Revoked ana.\n"
    assert "revoked 2" in graphrag_index("keys", "list", "--root", root).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "ana", "--index", "other"), "There is no index 'other': the server has docs."),
        (("add", "ana", "--scope", "all"), "There is no scope 'all'"),
        (("add", "a\nb"), "printable"),
        (("revoke", "bo"), "There is no key"),
        (("add", "ana", "--config", "server.yaml"), "not both"),
    ],
)
def test_mistakes_in_commands_are_explained(
    graphrag_index: Call, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    result = graphrag_index("keys", *arguments, "--root", root)
    assert result.code == 2
    assert said in result.err


def settings(root: Path, **values: object) -> ServerSettings:
    return ServerSettings.model_validate({"indexes": {"docs": root}, **values})


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::", "example.org"])
def test_another_host_needs_a_key_or_the_word_of_its_operator(tmp_path: Path, host: str) -> None:
    with pytest.raises(SettingsError, match=r"keys add NAME`, or .*--no-auth\.$"):
        AccessControl(settings(tmp_path, host=host)).check_exposure()
    AccessControl(settings(tmp_path, host=host, no_auth=True)).check_exposure()
    keys = KeyFile(tmp_path)
    keys.add("ana", frozenset({Scope.READ}))
    access = AccessControl(settings(tmp_path, host=host))
    access.check_exposure()
    access.keys.close()
    keys.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_key(tmp_path: Path, host: str) -> None:
    access = AccessControl(settings(tmp_path, host=host))
    access.check_exposure()
    assert not access.needs_key()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8321", 200),
        ("localhost", 200),
        ("[::1]:80", 200),
        ("proxy.example.org", 200),
        ("evil.example.org", 421),
        ("127.0.0.1.evil.org", 421),
        ("localhost@evil.org", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_a_name_that_is_not_the_servers_is_refused(
    sample_project: Path, host: str, status: int
) -> None:
    app = create_app(settings(sample_project, allowed_hosts=["proxy.example.org"]))
    with TestClient(app, base_url=ADDRESS) as client:
        assert client.get("/v1/indexes", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    ("method", "origin", "status"),
    [
        ("POST", "http://127.0.0.1", 405),
        ("POST", "https://friend.org", 405),
        ("POST", "http://evil.org", 403),
        ("POST", "null", 403),
        ("POST", "http://127.0.0.1:9999", 403),
        ("DELETE", "http://evil.org", 403),
        ("GET", "http://evil.org", 200),
    ],
)
def test_a_page_of_another_site_cannot_write(
    sample_project: Path, method: str, origin: str, status: int
) -> None:
    app = create_app(settings(sample_project, allowed_origins=["https://friend.org"]))
    with TestClient(app, base_url=ADDRESS) as client:
        reply = client.request(method, "/v1/indexes", headers={"Origin": origin})
    assert reply.status_code == status
    if status == 403:
        assert reply.json()["code"] == "foreign_origin"


def test_a_server_open_to_all_answers_to_any_name(sample_project: Path) -> None:
    app = create_app(settings(sample_project, host="0.0.0.0", no_auth=True))
    with TestClient(app, base_url="http://any.example.org") as client:
        assert client.get("/v1/indexes").status_code == 200
