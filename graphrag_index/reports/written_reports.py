"""Reports of a shard of communities, written from their candidate sentences."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.reports.extent import describe_extent
from graphrag_index.reports.extractive import Evidence, Names, compose_title, write_findings
from graphrag_index.reports.report import Report, join_titles, make_report_rows
from graphrag_index.reports.statements import make_statement_column
from graphrag_index.reports.theme_terms import CorpusWords, find_terms, rank_words, split_words
from graphrag_index.step import ShardFrames


def write_reports(
    shard: ShardFrames,
    corpus: CorpusWords,
    max_findings: int,
    max_sentences: int,
    max_document_share: float,
) -> ShardFrames:
    """Write the reports of a shard of communities."""
    entities, communities = shard["entities"], shard["communities"]
    titles, weight = (
        dict(entities.select("entity", name).iter_rows()) for name in ("title", "weight")
    )
    sentences, uses = _rank_sentences(shard["sentences"], corpus)
    columns = ("entities", "relationships", "source", "document", "score")
    places = ("first_day", "last_day", "start_char", "end_char")
    rows = list(sentences.select("language", "clarity", "text", *columns, *places).iter_rows())
    found = list(uses.select("text", "word", "weight", "form").iter_rows())
    spans, use_spans = (
        pairwise(np.searchsorted(frame["report"], np.arange(communities.height + 1)).tolist())
        for frame in (sentences, uses)
    )
    reports, stated = [], []
    for row, span, use_span in zip(
        communities.iter_rows(named=True), spans, use_spans, strict=True
    ):
        names = Names(weight, titles, row["main"])
        named = [titles[entity] for entity in row["main"]]
        language, evidence = _read_evidence(rows[slice(*span)])
        terms = find_terms(found[slice(*use_span)], language, _words_of(named))
        summary, findings, statements = write_findings(
            evidence, names, terms, max_findings, max_sentences, max_document_share, language
        )
        if not summary:
            # Cite the entities, since no text mentions the members but repeated lines.
            cited = ", ".join(map(str, row["main"]))
            title = join_titles(named)
            summary = f"No whole sentence speaks of {title}. [Data: Entities ({cited})]"
        title = compose_title(terms, named, language)
        summary = f"{summary} {describe_extent(row)}"
        reports.append(Report(title, summary, findings, row["rank"], _explain_rank(row)))
        stated.append(statements)
    added = ["main", "n_documents", "first_date", "last_date", "kinds"]
    ids = [dict(shard[name].iter_rows()) for name in ("text_units", "documents")]
    column = make_statement_column(stated, *ids)
    return {"community_reports": make_report_rows(communities.drop(added), reports, column)}


def _rank_sentences(
    sentences: pl.DataFrame, corpus: CorpusWords
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return sentences by report, best first, and the uses of words that set reports apart.

    The score of a sentence grows with these words. A use has the columns `report`, `text`, `word`,
    `weight` and `form`; the best word of a report comes first.
    """
    sentences = sentences.with_row_index("row")
    words = split_words(sentences).join(sentences.select("row", "report", "source"), on="row")
    uses = (
        words.join(rank_words(words, corpus), on=["report", "word"])
        .unique(["row", "word"], keep="first")
        .sort("report", "weight", "word", "row", descending=[False, True, False, False])
    )
    theme = np.bincount(
        uses["row"].to_numpy(), np.log1p(uses["weight"].to_numpy()), sentences.height
    )
    report = sentences["report"].to_numpy()
    best = np.zeros(report.max(initial=0) + 1)
    np.maximum.at(best, report, theme)
    factor = 0.3 + theme / np.maximum(best[report], 1e-9)
    scored = sentences.with_columns(score=sentences["score"].to_numpy() * factor)
    order = ["report", "score", "sentence"]
    uses = uses.join(sentences.select("row", "text"), on="row", maintain_order="left")
    return scored.sort(order, descending=[False, True, False]), uses


def _read_evidence(rows: Sequence[tuple[Any, ...]]) -> tuple[str, list[Evidence]]:
    """Return the language of most sentences, and the sentences with the highest clarity."""
    languages = Counter(row[0] for row in rows)
    rows = [row for row in rows if row[2]]
    clarity = max((row[1] for row in rows), default=0)
    # The first and last day of a date, and the position of the sentence, are at the end of a row.
    evidence = [
        Evidence(text, entities, links, source, document, score, (a, b) if a else None, (c, d))
        for _, own, text, entities, links, source, document, score, a, b, c, d in rows
        if own == clarity
    ]
    return max(languages, key=lambda code: languages[code], default=""), evidence


def _words_of(names: Sequence[str]) -> frozenset[str]:
    return frozenset(" ".join(names).lower().replace("-", " ").split())


def _explain_rank(row: Mapping[str, object]) -> str:
    nouns = {
        "size": ("entity", "entities"),
        "n_relationships": ("relationship", "relationships"),
        "n_text_units": ("text unit", "text units"),
    }
    entities, *others = (f"{row[name]} {noun[row[name] != 1]}" for name, noun in nouns.items())
    counts = f"{entities}, {' and '.join(others)}"
    return f"{row['rank']} of 10 among the communities of its level, for {counts}."
