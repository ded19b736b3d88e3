"""Patterns of spans that may be names, and how line ends and possessives bound them."""

import re
from functools import cache

from graphrag_index.nlp.type_keywords import ORGANIZATIONS
from graphrag_index.text.languages import Language
from graphrag_index.text.sentences import Sentence
from graphrag_index.text.titles import ABBREVIATED_TITLES
from graphrag_index.text.word_lists import read_lists, word_set

_LISTS = read_lists("nlp/data/words")
# Whose name takes the possessive into itself: King's College, but Campbell's Northern Party.
_POSSESSORS = word_set(_LISTS["possessors"])
_POSSESSED = word_set(_LISTS["possessed"])
_TERMINAL = frozenset(".!?…")
# Shorter lines are headings, entries of lists, verses.
MIN_WRAPPED = 30


def _uppercase_class() -> str:
    """Return the upper and title case letters of all scripts as a character class."""
    ranges: list[list[int]] = []
    scripts = ((0x41, 0x2E00), (0xA640, 0xABC0), (0xFF21, 0xFF3B), (0x10400, 0x10450))
    for first, last in (*scripts, (0x118A0, 0x118C0), (0x1E900, 0x1E944)):
        for code in range(first, last):
            if chr(code).isupper() or chr(code).istitle():
                if ranges and ranges[-1][1] == code - 1:
                    ranges[-1][1] = code
                else:
                    ranges.append([code, code])
    return "".join(f"{chr(a)}-{chr(b)}" if b > a else chr(a) for a, b in ranges)


@cache
def name_pattern(code: str) -> re.Pattern[str]:
    """Match a span of capitalized words, with particles and initials, in one language."""
    up = _uppercase_class()
    # Combining marks belong to the letter before them.
    letter = r"[\w\u0300-\u036f]"
    # D'Arcy, AT&T, Science+Business, Russo–Japanese, Smith-Jones, Stoke-on-Trent, Kim Jong-il,
    # Co-operation
    suffixes = "|".join(_LISTS["hyphen_suffixes"].split())
    prefixes = "|".join(rf"(?<=\b{prefix}-)" for prefix in _LISTS["hyphen_prefixes"].split())
    joints = "|".join(
        (
            r"['’](?!s\b)",
            "&",
            rf"[+–](?=[{up}])",
            rf"-(?:(?=[{up}\d])|(?:[a-z]{{1,5}}-)+(?=[{up}])"
            rf"|(?<={letter}{{2}}-)(?!(?:{suffixes})\b)(?=[a-z]{{2,5}}(?![\w-]))"
            rf"|(?=[a-z])(?:{prefixes}))",
        )
    )
    word = rf"[{up}]{letter}*(?:(?:{joints}){letter}+)*"
    titles = "|".join(
        form for title in sorted(ABBREVIATED_TITLES) for form in (title.title(), title.upper())
    )
    # Looking for the full stop first is quicker than trying all titles.
    before = rf"(?:(?=\w{{1,6}}\.)(?:[{up}]|{titles})\.-?[^\S\n]?)*"
    # One character, so that a span and its words joined by single spaces are equally long.
    space = r"(?:[^\S\n]|\n(?!\s))"
    particles = _LISTS["name_particles"].get(code, _LISTS["name_particles"]["other"])
    particle = rf"(?:(?:{particles}){space})?"
    # F. W. de Klerk
    initials = rf"(?:(?:[{up}]\.{space}?)+{particle}|{before})"
    joined = rf"(?:(?:al|el|ad|an|as|ash|at|az)-|[dD]['’])?{word}"
    # Apollo 11, West Virginia Route 9
    number = r"(?:[^\S\n]\d{1,3}(?![\w%°]|[.,:/–-]\d))?"
    return re.compile(rf"{initials}{word}(?:{space}{particle}{initials}{joined})*{number}")


@cache
def capital_pattern() -> re.Pattern[str]:
    """Match a capital that can begin a name: not inside a word, an address or a path."""
    # The look-behind comes after the letter: the engine then skips to letters quickly.
    return re.compile(rf"[{_uppercase_class()}](?<![\w/@.#\\-].)", re.DOTALL)


def word_before(text: str, start: int) -> str:
    before = text[max(0, start - 20) : max(0, start - 1)].rsplit(None, 1)
    return before[-1].lower() if before else ""


def end_behind_possessive(
    text: str, start: int, end: int, language: Language, pattern: re.Pattern[str]
) -> int:
    """Return the end of a name that may continue behind a possessive or a "for".

    "(the) Patron's Medal", "King's College", "St George's Hospital" and
    "Institute for Polar Research" are one name, "Campbell's Northern Party" is two.
    """
    words = text[start:end].split()
    if text[end] == " ":
        next_start = end + 9 if text.startswith("the ", end + 5) else end + 5
        joins = words[-1].lower() in ORGANIZATIONS
    else:
        next_start = end + 3
        joins = text.startswith("s ", end + 1)
    if not joins or not text[next_start : next_start + 1].isupper():
        return end
    match = pattern.match(text, next_start)
    if match is None:
        return end
    if text[end] != " ":
        article = word_before(text, start) in language.determiners
        if len(words) == 2 and words[0].lower() in language.determiners:
            article, words = True, words[1:]
        saint = words[0] in ("St", "St.", "Saint") and len(words) == 2
        owned = match.group().split()[0].lower()
        common = article or words[0].lower() in _POSSESSORS or owned in _POSSESSED
        if not (saint or (len(words) == 1 and common)):
            return end
    return match.end()


def up_to_line_end(text: str, start: int, raw: str) -> str:
    """Cut a span at the end of a heading; a wrapped line may end inside a name."""
    for line in re.finditer("\n", raw):
        if not is_wrapped(text, start + line.start()):
            return raw[: line.start()]
    return raw


def is_wrapped(text: str, line_end: int) -> bool:
    """Tell whether a line was wrapped, by its length and the next line's."""
    length = line_end - text.rfind("\n", 0, line_end) - 1
    if length < MIN_WRAPPED:
        return False
    longest = line_end + 1 + 2 * length
    return longest >= len(text) or text.find("\n", line_end + 1, longest) >= 0


def is_in_capitals(text: str, sentence: Sentence) -> bool:
    """Tell whether a sentence is all in capitals, which then mark nothing."""
    words = text[sentence.start : sentence.end]
    return words.isupper() and " " in words


def counts_as_prose(text: str, sentence: Sentence, all_prose: bool) -> bool:
    """Tell whether capitals in a sentence mark names; in headings and tables they may not."""
    return sentence.prose or all_prose or text[sentence.end - 1] in _TERMINAL
