"""Replies that Microsoft GraphRAG paid for, into our ledger under the requests of ours.

A request there is known as far as prompt and text are known. What each text unit was asked
first can be rebuilt from the prompt file and the table of text units; which texts were
embedded together, from the tables. What was asked further cannot: the words of the second
question to a text unit are in no file of a project, and descriptions and reports were asked
for with what a parser of theirs and the clock of a run had put together.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import GraphRAGError
from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.prompting import Asked, Asking
from graphrag_index.extraction.schema_history import schema_of
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.parsing.reply import read_reply
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import ReplyError
from graphrag_index.llm.request_chain import request_key
from graphrag_index.microsoft.migrate_cache import (
    StepReplies,
    StoredReplies,
    is_by,
    stored_replies,
    texts_of,
)
from graphrag_index.microsoft.migrate_project import MicrosoftProject, UnsetVariableError
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.text.tokens import count_tokens, load_encoding

if TYPE_CHECKING:
    import numpy.typing as npt

# The name of the step in the cache, and here.
EXTRACTION = "extract_graph"
# What theirs asks where the settings name no types.
_TYPES = ["organization", "person", "geo", "event"]
# Why the replies to other steps are not used.
_UNKNOWN = {
    "summarize_descriptions": "the descriptions that were summarized together are kept nowhere",
    "extract_claims": "the tuples of claims there are not read here",
    "community_reporting": "what was shown of a community is kept nowhere; reports are in the "
    "tables",
    "extract_noun_phrases": "no model was asked",
}


@dataclass
class CacheResult:
    """What became of a cache, by the names that its steps have there."""

    steps: dict[str, StepReplies] = field(default_factory=dict)

    def lines(self) -> list[str]:
        return [replies.line(step) for step, replies in self.steps.items()]


def read_cache(
    project: MicrosoftProject,
    settings: Settings,
    root: Path,
    prompts: Mapping[str, str],
) -> CacheResult:
    """Look up what our steps would ask about the texts of an index of theirs.

    A reply goes into the ledger of the project in `root` under the request that our step makes
    of the same text unit, with the prompt that was taken over: only then is it what that
    request would have been answered with. `prompts` are theirs as they stand there, by our
    names. Texts of other tables, and replies that another model wrote, are left alone.
    """
    stored = stored_replies(project)
    result = CacheResult()
    if stored is None:
        return result
    for step, (n_there, n_known) in stored.steps().items():
        why = _UNKNOWN.get(step, "no step here asks the same")
        if not n_known:
            why = "they are of a version before 3, which knows requests by other hashes"
        result.steps[step] = StepReplies(n_there, why=why)
    tables = _tables_folder(project)
    extraction, embedding = result.steps.get(EXTRACTION), result.steps.get(EMBEDDING)
    if tables is None:
        for replies in (extraction, embedding):
            if replies is not None:
                replies.why = "the tables of its index are not there"
        return result
    models = Models(settings.models, root / settings.output, check=False)
    try:
        if extraction is not None:
            if EXTRACTION not in prompts:
                extraction.why = "the prompt that they answer was not taken over"
            else:
                extraction.why = (
                    "they answer a second question, whose words are not in the project, or "
                    "another prompt or text than is there now"
                )
                own = _Extraction(project, settings, root, models, prompts[EXTRACTION])
                own.read(stored, tables / "text_units.parquet", extraction)
        model = settings.models.get(settings.generate_text_embeddings.model)
        if embedding is not None:
            embedding.why = "they hold other texts than the tables have now"
            if model is None:
                embedding.why = "this index is embedded by the model of this machine"
            else:
                read_vectors(project, stored, tables, settings, model, models.ledger, embedding)
    except (pl.exceptions.PolarsError, OSError) as error:
        said = " ".join(str(error).split())[:200].rstrip(".")
        raise GraphRAGError(
            f"The tables in {tables} cannot be read ({said}): mend them, or leave the cache with "
            "--no-cache."
        ) from error
    finally:
        models.close()
    return result


def _tables_folder(project: MicrosoftProject) -> Path | None:
    """Return where the tables of an index lie, of version 3 or 2."""
    try:
        base = project.expand(project.get("output_storage.base_dir", "output.base_dir"))
    except UnsetVariableError:
        return None
    folder = project.root / str(base or "output")
    return folder if (folder / "text_units.parquet").is_file() else None


class _Extraction:
    """The first question to each text unit, theirs and ours."""

    def __init__(
        self,
        project: MicrosoftProject,
        settings: Settings,
        root: Path,
        models: Models,
        prompt: str,
    ) -> None:
        section = settings.extract_graph
        self.prompt, self.ledger = prompt, models.ledger
        try:
            types = project.expand(project.get("extract_graph.entity_types"))
        except UnsetVariableError:
            types = None
        self.types = ",".join(map(str, types if isinstance(types, list) else _TYPES))
        self.name = section.model
        chat = models.chat(section.model, EXTRACTION)
        assert isinstance(chat, ChatModel)
        self.chat = chat
        # Their second question is not ours, so that none follows here.
        self.asking = Asking(schema_of(section), 0, Prompts(root), chat)

    def read(self, stored: StoredReplies, path: Path, result: StepReplies) -> None:
        """Keep the reply to each text unit of a table."""
        settings = self.chat.settings
        for texts in texts_of(path, "text"):
            kept: dict[str, str] = {}
            for number, text in texts:
                response = stored.find(EXTRACTION, self._requests(text))
                if response is None:
                    continue
                if not is_by(response, settings):
                    result.n_other += 1
                    continue
                label = f"text unit {number}"
                request = self.asking.request(Asked(Passage(text), label, ""))
                reply = _whole_reply(response)
                try:
                    read_reply(reply, request.format)
                except ReplyError:
                    result.n_unread += 1
                    continue
                key = request_key(request, settings)
                self.ledger.record_sent(key, EXTRACTION, label, self.name)
                kept[key] = reply
                result.n_used += 1
            self.ledger.record_replies(kept)

    def _requests(self, text: str) -> Iterator[Mapping[str, Any]]:
        """Give the request as each release of version 3 makes it."""
        try:
            content = self.prompt.format(entity_types=self.types, input_text=text.strip())
        except (KeyError, IndexError, ValueError):
            # With such a place nothing was asked there.
            return
        messages = [{"role": "user", "content": content}]
        yield {"messages": messages, "response_format": None}
        yield {"messages": messages}


def _whole_reply(response: Mapping[str, Any]) -> str:
    """Return the text of a reply; empty if it was cut off."""
    choices = response.get("choices")
    first: Any = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(first, Mapping) or first.get("finish_reason") not in (None, "stop"):
        return ""
    message = first.get("message")
    text = message.get("content") if isinstance(message, Mapping) else None
    return text if isinstance(text, str) else ""


# The name of the step in the cache.
EMBEDDING = "text_embedding"
# Texts and tokens of one request where the settings say nothing.
_BATCH, _BATCH_TOKENS = 16, 8_191


def read_vectors(
    project: MicrosoftProject,
    stored: StoredReplies,
    tables: Path,
    settings: Settings,
    model: ModelSettings,
    ledger: Ledger,
    result: StepReplies,
) -> None:
    """Keep the vectors of what was embedded together: text units, entities, reports."""
    described = pl.col("title") + ":" + pl.col("description")
    columns: list[tuple[str, str | pl.Expr]] = [
        ("text_units", "text"),
        ("entities", described.alias("text")),
        ("community_reports", pl.col("full_content").alias("text")),
    ]
    name = settings.generate_text_embeddings.model
    sizes = _batch_sizes(project)
    for table, column in columns:
        path = tables / f"{table}.parquet"
        if not path.is_file():
            continue
        for texts in texts_of(path, column, sizes.flush):
            for batch in _batches([text for _, text in texts], sizes):
                response = stored.find(EMBEDDING, _embedding_requests(batch))
                if response is None:
                    continue
                if not is_by(response, model):
                    result.n_other += 1
                    continue
                replies = _vectors(response, batch, model)
                if replies is None:
                    result.n_unread += 1
                    continue
                for text in batch:
                    unit = " ".join(text[:60].split())
                    ledger.record_sent(
                        text_key(text, model), "generate_text_embeddings", unit, name
                    )
                ledger.record_replies(replies)
                result.n_used += 1


@dataclass(frozen=True)
class _Sizes:
    """Texts and tokens of one request, and how many texts are divided at a time."""

    texts: int
    tokens: int
    flush: int


def _batch_sizes(project: MicrosoftProject) -> _Sizes:
    def number(key: str, default: int) -> int:
        try:
            value = project.expand(project.get(key))
        except UnsetVariableError:
            value = None
        return value if isinstance(value, int) and value > 0 else default

    texts = number("embed_text.batch_size", _BATCH)
    tokens = number("embed_text.batch_max_tokens", _BATCH_TOKENS)
    return _Sizes(texts, tokens, texts * number("concurrent_requests", 25))


def _batches(texts: Sequence[str], sizes: _Sizes) -> Iterator[list[str]]:
    """Divide texts as they were divided there, as far as no text is longer than a request."""
    # Embedding models of OpenAI count so.
    encoding = load_encoding("cl100k_base")
    batch: list[str] = []
    n_batch = 0
    for text in texts:
        n_tokens = count_tokens(text, encoding)
        if n_tokens > sizes.tokens:
            # It was cut into pieces, of which nothing is known.
            return
        if not text:
            continue
        if batch and (len(batch) >= sizes.texts or n_batch + n_tokens > sizes.tokens):
            yield batch
            batch, n_batch = [], 0
        batch.append(text)
        n_batch += n_tokens
    if batch:
        yield batch


def _embedding_requests(batch: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    yield {"input": list(batch)}


def _vectors(
    response: Mapping[str, Any], batch: Sequence[str], model: ModelSettings
) -> dict[str, str] | None:
    """Return the vectors of a batch as the ledger keeps them, by key; None if they do not fit."""
    import numpy as np

    try:
        rows = sorted(response["data"], key=lambda row: row["index"])
        vectors: list[npt.NDArray[np.float32]] = [
            np.asarray(row["embedding"], np.float32) for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        return None
    if len(vectors) != len(batch) or len({vector.shape for vector in vectors}) != 1:
        return None
    replies = {}
    for text, vector in zip(batch, vectors, strict=True):
        length = float(np.linalg.norm(vector))
        if vector.ndim != 1 or not np.isfinite(length) or not length:
            return None
        data = (vector / np.float32(length)).astype(np.float32).tobytes()
        replies[text_key(text, model)] = base64.b64encode(data).decode()
    return replies
