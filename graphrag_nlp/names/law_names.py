"""Names with words in lower case: laws, courts, streets, products, and German bodies."""

import re
from collections.abc import Iterator
from functools import cache

from graphrag_nlp.names.compounds import GERMAN_ADJECTIVE, PLACE_END, is_certain_noun
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import REFERENCES, is_organization_word
from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.places import large_place_names

_WORDS = read_lists("graphrag_nlp/names/data/words")
_SPANISH_COURT = re.compile(_WORDS["spanish_court"])
_SPANISH_CASE = re.compile(_WORDS["spanish_case"])
_SPANISH_VERSUS = (" contra ", " c. ", " v. ")
# Ends of German names are searched, and then the word before them: this is faster.
_GERMAN_TAILS = [re.compile(tail) for tail in _WORDS["german_tails"]]
_GERMAN_RIVER = re.compile(rf" (?:{_WORDS['german_rivers']})\b")
# Products whose name begins in lower case: their first capital, which is searched first, and the
# rest. The lower-case letters are before it.
_LOWER_PRODUCT = re.compile(
    r"(?:P(?<=\biP)(?:hone|ad|od)(?:OS|s)?(?: \d{1,2}\b(?!,\d)(?: Pro| Plus| Max| Mini)*)?"
    r"|O(?:(?<=\biO)|(?<=\bmacO)|(?<=\btvO)|(?<=\bwatchO))S|C(?<=\biC)loud)\b"
)
# An Arabic name behind its article: al-Shabaab. Between two spaces, it is a known one: al Qaeda.
_ARABIC = re.compile(r"al-(?<![\w@./-]al-)[A-Z]\w+(?:['’](?!s\b)\w+|-[a-z]{2}-[A-Z]\w+)*")
_SPACED_ARABIC = re.compile(r"al (?<![\w@./-]al )[A-Z]\w+")
_NAME_BEFORE = re.compile(r"(?:[A-Z][\w'’.-]*(?: (?:of|de|von))?|\b(?:bin|ibn|abu)) $")
_LOWER_START = re.compile(r"[a-z]+$")
# A street in an address, by its number and the code of the town: Am Kanal 12, 49076 Osnabrück.
# All its words have a capital, except after a preposition: Unter den Eichen, Straße des 17. Juni.
_ADDRESS = re.compile(
    r"[,(:] ?((?!(?:Der|Die|Das|Ein|Eine) )[A-ZÄÖÜ][\w.-]+"
    r"(?: (?:(?:a[mn]|auf|bei[m]?|hinter|in|unter|vor|zu[mr]?|von)(?: de[mnr])?|de[mnrs]|d[iea]s?)"
    r"| (?:\d\d?\. )?[A-ZÄÖÜ][\w.-]*){0,4}) \d{1,4} ?[a-z]?, "
    r"((?:D-)?\d{5}|(?:A-|CH-)?\d{4}) ([A-ZÄÖÜ][\w-]+)"
)
_STREET_END = re.compile(r"(?:stra(?:ß|ss)e|gasse|weg|platz|allee)$", re.IGNORECASE)
_FRENCH_BODIES = re.compile(_WORDS["french_bodies"])
_NO_HEADS = frozenset(_WORDS["german_no_heads"].split())
_HEAD_BEFORE = re.compile(r"(?<![\w-])[A-ZÄÖÜ][\w-]*$")
MAX_HEAD_CHARS = 40
_REFERENCE = re.compile(
    rf"(?i:(?:(?:{'|'.join(REFERENCES)}) (?:\d+|[IVXLC]+|[A-Z]|one|two|three|four|five|six|seven) "
    r"(?:of|to) (?:the )?)+)(?=[^\W\d_])"
)


@cache
def _law_pattern(code: str) -> re.Pattern[str] | None:
    laws = _WORDS["laws"].get(code)
    # A pattern that begins with a capital is faster without a boundary before it.
    boundary = "" if laws and laws.startswith("[A-Z]") else r"\b"
    return re.compile(rf"{boundary}(?:{laws})") if laws else None


