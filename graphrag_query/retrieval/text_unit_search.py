"""Search for text units by vector, full text and name, and rank them."""

import re
from collections.abc import Callable, Sequence, Set

import numpy as np
import polars as pl

from graphrag_query.question.content_words import QUESTION_WORDS, common_prefix
from graphrag_query.question.question import Question
from graphrag_query.retrieval.text_unit_ranking import (
    MAX_TEXT_UNITS,
    RankedTextUnit,
    Read,
    rank_text_units,
    rarity,
)

# Text units that the search by vector and the one by full text return each.
REACH = 100
# Entities or documents of one name: of more, none is meant.
MAX_NAMESAKES = MAX_TEXT_UNITS + 1
_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")


def start_search(
    question: Question, within: Set[int] | None = None
) -> Callable[[], list[RankedTextUnit]]:
    """Start searching for text units; call the result to wait and to rank what was found.

    Only text units `within` are searched for and returned, if some are given.
    """
    index, vector = question.index, question.vector
    table = index.vectors("text_unit_text")
    where = None
    if within is not None:
        where = f"human_readable_id IN ({', '.join(map(str, sorted(within))) or -1})"
    near = index.threads.submit(table.nearest, vector, REACH, ["human_readable_id"], where)
    # As they are written: the full-text index stems for itself.
    words = _without_plain_words(question)
    matching = index.threads.submit(
        table.matching, words, REACH, ["human_readable_id"], where=where
    )

    def read(numbers: list[int]) -> Read:
        texts = pl.Series(index.text_unit_texts(numbers), dtype=pl.String)
        held = words_held(texts, question.content_words)
        return Read(index.text_unit_vectors(numbers) @ vector, held)

    named = dict.fromkeys(named_entities(question), 1.0)
    titled = titled_text_units(question)

    def rank() -> list[RankedTextUnit]:
        full_text = dict(matching.result().select("human_readable_id", "score").iter_rows())
        found = {*near.result()["human_readable_id"], *full_text}
        ranked = rank_text_units(found, full_text, named, titled, index.links, read)
        return [unit for unit in ranked if within is None or unit.number in within]

    return rank


def named_entities(question: Question) -> list[int]:
    """Return the entities with a whole, capitalized name in the question."""
    names = question.index.map("entity_names")
    found: dict[int, None] = {}
    for name in question.mentions.whole_names:
        if name.is_marked:
            stop = min(name.rows.stop, name.rows.start + MAX_NAMESAKES)
            found |= dict.fromkeys(names.slice("entity", name.rows.start, stop).tolist())
    return list(found)


def titled_text_units(question: Question) -> dict[int, float]:
    """Return the text units of documents whose titles the question names, with their rarity."""
    index = question.index
    titles, units = index.map("title_names"), index.map("text_unit_rows")
    found: dict[int, float] = {}
    for name in question.mentions.titles:
        stop = min(name.rows.stop, name.rows.start + MAX_NAMESAKES)
        documents = titles.slice("document", name.rows.start, stop)
        starts, stops = units.bounds("document", np.sort(documents))
        count = int((stops - starts).sum())
        if 0 < count <= MAX_TEXT_UNITS:
            for start, end in zip(starts.tolist(), stops.tolist(), strict=True):
                numbers = np.arange(start, end)
                kept = numbers[index.holds_text_units(numbers)]
                found |= dict.fromkeys(kept.tolist(), rarity(count, len(units)))
    return found


def _without_plain_words(question: Question) -> str:
    plain = question.language.function_words | QUESTION_WORDS
    words = [word for word in _WORD.findall(question.text.lower()) if word not in plain]
    return " ".join(words) or question.text


def words_held(texts: pl.Series, stems: Sequence[str]) -> "np.ndarray":
    """Tell which texts hold which words, whatever their endings: one row per text."""
    if not stems:
        return np.zeros((len(texts), 0), bool)
    lower = pl.select(text=texts.str.to_lowercase())
    # All expressions in one call: each call by itself scans all texts.
    held: np.ndarray = lower.select(
        pl.col("text").str.contains(rf"\b{re.escape(common_prefix(stem))}").alias(str(column))
        for column, stem in enumerate(stems)
    ).to_numpy()
    return held
