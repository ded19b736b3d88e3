"""Runs over HTTP: a queue that survives kills, and readers that are never blocked."""

import gzip
import io
import json
import os
import random
import re
import signal
import subprocess
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import httpx2
import pytest
from fastapi.testclient import TestClient

from graphrag_index.llm.ledger import DONE, Ledger
from graphrag_server.app import create_app, start_first_run
from graphrag_server.jobs.job_store import JobState, JobStore
from graphrag_server.server_settings import ServerSettings
from tests.conftest import run_project
from tests.fixtures.commands import command, environment, start, wait_for
from tests.fixtures.sample_files import make_outlook
from tests.fixtures.served import serve, write_project
from tests.model_server import Server

JOBS = "/v1/indexes/docs/jobs"
# Documents that are added before the run that is killed.
N_NEW = 12


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    root = write_project(tmp_path / "docs")
    settings = ServerSettings(indexes={"docs": root}, state_folder=tmp_path)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def wait_for_end(client: TestClient | httpx2.Client, job: str) -> dict:
    """Return a job when it does not wait or run any more."""
    found: dict = {}

    def has_ended() -> bool:
        found.update(client.get(f"{JOBS}/{job}").json())
        if found["state"] in ("queued", "running"):
            # A run takes seconds, and each question takes processor time from it.
            time.sleep(0.2)
            return False
        return True

    wait_for(has_ended)
    return found


def read_events(client: TestClient, job: str, last: str = "") -> list[tuple[int, str, dict]]:
    """Return the (number, type, data) of the events of a job, to its end."""
    headers = {"Last-Event-ID": last} if last else {}
    events = []
    for block in client.get(f"{JOBS}/{job}/events", headers=headers).text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "data" in lines:
            events.append((int(lines["id"]), lines["event"], json.loads(lines["data"])))
    return events


def test_documents_are_uploaded_and_a_run_makes_an_index_of_them(
    client: TestClient, tmp_path: Path
) -> None:
    assert client.post("/v1/indexes/docs/ask", json={"question": "Who?"}).status_code == 503
    files = "/v1/indexes/docs/files"
    upload = [("files", ("../../wild.txt", b"Frank Wild was a friend of Tom Crean."))]
    assert client.post(files, files=upload).json() == {"stored": ["uploads/wild.txt"]}
    assert not list(tmp_path.glob("wild*"))
    again = client.post(files, files=upload)
    assert (again.status_code, again.json()["code"]) == (409, "file_exists")
    assert client.post(files, files=upload, data={"replace": "true"}).status_code == 201
    with zipfile.ZipFile(archive := io.BytesIO(), "w") as parts:
        parts.writestr("letters/a.txt", "Tom Crean wrote to Frank Wild.")
        parts.writestr("bad.json", "{")
        parts.writestr("a.png", b"\0")
    upload = [("files", ("mail.zip", archive.getvalue()))]
    assert client.post(files, files=upload).json() == {"stored": ["uploads/mail.zip"]}

    started = client.post(JOBS, json={})
    assert started.status_code == 202
    job = started.json()["id"]
    assert started.headers["location"] == f"{JOBS}/{job}"
    # A second job waits for the first, and can be cancelled.
    second = client.post(JOBS, json={}).json()["id"]
    assert client.post(f"{JOBS}/{second}/cancel").json()["state"] == "cancelled"
    assert client.post(f"{JOBS}/{second}/budget", json={"budget": 1}).status_code == 409
    assert client.get(f"{JOBS}/none").json()["code"] == "no_such_job"

    events = read_events(client, job)
    states = [data["state"] for _, kind, data in events if kind == "state"]
    assert states == ["queued", "running", "done"]
    steps = {data["step"] for _, kind, data in events if "step" in data}
    assert {"load_documents", "create_communities", "create_search_tables"} <= steps
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert read_events(client, job, str(len(events) - 1)) == events[-1:]
    assert read_events(client, job, str(len(events))) == []

    ended = client.get(f"{JOBS}/{job}").json()
    assert (ended["state"], ended["version"], ended["message"]) == ("done", 1, "")
    asked = client.post("/v1/indexes/docs/search/local", json={"question": "Who was Tom Crean?"})
    assert "Irish seaman" in asked.json()["answer"]
    assert [one["id"] for one in client.get(JOBS).json()["jobs"]] == [second, job]
    listed = {one["path"]: one for one in client.get(files).json()["files"]}
    counts = {path: one["n_documents"] for path, one in listed.items()}
    archive_path = "uploads/mail.zip"
    assert counts == {"crean.txt": 1, "scott.txt": 1, archive_path: 1, "uploads/wild.txt": 1}
    assert listed[archive_path]["problem"].startswith("bad.json: is not valid JSON")
    assert client.delete(f"{files}/uploads/wild.txt").status_code == 204
    assert len(client.get(files).json()["files"]) == 3


