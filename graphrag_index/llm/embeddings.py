"""Embedding models behind an address: texts in batches, each vector kept in the ledger."""

import base64
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from graphrag_index.errors import ModelError
from graphrag_index.llm.call_errors import RejectedError
from graphrag_index.llm.client import LLMClient
from graphrag_index.llm.http_session import LoopThread
from graphrag_index.llm.ledger import DONE, QUARANTINED, Ledger
from graphrag_index.llm.prices import Budget, cost_of
from graphrag_index.llm.request import Usage, estimate_tokens
from graphrag_index.schema.settings.models import ModelSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Limits of one request, at OpenAI and at most others.
MAX_TEXTS = 64
MAX_TOKENS = 8_000
# A text whose vector tells the dimension.
PROBE = "dimension"
# So often a text is sent while its vector is unusable.
MAX_ATTEMPTS = 3


class RemoteEmbeddingModel:
    """An embedding model behind an address, with the interface of the embedded one."""

    def __init__(
        self,
        name: str,
        settings: ModelSettings,
        step: str,
        ledger: Ledger,
        loop: LoopThread,
        budget: Budget | None = None,
    ) -> None:
        self.name, self.settings, self._step = name, settings, step
        self._ledger, self._loop = ledger, loop
        self._client = LLMClient(name, settings, ledger, budget)
        self._used: list[str] = []
        self.identity = identity(settings)
        # Whether any vector of this run has the dimension.
        self._fits = False
        self._cache_key = (
            f"dimension of {settings.model} at {settings.base_url}, {settings.dimensions}"
        )
        known = ledger.get_meta(self._cache_key)
        try:
            self.dimension = int(known) if known else self._loop.wait(self._probe())
        except BaseException:
            self.close()
            raise
        if settings.dimensions not in (None, self.dimension):
            self.close()
            raise ModelError(
                f"Model {name} gives vectors of {self.dimension} numbers, whatever `dimensions` "
                f"says: set it to {self.dimension} or null."
            )
        if not known:
            ledger.set_meta(self._cache_key, str(self.dimension))

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Return a vector of length 1 for each text, in the order of the texts.

        The vector of a quarantined text is all zeros. `advance` is called with the number of
        texts done since its last call.

        Raises
        ------
        ModelError
            The endpoint does not answer, or gives vectors of another length than before.
        """
        import numpy as np

        keys = [text_key(text, self.settings) for text in texts]
        vectors: dict[str, npt.NDArray[np.float32]] = {}
        missing: dict[str, str] = {}
        zeros = np.zeros(self.dimension, np.float32)
        for key, text in zip(keys, texts, strict=True):
            entry = self._ledger.find(key)
            if entry is not None and entry.state == DONE:
                vector = np.frombuffer(base64.b64decode(entry.reply), np.float32)
                # The server may have given this name to another model.
                if len(vector) == self.dimension:
                    vectors[key] = vector
                else:
                    missing[key] = text
            elif entry is not None and entry.state == QUARANTINED:
                vectors[key] = zeros
            else:
                missing[key] = text
        self._used += vectors
        if advance is not None:
            advance(len(texts) - len(missing))
        batches = list(_batches(list(missing.items())))
        futures = [self._loop.start(self._request(batch)) for batch in batches]
        for batch, future in zip(batches, futures, strict=True):
            try:
                vectors.update(future.result())
            except BaseException as error:
                self._client.stop(error if isinstance(error, Exception) else ModelError("stopped"))
                raise
            if advance is not None:
                advance(len(batch))
        self._ledger.mark_used(self._used)
        self._used.clear()
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([vectors.get(key, zeros) for key in keys])

    def close(self) -> None:
        """Close the connections."""
        self._loop.wait(self._client.close())

    async def _probe(self) -> int:
        """Return the dimension of the vectors, by requesting one."""
        row: list[float] = []
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

    async def _request(
        self, batch: Sequence[tuple[str, str]]
    ) -> "dict[str, npt.NDArray[np.float32]]":
        """Request the vectors of some texts; texts without a usable one are quarantined.

        Raises
        ------
        ModelError
            No vector has the length that the first had.
        """
        vectors: dict[str, npt.NDArray[np.float32]] = {}
        reason, length = "", None
        for _ in range(MAX_ATTEMPTS):
            try:
                rows = await self._call(batch)
            except RejectedError as error:
                reason = self._client.redact(str(error))
                break
            batch, reason, length = self._keep(batch, rows, vectors)
            if not batch:
                return vectors
        if len(batch) > 1:
            # One of them may be at fault.
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                vectors |= await self._request(half)
            return vectors
        if length is not None and not self._fits:
            self._ledger.set_meta(self._cache_key, "")
            raise ModelError(
                f"Model {self.name} gives vectors of {length} numbers, and gave {self.dimension} "
                "before: set the model back, or run again to have all vectors anew."
            )
        for key, _ in batch:
            self._ledger.record_failure(key, QUARANTINED, reason)
            self._used.append(key)
        return vectors

    async def _call(self, batch: Sequence[tuple[str, str]]) -> list[list[float]]:
        texts = [text for _, text in batch]

        def before_send() -> None:
            for key, text in batch:
                unit = " ".join(text[:60].split())
                if text != PROBE:
                    self._ledger.record_sent(key, self._step, unit, self.name)

        async def send() -> tuple[list[list[float]], Usage]:
            rows, used = await self._client.embed(texts)
            # The tokens of the batch are recorded once, whether its vectors are usable or not.
            cost = cost_of(used, self._client.price)
            self._ledger.record_cost(batch[0][0], self._step, self.name, used, cost)
            return rows, used

        n_tokens = sum(map(estimate_tokens, texts))
        return await self._client.call(send, n_tokens, 0, before_send)

    def _keep(
        self,
        batch: Sequence[tuple[str, str]],
        rows: Sequence[Sequence[float]],
        vectors: "dict[str, npt.NDArray[np.float32]]",
    ) -> tuple[list[tuple[str, str]], str, int | None]:
        """Keep the usable vectors; returns the other texts, the reason, and a wrong dimension."""
        rest, reason, replies = [], "", {}
        wrong: int | None = None
        for (key, text), row in zip(batch, rows, strict=True):
            vector = _normalized(row)
            if vector is not None and len(vector) == self.dimension:
                vectors[key] = vector
                replies[key] = base64.b64encode(vector.tobytes()).decode()
                continue
            rest.append((key, text))
            reason = "its vector has no direction"
            if vector is not None:
                wrong = len(vector)
                reason = f"its vector has {wrong} numbers and not {self.dimension}"
        self._ledger.record_replies(replies)
        self._used += replies
        self._fits = self._fits or bool(replies)
        return rest, reason, wrong


def _normalized(row: Sequence[float]) -> "npt.NDArray[np.float32] | None":
    """Scale a vector to length 1; None if it has no direction."""
    import numpy as np

    vector = np.asarray(row, np.float32)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if np.isfinite(length) and length else None


def identity(settings: ModelSettings) -> tuple[str, int | None]:
    """Return all that vectors depend on beside their texts."""
    return settings.vector_identity()


def text_key(text: str, settings: ModelSettings) -> str:
    """Return the cache key of a vector: a hash of all that it depends on."""
    parts = repr((*identity(settings), text))
    return blake2b(parts.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _batches(rows: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Group texts into requests within the limits."""
    batch: list[tuple[str, str]] = []
    n_tokens = 0
    for key, text in rows:
        length = estimate_tokens(text)
        if batch and (len(batch) == MAX_TEXTS or n_tokens + length > MAX_TOKENS):
            yield batch
            batch, n_tokens = [], 0
        batch.append((key, text))
        n_tokens += length
    if batch:
        yield batch
