import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from graphrag_index.reports.report_choices import hash_choice_inputs
from graphrag_index.reports.title_members import (
    find_turns,
    is_media_name,
    rank_title_members,
)
from graphrag_index.reports.written_reports import find_subjects, is_name_list, rate_wording
from graphrag_index.schema.settings.step_sections import CreateCommunityReportsNlp
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.create_community_reports_nlp import create_community_reports_nlp
from graphrag_index.storage.table_store import Previous, open_index
from tests.conftest import copy_project, run_project
from tests.fixtures.small_index import read_table

SENTENCES: Mapping[str, Any] = {
    "report": [0, 0, 1],
    "text": ["Crean met Scott.", "Scott sailed.", "The ice broke."],
    "language": ["en"] * 3,
    "clarity": [2, 2, 1],
    "score": [3.5, 2.25, 1.0],
    "first_day": [None] * 3,
    "last_day": [None] * 3,
    "start_char": [0, 17, 40],
    "end_char": [16, 30, 54],
    "entities": [[4, 9], [9], [7]],
    "source": [5, 6, 8],
    "document": [2, 2, 3],
}
USES = {"report": [0], "word": ["ice"], "weight": [1.5], "form": ["ice"]}
ENTITIES = {"entity": [4, 7, 9], "title": ["Crean", "Ice", "Scott"], "weight": [1.0, 2.0, 3.0]}
MAINS = [["Crean", "Scott"], ["Ice"]]


def hashes(
    sentences: Mapping[str, Any] = SENTENCES,
    uses: Mapping[str, Any] = USES,
    entities: Mapping[str, Any] = ENTITIES,
    mains: list[list[str]] = MAINS,
) -> list[str]:
    lists = {"entities": pl.List(pl.Int32)}
    frames = (pl.DataFrame(sentences, schema_overrides=lists), pl.DataFrame(uses))
    numbers = pl.DataFrame(entities, schema_overrides={"entity": pl.Int32})
    return hash_choice_inputs(mains, *frames, numbers)


def test_numbers_of_rows_do_not_matter_as_long_as_their_order_is_the_same() -> None:
    moved = {
        **{"entities": [[104, 209], [209], [1]], "source": [50, 60, 7], "document": [0, 0, 9]},
    }
    entities = {**ENTITIES, "entity": [104, 1, 209]}
    assert hashes({**SENTENCES, **moved}, entities=entities) == hashes()
    turned = {"entities": [[104, 209], [104], [1]]}
    assert hashes({**SENTENCES, **turned}, entities=entities)[0] != hashes()[0]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("text", "Crean left Scott."),
        ("score", 3.25),
        ("clarity", 1),
        ("start_char", 1),
        ("source", 7),
        ("document", 1),
        ("entities", [4]),
    ],
)
def test_a_changed_sentence_changes_the_hash_of_its_report_only(column: str, value: Any) -> None:
    changed = {**SENTENCES, column: [value, *SENTENCES[column][1:]]}
    first, second = hashes(changed)
    assert first != hashes()[0]
    assert second == hashes()[1]


def test_members_their_weights_and_words_change_the_hash() -> None:
    first, second = hashes()
    heavier = {**ENTITIES, "weight": [1.5, 2.0, 3.0]}
    assert hashes(entities=heavier)[0] != first
    assert hashes(uses={**USES, "weight": [1.75]})[0] != first
    assert hashes(mains=[["Scott", "Crean"], ["Ice"]])[0] != first
    assert hashes(entities=heavier)[1] == second


def test_a_report_without_sentences_has_a_hash() -> None:
    none = {name: values[:2] for name, values in SENTENCES.items()}
    assert len({*hashes(none), hashes()[1]}) == 3


class OtherTitles(Previous):
    """The last version with another title in each choice, and another hash for each second."""

    def scan(self, name: str) -> pl.LazyFrame | None:
        rows = super().scan(name)
        assert rows is not None
        is_other = pl.int_range(pl.len()) % 2 == 1
        own_hash = pl.when(is_other).then(pl.lit("other")).otherwise("input_hash")
        return rows.with_columns(title=pl.lit("Kept title"), input_hash=own_hash)


