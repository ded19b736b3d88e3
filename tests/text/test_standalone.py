import polars as pl
import pytest

from graphrag_index.text.standalone import stand_alone, trim_sentences


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("LONDON (AP) — The fire spread.", "The fire spread."),
        ("WASHINGTON, March 3 — The Senate voted.", "The Senate voted."),
        ("NEW YORK, Jan. 5 (Reuters) - Stocks fell.", "Stocks fell."),
        ("Berlin (dpa) - Die Regierung trat zurück.", "Die Regierung trat zurück."),
        ("Des Moines, Iowa - The council met.", "The council met."),
        ("Anna Berg, Bob Vale - they met.", "Anna Berg, Bob Vale - they met."),
        ("| Ada | 1815 |", "Ada | 1815"),
        ("NASA — the space agency — sent a probe.", "NASA — the space agency — sent a probe."),
        ("The firm IBM (IBM) - a large one - grew.", "The firm IBM (IBM) - a large one - grew."),
    ],
)
def test_datelines_and_marks_of_tables_are_removed(sentence: str, expected: str) -> None:
    assert trim_sentences(pl.Series([sentence])).to_list() == [expected]


@pytest.mark.parametrize(
    ("language", "sentence", "expected"),
    [
        ("en", "The fire spread to the town of Hill Top.", True),
        ("en", '"I am glad," Mr Powell said.', True),
        ("en", '"I am glad," he said.', False),
        ("en", 'The minister said "I am glad.', False),
        ("en", "But the fire spread.", False),
        ("en", "What did the fire do?", False),
        ("en", "Smoke over Sydney. Photo: Ada Smith", False),
        ("en", "The other film won.", False),
        ("de", "Die beiden Männer gingen.", False),
        ("fr", "L'autre film a gagné.", False),
        ("de", "Er verließ die Stadt.", False),
        ("de", "Die Stadt wuchs weiter.", True),
        ("fr", "Cette ville a grandi.", False),
        ("ru", "Он уехал в Москву.", False),
        ("zh", "他去了北京。", False),
    ],
)
def test_sentences_that_need_the_text_around_them_do_not_stand_alone(
    language: str, sentence: str, expected: bool
) -> None:
    assert stand_alone(pl.Series([sentence]), pl.Series([language])).to_list() == [expected]
