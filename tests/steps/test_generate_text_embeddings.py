"""Vectors, and the other tables that searches read."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from graphrag_index.schema.settings.step_sections import GenerateTextEmbeddings
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import SerialShards, Silent
from graphrag_index.steps.generate_text_embeddings import generate_text_embeddings
from graphrag_index.storage.memo import join_batches
from graphrag_index.storage.table_store import Previous, TableStore
from graphrag_index.storage.versions import StepRecord, Version


class LengthModel:
    """Embeds a text as its length; remembers what it was asked."""

    name = "lengths"
    dimension = 2
    identity: tuple[str, int | None] = ("lengths", None)

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed(self, texts: list[str], advance: object = None) -> npt.NDArray[np.float32]:
        self.asked += texts
        return np.array([[len(text), 1] for text in texts], np.float32).reshape(-1, 2)


def inputs(*texts: str) -> tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame]:
    units = pl.DataFrame(
        [
            {"id": f"u{n}", "human_readable_id": n, "document_id": "d", "text": text}
            | {"headings": "", "metadata": None, "reading": None}
            for n, text in enumerate(texts)
        ],
        schema={
            **{"id": pl.String, "human_readable_id": pl.Int64, "document_id": pl.String},
            **dict.fromkeys(("text", "headings", "metadata", "reading"), pl.String),
        },
    )
    entities = pl.DataFrame(
        {"id": ["e0"], "human_readable_id": [0], "title": ["Tom"], "type": ["person"]}
        | {"degree": [1], "description": ["A man."]}
    )
    reports = TABLES["community_reports"].empty()
    return units.lazy(), entities.lazy(), reports.lazy()


def embed(model: LengthModel, previous: Previous, *texts: str) -> dict[str, pl.DataFrame]:
    return embed_tables(model, previous, *inputs(*texts))


def embed_tables(
    model: LengthModel, previous: Previous, *given: pl.LazyFrame
) -> dict[str, pl.DataFrame]:
    batches = generate_text_embeddings(
        *given,
        settings=GenerateTextEmbeddings(model="lengths"),
        embedding_model=model,
        previous=previous,
        progress=Silent(),
        shards=SerialShards(),
    )
    return join_batches(batches)


def stored(output: Path, tables: dict[str, pl.DataFrame]) -> Previous:
    """Keep tables as a finished run would have."""
    store = TableStore(output)
    records = {}
    for name, frame in tables.items():
        with store.writer(1, TABLES[name], name) as writer:
            writer.append(frame)
        vectors = writer.stored.vectors
        made_by = vectors and replace(vectors, model="lengths", dimensions=None)
        records[name] = replace(writer.stored, vectors=made_by)
    step = StepRecord("generate_text_embeddings", "key", records)
    return Previous(store, Version(1, "w", "0", (step,), {}))


def test_text_units_entities_and_reports_are_embedded(tmp_path: Path) -> None:
    tables = embed(LengthModel(), Previous(TableStore(tmp_path), None), "one", "three")
    assert tables["text_unit_text"]["vector"].to_list() == [[3, 1], [5, 1]]
    assert tables["text_unit_vectors"]["vector"].to_list() == [[3, 1], [5, 1]]
    assert tables["entity_description"].select("text", "vector").rows() == [("Tom:A man.", [10, 1])]
    assert tables["community_full_content"].height == 0
    for name, frame in tables.items():
        assert frame.columns == list(TABLES[name].columns)


def test_known_texts_are_not_embedded_again(tmp_path: Path) -> None:
    first = embed(LengthModel(), Previous(TableStore(tmp_path), None), "one", "three")
    model = LengthModel()
    second = embed(model, stored(tmp_path, first), "new here", "three", "one")
    assert model.asked == ["new here"]
    assert second["text_unit_text"]["vector"].to_list() == [[8, 1], [5, 1], [3, 1]]


@pytest.mark.parametrize("identity", [("other", None), ("lengths", 2)])
def test_vectors_of_another_model_are_made_anew_and_a_sentence_says_so(
    identity: tuple[str, int | None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = embed(LengthModel(), Previous(TableStore(tmp_path), None), "one")
    assert not caplog.messages
    model = LengthModel()
    model.identity = identity
    embed(model, stored(tmp_path, first), "one")
    assert model.asked == ["one", "Tom:A man."]
    named = "other" if identity[0] == "other" else r"lengths \(2 dimensions\)"
    (message,) = caplog.messages
    assert re.fullmatch(
        r"Another model made the vectors of the last version \(lengths\): the model "
        rf"{named} embeds all texts again\.",
        message,
    )


def test_what_a_model_gave_no_vector_for_is_asked_again(tmp_path: Path) -> None:
    class Picky(LengthModel):
        def embed(self, texts: list[str], advance: object = None) -> npt.NDArray[np.float32]:
            vectors = super().embed(texts)
            vectors[[text == "bad" for text in texts]] = 0
            return vectors

    first = embed(Picky(), Previous(TableStore(tmp_path), None), "one", "bad", "three")
    assert first["text_unit_text"]["vector"].to_list() == [[3, 1], [0, 0], [5, 1]]
    previous = stored(tmp_path, first)
    model = LengthModel()
    second = embed(model, previous, "one", "bad", "three")
    assert model.asked == ["bad"]
    assert second["text_unit_text"]["vector"].to_list() == [[3, 1], [3, 1], [5, 1]]


def test_an_index_without_anything_gets_empty_tables(tmp_path: Path) -> None:
    tables = embed(LengthModel(), Previous(TableStore(tmp_path), None))
    assert tables["text_unit_text"].height == 0
    assert tables["text_unit_text"].schema["vector"] == pl.Array(pl.Float32, 2)


def test_without_reports_their_vectors_are_an_empty_table(tmp_path: Path) -> None:
    text_units, entities, _ = inputs("one")
    previous = Previous(TableStore(tmp_path), None)
    tables = embed_tables(LengthModel(), previous, text_units, entities)
    assert [frame.height for frame in tables.values()] == [1, 1, 1, 0]
    again = stored(tmp_path, tables)
    assert again.scan("community_full_content") is not None


def report_with(number: int) -> pl.DataFrame:
    schema = TABLES["community_reports"].schema
    row: dict[str, object] = dict.fromkeys(schema)
    row |= {"id": f"r{number}", "community": 1, "level": 0, "title": "Tom", "rank": 1.0}
    return pl.DataFrame(
        [{**row, "full_content": f"# Tom\n\nHe sailed [Data: Entities ({number})]."}], schema=schema
    )


def test_of_a_report_whose_citations_alone_changed_the_vector_is_kept(tmp_path: Path) -> None:
    model = LengthModel()

    def run(number: int, previous: Previous) -> dict[str, pl.DataFrame]:
        units, entities, _ = inputs("One [Data: Entities (7)].")
        return embed_tables(model, previous, units, entities, report_with(number).lazy())

    store = TableStore(tmp_path)
    first = run(4, Previous(store, None))
    # Citations of a document's own stay.
    assert model.asked == ["One [Data: Entities (7)].", "Tom:A man.", "# Tom\n\nHe sailed."]
    model.asked.clear()
    again = run(5, stored(tmp_path, first))
    assert model.asked == []
    assert again["community_full_content"]["text"].item().endswith("[Data: Entities (5)].")
