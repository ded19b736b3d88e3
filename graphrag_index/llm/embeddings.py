"""Embedding models and rerankers on a server; vectors and scores are cached in the ledger."""

import asyncio
import base64
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from graphrag_index.errors import ModelError
from graphrag_index.llm.chat_model import Cancellation, RemoteModel, current_cancellation
from graphrag_index.llm.client import check_dimension
from graphrag_index.llm.ledger import DONE, QUARANTINED
from graphrag_index.llm.limits import cost_of
from graphrag_index.llm.protocol import read_usage
from graphrag_index.llm.request import Spending, Usage, cut_text, estimate_tokens
from graphrag_index.llm.retries import (
    LengthError,
    RefusedContentError,
    RejectedError,
    UnsupportedError,
)
from graphrag_index.schema.settings.models import ModelSettings
from graphrag_index.schema.tables import content_id

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    # Maps the cache key of a text to its vector.
    Vectors = dict[str, npt.NDArray[np.float32]]

# (cache key, text)
KeyedText = tuple[str, str]

# Maximum number of texts and of tokens in one request. Most servers accept this many.
MAX_TEXTS = 64
MAX_TOKENS = 8_000
# The text that is sent to find out the dimension of the vectors.
PROBE_TEXT = "dimension"
# Minimum length of a piece of a text that is too long, in characters.
MIN_PIECE_CHARS = 32
# Maximum number of attempts for a text whose vector is unusable.
MAX_ATTEMPTS = 3


