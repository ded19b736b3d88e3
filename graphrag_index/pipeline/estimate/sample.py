"""The documents that stand for all, and how much more there is in all of them.

Every name that a document adds makes the graph grow less than the one before, and how much
less differs from corpus to corpus. So names are counted in all documents, by a pattern that
costs next to nothing, and the graph of the sample is taken to grow as they do.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from graphrag_index.pipeline.estimate.simulated_replies import NAME
from graphrag_index.step import Step, step

# Rows read at once: bounds memory, not results.
BATCH_DOCUMENTS = 256
# Characters that a token stands for, roughly.
CHARACTERS_PER_TOKEN = 4
# Passages that must name a thing before a model is asked to put their descriptions together:
# two descriptions are mostly short enough to be joined without a call.
SEVERAL = 3


@dataclass(frozen=True)
class Growth:
    """How many times more there is in all documents than in the sample."""

    text_units: float = 1.0
    # Names; the pairs that stand together; names in several passages, and the number of these.
    names: float = 1.0
    pairs: float = 1.0
    repeated: float = 1.0
    repetitions: float = 1.0


@dataclass
class Sample:
    """Which documents are read; the rest is known when `step` has run."""

    max_documents: int
    text_unit_tokens: int
    n_documents: int = 0
    n_sampled: int = 0
    growth: Growth = field(default_factory=Growth)

    def step(self) -> Step:
        """Make the step that leaves the sample of the documents."""

        @step(writes=["loaded_documents"])
        def sample_documents(loaded_documents: pl.LazyFrame) -> Iterator[pl.DataFrame]:
            return self._choose(loaded_documents)

        return sample_documents

    def _choose(self, documents: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Leave every nth document, and measure what that leaves out."""
        self.n_documents = documents.select(pl.len()).collect().item()
        self.n_sampled = min(self.max_documents, self.n_documents)
        chosen = {number * self.n_documents // self.n_sampled for number in range(self.n_sampled)}
        size = self.text_unit_tokens * CHARACTERS_PER_TOKEN
        whole, sampled = _Names(size), _Names(size)
        for offset in range(0, self.n_documents, BATCH_DOCUMENTS):
            batch = documents.slice(offset, BATCH_DOCUMENTS).collect()
            mine = [row for row in range(batch.height) if offset + row in chosen]
            if self.n_sampled < self.n_documents:
                for row, text in enumerate(batch["text"]):
                    whole.add(text)
                    if offset + row in chosen:
                        sampled.add(text)
            yield batch[mine]
        if self.n_sampled < self.n_documents:
            self.growth = whole.growth(sampled)


class _Names:
    """Counts the names of documents and in how many passages each stands."""

    def __init__(self, size: int) -> None:
        self.size = size  # of a passage, in characters
        self.n_characters = 0
        self.n_passages = 0
        # By hash: the last passage, and how many there were.
        self.places: dict[int, tuple[int, int]] = {}
        self.pairs: set[int] = set()

    def add(self, text: str) -> None:
        self.n_characters += len(text)
        last, last_end = 0, -self.size
        for match in NAME.finditer(text):
            name = hash(match[0])
            passage = self.n_passages + match.start() // self.size
            before, n = self.places.get(name, (-1, 0))
            if before != passage:
                self.places[name] = passage, n + 1
            if match.start() - last_end < self.size // 4 and name != last:
                self.pairs.add(hash((last, name)))
            last, last_end = name, match.end()
        self.n_passages += len(text) // self.size + 1

    def growth(self, part: "_Names") -> Growth:
        """Compare with a part of the same documents."""

        def several(names: _Names) -> list[int]:
            return [n for _, n in names.places.values() if n >= SEVERAL]

        text_units = _ratio(self.n_characters, part.n_characters, 1.0)
        return Growth(
            text_units,
            _ratio(len(self.places), len(part.places), text_units),
            _ratio(len(self.pairs), len(part.pairs), text_units),
            _ratio(len(several(self)), len(several(part)), text_units),
            _ratio(sum(several(self)), sum(several(part)), text_units),
        )


def _ratio(whole: int, part: int, otherwise: float) -> float:
    """Divide; few names tell nothing, as in scripts without capitals."""
    return whole / part if part >= 20 else otherwise
