"""Parsed names: words, numbers, signs, and optional parts."""

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from graphrag_nlp.text.languages import NAMING_TITLES, PARTICLES, n_titles, read_lists, word_set
from graphrag_nlp.text.normalize import fold
from graphrag_nlp.text.type_words import TYPE_WORDS, TYPE_WORDS_IN_SURNAMES

_WORDS = read_lists("graphrag_index/resolution/data/words")
_COMPANY_FORMS = word_set(_WORDS["company_forms"])
_SHORT_COMPANY_FORMS = word_set(_WORDS["short_company_forms"])
_ARTICLES, _DISTINGUISHING = word_set(_WORDS["articles"]), word_set(_WORDS["distinguishing"])
_KIND_OF_TYPE: dict[str, str] = {
    word: kind for kind, names in _WORDS["kinds_of_types"].items() for word in names.split()
}
_ROMAN_NUMERAL = re.compile(r"(?=[ivxlc])(?:c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_NUMBER_IN_DIGITS = re.compile(r"\d+(?:[.,:/]\d+)*")
# Signs that are part of a name: "C++" is not "C#", ".NET" is not "net".
_SIGNS = re.compile(r"[+#@$%*=<>~^|°§€£¥]|(?<![^\W_])\.(?=\w)|(?<![\w\s])[-−](?=\d)|^[-−](?=\d)")
_FINAL_BRACKETS = re.compile(r"\s*[(\[（]([^()\[\]（）]*)[)\]）]\s*$")
_DOTTED_ACRONYM = re.compile(r"(?:[^\W\d_]\.){2,}[^\W\d_]?")
_MARKS_INSIDE_WORDS = re.compile(r"(?<=\w)[-‐‑–.'’·](?=\w)")
_UMLAUT_SPELLINGS = str.maketrans(_WORDS["umlaut_spellings"])
_INITIAL = re.compile(r"[^\W\d_]\.?")
_JOINED_INITIALS = re.compile(r"(?:[^\W\d_]\.){2,}")
_WORD_SEPARATORS = re.compile(r"[\s\-/]+")
_APOSTROPHE_S = re.compile(r"['’]s?$")
# Words that show that a title is not followed by the name of a person: "Queen Street".
_WORDS_NOT_IN_SURNAMES = TYPE_WORDS - TYPE_WORDS_IN_SURNAMES


def kind_of_type(kind: str) -> str:
    """Return the general kind of an entity type, such as "person"; empty if unknown."""
    return _KIND_OF_TYPE.get(kind.strip().casefold(), "")


class PlainName(NamedTuple):
    """A name without its optional parts, as (words, letters, names of the parts left out)."""

    words: tuple[str, ...]
    letters: str
    left_out: frozenset[str]


@dataclass(frozen=True)
class Name:
    """One name of an entity. Its properties are computed once and cached."""

    title: str
    kind: str = field(default="", compare=False)  # result of kind_of_type

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the name in lower case, without accents."""
        return _split_normalized_words(self.title)

    @cached_property
    def letters(self) -> str:
        return "".join(self.words)

    @cached_property
    def words_without_umlauts(self) -> tuple[str, ...]:
        """The words of the name, with each umlaut spelled as two letters: ae for ä."""
        if self.title.isascii():
            return self.words
        return tuple(fold(self.title.casefold().translate(_UMLAUT_SPELLINGS)).split(" "))

    @cached_property
    def joined_words(self) -> tuple[str, ...]:
        """The words of the name after hyphens, dots and apostrophes inside them are removed."""
        return tuple(fold(_MARKS_INSIDE_WORDS.sub("", self.title)).split(" "))

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The numbers in the name: sorted numbers in digits, then sorted Roman numerals."""
        found = [number.replace(",", ".") for number in _NUMBER_IN_DIGITS.findall(self.title)]
        roman = []
        for at, word in enumerate(self.words):
            if _ROMAN_NUMERAL.fullmatch(word):
                # Require three letters of a first word, since "Vi" is a given name in "Vi Hilbert",
                # and two letters of a word in the middle, since one letter is an initial.
                least = 3 if at == 0 else 2 if at < len(self.words) - 1 else 1
                roman += [word] * (len(word) >= least)
        return tuple(sorted(found)) + tuple(sorted(str(_parse_roman(word)) for word in roman))

    @cached_property
    def last_single_letter(self) -> tuple[str, ...]:
        """The last word of the name if it is a single letter: "C" in "Vitamin C"."""
        return tuple(word for word in self.words[-1:] if len(word) == 1 and len(self.words) > 1)

    @cached_property
    def signs(self) -> tuple[str, ...]:
        return tuple(sorted(_SIGNS.findall(self.title)))

    @cached_property
    def distinguishing_words(self) -> frozenset[str]:
        return _DISTINGUISHING.intersection(self.words)

    @cached_property
    def is_acronym(self) -> bool:
        """True if the name consists of two to six capital letters: RGS, U.N."""
        if not self.title.isupper():
            return False
        letters = self.title.replace(".", "")
        return 2 <= len(letters) <= 6 and letters.isalpha()

    @cached_property
    def acronyms(self) -> frozenset[str]:
        """Possible acronyms: the first letters of all words, or of capitalized words only."""
        if self.title.isspace() or not 2 <= len(self.plain.words) <= 8:
            return frozenset()
        raw = [w for w in _WORD_SEPARATORS.split(_FINAL_BRACKETS.sub("", self.title)) if w]
        # Skip a name that starts in lower case: "RN" is not "reporter for Racing Network".
        capital = [w[0] for w in raw if w[0].isupper()] if raw[0][0].isupper() else []
        whole = [w[0] for w in raw if w[0].isalnum()]
        made = {"".join(letters).casefold() for letters in (capital, whole)}
        return frozenset(fold(letters) for letters in made if 2 <= len(letters) <= 6)

    @cached_property
    def bracketed_words(self) -> str:
        """The words in brackets at the end of the name."""
        found = _FINAL_BRACKETS.search(self.title)
        return found[1].strip() if found and found.start() else ""

    @cached_property
    def is_possessive(self) -> bool:
        """True if the name ends in an apostrophe, or an apostrophe and s: McDonald's."""
        return bool(_APOSTROPHE_S.search(self.title))

    @cached_property
    def person_words(self) -> tuple[str, ...]:
        """The words of the name if it is a person: given names first, no title before them."""
        title = self.title
        if title.count(",") == 1:
            last, first = title.split(",")
            title = f"{first.strip()} {last.strip()}"
        raw = [word for piece in title.split(" ") if (word := piece.strip(",;"))]
        parts: list[str] = []
        for word in raw[n_titles(raw) :]:
            # Split initials that are written without a space: J.R. becomes J. and R.
            parts += word.replace(".", ". ").split() if _JOINED_INITIALS.fullmatch(word) else [word]
        return tuple(parts)

    @cached_property
    def may_be_person(self) -> bool:
        """True if the words look like given names or initials, followed by a surname."""
        last = self.person_words[-1] if self.person_words else ""
        return (
            2 <= len(self.person_words) <= 5
            and last[:1].isupper()
            and not (last.isupper() and len(last) > 1 and not self.title.isupper())
            and all(word[:1].isupper() or word in PARTICLES for word in self.person_words)
        )

    @cached_property
    def plain(self) -> PlainName:
        return _parse_plain(self.title)


def is_initial(word: str) -> bool:
    return len(word) <= 2 and bool(_INITIAL.fullmatch(word)) and word[0].isupper()


# The words of a name are needed with and without its optional parts, mostly the same, and names
# recur in the shards of pairs.
@lru_cache(16_384)
def _split_normalized_words(title: str) -> tuple[str, ...]:
    """Split a name into words without case, accents, or dots of acronyms: U.S. becomes us."""
    if "." in title:
        title = _DOTTED_ACRONYM.sub(lambda acronym: acronym[0].replace(".", ""), title)
    return tuple(fold(title.replace(" & ", " and ")).split(" "))


def _parse_roman(roman: str) -> int:
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[letter] for letter in roman]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < after else value for value, after in pairs)


