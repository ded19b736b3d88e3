"""Cuts of capitalized spans with two names, or with other words beside a name.

This module has the order of all cuts: at labels and words before a name, at roles, owners,
particles and persons.
"""

from collections.abc import Iterator

from graphrag_nlp.names.compounds import (
    COMMON_NOUN_END,
    is_certain_noun,
    is_german_noun,
    is_loan_word,
)
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import (
    COMPANY_FORMS,
    DIRECTIONS,
    HEAD_FIRST,
    HEAD_WORDS,
    common_words,
    is_head_word,
    is_organization_word,
    is_role,
    is_role_only,
    more_given_names,
)
from graphrag_nlp.names.span_words import (
    APPOSITIVE_ENDS,
    APPOSITIVES,
    Cut,
    SpanWords,
    is_given_full_name,
    is_type_word,
)
from graphrag_nlp.names.used_names import (
    is_capitalized_term,
    is_reference,
)
from graphrag_nlp.names.word_table import cue_type
from graphrag_nlp.text import languages
from graphrag_nlp.text.languages import is_title, n_titles, word_set
from graphrag_nlp.text.type_words import TYPE_WORDS

_WORDS = languages.read_lists("graphrag_nlp/names/data/words")

# Maximum number of mentions of a span that is cut between two names.
_MAX_RARE_MENTIONS = 2
# Groups of persons before the name of an organization or a place: Officials of | the Red Cross.
_GROUPS = {code: word_set(groups) for code, groups in _WORDS["groups"].items()}
# Labels in capitals, which may stand before a name: "TIPP" (hint) before Debian.
_LABELS = frozenset(_WORDS["labels"].upper().split())
_CUT_PARTICLES = frozenset(("of", "von", "van", "de", "des", "der", "zu", "zur"))
# A word in capitals with at most this many letters is an acronym rather than a label.
_MAX_LABEL_ACRONYM_LETTERS = 5


def cut_names(span: SpanWords) -> Iterator[tuple[int, str, str]]:
    """Yield the names in the span as (offset, name, type that the word before it shows)."""
    words = span.words
    for first, last in _cut_into_parts(span, 0, len(words)):
        part = words[first:last]
        if part and part != words and part[0].islower():
            # After a cut, a particle begins no name: Websites | zur Lösung.
            first = next((i for i in range(first, last) if not words[i].islower()), last)
            part = words[first:last]
        if part == words:
            if span.used.is_name(span.number):
                yield 0, span.usage.found.names[span.number], ""
        elif not part or (len(part) > 1 and is_role_only(part)):
            continue  # only a role: (the Egyptian) Foreign Minister
        elif is_capitalized_term(part, span.language.code) or is_reference(part):
            continue  # a reference: See | Article 5
        elif span.is_name(part) or _is_named(span, first, last):
            kind = find_cue(words[first - 1]) if first else ""
            yield sum(map(len, words[:first])) + first, " ".join(part), kind


def _is_named(span: SpanWords, first: int, last: int) -> bool:
    """Return whether a noun before a single word shows that it is a name: Firma | Weber."""
    before = span.words[first - 1] if first else ""
    word = span.words[first]
    is_word = last - first == 1 and word[1:].islower()
    has_role = first > 0 and (is_role(before) or is_role(span.words[0]))
    return is_word and not is_role(word) and (before.lower() in APPOSITIVES or has_role)


def _cut_into_parts(span: SpanWords, first: int, last: int) -> list[tuple[int, int]]:
    """Cut the words from `first` to `last` between names; return (first, last) of each part."""
    words = span.words[first:last]
    if len(words) > 1:
        cut = _find_cut(span, words, at_start=first == 0)
        if cut is not None:
            left, right = cut
            pieces = _cut_into_parts(span, first, first + left) if left else []
            return pieces + _cut_into_parts(span, first + right, last)
    return [(first, last)]


