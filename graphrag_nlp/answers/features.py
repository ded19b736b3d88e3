"""Features of statements that may answer a question, from the words of both.

A word of the question counts by its rarity among all statements. Sets of words are rows of bits,
one column for each word of the question, so that shares of all statements are one product.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from graphrag_nlp.answers.kinds import (
    TYPES_OF_KIND,
    AnswerSpan,
    WantedAnswer,
    find_answer_spans,
    find_capitalized_names,
    find_wanted_answer,
)
from graphrag_nlp.answers.statements import (
    WORD,
    Passage,
    Statement,
    find_statements,
    find_stems,
    split_joined_words,
)
from graphrag_nlp.text.languages import Language, language_of
from graphrag_nlp.text.normalize import stem_word

Bits = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

# Number of statements before a statement whose words count as its context.
N_CONTEXT = 2
# Number of characters around a part of the wanted kind in which words of the question are near.
NEAR_CHARS = 60
# Factor of the weight of a word that says of which kind the answer is, such as "city".
CATEGORY_FACTOR = 0.3
# Maximum number of statements whose features are computed, those with most words of the question,
# and number of the best whose names may be the titles of other documents.
MAX_STATEMENTS = 60
MAX_LEADING = 16
# Weight of the rank of a passage in this choice: 1 for the best, 4/5 for the second, then 4/6.
RANK_WEIGHT = 0.3
# Minimum number of characters of a word that may be a part of a German compound.
MIN_COMPOUND_CHARS = 6
FEATURES = (
    # Share of the question's words beside names, weighted by rarity, in the statement, and further
    # ones in the title of its document.
    "words",
    "title_words",
    # Further words, also of names, in what the layout adds, in the statements before, and elsewhere
    # in the passage.
    "layout",
    "context",
    "passage_words",
    # 1 if a question asks who said something and does not name the speaker, -1 if it names them.
    "is_asked_speaker",
    # Words of the question in a question that the statement may reply to.
    "reply",
    # Further words in a statement that names the document of this one, so that both answer: times
    # the share that the best statement lacks, or that the naming one has and the name is whole.
    "bridge",
    "bridge_to_title",
    # The scores of the passage, as shares of the best.
    "passage_score",
    "passage_link",
    # Whether the statement is the first of its passage.
    "is_first",
    # How well a name, or a value or reason, fits the wanted kind, and the share of the question's
    # words near it.
    "name_fit",
    "value_fit",
    "near_words",
    # Cosine similarity to the question.
    "similarity",
)
COLUMN = {name: i for i, name in enumerate(FEATURES)}


@dataclass(frozen=True)
class Asked:
    """A question: `words` are the stems of its content words, `names` the names in it.

    `types` maps names of entities in lower case to their types. `translations` maps stems of the
    question to patterns of words in passages of other languages.
    """

    text: str
    language: Language
    words: tuple[str, ...]
    names: tuple[str, ...] = ()
    vector: "npt.NDArray[np.float32] | None" = None
    types: Mapping[str, str] = field(default_factory=dict)
    translations: "Mapping[str, re.Pattern[str]]" = field(default_factory=dict)

    @property
    def is_name_alone(self) -> bool:
        """Whether the question has no other content words than a name: "Who was Tom Crean?"."""
        return bool(self.names) and self.name_stems.issuperset(self.words)

    @cached_property
    def wanted(self) -> WantedAnswer:
        """The kind of answer that the question wants: that of a name alone wants no other name."""
        if self.is_name_alone:
            return WantedAnswer()
        return find_wanted_answer(self.text, self.language)

    @cached_property
    def low_words(self) -> frozenset[str]:
        """All words of the question in lower case."""
        return frozenset(WORD.findall(self.text.lower()))

    @cached_property
    def name_stems(self) -> frozenset[str]:
        """The stems of the content words in names."""
        return frozenset[str]().union(*map(find_stems, self.names)) & frozenset(self.words)


class Candidates:
    """The statements of passages that may answer a question, and their features.

    `rows` are the numbers of the statements with most words, and `values` has a row of features
    for each of them. `coverage` is the share of the question's words in each statement.
    """

    def __init__(self, asked: Asked, passages: Sequence[Passage]) -> None:
        self.asked = asked
        self.statements: list[Statement] = []
        self.passages: list[Passage] = []
        seen = set()
        for passage in passages:
            for statement in find_statements(passage.text, passage.before):
                # Text units may overlap, and documents may be copies.
                key = (passage.title, passage.place(statement), statement.text)
                if key not in seen:
                    seen.add(key)
                    if passage.dated:
                        stems = statement.label_stems | passage.dated
                        statement = replace(statement, label_stems=stems)
                    self.statements.append(statement)
                    self.passages.append(passage)
        self._compute_words()
        self.rows = self._choose_rows()
        self.spans: list[list[AnswerSpan]] = []
        self.values = self._compute() if len(self.rows) else np.zeros((0, len(FEATURES)))

    @cached_property
    def writes_names_apart(self) -> bool:
        """Whether the question writes a speaker's name in two words, Li Hua, and the text LiHua."""
        labels = {statement.label for statement in self.statements}
        apart = {split_joined_words(label) for label in labels} - labels
        return any(name in self.asked.text for name in apart)

    def _find_bits(self, stems: frozenset[str]) -> list[bool]:
        return [word in stems for word in self.asked.words]

    def _compute_words(self) -> None:
        asked, n = self.asked, len(self.statements)
        titles = {p.title: self._find_bits(find_stems(p.title)) for p in self.passages}
        shape = (n, len(asked.words))
        self.own = np.array([self._find_bits(s.stems) for s in self.statements], bool).reshape(
            shape
        )
        self._add_other_forms()
        layouts = [self._find_bits(s.label_stems) for s in self.statements]
        self.layout = np.array(layouts, bool).reshape(shape)
        self.title = np.array([titles[p.title] for p in self.passages], bool).reshape(shape)
        self.said = self.own | self.layout
        # Words beside names tell the most of an answer. Where there are none, names are the words.
        names = frozenset[str]() if asked.is_name_alone else asked.name_stems
        self.is_name = np.array(self._find_bits(names), bool)
        self.rarity = np.log(1 + n / (1 + self.said.sum(axis=0)))
        self.coverage = self.share(self.said)
        is_category = np.array(self._find_bits(asked.wanted.nouns), bool)
        if asked.wanted.kind != "number":
            self.rarity[is_category] *= CATEGORY_FACTOR

    def share(self, held: Bits) -> Floats:
        """Return the share of the question's words, weighted by rarity, in each row of bits."""
        found: Floats = held @ self.rarity / (self.rarity.sum() or 1.0)
        return found

    def _add_other_forms(self) -> None:
        """Add words in other languages, and German words that are parts of compounds."""
        asked = self.asked
        if asked.language.capitalizes_nouns:
            for column, word in enumerate(asked.words):
                if len(word) >= MIN_COMPOUND_CHARS:
                    held = [any(word in s for s in st.stems) for st in self.statements]
                    self.own[:, column] |= held
        foreign = [i for i, passage in enumerate(self.passages) if passage.language]
        for column, word in enumerate(asked.words):
            pattern = asked.translations.get(word)
            for i in foreign:
                if pattern and pattern.search(self.statements[i].text.lower()):
                    self.own[i, column] = True

    def _choose_rows(self) -> npt.NDArray[np.int64]:
        """Choose the statements with most words, also in the context and in the title."""
        n = len(self.statements)
        numbers = np.array([p.number for p in self.passages], np.int64)
        context, replied = np.zeros_like(self.own), np.zeros_like(self.own)
        for back in range(1, N_CONTEXT + 1):
            is_same = numbers[back:] == numbers[:-back]
            context[back:] |= self.own[:-back] & is_same[:, np.newaxis]
        asks = np.array(["?" in s.text for s in self.statements], bool)
        is_reply = asks[:-1] & (numbers[1:] == numbers[:-1])
        replied[1:] = self.own[:-1] & is_reply[:, np.newaxis]
        self.known = self.said | self.title
        self._context, self._replied = context & ~self.known, replied & ~self.said
        order = {number: i for i, number in enumerate(dict.fromkeys(numbers.tolist()))}
        ranks = np.array([4 / (4 + order[number]) for number in numbers.tolist()])
        self._is_first = np.append(True, numbers[1:] != numbers[:-1]) if n else np.zeros(0)
        rough = self.share(self.known | self._context) + RANK_WEIGHT * ranks
        return np.sort(np.argsort(-rough, kind="stable")[:MAX_STATEMENTS])

    def _compute(self) -> Floats:
        asked, rows, names = self.asked, self.rows, self.is_name
        statements = [self.statements[i] for i in rows]
        passages = [self.passages[i] for i in rows]
        values = np.zeros((len(rows), len(FEATURES)))

        def fill(name: str, column: Any) -> None:
            values[:, COLUMN[name]] = column

        own, said = self.own[rows], self.said[rows]
        in_title = self.title[rows] & ~said
        fill("words", self.share(own & ~names))
        fill("title_words", self.share(in_title & ~names))
        fill("layout", self.share(said & ~own))
        fill("context", self.share(self._context[rows]))
        fill("reply", self.share(self._replied[rows]))
        if asked.wanted.is_subject:
            is_named = (self.layout[rows] & names).any(axis=1)
            fill(
                "is_asked_speaker",
                [
                    0 if not s.is_turn else -1 if named else 1
                    for s, named in zip(statements, is_named, strict=True)
                ],
            )
        held = {p.number: np.zeros(len(asked.words), bool) for p in passages}
        for i, passage in enumerate(self.passages):
            if passage.number in held:
                held[passage.number] |= self.known[i]
        around = np.array([held[p.number] for p in passages])
        fill("passage_words", self.share(around & ~self.known[rows]))
        bridges = self._find_bridges()
        fill("bridge", bridges[0])
        fill("bridge_to_title", bridges[1])
        best = max((p.score for p in self.passages), default=1.0) or 1.0
        fill("passage_score", [p.score / best for p in passages])
        fill("passage_link", [p.link / best for p in passages])
        fill("is_first", self._is_first[rows])
        fit, near = self._rate_spans(statements, passages)
        fill("name_fit" if asked.wanted.kind in TYPES_OF_KIND else "value_fit", fit)
        fill("near_words", near)
        return values

    def _rate_spans(
        self, statements: Sequence[Statement], passages: Sequence[Passage]
    ) -> tuple[list[float], list[float]]:
        """Return the best fit of a span in each statement, and the share of words near it."""
        asked, fits, nears = self.asked, [], list[float]()
        columns = {word: column for column, word in enumerate(asked.words)}
        for statement, passage in zip(statements, passages, strict=True):
            language = language_of(passage.language) if passage.language else asked.language
            text = statement.text
            spans = find_answer_spans(text, asked.low_words, asked.wanted, language, asked.types)
            self.spans.append(spans)
            fits.append(max((span.fit for span in spans), default=0.0))
            near = 0.0
            if spans and not statement.stems.isdisjoint(columns):
                words = [(w.start(), w.end(), stem_word(w[0].lower())) for w in WORD.finditer(text)]
                places = [(start, end, stem) for start, end, stem in words if stem in columns]
                for first, last, fit in spans:
                    first, last = first - NEAR_CHARS, last + NEAR_CHARS
                    inside = {stem for start, end, stem in places if first <= start and end <= last}
                    weight = sum(self.rarity[columns[stem]] for stem in inside)
                    near = max(near, fit * float(weight))
            nears.append(near / (float(self.rarity.sum()) or 1.0))
        return fits, nears

    def _find_bridges(self) -> tuple[Floats, Floats]:
        """Return the further words in statements that name the document of each one.

        "The director of the film is Ann Bell" leads to the document "Ann Bell". The name must not
        be in the question, and the two documents must differ. See `bridge` of `FEATURES`.
        """
        rows, stop = self.rows, self.asked.language.function_words
        known = self.known[rows]
        base = self.share(known)
        lacking = 1 - base.max()
        gains, whole = np.zeros(len(rows)), np.zeros(len(rows))
        titles: dict[frozenset[str], list[int]] = {}
        for j, i in enumerate(rows):
            words = frozenset(WORD.findall(self.passages[i].title.lower())) - stop
            titles.setdefault(words, []).append(j)
        for j in np.argsort(-base, kind="stable")[:MAX_LEADING].tolist():
            leading, passage = self.statements[rows[j]], self.passages[rows[j]]
            if leading.is_turn:
                continue
            for start, end in find_capitalized_names(leading.text, self.asked.language):
                name = frozenset(WORD.findall(leading.text[start:end].lower())) - stop
                if not name or name & self.asked.low_words:
                    continue
                for words, places in titles.items():
                    if not (words and (name <= words or words <= name)):
                        continue
                    there = [k for k in places if self.passages[rows[k]] is not passage]
                    gain = self.share(known[there] | known[j]) - base[there]
                    gains[there] = np.maximum(gains[there], lacking * gain)
                    match = len(name & words) / len(name | words)
                    whole[there] = np.maximum(whole[there], match * base[j] * gain)
        return gains, whole
