import polars as pl
import pytest

from graphrag_query.searches.subject_sentences import are_poor


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("For more information, see Section 4.", True),
        ("Weitere Informationen finden Sie in Kapitel 13.", True),
        ("Consulte la sección 2 para más detalles.", True),
        ("Cette section décrit les réseaux.", True),
        ("Thank you so much for the talk!", True),
        ("Vielen Dank für alles.", True),
        ("Hello, my sofa was due on Monday and nobody came.", False),
        ("The password protects the boot loader (see Chapter 4).", False),
        ("We had a good time at the lake and saw two bears.", False),
    ],
)
def test_references_and_thanks_say_nothing_on_a_subject(text: str, expected: bool) -> None:
    assert are_poor(pl.Series([text])).to_list() == [expected]