def _find_cut(span: SpanWords, words: list[str], at_start: bool) -> Cut | None:
    """Return the position of the first cut, or None if the words are one name.

    If the left part is empty, the words before the right part belong to no name.
    """
    n_forms = sum(word == "&" or word.lower().rstrip(".") in COMPANY_FORMS for word in words)
    is_company = len(words) - n_forms < 4 and words[-1].lower().rstrip(".") in COMPANY_FORMS
    if span.language.capitalizes_nouns and words[0].lower().endswith(APPOSITIVE_ENDS):
        is_company = False  # a noun first: Batteriehersteller Varthold AG
    name = " ".join(words)
    if is_company or find_known_type(name) or span.usage.is_known_place(name, ""):
        return None
    if words[0].isupper() and (label := count_label_words(span, words)):
        return 0, label
    initial = at_start and span.initial
    groups = _GROUPS.get(span.language.code, frozenset())
    if at_start and words[0].lower() in groups and words[1] in ("of", "de", "del"):
        return 0, next((i for i in range(2, len(words)) if not words[i].islower()), 2)
    may_begin = at_start or span.language.capitalizes_nouns
    if may_begin and span.precedes_name(words[0], words[1:], initial):
        # Remove the first word and the particles between the first word and the name.
        right = next((i for i in range(1, len(words)) if words[i][0].isupper()), 0)
        if right:
            return 0, right
    return (
        _cut_after_role(span, words)
        or _cut_after_owner(span, words)
        or _cut_at_particle(span, words, initial)
        or _cut_before_person(span, words, initial)
        or _cut_between_names(span, words)
    )


