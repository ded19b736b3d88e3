"""Questions in scripts that the built-in embedding model cannot read.

To it all texts in such a script are alike: a cosine says nothing, and what they have in common
must be found in their letters.
"""

import re
from typing import TYPE_CHECKING

from graphrag_query.answering.sentence_ranking import content_words

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel

# The share of a question's pairs of characters that a sentence must hold.
LEAST_PAIRS = 0.2
# So many letters of a word stay the same, whatever its ending.
LEAST_STEM = 4
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
# Scripts whose words are short and stand without spaces, or with endings that are half of them.
_PAIRED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_WORD = re.compile(r"[^\W_]+")
# The article, alone and behind a word for and, by, for or like.
_ARABIC_PREFIX = re.compile(r"^[\u0648\u0641\u0628\u0643]?\u0627\u0644(?=\w{3})")


def is_unread(model: "KnowledgeModel", text: str) -> bool:
    """Tell whether most letters of a text are none that the model of the index can read, or
    whether there is no model.
    """
    if model.store.lacks_vectors:
        return True
    settings = model.settings
    if settings.generate_text_embeddings.model in settings.models:
        return False
    letters = len(_LETTER.findall(text))
    return 2 * len(_LATIN.findall(text)) < letters


def share_words(question: str, sentence: str) -> bool:
    """Tell whether a sentence holds a word of a question, with any ending, or enough of its
    pairs of characters where words are not parted by spaces.
    """
    pairs = _pairs(question)
    if pairs and len(pairs & _pairs(sentence)) >= LEAST_PAIRS * len(pairs):
        return True
    said = {_bare(word) for word in _WORD.findall(sentence.lower())}
    for word in content_words(_PAIRED.sub(" ", question)):
        bare = _bare(word)
        if len(bare) < LEAST_STEM:
            if len(bare) > 2 and bare in said:
                return True
        elif any(other.startswith(bare[: max(LEAST_STEM, len(bare) - 2)]) for other in said):
            return True
    return False


def _pairs(text: str) -> set[str]:
    runs = _PAIRED.findall(text)
    return {run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1))}


def _bare(word: str) -> str:
    return _ARABIC_PREFIX.sub("", word)
