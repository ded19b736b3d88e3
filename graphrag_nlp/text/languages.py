"""Word lists of languages: word classes, detection, inflected names, and titles of persons.

The lists are YAML files in the `data` folders of the package. They are short on purpose: other
common words of a language are learned from the corpus.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphrag_nlp.text.normalize import fold

_PACKAGES_FOLDER = Path(__file__).parents[2]
_LETTERS_OF_WORD = re.compile(r"[^\W\d_]+")
_ASCII_SPACES = {code: " " for code in range(128) if not chr(code).isalpha()}
# Characters at the start, and at the end, of a text that detection of its language reads.
_SAMPLE_CHARACTERS = 2_000
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n\s*")
# Options and codes, whose letters are words of other languages: Polish "i", Portuguese "o".
_OPTION = re.compile(r"(?<!\w)-{1,2}\w[\w-]*|\b\w(?=:\d)")
# Minimum number of function words of a language in a paragraph that is in another language than
# its document, and how many times more they are than those of the document's language.
_MIN_PARAGRAPH_WORDS, _MIN_PARAGRAPH_RATIO = 3, 2
# In a text of at most this length, one function word is enough to detect the language.
_MAX_SHORT_TEXT_CHARACTERS = 200


@cache
def read_lists(name: str, folder: Path = _PACKAGES_FOLDER) -> Mapping[str, Any]:
    """Read a YAML file of lists once; `name` is its path without suffix, in `folder`."""
    import yaml

    text = (folder / f"{name}.yaml").read_text(encoding="utf-8")
    lists: Mapping[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return lists


def expand_pattern(patterns: Mapping[str, str | list[str]], name: str) -> str:
    """Return a regular expression; each `{NAME}` in it is replaced by the pattern NAME.

    The parts of a list are joined.
    """
    pattern = "".join(patterns[name])
    return re.sub(r"\{([A-Z_]+)\}", lambda found: expand_pattern(patterns, found[1]), pattern)


def word_set(text: str) -> frozenset[str]:
    """Split a text at white space into a set of words."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Language:
    """The word lists and rules of one language. All words are in lower case."""

    code: str
    function_words: frozenset[str] = frozenset()
    determiners: frozenset[str] = frozenset()
    # Articles, which rarely precede names of persons. If empty, all determiners are used.
    articles: frozenset[str] = frozenset()
    place_prepositions: frozenset[str] = frozenset()
    other_prepositions: frozenset[str] = frozenset()
    # Verbs of definitions ("is"), and verbs whose subject is usually a person ("said").
    copulas: frozenset[str] = frozenset()
    person_verbs: frozenset[str] = frozenset()
    capitalizes_nouns: bool = False
    # Whether a name gets "s" without an apostrophe in the genitive.
    genitive_s: bool = False
    # Case endings of names. `oblique` has the endings that names in the nominative rarely have.
    endings: tuple[str, ...] = ()
    oblique: tuple[str, ...] = ()
    # Vowel in the last syllable of the stem that disappears before an ending.
    fleeting_vowel: str = ""
    # (inflected ending with a changed consonant, end of the stem that it replaces).
    alternations: tuple[tuple[str, str], ...] = ()
    # Endings of verbs, for languages where the verb may begin a sentence.
    verb_endings: tuple[str, ...] = ()


# Language without word lists, for texts whose language is not known or not supported.
UNKNOWN_LANGUAGE = Language("und")


@cache
def languages() -> Mapping[str, Language]:
    """Return all languages with word lists, by ISO 639-1 code."""
    lists = read_lists("graphrag_nlp/text/data/languages")["languages"]
    return {code: _parse_language(code, values) for code, values in lists.items()}


def _parse_language(code: str, values: Mapping[str, Any]) -> Language:
    read = dict(values)
    for field in fields(Language):
        if field.name == "alternations":
            read[field.name] = tuple(values.get(field.name, {}).items())
        elif isinstance(field.default, tuple | frozenset):
            read[field.name] = type(field.default)(values.get(field.name, "").split())
    return Language(code, **read)


def language_of(code: str) -> Language:
    """Return the language of an ISO 639-1 code; `UNKNOWN_LANGUAGE` if it has no word lists."""
    return languages().get(code, UNKNOWN_LANGUAGE)


