"""The words of a question in sentences: in any form, or others that mean the same."""

import re
from collections.abc import Iterable, Mapping

from graphrag_index.text.normalize import stem_word
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    STEMS_ABOUT_CORPUS,
    WORD,
    content_words,
    split_joined_words,
)
from graphrag_query.retrieval.related_words import SYNONYMS, find_terms

# A word of a question for a measure, which no answer needs: "how far", "wie hoch".
_MEASURE = re.compile(r"\b(?:how|wie)\s+(?!old\b|alt\b)(\w+)", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.,])(?:\d+(?:[.,]\d+)+|\d)(?!\w|[.,]\d)")
# Options, names with inner capitals, and parts of at least two characters, joined by points or
# underscores: --dry-run, ignoreInitial, ThreadPoolExecutor, max_retries, process.exit. Two parts
# with capitals may be the name of a person: WolfgangSchulz.
_NAME_OF_CODE = re.compile(
    r"(?<![\w-])--?[A-Za-z](?:[\w-]*\w)?"
    r"|(?<!\w)[^\W\d_][^\W_]+(?:(?:_+|\.|::)[^\W_]{2,})+"
    r"|\b[a-z]+[A-Z][^\W_]*"
    r"|\b(?:[A-Z]+[a-z][a-z0-9]*){3,}\b"
)


class AskedWords:
    """The content words of a question, as stems; `beside_names` are those that are in no name.

    `places` maps the stems of all words of the question to their places in it. `n_relations` is how
    much the question says of its names: "Who is the mayor of Altdorf?" has one relation, and "When
    was the mayor of Altdorf born?" two.
    """

    def __init__(self, question: Question) -> None:
        self.stems = frozenset(question.content_words)
        words = WORD.findall(question.text.lower())
        self._exact = find_exact_words(question.text)
        self.places = {stem_word(word): place for place, word in enumerate(words)}
        names = (content_words(span.text) for span in question.mentions.spans)
        self.beside_names = self.stems.difference(*names)
        self.n_relations = len(self.beside_names) + max(0, len(question.mentions.spans) - 1)
        self._forms, self._code = question.stems_of_forms, question.language.code
        terms = {
            word: find_terms(word, self._code)
            for word in words
            if stem_word(word) in self.beside_names
        }
        self._terms: Mapping[str, frozenset[int]] = {w: t for w, t in terms.items() if t}

    def split(self, text: str) -> list[str]:
        """Split a text into words in lower case; exact words follow if the question has some."""
        words = WORD.findall(text.lower())
        return [*words, *find_exact_words(text)] if self._exact else words

    def choose(self, content_words: Iterable[str], texts: Iterable[str]) -> list[str]:
        """Return the stems to look for: content words, and what matches as a whole only.

        If a text has a name of code, the words of the name are left out, else the name.
        """
        names = {name: words for name, words in self._exact.items() if words}
        said = {word for text in texts for word in self.split(text)} if names else set()
        parts = frozenset[str]().union(*(names[name] for name in names.keys() & said))
        exact = (name for name, words in self._exact.items() if name in said or not words)
        return [*(word for word in content_words if word not in parts), *map(stem_word, exact)]

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

    def find_said(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the stems of the question's words that texts say, or that they mean as well."""
        words = set(WORD.findall(split_joined_words(" ".join(texts)).lower()))
        found = frozenset(map(self.find, words))
        return found | self.find_related(words) | self.find_synonyms(words)


def find_words_beside_names(question: Question, asked: AskedWords) -> frozenset[str]:
    """Return the stems of the content words that an answer says, without those of names."""
    beside = asked.beside_names
    if question.language.capitalizes_nouns:
        # Nouns are written like names: leave out those that are names of entities.
        names = (content_words(m.name) for m in question.mentions.likeliest_mentions)
        beside = asked.stems.difference(*names)
    measures = {stem_word(word) for word in _MEASURE.findall(question.text.lower())}
    return frozenset(beside - STEMS_ABOUT_CORPUS - measures)


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


def find_exact_words(text: str) -> dict[str, frozenset[str]]:
    """Map what matches as a whole only, in lower case, to the stems of its words.

    Numbers that are no words, such as 2.0, and names of code: a sentence about ignored files does
    not say `ignoreInitial`.
    """
    found = dict.fromkeys(_NUMBER.findall(text), frozenset[str]())
    for name in _NAME_OF_CODE.findall(text):
        words = WORD.findall(split_joined_words(name).lower())
        found[name.lower()] = frozenset(map(stem_word, words))
    return found