def test_an_index_that_costs_nothing_is_built_when_its_server_starts(tmp_path: Path) -> None:
    free, paid = write_project(tmp_path / "free"), write_project(tmp_path / "paid")
    (paid / "settings.yaml").write_text("workflow: standard\n", encoding="utf-8")
    app = create_app(ServerSettings(indexes={"a": free, "b": paid}, state_folder=tmp_path))
    remarks = [start_first_run(index, app.state.jobs) for index in app.state.indexes.values()]
    # A second server does not queue it again.
    start_first_run(app.state.indexes["a"], app.state.jobs)
    assert remarks == [" (being built now)", " (not built yet: start a run)"]
    queued = [[job.kind for job in app.state.jobs.store(name).jobs()] for name in ("a", "b")]
    assert queued == [["run"], []]


def test_the_terminal_tells_why_the_first_run_failed(tmp_path: Path) -> None:
    root = write_project(tmp_path / "docs")
    for path in (root / "input").iterdir():
        path.unlink()
    with start(root, "serve", "--port", "0") as served:
        assert served.stderr is not None
        line = json.loads(served.stderr.readline())
        served.terminate()
        printed, _ = served.communicate()
    assert "(being built now)" in printed
    assert line["level"] == "error"
    [job] = JobStore(root / "output").jobs()
    assert job.message.startswith("The input folder input is empty: ")
    assert line["message"] == f"The run of the index docs failed: {job.message}"


@pytest.mark.parametrize(
    ("name", "content", "status"),
    [
        ("a.exe", b"x", 415),
        ("a.exe", b"MZ\0", 415),
        (".txt", b"x", 415),
        ("..", b"x", 415),
        ("a.zip", b"PK\x03\x04", 415),
        ("a.pdf", b"no pdf", 415),
        ("a.docx", b"%PDF-1.4", 415),
        ("a.docx", b"PK\x03\x04 broken", 415),
        ("a.txt", b"PK\x03\x04\x00\x00", 415),
        ("a.tar.gz", b"no tar", 422),
        ("a.txt.gz", b"no gzip", 422),
        ("a.msg", b"no message", 415),
        ("a.msg", make_outlook({})[:3000], 422),
        ("a.parquet", b"PAR1 broken PAR1", 422),
        ("a.json", b"{", 422),
        ("a.txt", b"", 422),
    ],
)
def test_a_file_that_no_run_could_read_is_refused(
    client: TestClient, tmp_path: Path, name: str, content: bytes, status: int
) -> None:
    reply = client.post("/v1/indexes/docs/files", files=[("files", (name, content))])
    assert reply.status_code == status, reply.text
    folder = tmp_path / "docs" / "input" / "uploads"
    assert not folder.exists() or not list(folder.iterdir())


def test_text_of_any_suffix_is_stored_and_skipped_files_are_listed(
    client: TestClient, tmp_path: Path
) -> None:
    files, folder = "/v1/indexes/docs/files", tmp_path / "docs" / "input"
    contents = {"notes.rst": b"Tom Crean.", "Makefile": b"all:", "a.log": "Müll".encode("utf-16")}
    contents |= {"b.txt.gz": gzip.compress(b"Tom Crean."), "c.msg": make_outlook({})}
    reply = client.post(files, files=[("files", part) for part in contents.items()])
    assert reply.json() == {"stored": [f"uploads/{name}" for name in contents]}
    for name in (".hidden", "a.bin"):
        (folder / name).write_bytes(b"\0")
    (folder / "passwd.txt").symlink_to("/etc/passwd")
    reply = client.get(files).json()
    assert [one["path"] for one in reply["files"]][2:] == [
        f"uploads/{name}" for name in sorted(contents)
    ]
    assert reply["skipped_summary"] == "3 files skipped: .bin 1, hidden 1, outside links 1."
    assert [(one["path"], one["kind"], one["n_files"]) for one in reply["skipped"]] == [
        (".hidden", "hidden", 1),
        ("a.bin", ".bin", 1),
        ("passwd.txt", "outside links", 1),
    ]


