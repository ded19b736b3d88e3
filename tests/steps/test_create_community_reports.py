"""The step `create_community_reports`: reports that a model writes."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.step_sections import CreateCommunityReports
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.create_community_reports import create_community_reports
from graphrag_index.storage.memo import join_batches
from graphrag_index.storage.table_store import Previous, TableStore
from tests.fixtures.fake_model import FakeChatModel
from tests.fixtures.report_contexts import GOOD
from tests.fixtures.small_index import table, write_index


def entity(number: int, description: str = "", degree: int = 1) -> dict[str, object]:
    return {
        "id": f"e{number}",
        "human_readable_id": number,
        "title": f"Name {number}",
        "description": description,
        "degree": degree,
        "text_unit_ids": [f"t{number}"],
    }


def link(number: int, a: int, b: int) -> dict[str, object]:
    return {
        "id": f"r{number}",
        "human_readable_id": number,
        "source": f"Name {a}",
        "target": f"Name {b}",
        "description": f"{a} knows {b}.",
        "weight": 1.0,
        "source_id": f"e{a}",
        "target_id": f"e{b}",
        "text_unit_ids": [f"t{a}"],
    }


def community(
    number: int, level: int, parent: int, members: list[int], inner: list[int], **other: object
) -> dict[str, object]:
    return {
        "id": f"c{number}",
        "human_readable_id": number,
        "community": number,
        "level": level,
        "parent": parent,
        "entity_ids": [f"e{i}" for i in members],
        "relationship_ids": [f"r{i}" for i in inner],
        "size": len(members),
        "period": "1912-01-17",
        **other,
    }


# A pair within a triangle, an island, and a community of which nothing is told.
TABLES_READ = {
    "communities": table(
        "communities",
        community(0, 0, -1, [0, 1, 2], [0, 1, 2], children=[3]),
        community(1, 0, -1, [3, 4], [], island=True),
        community(2, 0, -1, [5], []),
        community(3, 1, 0, [0, 1], [0]),
    ),
    "entities": table(
        "entities",
        *(entity(0, "Nought.", 2), entity(1, "One.", 2), entity(2, "Two.", 2)),
        *(entity(3, "Three is\nalone."), entity(4, "Three is alone."), entity(5)),
    ),
    "relationships": table("relationships", link(0, 0, 1), link(1, 1, 2), link(2, 0, 2)),
    "base_text_units": table("base_text_units", *({"id": f"t{i}"} for i in range(6))),
}
# What a first run finds of an earlier one.
NOTHING = Previous(TableStore(Path("nowhere")), None)


def write(
    tables: Mapping[str, pl.DataFrame] = TABLES_READ,
    answer: Callable[[Request], Any] = lambda _: GOOD,
    previous: Previous = NOTHING,
    covariates: pl.DataFrame | None = None,
    lineage: pl.DataFrame | None = None,
    max_prompt_tokens: int = 8_000,
    **settings: Any,
) -> tuple[pl.DataFrame, pl.DataFrame, list[Request]]:
    """The reports, their evidence, and what was asked."""
    model = FakeChatModel(answer, max_prompt_tokens)
    batches = create_community_reports(
        *(frame.lazy() for frame in tables.values()),
        covariates.lazy() if covariates is not None else None,
        lineage.lazy() if lineage is not None else None,
        settings=CreateCommunityReports(**settings),
        chat_model=model,
        prompts=Prompts(Path("nowhere")),
        previous=previous,
        progress=Silent(),
        shards=SerialShards(),
    )
    tables = join_batches(batches)
    return tables["community_reports"], tables["report_evidence"], model.asked


def run(
    answer: Callable[[Request], Any] = lambda _: GOOD, **given: Any
) -> tuple[pl.DataFrame, list[Request]]:
    reports, _, asked = write(answer=answer, **given)
    return reports, asked


def test_reports_come_deepest_level_first_and_repeat_their_community() -> None:
    reports, _ = run()
    assert reports.schema == TABLES["community_reports"].schema
    assert reports["community"].to_list() == [3, 0, 1, 2]
    report = reports.row(0, named=True)
    assert (report["level"], report["parent"], report["size"]) == (1, 0, 2)
    assert report["period"] == "1912-01-17"
    assert report["rank"] == 7.5
    assert report["full_content"] == (
        "# Crean and Scott\n\nThey went south. [Data: Entities (0)]\n\n"
        "## Crean knew Scott\n\nIt is so. [Data: Relationships (0)]"
    )
    assert list(json.loads(report["full_content_json"])) == [
        *("title", "summary", "findings", "rating", "rating_explanation")
    ]
    assert reports["id"].n_unique() == reports.height


def test_the_context_is_the_last_message_and_the_rest_is_always_the_same() -> None:
    _, asked = run()
    assert len({json.dumps(request.messages[0]) for request in asked}) == 1
    assert "{{" not in asked[0].messages[0]["content"]
    assert [request.unit for request in asked] == [
        "community of Name 0 and Name 1 (2 entities)",
        "community of Name 0, Name 1 and Name 2 (3 entities)",
    ]
    assert "0 knows 1." in asked[0].messages[1]["content"]
    assert "Name 2" not in asked[0].messages[1]["content"]


def test_claims_are_shown() -> None:
    claims = table(
        "covariates",
        {"id": "v", "subject_id": "Name 2", "description": "Two is said to have gone."},
    )
    _, asked = run(covariates=claims)
    assert [("said to have gone" in r.messages[1]["content"]) for r in asked] == [False, True]


def test_islands_and_mere_names_cost_no_request_and_are_listed() -> None:
    reports, asked = run()
    assert len(asked) == 2
    island, silent = reports.filter(pl.col("community").is_in([1, 2])).iter_rows(named=True)
    assert island["title"] == "Island: Name 3 and Name 4"
    assert island["summary"] == (
        "Entities with few or no links: Name 3 and Name 4. [Data: Entities (3, 4)]"
    )
    assert island["findings"] == [
        {"explanation": "Three is alone. [Data: Entities (3, 4)]", "summary": "Name 3 and Name 4"}
    ]
    assert silent["summary"] == "Nothing is told of the links of Name 5. [Data: Entities (5)]"
    assert island["rank"] == silent["rank"] == 1.0


def test_a_failed_report_is_missing_and_the_one_above_it_is_written() -> None:
    def answer(request: Request) -> Any:
        return None if "(2 entities)" in request.unit else GOOD

    reports, _ = run(answer)
    assert reports["community"].to_list() == [0, 1, 2]


def test_prompts_fit_the_window() -> None:
    def lengths(request: Request) -> Any:
        assert sum(len(m["content"].encode()) * 10 / 35 for m in request.messages) < 1_500
        return GOOD

    run(lengths, max_prompt_tokens=1_500)


def test_a_reply_without_a_rating_has_the_rank_of_its_community() -> None:
    reports, evidence, _ = write(answer=lambda _: {**GOOD, "rating": None})
    assert reports["rank"].to_list() == [10.0, 10.0, 1.0, 1.0]
    assert evidence["rank"].to_list() == [None, None]
    assert json.loads(reports["full_content_json"][0])["rating"] == 10.0


def test_what_a_document_cites_is_no_row() -> None:
    cites = entity(5, "As told [Entities (3)].")
    tables = {**TABLES_READ, "entities": table("entities", entity(4, "Four [Source 2]."), cites)}
    tables["communities"] = table("communities", community(0, 0, -1, [4, 5], [], island=True))
    reports, _, _ = write(tables)
    assert reports["findings"][0].to_list() == [
        {"explanation": "Four. [Data: Entities (4)]", "summary": "Name 4"},
        {"explanation": "As told. [Data: Entities (5)]", "summary": "Name 5"},
    ]


def earlier(folder: Path, evidence: pl.DataFrame) -> Previous:
    """What a run finds after one that left this evidence."""
    store = TableStore(write_index(folder / "output", report_evidence=evidence))
    return Previous(store, store.read_pointer())


def changed(name: str, row: int, **values: object) -> dict[str, pl.DataFrame]:
    """The tables, one row of one of which is other than it was."""
    rows = TABLES_READ[name].rows(named=True)
    rows[row] |= values
    return {**TABLES_READ, name: pl.DataFrame(rows, schema=TABLES_READ[name].schema)}


def moved(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables after a document was added before all others: every number is another."""
    moved = dict(tables)
    moved["entities"] = pl.concat(
        [
            table("entities", {"id": "new", "title": "New", "text_unit_ids": ["new"]}),
            moved["entities"],
        ]
    ).with_columns(human_readable_id=pl.int_range(pl.len()))
    moved["relationships"] = tables["relationships"].with_columns(pl.col("human_readable_id") + 40)
    moved["base_text_units"] = pl.concat(
        [table("base_text_units", {"id": "new"}), tables["base_text_units"]]
    )
    return moved


