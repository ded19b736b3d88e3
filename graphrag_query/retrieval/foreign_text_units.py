"""Text units in other languages than a question, ranked by the words in them that match it."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphrag_nlp.text.normalize import stem_word
from graphrag_query.question.foreign_words import KNOWN_LANGUAGES, foreign_words
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD
from graphrag_query.store.index_store import RankedTextUnit

# Maximum number of text units in other languages that are compared with a question.
MAX_COMPARED_TEXT_UNITS = 8_192
# Minimum share (0 to 1) of the words of a question that are matched in such a text unit.
MIN_SHARE = 0.5


def add_foreign_text_units(
    question: Question, ranked: Sequence[RankedTextUnit]
) -> list[RankedTextUnit]:
    """Rank text units also by the words in which they match a question in another language.

    They must match at least `MIN_SHARE` of the words of the question, weighted by rarity. The
    embedding model may read one language only, so words decide: a text unit that matches all
    words gains as much as the best one has. Of a large corpus, only every n-th text unit is read.
    """
    patterns = foreign_words(question)
    if not patterns:
        return list(ranked)
    index, rows = question.index, question.index.open_mapped("text_unit_rows")
    languages = index.open_mapped("document_rows").columns("language")["language"]
    others = sorted(KNOWN_LANGUAGES - {question.language.code})
    documents = np.flatnonzero(languages.is_in(others).fill_null(value=False).to_numpy())
    bounds = zip(*(ends.tolist() for ends in rows.bounds("document", documents)), strict=True)
    numbers = [number for first, stop in bounds for number in range(first, stop)]
    numbers = numbers[:: -(-len(numbers) // MAX_COMPARED_TEXT_UNITS) or 1]
    if not numbers:
        return list(ranked)
    # Those in the language of the question gain as much by their words.
    numbers += sorted({unit.number for unit in ranked}.difference(numbers))
    texts = rows.rows(numbers, "text")["text"].str.to_lowercase()
    asked = set(question.content_words)
    held = []
    for word in dict.fromkeys(WORD.findall(question.text.lower())):
        if (stem := stem_word(word)) in asked:
            same = rf"\b{re.escape(word)}"
            pattern = f"{same}|{patterns[stem].pattern}" if stem in patterns else same
            held.append(texts.str.contains(pattern).to_numpy())
    matches = np.array(held).T
    weights = np.log1p((len(matches) + 0.5) / (matches.sum(axis=0) + 0.5))
    shares = matches @ weights / weights.sum()
    best = max((unit.score for unit in ranked), default=1.0)
    found = {unit.number: unit for unit in ranked}
    for number, share in zip(numbers, shares.tolist(), strict=True):
        if share >= MIN_SHARE and index.text_units_behind("Sources", number):
            known = found.get(number, RankedTextUnit(number, 0.0, 0.0, "match"))
            score = share * best
            found[number] = replace(
                known, score=known.score + score, own_score=known.own_score + score
            )
    return sorted(found.values(), key=lambda unit: (-unit.score, unit.number))
