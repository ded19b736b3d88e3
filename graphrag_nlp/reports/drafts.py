"""Drafts of the reports of a shard of communities: what they say, before titles are chosen."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from graphrag_nlp.corpus import ShardFrames
from graphrag_nlp.list_columns import pack_lists
from graphrag_nlp.reports.findings import (
    Chosen,
    Limits,
    Sentence,
    StatementSources,
    choose_sentences,
    group_by_member,
)
from graphrag_nlp.reports.ranking import rank_report_sentences
from graphrag_nlp.reports.titles import WEAK_FACTOR, Namer, TitleParts
from graphrag_nlp.reports.words import CorpusWords

# Value of `finding` for a sentence of the summary.
SUMMARY = -1
# One row is a report, in the order of the shard.
_DRAFTS = (*TitleParts._fields, "headings")
# One row is a sentence that states a statement of a report; the first of a statement is quoted.
STATEMENTS: dict[str, Any] = {
    "report": pl.Int32,
    "statement": pl.Int32,
    "finding": pl.Int32,
    "n_documents": pl.Int32,
    "row": pl.UInt32,
}
# Columns of sentences that become attributes of `Sentence`, and those that statements keep.
_READ = (
    *("row", "text", "entities", "terms", "source", "document", "start_char", "end_char", "score"),
)
_KEPT = ("text", "entities", "source", "document", "start_char", "end_char")


def draft_reports(shard: ShardFrames, corpus: CorpusWords, limits: Limits) -> ShardFrames:
    """Choose the sentences, the headings and the parts of the title of each report of a shard.

    `communities` has the `main` members, and whether the community is a `theme`. `sentences` are
    the candidates, by report, with their texts. `entities` has the `title` and `weight` of the
    members, and whether their names are `weak`. `documents` has their headlines.
    """
    ranked, words = rank_report_sentences(shard["sentences"], shard["documents"], corpus)
    ranked = ranked.drop("row").with_row_index("row")
    numbers, titles, weights, weak = shard["entities"].select("entity", "title", "weight", "weak")
    title_of = dict(zip(numbers, titles, strict=True))
    weight = {
        entity: own * (WEAK_FACTOR if is_weak else 1.0)
        for entity, own, is_weak in zip(numbers, weights, weak, strict=True)
    }
    headlines = dict(shard["documents"].select("document", "headline").iter_rows())
    language = pl.col("language").mode().sort().first()
    languages = dict(ranked.group_by("report").agg(language).iter_rows())
    sentences = _read_sentences(ranked, shard["communities"].height)
    word_weights: dict[int, dict[str, float]] = defaultdict(dict)
    for report, word, own_weight in words.iter_rows():
        word_weights[report][word] = own_weight
    drafts: list[tuple[Sequence[str], ...]] = []
    statements: list[tuple[int, ...]] = []
    communities = shard["communities"].select("theme", "main").iter_rows()
    for report, ((is_theme, main), own) in enumerate(zip(communities, sentences, strict=True)):
        mentioned = group_by_member(own)
        chosen = choose_sentences(own, mentioned, weight, limits, is_theme=is_theme)
        namer = Namer(
            own, title_of, weight, word_weights[report], headlines, languages.get(report, "")
        )
        headings = [namer.compose_heading(one, is_theme=is_theme) for one in chosen.findings]
        # Drop a finding without a heading: another finding has used all headings that fit it.
        findings = [one for one, heading in zip(chosen.findings, headings, strict=True) if heading]
        headings = [heading for heading in headings if heading]
        parts = namer.find_parts(main, headings)
        drafts.append((*parts, headings))
        sources = StatementSources(mentioned, title_of)
        statements += _list_statements(report, Chosen(chosen.summary, findings), sources)
    lists = zip(*drafts, strict=True) if drafts else [()] * len(_DRAFTS)
    columns = np.array(statements, np.int64).reshape(-1, len(STATEMENTS)).T
    rows = pl.DataFrame(dict(zip(STATEMENTS, columns, strict=True)), STATEMENTS)
    kept = ranked[rows["row"]].select(_KEPT)
    return {
        "drafts": pl.DataFrame(
            {name: pack_lists(some, pl.String) for name, some in zip(_DRAFTS, lists, strict=True)}
        ),
        "statements": pl.concat([rows.drop("row"), kept], how="horizontal"),
    }


def _read_sentences(ranked: pl.DataFrame, n_reports: int) -> Iterator[list[Sentence]]:
    """Yield the sentences of each report, best first."""
    # Columns become lists faster than rows become tuples.
    columns = (ranked[name].to_list() for name in _READ)
    made = (Sentence(*row) for row in zip(*columns, strict=True))
    for n in np.bincount(ranked["report"].to_numpy(), minlength=n_reports).tolist():
        yield [*islice(made, n)]


def _list_statements(
    report: int, chosen: Chosen, sources: StatementSources
) -> list[tuple[int, ...]]:
    """Return the rows of `STATEMENTS` of a report."""
    parts = [(SUMMARY, chosen.summary)]
    parts += [(at, finding.sentences) for at, finding in enumerate(chosen.findings)]
    rows: list[tuple[int, ...]] = []
    quoted = ((finding, one) for finding, some in parts for one in some)
    for number, (finding, sentence) in enumerate(quoted):
        n, found = sources.find(sentence)
        rows += [(report, number, finding, n, row) for row in found]
    return rows
