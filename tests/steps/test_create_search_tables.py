"""The tables that searches read besides vectors."""

from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.generate_text_embeddings import create_search_tables
from graphrag_index.storage.memo import join_batches
from graphrag_index.storage.table_store import TableStore
from graphrag_nlp.text.normalize import fold_names, phonetic_keys
from graphrag_query.store.links import Links
from tests.fixtures.small_index import table

PLACE = {"document_id": "d1", "start_char": 3, "end_char": 9}
DOCUMENTS = table(
    "documents",
    {"id": "d0", "title": "Diary (1911)", "path": "a.md", "metadata": None},
    {"id": "d1", "title": "Tom Crean", "path": "b.md", "human_readable_id": 1},
)
TEXT_UNITS = table(
    "text_units",
    {"id": "t0", "document_id": "d0", "end_char": 20, "n_tokens": 5},
    {"id": "t1", "document_id": "d1", "end_char": 12, "n_tokens": 3, "human_readable_id": 1},
    {"id": "t2", "document_id": "d1", "start_char": 12, "end_char": 30, "human_readable_id": 2},
)
ENTITIES = table(
    "entities",
    {"id": "e0", "title": "Fram", "degree": 1, "frequency": 1},
    {
        **{"id": "e1", "human_readable_id": 1, "title": "Tom Crean", "degree": 2},
        **{"aliases": ["Crean"], "evidence": [PLACE], "frequency": 2},
    },
    {"id": "e2", "human_readable_id": 2, "title": "Tom Müller", "degree": 1, "frequency": 1},
)
RELATIONSHIPS = table(
    "relationships",
    {
        **{"id": "r0", "source_id": "e1", "target_id": "e0", "weight": 1.5},
        **{"text_unit_ids": ["t0", "t2"], "evidence": [PLACE], "description": "sailed on"},
    },
    {
        **{"id": "r1", "human_readable_id": 1, "source_id": "e2", "target_id": "e1"},
        **{"weight": 2.0, "type": "friend", "text_unit_ids": ["t2"]},
    },
)
MENTIONS = table(
    "mentions",
    {"entity": 0, "text_unit": 0, "start_char": 1, "end_char": 5},
    {"entity": 1, "text_unit": 0, "start_char": 7, "end_char": 9},
    {"entity": 0, "text_unit": 0, "start_char": 10, "end_char": 14},
    {"entity": 1, "text_unit": 2, "start_char": 13, "end_char": 18},
    {"entity": 2, "text_unit": 2, "start_char": 20, "end_char": 25},
)
COMMUNITIES = table(
    "communities",
    {"id": "c0", "entity_ids": ["e2", "e0", "e1"], "parent": -1, "children": [1], "size": 3},
    {
        **{"id": "c1", "community": 1, "human_readable_id": 1, "level": 1, "parent": 0},
        **{"entity_ids": ["e1", "e2"], "size": 2},
    },
)
REPORTS = table(
    "community_reports",
    {"id": "s1", "community": 1, "level": 1, "title": "Friends", "rank": 4.5},
    {"id": "s0", "title": "All", "findings": [{"explanation": "x", "summary": "y"}]},
)
COVARIATES = table(
    "covariates",
    {"id": "v0", "subject_id": "CREAN", "object_id": "Fram", "text_unit_id": "t2"},
    {"id": "v1", "subject_id": "Nobody", "object_id": None, "text_unit_id": "t0"},
)


