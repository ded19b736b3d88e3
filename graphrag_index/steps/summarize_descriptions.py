"""Summaries of the descriptions of entities and relationships, and values in descriptions."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, islice
from typing import Any

import polars as pl

from graphrag_index.extraction.graph_reply import REPLY_WORDS, clean_line
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts, TokenBudget, n_prompt_tokens
from graphrag_index.llm.request import (
    SHORTENED_SHARE,
    Message,
    Outcome,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    find_reply_field,
    object_schema,
    pair_outcomes,
)
from graphrag_index.schema.settings.step_sections import SummarizeDescriptions
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, step
from graphrag_index.storage.memo import (
    Flags,
    content_ids,
    make_reply_rows,
    read_batches,
    reuse_rows,
)
from graphrag_index.storage.table_store import Previous
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_nlp.list_columns import find_rows
from graphrag_nlp.text.languages import detect_language
from graphrag_nlp.text.sentences import split_sentences
from graphrag_nlp.text.values import find_dates, find_numbers

# Tokens reserved in a prompt for names, types and list markers.
N_RESERVED_PROMPT_TOKENS = 300
# Minimum tokens of the descriptions in a request that is shortened.
MIN_SHORTENED_TOKENS = 100
_SENTENCE_ENDINGS = (*".!?…。！？؟।", *"\"'”’»)")
TABLE = TABLES["description_summaries"]
# Number of rows per batch. The number limits memory and does not change the results.
BATCH_ROWS = 16_384
# A new row of the table: number, input hash, request keys, description.
_Row = tuple[int, str, Sequence[str], str]
_HAS_MULTIPLE_DESCRIPTIONS = pl.col("descriptions").list.len() > 1


class SummaryPrompt:
    """Builder of the requests about descriptions, and of the summary from their replies."""

    def __init__(
        self, settings: SummarizeDescriptions, prompts: Prompts, max_prompt_tokens: int
    ) -> None:
        self.settings = settings
        values = {"max_words": str(settings.max_words)}
        content = prompts.fill("summarize_descriptions", values).strip()
        # The system message is equal for all requests, so that providers can cache it.
        self.system = Message(role="system", content=content)
        room = max(max_prompt_tokens - n_prompt_tokens(content) - N_RESERVED_PROMPT_TOKENS, 2)
        self.max_tokens = min(settings.max_input_tokens, room)
        self.budget = TokenBudget(self.max_tokens, room)

    def needs_model_call(self, descriptions: Sequence[str]) -> bool:
        text, most = " ".join(descriptions), self.settings.max_tokens_without_call
        return self.budget.max_cost_of(text) > most and self.budget.cost_of(text) > most

    def cut_descriptions(self, descriptions: Sequence[str]) -> list[str]:
        """Cut long descriptions into pieces, so that any two pieces fit into one request."""
        size = self.max_tokens // 2
        return [piece for text in descriptions for piece in self._cut_text(text, size)]

    def build_request(
        self,
        about: str,
        pieces: Sequence[str],
        so_far: tuple[int, str] = (0, ""),
        max_tokens: int | None = None,
    ) -> Request:
        """Build a request with the summary of the first pieces, and as many further ones as fit.

        `so_far` has the number of these pieces and their summary; a reply becomes the next pair.
        """
        first, summary = so_far
        limit = max_tokens or self.max_tokens
        stop = self._find_end_of_pieces(pieces, first, summary, limit)
        shown = [*([summary] if summary else []), *pieces[first:stop]]
        if summary or limit < self.max_tokens:
            shown = [self._first_sentences(text, limit // 2) for text in shown]
        # A description is one line, so that its text cannot begin another one.
        listed = "\n".join(f"- {' '.join(text.split())}" for text in shown)
        user = Message(role="user", content=f"{about}\n\nDescriptions:\n{listed}")

        def next_request(so_far: tuple[int, str]) -> Request | None:
            return None if stop == len(pieces) else self.build_request(about, pieces, so_far)

        def shorten() -> Request | None:
            shorter = int(SHORTENED_SHARE * min(limit, sum(map(self.budget.cost_of, shown))))
            if shorter < MIN_SHORTENED_TOKENS:
                return None
            return self.build_request(about, pieces, so_far, shorter)

        label = f"description of {about.splitlines()[0].partition(': ')[2]}"
        format = replace(SUMMARY_FORMAT, read=partial(_read_summary, stop))
        return Request(label, [self.system, user], format, then=next_request, shorten=shorten)

    def final_summary(self, outcome: Outcome, pieces: Sequence[str]) -> str:
        """Return the last summary. After a failed request, append the pieces that it lacks."""
        first, summary = outcome.values[-1] if outcome.values else (0, "")
        if first >= len(pieces):
            return summary
        rest = join_descriptions([*([summary] if summary else []), *pieces[first:]])
        return self._first_sentences(rest, self.max_tokens)

    def _find_end_of_pieces(
        self, pieces: Sequence[str], first: int, summary: str, max_tokens: int
    ) -> int:
        """Return the end (exclusive) of the pieces in a request that begins with piece `first`."""
        texts = chain((summary,), islice(pieces, first, None))
        # Add three tokens per list item for its marker and line end.
        most = accumulate(self.budget.max_cost_of(text) + 3 for text in texts)
        if all(n_tokens <= max_tokens for n_tokens in most):
            return len(pieces)
        summary = self._first_sentences(summary, max_tokens // 2)
        n_tokens = self.budget.cost_of(summary) if summary else 0
        for stop in range(first, len(pieces)):
            n_tokens += self.budget.cost_of(pieces[stop]) + 3
            if n_tokens > max_tokens and stop > first:
                return stop
        return len(pieces)

    def _first_sentences(self, text: str, max_tokens: int) -> str:
        """Return the first sentences of a text that fit into `max_tokens`."""
        return next(self._cut_text(text, max_tokens), "")

    def _cut_text(self, text: str, max_tokens: int) -> Iterator[str]:
        """Yield parts of a text of at most `max_tokens`, cut between sentences where possible."""
        n_bytes = len(text.encode("utf-8", "replace"))
        if n_bytes <= max_tokens or self.budget.cost_of(text) <= max_tokens:
            yield text
            return
        sentences = _cut_long_sentences(text, max_tokens)
        yield from _join_while(sentences, lambda part: self.budget.cost_of(part) <= max_tokens)


def join_descriptions(descriptions: Sequence[str]) -> str:
    """Join the distinct descriptions. Add a full stop where one is missing."""
    if len(descriptions) < 2:
        return "".join(descriptions)
    distinct = dict.fromkeys(descriptions)
    return " ".join(text if text.endswith(_SENTENCE_ENDINGS) else f"{text}." for text in distinct)


def _cut_long_sentences(text: str, max_tokens: int) -> Iterator[str]:
    # Count characters instead of tokens: a text seldom has more tokens than characters.
    size = max(max_tokens // 2, 1)
    for start, end, _ in split_sentences(text):
        sentence = text[start:end]
        if len(sentence) <= size:
            yield sentence
            continue
        words = sentence.split()
        pieces = (word[at : at + size] for word in words for at in range(0, len(word), size))
        yield from _join_while(pieces, lambda part: len(part) <= size)


def _join_while(pieces: Iterable[str], fits: Callable[[str], bool]) -> Iterator[str]:
    """Join consecutive pieces with spaces into texts that fit, each as long as possible."""
    text = ""
    for piece in pieces:
        longer = f"{text} {piece}" if text else piece
        if text and not fits(longer):
            yield text
            longer = piece
        text = longer
    if text:
        yield text


def _read_summary(n_pieces: int, data: Any) -> ParsedReply:
    """Parse {"description": "..."} to (number of pieces in the summary, the summary).

    Raises `ReplyError` if the description is missing or empty.
    """
    data = find_reply_field(data, REPLY_WORDS["summary"])
    text = clean_line(data) if isinstance(data, str) else ""
    if not text:
        raise ReplyError("it must be an object with a description, which must not be empty")
    return ParsedReply((n_pieces, text))


SUMMARY_FORMAT = ReplyFormat(
    "description",
    object_schema({"description": {"type": "string"}}),
    partial(_read_summary, 0),
    'Reply with one JSON object and nothing else: {"description": "..."}',
)


@step(
    writes=["description_summaries", "described_entities", "described_relationships"],
    code_version=4,
)
def summarize_descriptions(
    extracted_entities: pl.LazyFrame,
    extracted_relationships: pl.LazyFrame,
    *,
    settings: SummarizeDescriptions,
    chat_model: ChatModel,
    prompts: Prompts,
    previous: Previous,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Summarize several descriptions of an entity or relationship into one description.

    Short descriptions are joined without a model. If the descriptions exceed `max_input_tokens`
    tokens, several requests are sent. Each further request contains the last summary and as many
    of the remaining descriptions as fit. If a request fails, the last summary and the remaining
    descriptions are joined. A summary of the last run is reused if its requests and replies are
    unchanged. `description_summaries` has one row for each entity or relationship with several
    descriptions. The described tables have the order of the extracted tables.
    """
    progress.start(None, "descriptions")
    prompt = SummaryPrompt(settings, prompts, chat_model.max_prompt_tokens)
    prefix = summarize_descriptions.prompt_hash(
        settings,
        chat_model.settings.identity(),
        prompt=prompt.system["content"],
        budget=[prompt.max_tokens, prompt.budget.room],
    )
    input_hash = pl.Series([], dtype=pl.String)
    for several in _select_several(extracted_entities, extracted_relationships):
        input_hash.append(content_ids(prefix, several["about"], several["descriptions"]))
    kept, todo = reuse_rows(previous, TABLE, input_hash, replies=chat_model)
    progress.advance(kept.height)
    # Rows that need no request, until the rows before them are complete.
    joined: deque[_Row] = deque()

    def requests() -> Iterator[tuple[tuple[int, Sequence[str]], Request]]:
        for several in _select_several(extracted_entities, extracted_relationships):
            new = several.filter(todo[several["at"]])
            for at, about, descriptions in new.select("at", "about", "descriptions").iter_rows():
                if prompt.needs_model_call(descriptions):
                    pieces = prompt.cut_descriptions(descriptions)
                    yield (at, pieces), prompt.build_request(about, pieces)
                else:
                    joined.append((at, input_hash[at], (), join_descriptions(descriptions)))

    def new_rows() -> Iterator[_Row]:
        for (at, pieces), outcome in pair_outcomes(chat_model, requests()):
            while joined and joined[0][0] < at:
                yield joined.popleft()
            description = prompt.final_summary(outcome, pieces)
            # Store an empty hash for a failed request, so that the next run does not reuse the row.
            yield at, "" if outcome.failure else input_hash[at], outcome.keys, description
        yield from joined

    rows = new_rows()
    tables = {
        "described_entities": extracted_entities,
        "described_relationships": extracted_relationships,
    }
    yield from _describe_tables(tables, kept, todo, rows, chat_model, progress)
    # Reach the end of the generator: there the model records which replies were used.
    surplus = next(rows, None)
    assert surplus is None


