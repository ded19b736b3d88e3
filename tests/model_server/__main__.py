"""Run the server as a process of its own; it prints its URL, and runs until it is ended."""

import argparse
import asyncio
from contextlib import suppress
from importlib import import_module
from json import loads
from pathlib import Path

from tests.model_server.answers import answer_from_text
from tests.model_server.faults import Faults
from tests.model_server.limits import Limits
from tests.model_server.server import Server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--log", type=Path, help="a line at each arrival and at each answer")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--jitter", type=float, default=0.0, help="seconds, drawn on top")
    parser.add_argument("--chunk-delay", type=float, default=0.0, help="seconds between events")
    parser.add_argument("--faults", type=loads, default={}, help='{"rate": 0.3, "kinds": ["500"]}')
    parser.add_argument("--limits", type=loads, default={}, help='{"requests_per_minute": 600}')
    parser.add_argument("--models", nargs="*", default=(), help="accepted; else any")
    parser.add_argument("--api-keys", nargs="*", default=(), help="accepted; else any")
    parser.add_argument("--context-window", type=int)
    parser.add_argument("--tokens-per-second", type=float)
    parser.add_argument("--quirks", nargs="*", default=())
    parser.add_argument("--dimensions", type=int, default=64)
    parser.add_argument("--batch-seconds", type=float, default=0.0, help="below 0: until told")
    parser.add_argument("--answer", default="", help="module:function in place of the default one")
    chosen = vars(parser.parse_args())
    chosen["faults"], chosen["limits"] = Faults(**chosen["faults"]), Limits(**chosen["limits"])
    module, _, function = chosen["answer"].partition(":")
    chosen["answer"] = getattr(import_module(module), function) if module else answer_from_text
    if chosen["batch_seconds"] < 0:
        chosen["batch_seconds"] = None
    server = Server(**chosen)
    with suppress(KeyboardInterrupt):
        asyncio.run(server.run(lambda: print(server.url, flush=True)))  # noqa: T201


if __name__ == "__main__":
    main()
