"""Read the replies that a project paid for into our ledger.

A reply is found by the request that Microsoft GraphRAG made, which needs the prompt and all of
its data. Two kinds of requests can be built again: the first one for each text unit, from the
prompt file and the table of text units, and those for vectors, from the tables. All others
cannot: the prompt for gleanings is in no file of a project, and descriptions and reports depend
on the state of a past run.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from graphrag_index.errors import GraphRAGError
from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.graph_reply import schema_of
from graphrag_index.extraction.prompting import ExtractionPrompt, PassagePrompt
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.embeddings import text_key
from graphrag_index.llm.ledger import Ledger
from graphrag_index.llm.parsing.reply import read_reply
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.registry import Models
from graphrag_index.llm.request import ReplyError
from graphrag_index.llm.request_chain import request_key
from graphrag_index.microsoft.migrate_cache import (
    ReplyCache,
    StepReplies,
    is_written_by,
    open_cache,
    text_batches,
)
from graphrag_index.microsoft.migrate_project import MicrosoftProject, UnsetVariableError
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.text.tokens import count_tokens, load_encoding

if TYPE_CHECKING:
    import numpy.typing as npt

# The steps whose replies we can use, by their names in the cache.
EXTRACTION, EMBEDDING = "extract_graph", "text_embedding"
# Their entity types where the settings name none.
_DEFAULT_TYPES = ["organization", "person", "geo", "event"]
# Their texts and tokens per embedding request where the settings say nothing.
_BATCH_TEXTS, _BATCH_TOKENS = 16, 8_191
# Why the replies to other steps are not used.
_UNUSED = {
    "summarize_descriptions": "the lists of descriptions that were summarized are not stored",
    "extract_claims": "their tuples of claims are not parsed here",
    "community_reporting": "their prompts are not stored; the reports are in the tables",
    "extract_noun_phrases": "no model was asked",
}


def read_cache(
    project: MicrosoftProject, settings: Settings, root: Path, prompts: Mapping[str, str]
) -> dict[str, StepReplies]:
    """Copy replies into the ledger of the project in `root`, under the requests of our steps.

    `prompts` are the original texts of the prompts that were taken over, by our names: only to
    those does the reply answer our request as well. Replies of other models are skipped.

    Returns
    -------
    replies
        What became of them, by the steps of the cache.
    """
    cache = open_cache(project)
    if cache is None:
        return {}
    steps = {}
    for step, (n_replies, n_known) in cache.steps().items():
        why = _UNUSED.get(step, "no step here sends such requests")
        if not n_known:
            why = "they are of a version before 3, which hashes requests differently"
        steps[step] = StepReplies(n_replies, why=why)
    tables = _tables_folder(project)
    extraction, embedding = steps.get(EXTRACTION), steps.get(EMBEDDING)
    if tables is None:
        for replies in (extraction, embedding):
            if replies is not None:
                replies.why = "the tables of its index are not there"
        return steps
    models = Models(settings.models, root / settings.output, check=False)
    try:
        if extraction is not None and EXTRACTION not in prompts:
            extraction.why = "the prompt that they answer was not taken over"
        elif extraction is not None:
            extraction.why = (
                "they answer a second request, whose prompt is not in the project, or "
                "another prompt or text than is there now"
            )
            reader = _ExtractionReader(project, settings, root, models, prompts[EXTRACTION])
            reader.read(cache, tables / "text_units.parquet", extraction)
        model = settings.models.get(settings.generate_text_embeddings.model)
        if embedding is not None and model is None:
            embedding.why = "the settings embed with a local model"
        elif embedding is not None and model is not None:
            embedding.why = "they belong to other texts than the tables have now"
            _read_vectors(project, cache, tables, settings, model, models.ledger, embedding)
    except (pl.exceptions.PolarsError, OSError) as error:
        said = " ".join(str(error).split())[:200].rstrip(".")
        raise GraphRAGError(
            f"The tables in {tables} cannot be read ({said}): mend them, or leave the cache with "
            "--no-cache."
        ) from error
    finally:
        models.close()
    return steps


def _tables_folder(project: MicrosoftProject) -> Path | None:
    """Return the folder of the index tables of version 3 or 2; None if there are none."""
    try:
        base = project.expand(project.get("output_storage.base_dir", "output.base_dir"))
    except UnsetVariableError:
        return None
    folder = project.root / str(base or "output")
    return folder if (folder / "text_units.parquet").is_file() else None


class _ExtractionReader:
    """Builds the first request for each text unit, theirs and ours."""

    def __init__(
        self,
        project: MicrosoftProject,
        settings: Settings,
        root: Path,
        models: Models,
        prompt: str,
    ) -> None:
        section = settings.extract_graph
        self.prompt, self.ledger, self.model_name = prompt, models.ledger, section.model
        types = project.expanded("extract_graph.entity_types")
        self.types = ",".join(map(str, types if isinstance(types, list) else _DEFAULT_TYPES))
        chat = models.chat(section.model, EXTRACTION)
        assert isinstance(chat, ChatModel)
        self.chat = chat
        # Without gleanings, since the replies to theirs cannot be found.
        self.asking = ExtractionPrompt(schema_of(section), 0, Prompts(root), chat)

    def read(self, cache: ReplyCache, path: Path, result: StepReplies) -> None:
        """Store the replies to the text units of a table in the ledger."""
        settings, number = self.chat.settings, -1
        for texts in text_batches(path, pl.col("text")):
            kept: dict[str, str] = {}
            for text in texts:
                number += 1
                response = cache.find(EXTRACTION, self._their_requests(text))
                if response is None:
                    continue
                if not is_written_by(response, settings):
                    result.n_other += 1
                    continue
                label = f"text unit {number}"
                request = self.asking.request(PassagePrompt(Passage(text), label, ""))
                reply = _complete_reply(response)
                try:
                    read_reply(reply, request.format)
                except ReplyError:
                    result.n_invalid += 1
                    continue
                key = request_key(request, settings)
                self.ledger.record_sent(key, EXTRACTION, label, self.model_name)
                kept[key] = reply
                result.n_used += 1
            self.ledger.record_replies(kept)

    def _their_requests(self, text: str) -> Iterator[Mapping[str, Any]]:
        """Yield the request in the forms of the releases of version 3."""
        try:
            content = self.prompt.format(entity_types=self.types, input_text=text.strip())
        except (KeyError, IndexError, ValueError):
            # They could not fill such a prompt either.
            return
        messages = [{"role": "user", "content": content}]
        yield {"messages": messages, "response_format": None}
        yield {"messages": messages}


def _complete_reply(response: Mapping[str, Any]) -> str:
    """Return the text of a reply; empty if it was cut off."""
    choices = response.get("choices")
    first: Any = choices[0] if isinstance(choices, list) and choices else {}
    if not isinstance(first, Mapping) or first.get("finish_reason") not in (None, "stop"):
        return ""
    message = first.get("message")
    text = message.get("content") if isinstance(message, Mapping) else None
    return text if isinstance(text, str) else ""


def _read_vectors(
    project: MicrosoftProject,
    cache: ReplyCache,
    tables: Path,
    settings: Settings,
    model: ModelSettings,
    ledger: Ledger,
    result: StepReplies,
) -> None:
    """Store the vectors of text units, entities and reports in the ledger.

    Both programs embed the same texts, but a reply of theirs answers for a batch of them.
    """

    def number(key: str, default: int) -> int:
        value = project.expanded(key)
        return value if isinstance(value, int) and value > 0 else default

    max_texts = number("embed_text.batch_size", _BATCH_TEXTS)
    max_tokens = number("embed_text.batch_max_tokens", _BATCH_TOKENS)
    # They divide so many rows into batches at a time.
    n_rows = max_texts * number("concurrent_requests", 25)
    name = settings.generate_text_embeddings.model
    columns = {
        "text_units": pl.col("text"),
        "entities": (pl.col("title") + ":" + pl.col("description")).alias("text"),
        "community_reports": pl.col("full_content"),
    }
    for table, column in columns.items():
        path = tables / f"{table}.parquet"
        if not path.is_file():
            continue
        for texts in text_batches(path, column, n_rows):
            for batch in _embedding_batches(texts, max_texts, max_tokens):
                response = cache.find(EMBEDDING, [{"input": batch}])
                if response is None:
                    continue
                if not is_written_by(response, model):
                    result.n_other += 1
                    continue
                replies = _vector_replies(response, batch, model)
                if replies is None:
                    result.n_invalid += 1
                    continue
                for text in batch:
                    unit = " ".join(text[:60].split())
                    ledger.record_sent(
                        text_key(text, model), "generate_text_embeddings", unit, name
                    )
                ledger.record_replies(replies)
                result.n_used += 1


def _embedding_batches(
    texts: Sequence[str], max_texts: int, max_tokens: int
) -> Iterator[list[str]]:
    """Divide texts into batches as Microsoft GraphRAG does, up to one that exceeds a batch."""
    # The encoding of OpenAI's embedding models.
    encoding = load_encoding("cl100k_base")
    batch: list[str] = []
    n_batch = 0
    for text in texts:
        n_tokens = count_tokens(text, encoding)
        if n_tokens > max_tokens:
            # They cut it into pieces that we do not know.
            return
        if not text:
            continue
        if batch and (len(batch) >= max_texts or n_batch + n_tokens > max_tokens):
            yield batch
            batch, n_batch = [], 0
        batch.append(text)
        n_batch += n_tokens
    if batch:
        yield batch


def _vector_replies(
    response: Mapping[str, Any], batch: Sequence[str], model: ModelSettings
) -> dict[str, str] | None:
    """Return the vectors of a batch as ledger entries; None if they do not fit the texts."""
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
