"""The words of a question in sentences: in any form, or others that mean the same."""

import re
from collections.abc import Iterable, Mapping

from graphrag_index.text.normalize import stem_word
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD, content_words
from graphrag_query.retrieval.related_words import SYNONYMS, find_terms

_NUMBER = re.compile(r"(?<![\w.,])(?:\d+(?:[.,]\d+)+|\d)(?!\w|[.,]\d)")


class AskedWords:
    """The content words of a question, as stems; `beside_names` are those that are in no name.

    `places` maps the stems of all words of the question to their places in it.
    """

    def __init__(self, question: Question) -> None:
        self.stems = frozenset(question.content_words)
        words = WORD.findall(question.text.lower())
        self.places = {stem_word(word): place for place, word in enumerate(words)}
        names = (content_words(span.text) for span in question.mentions.spans)
        self.beside_names = self.stems.difference(*names)
        self._forms, self._code = question.stems_of_forms, question.language.code
        terms = {
            word: find_terms(word, self._code)
            for word in words
            if stem_word(word) in self.beside_names
        }
        self._terms: Mapping[str, frozenset[int]] = {w: t for w, t in terms.items() if t}

    def find(self, word: str) -> str:
        """Return the stem of the question's word that a word in lower case is a form of, or ""."""
        stem = stem_word(word)
        stem = self._forms.get(stem, stem)
        return stem if stem in self.stems else ""

    def find_synonyms(self, words: Iterable[str]) -> frozenset[str]:
        """Return the stems of the question's words that have a synonym among some words."""
        found = (find_terms(word, self._code, SYNONYMS) for word in words)
        said = frozenset[int]().union(*found)
        return frozenset(
            stem_word(word) for word in self._terms if said & find_terms(word, self._code, SYNONYMS)
        )

    def find_related(self, words: Iterable[str]) -> frozenset[str]:
        """Return the stems of the question's words that some words in lower case mean as well."""
        if not self._terms:
            return frozenset()
        said = frozenset[int]().union(*(find_terms(word, self._code) for word in words))
        return frozenset(stem_word(word) for word, terms in self._terms.items() if terms & said)


def find_respelt_words(question: Question) -> dict[str, str]:
    """Map the stems of names in the documents to those of the question in another spelling."""
    fuzzy = [mention for mention in question.mentions.entities if mention.kind == "fuzzy"]
    titles = question.index.entities([mention.entity for mention in fuzzy])["title"]
    pairs = [
        (WORD.findall(title.lower()), mention.name.split())
        for title, mention in zip(titles, fuzzy, strict=True)
    ]
    return {
        stem_word(written): stem_word(asked)
        for title, name in pairs
        if len(title) == len(name)
        for written, asked in zip(title, name, strict=True)
        if written != asked
    }


def find_numbers(text: str) -> list[str]:
    """Return the numbers that are no words: single digits, and those with points, such as 2.0."""
    return list(dict.fromkeys(_NUMBER.findall(text)))
