import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from graphrag_index.text.tokens import count_tokens, load_encoding
from graphrag_query.answering.context import Section, pack


def sources(*texts: str) -> pl.DataFrame:
    numbers = range(10, 10 + len(texts))
    return pl.DataFrame({"id": numbers, "text": texts}, schema={"id": pl.Int64, "text": pl.String})


def test_rows_stand_in_sections_under_their_names() -> None:
    reports = pl.DataFrame({"id": [3], "title": ["Ice, and ships"], "summary": ['They "sailed"']})
    context = pack(
        [Section("Sources", sources("One.", "Two."), 1), Section("Reports", reports, 1)], 500
    )
    assert context.text == (
        "-----Sources-----\nid,text\n10,One.\n11,Two.\n\n"
        '-----Reports-----\nid,title,summary\n3,"Ice, and ships","They ""sailed"""\n'
    )
    assert context.shown == {"Sources": {10, 11}, "Reports": {3}}
    assert context.n_left_out == {"Sources": 0, "Reports": 0}


def test_each_section_gets_its_share_the_best_rows_first() -> None:
    many = sources(*["word " * 20] * 50)
    context = pack([Section("Sources", many, 3), Section("Claims", many, 1)], 1_000)
    n_sources, n_claims = (context.tables[name].height for name in ("Sources", "Claims"))
    assert 2 <= n_sources / n_claims <= 4
    assert context.tables["Sources"].equals(many.head(n_sources))
    assert context.n_left_out == {"Sources": 50 - n_sources, "Claims": 50 - n_claims}


def test_what_one_section_leaves_goes_to_the_others() -> None:
    many = sources(*["word " * 20] * 50)
    alone = pack([Section("Sources", many, 1)], 1_000)
    beside = pack([Section("Reports", sources("Short."), 9), Section("Sources", many, 1)], 1_000)
    assert beside.tables["Sources"].height >= alone.tables["Sources"].height - 3


def test_nothing_found_is_an_empty_context() -> None:
    context = pack([Section("Sources", sources(), 1)], 1_000)
    assert context.is_empty
    assert context.text == ""
    assert context.n_tokens == 0


def test_a_text_longer_than_all_is_shortened() -> None:
    context = pack([Section("Sources", sources("word " * 10_000), 1)], 400)
    assert context.tables["Sources"].height == 1
    assert count_tokens(context.text, load_encoding("o200k_base")) <= 400


@given(
    texts=st.lists(st.lists(st.text(max_size=60), max_size=12), max_size=4),
    max_tokens=st.integers(0, 300),
)
def test_the_budget_is_never_exceeded(texts: list[list[str]], max_tokens: int) -> None:
    shares = range(1, len(texts) + 1)
    sections = [
        Section(f"Section{share}", sources(*rows), share)
        for share, rows in zip(shares, texts, strict=True)
    ]
    context = pack(sections, max_tokens)
    assert count_tokens(context.text, load_encoding("o200k_base")) <= context.n_tokens
    assert context.n_tokens <= max_tokens
    assert pack(sections, max_tokens).text == context.text
