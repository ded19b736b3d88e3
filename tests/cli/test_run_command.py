"""The command `run`: what it prints, and the tables that it leaves."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.conftest import copy_project
from tests.fixtures.commands import (
    REPOSITORY,
    Call,
    call,
    small_project,
    write_project,
)
from tests.fixtures.in_process import call_here
from tests.fixtures.object_server import new_bucket, serve_objects, set_credentials
from tests.fixtures.small_index import REDACT, SHIPPED, TEXTS

PLACE = r"\S*/output\b|s3://[^\s,:]+|\n (output|copy of the bucket)"
EXPEDITIONS = REPOSITORY / "input" / "expeditions"
QUESTION = "Who led the expedition?"


def table(root: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(root / "output" / f"{name}.parquet")


class TestRun:
    def test_each_step_is_a_line_and_the_end_says_what_there_is_and_what_comes_next(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path / "project", SHIPPED, documents=TEXTS)
        result = graphrag_index("run", "--root", root)
        assert (result.code, result.err) == (0, "")
        *steps, empty, counts, place, ask = result.out.splitlines()
        assert [line.split()[:2] for line in steps] == [
            [str(number), name] for number, name in enumerate(SHIPPED, 1)
        ]
        assert all(re.fullmatch(r" +\d  \w+ +\d+\.\d s  [\d,]+ .*", line) for line in steps), steps
        assert steps[0].endswith("2 documents")
        entities = table(root, "entities").height
        assert empty == ""
        assert counts.startswith(f"2 documents, 2 text units, {entities} entities, ")
        assert place == f"The tables are in {root / 'output'} (version 1)."
        assert ask == (f'Ask it: graphrag-query global "What are the main themes?" --root {root}')
        assert "\x1b" not in result.out

        again = graphrag_index("run", "--root", root)
        assert again.code == 0
        assert again.out.count("unchanged") == len(SHIPPED)
        assert f"Nothing changed: {root / 'output'} is up to date (version 1)." in again.out

        overview = graphrag_index("show", "--root", root)
        assert (overview.code, overview.err) == (0, "")
        assert "Amundsen" in overview.out
        page = tmp_path / "page.html"
        wrote = graphrag_index("show", "--root", root, "--html", page).out
        assert wrote.startswith(f"Wrote {page}: ")
        assert wrote.endswith(" entities, the texts of 2 of 2 documents.\n")
        assert 'id="index-data"' in page.read_text(encoding="utf-8")

    def test_an_index_in_a_place_of_an_option_is_asked_there(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = small_project(tmp_path)
        options = ("--set", "output=my index", "--set", "steps.list_numbers.count=2")
        *_, ask = graphrag_index("run", "--root", root, *options).out.splitlines()
        assert ask.endswith(f"--root {root} --set 'output=my index'")

    def test_quiet_prints_nothing_when_all_is_well(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        result = graphrag_index("run", "--root", small_project(tmp_path), "--quiet")
        assert (result.code, result.out, result.err) == (0, "", "")

    def test_verbose_tells_what_the_program_does_and_nothing_of_other_libraries(
        self, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path, SHIPPED[:2], documents=TEXTS)
        result = call(root, "run", "--verbose")
        assert result.returncode == 0
        lines = result.stderr.splitlines()
        assert lines[0].startswith("DEBUG: load_documents runs with LoadDocuments(folder='input'")
        assert all(line.startswith("DEBUG: ") for line in lines)
        assert any(
            re.fullmatch(r"DEBUG: documents: 2 rows in versions/1/documents-\w+\.parquet", line)
            for line in lines
        )

    def test_files_that_were_not_read_are_listed_each_time(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path, SHIPPED[:1], documents={**TEXTS, "bad.json": "{"})
        for _ in range(2):
            result = graphrag_index("run", "--root", root, "--quiet")
            assert (result.code, result.out) == (3, "")
            assert "\n1 file or record was not read:\n  bad.json: " in result.err
            assert result.err.endswith("Correct or remove these files and run again.\n")
        (root / "input" / "bad.json").unlink()
        assert graphrag_index("run", "--root", root, "--quiet").code == 0

    def test_skipped_files_are_counted_by_run_status_and_check(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = write_project(tmp_path, SHIPPED[:1], documents={**TEXTS, "bad.json": "{"})
        (root / "input" / ".git").mkdir()
        for name in ("a.bin", "b.bin", ".git/c", ".git/d", ".git/e"):
            (root / "input" / name).write_bytes(b"\0")
        told = "5 files skipped: hidden 3, .bin 2."
        hint = f"`graphrag-index status --all --root {root}` lists them."
        result = graphrag_index("run", "--root", root)
        assert (result.code, f"\n{told} {hint}\n" in result.out) == (3, True)
        assert "\nAll others but the skipped files are in the index. Correct" in result.err
        assert f"\n{told}\n" in call(root, "status").stdout
        listed = call(root, "status", "--all").stdout
        assert "\n  bad.json: is not valid JSON in or after record 1" in listed
        assert f"\n{told}\n  .git: is hidden\n  a.bin: is application/octet-stream by" in listed
        checked = call(root, "check", "--json").stdout
        assert f'"{told}"' in checked
        assert '"1 file or record was not read: status --all lists them."' in checked
        # A file more is seen, although no document has changed.
        (root / "input" / "c.bin").write_bytes(b"\0")
        (root / "input" / "bad.json").unlink()
        result = graphrag_index("run", "--root", root)
        assert (result.code, result.err) == (0, "")
        assert "\n6 files skipped: .bin 3, hidden 3." in result.out

    def test_a_column_that_no_record_has_is_told_and_is_no_failure(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        settings = "load_documents: {metadata_columns: [autor]}\n"
        records = {"a.csv": "author,text\nScott,One.\n", "b.csv": "author,text\nFram,Two.\n"}
        root = write_project(tmp_path, SHIPPED[:1], settings, records)
        result = call(root, "run")
        assert (result.returncode, result.stderr) == (
            0,
            "WARNING: load_documents.metadata_columns: no record and no front matter has 'autor'; "
            "their fields are author, text.\n",
        )

    def test_many_unread_files_are_counted(self, graphrag_index: Call, tmp_path: Path) -> None:
        bad = {f"{number:02}.json": "{" for number in range(25)}
        root = write_project(tmp_path, SHIPPED[:1], documents={**TEXTS, **bad})
        result = graphrag_index("run", "--root", root)
        assert result.code == 3
        assert "25 files or records were not read:" in result.err
        assert "  19.json: " in result.err
        assert "20.json" not in result.err
        assert "  ... and 5 more, all in the table unread_files.\n" in result.err

    def test_an_override_is_given_on_the_command_line(
        self, graphrag_index: Call, tmp_path: Path
    ) -> None:
        root = small_project(tmp_path)
        result = graphrag_index(
            *("run", "--root", root, "--set", "steps.list_numbers.count=5"),
            *("--set", "output=elsewhere"),
        )
        assert result.code == 0
        assert "5 numbers" in result.out
        assert not (root / "output").exists()
        assert (root / "elsewhere" / "index.json").is_file()

    def test_a_step_of_ones_own_changes_what_those_after_it_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "path", sys.path.copy())

        def run(*options: str) -> "subprocess.CompletedProcess[str]":
            """Run with the step as it is now, as another process would import it."""
            sys.modules.pop("my_steps", None)
            return call(root, "run", *options)

        steps = ["load_documents", "my_steps:redact", *SHIPPED[1:3]]
        settings = "steps: {redact: {words: [Amundsen]}}\n"
        root = write_project(tmp_path, steps, settings, TEXTS)
        (root / "my_steps.py").write_text(REDACT, encoding="utf-8")

        assert "run: load_documents, redact, " in run("--dry-run").stdout
        result = run()
        assert (result.returncode, result.stderr) == (0, "")
        number, name, _, *wrote = result.stdout.splitlines()[1].split()
        assert (number, name, wrote) == ("2", "redact", ["s", "2", "documents"])
        assert table(root, "documents")["text"].to_list() == [
            "Roald ___ reached the South Pole. ___ sailed on the Fram.",
            "Robert Scott reached the South Pole after Roald ___.",
        ]
        unchanged = run().stdout
        assert unchanged.count("unchanged") == len(steps)

        # A change in a function that the step calls is a change of the step.
        (root / "my_steps.py").write_text(REDACT.replace("___", "XX"), encoding="utf-8")
        changed = run().stdout.splitlines()
        assert [("unchanged" in line) for line in changed[:4]] == [True, False, False, False]
        assert table(root, "documents")["text"][1].endswith("after Roald XX.")

        wrong = run("--set", "steps.redact.word=[Scott]")
        assert wrong.returncode == 2
        assert wrong.stderr == ("Error: steps.redact: unknown key 'word'; did you mean 'words'?\n")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serve_objects() as address:
        yield address


class Project:
    """A project with a few documents. Each command is given on a new machine."""

    def __init__(self, folder: Path, address: str | None) -> None:
        self.root, self.address, self.n_machines = folder / "project", address, 0
        copy_project(self.root)
        shutil.rmtree(self.root / "input")
        (self.root / "input").mkdir()
        for name in ("aurora-mawson.md", "discovery.md"):
            self.add(name)

    def add(self, name: str) -> None:
        """Add the beginning of a document of the sample."""
        text = (EXPEDITIONS / name).read_text(encoding="utf-8")[:1500]
        (self.root / "input" / name).write_text(text, encoding="utf-8")

    def __call__(self, program: str, *arguments: str) -> str:
        """Give a command; return what it prints, without times, places and sizes."""
        self.n_machines += 1
        output = [] if self.address is None else ["--set", f"output={self.address}"]
        cache = str(self.root.parent / f"machine-{self.n_machines}")
        done = call_here(
            f"graphrag-{program}",
            [*arguments, "--root", str(self.root), *output],
            self.root.parent,
            {"GRAPHRAG_INDEX_CACHE": cache},
        )
        assert done.returncode == 0, done.stderr
        printed = re.sub(" +", " ", done.stdout.replace(str(self.root.parent), "*"))
        return re.sub(rf"{PLACE}|\d[\d.]* [kM]?B|[\d.]+ s\b|\d+:\d+", "*", printed)


def give_all(project: Project) -> dict[str, str]:
    """Give all commands that read or change an index; return what they print."""
    told = {}

    def give(program: str, *arguments: str) -> None:
        told[f"{len(told)} {arguments[0]}"] = project(program, *arguments)

    give("index", "run", "--quiet")
    project.add("belgica.md")
    (project.root / "input" / "aurora-mawson.md").unlink()
    give("index", "run", "--quiet", "--purge")
    give("index", "diff", "1", "2")
    give("query", "local", QUESTION)
    give("query", "global", QUESTION)
    give("query", "basic", QUESTION, "--as-of", "1")
    give("index", "export", str(project.root.parent / "exported"), "--to", "microsoft")
    give("index", "rollback", "1")
    give("query", "basic", QUESTION)
    give("index", "versions")
    give("index", "gc", "--keep", "1")
    give("index", "check")
    give("index", "show")
    give("index", "status")
    return told


def test_commands_do_in_a_bucket_what_they_do_in_a_folder(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_credentials(monkeypatch)
    on_disk = Project(tmp_path / "disk", None)
    in_bucket = Project(tmp_path / "bucket", new_bucket(server))
    told = give_all(in_bucket)
    assert told == give_all(on_disk)
    exported, other = (one.root.parent / "exported" for one in (in_bucket, on_disk))
    tables = [path.name for path in exported.glob("*.parquet")]
    assert "entities.parquet" in tables
    for name in tables:
        assert_frame_equal(pl.read_parquet(exported / name), pl.read_parquet(other / name))
    # What was exported is imported into another bucket, and read from there.
    imported = Project(tmp_path / "imported", new_bucket(server))
    imported("index", "import", str(exported), "--quiet")
    assert imported("query", "local", QUESTION) == told["3 local"]
