"""A folder of documents in a bucket, fetched to this machine: changed objects only."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from filelock import FileLock

from graphrag_index.errors import InputError
from graphrag_index.storage.atomic import temporary_path, write_json
from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.working_copy import TRANSFERS_AT_ONCE, copies_folder


@cache
def fetch_folder(address: str) -> Path:
    """Make a folder on this machine equal to the objects at an address, and return it.

    An object is fetched if its etag or its size has changed. Files whose objects are gone are
    deleted. Raises `InputError` if there is no object.
    """
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