def script_of(code: str) -> str:
    """Return a regular expression for a letter of the script of a language."""
    scripts: Mapping[str, str] = read_lists("graphrag_nlp/text/data/languages")["scripts"]
    words = language_of(code).function_words
    return scripts.get(code) or (
        "[\u0400-\u052f]" if max(words, default="") > "\u0400" else "[a-z]"
    )


def detect_language(text: str) -> str:
    """Detect the language of a text by script and function words.

    Returns an ISO 639-1 code, or "und" if the language is not clear.
    """
    lists = read_lists("graphrag_nlp/text/data/languages")
    size = _SAMPLE_CHARACTERS
    sample = text[:size] if len(text) <= 2 * size else text[:size] + text[-size:]
    if not sample.isascii():
        n_letters = sum(map(str.isalpha, sample))
        for code, script in lists["scripts"].items():
            # Use a low threshold for Japanese, which mixes kana with Chinese characters.
            if len(re.findall(script, sample)) * (8 if code == "ja" else 2) > n_letters:
                return str(code)
    votes, times = _count_votes(sample)
    # Of languages with equally many votes, take the first in the YAML file.
    code = max(votes, key=lambda code: votes[code])
    # In a short text, accept one word if no other language has equally many votes.
    alone = list(votes.values()).count(votes[code]) == 1
    if times[code] >= 2 or (times[code] and alone and len(sample) <= _MAX_SHORT_TEXT_CHARACTERS):
        return code
    # Otherwise look for letters that only one language uses, in words in lower case.
    letters = {c for word in _LETTERS_OF_WORD.findall(sample) if word.islower() for c in word}
    codes = [code for code, own in lists["letters"].items() if letters & {*own}]
    return codes[0] if len(codes) == 1 else "und"


def _count_votes(text: str) -> tuple[dict[str, float], Counter[str]]:
    """Count the function words of each language in a text: as votes, and as occurrences."""
    languages_of_word = map_words_to_languages()
    votes: dict[str, float] = dict.fromkeys(languages(), 0.0)
    times: Counter[str] = Counter()
    lower = text.lower()
    # In ASCII, the plain way to split is several times as fast.
    words = (
        lower.translate(_ASCII_SPACES).split()
        if lower.isascii()
        else _LETTERS_OF_WORD.findall(lower)
    )
    for word, count in Counter(filter(languages_of_word.__contains__, words)).items():
        codes = languages_of_word[word]
        for code in codes:
            # Divide the vote of a word that belongs to several languages.
            votes[code] = votes.get(code, 0.0) + count / len(codes)
            times[code] += count
    return votes, times


def find_language_ranges(text: str, code: str) -> list[tuple[int, int, str]]:
    """Split a text into ranges of paragraphs in one language: (start, end, language code).

    `code` is the language of the text. A paragraph has another one if its words show it. If no word
    shows a language, the paragraph has that of the paragraph before it.
    """
    ends = [found.end() for found in _PARAGRAPH_END.finditer(text)]
    if not ends:
        ends = [found.end() for found in re.finditer("\n", text)]
    ranges: list[tuple[int, int, str]] = []
    for start, end in pairwise((0, *(e for e in ends if 0 < e < len(text)), len(text))):
        votes, _ = _count_votes(_OPTION.sub(" ", text[start:end]))
        best = max(votes, key=lambda code: votes[code])
        best_votes, own_votes = votes[best], votes.get(code, 0.0)
        is_clear = best_votes >= _MIN_PARAGRAPH_WORDS or not own_votes
        own = code
        if best_votes < 1 and ranges:
            own = ranges[-1][2]  # a heading or a list of names
        elif (
            best in languages()
            and is_clear
            and best_votes >= _MIN_PARAGRAPH_RATIO * max(own_votes, 1)
        ):
            own = best
        if ranges and ranges[-1][2] == own:
            start = ranges.pop()[0]
        ranges.append((start, end, own))
    return ranges


