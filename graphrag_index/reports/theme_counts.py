"""Words and names of many documents of a theme, and of few other documents.

A word or a name scores by the share of a theme's documents that have it, times the logarithm of how
many times the share of other documents that is.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.theme_terms import find_words, is_subject_word, round_up
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.list_columns import Integers, distinct_pairs, number_values

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# Number of characters that are read of each text unit: the beginning says what it is about.
READ_CHARS = 1_200
# Maximum number of consecutive text units of a document that are a section. Sections are counted
# like documents, since a book has more than one subject.
SECTION_TEXT_UNITS = 8
# Maximum number of sections of a theme whose texts are kept as examples.
MAX_READ_SECTIONS = 24
# Minimum share of the sections of a theme that have a word, or a name.
MIN_WORD_SHARE, MIN_NAME_SHARE = 1 / 6, 1 / 5
# Minimum number of these sections, and how many times the share of other sections their share is
# at least, and counts at most.
MIN_COUNT, MIN_RATIO, MAX_RATIO = 3, 2, 20
# Minimum log-likelihood ratio: words of few sections often differ by chance.
MIN_SURPRISE = 9
# Maximum number of words of a theme, and factor of the score of a word of a common subject.
MAX_WORDS, SUBJECT_FACTOR = 12, 1.5
# Numbers of text units or mentions that are read at once. They limit memory.
BATCH_TEXT_UNITS, BATCH_MENTIONS = 10_000, 1_000_000
# Words of at least three letters, in scripts with spaces between words.
_LETTER = r"[\p{L}&&[^\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
_WORD = rf"{_LETTER}[{_LETTER[1:-1]}\p{{M}}]{{2,29}}"


class Sections(NamedTuple):
    """The sections of the themes of one level: a section of two themes counts for each.

    `of_text_unit` has the section of each text unit, or -1; `report` the theme of each section.
    """

    of_text_unit: Integers
    report: Integers

    def score(self, n: Floats, report: Integers, total: Floats) -> pl.DataFrame:
        """Return `share`, `ratio`, `surprise` and `score` of what `n` sections of a theme have.

        `total` are the sections of all themes that have it. `ratio` is the share of the theme's
        sections, divided by the share of other sections; `surprise` is the log-likelihood ratio.
        """
        n_all = len(self.report)
        size = np.bincount(self.report)[report]
        # A section may be counted twice if it is read in two batches.
        n, total = np.minimum(n, size), np.minimum(total, n_all)
        share, rest = n / size, round_up((total - n).astype(np.int64))
        ratio = share * (n_all - size + 1) / (rest + 0.5)
        # One section less: a term of few sections is in so many by chance.
        score = (n - 1) / size * np.log(np.minimum(ratio, MAX_RATIO))
        # In the theme and elsewhere, with it and without it.
        counts = np.array([[n, size - n], [total - n, n_all - size - total + n]])
        expected = counts.sum(0) * counts.sum(1)[:, None] / n_all
        surprise = 2 * (counts * np.log(np.maximum(counts, 1e-9) / np.maximum(expected, 1e-9)))
        surprise = surprise.sum((0, 1))
        return pl.DataFrame({"share": share, "ratio": ratio, "surprise": surprise, "score": score})


def find_sections(owner: Integers, units: pl.DataFrame) -> Sections:
    """Divide the text units of each theme into sections.

    `owner` has the report of each text unit, or -1. `units` are the text units by position, with
    the columns `number` and `document`.
    """
    document, number = units["document"].to_numpy(), units["number"].to_numpy()
    first = np.searchsorted(document, document)
    place = (np.arange(len(document)) - first) // SECTION_TEXT_UNITS
    starts = np.diff(document, prepend=-1).astype(bool) | np.diff(place, prepend=-1).astype(bool)
    section = np.cumsum(starts)
    is_owned = owner[number] >= 0
    keys = owner[number[is_owned]] * (len(document) + 1) + section[is_owned]
    distinct, positions = np.unique(keys, return_inverse=True)
    of_text_unit = np.full(len(owner), -1)
    of_text_unit[number[is_owned]] = positions
    return Sections(of_text_unit, distinct // (len(document) + 1))


class WordCounts(NamedTuple):
    """Words of themes.

    `counted` has `n` sections for each `report` and `word`. `uses` are the uses of words in a few
    sections of each theme: `report`, `section`, `word`, its `form` and the number of its text
    `unit`. `texts` are the beginnings of these text units: `unit` and `text`, on one line.
    """

    counted: pl.DataFrame
    uses: pl.DataFrame
    texts: pl.DataFrame


def count_theme_words(
    base_text_units: pl.LazyFrame, languages: pl.Series, levels: Sequence[Sections]
) -> list[WordCounts]:
    """Count the words at the beginnings of text units, for the themes of each level.

    `languages` are those of text units.
    """
    samples = [_sample_sections(base_text_units, sections) for sections in levels]
    is_owned = np.any([sections.of_text_unit >= 0 for sections in levels], axis=0)
    parts: list[list[WordCounts]] = [[] for _ in levels]
    texts = base_text_units.select(text=pl.col("text").str.head(READ_CHARS))
    start = 0
    for batch in read_batches(texts, BATCH_TEXT_UNITS, at_least_one=True):
        units = start + np.flatnonzero(is_owned[start : start + batch.height])
        read = batch.with_columns(language=languages.slice(start, batch.height))
        read = read[units - start].with_row_index("row")
        start += batch.height
        rows, forms, words = find_words(read, _WORD)
        row, (number, distinct) = rows["row"].to_numpy(), number_values(words)
        number = number[forms]
        lines = read.select(pl.col("text").str.replace_all("\n", " ", literal=True)).to_series()
        for sections, is_sampled, own in zip(levels, samples, parts, strict=True):
            section = sections.of_text_unit[units[row]]
            is_in = section >= 0
            places, found = distinct_pairs(section[is_in], number[is_in])
            keys = {"report": sections.report[places], "number": found}
            n = pl.DataFrame(keys).group_by("report", "number").len("n")
            counted = n.select("report", "n", word=distinct.gather(n["number"]))
            chosen = np.flatnonzero(is_in & is_sampled[section])
            uses = pl.DataFrame(
                {
                    "report": sections.report[section[chosen]],
                    "section": section[chosen],
                    "word": distinct.gather(number[chosen]),
                    "form": rows["form"].gather(chosen),
                    "unit": units[row[chosen]],
                }
            )
            uses = uses.unique(["section", "word"], keep="first", maintain_order=True)
            used = np.unique(row[chosen])
            # A list copies the texts, so that those of the batch do not stay in memory.
            kept = pl.DataFrame({"unit": units[used], "text": lines.gather(used).to_list()})
            own.append(WordCounts(counted, uses, kept.cast({"text": pl.String})))
    return [
        WordCounts(
            pl.concat([part.counted for part in own]).group_by("report", "word").agg(pl.sum("n")),
            pl.concat([part.uses for part in own]),
            pl.concat([part.texts for part in own]),
        )
        for own in parts
    ]


def _sample_sections(base_text_units: pl.LazyFrame, sections: Sections) -> Flags:
    """Flag a few sections of each theme, at random: ids are hashes.

    So most of them stay the same when a few documents change.
    """
    ids = base_text_units.select("id", section=pl.Series(sections.of_text_unit)).collect()
    first = ids.filter(pl.col("section") >= 0).group_by("section").agg(pl.min("id"))
    ranked = first.with_columns(report=sections.report[first["section"].to_numpy()]).sort("id")
    chosen = ranked.group_by("report").head(MAX_READ_SECTIONS)["section"].to_numpy()
    is_sampled = np.zeros(len(sections.report), dtype=bool)
    is_sampled[chosen] = True
    return is_sampled


def rank_words(sections: Sections, counted: pl.DataFrame) -> pl.DataFrame:
    """Return the best words of each theme: `report`, `word` and `score`."""
    factor = pl.when(is_subject_word(pl.col("word"))).then(SUBJECT_FACTOR).otherwise(1.0)
    return (
        _keep_best(sections, counted, "word", MIN_WORD_SHARE)
        .with_columns(score=pl.col("score") * factor)
        .sort("report", "score", "word", descending=[False, True, False])
        .filter(pl.int_range(pl.len()).over("report") < MAX_WORDS)
    )


def rank_names(sections: Sections, mentions: pl.LazyFrame) -> pl.DataFrame:
    """Return the best entities of each theme: `report`, `entity`, `share` and `score`."""
    found = []
    columns = mentions.select("entity", "text_unit")
    for batch in read_batches(columns, BATCH_MENTIONS, at_least_one=True):
        section = sections.of_text_unit[batch["text_unit"].to_numpy()]
        pairs = distinct_pairs(section[section >= 0], batch["entity"].to_numpy()[section >= 0])
        found.append(pl.DataFrame(dict(zip(("section", "entity"), pairs, strict=True))))
    named = pl.concat(found).unique()
    reports = sections.report[named["section"].to_numpy()]
    counted = named.with_columns(report=reports).group_by("report", "entity").len("n")
    return _keep_best(sections, counted, "entity", MIN_NAME_SHARE)


def _keep_best(sections: Sections, counted: pl.DataFrame, name: str, share: float) -> pl.DataFrame:
    """Add the columns `share` and `score` to counts of sections; leave out small shares."""
    counted = counted.with_columns(total=pl.sum("n").over(name))
    n, report, total = (counted[column].to_numpy() for column in ("n", "report", "total"))
    scores = sections.score(n.astype(np.float64), report, total.astype(np.float64))
    rated = counted.hstack(scores).filter(
        pl.col("share") >= share,
        pl.col("n") >= MIN_COUNT,
        pl.col("ratio") >= MIN_RATIO,
        pl.col("surprise") >= MIN_SURPRISE,
    )
    return rated.sort("report", "score", name, descending=[False, True, False])
