"""Reports of a shard of communities, written from their candidate sentences."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from graphrag_index.reports.chosen_statements import SUMMARY, Evidence, PlacedStatements
from graphrag_index.reports.document_groups import (
    are_mixed,
    find_shared_name,
    group_documents,
)
from graphrag_index.reports.extent import describe_extent
from graphrag_index.reports.extractive import choose_statements
from graphrag_index.reports.report import Finding, Report, join_titles, make_report_rows
from graphrag_index.reports.report_choices import (
    ReportChoice,
    hash_choice_inputs,
    make_choice_columns,
)
from graphrag_index.reports.report_titles import Names, compose_mixed_title, compose_title
from graphrag_index.reports.theme_terms import CorpusWords, find_terms, rank_words, split_words
from graphrag_index.step import ShardFrames
from graphrag_index.text.languages import language_of

# A sentence that begins with a quotation says what somebody thinks, rather than what happened.
QUOTATION_START, QUOTATION_FACTOR = r"""^["'“„«‘「『]""", 0.5

# Minimum number of findings of a report on different subjects.
MIN_SUBJECTS = 2
# Columns of candidate sentences that make an `Evidence`.
_EVIDENCE = (
    *("text", "entities", "source", "document", "score"),
    *("first_day", "last_day", "start_char", "end_char", "words"),
)


def write_reports(
    shard: ShardFrames,
    corpus: CorpusWords,
    max_findings: int,
    max_sentences: int,
    max_document_share: float,
) -> ShardFrames:
    """Write the reports of a shard of communities, and return their choices too.

    The frame `known` has choices of the last version. A choice with the same input is kept.
    """
    entities, communities = shard["entities"], shard["communities"]
    sentences, uses = _rank_sentences(shard["sentences"], corpus)
    titles, weight = (
        dict(entities.select("entity", name).iter_rows()) for name in ("title", "weight")
    )
    # A community of one document has one subject, also if other documents mention its members.
    has_several = (communities["n_documents"] > 1).to_list()
    mains = [
        [str(several), *(titles[entity] for entity in main)]
        for several, main in zip(has_several, communities["main"], strict=True)
    ]
    hashes = pl.Series("input_hash", hash_choice_inputs(mains, sentences, uses, entities))
    wanted = communities.select("community", hashes).with_row_index("report")
    kept = wanted.join(shard["known"], on=["community", "input_hash"])
    new = wanted.filter(~pl.col("report").is_in(kept["report"].implode()))
    limits = (max_findings, max_sentences, max_document_share)
    texts = _read_rows(sentences.select("report", "language", "clarity", *_EVIDENCE), new)
    words = _read_rows(uses.select("report", "text", "word", "weight", "form"), new)
    choices = [
        _choose(
            texts.get(at, ()),
            words.get(at, ()),
            Names(weight, titles, communities["main"][at].to_list()),
            limits,
            has_several[at],
        )
        for at in new["report"]
    ]
    chosen = pl.concat([new, make_choice_columns(choices)], how="horizontal")
    chosen = pl.concat([chosen, kept]).sort("report")
    placed = PlacedStatements(chosen, sentences)
    texts_of_reports = zip(
        communities.iter_rows(named=True),
        chosen["title"],
        chosen["headings"].to_list(),
        *placed.write_texts(),
        strict=True,
    )
    reports = [_write_report(titles, *texts) for texts in texts_of_reports]
    added = ["main", "n_documents", "first_date", "last_date", "kinds"]
    column = placed.make_column(shard["text_units"], shard["documents"])
    return {
        "community_reports": make_report_rows(communities.drop(added), reports, column),
        "report_choices": chosen.drop("report"),
    }


def _read_rows(rows: pl.DataFrame, reports: pl.DataFrame) -> dict[int, list[tuple[Any, ...]]]:
    """Return the rows of some reports, by report and without the column `report`."""
    own = rows.filter(pl.col("report").is_in(reports["report"].implode()))
    groups = groupby(own.iter_rows(), lambda row: row[0])
    return {report: [row[1:] for row in group] for report, group in groups}


def _choose(
    rows: Sequence[tuple[Any, ...]],
    uses: Sequence[tuple[str, str, float, str]],
    names: Names,
    limits: tuple[int, int, float],
    has_several_documents: bool,
) -> ReportChoice:
    """Choose the title, the headings and the sentences of a report."""
    languages = Counter(row[0] for row in rows)
    language = max(languages, key=lambda code: languages[code], default="")
    # Of sentences with a text, use those with the highest clarity.
    clarity = max((row[1] for row in rows if row[2]), default=0)
    positions = [at for at, row in enumerate(rows) if row[2] and row[1] == clarity]
    evidence = _make_evidence(rows[at][2:] for at in positions)
    groups = group_documents(evidence) if has_several_documents else []

    def choose(named: Names, groups: Sequence[frozenset[int]]) -> ReportChoice:
        main = [named.titles[entity] for entity in named.main]
        in_titles = _words_of(main)
        if language_of(language).capitalizes_nouns:
            # Names have capital letters as nouns have them.
            in_titles |= {named.titles[at].lower() for one in evidence for at in one.entities}
        terms = find_terms(uses, language, in_titles)
        headings, chosen = choose_statements(evidence, named, terms, *limits, language, groups)
        texts: dict[int, list[str]] = {}
        for one in chosen:
            texts.setdefault(one.finding, []).append(evidence[one.sentences[0]].text)
        if are_mixed(groups):
            title = compose_mixed_title(main, headings, [*texts.values()])
        else:
            title = compose_title(terms, main, language, texts.get(SUMMARY, ()))
        return ReportChoice(title, headings, chosen)

    choice = None
    if are_mixed(groups):
        choice = choose(replace(names, main=find_shared_name(evidence, names.weight)), groups)
    if choice is None or len(choice.headings) < MIN_SUBJECTS:
        choice = choose(names, () if choice else groups)
    title, headings, chosen = choice
    statements = [one._replace(sentences=[positions[at] for at in one.sentences]) for one in chosen]
    return ReportChoice(title, headings, statements)


def _make_evidence(rows: Iterable[Any]) -> list[Evidence]:
    """Make evidence of rows with the columns `_EVIDENCE`."""
    # The first and last day of a date, and the position of the sentence, come before its words.
    return [
        Evidence(
            text, entities, source, document, score, (a, b) if a else None, (c, d), words or ()
        )
        for text, entities, source, document, score, a, b, c, d, words in rows
    ]


def _write_report(
    titles: Mapping[int, str],
    row: Mapping[str, Any],
    title: str,
    headings: Sequence[str],
    summary: str,
    explanations: Sequence[str],
) -> Report:
    """Write the report of a community; `titles` has the titles of its entities."""
    # Only a report on different subjects has findings, but no summary.
    is_mixed = not summary and bool(explanations)
    if not summary and not is_mixed:
        # Cite the entities, since no text mentions the members but repeated lines.
        cited = ", ".join(map(str, row["main"]))
        named = join_titles([titles[entity] for entity in row["main"]])
        summary = f"No whole sentence speaks of {named}. [Data: Entities ({cited})]"
    findings = tuple(map(Finding, headings, explanations))
    summary = f"{summary} {describe_extent(row, is_mixed)}".strip()
    return Report(title, summary, findings, row["rank"], _explain_rank(row))


def _rank_sentences(
    sentences: pl.DataFrame, corpus: CorpusWords
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return sentences by report, best first, and the uses of words that set reports apart.

    The score of a sentence grows with these words; the column `words` has all its words that may
    name a theme. A use has the columns `report`, `text`, `word`,
    `weight` and `form`; the best word of a report comes first.
    """
    sentences = sentences.with_row_index("row")
    words = split_words(sentences).join(sentences.select("row", "report", "source"), on="row")
    by_row = words.group_by("row").agg(words="word")
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
    is_quotation = sentences["text"].str.contains(QUOTATION_START).to_numpy()
    factor *= np.where(is_quotation, QUOTATION_FACTOR, 1.0)
    scored = sentences.with_columns(score=sentences["score"].to_numpy() * factor)
    order = ["report", "score", "sentence"]
    uses = uses.join(sentences.select("row", "text"), on="row", maintain_order="left")
    scored = scored.join(by_row, on="row", how="left")
    return scored.sort(order, descending=[False, True, False]), uses


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
