"""Sentences of reports: whether the rows that they cite, or their spans, state them."""

import random
from collections.abc import Mapping

import polars as pl

from graphrag_evaluation.answer_scores import MIN_SUPPORTED_SHARE, CitedSentence, cited_sentences
from graphrag_evaluation.coverage import WordWeights, stated_shares
from graphrag_evaluation.graph_quality.graph_figures import MAX_EXAMPLES, Figures, share_figure
from graphrag_evaluation.graph_quality.grounding import number_documents, read_spans
from graphrag_evaluation.systems import MAX_SAMPLED_TEXT_UNITS
from graphrag_index.health.checked_index import CITED_COLUMNS, CheckedIndex, count_rows
from graphrag_nlp.reports.extent import EXTENT_SENTENCE

# Reports that are read; of more reports, a random sample.
MAX_REPORTS = 1_000
# Columns of a cited row that are its text.
_TEXT_COLUMNS = {
    "Entities": ("title", "description"),
    "Relationships": ("source", "target", "description"),
    "Claims": ("subject_id", "object_id", "description", "source_text"),
    "Reports": ("title", "full_content"),
    "Sources": ("text",),
}


def measure_report_statements(index: CheckedIndex, seed: int) -> Figures:
    """Measure the shares of statements that their spans state, and that several documents state.

    A span states a statement if it has half of the information of its words, by the lexical test
    of `stated_shares`: the spans are read anew from the documents. Intervals are over reports.
    """
    names = ["stated_claims", "confirmed_claims"]
    if not (
        index.has("community_reports", "statements", "community")
        and index.has("documents", "id", "text")
    ):
        return dict.fromkeys(names, "the reports have no spans of statements")
    spans = _locate_statements(index, seed)
    placed = spans.filter(pl.col("document").is_not_null())
    said = [text for _, texts in read_spans(index, placed) for text in texts]
    statements = (
        spans.with_columns(
            said=pl.Series([*said, *[None] * (len(spans) - len(said))], dtype=pl.String)
        )
        .group_by("community", "statement")
        .agg(pl.col("text", "n_documents").first(), pl.col("said").drop_nulls())
        .sort("community", "statement")
    )
    weights = WordWeights(sample_texts(index))
    # Several spans of a statement are alternatives: each may be the one that states it.
    is_stated = [
        any(stated_shares([text], [said], weights)[0] >= MIN_SUPPORTED_SHARE for said in texts)
        for text, texts in statements.select("text", "said").iter_rows()
    ]
    statements = statements.with_columns(
        pl.Series("stated_claims", is_stated, dtype=pl.Boolean),
        confirmed_claims=pl.col("n_documents") > 1,
    )
    counts = statements.group_by("community").agg(pl.col(names).sum(), n=pl.len())
    counts = counts.sort("community")
    return {
        name: share_figure(
            counts[name],
            counts["n"],
            [
                f"report on community {community}: {text}"
                for community, text in statements.filter(~pl.col(name))
                .head(MAX_EXAMPLES)
                .select("community", "text")
                .iter_rows()
            ],
            none="no report has a statement",
            seed=seed,
        )
        for name in names
    }


def _locate_statements(index: CheckedIndex, seed: int) -> pl.DataFrame:
    """Return the spans of statements, sorted by the row of the document.

    A statement has a row for each span, or one without a document; these come last.
    """
    documents = number_documents(index).collect()
    rows = sample_reports(index, seed, "statements").explode("statements")
    return (
        rows.drop_nulls("statements")
        .unnest("statements")
        .join(documents, on="document_id", how="left")
        .sort("document", "community", "statement", nulls_last=True)
    )


