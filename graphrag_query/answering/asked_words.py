"""The words of a question in sentences: in any form, or others that mean the same."""

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answering.direct_answer_words import find_particles, find_verb_stems
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    STEMS_ABOUT_CORPUS,
    WORD,
    content_words,
    is_adjective_of,
    split_joined_words,
)
from graphrag_query.retrieval.related_words import SYNONYMS, find_terms

# Minimum number of characters of a verb without its ending, to find it in other forms.
MIN_INFLECTED_STEM = 5
# Minimum number of characters of a part of a German compound.
MIN_COMPOUND_CHARS = 6
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
        self._text_words = words
        self._exact = find_exact_words(question.text)
        self._joined = _find_joined_words(question.text)
        self.places = {stem_word(word): place for place, word in enumerate(words)}
        names = (content_words(span.text) for span in question.mentions.spans)
        self.beside_names = self.stems.difference(*names)
        # A reason seldom says "cause".
        causes = question.wanted.categories if question.wanted.kind == "reason" else ()
        self.causes = self.beside_names.intersection(causes)
        n_names = len(question.mentions.spans)
        self.n_relations = len(self.beside_names - self.causes) + max(0, n_names - 1)
        self._forms, self._code = question.stems_of_forms, question.language.code
        terms = {
            word: find_terms(word, self._code)
            for word in words
            if stem_word(word) in self.beside_names
        }
        self._terms: Mapping[str, frozenset[int]] = {w: t for w, t in terms.items() if t}
        self._verbs = self._find_verbs(words)
        self._nouns = {
            word: stem_word(word)
            for word in words
            if question.language.capitalizes_nouns
            and len(word) >= MIN_COMPOUND_CHARS
            and stem_word(word) in self.stems
        }
        self._inflected: dict[str, str] = {}
        self.verb_initials = {form[0] for forms in self._verbs.values() for form in forms}
        if self._verbs and self._code == "de":
            self.verb_initials.add("g")  # of participles: "gesagt"

    def split(self, text: str) -> list[str]:
        """Split a text into words in lower case; exact words follow if the question has some.

        So do the parts of names that the question writes in one word: AppArmor, GitHub.
        """
        words = WORD.findall(text.lower())
        if self._joined:
            words += [part for word in set(words) for part in self._joined.get(word, ())]
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
        return stem if stem in self.stems else self.find_inflected(word)

    def find_inflected(self, word: str) -> str:
        """Return the stem of the question's verb that a word is another regular form of, or "".

        English forms have the same stem anyway. Nouns of German verbs count: "Anordnung" for "Wer
        ordnet das an?".
        """
        if word[0] not in self.verb_initials or len(word) < MIN_INFLECTED_STEM:
            return ""
        if word not in self._inflected:
            stems = find_verb_stems(word.removesuffix("en").removesuffix("ung"), self._code)
            stems |= find_verb_stems(word, self._code)
            found = (stem for stem, own in self._verbs.items() if own & stems)
            self._inflected[word] = next(found, "")
        return self._inflected[word]

    def _find_verbs(self, words: Sequence[str]) -> dict[str, frozenset[str]]:
        """Map the stems of the words beside the names to their possible stems as verbs.

        A particle at the end of a German question belongs to its verb: "Wer ordnet das an?".
        """
        particles = find_particles(self._code)
        particle = words[-1] if words and words[-1] in particles else ""
        verbs = {}
        for word in words:
            stem = stem_word(word)
            if stem not in self.beside_names:
                continue
            forms = find_verb_stems(word, self._code)
            if particle:
                forms |= {f"{particle}{link}{form}" for form in forms for link in ("", "ge", "zu")}
            verbs[stem] = frozenset(form for form in forms if len(form) >= MIN_INFLECTED_STEM)
        return {stem: forms for stem, forms in verbs.items() if forms}

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

    def map_related(self, words: Iterable[str], stems: Container[str]) -> dict[str, list[str]]:
        """Map words in lower case to some stems of the question's words that mean the same."""
        terms = {w: find_terms(w, self._code) for w in self._text_words}
        asked = {s: t for w, t in terms.items() if t and (s := stem_word(w)) in stems}
        if not asked:
            return {}
        wanted = frozenset[int]().union(*asked.values())
        found = {word: find_terms(word, self._code) & wanted for word in words}
        return {
            word: [stem for stem, own in asked.items() if own & numbers]
            for word, numbers in found.items()
            if numbers
        }

    def find_said(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the stems of the question's words that texts say, or that they mean as well."""
        text = " ".join(texts)
        words = {*self.split(text), *WORD.findall(split_joined_words(text).lower())}
        found = frozenset(map(self.find, words)) | self._find_compounds(words)
        return found | self.find_related(words) | self.find_synonyms(words)

    def _find_compounds(self, words: Iterable[str]) -> frozenset[str]:
        """Return the stems of the question's nouns that are parts of German compounds."""
        if not self._nouns:
            return frozenset()
        long = [word for word in words if len(word) >= MIN_COMPOUND_CHARS]
        return frozenset(
            stem for noun, stem in self._nouns.items() if any(is_part(noun, word) for word in long)
        )


def _find_joined_words(text: str) -> dict[str, list[str]]:
    """Map words with inner capitals, in lower case, to their parts: "app" and "armor"."""
    parts = {word: WORD.findall(split_joined_words(word).lower()) for word in WORD.findall(text)}
    return {word.lower(): found for word, found in parts.items() if len(found) > 1}


def is_part(noun: str, word: str) -> bool:
    """Return whether a German noun is a part of a compound, or a compound that ends with a noun.

    "Grabung" is a part of "Grabungsleiterin", and "Hundesteuer" is a "Steuer".
    """
    return noun in word or noun.endswith(word)


def find_words_beside_names(question: Question, asked: AskedWords) -> frozenset[str]:
    """Return the stems of the content words that an answer says, without those of names."""
    beside = asked.beside_names
    if question.language.capitalizes_nouns:
        # Nouns are written like names: leave out those that are names of entities.
        names = (content_words(m.name) for m in question.mentions.likeliest_mentions)
        beside = asked.stems.difference(*names)
    measures = {stem_word(word) for word in _MEASURE.findall(question.text.lower())}
    return frozenset(beside - STEMS_ABOUT_CORPUS - measures - asked.causes)


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


def find_adjectives(question: Question, words: Iterable[str]) -> dict[str, str]:
    """Map the stems of adjectives of places to the names in an English question.

    "Syrian" says the name "Syria".
    """
    if question.language.code != "en":
        return {}
    names = {word for span in question.mentions.spans for word in span.words}
    return {
        stem_word(word): stem_word(name)
        for word in words
        for name in names
        if is_adjective_of(word, name)
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
