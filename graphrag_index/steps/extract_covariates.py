"""Extraction of claims about entities with a language model."""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from graphrag_index.errors import join_counts
from graphrag_index.extraction.graph_reply import MAX_NAME_CHARS, REPLY_WORDS, clean_line
from graphrag_index.extraction.prompting import format_subject
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.prompts import Prompts, quote_text
from graphrag_index.llm.request import (
    Message,
    ParsedReply,
    ReplyError,
    ReplyFormat,
    Request,
    ask_in_parts,
    object_schema,
    pair_outcomes,
)
from graphrag_index.schema.settings.step_sections import ExtractCovariates
from graphrag_index.schema.tables import TABLES
from graphrag_index.step import Progress, step
from graphrag_index.steps.extract_graph import (
    BATCH_TEXT_UNITS,
    describe_documents,
    label_text_units,
)
from graphrag_index.storage.memo import content_ids, make_reply_rows, reuse_rows
from graphrag_index.storage.table_store import Previous
from graphrag_nlp.text.lines import locate
from graphrag_nlp.text.normalize import title_key
from graphrag_nlp.text.sentences import find_quotation, split_sentences

# Parts of a quotation with fewer characters are not searched, because they may match anywhere.
MIN_QUOTED_CHARS = 12
_KEYS_OF_FIELD: dict[str, list[str]] = REPLY_WORDS["claims"]
_STATUSES = {word: status for status, words in REPLY_WORDS["statuses"].items() for word in words}
_QUOTE_MARKS = "\"'“”„«»‘’` "
_OMISSION_MARK = re.compile(r"\s*(?:\.\.\.|…|\[\.\.\.\]|##)\s*")


class Claim(NamedTuple):
    """A claim in a reply. Unknown values are empty strings."""

    subject: str
    object: str
    type: str
    status: str
    start_date: str
    end_date: str
    description: str
    source_text: str


# The JSON Schema of each field of a claim.
_SCHEMA_OF_FIELD = {
    **{name: {"type": "string"} for name in Claim._fields},
    **{name: {"type": ["string", "null"]} for name in ("object", "start_date", "end_date")},
    "status": {"type": "string", "enum": ["TRUE", "FALSE", "SUSPECTED"]},
}


def read_claims(data: Any) -> ParsedReply:
    """Parse the claims in a reply; accept other field names, and one claim without a list.

    Raises `ReplyError` if there is no list of claims, or no claim has a subject and a description.
    """
    if isinstance(data, Mapping):
        lists = (data.get(key) for key in REPLY_WORDS["claim_lists"])
        one = [data] if any(key in data for key in _KEYS_OF_FIELD["subject"]) else None
        data = next((value for value in lists if isinstance(value, list)), one)
    if not isinstance(data, list):
        raise ReplyError('it holds no list "claims"')
    claims = list(filter(None, map(_read_claim, data)))
    if data and not claims:
        raise ReplyError("none of its claims has a subject and a description")
    # Drop repeated claims: a model may repeat one claim many times.
    return ParsedReply(tuple(dict.fromkeys(claims)), len(data) - len(claims))


CLAIMS_FORMAT = ReplyFormat(
    "claims",
    object_schema({"claims": {"type": "array", "items": object_schema(_SCHEMA_OF_FIELD)}}),
    read_claims,
    REPLY_WORDS["instructions"]["claims"],
)


def _read_claim(record: object) -> Claim | None:
    if not isinstance(record, Mapping):
        return None
    values = {name: _first_known_value(record, keys) for name, keys in _KEYS_OF_FIELD.items()}
    ends = {name: values[name].strip(_QUOTE_MARKS) for name in ("subject", "object")}
    is_too_long = max(map(len, ends.values())) > MAX_NAME_CHARS
    if not ends["subject"] or not values["description"] or is_too_long:
        return None
    status = _STATUSES.get(values["status"].casefold(), "SUSPECTED")
    return Claim(**values | ends | {"status": status})


