"""Quality of graphs with known answers."""

import json
from pathlib import Path

import polars as pl
import pytest

from graphrag_evaluation.graph_quality.graph_measurement import measure_structure
from graphrag_evaluation.graph_quality.grounding import (
    Figure,
    measure_grounding,
    measure_report_claims,
)
from graphrag_evaluation.statistics import ratio_interval
from graphrag_index.health.checked_index import CheckedIndex
from graphrag_index.schema.tables import TABLES
from tests.fixtures.commands import Call
from tests.fixtures.literal_index import make_index, means, two_triangles

TEXT = "Émile Racoviță sailed on the Belgica. He studied penguins in 1898."


def test_entities_alone_and_components_are_counted() -> None:
    found = measure_structure(two_triangles())
    assert means(found) == {
        "duplicate_names": 0,
        "alone": round(1 / 7, 3),
        "small_components": round(1 / 7, 3),
        "largest_component": round(6 / 7, 3),
    }
    assert found["doubtful_names"] == "Microsoft GraphRAG does not compare names"


def test_a_pair_of_entities_is_a_small_component() -> None:
    index = two_triangles(relationships=pl.LazyFrame({"source": ["a"], "target": ["b"]}))
    assert means(measure_structure(index))["small_components"] == 1


def test_names_that_differ_in_accents_are_equal() -> None:
    # Two titles of marks only are not known to be one name.
    titles = ["Racoviță", "RACOVITA", "Belgica", "南极", "南极。", "?!", "…"]
    index = make_index(entities=[{"id": title, "title": title} for title in titles])
    figure = measure_structure(index)["duplicate_names"]
    assert isinstance(figure, Figure)
    assert (figure.interval.mean, figure.interval.n) == (4 / 7, 7)
    assert list(figure.examples) == ["Racoviță = RACOVITA", "南极 = 南极。"]


def test_a_text_unit_is_evidence_if_it_holds_the_names() -> None:
    index = make_index(
        text_units=[
            {"id": "u0", "document_id": "letter", "text": TEXT},
            {"id": "u1", "document_id": "letter", "text": "The Belgica returned in 1899."},
        ],
        entities=[
            {"id": "1", "title": "EMILE RACOVITA", "type": "", "text_unit_ids": ["u0", "u1"]},
            {"id": "2", "title": "BELGICA", "type": "ship", "text_unit_ids": ["u0", "u1", "u9"]},
            # Microsoft GraphRAG has an entity for each title and type.
            {"id": "3", "title": "BELGICA", "type": "event", "text_unit_ids": ["u1"]},
            {"id": "4", "title": "ENGUIN", "type": "", "text_unit_ids": ["u0"]},
        ],
        relationships=[
            {
                "source": "EMILE RACOVITA",
                "target": "BELGICA",
                "weight": 1.0,
                "text_unit_ids": ["u0", "u1"],
            },
            {"source": "BELGICA", "target": "ENGUIN", "weight": 1.0, "text_unit_ids": ["u0"]},
            {"source": "BELGICA", "target": "NOBODY", "weight": 1.0, "text_unit_ids": ["u0"]},
        ],
        communities=[{"community": 0, "level": 0, "entity_ids": ["1", "2", "3", "4"]}],
        covariates=[
            {"text_unit_id": "u0", "source_text": '"HE STUDIED penguins" "in 1899."'},
            {"text_unit_id": "u0", "source_text": None},
        ],
    )
    figures = measure_grounding(index)
    assert means(figures) == {
        # Not in the second text unit: Racovita. Not in the first: "Enguin", part of a word.
        "grounded_mentions": 0.667,
        "grounded_entities": 0.75,
        "grounded_relationships": 0.333,
        "grounded_claims": 0.5,
    }
    figure = figures["grounded_relationships"]
    assert isinstance(figure, Figure)
    assert figure.interval.n == 3
    assert list(figure.examples) == [
        "EMILE RACOVITA – BELGICA: text unit 1",
        "BELGICA – ENGUIN: text unit 0",
    ]
    # The alias of an entity is a name of it.
    aliases = pl.Series("aliases", [["Racoviță"], [], ["returned"], ["penguins"]])
    index.tables["entities"] = index.tables["entities"].with_columns(aliases)
    named = CheckedIndex(Path("literal"), "a test", None, index.tables)
    assert means(measure_grounding(named))["grounded_entities"] == 1


def test_words_of_a_quotation_may_be_left_out() -> None:
    quotes = ['"Racoviță sailed … penguins in 1898"', '"He studied ... whales"', '"…"']
    index = make_index(
        text_units=[{"id": "unit", "text": TEXT}],
        covariates=[{"text_unit_id": "unit", "source_text": quote} for quote in quotes],
    )
    figure = measure_grounding(index)["grounded_claims"]
    assert isinstance(figure, Figure)
    assert (figure.interval.mean, figure.interval.n) == (0.5, 2)
    assert list(figure.examples) == ['"He studied ... whales"']


