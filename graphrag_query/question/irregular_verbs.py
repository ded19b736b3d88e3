"""Other forms of irregular verbs, which no stemmer finds: sank and sunk for "sink"."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.normalize import stem_word

_VERBS: Mapping[str, str] = read_lists("irregular_verbs", Path(__file__).parent)
# The stemmer takes "eated" in "overheated" for the ending of "create".
_VERB_IN_EAT = re.compile(r"(\w+[eo]at)(?:s|ed|ing)?")


def find_other_forms(word: str, language: Language) -> frozenset[str]:
    """Return the other forms of an irregular verb in lower case; none for other words.

    So are English verbs whose regular forms the stemmer cuts too far: "overheated".
    """
    listed = _forms_by_word(language.code).get(word, frozenset())
    return listed | _find_forms_cut_apart(word) if language.code == "en" else listed


def _find_forms_cut_apart(word: str) -> frozenset[str]:
    """Return the regular forms of a verb such as "overheat" that have another stem."""
    verb = _VERB_IN_EAT.fullmatch(word)
    forms = (f"{verb[1]}{ending}" for ending in ("", "s", "ed", "ing")) if verb else ()
    return frozenset(form for form in forms if stem_word(form) != stem_word(word))


@cache
def _forms_by_word(code: str) -> dict[str, frozenset[str]]:
    forms: dict[str, frozenset[str]] = {}
    for verb in _VERBS.get(code, "").split("|"):
        words = frozenset(verb.split())
        for word in words:
            forms[word] = forms.get(word, frozenset()) | (words - {word})
    return forms
