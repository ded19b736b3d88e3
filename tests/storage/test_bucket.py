"""Objects in a bucket, and what a failing server does to them."""

import base64
import hmac
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from graphrag_index.errors import SettingsError, TableError
from graphrag_index.storage import bucket as bucket_module
from graphrag_index.storage.bucket import Bucket, copies_folder, is_bucket, read_aws_profile
from tests.fixtures.google_server import serve_google_objects, set_google_credentials
from tests.fixtures.object_server import FaultyProxy, new_bucket, serve_objects, set_credentials

# The account that every Azurite has.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
API = "2021-12-02"
_names = count(1)
VARIABLES = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "REGION", "DEFAULT_REGION", "PROFILE")
# A server at which nothing listens.
NOBODY = "http://127.0.0.1:9"


@contextmanager
def serve_azure_objects() -> Iterator[str]:
    """Start the emulator; yield its address. Tests are skipped where it is not installed."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite-blob is not installed")
    command = [program, "--inMemoryPersistence", "--blobPort", "0", "--disableTelemetry"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            assert process.stdout is not None
            found = (re.search(r"listen.*(http://[\d.]+:\d+)", line) for line in process.stdout)
            yield next(match[1] for match in found if match)
        finally:
            process.kill()


def new_container(server: str) -> str:
    """Create a container, and return the address of a folder in it."""
    name, date = f"container-{next(_names)}", formatdate(usegmt=True)
    headers = {"x-ms-date": date, "x-ms-version": API}
    signed = "PUT" + "\n" * 12 + "".join(f"{key}:{text}\n" for key, text in headers.items())
    # The emulator has the account in the path too.
    signed += f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    digest = hmac.digest(base64.b64decode(KEY), signed.encode(), "sha256")
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    url = f"{server}/{ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers)).close()
    return f"az://{name}/base?endpoint={server}/{ACCOUNT}"


def set_azure_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)


@pytest.fixture(scope="module", params=["s3", "gs", "az"])
def provider(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A server of each provider, and its address."""
    servers = {"s3": serve_objects, "gs": serve_google_objects, "az": serve_azure_objects}
    with servers[request.param]() as address:
        yield request.param, address


@pytest.fixture
def proxy(provider: tuple[str, str]) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(provider[1])
    yield proxy
    proxy.close()


@pytest.fixture
def bucket(
    provider: tuple[str, str], proxy: FaultyProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Bucket:
    scheme, server = provider
    if scheme == "s3":
        set_credentials(monkeypatch)
        address = new_bucket(server)
    elif scheme == "gs":
        set_google_credentials(monkeypatch, tmp_path)
        address = f"gs://{tmp_path.name}/base?endpoint={server}"
    else:
        set_azure_credentials(monkeypatch)
        address = new_container(server)
    return Bucket(address.replace(server, proxy.address))


def test_an_address_of_a_bucket_is_told_from_a_folder() -> None:
    assert all(map(is_bucket, ["s3://a/b", "gs://a", "az://a/b?endpoint=http://c"]))
    assert not any(map(is_bucket, ["output", "/s3/a", "C:\\data", "C:/data", "s3"]))
    assert Bucket("s3://a/b/?endpoint=http://c&region=d").url == "s3://a/b"


@pytest.mark.parametrize("address", ["s3:/a/b", "s3:a", "gcs://a/b", "http://a/b"])
def test_an_address_that_is_no_folder_either_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="an address begins with s3://, gs:// or az://"):
        is_bucket(address)


WRONG = ["s3://", "s3:///folder", "s3://a/b?host=c", "s3://a/b?endpoint=localhost:9000"]


@pytest.mark.parametrize("address", WRONG)
def test_an_address_that_names_no_bucket_is_refused(address: str) -> None:
    with pytest.raises(SettingsError, match="write it as s3://bucket/folder"):
        Bucket(address)


