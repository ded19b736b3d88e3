"""What is resolved, in the tables behind: entities, relationships, mentions and descriptions."""

from pathlib import Path
from typing import Any

import polars as pl
from polars.testing import assert_frame_equal

from graphrag_index.llm.prompts import Prompts
from graphrag_index.resolution.apply import Assignments
from graphrag_index.schema.settings.embedded_steps import FinalizeGraph
from graphrag_index.schema.settings.llm_steps import SummarizeDescriptions
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Silent
from graphrag_index.steps.finalize_graph import finalize_graph
from graphrag_index.steps.summarize_descriptions import summarize_descriptions
from graphrag_index.storage.table_writer import conform
from tests.fixtures.fake_model import EarlierTables, FakeChatModel
from tests.fixtures.found_entities import NOWHERE, Entity, resolve, resolved, tables

SCOTT = [
    Entity("Scott, Robert", "person", (0,), "A captain."),
    Entity("Oslo", "", (0, 3), "A city."),
    Entity("Robert Scott", "", (0, 1, 2), "An explorer."),
    Entity("oslo city", "place", (3,), "A port."),
]
LINKS = [(0, 1), (2, 1), (0, 2), (2, 3)]


def summarized(
    given: dict[str, Any], assignments: pl.DataFrame, model: FakeChatModel
) -> dict[str, pl.DataFrame]:
    parts: dict[str, list[pl.DataFrame]] = {"raw_entities": [], "raw_relationships": []}
    for frames in summarize_descriptions(
        given["extracted_entities"],
        given["extracted_relationships"],
        assignments,
        settings=SummarizeDescriptions(max_tokens_without_call=0),
        chat_model=model,  # type: ignore[arg-type]
        prompts=Prompts(NOWHERE),
        previous=EarlierTables(),
        progress=Silent(),
    ):
        for name, frame in frames.items():
            if name in parts:
                parts[name].append(conform(frame, TABLES[name]))
    return {name: pl.concat(frames) for name, frames in parts.items()}


