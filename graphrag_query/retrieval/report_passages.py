"""Put the best passages on a question beside the reports in the contexts of global search."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from graphrag_index.schema.settings.searches import GlobalSearch
from graphrag_nlp.text.sentences import split_sentences
from graphrag_nlp.text.standalone import stand_alone
from graphrag_query.answer import Context
from graphrag_query.answering.written_answer import source_context
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import content_words
from graphrag_query.question.stem_matching import match_stems
from graphrag_query.retrieval.community_paths import community_paths
from graphrag_query.retrieval.report_selection import subject_text
from graphrag_query.retrieval.text_unit_ranking import start_search

# Text between two parts of an excerpt, for the sentences that are left out.
GAP = " … "


def add_passages(
    question: Question, batches: Sequence[Context], settings: GlobalSearch
) -> list[Context]:
    """Fill each context of reports with the best passages of their communities.

    The passages are those of local search. One of no community with a report goes to the first
    context. If the subject of the question is one name or word, the passages are shortened to what
    they say of it, so that more of them fit.
    """
    max_tokens = question.max_context_tokens(settings.max_context_tokens)
    if not settings.passage_share:
        return list(batches)
    index = question.index
    searched, cells = start_search(question)(), question.cell_coverage
    first = cells.rank_first(searched, len(searched) + len(cells.order))
    ranked = [unit.number for unit in first]
    found_units = index.text_units(ranked)
    left = {number: found_units[number] for number in ranked}
    words = content_words(subject_text(question), question.language)
    names = {word for span in question.mentions.spans for word in content_words(span.text)}
    if len(set(words) - names) <= (0 if names else 1):
        left = shorten_to_subject(left, words)
    paths = community_paths(index, left)
    # All calls together show at most these tokens, unless they show all reports of a level.
    total = settings.n_map_tokens if settings.selection == "similar" else 1 << 40
    total -= sum(batch.n_tokens for batch in batches)
    found: list[Context] = []
    for batch in batches:
        reports = batch.shown["Reports"]
        own = [n for n in left if reports & set(paths[n])]
        if not found:
            known = set().union(*(other.shown["Reports"] for other in batches))
            own = [n for n in left if reports & set(paths[n]) or not known & set(paths[n])]
        room = min(max_tokens - batch.n_tokens, total)
        packed = source_context(question, {n: left[n] for n in own}, max(room, 0))
        total -= packed.n_tokens
        for number in packed.shown.get("Sources", ()):
            del left[number]
        found.append(_join_contexts(batch, packed))
    return found


def _join_contexts(reports: Context, passages: Context) -> Context:
    if passages.is_empty:
        return reports
    return Context(
        {**reports.tables, **passages.tables},
        f"{reports.text}\n{passages.text}",
        reports.n_tokens + passages.n_tokens,
        {**reports.n_left_out, **passages.n_left_out},
    )


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