def measure_report_claims(index: CheckedIndex, seed: int) -> Figures:
    """Measure the shares of sentences of reports that cite, and whose citations state them.

    A sentence is supported if the cited rows have half of the information of its words, by the
    lexical test of `stated_shares`. A sentence that cites missing rows only is not supported.
    Counts of documents and members are no claims: the program writes them, and no row states
    them. Intervals are over reports.
    """
    names = ("cited_claims", "supported_claims")
    if not index.has("community_reports", "full_content", "community"):
        return dict.fromkeys(names, "the index has no community reports")
    reports = sample_reports(index, seed, "full_content")
    claims = [_read_claims(text or "") for text in reports["full_content"]]
    evidence = _read_evidence(index, claims)
    weights = WordWeights(sample_texts(index))
    n_cited, n_supported, unsupported, uncited = [], [], [], []
    for number, sentences in zip(reports["community"], claims, strict=True):
        cited = [sentence for sentence in sentences if sentence.rows]
        n_cited.append(len(cited))
        n_supported.append(0)
        for sentence in cited:
            texts = [evidence.get((s, n), "") for s, found in sentence.rows.items() for n in found]
            [stated] = stated_shares([sentence.text], ["\n".join(texts)], weights)
            n_supported[-1] += stated >= MIN_SUPPORTED_SHARE
            if stated < MIN_SUPPORTED_SHARE:
                unsupported.append((stated, f"report on community {number}: {sentence.text}"))
        uncited += [
            f"report on community {number}: {sentence.text}"
            for sentence in sentences
            if not sentence.rows
        ]
    worst = [text for _, text in sorted(unsupported)]
    n_sentences = list(map(len, claims))
    return {
        "cited_claims": share_figure(
            n_cited, n_sentences, uncited, none="no report has a sentence", seed=seed
        ),
        "supported_claims": share_figure(
            n_supported, n_cited, worst, none="no sentence of a report cites a row", seed=seed
        ),
    }


def _read_claims(report: str) -> list[CitedSentence]:
    sentences = cited_sentences(report)
    return [said for said in sentences if said.rows or not EXTENT_SENTENCE.fullmatch(said.text)]


def sample_reports(index: CheckedIndex, seed: int, column: str) -> pl.DataFrame:
    """Return the communities of reports with a column, of many reports a random sample."""
    rows = index.tables["community_reports"]
    n = count_rows(rows)
    rows = rows.select("community", column)
    if n > MAX_REPORTS:
        chosen = pl.Series(random.Random(seed).sample(range(n), MAX_REPORTS), dtype=pl.UInt32)
        rows = rows.with_row_index("row").filter(pl.col("row").is_in(chosen.implode()))
    return rows.select("community", column).collect(engine="streaming")


def sample_texts(index: CheckedIndex) -> list[str]:
    """Return the texts of an evenly spaced sample of the text units."""
    if not index.has("text_units", "text"):
        return []
    rows = index.tables["text_units"].select(pl.col("text").fill_null(""))
    step = max(1, count_rows(rows) // MAX_SAMPLED_TEXT_UNITS)
    return rows.gather_every(step).collect()["text"].to_list()


def _read_evidence(
    index: CheckedIndex, claims: list[list[CitedSentence]]
) -> Mapping[tuple[str, int], str]:
    """Return the texts of the cited rows by (section, number)."""
    found: dict[tuple[str, int], str] = {}
    for section, columns in _TEXT_COLUMNS.items():
        table, number = CITED_COLUMNS[section].split(".")
        if section == "Reports":
            table = "community_reports"
        cited = {
            n for sentences in claims for said in sentences for n in said.rows.get(section, ())
        }
        if not cited or not index.has(table, *columns):
            continue
        if section == "Sources" and not index.has(table, number):
            rows = index.tables[table].with_row_index(number)
        elif index.has(table, number):
            rows = index.tables[table]
        else:
            continue
        # Sentences of a row end with its columns.
        text = pl.concat_str(columns, separator=".\n", ignore_nulls=True)
        texts = (
            rows.select(pl.col(number).cast(pl.Int64), text=text)
            .filter(pl.col(number).is_in(pl.Series(sorted(cited)).implode()))
            .collect(engine="streaming")
        )
        found |= {(section, n): text for n, text in texts.iter_rows()}
    return found
