"""Sections of the searches."""

from typing import Literal

from pydantic import Field

from graphrag_index.schema.settings.section import Section, Share

_MAX = 1_000_000


class Search(Section):
    """Settings of all searches."""

    model: str = Field(
        "auto",
        description="Writer of answers: a name in `models`; none: sentences of the documents, at "
        "no cost; auto: the model that made the index, or none if no model did.",
    )
    rating_model: str | None = Field(
        None,
        description="Name of a cheaper model for frequent requests (rating reports, testing "
        "passages, choosing a search); null: the same model.",
    )
    response: str = Field(
        "as short as the question allows: a sentence or two for a fact, paragraphs for a survey",
        min_length=1,
        description="Length and form of written answers, in words for the model.",
    )
    citations: Literal["footnotes", "data"] = Field(
        "footnotes",
        description="footnotes: [1]; data: [Data: Sources (12)], as Microsoft GraphRAG.",
    )
    follow_ups: int = Field(
        0,
        ge=0,
        le=100,
        description="Follow-up questions to suggest; with a model they cost one more call.",
    )
    retry_seconds: float = Field(
        60.0, ge=0, le=86_400, description="How long failed calls for an answer are retried."
    )


class LocalSearch(Section):
    """Questions about an entity and its neighbourhood."""

    top_k_entities: int = Field(
        10, ge=1, le=10_000, description="Entities most similar to the question."
    )
    top_k_text_units: int = Field(
        12, ge=1, le=10_000, description="Text units to read for the answer."
    )
    scope: Literal["all", "graph"] = Field(
        "all",
        description="graph: only text units that mention these entities, for corpora so large that "
        "vector search loses precision.",
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MAX, description="Context of a model, in tokens."
    )
    text_unit_share: Share = Field(0.6, description="Share of text units in this context.")
    report_share: Share = Field(
        0.15,
        description="Share of community reports; the rest is for entities, relationships, claims.",
    )
    max_sentences: int = Field(6, ge=1, le=10_000, description="Sentences of the answer at most.")
    min_similarity: float = Field(
        0.25, ge=-1, le=1, description="Ignore evidence less similar to the question (cosine)."
    )


class BasicSearch(Section):
    """Questions about a passage: text units by vector, by full text, or both."""

    mode: Literal["vector", "text", "hybrid"] = Field(
        "hybrid", description="hybrid merges both rankings by reciprocal rank."
    )
    top_k_text_units: int = Field(10, ge=1, le=10_000, description="Text units to read.")
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MAX, description="Context of a model, in tokens."
    )
    max_sentences: int = Field(6, ge=1, le=10_000, description="Sentences of the answer at most.")
    min_similarity: float = Field(
        0.25, ge=-1, le=1, description="Ignore evidence less similar to the question (cosine)."
    )


class GlobalSearch(Section):
    """Questions about the whole corpus, answered by map and reduce over community reports."""

    level: int | None = Field(
        None,
        ge=0,
        le=100,
        description="Level of the reports; null chooses one that fits the question.",
    )
    selection: Literal["similar", "dynamic", "level"] = Field(
        "similar",
        description="Reports to read. similar: the most similar within max_map_tokens and "
        "max_map_share; dynamic: the model rates reports from the top of the hierarchy down; "
        "level: all of the level.",
    )
    max_map_tokens: int = Field(
        7_500, ge=200, le=_MAX, description="similar: reports to read for one question, in tokens."
    )
    max_map_share: float = Field(
        0.2, gt=0, le=1, description="similar: reports to read at most, as a share of their level."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MAX, description="Context of one call, in tokens."
    )
    max_levels: int = Field(
        3, ge=1, le=100, description="dynamic: levels to descend at most, from level 0."
    )
    min_rating: int = Field(
        2, ge=1, le=5, description="dynamic: ignore reports with a lower rating (1 to 5)."
    )
    min_score: int = Field(
        20, ge=0, le=100, description="Ignore points of a map call with a lower score (0 to 100)."
    )
    max_points: int = Field(6, ge=1, le=1_000, description="Themes of the answer at most.")
    min_similarity: float = Field(
        0.1, ge=-1, le=1, description="Ignore reports less similar to the question (cosine)."
    )