def find_law_names(text: str, language: Language) -> Iterator[tuple[int, int]]:
    """Yield the spans of names with words in lower case: code du travail, Weil am Rhein."""
    if pattern := _law_pattern(language.code):
        yield from (match.span() for match in pattern.finditer(text))
    if language.code == "es":
        yield from (match.span() for match in _SPANISH_COURT.finditer(text))
        if any(versus in text for versus in _SPANISH_VERSUS):
            yield from (match.span(1) for match in _SPANISH_CASE.finditer(text))
    if language.code == "fr":
        yield from (match.span() for match in _FRENCH_BODIES.finditer(text))
    if language.capitalizes_nouns:
        yield from _find_german_names(text)
    yield from _find_arabic_names(text, language)
    # Most texts have none of these parts, which is tested fast.
    if "iP" in text or "OS" in text or "iC" in text:
        for match in _LOWER_PRODUCT.finditer(text):
            lower = _LOWER_START.search(text, max(0, match.start() - 5), match.start())
            yield (lower or match).start(), match.end()


def _find_arabic_names(text: str, language: Language) -> Iterator[tuple[int, int]]:
    """Yield Arabic names that begin with an article: al-Shabaab, but not Ali al-Sadr."""
    patterns = [_ARABIC] if "al-" in text else []
    if language.code == "en" and " al " in text:
        patterns.append(_SPACED_ARABIC)
    for pattern in patterns:
        for match in pattern.finditer(text):
            if _NAME_BEFORE.search(text, max(0, match.start() - MAX_HEAD_CHARS), match.start()):
                continue
            if pattern is _ARABIC or find_known_type(match.group()):
                yield match.span()


def _find_german_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of German streets, treaties, bodies and towns, found by their ends."""
    for tail in _GERMAN_TAILS:
        for match in tail.finditer(text):
            head = _find_head(text, match.start())
            needs_body = text[match.start()] == " "  # Verband deutscher Musikschulen
            if needs_body and not (head and is_organization_word(head.group())):
                continue
            if head and head.group() not in _NO_HEADS:
                start = _find_adjective(text, head.start()) if text[match.start()] == "-" else -1
                yield head.start() if start < 0 else start, match.end()
    for match in _ADDRESS.finditer(text):
        street, code, town = match.groups()
        if len(code) == 4 and not _STREET_END.search(street):
            continue  # Liste der Werke 12, 1985 Berlin
        # Small towns are known to no list: 26409 Wittmund, but not 20000 Mitglieder.
        if town.lower() in large_place_names() or not is_certain_noun(town):
            yield match.span(1)
    for match in _GERMAN_RIVER.finditer(text):
        if head := _find_head(text, match.start()):
            known = {head.group().lower(), text[head.start() : match.end()].lower()}
            is_town = PLACE_END.search(head.group()) or not is_certain_noun(head.group())
            if is_town or not large_place_names().isdisjoint(known):
                yield head.start(), match.end()


def _find_head(text: str, end: int) -> re.Match[str] | None:
    return _HEAD_BEFORE.search(text, max(0, end - MAX_HEAD_CHARS), end)


def _find_adjective(text: str, end: int) -> int:
    """Return the start of a capitalized adjective before a compound; -1 if there is none.

    Example: Südwestfälische | Industrie- und Handelskammer.
    """
    before = _HEAD_BEFORE.search(text, max(0, end - MAX_HEAD_CHARS), end - 1)
    is_adjective = before and text[end - 1] == " " and GERMAN_ADJECTIVE.fullmatch(before.group())
    return before.start() if before and is_adjective else -1


def count_reference_words(words: list[str]) -> int:
    """Count the words of references before a name: Title V of Part Three of the | Treaty."""
    found = _REFERENCE.match(" ".join(words)) if words[0].lower() in REFERENCES else None
    return found.group().count(" ") if found else 0
