"""Terms for the theme of a text: words and phrases that set it apart from the corpus.

The words of the sentences of a report are compared with those of the corpus by their
log-likelihood ratio [1]_. Terms are the noun phrases in which these words stand.

References
----------
.. [1] Dunning, Accurate methods for the statistics of surprise and coincidence, CL 19 (1993).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cache
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_nlp.list_columns import Integers, distinct_pairs, number_values
from graphrag_nlp.names.name_words import common_words
from graphrag_nlp.text.languages import language_of, read_lists, word_set
from graphrag_nlp.text.noun_phrases import NO_THEMES, find_noun_phrase, phrase_grammar

# Words of at least four letters, in scripts with spaces between words.
_LETTER = r"[\p{L}&&[^\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
_WORD = rf"{_LETTER}[{_LETTER[1:-1]}\p{{M}}]{{3,29}}"
# Maximum number of words in the list of the corpus. All other words count as rare as its last.
MAX_CORPUS_WORDS = 50_000
# Number of bits to which counts of the corpus are rounded up. So the weights of most words, and
# with them most reports, stay the same when a few documents change.
COUNT_BITS = 3
# Maximum number of words of a report that are compared with the corpus, and of its terms.
MAX_WORDS, MAX_TERMS = 12, 9
# Minimum number of text units of a report that contain a word.
MIN_SOURCES = 2
# Factor of the weight of a word of a common subject of texts, such as "flood" and "court".
SUBJECT_FACTOR = 2.0
# The so many most frequent words of a language say little without other words.
MAX_FREQUENT_RANK = 1_000
# Factor of the weight of a word of one source, which stands for a report only without others.
LONE_FACTOR = 0.1
# Maximum number of documents of a report with a word in their headline that increase its weight.
MAX_HEADLINES = 3
# Minimum share of its uses in which a word must be a noun.
MIN_NOUN_SHARE = 0.15
# Maximum number of uses of a word that show if it is a noun, and in which phrases it stands.
MAX_USES = 4
MAX_SMALL_WORD = 3
# Minimum share of the occurrences of a word that a phrase needs to stand for the word.
MIN_SHARE_IN_PHRASE = 0.34


class CorpusWords(NamedTuple):
    """The rounded number of sentences of the corpus, and of those with each word (`word`, `n`)."""

    n_sentences: int
    counts: pl.DataFrame


class Term(NamedTuple):
    """A word or phrase that stands for a theme.

    `forms` are forms of its main word. `phrases` maps sentences to the noun phrase with this word
    in them, or to "" if it stands there in another way.
    """

    text: str
    forms: tuple[str, ...]
    weight: float
    phrases: Mapping[str, str] = {}


def count_corpus_words(parts: Iterable[tuple[int, pl.DataFrame]]) -> CorpusWords:
    """Add up the results of `count_words`, and keep the most frequent words."""
    sizes, frames = zip((0, _NO_COUNTS), *parts, strict=True)
    counts = pl.concat(frames).group_by("word").agg(pl.sum("n"))
    counts = counts.sort("n", "word", descending=[True, False]).head(MAX_CORPUS_WORDS)
    rounded = round_up(counts["n"].to_numpy().astype(np.int64))
    [n_sentences] = round_up(np.array([sum(sizes)]))
    return CorpusWords(int(n_sentences), counts.with_columns(n=pl.Series(rounded)))


def round_up(counts: Integers) -> Integers:
    """Round counts up to numbers with `COUNT_BITS` significant bits."""
    unit = 1 << np.maximum(np.frexp(counts)[1] - COUNT_BITS, 0).astype(np.int64)
    rounded: Integers = -(-counts // unit) * unit
    return rounded


_NO_COUNTS = pl.DataFrame(schema={"word": pl.String, "n": pl.UInt32})


def count_words(texts: pl.Series, languages: pl.Series) -> tuple[int, pl.DataFrame]:
    """Return the number of sentences, and of those that contain each word."""
    rows, forms, words = find_words(
        pl.DataFrame({"row": range(len(texts)), "text": texts, "language": languages})
    )
    numbers, distinct = number_values(words)
    _, found = distinct_pairs(rows["row"].to_numpy(), numbers[forms])
    counts = np.bincount(found, minlength=len(distinct))
    counted = pl.DataFrame({"word": distinct, "n": counts}, _NO_COUNTS.schema)
    return len(texts), counted.filter(pl.col("n") > 0)


def split_words(sentences: pl.DataFrame) -> pl.DataFrame:
    """Return the words of sentences that may name a theme: `row`, `word` and its `form`.

    Names are left out by their capital letter. In German, whose nouns have a capital letter, words
    without one are left out.
    """
    rows, forms, words = find_words(sentences)
    return rows.with_columns(word=words.gather(forms))


def find_words(
    sentences: pl.DataFrame, pattern: str = _WORD
) -> tuple[pl.DataFrame, Integers, pl.Series]:
    """Return `row` and `form` of each word, the number of its form, and the word by form."""
    split = (
        # The first word of a sentence has a capital letter, whatever it is.
        sentences.select(
            "row",
            "language",
            form=pl.col("text").str.replace(r"^\P{L}*\p{L}+", "").str.extract_all(pattern),
        )
        .explode("form")
        .drop_nulls("form")
    )
    # Texts repeat most forms, so each form is looked at once.
    numbers, distinct = number_values(split["form"])
    lower = distinct.str.to_lowercase()
    is_capital = distinct.str.head(1) != lower.str.head(1)
    kept = np.zeros(split.height, bool)
    for code in split["language"].unique():
        excluded = pl.Series(sorted(_excluded_words(code)))
        fits = (is_capital == language_of(code).capitalizes_nouns) & ~lower.is_in(excluded)
        kept |= (split["language"] == code).to_numpy() & fits.to_numpy()[numbers]
    return split.select("row", "form").filter(kept), numbers[kept], singular(lower)


def split_headlines(documents: pl.DataFrame) -> pl.DataFrame:
    """Return the words of the column `headline`: `document` and `word`; names are no exception."""
    words = pl.col("headline").str.to_lowercase().str.extract_all(_WORD)
    split = documents.select("document", word=words).explode("word").drop_nulls("word")
    return split.with_columns(singular(split["word"])).unique(maintain_order=True)


def singular(words: pl.Series) -> pl.Series:
    """Return words in the plural as in the singular, about."""
    return words.str.replace(r"ies$", "y").str.replace(r"([^sui])s$", "${1}")


@cache
def _excluded_words(language: str) -> frozenset[str]:
    return language_of(language).function_words | NO_THEMES


def rank_words(words: pl.DataFrame, corpus: CorpusWords) -> pl.DataFrame:
    """Return the best words of each report: `report`, `word` and `weight`.

    `words` has one row per word of a sentence: `report`, `row`, `source`, `document`, `word`,
    `form`, and in `is_headline` whether the word is in the headline of the document.
    """
    rarest = corpus.counts["n"].min() or 1
    n_all = max(corpus.n_sentences, 2)
    sizes = words.group_by("report").agg(
        size=pl.col("row").n_unique(), sources=pl.col("source").n_unique()
    )
    n, size, total = pl.col("n"), pl.col("size"), pl.col("total")
    n_sources, sources = pl.col("n_sources"), pl.col("sources")
    expected = size * total / n_all
    rest = total - n
    likelihood = 2 * (
        n * (n / expected).log()
        + pl.when(rest > 0).then(rest * (rest / (total - expected)).log()).otherwise(0.0)
    )
    return (
        words.group_by("report", "word")
        .agg(
            n=pl.col("row").n_unique(),
            n_sources=pl.col("source").n_unique(),
            n_headlines=pl.col("document").filter("is_headline").n_unique(),
        )
        .join(sizes, on="report")
        .with_columns(is_subject=is_subject_word(pl.col("word")))
        .join(corpus.counts.rename({"n": "total"}), on="word", how="left")
        .with_columns(
            n=n.cast(pl.Float64),
            total=pl.max_horizontal(total.fill_null(rarest), n).cast(pl.Float64),
        )
        # A word of few text units says little of the others, however often it is in them.
        .with_columns(
            weight=likelihood
            * (n_sources / n * n_sources / sources).sqrt()
            * (1 + pl.col("n_headlines").clip(upper_bound=MAX_HEADLINES))
            * pl.when("is_subject").then(SUBJECT_FACTOR).otherwise(1.0)
            # All words of a report with one source are in it.
            * pl.when(n_sources < pl.min_horizontal(sources, MIN_SOURCES))
            .then(LONE_FACTOR)
            .otherwise(1.0)
        )
        .filter(pl.col("weight") > 0)
        .sort("report", "weight", "word", descending=[False, True, False])
        .filter(pl.int_range(pl.len()).over("report") < MAX_WORDS)
        .select("report", "word", "weight")
    )


def is_subject_word(word: pl.Expr) -> pl.Expr:
    """Return whether a word is one of a common subject of texts, in any language."""
    return word.str.contains(_subject_pattern())


@cache
def _subject_pattern(language: str = "") -> str:
    """Return a regular expression for the words of common subjects in one or all languages."""
    subjects = read_lists("graphrag_nlp/text/data/common_subjects")["subjects"]
    words = {
        word
        for one in subjects
        for code, listed in one.items()
        for word in listed.split()
        if language in ("", code)
    }
    whole = (word.strip("*") + "$" * (not word.endswith("*")) for word in words)
    return f"^(?:{'|'.join(sorted(whole))})"


def says_little(term: str, language: str, max_rank: int | None = MAX_FREQUENT_RANK) -> bool:
    """Return whether a term names no theme: a frequent word alone, but of no common subject.

    Only the `max_rank` most frequent words of the list are frequent, or all if it is None.
    In a language without a list of common subjects, every word may be of one.
    """
    word = term.lower()
    is_frequent = word in common_words(language, max_rank)
    return is_frequent and not re.match(_subject_pattern(language), word)


# Endings of nouns in the plural or in other cases, by language; "" is for all others.
_ENDINGS = {"de": ("", "s", "es", "n", "en", "e"), "es": ("", "s", "es"), "": ("", "s")}


@cache
def _vague_words(language: str) -> frozenset[str]:
    return word_set(
        read_lists("graphrag_nlp/text/data/report_words")["vague_words"].get(language, "")
    )


def is_vague(term: str, language: str) -> bool:
    """Return whether a term is one noun that says little of a theme alone, such as "decision"."""
    word = term.lower()
    stems = [word.removesuffix(ending) for ending in _ENDINGS.get(language, _ENDINGS[""])]
    return not _vague_words(language).isdisjoint((*stems, f"{word.removesuffix('ies')}y"))


def find_terms(
    uses: Sequence[tuple[str, str, float, str]], language: str, names: Set[str]
) -> list[Term]:
    """Return the terms of a report, best first, each with other words than the terms before it.

    `uses` are sentences with a word, its weight and its form in the sentence, best word first.
    Words in `names`, in lower case, are part of the names in its title, and are left out.
    """
    grammar = phrase_grammar(language)
    terms: list[Term] = []
    used_words: set[str] = set()
    for (word, weight), group in groupby(uses, itemgetter(1, 2)):
        used = [(form, text) for text, _, _, form in islice(group, MAX_USES)]
        forms = [form for form, _ in used]
        if not (names | used_words).isdisjoint((word, *forms)):
            continue
        phrases = {text: find_noun_phrase(text, form, grammar) for form, text in used}
        counts: dict[str, int] = {}
        for text, phrase in phrases.items():
            if phrase and used_words.isdisjoint(phrase.lower().split()):
                counts[phrase] = counts.get(phrase, 0) + 1
            else:
                phrases[text] = ""
        n_nouns = sum(counts.values())
        if n_nouns < max(1, MIN_NOUN_SHARE * len(used)) and not grammar.capitalizes_nouns:
            continue
        # A word that is no phrase by itself, such as an adjective, stands only with others.
        alone = [form for form in forms if form in counts or grammar.capitalizes_nouns]
        best = max(counts, key=lambda phrase: (counts[phrase], len(phrase), phrase), default="")
        if counts.get(best, 0) < max(2, MIN_SHARE_IN_PHRASE * len(used)):
            best = max(alone, key=lambda form: (forms.count(form), form), default=best)
        terms.append(Term(best, tuple(dict.fromkeys(forms)), weight, phrases))
        # Small words such as "of" may stand in several terms.
        if len(terms) == MAX_TERMS:
            break
        used_words.update((w for w in best.lower().split() if len(w) > MAX_SMALL_WORD), forms)
    return terms


def rank_terms(terms: Sequence[Term], nearness: Sequence[float]) -> list[Term]:
    """Weigh terms by how near they are to the sentences: a marginal term is no theme."""
    weighed = [
        Term(term.text, term.forms, math.sqrt(term.weight) * near**2, term.phrases)
        for term, near in zip(terms, nearness, strict=True)
    ]
    return sorted(weighed, key=lambda term: -term.weight)
