from collections.abc import Sequence

import polars as pl
import pytest

from graphrag_index.reports.report_titles import compose_title
from graphrag_index.reports.theme_terms import (
    Term,
    count_corpus_words,
    count_words,
    find_terms,
    rank_words,
    split_headlines,
    split_words,
)

FIRES = (
    "The wildfires burned near Sydney.",
    "Smoke of the wildfires reached the coast.",
    "A mandatory evacuation was ordered.",
    "The mandatory evacuation ended.",
)
OTHERS = ("The council met.", "Members of the council voted.", "The harbour froze.") * 5


def terms_of(texts: tuple[str, ...], language: str, names: frozenset[str]) -> list[str]:
    all_texts = pl.Series([*texts, *OTHERS])
    languages = pl.Series([language] * len(all_texts))
    corpus = count_corpus_words([count_words(all_texts, languages)])
    sentences = pl.DataFrame({"row": range(len(texts)), "text": texts, "language": language})
    words = split_words(sentences).with_columns(
        report=0, source="row", document="row", is_headline=False
    )
    ranked = rank_words(words, corpus).sort("weight", "word", descending=[True, False])
    uses = ranked.join(words, on="word", maintain_order="left").join(sentences, on="row")
    uses = uses.select("text", "word", "weight", "form")
    return [term.text for term in find_terms(list(uses.iter_rows()), language, names)]


@pytest.mark.parametrize(
    ("language", "texts", "names", "expected"),
    [
        ("en", FIRES, frozenset(), ["mandatory evacuation", "wildfires"]),
        ("en", FIRES, frozenset({"wildfires", "wildfire"}), ["mandatory evacuation"]),
        (
            "de",
            ("Der Streik begann in Kiel.", "Ein Ende im Streik fehlt."),
            frozenset({"kiel"}),
            ["Streik"],
        ),
        ("zh", ("北京举行了会议。", "会议在北京结束。"), frozenset(), []),
    ],
)
def test_terms_are_nouns_that_set_sentences_apart(
    language: str, texts: tuple[str, ...], names: frozenset[str], expected: list[str]
) -> None:
    assert terms_of(texts, language, names)[: len(expected) or 1] == expected


def test_a_word_of_a_common_subject_stands_for_a_report_without_a_word_in_several_sources() -> None:
    texts = ("The earthquake was near the ceiling.", "A carpet of the cook was old.")
    assert {*terms_of(texts, "en", frozenset())[:2]} == {"earthquake", "cook"}


def test_a_word_in_several_sources_comes_before_one_of_a_subject_in_one() -> None:
    texts = ("The earthquake was near the ceiling.", "They painted the ceiling.", "It rained.")
    assert terms_of(texts, "en", frozenset())[0] == "ceiling"


def test_a_word_in_headlines_comes_before_one_in_texts_alone() -> None:
    texts = ("The ceiling fell near the carpet.", "They bought a carpet.", "It was a ceiling.")
    languages = pl.Series(["en"] * len(texts + OTHERS))
    corpus = count_corpus_words([count_words(pl.Series(texts + OTHERS), languages)])
    sentences = pl.DataFrame({"row": range(len(texts)), "text": texts, "language": "en"})
    words = split_words(sentences).with_columns(report=0, source="row", document="row")
    headlines = pl.DataFrame({"document": [0, 1], "headline": ["Ceilings for Kings", ""]})
    for own, best in ((headlines[1:], "carpet"), (headlines, "ceiling")):
        in_headlines = split_headlines(own).with_columns(is_headline=True)
        flagged = words.join(in_headlines, on=["document", "word"], how="left")
        ranked = rank_words(flagged.with_columns(pl.col("is_headline").fill_null(False)), corpus)
        assert ranked.sort("weight", "word", descending=[True, False])["word"][0] == best


