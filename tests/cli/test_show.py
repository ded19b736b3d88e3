import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from graphrag_index.cli.index_tables import PrintedTable, format_table, write_overview
from graphrag_nlp.text.normalize import fit_line
from tests.fixtures.small_index import table, write_index


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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


def test_a_terminal_gets_tables_with_lines_and_names_as_they_are(tmp_path):
    entity = {"title": "[bold]Fram[/bold]", "degree": 3}
    write_index(tmp_path, entities=table("entities", entity))
    out = Terminal()
    write_overview(tmp_path, out)
    assert "───" in out.getvalue()
    assert "[bold]Fram[/bold]" in out.getvalue()


def test_names_cannot_steer_the_terminal():
    assert fit_line("red \x1b[31m and\r\nback \u202eward") == "red [31m and back ward"


def test_long_names_are_cut():
    assert fit_line("x" * 60) == "x" * 60
    assert fit_line("x" * 61) == "x" * 59 + "…"
    assert fit_line("南" * 31) == "南" * 29 + "…"


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_columns_stay_aligned_whatever_the_names(names):
    section = PrintedTable("Names", ("name", "number"), [(name, 7) for name in names])
    lines = format_table(section).splitlines()
    assert len(lines) == len(names) + 2
    assert all(line.isprintable() for line in lines)
    assert all(line.endswith("7") for line in lines[2:])


@pytest.mark.parametrize("name", ["Amundsen", "南極大陸", "Nordenskjo\u0308ld", "Тихий океан"])
def test_wide_letters_and_accents_are_counted_as_a_terminal_shows_them(name):
    section = PrintedTable("Names", ("name", "number"), [(name, 7), ("a name that is longer", 8)])
    first, second = format_table(section).splitlines()[2:]
    assert cell_len(first) == cell_len(second)
