"""Try a model server: probe it, index four short documents with it, kill, retry and ask.

    python benchmarks/servers.py --base-url http://127.0.0.1:8000/v1 --model NAME

`--start COMMAND` starts the server first, and ends it at the end. Nothing but the address, the
name of the model and its key is set, so that the program has to find out the rest by itself.
Each line is one command: its exit code, its seconds, and the end of its output.
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

REPOSITORY = Path(__file__).parents[1]
DOCUMENTS = {
    "crean.txt": "Tom Crean was born in Annascaul in County Kerry. He sailed with Ernest "
    "Shackleton on the Endurance. In 1916 he crossed South Georgia with Shackleton and Frank "
    "Worsley.",
    "endurance.txt": "The Endurance was a ship that Ernest Shackleton bought for his expedition. "
    "Frank Worsley was her captain. The ice of the Weddell Sea crushed her in November 1915.",
    "wild.txt": "Frank Wild stayed on Elephant Island with twenty-one men. He kept up their hope "
    "until the Chilean ship Yelcho, under Luis Pardo, took them off in August 1916.",
    "scott.txt": "Robert Falcon Scott led the Terra Nova expedition. Tom Crean walked alone for "
    "eighteen hours to fetch help for Edward Evans. For this he was given the Albert Medal.",
}


def write_project(root: Path, workflow: str, arguments: argparse.Namespace) -> Path:
    """Write a project whose models have an address, a name and a key, and no other setting."""
    (root / "input").mkdir(parents=True)
    for name, text in DOCUMENTS.items():
        (root / "input" / name).write_text(text, encoding="utf-8")
    shutil.copytree(REPOSITORY / "workflows", root / "workflows")
    server = f"base_url: {arguments.base_url}, api_key: '{arguments.api_key}'"
    lines = [f"workflow: {workflow}", "models:", f"  chat: {{model: {arguments.model}, {server}}}"]
    if arguments.embedding_model:
        lines.append(f"  vectors: {{model: {arguments.embedding_model}, {server}}}")
        lines.append("generate_text_embeddings: {model: vectors}")
    (root / "settings.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def call(root: Path, *arguments: str, kill_after: float | None = None) -> None:
    """Call a command of the program in a project, and print its end; None: do not kill it."""
    module = "graphrag_query" if arguments[0] in ("local", "global") else "graphrag_index"
    command = [sys.executable, "-m", module, *arguments]
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        output, _ = process.communicate()
    seconds = time.monotonic() - start
    print(f"\n$ {Path(module).name} {shlex.join(arguments)}")
    print(f"  exit code {process.returncode}, {seconds:.1f} s")
    for line in output.strip().splitlines()[-12:]:
        print(f"  | {line[:160]}")


def wait_for_server(base_url: str, seconds: float = 120) -> None:
    """Wait until the server answers a request for its models, with any status."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            urlopen(f"{base_url}/models", timeout=5).close()
            return
        except HTTPError:
            return
        except OSError:
            # The server does not listen yet.
            time.sleep(0.5)
    sys.exit(f"No server answers at {base_url} within {seconds:g} s.")


def try_server(folder: Path, arguments: argparse.Namespace) -> None:
    """Run both workflows with a model, with a kill in the middle of the first."""
    fast = write_project(folder / "fast", "fast", arguments)
    call(fast, "validate", "--probe")
    call(fast, "run", "--quiet", kill_after=arguments.kill_after)
    call(fast, "run")
    call(fast, "status")
    call(fast, "retry")
    call(fast, "check")
    standard = write_project(folder / "standard", "standard", arguments)
    call(standard, "run", "--set", "models.chat.stream=true")
    call(standard, "status")
    call(standard, "local", "Who was Tom Crean?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--embedding-model", help="of the same server; else static")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--kill-after", type=float, default=15.0, help="seconds of the first run")
    parser.add_argument("--start", help="command that starts the server")
    arguments = parser.parse_args()
    server = subprocess.Popen(shlex.split(arguments.start)) if arguments.start else None
    try:
        wait_for_server(arguments.base_url)
        with tempfile.TemporaryDirectory() as folder:
            try_server(Path(folder), arguments)
    finally:
        if server is not None:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