def _first_known_value(record: Mapping[str, object], keys: Sequence[str]) -> str:
    """Return the first value of the fields `keys` as one line of text; "" if all are missing."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, list):
            value = " … ".join(part for part in value if isinstance(part, str))
        if isinstance(value, str | int | float):
            text = clean_line(str(value))
            if text.casefold() not in REPLY_WORDS["missing"]:
                return text
    return ""


def merge_claims(replies: Iterable[Sequence[Claim]]) -> tuple[Claim, ...]:
    """Merge the claims in all replies about one text unit, and keep each claim once."""
    claims: dict[tuple[str, ...], Claim] = {}
    for claim in chain.from_iterable(replies):
        key = tuple(map(title_key, (claim.subject, claim.object, claim.description)))
        claims.setdefault(key, claim)
    return tuple(claims.values())


def locate_evidence(claim: Claim, text: str) -> tuple[int, int] | None:
    """Return the span of a claim's evidence: the quotation, or the most similar sentence.

    The similarity is the share of common letter trigrams. Returns None if no sentence has a
    trigram in common with the claim.
    """
    quoted = claim.source_text.strip(_QUOTE_MARKS)
    for part in (quoted, *_OMISSION_MARK.split(quoted)):
        if len(part) >= MIN_QUOTED_CHARS or part == quoted:
            at = text.find(part) if part else -1
            if at >= 0:
                return at, at + len(part)
            if found := find_quotation(part, text):
                return found
    words = _letter_trigrams(" ".join((quoted, claim.subject, claim.object, claim.description)))
    best, best_share = None, 0.0
    for start, end, _ in split_sentences(text):
        own = _letter_trigrams(text[start:end])
        share = 2 * len(own & words) / max(1, len(own) + len(words))
        if share > best_share:
            best, best_share = (start, end), share
    return best


def _letter_trigrams(text: str) -> set[str]:
    """Return the letter trigrams of a text. Inflected forms of a word share most trigrams."""
    folded = title_key(text)
    return {folded[at : at + 3] for at in range(len(folded) - 2) if " " not in folded[at : at + 3]}


logger = logging.getLogger(__name__)

TABLE = TABLES["text_unit_claims"]
# (number of the text unit, hash of its input, keys of its replies, dropped claims, claims)
_ReplyRow: TypeAlias = tuple[int, str, Sequence[str], int, Sequence[Claim]]


@step(writes=["text_unit_claims", "covariates"], code_version=6)
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

    `subject_id` and `object_id` are names in the spelling of the model. `source_text` is always a
    passage of the text unit: the quotation, or the sentence that is most similar to it. If no
    sentence is similar, the claim is dropped. If a request fails, its text unit has no claims, and
    the ledger lists the request. Rows of unchanged text units with the same replies are reused
    from the last version. Covariates are ordered by text unit, then by position, without
    duplicates.
    """
    ids = base_text_units.select("id").collect().to_series()
    progress.start(len(ids), "text units")
    described = describe_documents(documents)
    prompt = _ClaimsPrompt(settings, prompts)
    prefix = extract_covariates.prompt_hash(
        settings,
        chat_model.settings.identity(),
        prompts=[prompt.system["content"], prompt.continuing],
    )
    input_hash = pl.Series([], dtype=pl.String)
    for batch in label_text_units(base_text_units, described):
        input_hash.append(content_ids(prefix, batch["texts"], batch["subject"]))
    kept, todo = reuse_rows(previous, TABLE, input_hash, replies=chat_model)
    progress.advance(kept.height)

    def requests() -> Iterator[tuple[tuple[int, str, str], Request]]:
        for batch in label_text_units(base_text_units, described):
            columns = ("number", "text", "source", "subject", "label")
            new = batch.filter(todo[batch["number"]]).select(columns)
            for number, text, source, subject, label in new.iter_rows():
                build = partial(prompt.first_request, label, format_subject(subject, text))
                yield (number, text, source), ask_in_parts(build, text)

    def new_rows() -> Iterator[_ReplyRow]:
        for (number, text, source), outcome in pair_outcomes(chat_model, requests()):
            claims = merge_claims(outcome.values)
            found = _locate_claims(claims, text, source)
            dropped = outcome.dropped + len(claims) - len(found)
            # Store an empty hash for a failed request, so that the next run does not reuse the row.
            row_hash = "" if outcome.failure else input_hash[number]
            progress.advance()
            yield number, row_hash, outcome.keys, dropped, found

    n_failed = n_dropped = n_claims = 0
    for start, batch_rows in _group_by_batch(new_rows(), len(ids)):
        new = make_reply_rows(TABLE, batch_rows, chat_model)
        known = kept.filter(pl.col("at").is_between(start, start + BATCH_TEXT_UNITS - 1))
        units = pl.concat([new.select(kept.columns), known]).sort("at")
        n_failed += int((units["input_hash"] == "").sum())
        n_dropped += int(units["dropped"].sum())
        covariates = _make_covariates(units, ids, n_claims)
        n_claims += covariates.height
        yield {TABLE.name: units.drop("at"), "covariates": covariates}
    if lost := join_counts(text_units_not_read_to_the_end=n_failed, invalid_claims=n_dropped):
        logger.warning("Lost: %s", lost)


