"""The map over HTTP: communities and entities with their places, as typed arrays."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from fastapi.testclient import TestClient

MAP = "/v1/indexes/sample/map"
TYPES = {"i32": "<i4", "f32": "<f4", "u8": "u1"}


@dataclass(frozen=True)
class Part:
    """A part of the map, parsed as the explorer does."""

    header: dict
    arrays: dict[str, np.ndarray]


def read_part(client: TestClient, community: int | None = None) -> Part:
    reply = client.get(MAP if community is None else f"{MAP}/{community}")
    assert reply.status_code == 200
    content = reply.content
    n = int.from_bytes(content[:4], "little")
    assert (4 + n) % 8 == 0
    header = json.loads(content[4 : 4 + n])
    arrays = {
        name: np.frombuffer(content, TYPES[array["type"]], array["length"], 4 + n + array["offset"])
        for name, array in header["arrays"].items()
    }
    return Part(header, arrays)


def test_opening_every_community_shows_every_entity_once(sample_client: TestClient) -> None:
    entities: list[int] = []
    parts = [read_part(sample_client)]
    assert parts[0].header["kind"] == "communities"
    while parts:
        part = parts.pop()
        numbers = part.arrays["number"].tolist()
        assert len(part.header["title"]) == len(numbers)
        if part.header["kind"] == "entities":
            entities += numbers
        else:
            parts += [read_part(sample_client, number) for number in numbers]
            counts = part.arrays["type_counts"].reshape(len(numbers), -1)
            assert counts.shape[1] == len(part.header["types"]) + 1
            assert counts.sum(axis=1).tolist() == part.arrays["size"].tolist()
    root = read_part(sample_client)
    types = sample_client.get("/v1/indexes/sample/stats").json()["entity_types"]
    totals = root.arrays["type_counts"].reshape(len(root.arrays["number"]), -1).sum(axis=0)
    assert dict(zip(root.header["types"], totals.tolist(), strict=False)) == types
    sizes = sample_client.get("/v1/indexes/sample").json()["tables"]
    assert sorted(entities) == list(range(sizes["entities"]))


def test_discs_lie_in_their_parent_and_do_not_overlap(sample_client: TestClient) -> None:
    for community in (None, 0, 1):
        arrays = read_part(sample_client, community).arrays
        centres = np.column_stack([arrays["x"], arrays["y"]])
        radius = arrays["radius"]
        assert (np.linalg.norm(centres, axis=1) + radius <= 1).all()
        distance = np.linalg.norm(centres[:, None] - centres[None], axis=2)
        np.fill_diagonal(distance, np.inf)
        assert (distance > radius[:, None] + radius[None]).all()


def test_relationships_of_a_part_join_its_things(sample_client: TestClient) -> None:
    root = read_part(sample_client)
    assert len(root.arrays["source"]) > 0
    assert root.arrays["weight"].tolist() == sorted(root.arrays["weight"], reverse=True)
    part = root
    while part.header["kind"] == "communities":
        part = read_part(sample_client, int(part.arrays["number"][0]))
    numbers = part.arrays["number"]
    for at in range(len(part.arrays["relationship"])):
        path = f"/v1/indexes/sample/relationships/{part.arrays['relationship'][at]}"
        found = sample_client.get(path).json()
        ends = {int(numbers[part.arrays[end][at]]) for end in ("source", "target")}
        assert {found["source"], found["target"]} == ends
        assert found["stated"] == bool(part.arrays["stated"][at])


def test_places_are_those_of_the_parts(sample_client: TestClient) -> None:
    root = read_part(sample_client)
    first = int(root.arrays["number"][0])
    inner = read_part(sample_client, first)
    child = int(inner.arrays["number"][0])
    query = {
        "entity": [0, 999_999],
        "community": [first, child, 999_999],
        "relationship": [0, 999_999],
    }
    found = sample_client.get(f"{MAP}/places", params=query).json()
    outer, nested = found["communities"]
    for name in ("x", "y", "radius"):
        assert outer[name] == pytest.approx(float(root.arrays[name][0]), abs=1e-6)
    assert nested["radius"] == pytest.approx(
        outer["radius"] * float(inner.arrays["radius"][0]), abs=1e-6
    )
    [relationship] = found["relationships"]
    entity = found["entities"][0]
    assert {one["number"] for one in found["entities"]} == {
        *(0, relationship["source"], relationship["target"])
    }
    assert entity["number"] == 0
    assert entity["x"] ** 2 + entity["y"] ** 2 <= 1


@pytest.mark.parametrize("community", ["99999", "-5"])
def test_an_unknown_community_is_not_found(sample_client: TestClient, community: str) -> None:
    reply = sample_client.get(f"{MAP}/{community}")
    assert (reply.status_code, reply.json()["code"]) == (404, "no_such_row")
