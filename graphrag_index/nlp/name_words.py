"""Known words of names, base forms of words, and regular expressions for capitalized spans.

There is no dictionary of base forms. Two forms belong to one word if they have a common stem and
known endings of the language. The form that looks most like a nominative is the base form.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from graphrag_index.text import languages
from graphrag_index.text.languages import (
    ABBREVIATED_TITLES,
    MIN_STEM,
    NAMING_TITLES,
    TITLE_PARTS,
    Language,
    find_stems,
    is_title,
    n_titles,
    read_lists,
    word_set,
)
from graphrag_index.text.normalize import fold

_WORDS = read_lists("nlp/data/words")
# Words in a name that show the type of the entity: "University", "Island", "Treaty".
ORGANIZATION_WORDS, PLACE_WORDS = word_set(_WORDS["organizations"]), word_set(_WORDS["places"])
EVENT_WORDS = word_set(_WORDS["events"])
TYPE_WORDS = ORGANIZATION_WORDS | PLACE_WORDS | EVENT_WORDS
# Words for types that are also surnames: Church, Hill.
TYPE_WORDS_IN_SURNAMES = word_set(_WORDS["surnames"])
TYPE_WORDS_OF_THINGS = TYPE_WORDS - TYPE_WORDS_IN_SURNAMES
_HEADS = read_lists("nlp/data/entity_types")
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
PARTIES = word_set(_HEADS["parties"])
# Names that are known everywhere: places that the table of places lacks, organizations, products
# and works, and surnames.
KNOWN_PLACES, KNOWN_ORGANIZATIONS, KNOWN_OTHERS, KNOWN_PERSONS = (
    frozenset(map(str.strip, names.split("|")))
    for names in read_lists("nlp/data/known_names").values()
)
KNOWN_NAMES = KNOWN_PLACES | KNOWN_ORGANIZATIONS | KNOWN_OTHERS | KNOWN_PERSONS
# Words for roles, which precede a person's name without belonging to it: Minister, Sprecherin.
_ROLES = word_set(_WORDS["roles"])
_GERMAN_ROLE = re.compile(rf"(?:{_WORDS['german_role_endings']})$")
# Words that are part of a role next to another word of a role.
_ROLE_PARTS = TITLE_PARTS | word_set(
    "state district circuit foreign home interior general permanent special"
)
# Given names distinguish names of persons from names of places and companies.
GIVEN_NAMES = frozenset().union(*map(word_set, read_lists("nlp/data/given_names").values()))
# File of many more given names, one per line. Some are also other words, so they count as evidence
# only in a longer name. tools/gazetteer.py makes the file and names the source.
MORE_GIVEN_NAMES_FILE = Path(__file__).with_name("data") / "more_given_names.txt"
# File of firms, one per line. tools/type_weights.py makes the file and names the source.
FIRMS_FILE = Path(__file__).with_name("data") / "firms.txt"
# File of frequent words without names: one line per language, which begins with the code of the
# language. tools/gazetteer.py makes the file and names the source.
COMMON_WORDS_FILE = Path(__file__).with_name("data") / "common_words.txt"
# Endings of given names with a stem shorter than `MIN_STEM`: Ewa, Ewy, Ewie.
_SHORT_NAME_ENDINGS = frozenset(("a", "e", "ie", "o", "ou", "u", "y"))
# Words with equal first letters are compared pairwise if there are at most this many.
MAX_COMPARED_WORDS = 200
# Words after a name that belong to it, but are no names by themselves: Inc, Jr.
NAME_SUFFIXES = word_set(_WORDS["suffixes"])
# Owners and things that form one name: "King's College", but not "Campbell's Northern Party".
_POSSESSORS = word_set(_WORDS["possessors"])
_POSSESSED = word_set(_WORDS["possessed"])
# Text between two parts that may form one name: a possessive, "for", or "and" within the name of an
# organization: Department of Health and Human Services.
_NAME_JOINT = re.compile(
    r"['’]s |(?<=s)['’] | for (?:the )?| für (?:die |das |den )?| & | vs?\.? "
    r"|(?:(?<=Treaty)|(?<=Convention)|(?<=Covenant)|(?<=Protocol)|(?<=Declaration)) on (?:the )?"
    r"|(?:(?<=Committee)|(?<=Subcommittee)|(?<=Commission)|(?<=Conference)) on (?:the )?"
    r"| (?:der|des) (?=[A-ZÄÖÜ]\w+(?:en|er) [A-ZÄÖÜ])"
    r"| (?:and|und|et|y|e) (?:the |la |el |los |las |les )?"
)
# Last words of names of agencies with "and": Food and Drug Administration. The bodies count
# only after a common word: Economic and Social Council.
_AGENCY_WORDS = word_set(
    "administration agency authority board bureau commission committee service"
)
_BODY_WORDS = word_set(
    "council court department fund bank union organization organisation association institute"
)
_CONGRESSES = frozenset(("Conference", "Convention", "Covenant"))
_CALENDAR_WORDS = word_set(_WORDS["calendar"])
_CONJUNCTION = re.compile(r" (?:and|und|et|y|e) .*")
# Joints between two names that always form one name: Marks & Spencer, Roe v. Wade.
_FIRM_JOINTS = frozenset((" & ", " v ", " v. ", " vs ", " vs. "))
_FRENCH_ADJECTIVE = re.compile(rf" \w+{_WORDS['french_adjective_endings']}s?\b")
_GERMAN_ORGANIZATION_ENDS = tuple(_WORDS["german_organization_ends"].split())
# Acronyms that are common nouns or exclamations: TV.
EVERYDAY_ACRONYMS = word_set(_WORDS["everyday_acronyms"])
_INNER_JOINT = re.compile(r"\b(?:of|for|on|für|de|du|des|di)\b")
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


@lru_cache(65_536)  # the search takes microseconds, and words recur
def is_role(word: str) -> bool:
    """Return whether a word names a role or an office of a person."""
    lower = word.lower()
    if "-" in word:  # Co-Chairman, Secretary-General
        lower = lower.removesuffix("-general").removesuffix("-elect").rpartition("-")[2]
    return lower in _ROLES or (len(word) > 6 and _GERMAN_ROLE.search(lower) is not None)


def is_role_only(words: list[str]) -> bool:
    """Return whether words are a role without a name: Prime Minister, Secretary of State."""
    if not any(map(is_role, words)):
        return False
    # An office has its role at the end: Industrial Relations Minister, but not Jim Justice.
    if is_role(words[-1]) and len(words) > 1 and words[0] not in more_given_names():
        return not is_organization_word(words[0])  # Ministerio Fiscal
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


def find_base_forms(
    counts: Mapping[str, int],
    language: Language,
    openings: Collection[str] = (),
    surnames: Collection[str] = (),
) -> dict[str, str]:
    """Map each word to its base form. The base form is one of the words or a given name.

    `openings` are words that begin longer names. They may be given names whose base form does not
    occur in the corpus. `surnames` are words that end longer names. "Peters" in `surnames` is not
    a genitive of "Peter".
    """
    bases = {word: word for word in counts}
    if language.genitive_s:
        for word in counts:
            # Map German genitives: Goethes to Goethe, Berlins to Berlin.
            owner = word.removesuffix("s")
            is_surname = owner in GIVEN_NAMES and word in surnames
            if owner in counts and word not in GIVEN_NAMES and not is_surname:
                bases[word] = owner
        return bases
    if not language.endings:
        return bases
    groups: dict[str, list[str]] = defaultdict(list)
    for word in counts:
        groups[fold(word)[:MIN_STEM]].append(word)
    for group in groups.values():
        if not 1 < len(group) <= MAX_COMPARED_WORDS:
            continue
        # Sort the words that look most like base forms first.
        group.sort(
            key=lambda word: (
                *(word not in GIVEN_NAMES, is_oblique(word, language), len(word)),
                *(-counts[word], word),
            )
        )
        stems = {word: find_stems(word, language) for word in group}
        for index, base in enumerate(group):
            if bases[base] != base:
                continue
            for word in group[index + 1 :]:
                if bases[word] == word and stems[word] & stems[base]:
                    bases[word] = base
    for word, base in bases.items():
        if base not in GIVEN_NAMES and (word in openings or is_oblique(base, language)):
            names = _find_given_names(base, language)
            # "Dary" (gifts) is a form of "Daria" only if the corpus contains "Daria". A long case
            # ending, as in "Adamem", is enough by itself: few other words have one.
            if not base.casefold().endswith(tuple(e for e in language.oblique if len(e) > 1)):
                names &= counts.keys()
            if len(names) == 1:
                bases[word] = names.pop()
    return bases


def is_oblique(word: str, language: Language) -> bool:
    """Return whether a word has the ending of a case other than the nominative."""
    return word.casefold().endswith(language.oblique)


def is_given_name(word: str, language: Language) -> bool:
    """Return whether a word is a known given name, in any inflected form."""
    return word in GIVEN_NAMES or bool(language.endings and _find_given_names(word, language))


def _find_given_names(word: str, language: Language) -> set[str]:
    known = _given_names_by_stem(language.code)
    names = {known[stem] for stem in find_stems(word, language) if stem in known}
    folded = fold(word)
    stem, ending = folded[: MIN_STEM - 1], folded[MIN_STEM - 1 :]
    is_short = stem in known and ending in _SHORT_NAME_ENDINGS
    if is_short and ending in languages.list_folded_endings(language.code):
        names.add(known[stem])
    return names


@cache
def _given_names_by_stem(code: str) -> dict[str, str]:
    """Map stems of given names to the names. A stem is the name, also without its last vowel."""
    stems: dict[str, str] = {}
    vowels = [fold(vowel) for vowel in "a o y i e е я й а ь ος ης ας α".split()]
    fleeting = languages.language_of(code).fleeting_vowel
    for name in sorted(GIVEN_NAMES):
        folded = fold(name)
        stems[folded] = name
        if fleeting and len(folded) > MIN_STEM and folded[-2] == fleeting:
            stems.setdefault(folded[:-2] + folded[-1], name)
        for vowel in vowels:
            short = vowel == "a" and len(folded) == MIN_STEM
            if folded.endswith(vowel) and (short or len(folded) - len(vowel) >= MIN_STEM):
                stems.setdefault(folded.removesuffix(vowel), name)
    return stems


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
        **read_lists("nlp/data/name_patterns"),
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
    rest = words[first:]
    is_abbreviated = any(word.rstrip(".").lower() in ABBREVIATED_TITLES for word in words[:first])
    # "General", "Major" and "Private" are also other words: General Data Protection Regulation.
    if not is_abbreviated and len(rest) > 1 and rest[0] not in more_given_names():
        return 0
    naming = any(word.lower().rstrip(".") in NAMING_TITLES for word in words[:first])
    if naming or any(word.lower() in TYPE_WORDS_OF_THINGS for word in rest):
        return 0
    return sum(map(len, words[:first])) + first


def is_organization_word(word: str) -> bool:
    """Return whether a word heads names of organizations, also as the end of a German word."""
    lower = word.lower()
    return lower in ORGANIZATION_WORDS or lower.endswith(_GERMAN_ORGANIZATION_ENDS)


def is_head_word(word: str) -> bool:
    """Return whether a word, also as the end of a German word, shows the type of a name."""
    lower = word.lower()
    bare = lower.removesuffix("s").removesuffix("e")
    return lower in HEAD_WORDS or bare in HEAD_WORDS or bare.endswith(_HEAD_ENDS)


def is_institution_word(word: str) -> bool:
    """Return whether a German word is an institution or a law by its end: Landgericht."""
    bare = word.lower().removesuffix("s").removesuffix("e")
    return is_organization_word(word) or bare.endswith(_INSTITUTION_ENDS)


def word_before(text: str, start: int) -> str:
    before = text[max(0, start - 20) : max(0, start - 1)].rsplit(None, 1)
    return before[-1].lower() if before else ""


def find_end_after_possessive(
    text: str, start: int, end: int, language: Language, pattern: re.Pattern[str]
) -> int:
    """Return the end of a name that may continue after a possessive or after "for".

    "(the) Patron's Medal" and "Institute for Polar Research" are one name. "Campbell's Northern
    Party" is two names.
    """
    joint = _NAME_JOINT.match(text, end)
    match = joint and pattern.match(text, joint.end())
    words = text[start:end].split()
    is_owner = text[end : end + 1] != " "
    if joint and match and joint.group().startswith(" on "):
        if match.group().split()[0].lower() in _CALENDAR_WORDS:
            return end  # the Committee on Tuesday
        return find_end_after_possessive(text, start, match.end(), language, pattern)
    if joint and match and joint.group() in _FIRM_JOINTS:
        first, *rest = match.group().split()
        # "Barney & Betty Rubble" are two persons.
        are_persons = joint.group() == " & " and bool(rest) and first in GIVEN_NAMES
        return end if are_persons else match.end()
    if language.code == "fr" and len(words) == 1 and words[0].lower() in ORGANIZATION_WORDS:
        adjective = _FRENCH_ADJECTIVE.match(text, end)
        return adjective.end() if adjective and words[0][0].isupper() else end
    if joint and match and not is_owner and _CONJUNCTION.fullmatch(joint.group()):
        # The words of an office before "of" or "for" show that "and" is inside its name.
        head = _INNER_JOINT.split(text[start:end])[0].split()
        # Romance languages begin with the office, and repeat the article.
        last = head[0] if joint.group().count(" ") > 2 else head[-1]
        is_office = is_organization_word(last) or last in _CONGRESSES
        is_office = is_office and len(head) < len(words)
        # "the Parliament of Peru and the Supreme Court of Peru" are two bodies.
        other = _INNER_JOINT.split(match.group())
        is_other = joint.group().count(" ") > 2 and is_organization_word(other[0].split()[-1])
        is_office = is_office and not (is_other and len(other) > 1)
        # "the Marine and Coastal Access Act", "the Securities and Exchange Commission"
        last = match.group().rsplit(None, 1)[-1]
        opens = words[0].lower()
        is_plain = opens in common_words(language.code) and opens not in HEAD_WORDS
        is_body = last.lower() in _AGENCY_WORDS or (is_plain and last.lower() in _BODY_WORDS)
        is_whole = last == "Act" or (is_body and not is_role(words[0]))
        if is_whole and len(words) == 1 < len(match.group().split()):
            return match.end() if word_before(text, start) == "the" else end
        return match.end() if is_office and not is_given_name(match.group(), language) else end
    if not match or not (is_owner or is_organization_word(words[-1])):
        return end
    if not is_owner:
        # "Centers for Disease Control and Prevention"
        longer = find_end_after_possessive(text, start, match.end(), language, pattern)
        return max(longer, match.end())
    if is_owner:
        article = word_before(text, start) in language.determiners
        if len(words) == 2 and words[0].lower() in language.determiners:
            article, words = True, words[1:]
        saint = words[0] in ("St", "St.", "Saint") and len(words) == 2
        owned = match.group().split()[0].lower()
        next_words = match.group().split()
        is_person = len(next_words) > 1 and next_words[0] in more_given_names()
        common = article or words[0].lower() in _POSSESSORS or owned in _POSSESSED
        ends_with_owner = words[-1].lower() in _POSSESSORS and owned in _POSSESSED
        single = len(words) == 1 and common and not is_person
        if not (saint or single or ends_with_owner):
            return end
    return match.end()


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
