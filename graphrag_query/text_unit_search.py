"""The text units to read for a question: what the index finds, ranked by `text_unit_ranking`."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphrag_query.sentence_ranking import content_words
from graphrag_query.text_unit_ranking import RankedTextUnit, Read, rank_text_units

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from graphrag_query.knowledge_model import KnowledgeModel

# Text units that each of the two searches gives.
REACH = 100


def find_text_units(
    model: "KnowledgeModel",
    question: str,
    vector: "np.ndarray",
    named: Sequence[int],
) -> list[RankedTextUnit]:
    """Rank the text units that match a question, and those that these lead to.

    `named` are the entities that the question names.
    """
    table = model.vectors("text_unit_text")
    words = content_words(question)
    near = table.nearest(vector, REACH, ["human_readable_id"])
    asked = " ".join(words) or question
    matching = table.matching(asked, REACH, ["human_readable_id"])
    full_text = dict(matching.select("human_readable_id", "score").iter_rows())

    def read(numbers: list[int]) -> Read:
        rows = table.at(numbers, ["text", "vector"])
        return Read(rows["vector"].to_numpy() @ vector, words_held(rows["text"], words))

    found = {*near["human_readable_id"], *full_text}
    return rank_text_units(found, full_text, named, model.links, read)


def words_held(texts: "pl.Series", words: Sequence[str]) -> "np.ndarray":
    """Tell which texts hold which words, or words that begin as they do: one row per text."""
    import numpy as np

    held = np.zeros((len(texts), len(words)), bool)
    folded = texts.str.to_lowercase()
    for column, word in enumerate(words):
        held[:, column] = folded.str.contains(rf"\b{re.escape(word)}").to_numpy()
    return held
