"""Names in scripts without capitals: recurring strings, which include frequent nouns.

In scripts with spaces (Arabic, Hebrew, Hindi, Korean), a name is a sequence of one to three words
without affixes (particles that are written together with a word). In scripts without spaces
(Chinese, Japanese, Thai), a name is a string that recurs next to different characters, as whole
words do: Feng, Chen, Deng & Zheng, Accessor Variety Criteria for Chinese Word Extraction,
Computational Linguistics 30 (2004).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import polars as pl

from graphrag_nlp.names.name_words import HEAD_FIRST, REFERENCES
from graphrag_nlp.text.languages import language_of, read_lists, word_set

_WORDS = read_lists("graphrag_nlp/names/data/uncased")
UNSPACED, SPACED = word_set(_WORDS["unspaced"]), word_set(_WORDS["spaced"])
LANGUAGE_CODES = UNSPACED | SPACED
# Maximum number of words of a name in scripts with spaces.
MAX_NAME_WORDS = 3
# Maximum number of characters of a name in scripts without spaces. Thai needs more characters
# than Chinese and Japanese.
MAX_NAME_CHARS = 20
_MAX_CHARS_OF_LANGUAGE = {"zh": 10, "ja": 12}
# A name is dropped if at least this share of its occurrences is inside one longer name.
MIN_PART_SHARE = 0.8
# A name may begin or end with a character such as 为 (a preposition, but also part of the name
# 华为) only if at least this share of the character's occurrences in the corpus is in the name.
MIN_EDGE_SHARE = 0.6
# Maximum number of characters of the entity of a text in which no names were found.
MAX_FALLBACK_CHARS = 40

_HARD_EDGES, _SOFT_EDGES = frozenset(_WORDS["hard_edges"]), frozenset(_WORDS["soft_edges"])
_EDGE_SIGNS = _HARD_EDGES | _SOFT_EDGES
_ENDINGS, _NO_NAME = tuple(_WORDS["endings"].split()), _WORDS["no_name"]
_BREAK_PATTERN = re.compile(f"({'|'.join(_ENDINGS)})|{'|'.join(_WORDS['breaks'].split())}")
_LISTS = read_lists("graphrag_nlp/names/data/words")
# Words that say nothing about the topic of a text.
_WEAK_ENTITIES = REFERENCES.union(*(_LISTS[name].split() for name in ("openers", "procedure")))
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SPACED_LETTER, _UNSPACED_LETTER = _WORDS["spaced_letter"], _WORDS["unspaced_letter"]
# Zero-width joiners between letters belong to the word.
_SPACED_WORD = re.compile(rf"{_SPACED_LETTER}+(?:[\u200c\u200d]+{_SPACED_LETTER}+)*")
# Allow dots, which separate the parts of a foreign name: 阿尔伯特·爱因斯坦.
_UNSPACED_RUN = re.compile(rf"{_UNSPACED_LETTER}(?:[·・]?{_UNSPACED_LETTER})*")

# Function that yields batches of documents with the columns `number`, `text` and `language` (a
# code); it is called several times.
ReadTexts = Callable[[], Iterable[pl.DataFrame]]


def find_uncased_names(
    texts: ReadTexts, codes: Iterable[str], min_frequency: int
) -> Iterator[tuple[int, int, int, str]]:
    """Yield (document, start, end, name) of the recurring strings in each language."""
    for code in sorted(LANGUAGE_CODES.intersection(codes)):

        def documents(code: str = code) -> Iterator[tuple[int, str]]:
            for batch in texts():
                yield from batch.filter(language=code).select("number", "text").iter_rows()

        names_of = _UnspacedNames if code in UNSPACED else _SpacedNames
        names: _UnspacedNames | _SpacedNames = names_of(
            lambda: (text for _, text in documents()), code, min_frequency
        )
        for number, text in documents():
            yield from ((number, *place) for place in names.find_in(text))


def find_fallback_entity(text: str, code: str) -> tuple[int, int]:
    """Return the span of a fallback entity for a text without names and noun phrases.

    The entity is the most frequent word that is not a function word, and if possible no word for a
    part of a text (Article 5), no address (Señoría), and a noun: with a capital in German, after an
    article in Romance languages. On a tie the longest word wins, then the first. In a text without
    words, the entity is the first token.
    """
    language = language_of(code)
    function_words, has_nouns = language.function_words, language.capitalizes_nouns
    places: dict[str, tuple[int, int]] = {}
    counts: Counter[str] = Counter()
    determined, before = set[str](), ""
    for match in _WORD.finditer(text):
        start, end = match.span()
        # Without spaces, a match is a whole clause; take its first four characters.
        end = min(end, start + (4 if code in UNSPACED else MAX_FALLBACK_CHARS))
        word = text[start:end].casefold()
        if word not in function_words and not word.isdigit():
            counts[word] += 1
            places.setdefault(word, (start, end))
            if code in HEAD_FIRST and before in language.determiners:
                determined.add(word)
        before = word
    if counts:
        rank = {
            word: (
                word not in _WEAK_ENTITIES and (not has_nouns or text[places[word][0]].isupper()),
                word in determined,
                counts[word],
                len(word),
            )
            for word in counts
        }
        return places[max(counts, key=rank.__getitem__)]
    token = re.search(r"\S+", text)
    start, end = token.span() if token else (0, len(text))
    return start, min(end, start + MAX_FALLBACK_CHARS)


class _ClauseWord(NamedTuple):
    """A word of a text. `bare`, `start` and `end` are without its prefix or suffix."""

    text: str
    bare: str
    start: int
    end: int


class _SpacedNames:
    """Recurring sequences of words, without affixes, in scripts with spaces."""

    def __init__(self, texts: Callable[[], Iterable[str]], code: str, min_frequency: int) -> None:
        """Find the recurring names. The texts of the language are read twice."""
        self._stop = word_set(_WORDS["stop_words"].get(code, ""))
        counts = Counter(chain.from_iterable(map(_SPACED_WORD.findall, texts())))
        self._bare = _find_bare_words(counts, code)
        self._only_first = code in _WORDS["prefixes"]
        frequency: Counter[str] = Counter()
        for word, times in counts.items():
            for form in {word, self._bare[word][1] if word in self._bare else word}:
                frequency[form] += times
        self._frequent = {word for word, times in frequency.items() if times >= min_frequency}
        phrases: Counter[str] = Counter()
        for clause in chain.from_iterable(map(self._split_clauses, texts())):
            phrases.update(phrase for _, _, phrase in self._find_phrases(clause))
        self.names = _drop_name_parts(" ", {p: n for p, n in phrases.items() if n >= min_frequency})

    def find_in(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, name) of names in a text. The longest of overlapping names wins."""
        for clause in self._split_clauses(text):
            reached = -1
            for start, end, phrase in self._find_phrases(clause):
                if phrase in self.names and start >= reached:
                    yield start, end, phrase
                    reached = end

    def _split_clauses(self, text: str) -> Iterator[list[_ClauseWord]]:
        """Split a text into sequences of words that are separated only by white space."""
        clause: list[_ClauseWord] = []
        reached = 0
        for match in _SPACED_WORD.finditer(text):
            start, end = match.span()
            if clause and not text[reached:start].isspace():
                yield clause
                clause = []
            reached = end
            word = match.group()
            cut, bare, length = self._bare.get(word, (0, word, len(word)))
            clause.append(_ClauseWord(word, bare, start + cut, start + cut + length))
        if clause:
            yield clause

    def _find_phrases(self, clause: list[_ClauseWord]) -> Iterator[tuple[int, int, str]]:
        """Yield the word sequences that may be names. At each word, longer sequences come first."""
        # A prefix is removed only from the first word, a suffix only from the last word.
        for first, head in enumerate(clause):
            if head.text in self._stop or head.bare in self._stop:
                continue
            opening = head.bare if self._only_first else head.text
            for last in range(min(first + MAX_NAME_WORDS, len(clause)) - 1, first, -1):
                tail = clause[last]
                closing = tail.text if self._only_first else tail.bare
                words = [opening, *(w.text for w in clause[first + 1 : last]), closing]
                if tail.text in self._stop or closing in self._stop:
                    continue
                if all(word in self._frequent for word in words):
                    yield head.start, tail.end, " ".join(words)
            if len(head.bare) > 1 and head.bare in self._frequent:
                yield head.start, head.end, head.bare


