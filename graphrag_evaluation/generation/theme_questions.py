"""Questions on the whole corpus: themes, and pairs of names, that several documents tell of.

Themes are noun phrases that the index found, and phrases in the titles of its largest communities.
The expected statements are sentences of the documents that have the theme, or both names; so they
do not depend on what a report chose.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations

import polars as pl

from graphrag_evaluation.generation.facts import fact_words, says_which
from graphrag_evaluation.generation.index_sentences import Sentence
from graphrag_evaluation.generation.questions_of_facts import (
    MAX_STATEMENTS,
    MIN_DOCUMENTS,
    MIN_STATEMENTS,
    Draft,
)
from graphrag_index.text.languages import word_set
from graphrag_index.text.normalize import fold
from graphrag_index.text.sentences import are_near_duplicates, distinctive_words
from graphrag_query.index import Index

# The most frequent themes: bounds the time for a large corpus.
MAX_THEMES = 300
# Pairs of names that one name is in; otherwise frequent names would be in most questions.
MAX_PAIRS_OF_NAME = 3
_WORD = re.compile(r"[^\W_]+")


def list_themes(index: Index) -> list[str]:
    """List the themes of an index: phrases of two or more words that are not names."""
    store = index.store
    phrases = (
        store.scan("entities")
        .filter(type="noun phrase")
        .sort("frequency", descending=True, maintain_order=True)
        .head(MAX_THEMES)
        .select("title")
        .collect()
    )
    themes = phrases["title"].to_list()
    if store.has_table("community_reports"):
        reports = store.scan("community_reports").filter(pl.col("level") == 0).select("title")
        for title in reports.head(MAX_THEMES).collect()["title"]:
            words, mark, _ = title.partition(": ")
            # Of other phrases in titles, some are no nouns.
            themes += [one for one in words.split(" and ") if mark and one.endswith("s")]
    folded = {fold(theme): theme for theme in themes if len(theme.split()) > 1}
    return [theme[0].lower() + theme[1:] for theme in folded.values()][:MAX_THEMES]


def ask_about_themes(sentences: Sequence[Sentence], themes: Sequence[str]) -> Iterator[Draft]:
    """Ask about the themes of which sentences of several documents tell."""
    clear = [(f" {fold(one.text)} ", one) for one in sentences if _is_clear(one)]
    for theme in themes:
        about = [one for folded, one in clear if f" {fold(theme)} " in folded]
        yield from _ask(f"What do the documents report on the subject of {theme}?", about)


def ask_about_pairs(sentences: Sequence[Sentence]) -> Iterator[Draft]:
    """Ask what the documents tell about two names that sentences of several documents have."""
    of_pair: dict[tuple[str, str], list[Sentence]] = defaultdict(list)
    for sentence in sentences:
        if _is_clear(sentence):
            # Two places tell where something happened, and not of each other.
            types = {one.title: one.type for one in sentence.mentions}
            for first, second in combinations(sorted(types), 2):
                if (types[first], types[second]) != ("geo", "geo"):
                    of_pair[first, second].append(sentence)
    uses: Counter[str] = Counter()
    for pair, about in of_pair.items():
        if max(uses[name] for name in pair) >= MAX_PAIRS_OF_NAME or _overlap(*pair):
            continue
        for draft in _ask(f"What do the documents tell about {pair[0]} and {pair[1]}?", about):
            uses.update(pair)
            yield draft


def _overlap(first: str, second: str) -> bool:
    """Return whether two names share a word: they may be one thing, or a thing and its part."""
    return not set(fold(first).split()).isdisjoint(fold(second).split())


def _is_clear(sentence: Sentence) -> bool:
    """Return whether a sentence refers to nothing outside it, as "he" and "The ship was" do."""
    if sentence.language != "en":
        return False
    words = _WORD.findall(sentence.text)
    if words[0] in ("The", "In", "At", "On") and not _begins_clearly(words):
        return False
    return word_set(fact_words()["pronouns"]).isdisjoint(word.lower() for word in words)


def _begins_clearly(words: Sequence[str]) -> bool:
    at = next((at for at, word in enumerate(words[:2]) if word.lower() == "the"), None)
    return at is None or says_which(words[at + 1 :])


def _ask(question: str, about: Sequence[Sentence]) -> Iterator[Draft]:
    """Yield a question if enough different sentences of enough documents answer it."""
    kept: list[Sentence] = []
    words: list[frozenset[str]] = []
    for sentence in about:
        own = distinctive_words(sentence.text)
        if len(kept) < MAX_STATEMENTS and not any(are_near_duplicates(own, one) for one in words):
            kept.append(sentence)
            words.append(own)
    if len(kept) >= MIN_STATEMENTS and len({one.span.document for one in kept}) >= MIN_DOCUMENTS:
        statements = tuple(" ".join(one.text.split()) for one in kept)
        yield Draft("whole-corpus", question, (), tuple(one.span for one in kept), statements)
