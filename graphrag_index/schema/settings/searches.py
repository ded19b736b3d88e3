"""Settings of the searches: what all share, and one section a search, hung into `settings.py`."""

from typing import Literal

from pydantic import Field

from graphrag_index.schema.settings.section import Section

_MANY = 1_000_000


class Search(Section):
    """What all searches share: who writes the answers, and how they look."""

    model: str = Field(
        "auto",
        description="Who writes answers: a name in `models`; none: sentences of the documents, "
        "at no cost; auto: the model that wrote the index, or none if no model did.",
    )
    rating_model: str | None = Field(
        None,
        description="Name of a cheaper model for what is asked often (rating reports, testing "
        "passages, choosing a search); null: the same.",
    )
    response: str = Field(
        "as short as the question allows: a sentence or two for a fact, paragraphs for a survey",
        min_length=1,
        description="Length and form of written answers, in words for the model.",
    )
    citations: Literal["footnotes", "data"] = Field(
        "footnotes", description="footnotes: [1]; data: [Data: Sources (12)], as Microsoft's."
    )
    follow_ups: int = Field(
        0,
        ge=0,
        le=100,
        description="Questions suggested with an answer; with a model they cost one more call.",
    )
    retry_seconds: float = Field(
        60.0,
        ge=0,
        le=86_400,
        description="How long a call for an answer is tried again after failures.",
    )


class LocalSearch(Section):
    """Questions about an entity and its neighbourhood."""

    top_k_entities: int = Field(10, ge=1, le=10_000, description="Entities near the question.")
    top_k_text_units: int = Field(
        12, ge=1, le=10_000, description="Text units read for the answer."
    )
    scope: Literal["all", "graph"] = Field(
        "all",
        description="graph: only text units that the entities near the question touch, for "
        "corpora so large that vectors lose their grain.",
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MANY, description="What a model is shown, in tokens."
    )
    text_unit_share: float = Field(
        0.6, ge=0, le=1, description="Share of text units in what a model is shown."
    )
    report_share: float = Field(
        0.15,
        ge=0,
        le=1,
        description="Share of community reports; the rest is for entities, relationships, claims.",
    )
    max_sentences: int = Field(6, ge=1, le=10_000, description="Sentences of the answer at most.")
    min_similarity: float = Field(
        0.25, ge=-1, le=1, description="Evidence less similar to the question is none (cosine)."
    )


class BasicSearch(Section):
    """Questions about a passage: text units by vector, by full text, or both."""

    mode: Literal["vector", "text", "hybrid"] = Field(
        "hybrid", description="hybrid joins both rankings by reciprocal ranks."
    )
    top_k_text_units: int = Field(10, ge=1, le=10_000, description="Text units read.")
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MANY, description="What a model is shown, in tokens."
    )
    max_sentences: int = Field(6, ge=1, le=10_000, description="Sentences of the answer at most.")
    min_similarity: float = Field(
        0.25, ge=-1, le=1, description="Evidence less similar to the question is none (cosine)."
    )


class GlobalSearch(Section):
    """Questions about the whole corpus, mapped over community reports."""

    level: int | None = Field(
        None,
        ge=0,
        le=100,
        description="Level of the reports; null picks one that fits the question.",
    )
    selection: Literal["similar", "dynamic", "level"] = Field(
        "similar",
        description="Which reports a model is shown: similar: the best by similarity within "
        "max_map_tokens and max_map_share; dynamic: it rates reports from the top of the "
        "hierarchy down; level: all of the level.",
    )
    max_map_tokens: int = Field(
        7_500, ge=200, le=_MANY, description="similar: reports read for one question, in tokens."
    )
    max_map_share: float = Field(
        0.2, gt=0, le=1, description="similar: reports read at most, as a share of their level."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MANY, description="What one call is shown, in tokens."
    )
    max_levels: int = Field(
        3, ge=1, le=100, description="dynamic: levels walked down at most, from level 0."
    )
    min_rating: int = Field(
        2, ge=1, le=5, description="dynamic: reports rated lower, of 5, are left out."
    )
    min_score: int = Field(
        20, ge=0, le=100, description="Points of a map call that score less, of 100, are left out."
    )
    max_points: int = Field(6, ge=1, le=1_000, description="Themes of the answer at most.")
    min_similarity: float = Field(
        0.1, ge=-1, le=1, description="Reports less similar to the question give nothing (cosine)."
    )


