"""Tables over HTTP: pages, single rows, what supports them, and two versions side by side."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import graphrag_query
from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings
from graphrag_server.table_pages import read_spans, read_texts
from tests.server.conftest import ADDRESS

BASE = "/v1/indexes/sample"


def read(client: TestClient, path: str, **query: Any) -> dict:
    """Return the reply to a request that succeeds."""
    reply = client.get(f"{BASE}/{path}", params=query)
    assert reply.status_code == 200, reply.text
    assert reply.headers["x-index-version"] == "1"
    return reply.json()


def find_entity(client: TestClient, title: str) -> int:
    """Return the number of the entity of a title."""
    [found] = [e for e in read(client, "suggest", q=title)["entities"] if e["title"] == title]
    return found["number"]


@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("entities", "entities"),
        ("relationships", "relationships"),
        ("communities", "communities"),
        ("reports", "community_reports"),
        ("documents", "documents"),
        ("text_units", "text_units"),
    ],
)
def test_the_pages_of_a_table_have_each_row_once(
    sample_client: TestClient, path: str, table: str
) -> None:
    sizes = sample_client.get(BASE).json()["tables"]
    seen, cursor = [], ""
    while cursor is not None:
        page = read(sample_client, path, limit=500, cursor=cursor)
        assert page["total"] == sizes[table]
        seen += [item.get("number", item.get("community")) for item in page["items"]]
        cursor = page["next_cursor"]
    assert len(seen) == len(set(seen)) == sizes[table]


def test_entities_are_filtered_sorted_and_searched(sample_client: TestClient) -> None:
    persons = read(sample_client, "entities", type="person")["items"]
    assert {entity["type"] for entity in persons} == {"person"}
    degrees = [entity["degree"] for entity in persons]
    assert degrees == sorted(degrees, reverse=True)
    titles = [e["title"] for e in read(sample_client, "entities", sort="title")["items"]]
    assert titles == sorted(titles)
    found = read(sample_client, "entities", q="TOM CREAN")["items"]
    assert "Tom Crean" in {entity["title"] for entity in found}
    where = read(sample_client, "entities", where="path=*tom-crean*")
    assert 0 < where["total"] < read(sample_client, "entities")["total"]


def test_an_entity_has_its_communities_relationships_and_mentions(
    sample_client: TestClient,
) -> None:
    number = find_entity(sample_client, "Tom Crean")
    entity = read(sample_client, f"entities/{number}")
    assert entity["communities"][0]["level"] == 0
    assert any("Crean" in span["text"] for span in entity["evidence"])
    relationships = read(sample_client, f"entities/{number}/relationships", limit=500)
    assert relationships["total"] == entity["degree"]
    assert all(number in (one["source"], one["target"]) for one in relationships["items"])
    mentions = read(sample_client, f"entities/{number}/mentions", limit=500)
    assert mentions["total"] == entity["frequency"]
    members = read(
        sample_client, "entities", community=entity["communities"][0]["community"], limit=500
    )
    assert number in {member["number"] for member in members["items"]}


@pytest.mark.parametrize("path", ["relationships", "mentions"])
def test_what_belongs_to_an_entity_is_paged(sample_client: TestClient, path: str) -> None:
    number = find_entity(sample_client, "Tom Crean")
    whole = read(sample_client, f"entities/{number}/{path}", limit=500)
    paged, cursor = [], ""
    while cursor is not None:
        page = read(sample_client, f"entities/{number}/{path}", limit=7, cursor=cursor)
        paged += page["items"]
        cursor = page["next_cursor"]
    assert paged == whole["items"]
    assert len(paged) == whole["total"] > 7


def test_rows_name_the_rows_that_name_them(sample_client: TestClient) -> None:
    number = find_entity(sample_client, "Tom Crean")
    community = read(sample_client, f"entities/{number}")["communities"][0]["community"]
    members = read(sample_client, "entities", community=community, limit=500)
    assert number in {member["number"] for member in members["items"]}
    mention = read(sample_client, f"entities/{number}/mentions")["items"][0]
    named = read(sample_client, f"text_units/{mention['text_unit']}")["entities"]
    assert number in {one["number"] for one in named}


def test_a_stated_relationship_shows_its_sentences(sample_client: TestClient) -> None:
    rows = read(sample_client, "relationships", sort="weight", limit=500)["items"]
    for stated in (True, False):
        first = next(row for row in rows if row["stated"] is stated)
        details = read(sample_client, f"relationships/{first['number']}")
        assert details["stated"] is stated
        assert bool(details["evidence"]) is stated
        assert details["text_units"]


def test_a_window_of_a_document_marks_its_mentions(sample_client: TestClient) -> None:
    [document] = read(sample_client, "documents", q="tom-crean")["items"]
    path = f"documents/{document['number']}/text"
    whole = read(sample_client, path)
    assert len(whole["text"]) == whole["n_characters"] == document["n_characters"]
    window = read(sample_client, path, start=100, end=700)
    assert window["text"] == whole["text"][100:700]
    assert all(unit["start_char"] < 700 for unit in window["text_units"])
    named = [
        whole["text"][mention["start_char"] : mention["end_char"]]
        for mention in whole["mentions"]
        if mention["title"] == "Tom Crean"
    ]
    assert "Tom Crean" in named
    assert set(named) <= {"Tom Crean", "Crean", "Crean's"}


def test_a_community_knows_its_place(sample_client: TestClient) -> None:
    [child, *_] = read(sample_client, "communities", level=1)["items"]
    details = read(sample_client, f"communities/{child['community']}")
    assert [above["community"] for above in details["ancestors"]] == [child["parent"]]
    report = read(sample_client, f"reports/{child['community']}")
    assert report["title"] == details["title"]
    for said in report["statements"]:
        # A report without a model quotes the first source.
        assert " ".join(said["sources"][0]["text"].split()).endswith(said["text"][-20:])
        assert len({span["document"] for span in said["sources"]}) == min(said["n_documents"], 5)
    assert report["statements"]
    parent = read(sample_client, f"communities/{child['parent']}")
    assert child["community"] in {one["community"] for one in parent["child_communities"]}
    assert all(one["level"] == 0 for one in parent["neighbours"])


def test_paths_and_neighbourhoods_are_parts_of_the_graph(sample_client: TestClient) -> None:
    crean, nansen = (find_entity(sample_client, t) for t in ("Tom Crean", "Fridtjof Nansen"))
    found = read(sample_client, "path", **{"from": crean, "to": nansen})
    assert found["paths"]
    for path in found["paths"]:
        assert (path["entities"][0], path["entities"][-1]) == (crean, nansen)
        assert len(path["relationships"]) == len(path["entities"]) - 1
    around = read(sample_client, "neighbourhood", entity=crean, limit=5)
    assert around["entities"][0]["number"] == crean
    assert len(around["relationships"]) == 5
    assert read(sample_client, "path", **{"from": crean, "to": crean})["paths"] == []


@pytest.mark.parametrize("typed", ["crean tom", "CREÀN", "tom cr"])
def test_names_are_found_while_they_are_typed(sample_client: TestClient, typed: str) -> None:
    found = read(sample_client, "suggest", q=typed)["entities"]
    assert "Tom Crean" in {entity["title"] for entity in found}


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("scott", "Robert Falcon Scott"),
        ("falcon scott", "Robert Falcon Scott"),
        ("shakleton", "Ernest Shackleton"),
        ("Amundson", "Roald Amundsen"),
        ("Roald Amudsen", "Roald Amundsen"),
        ("mawsn", "Douglas Mawson"),
        ("nimrud expedition", "Nimrod Expedition"),
        ("crean", "Tom Crean"),
        ("amund", "Roald Amundsen"),
        ("antar", "Antarctic"),
        # A name that is typed as a whole stands before more important ones.
        ("South Polar", "South Polar"),
        ("fram", "Fram"),
    ],
)
def test_the_most_important_name_is_found_first_and_typos_are_forgiven(
    sample_client: TestClient, typed: str, first: str
) -> None:
    assert read(sample_client, "suggest", q=typed)["entities"][0]["title"] == first


def test_names_are_found_in_the_order_of_their_relationships(sample_client: TestClient) -> None:
    found = read(sample_client, "suggest", q="s", limit=50)["entities"]
    degrees = [entity["degree"] for entity in found]
    assert len(degrees) == 50
    assert degrees == sorted(degrees, reverse=True)
    assert read(sample_client, "suggest", q="qwertzuiop")["entities"] == []


def test_statistics_list_the_values_of_filters(sample_client: TestClient) -> None:
    statistics = sample_client.get(f"{BASE}/stats").json()
    counts = statistics["entity_types"]
    assert sum(counts.values()) == statistics["tables"]["entities"]
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    columns = statistics["document_columns"]
    assert columns[:3] == ["path", "title", "language"]
    for column in columns[3:]:
        found = sample_client.get(f"{BASE}/documents", params={"where": f"{column}=*"}).json()
        assert found["total"] > 0


def test_versions_differences_and_health(sample_client: TestClient) -> None:
    [version] = sample_client.get(f"{BASE}/versions").json()["versions"]
    assert (version["number"], version["is_current"]) == (1, True)
    changed = sample_client.get(f"{BASE}/diff/entities", params={"from": 1}).json()
    assert (changed["total"], changed["counts"]) == (0, {})
    assert sample_client.get(f"{BASE}/check").json()["failed"] is False


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("entities/999999", 404, "no_such_row"),
        ("entities/-1", 404, "no_such_row"),
        ("communities/999999", 404, "no_such_row"),
        ("reports/99999999999", 404, "no_such_row"),
        ("entities?as_of=7", 404, "no_such_version"),
        ("diff/entities?from=9", 404, "no_such_version"),
        ("entities?cursor=x", 400, "invalid_cursor"),
        ("entities?sort=size", 400, "invalid_sort"),
        ("entities?where=path", 400, "invalid_filter"),
        ("entities?limit=501", 422, "invalid_request"),
        ("entities?tpye=person", 422, "invalid_request"),
        ("evaluations?limit=1", 422, "invalid_request"),
        ("nothing", 404, "not_found"),
    ],
)
def test_wrong_requests_are_explained(
    sample_client: TestClient, path: str, status: int, code: str
) -> None:
    reply = sample_client.get(f"{BASE}/{path}")
    assert (reply.status_code, reply.json()["code"]) == (status, code)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("entities?tpye=person", "unknown parameter 'tpye'; did you mean 'type'?"),
        ("evaluations?where=a", "unknown parameter 'where'; known: none."),
        ("entities?limit=501", "limit: input should be less than or equal to 500."),
    ],
)
def test_a_wrong_parameter_is_named(sample_client: TestClient, path: str, said: str) -> None:
    assert sample_client.get(f"{BASE}/{path}").json()["detail"] == said


def test_spans_have_the_texts_of_their_places(sample_project: Path) -> None:
    with graphrag_query.open(sample_project / "output") as index:
        store = index.store
        evidence = [
            place for row in store.entities(range(20))["evidence"].to_list() for place in row or ()
        ]
        texts = read_texts(store, range(store.n_rows("document_rows")))
        longest = max(texts, key=lambda number: len(texts[number]))
        whole = {"document": longest, "start_char": 0, "end_char": len(texts[longest])}
        spans = read_spans(store, [*evidence[:100], whole])
    assert len(spans) > 20
    for span in spans:
        assert span.text == texts[span.document][span.start_char : span.end_char]
    # No text unit holds the whole of the longest document.
    assert [span.text_unit is None for span in spans] == [False] * (len(spans) - 1) + [True]


SHIPS = "/v1/indexes/ships"


@pytest.fixture(scope="module")
def ships(project_of_two_versions: Path) -> Iterator[TestClient]:
    """A client of an index whose version 2 has another document, and one document less."""
    app = create_app(ServerSettings(indexes={"ships": project_of_two_versions}))
    with TestClient(app, base_url=ADDRESS) as client:
        yield client


def test_changed_rows_have_the_numbers_of_both_versions(ships: TestClient) -> None:
    page = ships.get(f"{SHIPS}/diff/documents", params={"from": 1}).json()
    assert page["counts"] == {"added": 1, "removed": 1}
    assert {(row["kind"], row["name"]) for row in page["items"]} == {
        ("added", "aurora.txt"),
        ("removed", "belgica.txt"),
    }
    for row in ships.get(f"{SHIPS}/diff/entities", params={"from": 1}).json()["items"]:
        for version, number in ((1, row["before"]), (2, row["after"])):
            if number is not None:
                reply = ships.get(f"{SHIPS}/entities/{number}", params={"as_of": version})
                assert reply.json()["title"] == row["name"]
        assert (row["before"] is None, row["after"] is None) == (
            row["kind"] == "added",
            row["kind"] == "removed",
        )


def test_pages_of_changed_rows_hold_each_row_once(ships: TestClient) -> None:
    query = {"from": 1, "to": 2, "kind": "added"}
    whole = ships.get(f"{SHIPS}/diff/entities", params=query).json()
    assert whole["total"] == whole["counts"]["added"] > 1
    seen, cursor = [], ""
    while cursor is not None:
        page = ships.get(f"{SHIPS}/diff/entities", params={**query, "limit": 1, "cursor": cursor})
        seen += page.json()["items"]
        cursor = page.json()["next_cursor"]
    assert seen == whole["items"]


def test_a_page_stays_in_its_version(ships: TestClient) -> None:
    first = ships.get(f"{SHIPS}/entities", params={"as_of": 1, "limit": 1})
    cursor = first.json()["next_cursor"]
    second = ships.get(f"{SHIPS}/entities", params={"limit": 1, "cursor": cursor})
    assert first.headers["x-index-version"] == second.headers["x-index-version"] == "1"


def test_documents_have_what_a_table_of_them_shows(sample_client: TestClient) -> None:
    by_entities = read(sample_client, "documents", sort="-n_entities", limit=500)["items"]
    counts = [document["n_entities"] for document in by_entities]
    assert counts == sorted(counts, reverse=True)
    first = by_entities[0]
    named = read(sample_client, "entities", document=first["number"])["total"]
    assert (first["n_entities"], first["type"]) == (named, first["path"].rpartition(".")[2])
    [belgica] = read(sample_client, "documents", q="belgica.md")["items"]
    assert belgica["date"] == belgica["creation_date"] == "2024-03-11"
    types = [
        document["type"] for document in read(sample_client, "documents", sort="type")["items"]
    ]
    assert types == sorted(types)
    assert types[0] == "csv"


def test_the_timeline_counts_what_the_filters_of_its_periods_keep(
    sample_client: TestClient,
) -> None:
    number = find_entity(sample_client, "Ernest Shackleton")
    line = read(sample_client, "timeline", entity=number)
    periods = line["periods"]
    # From 11 March to 6 May 2024 are 57 days.
    assert len(periods) == 57
    whole = read(sample_client, "documents")["total"]
    assert sum(period["documents"] for period in periods) + line["n_undated"] == whole
    for period in (periods[0], periods[-1]):
        dates = {"since": period["since"], "until": period["until"]}
        assert read(sample_client, "documents", **dates)["total"] == period["documents"] == 1
    mentions = read(sample_client, f"entities/{number}/mentions", limit=500)["items"]
    dated = read(sample_client, "documents", since="2024", limit=500)["items"]
    inside = {document["number"] for document in dated}
    n_mentions = sum(span["document"] in inside for span in mentions)
    assert sum(period["mentions"] for period in periods) == n_mentions > 0
    kept = read(sample_client, "timeline", where="path=people/*")
    assert sum(period["documents"] for period in kept["periods"]) == 0
