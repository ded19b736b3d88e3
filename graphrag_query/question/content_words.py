"""Content words of a question, also for scripts that the embedding model cannot read.

The built-in model cannot tell texts in such a script apart. There, shared words or pairs of
characters replace the cosine.
"""

import re
from typing import TYPE_CHECKING

from graphrag_index.text.languages import Language, detect_language, language_of
from graphrag_index.text.normalize import UNSPACED_OR_HANGUL, stem

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import IndexStore

# Words of questions that say nothing about the subject, beside the function words.
QUESTION_WORDS = frozenset(
    (
        "who whom whose what which where when why how did does was were tell explain describe "
        "list give main about important role happened happen think know wer was wann wo warum "
        "wie welche kto kim kogo czym co gdzie kiedy dlaczego jak jaki która"
    ).split()
)
# Share of a question's pairs of characters that a sentence must hold.
MIN_PAIR_SHARE = 0.2
# Characters at the start of a word that endings do not change.
MIN_STEM = 4
_WORD = re.compile(r"[^\W_]+")
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
# Scripts compared by pairs of characters: they have no spaces, or endings as long as their words.
_PAIRED = re.compile(rf"{UNSPACED_OR_HANGUL}+")
# The Arabic article, alone or behind a prefixed "and", "by", "for" or "like".
_ARABIC_PREFIX = re.compile(r"^[\u0648\u0641\u0628\u0643]?\u0627\u0644(?=\w{3})")


def language_in(text: str) -> Language:
    """Detect the language of a text."""
    return language_of(detect_language(text))


def content_words(text: str, language: Language | None = None) -> list[str]:
    """Return the stems of the words that carry the meaning of a text, each once."""
    plain = (language or language_in(text)).function_words | QUESTION_WORDS
    words = (word for word in _WORD.findall(text.lower()) if word not in plain and len(word) > 1)
    return list(dict.fromkeys(map(stem, words)))


def common_prefix(stem: str) -> str:
    """Return the letters that words of one stem begin with: country and countries as "coun"."""
    if len(stem) > 5:
        return stem[: max(len(stem) - 2, 4)]
    # The stem of story and stories is stori.
    return stem.removesuffix("i") if len(stem) > 3 else stem


def is_unreadable(index: "IndexStore", text: str) -> bool:
    """Tell whether the embedding model cannot read most letters of a text, or is missing."""
    if index.backend.lacks_vectors:
        return True
    settings = index.settings
    if settings.generate_text_embeddings.model in settings.models:
        return False
    letters = len(_LETTER.findall(text))
    return 2 * len(_LATIN.findall(text)) < letters


def share_words(question: str, sentence: str) -> bool:
    """Tell whether a sentence shares a word with a question, whatever its ending.

    In scripts without spaces, enough pairs of characters must be shared.
    """
    pairs = _pairs(question)
    if pairs and len(pairs & _pairs(sentence)) >= MIN_PAIR_SHARE * len(pairs):
        return True
    held = {_without_article(word) for word in _WORD.findall(sentence.lower())}
    for word in map(_without_article, content_words(_PAIRED.sub(" ", question))):
        if len(word) < MIN_STEM:
            if len(word) > 2 and word in held:
                return True
        elif any(other.startswith(word[: max(MIN_STEM, len(word) - 2)]) for other in held):
            return True
    return False


def _pairs(text: str) -> set[str]:
    runs = _PAIRED.findall(text)
    return {run[i : i + 2] for run in runs for i in range(max(1, len(run) - 1))}


def _without_article(word: str) -> str:
    return _ARABIC_PREFIX.sub("", word)
