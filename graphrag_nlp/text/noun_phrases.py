"""Complete noun phrases around a word, found by the words beside them, without a tagger.

A phrase begins after an article, a preposition, a number or an adjective that says little, and ends
before a function word, a verb or punctuation. What may be cut or have a verb is left out.
"""

import re
from functools import cache
from typing import NamedTuple

from graphrag_nlp.text.languages import language_of, read_lists, word_set

_WORDS, _PHRASE_WORDS = (
    read_lists("graphrag_nlp/text/data/report_words"),
    read_lists("graphrag_nlp/text/data/phrase_words"),
)
NO_MODIFIERS = word_set(_PHRASE_WORDS["weak_modifiers"])
NO_THEMES = word_set(_WORDS["no_themes"]) | word_set(_PHRASE_WORDS["weak_heads"]) | NO_MODIFIERS
# English function words after a noun in the plural.
_CLOSINGS = word_set("and or are were have had for by with that which who of in as than will but")
_CONJUNCTIONS = word_set(_PHRASE_WORDS["conjunctions"])
# Function words such as "today" may follow a noun.
_AFTER_ADJECTIVES = _CONJUNCTIONS | (NO_THEMES - language_of("en").function_words)
# Endings of English words that are no nouns.
_NO_NOUN_ENDINGS = ("ed", "ing", "ly", "est", "ous", "ful", "ive", "able", "ible", "ic")
# Maximum number of words before a noun, after it, and of a complement such as "of the storm".
MAX_BEFORE, MAX_AFTER, MAX_COMPLEMENT = 3, 2, 4
# A word with the ending of a verb is longer than this, unlike "king".
MIN_VERB_LENGTH = 4
# Number of characters beside a word that are read.
WINDOW = 80
_TOKEN = re.compile(r"\S+")
_MARKS = ".,;:!?()[]{}\"'“”„«»‘’*_–—-…/"
# Particles of names of persons: Osama bin Laden.
_PARTICLES = word_set("bin ibn al el de du da del der den van von la le")
# Short forms before the rest of a name.
_SHORT_WORDS = word_set(
    "st ste mt ft dr mr mrs ms sen rep gov gen col lt sgt prof rev no hr fr sr sra"
)
_POSSESSIVES = ("'s", "’s", "s'", "s’")


class PhraseGrammar(NamedTuple):
    """The words of a language that begin and end noun phrases."""

    openings: frozenset[str]
    before_verbs: frozenset[str]
    determiners: frozenset[str]
    articles: frozenset[str]
    function_words: frozenset[str]
    of_words: frozenset[str]
    verb_endings: tuple[str, ...]
    # Whether adjectives and other nouns stand before a noun, as in English.
    has_modifiers: bool
    capitalizes_nouns: bool


@cache
def phrase_grammar(code: str) -> PhraseGrammar:
    """Return the words of a language, by its code, that begin and end noun phrases."""
    language = language_of(code)
    before_verbs = word_set(_WORDS["before_verbs"].get(code, ""))
    openings = language.determiners | language.place_prepositions | language.other_prepositions
    return PhraseGrammar(
        openings - before_verbs,
        before_verbs,
        language.determiners,
        language.articles or language.determiners,
        language.function_words,
        word_set(_WORDS["of_words"].get(code, "")),
        ("ed", "ing") if code == "en" else language.verb_endings,
        code == "en",
        language.capitalizes_nouns,
    )


def find_noun_phrase(text: str, form: str, grammar: PhraseGrammar) -> str:
    """Return the complete noun phrase around the first use of a word; "" if there is none.

    `text` is on one line.
    """
    start = text.find(form)
    while start >= 0 and (text[start - 1 : start] + text[start + len(form) :][:1]).isalpha():
        start = text.find(form, start + 1)
    if start < 0:
        return ""
    first = _find_start(text, start, form, grammar)
    end = _find_end(text, start + len(form), grammar) if first >= 0 else -1
    if end < 0:
        return ""
    phrase = text[first:end]
    is_alone = end == start + len(form) and sum(map(str.islower, phrase.split())) == 1
    following = _TOKEN.match(text, end + 1) if is_alone and grammar.has_modifiers else None
    if following and form.endswith("ly") and following[0].endswith("ed"):
        return ""  # "closely" in "a closely related plant"
    return "" if following and _may_be_adjective_before(following[0]) else phrase


def _may_be_adjective_before(word: str) -> bool:
    """Return whether a single word before this one may be an adjective: male and female names."""
    lower = word.rstrip(_MARKS)
    return word[0].isupper() or lower.endswith("ing") or "-" in lower or lower in _AFTER_ADJECTIVES


def _may_be_verb(word: str, grammar: PhraseGrammar) -> bool:
    return len(word) > MIN_VERB_LENGTH and word.endswith(grammar.verb_endings)


def is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))


