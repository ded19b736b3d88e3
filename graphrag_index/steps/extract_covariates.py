"""Extract claims about named things with a language model."""

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from graphrag_index import __version__
from graphrag_index.extraction.claims import CLAIMS_FORMAT, Claim, locate, merge_claims
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.request import Message, Request
from graphrag_index.schema.settings.step_sections import ExtractCovariates
from graphrag_index.schema.tables import TABLES, content_id
from graphrag_index.step import Progress, step
from graphrag_index.storage.memo import add_reply_hashes, batches, content_ids, reuse_rows
from graphrag_index.storage.table_store import Previous

logger = logging.getLogger(__name__)

TABLE = TABLES["text_unit_claims"]
# Text units per batch: bounds memory, not results.
BATCH_TEXT_UNITS = 4_096
# The value of `covariate_type`, as in Microsoft GraphRAG.
CLAIM = "claim"


@step(writes=["text_unit_claims", "covariates"], code_version=2)
def extract_covariates(
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: ExtractCovariates,
    chat_model: ChatModel,
    prompts: Prompts,
    previous: Previous,
    progress: Progress,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Extract the claims of each text unit.

    `subject_id` and `object_id` are names as the model writes them. `source_text` is always a
    passage of the text unit: the quotation, or the most similar sentence; a claim without such a
    sentence is dropped. A text unit whose request fails adds nothing; the ledger lists it. Rows
    of unchanged text units with the same replies are reused from the last version.

    Yields
    ------
    text_unit_claims
        One row per text unit.
    covariates
        One row per claim, ordered by text unit, then position; each claim of a text unit once.
    """
    ids = base_text_units.select("id").collect().to_series()
    progress.start(len(ids), "text units")
    prompt = _ClaimsPrompt(settings, prompts)
    prefix = _cache_key_prefix(settings, chat_model, prompt)
    input_hash = pl.Series([], dtype=pl.String)
    for batch in _text_units(base_text_units, documents):
        input_hash.append(content_ids(prefix, batch["text"]))
    kept, todo = reuse_rows(previous, TABLE, input_hash, replies=chat_model)
    progress.advance(kept.height)
    waiting: deque[_TextUnit] = deque()

    def requests() -> Iterator[Request]:
        for batch in _text_units(base_text_units, documents):
            for row in batch.filter(todo[batch["number"]]).iter_rows():
                unit = _TextUnit(*row)
                waiting.append(unit)
                yield prompt.request(unit)

    tables = _Tables(ids, kept, chat_model)
    rows: list[_Row] = []
    n_failed, end = 0, BATCH_TEXT_UNITS
    for outcome in chat_model.replies(requests()):
        unit = waiting.popleft()
        while unit.number >= end:
            yield tables.until(end, rows)
            rows, end = [], end + BATCH_TEXT_UNITS
        claims = merge_claims(outcome.values)
        found = _located(claims, unit.text)
        dropped = outcome.dropped + len(claims) - len(found)
        # A failed request is sent again when it is released.
        row_hash = "" if outcome.failure else input_hash[unit.number]
        rows.append((unit.number, row_hash, outcome.keys, dropped, found))
        n_failed += bool(outcome.failure)
        progress.advance()
    while tables.n_units < len(ids):
        yield tables.until(end, rows)
        rows, end = [], end + BATCH_TEXT_UNITS
    if n_failed or tables.n_dropped:
        logger.warning(
            "%d text units were not read to the end, %d claims of replies were invalid",
            n_failed,
            tables.n_dropped,
        )


def _cache_key_prefix(
    settings: ExtractCovariates, chat_model: ChatModel, prompt: "_ClaimsPrompt"
) -> str:
    """Hash the inputs that all text units share: model, prompts, settings and code."""
    parts = {
        "model": chat_model.settings.identity(),
        "prompts": [prompt.system["content"], prompt.continuing],
        "settings": settings.model_dump(mode="json"),
        "code": [__version__, extract_covariates.code_version],
    }
    return content_id(json.dumps(parts, sort_keys=True))


class _TextUnit(NamedTuple):
    """A text unit: the columns of `_text_units`."""

    number: int
    text: str
    label: str  # for people


# Number of the text unit, and its row of the table without the hashes of replies.
_Row = tuple[int, str, Sequence[str], int, Sequence[Claim]]


class _Tables:
    """Merges new and reused rows in the order of the text units."""

    def __init__(self, ids: pl.Series, kept: pl.DataFrame, chat_model: ChatModel) -> None:
        self._ids, self._kept, self._chat_model = ids, kept, chat_model
        self.n_units = self._n_claims = self.n_dropped = 0

    def until(self, end: int, rows: Sequence[_Row]) -> Mapping[str, pl.DataFrame]:
        """Return the next rows, up to the text unit `end`; `rows` are the new ones."""
        schema = {"at": pl.Int64, **TABLE.columns}
        del schema["reply_hashes"]
        new = add_reply_hashes(pl.DataFrame(rows, schema, orient="row"), self._chat_model)
        known = self._kept.filter(pl.col("at").is_between(self.n_units, end - 1))
        units = pl.concat([new.select(known.columns), known]).sort("at")
        self.n_units += units.height
        self.n_dropped += int(units["dropped"].sum())
        covariates = self._covariates(units)
        self._n_claims += covariates.height
        return {TABLE.name: units.drop("at"), "covariates": covariates}

    def _covariates(self, units: pl.DataFrame) -> pl.DataFrame:
        own_ids = units.select("claims", text_unit_id=self._ids.gather(units["at"]))
        claims = own_ids.filter(pl.col("claims").list.len() > 0).explode("claims").unnest("claims")
        parts = claims.select("text_unit_id", "subject", "object", "description")
        known = {
            name: pl.when(pl.col(name) != "").then(name)
            for name in ("object", "type", "start_date", "end_date")
        }
        return (
            claims.with_columns(
                id=content_ids("covariate", *parts),
                human_readable_id=self._n_claims + pl.int_range(claims.height),
                covariate_type=pl.lit(CLAIM),
                **known,
            )
            .rename({"subject": "subject_id", "object": "object_id"})
            .select(list(TABLES["covariates"].columns))
        )


class _ClaimsPrompt:
    """The requests about a text unit: a prompt, and gleanings after a reply."""

    def __init__(self, settings: ExtractCovariates, prompts: Prompts) -> None:
        self.max_gleanings = settings.max_gleanings
        # Equal for all text units, so that providers can cache it.
        system = prompts.fill("extract_covariates", {"description": settings.description})
        self.system = Message(role="system", content=system.strip())
        self.continuing = ""
        if settings.max_gleanings:
            self.continuing = prompts.fill("continue_covariates", {}).strip()

    def request(self, unit: _TextUnit) -> Request:
        user = Message(role="user", content=f"Passage:\n{unit.text}")
        return self._request(unit.label, [self.system, user], (), 0)

    def _request(
        self, label: str, messages: Sequence[Message], before: tuple[Claim, ...], n: int
    ) -> Request:
        then: Callable[[tuple[Claim, ...]], Request | None] | None = None
        if n < self.max_gleanings:

            def then(claims: tuple[Claim, ...]) -> Request | None:
                found = merge_claims((before, claims))
                if found == before:
                    return None
                reply = {"claims": [claim._asdict() for claim in claims]}
                more = [
                    *messages,
                    Message(role="assistant", content=json.dumps(reply, ensure_ascii=False)),
                    Message(role="user", content=self.continuing),
                ]
                return self._request(label, more, found, n + 1)

        return Request(label, messages, CLAIMS_FORMAT, then=then)


def _located(claims: Sequence[Claim], text: str) -> list[Claim]:
    """Return the claims with evidence in the text, in its order, with this as source text."""
    located = []
    for order, claim in enumerate(claims):
        place = locate(claim, text)
        if place is not None:
            located.append((*place, order, claim))
    return [claim._replace(source_text=text[start:end]) for start, end, _, claim in sorted(located)]


def _text_units(base_text_units: pl.LazyFrame, documents: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield the text units in batches, with the fields of `_TextUnit` as columns."""
    names = documents.select(
        document_id="id",
        name=pl.when(pl.col("path").fill_null("") != "").then("path").otherwise("title"),
    ).collect()
    columns = base_text_units.select("text", "document_id", "start_char", "end_char")
    label = pl.format("{}, characters {} to {}", "name", "start_char", "end_char")
    offset = 0
    for batch in batches(columns, BATCH_TEXT_UNITS):
        named = batch.join(names, on="document_id", how="left", maintain_order="left")
        labelled = named.with_row_index("number", offset).with_columns(label=label)
        yield labelled.select(_TextUnit._fields)
        offset += batch.height
