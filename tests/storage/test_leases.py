"""Leases in a bucket: one holder, and another one only after the first has gone silent."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from graphrag_index.storage.bucket import Bucket
from graphrag_index.storage.leases import Leases
from tests.fixtures.commands import MAX_SECONDS, wait_for
from tests.fixtures.object_server import FaultyProxy, new_bucket, set_credentials

# A holder that a busy machine stops for less keeps its lease.
SECONDS = 1.0


@pytest.fixture
def address(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    set_credentials(monkeypatch)
    return new_bucket(server)


def open_leases(address: str, seconds: float = SECONDS) -> "closing[Leases]":
    return closing(Leases(Bucket(address), seconds))


def wait_until_taken(leases: Leases, seconds: float = MAX_SECONDS) -> None:
    """Try to take the lease for some seconds."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if leases.take("lease"):
            return
        time.sleep(0.02)
    raise AssertionError("nobody gave the lease up")


def test_one_of_many_gets_a_lease(address: str) -> None:
    many = [Leases(Bucket(address), SECONDS) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda leases: leases.take("lease"), many))
    assert sum(lease is not None for lease in taken) == 1
    for leases in many:
        leases.close()


def test_a_lease_is_held_as_long_as_its_holder_lives(address: str) -> None:
    with open_leases(address) as holder, open_leases(address) as other:
        lease = holder.take("lease")
        assert lease is not None
        with pytest.raises(AssertionError, match="nobody gave"):
            wait_until_taken(other, 4 * SECONDS)
        holder.release(lease)
        assert other.take("lease") is not None
        # Nobody renews a lease that is not held any more.
        assert holder.take("lease") is None


def test_the_lease_of_a_silent_holder_is_taken_over_once(address: str) -> None:
    with open_leases(address) as silent, open_leases(address) as one, open_leases(address) as two:
        lease = silent.take("lease")
        assert lease is not None
        silent.keep(lease)  # It is not renewed, as if the process had been killed.
        assert one.take("lease") is None is two.take("lease")
        time.sleep(1.1 * SECONDS)
        with ThreadPoolExecutor(2) as threads:
            taken = list(threads.map(lambda leases: leases.take("lease"), (one, two)))
        [winner] = filter(None, taken)
        assert winner.attempt == 2


def test_a_lease_that_expires_again_and_again_is_left(address: str) -> None:
    for attempt in (1, 2):
        with open_leases(address) as silent:
            wait_until_taken(silent)
            held = silent._held.pop("lease")
            assert held.attempt == attempt
    with open_leases(address) as careful:
        assert careful.take("lease", max_attempts=2) is None
        time.sleep(1.1 * SECONDS)
        assert careful.take("lease", max_attempts=2) is None
        taken = careful.take("lease", max_attempts=3)
        assert taken is not None
        assert taken.attempt == 3


def test_a_holder_learns_that_its_lease_was_taken_over(server: str, address: str) -> None:
    proxy = FaultyProxy(server)
    try:
        with (
            open_leases(address.replace(server, proxy.address)) as slow,
            open_leases(address) as other,
        ):
            lease = slow.take("lease")
            assert lease is not None
            # Its renewals are refused for so long that another process takes the lease.
            proxy.faults += [("PUT", "lease", 403)] * 20
            wait_until_taken(other)
            proxy.faults.clear()
            wait_for(lambda: lease.is_lost)
            slow.release(lease)
            assert other.look_at("lease") is not None
    finally:
        proxy.close()
