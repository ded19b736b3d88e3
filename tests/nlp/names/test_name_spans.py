"""Candidate spans of several documents: their usage is found in parts."""

from graphrag_nlp.names.name_spans import NameCandidates
from graphrag_nlp.names.word_table import Vocabulary
from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.sentences import Sentence

TEXTS = [
    "They met in Halden and Tarvik. The Nimrod was there.",
    "Yesterday Verdi, a composer, sang in Kiel.",
    "Weir nodded. He said Ellen Marrow left l'Institut in Java and Bali.",
]


def add_documents(candidates: NameCandidates) -> NameCandidates:
    """Add the texts as documents of one sentence."""
    language = language_of("en")
    vocabulary = Vocabulary(language)
    for number, text in enumerate(TEXTS):
        sentences = [Sentence(0, len(text), prose=True)]
        words = vocabulary.read_words(text)
        candidates.add_document(number, text, words, sentences, language, 0)
    return candidates


def test_usage_is_the_same_in_parts_as_at_once() -> None:
    at_once = add_documents(NameCandidates())
    at_once.add_usage()
    in_parts = add_documents(NameCandidates(max_pending_characters=80))
    in_parts.add_usage()
    assert len(at_once.flags) == len(at_once.start) > 0
    assert {key: column.tolist() for key, column in in_parts.get_columns().items()} == {
        key: column.tolist() for key, column in at_once.get_columns().items()
    }


def test_words_of_documents_are_released_once_many_characters_wait() -> None:
    candidates = add_documents(NameCandidates(max_pending_characters=80))
    n_spans = sum(document < 2 for document in candidates.document)
    assert len(candidates.flags) == len(candidates.cue) == n_spans > 0
