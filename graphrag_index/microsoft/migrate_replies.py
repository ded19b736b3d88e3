"""Transfer of paid replies from the cache of Microsoft GraphRAG to our ledger of replies.

Microsoft GraphRAG 3 stores each reply under a hash of its request, without the name of the model.
The request itself is not stored, so finding a reply means building the same request again, from
the prompt and all of its data. This is possible for two types of requests: the extraction request
of each text unit (from the prompt file and the table of text units), and requests for vectors (from
the tables). It is impossible for all other requests: the prompt for gleanings is in no file of a
project, and the requests for descriptions and reports depend on the state of a past run.
"""

import base64
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from graphrag_index.errors import GraphRAGError
from graphrag_index.extraction.alignment import Passage
from graphrag_index.extraction.graph_reply import schema_from_settings
from graphrag_index.extraction.prompting import ExtractionPrompt, PassagePrompt
from graphrag_index.llm.chat_model import ChatModel
from graphrag_index.llm.embeddings import normalize_vector, text_key
from graphrag_index.llm.prompts import Prompts
from graphrag_index.llm.protocol import read_chat, read_embeddings
from graphrag_index.llm.registry import Models
from graphrag_index.llm.reply_parser import read_reply
from graphrag_index.llm.request import ReplyError, request_key
from graphrag_index.llm.retries import RetryError
from graphrag_index.llm.tokens import count_tokens, load_encoding
from graphrag_index.microsoft.migrate_project import RULES, MicrosoftProject, UnsetVariableError
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.settings.project_settings import Settings
from graphrag_index.schema.tables import EMBEDDED_COLUMNS
from graphrag_index.storage.memo import read_batches
from graphrag_index.storage.working_copy import locate_output

# Names in the cache of the two steps whose replies can be used.
EXTRACTION, EMBEDDING = "extract_graph", "text_embedding"
# Microsoft's entity types if the settings name none.
_ENTITY_TYPES = ["organization", "person", "geo", "event"]
# Microsoft's default maximum of texts and of tokens in one embedding request.
_BATCH_TEXTS, _BATCH_TOKENS = 16, 8_191
_BATCH_ROWS = 1_024  # text units that are read at once
# Name of a reply in the cache of version 3. The suffix _v4 names the hash function.
_CACHE_KEY = re.compile(r"[0-9a-f]{64}_v4")


@dataclass
class StepReplies:
    """Counts of the replies of one step, and the reason why replies are not used."""

    n_replies: int
    n_used: int = 0
    n_other: int = 0  # replies of models that the settings do not name
    n_invalid: int = 0  # replies that cannot be parsed
    why: str = ""

    def format_counts(self, step: str) -> str:
        """Return the counts of this step as one sentence."""
        parts = [f"{step}: {self.n_used:,} of {self.n_replies:,} replies are in the ledger"]
        if self.n_other:
            parts.append(f"written by a model that the settings do not name: {self.n_other:,}")
        if self.n_invalid:
            parts.append(f"unreadable: {self.n_invalid:,}")
        if self.n_replies > self.n_used + self.n_other + self.n_invalid and self.why:
            parts.append(f"the other replies cannot be used, since {self.why}")
        return "; ".join(parts)


class ReplyCache:
    """The cached replies, in a SQLite file or in one folder of files per step."""

    def __init__(self, folder: Path, database: Path | None = None) -> None:
        self.folder, self.database = folder, database
        self._found: set[tuple[str, str]] = set()

    def count_replies(self) -> dict[str, tuple[int, int]]:
        """Return, by step, the number of replies and the number with a hash of version 3."""
        if self.database is not None:
            rows = self._run_query("SELECT namespace, key FROM cache_entries")
            named = [(str(step).split("/")[-1], str(key)) for step, key in rows]
        else:
            named = [(path.parent.name, path.name) for path in self.folder.glob("*/*")]
        n_replies = Counter(step for step, _ in named)
        n_known = Counter(step for step, key in named if _CACHE_KEY.fullmatch(key))
        return {step: (n_replies[step], n_known[step]) for step in sorted(n_replies)}

    def find_response(
        self, step: str, requests: Iterable[Mapping[str, Any]]
    ) -> Mapping[str, Any] | None:
        """Return the response to the first of these requests that the cache answers.

        Each response is returned only once: a second request for it is a duplicate.
        """
        for request in requests:
            # Microsoft GraphRAG hashes the YAML text of a request with SHA-256.
            text = yaml.dump(dict(request), sort_keys=True)
            key = f"{sha256(text.encode()).hexdigest()}_v4"
            stored = None if (step, key) in self._found else self._read_entry(step, key)
            try:
                response = json.loads(stored)["result"]["response"] if stored else None
            except (ValueError, KeyError, TypeError):
                # A truncated file counts as a missing reply.
                continue
            if isinstance(response, Mapping):
                self._found.add((step, key))
                return response
        return None

    def _read_entry(self, step: str, key: str) -> str | None:
        if self.database is not None:
            query = "SELECT value_json FROM cache_entries WHERE namespace = ? AND key = ?"
            rows = self._run_query(query, step, key)
            return str(rows[0][0]) if rows else None
        try:
            return (self.folder / step / key).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _run_query(self, query: str, *values: str) -> Sequence[Any]:
        assert self.database is not None
        if not self.database.is_file():
            return ()
        try:
            address = f"{self.database.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as database:
                return database.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise GraphRAGError(
                f"The cache {self.database} cannot be read ({error}): repair the cache, or skip it "
                "with --no-cache."
            ) from error


