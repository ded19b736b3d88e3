"""What a stream of Markdown becomes in a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_query.answer import Answer, Citation, Outcome
from graphrag_query.terminal import split_paragraphs, summarize_answer

TEXT = """# Ice

The ship **held**.
It did.

- one

- two

  of two

1. first

2. second

```
a

b
```

The end"""
WHOLE = [
    "# Ice",
    "The ship **held**.\nIt did.\n\n- one\n\n- two\n\n  of two\n\n1. first\n\n2. second",
    "```\na\n\nb\n```",
    "The end",
]


@given(st.lists(st.integers(1, 9), max_size=60))
def test_a_stream_is_shown_by_paragraphs_in_whatever_pieces_it_comes(cuts: list[int]) -> None:
    pieces, rest = [], TEXT
    for cut in cuts:
        pieces.append(rest[:cut])
        rest = rest[cut:]
    assert list(split_paragraphs([*pieces, rest])) == WHOLE


def test_a_paragraph_is_shown_before_the_next_has_ended() -> None:
    stream = split_paragraphs(iter(["One", " is.\n\n", "Two", " is", " not", " yet"]))
    assert next(stream) == "One is."


@pytest.mark.parametrize(
    ("documents", "begin"),
    [
        ("", "answered, in"),
        ("aa", "answered from one document alone, in"),
        ("aba", "answered from 2 documents, in"),
    ],
)
def test_an_answer_from_one_document_is_marked(documents: str, begin: str) -> None:
    citations = tuple(
        Citation(number, "Ice", document, "ice.txt", 0, 9, "It is ice", 0)
        for number, document in enumerate(documents, 1)
    )
    answer = Answer("What?", "Ice.", Outcome.ANSWERED, citations=citations)
    assert summarize_answer(answer).startswith(begin)


def test_a_count_is_answered_from_all_documents_that_were_counted() -> None:
    example = Citation(1, "Ice", "a", "ice.txt", 0, 9, "It is ice", 0)
    counted = {"documents": 309, "documents_counted": 309, "claims": 0}
    answer = Answer("How many?", "309.", Outcome.ANSWERED, citations=(example,), looked_at=counted)
    said = "answered from 309 documents: looked at 309 documents, 309 documents counted, in"
    assert summarize_answer(answer).startswith(said)
