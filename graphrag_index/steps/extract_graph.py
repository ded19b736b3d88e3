"""Extraction of entities and relationships with a language model."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import NamedTuple

import polars as pl

from graphrag_index.errors import join_counts
from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.graph_reply import clean_line, schema_from_settings
from graphrag_index.extraction.merging import (
    FINDINGS,
    UnitReplies,
    align_records,
    count_partitions,
    find_partitions,
    make_shards,
    merge_findings,
)
from graphrag_index.extraction.prompting import ExtractionPrompt, PassagePrompt, describe_document
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Request, pair_outcomes
from graphrag_index.schema.settings.step_sections import ExtractGraph, Star
from graphrag_index.schema.tables import READING
from graphrag_index.step import Progress, Shards, step
from graphrag_index.storage.memo import (
    Flags,
    add_reply_hashes,
    content_ids,
    read_batches,
    regroup_batches,
    reuse_rows,
)
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.text.document_dates import stated_date
from graphrag_nlp.text.normalize import title_key
from graphrag_nlp.text.subjects import HEAD_CHARS

logger = logging.getLogger(__name__)

# Number of rows per batch. The number limits memory and does not change the results.
BATCH_TEXT_UNITS = 4_096
BATCH_DOCUMENTS = 512


class _TextUnit(NamedTuple):
    """A text unit with the other inputs of its request."""

    number: int
    text: str
    source: str
    language: str
    subject: str  # lines of the prompt that tell what the document is about
    key: str  # name of the entity that stands for the document, see `Star`; may be empty
    label: str
    headings: str


@step(
    writes=[FINDINGS.name, "extracted_entities", "extracted_relationships", "extracted_mentions"],
    code_version=5,
)
def extract_graph(
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: ExtractGraph,
    chat_model: ChatModel,
    prompts: Prompts,
    previous: Previous,
    progress: Progress,
    shards: Shards,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Extract entities and relationships from each text unit, and merge them by name.

    Names that differ only in case, width and spacing are one entity. Its title and its type are
    the most frequent title and type. If a request fails, its text unit has no rows, and the ledger
    lists the request. If types were added to the settings, a model is asked only for the new types
    about text units that have replies already. Records of removed types are dropped. Rows of
    unchanged text units with the same replies are reused from the last version.

    Entities are in order of first mention, relationships in order of first evidence (one row per
    source, target and type). If a text unit does not contain the name of an entity, the mention is
    a sentence about the entity, or the whole text unit.
    """
    text_units = base_text_units.select("document_id", "start_char").collect()
    progress.start(text_units.height, "text units")
    prompt = ExtractionPrompt(
        schema_from_settings(settings), settings.max_gleanings, prompts, chat_model
    )
    read = partial(label_text_units, base_text_units, describe_documents(documents, settings.star))

    def hashes() -> pl.Series:
        """Return one hash per text unit, of all inputs of its request."""
        texts = [prompts.read_prompt(name) for name in ("extract_graph", "continue_extraction")]
        shared: dict[str, object] = {"prompts": texts}
        if not prompt.is_uniform:
            # Hash the entity types of earlier requests, because the requests depend on them.
            shared["history"] = [prompt.history.as_json(), prompts.read_prompt("add_types")]
        prefix = extract_graph.prompt_hash(settings, chat_model.settings.identity(), **shared)
        parts = (
            batch.select("texts", "language", "subject", "headings", "key") for batch in read()
        )
        nothing = pl.Series([], dtype=pl.String)
        return pl.concat([nothing, *(content_ids(prefix, *part) for part in parts)])

    input_hash, history = hashes(), prompt.history.as_json()
    kept, todo = reuse_rows(previous, FINDINGS, input_hash, replies=chat_model)
    kept = kept.rename({"at": "text_unit"})
    progress.advance(kept.height)

    def replies() -> Iterator[UnitReplies]:
        for unit, outcome in pair_outcomes(chat_model, _make_requests(read(), todo, prompt)):
            # Store an empty hash for a failed request, so that the next run does not reuse the row.
            row_hash = "" if outcome.failure else input_hash[unit.number]
            key = unit.key if outcome.values else ""
            made = row_hash, outcome.keys, outcome.dropped, prompt.merge_replies(outcome.values)
            progress.advance()
            about = unit.text, unit.source, unit.language, unit.subject
            yield UnitReplies(unit.number, *about, key, *made)

    schema = {"text_unit": pl.Int64, **FINDINGS.schema}
    del schema["reply_hashes"]
    n = count_partitions(text_units.height)
    with shards.open_partitions(n, schema) as new:
        for _, part in shards.map(align_records, make_shards(replies()), settings.star):
            new.append(part["findings"], find_partitions(part["findings"]))
        # The types that this run asked for are inputs of the requests of the next run.
        is_changed = not prompt.is_uniform and prompt.history.as_json() != history
        new_hash = hashes() if is_changed else None
        parts = (add_reply_hashes(new.read(number), chat_model) for number in range(n))
        findings = _add_kept_rows(parts, kept, new_hash)
        yield from merge_findings(regroup_batches(findings), text_units, shards)


