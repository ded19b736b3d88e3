"""A server without keys: which addresses it may have, and which web pages it refuses."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from graphrag_index.errors import SettingsError
from graphrag_server.access import AccessControl
from graphrag_server.app import create_app
from graphrag_server.keys import KeyFile, Scope
from graphrag_server.server_settings import ServerSettings
from tests.server.conftest import ADDRESS


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
