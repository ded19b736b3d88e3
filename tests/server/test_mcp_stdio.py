"""The tools for agents over standard input and output, in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from tests.fixtures.commands import command, environment

# Prints in each way that a library has: when it is imported, and all the time afterwards.
NOISE = """
import os, sys, threading, time

def shout():
    while True:
        print("noise", flush=True)
        os.write(1, b"noise\\n")
        time.sleep(0.03)

class Loud:
    def find_spec(self, name, path=None, target=None):
        if name in ("mcp", "polars", "graphrag_query.index"):
            print("noise")
            os.system("echo noise")
            sys.__stdout__.write("noise")
            threading.Thread(target=shout, daemon=True).start()

sys.meta_path.insert(0, Loud())
"""


def test_nothing_but_the_protocol_is_on_standard_output(
    sample_project: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(NOISE, encoding="utf-8")
    path = f"{tmp_path}:{environment()['PYTHONPATH']}"
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client}
    question = {"question": "Who was Tom Crean?"}
    requests = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "ask", "arguments": question}},
    ]
    process = subprocess.Popen(
        command("mcp", "--root", str(sample_project)),
        env=environment(PYTHONPATH=path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    replies: dict[int, Any] = {}
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        for request in requests:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
            process.stdin.flush()
            while "id" in request and request["id"] not in replies:
                reply = json.loads(process.stdout.readline())
                replies[reply["id"]] = reply["result"]
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.stderr is not None
        assert "noise" in process.stderr.read()
    assert process.returncode == 0
    assert replies[1]["protocolVersion"] == "2025-03-26"
    assert "Tom Crean" in replies[3]["content"][0]["text"]


def test_the_official_client_asks_over_stdio(sample_project: Path) -> None:
    arguments = command("mcp", "--root", str(sample_project))
    server = StdioServerParameters(
        command=arguments[0], args=arguments[1:], env=environment(), cwd=sample_project
    )

    async def use() -> None:
        async with Client(server) as client:
            assert client.protocol_version == "2026-07-28"
            found = await client.call_tool("search", {"query": "Who was Tom Crean?"})
            first = found.structured_content["results"][0]
            assert first["url"] == f"graphrag://{first['id']}"
            read = await client.read_resource(first["url"])
            assert "Tom Crean" in read.contents[0].text

    anyio.run(use)


def test_the_list_of_tools_needs_no_heavy_module() -> None:
    code = (
        "import sys, graphrag_server.agents.mcp_server; "
        "print(sorted({'polars', 'numpy', 'fastapi', 'lancedb', 'tiktoken'} & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, check=True
    )
    assert found.stdout.strip() == b"[]"


def test_a_missing_project_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(
        command("mcp", "--root", str(tmp_path / "none")),
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "settings.yaml" in done.stderr
    assert "Traceback" not in done.stderr
