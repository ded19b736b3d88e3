from itertools import pairwise
from typing import Any, Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.schema.settings.step_sections import CreateTextUnits
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.create_text_units import TextCutter, create_text_units
from graphrag_index.storage.memo import join_batches
from graphrag_nlp.text.sentences import find_headings, find_segment_starts
from tests.fixtures.fake_model import EarlierTables

SMALL = CreateTextUnits(max_tokens=16, overlap_tokens=6)


def documents(*texts: str) -> pl.LazyFrame:
    rows = [
        {"id": f"d{number}", "title": f"t{number}", "text": text, "creation_date": ""}
        | {"raw_data": None, "path": f"{number}.txt", "metadata": '{"place": "Hobart"}'}
        for number, text in enumerate(texts)
    ]
    return pl.DataFrame(rows, schema=TABLES["loaded_documents"].schema).lazy()


def cut(
    *texts: str,
    settings: CreateTextUnits = SMALL,
    read: pl.LazyFrame | None = None,
    previous: EarlierTables | None = None,
    pages: pl.LazyFrame | None = None,
) -> dict[str, pl.DataFrame]:
    batches = create_text_units(
        documents(*texts) if read is None else read,
        pages,
        settings=settings,
        previous=previous or EarlierTables(),
        progress=Silent(),
        shards=SerialShards(),
    )
    return join_batches(batches)


TEXTS = st.text(
    st.one_of(
        st.characters(codec="utf-8"),
        st.sampled_from("。！？ \n\t.#-|¿"),
        st.sampled_from(["é", "👩‍🚀", "ß", "中", "文", "ع"]).map(lambda s: s[0]),
    ),
    max_size=400,
) | st.lists(
    st.sampled_from(
        [
            "<|endoftext|>",
            "# Title\n",
            "One two. ",
            "三个句子。",
            "\n\n",
            "🚀🚀 ",
            "x" * 90,
            "Ünï. ",
        ]
    ),
    max_size=40,
).map("".join)


@given(TEXTS)
def test_a_text_unit_is_its_slice_of_the_document(text: str) -> None:
    tables = cut(text)
    for unit in tables["base_text_units"].iter_rows(named=True):
        assert text[unit["start_char"] : unit["end_char"]] == unit["text"]
        assert unit["text"].strip() == unit["text"] != ""


@given(TEXTS)
def test_no_character_but_space_is_lost(text: str) -> None:
    units = cut(text)["base_text_units"]
    held = set()
    for start, end in units.select("start_char", "end_char").iter_rows():
        held.update(range(start, end))
    assert {i for i, character in enumerate(text) if not character.isspace()} <= held


SENTENCES = st.lists(
    st.sampled_from(
        [
            *("One two. ", "Ünï (é)! ", '"Quoted?" ', "12 of 345. ", "It's his.\n", "End.\n\n"),
            *("a/b.\n/c. ", "句子。", "Wide.  ", "Tab.\t", "…so. ", "\n\n", "  ", "# H\n", "🚀! "),
        ]
    ),
    max_size=60,
).map("".join)


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
@given(text=TEXTS | SENTENCES, max_tokens=st.sampled_from([16, 60, 300]))
def test_tokens_are_counted_and_bounded(
    name: Literal["o200k_base", "cl100k_base"], text: str, max_tokens: int
) -> None:
    encoding = load_encoding(name)
    settings = CreateTextUnits(max_tokens=max_tokens, overlap_tokens=8, encoding=name)
    for unit in cut(text, settings=settings)["base_text_units"].iter_rows(named=True):
        assert unit["n_tokens"] == count_tokens(unit["text"], encoding)
        assert unit["n_tokens"] <= max_tokens


@given(TEXTS)
def test_sentences_lie_in_order_and_hold_all_words(text: str) -> None:
    sentences = cut(text)["sentences"]
    places = sentences.select("start_char", "end_char").rows()
    assert all(start < end for start, end in places)
    assert all(end <= start for (_, end), (start, _) in pairwise(places))
    assert find_segment_starts(text) == sorted(set(find_segment_starts(text)))


def test_text_units_end_at_sentences() -> None:
    text = "The ship left Hobart in spring. The ice was thick that year. Nobody saw land."
    units = cut(text, settings=CreateTextUnits(max_tokens=18, overlap_tokens=0))
    assert units["base_text_units"]["text"].to_list() == [
        "The ship left Hobart in spring. The ice was thick that year.",
        "Nobody saw land.",
    ]


def test_whole_sentences_are_repeated_within_the_overlap() -> None:
    text = "The ship left Hobart in spring. Ice came. The crew waited all winter for it to break."
    units = cut(text)["base_text_units"]
    assert units["text"].to_list() == [
        "The ship left Hobart in spring. Ice came.",
        "Ice came. The crew waited all winter for it to break.",
    ]


def test_headings_are_kept_as_a_breadcrumb() -> None:
    text = (
        "# Endurance\n\nThe Endurance sailed in 1914 with a crew of 28 men.\n\n"
        "## The drift\n\nThe ice held the ship for ten months and crushed it.\n\n"
        "## Rescue\n\nThe Yelcho came for the men at the end of August 1916.\n"
    )
    units = cut(text, settings=CreateTextUnits(max_tokens=24, overlap_tokens=4))["base_text_units"]
    assert units.select("headings", "text").rows() == [
        ("Endurance", "# Endurance\n\nThe Endurance sailed in 1914 with a crew of 28 men."),
        (
            "Endurance > The drift",
            "## The drift\n\nThe ice held the ship for ten months and crushed it.",
        ),
        (
            "Endurance > Rescue",
            "## Rescue\n\nThe Yelcho came for the men at the end of August 1916.",
        ),
    ]


