"""Settings sections of the searches."""

from typing import Annotated, Literal

from pydantic import Field

from graphrag_index.schema.settings.section import Section, Share, Similarity, Tokens, setting

_MAX = 1_000_000

TopK = Annotated[int, Field(ge=1, le=10_000)]
UpTo10 = Annotated[int, Field(ge=1, le=10)]
UpTo100 = Annotated[int, Field(ge=1, le=100)]
UpTo1000 = Annotated[int, Field(ge=1, le=1_000)]
UpToMillion = Annotated[int, Field(ge=1, le=_MAX)]
ZeroTo100 = Annotated[int, Field(ge=0, le=100)]
Rating = Annotated[int, Field(ge=1, le=5)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]  # at most one day
ContextTokens = Annotated[Tokens, Field(description="Maximum tokens of a model's context.")]
CallTokens = Annotated[Tokens, Field(description="Maximum tokens of one call's context.")]
MaxSentences = Annotated[TopK, Field(description="Maximum sentences of an answer.")]
MinSimilarity = Annotated[
    Similarity, Field(description="Ignore evidence less similar to the question (cosine).")
]


class Search(Section):
    """Settings of all searches."""

    model: str = setting(
        "auto",
        "Writer of answers: a name in `models`; none: sentences of the documents, at no cost; "
        "auto: the model that made the index, or none if no model did.",
    )
    rating_model: str | None = setting(
        None,
        "Name of a cheaper model for frequent requests (rating reports, testing passages, "
        "choosing a search); null: the same model.",
    )
    rerank_model: str | None = setting(
        None,
        "Model that reranks the best passages of local and drift search: a name in "
        "`models` with an endpoint /rerank, or all-MiniLM-L6-v2; "
        "null: none.",
    )
    reader_model: str | None = setting(
        None,
        "Folder of an extractive question-answering model, relative to settings.yaml, whose span "
        'begins an answer without a chat model (docs/searches.md, "A reader of your own"); '
        "null: none.",
    )
    response: str = setting(
        "as short as the question allows: a sentence or two for a fact, paragraphs for a survey",
        "Length and form of written answers, in words for the model.",
        min_length=1,
    )
    citations: Literal["footnotes", "data"] = setting(
        "footnotes", "footnotes: [1]; data: [Data: Sources (12)], as Microsoft GraphRAG."
    )
    follow_ups: ZeroTo100 = setting(
        0, "Follow-up questions to suggest; with a model they cost one more call."
    )
    retry_seconds: Seconds = setting(60.0, "How long failed calls for an answer are retried.")


class LocalSearch(Section):
    """Questions about an entity and its neighbourhood."""

    top_k_entities: TopK = setting(10, "Entities most similar to the question.")
    top_k_text_units: TopK = setting(12, "Text units to read for the answer.")
    scope: Literal["all", "graph"] = setting(
        "all",
        "graph: only text units that mention these entities, for corpora so large that vector "
        "search loses precision.",
    )
    max_context_tokens: ContextTokens = 8_000
    text_unit_share: Share = setting(0.6, "Share of max_context_tokens for text units.")
    report_share: Share = setting(
        0.15, "Share of max_context_tokens for reports; the rest: entities, relationships, claims."
    )
    max_sentences: MaxSentences = 6
    min_similarity: MinSimilarity = 0.25


class BasicSearch(Section):
    """Questions about a passage: text units by vector, by full text, or both."""

    mode: Literal["vector", "text", "hybrid"] = setting(
        "hybrid", "Ranking by vector or by text; hybrid merges both rankings."
    )
    top_k_text_units: TopK = setting(10, "Text units to read.")
    max_context_tokens: ContextTokens = 8_000
    max_sentences: MaxSentences = 6
    min_similarity: MinSimilarity = 0.25


class CompareSearch(Section):
    """Questions about several things or periods of a series: a table with a cell for each."""

    top_k_text_units: TopK = setting(4, "Text units to read for each cell.")
    cells_per_call: UpTo100 = setting(12, "Cells that a model fills in one call.")
    max_context_tokens: CallTokens = 12_000
    min_similarity: MinSimilarity = 0.25


