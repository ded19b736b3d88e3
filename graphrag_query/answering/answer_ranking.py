"""Order the sentences of text units by how likely they answer a question."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from typing import TYPE_CHECKING

import numpy as np

from graphrag_index.text.normalize import stem_word
from graphrag_query.answering.answer_spans import find_new_spans
from graphrag_query.answering.extractive import Candidate, RankedSentence, word_weight
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

if TYPE_CHECKING:
    import numpy.typing as npt

    Features = npt.NDArray[np.float64]

# Maximum number of sentences that are searched for parts of the wanted kind, and maximum number of
# sentences whose vectors are compared with the question. The best by cheaper features are taken,
# and some with the most words of the question.
MAX_SEARCHED_SENTENCES = 60
MAX_EMBEDDED_SENTENCES = 18
MAX_BY_WORDS = 8
# Number of sentences before a sentence whose words count as its context.
N_CONTEXT_SENTENCES = 2
# Number of characters around a part of the wanted kind in which words of the question are near.
NEAR_CHARS = 60
# Maximum number of words at the start of a definition, with the verb: "Kate Cox is".
MAX_WORDS_BEFORE_COPULA = 8
# Minimum number of words of a sentence that says something.
MIN_WORDS = 5
# Weights of the features, in the order in which they are computed. Fitted to three sets of
# questions by logistic regression over the sentences that were read for a question.
WEIGHTS: Mapping[str, float] = {
    # Cosine similarity to the question.
    "similarity": 1.4,
    # Share of the question's words, weighted by rarity, in the sentence; further words in what the
    # layout adds (speaker, time, row, column); further words in the sentences before and the title.
    "coverage": 1.9,
    "layout": 0.5,
    "context": 0.3,
    # 1 for the best text unit, 4/5 for the second, 4/6 for the third, and so on.
    "text_unit_rank": 3.2,
    # How well a name, or a number, date or reason, fits the wanted kind.
    "name_fit": 2.5,
    "value_fit": 1.9,
    # Share of the question's words near such a part.
    "near_words": 1.1,
    # Whether the sentence has a noun that the question asks for, such as "chairs".
    "noun": 1.5,
    # Whether the sentence says who or what the thing is that the question asks about.
    "definition": 1.5,
    # Whether the question names the speaker, or whether it does not and asks who said something.
    "speaker": 1.5,
    # Words of the question in the sentence before, if that is a question.
    "reply": 0.5,
    # Logarithm of the number of words; whether the sentence has too few words to say anything.
    "length": 0.4,
    "is_short": -0.5,
    # A question rarely answers one.
    "is_question": -0.7,
}


def rank_answers(
    question: Question, candidates: Sequence[Candidate], types: Mapping[str, str]
) -> list[RankedSentence]:
    """Order sentences by how likely they answer a question, the likeliest first.

    The sentences of the best text unit come first, and those of a text unit in their order.
    `types` maps names of entities in lower case to their types. The scores of two sentences
    differ by the logarithm of how much likelier one of them answers than the other.
    """
    candidates = _without_copies(candidates)
    if not candidates:
        return []
    words = _QuestionWords(question, candidates)
    features = words.cheap_features()
    weights = np.array(list(WEIGHTS.values()))
    order = np.argsort(-(features @ weights), kind="stable")[:MAX_SEARCHED_SENTENCES]
    for i in order:
        words.add_span_features(features[i], int(i), types)
    order = order[np.argsort(-(features[order] @ weights), kind="stable")][:MAX_EMBEDDED_SENTENCES]
    # The sentences with most words of the question tell whether there is any evidence.
    most_words = np.argsort(-features[:, 1:3].sum(axis=1), kind="stable")[:MAX_BY_WORDS]
    order = np.array(list(dict.fromkeys([*order, *most_words])))
    vectors = question.index.embedder.embed([candidates[i].text_to_embed for i in order])
    similarities = vectors @ question.vector
    features[order, 0] = similarities
    ranked = [
        RankedSentence(
            candidates[i],
            float(features[i] @ weights),
            float(similarity),
            float(features[i, 1] + features[i, 2]),
            vector,
        )
        for i, similarity, vector in zip(order, similarities, vectors, strict=True)
    ]
    return sorted(ranked, key=lambda r: (-r.score, r.candidate.text_unit, r.candidate.start_char))


def _without_copies(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Keep the first of equal sentences at one place: text units may overlap."""
    by_place: dict[tuple[str, int], Candidate] = {}
    for candidate in candidates:
        by_place.setdefault((candidate.text, candidate.start_char), candidate)
    return list(by_place.values())