@pytest.mark.parametrize("is_same_step", [True, False])
def test_a_choice_is_kept_if_it_has_the_same_input_and_settings(
    sample_project: Path, is_same_step: bool
) -> None:
    store, version = open_index(sample_project / "output")
    tables = {name: store.scan(name, table) for name, table in version.tables.items()}
    written = create_community_reports_nlp.function(
        *(tables[read.table] for read in create_community_reports_nlp.reads),
        settings=CreateCommunityReportsNlp(),
        previous=OtherTitles(store, version, is_same_step),
        progress=Silent(),
        shards=SerialShards(),
    )
    parts = list(written)
    reports, choices = (
        pl.concat(part[name] for part in parts) for name in ("community_reports", "report_choices")
    )
    is_kept = pl.Series([is_same_step, False] * reports.height)[: reports.height]
    assert (reports["title"] == "Kept title").to_list() == is_kept.to_list()
    before = tables["community_reports"].collect()
    own = pl.col("summary", "findings", "statements")
    assert reports.select(own).equals(before.select(own))
    assert choices.drop("title").equals(tables["report_choices"].drop("title").collect())


def test_the_headline_of_nearly_all_sentences_is_the_subject() -> None:
    documents = pl.DataFrame({"document": [2, 3, 4], "headline": ["Leaks", "Leaks", ""]})
    reports = {0: [2, 2, 3, 4], 1: [2, 4], 2: [4, 4]}
    pairs = [(report, document) for report, some in reports.items() for document in some]
    sentences = pl.DataFrame(pairs, ["report", "document"], orient="row")
    assert find_subjects(sentences, documents) == {0: "Leaks"}


def test_a_newspaper_is_not_what_documents_share() -> None:
    assert is_media_name("The Washington Post")
    assert not is_media_name("Post Office")


def test_media_come_behind_other_names_in_titles() -> None:
    titles = ["ABC News", "Bern", "China Daily", "Newport News", "AFP", "lake"]
    types = ["organization", "geo", "organization", "city", "organization", "noun phrase"]
    entities = pl.DataFrame(
        {"title": titles, "type": types, "weight": [9.0, 2.0, 8.0, 1.0, 7.0, 6.0]}
    )
    none = find_turns(pl.Series(dtype=pl.String))
    assert rank_title_members(entities, none, "en").tolist() == [2, 0, 3, 1, 4, 5]


def test_speakers_of_a_chat_come_last_in_titles() -> None:
    entities = pl.DataFrame(
        {
            "title": ["Ann", "Bern", "lake", "Bob"],
            "type": ["person", "geo", "noun phrase", "person"],
            "weight": [9.0, 2.0, 5.0, 3.0],
        }
    )
    said = pl.Series(["Ann: I like Bern.", "Ann: It rains.", "Ann: Bob is in Bern.", "Bob: Yes."])
    assert rank_title_members(entities, find_turns(said), "en").tolist() == [3, 1, 2, 0]
    assert rank_title_members(entities, find_turns(said[1:]), "en").tolist() == [0, 2, 3, 1]
    # The turns may be found in any parts, and a turn that is repeated counts once.
    parts = [find_turns(said[:2]), find_turns(said[1:])]
    assert rank_title_members(entities, pl.concat(parts), "en").tolist() == [3, 1, 2, 0]
    repeated = find_turns(pl.concat([said[:2]] * 3))
    assert rank_title_members(entities, repeated, "en").tolist() == [0, 2, 3, 1]
    # A place is no speaker.
    places = pl.Series(["Bern: It rains.", "Bern: It snows.", "Bern: The dam is open."])
    assert rank_title_members(entities, find_turns(places), "en").tolist() == [0, 2, 3, 1]


def test_frequent_words_come_after_names_in_titles() -> None:
    entities = pl.DataFrame(
        {
            "title": ["Members", "One", "Bern", "Upper House"],
            "type": ["person", "name", "geo", "organization"],
            "weight": [9.0, 8.0, 2.0, 5.0],
        }
    )
    no_turns = find_turns(pl.Series(dtype=pl.String))
    assert rank_title_members(entities, no_turns, "en").tolist() == [2, 3, 1, 0]
    # Other languages have other frequent words: Polish has "one", but not "member".
    assert rank_title_members(entities, no_turns, "pl").tolist() == [0, 3, 2, 1]


