import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.dom import minidom

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphrag_query
from graphrag_query.answer import Answer, Citation, Outcome, Suggestion, as_html, as_markdown
from graphrag_query.subgraph import MAX_ENTITIES_DRAWN, Subgraph, draw_svg
from graphrag_query.terminal import split_paragraphs, summarize_answer
from tests.fixtures.examples import examples
from tests.fixtures.fake_links import subgraph

EVIL = "<script>alert(1)</script>|](javascript:x) ![i](http://x/y.png) $a$ \"'&\n# h \x01"
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


def answer(text: str = "Ada feeds **Bo** [1]. Not [7].", evil: str = "A. b") -> Answer:
    citation = Citation(1, evil, "d1", evil, 1000, 1010, evil, 4)
    return Answer(
        evil,
        text,
        Outcome.ANSWERED,
        "local",
        citations=(citation,),
        looked_at={"text_units": 1200, "sub_queries": 1},
        notes=(evil,),
        follow_ups=("And Bo?",),
        graph=subgraph(),
    )


def test_a_suggestion_is_shown() -> None:
    shown = replace(answer(), suggestion=Suggestion("global", ("<b>",), "Why."))
    line = "Why. Try: graphrag-query global &#x27;&lt;b&gt;&#x27;"
    assert f"Another search:<ul><li>{line}</li></ul>" in as_html(shown)
    assert "Another search:\n\n- Why. Try: graphrag-query global '&lt;b&gt;'" in as_markdown(shown)


class Tags(HTMLParser):
    """The tags of a page, their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_has_the_answer_its_citations_notes_and_the_graph() -> None:
    page = as_html(answer())
    assert re.search(r'Ada feeds <b>Bo</b> <a href="#(gq-\w+-1)">\[1\]</a>\. Not \[7\]\.', page)
    [target] = set(re.findall(r'href="#(gq-\w+-1)"', page))
    assert f'<tr id="{target}">' in page
    assert "characters 1,000 to 1,010" in page
    alone = "answered from one document alone by local search"
    assert f"{alone}; looked at 1,200 text units, 1 sub query; 0.0 s" in page
    assert "And Bo?" in page
    assert page.count("<svg") == 1


def test_markdown_has_the_answer_its_citations_and_notes() -> None:
    text = as_markdown(answer())
    assert text.startswith("Ada feeds **Bo** \\[1\\]. Not \\[7\\].\n")
    assert "| 1 | A. b | A. b, characters 1,000 to 1,010 | A. b |" in text
    assert "- And Bo?" in text


@pytest.mark.parametrize(
    ("note", "shown"),
    [("- a", "- \\- a"), ("12. a_b", "- 12\\. a\\_b"), ("a - b", "- a - b"), ("1|2", "- 1\\|2")],
)
def test_a_note_shows_as_it_is(note: str, shown: str) -> None:
    assert shown in as_markdown(replace(answer(), notes=(note,))).splitlines()


def test_nothing_of_a_document_becomes_markup_in_html() -> None:
    page = Tags(as_html(answer(EVIL, EVIL)))
    assert {"script", "img", "h1"}.isdisjoint(page.tags)
    links = [value for name, value in page.attributes if name in ("href", "src")]
    assert all(str(link).startswith("#gq-") for link in links)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert any("<script>alert(1)</script>" in text for text in page.texts)


def test_nothing_of_a_document_becomes_markup_in_markdown() -> None:
    text = as_markdown(answer(EVIL, EVIL))
    assert "<" not in text
    assert not re.search(r"(?<!\\)\]\(|(?<!\\)\$|(?<!\\)!\[[^\\]", text)
    [row] = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 5


def test_an_answer_without_evidence_says_so() -> None:
    nothing = Answer("Who?", "Nothing.", Outcome.NO_EVIDENCE, "local")
    page = as_html(nothing)
    assert "gq-small gq-not" in page
    assert "no evidence by local search" in page
    assert "<table" not in page


@pytest.mark.parametrize("question", ["How are Crean and Nansen connected?", "Who was Tom Crean?"])
def test_answers_of_an_index_are_shown(sample_project: Path, question: str) -> None:
    found = graphrag_query.open(sample_project / "output").ask(question)
    page = found._repr_html_()
    assert page.count("<tr id=") == len(found.citations)
    assert (found.graph is not None) == ("<svg" in page)
    assert found.citations[0].path in page
    assert found._repr_markdown_()
    assert "graph" not in found.to_dict()
    assert ("graph" in found.to_dict(with_context=True)) == (found.graph is not None)


TITLES = st.lists(st.text(max_size=40), min_size=1, max_size=12)


@examples(40)
@given(TITLES, st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20))
def test_the_picture_of_any_graph_is_svg_that_names_all(
    titles: list[str], pairs: list[tuple[int, int]]
) -> None:
    n = len(titles)
    pairs = [(a, b) for a, b in pairs if a < n and b < n]
    part = Subgraph(
        pl.DataFrame(
            {
                "human_readable_id": range(n),
                "title": titles,
                "type": [""] * n,
                "description": titles,
                "ring": [0, *[1] * (n - 1)],
            }
        ),
        pl.DataFrame(
            [(k, titles[a], titles[b], a, b, "", "", 1.0) for k, (a, b) in enumerate(pairs)],
            dict(
                zip(subgraph().relationships.columns, subgraph().relationships.dtypes, strict=True)
            ),
            orient="row",
        ),
    )
    picture = minidom.parseString(draw_svg(part).encode())
    assert len(picture.getElementsByTagName("circle")) == n
    assert len(picture.getElementsByTagName("line")) == len(pairs)


def test_a_large_graph_is_drawn_in_part_and_says_so() -> None:
    n = MAX_ENTITIES_DRAWN + 5
    one = subgraph()
    part = replace(
        one,
        entities=pl.concat([one.entities[:1]] * n).with_columns(
            human_readable_id=pl.int_range(n), ring=pl.lit(1)
        ),
        relationships=one.relationships[:0],
    )
    picture = draw_svg(part)
    assert picture.count("<circle") == MAX_ENTITIES_DRAWN
    assert "and 5 more entities" in picture


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
