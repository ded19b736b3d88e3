import math
import random

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from graphrag_index.schema.settings.step_sections import ExtractGraphNlp
from graphrag_index.storage.memo import DOCUMENTS_PER_READ
from graphrag_nlp.names.mention_links import pair_mentions
from graphrag_nlp.text.sentences import join_lines
from tests.fixtures.examples import n_examples
from tests.fixtures.extraction import Extraction, extract

STORY = (
    "Anna Weber met Boris Lang in Vienna. Anna Weber trusted Boris Lang. Nobody in Vienna knew. "
    "Years later Carla Moretti wrote about Anna Weber. Carla Moretti never saw Boris Lang."
)


def fold_space(text: str) -> str:
    return " ".join(text.split())


def quotations(found: Extraction, evidence: list[dict[str, object]]) -> list[str]:
    texts = dict(found.documents.select("id", "text").iter_rows())
    return [
        join_lines(texts[place["document_id"]][place["start_char"] : place["end_char"]])
        for place in evidence
    ]


def test_names_in_one_sentence_are_related_and_described_by_it() -> None:
    found = extract(STORY)
    weber, lang = found.titles.index("Anna Weber"), found.titles.index("Boris Lang")
    row = found.relationships.filter(source=min(weber, lang), target=max(weber, lang)).row(
        0, named=True
    )
    assert row["description"] == "Anna Weber met Boris Lang in Vienna."
    assert quotations(found, row["evidence"]) == [row["description"]]


def test_names_in_neighbouring_sentences_count_a_part() -> None:
    text = "Anna Weber came home late. Then Boris Lang left the house."
    alone = ExtractGraphNlp(min_evidence=0.0, neighbour_weight=0.0)
    near = ExtractGraphNlp(min_evidence=0.0, neighbour_weight=0.2)
    assert extract(text, settings=alone).links() == set()
    assert extract(text, settings=near).links() == {frozenset(("Anna Weber", "Boris Lang"))}


def description(found: Extraction, one: str, other: str) -> str:
    source, target = sorted((found.titles.index(one), found.titles.index(other)))
    row = found.relationships.filter(source=source, target=target).row(0, named=True)
    assert " ".join(quotations(found, row["evidence"])) == row["description"]
    return str(row["description"])


def test_a_whole_sentence_is_better_evidence_than_a_heading_or_a_list() -> None:
    found = extract(
        "# Anna Weber and Boris Lang\n\n- Anna Weber, Boris Lang\n\nIn the year of the great flood "
        "Anna Weber, who had lived in the north for a long time and hardly ever left the house, "
        "moved to the town by the sea where, as everybody knew, the family of Boris Lang had "
        "owned the mill for some hundred years.\n\n- Boris Lang, Anna Weber"
    )
    assert description(found, "Anna Weber", "Boris Lang").startswith("In the year of the great")


def test_what_meets_in_headings_and_lists_only_is_related_without_a_description() -> None:
    found = extract(
        "# Anna Weber and Boris Lang\n\nIt was the house of Anna Weber that burned.\n\n"
        "They never found the dog of Boris Lang.\n\n- Anna Weber, Boris Lang"
    )
    assert description(found, "Anna Weber", "Boris Lang") == ""


def test_what_meets_in_neighbouring_sentences_only_is_related_without_a_description() -> None:
    text = "Anna Weber came home late. Then Boris Lang left the house."
    found = extract(text, settings=ExtractGraphNlp(min_evidence=0.0))
    assert description(found, "Anna Weber", "Boris Lang") == ""


def test_names_of_different_documents_are_not_related() -> None:
    found = extract(
        "It was the house of Anna Weber.",
        "It was the dog of Boris Lang.",
        settings=ExtractGraphNlp(min_evidence=0.0),
    )
    assert found.titles == ["Anna Weber", "Boris Lang"]
    assert found.links() == set()


def test_an_entity_is_described_by_what_defines_it() -> None:
    found = extract(
        "They asked Anna Weber to come. Anna Weber was a painter who lived near the old harbour of "
        "the town. Nobody had seen Anna Weber for weeks."
    )
    row = found.entities.filter(title="Anna Weber").row(0, named=True)
    assert (
        "Anna Weber was a painter who lived near the old harbour of the town."
        in (row["description"])
    )
    assert " ".join(quotations(found, row["evidence"])) == row["description"]


def test_a_mention_in_the_overlap_belongs_to_both_text_units() -> None:
    sentences = [f"Sentence {n} says nothing at all about anybody here." for n in range(8)]
    sentences[3] = "On that day Anna Weber came home again."
    found = extract(" ".join(sentences), max_tokens=50, overlap_tokens=25)
    number = found.titles.index("Anna Weber")
    places = found.mentions.filter(entity=number)
    holding = found.text_units.filter(pl.col("text").str.contains("Anna Weber"))
    assert places["text_unit"].to_list() == holding["human_readable_id"].to_list()
    assert len(places) > 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("12345", "12345"),
        ("ok", "ok"),
        ("a", "a"),
        ("😀😀", "😀😀"),
        ("to be or not to be", "to"),
        ("rain, snow and more rain fell", "rain"),
        ("下雨", "下雨"),
        ("!", "!"),
        ("Daran wird aus tierschutzrechtlichen Gründen nichts entschieden.", "Gründen"),
        ("Muchas gracias, señora presidenta. Señoría, ustedes oyen la alarma.", "alarma"),
    ],
)
def test_a_document_without_names_gets_an_entity_of_its_own_words(text: str, title: str) -> None:
    found = extract(text)
    assert found.titles == [title]
    assert found.types == {title: "noun phrase"}
    start, end = found.mentions.select("start_char", "end_char").row(0)
    assert text[start:end] == title


