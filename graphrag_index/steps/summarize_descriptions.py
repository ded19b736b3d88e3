"""Make one description out of the several that text units gave an entity or relationship."""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np
import polars as pl

from graphrag_index import __version__
from graphrag_index.core.content_ids import content_ids
from graphrag_index.core.lists import positions
from graphrag_index.core.model_steps import SummarizeDescriptions
from graphrag_index.core.models.chat_model import ChatModel
from graphrag_index.core.models.request import (
    Message,
    Outcome,
    Reading,
    ReplyError,
    ReplyFormat,
    Request,
)
from graphrag_index.core.progress import Progress
from graphrag_index.core.prompts import Prompts
from graphrag_index.core.rendered_rows import Budget, n_prompt_tokens
from graphrag_index.core.sentences import split_sentences
from graphrag_index.core.table_store import Previous
from graphrag_index.core.tables import TABLES, content_id
from graphrag_index.extraction.earlier import earlier_rows, with_replies
from graphrag_index.extraction.records import clean
from graphrag_index.resolution.applying import Assignments
from graphrag_index.step import step

TABLE = TABLES["description_summaries"]
# Rows read at once: bounds memory, not results.
BATCH_ROWS = 16_384
# What a prompt needs besides instructions and descriptions: names, types, marks.
MARGIN = 300
_HAS_SEVERAL = pl.col("descriptions").list.len() > 1
_DESCRIPTION = ("description", "summary", "text")
_STOPS = (*".!?…。！？؟।", *"\"'”’»)")


