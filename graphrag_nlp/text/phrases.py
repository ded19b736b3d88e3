"""Lists of phrases as patterns for folded questions."""

import re
from collections.abc import Mapping
from typing import Final

from graphrag_nlp.text.normalize import fold, is_unspaced

# In the lists, "_" means up to six words between two words.
_GAP: Final = r"\s((?:\w+\s){0,6}?)"


def fold_question(question: str) -> str:
    """Fold the words of a question and remove its punctuation."""
    return " ".join(re.sub(r"['’¿¡?!.,;:-]", " ", _fold_words(question)).split())


def _fold_words(text: str) -> str:
    """Fold each word of a text and keep the other characters."""
    return re.sub(r"(?:[^\W_]|[\u0300-\u036f])+", lambda word: fold(word.group()), text)


def compile_lists(lists: Mapping[str, str]) -> dict[str, re.Pattern[str]]:
    """Compile lists of phrases by their names."""
    return {name: compile_phrases(phrases) for name, phrases in lists.items()}


def compile_phrases(phrases: str) -> re.Pattern[str]:
    """Compile phrases, separated by "|", into a pattern for folded questions."""
    parts = []
    for phrase in (part.strip() for part in phrases.split("|")):
        start = "^" if phrase.startswith("^") else ""
        plain = _fold_words(phrase.removeprefix("^"))
        pattern = re.escape(plain).replace(r"\ _\ ", _GAP)
        pattern = pattern.replace(r"\*", r"\w*").replace(r"\ ", r"\s+")
        bound = "" if is_unspaced(phrase) else r"\b"
        end = "" if plain.endswith(("*", '"', "“")) or not bound else r"\b"
        parts.append(f"{start}{bound}{pattern}{end}")
    return re.compile("|".join(parts))