@cache
def map_words_to_languages() -> dict[str, list[str]]:
    """Map each word that shows a language to the codes of its languages."""
    lists = read_lists("graphrag_nlp/text/data/languages")
    words_of = {code: language.function_words for code, language in languages().items()}
    words_of |= {code: word_set(text) for code, text in lists["other_languages"].items()}
    for code, text in lists["content_words"].items():
        words_of[code] |= word_set(text)
    codes: dict[str, list[str]] = {}
    for code, own in words_of.items():
        for word in own:
            codes.setdefault(word, []).append(code)
    return codes


# Minimum characters of a stem: words with a shorter common stem are often unrelated.
MIN_STEM = 3


def find_stems(word: str, language: Language) -> frozenset[str]:
    """Return the possible stems of a word: the word itself, and the word without an ending.

    Two words may be forms of one name if they have a stem in common. For English words, use
    `normalize.stem_word`.
    """
    # Stem each part of a double name, such as Skłodowskiej-Curie.
    parts = fold(word).split(" ")
    stems = [_find_stems_of_part(part, language.code) for part in parts]
    if len(parts) == 1:
        return stems[0]
    combined = {""}
    for options in stems:
        combined = {f"{left} {right}" for left in combined for right in options}
    return frozenset(combined)


@lru_cache(maxsize=65_536)
def _find_stems_of_part(word: str, code: str) -> frozenset[str]:
    stems, language = {word}, language_of(code)
    for ending, stem_end in (*((e, "") for e in list_folded_endings(code)), *language.alternations):
        stem = word.removesuffix(ending) + stem_end
        if word.endswith(ending) and len(stem) >= MIN_STEM:
            stems.add(stem)
    fleeting = language.fleeting_vowel
    # Drop a vowel before the last consonant that endings make disappear: Paweł, Pawła.
    if fleeting and len(word) > MIN_STEM and word[-2] == fleeting:
        stems.add(word[:-2] + word[-1])
    return frozenset(stems)


@cache
def list_folded_endings(code: str) -> tuple[str, ...]:
    return tuple(sorted({fold(ending) for ending in language_of(code).endings}))


_TITLE_LISTS = {
    name: word_set(text) for name, text in read_lists("graphrag_nlp/text/data/titles").items()
}
HONORIFICS, RANKS = _TITLE_LISTS["honorifics"], _TITLE_LISTS["ranks"]
TITLE_PARTS, NAMING_TITLES = _TITLE_LISTS["title_parts"], _TITLE_LISTS["naming_titles"]
PARTICLES, TITLES_OF_WOMEN = _TITLE_LISTS["particles"], _TITLE_LISTS["titles_of_women"]
_DOTTED_TITLES = _TITLE_LISTS["dotted_titles"]
ABBREVIATED_TITLES = RANKS | _DOTTED_TITLES | {"mt"}
# Numbers of months, by their names and abbreviations in lower case.
MONTHS: Mapping[str, int] = {
    name: int(month)
    for month, names in read_lists("graphrag_nlp/text/data/months").items()
    for name in names.split()
}


def is_title(word: str) -> bool:
    """Return whether a word is a title before a person's name, such as "Dr." or "General"."""
    lower = word.lower()
    if lower in HONORIFICS or lower in RANKS:
        return True
    if lower.endswith(".") and (lower[:-1] in RANKS or lower[:-1] in _DOTTED_TITLES):
        # Reject "M.", which is an initial in most languages.
        return len(lower) > 2
    # Accept compounds of titles, such as Lieutenant-Colonel and Maj.-Gen.
    return "-" in lower and all(map(is_title, lower.split("-")))


def n_titles(name: Sequence[str]) -> int:
    """Count the words of titles at the start of a name, except the last word of the name."""
    first, titled = 0, False
    while first < len(name) - 1 and (is_title(name[first]) or name[first].lower() in TITLE_PARTS):
        titled = titled or is_title(name[first])
        first += 1
    # Return 0 for "President of Peru", without a name, and for "Third Class", without a title.
    return first if titled and name[first][:1].isupper() else 0


def join_titles(titles: Sequence[str], language: str = "en") -> str:
    """Join titles to a phrase in a language: "A", "A and B", "A, B and C"."""
    if len(titles) < 2:
        return "".join(titles)
    conjunctions = read_lists("graphrag_nlp/text/data/report_words")["conjunctions"]
    return f"{', '.join(titles[:-1])} {conjunctions.get(language, 'and')} {titles[-1]}"
