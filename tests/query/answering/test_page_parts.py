"""Parts of web pages before and behind sentences."""

import pytest

from graphrag_query.answering.extractive import Candidate
from graphrag_query.answering.page_parts import cut_page_parts


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "READ MORE: Oslo closes mill The affected airlines had until Saturday to comply.",
            "The affected airlines had until Saturday to comply.",
        ),
        ("BREAKING UPDATE: Ann Berg has won the mill race.", "Ann Berg has won the mill race."),
        (
            "Share this with Manager Ann Berg has left the mill of Altdorf.",
            "Manager Ann Berg has left the mill of Altdorf.",
        ),
        (
            "Send Facebook Twitter Google+ Permalink http://oslo.no/p/2X Her letters were found.",
            "Her letters were found.",
        ),
        (
            'Ann Berg has won the race at Altdorf. https://t.co/o8 pic.twitter.com/eu "No joke,"',
            "Ann Berg has won the race at Altdorf.",
        ),
        (
            '"To close the mill is sad," Ann Berg said. mds/rd (DPA)',
            '"To close the mill is sad," Ann Berg said.',
        ),
        ("Ann Berg saw the mill at https://oslo.no/mill.", None),
        ("She asked the men of Altdorf (and got no reply).", None),
        ("Share this with your friends in Altdorf.", None),
        ("Facebook Twitter met in Altdorf.", None),
    ],
)
def test_parts_of_pages_are_cut_off(text: str, kept: str | None) -> None:
    candidate = Candidate(text, 0, 10, 10 + len(text))
    cut = cut_page_parts(candidate)
    assert cut.text == (kept or text)
    assert (cut.start_char, cut.end_char) == (
        10 + text.index(cut.text),
        10 + text.index(cut.text) + len(cut.text),
    )


def test_what_a_speaker_says_stays_whole() -> None:
    text = "It is all on the page there. https://oslo.no/mill"
    candidate = Candidate(text, 0, 0, len(text), label="Ann Berg")
    assert cut_page_parts(candidate) is candidate