def test_comments_in_code_are_no_headings() -> None:
    text = "# Real\n\n```\n# a comment\n```\n\n## Also real\n"
    assert [heading.words for heading in find_headings(text)] == ["Real", "Also real"]


def test_headings_are_underlined_or_indented_too() -> None:
    text = (
        "The Guide\n=========\n\nFirst words.\n\nA part\n---\n\nMore.\n\n  ## Third\n\na | b\n---\n"
    )
    assert [heading[2:] for heading in find_headings(text)] == [
        (1, "The Guide"),
        (2, "A part"),
        (2, "Third"),
    ]
    sentences = cut(text)["sentences"].filter("quotable")
    assert sentences.is_empty()
    assert cut(text)["base_text_units"]["headings"][0] == "The Guide"


@pytest.mark.parametrize(
    "words", ["\ufdf7\ufdf7\ufdf7\U0002070e\u3000👩\u200d👩\u200d👧 ", "عليكم.漢字かな。！？ "]
)
def test_no_text_unit_is_over_the_budget_whatever_the_script(words: str) -> None:
    for n_tokens in (8, 16, 40):
        settings = CreateTextUnits(max_tokens=n_tokens, overlap_tokens=3)
        assert cut(words * 40, settings=settings)["base_text_units"]["n_tokens"].max() <= n_tokens


def test_a_sentence_over_the_budget_is_cut_at_a_space() -> None:
    text = " ".join(f"word{number}" for number in range(60))
    for unit in cut(text)["base_text_units"]["text"]:
        assert all(word.startswith("word") for word in unit.split())
        assert text.split().index(unit.split()[0]) >= 0


def test_equal_documents_and_passages_get_ids_of_their_own() -> None:
    same = "Exactly the same words stand here. " * 8
    units = cut(same, same)["base_text_units"]
    assert units["id"].n_unique() == units.height
    assert units["human_readable_id"].to_list() == list(range(units.height))


def test_documents_name_their_text_units_in_order() -> None:
    tables = cut("One sentence is here. " * 9, "Another one.")
    named = tables["documents"]["text_unit_ids"].explode().to_list()
    assert named == tables["base_text_units"]["id"].to_list()


def test_pages_are_those_of_documents_whose_text_is_as_it_was_read() -> None:
    """A step of a user may have changed a text, or left out a document."""
    spans = {"d0": [(0, 10), (10, 19)], "d1": [(0, 9)], "gone": [(0, 4)]}
    rows = [
        {"document_id": id, "kind": "page", "number": n, "label": "i", "width": 612, "height": 792}
        | {"start_char": start, "end_char": end, "boxes": []}
        for id, of_document in spans.items()
        for n, (start, end) in enumerate(of_document, 1)
    ]
    pages = pl.DataFrame(rows, schema=TABLES["loaded_pages"].schema)
    found = cut("One two.\n\nAnd four.", "Shorter.", pages=pages.lazy())["pages"]
    assert_frame_equal(found, pages[:2])


def test_metadata_is_carried_to_the_text_units() -> None:
    assert cut("Some words.")["base_text_units"]["metadata"].to_list() == ['{"place": "Hobart"}']


DOCUMENTS = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(["One two. ", "Three.\n# Four\n", ""])),
    max_size=6,
    unique_by=lambda document: document[0],
)


def read(folder: list[tuple[str, str]]) -> pl.LazyFrame:
    rows = documents(*(text * 9 for _, text in folder)).collect()
    ids = [name for name, _ in folder]
    return rows.with_columns(id=pl.Series(ids, dtype=pl.String), title=pl.Series(ids)).lazy()


@given(DOCUMENTS, DOCUMENTS, st.integers(1, 3))
def test_with_the_last_run_at_hand_the_same_comes_out(
    before: list[tuple[str, str]], after: list[tuple[str, str]], at_once: int
) -> None:
    """Documents are added, edited, deleted and moved about."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphrag_index.steps.create_text_units.SHARD_DOCUMENTS", at_once)
        first = cut(read=read(before)) if before else {}
        again = cut(read=read(after), previous=EarlierTables(first)) if after else {}
        fresh = cut(read=read(after)) if after else {}
    for name, rows in fresh.items():
        assert again[name].equals(rows)


def test_what_is_as_it_was_is_not_cut_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = cut("One two.", "Three four.", "Five.")

    def cut_new(text: str, *rest: Any) -> TextCutter:
        assert text == "Three five."
        return TextCutter(text, *rest)

    monkeypatch.setattr("graphrag_index.steps.create_text_units.TextCutter", cut_new)
    again = cut("One two.", "Three five.", "Five.", previous=EarlierTables(first))
    assert again["base_text_units"]["text"].to_list() == ["One two.", "Three five.", "Five."]


def test_what_other_settings_cut_is_not_taken_over() -> None:
    text = "One two three. Four five six. " * 3
    large = CreateTextUnits(max_tokens=100)
    previous = EarlierTables(cut(text), is_same_step=False)
    found = cut(text, settings=large, previous=previous)
    assert found["base_text_units"]["text"].to_list() == [text.strip()]
