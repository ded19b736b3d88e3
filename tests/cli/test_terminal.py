"""What a run prints of its steps, and draws on a terminal."""

import os
import pty
import re
import subprocess
from pathlib import Path

from graphrag_index.cli.terminal import describe_tables
from graphrag_index.storage.versions import StepRecord, StoredTable
from tests.fixtures.commands import command, environment, small_project


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


class TestTerminal:
    def run_in_terminal(self, root: Path, *arguments: str, **variables: str) -> str:
        """What a run draws on a terminal of 100 columns."""
        main, side = pty.openpty()
        with subprocess.Popen(
            command("run", *arguments),
            cwd=root,
            env=environment(TERM="xterm", COLUMNS="100", LINES="30", **variables),
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
        assert any(re.search(r"\d MB", text) for text in frames)
        assert re.search(r"1  list_numbers +\d\.\d s  12 numbers\r\n", drawn)
        assert re.search(r"\nDone in \d+\.\d s\.\r\n", drawn)
        assert "\x1b[35m" in drawn or "\x1b[38" in drawn

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