def _find_start(text: str, start: int, form: str, grammar: PhraseGrammar) -> int:
    """Return the start of the phrase that contains the word at `start`; -1 without one."""
    if text[start - 1 : start] != " ":
        return -1
    if grammar.capitalizes_nouns:
        return start
    first, is_open = start, not form.endswith(_NO_NOUN_ENDINGS)
    must_open = False
    end = start - 1
    for n in range(MAX_BEFORE + 1):
        before = text.rfind(" ", 0, end) + 1
        word = text[before:end]
        end = before - 1
        lower = word.lower()
        if not word:
            break
        if word.endswith(_POSSESSIVES):
            return _include_possessor(text, before, first)
        if lower in grammar.openings:
            # In holding talks: only an article shows that "holding" is no verb.
            is_open &= not (must_open and text[first:start].partition(" ")[0].endswith("ing"))
            return first if is_open or lower in grammar.articles else -1
        if word[-1] in _MARKS or lower in grammar.function_words or lower in grammar.before_verbs:
            break
        is_weak = word in NO_MODIFIERS or lower[0].isdigit()
        if is_weak or must_open:
            return first if is_weak and is_open else -1
        # Stop at a verb such as "took", an adverb, the first word of the text, and many words.
        is_verb = word in NO_THEMES or lower.endswith("ly") or not is_open
        if is_verb or not before or n == MAX_BEFORE or not grammar.has_modifiers:
            break
        if not word[0].isalpha():
            break
        must_open = word.islower() and (_may_be_verb(lower, grammar) or is_plural(lower))
        first = before
    return -1


def _include_possessor(text: str, start: int, first: int) -> int:
    """Return the start of a possessor with a capital ("Scott's"); `first` if it has none."""
    if not text[start].isupper():
        return first
    for token in reversed(list(_TOKEN.finditer(text, max(0, start - WINDOW), start))):
        is_name = token[0][0].isupper() or token[0] in _PARTICLES
        if not is_name or token[0][-1] in _MARKS or not token.start():
            break
        start = token.start()
    return start


def _find_end(text: str, end: int, grammar: PhraseGrammar) -> int:
    """Return the end of the phrase that contains the word that ends at `end`; -1 without one."""
    mark = text[end : end + 1]
    if mark and mark != " ":
        return -1 if mark in "-‑–'’/" else end
    last = ""
    for n, token in enumerate(_TOKEN.finditer(text, end, end + WINDOW)):
        word = token[0]
        lower = word.lower().rstrip(_MARKS)
        if lower in _PARTICLES and lower not in grammar.function_words:
            return -1
        if lower in grammar.of_words:
            return _add_complement(text, end, token.end(), grammar)
        if lower in grammar.function_words:
            # In "The system develops more", the word before "more" is a verb.
            is_verb = (
                last.endswith("s") and lower not in _CLOSINGS and lower not in grammar.openings
            )
            return -1 if is_verb or lower in grammar.determiners else end
        if not word.islower() or not lower.isalpha() or not grammar.has_modifiers:
            return end
        if _may_be_verb(lower, grammar) or lower.endswith("ly") or lower in NO_THEMES:
            return end
        # Blazes burn: the plural of a noun rarely stands before another noun.
        if n == MAX_AFTER or is_plural(text[max(0, end - 30) : end].rpartition(" ")[2]):
            return -1
        end, last = token.start() + len(lower), lower
        if len(lower) < len(word):
            return -1 if word[len(lower)] in "-‑'’/" else end
    return end


def _add_complement(text: str, end: int, start: int, grammar: PhraseGrammar) -> int:
    """Return the end of a phrase with its complement after `start`: "claims of child abuse"."""
    last, n = "", 0
    stop = end
    for at, token in enumerate(_TOKEN.finditer(text, start, start + WINDOW)):
        word = token[0]
        core = word.rstrip(_MARKS)
        lower = core.lower()
        if not at and lower in grammar.articles and lower == word:
            continue
        is_word = core.replace("-", "").replace("’", "").replace("'", "").isalpha()
        if lower in grammar.function_words and not core[:1].isupper():
            # A list may be cut: the deaths of Scott, Wilson and Bowers.
            is_cut = lower in grammar.determiners or lower in _CONJUNCTIONS
            return end if is_cut or not last or last in NO_THEMES else stop
        is_end = grammar.capitalizes_nouns or _may_be_verb(lower, grammar) or lower.endswith("ly")
        if not is_word or (word.islower() and last and is_end):
            return stop if last and last not in NO_THEMES and not word[:1].isdigit() else end
        if n == MAX_COMPLEMENT or (lower in NO_THEMES and n):
            return end
        n, stop = n + 1, token.start() + len(core)
        # A complement needs a noun, and a German noun has a capital.
        last = lower if core[0].isupper() or not grammar.capitalizes_nouns else ""
        if len(core) < len(word):
            # The rest of a name such as St. Petersburg is in the next words.
            is_cut = word[len(core)] not in ".;:!?)" or last in NO_THEMES or lower in _SHORT_WORDS
            return end if is_cut else stop
    return stop if last and last not in NO_THEMES and stop == len(text.rstrip()) else end
