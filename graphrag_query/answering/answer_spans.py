"""Parts of a sentence that can be a short answer: numbers, dates, names, reasons."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from graphrag_nlp.text.languages import (
    MONTHS,
    PARTICLES,
    Language,
    expand_pattern,
    language_of,
    read_lists,
)
from graphrag_nlp.text.normalize import fold, is_unspaced, stem_word
from graphrag_query.question.answer_kind import WantedAnswer
from graphrag_query.question.question_words import WORD, stop_words_of

# The types of entities that can answer each kind of question about a name.
TYPES_OF_KIND = {"person": "person", "place": "geo", "organization": "organization"}
# Types of entities that say nothing about what a thing is; None: it is no entity.
VAGUE_TYPES = frozenset((None, "name", "acronym", "noun phrase"))
# Maximum number of characters of a clause that gives a reason, or says how something is done.
MAX_CLAUSE_CHARS = 200
# How well such clauses fit. Words such as "durch" say how, but also where.
FIT_OF_CLAUSE = {"reason": 1.0, "manner": 0.5}
# How well a purpose fits, such as "to save coal", and an occasion: "after the storm".
FIT_OF_PURPOSE = 0.6
FIT_OF_OCCASION = 0.3
# How well a number fits that stands before the noun which a question wants counted, and the maximum
# number of words between the two. How well one fits that counts something else.
FIT_OF_COUNT = 1.5
MAX_WORDS_TO_NOUN = 2
# Maximum number of further nouns behind the first: "20 newly built houses".
MAX_FURTHER_NOUNS = 3
FIT_OF_OTHER_COUNT = 0.5
# Minimum fit of a name beside the noun that is asked for: "Judge Ann Bell" for "Which judge?", and
# number of characters before the name that are searched for the noun.
FIT_OF_CLASS = 1.25
MAX_CHARS_TO_CLASS = 40
# Maximum number of characters of the last item but one of an enumeration.
MAX_ITEM_CHARS = 60
# How well an enumeration fits, if several things are asked for.
FIT_OF_ENUMERATION = 1.0
# A run of capitalized words: "Bank of England", "J. R. R. Tolkien", "FIFA U-20 Golden Shoe".
_NAME_JOINTS = "|".join(sorted(PARTICLES | {"of", "the", "&"}))
_CAPITALIZED_RUN = re.compile(
    rf"[^\W\d_a-z][\w’-]*\.?(?:(?:\s(?:{_NAME_JOINTS})){{0,2}}\s(?:[^\W\d_a-z][\w’-]*\.?|\d+))*"
)
# The word before a name, also before "of" and the like.
_WORD_BEFORE_NAME = re.compile(rf"([\w’'-]+)(?:\s(?:of|called|named|{'|'.join(PARTICLES)}))?\s$")
# Up to six words between two words of a clause, written "_" in the lists.
_GAP = r"\s(?:[\w-]+\s){0,6}?"
# A path in a file system, or an address on the web: "/etc/hosts", "C:\\Temp", "https://example.org".
_PATH = re.compile(
    r"(?<![^\s\"'“(\[<])(?:~?/[\w.+-]+(?:/[\w.+-]*)*|[A-Za-z]:\\[\w\\.-]+|https?://[^\s)>\]]+)"
)
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{2,80})[\"”“»]")


class AnswerSpan(NamedTuple):
    """The place of a possible short answer in a sentence."""

    start: int
    end: int
    # How well the span fits the wanted kind: 0 to 1, or more for what is surely wanted.
    fit: float


def find_answer_spans(
    sentence: str, wanted: WantedAnswer, language: Language, types: Mapping[str, str]
) -> list[AnswerSpan]:
    """Find the parts of a sentence that are of the wanted kind, in their order.

    `types` maps names of entities in lower case to their types.
    """
    if wanted.kind in ("number", "duration", "date", "time"):
        pattern = _pattern(wanted.kind.upper())
        found_spans = [found.span() for found in pattern.finditer(sentence)]
        return [
            AnswerSpan(start, end, _fit_of_number(sentence, end, wanted, language))
            for start, end in found_spans
        ]
    if wanted.wants_name:
        return list(_find_names(sentence, wanted, language, types))
    if wanted.kind in FIT_OF_CLAUSE:
        fits = {wanted.kind: FIT_OF_CLAUSE[wanted.kind]}
        if wanted.kind == "reason":
            fits |= {"purpose": FIT_OF_PURPOSE, "occasion": FIT_OF_OCCASION}
        return [
            AnswerSpan(found.start(), min(len(sentence), found.start() + MAX_CLAUSE_CHARS), fit)
            for kind, fit in fits.items()
            for found in _clause_pattern(kind, language.code).finditer(sentence)
        ]
    return []


def find_new_spans(
    sentence: str,
    question: str,
    wanted: WantedAnswer,
    language: Language,
    types: Mapping[str, str],
) -> list[AnswerSpan]:
    """Find the parts of a sentence that are of the wanted kind and not in the question itself."""
    asked = set(WORD.findall(question.lower()))
    return [
        span
        for span in find_answer_spans(sentence, wanted, language, types)
        if not asked.issuperset(WORD.findall(sentence[span.start : span.end].lower()))
    ]


def find_enumerations(sentence: str, language: Language) -> list[AnswerSpan]:
    """Find where a sentence lists several things: "bread, honey and cheese".

    Two are a list behind a colon only: "two things: bread and honey".
    """
    pattern = _enumeration_pattern(language.code)
    return [AnswerSpan(*found.span(), FIT_OF_ENUMERATION) for found in pattern.finditer(sentence)]


@cache
def _enumeration_pattern(code: str) -> re.Pattern[str]:
    lists = read_lists("direct_answers", Path(__file__).parent)["conjunctions"]
    joints = "|".join(map(re.escape, lists.get(code, lists["en"]).split()))
    # Without the \b, each letter of a long word would begin another search to its end.
    last = rf"\b\w+\)?,\s[^,;:.!?]{{1,{MAX_ITEM_CHARS}}},?\s(?:{joints})\s\w+"
    behind_colon = (
        rf":\s(?:(?:[^,;:.!?]{{1,{MAX_ITEM_CHARS}}},\s){{2,}}\w+|"
        rf"[^,;:.!?]{{1,{MAX_ITEM_CHARS}}}\s(?:{joints})\s\w+)"
    )
    return re.compile(f"{last}|{behind_colon}", re.IGNORECASE)


def find_counted_noun(sentence: str, end: int, wanted: WantedAnswer, language: Language) -> int:
    """Return the end of the wanted nouns that follow a number which ends at `end`; 0 if none.

    An ordinal counts nothing: "the 59th awards".
    """
    if sentence[end : end + 1].isalpha():
        return 0
    stop_words = stop_words_of(language)
    words = list(islice(WORD.finditer(sentence, end), MAX_WORDS_TO_NOUN + MAX_FURTHER_NOUNS))
    for i, word in enumerate(words[:MAX_WORDS_TO_NOUN]):
        marks = set(sentence[end : word.start()]).intersection(",;:.()")
        if marks or word[0].lower() in stop_words:
            break
        if stem_word(fold(word[0])) not in wanted.nouns:
            continue
        # "23 rainforest trees" has two of the nouns; "28 men survived" has a verb.
        last = word
        for before, other in pairwise(words[i:]):
            if other.start() != before.end() + 1 or stem_word(fold(other[0])) not in wanted.nouns:
                break
            last = other if other[0].endswith("s") else last
        return last.end()
    return 0


def _fit_of_number(sentence: str, end: int, wanted: WantedAnswer, language: Language) -> float:
    """Return how well a number, date or time that ends at `end` fits."""
    if wanted.kind != "number" or not wanted.nouns:
        return 1.0
    if find_counted_noun(sentence, end, wanted, language):
        return FIT_OF_COUNT
    return FIT_OF_OTHER_COUNT if wanted.is_counted and counts_other(sentence, end) else 1.0


def counts_other(sentence: str, end: int) -> bool:
    """Return whether an English plural follows a number that ends at `end`: "340,000 loaves"."""
    word = WORD.match(sentence, end + 1) if sentence[end : end + 1].isspace() else None
    if word is None or not word[0].islower():
        return False
    return word[0].endswith("s") and word[0] not in stop_words_of(language_of("en"))


def find_name_words(sentence: str, language: Language) -> set[frozenset[str]]:
    """Return the words in lower case of each run of capitalized words, without function words."""
    stop_words = stop_words_of(language)
    runs = (WORD.findall(found[0].lower()) for found in _CAPITALIZED_RUN.finditer(sentence))
    names = {frozenset(word for word in words if word not in stop_words) for words in runs}
    return names - {frozenset()}


def _find_names(
    sentence: str, wanted: WantedAnswer, language: Language, types: Mapping[str, str]
) -> Iterator[AnswerSpan]:
    """Yield the names in a sentence, and what stands in quotation marks if a title is wanted."""
    kind = wanted.kind
    if kind == "place":
        for path in _PATH.finditer(sentence):
            yield AnswerSpan(path.start(), path.start() + len(path[0].rstrip(".,;:")), 1.0)
    if kind == "title":
        for quoted in _QUOTED.finditer(sentence):
            yield AnswerSpan(*quoted.span(1), 1.0)
    stop_words = stop_words_of(language)
    # A line may end within a name. The places stay the same.
    sentence = re.sub(r"\s", " ", sentence)
    for found in _CAPITALIZED_RUN.finditer(sentence):
        start, end = found.span()
        name = found.group()
        first = WORD.match(name)
        while first and first.group().lower() in stop_words and " " in name:
            start += name.index(" ") + 1
            name = sentence[start:end]
            first = WORD.match(name)
        name = name.removesuffix("'s").removesuffix("’s").rstrip(".,'’")
        if not name[:1].isupper() or name.lower() in stop_words or len(name) < 2:
            continue
        if first and first.group().lower() in stop_words:
            # A contraction: "I'll".
            continue
        known = types.get(name.lower())
        if known is None and start == 0 and name.isalpha():
            # Any word is capitalized at the start of a sentence.
            continue
        expected = TYPES_OF_KIND.get(kind)
        is_unclear = known in VAGUE_TYPES or expected is None
        fit = 0.5 if is_unclear else 1.0 if known == expected else 0.1
        if wanted.head and _has_class(sentence[:start], name, wanted.head):
            fit = max(fit, FIT_OF_CLASS)
        yield AnswerSpan(start, start + len(name), fit)


def _has_class(before: str, name: str, noun: str) -> bool:
    """Return whether a name has a noun in it or just before it: "District Judge Ann Bell".

    `before` is the text before the name, and `noun` a stem. "Town of Bern" counts as well.
    """
    if noun in map(stem_word, map(fold, WORD.findall(name.lower())[:-1])):
        return True
    found = _WORD_BEFORE_NAME.search(before[-MAX_CHARS_TO_CLASS:])
    return found is not None and stem_word(fold(found[1].lower())) == noun


@cache
def _clause_pattern(kind: str, code: str) -> re.Pattern[str]:
    """Compile the words of a language that begin a clause of a reason or a manner."""
    words = read_lists("answer_spans", Path(__file__).parent)[f"{kind}_words"]
    listed = "|".join(filter(None, (words.get(code, words["en"]), words["other"])))
    parts = [re.escape(" ".join(part.split())) for part in listed.split("|")]
    parts = [part.replace(r"\ _\ ", _GAP).replace(r"\*", r"\w+") for part in parts if part]
    bounded = (part if is_unspaced(part) else rf"\b{part}\b" for part in parts)
    return re.compile("|".join(bounded).replace(r"\ ", r"\s"), re.IGNORECASE)


def may_give_reason(sentence: str, language: Language) -> bool:
    """Return whether a sentence has a reason, or a clause that may be one: "since it rained"."""
    if find_answer_spans(sentence, WantedAnswer("reason"), language, {}):
        return True
    pattern = _possible_reason_pattern(language.code)
    return pattern is not None and pattern.search(sentence.strip()) is not None


@cache
def _possible_reason_pattern(code: str) -> re.Pattern[str] | None:
    pattern = read_lists("answer_spans", Path(__file__).parent)["possible_reasons"].get(code)
    if pattern is None:
        return None
    months = "|".join(map(re.escape, MONTHS))
    return re.compile(pattern.replace("{MONTHS}", months), re.VERBOSE | re.IGNORECASE)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    """Compile the pattern of NUMBER, DURATION, DATE or TIME."""
    lists = read_lists("answer_spans", Path(__file__).parent)
    values = read_lists("graphrag_nlp/names/data/values")

    def alternatives(words: str) -> str:
        return "|".join(sorted(map(re.escape, set(words.split())), key=len, reverse=True))

    names = ("weekdays", "relative_days", "parts_of_day", "numbers", "time_units")
    scales = [*values["scales"].values(), values["billions"], values["trillions"]]
    patterns = {
        **lists["patterns"],
        **{name.upper(): alternatives(lists[name]) for name in (*names, "short_time_units")},
        "MONTHS": alternatives(" ".join(MONTHS)),
        "SCALES": alternatives(" ".join(scales)),
    }
    return re.compile(expand_pattern(patterns, name), re.VERBOSE | re.IGNORECASE)
