"""Opening of an index in a bucket: with an empty cache, from a warm one, and in a folder.

    python benchmarks/bucket_open.py [--text-units 10000]

A row has the milliseconds and CPU milliseconds of `graphrag_query.open` in a new process, which
also loads libraries, those of the same call again, and the requests of the process. The server of
the protocol of S3 is moto, on this machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from scaling import make_project, run_program

OPEN = """
import json, sys, time
import graphrag_query
def measure():
    wall, cpu = time.perf_counter(), time.process_time()
    graphrag_query.open(sys.argv[1])
    return [(time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3]
print(json.dumps([*measure(), *measure()]))
"""


def open_in_process(place: str, cache: Path) -> list[float]:
    """Open an index twice in a new process; return milliseconds and CPU ms of both."""
    environment = {**os.environ, "GRAPHRAG_INDEX_CACHE": str(cache)}
    told = subprocess.check_output([sys.executable, "-c", OPEN, place], env=environment)
    return [float(number) for number in json.loads(told)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--text-units", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    from tests.fixtures.object_server import FaultyProxy, new_bucket, serve_objects

    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")
    with tempfile.TemporaryDirectory() as name, serve_objects() as server:
        root, proxy = make_project(Path(name), options.text_units), FaultyProxy(server)
        address = new_bucket(server)
        for output in ("output", address):
            run_program(root, "run", "--workers", "1", "--set", f"output={output}")
        address = address.replace(server, proxy.address)
        size = sum(path.stat().st_size for path in (root / "output").rglob("*") if path.is_file())
        print(f"{options.text_units:,} text units, {size / 1e6:,.0f} MB")
        print("| | open, ms | CPU ms | again, ms | CPU ms | requests |")
        for kind in ("folder", "bucket, empty cache", "bucket, warm cache"):
            rows, n_requests = [], 0
            for number in range(options.times):
                cache = Path(name) / ("warm" if "warm" in kind else f"empty-{number}")
                if "warm" in kind and not number:
                    open_in_process(address, cache)
                proxy.requests.clear()
                rows.append(
                    open_in_process(str(root / "output") if kind == "folder" else address, cache)
                )
                n_requests = len(proxy.requests)
            medians = (f"{statistics.median(column):,.0f}" for column in zip(*rows, strict=True))
            print(f"| {kind} | {' | '.join(medians)} | {n_requests} |")
        proxy.close()


if __name__ == "__main__":
    main()
