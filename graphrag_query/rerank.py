"""Reranking: a finer model scores the best text units of a question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from graphrag_index.errors import ModelError
from graphrag_index.llm.local.local_models import EmbeddingModel, VectorCache
from graphrag_index.llm.request import Spending


class Reranker(Protocol):
    """A model that scores how well passages match a question."""

    def score(self, question: str, passages: Sequence[str], spent: Spending) -> Sequence[float]:
        """Return a score for each passage; a higher score is a better match.

        The cost of a call is added to `spent`.
        """

    def close(self) -> None: ...


class LocalReranker:
    """An embedding model on this machine, whose cosine similarities are the scores."""

    def __init__(self, model: EmbeddingModel, vectors: VectorCache) -> None:
        self._model, self._vectors = model, vectors

    def score(self, question: str, passages: Sequence[str], spent: Spending) -> Sequence[float]:
        """Return the cosine similarity of each passage to the question."""
        [vector] = self._model.embed([question])
        scores: list[float] = (self._vectors.embed(self._model, passages) @ vector).tolist()
        return scores

    def close(self) -> None:
        self._vectors.close()


@dataclass
class Reranking:
    """The reranking for one question, its cost, and a warning if its model failed.

    Without `open_reranker`, nothing is reranked.
    """

    open_reranker: Callable[[], Reranker] | None = None
    spent: Spending = field(default_factory=Spending)
    warnings: list[str] = field(default_factory=list)

    def refine_similarities(
        self, question: str, texts: Sequence[str], similarities: Sequence[float]
    ) -> list[float]:
        """Return the similarities of texts to the question, refined by the model.

        Models differ in the scale of their scores. So the scores are shifted and scaled to the
        mean and the standard deviation of the given similarities. If the model fails, the given
        similarities are returned, and the model is not called again for this question.
        """
        unchanged = list(similarities)
        if self.open_reranker is None or self.warnings or not texts:
            return unchanged
        try:
            scores = np.array(self.open_reranker().score(question, texts, self.spent), np.float64)
        except ModelError as error:
            self.warnings.append(f"The passages were ranked without the reranker: {error}")
            return unchanged
        # Rounding gives equal scores a deviation above 0.
        if scores.min() == scores.max():
            return unchanged
        known = np.array(similarities)
        refined: list[float] = (
            known.mean() + (scores - scores.mean()) * (known.std() / scores.std())
        ).tolist()
        return refined
