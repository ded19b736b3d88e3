"""Titles of reports and headings of findings: names, then a theme.

"Tom Crean, Ernest Shackleton: Antarctic expedition". The theme is a noun phrase around a word that
sets the report apart from the corpus, or the headline of its documents.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain, islice
from typing import NamedTuple

import polars as pl

from graphrag_nlp.reports.findings import Finding, Sentence
from graphrag_nlp.text.languages import join_titles, read_lists, word_set
from graphrag_nlp.text.noun_phrases import NO_THEMES, find_noun_phrase, phrase_grammar

# Maximum numbers of names and of themes from which a title is composed, and of names in a title
# beside a theme and without one.
MAX_NAMES, MAX_THEMES, NAMES_BESIDE_THEME, NAMES_ALONE = 8, 4, 2, 3
# Maximum number of words of a report for which phrases are searched, and of sentences for each
# word; this one is larger for a report on many documents.
MAX_WORDS, MIN_USES = 4, 3
# Minimum shares of the uses of a word: those as a noun, and those in one and the same phrase.
MIN_SHARE_OF_NOUN, MIN_SHARE_OF_PHRASE = 0.15, 0.4
# Factors of the weight of a theme: of several words, of one word in one sentence, and of a vague
# one such as "decision". The last is for names that say little: noun phrases and newspapers.
PHRASE_FACTOR, LONE_FACTOR, VAGUE_FACTOR, WEAK_FACTOR = 2.0, 0.3, 0.2, 0.05
# Words whose first characters are equal are forms of one word; small words such as "of" are none.
MAX_STEM, MAX_SMALL_WORD = 5, 3
# Minimum weight of a second word of a theme as a share of the first, beside names and without any.
MIN_SHARE_OF_SECOND, MIN_SHARE_ALONE = 0.5, 0.2
# Minimum share of the sentences of a report whose documents have a headline that is its theme.
MIN_HEADLINE_SHARE = 0.75
# A report has one subject if one name or word is in at least this many of its documents, and this
# share of them. A rarer name does not stand beside a theme.
MIN_DOCUMENTS_OF_SUBJECT, MIN_SHARE_OF_SUBJECT = 2, 1 / 6
# Maximum share of common words in titles of communities with one parent: readers compare them.
MAX_COMMON_SHARE = 0.6
_LISTS = read_lists("graphrag_nlp/text/data/report_words")
# A name of a newspaper, broadcaster or agency.
_MEDIA = rf"(?:^|\s)(?:{'|'.join(_LISTS['media'])})(?:['’]s)?(?:$|\s\p{{Lu}})"
_WORD = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*")
_POSSESSIVE = re.compile(r"^.*(?:['’]s|s['’]) ")


class TitleParts(NamedTuple):
    """The parts from which the title of a report is composed, best first.

    `names` are in many documents, `others` in few. A report on different subjects has only
    `things`: complete titles that name two of these subjects.
    """

    names: Sequence[str]
    others: Sequence[str]
    themes: Sequence[str]
    things: Sequence[str] = ()

    def list_titles(self) -> Iterator[str]:
        """Yield all titles that can be composed, best first."""
        yield from self.things
        yield from compose_titles(self.names, self.themes)
        yield from compose_titles([*self.names, *self.others], self.themes)


class Namer:
    """The names and themes of one report.

    `weight` has the weight of each entity, `word_weight` that of each word that sets the report
    apart, best first. `headlines` maps documents to their headlines, or to "".
    """

    def __init__(
        self,
        ranked: Sequence[Sentence],
        titles: Mapping[int, str],
        weight: Mapping[int, float],
        word_weight: Mapping[str, float],
        headlines: Mapping[int, str],
        language: str,
    ) -> None:
        self._ranked, self._titles, self._weight = ranked, titles, weight
        self._word_weight, self._headlines, self._language = word_weight, headlines, language
        self._phrases: dict[tuple[str, str], str] = {}
        self._headings: set[str] = set()
        self._said: set[str] = set()
        # The documents with each entity and each word; if all is from one document, its sentences.
        self._places: dict[int | str, set[int]] = defaultdict(set)
        self._n_documents = len({one.document for one in ranked})
        for one in ranked:
            place = one.document if self._n_documents > 1 else one.row
            keys: Iterable[int | str] = (*one.entities, *one.terms)
            for key in keys:
                self._places[key].add(place)
        self._members = {entity for one in ranked for entity in one.entities}
        self._n_places = self._n_documents if self._n_documents > 1 else len(ranked)

    def find_parts(self, main: Sequence[int], headings: Sequence[str]) -> TitleParts:
        """Return the parts of the title; `main` are the members with the largest weights.

        The title of a report on different subjects joins the headings of two findings.
        """
        score = {e: len(self._places[e]) * self._weight[e] for e in self._members}
        ordered = sorted(score, key=lambda entity: (-score[entity], entity)) or main
        names = _drop_parts([self._titles[entity] for entity in ordered[:MAX_NAMES]])
        least = MIN_SHARE_OF_SUBJECT * self._n_places
        most = max(map(len, self._places.values()), default=0)
        if self._n_documents > 1 and most < max(MIN_DOCUMENTS_OF_SUBJECT, least):
            return TitleParts(names, (), (), [f"{headings[0]}; {other}" for other in headings[1:]])
        known = {self._titles[e] for e in ordered[:MAX_NAMES] if len(self._places[e]) >= least}
        themes = self._rank_themes(MIN_SHARE_OF_SECOND if known else MIN_SHARE_ALONE)
        headline = self._find_headline()
        # A headline that has only names of entities says no theme.
        if fold_words(headline).difference(*(fold_words(self._titles[n]) for n in self._members)):
            themes.insert(0, headline)
        if not themes:
            return TitleParts(names, (), ())
        own = [name for name in names if name in known]
        others = [name for name in names if name not in known]
        return TitleParts(own, others, themes[:MAX_THEMES])

    def _find_headline(self) -> str:
        """Return the headline above at least `MIN_HEADLINE_SHARE` of the sentences; "" if none."""
        counts = Counter(self._headlines.get(one.document, "") for one in self._ranked)
        [(headline, n)] = counts.most_common(1) or [("", 0)]
        return headline if n >= MIN_HEADLINE_SHARE * len(self._ranked) else ""

    def _rank_themes(self, min_share: float) -> list[str]:
        """Return the themes of the report, best first: a phrase, or one or two words.

        `min_share` is the minimum weight of the second word, as a share of the first.
        """
        uses: dict[str, list[Sentence]] = defaultdict(list)
        max_uses = MIN_USES + self._n_documents // 8
        for one in self._ranked:
            for word in one.terms:
                uses[word].append(one)
        scored: list[tuple[float, str]] = []
        for word, weight in islice(self._word_weight.items(), MAX_WORDS):
            used = uses[word][:max_uses]
            text, n = self._find_best_phrase(word, used)
            if not text:
                continue
            factor = PHRASE_FACTOR if " " in text and n > 1 else 1.0
            if " " not in text:
                factor = LONE_FACTOR if len(used) == 1 else 1.0
                factor *= VAGUE_FACTOR if is_vague(text, self._language) else 1.0
            scored.append((-weight * factor, text))
        scored.sort()
        themes: list[str] = []
        known = set[str]()
        for _, text in scored:
            stems = {word[:MAX_STEM] for word in text.lower().split() if len(word) > MAX_SMALL_WORD}
            if known.isdisjoint(stems):
                themes.append(text)
                known |= stems
        if len(themes) > 1 and " " not in themes[0] + themes[1]:
            weights = {text: -score for score, text in scored}
            if weights[themes[1]] >= min_share * weights[themes[0]]:
                themes.insert(0, join_titles(themes[:2], self._language))
        return themes

    def _find_best_phrase(self, word: str, used: Sequence[Sentence]) -> tuple[str, int]:
        """Return the most frequent phrase with a word, and the number of sentences that have it.

        If no phrase is frequent, the word alone takes its place. The phrase is "" if the word is no
        noun.
        """
        found = [phrase for one in used if (phrase := self.find_theme(word, one))]
        if len(found) < MIN_SHARE_OF_NOUN * len(used) or not found:
            return "", 0
        counts = Counter(found)
        best = max(counts, key=lambda text: (counts[text] * (1 + (" " in text)), text))
        if len(used) <= 2 or counts[best] >= max(2, MIN_SHARE_OF_PHRASE * len(used)):
            return best, counts[best]
        heads = Counter(text.split()[-1] for text in found if word[:-1] in text.split()[-1].lower())
        [(head, n)] = heads.most_common(1) or [(best, counts[best])]
        return head, n

    def find_theme(self, word: str, sentence: Sentence) -> str:
        """Return the noun phrase with a word in a sentence, without names; "" if there is none."""
        key = word, sentence.text
        if key not in self._phrases:
            self._phrases[key] = _find_phrase(word, sentence.text, self._language)
        return self._phrases[key]

    def compose_heading(self, finding: Finding, *, is_theme: bool) -> str:
        """Compose the heading of a finding: its subject and theme; "" if every heading is used.

        A finding of a theme has the headline of its document, if there is one.
        """
        first = finding.sentences[0]
        headline = self._headlines.get(first.document, "") if is_theme else ""
        members = {entity for one in finding.sentences for entity in one.entities}
        ordered = sorted(members, key=lambda e: (e != finding.subject, -self._weight[e], e))
        names = [self._titles[entity] for entity in ordered[:MAX_NAMES]]
        terms = dict.fromkeys(word for one in finding.sentences for word in one.terms)
        themes = (
            theme
            for word in sorted(terms, key=self._said.__contains__)
            for one in finding.sentences
            if word in one.terms
            and (theme := self.find_theme(word, one))
            and not is_vague(theme, self._language)
        )
        composed = compose_titles(names, themes)
        heading = next(
            (text for text in chain((headline,), composed) if text and text not in self._headings),
            "",
        )
        self._headings.add(heading)
        self._said |= {word for word in terms if word in heading.lower()}
        return heading


@lru_cache(10_000)
def _compile_forms(word: str, is_cased: bool) -> re.Pattern[str]:
    forms = rf"{word[:-1]}(?:y|ies)" if word.endswith("y") else rf"{word}(?:e?s)?"
    return re.compile(rf"\b{forms}\b", re.IGNORECASE if is_cased else re.NOFLAG)


def _find_phrase(word: str, text: str, language: str) -> str:
    grammar = phrase_grammar(language)
    found = _compile_forms(word, grammar.capitalizes_nouns).search(text)
    if not found:
        return ""
    phrase = find_noun_phrase(text, found[0], grammar)
    if grammar.capitalizes_nouns:
        return phrase or found[0]
    # Remove names, since a title has them before the theme: "Scott's ship", "maker of Dundee".
    phrase = _POSSESSIVE.sub("", phrase)
    for of in grammar.of_words:
        head, _, rest = phrase.partition(f" {of} ")
        phrase = head if not rest.islower() else phrase
    return phrase


def compose_titles(names: Sequence[str], themes: Iterable[str]) -> Iterator[str]:
    """Yield titles of names and a theme, best first: "Ann, Bob: race"."""
    for theme in themes:
        folded = theme.lower()
        own = [name for name in names[:MAX_NAMES] if name.lower() not in folded]
        for n in (NAMES_BESIDE_THEME, NAMES_BESIDE_THEME + 1, 1):
            title = ": ".join((", ".join(own[:n]), theme)) if own else theme
            yield f"{title[:1].upper()}{title[1:]}"
    for n in (NAMES_ALONE, *range(1, len(names) + 1)):
        if names[:n]:
            yield ", ".join(names[:n])


class Titles:
    """The titles of all reports, in the order of reports: sub-communities come first."""

    def __init__(self) -> None:
        self._words_of_children: dict[int, list[frozenset[str]]] = defaultdict(list)
        self._used: set[str] = set()

    def choose(self, community: int, parent: int, parts: TitleParts) -> str:
        """Choose a title that no other report has, and that differs clearly from its family's.

        The family are the communities with the same parent, and the sub-communities.
        """
        siblings = self._words_of_children[parent]
        family = [*siblings, *self._words_of_children.pop(community, ())]
        best, lowest = "", math.inf
        for title in parts.list_titles():
            words = fold_words(title)
            shared = (len(words & other) / max(len(words | other), 1) for other in family)
            nearness = max(shared, default=0.0) + (title in self._used)
            if nearness < lowest:
                best, lowest = title, nearness
            if nearness <= MAX_COMMON_SHARE:
                break
        siblings.append(fold_words(best))
        self._used.add(best)
        return best


def _drop_parts(names: Sequence[str]) -> list[str]:
    """Leave out names that contain an earlier name, or that an earlier name contains."""
    kept: list[str] = []
    for name in names:
        if not any(name in other or other in name for other in kept):
            kept.append(name)
    return kept


def fold_words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case, in the singular as far as a rule tells."""
    words = (word.removesuffix("'s").removesuffix("’s") for word in _WORD.findall(text.lower()))
    return frozenset(word.removesuffix("s") if len(word) > 3 else word for word in words)


