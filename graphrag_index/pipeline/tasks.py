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
from typing import Any, NamedTuple

from graphrag_index import __version__
from graphrag_index.storage.bucket import Bucket

WORK = "work"
LEADER, BOARD = f"{WORK}/leader.json", f"{WORK}/board.json"
# A task whose workers were killed this often is not tried again.
MAX_ATTEMPTS = 3
# Shortest pause between two rounds, and longest with and without open tasks, in seconds.
MIN_PAUSE, MAX_BUSY_PAUSE, MAX_PAUSE = 0.1, 0.25, 1.0


class Result(NamedTuple):
    """The result of a task: what is told about it, and its content."""

    header: Mapping[str, Any]
    content: bytes

    def encode(self) -> bytes:
        return json.dumps(dict(self.header)).encode() + b"\n" + self.content

    @classmethod
    def decode(cls, encoded: bytes) -> "Result":
        header, _, content = encoded.partition(b"\n")
        return cls(json.loads(header), content)

    @property
    def is_final(self) -> bool:
        """Whether the task is done; a request to a model that failed may be sent again."""
        return not self.header.get("failed")


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
    if not bucket.exists(LEADER):
        bucket.delete(sorted(str(one["path"]) for one in bucket.list_objects(f"{WORK}/")))
