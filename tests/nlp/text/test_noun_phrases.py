import pytest

from graphrag_nlp.text.noun_phrases import find_noun_phrase, phrase_grammar


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("They crossed the unmapped mountains on foot.", "mountains", "unmapped mountains"),
        ("He denied the claims of child abuse.", "claims", "claims of child abuse"),
        ("Guards of the Lucas Heights nuclear reactor slept.", "reactor",
         "Lucas Heights nuclear reactor"),
        ("It is the mission of Osama bin Laden's network.", "network", "Osama bin Laden's network"),
        ("The collapse of insurance giant HIH cost jobs.", "giant", "insurance giant"),
        # A weak adjective or a number begins no phrase, but shows that one follows.
        ("They fled from a huge bushfire today.", "bushfire", "bushfire"),
        ("He lost 12 sledges.", "sledges", "sledges"),
        # Verbs, adjectives, lists and first words of sentences.
        ("The army captured villages there.", "villages", ""),
        ("The institute trains pilots there.", "pilots", ""),
        ("The blazes burn in the north.", "blazes", ""),
        ("They had male and female names.", "male", ""),
        ("It was a formal signing.", "formal", ""),
        ("In holding talks they met.", "talks", ""),
        ("It told of the deaths of Scott, Wilson and Bowers.", "deaths", "deaths"),
        ("They like the cities of St. Petersburg and Bern.", "cities", "cities"),
        ("Storms hit the coast.", "Storms", ""),
        ("He drew a closely related plant.", "closely", ""),
        ("They heard of a suicide bomber blew up.", "bomber", "suicide bomber"),
        ("They filled the space station aboard a shuttle.", "station", "space station"),
        ("It changed the theory of logic completely.", "theory", "theory of logic"),
        ("The well-known half-brother came.", "brother", ""),
        ("They sat in the hotel du Palais.", "hotel", ""),
    ],
)  # fmt: skip
def test_an_english_phrase_is_complete_or_not_found(text: str, word: str, expected: str) -> None:
    assert find_noun_phrase(text, word, phrase_grammar("en")) == expected


@pytest.mark.parametrize(
    ("language", "text", "word", "expected"),
    [
        ("de", "Die Sanierung der Brücke beginnt.", "Sanierung", "Sanierung der Brücke"),
        ("de", "Das Konto ist für die Beerdigung bestimmt.", "Beerdigung", "Beerdigung"),
        ("fr", "Il demande le retrait du texte.", "retrait", "retrait du texte"),
        ("es", "Los conductores mantuvieron el paro.", "paro", "paro"),
        ("zh", "北京举行了会议。", "会议", ""),
    ],
)
def test_phrases_of_other_languages_have_their_complement(
    language: str, text: str, word: str, expected: str
) -> None:
    assert find_noun_phrase(text, word, phrase_grammar(language)) == expected
