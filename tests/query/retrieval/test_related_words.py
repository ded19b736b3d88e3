import polars as pl
import pytest

from graphrag_index.text.languages import language_of
from graphrag_query.retrieval.related_words import RelatedWords


def related(words: str, language: str = "en", others: str = "de fr es") -> RelatedWords:
    return RelatedWords.find(words.split(), language_of(language), frozenset(others.split()))


def test_a_word_counts_most_and_a_similar_word_more_than_others() -> None:
    texts = ["The physician left.", "A doctor came.", "Penguins swim.", ""]
    similar, same, other, none = related("doctor").match(texts)[:, 0].tolist()
    assert same == pytest.approx(1)
    assert 0 < similar < 1
    assert other == none == 0


@pytest.mark.parametrize(
    ("language", "word", "text"),
    [
        ("en", "strikes", "Der Warnstreik dauert bis Freitag."),
        ("en", "floods", "Las inundaciones cortaron la carretera."),
        ("en", "courts", "Le tribunal a rejeté la demande."),
        ("de", "gericht", "The court dismissed the claim."),
        ("fr", "grève", "La huelga sigue hasta el lunes."),
    ],
)
def test_words_of_a_subject_are_found_in_other_languages(
    language: str, word: str, text: str
) -> None:
    found = related(word, language, "en de fr es")
    texts = pl.Series([text, "Nothing of the kind."])
    first, second = found.match_other_languages(texts)[:, 0]
    assert first > 0
    assert second == 0


def test_words_of_the_same_origin_are_found_in_other_languages() -> None:
    found = related("archipelago")
    assert not any(found.patterns)
    assert found.match_other_languages(pl.Series(["Das Archipel", "El archipiélago"])).any()


def test_the_end_of_a_german_compound_counts_and_other_words_that_contain_it_do_not() -> None:
    matches = related("sport").match_other_languages(
        pl.Series(["Der Sportverein", "Der Transport", "Der Transporter"])
    )
    assert (matches[:, 0] > 0).tolist() == [True, False, False]


def test_languages_that_the_corpus_lacks_are_not_looked_for() -> None:
    assert related("strikes", others="de").patterns != related("strikes").patterns
    assert not any(related("strikes", others="").patterns)