def test_sources_without_numbers_are_cited_by_row() -> None:
    index = make_index(
        text_units=[{"text": "The ship left Antwerp."}, {"text": TEXT}],
        community_reports=[
            {"community": 0, "full_content": "Racoviță studied penguins. [Data: Sources (1)]"}
        ],
    )
    assert means(measure_report_claims(index))["supported_claims"] == 1


def test_sentences_of_reports_are_supported_by_the_rows_they_cite() -> None:
    report = (
        "# Belgica\n\nRacoviță studied penguins. [Data: Sources (0)] "
        "Penguins elected a new parliament. [Data: Sources (0)] "
        "The voyage lasted nine years. [Data: Entities (77)] Nobody knows this sentence."
    )
    index = make_index(
        text_units=[{"human_readable_id": 0, "text": TEXT}],
        community_reports=[{"community": 5, "full_content": report}],
    )
    figures = measure_report_claims(index)
    assert means(figures) == {"cited_claims": 0.75, "supported_claims": 0.333}
    figure = figures["supported_claims"]
    assert isinstance(figure, Figure)
    assert figure.examples[0] == "report on community 5: The voyage lasted nine years."


def test_counts_of_the_program_are_no_claims() -> None:
    report = (
        "Racoviță studied penguins. [Data: Sources (0)]\n\n"
        "3 documents, dated 1898 to 1899: 2 people and 1 other place. 3 documents were lost at sea."
    )
    index = make_index(
        text_units=[{"human_readable_id": 0, "text": TEXT}],
        community_reports=[{"community": 5, "full_content": report}],
    )
    figures = measure_report_claims(index)
    assert means(figures) == {"cited_claims": 0.5, "supported_claims": 1}
    figure = figures["cited_claims"]
    assert isinstance(figure, Figure)
    assert list(figure.examples) == ["report on community 5: 3 documents were lost at sea."]


@pytest.mark.parametrize("has_tables", [True, False])
def test_an_index_without_rows_gives_reasons(has_tables: bool) -> None:
    names = [name for name, table in TABLES.items() if table.kind == "public"]
    tables = {name: TABLES[name].empty().lazy() for name in names if has_tables}
    index = CheckedIndex(Path("empty"), "a test", None, tables)
    found = {
        **measure_grounding(index),
        **measure_structure(index),
        **measure_report_claims(index),
    }
    assert len(found) == 11
    assert all(isinstance(why, str) and why for why in found.values())


def test_clusters_are_drawn_as_a_whole() -> None:
    interval = ratio_interval([3, 1, 0], [4, 4, 0])
    assert interval is not None
    assert (interval.mean, interval.n) == (0.5, 8)
    # Two clusters: both draws may be the worse one, or the better one.
    assert (interval.low, interval.high) == (0.25, 0.75)
    assert ratio_interval([], []) is None


def test_the_graph_of_a_project_is_measured(sample_project: Path, graphrag_index: Call) -> None:
    arguments = ["evaluate", "graph", "--root", str(sample_project)]
    found = json.loads(graphrag_index(*arguments, "--json").out)["indexes"][str(sample_project)]
    measures = found["measures"]
    assert measures["grounded_mentions"]["mean"] > 0.99
    assert measures["duplicate_names"]["mean"] == 0
    assert measures["supported_claims"]["mean"] > 0.99
    assert measures["cited_claims"]["mean"] == 1
    assert list(found["not_measured"]) == ["grounded_claims"]


@pytest.fixture
def folder_of_tables(tmp_path: Path) -> Path:
    """A folder with tables as Microsoft GraphRAG writes them: two triangles."""
    for name, rows in two_triangles().tables.items():
        rows.collect().write_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize(
    ("option", "code", "said"),
    [
        ("--fail-below largest_component=0.85", 0, ""),
        ("--fail-below alone=0.5", 1, "alone of {} is 0.1429, below 0.5."),
        ("--fail-above alone=0.1", 1, "alone of {} is 0.1429, above 0.1."),
        ("--fail-below grounded_claims=0", 1, "cannot be measured: the index has no claims."),
        ("--fail-below beauty=1", 2, "There is no measure 'beauty' of a graph, but"),
        ("--fail-above alone", 2, "--fail-above alone: write it as measure=0.9."),
        ("--as-of 3", 2, "--as-of needs its versions."),
        ("--against {}/nowhere", 1, "nowhere"),
    ],
)
def test_limits_and_places_are_checked(
    folder_of_tables: Path, graphrag_index: Call, option: str, code: int, said: str
) -> None:
    options = option.format(folder_of_tables).split()
    told = graphrag_index("evaluate", "graph", "--root", folder_of_tables, *options)
    assert told.code == code, told.err
    assert said.format(folder_of_tables) in told.err


def test_a_broken_table_is_told(folder_of_tables: Path, graphrag_index: Call) -> None:
    (folder_of_tables / "relationships.parquet").write_bytes(b"PAR1 cut off")
    told = graphrag_index("evaluate", "graph", "--root", folder_of_tables)
    assert told.code == 1
    assert "relationships cannot be read" in told.err
    assert "Traceback" not in told.err
