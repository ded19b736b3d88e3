"""What a run prints of its steps, the overview of an index, and what a terminal draws."""

import io
import logging
import os
import pty
import re
import subprocess
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from graphrag_index.cli.printed_tables import format_section, write_overview
from graphrag_index.cli.terminal import MessageHandler, describe_progress, describe_tables
from graphrag_index.errors import print_lines
from graphrag_index.storage.versions import StepRecord, StoredTable
from graphrag_nlp.text.normalize import fit_line
from tests.fixtures.commands import command, environment, small_project
from tests.fixtures.small_index import table, write_index


def test_a_step_is_described_by_what_it_wrote() -> None:
    tables = {
        "loaded_documents": StoredTable(2_100, "d", file="d"),
        "unread_files": StoredTable(9, "s", file="s"),
    }
    assert describe_tables(StepRecord("load_documents", "key", tables)) == "2,100 documents"


def test_vectors_that_a_second_table_repeats_are_counted_once() -> None:
    tables = {
        "text_unit_text": StoredTable(5, "a", lance_version=1),
        "text_unit_vectors": StoredTable(5, "b", file="v.arrow"),
        "entity_description": StoredTable(3, "c", lance_version=2),
    }
    assert describe_tables(StepRecord("generate_text_embeddings", "key", tables)) == "8 vectors"


@pytest.mark.parametrize(
    ("done", "total", "unit", "speed", "said"),
    [
        (1_024, 8_093, "texts", None, "1,024/8,093 texts"),
        (1_024, 8_093, "texts", 512.4, "1,024/8,093 texts, 512 a second"),
        (5_404, 5_558_837, "bytes", 2.5e6, "0.0/5.6 MB, 2.5 MB a second"),
        (3, None, "records", None, "3 records"),
        (0, None, "", None, ""),
    ],
)
def test_progress_is_described_in_the_unit_of_the_step(
    done: float, total: float | None, unit: str, speed: float | None, said: str
) -> None:
    assert describe_progress(done, total, unit, speed) == said


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestLines:
    def test_a_terminal_gets_them_broken_at_words(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "30")
        screen = Screen()
        print_lines("2,251 entities and 11,146 relationships\n  a.csv: has no field 'text'", screen)
        assert screen.getvalue() == (
            "2,251 entities and 11,146\nrelationships\n  a.csv: has no field 'text'\n"
        )

    def test_the_lines_that_follow_are_indented(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "24")
        screen = Screen()
        print_lines("  a.csv: has no field 'text'", screen, indent=2)
        assert screen.getvalue() == "  a.csv: has no field\n    'text'\n"

    def test_a_file_gets_them_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "24")
        file = io.StringIO()
        print_lines("2,251 entities and 11,146 relationships", file)
        assert file.getvalue() == "2,251 entities and 11,146 relationships\n"


def test_a_message_goes_to_the_stderr_of_its_moment() -> None:
    handler = MessageHandler()
    # A progress bar redirects stderr while it is drawn.
    with redirect_stderr(io.StringIO()) as redirected:
        handler.emit(logging.makeLogRecord({"msg": "2 text units", "levelno": logging.WARNING}))
    assert redirected.getvalue() == "2 text units\n"


class TestTerminal:
    def run_in_terminal(
        self, root: Path, *arguments: str, columns: int = 100, **variables: str
    ) -> str:
        """What a run draws on a terminal."""
        main, side = pty.openpty()
        with subprocess.Popen(
            command("run", *arguments),
            cwd=root,
            env=environment(TERM="xterm", COLUMNS=str(columns), LINES="30", **variables),
            stdin=side,
            stdout=side,
            stderr=side,
        ) as process:
            os.close(side)
            drawn = b""
            while True:
                try:
                    part = os.read(main, 65536)
                except OSError:  # Linux reports the end of a terminal as an error.
                    break
                if not part:
                    break
                drawn += part
        os.close(main)
        assert process.returncode == 0
        return drawn.decode("utf-8")

    def test_a_long_step_has_a_bar_that_makes_way_for_its_line(self, tmp_path: Path) -> None:
        settings = "steps: {list_numbers: {batches: 4, pause: 0.2}}\n"
        root = small_project(tmp_path, settings)
        drawn = self.run_in_terminal(root)
        frames = [text for text in re.split(r"[\r\n]", drawn) if "list_numbers" in text]
        assert any("━" in text and "2/4" in text and "batches" in text for text in frames)
        assert any("a second" in text for text in frames)
        assert re.search(r"1  list_numbers +\d\.\d s  12 numbers\r\n", drawn)
        assert re.search(r"\nDone in \d+\.\d s\.\r\n", drawn)
        assert "\x1b[35m" in drawn or "\x1b[38" in drawn

    def test_a_narrow_terminal_has_the_whole_count_in_one_line(self, tmp_path: Path) -> None:
        settings = "steps: {list_numbers: {batches: 4, pause: 0.2}}\n"
        drawn = self.run_in_terminal(small_project(tmp_path, settings), columns=60)
        plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", drawn)
        frames = [text for text in re.split(r"[\r\n]", plain) if "━" in text]
        assert any("2/4 batches" in text for text in frames)
        assert max(map(len, frames)) <= 60
        # A bar of two lines would have to be erased with the line above it.
        assert "\x1b[1A\x1b[2K\x1b[1A" not in drawn

    def test_no_color_means_none(self, tmp_path: Path) -> None:
        settings = "steps: {list_numbers: {batches: 2, pause: 0.2}}\n"
        drawn = self.run_in_terminal(small_project(tmp_path, settings), NO_COLOR="1")
        assert "━" in drawn
        # Colours are the codes that end in m; 1, 2 and 0 are bold, dim and back to plain.
        assert set(re.findall(r"\x1b\[([\d;]*)m", drawn)) <= {"0", "1", "2", ""}

    def test_messages_are_not_drawn_over_by_bars(self, tmp_path: Path) -> None:
        drawn = self.run_in_terminal(small_project(tmp_path), "--verbose")
        assert "DEBUG: list_numbers runs with ListNumbers(" in drawn
        assert "━" not in drawn


