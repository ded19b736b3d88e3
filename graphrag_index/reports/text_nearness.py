"""The nearness of texts to the sentences of a report, by vectors of the static model.

A text near the centre of the sentences says what most of them say (Radev et al., Centroid-based
summarization of multiple documents, IPM 40, 2004).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphrag_index.llm.local.static_model import load_static_model

# Languages whose words the static model knows.
LANGUAGES = frozenset(("en",))
# Number of the best sentences of a report whose mean is the centre. More would hardly move it.
MAX_SENTENCES = 8
# Minimum nearness, so that no text counts nothing.
MIN_NEARNESS = 0.02

Vectors = npt.NDArray[np.float32]


def measure_nearness(
    sentences: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]
) -> list[list[float]]:
    """Return for each report how near its texts are to its sentences, best first.

    The nearness is the cosine of a text and the centre, but at least `MIN_NEARNESS`.
    """
    # The texts of all reports are embedded at once: a call takes longer than a few texts.
    own = [[*some[:MAX_SENTENCES], *others] for some, others in zip(sentences, texts, strict=True)]
    rows = {text: row for row, text in enumerate(dict.fromkeys(t for one in own for t in one))}
    vectors = embed([*rows])
    nearness = []
    for one, others in zip(own, texts, strict=True):
        found = vectors[[rows[text] for text in one]]
        n_sentences = len(one) - len(others)
        if n_sentences:
            found = found[n_sentences:] @ find_center(found[:n_sentences])
        nearness.append(np.maximum(found, MIN_NEARNESS).tolist() if n_sentences else [])
    return nearness


def embed(texts: Sequence[str]) -> Vectors:
    """Return a unit vector for each text."""
    return load_static_model().embed(texts)


def find_center(vectors: Vectors) -> Vectors:
    """Return the mean of unit vectors, as a unit vector."""
    mean = vectors.mean(axis=0)
    center: Vectors = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return center