def test_acronyms_and_known_names_are_no_frequent_words() -> None:
    entities = pl.DataFrame(
        {
            "title": ["WHO", "IT", "Google", "Windows", "Times", "Bern", "People", "Company"],
            "type": [
                *("organization", "name", "organization", "product", "organization", "geo"),
                *("name", "organization"),
            ],
            "weight": [9.0, 8.0, 7.0, 6.0, 5.5, 2.0, 5.0, 4.0],
        }
    )
    no_turns = find_turns(pl.Series(dtype=pl.String))
    assert rank_title_members(entities, no_turns, "en").tolist() == [*range(8)]


def test_a_community_without_any_sentence_to_quote_has_a_title(tmp_path: Path) -> None:
    root = copy_project(tmp_path / "project")
    shutil.rmtree(root / "input")
    (root / "input").mkdir()
    (root / "input/a.txt").write_text("Tom Crean, Kerry", encoding="utf-8")
    run_project(root)
    assert read_table(root, "community_reports")["title"].to_list() == ["Tom Crean and Kerry"]


@pytest.mark.parametrize(
    ("language", "text", "factor"),
    [
        ("en", "The dam burst in May.", 1.0),
        ("en", "I think that the dam burst.", 0.7),
        ("en", "They’ve mended your dam.", 0.7),
        ("de", "Der Damm brach uns im Mai.", 0.7),
        ("de", "Me and my dam.", 1.0),
        ("xx", "I think that the dam burst.", 1.0),
        ("en", "“The dam burst”, said Ann.", 0.5),
        ("en", "If I know, I tell.", 0.7),
        ("en", "They sent us to Bern.", 0.7),
        ("en", "I’m in Bern.", 0.7),
        ("en", "I, Ann, am in Bern.", 0.7),
        ("en", "The US invaded.", 1.0),
        ("en", "World War I ended.", 1.0),
        ("en", "John Paul I died in Rome.", 1.0),
        ("en", "The mine collapsed.", 1.0),
        ("pt", "A barragem rompeu nos Alpes.", 1.0),
        ("it", "Nel lago ci sono pesci.", 1.0),
        ("en", "GLM> The dam burst GLM> in May.", 0.3),
        ("en", "It is significant at p > 0.05.", 1.0),
        ("en", "A speed > limit is an error.", 1.0),
        ("en", "The move came after the dam burst.", 0.35),
        ("en", "The ruling on Friday surprised Bern.", 0.35),
        ("en", "The government of Bern repaired the dam.", 1.0),
        ("en", "The price of bread rose in Bern.", 1.0),
        ("en", "Earlier, a dam burst near Bern.", 0.35),
        ("en", "Without his help, Ann would have drowned.", 0.35),
        ("en", "Ann lost his boat.", 1.0),
        ("en", "Voters of Bern back this idea.", 0.35),
        ("en", "Face to face He spoke to Bern.", 0.35),
        ("en", "My hon. Friend speaks of the dam.", 0.7 * 0.35),
        ("de", "Das Wort hat die Kollegin Ann.", 0.35),
        ("de", "Drücken Sie in Bern die rote Taste.", 0.7),
        ("de", "Da können Sie lachen, Herr Wissmann.", 0.7 * 0.35),
        ("de", "Frau Hart, Sie vergessen Bern.", 0.7 * 0.35),
        ("de", "Bern baut die Brücke wieder auf.", 1.0),
        ("es", "Ayer se rompió la presa de Berna.", 0.35),
        ("en", "(A dam burst in May.)", 0.3),
    ],
)
def test_sentences_on_what_somebody_thinks_or_told_before_count_less(
    language: str, text: str, factor: float
) -> None:
    rated = rate_wording(pl.Series([text]), pl.Series([language]))
    assert rated.tolist() == pytest.approx([factor])


def test_lists_of_names_are_not_quoted_but_sentences_in_capitals_are() -> None:
    texts = [
        "Ann Bo Cy DeeEd Fay Gus Hal IdaJo Kit LeoMax Dr.",
        "THE PUMP IS CONTROLLED BY THE KESTREL 300 CONTROLLER.",
        "Bern baut die Brücke im Mai wieder auf.",
    ]
    is_list = pl.DataFrame({"text": texts}).select(is_name_list(pl.col("text"))).to_series()
    assert is_list.to_list() == [True, False, False]