def _add_kept_rows(
    parts: Iterable[pl.DataFrame], kept: pl.DataFrame, new_hash: pl.Series | None
) -> Iterator[pl.DataFrame]:
    """Yield the new and the kept rows of each partition in order, and count what is missing.

    `new_hash` has the hashes of the text units, if those of the new rows are out of date.
    """
    n_failed = n_dropped = 0
    for number, rows in enumerate(parts):
        if new_hash is not None:
            now = pl.when(pl.col("input_hash") != "").then(new_hash[rows["text_unit"]])
            rows = rows.with_columns(input_hash=now.otherwise(pl.lit("")))
        known = kept.filter(pl.Series(find_partitions(kept) == number))
        rows = pl.concat([rows.select(kept.columns), known]).sort("text_unit")
        n_failed += int((rows["input_hash"] == "").sum())
        n_dropped += int(rows["dropped"].sum())
        yield rows
    if lost := join_counts(text_units_not_read_to_the_end=n_failed, invalid_records=n_dropped):
        logger.warning("Lost: %s", lost)


def _make_requests(
    text_units: Iterable[pl.DataFrame], todo: Flags, prompt: ExtractionPrompt
) -> Iterator[tuple[_TextUnit, Request]]:
    for batch in text_units:
        rows = batch.select(_TextUnit._fields).filter(todo[batch["number"]])
        for row in rows.iter_rows():
            unit = _TextUnit(*row)
            passage = Passage(unit.text, unit.language, unit.subject)
            request = prompt.build_first_request(PassagePrompt(passage, unit.label, unit.headings))
            yield unit, request


def label_text_units(
    base_text_units: pl.LazyFrame, documents: pl.DataFrame
) -> Iterator[pl.DataFrame]:
    """Yield batches of text units with their `number` and a readable `label`.

    `text` is the reading of the text unit, and `source` has the characters of its document; `texts`
    has both if they differ.
    `documents` has the `document_id` and the `name` of each document. Its other columns are added
    to the text units.
    """
    label = pl.format("{}, characters {} to {}", "name", "start_char", "end_char")
    columns = ("document_id", "start_char", "end_char", "headings")
    number = pl.col("human_readable_id").alias("number")
    rows = base_text_units.select(*columns, number, text=READING, source="text")
    for batch in read_batches(rows, BATCH_TEXT_UNITS):
        named = batch.join(documents, on="document_id", how="left", maintain_order="left")
        both = pl.concat_str("text", "source", separator="\n\n")
        texts = pl.when(pl.col("text") == pl.col("source")).then("text").otherwise(both)
        yield named.with_columns(label=label, texts=texts)


def describe_documents(documents: pl.LazyFrame, star: Star | None = None) -> pl.DataFrame:
    """Return `document_id`, `language`, `subject`, `key` and `name` of each document.

    The subject are lines of a prompt; they and the key may be empty.
    """
    head = pl.col("text").str.slice(0, HEAD_CHARS)
    columns = documents.select(
        "id", "language", pl.col("title", "path").fill_null(""), head, "metadata", stated_date()
    )
    batches = read_batches(columns, BATCH_DOCUMENTS, has_long_texts=True)
    found = []
    for document_id, language, *about in chain.from_iterable(rows.iter_rows() for rows in batches):
        title, path, _, metadata, _ = about
        key = ""
        if star is not None:
            key = title if star.key == "title" else json.loads(metadata or "{}").get(star.key)
            key = clean_line("" if key is None else str(key))
        name = path or title
        if title and path and title not in path:
            name = f"{path} ({clean_line(title)})"
        subject = describe_document(*about)
        found.append((document_id, language, subject, key if title_key(key) else "", name))
    schema = dict.fromkeys(("document_id", "language", "subject", "key", "name"), pl.String)
    return pl.DataFrame(found, schema, orient="row")
