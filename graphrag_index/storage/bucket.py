"""Objects in a bucket of S3, Google Cloud Storage or Azure, with conditional writing.

An address is `s3://bucket/folder`, `gs://bucket/folder` or `az://container/folder`. Behind a
question mark it may name another server of the same protocol, and a region:
`s3://bucket/folder?endpoint=http://localhost:9000&region=eu-central-1`. Without one, server and
credentials come from the environment, as the programs of the provider read them: variables such as
AWS_ENDPOINT_URL and AWS_ACCESS_KEY_ID, the files of `aws configure`, or the role of the machine.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from configparser import Error as ConfigError
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache, cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from graphrag_index.errors import InputError, SettingsError, TableError
from graphrag_index.storage.atomic import temporary_path, write_json

Found = TypeVar("Found")

SCHEMES = ("s3", "gs", "az")
# A request is repeated after a failure of the network or the server, with growing pauses: for this
# time, or for a few seconds where it is better to know soon that the bucket does not answer.
RETRY_SECONDS, MAX_RETRIES = 120, 1_000
MAX_HASTY_RETRIES = 8
# Seconds without a byte of a reply; a large object may take as long as its bytes come.
REPLY_SECONDS = 60
# Parts of a file, of 5 MB each, that are uploaded at once.
PARTS_AT_ONCE = 2
# Seconds to wait after the server has refused one of two requests at the same time.
CONFLICT_PAUSES = (0.1, 0.3, 1, 3, 10)
# Seconds to wait for an object that must be there: some servers show new objects late.
LATE_PAUSES = (0.1, 0.3, 1, 3)
# The library says so of a reply that ends early, the rest of which not every server sends, and of
# conditional puts and deletions without a reply: to repeat them does no harm here.
BROKEN_REPLIES = re.compile(
    r"response body error|Content-Range header not present|416 Range Not Satisfiable"
    r"|retries: 0,.*kind: (Timeout|Interrupted)",
    re.DOTALL,
)
# The library asks these servers for the credentials of the machine, if the environment has none.
CREDENTIAL_SERVERS = ("169.254.169.254", "metadata.google.internal")
TRANSFERS_AT_ONCE = 8
# The address of a server. The library does not survive another one.
_SERVER = re.compile(
    r"https?://([\w.-]+|\[[\da-f:]+\])(:(6[0-5]|[1-5]?\d)\d{0,3})?(/[!-~]*)?", re.A | re.I
)
# Variables that name another server of a protocol; the first that is set counts.
S3_ENDPOINT = "AWS_ENDPOINT_URL_S3"
ENDPOINT_VARIABLES = {
    "s3": (S3_ENDPOINT, "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("STORAGE_EMULATOR_HOST",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
# Names of values: in the files of `aws configure`, and in the settings of obstore.
_NAMES = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}


def is_bucket(address: str) -> bool:
    """Return whether an address names a bucket, such as `s3://bucket/folder`, and not a folder.

    Raises SettingsError for an address that is neither, such as `s3:/bucket`.
    """
    has_scheme, is_known = "://" in address, urlsplit(address).scheme in SCHEMES
    if has_scheme != is_known:
        raise SettingsError(
            f"{address} is neither a folder nor an address of a bucket: an address begins with "
            "s3://, gs:// or az://."
        )
    return is_known


def wait_for(read: Callable[[], Found]) -> Found:
    """Read an object that another process has written; raise FileNotFoundError if it is lost."""
    for pause in LATE_PAUSES:
        try:
            return read()
        except FileNotFoundError:
            time.sleep(pause)
    return read()


def _repeat_broken(request: Callable[[], Found]) -> Found:
    """Send a request; repeat it where the library does not: without a reply, or a whole one."""
    from obstore.exceptions import GenericError

    for pause in LATE_PAUSES:
        try:
            return request()
        except GenericError as error:
            if not BROKEN_REPLIES.search(str(error)):
                raise
        time.sleep(pause)
    return request()


def _repeat_conflicts(write: Callable[[], object]) -> None:
    """Write without a condition; repeat it after a conflict with another request."""
    from obstore.exceptions import AlreadyExistsError

    for pause in CONFLICT_PAUSES:
        with suppress(AlreadyExistsError):
            _repeat_broken(write)
            return
        time.sleep(pause)
    _repeat_broken(write)


class Bucket:
    """The objects below one folder of a bucket.

    Requests are repeated for long if `is_patient`, once the bucket has answered: an address that
    has never answered is probably wrong.
    """

    def __init__(self, address: str, *, is_patient: bool = True) -> None:
        self.address, self._is_patient, self._has_answered = address, is_patient, False
        self._stores: dict[int, Any] = {}  # by the number of retries
        parts = urlsplit(address)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        options = parse_qs(parts.query)
        unknown = options.keys() - {"endpoint", "region"}
        self._options = {name: values[-1] for name, values in options.items()}
        named = self._options.get("endpoint")
        if not parts.netloc or unknown or not _SERVER.fullmatch(named or "https://SERVER"):
            raise SettingsError(
                f"{address} is no address of a bucket: write it as s3://bucket/folder, or as "
                "s3://bucket/folder?endpoint=https://SERVER&region=REGION."
            )
        # The server that only the environment names; else empty.
        self.server_of_environment = "" if named else _find_server(parts.scheme)
        if self.server_of_environment:
            self._options["endpoint"] = self.server_of_environment
        elif parts.scheme == "s3" and os.environ.get(S3_ENDPOINT, named) != named:
            # The library would prefer this variable to the address.
            raise SettingsError(
                f"{address} and the variable {S3_ENDPOINT} name different servers: unset one."
            )
        self._is_google = parts.scheme == "gs"

    @cached_property
    def hasty(self) -> "Bucket":
        """The same objects, for requests that are repeated for a few seconds only."""
        return Bucket(self.address, is_patient=False)

    @property
    def _store(self) -> Any:
        max_retries = MAX_RETRIES if self._is_patient and self._has_answered else MAX_HASTY_RETRIES
        if max_retries not in self._stores:
            self._stores[max_retries] = self._open_store(max_retries)
        return self._stores[max_retries]

    def _open_store(self, max_retries: int) -> Any:
        try:
            from obstore.store import from_url
        except ModuleNotFoundError:
            raise SettingsError(
                f"{self.url} is in a bucket: install what reads it, "
                'pip install "graphrag-index[bucket]".'
            ) from None
        profile = read_aws_profile() if self.url.startswith("s3://") else {}
        config: Any = {**profile, **self._options}
        server = config.get("endpoint", "")
        if self._is_google and server:
            config["base_url"] = config.pop("endpoint")
        options: Any = {
            "timeout": timedelta(days=1),
            "read_timeout": timedelta(seconds=REPLY_SECONDS),
            "allow_http": server.lower().startswith("http://"),
        }
        retries: Any = {
            "max_retries": max_retries,
            "retry_timeout": timedelta(seconds=RETRY_SECONDS),
        }
        return from_url(self.url, config=config, client_options=options, retry_config=retries)

    def read(self, key: str, unless: str | None = None) -> tuple[bytes, str] | None:
        """Return the content and the etag of an object; None if its etag is `unless`.

        Raises FileNotFoundError if there is no such object.
        """
        from obstore.exceptions import NotModifiedError

        options: Any = {"if_none_match": unless.rpartition(" ")[2]} if unless else None
        with self._explain_errors(key), suppress(NotModifiedError):
            return _repeat_broken(lambda: self._get(key, options))
        return None

    def _get(self, key: str, options: Any) -> tuple[bytes, str]:
        found = self._store.get(key, options=options)
        return bytes(found.bytes()), self._etag(found.meta)

    def read_json(self, key: str) -> Any:
        """Read a small JSON object; raise FileNotFoundError if it is missing."""
        found = self.read(key)
        assert found is not None
        try:
            return json.loads(found[0])
        except ValueError:
            raise TableError(f"{self.url}/{key} is damaged: restore it from a backup.") from None

    def download(self, key: str, path: Path) -> None:
        """Write the content of an object to a file; raise FileNotFoundError if it is missing."""
        with self._explain_errors(key):
            _repeat_broken(lambda: self._get_to_file(key, path))

    def _get_to_file(self, key: str, path: Path) -> None:
        with path.open("wb") as file:
            for chunk in self._store.get(key):
                file.write(chunk)

    def upload(self, path: Path, key: str) -> None:
        """Upload a file. An object of the same name must have the same content."""
        with self._explain_errors(key, writes=True):
            # Parts that wait for a slow network must not wait for longer than REPLY_SECONDS.
            put = partial(self._store.put, key, path, max_concurrency=PARTS_AT_ONCE)
            _repeat_conflicts(put)

    def create(self, key: str, content: bytes) -> bool:
        """Create an object; return False if there is one with another content.

        A request that was repeated after a lost reply meets the object that it has created.
        """
        return self.replace(key, content, None) is not None

    def replace(self, key: str, content: bytes, etag: str | None) -> str | None:
        """Replace an object if it still has this etag, or create it if the etag is None.

        Returns the new etag; None if another writer was faster, with another content.
        """
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "create"
        if etag:
            generation, _, e_tag = etag.rpartition(" ")
            mode = {"e_tag": e_tag, **({"version": generation} if generation else {})}
        for pause in CONFLICT_PAUSES:
            with self._explain_errors(key, writes=True):
                try:
                    put = partial(self._store.put, key, content, mode=mode)
                    return self._etag(_repeat_broken(put))
                except (AlreadyExistsError, PreconditionError):
                    pass
            try:
                found = self.read(key)
            except FileNotFoundError:
                found = None
            if found is not None and found[0] == content:
                return found[1]
            if (found[1] if found is not None else None) != etag:
                return None
            # The object is as it was: the server refused two requests at the same time.
            time.sleep(pause)
        raise TableError(f"{self.url} refuses to write {key} again and again: try again later.")

    def delete(self, keys: list[str]) -> None:
        """Delete objects; objects that are gone already do not matter."""
        with self._explain_errors("objects"):
            if not keys:
                return
            try:
                _repeat_conflicts(lambda: self._store.delete(keys))
            except FileNotFoundError:
                # Azure and Google delete one after the other, and stop at one that is gone.
                for key in keys:
                    with suppress(FileNotFoundError):
                        self._store.delete(key)

    def list_objects(self, prefix: str | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the path, size, e_tag and last_modified of the objects below a prefix."""
        with self._explain_errors(prefix or "its list"):
            yield from _repeat_broken(
                lambda: [one for batch in self._store.list(prefix) for one in batch]
            )

    def _etag(self, described: Mapping[str, Any]) -> str:
        """Return the etag; Google compares generations when it writes, so they stand before it."""
        generation = f"{described['version']} " if self._is_google else ""
        return f"{generation}{described['e_tag']}"

    @contextmanager
    def _explain_errors(self, key: str, *, writes: bool = False) -> Iterator[None]:
        """Convert errors of the library into one sentence; FileNotFoundError of a read stays."""
        from obstore.exceptions import (
            BaseError,
            NotFoundError,
            PermissionDeniedError,
            UnauthenticatedError,
        )

        try:
            yield
            self._has_answered = True
        except (PermissionDeniedError, UnauthenticatedError):
            raise TableError(
                f"The bucket of {self.url} does not allow it ({key}): check the credentials in "
                "the environment, and what they may do."
            ) from None
        except (NotFoundError, FileNotFoundError):
            self._has_answered = True
            if writes:
                raise self._make_missing_error() from None
            raise FileNotFoundError(f"{self.url}/{key}") from None
        except (BaseError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            text = " ".join(re.split(r"Debug source|<\?xml", str(error))[0].split()).rstrip(" :")
            if "404 Not Found" in text:  # the list of a bucket that does not exist
                raise self._make_missing_error() from None
            if any(server in text for server in CREDENTIAL_SERVERS):
                raise TableError(
                    f"There are no credentials for {self.url}: put them into the environment, or "
                    f"give this machine a role. It says: {text}"
                ) from None
            raise TableError(
                f"{self.url} cannot be reached, or failed at {key}; try again. It says: {text}"
            ) from None

    def _make_missing_error(self) -> TableError:
        return TableError(f"There is no bucket of {self.url}: create it, or correct its name.")


def _find_server(scheme: str) -> str:
    """Return the server that a variable names; empty if none is set."""
    variables = [name for name in ENDPOINT_VARIABLES.get(scheme, ()) if name in os.environ]
    return (
        _check_server(f"The variable {variables[0]}", os.environ[variables[0]]) if variables else ""
    )


def _check_server(what: str, address: str) -> str:
    if not _SERVER.fullmatch(address):
        raise SettingsError(
            f"{what} is {address!r}, which is no address of a server: set it to http://HOST:PORT "
            "or https://HOST, or unset it."
        )
    return address


def read_aws_profile() -> dict[str, str]:
    """Read the profile in AWS_PROFILE, or `default`, unless the environment has credentials.

    The region of the environment is left to obstore. Raises SettingsError if AWS_PROFILE names a
    profile that is in neither file, or if a file is damaged.
    """
    if {"AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"} & os.environ.keys():
        return {}
    name, is_there = os.environ.get("AWS_PROFILE", "default"), False
    found: dict[str, str] = {}
    for variable, file, prefix in (
        ("AWS_CONFIG_FILE", "config", "" if name == "default" else "profile "),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", ""),
    ):
        path = Path(os.environ.get(variable) or Path("~/.aws", file)).expanduser()
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(path, encoding="utf-8")
        except (ConfigError, OSError, UnicodeError) as error:
            raise SettingsError(f"{path} cannot be read: {' '.join(str(error).split())}.") from None
        if parser.has_section(prefix + name):
            is_there = True
            found |= {
                _NAMES[key]: text for key, text in parser[prefix + name].items() if key in _NAMES
            }
    if "AWS_PROFILE" in os.environ and not is_there:
        raise SettingsError(f"The files in ~/.aws have no profile {name}, which AWS_PROFILE names.")
    if "endpoint" in found:
        _check_server(f"endpoint_url of the profile {name}", found["endpoint"])
    if {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys():
        found.pop("region", None)
    return found


def cache_folder() -> Path:
    """Return `$GRAPHRAG_INDEX_CACHE`, or `graphrag-index` in the user's cache folder."""
    if own := os.environ.get("GRAPHRAG_INDEX_CACHE"):
        return Path(own)
    user_folder = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(user_folder) if user_folder else Path.home() / ".cache") / "graphrag-index"


def copies_folder(address: str, kind: str) -> Path:
    """Return the folder on this machine for copies from an address."""
    bucket = Bucket(address)
    name = blake2b((address + bucket.server_of_environment).encode(), digest_size=8).hexdigest()
    return cache_folder() / kind / f"{bucket.url.rpartition('/')[2]}-{name}"


@cache
def fetch_folder(address: str) -> Path:
    """Make a folder on this machine equal to the objects at an address, and return it.

    An object is fetched if its etag or its size has changed. Files whose objects are gone are
    deleted. Raises `InputError` if there is no object.
    """
    from filelock import FileLock

    bucket, folder = Bucket(address), copies_folder(address, "inputs")
    folder.mkdir(parents=True, exist_ok=True)
    # Beside the folder, because all files in it are documents.
    path = folder.with_name(f"{folder.name}.json")
    with FileLock(folder.with_name(f"{folder.name}.lock")):
        known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        found = {one["path"]: one for one in bucket.list_objects() if _is_document(one["path"])}
        if not found:
            raise InputError(f"There is no document in {bucket.url}: name another folder.")
        etags = {name: [one["e_tag"], one["size"]] for name, one in found.items()}
        changed = [
            name
            for name, etag in etags.items()
            if known.get(name) != etag or not (folder / name).is_file()
        ]
        # A fetch that is interrupted must not take its old files for the new ones.
        write_json(path, {name: etag for name, etag in known.items() if name not in changed})

        def fetch(name: str) -> None:
            _fetch(bucket, found[name], folder / name)

        with ThreadPoolExecutor(TRANSFERS_AT_ONCE) as threads:
            list(threads.map(fetch, changed))
        for file in folder.rglob("*"):
            if file.is_file() and file.relative_to(folder).as_posix() not in found:
                file.unlink()
        write_json(path, etags)
    return folder


def _is_document(name: str) -> bool:
    """Return whether a key is a path of a file below the folder, and not an empty folder."""
    parts = name.split("/")
    return bool(parts[-1]) and not any(part in ("", ".", "..") for part in parts)


def _fetch(bucket: Bucket, listed: Mapping[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        bucket.download(listed["path"], temporary)
        if temporary.stat().st_size != listed["size"]:
            raise InputError(
                f"{bucket.url}/{listed['path']} was cut off or changed meanwhile: run again."
            )
        temporary.replace(path)
    except FileNotFoundError:
        raise InputError(
            f"{bucket.url}/{listed['path']} was deleted meanwhile: run again."
        ) from None
    finally:
        temporary.unlink(missing_ok=True)