@pytest.mark.parametrize(
    ("name", "content", "code", "said"),
    [
        ("a.pdf", b"<html>Log in", "wrong_type", "not that of a .pdf file: it is a web page."),
        ("a.docx", b"%PDF-1.4", "wrong_type", "not that of a .docx file: it is a PDF."),
        ("a.pdf", b"%PDF-1.4", "unreadable_file", "is a damaged or incomplete .pdf file"),
        ("a.txt", b"PK\x03\x04\0", "wrong_type", "it is a damaged ZIP archive."),
        (
            "a.mp3",
            b"ID3\4\0\0",
            "unknown_type",
            "This type of file cannot be read: it is audio/mpeg by its suffix.",
        ),
    ],
)
def test_a_file_is_taken_for_what_its_content_is(
    client: TestClient, name: str, content: bytes, code: str, said: str
) -> None:
    pytest.importorskip("mammoth")
    reply = client.post("/v1/indexes/docs/files", files=[("files", (name, content))]).json()
    assert reply["code"] == code
    assert said in reply["detail"]


@pytest.mark.parametrize("name", ["a.docx", "b.xlsx", "c.pptx"])
@pytest.mark.parametrize(
    ("content", "code"), [(b"PK\x03\x04 cut off", "broken_file"), (b"some text", "wrong_type")]
)
def test_a_broken_office_file_is_told_from_one_of_another_type(
    client: TestClient, name: str, content: bytes, code: str
) -> None:
    reply = client.post("/v1/indexes/docs/files", files=[("files", (name, content))])
    assert reply.json()["code"] == code


def test_of_uploads_at_once_one_is_stored_of_each_name(client: TestClient, tmp_path: Path) -> None:
    names = ["a.txt", "x/a.txt", "..\\a.txt", "c?.txt", "c*.txt"]

    def upload(number: int) -> tuple[int, str, str]:
        content = f"Text {number} of many."
        files = [("files", (names[number], content.encode()))]
        reply = client.post("/v1/indexes/docs/files", files=files)
        name = reply.json().get("stored", [""])[0]
        return reply.status_code, name.removeprefix("uploads/"), content

    with ThreadPoolExecutor(len(names)) as threads:
        replies = list(threads.map(upload, range(len(names))))
    stored = {name: content for status, name, content in replies if status == 201}
    folder = tmp_path / "docs" / "input" / "uploads"
    assert {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} == stored
    assert Counter(status for status, _, _ in replies) == {201: 2, 409: 3}


def test_files_of_one_request_are_stored_or_told(client: TestClient, tmp_path: Path) -> None:
    def upload(*names: str) -> tuple[int, str]:
        files = [("files", (name, b"Ada Berg lives in Bergen.")) for name in names]
        reply = client.post("/v1/indexes/docs/files", files=files)
        return reply.status_code, reply.json().get("detail", "")

    assert upload("a.txt", "x/a.txt") == (
        409,
        "The request has several files named 'a.txt': nothing was stored.",
    )
    assert upload("b.txt")[0] == 201
    status, detail = upload("c.txt", "b.txt", "d.txt")
    assert status == 409
    assert detail.endswith(" Stored before it: uploads/c.txt.")
    folder = tmp_path / "docs" / "input" / "uploads"
    assert sorted(path.name for path in folder.iterdir()) == ["b.txt", "c.txt"]


@pytest.mark.parametrize("path", ["../settings.yaml", "none.txt", "uploads", "%2e%2e/x"])
def test_only_listed_files_are_removed(client: TestClient, tmp_path: Path, path: str) -> None:
    assert client.delete(f"/v1/indexes/docs/files/{path}").status_code in (404, 405)
    assert (tmp_path / "docs" / "settings.yaml").is_file()


def test_a_stopping_server_ends_the_streams_of_its_jobs(tmp_path: Path) -> None:
    root = write_project(tmp_path / "docs")
    store = JobStore(root / "output")
    job = store.create("run", 0)
    store.finish(job.id, JobState.WAITING_BUDGET)
    settings = ServerSettings(indexes={"docs": root}, state_folder=tmp_path)
    events = []
    with (
        serve(settings, grace_seconds=60) as served,
        httpx2.stream("GET", f"{served.url}{JOBS}/{job.id}/events", timeout=30) as reply,
    ):
        for line in reply.iter_lines():
            events += [line] if line.startswith("event: ") else []
            if len(events) == 2:
                served.stop()
    assert events == ["event: state", "event: state", "event: stopping"]


def test_a_folder_that_cannot_be_written_has_no_jobs_but_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = write_project(tmp_path / "docs")
    (root / "output").write_text("a file, where the folder should be", encoding="utf-8")
    app = create_app(ServerSettings(indexes={"docs": root}, state_folder=tmp_path))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        wait_for(lambda: caplog.messages)
        for _ in range(3):
            refused = client.post(JOBS, json={})
            assert (refused.status_code, refused.json()["code"]) == (503, "jobs_unavailable")
            assert "docs/output/jobs.db, cannot be used" in refused.json()["detail"]
            app.state.jobs.wake("docs")
            time.sleep(0.05)
    [line] = [one for one in caplog.messages if "jobs-docs" in one]
    assert line.startswith("jobs-docs cannot run jobs: ")


