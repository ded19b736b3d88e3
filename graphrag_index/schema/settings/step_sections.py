"""Settings sections of the steps, and of the command `graphrag-index check`."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from graphrag_index.schema.settings.section import Section, Share, Tokens, setting

# Maximum of counts: more rows than any corpus has. The numeric libraries use 32-bit integers.
_MAX = 1_000_000_000
# Maximum seed: every engine accepts 32 bits. Microsoft GraphRAG uses the seed 0xDEADBEEF.
_MAX_SEED = 2**32 - 1
Count = Annotated[int, Field(ge=0, le=_MAX)]
Positive = Annotated[int, Field(ge=1, le=_MAX)]
ZeroTo10 = Annotated[int, Field(ge=0, le=10)]
MoreThanNone = Annotated[float, Field(gt=0, le=1)]
NonEmpty = Annotated[str, Field(min_length=1)]
Engine = Literal["native", "igraph", "leidenalg", "microsoft"]


def _check_encoding(name: str, *other_names: str) -> str:
    """Raise ValueError unless the name is a text encoding of Python or one of the other names."""
    try:
        "".encode("utf-8" if name in other_names else name)
    except LookupError:
        examples = ", ".join([*other_names, "utf-8", "utf-16 or cp1252"])
        raise ValueError(f"{name!r} is not an encoding; try {examples}") from None
    return name


Encoding = Annotated[str, AfterValidator(_check_encoding)]
EncodingOrAuto = Annotated[str, AfterValidator(lambda name: _check_encoding(name, "auto"))]


class LoadDocuments(Section):
    """Input files, and the meaning of their fields.

    A field of a nested record is named by a dotted path, such as `meta.title`.
    """

    folder: str = setting(
        "input", "Folder of the documents, relative to settings.yaml; or in a bucket, as output."
    )
    include: list[str] = setting(
        ["**/*"],
        "Patterns of the files to read, relative to the folder: * and ? match characters of a "
        "name, [ab] matches a or b, ** any folders. Files without text are skipped.",
    )
    exclude: list[str] = setting(
        [], "Patterns of files and folders to skip, such as drafts/ or **/*.log."
    )
    follow_links_outside: bool = setting(
        False, "Read what links in the folder lead to outside of it; else such links are skipped."
    )
    encoding: EncodingOrAuto = setting(
        "auto", "Encoding of text files; auto detects it; with a name, other files are not read."
    )
    ocr: Annotated[str, Field(pattern=r"^\w+(\+\w+)*$")] = setting(
        "auto",
        "Pages that are pictures are read by tesseract or the extra ocr: auto takes the language "
        "of the text around them; languages such as de+en are for all; none reads no pictures.",
    )
    text_column: str = setting(
        "text", "Records: the field that holds the text; *: a line for each field, as name: value."
    )
    title_column: str | None = setting("title", "Records and front matter: the field of the title.")
    id_column: str | None = setting(
        None, "Records: the field of a stable id; null: the id is derived from the text."
    )
    date_column: str | None = setting(
        "date", "Records and front matter: the field of the document's date."
    )
    metadata_columns: list[str] = setting(
        [], "Records and front matter: fields to copy to the text units."
    )


EntityField = Literal["id", "title", "type", "description", "aliases", "text_unit_ids"]
RelationshipField = Literal[
    "id", "source", "target", "weight", "type", "description", "text_unit_ids"
]
TextUnitField = Literal["id", "text", "document_id"]
DocumentField = Literal["id", "title", "text", "path", "creation_date"]


class ReadGraph(Section):
    """A graph of your own, in files beside settings.yaml; for the workflow from_graph."""

    entities: str | None = setting(
        None,
        "File of the entities: .parquet, .csv, .tsv or .graphml; null takes the ends of the "
        "relationships, or the nodes of the .graphml.",
    )
    relationships: str | None = setting(
        None, "File of the relationships, of the same types as entities; a .graphml may hold both."
    )
    text_units: str | None = setting(
        None,
        "File of the passages that prove entities and relationships: .parquet, .csv or .tsv; "
        "null: each row is its own evidence.",
    )
    documents: str | None = setting(
        None, "File of the documents that contain the passages of text_units; optional."
    )
    entity_columns: dict[EntityField, str | None] = setting(
        {},
        "Column of each field, if its name differs, such as {title: person}; null: not used. "
        "Fields: id, title, type, description, aliases and text_unit_ids.",
    )
    relationship_columns: dict[RelationshipField, str | None] = setting(
        {}, "Like entity_columns: id, source, target, weight, type, description, text_unit_ids."
    )
    text_unit_columns: dict[TextUnitField, str | None] = setting(
        {}, "Like entity_columns: id, text, document_id."
    )
    document_columns: dict[DocumentField, str | None] = setting(
        {}, "Like entity_columns: id, title, text, path, creation_date."
    )
    attributes: list[str] = setting(
        [],
        "Other columns of entities and relationships to add to the description, such as [born, "
        "country].",
    )
    add_missing_entities: bool = setting(
        False, "Add entities that only relationships name; false: such entities are an error."
    )
    encoding: Encoding = setting("utf-8", "Encoding of .csv and .tsv files.")
    max_tokens: int = setting(
        240, "Longest text unit of rows that are their own evidence, in tokens.", ge=8, le=1_000_000
    )


class DescribeFigures(Section):
    """Descriptions of figures of PDF files, slides and picture files, by a model that sees."""

    model: str = setting("chat", "Name of the model in `models`; it must take pictures.")
    max_words: int = setting(200, "Longest description, in words.", ge=10, le=1_000_000)
    max_figures: Positive = setting(
        50, "Figures of one document that are described: the first ones."
    )


class CreateTextUnits(Section):
    """Splitting of documents into text units."""

    max_tokens: int = setting(240, "Longest text unit, in tokens.", ge=8, le=1_000_000)
    overlap_tokens: int = setting(
        30,
        "Maximum tokens of whole sentences repeated from the end of the previous text unit.",
        ge=0,
        le=500_000,
    )
    encoding: Literal["o200k_base", "cl100k_base"] = setting(
        "o200k_base", "Tokenizer that counts the tokens."
    )

    @model_validator(mode="after")
    def _check_overlap(self) -> "CreateTextUnits":
        if self.overlap_tokens * 2 > self.max_tokens:
            raise ValueError("overlap_tokens must be at most half of max_tokens")
        return self


class ExtractGraphNlp(Section):
    """Names, terms and their relationships, found without a language model."""

    min_frequency: Positive = setting(1, "Minimum number of mentions of a name.")
    min_frequency_caseless: int = setting(
        3, "Minimum mentions of a name in scripts without capitals (Chinese, ...).", ge=2, le=_MAX
    )
    noun_phrases: bool = setting(True, "Also find terms in lower case, such as 'sea ice'.")
    min_frequency_noun_phrase: int = setting(3, "Minimum mentions of a noun phrase.", ge=2, le=_MAX)
    merge_variants: bool = setting(
        True, "Merge short, titled and inflected forms of a name where unambiguous."
    )
    max_links: int = setting(
        8, "Maximum number of following mentions to which a mention is linked.", ge=1, le=1_000
    )
    neighbour_weight: Share = setting(
        0.2, "Weight of a link between names in adjacent sentences; it is 1 in the same sentence."
    )
    min_evidence: float = setting(
        1.0, "Drop relationships whose links have a lower sum of weights.", ge=0
    )
    min_weight: float = setting(0.0, "Drop relationships with a lower final weight.", ge=0)


class FinalizeGraph(Section):
    """The final graph: degrees, and the layout of a drawing."""

    layout: bool = setting(True, "Compute the positions x and y of the entities.")
    seed: int = setting(42, "Seed of the layout.", ge=0, le=_MAX_SEED)


class CreateCommunities(Section):
    """The hierarchy of communities."""

    engine: Engine = setting("native", "Implementation of Leiden; see docs/settings.md.")
    quality: Literal["modularity", "cpm"] = setting(
        "modularity", "Quality measure to maximize; the engine microsoft knows modularity only."
    )
    resolution: float = setting(1.0, "Higher values give smaller communities.", gt=0, le=1_000_000)
    scale_resolution: bool = setting(
        True,
        "Modularity with over 1,000 entities: raise the resolution in proportion to their number, "
        "so that communities do not grow with the corpus.",
    )
    max_cluster_size: int = setting(
        10, "Communities with more entities are split again, one level down.", ge=2, le=_MAX
    )
    max_levels: int = setting(6, "Maximum number of levels, without themes.", ge=1, le=100)
    max_themes: int = setting(
        24,
        "If the graph gives more communities at its coarsest level, put levels of themes above "
        "them, with at most this many communities at the coarsest; 0 or 1: off. The engine "
        "microsoft has no themes.",
        ge=0,
        le=10_000,
    )
    iterations: int = setting(2, "Number of passes of the Leiden algorithm.", ge=1, le=1_000)
    min_component_size: Positive = setting(
        3, "Connected components with fewer entities are gathered into shared communities."
    )
    seed: int = setting(42, "Seed of the partition.", ge=0, le=_MAX_SEED)
    stability: Literal["keep", "rebuild"] = setting(
        "keep",
        "On an update: keep communities and their numbers, and move only entities that a change "
        "affects; or rebuild them as for a first index.",
    )
    max_drift: Share = setting(
        0.02, "Warn if a rebuild of the communities would raise the modularity by more than this."
    )

    @model_validator(mode="after")
    def _check_engine_and_quality(self) -> "CreateCommunities":
        if self.engine == "microsoft" and self.quality == "cpm":
            raise ValueError("the engine microsoft supports only the quality modularity")
        return self


class CreateCommunityReportsNlp(Section):
    """Community reports made of quoted sentences, without a language model."""

    max_findings: int = setting(6, "Findings of a report at most.", ge=1, le=1_000)
    max_sentences: int = setting(14, "Maximum sentences of a report.", ge=2, le=10_000)
    max_document_share: MoreThanNone = setting(
        0.5, "Maximum share of one document in the sentences from at least three documents."
    )


class GenerateTextEmbeddings(Section):
    """Vectors of text units, entities and reports."""

    model: str = setting(
        "static",
        "static, the table of this package; all-MiniLM-L6-v2, which is finer and needs the extra "
        "minilm; or the name of a "
        "model in `models`. See docs/embedding-models.md.",
    )
    min_indexed_rows: Annotated[int, Field(ge=1_024, le=_MAX)] | None = setting(
        16_384,
        "Rows from which a table of vectors gets an index for fast, approximate searches; null: "
        "no index, so that every search is exact. See docs/embedding-models.md.",
    )


class RelationshipType(Section):
    """A type of relationship, and the types of entities that it may join."""

    type: str = Field(min_length=1, description="Name of the type, such as employs.")
    source: str | None = setting(None, "Type of the source entity; null: any.")
    target: str | None = setting(None, "Type of the target entity; null: any.")


class Star(Section):
    """An entity for each document, linked to all entities of its text units."""

    key: str = setting("title", "Name of the entity: a metadata column of the document, or title.")
    type: str = setting("report", "Type of the entity.")
    relationship: str = setting("mentions", "Type of the relationships to the other entities.")


class ExtractGraph(Section):
    """Entities and relationships, extracted by a language model."""

    model: str = setting("chat", "Name of the model in `models`.")
    entity_types: list[str] = setting(
        [],
        "Types of entities; empty: the model chooses. A type that is added later is requested "
        "alone, a type that is removed disappears.",
    )
    relationship_types: list[RelationshipType | str] = setting(
        [],
        "Types of relationships: names, or {type, source, target} with the types of entities "
        "that they join; empty: the model chooses. Additions work likewise.",
    )
    strict: bool = setting(
        False, "Drop and count records of unlisted types; false: only prefer listed types."
    )
    max_gleanings: ZeroTo10 = setting(
        0,
        "How often to ask again for missed records, until a reply has none. Each costs one more "
        "call per text unit, and current models miss little.",
    )
    star: Star | None = setting(
        None, "Add an entity for each document, such as a report number, linked to its entities."
    )


class ResolveEntities(Section):
    """Merging of names of one thing: by people, by rules, and by a model if one is set."""

    file: NonEmpty = setting(
        "resolutions.yaml", "File of decisions by people, relative to settings.yaml; optional."
    )
    merge: bool = setting(True, "Merge names by rules; false: apply only the decisions of people.")
    merge_above: Share = setting(0.9, "Minimum score at which two names are merged.")
    doubt_above: Share = setting(
        0.7, "Minimum score of a doubtful pair, for people or a model to decide."
    )
    model: str | None = setting(
        None, "Name of the model in `models` that decides doubtful pairs; null: none."
    )
    max_questions: int = setting(
        1_000, "Maximum doubtful pairs for the model, highest scores first.", ge=0, le=10_000_000
    )
    max_embedded: int = setting(
        0,
        "Names to compare by vectors: the most frequent that match no other name; 0: none. "
        "Needs the model of generate_text_embeddings.",
        ge=0,
        le=50_000,
    )

    @model_validator(mode="after")
    def _check_score_limits(self) -> "ResolveEntities":
        if self.doubt_above > self.merge_above:
            raise ValueError("doubt_above must be at most merge_above")
        return self


class SummarizeDescriptions(Section):
    """One description for each entity and relationship, from those of its text units."""

    model: str = setting("chat", "Name of the model in `models`.")
    max_words: int = setting(150, "Longest summary, in words.", ge=10, le=1_000_000)
    max_input_tokens: Tokens = setting(
        4_000, "Maximum tokens of descriptions in one request; longer ones take several requests."
    )
    max_tokens_without_call: int = setting(
        60,
        "Descriptions with at most this many tokens in total are joined without a model call.",
        ge=0,
        le=1_000_000,
    )


class CreateCommunityReports(Section):
    """Community reports, written by a language model."""

    model: str = setting("chat", "Name of the model in `models`.")
    max_input_tokens: int = setting(
        8_000,
        "Context of one report, in tokens; for larger communities it holds reports of "
        "sub-communities. Never more than the context window of the model.",
        ge=400,
        le=1_000_000,
    )
    max_findings: int = setting(8, "Findings of a report at most.", ge=1, le=1_000_000)
    max_words: int = setting(600, "Maximum words of all findings.", ge=50, le=1_000_000)
    max_document_share: MoreThanNone = setting(
        0.5, "Maximum share of one document in the tokens of rows from at least three documents."
    )
    rewrite_above: Share = setting(
        0.2,
        "Rewrite a report when more than this share of its community's evidence has changed; 0: "
        "on any change. If a text that it cites is gone, it is rewritten in any case.",
    )


class ExtractCovariates(Section):
    """Claims about named things, extracted by a language model."""

    model: str = setting("chat", "Name of the model in `models`.")
    description: NonEmpty = setting(
        "what somebody or something is said to have done, caused, promised or suffered, "
        "and what is said against it, where that matters to whoever has to judge it.",
        "Which claims to extract, in words for the model.",
    )
    max_gleanings: ZeroTo10 = setting(
        0, "How often to ask again for missed claims, until a reply has none."
    )


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
