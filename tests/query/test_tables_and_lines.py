"""Rows of tables longer than a text unit, and words and items that lines divide, in answers."""

import shutil
from itertools import product
from pathlib import Path

import pytest

import graphrag_query
from graphrag_index.health.checked_index import open_for_check
from graphrag_index.health.checks import check_index
from graphrag_index.schema.settings.step_sections import Check
from graphrag_query.answer import Outcome
from graphrag_query.index import Index
from tests.conftest import copy_project, run_project
from tests.fixtures.cases import cases
from tests.fixtures.small_index import read_table

ROWS = range(1, 31)
SIDES = ["North", "East", "South", "West", "Quay", "Mill"]
WORKERS = [f"Worker {chr(65 + n % 26)}{n}" for n in range(31)]
PUMPS = [f"| P-{n:03} | {WORKERS[n]} | {100 + 7 * n} | zone {n % 4} |" for n in ROWS]
VALVES = [f"| V-{n:03} | Keeper {n} | {500 + 3 * n} |" for n in ROWS]
FANS = [f"<tr><td>F-{n:03}<td>{300 + n}<td>{300 + 7 * n}</tr>" for n in ROWS]
MOTORS = [f"M-{n:03}\t{700 + 3 * n}\thall {n}" for n in ROWS]
GEARS = [f"G-{n:03} | gear box {n} | {1000 + n:,}" for n in ROWS]
STATIONS = [
    f"| {town} {side} | {1890 + 7 * n} | {'open closed'.split()[n % 2]} |"
    for n, (side, town) in enumerate(
        product(SIDES, ["Brackenfell", "Dunmere", "Eastwick", "Hollins"])
    )
]
FLATS = {
    town: [f"| Flat {n} | {rent + 7 * n} | floor {n % 5} |" for n in ROWS]
    for town, rent in (("Harwick", 600), ("Selby", 900))
}
FILES = {
    "rents.md": [
        f"Table {n}: Flats of the society in {town}\n\n| Flat | Rent | Floor |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n\nThe rents are due on the first day of each month.\n"
        for n, (town, rows) in enumerate(FLATS.items(), start=1)
    ],
    # The name that a question asks about is in the first column of one table only.
    "harbour.md": [
        "## Berths\n\n| Berth | Ship | Captain |\n|---|---|---|",
        *(f"| B{n} | Gull {n} | Skipper {n} |" for n in ROWS),
        "\n## Fees\n\n| Ship | Fee |\n|---|---|",
        *(f"| Gull {n} | {300 + 9 * n} |" for n in ROWS),
    ],
    "stations.md": ["| Station | Opened | Status |", "|---|---|---|", *STATIONS],
    "pumps.md": ["# Pumps\n", "| Pump | Responsible | Flow | Zone |", "|---|---|---|---|", *PUMPS],
    # As the converters write tables of office files.
    "valves.md": ["|  |  |  |", "|---|---|---|", "| Valve | Keeper | Pressure |", *VALVES],
    "fans.html": ["<table><tr><th>Fan<th>Price 2019<th>Price 2020</tr>", *FANS, "</table>"],
    "motors.txt": ["Motor\tSpeed\tHall", *MOTORS],
    "gears.txt": ["Gear | Name | Torque", *GEARS],
    "a.txt": [
        "Anna Berg founded the Blue Lamp So-\nciety in Harbour Street. The soci-",
        "ety meets every Monday evening.",
    ],
    "b.txt": [
        "林海是青石港的第一任港务长。一九五三年，林海修建了北码",
        "头。陈月是林海的学生，她每天都在北码头检查货船。北码头很长。",
    ],
    "c.txt": ["Otto Lenz leitet die Hafen¬\nverwaltung seit 1987. Er wohnt am Markt."],
    "d.txt": ["The G R E E N   L A N T E R N is kept by Ida Falk."],
    "list.md": [
        "# Works\n\n- The Frobnicator was designed by Maria Lopez in the city of",
        "  Barcelona in 1987.\n- The Whatsit was built by Ole Hansen, who had come from",
        "  Bergen as a boy.\n\n1. First the water is heated to ninety degrees for",
        "   twelve minutes.",
    ],
    "notes.txt": [
        "Updates since 1.2\n",
        ' * The option "--keep-empty" of the command has been removed, since it had',
        "   no effect after version 1.1.\n",
        ' * When "tool -i" gave control back for a step that is',
        "   skipped, the message named the wrong step.",
    ],
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = copy_project(tmp_path_factory.mktemp("tables") / "project")
    shutil.rmtree(project / "input")
    (project / "input").mkdir()
    for name, lines in FILES.items():
        (project / "input" / name).write_text("\n".join(lines), encoding="utf-8")
    run_project(project, "create_text_units.max_tokens=240", "create_text_units.overlap_tokens=20")
    return project


@pytest.fixture(scope="module")
def index(project: Path) -> Index:
    return graphrag_query.open(project / "output")


def ask(index: Index, project: Path, question: str) -> str:
    answer = index.ask(question)
    assert answer.outcome is Outcome.ANSWERED
    texts = dict(read_table(project, "documents").select("id", "text").iter_rows())
    for citation in answer.citations:
        whole = texts[citation.document_id]
        assert whole[citation.start_char : citation.end_char] == citation.quote
    return answer.text


@cases("question, cell")
def test_one_row_is_quoted_with_the_names_of_its_columns(
    index: Index, project: Path, question: str, cell: str
) -> None:
    first, _, others = ask(index, project, question).partition("[1]")
    assert cell in first
    assert not others.strip()


@cases("question, sentence")
def test_what_a_line_end_divides_is_whole_in_answers(
    index: Index, project: Path, question: str, sentence: str
) -> None:
    assert sentence in ask(index, project, question)


def test_each_text_unit_of_a_table_is_found_by_its_header_and_cites_its_rows(
    index: Index, project: Path
) -> None:
    units = read_table(project, "text_units")
    pumps = units.filter(units["text"].str.contains("P-0"))
    assert pumps.height > 2
    found = index.store.vectors("text_unit_text").find_matching_rows("responsible", 9, ["id"])
    assert {*found["id"]} == {*pumps["id"]}
    for number in pumps["human_readable_id"][1:]:
        unit = index.store.text_units([number])[number]
        assert unit["text"] == "\n".join(FILES["pumps.md"][1:3]) + "\n" + unit["source"]
    passages = index.passages("Who is responsible for P-030?")
    assert all("Responsible" not in p.text or p.start_char == 0 for p in passages)


def test_names_are_whole_and_their_mentions_are_where_their_parts_stand(project: Path) -> None:
    titles = read_table(project, "entities")["title"].to_list()
    assert {"Blue Lamp Society", "北码头"} <= {*titles}
    units = dict(
        read_table(project, "text_units").select("human_readable_id", "document_id").rows()
    )
    texts = dict(read_table(project, "documents").select("id", "text").iter_rows())
    said = {
        texts[units[unit]][start:end]
        for entity, unit, start, end in read_table(project, "mentions").iter_rows()
        if titles[entity] in ("Blue Lamp Society", "北码头")
    }
    assert said == {"Blue Lamp So-\nciety", "北码\n头", "北码头"}


def test_check_finds_the_vectors_of_what_is_read(project: Path) -> None:
    health = check_index(open_for_check(project / "output"), Check())
    [vectors] = [one.result for one in health.outcomes if one.name == "stale_vectors"]
    assert vectors.of
    assert not vectors.findings
