"""Vectors from a model behind an address: in batches, each text paid for once."""

import base64
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from graphrag_index.core.errors import ModelError
from graphrag_index.core.models.caller import Caller, LoopThread, estimate_tokens
from graphrag_index.core.models.failures import RejectedError
from graphrag_index.core.models.ledger import DONE, Ledger
from graphrag_index.core.models.prices import Budget, cost_of
from graphrag_index.core.models.request import Usage
from graphrag_index.core.models.settings import ModelSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# What one request may hold, at OpenAI and at most others.
MAX_TEXTS = 64
MAX_TOKENS = 8_000
# The probe: what it costs is nothing, and its vector tells the dimension.
PROBE = "dimension"


class RemoteEmbeddingModel:
    """An embedding model behind an address; the same to its users as the embedded one."""

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
        self._caller = Caller(name, settings, ledger, budget or Budget(None))
        self._used: list[str] = []
        self.dimension = len(self.embed([PROBE])[0])

    def embed(
        self, texts: Sequence[str], advance: Callable[[int], None] | None = None
    ) -> "npt.NDArray[np.float32]":
        """Give each text a vector of length 1, in the order of the texts.

        `advance` is called with the number of texts that are done, as they are.

        Raises
        ------
        ModelError
            The endpoint does not answer, refuses a text, or gives vectors of several lengths.
        """
        import numpy as np

        keys = [text_key(text, self.settings) for text in texts]
        vectors: dict[str, npt.NDArray[np.float32]] = {}
        missing: dict[str, str] = {}
        for key, text in zip(keys, texts, strict=True):
            entry = self._ledger.find(key)
            if entry is not None and entry.state == DONE:
                vectors[key] = np.frombuffer(base64.b64decode(entry.reply), np.float32)
            else:
                missing[key] = text
        self._used += vectors
        if advance is not None:
            advance(len(texts) - len(missing))
        batches = list(_batches(list(missing.items())))
        futures = [self._loop.start(self._ask(batch)) for batch in batches]
        for batch, future in zip(batches, futures, strict=True):
            try:
                vectors.update(future.result())
            except BaseException as error:
                self._caller.stop(error if isinstance(error, Exception) else ModelError("stopped"))
                raise
            if advance is not None:
                advance(len(batch))
        self._ledger.use(self._used)
        self._used.clear()
        lengths = {len(vector) for vector in vectors.values()}
        if len(lengths) > 1:
            raise ModelError(
                f"Model {self.name} gave vectors of {' and '.join(map(str, sorted(lengths)))} "
                "numbers for one index: set `dimensions` of this model, or another model."
            )
        if not texts:
            return np.empty((0, self.dimension), np.float32)
        return np.stack([vectors[key] for key in keys])

    def close(self) -> None:
        """Close the connections."""
        self._loop.start(self._caller.endpoint.close()).result()

    async def _ask(self, batch: Sequence[tuple[str, str]]) -> "dict[str, npt.NDArray[np.float32]]":
        import numpy as np

        texts = [text for _, text in batch]
        n_tokens = sum(map(estimate_tokens, texts))
        used = Usage()

        async def ask() -> tuple[list[list[float]], Usage]:
            nonlocal used
            rows, used = await self._caller.endpoint.embed(texts)
            return rows, used

        def note() -> None:
            for key, text in batch:
                self._ledger.send(key, self._step, " ".join(text[:60].split()), self.name)

        try:
            rows = await self._caller.call(ask, n_tokens, 0, note)
        except RejectedError as error:
            raise ModelError(
                f"Model {self.name} refuses to embed {texts[0][:60]!r} or a text sent with it: "
                f"{self._caller.hide(str(error))}."
            ) from None
        vectors = {}
        cost = cost_of(used, self._caller.price)
        for place, ((key, _), row) in enumerate(zip(batch, rows, strict=True)):
            vector = np.asarray(row, np.float32)
            length = float(np.linalg.norm(vector))
            if not np.isfinite(length) or length == 0:
                raise ModelError(
                    f"Model {self.name} gave a vector without direction for "
                    f"{batch[place][1][:60]!r}: it may be no embedding model."
                )
            vectors[key] = vector / np.float32(length)
            reply = base64.b64encode(vectors[key].tobytes()).decode()
            # The tokens of the batch are written once.
            first = place == 0
            self._ledger.finish(
                key,
                self._step,
                self.name,
                reply,
                used if first else Usage(),
                cost if first else 0.0,
            )
        self._used += vectors
        return vectors


def text_key(text: str, settings: ModelSettings) -> str:
    """Hash all that a vector depends on."""
    identity = repr((settings.identity()["model"], settings.dimensions, text))
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _batches(rows: Sequence[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """Put texts together as far as one request may hold them."""
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
