"""Known words of names, and regular expressions for capitalized spans."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain

from graphrag_nlp.names.known_names import DATA_FOLDER, find_known_type, read_sections
from graphrag_nlp.text import languages, type_words
from graphrag_nlp.text.languages import (
    ABBREVIATED_TITLES,
    NAMING_TITLES,
    TITLE_PARTS,
    is_title,
    n_titles,
    read_lists,
    word_set,
)
from graphrag_nlp.text.type_words import TYPE_WORDS, TYPE_WORDS_IN_SURNAMES

_WORDS = read_lists("graphrag_nlp/names/data/words")
ORGANIZATION_WORDS = type_words.ORGANIZATION_WORDS
# Forms of address, which have no other meaning before a name.
GERMAN_ADDRESSES = frozenset(("Frau", "Herr", "Herrn"))
_ADDRESSES = GERMAN_ADDRESSES | {"Monsieur", "Madame", "Mademoiselle"}
TYPE_WORDS_OF_THINGS = TYPE_WORDS - TYPE_WORDS_IN_SURNAMES
_HEADS = read_lists("graphrag_nlp/names/data/entity_types")
HEAD_WORDS = TYPE_WORDS.union(
    *(word_set(_HEADS[kind]) for kind in ("organizations", "places", "events", "names"))
)
_INSTITUTION_ENDS = tuple(
    f"{_HEADS['organization_ends']} {_HEADS['event_ends']} {_HEADS['name_ends']}".split()
)
_HEAD_ENDS = tuple(
    end
    for kind in ("organization_ends", "place_ends", "event_ends", "name_ends")
    for end in _HEADS[kind].split()
)
# Last words of companies, in lower case and without full stops: ltd, gmbh.
COMPANY_FORMS = word_set(_HEADS["company_forms"])
PARTIES = word_set(_HEADS["parties"])
# Adjectives and nouns of peoples, in lower case, and endings of others: Dutch, Algerian.
DEMONYMS = word_set(_WORDS["demonyms"])
DEMONYM_END = re.compile(f"(?:{_WORDS['demonym_endings']})s?$")
# Months, days and feasts.
CALENDAR_WORDS = word_set(_WORDS["calendar"])
# Words that refer to a part of a text: article, annex.
REFERENCES = word_set(_WORDS["references"])
# Languages in which the head of a name is its first word.
HEAD_FIRST = frozenset(("fr", "es", "it", "pt"))
# Words for roles, which precede a person's name without belonging to it: Minister, Sprecherin.
_ROLES = word_set(_WORDS["roles"])
_GERMAN_ROLE = re.compile(rf"(?:{_WORDS['german_role_endings']})$")
# Words that belong to a role only beside another word of a role: "foreign" in Foreign Minister.
_ROLE_PARTS = TITLE_PARTS | word_set(
    "state district circuit foreign home interior general permanent special"
)
# Words with which members of parliaments address each other, which are no names: hon. Friend.
ADDRESSES_OF_MEMBERS = word_set(_WORDS["addresses"])
# Directions and words like them, which are names only after an article: the North.
DIRECTIONS = word_set(_WORDS["directions"])
# Given names distinguish names of persons from names of places and companies.
GIVEN_NAMES = frozenset(
    name for names in read_sections(DATA_FOLDER / "given_names.txt").values() for name in names
)
# Adjectives of peoples that are given names, too.
GIVEN_PEOPLES = frozenset(("German", "Roman"))
# File of many more given names, one per line. Some are also other words, so they count as evidence
# only in a longer name. tools/gazetteer.py makes the file and names the source.
MORE_GIVEN_NAMES_FILE = DATA_FOLDER / "more_given_names.txt"
# File of firms, one per line. tools/type_weights.py makes the file and names the source.
FIRMS_FILE = DATA_FOLDER / "firms.txt"
# File of frequent words without names: one line per language, which begins with the code of the
# language. tools/gazetteer.py makes the file and names the source.
COMMON_WORDS_FILE = DATA_FOLDER / "common_words.txt"
# Code of the line of English words that German texts use as nouns.
LOAN_WORDS = "en-de"
# Words after a name that belong to it, but are no names by themselves: Inc, Jr.
NAME_SUFFIXES = word_set(_WORDS["suffixes"])
_GERMAN_ORGANIZATION_ENDS = tuple(_WORDS["german_organization_ends"].split())
# Acronyms that are common nouns or exclamations: TV.
EVERYDAY_ACRONYMS = word_set(_WORDS["everyday_acronyms"])
# Minimum length of a wrapped line in characters. Shorter lines are headings, list items or verses.
MIN_WRAPPED_LINE_LENGTH = 30
# Number of characters before and after a line whose other lines show how long lines are.
WRAPPED_CONTEXT_CHARS = 300


@cache
def more_given_names() -> frozenset[str]:
    """Read the given names of many languages that are evidence for a person in a longer name."""
    return frozenset(MORE_GIVEN_NAMES_FILE.read_text(encoding="utf-8").splitlines()) | GIVEN_NAMES


@cache
def known_firms() -> frozenset[str]:
    """Read the names of firms that mean nothing else."""
    return frozenset(FIRMS_FILE.read_text(encoding="utf-8").splitlines())


@lru_cache(65_536)  # words recur, and a search takes microseconds
def is_role(word: str) -> bool:
    """Return whether a word names a role or an office of a person."""
    lower = word.lower()
    if "-" in word:  # the role in Co-Chairman, Secretary-General
        lower = lower.removesuffix("-general").removesuffix("-elect").rpartition("-")[2]
    return lower in _ROLES or (len(word) > 6 and _GERMAN_ROLE.search(lower) is not None)


def is_role_only(words: list[str]) -> bool:
    """Return whether words are a role without a name: Prime Minister, Secretary of State."""
    if words[-1].lower() in ADDRESSES_OF_MEMBERS and all(map(is_title, words[:-1])):
        return True  # an address: (my right) Hon. Friend
    if not any(map(is_role, words)):
        return False
    # An office has its role at the end: Industrial Relations Minister, but not Jim Justice.
    if is_role(words[-1]) and len(words) > 1 and words[0] not in more_given_names():
        # An organization is no role: Ministerio Fiscal, High Court of Justice.
        head = next((at for at, word in enumerate(words) if at and word.lower() == "of"), 1)
        return not (is_organization_word(words[0]) or is_organization_word(words[head - 1]))
    return are_words_of_role(words)


def are_words_of_role(words: Sequence[str]) -> bool:
    """Return whether each word is a part of a role: Secretary of State."""
    return all(
        word.islower() or is_role(word) or is_title(word) or word.lower() in _ROLE_PARTS
        for word in words
    )


@cache
def common_words(code: str, limit: int | None = None) -> frozenset[str]:
    """Read the `limit` most frequent words of a language, in lower case; names are left out."""
    with COMMON_WORDS_FILE.open(encoding="utf-8") as lines:
        words = next((line.split() for line in lines if line.startswith(f"{code} ")), [code])
    return frozenset(words[1 : limit and limit + 1])


def _uppercase_letters() -> str:
    """Return the capital letters of all scripts, as ranges for a regular expression."""
    scripts = ((0x41, 0x2E00), (0xA640, 0xABC0), (0xFF21, 0xFF3B), (0x10400, 0x10450))
    blocks = (range(*block) for block in (*scripts, (0x118A0, 0x118C0), (0x1E900, 0x1E944)))
    letters = " ".join("".join(map(chr, block)) for block in blocks)
    capitals = "".join(c if c.isupper() or c.istitle() else " " for c in letters)
    return "".join(f"{run[0]}-{run[-1]}" for run in capitals.split())


@cache
def name_pattern(code: str) -> re.Pattern[str]:
    """Return the pattern of a span of capitalized words with particles and initials."""
    forms = ((title.title(), title.upper()) for title in sorted(languages.ABBREVIATED_TITLES))
    particles = _WORDS["name_particles"]
    patterns = {
        **read_lists("graphrag_nlp/names/data/name_patterns"),
        "UP": _uppercase_letters(),
        "TITLES": "|".join(chain.from_iterable(forms)),
        "PARTICLES": particles.get(code, particles["other"]),
        "PREFIXES": "|".join(rf"(?<=\b{prefix}-)" for prefix in _WORDS["hyphen_prefixes"].split()),
        "SUFFIXES": "|".join(_WORDS["hyphen_suffixes"].split()),
    }
    return re.compile(languages.expand_pattern(patterns, "NAME"))


@cache
def capital_pattern() -> re.Pattern[str]:
    """Return the pattern of a capital that can begin a name: not inside a word, URL or path."""
    # Test the characters before the letter after the letter itself: this is faster.
    return re.compile(rf"[{_uppercase_letters()}](?<![\w/@.#\\-].)", re.DOTALL)


def count_title_chars(name: str) -> int:
    """Count the characters of titles before a person's name: "Dr. ", but not "King " of a king."""
    if " " not in name:
        return 0
    words = name.split(" ")
    first = n_titles(words)
    if not first:
        return 0
    rest = words[first:]
    is_abbreviated = any(word.rstrip(".").lower() in ABBREVIATED_TITLES for word in words[:first])
    is_abbreviated = is_abbreviated or words[0] in _ADDRESSES
    # "General", "Major" and "Private" are also other words: General Data Protection Regulation.
    if not is_abbreviated and len(rest) > 1 and rest[0] not in more_given_names():
        return 0
    if is_general_organization(words):
        return 0
    naming = any(word.lower().rstrip(".") in NAMING_TITLES for word in words[:first])
    if naming or any(word.lower() in TYPE_WORDS_OF_THINGS for word in rest):
        return 0
    return sum(map(len, words[:first])) + first