def _cut_after_role(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut a role before a name: (the) CDC Director | Rochelle Walensky."""
    roles = (i for i, word in enumerate(words[:-1]) if is_role(word) and not word.islower())
    last = max(roles, default=-1)
    if last < 0 or span.is_given_name(words[0]) or words[last + 1] == "for":
        return None  # one name: High Commissioner for Refugees
    if words[last + 1] == "of" and len(words) > last + 2:
        # Cut after "of" and "the": President of | Peru.
        return 0, last + (3 if words[last + 2] == "the" and len(words) > last + 3 else 2)
    # The name begins at the first given name after the role, or right after the role.
    given = (i for i in range(last + 1, len(words)) if span.is_given_name(words[i]))
    right = next(given, last + 1)
    while right < len(words) and (words[right].islower() or is_title(words[right])):
        right += 1
    rest = words[right:]
    # A title alone is cut later: President Park Geun-hye.
    is_given = span.language.code == "en" and is_given_full_name(rest) and n_titles(words) < right
    if not rest or len(rest) > 4 or not (is_given or span.may_be_person(rest)):
        return None
    left = last
    while left and (is_role(words[left - 1]) or words[left - 1].islower()):
        left -= 1
    # Before the role, keep only what the corpus or capitals show to be a name.
    before = words[:left]
    is_name = len(before) == 1 and before[0].isupper() and len(before[0]) > 1
    genitive = span.language.genitive_s and before and before[-1].endswith("s")
    is_name = is_name or bool(genitive and span.is_genitive(before, words[left:]))
    return left if before and (is_name or span.count_known_mentions(before)) else 0, right


def _cut_after_owner(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut between an owner in the genitive and the owned thing: Goethes | Haus."""
    for at, word in enumerate(words[:-1], 1):
        genitive = span.language.genitive_s and word.endswith("s")
        if genitive and span.is_genitive(words[:at], words[at:]):
            return at, at
    return None


def _cut_before_person(span: SpanWords, words: list[str], initial: bool) -> Cut | None:
    """Cut between a role and a person's full name: Innensenatorin | Petra Lindner."""
    if words[-1].lower() in TYPE_WORDS:
        return None
    at = next((i for i, word in enumerate(words) if span.is_given_name(word)), 0)
    left, right = words[:at], words[at:]
    if not at or left[-1].islower() or any("." in word for word in left):
        return None
    if n_titles([*left, right[0]]) == len(left):
        return None
    may_be_given = span.language.capitalizes_nouns and len(left) == 1
    if may_be_given and left[0] in more_given_names() and not is_german_noun(left[0]):
        return None  # two given names: Liv Lisa Fries
    if span.language.capitalizes_nouns and not is_type_word(left[-1]):
        return at, at
    if len(right) < 2 or is_title(left[-1]):
        return None
    begins = initial and span.language.endings and left[0].lower() not in TYPE_WORDS
    known = max(map(span.count_known_mentions, (left, right)))
    return (at, at) if begins or known > span.times else None


def _cut_at_particle(span: SpanWords, words: list[str], initial: bool) -> Cut | None:
    """Cut at a particle between two names: Nimrod Expedition of Ernest Shackleton."""
    is_romance = span.language.code in HEAD_FIRST
    for at, word in enumerate(words):
        if word not in _CUT_PARTICLES or not 0 < at < len(words) - 1:
            continue
        may_have_purpose = _may_have_purpose(words[at - 1]) and not span.is_full_name(words[:at])
        if _is_purpose(word, words[at + 1]) and not may_have_purpose:
            return at, at + 1 + (word == "zu")  # X2Go | zur Verbindung, Radtke | zu Gast
        if is_romance and at == 1 and (cut := _cut_after_romance_word(span, words, initial)):
            return cut
        start = next((i for i in range(at, len(words)) if not words[i].islower()), None)
        if start is None:
            return None
        left, right = words[:at], words[start:]
        if is_romance and _belongs_to_organization(span, left, right[0]):
            return at, start
        is_plain = at == 1 and not is_type_word(left[0]) and not span.is_given_name(left[0])
        if word == "of":
            cut = _cut_at_of(span, left, right, at, start)
        elif is_plain and span.language.capitalizes_nouns:
            is_noun = is_german_noun(left[0]) or is_loan_word(left[0])
            cut = (0, start) if is_noun and not is_organization_word(left[0]) else None
        elif word == "von" and span.language.capitalizes_nouns:
            # Cut "Nils Petersen | von der TU Darmstadt", but not "Ursula von der Leyen".
            is_body = right[0].isupper() or is_organization_word(right[0])
            cut = (at, start) if is_body and span.is_full_name(left) else None
        else:
            cut = None
        if cut:
            return cut
    return None


def _is_purpose(particle: str, word: str) -> bool:
    """Return whether the word after "zu" or "zur" is a noun, and no seat of a noble family."""
    is_seat = particle == "zu" and COMMON_NOUN_END.search(word) is None
    return particle in ("zu", "zur") and is_certain_noun(word) and not is_seat


def _may_have_purpose(word: str) -> bool:
    """Return whether a name may go on with a purpose: Verein zur Förderung."""
    return is_german_noun(word) or is_organization_word(word) or is_head_word(word)


def _cut_after_romance_word(span: SpanWords, words: list[str], initial: bool) -> Cut | None:
    """Cut off one word and a particle before a name: Recetas de | Karlos Arteaga."""
    first = words[0]
    has_code = first[0].isupper() and any(map(str.isdigit, first))
    is_thing = first[0].isupper() and first.lower() not in HEAD_WORDS
    is_thing = is_thing and not span.is_given_name(first)
    if not (has_code or (is_thing and span.is_given_name(words[2]))):
        return None
    is_word = initial or first.lower() in common_words(span.language.code)
    return (0 if is_word or has_code else 1), 2


def _belongs_to_organization(span: SpanWords, left: list[str], body: str) -> bool:
    """Return whether a thing stands before its organization: (la sonde) Juno | de la NASA."""
    if len(left) > 1 or left[0].isupper() or not body.isupper() or len(body) < 3:
        return False
    return left[0].lower() not in TYPE_WORDS | common_words(span.language.code)


def _cut_at_of(
    span: SpanWords, left: list[str], right: list[str], at: int, start: int
) -> Cut | None:
    """Cut at the "of" at index `at` before words that begin at index `start`."""
    is_shown = span.count_known_mentions(right) > span.times and span.is_full_name(right)
    if is_shown and (at > 1 or span.count_known_mentions(left) > span.times):
        return at, start
    is_english = span.language.code == "en"
    is_person = is_english and is_given_full_name(left[n_titles(left) :])  # Jeb Bush | of Florida
    return (at, start) if is_person or span.is_full_name(left) else None


def _cut_between_names(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut a rare span after a preposition between two frequent names: (at) Cape Evans | Scott."""
    is_placed = span.usage.preposition[span.number] > 0
    if span.times > _MAX_RARE_MENTIONS or not is_placed or words[-1].lower() in TYPE_WORDS:
        return None
    first = 1 + (words[0].lower() in DIRECTIONS)  # never North | Wales
    for at in range(len(words) - 1, first - 1, -1):
        sides = words[:at], words[at:]
        if all(span.count_known_mentions(side) > span.times for side in sides):
            return at, at
    return None


def find_cue(word: str) -> str:
    """Return the type that a noun shows for the name after it; "Firma" shows an organization."""
    return "person" if is_role(word) or is_title(word) else cue_type(word)


def count_label_words(span: SpanWords, words: list[str]) -> int:
    """Count the words in capitals before a name that are a label: WARNING Ada Brown."""
    n_words = next((i for i, word in enumerate(words) if not word.isupper()), 0)
    common = common_words(span.language.code)
    is_label = any(
        word in _LABELS
        or (
            len(word) > _MAX_LABEL_ACRONYM_LETTERS
            and (word.lower() in common or not span.used.is_acronym(word, span.language))
        )
        for word in words[:n_words]
    )
    return n_words if is_label else 0
