"""Leases in a bucket: rights that a process has as long as it renews them.

A lease is an object that only one process can create. Its holder replaces it again and again. A
process that has seen the same object for the whole time of the lease takes the lease over, by a put
that succeeds for one process only. No clocks of two machines are compared: each process measures
the time itself.
"""

import json
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from graphrag_index.errors import TableError
from graphrag_index.storage.bucket import Bucket

# A lease is renewed this often within its time.
RENEWALS = 3


@dataclass
class Lease:
    """A lease that this process holds. `attempt` is 1 for the first holder of a task."""

    key: str
    etag: str
    attempt: int
    # Another process has taken the lease over, because this one was too slow.
    is_lost: bool = False


@dataclass(frozen=True)
class SeenLease:
    """A lease of another process, and the time since when it has not been renewed."""

    content: Any
    etag: str
    since: float  # in seconds of `time.monotonic`

    @property
    def is_expired(self) -> bool:
        return time.monotonic() - self.since > float(self.content["seconds"])


class Leases:
    """The leases of one process in a bucket. A thread renews them until they are released."""

    def __init__(self, bucket: Bucket, seconds: float) -> None:
        self.bucket, self.seconds = bucket, seconds
        self.holder = uuid.uuid4().hex
        self._held: dict[str, Lease] = {}
        self._seen: dict[str, SeenLease] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self, key: str, max_attempts: int | None = None) -> Lease | None:
        """Take a lease that is free or expired; return None if another process holds it.

        A lease that has expired `max_attempts` times is not taken.
        """
        attempt, etag = 1, None
        seen = self.look_at(key) if key in self._seen else None
        if seen is not None:
            attempt, etag = int(seen.content["attempt"]) + 1, seen.etag
            if not seen.is_expired or (max_attempts and attempt > max_attempts):
                return None
        taken = self.bucket.replace(key, self._make_content(attempt), etag)
        if taken is None:
            self.look_at(key)
            return None
        self._seen.pop(key, None)
        lease = Lease(key, taken, attempt)
        with self._lock:
            self._held[key] = lease
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew_forever, daemon=True)
                self._thread.start()
        return lease

    def look_at(self, key: str) -> SeenLease | None:
        """Read a lease of another process; None if there is none."""
        try:
            found = self.bucket.read(key)
        except FileNotFoundError:
            found = None
        if found is None:
            self._seen.pop(key, None)
            return None
        seen = self._seen.get(key)
        if seen is None or seen.etag != found[1]:
            seen = SeenLease(json.loads(found[0]), found[1], time.monotonic())
            self._seen[key] = seen
        return seen

    def keep(self, lease: Lease) -> None:
        """Stop to renew a lease, which nobody can take until its object is deleted or expires."""
        with self._lock:
            self._held.pop(lease.key, None)

    def release(self, lease: Lease) -> None:
        """Return a lease, so that another process can take it at once."""
        with self._lock:
            self._held.pop(lease.key, None)
            if not lease.is_lost:
                self.bucket.delete([lease.key])

    def close(self) -> None:
        """Return all leases."""
        self._closed.set()
        with suppress(TableError):  # They expire.
            for lease in list(self._held.values()):
                self.release(lease)

    def _make_content(self, attempt: int) -> bytes:
        # Each content is another one, so that its etag shows the renewal.
        content = {"holder": self.holder, "seconds": self.seconds, "attempt": attempt}
        return json.dumps({**content, "renewal": uuid.uuid4().hex}).encode()

    def _renew_forever(self) -> None:
        while not self._closed.wait(self.seconds / RENEWALS):
            for lease in list(self._held.values()):
                with self._lock:
                    if self._held.get(lease.key) is lease:
                        self._renew(lease)

    def _renew(self, lease: Lease) -> None:
        try:
            content = self._make_content(lease.attempt)
            etag = self.bucket.hasty.replace(lease.key, content, lease.etag)
        except TableError:
            return  # The next renewal may succeed before the lease expires.
        if etag is None:
            lease.is_lost = True
            del self._held[lease.key]
        else:
            lease.etag = etag
