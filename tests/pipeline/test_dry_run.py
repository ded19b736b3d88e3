"""`run --dry-run`: what would happen and what it would cost, against what then happens."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from graphrag_index.llm.ledger import Ledger
from graphrag_index.readers import recognition
from tests.conftest import run_project
from tests.fixtures.commands import Call, Result, files, small_project, write_project
from tests.fixtures.model_project import KEY
from tests.fixtures.model_project import write_project as write_model_project
from tests.fixtures.pdf import make_pdf
from tests.fixtures.sample_files import FakeTesseract, make_zip, picture
from tests.model_server import Server

READ = ["load_documents", "create_text_units"]
TEXTS = {"a.txt": "One.", "b.txt": "Two.", "c.txt": "Three."}
CSV = "key,text\n1,First thing.\n2,Second thing.\n3,Third thing.\n"


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project without models, after a run; tests must not change it."""
    root = write_project(tmp_path_factory.mktemp("dry") / "project", READ, documents=TEXTS)
    run_project(root)
    return root


@pytest.fixture
def project(indexed: Path, tmp_path: Path) -> Path:
    """A copy of it to change."""
    return Path(shutil.copytree(indexed, tmp_path / "project", symlinks=True))


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> "CallIn":
    monkeypatch.setenv("MODEL_KEY", KEY)
    return CallIn(capsys)


class CallIn(Call):
    """Calls a command on a project."""

    def __call__(self, root: Path, *arguments: str | Path) -> Result:  # type: ignore[override]
        return super().__call__(*arguments, "--root", root)

    def dry_run(self, root: Path, *arguments: str) -> str:
        """What it prints; it must leave every file as it is."""
        before = files(root)
        result = self(root, "run", "--dry-run", *arguments)
        assert (result.code, result.err) == (0, "")
        assert files(root) == before
        return result.out


def change_input(folder: Path) -> None:
    (folder / "new.txt").write_text("Four.", encoding="utf-8")
    (folder / "a.txt").write_text("One and a half.", encoding="utf-8")
    (folder / "b.txt").rename(folder / "z.txt")
    (folder / "c.txt").unlink()


def test_the_first_run_adds_all(tmp_path: Path, call: CallIn) -> None:
    root = write_project(tmp_path, READ, documents=TEXTS)
    assert call.dry_run(root) == (
        "There is no index yet: 3 added documents, 0 unchanged.\n"
        "  added    a.txt, b.txt, c.txt\n"
        "Steps that would run: load_documents, create_text_units.\n"
        "None of these steps asks a model: the run costs nothing.\n"
    )
    assert not (root / "output").exists()


def test_an_index_that_is_up_to_date_would_stay(project: Path, call: CallIn) -> None:
    said = call.dry_run(project)
    assert said.startswith("Nothing would change: ")
    assert said.endswith("output is up to date (version 1).\n")


def test_each_change_is_told_and_the_run_says_the_same(project: Path, call: CallIn) -> None:
    change_input(project / "input")
    (project / "input" / "bad.json").write_text("{", encoding="utf-8")
    lines = call.dry_run(project).splitlines()
    assert lines[:5] == [
        "Since version 1: 1 added, 1 changed, 1 renamed, 1 deleted documents, 0 unchanged.",
        "  added    new.txt",
        "  changed  a.txt",
        "  renamed  b.txt to z.txt",
        "  deleted  c.txt",
    ]
    assert lines[5] == "1 file or record would not be read:"
    assert lines[6].startswith("  bad.json: ")
    (project / "input" / "bad.json").unlink()
    result = call(project, "run")
    first, second, *_ = result.out.splitlines()
    assert first == "Since version 1: 1 added, 1 changed, 1 renamed, 1 deleted documents."
    assert second.startswith("  1  load_documents")
    assert call.dry_run(project).startswith("Nothing would change")
    # Nothing is said of the input where nothing changed in it.
    again = call(project, "run", "--set", "create_text_units.max_tokens=100")
    assert "Since version" not in again.out


