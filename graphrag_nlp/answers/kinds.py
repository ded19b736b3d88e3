"""The kind of answer that a question wants, and the parts of a sentence that are of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_nlp.answers.statements import WORD
from graphrag_nlp.text.languages import (
    MONTHS,
    PARTICLES,
    Language,
    detect_language,
    expand_pattern,
    read_lists,
)
from graphrag_nlp.text.normalize import fold, is_unspaced, stem_word

_DATA = Path(__file__).parent / "data"
# Kinds whose answer is a name, and the types of entities that are such names.
TYPES_OF_KIND: Mapping[str, str | None] = {
    "person": "person",
    "place": "geo",
    "organization": "organization",
    "title": None,
}
# Kinds whose answer is a number, a date or a time.
VALUES = frozenset(("number", "duration", "date", "time"))
# Kinds of question words that a noun follows.
NOUN_KINDS = frozenset(("other", "number"))
# Maximum number of words before the first word that asks: "In which".
MAX_WORDS_BEFORE = 1
# Maximum number of words behind an interrogative that may say what is asked for.
MAX_NOUN_WORDS = 5
# Types of entities that say nothing about what a thing is.
VAGUE_TYPES = frozenset(("name", "acronym", "noun phrase"))
# How well a name fits whose type is unknown, and one of another type than the wanted one.
FIT_OF_UNKNOWN, FIT_OF_OTHER = 0.5, 0.1
# Fit of a number before the counted noun ("12 ships"), where other numbers have 1. The noun must be
# among this many words after the number.
FIT_OF_COUNT = 1.5
MAX_WORDS_TO_NOUN = 3
_NAME_JOINTS = "|".join(sorted(PARTICLES | {"of", "the", "&"}))
# A run of capitalized words: "Bank of England", "J. R. R. Tolkien", "FIFA U-20 Golden Shoe".
NAME = re.compile(
    rf"[^\W\d_a-z][\w’-]*\.?(?:(?:\s(?:{_NAME_JOINTS})){{0,2}}\s(?:[^\W\d_a-z][\w’-]*\.?|\d+))*"
)
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,80})[\"”“»]")


@dataclass(frozen=True)
class WantedAnswer:
    """The kind of answer that a question wants.

    `kind` is `number`, `duration`, `time`, `date`, `reason`, `place`, `person`, `organization`,
    `title` (of a work), `yes_no`, or `other`. `nouns` are the stems of the words behind "which",
    "how many" and the like. `is_subject` is true if the question begins with a word for a person.
    """

    kind: str = "other"
    nouns: frozenset[str] = frozenset()
    is_subject: bool = False


class AnswerSpan(NamedTuple):
    """The place of a possible short answer in a sentence, and how well it fits, mostly 0 to 1."""

    start: int
    end: int
    fit: float


def find_wanted_answer(question: str, language: Language) -> WantedAnswer:
    """Tell the kind of answer that a question wants from its words.

    The noun behind an interrogative tells more: "which city" wants a place. Words such as "where"
    also begin relative clauses, so that the first one counts if it begins the question, and else
    the last one, if possible one that begins no such clause.
    """
    lists = read_lists("kinds", _DATA)
    # `Language` has no code of a language without word lists for names, such as Chinese.
    codes = (language.code, detect_language(question), "en")
    words = _compile_words(next(code for code in codes if code in lists))
    plain = fold_words(question)
    found = sorted(
        (match.start(), order, match.end(), kind)
        for order, (kind, pattern) in enumerate(words.asking.items())
        for match in pattern.finditer(plain)
    )
    if not found:
        return WantedAnswer()
    first = found[0]
    if plain.count(" ", 0, first[0]) > MAX_WORDS_BEFORE:
        clear = [one for one in found if plain[one[0] : one[2]] not in words.relatives]
        place = (clear or found)[-1][0]
        first = next(one for one in found if one[0] == place)
    start, _, end, kind = first
    nouns = _find_nouns(WORD.findall(plain, end), words, language) if kind in NOUN_KINDS else []
    if kind == "other":
        kind = words.kind_of(" ".join(nouns))
    is_subject = kind == "person" and start == 0
    return WantedAnswer(kind, frozenset(map(stem_word, nouns)), is_subject)


def find_answer_spans(
    sentence: str,
    asked: frozenset[str],
    wanted: WantedAnswer,
    language: Language,
    types: Mapping[str, str],
) -> list[AnswerSpan]:
    """Find the parts of a sentence that are of the wanted kind, in their order.

    `asked` are the words of the question in lower case. A part with only such words is left out.
    `types` maps names of entities in lower case to their types.
    """
    if wanted.kind in VALUES:
        spans = [
            AnswerSpan(*found.span(), _fit_of_value(sentence, found.end(), wanted))
            for found in _compile_pattern(wanted.kind.upper()).finditer(sentence)
        ]
    elif wanted.kind in TYPES_OF_KIND:
        spans = [*_find_typed_names(sentence, wanted.kind, language, types)]
    elif wanted.kind == "reason":
        pattern = _compile_reasons(language.code)
        return [
            AnswerSpan(found.start(), len(sentence), 1.0) for found in pattern.finditer(sentence)
        ]
    else:
        return []
    return [
        span
        for span in spans
        if not asked.issuperset(WORD.findall(sentence[span.start : span.end].lower()))
    ]


def find_capitalized_names(sentence: str, language: Language) -> Iterator[tuple[int, int]]:
    """Yield the places of the names in a sentence, without function words before them.

    A single word at the start is none: any word has a capital there.
    """
    # A line may end within a name. The places stay the same.
    sentence = re.sub(r"\s", " ", sentence)
    for found in NAME.finditer(sentence):
        start, name = found.start(), found[0]
        while " " in name and name.split(" ", 1)[0].lower() in language.function_words:
            start += name.index(" ") + 1
            name = sentence[start : found.end()]
        name = name.removesuffix("'s").removesuffix("’s").rstrip(".,'’")
        is_word = name.lower() in language.function_words or not name[:1].isupper()
        if not is_word and len(name) > 1 and (start > 0 or not name.isalpha()):
            yield start, start + len(name)


def _find_typed_names(
    sentence: str, kind: str, language: Language, types: Mapping[str, str]
) -> Iterator[AnswerSpan]:
    if kind == "title":
        for quoted in _QUOTED.finditer(sentence):
            yield AnswerSpan(*quoted.span(1), 1.0)
    expected = TYPES_OF_KIND[kind]
    for start, end in find_capitalized_names(sentence, language):
        known = types.get(sentence[start:end].lower())
        is_unknown = known is None or known in VAGUE_TYPES or expected is None
        fit = FIT_OF_UNKNOWN if is_unknown else 1.0 if known == expected else FIT_OF_OTHER
        yield AnswerSpan(start, end, fit)


def _fit_of_value(sentence: str, end: int, wanted: WantedAnswer) -> float:
    """Return how well a value that ends at `end` fits: best before the noun that is counted."""
    if wanted.kind != "number" or not wanted.nouns:
        return 1.0
    behind = WORD.findall(sentence[end : end + 40].lower())[:MAX_WORDS_TO_NOUN]
    return FIT_OF_COUNT if any(stem_word(fold(word)) in wanted.nouns for word in behind) else 1.0


def _find_nouns(words: Sequence[str], lists: "_KindWords", language: Language) -> list[str]:
    """Return the first run of content words behind an interrogative, or "is the" and so on.

    "What did the mayor say?" asks for no person. In "the name of the mill", the name is no noun.
    """
    if words and words[0] in language.function_words and words[0] not in language.copulas:
        return []
    found: list[str] = []
    for word in words:
        if word in language.function_words or (not found and word in lists.empty_nouns):
            if found:
                break
        else:
            found.append(word)
    return found[:MAX_NOUN_WORDS]


@dataclass(frozen=True)
class _KindWords:
    """The compiled words of one language; `asking` has the interrogatives as kind `other`."""

    asking: Mapping[str, re.Pattern[str]]
    nouns: Mapping[str, re.Pattern[str]]
    relatives: frozenset[str]
    empty_nouns: frozenset[str]

    def kind_of(self, words: str) -> str:
        """Return the kind of the last noun whose kind is known: "film director" is a person."""
        last = {
            kind: max((found.start() for found in pattern.finditer(words)), default=-1)
            for kind, pattern in self.nouns.items()
        }
        kind = max(last, key=lambda kind: last[kind], default="other")
        return kind if last.get(kind, -1) >= 0 else "other"


@cache
def _compile_words(code: str) -> _KindWords:
    lists: Mapping[str, Any] = read_lists("kinds", _DATA)[code]
    asking = {kind: compile_words(words) for kind, words in lists["questions"].items()}
    if "interrogatives" in lists:
        asking["other"] = compile_words(lists["interrogatives"])
    nouns = {kind: compile_words(words) for kind, words in lists.get("nouns", {}).items()}
    relatives, empty_nouns = (
        frozenset(map(fold, lists.get(name, "").split())) for name in ("relatives", "empty_nouns")
    )
    return _KindWords(asking, nouns, relatives, empty_nouns)


def compile_words(words: str) -> re.Pattern[str]:
    """Compile words and phrases between bars; a star stands for any ending, ^ for the start."""
    parts = []
    for word in (part.strip() for part in words.split("|")):
        plain = r"\w*".join(re.escape(fold_words(piece)) for piece in word.split("*"))
        start = "^" if word.startswith("^") else ""
        parts.append(plain if is_unspaced(word) else rf"{start}\b{plain}\b")
    return re.compile("|".join(parts))


def fold_words(text: str) -> str:
    """Fold the words of a text, with one space between them."""
    return " ".join(fold(word) for word in WORD.findall(text))


@cache
def _compile_reasons(code: str) -> re.Pattern[str]:
    """Compile the words of a language that begin a clause of a reason."""
    lists: Mapping[str, str] = read_lists("spans", _DATA)["reasons"]
    parts = [*lists.get(code, lists["en"]).split("|"), *lists["other"].split("|")]
    plain = [re.escape(part.strip()).replace(r"\*", r"\w*") for part in parts]
    bounded = [part if is_unspaced(part) else rf"\b{part}\b" for part in plain]
    return re.compile("|".join(bounded), re.IGNORECASE)


@cache
def _compile_pattern(name: str) -> re.Pattern[str]:
    """Compile the pattern of NUMBER, DURATION, DATE or TIME."""
    lists = read_lists("spans", _DATA)

    def alternatives(words: str | Sequence[str]) -> str:
        listed = words.split() if isinstance(words, str) else words
        return "|".join(sorted(map(re.escape, set(listed)), key=len, reverse=True))

    names = ("weekdays", "relative_days", "parts_of_day", "numbers", "scales", "time_units")
    patterns = {
        **lists["patterns"],
        **{name.upper(): alternatives(lists[name]) for name in (*names, "short_time_units")},
        "MONTHS": alternatives(list(MONTHS)),
    }
    return re.compile(expand_pattern(patterns, name), re.VERBOSE | re.IGNORECASE)