def _group_by_batch(rows: Iterator[_ReplyRow], n: int) -> Iterator[tuple[int, list[_ReplyRow]]]:
    """Group rows by batches of `n` text units; yield (first number of a batch, its rows)."""
    row = next(rows, None)
    for start in range(0, n, BATCH_TEXT_UNITS):
        batch = []
        while row is not None and row[0] < start + BATCH_TEXT_UNITS:
            batch.append(row)
            row = next(rows, None)
        yield start, batch


def _make_covariates(units: pl.DataFrame, ids: pl.Series, n_before: int) -> pl.DataFrame:
    """Return one row per claim of a batch of text units; `n_before` claims precede the batch."""
    own_ids = units.select("claims", text_unit_id=ids.gather(units["at"]))
    claims = own_ids.filter(pl.col("claims").list.len() > 0).explode("claims").unnest("claims")
    parts = claims.select("text_unit_id", "subject", "object", "description")
    known = {
        name: pl.when(pl.col(name) != "").then(name)
        for name in ("object", "type", "start_date", "end_date")
    }
    return (
        claims.with_columns(
            id=content_ids("covariate", *parts),
            human_readable_id=n_before + pl.int_range(claims.height),
            covariate_type=pl.lit("claim"),  # as in Microsoft GraphRAG
            **known,
        )
        .rename({"subject": "subject_id", "object": "object_id"})
        .select(list(TABLES["covariates"].columns))
    )


class _ClaimsPrompt:
    """Prompts for the claims of a text unit: a first request, and gleaning requests."""

    def __init__(self, settings: ExtractCovariates, prompts: Prompts) -> None:
        self.max_gleanings = settings.max_gleanings
        # The system message is equal for all text units, so that providers can cache it.
        system = prompts.fill("extract_covariates", {"description": settings.description})
        self.system = Message(role="system", content=system.strip())
        gleans = settings.max_gleanings > 0
        self.continuing = prompts.fill("continue_covariates", {}).strip() if gleans else ""

    def first_request(self, label: str, about: str, text: str) -> Request:
        """Return the first request about a text of which the lines `about` tell."""
        user = Message(role="user", content=f"{about}Passage:\n{quote_text(text)}")
        return self.request(label, [self.system, user])

    def request(
        self, label: str, messages: Sequence[Message], before: tuple[Claim, ...] = (), n: int = 0
    ) -> Request:
        """Return the request after `n` earlier requests, whose replies had the claims `before`."""

        def then(claims: tuple[Claim, ...]) -> Request | None:
            found = merge_claims((before, claims))
            if n == self.max_gleanings or found == before:
                return None
            reply = {"claims": [claim._asdict() for claim in claims]}
            more = [
                *messages,
                Message(role="assistant", content=json.dumps(reply, ensure_ascii=False)),
                Message(role="user", content=self.continuing),
            ]
            return self.request(label, more, found, n + 1)

        return Request(label, messages, CLAIMS_FORMAT, then=then)


def _locate_claims(claims: Sequence[Claim], text: str, source: str) -> list[Claim]:
    """Return the claims with evidence in the text, in the order of the evidence.

    The evidence replaces the `source_text` of a claim, in the characters of the `source`.
    """
    located = [
        (*place, order, claim)
        for order, claim in enumerate(claims)
        if (place := locate_evidence(claim, text))
    ]
    return [
        claim._replace(source_text=source[slice(*locate(text, source, start, end))])
        for start, end, _, claim in sorted(located)
    ]
