"""The settings section of the command `graphrag-index check`."""

from graphrag_index.schema.settings.section import Section, Share, setting
from graphrag_index.schema.settings.step_sections import Count, Positive


class Check(Section):
    """Limits of `graphrag-index check`: maximum counts, or maximum shares (1.0: all)."""

    max_dangling_ids: Count = setting(0, "References to ids that do not exist.")
    max_duplicates: Count = setting(0, "Rows that repeat the id, number, title or link of another.")
    max_unresolved_citations: Count = setting(0, "Citations of missing rows in reports.")
    max_missing_vectors: Count = setting(0, "Texts without a vector, or with a vector of zeros.")
    max_stale_vectors: Count = setting(0, "Vectors of changed or deleted texts.")
    max_stale_search_tables: Count = setting(
        0, "Rows of search tables that differ from the source tables."
    )
    max_uncovered_entities: Share = setting(1.0, "Share of entities without community or report.")
    max_uncovered_documents: Share = setting(1.0, "Share of documents without community or report.")
    max_missing_reports: Share = setting(1.0, "Share of communities without a report.")
    max_empty_reports: Share = setting(1.0, "Share of reports that are empty.")
    max_oversized_communities: Share = setting(
        1.0, "Share of oversized ones among communities without children."
    )
    oversized_above: Positive = setting(50, "Entities above which a community is oversized.")
    max_equal_documents: Share = setting(1.0, "Share of documents that repeat another's text.")
