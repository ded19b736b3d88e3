import pytest

from graphrag_nlp.text.languages import language_of
from graphrag_query.answering.extractive import split_into_candidates
from graphrag_query.answering.subjects import find_subjects, refers_back


def subjects_of(text: str, title: str = "", language: str = "en") -> list[str]:
    unit = {"human_readable_id": 0, "start_char": 0, "text": text, "title": title}
    found = find_subjects(split_into_candidates([unit], {0: 1.0}), language_of(language))
    return [" ".join(sorted(words)) for words in found]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Jan Blum was a painter. He died in 1910."),
        ("de", "Jan Blum war Maler. Er starb 1910 in der Stadt."),
        ("fr", "Jan Blum était peintre. Il est mort en 1910."),
        ("es", "Jan Blum fue pintor. Murió en la ciudad en 1910."),
    ],
)
def test_a_sentence_without_a_name_is_about_the_name_before(language: str, text: str) -> None:
    assert subjects_of(text, language=language) == ["blum jan", "blum jan"]


def test_a_pronoun_keeps_to_the_person_that_it_stood_for() -> None:
    text = "Olga Nowak sang. She was loud. Jan Blum came. He left. She stayed."
    expected = ["nowak olga", "nowak olga", "blum jan", "blum jan", "nowak olga"]
    assert subjects_of(text) == expected


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Jan Blum fell ill. However, he left for Altdorf."),
        ("de", "Jan Blum wurde krank. Dann verließ er Altdorf."),
        ("es", "Jan Blum enfermó. Después él dejó Altdorf."),
    ],
)
def test_a_pronoun_before_a_name_is_the_subject(language: str, text: str) -> None:
    assert subjects_of(text, language=language) == ["blum jan", "blum jan"]


def test_part_of_a_name_stands_for_the_whole_name() -> None:
    text = "Olga Nowak sang. Jan Blum came. Nowak's voice was loud. All heard Nowak."
    assert subjects_of(text) == ["nowak olga", "blum jan", "nowak olga", "nowak olga"]


def test_the_title_is_the_subject_of_a_text_without_a_name() -> None:
    assert subjects_of("It burned down in 1910.", title="The Red Mill") == ["mill red the"]


def test_what_a_speaker_says_has_no_subject() -> None:
    assert subjects_of("OlgaNowak: Jan Blum came.\nJanBlum: Yes, I came home.") == ["", ""]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "He therefore left the town.", True),
        ("en", "The dark line melted.", True),
        ("en", "The men of Elephant Island were landed at a port.", False),
        ("en", "Frank Hurley joined the ship.", False),
        ("en", "As ice closed the port, nobody came.", False),
        ("de", "Deshalb ging das Schiff unter.", True),
        ("de", "Die Männer verließen das Schiff.", False),
        ("fr", "Ainsi le navire fut libre.", True),
        ("es", "Olga salió de allí.", True),
        ("es", "Olga Nowak compró el molino.", False),
    ],
)
def test_a_sentence_refers_to_the_one_before(language: str, text: str, expected: bool) -> None:
    assert refers_back(text, language_of(language)) == expected
