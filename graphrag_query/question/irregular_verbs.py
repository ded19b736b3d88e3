"""Other forms of irregular verbs, which no stemmer finds: sank and sunk for "sink"."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from graphrag_index.text.languages import Language, read_lists

_VERBS: Mapping[str, str] = read_lists("irregular_verbs", Path(__file__).parent)


def find_other_forms(word: str, language: Language) -> frozenset[str]:
    """Return the other forms of an irregular verb in lower case; none for other words."""
    return _forms_by_word(language.code).get(word, frozenset())


@cache
def _forms_by_word(code: str) -> dict[str, frozenset[str]]:
    forms: dict[str, frozenset[str]] = {}
    for verb in _VERBS.get(code, "").split("|"):
        words = frozenset(verb.split())
        for word in words:
            forms[word] = forms.get(word, frozenset()) | (words - {word})
    return forms
