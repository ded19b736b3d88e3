import pytest

from graphrag_nlp.names.known_names import DATA_FOLDER, find_known_type
from graphrag_nlp.names.name_words import GIVEN_NAMES


def test_a_known_name_has_its_type_in_any_case() -> None:
    assert find_known_type("Unesco") == find_known_type("UNESCO") == "organization"
    assert find_known_type("Andes") == "geo"
    assert find_known_type("Affordable Care Act") == "name"
    assert find_known_type("Einstein") == "person"
    assert find_known_type("Nobody") == ""


@pytest.mark.parametrize("file", ["known_names", "likely_names", "given_names"])
def test_each_name_of_a_list_has_one_section(file: str) -> None:
    lines = (DATA_FOLDER / f"{file}.txt").read_text(encoding="utf-8").splitlines()
    names = [line for line in lines if not line.startswith(("#", "["))]
    assert names == [" ".join(name.split()) for name in names]
    assert len(names) == len(set(names))


def test_an_acronym_that_is_a_word_is_known_as_written() -> None:
    assert find_known_type("WFP") == "organization"
    assert find_known_type("wfp") == find_known_type("Wfp") == ""
    assert find_known_type("Rom") == "geo"
    assert find_known_type("ROM") == ""  # a memory


def test_a_given_name_is_no_thing_everywhere() -> None:
    things = {"name", "event", "organization"}
    assert [name for name in sorted(GIVEN_NAMES) if find_known_type(name) in things] == []
