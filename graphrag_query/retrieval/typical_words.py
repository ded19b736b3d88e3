"""The words that are typical of single documents of a corpus, and so tell what it is about."""

from collections.abc import Sequence, Set
from functools import cache

import polars as pl

from graphrag_nlp.text.languages import languages
from graphrag_nlp.text.normalize import stem_word
from graphrag_query.retrieval.theme_passages import sample_text_units
from graphrag_query.store.index_store import IndexStore

# Maximum number of text units whose words are counted.
MAX_TEXT_UNITS = 160
# Minimum number of documents, or of text units in a small corpus, that contain a typical word.
MIN_PLACES = 3
# Maximum share (0 to 1) of the documents that contain a typical word.
MAX_SHARE = 0.75
# The same for text units with a word of a topic; other words stand in more text units.
MAX_SHARE_OF_TOPIC = 0.15
# Minimum number of documents; of fewer ones, text units are compared.
MIN_DOCUMENTS = 20
# Number of words that are compared by their stems, for each word of the result.
N_READ_PER_WORD = 6


def find_typical_words(index: IndexStore, most: int) -> list[str]:
    """Return at most `most` words that stand often in few documents, the most typical first.

    A word of the subject of a document is repeated there, and a word of the style stands here and
    there in all documents [1]_. Only words of the names and terms of the index count.

    References
    ----------
    .. [1] Church & Gale, Inverse Document Frequency (IDF): A Measure of Deviations from Poisson,
       Third Workshop on Very Large Corpora (1995).
    """
    units = sample_text_units(index, MAX_TEXT_UNITS)
    if not units:
        return []
    rows = index.open_mapped("text_unit_rows").rows(units, "document", "text")
    if rows["document"].n_unique() < MIN_DOCUMENTS:
        rows = rows.with_columns(document=pl.Series(units))
    words = split_words(rows)
    n_places = rows["document"].n_unique()
    counts = (
        words.group_by("word")
        .agg(n=pl.len(), places=pl.col("document").n_unique())
        .filter(
            pl.col("places") >= MIN_PLACES,
            pl.col("places") <= MAX_SHARE * n_places,
            pl.col("n") > pl.col("places"),
        )
    )
    # How many more documents would contain the word if its occurrences were spread by chance.
    by_chance = n_places * (1 - (pl.col("n") / -n_places).exp())
    score = (by_chance / pl.col("places")).log() * pl.col("places").sqrt()
    best = counts.with_columns(score=score).sort("score", "word", descending=[True, False])
    known = stems_of_entities(index, units)
    return choose_words(words, best["word"], speakers_of(rows["text"]), known, most)


def find_common_words(index: IndexStore) -> Set[str]:
    """Return the words, in lower case, that stand in many of the text units."""
    units = sample_text_units(index, MAX_TEXT_UNITS)
    rows = index.open_mapped("text_unit_rows").rows(units, "text")
    words = split_words(rows.with_row_index("unit")).unique(["unit", "word"])
    counts = words.group_by("word").len()
    return set(counts.filter(pl.col("len") > MAX_SHARE_OF_TOPIC * len(units))["word"])


def split_words(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the words of texts: the other columns of `rows`, `written` and `word`."""
    return (
        rows.with_columns(written=pl.col("text").str.extract_all(r"\p{L}{4,}"))
        .drop("text")
        .explode("written")
        .drop_nulls("written")
        .with_columns(word=pl.col("written").str.to_lowercase())
    )


def speakers_of(texts: pl.Series) -> set[str]:
    """Return the labels of one word at the start of lines, in lower case."""
    labels = texts.str.extract_all(r"(?m)^\p{L}+:").explode().drop_nulls()
    return {label[:-1].lower() for label in labels}


def choose_words(
    words: pl.DataFrame, best: pl.Series, speakers: Set[str], known: Set[str], most: int
) -> list[str]:
    """Choose the best words with known stems, each as the texts mostly write it: Scott, scurvy.

    Function words and speakers are left out, and of words with one stem, all but the first.
    """
    left_out = [*all_function_words(), *speakers]
    found: dict[str, str] = {}
    for word in best.filter(~best.is_in(left_out)).head(N_READ_PER_WORD * most):
        if (stem := stem_word(word)) in known:
            found.setdefault(stem, word)
    typical = list(found.values())[:most]
    written = words.filter(pl.col("word").is_in(typical)).group_by("word", "written").len()
    usual = dict(written.sort("len", "written").select("word", "written").iter_rows())
    return [usual[word] for word in typical]


def stems_of_entities(index: IndexStore, units: Sequence[int]) -> set[str]:
    """Return the stems of the words in the titles of the entities of text units."""
    entities = sorted({e for n in units for e in index.links.entities_of(n).numbers.tolist()})
    titles = index.open_mapped("entity_rows").rows(entities, "title")["title"]
    words = titles.str.to_lowercase().str.extract_all(r"\p{L}{4,}").explode().unique()
    return set(map(stem_word, words.drop_nulls()))


@cache
def all_function_words() -> frozenset[str]:
    """Return the function words of all languages."""
    return frozenset[str]().union(*(language.function_words for language in languages().values()))
