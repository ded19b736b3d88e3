"""Records of a reply: read in many forms, validated by the types asked for, aligned to the text."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.graph_reply import (
    ExtractionFormat,
    FoundEntity,
    FoundRecords,
    FoundRelationship,
    RelationshipKind,
    Schema,
    SchemaChain,
    drop_removed_types,
    read_records,
    read_strength,
    type_key,
)
from graphrag_index.llm.request import ParsedReply, ReplyError
from graphrag_nlp.text.normalize import title_key
from tests.fixtures.cases import cases
from tests.fixtures.extraction import entity, link, reply

ADA_AND_BEN = FoundEntity("Ada", "person", "A."), FoundEntity("Ben")


@cases("data")
def test_entities_are_read_in_many_forms(data: Any) -> None:
    assert read_records(data) == (FoundRecords(ADA_AND_BEN), 0)


@cases("record")
def test_relationships_are_read_in_many_forms(record: Any) -> None:
    found, n_bad = read_records({"entities": ["Ada", "Ben"], "relationships": [record]})
    assert found.relationships == (("Ada", "Ben", "knows", "K.", 8.0),)
    assert n_bad == 0


def test_lists_of_three_are_triples_unless_two_names_come_first() -> None:
    records = [["Ada", "knows", "Ben"], ["Ada", "Ben", "They met."], ["Ada", "Ben", "It.", "9"]]
    found, _ = read_records({"entities": ["Ada", "Ben"], "relationships": records})
    assert [row[:4] for row in found.relationships] == [
        ("Ada", "Ben", "knows", ""),
        ("Ada", "Ben", "", "They met."),
        ("Ada", "Ben", "", "It."),
    ]


def test_a_type_that_never_ends_is_none() -> None:
    found, n_bad = read_records({"entities": [{"name": "Ada", "type": "person " * 5_000}]})
    assert (found, n_bad) == (FoundRecords((FoundEntity("Ada"),)), 0)


def test_a_bad_record_is_dropped_and_counted() -> None:
    bad: list[Any] = [None, 7, {}, {"name": None}, {"name": "..."}, [], "x" * 500]
    links = [None, {"source": "Ada"}, {"source": "Ada", "target": "ADA"}, ["Ada"]]
    found, n_bad = read_records({"entities": ["Ada", *bad], "relationships": links})
    assert found == FoundRecords((FoundEntity("Ada"),))
    assert n_bad == len(bad) + len(links)


@pytest.mark.parametrize(
    "data", [{"error": "no"}, {}, "text", 3, None, {"entities": [{}, None]}, {"entities": 5}]
)
def test_what_is_no_extraction_is_an_error(data: Any) -> None:
    with pytest.raises(ReplyError):
        read_records(data)


def test_strengths_are_read_as_written() -> None:
    values = [7, "7", "8/10", "80 %", 0.8, "high", "weak", "?", None, True, 99, -3, float("nan")]
    assert [read_strength(value) for value in values] == [
        *(7.0, 7.0, 8.0, 8.0, 8.0, 8.0, 2.0, 5.0, 5.0, 5.0, 10.0, 3.0, 5.0),
    ]


ADA, KING = FoundEntity("Ada", "person", "Known."), FoundEntity("King", "person", "Known too.")
TEXT = "Ada King London Turin Rome"


def read(path: SchemaChain, data: Any, before: FoundRecords | None = None) -> ParsedReply:
    own = before or FoundRecords()
    known = FoundRecords((ADA, KING, *own.entities))
    return ExtractionFormat(path).reply_format(TEXT.__contains__, known, own).read(data)


def added(names: Sequence[str], kinds: Sequence[str] = (), strict: bool = False) -> SchemaChain:
    """A path that goes on from persons and, if there are kinds, from those who know others."""
    first = Schema(("person",), (RelationshipKind("knows"),) if kinds else (), strict)
    return first, Schema(tuple(names), tuple(map(RelationshipKind, kinds[1:])), strict)


def ends(reading: ParsedReply) -> list[tuple[str, str, str]]:
    return [(link.source, link.target, link.type) for link in reading.value.relationships]


def test_entities_of_added_types_are_kept_and_known_ones_are_not_told_again() -> None:
    said = reply(entity("Ada", "person", "Again."), entity("London", "PLACE", "A city."))
    reading = read(added(["place"]), said)
    assert reading == ParsedReply(FoundRecords((FoundEntity("London", "place", "A city."),)))
    # What is neither known nor asked for counts as no good.
    assert read(added(["place"]), reply(entity("Rome", "concept"))) == ParsedReply(
        FoundRecords(), 1
    )


def test_what_is_known_may_have_an_added_type_too() -> None:
    reading = read(added(["writer"]), reply(entity("Ada", "writer", "She writes.")))
    assert reading.value.entities == (FoundEntity("Ada", "writer", "She writes."),)


def test_new_entities_are_joined_with_known_ones() -> None:
    links = [link("Ada", "LONDON", "visits"), link("Ada", "King", "knows"), link("Ada", "Oslo")]
    reading = read(added(["place"]), reply(entity("London", "place"), links=links))
    # The second was asked for before; the end of the third is nowhere in the text.
    assert (ends(reading), reading.dropped) == ([("Ada", "London", "visits")], 1)


def test_relationships_of_added_types_join_what_is_known() -> None:
    path = added([], ["knows", "marries"])
    links = [link("Ada", "King", "MARRIES"), link("Ada", "King", "knows"), link("Ada", "King", "x")]
    reading = read(path, reply(entity("Rome", "place"), entity("Ada", "person"), links=links))
    assert (ends(reading), reading.dropped) == ([("Ada", "King", "marries")], 1)
    # What such a relationship joins comes with it.
    said = reply(entity("Rome", "place", "A city."), links=[link("Ada", "Rome", "marries")])
    assert read(path, said).value.entities == (FoundEntity("Rome", "place", "A city."),)
    said = reply(links=[link("Ada", "Turin", "marries")])
    assert read(path, said).value.entities == (FoundEntity("Turin"),)


def test_strictly_nothing_comes_in_that_was_never_asked_for() -> None:
    path = added([], ["knows", "marries"], strict=True)
    said = reply(
        entity("Rome", "place"),
        entity("Turin", "Person", "A man."),
        links=[link("Ada", "Rome", "marries"), link("Ada", "Turin", "marries")],
    )
    reading = read(path, said)
    assert ends(reading) == [("Ada", "Turin", "marries")]
    assert reading.value.entities == (FoundEntity("Turin", "person", "A man."),)
    enum = ExtractionFormat(path).schema["properties"]["relationships"]["items"]["properties"][
        "type"
    ]
    assert enum["enum"] == ["marries"]
    # What new entities are joined by has any type of the schema.
    path = added(["place"], ["knows", "marries"], strict=True)
    records = ExtractionFormat(path).schema["properties"]
    assert records["entities"]["items"]["properties"]["type"]["enum"] == ["place"]
    assert records["relationships"]["items"]["properties"]["type"]["enum"] == ["knows", "marries"]
    said = reply(entity("Rome", "place"), links=[link("Ada", "Rome", "knows"),
                                                 link("Ada", "Rome", "sees")])  # fmt: skip
    assert ends(read(path, said)) == [("Ada", "Rome", "knows")]


def test_strictly_an_added_type_joins_what_it_may() -> None:
    first = Schema(("person",), (RelationshipKind("knows"),), True)
    path = first, Schema(("place",), (RelationshipKind("visits", "person", "place"),), True)
    links = [link("Ada", "Rome", "visits"), link("Rome", "Ada", "visits")]
    assert ends(read(path, reply(entity("Rome", "place"), links=links))) == [
        ("Ada", "Rome", "visits")
    ]


def test_a_gleaning_joins_what_the_reply_before_it_found() -> None:
    before = FoundRecords((FoundEntity("London", "place"),))
    reading = read(added(["place"]), reply(links=[link("Ada", "London", "visits")]), before)
    assert ends(reading) == [("Ada", "London", "visits")]
    # Without it, the place is none that was found as one.
    assert ends(read(added(["place"]), reply(links=[link("Ada", "London", "visits")]))) == []


def narrowed(found: FoundRecords, wanted: Schema, names: str = "", kinds: str = "") -> FoundRecords:
    taken_out = frozenset(names.split()), frozenset(kinds.split())
    return drop_removed_types(found, wanted, taken_out)


def test_with_an_entity_go_its_relationships_and_what_only_they_name() -> None:
    london, rome = FoundEntity("London", "place"), FoundEntity("Rome")
    visits = FoundRelationship("London", "Rome", "twin of")
    knows = FoundRelationship("Ada", "King", "knows")
    found = FoundRecords((ADA, london, KING, rome), (visits, knows))
    assert narrowed(found, Schema(("person",)), "place") == FoundRecords((ADA, KING), (knows,))
    # It stays as something else, if it was found as that too.
    city = FoundEntity("London", "city", "It has a bridge.")
    found = FoundRecords((london, city, rome), (visits,))
    assert narrowed(found, Schema(("city",)), "place") == FoundRecords((city, rome), (visits,))


def test_relationships_of_a_type_that_is_taken_out_go_alone() -> None:
    links = FoundRelationship("Ada", "King", "Knows"), FoundRelationship("Ada", "King", "MARRIES")
    found = narrowed(
        FoundRecords((ADA, KING), links),
        Schema(("person",), (RelationshipKind("marries"),)),
        "",
        "knows",
    )
    assert found == FoundRecords((ADA, KING), (links[1]._replace(type="marries"),))


def test_strictly_a_relationship_joins_what_it_may_now() -> None:
    links = (FoundRelationship("Ada", "King", "knows"),)
    for target, kept in (("person", links), ("place", ())):
        wanted = Schema(("person", "place"), (RelationshipKind("knows", None, target),), True)
        assert narrowed(FoundRecords((ADA, KING), links), wanted).relationships == kept
        assert (
            narrowed(FoundRecords((ADA, KING), links), replace(wanted, strict=False)).relationships
            == links
        )


names = st.sampled_from(["Ada", "ada", "King", "Rome"])
types = st.sampled_from(["person", "Place", "event", ""])
found = st.builds(
    FoundRecords,
    st.lists(st.builds(FoundEntity, names, types, st.sampled_from(["", "x"]))).map(tuple),
    st.lists(st.builds(FoundRelationship, names, names, types)).map(tuple),
)


@given(found, st.sets(st.sampled_from(["person", "place", "event"])))
def test_nothing_of_a_type_that_is_taken_out_is_left(found: FoundRecords, out: set[str]) -> None:
    wanted = Schema(("person",), (RelationshipKind("person"),))
    left = drop_removed_types(found, wanted, (out, out))
    assert not out & {type_key(record.type) for record in (*left.entities, *left.relationships)}
    named = {title_key(entity.name) for entity in left.entities}
    assert {title_key(end) for link in left.relationships for end in link[:2]} <= named
    assert drop_removed_types(left, wanted, (out, out)) == left


def aligned(text: str, *names: str, language: str = "en") -> dict[str, list[str]]:
    places = Passage(text, language).align_names(names)
    return {name: [text[start:end] for start, end in places[name].spans] for name in names}


@cases("text, name, forms, language")
def test_names_are_aligned_to_the_text(
    text: str, name: str, forms: list[str], language: str
) -> None:
    assert aligned(text, name, language=language) == {name: forms}


def test_a_part_of_another_name_is_no_mention() -> None:
    text = "Anna Weber lives in New York. Weber left York for New York."
    assert aligned(text, "Anna Weber", "Karl Weber", "York", "New York") == {
        "Anna Weber": ["Anna Weber"],
        "Karl Weber": ["Weber"],
        "York": ["York"],
        "New York": ["New York", "New York"],
    }
