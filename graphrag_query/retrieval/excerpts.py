"""Shorten passages to their statements on the subject of a question."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from graphrag_index.text.sentences import split_sentences
from graphrag_index.text.standalone import stand_alone
from graphrag_query.retrieval.stem_matching import match_stems

# Text between two parts of an excerpt, for the sentences that are left out.
GAP = " … "


def shorten_to_subject(
    text_units: Mapping[int, Mapping[str, Any]], stems: Sequence[str]
) -> dict[int, Mapping[str, Any]]:
    """Shorten texts to their statements with a word of the subject, given as stems.

    A statement is a sentence that can be understood alone, and the sentences after it that
    cannot. A text without such a statement is kept whole, behind the others.
    """
    rows = [
        (number, sentence.start, sentence.end, unit["text"][sentence.start : sentence.end])
        for number, unit in text_units.items()
        for sentence in split_sentences(unit["text"])
    ]
    if not rows or not stems:
        return dict(text_units)
    schema = {"number": pl.Int64, "start": pl.Int64, "end": pl.Int64, "text": pl.String}
    sentences = pl.DataFrame(rows, schema, orient="row")
    languages = sentences["number"].replace_strict(
        {number: unit["language"] for number, unit in text_units.items()}, return_dtype=pl.String
    )
    is_first = pl.col("number") != pl.col("number").shift(fill_value=-1)
    statements = (
        sentences.with_columns(
            has_word=pl.Series(match_stems(sentences["text"], stems).any(axis=1)),
            statement=(is_first | stand_alone(sentences["text"], languages)).cum_sum(),
        )
        .group_by("number", "statement", maintain_order=True)
        .agg(pl.col("start").first(), pl.col("end").last(), pl.col("has_word").any())
        .with_columns(place=pl.int_range(pl.len()))
        .filter("has_word")
        # Statements that follow each other are one part of the excerpt.
        .with_columns(part=pl.col("place") - pl.int_range(pl.len()))
        .group_by("number", "part", maintain_order=True)
        .agg(pl.col("start").first(), pl.col("end").last())
    )
    parts: dict[int, list[str]] = {}
    for number, _, start, end in statements.iter_rows():
        parts.setdefault(number, []).append(text_units[number]["text"][start:end])
    short = {number: {**text_units[number], "text": GAP.join(parts[number])} for number in parts}
    return {**short, **{n: unit for n, unit in text_units.items() if n not in short}}