def written(**changed: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
    """Run the step on the tables above, some of them changed."""
    tables: dict[str, pl.DataFrame | None] = {
        **{"documents": DOCUMENTS, "text_units": TEXT_UNITS, "entities": ENTITIES},
        **{"relationships": RELATIONSHIPS, "mentions": MENTIONS, "communities": COMMUNITIES},
        **{"community_reports": REPORTS, "covariates": COVARIATES, **changed},
    }
    batches = create_search_tables(
        *(None if frame is None else frame.lazy() for frame in tables.values())
    )
    made = join_batches(batches)
    return {
        one.name: made[one.name].select(list(one.columns)) if one.name in made else one.empty()
        for one in create_search_tables.writes
    }


def rows(name: str, *values: tuple[object, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(values), TABLES[name].schema, orient="row")


def test_text_units_and_entities_are_linked_both_ways() -> None:
    found = written()
    expected = rows(
        "entities_of_text_units",
        # The first of a text unit whose title names none of its entities; then by title.
        (0, 0, True, 2),
        (0, 1, False, 1),
        (1, 1, True, 0),
        (2, 1, True, 1),
        (2, 2, False, 1),
    )
    assert_frame_equal(found["entities_of_text_units"], expected)
    assert_frame_equal(
        found["text_units_of_entities"],
        rows(
            "text_units_of_entities",
            (0, 0, True, 2),
            (1, 0, False, 1),
            (1, 1, True, 0),
            (1, 2, True, 1),
            (2, 2, False, 1),
        ),
    )


def test_relationships_stand_at_both_ends_the_heaviest_first() -> None:
    assert_frame_equal(
        written()["relationships_of_entities"],
        rows(
            "relationships_of_entities",
            (0, 1, 0, 1.5),
            (1, 2, 1, 2.0),
            (1, 0, 0, 1.5),
            (2, 1, 1, 2.0),
        ),
    )


def test_rows_name_each_other_by_number() -> None:
    found = written()
    place = {"document": 1, "start_char": 3, "end_char": 9}
    assert found["relationship_rows"].rows() == [
        (1, 0, "", "sailed on", 1.5, [0, 2], [place]),
        (2, 1, "friend", "", 2.0, [2], []),
    ]
    columns = ("id", "document", "start_char", "end_char", "n_tokens")
    assert found["text_unit_rows"].select(columns).rows() == [
        ("t0", 0, 0, 20, 5),
        ("t1", 1, 0, 12, 3),
        ("t2", 1, 12, 30, 0),
    ]
    assert found["entity_rows"].row(1) == (
        *("e1", "Tom Crean", "", "", 2, 2),
        *(["Crean"], [place]),
    )
    assert found["document_rows"]["path"].to_list() == ["a.md", "b.md"]
    assert found["document_rows"]["metadata"].to_list() == [None, ""]


def test_communities_are_found_from_their_entities() -> None:
    found = written()
    assert found["communities_of_entities"].rows() == [
        *((0, 0, 0), (1, 0, 0), (1, 1, 1)),
        *((2, 0, 0), (2, 1, 1)),
    ]
    assert found["community_rows"]["entities"].to_list() == [[0, 1, 2], [1, 2]]
    assert found["community_rows"]["children"].to_list() == [[1], []]


def test_themes_are_found_from_their_text_units() -> None:
    themes = [
        {"id": "c0", "level": 0, "community": 0, "theme": True, "text_unit_ids": ["t2", "t0"]},
        {"id": "c1", "level": 0, "community": 1, "theme": True, "text_unit_ids": ["t1"]},
        {"id": "c2", "level": 1, "community": 2, "theme": True, "text_unit_ids": ["t0", "t2"]},
        {"id": "c3", "level": 2, "community": 3, "text_unit_ids": ["t0", "t1"]},
    ]
    found = written(communities=table("communities", *themes))["themes_of_text_units"]
    assert found.rows() == [(0, 0, 0), (0, 1, 2), (1, 0, 1), (2, 0, 0), (2, 1, 2)]
    shared = [{**theme, "text_unit_ids": ["t0", "t1"]} for theme in themes]
    assert not written(communities=table("communities", *shared))["themes_of_text_units"].height
    assert not written()["themes_of_text_units"].height


def test_reports_are_found_from_their_communities() -> None:
    found = written()
    assert found["report_rows"].select("community", "level", "title").rows() == [
        (1, 1, "Friends"),
        (0, 0, "All"),
    ]
    findings = found["report_rows"]["findings"].to_list()
    assert findings == [[], [{"explanation": "x", "summary": "y"}]]
    assert found["community_places"].rows() == [(0, 0, 1), (1, 1, 0)]


def test_communities_whose_numbers_have_gaps_are_found_by_number() -> None:
    numbers = [(0, 9), (0, 40), (1, 3), (1, 12)]
    found = written(
        communities=table(
            "communities",
            *({"id": f"c{n}", "level": level, "community": n} for level, n in numbers),
        ),
        community_reports=table(
            "community_reports",
            {"id": "s3", "level": 1, "community": 3},
            {"id": "s9", "community": 9},
            {"id": "s40", "community": 40},
        ),
    )
    assert found["community_rows"]["community"].to_list() == [9, 40, 3, 12]
    assert found["community_places"].rows() == [(3, 2, 0), (9, 0, 1), (12, 3, -1), (40, 1, 2)]


def test_names_are_folded_and_words_know_their_entities_by_degree() -> None:
    found = written()
    assert found["entity_names"].rows() == [
        *(("crean", 1), ("fram", 0), ("tom crean", 1), ("tom muller", 2))
    ]
    assert found["name_words"].rows() == [
        *(("crean", [1]), ("fram", [0]), ("muller", [2]), ("tom", [1, 2]))
    ]
    assert found["name_sounds"].rows() == [("fram"[0] + "rm", [1]), ("krn", [0]), ("mlr", [2])]


def test_documents_are_found_by_their_titles_without_brackets_too() -> None:
    assert written()["title_names"].rows() == [("diary", 0), ("diary 1911", 0), ("tom crean", 1)]


def test_documents_are_found_by_the_names_of_their_subjects() -> None:
    head = "Company: Fram\nPeriod: Q3 2022\n\nOur fiscal year ends in June."
    documents = (
        {"id": "d0", "title": "b.txt", "path": "b.txt", "text": head},
        {"id": "d1", "title": "Fram Q4 2022", "path": "c.txt", "metadata": None},
        {"id": "d2", "title": "", "path": "c.csv", "metadata": '{"who": "Tom Müller"}'},
        {"id": "d3", "title": None, "path": "", "text": None, "creation_date": "2022-05-04"},
    )
    units = [{"id": f"t{n}", "document_id": f"d{n // 2}", "human_readable_id": n} for n in range(8)]
    named = [(0, 0), (1, 1), (2, 5)]  # entity, text unit
    found = written(
        documents=table("documents", *documents),
        text_units=table("text_units", *units),
        mentions=table("mentions", *({"entity": e, "text_unit": u} for e, u in named)),
    )
    days = [date(2022, *day).toordinal() for day in ((7, 1), (9, 30), (10, 1), (12, 31), (5, 4))]
    assert found["document_subjects"].rows() == [
        ("Company: Fram; Period: Q3 2022", "Fram", days[0], days[1], False, 6),
        ("Fram Q4 2022", "Fram", days[2], days[3], False, 0),
        ("who: Tom Müller", "Tom Müller", 0, 0, False, 0),
        ("", "", days[4], days[4], False, 0),
    ]
    assert found["subject_names"].rows() == [
        *(("b", [0]), ("c", [1, 2]), ("fram", [0, 1]), ("tom muller", [2]))
    ]
    assert found["subject_words"].rows() == [
        *(("b", [0]), ("c", [1]), ("fram", [2]), ("muller", [3]), ("tom", [3]))
    ]
    # Each text unit of its documents is near an entity, but is about it only if it names it.
    assert found["text_units_of_entities"].rows() == [
        *((0, 0, True, 1), (0, 1, False, 0), (0, 2, False, 0), (0, 3, False, 0)),
        (1, 1, True, 1),
        *((2, 4, False, 0), (2, 5, True, 1)),
    ]


def test_claims_are_found_by_the_names_of_their_ends() -> None:
    found = written()
    assert found["claims_of_entities"].rows() == [(0, 0), (1, 0)]
    assert found["claim_rows"].select("subject", "object", "text_unit").rows() == [
        *(("CREAN", "Fram", 2), ("Nobody", None, 0))
    ]


def test_an_index_without_reports_and_claims_or_without_anything_has_empty_tables() -> None:
    found = written(community_reports=None, covariates=None)
    for name in ("report_rows", "claim_rows", "claims_of_entities"):
        assert found[name].height == 0
    names = ("documents", "text_units", "entities", "relationships", "mentions", "communities")
    nothing = {name: TABLES[name].empty() for name in (*names, "community_reports", "covariates")}
    assert {frame.height for frame in written(**nothing).values()} == {0}


def test_names_fold_to_what_their_ways_of_writing_share() -> None:
    names = [
        "Shackleton’s",
        "  Müller-Łódź ",
        "O'Brien",
        "S. P. Q. R.",
        "हिन्दी",
        "ЁЛКА",
        "가나",
        "Ｆｒａｍ",
        "…",
    ]
    folded = pl.DataFrame({"name": names}).select(fold_names(pl.col("name")))["name"]
    assert folded.to_list() == [
        *("shackleton", "muller lodz", "o brien", "s p q r", "हिन्दी", "елка", "가나", "fram", "")
    ]


def test_words_that_sound_alike_have_one_sound() -> None:
    alike = [
        ("shackleton", "schackelton"),
        ("crean", "krean"),
        ("tschaikowski", "chaikovsky"),
        ("schmidt", "schmitt"),
        ("amundsen", "amuntzen"),
        ("oates", "otes"),
    ]
    words = pl.DataFrame({"word": [word for pair in alike for word in pair]})
    sounds = words.select(phonetic_keys(pl.col("word")))["word"].to_list()
    assert sounds[::2] == sounds[1::2]
    assert "" not in sounds
    silent = pl.DataFrame({"word": ["", "tom", "1914", "елка", "船", "ooooo"]})
    assert set(silent.select(phonetic_keys(pl.col("word")))["word"]) == {""}


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 3)).filter(
            lambda ends: ends[0] != ends[1]
        ),
        max_size=8,
    ),
)
def test_links_are_those_of_the_tables(
    named: list[tuple[int, int]], related: list[tuple[int, int, int]]
) -> None:
    numbers = [{"id": f"x{n}", "human_readable_id": n} for n in range(4)]
    mentions = sorted({(unit, place, entity) for place, (unit, entity) in enumerate(named)})
    found = written(
        text_units=table("text_units", *({**row, "document_id": "d0"} for row in numbers)),
        entities=table("entities", *({**row, "title": row["id"]} for row in numbers)),
        mentions=table(
            "mentions", *({"entity": e, "text_unit": u, "start_char": p} for u, p, e in mentions)
        ),
        relationships=table(
            "relationships",
            *(
                {"id": str(n), "source_id": f"x{a}", "target_id": f"x{b}", "weight": weight}
                for n, (a, b, weight) in enumerate(related)
            ),
        ),
        communities=TABLES["communities"].empty(),
    )
    with TemporaryDirectory() as folder:
        store = TableStore(Path(folder))
        mapped = {}
        for name, frame in found.items():
            with store.writer(1, TABLES[name], name) as writer:
                writer.append(frame)
            mapped[name] = store.map(name, writer.stored)
        links = Links(mapped.__getitem__, 4)
        first = {unit: entity for unit, _, entity in reversed(mentions)}
        for number in range(-1, 5):
            entities = sorted({entity for unit, entity in named if unit == number})
            assert links.entities_of(number)[0].tolist() == entities
            units = sorted({unit for unit, entity in named if entity == number})
            found_units, about = links.text_units_of(number)
            assert found_units.tolist() == units
            assert about.tolist() == [first[unit] == number for unit in units]
            assert links.n_text_units_of([number]).tolist() == [len(units)]
            ends = [
                (-weight, row, b if a == number else a)
                for row, (a, b, weight) in enumerate(related)
                if number in (a, b)
            ]
            near = links.relationships_of(number)
            rows = zip(-near.weights, near.relationships, near.entities, strict=True)
            assert [tuple(map(int, row)) for row in rows] == sorted(ends)
            two = links.relationships_of(number, 2).relationships
            assert np.array_equal(two, near.relationships[:2])
            assert links.communities_of(number)[0].tolist() == links.claims_of(number).tolist()
