"""Titles of themes: terms and names that many of a theme's documents have, and few others.

A report on a theme quotes a few sentences, which do not tell what most of its documents are about.
So its title comes from the beginnings of all its text units, and from the names in them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from graphrag_index.reports.own_sentences import OwnSentences
from graphrag_index.reports.report import join_titles
from graphrag_index.reports.report_titles import contains, share_word
from graphrag_index.reports.theme_counts import (
    Flags,
    Sections,
    WordCounts,
    count_theme_words,
    find_sections,
    rank_names,
    rank_words,
)
from graphrag_index.reports.theme_terms import is_vague, says_little
from graphrag_index.reports.title_members import is_media_name
from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.noun_phrases import (
    PLACE_NOUNS,
    PhraseGrammar,
    find_noun_phrase,
    phrase_grammar,
)

IsName = Callable[[pl.DataFrame, str], Flags]

# Minimum number of sections (see `find_sections`) of a theme with a title of this kind.
MIN_SECTIONS = 4
# Minimum share of the uses of a word in which it is the main word of a noun phrase.
MIN_HEAD_SHARE = 0.15
# Number of characters before or after a word, and maximum share of its uses in which they are the
# same. Otherwise it stands in a formula.
FORMULA_CHARS, MAX_FORMULA_SHARE = 10, 0.5
# Maximum number of uses of a word in which phrases are searched, minimum share of them that a
# phrase needs to stand for the word, and maximum number of its words.
MAX_USES, MIN_PHRASE_SHARE, MAX_PHRASE_WORDS = 12, 0.2, 3
# Factors of the score of a phrase, a vague word, and one for a place.
PHRASE_FACTOR, VAGUE_FACTOR, PLACE_FACTOR = 2.5, 0.3, 0.5
# Maximum number of terms and of names in a title.
MAX_TERMS, MAX_NAMES = 2, 2
# Minimum score of the first term, and without names; of a further term; of a name; and of the first
# name without terms.
MIN_SCORE, MIN_LONE_SCORE, MIN_FURTHER_SCORE = 0.45, 0.55, 0.25
MIN_NAME_SCORE, MIN_NAMES_SCORE = 0.2, 1.0
# Minimum score of a further term or name, as a share of the first, and of a term without names.
MIN_SCORE_SHARE, MIN_LONE_SHARE = 0.5, 0.3
# Maximum number of themes within a theme that stand for it if it has no title.
MAX_SUBJECTS = 4
# Maximum number of words and names of a theme by which its sentences are rated.
MAX_THEME_TERMS = 16


class ThemeName(NamedTuple):
    """The title of a theme, or "", and its words and names, best first.

    Words are in lower case and in the singular. `subjects` are the titles of the largest themes
    within one without a title.
    """

    title: str
    terms: Sequence[str]
    subjects: Sequence[str] = ()


def find_titles(
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    units: pl.DataFrame,
    own: OwnSentences,
    mentions: pl.LazyFrame,
    entities: pl.DataFrame,
    is_name: IsName,
) -> dict[int, ThemeName]:
    """Return the titles and the terms of the themes of all levels, by report.

    `units` are the text units by position (see `read_text_units`), and `own` says which of them
    each theme has. `entities` has the column `title`; `is_name` flags those that may stand in a
    title in a language. A theme without frequent terms and names has no title. Themes of few
    sections are left out.
    """
    by_number = units.sort("number")["document"]
    languages = documents.select("language").collect().to_series().gather(by_number)
    levels = [find_sections(owner, units) for _, owner in own.levels]
    found: dict[int, ThemeName] = {}
    if not levels:
        return found
    counted = count_theme_words(base_text_units, languages, levels)
    for sections, words in zip(levels, counted, strict=True):
        ranked = rank_words(sections, words.counted)
        uses = _find_uses(words, ranked)
        names = rank_names(sections, mentions)
        of_report = _find_languages(sections, languages)
        titles = _compose_titles(of_report, ranked, uses, names, entities, is_name)
        terms = _rank_terms(ranked, names, entities)
        for report in of_report["report"]:
            found[report] = ThemeName(titles.get(report, ""), terms.get(report, ()))
    return found


def add_theme_names(rows: pl.DataFrame, names: Mapping[int, ThemeName]) -> pl.DataFrame:
    """Add the title, terms and subjects of themes to reports; null for other communities."""
    found = [names.get(at) for at in range(rows.height)]
    terms = [name and name.terms for name in found]
    named = rows.with_columns(
        theme_title=pl.Series([name and name.title for name in found], dtype=pl.String),
        theme_terms=pl.Series(terms, dtype=pl.List(pl.String)),
    )
    within = (
        named.filter(pl.col("theme_title") != "")
        .sort("size", "community", descending=[True, False])
        .group_by(community="parent", maintain_order=True)
        .agg(theme_subjects=pl.col("theme_title").head(MAX_SUBJECTS))
    )
    named = named.join(within, on="community", how="left", maintain_order="left")
    own = pl.when(pl.col("theme_title") == "").then("theme_subjects")
    return named.with_columns(theme_subjects=own)


def _rank_terms(
    words: pl.DataFrame, names: pl.DataFrame, entities: pl.DataFrame
) -> dict[int, list[str]]:
    """Return the best words and names of each theme, best first; media are left out."""
    titles = entities["title"].gather(names["entity"])
    named = names.select("report", "score").with_columns(term=titles)
    is_media = pl.Series(map(is_media_name, titles), dtype=pl.Boolean)
    ranked = pl.concat([words.select("report", "score", term="word"), named.filter(~is_media)])
    best = (
        ranked.sort("report", "score", "term", descending=[False, True, False])
        .group_by("report", maintain_order=True)
        .agg(pl.col("term").head(MAX_THEME_TERMS))
    )
    return dict(best.iter_rows())


def _compose_titles(
    languages: pl.DataFrame,
    words: pl.DataFrame,
    uses: Mapping[tuple[int, str], Sequence[tuple[str, str]]],
    names: pl.DataFrame,
    entities: pl.DataFrame,
    is_name: IsName,
) -> dict[int, str]:
    """Compose the titles of themes from their words, best first, and their names, best first."""
    titles = {}
    for (code,), reports in languages.group_by("language", maintain_order=True):
        language = str(code)
        grammar = phrase_grammar(language)
        entity = names.join(reports, on="report", how="semi")["entity"].unique().sort()
        shown = entity.filter(is_name(entities[entity], language))
        own = names.filter(pl.col("entity").is_in(shown.implode()))
        shown_titles = entities["title"].gather(own["entity"])
        scored_names = _group(own["report"], own["score"], shown_titles)
        excluded = _find_name_words(entities, language)
        best = words.filter(~pl.col("word").is_in(excluded.implode()))
        scored_words = _group(best["report"], best["score"], best["word"])
        for report in reports["report"]:
            terms: dict[str, float] = {}
            for score, word in scored_words.get(report, ()):
                for term, points in _find_terms(word, uses[report, word], language, grammar):
                    terms[term] = max(terms.get(term, 0.0), score * points)
            ordered = sorted(((score, term) for term, score in terms.items()), reverse=True)
            if title := _compose(ordered, scored_names.get(report, ()), language):
                titles[report] = title
    return titles


def _group(
    reports: pl.Series, scores: pl.Series, texts: pl.Series
) -> dict[int, list[tuple[float, str]]]:
    """Map each report to its scored texts, in order of rows."""
    grouped: dict[int, list[tuple[float, str]]] = defaultdict(list)
    for report, score, text in zip(reports, scores, texts, strict=True):
        grouped[report].append((score, text))
    return grouped


def _find_name_words(entities: pl.DataFrame, language: str) -> pl.Series:
    """Return the words of names in lower case that look like nouns in a language."""
    if not language_of(language).capitalizes_nouns:
        return pl.Series(dtype=pl.String)
    lower = entities["title"].str.to_lowercase()
    named = lower.filter(entities["type"].is_in(["person", "geo"]))
    return pl.concat([lower, named.str.split(" ").explode()]).unique()


def _find_languages(sections: Sections, languages: pl.Series) -> pl.DataFrame:
    """Return the `language` of most text units of each theme that has enough sections."""
    section = sections.of_text_unit
    own = pl.DataFrame({"section": section, "language": languages}).filter(section >= 0)
    report = sections.report[own["section"].to_numpy()]
    is_large = np.bincount(sections.report)[report] >= MIN_SECTIONS
    own = own.with_columns(report=report).filter(is_large)
    found = own.group_by("report").agg(pl.col("language").mode().sort().first())
    return found.sort("language", "report")


def _find_uses(
    counted: WordCounts, words: pl.DataFrame
) -> dict[tuple[int, str], list[tuple[str, str]]]:
    """Map each report and word to texts with the word and its form there, one a section."""
    used = counted.uses.join(words, on=["report", "word"], how="semi", maintain_order="left")
    used = used.join(counted.texts, on="unit", maintain_order="left")
    found: dict[tuple[int, str], list[tuple[str, str]]] = defaultdict(list)
    for report, word, text, form in used.select("report", "word", "text", "form").iter_rows():
        if len(found[report, word]) < MAX_USES:
            found[report, word].append((text, form))
    return found


def _find_terms(
    word: str, used: Sequence[tuple[str, str]], language: str, grammar: PhraseGrammar
) -> Iterator[tuple[str, float]]:
    """Yield the terms with a word and the share of its score that they have: a word, phrases."""
    if _are_formulas(used):
        return
    found = [find_noun_phrase(text, form, grammar) for text, form in used]
    alone = Counter(
        form
        for (_, form), phrase in zip(used, found, strict=True)
        if grammar.capitalizes_nouns or _is_head(form, phrase, grammar)
    )
    if sum(alone.values()) >= max(2, MIN_HEAD_SHARE * len(used)):
        noun = max(alone, key=lambda form: (alone[form], form))
        if not says_little(noun, language):
            factor = VAGUE_FACTOR if is_vague(noun, language) else 1.0
            yield noun, factor * (PLACE_FACTOR if word in PLACE_NOUNS else 1.0)
    for phrase, n in _count_phrases(found).items():
        of_phrase = [(text, phrase) for text, _ in used if phrase in text]
        if n >= max(2, MIN_PHRASE_SHARE * len(used)) and not _are_formulas(of_phrase):
            yield phrase, n / len(used) * PHRASE_FACTOR


def _are_formulas(used: Sequence[tuple[str, str]]) -> bool:
    """Return whether most uses of a word have the same text before or after them.

    So have invitations to readers ("Share this slide"), and credits.
    """
    before, after = Counter[str](), Counter[str]()
    for text, form in used:
        start, _, end = text.partition(form)
        before[start[-FORMULA_CHARS:]] += 1
        after[end[:FORMULA_CHARS]] += 1
    most = max((count for part in (before, after) for count in part.values()), default=0)
    return most > MAX_FORMULA_SHARE * len(used)


def _is_head(form: str, phrase: str, grammar: PhraseGrammar) -> bool:
    """Return whether a word is the main word of a phrase, which stands before "of"."""
    words = phrase.lower().split()
    at = words.index(form.lower()) if form.lower() in words else -1
    return at >= 0 and (at + 1 == len(words) or words[at + 1] in grammar.of_words)


def _count_phrases(found: Sequence[str]) -> Counter[str]:
    """Count the phrases of two or three words, also as parts of longer ones."""
    whole = Counter(phrase for phrase in found if " " in phrase and phrase.islower())
    counts = Counter[str]()
    for phrase in whole:
        if len(phrase.split()) <= MAX_PHRASE_WORDS:
            counts[phrase] = sum(f" {phrase} " in f" {other.lower()} " for other in found)
    return counts


def _compose(
    terms: Sequence[tuple[float, str]], names: Sequence[tuple[float, str]], language: str
) -> str:
    """Compose a title from scored terms and names, best first; "" if they say little."""
    named = _choose_names(names, language)
    min_share = MIN_SCORE_SHARE if named else MIN_LONE_SHARE
    chosen: list[str] = []
    best = terms[0][0] if terms else 0.0
    for score, text in terms if best >= (MIN_SCORE if named else MIN_LONE_SCORE) else ():
        if len(chosen) == MAX_TERMS or score < max(MIN_FURTHER_SCORE, min_share * best):
            break
        # A part of a name says nothing more: "Württemberg: Baden-Württemberg".
        is_in_name = any(text.lower() in title.lower() for title in named)
        if not is_in_name and not any(share_word(text, other) for other in chosen):
            chosen.append(text)
    theme = join_titles(sorted(chosen, key=lambda text: " " not in text), language)
    # Names alone have to say more, and so does one word.
    if not chosen and (len(named) < MAX_NAMES or names[0][0] < MIN_NAMES_SCORE):
        return ""
    if not named and is_vague(theme, language):
        return ""
    others = [title for title in named if not contains(theme, title)]
    parts = [f"{theme[:1].upper()}{theme[1:]}", join_titles(others, language)]
    return ": ".join(filter(None, parts))


def _choose_names(names: Sequence[tuple[float, str]], language: str) -> list[str]:
    """Choose the names of a title, of which none has all words of another or begins with it."""
    chosen: list[str] = []
    for score, title in names:
        if len(chosen) == MAX_NAMES or score < max(MIN_NAME_SCORE, MIN_SCORE_SHARE * names[0][0]):
            break
        is_new = not any(
            contains(title, other)
            or contains(other, title)
            or title.startswith(other)
            or other.startswith(title)
            for other in chosen
        )
        if is_new and not is_vague(title, language):
            chosen.append(title)
    return chosen
