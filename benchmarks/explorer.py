"""Measure the explorer on one index: first picture, opening communities, memory.

    python benchmarks/explorer.py --root DIR [--openings 200] [--picture FILE]

It starts the server on the index and a headless Chromium. Printed are, in milliseconds, the time
until the coarsest communities are drawn (of a first and of a second visit), the times in which
the server returns the insides of communities, and the heap of the browser after a walk from the
coarsest communities down to entities. Needs the extras serve and dev, and Chromium.
"""

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

ROOT = -1
_HEAPS = ("usedSize", "embedderHeapUsedSize", "backingStorageSize")
DRAWN = ".graph-canvas[data-areas]:not([data-areas='0'])"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--openings", type=int, default=200)
    parser.add_argument("--picture", type=Path, help="Write a screenshot to this file.")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    arguments = parser.parse_args()
    command = [sys.executable, "-m", "graphrag_index", "serve", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--root", str(arguments.root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        if found is None:
            sys.exit(f"The server did not start on {arguments.root}.")
        # The address is printed before the first request is answered.
        address = wait_for(found.group())
        for name, value in visit(address, arguments).items():
            print(f"| {name} | {value} |")
        for name, value in open_communities(address, arguments.openings).items():
            print(f"| {name} | {value} |")
    finally:
        server.terminate()
        server.wait()


def wait_for(address: str) -> str:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}health").close()
            return address
        except OSError:
            time.sleep(0.1)
    sys.exit(f"The server at {address} does not answer.")


def open_communities(address: str, n: int) -> dict[str, str]:
    """Open communities at random, from the coarsest level down to entities."""
    [index] = json.loads(read(f"{address}v1/indexes"))["indexes"]
    path = f"{address}v1/indexes/{index['name']}/map"
    chooser, seconds, sizes, above = random.Random(7), [], [], []
    for _ in range(n):
        community = chooser.choice(above) if above else ROOT
        start = time.perf_counter()
        content = read(path if community == ROOT else f"{path}/{community}")
        seconds.append(time.perf_counter() - start)
        sizes.append(len(content))
        above = children_of(content)
    in_order = sorted(1000 * value for value in seconds)
    return {
        f"{n} openings at the server, median ms": f"{statistics.median(in_order):.0f}",
        "99th percentile": f"{in_order[int(0.99 * n)]:.0f}",
        "longest": f"{in_order[-1]:.0f}",
        "largest part, KB": f"{max(sizes) / 1000:.0f}",
    }


def children_of(part: bytes) -> list[int]:
    """Return the communities of a part of the map; empty if the part has entities."""
    import numpy as np

    length = int.from_bytes(part[:4], "little")
    header = json.loads(part[4 : 4 + length])
    if header["kind"] != "communities":
        return []
    place = header["arrays"]["number"]
    found = np.frombuffer(part, "<i4", place["length"], 4 + length + place["offset"])
    return [int(number) for number in found]


def read(address: str) -> bytes:
    with urllib.request.urlopen(address) as response:
        content: bytes = response.read()
    return content


def visit(address: str, arguments: argparse.Namespace) -> dict[str, str]:
    return asyncio.run(visit_in_browser(address, arguments))


async def visit_in_browser(address: str, arguments: argparse.Namespace) -> dict[str, str]:
    from playwright.async_api import async_playwright

    figures = {}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=arguments.chromium, args=["--no-sandbox", "--js-flags=--expose-gc"]
        )
        page = await browser.new_page(viewport={"width": 1300, "height": 800})
        for name in ("first", "second"):
            start = time.perf_counter()
            await page.goto(address)
            await page.wait_for_selector(DRAWN)
            figures[f"{name} picture, ms"] = f"{1000 * (time.perf_counter() - start):.0f}"
        await walk(page)
        if arguments.picture:
            await page.screenshot(path=arguments.picture)
        figures["heap after the walk, MB"] = f"{await measure_heap(page) / 1e6:.0f}"
        await browser.close()
    return figures


async def walk(page: Any) -> None:
    """Zoom into the middle of the graph, out again and in at other places."""
    box = await page.locator(".graph-canvas").bounding_box()
    for right, down in ((0.5, 0.5), (0.35, 0.4), (0.65, 0.6)):
        place = box["x"] + right * box["width"], box["y"] + down * box["height"]
        await page.mouse.move(*place)
        for _ in range(12):
            await page.mouse.wheel(0, -400)
            await page.wait_for_timeout(350)
        for _ in range(12):
            await page.mouse.wheel(0, 400)
            await page.wait_for_timeout(120)
    for _ in range(8):
        await page.mouse.wheel(0, -400)
        await page.wait_for_timeout(400)


async def measure_heap(page: Any) -> int:
    await page.evaluate("window.gc()")
    session = await page.context.new_cdp_session(page)
    used: dict[str, int] = await session.send("Runtime.getHeapUsage")
    # The heap of scripts, that of the document, and the contents of typed arrays.
    return sum(used.get(name, 0) for name in _HEAPS)


if __name__ == "__main__":
    main()