def test_records_of_one_file_are_compared_by_their_ids(tmp_path: Path, call: CallIn) -> None:
    root = write_project(
        tmp_path, READ, "load_documents: {id_column: key}\n", documents={"t.csv": CSV}
    )
    assert call(root, "run").code == 0
    text = CSV.replace("First", "Other").replace("2,", "4,")
    (root / "input" / "t.csv").write_text(text, encoding="utf-8")
    lines = call.dry_run(root).splitlines()
    assert lines[:4] == [
        "Since version 1: 1 added, 1 changed, 1 deleted documents, 1 unchanged.",
        "  added    t.csv",
        "  changed  t.csv",
        "  deleted  t.csv",
    ]


def test_what_reads_the_same_again_would_change_nothing_after_it(
    project: Path, call: CallIn
) -> None:
    path = project / "input" / "a.txt"
    path.write_text("One.", encoding="utf-16")
    lines = call.dry_run(project).splitlines()
    assert lines[0] == "Since version 1: no document changed, 3 unchanged."
    assert lines[1:] == [
        "Steps that would run: load_documents.",
        "Steps whose input has not changed: create_text_units.",
        "None of these steps asks a model: the run costs nothing.",
    ]
    assert " unchanged  3 text units" in call(project, "run").out


def test_changed_settings_are_no_change_of_the_input(project: Path, call: CallIn) -> None:
    lines = call.dry_run(project, "--set", "create_text_units.max_tokens=100").splitlines()
    assert lines[0] == "The input has not changed."
    assert lines[1] == "Steps that would run: create_text_units."


def test_programs_read_json(project: Path, call: CallIn) -> None:
    change_input(project / "input")
    told = json.loads(call.dry_run(project, "--json"))
    assert told["version"] == 1
    assert {kind: found["count"] for kind, found in told["documents"].items()} == dict.fromkeys(
        ("added", "changed", "renamed", "deleted"), 1
    )
    assert told["steps"] == {"run": READ, "kept": []}
    assert told["requests"] == told["unread"] == []
    assert call(project, "run", "--json").code == 2


def test_steps_of_ones_own_that_read_no_documents_are_planned(tmp_path: Path, call: CallIn) -> None:
    root = small_project(tmp_path)
    assert call.dry_run(root).splitlines()[0].startswith("Steps that would run: list_numbers")


@pytest.mark.parametrize("fault", ["empty", "missing", "output is a file", "damaged index"])
def test_what_a_run_refuses_is_refused_with_the_same_words(
    fault: str, project: Path, call: CallIn
) -> None:
    if fault == "empty":
        shutil.rmtree(project / "input")
        (project / "input").mkdir()
    elif fault == "missing":
        shutil.rmtree(project / "input")
    elif fault == "damaged index":
        (project / "output" / "index.json").write_text("{", encoding="utf-8")
    else:
        shutil.rmtree(project / "output")
        (project / "output").write_text("", encoding="utf-8")
    told, done = call(project, "run", "--dry-run"), call(project, "run")
    assert (told.code, told.err) == (done.code, done.err)
    assert told.code in (1, 2)


def test_documents_that_the_index_has_lost_are_not_taken_for_added(
    project: Path, call: CallIn
) -> None:
    (path,) = project.glob("output/versions/1/loaded_documents-*.parquet")
    path.unlink()
    assert call.dry_run(project).splitlines()[0] == (
        "The index lacks a list of its documents: a run would read all again."
    )


