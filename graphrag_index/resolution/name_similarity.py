"""Parsed names, their similarity by letters, and evidence that two names differ.

A wrong merge is worse than a missed merge. Names are merged by rule only if their differences
have no meaning: accents, punctuation, an article, "Inc.". If names differ in a letter, as Paris
and Parish do, the pair is at most doubtful.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from graphrag_nlp.text.languages import NAMING_TITLES, PARTICLES, n_titles, read_lists, word_set
from graphrag_nlp.text.normalize import fold, is_unspaced, letters_accented
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
FIRST_LETTERS, INITIALS = "first letters", "initials"
# Maximum score of two names that differ in letters or words.
MAX_DOUBTFUL_SCORE = 0.89
_SCORE_WITHOUT_PART: dict[str, float] = read_lists("graphrag_index/resolution/data/words")[
    "scores_without_part"
]
# If names have fewer letters than this, a different letter or space means a different name.
MIN_LETTERS_OF_NAME = 8
# If words have fewer letters than this, a different letter means a different word: Mets, Nets.
MIN_LETTERS_OF_WORD = 5


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


@dataclass(frozen=True)
class Similarity:
    """The confidence (0 to 1) that two names mean the same thing, and the reasons."""

    score: float
    evidence: tuple[str, ...]


def compare_names(a: Name, b: Name) -> Similarity | None:
    """Return the similarity of two names; None if they are unlike, or mean different things."""
    if a.letters == b.letters == "":
        return None
    likeness = _compare_plain_letters(a, b) or _compare_umlauts(a, b)
    if likeness is None and (_is_acronym_of(a, b) or _is_acronym_of(b, a)):
        likeness = Similarity(0.7, (FIRST_LETTERS,))
    if likeness is None:
        comparisons = (_compare_initials(a, b), _compare_spelling(a, b), _compare_words(a, b))
        found = [likeness for likeness in comparisons if likeness is not None]
        if found and can_be_one_person(a, b):
            likeness = max(found, key=lambda likeness: likeness.score)
    # Call `mean_different_things` last, since it is slow, and most pairs are not similar anyway.
    return None if likeness is None or mean_different_things(a, b) else likeness


def mean_different_things(a: Name, b: Name) -> bool:
    """Tell whether a word, number or sign shows that two names mean different things."""
    if a.signs != b.signs:
        return True
    if _is_acronym_of(a, b) or _is_acronym_of(b, a):
        return False
    if a.numbers != b.numbers:
        return True
    if a.last_single_letter != b.last_single_letter and a.letters != b.letters:
        return True
    differing = a.distinguishing_words ^ b.distinguishing_words
    # Allow only Mr, Mrs and Miss to be missing: "Mrs Novak" may be "Novak", but not "Mr Novak".
    both_have_some = a.distinguishing_words and b.distinguishing_words
    if differing and (both_have_some or not differing <= {"mr", "mrs", "miss"}):
        return True
    # Compare words in brackets, except acronyms: "Mercury (planet)" is not "Mercury (element)".
    if _bracketed_meaning(a) != _bracketed_meaning(b):
        return True
    # Compare upper and lower case of short names: "WHO" is not "Who".
    return (
        a.letters == b.letters and len(a.letters) <= 5 and _is_in_capitals(a) != _is_in_capitals(b)
    )


def can_be_one_person(a: Name, b: Name) -> bool:
    """Tell whether two names may be one person: given names and initials do not conflict."""
    if a.plain.letters == b.plain.letters or not _can_be_people(a, b):
        return True
    look_like_people = a.may_be_person and b.may_be_person and _has_initial(a, b)
    if "person" not in (a.kind, b.kind) and not look_like_people:
        return True
    one, other = a.person_words, b.person_words
    if min(len(one), len(other)) < 2 or fold(one[-1]) != fold(other[-1]):
        return True
    return _is_short_name_of(one, other) or _is_short_name_of(other, one)


def _can_be_people(a: Name, b: Name) -> bool:
    """Tell whether each of two names has the type person or an unknown type."""
    return a.kind in ("", "person") and b.kind in ("", "person")


def _has_initial(a: Name, b: Name) -> bool:
    return any(map(is_initial, (*a.person_words[:-1], *b.person_words[:-1])))


def _bracketed_meaning(name: Name) -> str:
    """Return the words in brackets at the end of a name; empty if they are an acronym."""
    return "" if "acronym" in name.plain.left_out else fold(name.bracketed_words)


def _is_in_capitals(name: Name) -> bool:
    letters = "".join(filter(str.isalpha, name.title))
    return len(letters) > 1 and letters.isupper()


def _compare_plain_letters(a: Name, b: Name) -> Similarity | None:
    """Compare two names by their letters, without optional words, spaces and punctuation."""
    if a.plain.letters != b.plain.letters or not a.plain.letters:
        return None
    score, evidence = 0.98, ["the same letters"]
    if a.words != b.words and a.plain.words != b.plain.words:
        # Ignore a hyphen, but not a space: "Ran-Tan-Plan", "Rantanplan"; "Charles Town".
        hyphens = a.joined_words == b.joined_words and len(a.letters) >= MIN_LETTERS_OF_NAME
        score = 0.93 if hyphens else 0.75
        evidence = ["the same letters, parted differently"]
    elif a.letters == b.letters and letters_accented(a.title) != letters_accented(b.title):
        # Lower the score: in lower-case words and acronyms, an accent may change the meaning.
        has_capital = any(map(str.isupper, a.title + b.title))
        if a.is_acronym or b.is_acronym or not has_capital:
            score, evidence = 0.75, ["the same letters without accents"]
    if a.letters != b.letters:
        forms = [{w for w in n.plain.left_out if w.startswith("form ")} for n in (a, b)]
        if forms[0] != forms[1]:
            # Lower the score more if each name has a form: "Acme Corp" may not be "Acme Ltd".
            sure = not (forms[0] and forms[1]) and a.kind == b.kind == "organization"
            score = min(score, 0.91 if sure else 0.75)
            evidence.append("the form of a company")
        for part in sorted(a.plain.left_out ^ b.plain.left_out):
            if part in _SCORE_WITHOUT_PART:
                score = min(score, _SCORE_WITHOUT_PART[part])
                evidence.append(f"without {part}")
        if _is_in_capitals(a) != _is_in_capitals(b) and len(a.plain.letters) <= 5:
            return None
    if a.is_possessive != b.is_possessive:
        score = min(score, 0.7)
        evidence.append("a possessive")
    return Similarity(score, tuple(evidence))


def _compare_umlauts(a: Name, b: Name) -> Similarity | None:
    """Compare a name with umlauts to a name that spells them out: Müller and Mueller."""
    if a.title.isascii() and b.title.isascii():
        return None
    if a.words == b.words or (
        a.words_without_umlauts != b.words and a.words != b.words_without_umlauts
    ):
        return None
    return Similarity(0.95 if len(a.letters) >= 5 else 0.75, ("umlauts spelled out",))


def _is_acronym_of(short: Name, long: Name) -> bool:
    return short.is_acronym and not long.is_acronym and short.letters in long.acronyms


def _is_short_name_of(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    """Tell whether the words of a short name stand for words of a long name, in order."""
    if len(short) > len(long) or fold(short[-1]) != fold(long[-1]):
        return False
    if not _can_stand_for(short[0], long[0]):
        return False
    # Use one iterator, so that each search starts after the word that matched before.
    middle = iter(long[1:-1])
    return all(any(_can_stand_for(word, full) for full in middle) for word in short[1:-1])


def _can_stand_for(word: str, full: str) -> bool:
    """Tell whether two words are equal, or one is the initial of the other."""
    a, b = fold(word), fold(full)
    return a == b or (a[:1] == b[:1] and (is_initial(word) or is_initial(full)))


def _compare_initials(a: Name, b: Name) -> Similarity | None:
    """Compare a name that has initials with a full name: R. F. Scott, Robert Falcon Scott."""
    if not (a.may_be_person and b.may_be_person and _can_be_people(a, b)):
        return None
    one, other = a.person_words, b.person_words
    if not (_is_short_name_of(one, other) or _is_short_name_of(other, one)):
        return None
    if "person" not in (a.kind, b.kind):
        return Similarity(0.7, ("an initial",)) if _has_initial(a, b) else None
    if len(one) != len(other):
        # Lower the score for a further given name: "Sam Walton" is not "S. Robson Walton".
        return Similarity(0.7, ("a further given name",))
    both_have_initials = all(any(map(is_initial, name.person_words[:-1])) for name in (a, b))
    n_equal = sum(fold(x) == fold(y) for x, y in zip(one, other, strict=True))
    if len(one) > 2 and (n_equal > 1 or not both_have_initials):
        return Similarity(0.85, (INITIALS,))
    return Similarity(0.75, ("an initial",))


def _compare_spelling(a: Name, b: Name) -> Similarity | None:
    """Compare two names that differ in one letter or in two swapped letters."""
    one, other = a.plain.letters, b.plain.letters
    if min(len(one), len(other)) < MIN_LETTERS_OF_NAME or one[0] != other[0]:
        return None
    if OSA.distance(one, other, score_cutoff=1) != 1:
        return None
    if is_unspaced(a.title) or any(map(str.isdigit, one + other)):
        return None
    differing = set(a.plain.words) ^ set(b.plain.words)
    if len(differing) <= 2 and min(map(len, differing), default=0) < MIN_LETTERS_OF_WORD:
        return None
    likeness = 1 - 1 / max(len(one), len(other))
    return Similarity(round(0.8 * likeness, 3), ("one letter differs",))


def _compare_words(a: Name, b: Name) -> Similarity | None:
    """Compare two names if all words of one name are in the other name."""
    one, other = set(a.plain.words), set(b.plain.words)
    if one.isdisjoint(other):
        return None
    common = one & other
    if max(map(len, common)) < 4:
        return None
    share = len(common) / len(one | other)
    if share == 1:
        return Similarity(0.8, ("the same words in another order",))
    if share < 0.5 or not (one <= other or other <= one):
        return None
    return Similarity(round(0.4 + 0.3 * share, 3), ("words in common",))