def _find_bare_words(words: Counter[str], code: str) -> dict[str, tuple[int, str, int]]:
    """Map words with an affix to (length of the prefix, bare word, its length in the text).

    An affix is removed if the rest occurs in the corpus without an affix or with another affix.
    """
    candidates = {word: list(_strip_affixes(word, code)) for word in words}
    forms: dict[str, set[str]] = defaultdict(set)
    for word, options in candidates.items():
        forms[word].add(word)
        for _, bare, _ in options:
            forms[bare].add(word)
    bare_words = {}
    for word, options in candidates.items():
        # Prefer forms that occur in the corpus without an affix.
        for option in sorted(options, key=lambda option: option[1] not in words):
            others = forms[option[1]] - {word}
            # Do not cut a prefix from a frequent word: the name Kamal does not mean "like money".
            likely = code not in _WORDS["prefixes"] or option[1].startswith("ال")
            if others and (likely or sum(words[other] for other in others) >= words[word]):
                bare_words[word] = option
                break
    return bare_words


def _strip_affixes(word: str, code: str) -> Iterator[tuple[int, str, int]]:
    """Yield the possible forms of a word without an affix, with the longest affix first."""
    if code == "ar":
        for prefix in ("ولل", "لل"):
            # Restore the alif of the article "al", which is lost after the preposition "li".
            if word.startswith(prefix) and len(word) - len(prefix) > 1:
                yield 0, "ال" + word[len(prefix) :], len(word)
    for prefix in sorted(_WORDS["prefixes"].get(code, "").split(), key=len, reverse=True):
        length = len(word) - len(prefix)
        if word.startswith(prefix) and length > 1:
            yield len(prefix), word[len(prefix) :], length
    for suffix in _WORDS["suffixes"].get(code, "").split():
        length = len(word) - len(suffix)
        if word.endswith(suffix) and length > 1:
            yield 0, word[:length], length


