"""The settings of a graph that a user brings: its files, and what their columns mean."""

from typing import Literal

from pydantic import Field, field_validator

from graphrag_index.schema.settings.section import Section

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
        None,
        description="File of the relationships, of the same types; a .graphml may hold both.",
    )
    text_units: str | None = Field(
        None,
        description="File of passages that prove them: .parquet, .csv or .tsv; null lets each row "
        "prove itself.",
    )
    documents: str | None = Field(
        None, description="File of the documents in which those passages stand; may be left out."
    )
    entity_columns: dict[EntityField, str | None] = Field(
        {},
        description="Columns whose names do not say it, such as {title: person}; null: not used. "
        "There are id, title, type, description, aliases and text_unit_ids.",
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
        description="Other columns of entities and relationships that are told with the "
        "description, such as [born, country].",
    )
    add_missing_entities: bool = Field(
        False, description="Add the ends of relationships that are no entity, or refuse them."
    )
    encoding: str = Field("utf-8", description="Encoding of .csv and .tsv files.")
    max_tokens: int = Field(
        240,
        ge=8,
        le=1_000_000,
        description="Longest text unit of rows that prove themselves, in tokens.",
    )

    @field_validator("encoding")
    @classmethod
    def _encoding_is_known(cls, name: str) -> str:
        try:
            "".encode(name)
        except LookupError:
            raise ValueError(f"{name!r} is no encoding; try utf-8, utf-16 or cp1252") from None
        return name