def _describe_tables(
    tables: Mapping[str, pl.LazyFrame],
    kept: pl.DataFrame,
    todo: Flags,
    new_rows: Iterator[_Row],
    chat_model: ChatModel,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Yield the tables with one description in each row, and the rows of the summaries.

    `kept` has the summaries of the last run. `todo` says which rows with several descriptions need
    a new one, and `new_rows` yields these in order.
    """
    pending, n_before = kept.clear(), 0
    for name, frame in tables.items():
        for batch in read_batches(frame, BATCH_ROWS, at_least_one=True):
            of_several = batch.select(_HAS_MULTIPLE_DESCRIPTIONS).to_series().arg_true()
            end = n_before + len(of_several)
            found = list(islice(new_rows, int(todo[n_before:end].sum())))
            progress.advance(len(found))
            new = make_reply_rows(TABLE, found, chat_model).select(kept.columns)
            known = kept.filter(pl.col("at").is_between(n_before, end - 1))
            summaries = pl.concat([new, known]).sort("at")
            n_before = end
            only = batch["descriptions"].list.first().fill_null(batch["description"])
            description = only.scatter(of_several, summaries["description"])
            described = batch.with_columns(description=description)
            yield {name: described.select(list(TABLES[name].columns))}
            # Write full row groups, so that the file does not depend on the batches.
            pending = pl.concat([pending, summaries], rechunk=True)
            n_full = pending.height - pending.height % ROW_GROUP_SIZE
            if n_full:
                yield {TABLE.name: pending[:n_full].drop("at")}
                pending = pending[n_full:]
    if pending.height:
        yield {TABLE.name: pending.drop("at")}


def _select_several(entities: pl.LazyFrame, relationships: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield rows with several descriptions: number `at`, `about` (name, type), descriptions."""
    titles = entities.select("human_readable_id", "title").collect()
    n_before = 0
    for frame, names, form in (
        (entities, ["title"], "Entity: {}"),
        (relationships, ["source", "target"], "Relationship: {} → {}"),
    ):
        for batch in read_batches(frame.select(*names, "type", "descriptions"), BATCH_ROWS):
            several = batch.filter(_HAS_MULTIPLE_DESCRIPTIONS)
            endpoints = [several[name] for name in names]
            if frame is relationships:
                rows = (find_rows(end, titles["human_readable_id"]) for end in endpoints)
                endpoints = [titles["title"].gather(row) for row in rows]
            name = pl.format(form, *endpoints)
            kind = pl.when(pl.col("type") != "").then("\nType: " + pl.col("type"))
            about = pl.concat_str(name, kind, ignore_nulls=True)
            yield several.select("descriptions", about=about).with_row_index("at", n_before)
            n_before += several.height


@step(writes=["entity_values"], code_version=3)
def normalize_values(entities: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Find the numbers, amounts and dates in the titles and descriptions of entities.

    Values with two possible readings are left out. Values are ordered by entity, then by field
    (title before description), then by start.
    """
    columns = entities.select("human_readable_id", "title", "description")
    for batch in read_batches(columns, BATCH_ROWS, at_least_one=True):
        rows = [
            (number, *value)
            for number, title, description in batch.iter_rows()
            for value in find_entity_values(title, description)
        ]
        yield pl.DataFrame(rows, TABLES["entity_values"].schema, orient="row")


def find_entity_values(title: str, description: str) -> list[tuple[object, ...]]:
    """Return one row per value of an entity, without the number of the entity."""
    if not any(letter.isdigit() for letter in title + description):
        return []
    language = detect_language(description or title)
    rows: list[tuple[object, ...]] = []
    for field, text in (("title", title), ("description", description)):
        found: list[tuple[int, int, tuple[object, ...]]] = []
        # Mask the dates, so that the digits of a date are not found as a number.
        rest = list(text)
        for start, end, first, last in find_dates(text, language):
            found.append((start, end, ("date", None, None, first, last)))
            rest[start:end] = "_" * (end - start)
        for start, end, kind, value, unit in find_numbers("".join(rest), language):
            found.append((start, end, (kind, value, unit, None, None)))
        for start, end, values in sorted(found, key=lambda place: place[0]):
            rows.append((field, *values, text[start:end], start, end))
    return rows