def model_project(root: Path, url: str) -> Path:
    """Write a project whose graph a model extracts."""
    write_project(root)
    price = "price: {input: 1.0, output: 2.0}"
    chat = f"chat: {{base_url: '{url}', model: test-model, api_key: k, {price}}}"
    text = f"workflow: standard\nmodels:\n  {chat}\ngenerate_text_embeddings: {{model: static}}\n"
    (root / "settings.yaml").write_text(text, encoding="utf-8")
    return root


def test_a_budget_stops_a_run_that_goes_on_when_it_is_raised(
    model_server: Server, tmp_path: Path
) -> None:
    root = model_project(tmp_path / "docs", model_server.url)
    # A budget stops at a request, so the steps after those that ask add nothing but time.
    steps = "- load_documents\n- create_text_units\n- extract_graph\n"
    (root / "workflows" / "standard.yaml").write_text(steps, encoding="utf-8")
    settings = ServerSettings(indexes={"docs": root}, state_folder=tmp_path)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        job = client.post(JOBS, json={"budget": 0.000001}).json()["id"]
        stopped = wait_for_end(client, job)
        assert stopped["state"] == "waiting_budget"
        assert stopped["estimate"]["requests"] > 0
        asked = len(model_server.requests)
        client.post(f"{JOBS}/{job}/budget", json={"budget": 5})
        ended = wait_for_end(client, job)
    assert (ended["state"], ended["version"]) == ("done", 1)
    assert ended["calls"] == sum("/chat" in one.path for one in model_server.requests)
    assert len(model_server.requests) > asked


def start_server(root: Path, state: Path) -> tuple["subprocess.Popen[str]", str]:
    """Start `graphrag-index serve` as a process; return it and its address."""
    process = subprocess.Popen(
        [*command("serve"), "--root", str(root), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://[\d.:]+", line):
            return process, found[0]
    raise AssertionError("the server has not started")


def kill(process: "subprocess.Popen[str]", with_run: bool) -> None:
    """Kill a server, and with it the process of its run if `with_run`."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8")
    process.kill()
    for child in children.split() if with_run else ():
        with suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)
    process.communicate()


def answered_requests(root: Path) -> dict[str, int]:
    """Return how often each request with a recorded reply was sent, by its key in the ledger."""
    with closing(Ledger(root / "output")) as ledger:
        return dict(ledger.fetch_rows("SELECT key, attempts FROM requests WHERE state = ?", DONE))


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds processes in /proc")
@pytest.mark.parametrize("n_kills", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_killed_server_goes_on_with_its_run(tmp_path: Path, n_kills: int) -> None:
    # Killed n times while it runs jobs and others read; then the last job may end.
    seed = random.Random(7)
    with Server(latency=0.1) as model:
        root = model_project(tmp_path / "docs", model.url)
        run_project(root)
        answered, versions = answered_requests(root), {1: 2}
        n_killed, n_documents, job = 0, 2, ""
        while n_killed < n_kills or job:
            process, url = start_server(root, tmp_path)
            with httpx2.Client(base_url=url, timeout=30) as client:
                if not job:
                    for number in range(n_documents, n_documents + N_NEW):
                        text = f"Tom Crean met the sailor Number{number} Smith on the Discovery."
                        (root / "input" / f"{number}.txt").write_text(text, encoding="utf-8")
                    n_documents += N_NEW
                    job = client.post(JOBS, json={}).json()["id"]
                until = time.monotonic() + seed.uniform(0.1, 4.0)
                while job and (time.monotonic() < until or n_killed == n_kills):
                    # Asked before the documents, so that the version of a finished job is read.
                    is_done = client.get(f"{JOBS}/{job}").json()["state"] == "done"
                    # Readers see one version or the next one, and never a mixture.
                    reply = client.get("/v1/indexes/docs/documents")
                    total, version = reply.json()["total"], int(reply.headers["X-Index-Version"])
                    assert versions.setdefault(version, n_documents) == total
                    if is_done:
                        job = ""
                    time.sleep(0.2)
            n_killed += bool(job)
            kill(process, with_run=n_killed % 2 == 0)
            # What the ledger has is never asked for again.
            before, answered = answered, answered_requests(root)
            assert before.items() <= answered.items()
        assert len(versions) > 1
    store = JobStore(root / "output")
    assert {one.state for one in store.jobs()} == {JobState.DONE}
    assert store.jobs()[0].version == max(versions)