def test_an_object_is_created_once(bucket: Bucket) -> None:
    assert bucket.create("a", b"one")
    # As if the reply to the first request was lost, and the request repeated.
    assert bucket.create("a", b"one")
    assert not bucket.create("a", b"two")
    found = bucket.read("a")
    assert found is not None
    assert found[0] == b"one"
    assert bucket.read("a", unless=found[1]) is None


def test_an_object_is_replaced_only_by_who_has_seen_it(bucket: Bucket) -> None:
    first = bucket.replace("a", b"one", None)
    assert first is not None
    assert bucket.replace("a", b"other", None) is None
    second = bucket.replace("a", b"two", first)
    assert second not in (None, first)
    assert bucket.replace("a", b"three", first) is None
    assert bucket.read("a") == (b"two", second)


def test_files_are_uploaded_downloaded_listed_and_deleted(bucket: Bucket, tmp_path: Path) -> None:
    # Larger than a part of an upload in several parts.
    content = bytes(range(256)) * 24_000
    (tmp_path / "file").write_bytes(content)
    bucket.upload(tmp_path / "file", "objects/x")
    bucket.download("objects/x", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert [one["path"] for one in bucket.list_objects("objects/")] == ["objects/x"]
    bucket.delete(["objects/x", "objects/none"])
    assert list(bucket.list_objects()) == []
    with pytest.raises(FileNotFoundError):
        bucket.download("objects/x", tmp_path / "copy")
    with pytest.raises(FileNotFoundError):
        bucket.read("objects/x")


@pytest.mark.parametrize("fault", [500, 503, "slow", "lost reply"])
def test_a_request_that_fails_once_is_repeated(
    bucket: Bucket, proxy: FaultyProxy, fault: bucket_module.Any
) -> None:
    proxy.faults += [("PUT", "/a", fault), ("GET", "/a", fault)]
    assert bucket.create("a", b"one")
    assert bucket.read("a") is not None
    assert not proxy.faults


def test_a_request_without_a_reply_in_time_is_repeated(
    bucket: Bucket, proxy: FaultyProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "REPLY_SECONDS", 1)
    proxy.faults += [("PUT", "/a", "hang"), ("GET", "/a", "hang"), ("GET", "/a", "hang")]
    assert bucket.create("a", b"one")
    assert bucket.read("a") is not None
    bucket.download("a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"one"
    proxy.faults += [("DELETE", "/a", "hang"), ("POST", "delete", "hang")]
    bucket.delete(["a"])
    with pytest.raises(FileNotFoundError):
        bucket.read("a")
    assert len(proxy.requests) >= 8


def test_an_object_may_take_longer_than_a_reply(
    bucket: Bucket, proxy: FaultyProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "REPLY_SECONDS", 1)
    monkeypatch.setattr(bucket_module, "RETRY_SECONDS", 1)
    content = bytes(range(256)) * 8_000
    bucket.create("a", content)
    proxy.faults += [("GET", "/a", "drip")]
    bucket.download("a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == content
    assert [method for method, _ in proxy.requests].count("GET") == 1


def test_a_reply_that_breaks_off_is_asked_for_again(
    bucket: Bucket, proxy: FaultyProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The library goes on with some broken replies itself, and so often.
    monkeypatch.setattr(bucket_module, "MAX_RETRIES", 2)
    monkeypatch.setattr(bucket_module, "MAX_HASTY_RETRIES", 2)
    monkeypatch.setattr(bucket_module, "LATE_PAUSES", (0, 0))
    content = b"one" * 100_000
    bucket.create("a", content)
    proxy.faults += [("GET", "/a", "cut")] * 2
    found = bucket.read("a")
    assert found is not None
    assert found[0] == content
    proxy.faults += [("GET", "/a", "cut")] * 2
    bucket.download("a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == content
    # The replies that refuse a request have a content too.
    proxy.faults += [("GET", "/none", "cut"), ("PUT", "/a", "cut")]
    with pytest.raises(FileNotFoundError):
        bucket.read("none")
    assert not bucket.create("a", b"two")
    assert not proxy.faults
    proxy.faults += [("GET", "/a", "cut")] * 99
    with pytest.raises(TableError, match="cannot be reached, or failed at a; try again"):
        bucket.read("a")


def test_a_conflict_with_another_request_is_repeated(
    bucket: Bucket, proxy: FaultyProxy, tmp_path: Path
) -> None:
    proxy.faults += [("PUT", "/a", 409)]
    etag = bucket.replace("a", b"one", None)
    proxy.faults += [("PUT", "/a", 409), ("PUT", "/a", 412)]
    assert bucket.replace("a", b"two", etag) is not None
    proxy.faults += [("PUT", "/a", 409), ("POST", "delete", 409), ("DELETE", "/a", 409)]
    (tmp_path / "a").write_bytes(b"three")
    bucket.upload(tmp_path / "a", "a")
    bucket.delete(["a"])
    with pytest.raises(FileNotFoundError):
        bucket.read("a")
    assert ("PUT", "/a", 409) not in proxy.faults


def test_a_server_that_always_fails_is_told_in_one_sentence(
    bucket: Bucket, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "MAX_HASTY_RETRIES", 1)
    proxy.faults += [("PUT", "/a", 503)] * 9
    with pytest.raises(TableError, match=r"cannot be reached, or failed at a; try again.*503"):
        bucket.create("a", b"one")


def test_a_bucket_that_has_answered_is_waited_for(
    bucket: Bucket, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "MAX_HASTY_RETRIES", 1)
    many = 4
    bucket.create("a", b"one")
    proxy.faults += [("GET", "/a", 503)] * many
    found = bucket.read("a")
    assert found is not None
    assert found[0] == b"one"
    # A reader that has a version of its own, and a new address, are told soon.
    for impatient in (bucket.hasty, Bucket(bucket.address)):
        proxy.faults += [("GET", "/a", 503)] * many
        with pytest.raises(TableError, match="cannot be reached, or failed at a; try again"):
            impatient.read("a")
        proxy.faults.clear()


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_told(bucket: Bucket, proxy: FaultyProxy, status: int) -> None:
    proxy.faults += [("GET", "/a", status)]
    with pytest.raises(TableError, match="check the credentials"):
        bucket.read("a")


def test_a_bucket_that_does_not_exist_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    with serve_objects() as server:
        missing = Bucket(f"s3://missing/base?endpoint={server}&region=us-east-1")
        with pytest.raises(TableError, match="no bucket of s3://missing/base: create it"):
            missing.create("a", b"one")
        with pytest.raises(TableError, match="no bucket of s3://missing/base: create it"):
            list(missing.list_objects())
        with pytest.raises(FileNotFoundError):
            missing.read("a")


@pytest.mark.parametrize(
    "variables",
    [
        {"AWS_ENDPOINT_URL": "SERVER"},
        {"AWS_ENDPOINT_URL": "SERVER/"},
        {"AWS_ENDPOINT_URL_S3": "SERVER"},
        {"AWS_ENDPOINT": "SERVER"},
        {"AWS_ENDPOINT_URL": "SERVER", "AWS_ALLOW_HTTP": "true"},
        {"AWS_ENDPOINT_URL": "SERVER", "AWS_ALLOW_HTTP": "false"},
        {"AWS_ENDPOINT_URL": "SERVER", "AWS_REGION": "eu-west-1"},
        {"AWS_ENDPOINT_URL_S3": "SERVER", "AWS_ENDPOINT_URL": NOBODY},
        {"AWS_ENDPOINT_URL": "SERVER", "AWS_ENDPOINT": NOBODY},
        {"AWS_PROFILE": "own"},
        {"AWS_PROFILE": "own", "AWS_ENDPOINT_URL": "SERVER"},
    ],
)
def test_the_usual_variables_name_the_server(
    server: str, variables: dict[str, str], files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = NOBODY if len(variables) > 1 else server
    (files / "config").write_text(f"[profile own]\nendpoint_url = {endpoint}\n")
    (files / "credentials").write_text(
        "[default]\naws_access_key_id=a\naws_secret_access_key=b\n"
        "[own]\naws_access_key_id=a\naws_secret_access_key=b\n"
    )
    address, _, _ = new_bucket(server).partition("?")
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("SERVER", server))
    assert Bucket(address).create("a", b"one")
    assert Bucket(address).read("a") is not None


def test_the_variable_of_each_provider_names_its_server(
    provider: tuple[str, str], bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {
        "s3": "AWS_ENDPOINT_URL",
        "gs": "STORAGE_EMULATOR_HOST",
        "az": "AZURE_STORAGE_ENDPOINT",
    }
    address, _, query = bucket.address.partition("?")
    here = copies_folder(address, "indexes")
    monkeypatch.setenv(variables[provider[0]], parse_qs(query)["endpoint"][0])
    assert Bucket(address).create("a", b"one")
    assert bucket.read("a") is not None
    # Copies of two servers do not mix.
    assert copies_folder(address, "indexes") != here


WRONG_SERVERS = (
    *("", "localhost:9000", "http://", "http:///x", "ftp://x", "http://[", "http://x:port"),
    *("http://x:99999", "http://a b:1", "http://x\n", "http://é:1", "http://x?y", " http://x"),
)


@pytest.mark.parametrize("server", WRONG_SERVERS)
def test_a_variable_that_names_no_server_is_refused(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    with pytest.raises(SettingsError, match=r"AWS_ENDPOINT_URL is .* no address of a server: set"):
        Bucket("s3://a/b")


@pytest.mark.parametrize("server", WRONG_SERVERS[1:9])
def test_a_profile_that_names_no_server_is_refused(server: str, files: Path) -> None:
    (files / "config").write_text(f"[default]\nendpoint_url = {server}\n")
    with pytest.raises(SettingsError, match=r"endpoint_url of the profile default is .* set"):
        Bucket("s3://a/b").read("x")


def test_a_variable_that_the_library_prefers_to_the_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://other")
    assert Bucket("s3://a/b?endpoint=http://c").url == "s3://a/b"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://c")
    assert Bucket("s3://a/b?endpoint=http://c").url == "s3://a/b"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://other")
    with pytest.raises(SettingsError, match="AWS_ENDPOINT_URL_S3 name different servers: unset"):
        Bucket("s3://a/b?endpoint=http://c")


def test_missing_credentials_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    monkeypatch.setattr(bucket_module, "MAX_HASTY_RETRIES", 0)
    # The server for credentials of machines: nothing listens at this one.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(bucket_module, "CREDENTIAL_SERVERS", ("127.0.0.1:9",))
    with pytest.raises(TableError, match="There are no credentials for s3://a/b: put them into"):
        Bucket("s3://a/b").read("x")


@pytest.fixture
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


@pytest.mark.usefixtures("files")
def test_a_profile_is_read_from_both_files(monkeypatch: pytest.MonkeyPatch) -> None:
    default = {"access_key_id": "one", "secret_access_key": "a%b", "region": "eu-west-1"}
    assert read_aws_profile() == default
    monkeypatch.setenv("AWS_PROFILE", "other")
    other = {"access_key_id": "two", "secret_access_key": "c", "session_token": "d"}
    assert read_aws_profile() == {**other, "region": "eu-west-2"}
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    assert read_aws_profile() == other


@pytest.mark.usefixtures("files")
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


@pytest.mark.usefixtures("files")
def test_requests_are_signed_with_the_key_of_the_profile() -> None:
    with serve_objects() as server:
        proxy = FaultyProxy(server)
        bucket = Bucket(new_bucket(server).replace(server, proxy.address))
        bucket.create("a", b"one")
        assert "Credential=one/" in proxy.last_authorization
        proxy.close()
