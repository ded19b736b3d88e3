"""Forms of given names: short forms and transcriptions."""

import re

from graphrag_nlp.text.languages import read_lists

# The most frequent given name of each group of forms: Michael for Mike.
_FULL_FORM: dict[str, str] = {
    form: group.split()[0]
    for group in read_lists("graphrag_nlp/names/data/words")["given_name_forms"].split("|")
    for form in group.split()
}
# Endings of one Slavic given name: Sergey and Sergei.
_SLAVIC_END = re.compile("(?:ey|ei|ej|iy|ij|ii|yi|yj|y)$")
_MIN_CHARS = 4


def find_transcription_key(given_name: str) -> str:
    """Return a key that is the same for the transcriptions of a name: Alexey, Aleksei."""
    if len(given_name) < _MIN_CHARS:
        return given_name
    return _SLAVIC_END.sub("i", given_name.replace("ks", "x"))


def find_form_key(given_name: str) -> str:
    """Return a key that is the same for all forms of a given name: Michael, Mike."""
    return _FULL_FORM.get(given_name, find_transcription_key(given_name))