@step(writes=["description_summaries", "raw_entities", "raw_relationships"], code_version=4)
def summarize_descriptions(
    extracted_entities: pl.LazyFrame,
    extracted_relationships: pl.LazyFrame,
    entity_assignments: pl.DataFrame | None = None,
    *,
    settings: SummarizeDescriptions,
    chat_model: ChatModel,
    prompts: Prompts,
    previous: Previous,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Ask a model for one description where there are several; short ones are joined.

    More descriptions than `max_input_tokens` allows are folded: each further request has the
    summary so far and as many others as fit. Where a request fails, the summary so far and
    the descriptions that are not in it are joined. What resolve_entities merged is described
    together. A description of the last run is taken over where what was asked and the replies
    are what they were.

    Yields
    ------
    description_summaries
        One row for each description that was made of several.
    raw_entities, raw_relationships
        Batch by batch, in the order of the tables that they are made of.
    """
    progress.start(None, "descriptions")
    resolved = Assignments(entity_assignments)
    if not resolved.is_empty:
        extracted_entities = resolved.entities(extracted_entities.collect()).lazy()
        links = resolved.relationships(extracted_relationships.collect(), merge=True)
        extracted_relationships = links.lazy()
    writing = _Writing(settings, prompts, chat_model.max_prompt_tokens)
    alike = _alike(settings, chat_model, writing)
    made_from = pl.Series([], dtype=pl.String)
    for several in _several(extracted_entities, extracted_relationships):
        made_from.append(content_ids(alike, several["about"], several["descriptions"]))
    earlier = earlier_rows(previous, TABLE, "at", made_from, chat_model)
    is_known = np.zeros(len(made_from), bool)
    is_known[earlier["at"].to_numpy()] = True
    progress.advance(earlier.height)
    rows: list[tuple[int, str, Sequence[str], str]] = []
    waiting: deque[tuple[int, Sequence[str]]] = deque()

    def requests() -> Iterator[Request]:
        for several in _several(extracted_entities, extracted_relationships):
            new = several.filter(~is_known[several["at"]])
            for at, about, descriptions in new.select("at", "about", "descriptions").iter_rows():
                if writing.needs_call(descriptions):
                    pieces = writing.pieces(descriptions)
                    waiting.append((at, pieces))
                    yield writing.request(about, pieces)
                else:
                    rows.append((at, made_from[at], (), join(descriptions)))
                    progress.advance()

    for outcome in chat_model.replies(requests()):
        at, pieces = waiting.popleft()
        description = writing.description(outcome, pieces)
        # What failed is asked for again, once it is released.
        rows.append((at, "" if outcome.failure else made_from[at], outcome.keys, description))
        progress.advance()
    schema = {"at": pl.Int64, **TABLE.columns}
    del schema["replies"]
    summaries = with_replies(pl.DataFrame(rows, schema, orient="row"), chat_model)
    summaries = pl.concat([summaries.select(earlier.columns), earlier]).sort("at")
    yield {TABLE.name: summaries.drop("at")}
    n_before = 0
    for name, frame in (
        ("raw_entities", extracted_entities),
        ("raw_relationships", extracted_relationships),
    ):
        for batch in _batches(frame):
            only = batch["descriptions"].list.first().fill_null("")
            of_several = batch.select(_HAS_SEVERAL).to_series().arg_true()
            made = summaries["description"].slice(n_before, len(of_several))
            n_before += len(made)
            described = batch.with_columns(description=only.scatter(of_several, made))
            yield {name: described.select(list(TABLES[name].columns))}


def _alike(settings: SummarizeDescriptions, chat_model: ChatModel, writing: "_Writing") -> str:
    """Hash what all requests have alike: model, prompt, settings and code."""
    parts = {
        "model": chat_model.settings.identity(),
        "prompt": writing.system["content"],
        "budget": [writing.max_tokens, writing.budget.room],
        "settings": settings.model_dump(mode="json"),
        "code": [__version__, summarize_descriptions.code_version],
    }
    return content_id(json.dumps(parts, sort_keys=True))


class _Writing:
    """What is asked about descriptions, and what is made of the replies."""

    def __init__(
        self, settings: SummarizeDescriptions, prompts: Prompts, max_prompt_tokens: int
    ) -> None:
        self.settings = settings
        values = {"max_words": str(settings.max_words)}
        content = prompts.fill("summarize_descriptions", values).strip()
        # The same for all requests, so that a provider's cache serves it.
        self.system = Message(role="system", content=content)
        room = max(max_prompt_tokens - n_prompt_tokens(content) - MARGIN, 2)
        self.max_tokens = min(settings.max_input_tokens, room)
        self.budget = Budget(self.max_tokens, room)

    def count(self, text: str) -> int:
        """Return what a text takes of `max_tokens`."""
        return self.budget.cost_of(text)

    def needs_call(self, descriptions: Sequence[str]) -> bool:
        text, most = " ".join(descriptions), self.settings.max_tokens_without_call
        return self.budget.most_of(text) > most and self.count(text) > most

    def pieces(self, descriptions: Sequence[str]) -> list[str]:
        """Cut descriptions that are too long, so that two of any fit into a request."""
        return [
            piece for text in descriptions for piece in self._cut(text, self.max_tokens // 2)
        ]  # fmt: skip

    def request(
        self, about: str, pieces: Sequence[str], first: int = 0, summary: str = ""
    ) -> Request:
        """Ask for a summary of as many pieces from `first` on as fit, with what is summarized."""
        stop = self._stop(pieces, first, summary)
        shown = [*([self._beginning(summary)] if summary else []), *pieces[first:stop]]
        listed = "\n".join(f"- {text}" for text in shown)
        user = Message(role="user", content=f"{about}\n\nDescriptions:\n{listed}")

        def then(value: str) -> Request | None:
            return self.request(about, pieces, stop, value) if stop < len(pieces) else None

        label = f"description of {about.splitlines()[0].partition(': ')[2]}"
        return Request(label, [self.system, user], FORMAT, then=then)

    def description(self, outcome: Outcome, pieces: Sequence[str]) -> str:
        """Return the last summary, with what it does not yet hold if a request failed."""
        first, summary = 0, ""
        for value in outcome.values:
            first, summary = self._stop(pieces, first, summary), value
        if first >= len(pieces):
            return summary
        rest = join([*([summary] if summary else []), *pieces[first:]])
        return self._beginning(rest, self.max_tokens)

    def _stop(self, pieces: Sequence[str], first: int, summary: str) -> int:
        """Return the piece before which a request that begins with `first` ends."""
        texts = chain((summary,), islice(pieces, first, None))
        # Three for the mark and the line end of a list item.
        most = accumulate(self.budget.most_of(text) + 3 for text in texts)
        if all(n_tokens <= self.max_tokens for n_tokens in most):
            return len(pieces)
        n_tokens = self.count(self._beginning(summary)) if summary else 0
        for stop in range(first, len(pieces)):
            n_tokens += self.count(pieces[stop]) + 3
            if n_tokens > self.max_tokens and stop > first:
                return stop
        return len(pieces)

    def _beginning(self, text: str, max_tokens: int | None = None) -> str:
        """Return what of a text fits, in whole sentences; by default into half of a request."""
        return next(self._cut(text, max_tokens or self.max_tokens // 2), "")

    def _cut(self, text: str, max_tokens: int) -> Iterator[str]:
        """Cut a text at its sentences, and these anywhere if they are too long."""
        if len(text.encode("utf-8", "replace")) <= max_tokens or self.count(text) <= max_tokens:
            yield text
            return
        piece = ""
        for sentence in _short_sentences(text, max_tokens):
            longer = f"{piece} {sentence}".strip()
            if piece and self.count(longer) > max_tokens:
                yield piece
                longer = sentence
            piece = longer
        if piece:
            yield piece


def join(descriptions: Sequence[str]) -> str:
    """Put descriptions behind each other, each with a full stop where it ends without any."""
    if len(descriptions) < 2:
        return "".join(descriptions)
    return " ".join(
        text if text.endswith(_STOPS) else f"{text}." for text in dict.fromkeys(descriptions)
    )


def _short_sentences(text: str, max_tokens: int) -> Iterator[str]:
    """Give the sentences of a text, those that may be too long in parts."""
    # A token is hardly ever longer than a word of four letters, nor are there more than letters.
    size = max(max_tokens // 2, 1)
    for start, end, _ in split_sentences(text):
        sentence = text[start:end]
        if len(sentence) <= size:
            yield sentence
            continue
        words = ""
        for word in sentence.split(" "):
            if words and len(words) + len(word) >= size:
                yield words
                words = ""
            words = f"{words} {word}".strip()
            while len(words) > size:
                yield words[:size]
                words = words[size:]
        if words:
            yield words


def _several(entities: pl.LazyFrame, relationships: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Stream what has several descriptions: its number among such, what it is, and these."""
    n_before = 0
    for named in chain(_named_entities(entities), _named_relationships(entities, relationships)):
        kind = pl.when(pl.col("type") != "").then("\nType: " + pl.col("type")).otherwise(pl.lit(""))
        several = named.select("descriptions", about=pl.concat_str("name", kind))
        yield several.with_row_index("at", n_before)
        n_before += several.height


def _named_entities(entities: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    for batch in _batches(entities.select("title", "type", "descriptions")):
        yield batch.filter(_HAS_SEVERAL).with_columns(name=pl.format("Entity: {}", "title"))


def _named_relationships(
    entities: pl.LazyFrame, relationships: pl.LazyFrame
) -> Iterator[pl.DataFrame]:
    titles = entities.select("human_readable_id", "title").collect()
    for batch in _batches(relationships.select("source", "target", "type", "descriptions")):
        several = batch.filter(_HAS_SEVERAL)
        ends = [
            titles["title"].gather(positions(several[end], titles["human_readable_id"]))
            for end in ("source", "target")
        ]
        name = pl.format("Relationship: {} → {}", *ends)
        yield several.with_columns(name=name)


def _batches(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Give the rows of a frame in batches; at least one."""
    offset = 0
    while True:
        batch = frame.slice(offset, BATCH_ROWS).collect()
        if batch.height or not offset:
            yield batch
        if batch.height < BATCH_ROWS:
            return
        offset += BATCH_ROWS


def _read(data: Any) -> Reading:
    """Read {"description": "..."}, with a few liberties.

    Raises
    ------
    ReplyError
        There is no text.
    """
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    if isinstance(data, Mapping):
        fields = {str(key).strip().lower(): value for key, value in data.items()}
        data = next((fields[name] for name in _DESCRIPTION if name in fields), None)
    text = clean(data) if isinstance(data, str) else ""
    if not text:
        raise ReplyError("it must be an object with a description, which must not be empty")
    return Reading(text)


FORMAT = ReplyFormat(
    "description",
    {
        "type": "object",
        "properties": {"description": {"type": "string"}},
        "required": ["description"],
        "additionalProperties": False,
    },
    _read,
    'Reply with one JSON object and nothing else: {"description": "..."}',
)
