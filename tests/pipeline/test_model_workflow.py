"""The workflow `standard` from documents to vectors, over HTTP: whole, faulty, killed, again."""

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from graphrag_index.cli.printed_tables import MAX_PRINTED_REQUESTS
from graphrag_index.health.checked_index import open_for_check
from graphrag_index.health.checks import check_index
from graphrag_index.llm import retries
from graphrag_index.llm.ledger import FILE, Ledger
from graphrag_index.pipeline.history import lock_output
from graphrag_index.schema.settings.step_sections import Check
from graphrag_index.storage.table_store import TableStore
from graphrag_query.store.index_store import IndexStore
from tests.fixtures.checked import found
from tests.fixtures.commands import REPOSITORY, call, command, environment
from tests.fixtures.model_project import KEY, run, write_project
from tests.fixtures.small_index import read_files, read_table
from tests.model_server import Faults, Server, counts, read_log


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Path:
    """A project that ran undisturbed; tests must not change it."""
    root = write_project(tmp_path_factory.mktemp("models") / "whole", server.url)
    result = run(root)
    assert result.returncode == 0, result.stderr
    return root


def test_every_table_is_there_and_names_what_exists(project: Path) -> None:
    entities, relationships = read_table(project, "entities"), read_table(project, "relationships")
    assert len(entities) > 20
    assert set(relationships["source_id"]) | set(relationships["target_id"]) <= set(entities["id"])
    assert entities["description"].str.len_chars().min() > 0
    reports, communities = (
        read_table(project, "community_reports"),
        read_table(project, "communities"),
    )
    assert set(reports["community"]) == set(communities["community"])
    claims, units = read_table(project, "covariates"), read_table(project, "text_units")
    assert len(claims) > 0
    assert set(claims["text_unit_id"]) <= set(units["id"])
    assert IndexStore.open(project / "output").n_rows("text_unit_text") == len(units)


def test_a_check_finds_nothing(project: Path) -> None:
    health = check_index(open_for_check(project / "output"), Check())
    assert found(health) == {}


def test_a_second_run_asks_nothing(project: Path, server: Server) -> None:
    asked = len(server.requests)
    result = run(project)
    assert result.returncode == 0
    assert "Nothing changed" in result.stdout
    assert len(server.requests) == asked


def test_the_ledger_replaces_the_server(project: Path, server: Server, tmp_path: Path) -> None:
    root = write_project(tmp_path / "again", server.url)
    (root / "output").mkdir()
    shutil.copy(project / "output" / FILE, root / "output" / FILE)
    asked = len(server.requests)
    assert run(root).returncode == 0
    paths = [request.path for request in server.requests[asked:]]
    # Only whether the server is there was asked, which costs nothing.
    assert set(paths) <= {"/v1/models"}
    assert read_files(root) == read_files(project)


