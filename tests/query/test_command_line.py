import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.fixtures.commands import ask


def test_an_answer_is_printed_with_its_citations(sample_project: Path) -> None:
    result = ask("local", "Who was Tom Crean?", "--root", str(sample_project))
    assert result.returncode == 0
    assert result.stderr == ""
    assert "Irish seaman" in result.stdout
    assert "people/tom-crean.txt, characters" in result.stdout


def test_json_resolves_each_citation(sample_project: Path) -> None:
    result = ask("global", "What are the main themes?", "--json", "--root", str(sample_project))
    answer = json.loads(result.stdout)
    assert (answer["outcome"], answer["method"]) == ("answered", "global")
    assert set(answer["usage"]) >= {"calls", "prompt_tokens", "completion_tokens", "seconds"}
    documents = pl.read_parquet(sample_project / "output" / "documents.parquet")
    texts = dict(documents.select("title", "text").iter_rows())
    assert answer["citations"]
    for citation in answer["citations"]:
        span = slice(citation["start_char"], citation["end_char"])
        assert texts[citation["document"]][span] == citation["quote"]


def test_no_evidence_is_an_answer_and_not_a_failure(sample_project: Path) -> None:
    question = "What is the capital of Mongolia?"
    result = ask("local", question, "--json", "--root", str(sample_project))
    assert result.returncode == 0
    assert json.loads(result.stdout)["outcome"] == "no_evidence"


THEMES = "What are the main themes?"


def test_the_suggested_command_can_be_run(sample_project: Path) -> None:
    options = ("--root", str(sample_project), "--where", "path=p*", "--where", "language=en")
    keys = ("--set", "models.chat.api_key=sk-1", "--set", "models.m={model: m, api_key: sk-2}")
    result = ask("local", THEMES, *options, *keys)
    assert result.returncode == 0
    [command] = re.findall(r" Try: graphrag-query (.*)", result.stdout)
    arguments = shlex.split(command)
    assert arguments == ["global", *options, THEMES]
    followed = ask(*arguments)
    assert followed.returncode == 0
    assert re.search(r"answered from \d+ documents: looked at", followed.stdout)
    data = json.loads(ask("local", THEMES, *options, "--json").stdout)["suggestion"]
    assert (data["method"], data["arguments"]) == ("global", [THEMES])
    assert shlex.split(data["command"])[1:] == arguments


def test_an_answer_and_a_plain_refusal_suggest_no_command(sample_project: Path) -> None:
    for question in ("Who was Tom Crean?", "How do I bake sourdough bread?"):
        root = ("--root", str(sample_project))
        assert "Try: " not in ask("local", question, *root).stdout
        assert json.loads(ask("local", question, "--json", *root).stdout)["suggestion"] is None


def test_the_context_of_global_search_is_printed(sample_project: Path) -> None:
    root = ("--root", str(sample_project))
    result = ask("global", "What are the main themes?", "--show-context", *root)
    assert result.stdout.startswith("-----Reports-----\nid,text\n")
    as_json = ask("global", "What are the main themes?", "--show-context", "--json", *root)
    assert json.loads(as_json.stdout)["context"]["Reports"]


def test_names_are_given_one_by_one(sample_project: Path) -> None:
    asked = ("path", "Crean", "Ernest Shackleton", "--json", "--root", str(sample_project))
    result = ask(*asked)
    assert result.stderr == ""
    answer = json.loads(result.stdout)
    assert (answer["outcome"], answer["method"]) == ("answered", "path")
    assert answer["question"] == "How are Crean and Ernest Shackleton connected?"


def test_names_can_be_asked_about_as_a_stream(sample_project: Path) -> None:
    names = ["path", "Tom Crean", "Frank Wild", "--root", str(sample_project)]
    result = ask(*names, "--stream")
    assert result.returncode == 0
    plain = ask(*names).stdout
    assert result.stdout.splitlines()[:3] == plain.splitlines()[:3]


def test_a_conversation_can_be_held_to_some_documents(sample_project: Path) -> None:
    filters = ["--where", "path=people/tom-crean.txt", "--method", "local"]
    root = ["--root", str(sample_project)]
    result = ask("chat", *root, *filters, stdin="Who crossed South Georgia?\n")
    assert result.returncode == 0
    cited = [line for line in result.stdout.splitlines() if ", characters " in line]
    assert cited
    assert all("(people/tom-crean.txt, " in line for line in cited)


def test_a_conversation_prints_the_suggested_command(sample_project: Path) -> None:
    root = ["--root", str(sample_project)]
    result = ask("chat", "--method", "local", *root, stdin=f"{THEMES}\n")
    assert result.returncode == 0
    [command] = re.findall(r" Try: (.*)", result.stdout)
    assert shlex.split(command) == ["graphrag-query", "global", *root, THEMES]


def test_a_missing_index_is_one_sentence(sample_project: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("output: nothing\n", encoding="utf-8")
    result = ask("local", "Who?", "--root", str(tmp_path))
    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "graphrag-index run" in result.stderr


def test_the_run_that_makes_a_missing_index_has_its_place(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").touch()
    options = ("--root", str(tmp_path), "--set", "output=my index", "--set", "search.follow_ups=1")
    result = ask("local", "Who?", *options)
    assert result.returncode == 1
    [command] = re.findall("`graphrag-index (.*)`", result.stderr)
    assert shlex.split(command) == ["run", *options[:4]]


def test_missing_settings_are_wrong_use(tmp_path: Path) -> None:
    result = ask("local", "Who?", "--root", str(tmp_path))
    assert result.returncode == 2
    assert "graphrag-index init" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is of Unix")
def test_ctrl_c_ends_a_conversation_and_keeps_it(sample_project: Path, tmp_path: Path) -> None:
    import pty

    session = tmp_path / "session.json"
    screen, terminal = pty.openpty()
    llm = subprocess.Popen(
        [
            *(sys.executable, "-m", "graphrag_query", "chat"),
            *("--root", str(sample_project), "--session", str(session), "--method", "local"),
        ],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        preexec_fn=_own_terminal,
    )
    os.close(terminal)
    shown = b""
    for awaited, typed in ((b"> ", b"Who was Tom Crean?\n"), (b" s.\r\n\r\n> ", b"\x03")):
        while awaited not in shown:
            shown += os.read(screen, 4096)
        os.write(screen, typed)
        shown = b""
    for _ in range(60):
        # The prompt is on the screen a moment before the program waits there.
        with contextlib.suppress(subprocess.TimeoutExpired):
            llm.wait(timeout=1)
            break
        os.write(screen, b"\x03")
    assert llm.poll() == 130
    os.close(screen)
    turns = json.loads(session.read_text(encoding="utf-8"))
    assert [turn["question"] for turn in turns] == ["Who was Tom Crean?"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of Unix")
@pytest.mark.parametrize("place", ["while it ends", "at its exit", "last of all"])
def test_a_second_ctrl_c_ends_with_the_same_code(place: str) -> None:
    program = f"""
import atexit, os, signal, sys, time
from graphrag_index.errors import run_program

def press():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)

class Pressing:
    def __del__(self, kill=os.kill, me=os.getpid()):
        kill(me, 2)

def app():
    try:
        press()
    except KeyboardInterrupt:
        # As typer does.
        if {place!r} == "while it ends":
            press()
        if {place!r} == "at its exit":
            atexit.register(press)
        sys.exit(130)

if {place!r} == "last of all":
    # The interpreter lets go of its modules after it gave the signal back.
    kept = Pressing()
run_program(app)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "")


def _own_terminal() -> None:
    """Make the pseudo-terminal that of a process, so that Ctrl-C reaches it."""
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