@lru_cache(16_384)
def _parse_plain(title: str) -> PlainName:
    """Remove articles, titles, company forms and acronyms in brackets; undo "Novak, Anna"."""
    left_out: set[str] = set()
    brackets = _FINAL_BRACKETS.search(title)
    if brackets and brackets.start():
        inside, before = brackets[1].strip(), title[: brackets.start()]
        if Name(inside).is_acronym and fold(inside.replace(".", "")) in Name(before).acronyms:
            title, left_out = before, {"acronym"}
    raw = title.split(" ")
    last = raw[-1].strip(".,")
    is_legal = fold(last.replace(".", "")) in _COMPANY_FORMS and last[:1].isupper()
    is_no_word = fold(last) not in _SHORT_COMPANY_FORMS or last.isupper()
    is_marked = raw[-1].endswith(".") or raw[-2:][0].endswith(",")
    if len(raw) > 1 and is_legal and (is_no_word or is_marked):
        left_out.add(f"form {fold(last)}")
        raw = [*raw[:-2], raw[-2].rstrip(",")]
    elif title.count(",") == 1 and 2 <= len(raw) <= 4:
        before, after = (part.strip() for part in title.split(","))
        if before and after:
            raw, left_out = [*after.split(" "), *before.split(" ")], left_out | {"comma"}
    n = n_titles(raw)
    if n and len(raw) - n > 1 and not any(fold(word) in _WORDS_NOT_IN_SURNAMES for word in raw[n:]):
        naming = any(word.lower().rstrip(".") in NAMING_TITLES for word in raw[:n])
        left_out.add("naming title" if naming else "title")
        raw = raw[n:]
    if len(raw) > 1 and raw[0].lower() in _ARTICLES:
        left_out.add("article" if len(raw) > 2 else "article of one word")
        raw = raw[1:]
    words = _split_normalized_words(" ".join(raw))
    return PlainName(words, "".join(words), frozenset(left_out))