def _open_cache(project: MicrosoftProject) -> ReplyCache | None:
    """Open the cache of a project; return None if the cache is not in local files."""
    try:
        kind = project.expand(project.get("cache.type")) or "json"
        base = project.expand(project.get("cache.storage.base_dir", "cache.base_dir")) or "cache"
        name = project.expand(project.get("cache.database_name")) or "cache.db"
        storage = project.expand(project.get("cache.storage.type")) or "file"
    except UnsetVariableError:
        return None
    folder = project.root / str(base)
    if kind == "sqlite":
        return ReplyCache(folder, folder / str(name))
    return ReplyCache(folder) if kind in ("json", "file") and storage == "file" else None


def read_cache(
    project: MicrosoftProject, settings: Settings, root: Path, prompts: Mapping[str, str]
) -> dict[str, StepReplies]:
    """Copy replies into the ledger of the project in `root`; return counts for each step.

    `prompts` are the original texts of the converted prompts, by our prompt names. Only replies to
    these prompts are copied. Replies of models that the settings do not name are skipped.
    """
    cache = _open_cache(project)
    if cache is None:
        return {}
    steps = {}
    for step, (n_replies, n_known) in cache.count_replies().items():
        why = RULES["skipped_replies"].get(step, "no step of ours sends such requests")
        if not n_known:
            why = "the replies are of a version before 3, which hashes requests differently"
        steps[step] = StepReplies(n_replies, why=why)
    extraction, embedding = steps.get(EXTRACTION), steps.get(EMBEDDING)
    tables: Path | None = None
    with suppress(UnsetVariableError):
        base = project.expand(project.get("output_storage.base_dir", "output.base_dir"))
        tables = project.root / str(base or "output")
    if tables is None or not (tables / "text_units.parquet").is_file():
        for step in steps.keys() & {EXTRACTION, EMBEDDING}:
            steps[step].why = "the tables of the index are missing"
        return steps
    models = Models(settings.models, locate_output(root, settings), check=False)
    reader = _ReplyReader(project, settings, tables, cache, models)
    try:
        if extraction is not None and EXTRACTION not in prompts:
            extraction.why = "the prompt of the replies was not converted"
        elif extraction is not None:
            extraction.why = (
                "the replies answer a second request, whose prompt is not in the project, or "
                "the prompt or text has changed"
            )
            reader.read_extraction(prompts[EXTRACTION], Prompts(root), extraction)
        model = settings.models.get(settings.generate_text_embeddings.model)
        if embedding is not None and model is not None:
            embedding.why = "the replies belong to texts that the tables no longer have"
            reader.read_vectors(model, embedding)
        elif embedding is not None:
            embedding.why = "the settings name a local embedding model"
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise GraphRAGError(
            f"The tables in {tables} cannot be read ({reason}): repair the tables, or skip "
            "the cache with --no-cache."
        ) from error
    finally:
        models.close()
    return steps


