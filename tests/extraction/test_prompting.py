"""The types that text units are asked for, after each change of the settings."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.extraction.graph_reply import (
    Kind,
    Schema,
    SchemaChain,
    merge_schemas,
    schema_of,
)
from graphrag_index.extraction.prompting import History, choose_chain
from graphrag_index.llm.request import Request
from graphrag_index.schema.settings.step_sections import ExtractGraph
from graphrag_index.step import Silent
from graphrag_index.steps.extract_graph import extract_graph
from tests.fixtures.examples import examples
from tests.fixtures.extraction import LINKS, NAMES, PROMPTS, named_in
from tests.fixtures.fake_model import EarlierTables, FakeChatModel, KeepingModel


def schema(names: str = "", kinds: str = "", strict: bool = False) -> Schema:
    """Types by their first letters."""
    return Schema(tuple(names.split()), tuple(Kind(kind) for kind in kinds.split()), strict)


def test_all_types_are_asked_for_at_first() -> None:
    assert choose_chain([], schema("a b", "x")) == (schema("a b", "x"),)


def test_added_types_are_asked_for_alone() -> None:
    first = (schema("a", "x"),)
    assert choose_chain([first], schema("b a", "x")) == (*first, schema("b"))
    assert choose_chain([first], schema("a", "x y")) == (*first, schema("", "y"))
    assert choose_chain([first], schema("a b", "x y")) == (*first, schema("b", "y"))


def test_for_what_was_asked_before_nothing_is_asked() -> None:
    first = (schema("a b", "x y"),)
    assert choose_chain([first], schema("b", "y")) == first
    assert choose_chain([first], schema("B A", "Y x")) == first
    both = (schema("a"), schema("b"))
    assert choose_chain([both[:1], both], schema("b a")) == both
    # As it was before the type was added.
    assert choose_chain([both[:1], both], schema("a")) == both[:1]


def test_from_several_paths_the_one_that_lacks_least_goes_on() -> None:
    one, other = (schema("a"),), (schema("a"), schema("b"))
    assert choose_chain([one, other], schema("a b c")) == (*other, schema("c"))
    assert choose_chain([one, other], schema("a c")) == (*one, schema("c"))


def test_where_no_type_of_entities_stays_all_is_asked_anew() -> None:
    assert choose_chain([(schema("a", "x"),)], schema("b", "x")) == (schema("b", "x"),)
    # But other relationships are asked for between the same entities.
    assert choose_chain([(schema("a", "x"),)], schema("a", "y")) == (
        *(schema("a", "x"), schema("", "y")),
    )


def test_a_list_is_another_question_than_whatever_fits() -> None:
    for other in (schema(), schema("a"), schema("", "x"), schema("a", "x", strict=True)):
        assert choose_chain([(other,)], schema("a", "x")) == (schema("a", "x"),)
    # One list may be open while the other grows.
    assert choose_chain([(schema("a"),)], schema("a b")) == (schema("a"), schema("b"))
    assert choose_chain([(schema("", "x"),)], schema("", "x y")) == (
        *(schema("", "x"), schema("", "y")),
    )


def test_a_type_of_relationship_is_wider_than_one_that_says_what_it_joins() -> None:
    wide, narrow = Kind("knows"), Kind("knows", "a", "b")
    asked = Schema(("a", "b"), (wide,))
    assert choose_chain([(asked,)], Schema(("a", "b"), (narrow,))) == (asked,)
    asked = Schema(("a", "b"), (narrow,))
    added = Schema((), (wide,))
    assert choose_chain([(asked,)], Schema(("a", "b"), (wide,))) == (asked, added)


def test_settings_say_what_is_wanted() -> None:
    settings = ExtractGraph.model_validate(
        {"entity_types": ["a"], "relationship_types": ["x", {"type": "y", "target": "a"}]}
    )
    assert schema_of(settings) == Schema(("a",), (Kind("x"), Kind("y", None, "a")))


names = st.lists(st.sampled_from("abcde"), unique=True, max_size=4).map(tuple)
kinds = st.lists(st.sampled_from([Kind("x"), Kind("y", "a"), Kind("z")]), unique=True).map(tuple)
schemas = st.builds(Schema, names, kinds, st.booleans())


@given(st.lists(schemas, min_size=1, max_size=6))
def test_whatever_was_wanted_in_turn_each_type_is_asked_for_once(wants: list[Schema]) -> None:
    history, answered = History(), list[SchemaChain]()
    for wanted in wants:
        path = choose_chain(answered, wanted)
        new = path not in answered
        # One request at most goes beyond what has replies.
        assert not new or len(path) == 1 or path[:-1] in answered
        asked = merge_schemas(path)
        assert wanted.names.keys() <= asked.names.keys()
        assert {kind.type for kind in wanted.kinds} <= {kind.type for kind in asked.kinds}
        assert path[0].is_comparable(wanted)
        for before, after in pairwise(path):
            assert not before.names.keys() & after.names.keys()
        if new:
            answered.append(path)
            history.chains.append(path)
        assert choose_chain(answered, wanted) == path
        # What has been wanted once is never asked for again.
        for earlier in wants[: wants.index(wanted)]:
            assert choose_chain(answered, earlier) in answered
    read = History(history.as_json())
    assert read.chains == history.chains
    assert {read.find(path) for path in answered} == set(answered)
    for path in answered:
        assert path[0] in read.next_schemas(())
        assert all(path[n] in read.next_schemas(path[:n]) for n in range(len(path)))


def test_types_that_nobody_wants_any_more_are_taken_out() -> None:
    history = History()
    history.chains = [(schema("a B", "x"), schema("c")), (schema("a", "y_z"),)]
    assert history.removed_types(schema("A", "x")) == ({"b", "c"}, {"y z"})
    # Where whatever fits is wanted, none is.
    assert history.removed_types(schema("", "x")) == (set(), {"y z"})
    assert history.removed_types(schema()) == (set(), set())


UNITS = [
    "Ada Byron married William King in London.",
    "Charles Babbage came from Turin to the Great Exhibition in London with Ada Byron.",
    "The Royal Society has Charles Babbage and William King.",
    "In Turin Ada Byron was unknown.",
]


class RememberingModel(KeepingModel):
    """Finds known names, and remembers its replies and the schemas that were requested."""

    def __init__(self) -> None:
        super().__init__(lambda asked: named_in([said["content"] for said in asked.messages]))
        self.facts: dict[str, str] = {}

    def cached_values(self, request: Request) -> tuple[Any, ...]:
        said = self.kept.get(str(request.messages))
        return (request.format.read(said).value,) if said else ()

    def get_meta(self, name: str) -> str | None:
        return self.facts.get(name)

    def set_meta(self, name: str, value: str) -> None:
        self.facts[name] = value


def run(
    model: FakeChatModel,
    n_units: int,
    wanted: ExtractGraph,
    earlier: Mapping[str, pl.DataFrame] | None = None,
) -> dict[str, pl.DataFrame]:
    """Run the step on the first text units, one document each."""
    numbers = range(n_units)
    texts = UNITS[:n_units]
    documents = pl.DataFrame(
        {"id": [f"d{n}" for n in numbers], "title": "", "path": "", "language": "en",
         "metadata": pl.Series([None] * n_units, dtype=pl.String)}
    )  # fmt: skip
    units = pl.DataFrame(
        {"human_readable_id": numbers, "document_id": documents["id"], "start_char": 0,
         "end_char": [len(text) for text in texts], "text": texts, "headings": ""}
    )  # fmt: skip
    tables = extract_graph(
        units.lazy(), documents.lazy(), settings=wanted, chat_model=model, prompts=PROMPTS,
        previous=EarlierTables(earlier), progress=Silent(),
    )  # fmt: skip
    assert isinstance(tables, dict)
    return tables


def graph(tables: dict[str, pl.DataFrame]) -> tuple[Any, Any]:
    """What is known of each entity and relationship, by name."""
    entities = tables["extracted_entities"]
    titles = entities["title"].to_list()
    told = entities.select("title", "type", "text_units", pl.col("descriptions").list.sort())
    links = tables["extracted_relationships"].select(
        pl.col("source", "target").replace_strict(dict(enumerate(titles)), return_dtype=pl.String),
        "type", "weight", "descriptions", "text_units",
    )  # fmt: skip
    return sorted(told.rows()), sorted(links.rows())


wishes = st.builds(
    ExtractGraph,
    entity_types=st.lists(st.sampled_from(sorted(set(NAMES.values()))), unique=True),
    relationship_types=st.lists(
        st.sampled_from(sorted({kind for _, _, kind in LINKS})), unique=True
    ),
    strict=st.booleans(),
)


@examples(20)
@given(st.lists(st.tuples(st.integers(1, len(UNITS)), wishes), min_size=1, max_size=5))
def test_types_and_text_come_and_go_and_the_graph_is_that_of_the_last(
    changes: list[tuple[int, ExtractGraph]],
) -> None:
    model = RememberingModel()
    grown: dict[str, pl.DataFrame] = {}
    for n_units, wanted in changes:
        n_before = len(model.kept)
        grown = run(model, n_units, wanted, grown)
        # One request for each text unit at most.
        assert len(model.kept) - n_before <= n_units
    n_units, wanted = changes[-1]
    assert graph(grown) == graph(run(RememberingModel(), n_units, wanted))
    # From the replies alone the tables are the same, and nothing is asked.
    n_kept = len(model.kept)
    again = run(model, n_units, wanted)
    assert len(model.kept) == n_kept
    assert all(again[name].equals(grown[name]) for name in grown)
    # And so they are from what was found before.
    taken = run(model, n_units, wanted, again)
    assert all(again[name].equals(taken[name]) for name in again)


def test_a_type_that_is_taken_out_does_not_come_in_with_new_text() -> None:
    model = RememberingModel()
    people = ExtractGraph(entity_types=["person"])
    tables = run(model, 1, ExtractGraph(entity_types=["person", "place"]))
    assert "London" in tables["extracted_entities"]["title"].to_list()
    # A model that gives places although nobody asks for them.
    model.answer = lambda request: named_in(
        [request.messages[0]["content"].replace("one of: person", "one of: place, person"),
         request.messages[1]["content"]]
    )  # fmt: skip
    titles = run(model, len(UNITS), people)["extracted_entities"]["title"].to_list()
    assert sorted(titles) == ["Ada Byron", "Charles Babbage", "William King"]
    # Where it never was in the list, it is the model's own.
    model.facts.clear()
    assert "Turin" in run(model, len(UNITS), people)["extracted_entities"]["title"].to_list()