def asked_for(asked: list[Request]) -> list[str]:
    return [request.unit.split("(")[1] for request in asked]


# What is asked about the pair and the triangle.
PAIR, TRIANGLE = "2 entities)", "3 entities)"


class TestKept:
    """The triangle has nine rows and text units as evidence, the pair five."""

    def test_reports_stay_with_other_numbers(self, tmp_path: Path) -> None:
        _, evidence, asked = write()
        assert asked_for(asked) == [PAIR, TRIANGLE]
        again, kept, asked = write(moved(TABLES_READ), previous=earlier(tmp_path, evidence))
        assert asked == []
        assert kept.equals(evidence)
        assert again["summary"][0] == "They went south. [Data: Entities (1)]"
        assert again["findings"][0][0]["explanation"] == "It is so. [Data: Relationships (40)]"
        # As if all had been asked again.
        assert again.equals(write(moved(TABLES_READ))[0])

    def test_a_small_change_stays_until_changes_add_up(self, tmp_path: Path) -> None:
        _, evidence, _ = write()
        previous = earlier(tmp_path, evidence)
        tables = changed("entities", 2, description="Two, as is told otherwise.")
        # One of nine.
        assert write(tables, previous=previous, rewrite_above=0.12)[2] == []
        assert asked_for(write(tables, previous=previous, rewrite_above=0.11)[2]) == [TRIANGLE]
        _, kept, _ = write(tables, previous=previous, rewrite_above=0.12)
        # Two of nine, of which one was there a run ago.
        tables["relationships"] = changed("relationships", 1, description="New.")["relationships"]
        previous = earlier(tmp_path / "then", kept)
        assert asked_for(write(tables, previous=previous, rewrite_above=0.12)[2]) == [TRIANGLE]
        reports, _, _ = write(tables, previous=previous, rewrite_above=0.3)
        assert reports.height == 4

    @pytest.mark.parametrize("gone", ["t2", "t0"], ids=["of the triangle", "of both"])
    def test_nothing_stays_that_rests_on_a_text_that_is_gone(
        self, gone: str, tmp_path: Path
    ) -> None:
        _, evidence, _ = write()
        units = TABLES_READ["base_text_units"].filter(pl.col("id") != gone)
        tables = {**TABLES_READ, "base_text_units": units}
        _, _, asked = write(tables, previous=earlier(tmp_path, evidence), rewrite_above=1)
        assert asked_for(asked) == ([TRIANGLE] if gone == "t2" else [PAIR, TRIANGLE])

    def test_a_text_behind_a_report_that_was_shown_counts_too(self, tmp_path: Path) -> None:
        _, evidence, _ = write()
        borrowed = [[], [int("f" * 16, 16)]]
        evidence = evidence.with_columns(
            borrowed_text_unit_hashes=pl.Series(borrowed, dtype=pl.List(pl.UInt64))
        )
        _, _, asked = write(previous=earlier(tmp_path, evidence))
        assert asked_for(asked) == [TRIANGLE]

    def test_what_is_behind_a_report_that_was_shown_is_noted(self, tmp_path: Path) -> None:
        long = pl.col("description").str.replace(r"\.$", "." + " They met, and met again." * 12)
        tables = TABLES_READ | {
            name: TABLES_READ[name].with_columns(description=long)
            for name in ("entities", "relationships")
        }
        _, evidence, asked = write(tables, max_input_tokens=600)
        assert "-----Reports-----" in asked[1].messages[-1]["content"]
        assert evidence["borrowed_text_unit_hashes"].to_list() == [[], []]
        # The pair's report was written on a text that is now told of others.
        behind, borrowed = (int(content_id("text unit", unit)[:16], 16) for unit in ("t4", "t5"))
        pair = evidence[:1].with_columns(
            pl.col("text_unit_hashes").list.concat([behind]).list.sort(),
            borrowed_text_unit_hashes=pl.Series([[borrowed]], dtype=pl.List(pl.UInt64)),
        )
        _, now, asked = write(tables, previous=earlier(tmp_path, pair), max_input_tokens=600)
        assert asked_for(asked) == [TRIANGLE]
        assert now[:1].equals(pair)
        assert now["borrowed_text_unit_hashes"][1].to_list() == sorted([behind, borrowed])

    @pytest.mark.parametrize("other", [{"max_words": 500}, {"max_input_tokens": 4_000}])
    def test_other_settings_write_all_again(self, other: dict[str, int], tmp_path: Path) -> None:
        _, evidence, _ = write()
        _, _, asked = write(previous=earlier(tmp_path, evidence), **other)
        assert len(asked) == 2

    def test_with_0_everything_is_asked_which_the_ledger_answers(self, tmp_path: Path) -> None:
        first = write(rewrite_above=0)
        reports, evidence, asked = write(previous=earlier(tmp_path, first[1]), rewrite_above=0)
        assert (reports.equals(first[0]), evidence.equals(first[1])) == (True, True)
        assert [request.messages for request in asked] == [request.messages for request in first[2]]

    def test_other_members_under_the_same_number_are_another_community(
        self, tmp_path: Path
    ) -> None:
        _, evidence, _ = write()
        tables = changed("communities", 3, entity_ids=["e1", "e2"], relationship_ids=["r1"])
        assert write(tables, previous=earlier(tmp_path, evidence), rewrite_above=1)[2] == []
        tables = changed("communities", 3, entity_ids=["e2", "e5"], relationship_ids=["r1"])
        _, _, asked = write(tables, previous=earlier(tmp_path, evidence), rewrite_above=1)
        assert asked_for(asked) == [PAIR]

    def test_a_community_that_was_made_anew_has_no_report_yet(self, tmp_path: Path) -> None:
        _, evidence, _ = write()
        status = {0: "grown", 3: "born"}
        lineage = table(
            "community_lineage", *({"community": c, "status": s} for c, s in status.items())
        )
        _, _, asked = write(previous=earlier(tmp_path, evidence), lineage=lineage)
        assert asked_for(asked) == [PAIR]

    def test_a_report_that_cites_what_is_no_more_is_written_again(self, tmp_path: Path) -> None:
        _, evidence, _ = write()
        cites = pl.Series([["e0"], ["e9"]], dtype=pl.List(pl.String))
        _, _, asked = write(previous=earlier(tmp_path, evidence.with_columns(entity_ids=cites)))
        assert asked_for(asked) == [TRIANGLE]

    def test_a_report_may_cite_reports_on_parts_of_its_own_only(self, tmp_path: Path) -> None:
        _, evidence, _ = write()
        for part, expected in ((3, []), (2, [TRIANGLE]), (9, [TRIANGLE])):
            cites = pl.Series([[], [part]], dtype=pl.List(pl.Int64))
            previous = earlier(tmp_path / str(part), evidence.with_columns(communities=cites))
            assert asked_for(write(previous=previous)[2]) == expected

    @pytest.mark.parametrize("damage", ["bytes", "columns"])
    def test_what_cannot_be_read_is_written_again(
        self, damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        _, evidence, _ = write()
        previous = earlier(tmp_path, evidence)
        (path,) = tmp_path.glob("output/versions/1/report_evidence*")
        if damage == "bytes":
            path.write_bytes(b"\0" * path.stat().st_size)
        else:
            evidence.drop("prompt_hash").write_parquet(path)
            stored = replace(previous.tables["report_evidence"], n_bytes=path.stat().st_size)
            previous.tables = {"report_evidence": stored}
        reports, _, asked = write(previous=previous)
        assert len(asked) == 2
        assert reports.height == 4
        assert ("cannot be read" in caplog.text) == (damage == "bytes")
