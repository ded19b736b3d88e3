"""The text units to read for a question: what the index finds, ranked by `text_unit_ranking`."""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from graphrag_index.text.languages import detect_language, language_of
from graphrag_index.text.normalize import fold_names
from graphrag_query.answering.sentence_ranking import ASKING, content_words
from graphrag_query.retrieval.text_unit_ranking import (
    MAX_TEXT_UNITS,
    RankedTextUnit,
    Read,
    rank_text_units,
    rarity,
)

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from graphrag_index.storage.mapped_table import MappedTable
    from graphrag_query.retrieval.index_store import KnowledgeModel

# Text units that each of the two searches gives.
REACH = 100
# Words of the longest name that is looked for.
MAX_NAME_WORDS = 12
# Entities or documents of one name: of more, none is meant.
MOST_ALIKE = MAX_TEXT_UNITS + 1
_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")


def find_text_units(
    model: "KnowledgeModel",
    question: str,
    vector: "np.ndarray",
    also_named: Mapping[int, float] | None = None,
    within: Set[int] | None = None,
) -> list[RankedTextUnit]:
    """Rank the text units that match a question, and those that these lead to.

    `also_named` are entities that the question names otherwise than by one of their names, with
    how sure that is, from 0 to 1. If some are given, only text units `within` are searched for,
    and returned.
    """
    return start_text_units(model, question, vector, also_named, within)()


def start_text_units(
    model: "KnowledgeModel",
    question: str,
    vector: "np.ndarray",
    also_named: Mapping[int, float] | None = None,
    within: Set[int] | None = None,
) -> Callable[[], list[RankedTextUnit]]:
    """Start what `find_text_units` does; what is returned waits for it and ranks what it found."""
    import polars as pl

    table = model.vectors("text_unit_text")
    words = content_words(question)
    where = None
    if within is not None:
        where = f"human_readable_id IN ({', '.join(map(str, sorted(within))) or -1})"
    near = model.threads.submit(table.nearest, vector, REACH, ["human_readable_id"], where)
    # As they are written: the full-text index has stems of its own.
    asked = _without_plain_words(question)
    matching = model.threads.submit(
        table.matching, asked, REACH, ["human_readable_id"], where=where
    )

    def read(numbers: list[int]) -> Read:
        texts = pl.Series(model.text_unit_texts(numbers), dtype=pl.String)
        return Read(model.text_unit_vectors(numbers) @ vector, words_held(texts, words))

    named = {**(also_named or {}), **dict.fromkeys(find_named(model, question), 1.0)}
    titled = find_titled(model, question)

    def rank() -> list[RankedTextUnit]:
        full_text = dict(matching.result().select("human_readable_id", "score").iter_rows())
        found = {*near.result()["human_readable_id"], *full_text}
        ranked = rank_text_units(found, full_text, named, titled, model.links, read)
        return [unit for unit in ranked if within is None or unit.number in within]

    return rank


def find_named(model: "KnowledgeModel", question: str) -> list[int]:
    """Return the entities of which a question has a whole name."""
    names = model.map("entity_names")
    found: dict[int, None] = {}
    for rows in _names_in(question, names):
        entities = names.slice("entity", rows.start, min(rows.stop, rows.start + MOST_ALIKE))
        found |= dict.fromkeys(entities.tolist())
    return list(found)


def find_titled(model: "KnowledgeModel", question: str) -> dict[int, float]:
    """Return the text units of documents whose titles a question names, and how rare those are."""
    import numpy as np

    titles, units = model.map("title_names"), model.map("text_unit_rows")
    found: dict[int, float] = {}
    for rows in _names_in(question, titles):
        documents = titles.slice("document", rows.start, min(rows.stop, rows.start + MOST_ALIKE))
        starts, stops = units.bounds("document", np.sort(documents))
        count = int((stops - starts).sum())
        if 0 < count <= MAX_TEXT_UNITS:
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                numbers = np.arange(start, stop)
                held = numbers[model.holds_text_units(numbers)]
                found |= dict.fromkeys(held.tolist(), rarity(count, len(units)))
    return found


def _names_in(question: str, names: "MappedTable") -> list[range]:
    """Return the rows of each name in a question; of names that overlap the longest counts.

    A name of one word must be more than a word of any question, and have a capital unless the
    question has none.
    """
    import polars as pl

    plain = _plain_words(question)
    written = _WORD.findall(question)
    words = pl.Series("word", written, pl.String).to_frame()
    folded = words.select(fold_names(pl.col("word"))).to_series().to_list()
    has_capitals = any(letter.isupper() for letter in question[1:])
    spans = []
    for first, word in enumerate(written):
        tells = word.lower() not in plain and len(word) > 1
        tells = tells and (word != word.lower() or not has_capitals)
        name = ""
        for last in range(first, min(first + MAX_NAME_WORDS, len(words))):
            name = f"{name} {folded[last]}".strip()
            row = names.place("name", name)
            if row == len(names) or not names.text("name", row).startswith(name):
                break
            stop = names.place("name", name + "\0", row)
            if stop > row and (tells or last > first):
                spans.append((first - last, first, range(row, stop)))
    taken: set[int] = set()
    found = []
    for length, first, rows in sorted(spans, key=lambda span: span[:2]):
        places = range(first, first - length + 1)
        if taken.isdisjoint(places):
            taken.update(places)
            found.append(rows)
    return found


def _plain_words(question: str) -> Set[str]:
    return language_of(detect_language(question)).function_words | ASKING


def _without_plain_words(question: str) -> str:
    plain = _plain_words(question)
    words = [word for word in _WORD.findall(question.lower()) if word not in plain]
    return " ".join(words) or question


def words_held(texts: "pl.Series", words: Sequence[str]) -> "np.ndarray":
    """Tell which texts hold which words, if need be with another ending: one row per text.

    Longer words are the same if all but their last two letters are: country, countries.
    """
    import numpy as np
    import polars as pl

    if not words:
        return np.zeros((len(texts), 0), bool)
    folded = pl.select(text=texts.str.to_lowercase())
    beginnings = [
        re.escape(word[: max(len(word) - 2, 4)] if len(word) > 5 else word) for word in words
    ]
    # In one go: each expression by itself costs as much as it takes to look through the texts.
    held: np.ndarray = folded.select(
        pl.col("text").str.contains(rf"\b{beginning}").alias(str(column))
        for column, beginning in enumerate(beginnings)
    ).to_numpy()
    return held
