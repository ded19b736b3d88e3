"""Credentials in the files of `aws configure`."""

from pathlib import Path

import pytest

from graphrag_index.errors import SettingsError
from graphrag_index.storage.bucket import Bucket, read_aws_profile
from tests.fixtures.object_server import FaultyProxy, new_bucket, serve_objects

VARIABLES = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION", "DEFAULT_REGION", "PROFILE")


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-west-1\n[profile other]\nregion = eu-west-2\noutput = json\n"
    )
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = one\naws_secret_access_key = a%b\n"
        "[other]\naws_access_key_id = two\naws_secret_access_key = c\naws_session_token = d\n"
    )
    return tmp_path


def test_a_profile_is_read_from_both_files(monkeypatch: pytest.MonkeyPatch) -> None:
    default = {"access_key_id": "one", "secret_access_key": "a%b", "region": "eu-west-1"}
    assert read_aws_profile() == default
    monkeypatch.setenv("AWS_PROFILE", "other")
    other = {"access_key_id": "two", "secret_access_key": "c", "session_token": "d"}
    assert read_aws_profile() == {**other, "region": "eu-west-2"}
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    assert read_aws_profile() == other


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    assert read_aws_profile() == {}


def test_missing_files_are_no_profile(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in files.iterdir():
        path.unlink()
    assert read_aws_profile() == {}
    monkeypatch.setenv("AWS_PROFILE", "other")
    with pytest.raises(SettingsError, match="no profile other, which AWS_PROFILE names"):
        read_aws_profile()


def test_a_damaged_file_is_told(files: Path) -> None:
    (files / "credentials").write_text("aws_access_key_id = one\n")
    with pytest.raises(SettingsError, match=r"credentials cannot be read: "):
        read_aws_profile()


def test_requests_are_signed_with_the_key_of_the_profile() -> None:
    with serve_objects() as server:
        proxy = FaultyProxy(server)
        bucket = Bucket(new_bucket(server).replace(server, proxy.address))
        bucket.create("a", b"one")
        assert "Credential=one/" in proxy.last_authorization
        proxy.close()