def test_stand_ins_are_shared_by_documents_of_equal_words_only() -> None:
    found = extract(STORY, "ok", "12345", "ok", "   ")
    assert found.mentioned["ok"] == 2
    assert found.mentioned["12345"] == 1


def test_only_documents_without_names_get_a_stand_in() -> None:
    assert "noun phrase" not in extract(STORY).types.values()


def test_a_document_whose_names_are_pruned_gets_a_stand_in() -> None:
    found = extract(STORY, "It was Doris Day.", settings=ExtractGraphNlp(min_frequency=3))
    assert "Doris Day" not in found.titles
    assert set(found.text_units["human_readable_id"]) == set(found.mentions["text_unit"])


def test_names_below_the_minimal_frequency_are_left_out() -> None:
    found = extract(STORY, settings=ExtractGraphNlp(min_frequency=3))
    assert {*found.titles} == {"Anna Weber", "Boris Lang"}


def test_relationships_of_little_evidence_are_left_out() -> None:
    found = extract(STORY, settings=ExtractGraphNlp(min_evidence=2.0))
    assert found.links() == {frozenset(("Anna Weber", "Boris Lang"))}
    assert {*found.titles} >= {"Vienna", "Carla Moretti"}


def test_relationships_of_little_weight_are_left_out() -> None:
    everything = extract(STORY, settings=ExtractGraphNlp(min_evidence=0.0)).relationships
    bound = sorted(everything["weight"])[1]
    kept = extract(STORY, settings=ExtractGraphNlp(min_evidence=0.0, min_weight=bound))
    assert_frame_equal(kept.relationships, everything.filter(pl.col("weight") >= bound))


def test_terms_can_be_switched_off() -> None:
    text = "The ship lay in the pack ice. It drifted with the pack ice. They feared the pack ice."
    assert extract(text).types["pack ice"] == "noun phrase"
    assert "pack ice" not in extract(text, settings=ExtractGraphNlp(noun_phrases=False)).titles


def test_names_met_together_more_often_than_by_chance_weigh_more() -> None:
    apart = "Anna Weber met Clara Voss. Anna Weber met Doris Kern. Anna Weber met Emil Graf. "
    found = extract(apart + "Boris Lang met Fritz Amsel. " + "Anna Weber met Hugo Binz. ")
    weights = {
        frozenset((found.titles[a], found.titles[b])): weight
        for a, b, weight in found.relationships.select("source", "target", "weight").iter_rows()
    }
    exclusive = weights[frozenset(("Boris Lang", "Fritz Amsel"))]
    assert exclusive > weights[frozenset(("Anna Weber", "Clara Voss"))]


def crowd(n_names: int) -> pl.DataFrame:
    """One sentence with many names, as a table of mentions."""
    return pl.DataFrame(
        {
            "document": np.zeros(n_names, np.int32),
            "sentence": np.zeros(n_names, np.int64),
            "start": np.arange(n_names, dtype=np.int32) * 20,
            "entity": np.arange(n_names, dtype=np.int32),
            "text_unit": np.zeros(n_names, np.int32),
            "quotable": np.ones(n_names, bool),
            "sentence_length": np.full(n_names, 20 * n_names, np.int32),
        }
    )


def test_pairs_grow_with_the_number_of_names_not_with_its_square() -> None:
    counts = [len(pair_mentions(crowd(n), n, 8, 0.2)) for n in (200, 400, 800)]
    assert counts == [8 * n - 36 for n in (200, 400, 800)]


def test_two_hundred_names_in_one_sentence_are_all_found() -> None:
    letters = "abcdefghijklmnopqrst"
    names = [f"Q{a}{b} Z{b}{a}x" for a in letters[:14] for b in letters if a != b][:200]
    found = extract("We met " + ", ".join(names) + ".", max_tokens=4000)
    assert {*names} <= {*found.titles}
    assert len(found.relationships) <= 8 * len(found.titles)


