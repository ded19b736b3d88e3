"""Extract entities and relationships with a model, one text unit at a time."""

import json
import logging
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from graphrag_index.core.model_steps import ExtractGraph, Star
from graphrag_index.core.models.chat_model import ChatModel
from graphrag_index.core.models.request import Request
from graphrag_index.core.progress import Progress
from graphrag_index.core.prompts import Prompts
from graphrag_index.core.tables import title_key
from graphrag_index.extraction.alignment import Passage, Places
from graphrag_index.extraction.asking import Asked, Asking
from graphrag_index.extraction.graph import ExtractedGraph, TextUnit
from graphrag_index.extraction.records import Found, FoundEntity, FoundRelationship, clean
from graphrag_index.extraction.schemas import schema_of
from graphrag_index.step import step

logger = logging.getLogger(__name__)

# Rows read at once: bounds memory, not results.
BATCH_TEXT_UNITS = 1_024
BATCH_DOCUMENTS = 512


@step(writes=["extracted_entities", "extracted_relationships", "raw_mentions"], code_version=3)
def extract_graph(
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: ExtractGraph,
    chat_model: ChatModel,
    prompts: Prompts,
    progress: Progress,
) -> Mapping[str, pl.DataFrame]:
    """Ask a model what each text unit names and how it is related, and merge by name.

    Names that differ in case, width and spacing only are one entity: its title is the form
    that most text units give, its type the one that most give. A text unit whose request
    fails adds nothing; the ledger lists it. Where types were added to the settings, text units
    that have replies are asked for these alone; what has a type that was taken out is dropped.

    Returns
    -------
    extracted_entities
        One row per entity, in order of first mention.
    extracted_relationships
        One row per source, target and type, in order of first evidence.
    raw_mentions
        One row per place where a text unit names an entity. What it does not name is
        mentioned by a sentence about it, or by the whole text unit.
    """
    progress.start(base_text_units.select(pl.len()).collect().item(), "text units")
    asking = Asking(schema_of(settings), settings.max_gleanings, prompts, chat_model)
    waiting: deque[tuple[TextUnit, str]] = deque()

    def requests() -> Iterator[Request]:
        for unit, key, label, headings in _text_units(base_text_units, documents, settings.star):
            waiting.append((unit, key))
            yield asking.request(Asked(unit.passage, label, headings))

    graph = ExtractedGraph()
    n_failed = n_dropped = 0
    for outcome in chat_model.replies(requests()):
        unit, key = waiting.popleft()
        found = asking.together(outcome.values)
        places: Mapping[str, Places] = unit.passage.align(entity.name for entity in found.entities)
        if key and settings.star and outcome.values:
            found, places = _with_star(found, places, unit.passage, key, settings.star)
        graph.add(unit, found, places)
        n_failed += bool(outcome.failure)
        n_dropped += outcome.dropped
        progress.advance()
    if n_failed or n_dropped:
        logger.warning(
            "%d text units were not read to the end, %d records of replies were no good",
            n_failed,
            n_dropped,
        )
    return graph.tables()


def _with_star(
    found: Found, places: Mapping[str, Places], passage: Passage, key: str, star: Star
) -> tuple[Found, Mapping[str, Places]]:
    """Add the document's key, and a link from it to every other entity."""
    named = passage.find(key) or Places(((0, len(passage.text)),), False)
    others = {title_key(entity.name): entity.name for entity in found.entities}
    others.pop(title_key(key), None)
    return (
        Found(
            (FoundEntity(key, star.type), *found.entities),
            (
                *(
                    FoundRelationship(key, name, star.relationship, "", 1)
                    for name in others.values()
                ),
                *found.relationships,
            ),
        ),
        {**places, key: named},
    )


def _text_units(
    base_text_units: pl.LazyFrame, documents: pl.LazyFrame, star: Star | None
) -> Iterator[tuple[TextUnit, str, str, str]]:
    """Stream each text unit with its document's key, its name for people, and its headings."""
    known = _documents(documents, star)
    current, language, key, name = "", "", "", ""
    columns = base_text_units.select(
        "human_readable_id", "document_id", "start_char", "end_char", "text", "headings"
    )
    for row in _stream(columns, BATCH_TEXT_UNITS):
        number, document_id, start, end, text, headings = row
        while current != document_id:
            current, language, key, name = next(known)
        unit = TextUnit(number, document_id, start, Passage(text, language))
        yield unit, key, f"{name}, characters {start} to {end}", headings


def _documents(documents: pl.LazyFrame, star: Star | None) -> Iterator[tuple[str, str, str, str]]:
    """Stream id, language, key and name of each document; the key is empty if it has none."""
    columns = documents.select("id", "language", "title", "path", "metadata")
    for document_id, language, title, path, metadata in _stream(columns, BATCH_DOCUMENTS):
        key = ""
        if star is not None:
            key = title if star.key == "title" else json.loads(metadata or "{}").get(star.key)
            key = clean("" if key is None else str(key))
        name = path or title
        if title and path and title not in path:
            name = f"{path} ({clean(title)})"
        yield document_id, language, key if title_key(key) else "", name


def _stream(frame: pl.LazyFrame, size: int) -> Iterator[tuple[Any, ...]]:
    """Give the rows of a frame, a batch of which is in memory."""
    offset = 0
    while True:
        batch = frame.slice(offset, size).collect()
        yield from batch.iter_rows()
        if batch.height < size:
            return
        offset += size