def is_general_organization(words: Sequence[str]) -> bool:
    """Return whether a name with "General" is an organization: General Assembly."""
    return words[0] == "General" and (
        is_organization_word(words[-1]) or find_known_type(" ".join(words)) != ""
    )


def is_organization_word(word: str) -> bool:
    """Return whether a word, or the end of a German word, shows an organization: bank."""
    lower = word.lower()
    return lower in ORGANIZATION_WORDS or lower.endswith(_GERMAN_ORGANIZATION_ENDS)


def is_head_word(word: str) -> bool:
    """Return whether a word, or the end of a German word, shows the type of a name: river."""
    lower = word.lower()
    bare = lower.removesuffix("s").removesuffix("e")
    return lower in HEAD_WORDS or bare in HEAD_WORDS or bare.endswith(_HEAD_ENDS)


def is_institution_word(word: str) -> bool:
    """Return whether the end of a German word shows an institution or a law: Landgericht."""
    bare = word.lower().removesuffix("s").removesuffix("e")
    return is_organization_word(word) or bare.endswith(_INSTITUTION_ENDS)


def word_before(text: str, start: int) -> str:
    before = text[max(0, start - 20) : max(0, start - 1)].rsplit(None, 1)
    return before[-1].lower() if before else ""


def is_wrapped_line(text: str, line_end: int) -> bool:
    """Return whether a paragraph goes on after a line end, judged by the lines around it.

    A line is wrapped if the first word of the next line would make it longer than all others near.
    """
    start = text.rfind("\n", 0, line_end) + 1
    length = line_end - start
    if length < MIN_WRAPPED_LINE_LENGTH:
        return False
    following = text.find("\n", line_end + 1)
    next_line = text[line_end + 1 : following if following >= 0 else len(text)]
    needed = length + 1 + len(next_line.lstrip().partition(" ")[0])
    if len(next_line) >= needed:
        return False
    before = text[max(0, start - WRAPPED_CONTEXT_CHARS) : start].rpartition("\n\n")[2]
    after = text[line_end + 1 : line_end + 1 + WRAPPED_CONTEXT_CHARS].partition("\n\n")[0]
    return all(len(line) < needed for line in (*before.split("\n")[1:], *after.split("\n")[:-1]))