def flag_weak_names(entities: pl.DataFrame) -> pl.Series:
    """Flag the entities whose titles say little in the title of a report.

    They are noun phrases, vague words alone, and newspapers, broadcasters and agencies, which tell
    where a text is from.
    """
    title, kind = entities["title"], entities["type"]
    is_media = title.str.contains(_MEDIA) & kind.is_in(["organization", "name"])
    return (kind == "noun phrase") | is_media | title.str.to_lowercase().is_in(_weak_words())


@cache
def _weak_words() -> pl.Series:
    listed = [word for words in _LISTS["vague_words"].values() for word in words.split()]
    plurals = (re.sub("y$", "ie", word) + "s" for word in listed)
    return pl.Series(sorted({*listed, *plurals, *NO_THEMES})).implode()


@cache
def _vague_words(language: str) -> frozenset[str]:
    return word_set(_LISTS["vague_words"].get(language, ""))


# Endings of nouns in the plural or in other cases, by language; "" is for all others.
_ENDINGS = {"de": ("", "s", "es", "n", "en", "e"), "es": ("", "s", "es"), "": ("", "s")}


def is_vague(term: str, language: str) -> bool:
    """Return whether a term is one noun that says little of a theme alone, such as "decision"."""
    word = term.lower()
    stems: Iterable[str] = map(word.removesuffix, _ENDINGS.get(language, _ENDINGS[""]))
    return not _vague_words(language).isdisjoint((*stems, f"{word.removesuffix('ies')}y"))
