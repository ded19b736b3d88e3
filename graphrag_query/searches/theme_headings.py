"""Headings of the sections of an answer: what each of them says about the subject."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from math import log

import numpy as np

from graphrag_nlp.text.headlines import read_headlines
from graphrag_nlp.text.languages import Language, language_of
from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.noun_phrases import NO_THEMES, find_noun_phrase, phrase_grammar
from graphrag_query.answering.extractive import TextUnit, as_one_line
from graphrag_query.answering.theme_answer import Point, value_of
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD, stop_words_of
from graphrag_query.searches.main_entities import name_themes
from graphrag_query.store.index_store import IndexStore

# Maximum number of words of a headline, and of one that is not cut at the first mark in it. What
# stands before the mark has a minimum number of words.
MAX_WORDS_OF_HEADLINE, MAX_WORDS_BEFORE_CUT, MIN_WORDS_BEFORE_MARK = 12, 9, 3
_MARK = re.compile(r"[,;:] | [-–—] ")
# Maximum number of words of a headline beside which a name stands: it may itself be one.
MAX_WORDS_BESIDE_NAME = 4
# Number of the best sentences of a section whose phrases and names may stand in its heading, and
# maximum number of parts of a heading.
MAX_POINTS_OF_PHRASES, MAX_PARTS = 2, 2
MAX_WORDS_OF_PHRASE = 6
# Minimum number of letters of a word that a phrase is about.
MIN_WORD_LENGTH = 4
_LONG_WORD = re.compile(rf"[^\W_]{{{MIN_WORD_LENGTH},}}")
# Minimum number of occurrences, in the text units of a section, of a word that is a whole phrase.
MIN_USES_OF_WORD = 2
# Added to the weight of a phrase for each further word, up to two, and for one of the question.
FURTHER_WORD_BONUS, QUESTION_BONUS = 1.0, 2.0


def name_by_contents(
    question: Question,
    sections: Sequence[Sequence[Point]],
    units: Mapping[int, TextUnit],
) -> list[str]:
    """Return a heading for each section of an answer, or "" where none is found.

    It is the headline of the document of the best sentence. Without one, it is the noun phrase
    that sets the best sentences apart from the other text units that were read. The name of their
    main entity stands beside a phrase, or beside a short headline; two names stand together only
    if there is no other phrase.
    """
    ordered = [sorted(section, key=lambda point: -value_of(point)) for section in sections]
    documents = {units[section[0].source]["document"] for section in ordered}
    headlines = _headlines_of(question.index, documents)
    asked = set(question.content_words)
    counts: _WordCounts | None = None
    best = [section[:MAX_POINTS_OF_PHRASES] for section in ordered]
    entities = name_themes(question, best)
    names, used = list[str](), set[str]()
    for section, own, of_section in zip(ordered, best, entities, strict=True):
        name = _shorten(headlines[units[section[0].source]["document"]])
        name = "" if name in used else name
        used.add(name)
        mark, parts = ": ", [name] if name else []
        if not name:
            counts = counts or _WordCounts(units)
            weights = _weigh_phrases(own, units, counts, {p.source for p in section}, asked)
            mark, parts = ", ", _choose_phrases(weights, names, 1)
            # Two names say little: a name stands beside another phrase, if there is one.
            language = language_of(units[section[0].source]["language"])
            plain = {p: w for p, w in weights.items() if not _is_name(p, of_section, language)}
            if parts and parts[0] not in plain and (said := _choose_phrases(plain, names, 1)):
                of_section, parts = [*set(parts).intersection(of_section), *of_section], said
        if len(name.split()) <= MAX_WORDS_BESIDE_NAME:
            left = MAX_PARTS - len(parts)
            if name:
                of_section = [n for n in of_section if not any(n in p.text for p in own[:1])]
            parts += _choose_phrases(dict.fromkeys(of_section, 1.0), [*names, *parts], left)
        names.append(mark.join(parts))
    return names


def _headlines_of(index: IndexStore, documents: Iterable[int]) -> Mapping[int, str]:
    """Map documents, and those of earlier questions, to their headlines; "" without one."""
    known = index.headlines
    if new := sorted(set(documents) - known.keys()):
        table = index.open_mapped("text_unit_rows")
        firsts, _ = table.bounds("document", np.array(new, np.int32))
        rows = index.open_mapped("document_rows").rows(new, "title", "language")
        rows = rows.with_columns(table.rows(firsts, "text")).with_row_index("id")
        known.update(zip(new, read_headlines(rows.lazy())["headline"], strict=True))
    return known


def _shorten(headline: str) -> str:
    """Return a headline, or the part of a long one before a mark; "" if it remains too long."""
    mark = _MARK.search(headline)
    if mark and len(headline.split()) > MAX_WORDS_BEFORE_CUT:
        start = headline[: mark.start()]
        headline = start if len(start.split()) >= MIN_WORDS_BEFORE_MARK else headline
    return headline if len(headline.split()) <= MAX_WORDS_OF_HEADLINE else ""


class _WordCounts:
    """The numbers of text units with each word, and of its occurrences in each text unit."""

    def __init__(self, units: Mapping[int, TextUnit]) -> None:
        self.n_units = len(units)
        self.of_unit = {n: _LONG_WORD.findall(unit["text"].lower()) for n, unit in units.items()}
        self.holding = Counter(word for words in self.of_unit.values() for word in set(words))

    def count(self, word: str, sources: Set[int]) -> int:
        """Count the occurrences of a word in some text units."""
        return sum(self.of_unit[source].count(word) for source in sources)

    def weigh(self, word: str, sources: Set[int]) -> float:
        """Return the weight of a word in some text units: often there, and in few others."""
        rarity = log((1 + self.n_units) / max(1, self.holding[word]))
        return log(1 + self.count(word, sources)) * rarity


def _weigh_phrases(
    points: Sequence[Point],
    units: Mapping[int, TextUnit],
    counts: _WordCounts,
    sources: Set[int],
    asked: Set[str],
) -> dict[str, float]:
    """Map the noun phrases of sentences to their weights.

    `sources` are the text units of the section, and `asked` are the stems of the question.
    """
    weights: dict[str, float] = {}
    for point in points:
        language = language_of(units[point.source]["language"])
        grammar, stop_words = phrase_grammar(language.code), stop_words_of(language)
        text = as_one_line(point.text)
        for form in dict.fromkeys(WORD.findall(text)):
            word = form.lower()
            if len(word) < MIN_WORD_LENGTH or word in stop_words or word in NO_THEMES:
                continue
            if grammar.capitalizes_nouns and form[0].islower():
                continue
            phrase = find_noun_phrase(text, form, grammar)
            words = WORD.findall(phrase.lower())
            stems = set(map(stem_word, words))
            if not phrase or stems <= asked or len(words) > MAX_WORDS_OF_PHRASE:
                continue
            weight = counts.weigh(word, sources)
            if len(words) == 1 and counts.count(word, sources) < MIN_USES_OF_WORD:
                continue
            weight += FURTHER_WORD_BONUS * min(2, len(words) - 1)
            weight += QUESTION_BONUS * (not asked.isdisjoint(stems))
            weights[phrase] = max(weights.get(phrase, 0.0), weight)
    return weights


def _is_name(phrase: str, names: Sequence[str], language: Language) -> bool:
    """Return whether a phrase is one of these names, or begins and ends with capitals."""
    words = WORD.findall(phrase)
    has_capitals = len(words) > 1 and words[0][0].isupper() and words[-1][0].isupper()
    return phrase in names or (has_capitals and not phrase_grammar(language.code).capitalizes_nouns)


def _choose_phrases(weights: Mapping[str, float], used: Sequence[str], most: int) -> list[str]:
    """Choose the heaviest phrases that share no word with each other or with used headings."""
    taken = set(WORD.findall(" ".join(used).lower()))
    chosen: list[str] = []
    for phrase in sorted(weights, key=lambda phrase: -weights[phrase]):
        words = set(WORD.findall(phrase.lower()))
        words = {word for word in words if len(word) >= MIN_WORD_LENGTH} or words
        if words.isdisjoint(taken) and len(chosen) < most:
            chosen.append(phrase)
            taken |= words
    return chosen
