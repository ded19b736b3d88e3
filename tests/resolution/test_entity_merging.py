"""What is resolved, in the tables behind: entities, relationships, mentions and descriptions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from graphrag_index.llm.prompts import Prompts
from graphrag_index.resolution import blocking, entity_merging, scoring
from graphrag_index.schema.settings.step_sections import FinalizeGraph, SummarizeDescriptions
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.finalize_graph import finalize_graph
from graphrag_index.steps.summarize_descriptions import summarize_descriptions
from graphrag_index.storage.memo import join_batches
from graphrag_index.storage.table_writer import cast_to_table
from tests.fixtures.fake_model import EarlierTables, FakeChatModel
from tests.fixtures.found_entities import NOWHERE, Entity, resolve, resolved, tables

SCOTT = [
    Entity("Scott, Robert", "person", (0,), "A captain."),
    Entity("Oslo", "", (0, 3), "A city."),
    Entity("Robert Scott", "", (0, 1, 2), "An explorer."),
    Entity("oslo city", "place", (3,), "A port."),
]
LINKS = [(0, 1), (2, 1), (0, 2), (2, 3)]


def summarized(made: dict[str, pl.DataFrame], model: FakeChatModel) -> dict[str, pl.DataFrame]:
    batches = summarize_descriptions(
        made["extracted_entities"].lazy(),
        made["extracted_relationships"].lazy(),
        settings=SummarizeDescriptions(max_tokens_without_call=0),
        chat_model=model,  # type: ignore[arg-type]
        prompts=Prompts(NOWHERE),
        previous=EarlierTables(),
        progress=Silent(),
    )
    tables = join_batches(batches)
    return {
        name: cast_to_table(tables[name], TABLES[name])
        for name in ("described_entities", "described_relationships")
    }


def finalized(given: dict[str, Any], made: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Finalize the extracted tables after resolution, and after later steps."""
    batches = finalize_graph(
        *(made[f"extracted_{name}"].lazy() for name in ("entities", "relationships", "mentions")),
        given["base_text_units"],
        settings=FinalizeGraph(layout=False),
        shards=SerialShards(),
        **{name: frame.lazy() for name, frame in made.items() if name.startswith("described")},
    )
    tables = join_batches(batches)
    return {name: cast_to_table(frame, TABLES[name]) for name, frame in tables.items()}


def decide(
    root: Path,
    text: str,
    entities: list[Entity] = SCOTT,
    links: Sequence[tuple[int, int]] = LINKS,
    by_rules: bool = True,
) -> dict[str, pl.DataFrame]:
    """Resolve entities by the decisions of a person."""
    (root / "resolutions.yaml").write_text(text, encoding="utf-8")
    return resolve(entities, root, links, by_rules=by_rules)


def test_merged_entities_are_described_together(tmp_path: Path) -> None:
    made = decide(tmp_path, "merge:\n  Oslo: [Oslo City]\n", by_rules=False)
    assert resolved(made) == {"Scott, Robert": "Robert Scott", "oslo city": "Oslo"}
    model = FakeChatModel(lambda _: {"description": "All of it."})
    described = summarized(made, model)
    assert [request.messages[1]["content"] for request in model.asked] == [
        "Entity: Robert Scott\nType: person\n\nDescriptions:\n- A captain.\n- An explorer.",
        "Entity: Oslo\nType: place\n\nDescriptions:\n- A city.\n- A port.",
        "Relationship: Robert Scott → Oslo\nType: knows\n\n"
        "Descriptions:\n- 0 knows 1.\n- 2 knows 1.\n- 2 knows 3.",
    ]
    assert described["described_entities"].select(
        "human_readable_id", "title", "aliases"
    ).rows() == [(2, "Robert Scott", ["Scott, Robert"]), (1, "Oslo", ["oslo city"])]
    assert described["described_relationships"].select("source", "target", "weight").rows() == [
        (2, 1, 6.0)
    ]


def test_all_that_belongs_to_merged_entities_follows(tmp_path: Path) -> None:
    made = decide(tmp_path, "merge:\n  Oslo: [Oslo City]\n")
    given = tables(SCOTT, LINKS)
    graph = finalized(given, made)
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


@pytest.mark.parametrize("by_rules", [True, False])
def test_summaries_change_descriptions_alone(tmp_path: Path, by_rules: bool) -> None:
    text = (
        "merge:\n  Oslo: [Oslo City]\nsplit:\n  Robert Scott:\n"
        "    - {title: Scott the elder, text_units: [t0]}\n    - {title: Scott}\n"
    )
    made = decide(tmp_path, text, by_rules=by_rules)
    given = tables(SCOTT, LINKS)
    described = summarized(made, FakeChatModel(lambda _: {"description": "-"}))
    columns = ["id", "title", "text_unit_ids", "degree"]
    assert_frame_equal(
        finalized(given, {**made, **described})["entities"].select(columns),
        finalized(given, made)["entities"].select(columns),
    )