class _UnspacedNames:
    """Recurring strings that may be whole words or names, in scripts without spaces."""

    def __init__(self, texts: Callable[[], Iterable[str]], code: str, min_frequency: int) -> None:
        """Find the recurring names. The texts are read once for each string length."""
        max_characters = _MAX_CHARS_OF_LANGUAGE.get(code, MAX_NAME_CHARS)
        frequent = _count_strings(texts, max_characters, min_frequency)
        edges: Counter[str] = Counter()
        # Distinct characters before and after each string. `_EDGE_SIGNS` count as a space.
        beside: tuple[dict[str, set[str]], ...] = (defaultdict(set), defaultdict(set))
        for run in chain.from_iterable(map(_split_into_runs, texts() if frequent else ())):
            edges.update(run)
            padded = f" {run} "
            for start, end in _find_frequent_spans(run, frequent):
                for sets, at in zip(beside, (start, end + 1), strict=True):
                    # Two distinct characters are enough to know that the neighbours vary.
                    if len(sets[run[start:end]]) < 2:
                        sets[run[start:end]].add(" " if padded[at] in _EDGE_SIGNS else padded[at])
        free = {
            string: times
            for string, times in frequent.items()
            if all(len(sets[string]) > 1 or " " in sets[string] for sets in beside)
            and _HARD_EDGES.isdisjoint((string[0], string[-1]))
            and all(
                character not in _SOFT_EDGES or times >= MIN_EDGE_SHARE * edges[character]
                for character in (string[0], string[-1])
            )
            and string[0] not in _WORDS["no_beginning"]
            and not string.startswith(_ENDINGS)
        }
        self.names = _drop_name_parts("", free)
        self._max_length = max(map(len, self.names), default=0)

    def find_in(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, name) of names in a text. The longest of overlapping names wins."""
        for match in _UNSPACED_RUN.finditer(text):
            run, offset, start = match.group(), match.start(), 0
            while start < len(run):
                for end in range(min(start + self._max_length, len(run)), start + 1, -1):
                    if run[start:end] in self.names:
                        yield offset + start, offset + end, run[start:end]
                        start = end
                        break
                else:
                    start += 1


def _split_into_runs(text: str) -> Iterator[str]:
    """Yield the parts of a text between breaks, such as punctuation and function words."""
    for run in _UNSPACED_RUN.findall(text):
        # Every second part is an ending that belongs to the part before it, or None for a break.
        parts = [*_BREAK_PATTERN.split(run), None]
        for piece, ending in zip(parts[::2], parts[1::2], strict=True):
            if piece:
                yield piece + ending if ending and piece[-1] not in _NO_NAME else piece


def _count_strings(
    texts: Callable[[], Iterable[str]], max_characters: int, min_frequency: int
) -> dict[str, int]:
    """Count frequent strings, short strings first.

    A string can be frequent only if it is frequent without its first and without its last letter.
    """
    frequent: dict[str, int] = {}
    for length in range(2, max_characters + 1):
        counts: Counter[str] = Counter()
        for run in chain.from_iterable(map(_split_into_runs, texts())):
            strings = (run[at : at + length] for at in range(len(run) - length + 1))
            if length > 2:
                strings = (s for s in strings if s[1:] in frequent and s[:-1] in frequent)
            counts.update(strings)
        longer = {string: times for string, times in counts.items() if times >= min_frequency}
        if not longer:
            break
        frequent |= longer
    return frequent


def _find_frequent_spans(run: str, frequent: Collection[str]) -> Iterator[tuple[int, int]]:
    for start in range(len(run) - 1):
        for end in range(start + 2, min(start + MAX_NAME_CHARS, len(run)) + 1):
            if run[start:end] not in frequent:
                # No longer string that begins with this string is frequent either: stop.
                break
            yield start, end


def _drop_name_parts(separator: str, counts: dict[str, int]) -> set[str]:
    """Drop a name if most of its occurrences are inside one longer name."""
    kept = set(counts)
    for longer, times in counts.items():
        pieces = longer.split(separator) if separator else longer
        min_length = 1 if separator else 2
        for start in range(len(pieces)):
            for end in range(start + min_length, len(pieces) + 1):
                part = separator.join(pieces[start:end])
                if part != longer and part in kept and times >= MIN_PART_SHARE * counts[part]:
                    kept.discard(part)
    return kept