class DriftSearch(Section):
    """Broad questions, then details: reports first, then rounds of local questions."""

    top_k_reports: int = Field(8, ge=1, le=10_000, description="Reports to start from.")
    rounds: int = Field(2, ge=0, le=20, description="Rounds of follow-up questions.")
    follow_ups: int = Field(3, ge=1, le=100, description="Follow-up questions in a round at most.")
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MAX, description="Context of one call, in tokens."
    )
    max_total_tokens: int = Field(
        120_000, ge=10_000, le=1_000_000_000, description="Prompt tokens for one question at most."
    )
    max_sentences: int = Field(8, ge=1, le=10_000, description="Sentences of the answer at most.")
    min_similarity: float = Field(
        0.25, ge=-1, le=1, description="Ignore evidence less similar to the question (cosine)."
    )


class LazySearch(Section):
    """Questions to an index without reports: relevance is tested at query time."""

    budget: int = Field(
        100,
        ge=1,
        le=1_000_000,
        description="Relevance tests for one question at most; 100, 500 and 1500 are usual.",
    )
    sub_queries: int = Field(
        4, ge=0, le=20, description="Sub-questions to derive from the question at most."
    )
    top_k_text_units: int = Field(
        200, ge=1, le=100_000, description="Text units to rank for each of them."
    )
    communities_at_once: int = Field(
        16,
        ge=1,
        le=1_000,
        description="Communities to test in one round, those with the best untested text units "
        "first.",
    )
    tests_at_once: int = Field(
        2, ge=1, le=100, description="Text units of one community to test in one round."
    )
    patience: int = Field(
        3,
        ge=1,
        le=100,
        description="Rounds without a relevant text unit after which a community is dropped.",
    )
    min_rating: int = Field(
        3,
        ge=1,
        le=5,
        description="With a model: text units with a lower rating (1 to 5) are irrelevant.",
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MAX, description="Context of the last call, in tokens."
    )
    max_sentences: int = Field(10, ge=1, le=10_000, description="Sentences of the answer at most.")
    min_similarity: float = Field(
        0.25, ge=-1, le=1, description="Ignore evidence less similar to the question (cosine)."
    )


class PathSearch(Section):
    """Paths between two or more entities."""

    max_paths: int = Field(3, ge=1, le=100, description="Paths between two entities at most.")
    max_hops: int = Field(6, ge=1, le=50, description="Longest path, in relationships.")
    max_visited: int = Field(
        100_000, ge=10, le=100_000_000, description="Entities to visit before giving up."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MAX, description="Context of a model, in tokens."
    )


class NeighbourhoodSearch(Section):
    """The surroundings of an entity."""

    hops: int = Field(1, ge=1, le=10, description="Distance from the entity, in relationships.")
    max_relationships: int = Field(
        100, ge=1, le=_MAX, description="Relationships at most, by descending weight."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MAX, description="Tables for a model of your own, in tokens."
    )


class StructuredSearch(Section):
    """Queries in SQL and Cypher, written by a person or a model."""

    max_rows: int = Field(1_000, ge=1, le=_MAX, description="Rows of a result at most.")
    timeout: float = Field(30.0, gt=0, le=86_400, description="Time limit of a query, in seconds.")
    max_memory: int = Field(
        1_024, ge=64, le=_MAX, description="Memory limit of a query, in megabytes."
    )
    attempts: int = Field(
        2,
        ge=1,
        le=10,
        description="How often a model may write the query; it is told about errors.",
    )
    sample_values: int = Field(
        8, ge=0, le=1_000, description="Sample values of each column in the prompt."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MAX, description="Result rows in the prompt for the answer, in tokens."
    )
    min_similarity: float = Field(
        0.25,
        ge=-1,
        le=1,
        description="If no query finds anything: ignore passages and entities less similar to the "
        "question (cosine).",
    )
