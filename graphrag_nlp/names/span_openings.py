"""Words at the start of a capitalized span that stand before the name: Open Outlook."""

import re

from graphrag_nlp.names.known_names import find_known_type, is_known_name
from graphrag_nlp.names.name_words import (
    common_words,
    is_head_word,
    more_given_names,
)
from graphrag_nlp.names.span_words import SpanWords
from graphrag_nlp.text.languages import read_lists, word_set

_WORDS = read_lists("graphrag_nlp/names/data/words")
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
