"""Statements of community reports: whether the recorded spans of documents state them."""

import polars as pl

from graphrag_evaluation.answer_scores import MIN_SUPPORTED_SHARE
from graphrag_evaluation.coverage import WordWeights, stated_shares
from graphrag_evaluation.graph_quality.graph_figures import MAX_EXAMPLES, Figures, share_figure
from graphrag_evaluation.graph_quality.grounding import number_documents, read_spans
from graphrag_evaluation.graph_quality.report_claims import sample_reports, sample_texts
from graphrag_index.health.checked_index import CheckedIndex


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
