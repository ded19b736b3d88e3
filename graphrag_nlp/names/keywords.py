"""English words in capitals that are keywords or emphasized, and no acronyms."""

from collections import Counter, defaultdict

import numpy as np

from graphrag_nlp.names.corpus_statistics import CorpusStatistics
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import common_words

# Minimum number of letters of a keyword. A word of exactly so many letters is more often an
# acronym: it is a keyword only if the corpus writes it in lower case more often.
_MIN_LETTERS = 3
# Minimum number of different keywords in a document that has many.
_MIN_KEYWORDS = 5


def find_keywords(usage: CorpusStatistics) -> frozenset[str]:
    """Return the frequent English words that documents full of such words write in capitals.

    "SELECT" and "UNION" in a manual of SQL are keywords. "AIDS" and "WHO" are acronyms in news,
    where few words in capitals are also frequent words in lower case.
    """
    found = usage.found
    explained = {number for pair in found.abbreviations for number in pair}
    words_of: dict[int, list[str]] = {}
    for number, name in enumerate(found.names):
        if name.isupper() and found.languages[number].code == "en" and number not in explained:
            words = [word for word in name.split(" ") if _may_be_keyword(usage, word)]
            if words:
                words_of[number] = words
    if not words_of:
        return frozenset()
    surface = np.frombuffer(found.surface, np.int32)
    rows = np.flatnonzero(np.isin(surface, list(words_of)))
    times: dict[int, Counter[str]] = defaultdict(Counter)
    for row in rows.tolist():
        times[found.document[row]].update(words_of[found.surface[row]])
    total: Counter[str] = Counter()
    in_manuals: Counter[str] = Counter()
    for counts in times.values():
        total.update(counts)
        if len(counts) >= _MIN_KEYWORDS:
            in_manuals.update(counts)
    return frozenset(word for word, count in in_manuals.items() if 2 * count > total[word])


def _may_be_keyword(usage: CorpusStatistics, word: str) -> bool:
    """Return whether a word in capitals is also a frequent word in lower case."""
    lower = word.lower()
    if lower not in common_words("en") or find_known_type(lower) or len(word) < _MIN_LETTERS:
        return False
    least = usage.inside_words[word] if len(word) == _MIN_LETTERS else 0
    return usage.count_lower(word, "en") > least
