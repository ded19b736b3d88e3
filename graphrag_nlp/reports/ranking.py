"""The score of a sentence in a report: its terms, centrality and lead, times its quality.

Each of the three is at most 1. Terms are words that set the report apart from the corpus (see
`words`), centrality is the weight of the members in the sentence, and the lead is a place at the
start of a document, which often sums the document up.
"""

from collections.abc import Sequence

import polars as pl

from graphrag_nlp.reports.candidates import LEAD_CHARACTERS, LEAD_SCORE, rate_length
from graphrag_nlp.reports.words import CorpusWords, rank_words, split_headlines
from graphrag_nlp.text.languages import read_lists

# Maximum number of sentences of a report that are ranked.
MAX_RANKED = 60
# Factors for sentences that tell an opinion rather than an event (with "I" or "you", or beginning
# with a quotation), for asides in brackets, for old lines of quoted letters, and for sentences that
# begin with a noun that an earlier sentence explains ("The ship").
PERSONAL_FACTOR = 0.7
_FACTORS = {
    r"""^["'“„«‘「『]""": 0.5,
    r"^[(\[]": 0.3,
    r"(?:^|\s\p{Lu}{1,4}|^\p{L}{1,4})>\s+[^\d\s]": 0.3,
    r"^(?:The|Les?|La|El|Los|Las|Il|Gli|De|Het|Os?|As) \p{Ll}": 0.6,
}
# By language: patterns of words such as "I" and "us", but not of a word in capitals: "US".
_PERSONAL_PATTERNS = {
    code: rf"\b(?:{'|'.join(f'(?i:{word[0]}){word[1:]}' for word in words.split())})\b"
    for code, words in read_lists("graphrag_nlp/text/data/report_words")["personal_words"].items()
}
# A list of names, such as a list of voters, has hardly any words in lower case.
MAX_CAPITAL_SHARE, MIN_LIST_WORDS = 0.6, 8
# Minimum number of documents that repeat a sentence such as a publisher's notice, and maximum
# number of sentences that the same documents repeat: others are copies or versions of one text.
MIN_REPEATING_DOCUMENTS, MAX_REPEATED_SENTENCES = 3, 2


def rank_report_sentences(
    sentences: pl.DataFrame, documents: pl.DataFrame, corpus: CorpusWords
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the best sentences of each report, best first, and the best words of each report.

    Of the sentences, only the clearest are kept. The added column `terms` has the best words in the
    sentence, joined by spaces. `documents` has the headline of each document.
    """
    # A lead that mentions no entity of the community must be a clear statement.
    is_used = (pl.col("entities").list.len() > 0) | (pl.col("clarity") == 2)
    own_clarity = pl.col("clarity").filter(pl.col("entities").list.len() > 0).max()
    rated = (
        sentences.with_columns(wording=rate_wording(sentences["text"], sentences["language"]))
        .filter(is_used, pl.col("text") != "", ~is_name_list(pl.col("text")))
        .filter(pl.col("clarity") >= own_clarity.over("report").fill_null(0))
        .with_row_index("row")
    )
    words = rated.select("row", "report", "source", "document", word="words").explode("word")
    words = words.drop_nulls("word")
    best = rank_words(words, split_headlines(documents), corpus)
    used = (
        words.select("row", "report", "word")
        .join(best, on=["report", "word"])
        .sort("row", "weight", "word", descending=[False, True, False])
        .group_by("row", maintain_order=True)
        .agg(terms=pl.col("word").str.join(" "), strength=pl.col("weight").log1p().sum())
    )
    strength = pl.col("strength").fill_null(0.0)
    is_lead = pl.col("start_char") < LEAD_CHARACTERS
    scored = rated.join(used, on="row", how="left").with_columns(
        pl.col("terms").fill_null(""),
        score=rate_length(pl.col("text").str.len_chars())
        * pl.col("wording")
        * (
            strength / strength.max().over("report").clip(1e-9)
            + pl.col("centrality")
            + is_lead * LEAD_SCORE
        ),
    )
    ranked = scored.sort("report", "score", "sentence", descending=[False, True, False])
    return ranked.filter(pl.int_range(pl.len()).over("report") < MAX_RANKED), best


def rate_wording(texts: pl.Series, languages: pl.Series) -> pl.Series:
    """Rate sentences by their wording: 1, or less if they are hard to understand alone."""
    text, language = pl.col("text"), pl.col("language")
    rated = pl.lit(1.0)
    for pattern, factor in _FACTORS.items():
        rated *= pl.when(text.str.contains(pattern)).then(factor).otherwise(1.0)
    for code in _PERSONAL_PATTERNS.keys() & {*languages.unique()}:
        is_personal = (language == code) & text.str.contains(_PERSONAL_PATTERNS[code])
        rated *= pl.when(is_personal).then(PERSONAL_FACTOR).otherwise(1.0)
    frame = pl.DataFrame({"text": texts, "language": languages})
    return frame.select(wording=rated).to_series()


def is_name_list(text: pl.Expr) -> pl.Expr:
    """Return whether most words of a text begin with a capital, but not all are in capitals."""
    n_words = text.str.count_matches(r"\p{L}+")
    n_capitals = text.str.count_matches(r"\b\p{Lu}")
    is_list = (n_capitals > MAX_CAPITAL_SHARE * n_words) & (n_words >= MIN_LIST_WORDS)
    return is_list & text.str.contains(r"\p{Ll}")


def hash_sentences(quoted: pl.DataFrame) -> pl.DataFrame:
    """Return the `hash` of each distinct sentence of a `document`."""
    return quoted.select("document", hash=pl.col("text").hash()).unique()


def find_repeated(hashed: Sequence[pl.DataFrame]) -> pl.Series:
    """Return the hashes of sentences that documents repeat word by word, such as notices.

    `hashed` are results of `hash_sentences`.
    """
    if not hashed:
        return pl.Series(dtype=pl.UInt64)
    repeated = (
        pl.concat(hashed)
        .unique()
        .filter(pl.len().over("hash") >= MIN_REPEATING_DOCUMENTS)
        .group_by("hash")
        .agg(documents=pl.col("document").sort())
    )
    return repeated.filter(pl.len().over("documents") <= MAX_REPEATED_SENTENCES)["hash"].sort()


def mark_repeated(quoted: pl.DataFrame, repeated: pl.Series) -> pl.DataFrame:
    """Lower the clarity of repeated sentences to that of those that do not stand alone."""
    is_repeated = pl.col("text").hash().is_in(repeated.implode())
    clarity = pl.when(is_repeated).then(pl.col("clarity").clip(upper_bound=1))
    return quoted.with_columns(clarity=clarity.otherwise(pl.col("clarity")))
