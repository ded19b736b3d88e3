"""Sections of the steps that ask a language model."""

from pydantic import Field, model_validator

from graphrag_index.schema.settings.section import Section, Share


class RelationshipType(Section):
    """A type of relationship, and the types of entities that it may join."""

    type: str = Field(min_length=1, description="Name of the type, such as employs.")
    source: str | None = Field(None, description="Type of the source entity; null: any.")
    target: str | None = Field(None, description="Type of the target entity; null: any.")


class Star(Section):
    """An entity for each document, linked to all entities of its text units."""

    key: str = Field(
        "title", description="Name of the entity: a metadata column of the document, or title."
    )
    type: str = Field("report", description="Type of the entity.")
    relationship: str = Field("mentions", description="Type of the links.")


class ExtractGraph(Section):
    """Entities and relationships, extracted by a language model."""

    model: str = Field("chat", description="Name of the model in `models`.")
    entity_types: list[str] = Field(
        [],
        description="Types of entities; empty: the model chooses. A type that is added later is "
        "requested alone, a type that is removed disappears.",
    )
    relationship_types: list[RelationshipType | str] = Field(
        [],
        description="Types of relationships: names, or {type, source, target} with the types of "
        "entities that they join; empty: the model chooses. Additions work likewise.",
    )
    strict: bool = Field(
        False, description="Drop (and count) records of other types; false only prefers the types."
    )
    max_gleanings: int = Field(
        0,
        ge=0,
        le=10,
        description="How often to ask again for missed records, until a reply has none. Each costs "
        "one more call per text unit, and current models miss little.",
    )
    star: Star | None = Field(
        None, description="Link each document's key, such as a report number, to its entities."
    )


class ResolveEntities(Section):
    """Merging of names of one thing: by people, by rules, and by a model if one is set."""

    file: str = Field(
        "resolutions.yaml",
        min_length=1,
        description="File of decisions by people, relative to settings.yaml; optional.",
    )
    merge: bool = Field(
        True, description="Merge by rules; false applies the decisions of people only."
    )
    merge_above: Share = Field(0.9, description="Pairs with this score or more are merged.")
    doubt_above: Share = Field(
        0.7, description="Pairs with this score or more are listed, or a model decides."
    )
    model: str | None = Field(
        None, description="Name of the model in `models` that decides doubtful pairs; null: none."
    )
    max_questions: int = Field(
        1_000,
        ge=0,
        le=10_000_000,
        description="Pairs to ask the model about at most, highest score first.",
    )
    max_embedded: int = Field(
        0,
        ge=0,
        le=50_000,
        description="Names to compare by vectors: the most frequent that match no other name; 0: "
        "none. Needs the model of generate_text_embeddings.",
    )

    @model_validator(mode="after")
    def _doubt_is_below(self) -> "ResolveEntities":
        if self.doubt_above > self.merge_above:
            raise ValueError("doubt_above must be at most merge_above")
        return self


class SummarizeDescriptions(Section):
    """One description for each entity and relationship, from those of its text units."""

    model: str = Field("chat", description="Name of the model in `models`.")
    max_words: int = Field(150, ge=10, le=1_000_000, description="Longest summary, in words.")
    max_input_tokens: int = Field(
        4_000,
        ge=200,
        le=1_000_000,
        description="Tokens of descriptions in one request; more are summarized in turns.",
    )
    max_tokens_without_call: int = Field(
        60,
        ge=0,
        le=1_000_000,
        description="Descriptions up to so many tokens together are joined without a call.",
    )


class CreateCommunityReports(Section):
    """Community reports, written by a language model."""

    model: str = Field("chat", description="Name of the model in `models`.")
    max_input_tokens: int = Field(
        8_000,
        ge=400,
        le=1_000_000,
        description="Context of one report, in tokens; for larger communities it holds reports of "
        "sub-communities. Never more than the context window of the model.",
    )
    max_findings: int = Field(8, ge=1, le=1_000_000, description="Findings of a report at most.")
    max_words: int = Field(
        600, ge=50, le=1_000_000, description="Words of all findings of a report at most."
    )
    rewrite_above: Share = Field(
        0.2,
        description="Rewrite a report when more than this share of its community's evidence has "
        "changed; 0: on any change. If a text that it cites is gone, it is rewritten in any case.",
    )


class ExtractCovariates(Section):
    """Claims about named things, extracted by a language model."""

    model: str = Field("chat", description="Name of the model in `models`.")
    description: str = Field(
        "what somebody or something is said to have done, caused, promised or suffered, "
        "and what is said against it, where that matters to whoever has to judge it.",
        min_length=1,
        description="Which claims to extract, in words for the model.",
    )
    max_gleanings: int = Field(
        0,
        ge=0,
        le=10,
        description="How often to ask again for missed claims, until a reply has none.",
    )
