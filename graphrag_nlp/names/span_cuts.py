"""Cuts of capitalized spans with two names, or with other words beside a name.

This module has the order of all cuts, the words before a name (Open Outlook), and the cuts at
roles, owners and persons. Cuts at particles are in particle_cuts.py.
"""

import re
from collections.abc import Iterator

from graphrag_nlp.names.compounds import is_german_noun
from graphrag_nlp.names.head_types import is_branch
from graphrag_nlp.names.known_names import find_known_type, is_known_name
from graphrag_nlp.names.name_words import (
    COMPANY_FORMS,
    DIRECTIONS,
    are_words_of_role,
    common_words,
    is_head_word,
    is_organization_word,
    is_role,
    is_role_only,
    more_given_names,
)
from graphrag_nlp.names.particle_cuts import cut_at_particle
from graphrag_nlp.names.span_words import (
    APPOSITIVE_ENDS,
    APPOSITIVES,
    Cut,
    SpanWords,
    begins_sentence,
    is_given_full_name,
    is_type_word,
)
from graphrag_nlp.names.used_names import (
    is_capitalized_term,
    is_reference,
    may_be_surname,
    names_person,
)
from graphrag_nlp.names.word_table import cue_type
from graphrag_nlp.text import languages
from graphrag_nlp.text.languages import is_title, n_titles, word_set
from graphrag_nlp.text.type_words import TYPE_WORDS

_WORDS = languages.read_lists("graphrag_nlp/names/data/words")
_VERSUS = frozenset(("v", "v.", "vs", "vs."))
# Letters behind the name of a judge: Wagner C.J.
_JUDGES = frozenset("C.J CJ C.J. J.A J.A. JJ JJ. JA LJ LJJ".split())
# Ends of English words for occupations: Postman, Curator.
_OCCUPATION = re.compile(r"(?:man|woman|ologist|rian|ator|ist|eer)$")

# Maximum number of mentions of a span that is cut between two names.
_MAX_RARE_MENTIONS = 2
_VERBS = {code: word_set(verbs) for code, verbs in _WORDS["opening_verbs"].items()}
_GROUPS = {code: word_set(groups) for code, groups in _WORDS["groups"].items()}
_WORDS_BEFORE_KNOWN = word_set(_WORDS["openings_before_known"])
# Titles of boxes in capitals, before a name or other words: TIPP Debian.
_LABELS = frozenset(_WORDS["labels"].upper().split())
_LABEL_VERBS = word_set(_WORDS["label_verbs"])
_OF = frozenset(("of", "de", "del"))
# Parts of laws and contracts, before their numbers: Part II, Artículo 4, Anhang C.
SECTIONS = word_set(
    "part chapter section schedule title article annex appendix clause exhibit teil kapitel "
    "abschnitt artikel anhang anlage partie chapitre titre annexe título capítulo sección artículo "
    "anexo apéndice sala"
)
# Words before a letter that numbers them, and the letter at the end of a sentence: Appendix B.
_LETTERED = (SECTIONS - {"sala"}) | word_set(
    "figure table series type class group figura tabla serie tipo"
)
_LETTER = re.compile(r"[A-Z]\.")
# Maximum number of letters of a word in capitals that rather is an acronym than a label.
_MAX_LABEL_ACRONYM_LETTERS = 5


def find_names(span: SpanWords) -> Iterator[tuple[int, str, str]]:
    """Yield the names in the span as (offset, name, type that the word before it shows)."""
    words = span.words
    for first, last in _cut_into_parts(span, 0, len(words)):
        part = words[first:last]
        if part and part != words and part[0].islower():
            # Behind a cut, a particle begins no name: Websites | zur Lösung.
            first = next((i for i in range(first, last) if not words[i].islower()), last)
            part = words[first:last]
        if part == words:
            if span.used.is_name(span.number):
                yield 0, span.usage.found.names[span.number], ""
        elif not part or (_is_behind_demonym(span, first) and is_role_only(part)):
            continue  # (the Egyptian) Foreign Minister, Parlamentarischer Staatssekretär
        elif len(part) > 1 and are_words_of_role(part):
            continue  # (the Deputy) Prime Minister
        elif _is_term(span, first, part) or (
            not (first and words[first - 1].islower()) and _is_in_heading(span, part)
        ):
            continue
        elif span.is_name(part) or _is_named(span, first, last):
            kind = find_cue(words[first - 1]) if first else ""
            yield sum(map(len, words[:first])) + first, " ".join(part), kind


def _is_behind_demonym(span: SpanWords, first: int) -> bool:
    """Return whether a word is German, or stands behind the adjective of a people."""
    is_behind = first > 0 and span.usage.is_demonym(span.words[first - 1])
    return is_behind or span.language.capitalizes_nouns


def _is_term(span: SpanWords, first: int, part: list[str]) -> bool:
    """Return whether a part of a span from a word on is a term or a reference: See | Article 5."""
    is_surname = len(part) == 1 and first > 0 and is_role(span.words[first - 1])  # Minister Key
    is_term = not is_surname and is_capitalized_term(part, span.language.code)
    return is_term or is_reference(part)


