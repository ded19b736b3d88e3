"""Objects in a bucket by which several machines share a run.

    <bucket>/work/leader.json         the lease of the worker that leads the run
    <bucket>/work/board.json          the open tasks, or the end of the run
    <bucket>/work/workers/<id>        the other workers, and the number of their processes
    <bucket>/work/functions/<hash>    a function and its shared arguments, pickled
    <bucket>/work/tasks/<name>        the content of a task: a shard, or a request to a model
    <bucket>/work/leases/<name>       the lease of the worker that works on a task
    <bucket>/work/results/<name>      the result: a part, or the response of a model

The leader publishes tasks, and takes part in the work. A task is done when its result is there: the
result is created once, and never changes. A worker that leads after another finds these results.
"""

import json
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from hashlib import blake2b
from typing import Any, NamedTuple

from graphrag_index import __version__
from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.leases import Leases

WORK = "work"
LEADER, BOARD = f"{WORK}/leader.json", f"{WORK}/board.json"
# A task whose workers were killed this often is not tried again.
MAX_ATTEMPTS = 3
# Seconds of the lease of a process that deletes finished work; it is renewed.
SECONDS_TO_REMOVE = 30.0
# Shortest pause between two rounds, and longest with and without open tasks, in seconds.
MIN_PAUSE, MAX_BUSY_PAUSE, MAX_PAUSE = 0.1, 0.25, 1.0


class Result(NamedTuple):
    """The result of a task: what is told about it, and its content."""

    header: Mapping[str, Any]
    content: bytes

    def encode(self) -> bytes:
        header = {**self.header, "digest": _digest(self.content)}
        return json.dumps(header).encode() + b"\n" + self.content

    @classmethod
    def decode(cls, encoded: bytes) -> "Result | None":
        """Read a result; return None if it is damaged."""
        first, _, content = encoded.partition(b"\n")
        with suppress(ValueError):
            header = json.loads(first)
            if header.pop("digest", None) == _digest(content):
                return cls(header, content)
        return None

    @property
    def is_final(self) -> bool:
        """Whether the task is done; a request to a model that failed may be sent again."""
        return not self.header.get("failed")


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()


class Ending(NamedTuple):
    """The end of a run: the exit code of all workers, a line for the user, and kept results."""

    exit_code: int
    message: str
    kept: tuple[str, ...] = ()


def describe_program() -> dict[str, str]:
    """Return the versions that all workers of a run share: they decide about the results."""
    import polars

    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"program": __version__, "python": python, "polars": polars.__version__}


def read_board(bucket: Bucket, unless: str | None) -> tuple[Any, str] | None:
    """Read the board; None if its etag is `unless`, or if there is none."""
    try:
        found = bucket.read(BOARD, unless=unless)
    except FileNotFoundError:
        return None
    return (json.loads(found[0]), found[1]) if found is not None else None


def remove_finished_work(bucket: Bucket) -> None:
    """Delete what workers have kept for their next run, unless one of them leads a run."""
    with closing(Leases(bucket, SECONDS_TO_REMOVE)) as leases:
        if leases.take(LEADER) is not None:
            listed = (str(one["path"]) for one in bucket.list_objects(f"{WORK}/"))
            bucket.delete(sorted(path for path in listed if path != LEADER))