@dataclass
class _ReplyReader:
    """Reader of a cache that copies the replies to our requests into our ledger."""

    project: MicrosoftProject
    settings: Settings
    tables: Path
    cache: ReplyCache
    models: Models

    def read_extraction(self, microsoft_prompt: str, prompts: Prompts, result: StepReplies) -> None:
        """Store the replies to the extraction request of each text unit."""
        section, ledger = self.settings.extract_graph, self.models.ledger
        types = self.project.get_expanded("extract_graph.entity_types")
        types_by_key = ",".join(map(str, types if isinstance(types, list) else _ENTITY_TYPES))
        chat = self.models.open_chat_model(section.model, EXTRACTION)
        assert isinstance(chat, ChatModel)
        # Max gleanings is 0, since the cached replies to gleanings cannot be found.
        prompt = ExtractionPrompt(schema_from_settings(section), 0, prompts, chat)
        numbers = count()
        for texts in self._read_texts("text_units", ("text",), _BATCH_ROWS):
            kept: dict[str, str] = {}
            for text, number in zip(texts, numbers, strict=False):
                requests = _build_microsoft_requests(microsoft_prompt, types_by_key, text)
                response = self._find_response(EXTRACTION, requests, chat.settings, result)
                if response is None:
                    continue
                label = f"text unit {number}"
                request = prompt.build_first_request(PassagePrompt(Passage(text), label, ""))
                try:
                    reply = read_chat(response)
                    # A reply that was cut off is invalid, like a reply without text.
                    content = reply.text if reply.finish == "stop" else ""
                    read_reply(content, request.format)
                except (RetryError, ReplyError):
                    result.n_invalid += 1
                    continue
                key = request_key(request, chat.settings)
                ledger.record_sent(key, EXTRACTION, label, section.model)
                kept[key] = content
                result.n_used += 1
            ledger.record_replies(kept)

    def read_vectors(self, model: ModelSettings, result: StepReplies) -> None:
        """Store the vectors of text units, entities and reports.

        Both programs embed the same texts. A cached reply has the vectors of a batch; our ledger
        has one entry per text.
        """
        step, ledger = "generate_text_embeddings", self.models.ledger
        name = self.settings.generate_text_embeddings.model
        max_texts = self._read_positive_number("embed_text.batch_size", _BATCH_TEXTS)
        max_tokens = self._read_positive_number("embed_text.batch_max_tokens", _BATCH_TOKENS)
        # Microsoft GraphRAG reads this many rows at a time, and divides them into batches.
        n_rows = max_texts * self._read_positive_number("concurrent_requests", 25)
        for table, columns in EMBEDDED_COLUMNS.values():
            for texts in self._read_texts(table, columns, n_rows):
                for batch in _divide_into_batches(texts, max_texts, max_tokens):
                    response = self._find_response(EMBEDDING, [{"input": batch}], model, result)
                    if response is None:
                        continue
                    replies = _parse_vector_reply(response, batch, model)
                    if replies is None:
                        result.n_invalid += 1
                        continue
                    for text in batch:
                        label = " ".join(text[:60].split())
                        ledger.record_sent(text_key(text, model), step, label, name)
                    ledger.record_replies(replies)
                    result.n_used += 1

    def _find_response(
        self,
        step: str,
        requests: Iterable[Mapping[str, Any]],
        model: ModelSettings,
        result: StepReplies,
    ) -> Mapping[str, Any] | None:
        """Find a response of this model in the cache; count responses of other models.

        The cache of Microsoft GraphRAG ignores the model: after a change of the model it still
        returns the replies of the previous model.
        """
        response = self.cache.find_response(step, requests)
        wrote = str((response or {}).get("model") or "").rpartition("/")[2].casefold()
        names = [model.model.rpartition("/")[2].casefold(), (model.deployment or "").casefold()]
        # The name in a response may end with a date: gpt-4.1-2025-04-14.
        any_name = "|".join(re.escape(name) for name in names if name)
        if not wrote or re.fullmatch(rf"({any_name})(-[-\d]*\d)?", wrote):
            return response
        result.n_other += 1
        return None

    def _read_positive_number(self, key: str, default: int) -> int:
        value = self.project.get_expanded(key)
        return value if isinstance(value, int) and value > 0 else default

    def _read_texts(self, table: str, columns: Sequence[str], size: int) -> Iterator[list[str]]:
        """Yield the texts of a table in batches of `size`; null becomes the empty text."""
        path = self.tables / f"{table}.parquet"
        if path.is_file():
            text = pl.concat_str(columns, separator=":").fill_null("")
            for batch in read_batches(pl.scan_parquet(path).select(text), size):
                yield batch.to_series().to_list()


def _build_microsoft_requests(prompt: str, types: str, text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the extraction request of a text unit as each release of version 3 builds it."""
    try:
        content = prompt.format(entity_types=types, input_text=text.strip())
    except (KeyError, IndexError, ValueError):
        # Microsoft GraphRAG cannot fill this prompt either.
        return
    messages = [{"role": "user", "content": content}]
    yield {"messages": messages, "response_format": None}
    yield {"messages": messages}


def _divide_into_batches(
    texts: Sequence[str], max_texts: int, max_tokens: int
) -> Iterator[list[str]]:
    """Divide texts into batches as Microsoft GraphRAG does; stop at a text over `max_tokens`."""
    # The encoding of OpenAI's embedding models.
    encoding = load_encoding("cl100k_base")
    batch: list[str] = []
    n_batch = 0
    for text in filter(None, texts):
        n_tokens = count_tokens(text, encoding)
        if n_tokens > max_tokens:
            # Microsoft GraphRAG cuts this text into pieces that cannot be reproduced here.
            return
        if batch and (len(batch) >= max_texts or n_batch + n_tokens > max_tokens):
            yield batch
            batch, n_batch = [], 0
        batch.append(text)
        n_batch += n_tokens
    if batch:
        yield batch


def _parse_vector_reply(
    response: Mapping[str, Any], batch: Sequence[str], model: ModelSettings
) -> dict[str, str] | None:
    """Return ledger entries with the vectors of a batch; None if the vectors are invalid."""
    try:
        rows, _ = read_embeddings(response, len(batch))
    except RetryError:
        return None
    vectors = [vector for row in rows if (vector := normalize_vector(row)) is not None]
    if len(vectors) < len(batch) or len(set(map(len, vectors))) > 1:
        return None
    return {
        text_key(text, model): base64.b64encode(vector.tobytes()).decode()
        for text, vector in zip(batch, vectors, strict=True)
    }
