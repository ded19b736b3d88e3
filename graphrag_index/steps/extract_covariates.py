"""Extract claims about named things with a model, one text unit at a time."""

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import polars as pl

from graphrag_index.core.model_steps import ExtractCovariates
from graphrag_index.core.models.chat_model import ChatModel
from graphrag_index.core.models.request import Message, Request
from graphrag_index.core.progress import Progress
from graphrag_index.core.prompts import Prompts
from graphrag_index.core.tables import TABLES, content_id
from graphrag_index.extraction.claims import CLAIMS_FORMAT, Claim, locate, together
from graphrag_index.step import step

logger = logging.getLogger(__name__)

# Text units read, and claims written, at once: bounds memory, not results.
BATCH_TEXT_UNITS = 1_024
BATCH_CLAIMS = 4_096
# What `covariate_type` says, as Microsoft has it.
CLAIM = "claim"


@step(writes=["covariates"])
def extract_covariates(
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: ExtractCovariates,
    chat_model: ChatModel,
    prompts: Prompts,
    progress: Progress,
) -> Iterator[pl.DataFrame]:
    """Ask a model which claims each text unit makes.

    `subject_id` and `object_id` are names as the model gives them. `source_text` is always
    a passage of the text unit: the one that was quoted, or the sentence nearest to it; a claim
    of which the text unit says nothing is dropped. A text unit whose request fails adds
    nothing; the ledger lists it.

    Yields
    ------
    covariates
        One row per claim, ordered by text unit, then position; each claim of a text unit once.
    """
    progress.start(base_text_units.select(pl.len()).collect().item(), "text units")
    asking = _Asking(settings, prompts)
    waiting: deque[_TextUnit] = deque()

    def requests() -> Iterator[Request]:
        for unit in _text_units(base_text_units, documents):
            waiting.append(unit)
            yield asking.request(unit)

    rows: list[dict[str, object]] = []
    n_rows = n_failed = n_dropped = 0
    for outcome in chat_model.replies(requests()):
        unit = waiting.popleft()
        claims = together(outcome.values)
        found = _rows(unit, claims, n_rows)
        n_rows += len(found)
        rows += found
        n_failed += bool(outcome.failure)
        n_dropped += outcome.dropped + len(claims) - len(found)
        progress.advance()
        if len(rows) >= BATCH_CLAIMS:
            yield pl.DataFrame(rows, schema=TABLES["covariates"].schema)
            rows = []
    yield pl.DataFrame(rows, schema=TABLES["covariates"].schema)
    if n_failed or n_dropped:
        logger.warning(
            "%d text units were not read to the end, %d claims of replies were no good",
            n_failed,
            n_dropped,
        )


class _TextUnit(NamedTuple):
    id: str
    text: str
    label: str  # for people


class _Asking:
    """What is asked about a text unit, and what after a reply."""

    def __init__(self, settings: ExtractCovariates, prompts: Prompts) -> None:
        self.max_gleanings = settings.max_gleanings
        # The same for all text units, so that a provider's cache serves it.
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
                found = together((before, claims))
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


def _rows(unit: _TextUnit, claims: Sequence[Claim], n_before: int) -> list[dict[str, object]]:
    """Make the rows of the claims that a text unit makes, in order of position."""
    located = []
    for order, claim in enumerate(claims):
        place = locate(claim, unit.text)
        if place is not None:
            located.append((*place, order, claim))
    return [
        {
            "id": content_id("covariate", unit.id, claim.subject, claim.object, claim.description),
            "human_readable_id": number,
            "covariate_type": CLAIM,
            "type": claim.type or None,
            "description": claim.description,
            "subject_id": claim.subject,
            "object_id": claim.object or None,
            "status": claim.status,
            "start_date": claim.start_date or None,
            "end_date": claim.end_date or None,
            "source_text": unit.text[start:end],
            "text_unit_id": unit.id,
        }
        for number, (start, end, _, claim) in enumerate(sorted(located), n_before)
    ]


def _text_units(base_text_units: pl.LazyFrame, documents: pl.LazyFrame) -> Iterator[_TextUnit]:
    """Stream the text units, each with the name of its document and where it stands there."""
    names = documents.select(
        document_id="id",
        name=pl.when(pl.col("path").fill_null("") != "").then("path").otherwise("title"),
    ).collect()
    columns = base_text_units.select("id", "text", "document_id", "start_char", "end_char")
    for batch in _batches(columns):
        named = batch.join(names, on="document_id", how="left", maintain_order="left")
        for id, text, _, start, end, name in named.iter_rows():
            yield _TextUnit(id, text, f"{name}, characters {start} to {end}")


def _batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    offset = 0
    while (batch := rows.slice(offset, BATCH_TEXT_UNITS).collect()).height:
        yield batch
        offset += batch.height
