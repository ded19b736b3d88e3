"""When two forms are one name, and when they are not."""

from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from tests.fixtures.found_names import FoundNames


def test_a_word_that_mostly_stands_alone_is_not_short_for_a_longer_name() -> None:
    found = FoundNames(
        "They flew home with Air Canada.",
        "The winters of Canada are long. People from Canada know.",
        "They told us much about Canada. It was cold.",
    )
    assert found.mentioned["Canada"] == 3
    assert found.mentioned["Air Canada"] == 1
    assert "person" not in found.types.values()


def test_names_that_differ_in_accents_only_are_one() -> None:
    found = FoundNames(
        "They sailed with Otto Nordenskjöld. The crew of Otto Nordenskjold was lost."
    )
    assert len([title for title in found.titles if "Norden" in title]) == 1


def test_without_merging_every_form_is_an_entity() -> None:
    text = "Agent Alex Mercer came to Berlin. Everybody trusted Alex Mercer. Mercer was careful."
    found = FoundNames(text, settings=ExtractGraphNlp(merge_variants=False))
    assert {"Agent Alex Mercer", "Alex Mercer", "Mercer"} <= {*found.titles}
    assert all(aliases == set() for aliases in found.aliases.values())
