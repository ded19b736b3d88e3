"""Which names become one, and which never do."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.llm.request import Request
from graphrag_nlp.text.normalize import title_key
from tests.fixtures.examples import examples
from tests.fixtures.fake_model import FakeChatModel
from tests.fixtures.found_entities import Entity, doubtful, resolve, resolved

ONE = [
    # Accents, punctuation and spaces, in several languages.
    ("Québec City", "Quebec City", "place"),
    ("José María Sobral", "Jose Maria Sobral", "person"),
    ("Łódź", "Lodz", "place"),
    ("Kim Il-sung", "Kim Il Sung", "person"),
    ("Alexandre Benoît", "Alexandre Benoit", ""),
    ("Ελευθέριος Βενιζέλος", "Ελευθεριος Βενιζελος", "person"),
    ("Пётр Великий", "Петр Великий", "person"),
    ("U.S. Congress", "US Congress", "organization"),
    ("Ran-Tan-Plan", "Rantanplan", ""),
    ("Marks & Spencer", "Marks and Spencer", "organization"),
    # Umlauts spelled out.
    ("Gerhard Müller", "Gerhard Mueller", "person"),
    ("Universität Düsseldorf", "Universitaet Duesseldorf", "organization"),
    # What is no part of the name.
    ("The Royal Society of London", "Royal Society of London", "organization"),
    ("Die Deutsche Bahn Gruppe", "Deutsche Bahn Gruppe", "organization"),
    ("Dr. Anna Novak", "Anna Novak", "person"),
    ("Siemens AG", "Siemens", "organization"),
    ("Acme Widgets, Inc.", "Acme Widgets", "organization"),
    ("Royal Geographical Society (RGS)", "Royal Geographical Society", "organization"),
    ("Novak, Anna", "Anna Novak", "person"),
    # Initials, where all given names are told.
    ("R. F. Scott", "R. Falcon Scott", "person"),
    ("Robert F. Scott", "Robert Falcon Scott", "person"),
    ("Ernst M. Weber", "Ernst Max Weber", "person"),
    ("Samuel Coleridge-Taylor", "Samuel Coleridge Taylor", "person"),
    ("J.R.R. Tolkien", "John R. R. Tolkien", "person"),
]
TWO = [
    # Numbers, years, versions, letters.
    ("Apollo 11", "Apollo 12", ""),
    ("World War I", "World War II", "event"),
    ("Louis XIV", "Louis XV", "person"),
    ("Python 3.1", "Python 31", ""),
    ("1916 Expedition", "1917 Expedition", "event"),
    ("Boeing 747-400", "Boeing 747-8", ""),
    ("Vitamin C", "Vitamin D", ""),
    ("Chapter 1", "Chapter", ""),
    ("-9", "9", ""),
    ("C++", "C#", ""),
    (".NET", "Net", ""),
    # Directions and such words.
    ("North Korea", "South Korea", "place"),
    ("Northern Ireland", "Ireland", "place"),
    ("New Mexico", "Mexico", "place"),
    ("East Germany", "Germany", "place"),
    ("Nowy Sącz", "Stary Sącz", "place"),
    ("Северная Корея", "Южная Корея", "place"),
    ("First World War", "Second World War", "event"),
    ("Vice President", "President", ""),
    # People of one family, and other initials.
    ("Anna Novak", "Eva Novak", "person"),
    ("Edgar Evans", "Edward Evans", "person"),
    ("J. R. Smith", "J. K. Smith", "person"),
    ("Sam Walton", "S. Robson Walton", "person"),
    ("George W. Bush", "George H. W. Bush", "person"),
    ("Mr. Anna Novak", "Mrs. Anna Novak", "person"),
    ("Henry Ford", "Henry Ford Jr.", "person"),
    ("Samuel Taylor Coleridge", "Samuel Coleridge-Taylor", "person"),
    # One letter.
    ("Paris", "Parish", ""),
    ("Austria", "Australia", "place"),
    ("Iran", "Iraq", "place"),
    ("Slovakia", "Slovenia", "place"),
    ("Victor Galloway", "Victor Calloway", "person"),
    ("Amundsen", "Amundson", "person"),
    # Parts, and what is named after something.
    ("Royal Society", "Royal Geographical Society", "organization"),
    ("Republic of the Congo", "Democratic Republic of the Congo", "place"),
    ("London Zoo", "London", ""),
    ("Paris, Texas", "Paris", "place"),
    ("Charles Town", "Charlestown", "place"),
    ("Mercury (planet)", "Mercury (element)", ""),
    ("Mercury (planet)", "Mercury", ""),
    ("McDonald's", "McDonald", ""),
    ("Acme Corp", "Acme Ltd", "organization"),
    ("Walt Disney Company", "Walt Disney", ""),
    ("Tesla, Inc.", "Tesla", ""),
    ("The Who", "WHO", "organization"),
    ("Le Monde", "Monde", ""),
    ("péché", "pêche", ""),
    ("RGS", "Royal Geographical Society", "organization"),
    ("東京大学", "京都大学", "organization"),
    ("محمد علي", "محمد علاء", "person"),
]


@pytest.mark.parametrize(("one", "other", "kind"), ONE)
def test_names_that_are_one_are_merged(one: str, other: str, kind: str) -> None:
    made = resolve([Entity(one, kind, (0, 1)), Entity(other, kind, (0,))])
    assert resolved(made) == {other: one}
    assert doubtful(made) == []


@pytest.mark.parametrize(("one", "other", "kind"), TWO)
def test_names_that_may_be_two_are_left(one: str, other: str, kind: str) -> None:
    links = [(0, 2), (1, 2)]
    made = resolve([Entity(one, kind, (0, 1)), Entity(other, kind), Entity("Zyx")], links=links)
    assert resolved(made) == {}


def test_what_differs_by_a_letter_is_doubtful_with_its_evidence() -> None:
    entities = [
        Entity("Abraham van Deursen", "person", (0, 1)),
        Entity("Abraham van Deusen", "person", (1,)),
        Entity("Leiden", "place", (1,)),
    ]
    made = resolve(entities, links=[(0, 2), (1, 2)])
    assert made["doubtful_pairs"].rows() == [
        (
            *("Abraham van Deursen", "Abraham van Deusen", 0.89),
            ["one letter differs", "1 document in common", "1 neighbour in common"],
            *("person", "person", 2, 1, ""),
        )
    ]


def test_kinds_that_contradict_keep_equal_names_apart() -> None:
    made = resolve([Entity("Québec", "place", (0, 1)), Entity("Quebec", "person")])
    assert resolved(made) == {}


def test_an_acronym_is_merged_where_the_text_explains_it_once() -> None:
    said = "The Royal Geographical Society (RGS) paid."
    long = Entity("Royal Geographical Society", "organization", (0, 1), said)
    assert resolved(resolve([long, Entity("RGS")])) == {"RGS": long.title}
    other = Entity("Rural Gardening School", "", (2,), "The Rural Gardening School (RGS) closed.")
    made = resolve([long, Entity("RGS"), other])
    assert resolved(made) == {}
    assert len(doubtful(made)) == 2


def test_a_title_is_left_out_where_a_document_has_both() -> None:
    apart = [Entity("Anna Novak", "person", (0, 1)), Entity("Dr. Anna Novak", "person", (2,))]
    assert resolved(resolve(apart)) == {}
    assert doubtful(resolve(apart)) == [("Anna Novak", "Dr. Anna Novak")]


def test_initials_that_fit_two_names_are_not_merged() -> None:
    entities = [
        Entity("Robert Falcon Scott", "person", (0, 1, 2)),
        Entity("Robert Francis Scott", "person", (0, 1)),
        Entity("Robert F. Scott", "person", (0,)),
    ]
    assert resolved(resolve(entities)) == {}


def test_members_match_the_centre_and_not_only_each_other() -> None:
    # The middle one is like both, and the ends are not like each other.
    chain = ["Siemens AG", "Siemens", "Siemens Ltd"]
    entities = [
        Entity(title, "organization", tuple(range(n)))
        for title, n in zip(chain, (3, 2, 1), strict=True)
    ]
    assert resolved(resolve(entities)) == {"Siemens": "Siemens AG"}
    # With the middle one as the centre both match it, and do not contradict each other.
    reordered = [entities[1], entities[0], entities[2]]
    again = [Entity(e.title, e.type, tuple(range(4 - i))) for i, e in enumerate(reordered)]
    assert resolved(resolve(again)) == {"Siemens AG": "Siemens", "Siemens Ltd": "Siemens"}


def test_the_most_mentioned_form_is_the_title_as_it_is_written() -> None:
    made = resolve([Entity("quebec city", "", (0,)), Entity("Québec City", "", (0, 1))])
    assert resolved(made) == {"quebec city": "Québec City"}


def test_thresholds_are_those_of_the_settings() -> None:
    pair = [Entity("Jan van Deursen", "", (0, 1)), Entity("Jan van Deusen")]
    assert resolved(resolve(pair, merge_above=0.7)) == {"Jan van Deusen": "Jan van Deursen"}
    made = resolve([Entity("Łódź", "", (0, 1)), Entity("Lodz")], merge_above=1, doubt_above=0.99)
    assert (resolved(made), doubtful(made)) == ({}, [])
    made = resolve([Entity("Łódź", "", (0, 1)), Entity("Lodz")], merge=False)
    assert (resolved(made), doubtful(made)) == ({}, [])


def test_vectors_find_what_letters_do_not() -> None:
    class Vectors:
        def embed(self, texts: list[str]) -> Any:
            rows = {"Munich": [1, 0], "Monaco di Baviera": [1, 0]}
            return np.array([rows.get(text, [0, 1]) for text in texts], dtype=np.float32)

    entities = [Entity("Munich"), Entity("Monaco di Baviera"), Entity("Oslo")]
    made = resolve(entities, embedding_model=Vectors(), max_embedded=10)
    assert resolved(made) == {}
    assert doubtful(made) == [("Monaco di Baviera", "Munich")]
    assert doubtful(resolve(entities)) == []


PAIR = [Entity("Van Deursen", "", (0, 1), "A Dutchman."), Entity("Van Deusen", "", (0,))]


def test_a_model_decides_what_is_doubtful() -> None:
    def answer(request: Request) -> Any:
        assert "Name: Van Deursen\nDescription: A Dutchman." in request.messages[1]["content"]
        return {"reason": "a misspelling", "same": True}

    made = resolve(PAIR, chat_model=FakeChatModel(answer), model="chat")
    assert made["entity_resolutions"]["decided_by"].to_list() == ["model"]
    assert resolved(made) == {"Van Deusen": "Van Deursen"}
    assert doubtful(made) == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"same": False}, "different"),
        ({"same_entity": "No."}, "different"),
        ([{"match": "false"}], "different"),
        ({"same": "perhaps"}, "no answer"),
        ({"reason": "?"}, "no answer"),
        ([], "no answer"),
        (None, "no answer"),
    ],
)
def test_a_model_that_does_not_say_yes_merges_nothing(reply: Any, said: str) -> None:
    made = resolve(PAIR, chat_model=FakeChatModel(lambda _: reply), model="chat")
    assert resolved(made) == {}
    assert made["doubtful_pairs"]["model"].to_list() == [said]


@pytest.mark.parametrize("reply", [{"same": "yes"}, {"Same": 1}, "TRUE", [{"merge": "Yes."}]])
def test_a_yes_is_read_in_many_forms(reply: Any) -> None:
    made = resolve(PAIR, chat_model=FakeChatModel(lambda _: reply), model="chat")
    assert resolved(made) == {"Van Deusen": "Van Deursen"}


def test_no_more_is_asked_than_the_settings_allow() -> None:
    model = FakeChatModel(lambda _: {"same": True})
    pairs = [*PAIR, Entity("Nordenskiöld Coast"), Entity("Nordenskjöld Coast")]
    resolve(pairs, chat_model=model, model="chat", max_questions=1)
    assert len(model.asked) == 1


def test_without_entities_there_is_nothing_to_decide() -> None:
    assert all(frame.is_empty() for frame in resolve([]).values())


def test_names_that_no_document_has_are_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "resolutions.yaml").write_text(
        "merge:\n  Oslo: [Kristiania, Gone]\nnever:\n  - [Oslo, Lost]\n", encoding="utf-8"
    )
    with caplog.at_level(logging.WARNING):
        made = resolve([Entity("Oslo"), Entity("Kristiania")], tmp_path)
    assert resolved(made) == {"Kristiania": "Oslo"}
    assert [record.getMessage() for record in caplog.records] == [
        "resolutions.yaml: merge names 'Gone', which no document has.",
        "resolutions.yaml: never names 'Lost', which no document has.",
    ]


def test_a_part_that_no_text_unit_means_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "resolutions.yaml").write_text(
        "split:\n  Oslo:\n    - {title: Oslo (city), paths: ['letters/*']}\n"
        "    - {title: Oslo (ship), paths: ['lettrs/*']}\n    - {title: Oslo (else)}\n"
        "  Gone:\n    - {title: Gone (ship), paths: ['gone/*']}\n",
        encoding="utf-8",
    )
    with caplog.at_level(logging.WARNING):
        made = resolve([Entity("Oslo")], tmp_path)
    assert resolved(made) == {"Oslo": "Oslo (city)"}
    assert [record.getMessage() for record in caplog.records] == [
        "resolutions.yaml: split names 'Gone', which no document has.",
        "resolutions.yaml: the conditions of the split entry 'Oslo (ship)' match no text unit.",
    ]


def test_a_title_that_a_person_gave_goes_before_a_more_frequent_name(tmp_path: Path) -> None:
    entities = [Entity("Łódź", units=(0, 1, 2)), Entity("Lodz", units=(3,)), Entity("Widzew")]
    assert resolved(resolve(entities)) == {"Lodz": "Łódź"}
    path = tmp_path / "resolutions.yaml"
    path.write_text("merge:\n  Lodz: [Widzew]\n", encoding="utf-8")
    assert resolved(resolve(entities, tmp_path)) == {"Łódź": "Lodz", "Widzew": "Lodz"}
    # With two titles they are two, and doubtful.
    path.write_text("merge:\n  Lodz: [Widzew]\n  Łódź: [Łódź City]\n", encoding="utf-8")
    made = resolve(entities, tmp_path)
    assert resolved(made) == {"Widzew": "Lodz"}
    assert doubtful(made) == [("Lodz", "Łódź")]


TITLES = st.sampled_from(sorted({title for row in (*ONE, *TWO) for title in row[:2]}))
ENTITIES = st.lists(
    st.builds(
        Entity,
        TITLES,
        st.sampled_from(["", "person", "place", "organization"]),
        st.sets(st.integers(0, 3), min_size=1, max_size=4).map(lambda s: tuple(sorted(s))),
    ),
    max_size=12,
    unique_by=lambda entity: title_key(entity.title),
)


def groups(made: dict[str, pl.DataFrame]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for title, centre in resolved(made).items():
        found.setdefault(centre, {centre}).add(title)
    return found


@examples(20)
@given(ENTITIES, st.randoms(use_true_random=False))
def test_the_order_of_the_entities_does_not_matter(entities: list[Entity], chance: Any) -> None:
    made = resolve(entities)
    shuffled = list(entities)
    chance.shuffle(shuffled)
    again = resolve(shuffled)
    assert made["entity_resolutions"].equals(again["entity_resolutions"])
    assert made["doubtful_pairs"].equals(again["doubtful_pairs"])


@examples(20)
@given(ENTITIES, st.data())
def test_no_group_has_what_a_person_keeps_apart(
    tmp_path_factory: pytest.TempPathFactory, entities: list[Entity], data: st.DataObject
) -> None:
    merged = [sorted(group) for group in groups(resolve(entities, merge_above=0.7)).values()]
    root = tmp_path_factory.mktemp("never")
    pairs = [data.draw(st.permutations(group))[:2] for group in merged]
    lines = "".join(f"  - {list(pair)!r}\n" for pair in pairs)
    text = f"never:\n{lines}" if lines else ""
    (root / "resolutions.yaml").write_text(text.replace("\\'", "''"), encoding="utf-8")
    made = resolve(entities, root, merge_above=0.7)
    for group in groups(made).values():
        assert not any(set(pair) <= group for pair in pairs)
