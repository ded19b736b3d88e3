"""Similarity of two names by their letters, and evidence that the names differ.

A wrong merge is worse than a missed merge. Names are merged by rule only if their differences
have no meaning: accents, punctuation, an article, "Inc.". If names differ in a letter, as Paris
and Parish do, the pair is at most doubtful.
"""

from dataclasses import dataclass

from rapidfuzz.distance import OSA

from graphrag_index.resolution.parsed_name import Name, is_initial
from graphrag_nlp.text.languages import read_lists
from graphrag_nlp.text.normalize import fold, is_unspaced, letters_accented

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