def test_a_term_in_a_headline_is_better_and_a_lone_one_gives_way_to_headlines() -> None:
    said = {"The old pump broke.": "old pump", "A new pump came.": "new pump"}
    pump = Term("pump", ("pump",), 9.0, said)
    valve = Term("valves", ("valves",), 8.0, {"Shut the valves.": "valves", "Valves shut.": ""})
    assert compose_title([pump, valve], ["Ann"], "en") == "Pump and valves: Ann"
    assert compose_title([pump, valve], ["Ann"], "en", headlines=["A valve"]) == "Valves: Ann"
    first = [*said][:1]
    own = ["Water supply", "", "Water supply"]
    lone = Term("old pump", ("pump",), 9.0, {first[0]: "old pump"})
    assert compose_title([lone], ["Ann"], "en", first, "", own) == "Water supply (Ann)"
    assert compose_title([lone], ["Ann"], "en", first) == "Old pump: Ann"


def test_of_few_documents_a_headline_with_a_term_and_a_name_is_better_than_one_word() -> None:
    said = {"The attack killed two.": "attack", "An attack hit it.": "attack"}
    attack = Term("attack", ("attack",), 9.0, said)
    headlines = ["Weather today", "Two killed in attack on Sindh shrine", ""]
    names = ["Sindh", "Nangarhar"]

    def compose(main: list[str], n: int = 1, own: Sequence[str] = headlines) -> str:
        return compose_title([attack], main, "en", headlines=headlines * n, summary_headlines=own)

    title = "Two killed in attack on Sindh shrine (Nangarhar)"
    assert compose(names) == title
    assert title not in (compose(names, 3), compose(names, own=headlines[:1]))
    assert compose(["Ann"]) == "Attack: Ann"
    # The whole summary is from one document.
    assert compose(["Ann"], own=["Two killed", "Two killed"]) == "Two killed (Ann)"
    assert compose(["Ann"], own=["Two killed", ""]) == "Attack: Ann"
    phrase = Term(
        "suicide attack", ("attack",), 9.0, {"A suicide attack hit it.": "suicide attack"}
    )
    assert compose_title([phrase], ["Ann"], "en") == "Suicide attack: Ann"


def test_a_title_has_no_word_in_two_forms() -> None:
    said = {"The inquiry began.": "inquiry", "One inquiry ended.": "inquiry"}
    terms = [Term(text, (text,), 9.0, said) for text in ("inquiry", "inquirys", "floods")]
    assert compose_title(terms, ["Ann"], "en") == "Inquiry and floods: Ann"


def test_a_vague_word_gives_way_to_a_weaker_one() -> None:
    for language, vague in (("en", "decisions"), ("de", "Maßnahmen"), ("fr", "mesures")):
        texts = {f"{n} {vague}.": vague for n in range(2)}
        weak = Term("pump", ("pump",), 3.0, {"A pump.": "pump", "Two.": ""})
        terms = [Term(vague, (vague,), 9.0, texts), weak]
        assert compose_title(terms, ["Ann"], language) == "Pump: Ann"


def test_of_many_documents_the_names_beside_the_theme_come_first() -> None:
    storm = Term("ice storm", ("storm",), 9.0, {})
    names, mentions = ["Ann", "Bern", "Oslo"], [("The ice storm hit it.", ["Oslo"])]
    many = [""] * 9
    title = compose_title([storm], names, "en", headlines=many, mentions=mentions)
    assert title == "Ice storm: Oslo, Ann and Bern"
    title = compose_title([storm], names, "en", headlines=many[:3], mentions=mentions)
    assert title == "Ice storm: Ann, Bern and Oslo"


def test_a_long_theme_stands_before_one_name() -> None:
    subject = "How the waterworks of a small town were saved in one long night"
    assert compose_title([], ["Ann", "Bo"], "en", subject=subject) == f"{subject} (Ann)"
    assert compose_title([], ["Ann", "Town"], "en", subject="Towns") == "Towns (Ann)"


def test_in_a_report_of_one_source_all_nouns_count() -> None:
    sentences = pl.DataFrame({"row": [0], "text": "She bought a carpet.", "language": "en"})
    words = split_words(sentences).with_columns(report=0, source=0, document=0, is_headline=False)
    corpus = count_corpus_words([count_words(pl.Series(OTHERS), pl.Series(["en"] * len(OTHERS)))])
    assert "carpet" in rank_words(words, corpus)["word"].to_list()