class DriftSearch(Section):
    """Broad questions, followed into detail: reports first, then rounds of local questions."""

    top_k_reports: int = Field(8, ge=1, le=10_000, description="Reports that it starts from.")
    rounds: int = Field(2, ge=0, le=20, description="Rounds of follow-up questions.")
    follow_ups: int = Field(3, ge=1, le=100, description="Follow-up questions of a round at most.")
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MANY, description="What one call is shown, in tokens."
    )
    max_total_tokens: int = Field(
        120_000, ge=10_000, le=1_000_000_000, description="Prompt tokens of one question at most."
    )
    max_sentences: int = Field(8, ge=1, le=10_000, description="Sentences of the answer at most.")
    min_similarity: float = Field(
        0.25, ge=-1, le=1, description="Evidence less similar to the question is none (cosine)."
    )


class LazySearch(Section):
    """Questions to an index without reports: relevance is tested at the time of the question."""

    budget: int = Field(
        100,
        ge=1,
        le=1_000_000,
        description="Relevance tests of one question at most; 100, 500 and 1500 are usual.",
    )
    sub_queries: int = Field(4, ge=0, le=20, description="Questions made of the question at most.")
    top_k_text_units: int = Field(
        200, ge=1, le=100_000, description="Text units ranked for each of them."
    )
    communities_at_once: int = Field(
        16,
        ge=1,
        le=1_000,
        description="Communities that have a turn in one round, those with the best untested text "
        "units first.",
    )
    tests_at_once: int = Field(
        2, ge=1, le=100, description="Text units of one community that are tested in one turn."
    )
    patience: int = Field(
        3,
        ge=1,
        le=100,
        description="Turns without a relevant text unit after which a community is left.",
    )
    min_rating: int = Field(
        3, ge=1, le=5, description="With a model: text units rated lower, of 5, are not relevant."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MANY, description="What the last call is shown, in tokens."
    )
    max_sentences: int = Field(10, ge=1, le=10_000, description="Sentences of the answer at most.")
    min_similarity: float = Field(
        0.25, ge=-1, le=1, description="Evidence less similar to the question is none (cosine)."
    )


class PathSearch(Section):
    """How two or more entities are connected."""

    max_paths: int = Field(3, ge=1, le=100, description="Paths between two entities at most.")
    max_hops: int = Field(6, ge=1, le=50, description="Longest path, in relationships.")
    max_visited: int = Field(
        100_000, ge=10, le=100_000_000, description="Entities looked at before it gives up."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MANY, description="What a model is shown, in tokens."
    )


class NeighbourhoodSearch(Section):
    """The surroundings of an entity."""

    hops: int = Field(1, ge=1, le=10, description="How far from the entity.")
    max_relationships: int = Field(
        100, ge=1, le=_MANY, description="Relationships at most, the strongest first."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MANY, description="The tables for a model of your own, in tokens."
    )


class StructuredSearch(Section):
    """Queries in SQL and Cypher, and questions for which a model writes the query."""

    max_rows: int = Field(1_000, ge=1, le=_MANY, description="Rows that a query returns at most.")
    timeout: float = Field(
        30.0, gt=0, le=86_400, description="Seconds after which a query is ended."
    )
    max_memory: int = Field(
        1_024, ge=64, le=_MANY, description="Memory that a query may take, in megabytes."
    )
    attempts: int = Field(
        2,
        ge=1,
        le=10,
        description="How often a model may write the query: what was wrong is told to it.",
    )
    sample_values: int = Field(
        8, ge=0, le=1_000, description="Values of each column that a model is shown as a sample."
    )
    max_context_tokens: int = Field(
        8_000, ge=200, le=_MANY, description="Rows that a model is shown for the answer, in tokens."
    )
    min_similarity: float = Field(
        0.25,
        ge=-1,
        le=1,
        description="Where no query finds anything: passages and entities less similar to the "
        "question are none (cosine).",
    )