def finalized(
    given: dict[str, Any], raw: dict[str, pl.DataFrame], assignments: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    parts: dict[str, list[pl.DataFrame]] = {}
    for frames in finalize_graph(
        raw["raw_entities"],
        raw["raw_relationships"].lazy(),
        given["raw_mentions"],
        given["base_text_units"],
        assignments,
        settings=FinalizeGraph(layout=False),
    ):
        for name, frame in frames.items():
            parts.setdefault(name, []).append(conform(frame, TABLES[name]))
    return {name: pl.concat(frames) for name, frames in parts.items()}


def as_raw(given: dict[str, Any]) -> dict[str, pl.DataFrame]:
    """The tables as a step without a model writes them."""
    entities = given["extracted_entities"].collect()
    links = given["extracted_relationships"].collect()
    said = pl.col("descriptions").list.join(" ").alias("description")
    return {
        "raw_entities": conform(
            entities.with_columns(said).select(list(TABLES["raw_entities"].columns)),
            TABLES["raw_entities"],
        ),
        "raw_relationships": conform(
            links.with_columns(said).select(list(TABLES["raw_relationships"].columns)),
            TABLES["raw_relationships"],
        ),
    }


def decide(root: Path, text: str, entities: list[Entity] = SCOTT) -> dict[str, pl.DataFrame]:
    (root / "resolutions.yaml").write_text(text, encoding="utf-8")
    return resolve(entities, root, LINKS if entities is SCOTT else ())


def test_merged_entities_are_described_together(tmp_path: Path) -> None:
    made = decide(tmp_path, "merge:\n  Oslo: [Oslo City]\n")
    assert resolved(made) == {"Scott, Robert": "Robert Scott", "oslo city": "Oslo"}
    model = FakeChatModel(lambda _: {"description": "All of it."})
    given = tables(SCOTT, LINKS)
    raw = summarized(given, made["entity_assignments"], model)
    assert [request.messages[1]["content"] for request in model.asked] == [
        "Entity: Robert Scott\nType: person\n\nDescriptions:\n- A captain.\n- An explorer.",
        "Entity: Oslo\nType: place\n\nDescriptions:\n- A city.\n- A port.",
        "Relationship: Robert Scott → Oslo\nType: knows\n\n"
        "Descriptions:\n- 0 knows 1.\n- 2 knows 1.\n- 2 knows 3.",
    ]
    assert raw["raw_entities"].select("human_readable_id", "title", "aliases").rows() == [
        (2, "Robert Scott", ["Scott, Robert"]),
        (1, "Oslo", ["oslo city"]),
    ]
    assert raw["raw_relationships"].select("source", "target", "weight").rows() == [(2, 1, 6.0)]


def test_all_that_belongs_to_merged_entities_follows(tmp_path: Path) -> None:
    made = decide(tmp_path, "merge:\n  Oslo: [Oslo City]\n")
    given = tables(SCOTT, LINKS)
    graph = finalized(given, as_raw(given), made["entity_assignments"])
    entities = graph["entities"]
    columns = ["title", "type", "description", "aliases", "frequency", "degree", "text_unit_ids"]
    assert entities.select(columns).rows() == [
        *[("Robert Scott", "person", "An explorer.", ["Scott, Robert"], 3, 1, ["t0", "t1", "t2"])],
        *[("Oslo", "place", "A city.", ["oslo city"], 2, 1, ["t0", "t3"])],
    ]
    assert entities["id"].to_list() == [
        content_id("entity", "robert scott"),
        content_id("entity", "oslo"),
    ]
    links = graph["relationships"].select("source", "target", "weight").rows()
    assert links == [("Robert Scott", "Oslo", 6.0)]
    assert graph["mentions"].select("entity", "text_unit").rows() == [
        *((0, 0), (1, 0), (0, 1), (0, 2), (1, 3))
    ]


def test_to_apply_it_twice_changes_nothing(tmp_path: Path) -> None:
    text = (
        "merge:\n  Oslo: [Oslo City]\nsplit:\n  Robert Scott:\n"
        "    - {title: Scott the elder, text_units: [t0]}\n    - {title: Scott}\n"
    )
    made = decide(tmp_path, text)
    given = tables(SCOTT, LINKS)
    assignments = Assignments(made["entity_assignments"])
    once = assignments.entities(given["extracted_entities"].collect())
    assert_frame_equal(assignments.entities(once), once)
    links = assignments.relationships(given["extracted_relationships"].collect(), merge=True)
    assert_frame_equal(assignments.relationships(links, merge=True), links)
    # After the step that describes, and without it.
    model = FakeChatModel(lambda _: {"description": "-"})
    raw = summarized(given, made["entity_assignments"], model)
    columns = ["id", "title", "text_unit_ids", "degree"]
    assert_frame_equal(
        finalized(given, raw, made["entity_assignments"])["entities"].select(columns),
        finalized(given, as_raw(given), made["entity_assignments"])["entities"].select(columns),
    )


SMITH = [Entity("John Smith", "person", (0, 1, 2), "Sails."), Entity("Bank", "", (1, 2), "Pays.")]


def parts_of_smith(root: Path, *parts: str) -> list[tuple[str, list[str]]]:
    """Titles and text units of the entities, when John Smith is split."""
    lines = "".join(f"    - {part}\n" for part in parts)
    made = decide(root, f"split:\n  john smith:\n{lines}", SMITH)
    given = tables(SMITH, [(0, 1), (1, 0)])
    graph = finalized(given, as_raw(given), made["entity_assignments"])
    rows = graph["entities"].select("title", "text_unit_ids").sort("title").rows()
    return [row for row in rows if row[0] != "Bank"]


def test_a_name_is_split_by_what_tells_its_bearers_apart(tmp_path: Path) -> None:
    assert parts_of_smith(tmp_path, "{title: Sailor, paths: ['letters/0*']}", "{title: Clerk}") == [
        ("Clerk", ["t1", "t2"]),
        ("Sailor", ["t0"]),
    ]
    assert parts_of_smith(tmp_path, "{title: Sailor, documents: [Letter 1, d2]}") == [
        ("John Smith", ["t0"]),
        ("Sailor", ["t1", "t2"]),
    ]
    assert parts_of_smith(tmp_path, "{title: Sailor, text_units: [t2]}") == [
        ("John Smith", ["t0", "t1"]),
        ("Sailor", ["t2"]),
    ]
    assert parts_of_smith(tmp_path, "{title: Sailor, types: [Person]}") == [
        ("Sailor", ["t0", "t1", "t2"])
    ]
    assert parts_of_smith(tmp_path, "{title: Sailor, paths: [elsewhere/**]}") == [
        ("John Smith", ["t0", "t1", "t2"])
    ]


def test_each_part_has_its_own_and_is_found_by_the_old_name(tmp_path: Path) -> None:
    text = "split:\n  John Smith:\n    - {title: Sailor, text_units: [t0]}\n    - {title: Clerk}\n"
    made = decide(tmp_path, text, SMITH)
    assert sorted(made["entity_resolutions"].select("title", "resolved", "decided_by").rows()) == [
        ("John Smith", "Clerk", "person"),
        ("John Smith", "Sailor", "person"),
    ]
    given = tables(SMITH, [(0, 1), (1, 0)])
    graph = finalized(given, as_raw(given), made["entity_assignments"])
    rows = graph["entities"].sort("title").select("title", "aliases", "description").rows()
    # The descriptions are the sentences at the evidence of each.
    assert rows == [
        ("Bank", [], "Pays."),
        ("Clerk", ["John Smith"], "unit unit"),
        ("Sailor", ["John Smith"], "unit"),
    ]
    links = sorted(graph["relationships"].select("source", "target").rows())
    assert links == [("Bank", "Clerk"), ("Sailor", "Bank")]
    assert graph["entities"]["evidence"].list.len().sort().to_list() == [1, 2, 2]


def test_a_part_may_be_what_another_name_means(tmp_path: Path) -> None:
    entities = [*SMITH, Entity("Jack the sailor", "person", (0,))]
    text = (
        "split:\n  John Smith:\n    - {title: Sailor, text_units: [t0]}\n"
        "merge:\n  Jack: [Sailor, Jack the sailor]\n"
    )
    made = decide(tmp_path, text, entities)
    given = tables(entities)
    graph = finalized(given, as_raw(given), made["entity_assignments"])
    rows = graph["entities"].sort("title").select("title", "text_unit_ids", "aliases").rows()
    assert rows[1:] == [
        ("Jack", ["t0"], ["John Smith", "Jack the sailor"]),
        ("John Smith", ["t1", "t2"], []),
    ]


def test_a_renamed_entity_keeps_its_old_name_as_an_alias(tmp_path: Path) -> None:
    made = decide(tmp_path, "rename:\n  Bank: Bank of Oslo\n", SMITH)
    given = tables(SMITH)
    graph = finalized(given, as_raw(given), made["entity_assignments"])
    bank = graph["entities"].filter(title="Bank of Oslo")
    assert bank.select("aliases", "description").rows() == [(["Bank"], "Pays.")]


def test_what_a_rule_merges_a_person_undoes(tmp_path: Path) -> None:
    assert "Scott, Robert" in resolved(decide(tmp_path, ""))
    kept = decide(tmp_path, "never:\n  - ['Scott, Robert', Robert Scott]\n")
    assert resolved(kept) == {}
    assert kept["entity_assignments"].is_empty()


def test_without_decisions_the_tables_are_as_they_were() -> None:
    given = tables(SMITH, [(0, 1)])
    made = resolve(SMITH)
    raw = as_raw(given)
    with_it = finalized(given, raw, made["entity_assignments"])
    without = finalized(given, raw, TABLES["entity_assignments"].empty())
    for name, frame in without.items():
        assert_frame_equal(with_it[name], frame)