def overview(output: Path) -> str:
    out = io.StringIO()
    write_overview(output, out)
    return out.getvalue()


def sections(text: str) -> dict[str, list[str]]:
    """The lines of each section by its title, the first being what stands above them."""
    return {part.splitlines()[0]: part.splitlines()[1:] for part in text.split("\n\n")}


def test_the_overview_counts_everything_and_names_the_main_things(tmp_path):
    write_index(
        tmp_path,
        documents=table("documents", *({"language": x} for x in ("en", "de", "en"))),
        entities=table(
            "entities",
            {"title": "Scott", "type": "person", "degree": 2, "frequency": 1200},
            {"human_readable_id": 1, "title": "Fram", "type": "name", "degree": 9, "frequency": 3},
        ),
        relationships=table("relationships"),
        communities=table(
            "communities",
            {"community": 0, "level": 0, "size": 1, "title": "Community 0"},
            {"community": 1, "level": 0, "size": 2, "title": "Community 1"},
            {"community": 2, "level": 1, "size": 1, "title": "Community 2"},
        ),
        community_reports=table("community_reports", {"community": 1, "title": "Ships"}),
    )

    found = sections(overview(tmp_path))

    head, *_ = found
    assert head == (
        f"Version 1 of {tmp_path}, written by the workflow small of graphrag-index 0.1.0"
    )
    assert found["Tables"] == [
        "  table              rows",
        "  documents             3",
        "  entities              2",
        "  relationships         0",
        "  communities           3",
        "  community_reports     1",
    ]
    assert found["Languages"] == [
        "  language  documents",
        "  en                2",
        "  de                1",
    ]
    assert found["Levels"] == [
        "  level  communities  entities",
        "      0            2         3",
        "      1            1         1",
    ]
    assert found["Largest communities of level 0"] == [
        "  community  entities  title of the report",
        "          1         2  Ships",
        "          0         1  Community 0",
    ]
    assert found["Main entities"] == [
        "  entity  type    neighbours  text units",
        "  Fram    name             9           3",
        "  Scott   person           2       1,200",
    ]


def test_only_the_first_of_many_are_named(tmp_path):
    communities = [{"community": n, "size": 100 - n} for n in range(30)]
    entities = [{"title": f"e{n}", "degree": 100 - n} for n in range(30)]
    write_index(
        tmp_path,
        communities=table("communities", *communities),
        entities=table("entities", *entities),
    )
    found = sections(overview(tmp_path))
    assert [line.split()[0] for line in found["Largest communities of level 0"][1:]] == [
        str(n) for n in range(10)
    ]
    assert [line.split()[0] for line in found["Main entities"][1:]] == [f"e{n}" for n in range(15)]


def test_the_size_on_disk_counts_each_file_once(tmp_path):
    (tmp_path / "versions").mkdir()
    (tmp_path / "versions" / "old.bin").write_bytes(bytes(2_000_000))
    (tmp_path / "linked.bin").symlink_to("versions/old.bin")
    write_index(tmp_path, entities=table("entities", {"title": "Fram"}))
    (row,) = sections(overview(tmp_path))["On disk"][1:]
    assert row.split() == [tmp_path.name, "2.0", "MB"]


def test_names_cannot_steer_the_terminal():
    assert fit_line("red \x1b[31m and\r\nback \u202eward") == "red [31m and back ward"


def test_long_names_are_cut():
    assert fit_line("x" * 60) == "x" * 60
    assert fit_line("x" * 61) == "x" * 59 + "…"
    assert fit_line("南" * 31) == "南" * 29 + "…"


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_columns_stay_aligned_whatever_the_names(names):
    section = format_section("Names", ("name", "number"), [(name, 7) for name in names])
    lines = section.splitlines()
    assert len(lines) == len(names) + 2
    assert all(line.isprintable() for line in lines)
    assert all(line.endswith("7") for line in lines[2:])


@pytest.mark.parametrize("name", ["Amundsen", "南極大陸", "Nordenskjo\u0308ld", "Тихий океан"])
def test_wide_letters_and_accents_are_counted_as_a_terminal_shows_them(name):
    section = format_section("Names", ("name", "number"), [(name, 7), ("a name that is longer", 8)])
    first, second = section.splitlines()[2:]
    assert cell_len(first) == cell_len(second)
