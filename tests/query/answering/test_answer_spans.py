import pytest

from graphrag_index.text.languages import language_of
from graphrag_query.answering.answer_spans import find_answer_spans, find_new_spans
from graphrag_query.question.answer_kind import WantedAnswer

ENGLISH = language_of("en")


def spans_of(kind: str, sentence: str) -> list[str]:
    found = find_answer_spans(sentence, WantedAnswer(kind), ENGLISH, {})
    return [sentence[span.start : span.end] for span in found]


@pytest.mark.parametrize(
    ("kind", "sentence", "spans"),
    [
        ("number", "Of 6,960 people, 42 gave $1.2 million, twice.", "6,960|42|$1.2 million|twice"),
        ("duration", "It took twelve years and 3 weeks.", "twelve years|3 weeks"),
        ("date", "On Saturday at 7 PM, not on 1 August 1973.", "Saturday at 7 PM|1 August 1973"),
        ("date", "Er kam am 3. Mai 1980 oder im Jahr 1990.", "3. Mai 1980|1990"),
        ("time", "We meet at 19:30 or 8 pm.", "19:30|8 pm"),
        ("duration", "It takes 25 min, or 1.5 h.", "25 min|1.5 h"),
        ("person", "Thanks, I’ll ask Olga Nowak.", "Olga Nowak"),
        ("title", 'She sang "Blue Moon" in the film.', "Blue Moon|Blue Moon"),
    ],
)
def test_parts_of_the_wanted_kind_are_found(kind: str, sentence: str, spans: str) -> None:
    assert "|".join(spans_of(kind, sentence)) == spans


@pytest.mark.parametrize(
    ("kind", "code", "sentence", "spans"),
    [
        ("reason", "en", "It closed because of the flood.", "because of the flood."),
        ("reason", "en", "Bo drove the car.", ""),
        ("reason", "de", "Grund sei der Regen.", "Grund sei der Regen."),
        ("reason", "fr", "Il invoque le prix, car il a monté.", "invoque le prix, car il a monté."),
        ("reason", "es", "No vino, ya que llovía.", "ya que llovía."),
        ("manner", "en", "They left by breaking the ice.", "by breaking the ice."),
        ("manner", "en", "It fell through the ice.", ""),
        ("manner", "de", "Sie entkamen, indem sie Asche streuten.", "indem sie Asche streuten."),
        ("manner", "fr", "Il sortit en cassant la glace.", "en cassant la glace."),
        ("manner", "es", "Salieron gracias a un barco.", "gracias a un barco."),
    ],
)
def test_clauses_are_found_by_words_of_the_language(
    kind: str, code: str, sentence: str, spans: str
) -> None:
    found = find_answer_spans(sentence, WantedAnswer(kind), language_of(code), {})
    assert [sentence[span.start : span.end] for span in found][:1] == [spans] * bool(spans)


def test_a_name_of_another_type_fits_less() -> None:
    types = {"olga nowak": "person", "poznań": "geo"}
    found = find_answer_spans("Olga Nowak left Poznań.", WantedAnswer("place"), ENGLISH, types)
    assert [span.fit for span in found] == [0.1, 1.0]


def test_what_the_question_names_is_no_answer() -> None:
    wanted = WantedAnswer("person")
    assert not find_new_spans("Olga Nowak left.", "Who is Olga Nowak?", wanted, ENGLISH, {})