def test_the_pages_that_are_pictures_and_their_time_are_told(
    project: Path, call: CallIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pypdfium2")
    (tmp_path / "bin").mkdir()
    FakeTesseract(tmp_path / "bin").install()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(recognition, "_count_cores", lambda: 1)
    (project / "input" / "a.png").write_bytes(picture())
    (project / "input" / "b.zip").write_bytes(make_zip({"c.png": picture(90)}))
    told = call.dry_run(project)
    assert "\n2 pages are pictures: about 6 s to read them.\n" in told
    assert json.loads(call.dry_run(project, "--json"))["pictures"] == (
        "2 pages are pictures: about 6 s"
    )


def asked(root: Path) -> Counter[str]:
    ledger = Ledger(root / "output")
    counts = Counter({row.step: row.done for row in ledger.step_statuses()})
    ledger.close()
    return counts


def count_chats(server: Server, n_before: int) -> Counter[str]:
    """Count the requests to the chat model after the first ones, by the format of the reply."""
    return Counter(
        request.json["response_format"]["json_schema"]["name"]
        for request in server.requests[n_before:]
        if "chat" in request.path
    )


def test_an_update_asks_what_the_dry_run_said(tmp_path: Path, server: Server, call: CallIn) -> None:
    price = {"input": 1.0, "output": 4.0}
    root = write_model_project(tmp_path / "models", server.url, 3, price=price)
    assert call(root, "run").code == 0
    folder = root / "input"
    first, second, third = sorted(folder.iterdir())
    with first.open("a", encoding="utf-8") as stream:
        stream.write("\n\nAda Quill met Bo Reed in Oslo, and both sailed for Hobart.\n")
    second.rename(folder / f"renamed-{second.name}")
    third.unlink()
    (folder / "new.md").write_text("# Oslo\n\nAda Quill met Cy Orr in Oslo.\n", encoding="utf-8")
    before, n_sent = asked(root), len(server.requests)
    told = json.loads(call.dry_run(root, "--json"))
    assert len(server.requests) == n_sent
    lines = {line["step"]: line for line in told["requests"]}
    assert call(root, "run").code == 0
    sent = count_chats(server, n_sent)
    for step, format in (("extract_graph", "extraction"), ("extract_covariates", "claims")):
        assert 2 <= lines[step]["n_to_ask"] == sent[format] < before[step]
        assert lines[step]["cost"] > 0
    # A guess: more than none.
    assert lines["create_community_reports"]["n_to_ask"] > 0
    assert lines["create_community_reports"]["n_answered"] > 0


def test_a_pdf_costs_what_its_changed_pages_cost(
    tmp_path: Path, server: Server, call: CallIn
) -> None:
    pytest.importorskip("pypdfium2")
    root = write_model_project(tmp_path / "models", server.url, 1)
    pages = [
        [(72.0, 700.0 - 14 * n, f"Ada Quill met Bo Reed{page}{n} in Oslo.") for n in range(40)]
        for page in "ABCD"
    ]
    path = root / "input" / "a.pdf"
    path.write_bytes(make_pdf(pages))
    settings = ("--set", "create_text_units.max_tokens=100")
    assert call(root, "run", *settings).code == 0
    first = asked(root)["extract_graph"]
    # Written anew, with the same text.
    path.write_bytes(make_pdf(pages, extra="/Lang (en)"))
    n_sent = len(server.requests)
    assert call(root, "run", *settings).code == 0
    assert len(server.requests) == n_sent
    pages[3][39] = (72.0, 154.0, "Cy Orr left Hobart.")
    path.write_bytes(make_pdf(pages))
    assert call(root, "run", *settings).code == 0
    # The text unit with the changed line, or two if it is at an edge.
    assert 1 <= count_chats(server, n_sent)["extraction"] <= 2 < first / 4


def test_steps_that_are_kept_are_not_counted(tmp_path: Path, server: Server, call: CallIn) -> None:
    root = write_model_project(tmp_path / "kept", server.url, 1)
    assert call(root, "run").code == 0
    lines = call.dry_run(root, "--set", "models.embedding.dimensions=16").splitlines()
    assert lines[:2] == [
        "The input has not changed.",
        "Steps that would run: generate_text_embeddings.",
    ]
    table = [line.split()[0] for line in lines[4:7]]
    assert table == ["step", "embedding:", "generate_text_embeddings"]
    assert lines[6].split()[1] == "0" != lines[6].split()[2]
    # Of vectors nothing is a guess.
    assert "guess" not in "".join(lines)