def test_the_key_is_in_no_file(project: Path) -> None:
    files = [path for path in project.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_five_poisoned_text_units_cost_exactly_those_five(
    project: Path, server: Server, tmp_path: Path
) -> None:
    units = read_table(project, "base_text_units")
    chosen = random.Random(1).sample(range(len(units)), 5)
    poison = {units["text"][number]: kind for number, kind in zip(
        chosen, ("content_filter", "refusal", "400_content_filter", "wrong_schema", "prose"),
        strict=True,
    )}  # fmt: skip
    with Server(dimensions=32, faults=Faults(by_text=poison)) as bad:
        root = write_project(tmp_path / "poisoned", bad.url)
        result = run(root, "--set", "workflow=extraction")
        assert result.returncode == 2  # no such workflow yet
        steps = ["load_documents", "create_text_units", "extract_graph"]
        (root / "workflows" / "extraction.yaml").write_text(yaml.safe_dump(steps), "utf-8")
        result = run(root, "--set", "workflow=extraction")
        # Prose around a reply is no fault of it.
        assert result.returncode == 3
        assert "4 requests have no valid reply" in result.stderr
        ledger = Ledger(root / "output")
        quarantined = ledger.quarantined_requests(["extract_graph"])
        ledger.close()
        assert len(quarantined) == 4
        named = set(read_table(root, "extracted_mentions")["text_unit"].unique())
        whole = set(read_table(project, "extracted_mentions")["text_unit"].unique())
        assert whole - named == whole & set(chosen[:4])
        # Said again by the next run, until `retry` finds the fault gone.
        assert run(root, "--set", "workflow=extraction").returncode == 3
        allowed = run(root, "--set", "workflow=extraction", "--allow-partial", "50%")
        assert allowed.returncode == 0
        bad.faults = Faults()
        asked = len(bad.requests)
        # Not while another run asks.
        with lock_output(TableStore(root / "output")):
            again = call(root, "retry", "--set", "workflow=extraction", MODEL_KEY=KEY)
            assert again.returncode == 2
            assert "Another run is writing" in again.stderr
            assert "4 requests have no valid reply" in call(root, "status", MODEL_KEY=KEY).stdout
        again = call(root, "retry", "--set", "workflow=extraction", MODEL_KEY=KEY)
        assert again.returncode == 0, again.stderr
        chats = [request for request in bad.requests[asked:] if "chat" in request.path]
        assert len(chats) == 4
        assert read_files(root)["extracted_mentions"] == read_files(project)["extracted_mentions"]


def test_a_third_of_the_replies_faulty(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "FIRST_DELAY", 0.02)
    kinds = [
        *("400", "401", "404", "408", "429", "429_retry_ms", "500", "503", "hang", "close"),
        *("close_half", "truncated_json", "malformed_content", "wrong_schema", "empty_content"),
        *("null_content", "empty_choices", "content_filter", "refusal", "endless", "length"),
        *("prose", "fences", "think", "wrong_size", "nan_vectors", "fewer_vectors"),
    ]
    faults = Faults(rate=0.3, kinds=kinds, redraw=True, retry_after=0.05)
    with Server(dimensions=32, faults=faults) as bad:
        root = write_project(tmp_path / "faulty", bad.url, 2, concurrency=32, timeout=0.5)
        result = run(root)
        assert result.returncode in (0, 3), result.stderr
        ledger = Ledger(root / "output")
        rows = ledger.step_statuses()
        quarantined = ledger.quarantined_requests(row.step for row in rows)
        ledger.close()
        assert sum(row.open for row in rows) == 0
        assert (result.returncode == 3) == bool(quarantined)
        # One screen of them, and how many more there are.
        listed = [f"{row.step}, {row.unit}: {row.reason}" in result.stderr for row in quarantined]
        assert sum(listed) == min(MAX_PRINTED_REQUESTS, len(quarantined))
        if len(quarantined) > MAX_PRINTED_REQUESTS:
            assert f"... and {len(quarantined) - MAX_PRINTED_REQUESTS} more" in result.stderr
        # What is left is mended by asking again, once all is well.
        bad.faults = Faults()
        again = call(root, "retry", MODEL_KEY=KEY)
        assert again.returncode == 0, again.stderr


@contextmanager
def server_process(log: Path) -> Iterator[str]:
    """The server in a process of its own, which outlives the killed ones."""
    options = ["--port", "0", "--dimensions", "32", "--latency", "0.02", "--log", str(log)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.model_server", *options],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1]
        finally:
            process.kill()


def killed_again_and_again(root: Path, n_kills: int, seed: int) -> int:
    """Kill runs at random moments until one ends; the number of kills."""
    chance = random.Random(seed)
    for kill in range(n_kills):
        with subprocess.Popen(
            command("run", "--quiet"), cwd=root, env=environment(MODEL_KEY=KEY)
        ) as process:
            time.sleep(chance.uniform(0.8, 3.0))
            if process.poll() is not None:
                return kill
            process.send_signal(signal.SIGKILL)
    result = run(root)
    assert result.returncode == 0, result.stderr
    return n_kills


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize(
    "n_kills", [2, pytest.param(50, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_killed_at_random_moments_nothing_is_paid_twice(n_kills: int, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    n_documents = 3 if n_kills < 10 else 25
    # So few tokens that every first request has this limit: an equal request has an equal body.
    limits = {"concurrency": 4, "max_output_tokens": 1_000}
    with server_process(log) as url:
        root = write_project(tmp_path / "killed", url, n_documents, **limits)
        killed_again_and_again(root, n_kills, seed=n_kills)
        asked = [row for row in read_log(log) if not row["path"].endswith("/models")]
        undisturbed = write_project(tmp_path / "undisturbed", url, n_documents, **limits)
        assert run(undisturbed).returncode == 0
    # Those in flight at a kill were not answered: the server saw the client leave.
    answered = counts(row for row in asked if row["status"] == 200)
    in_flight = counts(row for row in asked if row["status"] != 200)
    twice = {key for key, times in answered.items() if times > 1}
    # An answer that was on its way when the process died is in flight too: at most as many as
    # were asked at once, for each kill.
    assert len(twice) <= n_kills * 8
    assert set(in_flight) <= set(answered)
    assert read_files(root) == read_files(undisturbed)


def test_status_tells_tokens_and_money(project: Path) -> None:
    out = call(project, "status", MODEL_KEY=KEY).stdout
    assert "extract_graph" in out
    assert "set `price` of this model" in out
    priced = "models.chat.price={input: 1.0, output: 2.0}"
    assert call(project, "status", "--set", priced, MODEL_KEY=KEY).returncode == 0


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("models.chat.model=none", "has no model 'none'"),
        ("models.chat.base_url=http://127.0.0.1:9/v1", "no server answers"),
        ("models.embedding.model=none", "has no model 'none'"),
        ("extract_graph.model=nobody", "but the section models has no such model"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    wrong: str, sentence: str, tmp_path: Path
) -> None:
    with Server(models=["test-model", "test-embedding"], api_keys=[KEY]) as server:
        root = write_project(tmp_path / "wrong", server.url, n_documents=1)
        result = run(root, "--set", wrong)
        assert result.returncode in (1, 2)
        assert sentence in result.stderr
        assert len(result.stderr.splitlines()) == 1
        result = call(root, "run", MODEL_KEY="sk-wrong-key-000000")
        assert result.returncode == 1
        assert "does not accept the key" in result.stderr
        assert "sk-wrong" not in result.stderr
        assert {request.path for request in server.requests} <= {"/v1/models"}