NAMES = [
    "Anna Weber",
    "Boris Lang",
    "Vienna",
    "López",
    "Łódź",
    "Ö. Ekelöf",
    "鲁迅",
    "北京",
    "محفوظ",
]
FILLERS = [
    *(
        "met",
        "the",
        "of",
        "in",
        "and",
        ",",
        ".",
        ".\n\n",
        "\n",
        "- ",
        "# ",
        "| a | b |\n",
        " ",
        "\t",
    ),
    *(
        "<|endoftext|>",
        "😀",
        "👩‍👩‍👧",
        "é",
        "א",
        "\u202e",
        "\u200f",
        "在",
        "，",
        "。",
        "قال",
        "و",
        "’s ",
    ),
    *("snow", "123", "x" * 90, "\x00", "\ufeff"),
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(NAMES + FILLERS), max_size=60).map(" ".join),
    st.lists(st.sampled_from(NAMES + FILLERS), max_size=60).map("".join),
    st.text(max_size=120),
)


@settings(max_examples=n_examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXTS, min_size=1, max_size=4), st.integers(8, 60))
@example(["Qa " * 400 + "."], 8)
@example(["中" * 500, "https://example.org/" + "x" * 500], 8)
@example(["000A-   \nA000000000."], 8)
def test_whatever_the_text_the_tables_fit_it(texts: list[str], max_tokens: int) -> None:
    found = extract(*texts, max_tokens=max_tokens, overlap_tokens=max_tokens // 4)
    check_mentions(found)
    check_relationships(found)
    named = set(found.mentions["text_unit"])
    units = dict(found.text_units.select("human_readable_id", "document_id").iter_rows())
    assert {units[unit] for unit in named} == set(units.values())


def check_mentions(found: Extraction) -> None:
    texts = dict(found.documents.select("id", "text").iter_rows())
    units = {row["human_readable_id"]: row for row in found.text_units.iter_rows(named=True)}
    seen = set()
    for entity, number, start, end in found.mentions.iter_rows():
        unit = units[number]
        assert unit["start_char"] <= start < end <= unit["end_char"]
        words = fold_space(texts[unit["document_id"]][start:end])
        title = found.titles[entity]
        # A preposition may be written together with an Arabic name and its article.
        prefixed = title.startswith("ال") and words.endswith(title[2:])
        assert words in {title, *found.aliases[title]} or prefixed
        assert (number, start) not in seen
        seen.add((number, start))
    assert set(found.mentions["entity"]) == set(range(len(found.titles)))
    for row in found.entities.iter_rows(named=True):
        assert row["title"]
        assert " ".join(quotations(found, row["evidence"])) == row["description"]


def check_relationships(found: Extraction) -> None:
    pairs = found.relationships.select("source", "target").rows()
    assert len(set(pairs)) == len(pairs)
    assert all(0 <= source < target < len(found.titles) for source, target in pairs)
    for row in found.relationships.iter_rows(named=True):
        assert math.isfinite(row["weight"])
        assert row["weight"] > 0
        assert " ".join(quotations(found, row["evidence"])) == row["description"]
        assert row["text_units"] == sorted(set(row["text_units"]))


def planted(n_documents: int) -> list[str]:
    chance = random.Random(7)
    people = [f"{a}{b} {b}{a}son" for a in ("Karl", "Anna", "Hugo") for b in ("Bro", "Lin", "Tor")]
    verbs = ("met", "wrote to", "thanked", "followed")
    return [
        " ".join(
            f"Then {chance.choice(people)} {chance.choice(verbs)} {chance.choice(people)} again."
            for _ in range(12)
        )
        for _ in range(n_documents)
    ]


def test_documents_are_all_read_though_not_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_index.steps.extract_graph_nlp.MEAN_SHARD_BYTES", 100)
    n = DOCUMENTS_PER_READ + 3
    found = extract(*["Anna Weber met Boris Lang."] * n)
    assert found.mentioned == {"Anna Weber": n, "Boris Lang": n}
    assert found.relationships["text_units"].list.len().to_list() == [n]


def test_blocks_and_partitions_that_bound_memory_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts = [*planted(9), "nothing here", "It was Anna Bro who met Karl Lin, a painter of Oslo."]
    cut = ExtractGraphNlp(neighbour_weight=0.25)  # a sum of quarters is exact in any order
    expected = extract(*texts, settings=cut)
    step = "graphrag_index.steps.extract_graph_nlp"
    for name, size in (
        ("BLOCK_MENTIONS", 7),
        ("RANGE_TEXT_UNITS", 1),
        ("LINKED_TEXT_UNITS", 1),
        ("RANGE_SENTENCES", 5),
        ("RANGE_ENTITIES", 2),
    ):
        monkeypatch.setattr(f"{step}.{name}", size)
    found = extract(*texts, settings=cut)
    for table in ("entities", "relationships", "mentions"):
        assert_frame_equal(getattr(found, table), getattr(expected, table))


def test_the_order_of_documents_does_not_change_what_is_found() -> None:
    texts = [*planted(7), "鲁迅在北京。" * 3, "ok"]
    forward, backward = extract(*texts), extract(*reversed(texts))
    assert forward.mentioned == backward.mentioned
    assert forward.types == backward.types
    assert forward.links() == backward.links()


def test_entities_are_numbered_in_order_of_first_mention() -> None:
    found = extract(*planted(5))
    first = found.mentions["entity"].unique(maintain_order=True).to_list()
    assert first == found.entities["human_readable_id"].to_list()
