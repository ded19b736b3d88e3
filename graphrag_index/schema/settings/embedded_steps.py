"""Sections of the steps that need no language model, and of `graphrag-index check`."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from graphrag_index.schema.settings.section import Section, Share, check_encoding

# More rows than any corpus has; the numeric libraries use 32-bit integers.
_MAX = 1_000_000_000
# Every engine takes 32 bits; the seed of Microsoft's is 0xDEADBEEF.
_MAX_SEED = 2**32 - 1


class LoadDocuments(Section):
    """Input files, and the meaning of their fields.

    A field of a nested record is named by a dotted path, such as `meta.title`.
    """

    folder: str = Field("input", description="Folder of the documents, relative to settings.yaml.")
    include: list[str] = Field(
        ["**/*"],
        description="Patterns of the files to read, relative to the folder: * and ? match "
        "characters of a name, [ab] one of these, ** any folders. Files of unsupported types are "
        "skipped.",
    )
    exclude: list[str] = Field(
        [], description="Patterns of files and folders to skip, such as drafts/."
    )
    encoding: str = Field(
        "auto", description="Encoding of text files; auto detects it, a name is applied strictly."
    )
    text_column: str = Field("text", description="Records: the field that holds the text.")
    title_column: str | None = Field(
        "title", description="Records and front matter: the field of the title."
    )
    id_column: str | None = Field(
        None, description="Records: the field of a stable id; null derives it from the text."
    )
    date_column: str | None = Field(
        "date", description="Records and front matter: the field of the document's date."
    )
    metadata_columns: list[str] = Field(
        [], description="Records and front matter: fields to copy to the text units."
    )

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, name: str) -> str:
        return name if name == "auto" else check_encoding(name, "auto, utf-8, utf-16 or cp1252")


EntityField = Literal["id", "title", "type", "description", "aliases", "text_unit_ids"]
RelationshipField = Literal[
    "id", "source", "target", "weight", "type", "description", "text_unit_ids"
]
TextUnitField = Literal["id", "text", "document_id"]
DocumentField = Literal["id", "title", "text", "path", "creation_date"]


class ReadGraph(Section):
    """A graph of your own, in files beside settings.yaml; for the workflow from_graph."""

    entities: str | None = Field(
        None,
        description="File of the entities: .parquet, .csv, .tsv or .graphml; null takes the ends "
        "of the relationships, or the nodes of the .graphml.",
    )
    relationships: str | None = Field(
        None, description="File of the relationships, of the same types; a .graphml may hold both."
    )
    text_units: str | None = Field(
        None,
        description="File of the passages that are their evidence: .parquet, .csv or .tsv; with "
        "null each row is its own evidence.",
    )
    documents: str | None = Field(
        None, description="File of the documents that contain those passages; optional."
    )
    entity_columns: dict[EntityField, str | None] = Field(
        {},
        description="Column of each field, if its name differs, such as {title: person}; null: not "
        "used. Fields: id, title, type, description, aliases and text_unit_ids.",
    )
    relationship_columns: dict[RelationshipField, str | None] = Field(
        {},
        description="The same for id, source, target, weight, type, description and text_unit_ids.",
    )
    text_unit_columns: dict[TextUnitField, str | None] = Field(
        {}, description="The same for id, text and document_id."
    )
    document_columns: dict[DocumentField, str | None] = Field(
        {}, description="The same for id, title, text, path and creation_date."
    )
    attributes: list[str] = Field(
        [],
        description="Other columns of entities and relationships to add to the description, such "
        "as [born, country].",
    )
    add_missing_entities: bool = Field(
        False, description="Add entities that only relationships name; false refuses them."
    )
    encoding: str = Field("utf-8", description="Encoding of .csv and .tsv files.")
    max_tokens: int = Field(
        240,
        ge=8,
        le=1_000_000,
        description="Longest text unit of rows that are their own evidence, in tokens.",
    )

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, name: str) -> str:
        return check_encoding(name, "utf-8, utf-16 or cp1252")


class CreateTextUnits(Section):
    """Splitting of documents into text units."""

    max_tokens: int = Field(240, ge=8, le=1_000_000, description="Longest text unit, in tokens.")
    overlap_tokens: int = Field(
        30,
        ge=0,
        le=500_000,
        description="Whole sentences to repeat from the text unit before, up to so many tokens.",
    )
    encoding: Literal["o200k_base", "cl100k_base"] = Field(
        "o200k_base", description="Tokenizer that counts the tokens."
    )

    @model_validator(mode="after")
    def _overlap_is_smaller(self) -> "CreateTextUnits":
        if self.overlap_tokens * 2 > self.max_tokens:
            raise ValueError("overlap_tokens must be at most half of max_tokens")
        return self


class ExtractGraphNlp(Section):
    """Names, terms and their relationships, found without a language model."""

    min_frequency: int = Field(1, ge=1, le=_MAX, description="Fewest mentions of a name.")
    min_frequency_caseless: int = Field(
        3,
        ge=2,
        le=_MAX,
        description="The same in scripts without capital letters (Chinese, Arabic, ...).",
    )
    noun_phrases: bool = Field(
        True, description="Also find terms in lower case, such as 'sea ice'."
    )
    min_frequency_noun_phrase: int = Field(
        3, ge=2, le=_MAX, description="Fewest occurrences of such a term."
    )
    merge_variants: bool = Field(
        True, description="Merge short, titled and inflected forms of a name where unambiguous."
    )
    max_links: int = Field(
        8, ge=1, le=1_000, description="Each mention is linked to at most so many after it."
    )
    neighbour_weight: Share = Field(
        0.2, description="Weight of two names in neighbouring sentences; in one sentence it is 1."
    )
    min_evidence: float = Field(
        1.0, ge=0, description="Drop relationships whose sum of these weights is lower."
    )
    min_weight: float = Field(0.0, ge=0, description="Drop relationships of a lower weight.")


class FinalizeGraph(Section):
    """The final graph: degrees, and the layout of a drawing."""

    layout: bool = Field(True, description="Compute the positions x and y of the entities.")
    seed: int = Field(42, ge=0, le=_MAX_SEED, description="Seed of the layout.")


class CreateCommunities(Section):
    """The hierarchy of communities."""

    engine: Literal["native", "igraph", "leidenalg", "microsoft"] = Field(
        "native", description="Implementation of Leiden; see docs/settings.md."
    )
    quality: Literal["modularity", "cpm"] = Field(
        "modularity", description="Quality to maximize; microsoft supports modularity only."
    )
    resolution: float = Field(
        1.0, gt=0, le=1_000_000, description="Higher values give smaller communities."
    )
    scale_resolution: bool = Field(
        True,
        description="Modularity: above 1,000 entities raise the resolution in proportion to them, "
        "so that communities do not grow with the corpus.",
    )
    max_cluster_size: int = Field(
        10,
        ge=2,
        le=_MAX,
        description="Communities of more entities are split again one level down.",
    )
    max_levels: int = Field(6, ge=1, le=100, description="Deepest hierarchy.")
    iterations: int = Field(2, ge=1, le=1_000, description="Passes of Leiden.")
    min_component_size: int = Field(
        3, ge=1, le=_MAX, description="Smaller connected components are grouped into islands."
    )
    seed: int = Field(42, ge=0, le=_MAX_SEED, description="Seed of the partition.")
    stability: Literal["keep", "rebuild"] = Field(
        "keep",
        description="On an update: keep communities and their numbers, and move only entities that "
        "the change affects; or rebuild them as for a first index.",
    )
    max_drift: Share = Field(
        0.02, description="Warn if a rebuild would improve the modularity by more than this."
    )

    @model_validator(mode="after")
    def _engine_knows_the_quality(self) -> "CreateCommunities":
        if self.engine == "microsoft" and self.quality == "cpm":
            raise ValueError("the engine microsoft knows the quality modularity only")
        return self


class CreateCommunityReportsNlp(Section):
    """Community reports made of quoted sentences, without a language model."""

    max_findings: int = Field(6, ge=1, le=1_000, description="Findings of a report at most.")
    max_sentences: int = Field(
        14, ge=2, le=10_000, description="Sentences of evidence in a report at most."
    )


class GenerateTextEmbeddings(Section):
    """Vectors of text units, entities and reports."""

    model: str = Field(
        "all-MiniLM-L6-v2",
        description="all-MiniLM-L6-v2, which runs locally, or the name of a model in `models`.",
    )


class Check(Section):
    """Thresholds of `graphrag-index check`: counts, or shares (1.0: all)."""

    max_dangling_ids: int = Field(
        0, ge=0, le=_MAX, description="References to ids that do not exist."
    )
    max_duplicates: int = Field(
        0, ge=0, le=_MAX, description="Rows with the id, number, title or ends of another row."
    )
    max_unresolved_citations: int = Field(
        0, ge=0, le=_MAX, description="Citations in reports of rows that do not exist."
    )
    max_missing_vectors: int = Field(
        0, ge=0, le=_MAX, description="Texts without a vector, or with one of zeros."
    )
    max_stale_vectors: int = Field(
        0, ge=0, le=_MAX, description="Vectors of a text that has changed or is gone."
    )
    max_stale_search_tables: int = Field(
        0, ge=0, le=_MAX, description="Rows of search tables that differ from the tables."
    )
    max_uncovered_entities: Share = Field(
        1.0, description="Share of the entities in no community or report."
    )
    max_uncovered_documents: Share = Field(
        1.0, description="Share of the documents in no community or report."
    )
    max_missing_reports: Share = Field(
        1.0, description="Share of the communities without a report."
    )
    max_empty_reports: Share = Field(1.0, description="Share of the empty reports.")
    max_oversized_communities: Share = Field(
        1.0, description="Share of the leaf communities that are oversized."
    )
    oversized_above: int = Field(
        50, ge=1, le=_MAX, description="A leaf community with more entities is oversized."
    )
    max_equal_documents: Share = Field(
        1.0, description="Share of the documents with the text of another."
    )