def _is_in_heading(span: SpanWords, part: list[str]) -> bool:
    """Return whether only capitals in headings show that words are a name: Used Facebook."""
    if span.language.code != "en" or span.usage.in_prose[span.number] or len(part) == 1:
        return False
    is_shown = span.used.is_known(span.number, part) or span.is_full_name(part)
    return not (is_shown or span.count_known_mentions(part))


def _is_named(span: SpanWords, first: int, last: int) -> bool:
    """Return whether a word before one other word shows that it is a name: Firma Weber."""
    before = span.words[first - 1] if first else ""
    word, code = span.words[first], span.language.code
    is_word = last - first == 1 and word[1:].islower()
    has_role = first > 0 and (is_role(before) or is_role(span.words[0]))
    if first and shows_name(span.words[:first], code):
        is_common = word.lower() in common_words(code) or span.usage.is_demonym(word)
        return is_word and (not is_common or find_known_type(word) != "")
    if not is_word or is_role(word):
        return False
    if code == "de" and first and (has_role or names_person(before)):
        # Kollege Zwickel, Förster Huber; but not (weil der) Minister Geld (braucht)
        return before.lower().startswith("kolleg") or may_be_surname(word, has_role)
    return before.lower() in APPOSITIVES or has_role


def _cut_into_parts(span: SpanWords, first: int, last: int) -> list[tuple[int, int]]:
    """Cut the words from `first` to `last` between names; return each part."""
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
    if not _VERSUS.isdisjoint(words[1:-1]):
        is_company = False  # Plaintiff v. Brightpanel Corp.
    if span.language.capitalizes_nouns and words[0].lower().endswith(APPOSITIVE_ENDS):
        is_company = False  # Batteriehersteller Varthold AG
    name = " ".join(words)
    if is_company or find_known_type(name) or span.usage.is_known_place(name, ""):
        return None
    if span.language.code == "de" and is_branch(words):
        return None
    if words[-1] == "State" and are_words_of_role(words):
        return None  # Secretary of State
    if words[0].isupper() and (label := count_label_words(span, words)):
        return 0, label
    initial = at_start and span.initial
    if (sentence := find_new_sentence(words)) and span.language.code in ("en", "es", "de"):
        return sentence, sentence
    if words[-1] in _JUDGES and span.language.code == "en":
        return len(words) - 1, len(words)
    if at_start and (opening := count_opening_words(span, words, initial)):
        return 0, opening
    may_begin = at_start or span.language.capitalizes_nouns
    if may_begin and span.precedes_name(words[0], words[1:], initial):
        # Remove the first word and the particles between the first word and the name.
        right = next((i for i in range(1, len(words)) if words[i][0].isupper()), 0)
        if right:
            return 0, right
    return (
        _cut_after_role(span, words)
        or _cut_after_owner(span, words)
        or cut_at_particle(span, words, initial)
        or _cut_before_person(span, words, initial)
        or _cut_between_names(span, words)
    )


