"""Checks of an index run one at a time, and once for each version."""

import asyncio
import threading
import time

import pytest

from graphrag_server.hosted_index import IndexChecks


def test_requests_wait_for_the_same_check() -> None:
    checked: list[int] = []
    running = threading.Lock()

    def check(version: int) -> dict[str, int]:
        assert running.acquire(blocking=False), "two checks run at once"
        time.sleep(0.05)
        running.release()
        checked.append(version)
        if version == 3 and checked.count(3) == 1:
            raise OSError("broken")
        return {"version": version}

    async def ask() -> None:
        checks = IndexChecks(check)
        left = asyncio.create_task(checks.result(1))
        found = asyncio.gather(*(checks.result(version) for version in (1, 2, 1)))
        await asyncio.sleep(0.01)
        left.cancel()  # its client disconnects; the others still get the result
        assert checks.known(1) is None
        assert [result["version"] for result in await found] == [1, 2, 1]
        assert checks.known(1) == await checks.result(1) == {"version": 1}
        assert checked == [1, 2]
        # A check that failed is not kept.
        with pytest.raises(OSError, match="broken"):
            await checks.result(3)
        assert checks.known(3) is None
        assert await checks.result(3) == {"version": 3}

    asyncio.run(ask())
