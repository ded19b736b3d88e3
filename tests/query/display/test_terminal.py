"""What a stream of Markdown becomes in a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from graphrag_query.display.terminal import split_paragraphs

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