def _cut_after_role(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut a role before a name: (the) CDC Director | Rochelle Walensky."""
    roles = (i for i, word in enumerate(words[:-1]) if is_role(word) and not word.islower())
    last = max(roles, default=-1)
    if last > 1 and words[last - 1] == "of" and is_organization_word(words[last - 2]):
        return None  # Court of Justice of the European Union
    is_cue = span.initial and cue_type(words[0]) == "person"
    if last < 0 and is_cue and not span.language.endings and len(words) > 2:
        last = 0  # Investor Sumner Redstone
    if last < 0 or span.is_given_name(words[0]) or words[last + 1] == "for":
        return None  # High Commissioner for Refugees
    if words[last + 1] in ("de", "del") and span.language.code == "es":
        return 0, count_spanish_role(words, last)
    if words[last + 1] == "of" and len(words) > last + 2:
        right = last + (3 if words[last + 2] == "the" and len(words) > last + 3 else 2)
        known = is_organization_word(words[-1]) or span.count_known_mentions(words[right:])
        # Chairman of the Council for Human Rights
        known = known or (len(words) > right + 2 and is_organization_word(words[right]))
        if not known:
            while right < len(words) - 1 and words[right].lower() in common_words("en"):
                right += 1  # Secretary of State Rice
        return 0, right  # President of Peru
    # The name begins at the first given name after the role, or right after the role.
    given = (i for i in range(last + 1, len(words)) if span.is_given_name(words[i]))
    right = next(given, last + 1)
    is_english = span.language.code == "en"
    while right < len(words) and (words[right].islower() or is_title(words[right])):
        right += 1
    if is_english and right < len(words) - 1 and begins_sentence(words[right]):
        right += 1  # (said) Professor | While Brexit
    rest = words[right:]
    # A title alone is cut later: President Park Geun-hye.
    is_given = is_given_full_name(rest, rare=True) or find_known_type(" ".join(rest)) == "person"
    is_given = is_given and is_english and n_titles(words) < right
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
    """Cut after an owner that is a name: Goethes Haus, (the) Nimrod's Captain."""
    for at, word in enumerate(words[:-1], 1):
        if word.endswith(("'s", "’s")):
            if span.count_known_mentions([word[:-2]]):
                return at, at
            continue
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
    if len(right) == 1 and find_known_type(" ".join(left)) == "organization":
        return None  # Renault Zoe
    may_be_given = span.language.capitalizes_nouns and len(left) == 1
    if may_be_given and left[0] in more_given_names() and not is_german_noun(left[0]):
        return None  # Liv Lisa Fries
    if span.language.capitalizes_nouns and not is_type_word(left[-1]):
        return at, at
    if len(right) < 2 or is_title(left[-1]):
        return None
    word, code = left[-1].lower(), span.language.code
    is_word = word in common_words(code) or span.usage.count_lower(word, code) > 0
    is_word = is_word or _OCCUPATION.search(word) is not None
    is_word = code == "en" and is_word and not is_head_word(word)
    if len(left) == 1 and is_word and span.is_full_name(right):
        return at, at  # Businessmen Solomon Lew
    begins_sentence = initial and span.language.endings and left[0].lower() not in TYPE_WORDS
    known = max(map(span.count_known_mentions, (left, right)))
    return (at, at) if begins_sentence or known > span.times else None


def _cut_between_names(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut a rare span behind a preposition between two frequent names: (at) Cape Evans | Scott."""
    is_placed = span.usage.preposition[span.number] > 0
    if span.times > _MAX_RARE_MENTIONS or not is_placed or words[-1].lower() in TYPE_WORDS:
        return None
    # North Wales is one, although the corpus has the North, too.
    first = 1 + (words[0].lower() in DIRECTIONS)
    for at in range(len(words) - 1, first - 1, -1):
        sides = words[:at], words[at:]
        if all(span.count_known_mentions(side) > span.times for side in sides):
            return at, at
    return None


def find_cue(word: str) -> str:
    """Return the type that a capitalized noun shows of the name after it: Firma Weber."""
    return "person" if is_role(word) or is_title(word) else cue_type(word)


def count_opening_words(span: SpanWords, words: list[str], initial: bool) -> int:
    """Count the words before the name in a span: Call Vestal, Residents of Notting Hill.

    `initial` is true if the span occurs only at the start of sentences.
    """
    code, first = span.language.code, words[0].lower()
    if code not in _VERBS or words[0].isupper():
        return 0
    if words[0] in more_given_names() and not find_known_type(words[1]):
        return 0  # Elige Luna, but not Add | Gmail
    if initial and first in _VERBS[code] and _may_follow_verb(span, words[1:]):
        return 1
    if initial and code == "en" and first in _WORDS_BEFORE_KNOWN and _begins_known(words[1:]):
        return 1
    if words[1] in _OF and first in _GROUPS[code]:
        if any(find_known_type(" ".join(words[:end])) for end in range(3, len(words))):
            return 0  # Friends of the Earth Mozambique
        return _skip_lower(words, 2)
    return 0


def _begins_known(words: list[str]) -> bool:
    """Return whether words are a known name, or begin with a given name."""
    return is_known_name(" ".join(words)) or (len(words) > 1 and words[0] in more_given_names())


def _may_follow_verb(span: SpanWords, rest: list[str]) -> bool:
    """Return whether words behind a verb are a name, unlike those of Open University.

    A name of English words in title case may begin with a verb.
    """
    word = rest[0].lower()
    if find_known_type(word) or rest[0] in more_given_names() or span.language.code == "es":
        return True
    return word not in common_words("en") or span.count_known_mentions(rest) > 0


def shows_name(words: list[str], code: str) -> bool:
    """Return whether opening words show that a name follows: Use Gmail, Residents of Gurzheim."""
    if code not in _VERBS:
        return False
    first = words[0].lower()
    if len(words) == 1:
        is_verb = first in _VERBS[code] or (code == "en" and first in _WORDS_BEFORE_KNOWN)
        return is_verb and first not in _LABEL_VERBS
    return first in _GROUPS[code] and words[1] in _OF


def _skip_lower(words: list[str], at: int) -> int:
    while at < len(words) - 1 and words[at].islower():
        at += 1
    return at


def find_new_sentence(words: list[str]) -> int:
    """Return the index of the word behind a letter that ends a sentence: Appendix B. | Ada."""
    found = (at for at in range(1, len(words) - 1) if words[at - 1].lower() in _LETTERED)
    return next((at + 1 for at in found if _LETTER.fullmatch(words[at])), 0)


def count_spanish_role(words: list[str], last: int) -> int:
    """Count the words of a role that ends at index `last`, and its field: Ministro de Hacienda."""
    common, right = common_words("es"), last + 1
    while right < len(words) - 1 and (words[right].islower() or words[right].lower() in common):
        if is_head_word(words[right]) and words[right][0].isupper():
            break  # Notario del | Ilustre Colegio
        right += 1
    return right


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
