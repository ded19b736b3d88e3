"""The types that text units are asked for, after each change of the settings."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.extraction.graph_reply import (
    RelationshipKind,
    Schema,
    SchemaChain,
    merge_schemas,
    schema_from_settings,
)
from graphrag_index.extraction.prompting import RequestHistory, choose_chain
from graphrag_index.schema.settings.step_sections import ExtractGraph


def schema(names: str = "", kinds: str = "", strict: bool = False) -> Schema:
    """Types by their first letters."""
    return Schema(
        tuple(names.split()), tuple(RelationshipKind(kind) for kind in kinds.split()), strict
    )


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
    wide, narrow = RelationshipKind("knows"), RelationshipKind("knows", "a", "b")
    asked = Schema(("a", "b"), (wide,))
    assert choose_chain([(asked,)], Schema(("a", "b"), (narrow,))) == (asked,)
    asked = Schema(("a", "b"), (narrow,))
    added = Schema((), (wide,))
    assert choose_chain([(asked,)], Schema(("a", "b"), (wide,))) == (asked, added)


def test_settings_say_what_is_wanted() -> None:
    settings = ExtractGraph.model_validate(
        {"entity_types": ["a"], "relationship_types": ["x", {"type": "y", "target": "a"}]}
    )
    assert schema_from_settings(settings) == Schema(
        ("a",), (RelationshipKind("x"), RelationshipKind("y", None, "a"))
    )


names = st.lists(st.sampled_from("abcde"), unique=True, max_size=4).map(tuple)
kinds = st.lists(
    st.sampled_from([RelationshipKind("x"), RelationshipKind("y", "a"), RelationshipKind("z")]),
    unique=True,
).map(tuple)
schemas = st.builds(Schema, names, kinds, st.booleans())


@given(st.lists(schemas, min_size=1, max_size=6))
def test_whatever_was_wanted_in_turn_each_type_is_asked_for_once(wants: list[Schema]) -> None:
    history, answered = RequestHistory(), list[SchemaChain]()
    for wanted in wants:
        path = choose_chain(answered, wanted)
        new = path not in answered
        # One request at most goes beyond what has replies.
        assert not new or len(path) == 1 or path[:-1] in answered
        asked = merge_schemas(path)
        assert wanted.types_by_key.keys() <= asked.types_by_key.keys()
        assert {kind.type for kind in wanted.kinds} <= {kind.type for kind in asked.kinds}
        assert path[0].is_comparable(wanted)
        for before, after in pairwise(path):
            assert not before.types_by_key.keys() & after.types_by_key.keys()
        if new:
            answered.append(path)
            history.chains.append(path)
        assert choose_chain(answered, wanted) == path
        # What has been wanted once is never asked for again.
        for earlier in wants[: wants.index(wanted)]:
            assert choose_chain(answered, earlier) in answered
    read = RequestHistory(history.as_json())
    assert read.chains == history.chains
    assert {read.find_chain(path) for path in answered} == set(answered)
    for path in answered:
        assert path[0] in read.next_schemas(())
        assert all(path[n] in read.next_schemas(path[:n]) for n in range(len(path)))


def test_types_that_nobody_wants_any_more_are_taken_out() -> None:
    history = RequestHistory()
    history.chains = [(schema("a B", "x"), schema("c")), (schema("a", "y_z"),)]
    assert history.removed_types(schema("A", "x")) == ({"b", "c"}, {"y z"})
    # Where whatever fits is wanted, none is.
    assert history.removed_types(schema("", "x")) == (set(), {"y z"})
    assert history.removed_types(schema()) == (set(), set())