class RemoteEmbeddingModel(RemoteModel):
    """An embedding model on a server, with the same interface as `EmbeddingModel`."""

    # Number of components of the vectors; `find_dimension` sets it.
    dimension: int
    # Whether any vector of this run has the expected dimension.
    _has_fitting_vector = False

    @property
    def identity(self) -> tuple[str, int | None]:
        """The settings that the vectors depend on: two equal identities give equal vectors."""
        return self.settings.vector_identity()

    def find_dimension(self) -> None:
        """Read the dimension of the vectors from the ledger, or request one vector to find it.

        Raises `ModelError` if the server returns no vectors, or vectors whose dimension differs
        from the settings.
        """
        known = self.get_meta(self._dimension_name)
        cancellation = current_cancellation()
        try:
            self.dimension = int(
                known or self._loop.run_coroutine(self._request_dimension(cancellation))
            )
        except CancelledError:
            cancellation.check()
            raise
        check_dimension(self.name, self.settings, self.dimension)
        if not known:
            self.set_meta(self._dimension_name, str(self.dimension))

    @property
    def _dimension_name(self) -> str:
        settings = self.settings
        return f"dimension of {settings.model} at {settings.base_url}, {settings.dimensions}"

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a unit vector for each text, see `EmbeddingModel`; zeros if it is quarantined.

        Raises `ModelError` if the server does not answer, or if it returns vectors of another
        dimension than before. A cancelled question raises `CancelledQuestionError`.
        """
        import numpy as np

        cancellation = current_cancellation()
        keys = [text_key(text, self.settings) for text in texts]
        vectors: Vectors = {}
        missing: dict[str, str] = {}
        zeros = np.zeros(self.dimension, np.float32)
        for key, text in zip(keys, texts, strict=True):
            entry = self.ledger.find_entry(key)
            if entry is not None and entry.state == QUARANTINED:
                vectors[key] = zeros
            elif entry is not None and entry.state == DONE:
                vectors[key] = np.frombuffer(base64.b64decode(entry.reply), np.float32)
            # The dimension changes if the server now uses this name for another model.
            if key not in vectors or len(vectors[key]) != self.dimension:
                missing[key] = text
                vectors.pop(key, None)
        self._used += vectors
        if advance is not None:
            advance(len(texts) - len(missing))
        batches = list(_batch_texts(missing.items(), self.tokens.max_text))
        calls = [self._request_batch(batch, cancellation) for batch in batches]
        futures = [self._loop.start_coroutine(call) for call in calls]
        for batch, future in zip(batches, futures, strict=True):
            try:
                vectors.update(future.result())
            except BaseException as error:
                # The calls of a cancelled question have ended; the model serves other questions.
                cancellation.check()
                self.stop(error)
                raise
            if advance is not None:
                advance(len(batch))
        self._save_used_keys()
        rows = [vectors.get(key, zeros) for key in keys]
        return np.array(rows, np.float32).reshape(len(texts), self.dimension)

    async def _request_dimension(self, cancellation: Cancellation) -> int:
        """Request one vector, and return its dimension. `cancellation` ends the calls."""
        probe = (text_key(PROBE_TEXT, self.settings), PROBE_TEXT)
        for _ in range(MAX_ATTEMPTS):
            spent = Spending()
            try:
                with cancellation.running_call(spent):
                    (row,) = await self._send_until_answered([probe], spent, is_recorded=False)
            except RejectedError as error:
                raise ModelError(
                    f"Model {self.name} returns no vectors: {self._client.redact(str(error))}."
                ) from None
            if normalize_vector(row) is not None:
                return len(row)
        raise ModelError(
            f"Model {self.name} returns vectors that are zero or not finite: it may not be an "
            "embedding model."
        )

    async def _request_batch(
        self, batch: Sequence[KeyedText], cancellation: Cancellation
    ) -> "Vectors":
        """Request the vectors of a batch; `cancellation` ends the calls."""
        spent = Spending()
        with self._traced_call("embeddings", cancellation, spent, texts=len(batch)):
            return await self._request_vectors(batch, spent)

    async def _request_vectors(self, batch: Sequence[KeyedText], spent: Spending) -> "Vectors":
        """Request the vectors of a batch of texts; texts without a usable vector are quarantined.

        The cost of the calls is added to `spent`. If attempts fail, each half of the batch is sent
        separately, to find the text at fault.
        """
        vectors: Vectors = {}
        reason, length = "", None
        refused: RejectedError | None = None
        if len(batch) == 1 and estimate_tokens(batch[0][1]) > self.tokens.max_text:
            vectors = await self._embed_in_pieces(*batch[0], spent)
            if vectors:
                return vectors
        for _ in range(MAX_ATTEMPTS):
            try:
                rows = await self._send_until_answered(batch, spent)
            except RejectedError as error:
                refused, reason = error, self._client.redact(str(error))
                break
            batch, length = self._keep_usable(batch, rows, vectors)
            reason = "its vector is zero or not finite"
            if length is not None:
                reason = f"its vector has {length} numbers and not {self.dimension}"
            if not batch:
                return vectors
        if len(batch) > 1:
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                vectors |= await self._request_vectors(half, spent)
            return vectors
        if length is not None and not self._has_fitting_vector:
            self.set_meta(self._dimension_name, "")
            raise ModelError(
                f"Model {self.name} returns vectors of {length} numbers instead of "
                f"{self.dimension} as before: restore the model, or run again to compute all "
                "vectors again."
            )
        [(key, text)] = batch
        if refused is not None:
            if self._note_refusal(text, refused):
                vectors = await self._embed_in_pieces(key, text, spent)
            if vectors:
                return vectors
            # What is refused at every length is not refused because of its length.
            self.tokens.set_refused(None)
            self._client.calls.note_refusal(refused)
        self.ledger.record_failure(key, reason)
        self._used.append(key)
        return vectors

    def _note_refusal(self, text: str, error: RejectedError) -> bool:
        """Note that a text was refused; return whether its pieces may be accepted."""
        n_tokens = estimate_tokens(text)
        is_named = isinstance(error, LengthError)
        if isinstance(error, RefusedContentError) or len(text) < 2 * MIN_PIECE_CHARS:
            return False
        # An unnamed limit may count characters: four in one script are like one in another.
        if not is_named and 4 * n_tokens < self.tokens.n_answered:
            return False
        refusal = error.refusal if isinstance(error, LengthError) else None
        self.tokens.note_refusal(n_tokens, 0, refusal)
        return True

    async def _embed_in_pieces(self, key: str, text: str, spent: Spending) -> "Vectors":
        """Store the mean, by length, of the vectors of the pieces of a text that is too long.

        Returns no vector if a piece is refused that cannot be cut.
        """
        self.ledger.record_sent(key, self.step, " ".join(text[:60].split()), self.name)
        n_pieces = math.ceil(estimate_tokens(text) / max(self.tokens.max_text, MIN_PIECE_CHARS))
        total = await self._sum_vectors(key, cut_text(text, max(2, n_pieces)), spent)
        vectors: Vectors = {}
        if total is not None:
            self._keep_usable([(key, text)], [total.tolist()], vectors)
        return vectors

    async def _sum_vectors(
        self, key: str, pieces: Sequence[str], spent: Spending
    ) -> "npt.NDArray[np.float32] | None":
        """Return the sum of the vectors of pieces, each as often as it has characters.

        A piece that is refused is cut again. Returns None if there is no vector for a piece.
        """
        import numpy as np

        keyed = [(key, piece) for piece in pieces]
        try:
            rows = await self._send_until_answered(keyed, spent, is_recorded=False)
        except RejectedError as error:
            if len(pieces) == 1:
                if not self._note_refusal(pieces[0], error):
                    return None
                pieces = cut_text(pieces[0], 2)
            middle = (len(pieces) + 1) // 2
            total = await self._sum_vectors(key, pieces[:middle], spent)
            if total is None or not pieces[middle:]:
                return total
            rest = await self._sum_vectors(key, pieces[middle:], spent)
            return None if rest is None else total + rest
        total = np.zeros(self.dimension, np.float32)
        for piece, row in zip(pieces, rows, strict=True):
            vector = normalize_vector(row)
            if vector is None or len(vector) != self.dimension:
                return None
            total += len(piece) * vector
        return total

    async def _send_until_answered(
        self, batch: Sequence[KeyedText], spent: Spending, is_recorded: bool = True
    ) -> list[list[float]]:
        """Send texts until the server answers; `is_recorded` adds each text to the ledger."""
        texts = [text for _, text in batch]
        n_tokens = sum(map(estimate_tokens, texts))

        def record(used: Usage) -> None:
            # Record the tokens of the batch once, under the key of its first text.
            cost = cost_of(used, self._client.calls.price)
            self.ledger.record_call(batch[0][0], self.step, self.name, used, cost)
            spent.add(Spending(1, used, cost))

        async def send() -> tuple[list[list[float]], Usage]:
            for key, text in batch if is_recorded else ():
                unit = " ".join(text[:60].split())
                self.ledger.record_sent(key, self.step, unit, self.name)
            try:
                rows, used = await self._client.request_vectors(texts)
            except asyncio.CancelledError:
                # The provider may charge for vectors that nobody has received.
                record(Usage(n_tokens))
                raise
            record(used)
            longest = max(map(estimate_tokens, texts))
            self.tokens.note_answer(longest, used.prompt * longest // n_tokens)
            return rows, used

        return await self._client.calls.call_with_retries(send, n_tokens, 0)

    def _keep_usable(
        self, batch: Sequence[KeyedText], rows: Sequence[Sequence[float]], vectors: "Vectors"
    ) -> tuple[list[KeyedText], int | None]:
        """Store the usable vectors in `vectors` and in the ledger.

        Returns the texts without a usable vector, and the dimension of the last unusable
        vector (None if that vector is zero or not finite).
        """
        rest, replies = [], {}
        wrong: int | None = None
        for (key, text), row in zip(batch, rows, strict=True):
            vector = normalize_vector(row)
            if vector is not None and len(vector) == self.dimension:
                vectors[key] = vector
                replies[key] = base64.b64encode(vector.tobytes()).decode()
                continue
            rest.append((key, text))
            wrong = None if vector is None else len(vector)
        self.ledger.record_replies(replies)
        self._used += replies
        self._has_fitting_vector = self._has_fitting_vector or bool(replies)
        return rest, wrong


def normalize_vector(row: Sequence[float]) -> "npt.NDArray[np.float32] | None":
    """Scale a vector to length 1; None if it is zero or not finite."""
    import numpy as np

    vector = np.asarray(row, np.float32)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if np.isfinite(length) and length else None


def text_key(text: str, settings: ModelSettings) -> str:
    """Return the cache key of the vector of a text: a hash of the model and the text."""
    parts = repr((*settings.vector_identity(), text))
    return blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _batch_texts(texts: Iterable[KeyedText], max_text: int) -> Iterator[list[KeyedText]]:
    """Split texts into batches of at most `MAX_TEXTS` texts and `MAX_TOKENS` tokens.

    A text of more than `max_text` tokens is alone in its batch.
    """
    batch: list[KeyedText] = []
    n_tokens = 0
    for key, text in texts:
        length = estimate_tokens(text)
        if length > max_text:
            yield [(key, text)]
            continue
        if batch and (len(batch) == MAX_TEXTS or n_tokens + length > MAX_TOKENS):
            yield batch
            batch, n_tokens = [], 0
        batch.append((key, text))
        n_tokens += length
    if batch:
        yield batch


class RemoteReranker(RemoteModel):
    """A reranker on a server. Valid scores are stored in the ledger."""

    # Whether the server has rejected the form of Jina, Cohere and vLLM, and accepted that of TEI.
    _has_tei_form = False

    def score(self, question: str, passages: Sequence[str], spent: Spending) -> tuple[float, ...]:
        """Return a score for each passage; a higher score is a better match.

        The cost of the call is added to `spent`. Raises `ModelError` if the server does not
        answer, refuses the request, or returns unusable scores. A cancelled question raises
        `CancelledQuestionError`.
        """
        cancellation, call_spent = current_cancellation(), Spending()
        identity = json.dumps(self.settings.identity(), sort_keys=True)
        key = content_id("rerank", identity, question, *passages)
        entry = self.ledger.find_entry(key)
        if entry is not None and entry.state == DONE:
            return tuple(json.loads(entry.reply))
        try:
            request = self._request_scores(key, question, passages, call_spent, cancellation)
            scores: tuple[float, ...] = self._loop.run_coroutine(request)
        except CancelledError:
            cancellation.check()
            raise
        except RejectedError as error:
            reason = self._client.redact(str(error)).rstrip(".")
            raise ModelError(f"Model {self.name} returns no scores: {reason}.") from None
        finally:
            spent.add(call_spent)
        return scores

    async def _request_scores(
        self,
        key: str,
        question: str,
        passages: Sequence[str],
        spent: Spending,
        cancellation: Cancellation,
    ) -> tuple[float, ...]:
        n_tokens = sum(map(estimate_tokens, (question, *passages)))
        calls = self._client.calls

        def record(usage: Usage, reply: str | None = None) -> None:
            cost = cost_of(usage, calls.price)
            self.ledger.record_call(key, self.step, self.name, usage, cost, reply)
            spent.add(Spending(1, usage, cost))

        async def send() -> tuple[tuple[Any, Usage], Usage]:
            self.ledger.record_sent(key, self.step, question[:60], self.name)
            try:
                data = await self._post_passages(question, passages)
            except asyncio.CancelledError:
                # The provider may charge for a reply that nobody has received.
                record(Usage(n_tokens))
                raise
            # Some servers count no tokens.
            usage = read_tokens(data) or Usage(n_tokens)
            return (data, usage), usage

        with self._traced_call("rerank", cancellation, spent):
            data, usage = await calls.call_with_retries(send, n_tokens, 0)
            scores = read_scores(data, len(passages))
            record(usage, None if scores is None else json.dumps(scores))
        if scores is None:
            raise RejectedError("the answer must have one finite score for each passage")
        return scores

    async def _post_passages(self, question: str, passages: Sequence[str]) -> Any:
        """Send a request in the form that the server is known to accept, or else in both forms."""
        common = {"model": self._client.writer.model, "top_n": len(passages)}
        usual = {**common, "query": question, "documents": list(passages)}
        tei = {"query": question, "texts": list(passages), "truncate": True}
        parameters = self.settings.parameters
        if not self._has_tei_form:
            try:
                return await self._client.post("/rerank", {**usual, **parameters})
            except UnsupportedError as error:
                first_error = error
        try:
            data = await self._client.post("/rerank", {**tei, **parameters})
        except UnsupportedError:
            if self._has_tei_form:
                raise
            raise first_error from None
        self._has_tei_form = True
        return data


def read_tokens(data: Any) -> Usage | None:
    """Parse the number of tokens of a request; None if the server does not count them."""
    usage = data.get("usage") if isinstance(data, dict) else None
    if not isinstance(usage, dict):
        return None
    n_tokens = usage.get("prompt_tokens") or usage.get("total_tokens")
    counted = read_usage({"prompt_tokens": n_tokens})
    return counted if counted.prompt > 0 else None


def read_scores(data: Any, n_passages: int) -> tuple[float, ...] | None:
    """Parse the scores of passages; None unless each passage has one finite score."""
    rows: Any = data.get("results") if isinstance(data, dict) else data
    try:
        found = {
            row["index"]: float(row["relevance_score" if "relevance_score" in row else "score"])
            for row in rows
        }
        scores = tuple(found[index] for index in range(n_passages))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return scores if len(rows) == n_passages and all(map(math.isfinite, scores)) else None
