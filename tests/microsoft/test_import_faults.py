"""Imports of what is broken, interrupted or in the way."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from graphrag_index.errors import ExitCode
from graphrag_index.pipeline.history import lock_output
from graphrag_index.storage.table_store import TableStore
from tests.fixtures.commands import Call
from tests.fixtures.importing import chats, read
from tests.model_server import Server


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def _rewrite(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    change(pl.read_parquet(path)).write_parquet(path)


BROKEN: Mapping[str, tuple[Callable[[Path], object], tuple[str, ...], str]] = {
    "a missing table": (lambda f: (f / "entities.parquet").unlink(), (), "has no entities.parquet"),
    "a missing column": (
        lambda f: _rewrite(f / "relationships.parquet", lambda rows: rows.drop("target")),
        (),
        "relationships.parquet has no column target",
    ),
    "a file that was cut off": (
        lambda f: _cut(f / "text_units.parquet"),
        (),
        "text_units.parquet cannot be read",
    ),
    "a null where none may be": (
        lambda f: _rewrite(
            f / "entities.parquet",
            lambda rows: rows.with_columns(text_unit_ids=pl.lit([None], pl.List(pl.String))),
        ),
        (),
        "entities.parquet makes the table entities with null inside of the column text_unit_ids",
    ),
    "vectors of another width": (
        lambda f: None,
        ("--set", "models.embedding.dimensions=7"),
        "has 4 numbers, and the embedding model test-embedding gives 7",
    ),
    "no folder": (shutil.rmtree, (), "does not exist"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_is_told_and_nothing_is_written(
    graphrag_index: Call, theirs: Path, project: Path, case: str
) -> None:
    breaking, options, said = BROKEN[case]
    breaking(theirs)
    settings = (project / "settings.yaml").read_bytes()
    result = graphrag_index("import", theirs, "--root", project, *options)
    assert result.code != ExitCode.DONE
    assert said in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (project / "imported").exists()
    assert not list((project / "output").glob("versions/*"))
    assert (project / "settings.yaml").read_bytes() == settings
    if case == "vectors of another width":
        assert graphrag_index("import", theirs, "--root", project, "--no-vectors").code == 0


def test_an_index_that_is_there_is_replaced_only_if_asked_and_can_be_had_back(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    graphrag_index("import", theirs, "--root", project)
    result = graphrag_index("import", theirs, "--root", project)
    assert result.code == ExitCode.WRONG_USE
    assert "--replace" in result.err
    result = graphrag_index("import", project / "output", "--root", project, "--replace")
    assert "is an index of this program already" in result.err
    (project / "input" / "new.txt").write_text("Eve met Bo.")
    assert graphrag_index("run", "--root", project).code == 0
    assert graphrag_index("import", theirs, "--root", project, "--replace").code == 0
    assert read(project, "documents").height == 2
    assert graphrag_index("rollback", "2", "--root", project).code == 0
    assert read(project, "documents").height == 3
    assert "standard_imported" in (project / "settings.yaml").read_text()
    assert graphrag_index("versions", "--root", project).code == 0
    assert graphrag_index("status", "--root", project).code == 0


def test_what_was_interrupted_is_begun_again_and_what_is_damaged_is_told(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    result = graphrag_index("run", "--root", project, "--set", "workflow=imported")
    assert "There is no imported index" in result.err
    graphrag_index("import", theirs, "--root", project)
    # As if it had been killed between its files and its version.
    shutil.rmtree(project / "output")
    (project / ".imported.tmp").mkdir()
    assert graphrag_index("import", theirs, "--root", project).code == 0
    assert not (project / ".imported.tmp").exists()
    _cut(project / "imported" / "entities.parquet")
    result = graphrag_index("run", "--root", project)
    assert result.code == ExitCode.WRONG_USE
    assert "imported/entities.parquet is cut off or changed: import the index again" in result.err


def test_where_the_version_of_what_was_imported_is_gone_a_run_makes_it_again(
    graphrag_index: Call, theirs: Path, project: Path, server: Server
) -> None:
    graphrag_index("import", theirs, "--root", project)
    graphrag_index("run", "--root", project)
    names = ("community_reports", "text_unit_text", "community_full_content")
    before = {name: read(project, name) for name in names}
    asked = len(server.requests)
    shutil.rmtree(project / "output")
    result = graphrag_index("run", "--root", project)
    assert result.code == 0, result.err
    assert "The imported index is version 1 again; this run updates it." in result.out
    # Vectors too: what is asked is what the first run asked.
    assert len(server.requests) == 2 * asked
    assert not chats(server)
    for name in names:
        assert_frame_equal(read(project, name), before[name])
    assert "is version" not in graphrag_index("run", "--root", project).out


def test_after_a_rollback_to_before_the_import_its_reports_are_not_paid_again(
    graphrag_index: Call, theirs: Path, project: Path, server: Server
) -> None:
    (project / "input" / "own.txt").write_text("Eve met Bo in Rome. Bo met Eve in Rome.")
    assert graphrag_index("run", "--root", project).code == 0
    assert graphrag_index("import", theirs, "--root", project, "--replace").code == 0
    assert graphrag_index("run", "--root", project).code == 0
    before, asked = read(project, "community_reports"), len(chats(server))
    assert graphrag_index("rollback", "1", "--root", project).code == 0
    result = graphrag_index("run", "--root", project)
    assert "The imported index is version 5 again" in result.out
    assert len(chats(server)) == asked
    assert_frame_equal(
        read(project, "community_reports").drop("id"), before.drop("id"), check_row_order=False
    )


@pytest.mark.parametrize("text", ["", "- no_such_step\n", "just words\n"])
def test_a_workflow_that_cannot_be_gone_on_from_is_told(
    graphrag_index: Call, theirs: Path, project: Path, text: str
) -> None:
    (project / "workflows" / "standard.yaml").write_text(text, encoding="utf-8")
    result = graphrag_index("import", theirs, "--root", project)
    assert result.code == 0, result.err
    assert "A workflow that updates the imported index could not be written: " in result.out


def test_an_entity_without_a_name_does_not_end_the_run(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    path = theirs / "entities.parquet"
    first = pl.int_range(pl.len()) == 0
    _rewrite(
        path,
        lambda rows: rows.with_columns(title=pl.when(first).then(pl.lit(" ")).otherwise("title")),
    )
    assert graphrag_index("import", theirs, "--root", project).code == 0
    result = graphrag_index("run", "--root", project)
    assert result.code == 0, result.err


def test_the_folder_of_theirs_is_not_written_over(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    before = {path: path.read_bytes() for path in theirs.glob("*.parquet")}
    settings = ("--set", f"output={theirs}")
    result = graphrag_index("import", theirs, "--root", project, *settings)
    assert result.code == ExitCode.WRONG_USE
    assert "is the output folder of this project" in result.err
    assert {path: path.read_bytes() for path in theirs.glob("*.parquet")} == before
    assert not (project / "imported").exists()


def test_a_second_process_waits_for_its_turn(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    with lock_output(TableStore(project / "output")):
        result = graphrag_index("import", theirs, "--root", project)
    assert "Another run is writing" in result.err
    assert not (project / "imported").exists()


def test_a_workflow_without_the_imported_index_needs_documents(
    graphrag_index: Call, theirs: Path, project: Path
) -> None:
    graphrag_index("import", theirs, "--root", project)
    result = graphrag_index("run", "--root", project, "--set", "workflow=standard")
    assert result.code == ExitCode.WRONG_USE
    assert "is empty" in result.err
