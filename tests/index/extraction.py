"""Texts in, what `extract_graph_nlp` finds in them out."""

from collections import Counter
from dataclasses import dataclass

import polars as pl

from graphrag_index.progress import Silent
from graphrag_index.schema.settings.settings import CreateTextUnits, ExtractGraphNlp
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.steps.create_text_units import create_text_units
from graphrag_index.steps.extract_graph_nlp import extract_graph_nlp
from tests.index.fake_model import EarlierTables


@dataclass
class Extraction:
    """The tables before and after the step, and the entities by title."""

    documents: pl.DataFrame
    text_units: pl.DataFrame
    entities: pl.DataFrame
    relationships: pl.DataFrame
    mentions: pl.DataFrame

    @property
    def titles(self) -> list[str]:
        return self.entities["title"].to_list()

    @property
    def types(self) -> dict[str, str]:
        return dict(self.entities.select("title", "type").iter_rows())

    @property
    def aliases(self) -> dict[str, set[str]]:
        rows = self.entities.select("title", "aliases").iter_rows()
        return {title: set(aliases) for title, aliases in rows}

    @property
    def mentioned(self) -> dict[str, int]:
        """How many places of the documents name each entity."""
        places = self.mentions.join(
            self.text_units.select("document_id", text_unit="human_readable_id"),
            on=pl.col("text_unit").cast(pl.Int64),
        ).select("entity", "document_id", "start_char", "end_char")
        counts = Counter(places.unique()["entity"].to_list())
        return {title: counts[number] for number, title in enumerate(self.titles)}

    def links(self) -> set[frozenset[str]]:
        ends = self.relationships.select("source", "target").iter_rows()
        return {frozenset((self.titles[a], self.titles[b])) for a, b in ends}


def input_documents(*texts: str) -> pl.DataFrame:
    rows = [
        {"id": content_id("document", str(n), text), "title": f"document {n}", "text": text}
        for n, text in enumerate(texts)
    ]
    nothing = {"creation_date": "", "raw_data": None, "path": "", "metadata": None}
    schema = TABLES["input_documents"].schema
    return pl.DataFrame([{**row, **nothing} for row in rows], schema=schema)


def extract(
    *texts: str,
    settings: ExtractGraphNlp | None = None,
    max_tokens: int = 240,
    overlap_tokens: int = 30,
) -> Extraction:
    """Run the two steps on texts, one document each."""
    cut = CreateTextUnits(max_tokens=max_tokens, overlap_tokens=overlap_tokens)
    batches = list(
        create_text_units(
            input_documents(*texts).lazy(),
            settings=cut,
            previous=EarlierTables(),
            progress=Silent(),
        )
    )
    documents, text_units, sentences = (
        pl.concat([batch[name] for batch in batches])
        for name in ("documents", "base_text_units", "sentences")
    )
    tables = extract_graph_nlp(
        documents.lazy(),
        text_units.lazy(),
        sentences,
        settings=settings or ExtractGraphNlp(),
        progress=Silent(),
    )
    assert isinstance(tables, dict)
    for name, frame in tables.items():
        assert frame.schema == TABLES[name].schema
    return Extraction(
        documents,
        text_units,
        tables["raw_entities"],
        tables["raw_relationships"],
        tables["raw_mentions"],
    )
