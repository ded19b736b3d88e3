"""Positions where a text mentions the names that a model extracted from the text.

A model may change the case, hyphens and endings of names, and complete short names. So the text is
searched for the exact name, then for its letters and digits, its inflected words, a part of it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from graphrag_nlp.text.languages import MIN_STEM, Language, find_stems, language_of
from graphrag_nlp.text.normalize import UNSPACED_OR_HANGUL, letters, letters_with_offsets
from graphrag_nlp.text.sentences import split_sentences

Span = tuple[int, int]

# A name with at most this many letters does not match text in lower case: "US" and "us".
MAX_SHORT_LETTERS = 3
# A word can stand for a name if it has at least this share of the letters of the name.
MIN_LETTER_SHARE = 0.25
# In languages without known endings, two forms of one word have at most this many different
# letters at the end, and at least this many equal letters at the start.
MAX_DIFFERENT_END_LETTERS = 3
MIN_EQUAL_START_LETTERS = 4
_WORD = re.compile(r"[^\W_]+")
# Maximum number of mentions of each of two names that are compared to find the nearest pair.
MAX_COMPARED_MENTIONS = 16
_has_unspaced_letter = re.compile(UNSPACED_OR_HANGUL).search


class NameMentions(NamedTuple):
    """The spans where a text mentions a name. `whole` is false if only a part of it matches."""

    spans: tuple[Span, ...]
    whole: bool


class TextWord(NamedTuple):
    """A word of a text: its form, its letters without case and accents, and its offset."""

    form: str
    letters: str
    start: int

    @property
    def is_capitalized(self) -> bool:
        return self.form[0].isupper()


def _split_words(text: str) -> list[TextWord]:
    return [TextWord(found[0], letters(found[0]), found.start()) for found in _WORD.finditer(text)]


class Passage:
    """A text, and methods that find names in this text.

    `subject` are lines of a prompt that tell what the document of the text is about.
    """

    def __init__(self, text: str, language: str = "", subject: str = "") -> None:
        self.text, self.language, self.subject = text, language_of(language), subject

    def find_name(self, name: str) -> NameMentions | None:
        """Return the mentions of a name, ignoring case and punctuation; None if there are none.

        The mention of a name that only the subject has is the whole text.
        """
        if spans := self._find_whole_name(name):
            return NameMentions(tuple(spans), True)
        if self.subject and self._subject_passage.find_name(name):
            return NameMentions(((0, len(self.text)),), False)
        return None

    def align_names(self, names: Iterable[str]) -> dict[str, NameMentions]:
        """Return the mentions of each name, ordered by their position in the text.

        If the text does not contain a name, its mention is the whole text if the subject has it,
        or else the sentence with most words of the name, or the whole text if no sentence contains
        any of these words.
        """
        found = {name: self._find_whole_name(name) for name in names}
        spans = {name: _drop_nested_spans(name, found) for name, own in found.items() if own}
        # Do not search for a part of a name inside the mention of another name.
        taken = [span for others in spans.values() for span in others]
        places = {name: NameMentions(tuple(own), True) for name, own in spans.items()}
        for name in found:
            if name not in places:
                places[name] = (
                    self._find_by_word_forms(name, taken)
                    or self.find_name(name)
                    or NameMentions((self._find_most_similar_sentence(name),), False)
                )
        return places

    def find_evidence(self, one: NameMentions, other: NameMentions) -> Span:
        """Return the span of the sentences that contain the nearest mentions of two names.

        If the mention of one name is the whole text, only the mentions of the other name count.
        """
        whole = ((0, len(self.text)),)
        one, other = (
            (other if one.spans == whole else one),
            (one if other.spans == whole else other),
        )
        _, start, end = min(
            (max(a[1], b[1]) - min(a[0], b[0]), min(a[0], b[0]), max(a[1], b[1]))
            for a in one.spans[:MAX_COMPARED_MENTIONS]
            for b in other.spans[:MAX_COMPARED_MENTIONS]
        )
        return self.extend_to_sentences(start, end)

    def extend_to_sentences(self, start: int, end: int) -> Span:
        """Extend a span to the start of its first sentence and the end of its last sentence."""
        for sentence_start, sentence_end in self._sentence_spans:
            if sentence_start <= start < sentence_end:
                start = sentence_start
            if sentence_start < end <= sentence_end:
                return start, sentence_end
        return start, end

    def count_sentences(self, start: int, end: int) -> int:
        """Return the number of sentences that overlap a span."""
        return sum(first < end and start < last for first, last in self._sentence_spans)

    @cached_property
    def _sentence_spans(self) -> list[Span]:
        return [(start, end) for start, end, _ in split_sentences(self.text)]

    @cached_property
    def _subject_passage(self) -> "Passage":
        values = (line.partition(": ")[2] for line in self.subject.splitlines())
        return Passage("\n\n".join(values))

    @cached_property
    def _folded_letters(self) -> tuple[str, list[int]]:
        """Return the letters and digits without case and accents, and the offset of each."""
        return letters_with_offsets(self.text)

    @cached_property
    def _text_words(self) -> list[TextWord]:
        return _split_words(self.text)

    @cached_property
    def _words_by_stem(self) -> Mapping[str, list[int]]:
        """Map the first `MIN_STEM` letters of words to the indexes of these words in the text."""
        groups = defaultdict(list)
        for number, word in enumerate(self._text_words):
            groups[word.letters[:MIN_STEM]].append(number)
        return groups

    def _find_whole_name(self, name: str) -> list[Span]:
        return list(find_whole_words(name, self.text)) or self._find_by_folded_letters(name)

    def _find_by_folded_letters(self, name: str) -> list[Span]:
        """Find a name, ignoring case, accents, width, punctuation and spaces."""
        key = letters(name)
        text, offsets = self._folded_letters
        spans = []
        for at in find_offsets(key, text):
            start, end = offsets[at], offsets[at + len(key) - 1] + 1
            while end < len(self.text) and unicodedata.combining(self.text[end]):
                end += 1
            form = self.text[start:end]
            if (
                has_word_boundaries(self.text, start, end)
                and not (len(key) <= MAX_SHORT_LETTERS and form.islower() and not name.islower())
                and len(form) <= 2 * len(name) + 2
                and "\n\n" not in form
            ):
                spans.append((start, end))
        return spans

    def _find_by_word_forms(self, name: str, taken: list[Span]) -> NameMentions | None:
        """Find the longest possible word of a name in the text, and extend it to adjacent words."""
        if _has_unspaced_letter(name):
            return self._find_longest_substring(name, taken)
        words = _split_words(name)
        n_letters = sum(len(word.letters) for word in words)
        for anchor in sorted(range(len(words)), key=lambda n: -len(words[n].letters)):
            word = words[anchor]
            if len(word.letters) < max(MIN_STEM, MIN_LETTER_SHARE * n_letters):
                return None
            if self._is_function_word(word):
                continue
            near = self._words_by_stem.get(word.letters[:MIN_STEM], ())
            runs = [
                self._find_longest_run(words, anchor, n) for n in near if self._may_be_form(n, word)
            ]
            wholes = [run for run in runs if run[1] - run[0] == len(words)]
            ends = [
                (self._text_words[first], self._text_words[stop - 1])
                for first, stop in wholes or runs
            ]
            spans = _drop_overlapping([(a.start, b.start + len(b.form)) for a, b in ends], taken)
            if spans:
                return NameMentions(tuple(spans), bool(wholes))
        return None

    def _may_be_form(self, number: int, word: TextWord) -> bool:
        """Return whether word `number` of the text may be an inflected form of `word`."""
        own = self._text_words[number]
        same_case = own.is_capitalized or not word.is_capitalized
        return same_case and are_forms_of_one_word(own.letters, word.letters, self.language)

    def _is_function_word(self, word: TextWord) -> bool:
        return word.letters in self.language.function_words and not word.is_capitalized

    def _find_longest_run(self, words: list[TextWord], anchor: int, at: int) -> Span:
        """Return the longest run of words around word `at` that match adjacent words of a name."""
        first, stop = at, at + 1
        for word in reversed(words[:anchor]):
            if not first or not self._may_be_form(first - 1, word):
                break
            first -= 1
        for word in words[anchor + 1 :]:
            if stop == len(self._text_words) or not self._may_be_form(stop, word):
                break
            stop += 1
        return first, stop

    def _find_longest_substring(self, name: str, taken: list[Span]) -> NameMentions | None:
        """Find the longest substring of a name in a text without spaces between words."""
        name = "".join(name.split())
        for length in range(len(name) - 1, max(1, (len(name) - 1) // 2), -1):
            for start in range(len(name) - length + 1):
                part = name[start : start + length]
                spans = _drop_overlapping(list(find_whole_words(part, self.text)), taken)
                if spans:
                    return NameMentions(tuple(spans), False)
        return None

    def _find_most_similar_sentence(self, name: str) -> Span:
        """Return the span of the sentence with most words of a name; the whole text if none has."""
        if _has_unspaced_letter(name):
            characters = set(filter(str.isalnum, name))
            shares = [len(characters & set(self.text[a:b])) for a, b in self._sentence_spans]
        else:
            words = _split_words(name)
            telling = {word.letters for word in words if not self._is_function_word(word)}
            found: list[set[str]] = [set() for _ in self._sentence_spans]
            starts = [start for start, _ in self._sentence_spans]
            for word in self._text_words:
                if word.letters in telling:
                    found[bisect_right(starts, word.start) - 1].add(word.letters)
            shares = list(map(len, found))
        most = max(shares, default=0)
        return self._sentence_spans[shares.index(most)] if most else (0, len(self.text))


def are_forms_of_one_word(form: str, word: str, language: Language) -> bool:
    """Return whether two normalized words may be forms of one word with different endings."""
    if form == word or not word.isalpha():
        return form == word
    if language.endings:
        return bool(find_stems(form, language) & find_stems(word, language))
    longer, shorter = max(len(form), len(word)), min(len(form), len(word))
    n_equal = next((n for n in range(shorter) if form[n] != word[n]), shorter)
    return (
        n_equal >= MIN_EQUAL_START_LETTERS
        and longer - n_equal <= MAX_DIFFERENT_END_LETTERS
        and n_equal * 5 >= longer * 3
    )


def find_offsets(part: str, text: str) -> Iterator[int]:
    """Yield the offsets of `part` in a text, without overlaps; none if `part` is empty."""
    at = text.find(part) if part else -1
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def find_whole_words(part: str, text: str) -> Iterator[Span]:
    """Yield the spans of `part` in a text that begin and end at word boundaries."""
    spans = ((at, at + len(part)) for at in find_offsets(part, text))
    return (span for span in spans if has_word_boundaries(text, *span))


def has_word_boundaries(text: str, start: int, end: int) -> bool:
    """Return whether a span begins and ends at word boundaries."""
    return not any(
        0 < at < len(text) and _are_in_one_word(text[at - 1], text[at]) for at in (start, end)
    )


def _are_in_one_word(left: str, right: str) -> bool:
    if not left.isalnum():
        return False
    if not right.isalnum():
        return right > "\u02ff" and unicodedata.category(right)[0] == "M"
    return not (_has_unspaced_letter(left) or _has_unspaced_letter(right))


def _drop_nested_spans(name: str, found: Mapping[str, list[Span]]) -> list[Span]:
    """Drop mentions inside mentions of longer names, unless no mention would be left."""
    own = found[name]
    free = [
        span
        for span in own
        if not any(
            start <= span[0] and span[1] <= end and end - start > span[1] - span[0]
            for other, spans in found.items()
            if len(other) > len(name) and name in other
            for start, end in spans
        )
    ]
    return free or own


def _drop_overlapping(spans: list[Span], taken: list[Span]) -> list[Span]:
    """Drop the spans that overlap a span in `taken`."""
    return [(a, b) for a, b in spans if not any(a < end and start < b for start, end in taken)]