class _QuestionWords:
    """The words of a question in its candidates."""

    def __init__(self, question: Question, candidates: Sequence[Candidate]) -> None:
        self.question, self.candidates = question, candidates
        self.words = question.content_words
        self._initials = {word[0] for word in (*self.words, *question.wanted.nouns)}
        self._stems_of_layout: dict[str, set[str]] = {}
        self.stems = [self._find_stems(c.text) for c in candidates]
        holding = Counter(word for found in self.stems for word in found)
        self.rarity = {word: word_weight(holding[word], len(candidates)) for word in self.words}
        self.total = sum(self.rarity.values()) or 1.0

    def _find_stems(self, text: str) -> set[str]:
        # A word and its stem have the same first letter.
        initials = self._initials
        return {stem_word(word) for word in WORD.findall(text.lower()) if word[0] in initials}

    def _layout_stems(self, text: str) -> set[str]:
        if text not in self._stems_of_layout:
            self._stems_of_layout[text] = self._find_stems(text)
        return self._stems_of_layout[text]

    def _share(self, found: set[str]) -> float:
        """Return the share of the question's words, weighted by rarity, that are in a set."""
        if not found:
            return 0.0
        return sum(weight for word, weight in self.rarity.items() if word in found) / self.total

    def cheap_features(self) -> "Features":
        """Compute the features that need neither parts of the wanted kind nor vectors."""
        asked, nouns = set(self.words), set(self.question.wanted.nouns)
        wants_definition = self.question.wanted.kind == "definition"
        rank_of: dict[int, int] = {}
        rows = []
        for i, candidate in enumerate(self.candidates):
            unit, text = candidate.text_unit, candidate.text.rstrip()
            own = self.stems[i]
            layout = self._layout_stems(candidate.about)
            before = [
                j
                for j in range(max(0, i - N_CONTEXT_SENTENCES), i)
                if self.candidates[j].text_unit == unit
            ]
            context = set[str]().union(*(self.stems[j] for j in before))
            coverage, with_layout = self._share(own), self._share(own | layout)
            replies = bool(before) and "?" in self.candidates[before[-1]].text[-3:]
            n_words = text.count(" ") + 1
            row = {
                "coverage": coverage,
                "layout": with_layout - coverage,
                "context": self._share(own | layout | context) - with_layout,
                "text_unit_rank": 4 / (4 + rank_of.setdefault(unit, len(rank_of))),
                "noun": bool(nouns & (own | layout)),
                "definition": wants_definition and self._defines(text),
                "speaker": bool(candidate.label)
                and bool(layout & asked) != self.question.wanted.is_subject,
                "reply": replies and self._share(self.stems[before[-1]]),
                "length": min(log(1 + n_words), 3.5),
                "is_short": n_words < MIN_WORDS,
                "is_question": text.endswith(("?", "？")),
            }
            rows.append([row.get(name, 0.0) for name in WEIGHTS])
        return np.array(rows, float)

    def _defines(self, text: str) -> bool:
        """Return whether a sentence begins with a name or term of the question and "is"."""
        language = self.question.language
        words = [word.lower() for word in WORD.findall(text)[:MAX_WORDS_BEFORE_COPULA]]
        copulas = [i for i, word in enumerate(words) if word in language.copulas]
        if not copulas:
            return False
        subject = [word for word in words[: copulas[0]] if word not in language.function_words]
        return bool(subject) and stem_word(subject[0]) in self.words

    def add_span_features(self, features: "Features", i: int, types: Mapping[str, str]) -> None:
        """Add how well the parts of a sentence fit the wanted kind to its features."""
        text, question = self.candidates[i].text, self.question
        spans = find_new_spans(text, question.text, question.wanted, question.language, types)
        if not spans:
            return
        fit = max(span.fit for span in spans)
        near = max(
            span.fit
            * self._share(
                self._find_stems(text[max(0, span.start - NEAR_CHARS) : span.end + NEAR_CHARS])
            )
            for span in spans
        )
        index = list(WEIGHTS)
        features[index.index("name_fit" if question.wanted.wants_name else "value_fit")] = fit
        features[index.index("near_words")] = near
