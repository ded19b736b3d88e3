"""Embedding models behind an address: texts in batches, each vector kept in the ledger."""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from graphrag_index.errors import ModelError
from graphrag_index.llm.chat_model import RemoteModel
from graphrag_index.llm.ledger import DONE, QUARANTINED
from graphrag_index.llm.limits import cost_of
from graphrag_index.llm.request import Usage, estimate_tokens
from graphrag_index.llm.retries import RejectedError
from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    # Vectors by the cache keys of their texts.
    Vectors = dict[str, npt.NDArray[np.float32]]

# A text and its cache key.
KeyedText = tuple[str, str]

# Limits of one request, at OpenAI and at most others.
MAX_TEXTS = 64
MAX_TOKENS = 8_000
# The text of the request that finds the dimension.
PROBE = "dimension"
# Attempts for a text whose vector is unusable.
MAX_ATTEMPTS = 3


class RemoteEmbeddingModel(RemoteModel):
    """An embedding model behind an address, with the interface of the embedded one."""

    # Length of the vectors; `find_dimension` sets it.
    dimension: int
    # Whether any vector of this run has the dimension.
    _fits = False

    @property
    def identity(self) -> tuple[str, int | None]:
        """All that the vectors depend on besides their texts."""
        return self.settings.vector_identity()

    def find_dimension(self) -> None:
        """Find the dimension in the ledger, or by requesting one vector.

        Raises `ModelError` if the server gives no vectors, or others than the settings say.
        """
        known = self.get_meta(self._dimension_name)
        self.dimension = int(known) if known else self._loop.wait(self._probe())
        if self.settings.dimensions not in (None, self.dimension):
            raise ModelError(
                f"Model {self.name} gives vectors of {self.dimension} numbers, whatever "
                f"`dimensions` says: set it to {self.dimension} or null."
            )
        if not known:
            self.set_meta(self._dimension_name, str(self.dimension))

    @property
    def _dimension_name(self) -> str:
        settings = self.settings
        return f"dimension of {settings.model} at {settings.base_url}, {settings.dimensions}"

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a vector of length 1 for each text, in the order of the texts.

        The vector of a quarantined text is all zeros. `advance` is called with the number of
        texts done since its last call. Raises `ModelError` if the server does not answer, or
        gives vectors of another length than before.
        """
        import numpy as np

        keys = [text_key(text, self.settings) for text in texts]
        vectors: Vectors = {}
        missing: dict[str, str] = {}
        zeros = np.zeros(self.dimension, np.float32)
        for key, text in zip(keys, texts, strict=True):
            entry = self.ledger.find(key)
            if entry is not None and entry.state == QUARANTINED:
                vectors[key] = zeros
            elif entry is not None and entry.state == DONE:
                vectors[key] = np.frombuffer(base64.b64decode(entry.reply), np.float32)
            # The server may have given this name to another model.
            if key not in vectors or len(vectors[key]) != self.dimension:
                missing[key] = text
                vectors.pop(key, None)
        self._used += vectors
        if advance is not None:
            advance(len(texts) - len(missing))
        batches = list(_batches(missing.items()))
        futures = [self._loop.start(self._request(batch)) for batch in batches]
        for batch, future in zip(batches, futures, strict=True):
            try:
                vectors.update(future.result())
            except BaseException as error:
                self.stop(error)
                raise
            if advance is not None:
                advance(len(batch))
        self._save_used()
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([vectors.get(key, zeros) for key in keys])

    async def _probe(self) -> int:
        """Return the dimension of the vectors, by requesting one."""
        for _ in range(MAX_ATTEMPTS):
            try:
                (row,) = await self._call([(text_key(PROBE, self.settings), PROBE)])
            except RejectedError as error:
                raise ModelError(
                    f"Model {self.name} gives no vectors: {self._client.redact(str(error))}."
                ) from None
            if _normalized(row) is not None:
                return len(row)
        raise ModelError(
            f"Model {self.name} gives vectors without direction: it may be no embedding model."
        )

    async def _request(self, batch: Sequence[KeyedText]) -> "Vectors":
        """Request the vectors of some texts; texts without a usable one are quarantined."""
        vectors: Vectors = {}
        reason, length = "", None
        for _ in range(MAX_ATTEMPTS):
            try:
                rows = await self._call(batch)
            except RejectedError as error:
                reason = self._client.redact(str(error))
                break
            batch, length = self._keep_usable(batch, rows, vectors)
            reason = "its vector has no direction"
            if length is not None:
                reason = f"its vector has {length} numbers and not {self.dimension}"
            if not batch:
                return vectors
        if len(batch) > 1:
            # One of them may be at fault.
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                vectors |= await self._request(half)
            return vectors
        if length is not None and not self._fits:
            self.set_meta(self._dimension_name, "")
            raise ModelError(
                f"Model {self.name} gives vectors of {length} numbers, and gave {self.dimension} "
                "before: set the model back, or run again to compute all vectors again."
            )
        for key, _ in batch:
            self.ledger.record_failure(key, reason)
            self._used.append(key)
        return vectors

    async def _call(self, batch: Sequence[KeyedText]) -> list[list[float]]:
        """Request the vectors of some texts until the server answers."""
        texts = [text for _, text in batch]

        def before_send() -> None:
            for key, text in batch:
                if text != PROBE:
                    unit = " ".join(text[:60].split())
                    self.ledger.record_sent(key, self.step, unit, self.name)

        async def send() -> tuple[list[list[float]], Usage]:
            rows, used = await self._client.embed(texts)
            # The tokens of the batch are recorded once, whether its vectors are usable or not.
            cost = cost_of(used, self._client.calls.price)
            self.ledger.record_cost(batch[0][0], self.step, self.name, used, cost)
            return rows, used

        n_tokens = sum(map(estimate_tokens, texts))
        return await self._client.calls.call(send, n_tokens, 0, before_send)

    def _keep_usable(
        self, batch: Sequence[KeyedText], rows: Sequence[Sequence[float]], vectors: "Vectors"
    ) -> tuple[list[KeyedText], int | None]:
        """Keep the usable vectors; returns the other texts, and the dimension of the last."""
        rest, replies = [], {}
        wrong: int | None = None
        for (key, text), row in zip(batch, rows, strict=True):
            vector = _normalized(row)
            if vector is not None and len(vector) == self.dimension:
                vectors[key] = vector
                replies[key] = base64.b64encode(vector.tobytes()).decode()
                continue
            rest.append((key, text))
            wrong = None if vector is None else len(vector)
        self.ledger.record_replies(replies)
        self._used += replies
        self._fits = self._fits or bool(replies)
        return rest, wrong


def _normalized(row: Sequence[float]) -> "npt.NDArray[np.float32] | None":
    """Scale a vector to length 1; None if it has no direction."""
    import numpy as np

    vector = np.asarray(row, np.float32)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if np.isfinite(length) and length else None


def text_key(text: str, settings: ModelSettings) -> str:
    """Return the cache key of a vector: a hash of all that it depends on."""
    parts = repr((*settings.vector_identity(), text))
    return blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _batches(texts: Iterable[KeyedText]) -> Iterator[list[KeyedText]]:
    """Group texts into requests within the limits."""
    batch: list[KeyedText] = []
    n_tokens = 0
    for key, text in texts:
        length = estimate_tokens(text)
        if batch and (len(batch) == MAX_TEXTS or n_tokens + length > MAX_TOKENS):
            yield batch
            batch, n_tokens = [], 0
        batch.append((key, text))
        n_tokens += length
    if batch:
        yield batch