def test_the_first_word_of_a_german_sentence_is_no_noun() -> None:
    sentences = pl.DataFrame({"row": [0], "text": "Fragen wir den Arzt.", "language": "de"})
    assert split_words(sentences)["word"].to_list() == ["arzt"]


def test_verbs_numbers_and_directions_are_no_modifiers() -> None:
    texts = ("They laid depots there.", "Who laid depots?", "Ten miles on, he laid depots.")
    found = terms_of(texts, "en", frozenset())
    assert not any("laid" in term or "miles" in term for term in found)


def test_a_name_before_a_verb_is_no_phrase() -> None:
    texts = (
        "The island of Madeira lies there.",
        "The chapel of Madeira lies there.",
        "They told of Madeira treatises include chapels.",
    )
    assert not any(
        "lies" in term or "include" in term for term in terms_of(texts, "en", frozenset())
    )


def test_a_corpus_without_sentences_has_no_words() -> None:
    n_sentences, counts = count_corpus_words([])
    assert (n_sentences, counts.height) == (0, 0)


def test_a_title_has_at_most_two_strong_terms_before_the_names() -> None:
    terms = [Term("fires", ("fires",), 9.0), Term("smoke", ("smoke",), 8.0)]
    names = ["Sydney", "Hill Top"]
    assert compose_title(terms, names, "en") == "Fires and smoke: Sydney and Hill Top"
    assert compose_title(terms, names, "fr") == "Fires et smoke: Sydney et Hill Top"
    weak = [terms[0], Term("smoke", ("smoke",), 1.0)]
    assert compose_title(weak, names, "en") == "Fires: Sydney and Hill Top"
    assert compose_title([], names, "en") == "Sydney and Hill Top"


@pytest.mark.parametrize(
    ("terms", "names", "title"),
    [
        (["race"], ["Ann", "Oslo"], "Winter Games (Ann and Oslo)"),
        ([], ["Ann"], "Winter Games (Ann)"),
        # The headline is one of the names, so that the term says more.
        (["race"], ["Winter Games", "Ann"], "Race: Winter Games and Ann"),
        ([], ["Winter Games", "Ann"], "Winter Games (Ann)"),
    ],
)
def test_the_title_of_the_only_document_says_the_theme(
    terms: list[str], names: list[str], title: str
) -> None:
    own = [Term(text, (text,), 9.0) for text in terms]
    assert compose_title(own, names, "xx", subject="Winter Games") == title


@pytest.mark.parametrize(
    ("language", "term", "title"),
    [
        ("en", "base", "Scott"),
        ("en", "source", "Scott"),
        ("en", "Antarctic base", "Antarctic base: Scott"),
        # A frequent word of a common subject, and a rare one.
        ("en", "hospital", "Hospital: Scott"),
        ("en", "glacier", "Glacier: Scott"),
        ("de", "Punkt", "Scott"),
        ("de", "base", "Base: Scott"),
        ("xx", "base", "Base: Scott"),
    ],
)
def test_a_frequent_word_alone_is_no_theme(language: str, term: str, title: str) -> None:
    assert compose_title([Term(term, (term,), 9.0)], ["Scott"], language) == title


def test_a_common_word_of_one_sentence_is_no_title() -> None:
    lone = Term("voices", ("voices",), 9.0, {"The voices are good.": "voices"})
    assert compose_title([lone], ["Scott"], "en") == "Scott"
    twice = lone._replace(phrases={**lone.phrases, "They like the voices.": "voices"})
    assert compose_title([twice], ["Scott"], "en") == "Voices: Scott"


def test_counts_of_the_corpus_are_rounded_up_to_three_bits() -> None:
    numbers = {7: 7, 8: 8, 9: 10, 16: 16, 17: 20, 99: 112, 112: 112, 113: 128}
    words = pl.DataFrame({"word": [f"w{n:03}" for n in numbers], "n": [*numbers]})
    words = words.with_columns(pl.col("n").cast(pl.UInt32))
    n_sentences, counts = count_corpus_words([(60, words), (61, words.clear())])
    assert n_sentences == 128
    assert dict(counts.sort("word").iter_rows()) == {f"w{n:03}": numbers[n] for n in numbers}
