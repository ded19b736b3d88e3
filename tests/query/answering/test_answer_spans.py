import pytest

from graphrag_nlp.text.languages import language_of
from graphrag_query.answering.answer_spans import (
    FIT_OF_CLASS,
    find_answer_spans,
    find_counted_noun,
    find_enumerations,
    find_new_spans,
)
from graphrag_query.question.answer_kind import WantedAnswer

ENGLISH = language_of("en")


def spans_of(kind: str, sentence: str) -> list[str]:
    found = find_answer_spans(sentence, WantedAnswer(kind), ENGLISH, {})
    return [sentence[span.start : span.end] for span in found]


@pytest.mark.parametrize(
    ("kind", "sentence", "spans"),
    [
        ("number", "Of 6,960 people, 42 gave $1.2 million, twice.", "6,960|42|$1.2 million|twice"),
        (
            "number",
            "Two hundred and thirty came, two and three.",
            "Two hundred and thirty|two|three",
        ),
        ("duration", "It took twelve years and 3 weeks.", "twelve years|3 weeks"),
        ("date", "On Saturday at 7 PM, not on 1 August 1973.", "Saturday at 7 PM|1 August 1973"),
        ("date", "Er kam am 3. Mai 1980 oder im Jahr 1990.", "3. Mai 1980|1990"),
        ("date", "Er kam am 3.Mai 1980.", "3.Mai 1980"),
        ("time", "We meet at 19:30 or 8 pm.", "19:30|8 pm"),
        ("duration", "It takes 25 min, or 1.5 h.", "25 min|1.5 h"),
        ("person", "Thanks, I’ll ask Olga Nowak.", "Olga Nowak"),
        ("place", "See /etc/hosts, and/or (~/bin/).", "/etc/hosts|~/bin/"),
        ("place", "It lies on https://example.org/a.", "https://example.org/a"),
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


def test_a_name_that_a_line_break_splits_has_its_type() -> None:
    types = {"olga nowak": "person"}
    for sentence in ("Later came Olga\nNowak.", "Later came the\nOlga Nowak."):
        [found] = find_answer_spans(sentence, WantedAnswer("person"), ENGLISH, types)
        assert sentence[found.start : found.end].split() == ["Olga", "Nowak"]
        assert found.fit == 1


def test_what_the_question_names_is_no_answer() -> None:
    wanted = WantedAnswer("person")
    assert not find_new_spans("Olga Nowak left.", "Who is Olga Nowak?", wanted, ENGLISH, {})


@pytest.mark.parametrize(
    ("code", "sentence", "clause", "fit"),
    [
        ("en", "He walked to the hut to bring help.", "to bring help.", 0.6),
        ("en", "The ice led to the loss of a ship.", "led to the loss of a ship.", 0.6),
        ("en", "They left after the storm.", "after the storm.", 0.3),
        ("en", "They left owing to the storm.", "owing to the storm.", 1.0),
        ("en", "The snow began to melt.", "", 0),
        ("de", "Sie ging, um dort Brot zu kaufen.", "um dort Brot zu kaufen.", 0.6),
        ("de", "Infolge des Regens kam er nicht.", "Infolge des Regens kam er nicht.", 0.6),
        ("de", "Nachdem es brannte, ging sie.", "Nachdem es brannte, ging sie.", 0.3),
        ("fr", "Il vint pour acheter du pain.", "pour acheter du pain.", 0.6),
        ("fr", "Il partit suite à la crue.", "suite à la crue.", 0.6),
        ("fr", "Il travaille pour Olga.", "", 0),
        ("es", "Vino para comprar pan.", "para comprar pan.", 0.6),
        ("es", "Se fue tras la tormenta.", "tras la tormenta.", 0.3),
        ("es", "Trabaja para Olga.", "", 0),
    ],
)
def test_a_purpose_or_an_occasion_fits_a_question_for_a_reason_less(
    code: str, sentence: str, clause: str, fit: float
) -> None:
    found = find_answer_spans(sentence, WantedAnswer("reason"), language_of(code), {})
    expected = [(clause, fit)] if clause else []
    assert [(sentence[span.start : span.end], span.fit) for span in found] == expected


def test_a_year_before_a_number_is_another_number() -> None:
    assert spans_of("number", "In 1971 seis, and 3 hundred, two hundred thousand.") == [
        "1971",
        "seis",
        "3 hundred",
        "two hundred thousand",
    ]


def test_a_number_counts_all_nouns_that_are_asked_for() -> None:
    wanted = WantedAnswer("number", ("oak", "tree"))
    sentence = "He felled 23 old oak trees there, 4 mills, oak."
    assert sentence[: find_counted_noun(sentence, 12, wanted, ENGLISH)].endswith("23 old oak trees")
    assert find_counted_noun(sentence, 35, wanted, ENGLISH) == 0


@pytest.mark.parametrize(
    ("code", "sentence", "found"),
    [
        ("en", "The mill sells bread, honey and cheese.", True),
        ("en", "It has types: records, sets, lists.", True),
        ("en", "The mill sells bread and cheese.", False),
        ("fr", "Il vend deux choses : du pain et du fromage.", True),
        ("en", "In 1801, Olga came. Jan and Ann left.", False),
        ("de", "Es gibt Brot, Honig und Käse.", True),
        ("fr", "Il vend du pain, du miel et du fromage.", True),
    ],
)
def test_three_things_or_two_behind_a_colon_are_an_enumeration(
    code: str, sentence: str, *, found: bool
) -> None:
    assert bool(find_enumerations(sentence, language_of(code))) is found


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("en", "Altdorf was founded in 1801 to mine salt."),
        ("en", "They hold the port, as it is the only one."),
        ("de", "Sie prüfen alles, um die Qualität sicherzustellen."),
        ("de", "Aus wirtschaftlichen Gründen zog sie um."),
    ],
)
def test_a_clause_that_gives_a_reason_is_found(code: str, sentence: str) -> None:
    assert find_answer_spans(sentence, WantedAnswer("reason"), language_of(code), {})


@pytest.mark.parametrize(
    ("noun", "kind", "sentence", "best"),
    [
        ("judg", "person", "Bo Lund met District Judge Ann Bell.", "District Judge Ann Bell"),
        ("judg", "person", "Bo Lund met the judge Ann Bell.", "Ann Bell"),
        ("town", "place", "In Uri the town of Altdorf refused.", "Altdorf"),
        ("town", "place", "In Uri nobody refused, and no town.", ""),
        ("vill", "place", "Dans Uri, la ville d’eau de Bern refusa.", ""),
    ],
)
def test_a_name_beside_the_noun_that_is_asked_for_fits_best(
    noun: str, kind: str, sentence: str, best: str
) -> None:
    found = find_answer_spans(sentence, WantedAnswer(kind, (noun,), head=noun), ENGLISH, {})
    fitting = [sentence[span.start : span.end] for span in found if span.fit >= FIT_OF_CLASS]
    assert fitting == ([best] if best else [])


def test_an_ordinal_counts_nothing() -> None:
    wanted = WantedAnswer("number", ("award",), is_counted=True)
    ends = {"the 59th awards": 6, "the 59 awards": 6}
    nouns = [find_counted_noun(text, end, wanted, ENGLISH) for text, end in ends.items()]
    assert nouns == [0, len("the 59 awards")]
