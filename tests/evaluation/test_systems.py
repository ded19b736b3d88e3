"""Systems: indexes, versions, and combinations of settings."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from graphrag_evaluation.systems import Place, open_systems, plan_systems
from graphrag_index.errors import SettingsError


def names(places: Sequence[Place], methods: Sequence[str], *overrides: str) -> list[str]:
    with ExitStack() as stack:
        return [
            system.name for system in open_systems(stack, plan_systems(places, methods, overrides))
        ]


def test_settings_with_several_values_make_a_matrix(sample_project: Path) -> None:
    place = Place(sample_project)
    assert names([place], ["local"], "local_search.top_k_text_units=5") == ["local"]
    assert names([place], ["local", "basic"], "basic_search.mode=text, vector") == [
        "local basic_search.mode=text",
        "basic basic_search.mode=text",
        "local basic_search.mode=vector",
        "basic basic_search.mode=vector",
    ]


def test_a_value_of_the_matrix_reaches_the_search(sample_project: Path) -> None:
    with ExitStack() as stack:
        overrides = ["basic_search.top_k_text_units=2,5"]
        systems = open_systems(stack, plan_systems([Place(sample_project)], ["basic"], overrides))
        read = [
            system.index.search("basic", "Who was Tom Crean?").looked_at["text_units"]
            for system in systems
        ]
    assert read == [2, 5]


def test_places_are_named_by_what_differs(sample_project: Path) -> None:
    root = sample_project
    places = [Place(root), Place.parse("@1", root)]
    assert names(places, ["basic"]) == ["basic now", "basic @1"]
    places = [Place(root), Place.parse(f"{root / 'output'}@1", root)]
    assert names(places, ["basic"]) == [f"basic {root.name}", "basic output@1"]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("create_text_units.max_tokens=100", "has no effect on an index that is there"),
        ("basic_search.speed=1", "unknown key 'basic_search.speed'"),
    ],
)
def test_settings_that_cannot_be_compared_are_told(
    sample_project: Path, override: str, told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        names([Place(sample_project)], ["basic"], override)


@pytest.mark.parametrize(
    ("against", "methods", "overrides"),
    [
        ([], ["basic", "basic"], []),
        ([""], ["basic"], []),
        (["@1", "@1"], ["basic"], []),
        ([], ["basic"], ["basic_search.mode=text,text"]),
    ],
)
def test_a_system_is_not_compared_with_itself(
    sample_project: Path, against: Sequence[str], methods: Sequence[str], overrides: Sequence[str]
) -> None:
    places = [Place(sample_project)]
    places += [Place.parse(text or str(sample_project), sample_project) for text in against]
    with pytest.raises(SettingsError, match=r"'basic.*' would be compared with itself"):
        plan_systems(places, methods, overrides)


def test_an_output_folder_alone_has_no_settings_to_change(sample_project: Path) -> None:
    with pytest.raises(SettingsError, match="name the project instead"):
        names([Place(sample_project / "output")], ["basic"], "basic_search.mode=text,vector")