def test_without_summaries_descriptions_are_joined(tmp_path: Path) -> None:
    made = decide(tmp_path, "merge:\n  Oslo: [Oslo City]\n", by_rules=False)
    entities = finalized(tables(SCOTT, LINKS), made)["entities"]
    assert entities.select("title", "description").rows() == [
        ("Robert Scott", "A captain. An explorer."),
        ("Oslo", "A city. A port."),
    ]


SMITH = [Entity("John Smith", "person", (0, 1, 2), "Sails."), Entity("Bank", "", (1, 2), "Pays.")]


def parts_of_smith(root: Path, *parts: str) -> list[tuple[str, list[str]]]:
    """Titles and text units of the entities, when John Smith is split."""
    lines = "".join(f"    - {part}\n" for part in parts)
    made = decide(root, f"split:\n  john smith:\n{lines}", SMITH, [(0, 1), (1, 0)], by_rules=False)
    given = tables(SMITH, [(0, 1), (1, 0)])
    graph = finalized(given, made)
    rows = graph["entities"].select("title", "text_unit_ids").sort("title").rows()
    return [row for row in rows if row[0] != "Bank"]


def test_a_name_is_split_by_what_tells_its_bearers_apart(tmp_path: Path) -> None:
    first = "{title: Sailor, paths: ['./letters/[!12]*']}"
    assert parts_of_smith(tmp_path, first, "{title: Clerk}") == [
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
    made = decide(tmp_path, text, SMITH, [(0, 1), (1, 0)])
    assert sorted(made["entity_resolutions"].select("title", "resolved", "decided_by").rows()) == [
        ("John Smith", "Clerk", "person"),
        ("John Smith", "Sailor", "person"),
    ]
    given = tables(SMITH, [(0, 1), (1, 0)])
    graph = finalized(given, made)
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
    made = decide(tmp_path, text, entities, ())
    given = tables(entities)
    graph = finalized(given, made)
    rows = graph["entities"].sort("title").select("title", "text_unit_ids", "aliases").rows()
    assert rows[1:] == [
        ("Jack", ["t0"], ["John Smith", "Jack the sailor"]),
        ("John Smith", ["t1", "t2"], []),
    ]


def test_a_renamed_entity_keeps_its_old_name_as_an_alias(tmp_path: Path) -> None:
    made = decide(tmp_path, "rename:\n  Bank: Bank of Oslo\n", SMITH, ())
    given = tables(SMITH)
    graph = finalized(given, made)
    bank = graph["entities"].filter(title="Bank of Oslo")
    assert bank.select("aliases", "description").rows() == [(["Bank"], "Pays.")]


def test_what_a_rule_merges_a_person_undoes(tmp_path: Path) -> None:
    assert "Scott, Robert" in resolved(decide(tmp_path, ""))
    kept = decide(tmp_path, "never:\n  - ['Scott, Robert', Robert Scott]\n")
    assert resolved(kept) == {}
    assert kept["extracted_entities"]["title"].to_list() == [entity.title for entity in SCOTT]


def test_without_decisions_the_tables_are_as_they_were() -> None:
    given = tables(SMITH, [(0, 1)])
    made = resolve(SMITH, links=[(0, 1)])
    for name in ("entities", "relationships", "mentions"):
        assert_frame_equal(made[f"extracted_{name}"], given[f"extracted_{name}"].collect())


@pytest.mark.parametrize("by_rules", [True, False])
def test_the_tables_do_not_depend_on_the_size_of_shards_and_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_rules: bool
) -> None:
    said = """
    rename: {Oslo: Christiania}
    split:
      Robert Scott: [{title: Scott (sailor), text_units: [t1]}, {title: Robert Falcon Scott}]
    """
    entities = [*SCOTT, Entity("Robért Falcon Scott", "person", (1, 2, 3))]
    expected = decide(tmp_path, said, entities, [*LINKS, (4, 1), (1, 4)], by_rules)
    assert resolved(expected)["Robert Falcon Scott"] == "Robért Falcon Scott"
    for module, name in (
        (blocking, "NAMES_PER_SHARD"),
        (blocking, "NAMES_PER_PARTITION"),
        (scoring, "PAIRS_PER_SHARD"),
        (entity_merging, "ROWS_PER_READ"),
    ):
        monkeypatch.setattr(module, name, 2)
    made = decide(tmp_path, said, entities, [*LINKS, (4, 1), (1, 4)], by_rules)
    for name, table in expected.items():
        assert_frame_equal(made[name], table)


def test_given_ids_follow_their_entities(tmp_path: Path) -> None:
    (tmp_path / "resolutions.yaml").write_text("merge:\n  Bank: [John Smith]\n", encoding="utf-8")
    ids = pl.LazyFrame(
        [("entities", 0, None, "a"), ("entities", 1, None, "b"), ("relationships", 0, 1, "c")],
        schema=TABLES["given_ids"].schema,
        orient="row",
    )
    made = resolve(SMITH, tmp_path, given_ids=ids)["given_ids"]
    numbers = {*made["number"], *made["target"].drop_nulls()}
    assert len(numbers) == 1
    assert made["id"].to_list() == ["a", "b", "c"]
