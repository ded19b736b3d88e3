"""Summarize the descriptions of each entity and relationship."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import polars as pl

from graphrag_index import __version__
from graphrag_index.extraction.summarization import SummaryPrompt, join_descriptions
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Request
from graphrag_index.schema.list_columns import positions
from graphrag_index.schema.settings.step_sections import SummarizeDescriptions
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Progress, step
from graphrag_index.storage.memo import add_reply_hashes, batches, content_ids, reuse_rows
from graphrag_index.storage.table_store import Previous

TABLE = TABLES["description_summaries"]
# Rows per batch: bounds memory, not results.
BATCH_ROWS = 16_384
_HAS_SEVERAL = pl.col("descriptions").list.len() > 1


@step(
    writes=["description_summaries", "described_entities", "described_relationships"],
    code_version=4,
)
def summarize_descriptions(
    extracted_entities: pl.LazyFrame,
    extracted_relationships: pl.LazyFrame,
    resolved_entities: pl.LazyFrame | None = None,
    resolved_relationships: pl.LazyFrame | None = None,
    *,
    settings: SummarizeDescriptions,
    chat_model: ChatModel,
    prompts: Prompts,
    previous: Previous,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Summarize several descriptions into one; short ones are joined without a model.

    If there are more than `max_input_tokens`, each further request has the summary so far and as
    many others as fit. If a request fails, the summary so far and the remaining descriptions are
    joined. What resolve_entities merged is described
    together; what rules described keeps its description. A description of the last run is
    reused where requests and replies are what they were.

    Yields
    ------
    description_summaries
        One row for each description that was made of several.
    described_entities, described_relationships
        Batch by batch, in the order of the tables that they are made of.
    """
    progress.start(None, "descriptions")
    if resolved_entities is not None:
        extracted_entities = resolved_entities
    if resolved_relationships is not None:
        extracted_relationships = resolved_relationships
    prompt = SummaryPrompt(settings, prompts, chat_model.max_prompt_tokens)
    prefix = _cache_key_prefix(settings, chat_model, prompt)
    input_hash = pl.Series([], dtype=pl.String)
    for several in _several(extracted_entities, extracted_relationships):
        input_hash.append(content_ids(prefix, several["about"], several["descriptions"]))
    kept, todo = reuse_rows(previous, TABLE, input_hash, replies=chat_model)
    progress.advance(kept.height)
    rows: list[tuple[int, str, Sequence[str], str]] = []
    waiting: deque[tuple[int, Sequence[str]]] = deque()

    def requests() -> Iterator[Request]:
        for several in _several(extracted_entities, extracted_relationships):
            new = several.filter(todo[several["at"]])
            for at, about, descriptions in new.select("at", "about", "descriptions").iter_rows():
                if prompt.needs_call(descriptions):
                    pieces = prompt.pieces(descriptions)
                    waiting.append((at, pieces))
                    yield prompt.request(about, pieces)
                else:
                    rows.append((at, input_hash[at], (), join_descriptions(descriptions)))
                    progress.advance()

    for outcome in chat_model.replies(requests()):
        at, pieces = waiting.popleft()
        description = prompt.description(outcome, pieces)
        # A failed request is sent again when it is released.
        rows.append((at, "" if outcome.failure else input_hash[at], outcome.keys, description))
        progress.advance()
    schema = {"at": pl.Int64, **TABLE.columns}
    del schema["reply_hashes"]
    summaries = add_reply_hashes(pl.DataFrame(rows, schema, orient="row"), chat_model)
    summaries = pl.concat([summaries.select(kept.columns), kept]).sort("at")
    yield {TABLE.name: summaries.drop("at")}
    n_before = 0
    for name, frame in (
        ("described_entities", extracted_entities),
        ("described_relationships", extracted_relationships),
    ):
        for batch in batches(frame, BATCH_ROWS, at_least_one=True):
            only = batch["descriptions"].list.first().fill_null(batch["description"])
            of_several = batch.select(_HAS_SEVERAL).to_series().arg_true()
            made = summaries["description"].slice(n_before, len(of_several))
            n_before += len(made)
            described = batch.with_columns(description=only.scatter(of_several, made))
            yield {name: described.select(list(TABLES[name].columns))}


def _cache_key_prefix(
    settings: SummarizeDescriptions, chat_model: ChatModel, prompt: SummaryPrompt
) -> str:
    """Hash the inputs that all requests share: model, prompt, settings and code."""
    parts = {
        "model": chat_model.settings.identity(),
        "prompt": prompt.system["content"],
        "budget": [prompt.max_tokens, prompt.budget.room],
        "settings": settings.model_dump(mode="json"),
        "code": [__version__, summarize_descriptions.code_version],
    }
    return content_id(json.dumps(parts, sort_keys=True))


def _several(entities: pl.LazyFrame, relationships: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield the things with several descriptions: a number, a name with type, and these."""
    n_before = 0
    for named in chain(_named_entities(entities), _named_relationships(entities, relationships)):
        kind = pl.when(pl.col("type") != "").then("\nType: " + pl.col("type")).otherwise(pl.lit(""))
        several = named.select("descriptions", about=pl.concat_str("name", kind))
        yield several.with_row_index("at", n_before)
        n_before += several.height


def _named_entities(entities: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    for batch in batches(entities.select("title", "type", "descriptions"), BATCH_ROWS):
        yield batch.filter(_HAS_SEVERAL).with_columns(name=pl.format("Entity: {}", "title"))


def _named_relationships(
    entities: pl.LazyFrame, relationships: pl.LazyFrame
) -> Iterator[pl.DataFrame]:
    titles = entities.select("human_readable_id", "title").collect()
    described = relationships.select("source", "target", "type", "descriptions")
    for batch in batches(described, BATCH_ROWS):
        several = batch.filter(_HAS_SEVERAL)
        ends = [
            titles["title"].gather(positions(several[end], titles["human_readable_id"]))
            for end in ("source", "target")
        ]
        name = pl.format("Relationship: {} → {}", *ends)
        yield several.with_columns(name=name)