class GlobalSearch(Section):
    """Questions about the whole corpus, answered by map and reduce over community reports."""

    level: ZeroTo100 | None = setting(
        None,
        "Level of the reports, or the deepest if there are fewer; null chooses one that fits "
        "the question.",
    )
    selection: Literal["similar", "dynamic", "level"] = setting(
        "similar",
        "Reports to read. similar: the most similar within max_map_tokens and max_map_share; "
        "dynamic: the model rates reports from the top of the hierarchy down; level: all reports "
        "of the level given in the setting level.",
    )
    max_map_tokens: Tokens | None = setting(
        None,
        "similar: reports and passages to read for one question, in tokens; null reads one context "
        "of max_context_tokens.",
    )
    max_map_share: float = setting(
        0.2, "similar: reports to read at most, as a share of their level.", gt=0, le=1
    )
    max_context_tokens: CallTokens = 6_000
    passage_share: float = setting(
        0.8,
        "similar: share of max_context_tokens and max_map_tokens for the best passages on the "
        "question. With level and dynamic, passages fill what the reports leave free.",
        ge=0,
        le=0.9,
    )
    max_levels: UpTo100 = setting(3, "dynamic: levels to descend at most, from level 0.")
    min_rating: Rating = setting(2, "dynamic: ignore reports with a lower rating (1 to 5).")
    min_score: ZeroTo100 = setting(20, "Ignore points of a map call with a lower score (0 to 100).")
    max_points: UpTo1000 = setting(24, "Maximum number of themes in an answer without a model.")
    max_words: int = setting(
        350,
        "Maximum number of words of an answer without a model; citations are no words.",
        ge=20,
        le=_MAX,
    )
    min_similarity: Similarity = setting(
        0.1, "Ignore reports less similar to the question (cosine)."
    )

    @property
    def n_map_tokens(self) -> int:
        """The tokens to read for one question with the selection `similar`."""
        return self.max_map_tokens or self.max_context_tokens


class DriftSearch(Section):
    """Broad questions, then details: reports first, then rounds of local questions."""

    top_k_reports: TopK = setting(8, "Number of reports to start from.")
    rounds: int = setting(2, "Rounds of follow-up questions.", ge=0, le=20)
    follow_ups: UpTo100 = setting(3, "Follow-up questions in a round at most.")
    max_context_tokens: CallTokens = 8_000
    max_total_tokens: int = setting(
        120_000, "Prompt tokens for one question at most.", ge=10_000, le=1_000_000_000
    )
    max_sentences: MaxSentences = 8
    min_similarity: MinSimilarity = 0.25


class LazySearch(Section):
    """Questions to an index without reports: relevance is tested at query time."""

    budget: UpToMillion = setting(
        100, "Relevance tests for one question at most; 100, 500 and 1500 are usual."
    )
    sub_queries: int = setting(4, "Sub-questions to derive from the question at most.", ge=0, le=20)
    top_k_text_units: int = setting(200, "Text units to rank per sub-question.", ge=1, le=100_000)
    communities_at_once: UpTo1000 = setting(
        16, "Communities to test in one round, those with the best untested text units first."
    )
    tests_at_once: UpTo100 = setting(2, "Text units of one community to test in one round.")
    patience: UpTo100 = setting(
        3, "Rounds without a relevant text unit after which a community is dropped."
    )
    min_rating: Rating = setting(
        3, "With a model: text units with a lower rating (1 to 5) are irrelevant."
    )
    max_context_tokens: Tokens = setting(8_000, "Maximum tokens of the last call.")
    max_sentences: MaxSentences = 10
    min_similarity: MinSimilarity = 0.25


class PathSearch(Section):
    """Paths between two or more entities."""

    max_paths: UpTo100 = setting(3, "Maximum paths between two entities.")
    max_hops: int = setting(6, "Maximum relationships of a path.", ge=1, le=50)
    max_visited: int = setting(
        100_000, "Maximum entities that a search for paths visits.", ge=10, le=100_000_000
    )
    max_context_tokens: ContextTokens = 8_000


class NeighbourhoodSearch(Section):
    """The surroundings of an entity."""

    hops: UpTo10 = setting(1, "Distance from the entity, in relationships.")
    max_relationships: UpToMillion = setting(
        100, "Maximum relationships to return, heaviest first."
    )
    max_context_tokens: Tokens = setting(8_000, "Maximum tokens of the result.")


class StructuredSearch(Section):
    """Queries in SQL and Cypher, written by a person or a model."""

    max_rows: UpToMillion = setting(1_000, "Maximum rows of a result.")
    timeout: float = setting(30.0, "Time limit of a query, in seconds.", gt=0, le=86_400)
    max_memory: int = setting(1_024, "Memory limit of a query, in megabytes.", ge=64, le=_MAX)
    attempts: UpTo10 = setting(2, "Maximum attempts of a model; a retry tells it the last error.")
    sample_values: int = setting(8, "Sample values of each column in the prompt.", ge=0, le=1_000)
    max_context_tokens: Tokens = setting(
        8_000, "Maximum tokens of result rows in the prompt for the answer."
    )
    min_similarity: Similarity = setting(
        0.25,
        "If no query finds anything: ignore passages and entities less similar to the question "
        "(cosine).",
    )
