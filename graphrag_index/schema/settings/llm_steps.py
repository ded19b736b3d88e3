"""Settings of the steps that ask a model: one section a step, hung into `settings.py`."""

from pydantic import Field, model_validator

from graphrag_index.schema.settings.section import Section


class RelationshipType(Section):
    """A type of relationship, and between which types of entities it may stand."""

    type: str = Field(min_length=1, description="Name of the type, such as employs.")
    source: str | None = Field(None, description="Type of the entity it starts at; null: any.")
    target: str | None = Field(None, description="Type of the entity it ends at; null: any.")


class Star(Section):
    """Each document's own key as an entity, with a link to every entity of its text units."""

    key: str = Field(
        "title", description="Where the key is found: a metadata column of the document, or title."
    )
    type: str = Field("report", description="Type of the entity that the key becomes.")
    relationship: str = Field("mentions", description="Type of the links.")


class ExtractGraph(Section):
    """Entities and relationships, found by a model."""

    model: str = Field("chat", description="Name of the model in `models`.")
    entity_types: list[str] = Field(
        [],
        description="Types that entities may have; empty: whatever fits. One that is added later "
        "is asked for alone, one that is taken out disappears.",
    )
    relationship_types: list[RelationshipType | str] = Field(
        [],
        description="Types that relationships may have: names, or {type, source, target} to say "
        "which types of entities they join; empty: whatever fits. Added ones likewise.",
    )
    strict: bool = Field(
        False, description="Drop (and count) what has none of these types; else they are a wish."
    )
    max_gleanings: int = Field(
        0,
        ge=0,
        le=10,
        description="How often to ask again for what was missed, until nothing new comes. Each "
        "time costs another call for each text unit, and models of today miss little.",
    )
    star: Star | None = Field(
        None, description="Link each document's key, such as a report number, with its entities."
    )


class ResolveEntities(Section):
    """Names of one thing, merged: by a person, by rules, and by a model if one is set."""

    file: str = Field(
        "resolutions.yaml",
        min_length=1,
        description="What a person has decided, relative to settings.yaml; it need not be there.",
    )
    merge: bool = Field(
        True, description="Merge by rules; without it what a person decides is all that is done."
    )
    merge_above: float = Field(
        0.9, ge=0, le=1, description="Pairs of this score or more are merged."
    )
    doubt_above: float = Field(
        0.7, ge=0, le=1, description="Pairs of this score or more are listed, or a model is asked."
    )
    model: str | None = Field(
        None,
        description="Name of the model in `models` that decides the doubtful ones; null: none.",
    )
    max_questions: int = Field(
        1_000, ge=0, le=10_000_000, description="Pairs that the model is asked at most, best first."
    )
    max_embedded: int = Field(
        0,
        ge=0,
        le=50_000,
        description="Names whose vectors are compared, the most mentioned of those that are like "
        "no other; 0: none. It needs the model of generate_text_embeddings.",
    )

    @model_validator(mode="after")
    def _doubt_is_below(self) -> "ResolveEntities":
        if self.doubt_above > self.merge_above:
            raise ValueError("doubt_above must be at most merge_above")
        return self


class SummarizeDescriptions(Section):
    """One description of each entity and relationship, out of those of its text units."""

    model: str = Field("chat", description="Name of the model in `models`.")
    max_words: int = Field(150, ge=10, le=1_000_000, description="Longest summary, in words.")
    max_input_tokens: int = Field(
        4_000, ge=200, le=1_000_000, description="Descriptions summarized at once; more are folded."
    )
    max_tokens_without_call: int = Field(
        60,
        ge=0,
        le=1_000_000,
        description="Descriptions that together are shorter are joined, without a call.",
    )


class CreateCommunityReports(Section):
    """What is written about each community, by a model."""

    model: str = Field("chat", description="Name of the model in `models`.")
    max_input_tokens: int = Field(
        8_000,
        ge=400,
        le=1_000_000,
        description="What a model is shown of one community; of larger ones the reports of "
        "their sub-communities. Never more than the model's window.",
    )
    max_findings: int = Field(8, ge=1, le=1_000_000, description="Findings of one report at most.")
    max_words: int = Field(
        600, ge=50, le=1_000_000, description="Words of all findings of one report at most."
    )
    rewrite_above: float = Field(
        0.2,
        ge=0,
        le=1,
        description="A report stays as it is until more than this share of its community's "
        "evidence is other than when it was written; 0: any change has it written again. What "
        "rests on a text that is gone is written again in any case.",
    )


class ExtractCovariates(Section):
    """Claims about named things, found by a model."""

    model: str = Field("chat", description="Name of the model in `models`.")
    description: str = Field(
        "what somebody or something is said to have done, caused, promised or suffered, "
        "and what is said against it, where that matters to whoever has to judge it.",
        min_length=1,
        description="Which claims are wanted, in words for the model.",
    )
    max_gleanings: int = Field(
        0,
        ge=0,
        le=10,
        description="How often to ask again for what was missed, until nothing new comes.",
    )
