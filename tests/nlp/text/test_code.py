"""Code in a text is found, and blanked without moving the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.text.code import blank_code, find_code

POEM = "Tell me, Muse, of the man\nof many ways, who wandered far"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Before\n```js\nconst a = 1;\n```\nafter", ["```js\nconst a = 1;\n```"]),
        ("~~~\nx = f(y);\n~~~~", ["~~~\nx = f(y);\n~~~~"]),
        ("* item:\n\n  ```\n  f(x);\n  ```\n\nafter", ["  ```\n  f(x);\n  ```"]),
        ("````\n```\nf(x);\n```\n````", ["````\n```\nf(x);\n```\n````"]),
        (f"```\n{POEM}\n```", []),
        (f"```text\n{POEM}\n```", []),
        (f"```lisp\n{POEM}\n```", [f"```lisp\n{POEM}\n```"]),
        ("```js\nan open block is none = 1;", []),
        ("words with ``` inside a line = 1;\n```", []),
        ("a <!-- by\nAnn Lee --> b <!-- open", ["<!-- by\nAnn Lee -->"]),
        ("```html\n<!-- a -->\n```", ["```html\n<!-- a -->\n```"]),
        ("First\n~~~~~\nf(x); by Ann (see y)\n\nSecond\n~~~~~~\ntext", []),
        ("* item\n\n  ~~~\n  f(x);\n  ~~~", ["  ~~~\n  f(x);\n  ~~~"]),
        ("```a`b`c\nf(x);\n```", []),
        ("", []),
    ],
)
def test_code_is_found(text: str, code: list[str]) -> None:
    assert [text[start:end] for start, end in find_code(text)] == code


@given(st.text("ab`~\n <!->{};"))
def test_blanking_moves_and_adds_nothing(text: str) -> None:
    blanked = blank_code(text)
    assert len(blanked) == len(text)
    inside = {at for start, end in find_code(text) for at in range(start, end)}
    for at, (before, after) in enumerate(zip(text, blanked, strict=True)):
        assert after == (" " if at in inside and before != "\n" else before)


def test_prose_before_a_block_of_another_fence_is_kept() -> None:
    text = "Anna wrote the guide in Oslo.\n\n````\n```js\nf(a);\n```\n````\n\nBob lives in Kiel."
    assert blank_code(text, is_part=True).startswith("Anna wrote the guide in Oslo.")
