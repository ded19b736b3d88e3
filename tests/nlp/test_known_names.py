from graphrag_index.nlp.known_names import find_known_type, list_known_names
from graphrag_index.text.languages import read_lists


def test_a_known_name_has_its_type_in_any_case() -> None:
    assert find_known_type("Unesco") == find_known_type("UNESCO") == "organization"
    assert find_known_type("Andes") == "geo"
    assert find_known_type("Affordable Care Act") == "name"
    assert find_known_type("Einstein") == "person"
    assert find_known_type("Nobody") == ""


def test_each_known_name_has_one_type() -> None:
    lists = read_lists("nlp/data/known_names").values()
    names = [name.strip() for listed in lists for name in listed.split("|")]
    assert len(names) == len(set(names)) == len(list_known_names())
