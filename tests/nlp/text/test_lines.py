"""Words that lines and spaces break are joined, and found again at their own offsets."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_nlp.text.lines import JoinedTexts, find_joins, join_words, locate, may_break_words
from tests.fixtures.cases import cases

TEXTS = st.lists(
    st.sampled_from(
        [
            "So-\nciety",
            "So\u00adciety",
            " ",
            "\n",
            "S P A C E D",
            "\n- one So- \n  ciety\n  two",
            "一九五三年，林海修建了北码\n头",
            "|",
            "é",
        ]
    )
    | st.text(alphabet="aB.>- \n\u00ad1", max_size=6),
    max_size=12,
).map("".join)


def kept(text: str) -> str:
    return "".join(c for c in text if not c.isspace() and c not in ">-\u00ad")


@cases("text, expected")
def test_words_are_joined_for_reading(text: str, expected: str) -> None:
    assert join_words(text, find_joins(text)) == expected


@given(TEXTS, st.sampled_from(["", "| A | B |\n|---|---|\n"]), st.data())
def test_a_part_of_what_is_read_has_its_place_in_the_text(
    text: str, header: str, data: st.DataObject
) -> None:
    read = join_words(text, find_joins(text))
    start = data.draw(st.integers(0, len(read)))
    end = data.draw(st.integers(start, len(read)))
    first, last = locate(header + read, text, len(header) + start, len(header) + end)
    assert 0 <= first <= last <= len(text)
    if kept(read[start:end]):
        assert kept(text[first:last]) == kept(read[start:end])


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_spans_of_joined_documents_are_those_of_the_documents(texts: list[str]) -> None:
    frame = pl.DataFrame({"number": range(len(texts)), "text": texts})
    joined = JoinedTexts(lambda: iter([frame]))
    (read,) = joined.read()
    assert read["text"].to_list() == [join_words(text, find_joins(text)) for text in texts]
    places = [(n, at) for n, text in enumerate(read["text"]) for at in range(len(text))]
    spans = pl.DataFrame(places, {"document": pl.Int32, "start": pl.Int32}, orient="row")
    found = joined.locate(spans.with_columns(end=pl.col("start") + 1))
    for (n, at), (document, start, end) in zip(places, found.iter_rows(), strict=True):
        source = texts[document]
        assert n == document
        assert source[start:end] in (read["text"][n][at], "\n", "-")
    back = joined.join_spans(found.rename({"start": "start_char", "end": "end_char"}))
    assert back["start_char"].to_list() == [at for _, at in places]


@given(TEXTS)
def test_no_text_that_breaks_words_is_overlooked(text: str) -> None:
    assert may_break_words(pl.Series([text]))[0] or not find_joins(text)
