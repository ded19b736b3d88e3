"""Reports of a shard of communities, written from their candidate sentences."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.chosen_statements import PlacedStatements
from graphrag_index.reports.extent import describe_extent
from graphrag_index.reports.report import Finding, Report, join_titles, make_report_rows
from graphrag_index.reports.report_choices import hash_choice_inputs, make_choice_columns
from graphrag_index.reports.report_drafts import CANDIDATE_COLUMNS, choose_reports, make_draft
from graphrag_index.reports.report_titles import Names
from graphrag_index.reports.theme_terms import (
    MAX_USES,
    CorpusWords,
    rank_words,
    split_headlines,
    split_words,
)
from graphrag_index.reports.theme_titles import ThemeName
from graphrag_index.step import ShardFrames
from graphrag_nlp.list_columns import gather_lists
from graphrag_nlp.text.languages import read_lists

Floats = npt.NDArray[np.float64]

# A sentence that begins with a quotation says what somebody thinks, rather than what happened.
QUOTATION_START, QUOTATION_FACTOR = r"""^["'“„«‘「『]""", 0.5
# So does a sentence of somebody on himself or to others; and lines of a quoted letter are old. They
# begin with ">" or with initials, "GLM>", unlike "p > 0.05" and "speed > limit".
PERSONAL_FACTOR, OLD_LETTER_FACTOR = 0.7, 0.3
OLD_LETTER = r"(?:^|\s\p{Lu}{1,4}|^\p{L}{1,4})>\s+[^\d\s]"
_LISTS = read_lists("graphrag_nlp/text/data/report_words")
# By language. A word in capitals alone is none: "US".
_PERSONAL_PATTERNS = {
    code: "|".join(
        [
            rf"\b(?:{'|'.join(f'(?i:{word[0]}){word[1:]}' for word in words.split())})\b",
            *filter(None, [_LISTS["personal_patterns"].get(code, "").replace(" ", "")]),
        ]
    )
    for code, words in _LISTS["personal_words"].items()
}
# A sentence that speaks of what was told before: by a noun with an article, or by a pronoun before
# any name. By language.
CONTEXT_FACTOR = 0.35
_CONTEXT_PATTERNS = {
    code: pattern.replace(" |", "|") for code, pattern in _LISTS["context_patterns"].items()
}
# A sentence in brackets is an aside, such as a call in a parliament.
BRACKET_START, BRACKET_FACTOR = r"^[(\[]", 0.3
# A list of names, such as one of those who voted, has hardly any other words.
MAX_CAPITAL_SHARE, MIN_LIST_WORDS = 0.6, 8
# Minimum share of the sentences of a report whose documents have a headline that says its theme.
MIN_HEADLINE_SHARE = 0.75


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
    documents = shard["documents"]
    sentences, uses = _rank_sentences(shard["sentences"], corpus, split_headlines(documents))
    titles, weight = (
        dict(entities.select("entity", name).iter_rows()) for name in ("title", "weight")
    )
    # A community of one document has one subject, also if other documents mention its members.
    has_several = (communities["n_documents"] > 1).to_list()
    main_members, themes = communities["main"].to_list(), _read_themes(communities)
    subjects = find_subjects(sentences, documents)
    headline_of = dict(documents.select("document", "headline").iter_rows())
    own = gather_lists(sentences["report"].to_numpy(), sentences["document"], communities.height)
    headlines = [{document: headline_of[document] for document in some} for some in own.to_list()]
    parts = zip(has_several, themes, main_members, headlines, strict=True)
    mains = [
        [
            *(str(several), subjects.get(at, ""), *_list_names(theme)),
            *(*map(titles.__getitem__, main), *own.values()),
        ]
        for at, (several, theme, main, own) in enumerate(parts)
    ]
    hashes = pl.Series("input_hash", hash_choice_inputs(mains, sentences, uses, entities))
    wanted = communities.select("community", hashes).with_row_index("report")
    kept = wanted.join(shard["known"], on=["community", "input_hash"])
    new = wanted.filter(~pl.col("report").is_in(kept["report"].implode()))
    texts = _read_rows(sentences.select("report", *CANDIDATE_COLUMNS), new)
    # Terms are found in the first uses of a word only.
    first_uses = uses.filter(pl.int_range(pl.len()).over("report", "word") < MAX_USES)
    words = _read_rows(first_uses.select("report", "text", "word", "weight", "form"), new)
    drafts = [
        make_draft(
            texts.get(at, ()),
            words.get(at, ()),
            Names(weight, titles, main_members[at], headlines[at]),
            has_several[at],
            subjects.get(at, ""),
            themes[at],
        )
        for at in new["report"]
    ]
    choices = choose_reports(drafts, max_findings, max_sentences, max_document_share)
    chosen = pl.concat([new, make_choice_columns(choices)], how="horizontal")
    chosen = pl.concat([chosen, kept]).sort("report")
    placed = PlacedStatements(chosen, sentences)
    reports = [
        _write_report(titles, *texts)
        for texts in zip(
            communities.iter_rows(named=True),
            chosen["title"],
            chosen["headings"].to_list(),
            *placed.write_texts(),
            strict=True,
        )
    ]
    added = ["main", "theme_title", "theme_terms", "theme_subjects"]
    rows = communities.drop(*added, "n_documents", "first_date", "last_date", "kinds")
    column = placed.make_column(shard["text_units"], shard["documents"])
    return {
        "community_reports": make_report_rows(rows, reports, column),
        "report_choices": chosen.drop("report"),
    }


def _read_themes(communities: pl.DataFrame) -> list[ThemeName | None]:
    """Return the name of each theme; None for other communities."""
    names = communities.select("theme_title", "theme_terms", "theme_subjects").iter_rows()
    return [
        None if terms is None else ThemeName(title, terms, subjects or ())
        for title, terms, subjects in names
    ]


def _list_names(theme: ThemeName | None) -> list[str]:
    return [] if theme is None else ["theme", theme.title, *theme.terms, *theme.subjects]


def find_subjects(sentences: pl.DataFrame, documents: pl.DataFrame) -> dict[int, str]:
    """Map each report to the headline of nearly all of its sentences, if there is one.

    Letters of one thread have the same headline.
    """
    found = (
        sentences.select("report", "document")
        .join(documents.select("document", "headline"), on="document")
        .group_by("report", "headline")
        .len()
        .filter(
            pl.col("len") >= MIN_HEADLINE_SHARE * pl.col("len").sum().over("report"),
            pl.col("headline") != "",
        )
    )
    return dict(found.select("report", "headline").iter_rows())


def _read_rows(rows: pl.DataFrame, reports: pl.DataFrame) -> dict[int, list[tuple[Any, ...]]]:
    """Return the rows of some reports, by report and without the column `report`."""
    own = rows.filter(pl.col("report").is_in(reports["report"].implode()))
    # Columns become lists faster than rows become tuples.
    read = zip(*(column.to_list() for column in own.drop("report")), strict=True)
    counts = own["report"].rle().struct.unnest()
    return {report: [*islice(read, n)] for n, report in counts.iter_rows()}


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
    sentences: pl.DataFrame, corpus: CorpusWords, headlines: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return sentences by report, best first, and the uses of words that set reports apart.

    The score of a sentence grows with these words; the column `words` has all its words that may
    name a theme. A use has the columns `report`, `text`, `word`,
    `weight` and `form`; the best word of a report comes first. `headlines` are the words of
    headlines (see `split_headlines`).
    """
    wording = rate_wording(sentences["text"], sentences["language"])
    # The start of a document, which mentions no member, has to be a clear statement.
    is_used = (pl.col("entities").list.len() > 0) | (
        (pl.col("clarity") == 2) & (pl.col("wording") == 1)
    )
    is_used &= ~is_name_list(pl.col("text"))
    sentences = sentences.with_columns(wording=wording).filter(is_used).with_row_index("row")
    words = split_words(sentences).join(
        sentences.select("row", "report", "source", "document"), on="row"
    )
    words = words.join(
        headlines.with_columns(is_headline=True), on=["document", "word"], how="left"
    ).with_columns(pl.col("is_headline").fill_null(False))
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
    factor *= sentences["wording"].to_numpy()
    scored = sentences.with_columns(score=sentences["score"].to_numpy() * factor)
    order = ["report", "score", "sentence"]
    uses = uses.join(sentences.select("row", "text"), on="row", maintain_order="left")
    scored = scored.join(by_row, on="row", how="left")
    return scored.sort(order, descending=[False, True, False]), uses


def rate_wording(texts: pl.Series, languages: pl.Series) -> Floats:
    """Rate sentences by their wording: 1, or less for those that tell what somebody thinks.

    So are those that are hard to understand alone.
    """
    text, language = pl.col("text"), pl.col("language")
    codes = set(languages.unique())
    is_personal, needs_context = (
        pl.any_horizontal(
            False,
            *(
                (language == code) & text.str.contains(pattern)
                for code, pattern in patterns.items()
                if code in codes
            ),
        )
        for patterns in (_PERSONAL_PATTERNS, _CONTEXT_PATTERNS)
    )
    factors = {
        QUOTATION_START: QUOTATION_FACTOR,
        OLD_LETTER: OLD_LETTER_FACTOR,
        BRACKET_START: BRACKET_FACTOR,
    }
    rated = pl.when(is_personal).then(PERSONAL_FACTOR).otherwise(1.0)
    rated *= pl.when(needs_context).then(CONTEXT_FACTOR).otherwise(1.0)
    for pattern, factor in factors.items():
        rated *= pl.when(text.str.contains(pattern)).then(factor).otherwise(1.0)
    frame = pl.DataFrame({"text": texts, "language": languages})
    return frame.select(rated).to_series().to_numpy()


def is_name_list(text: pl.Expr) -> pl.Expr:
    """Return whether most words of a text begin with a capital, but not all are in capitals."""
    n_words = text.str.count_matches(r"\p{L}+")
    n_capitals = text.str.count_matches(r"\b\p{Lu}")
    is_list = (n_capitals > MAX_CAPITAL_SHARE * n_words) & (n_words >= MIN_LIST_WORDS)
    return is_list & text.str.contains(r"\p{Ll}")


def _explain_rank(row: Mapping[str, object]) -> str:
    nouns = {
        "size": ("entity", "entities"),
        "n_relationships": ("relationship", "relationships"),
        "n_text_units": ("text unit", "text units"),
    }
    entities, *others = (f"{row[name]} {noun[row[name] != 1]}" for name, noun in nouns.items())
    counts = f"{entities}, {' and '.join(others)}"
    return f"{row['rank']} of 10 among the communities of its level, for {counts}."
