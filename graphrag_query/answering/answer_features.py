"""Features of sentences that may answer a question, from the words of both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from graphrag_nlp.text.languages import language_of
from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_query.answering.agents import find_agents, is_passive
from graphrag_query.answering.answer_spans import (
    FIT_OF_COUNT,
    AnswerSpan,
    find_enumerations,
    find_new_spans,
)
from graphrag_query.answering.asked_words import (
    MIN_COMPOUND_CHARS,
    AskedWords,
    find_adjectives,
    find_respelt_words,
    is_part,
)
from graphrag_query.answering.bridges import choose_leading_sentences, find_bridges
from graphrag_query.answering.definitions import rate_definition
from graphrag_query.answering.extractive import Candidate, is_question, word_weight
from graphrag_query.answering.gathered_lists import asks_for_several
from graphrag_query.answering.subjects import find_questions_before, find_subjects
from graphrag_query.question.answer_kind import WantedAnswer
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import content_words, split_joined_words
from graphrag_query.retrieval.foreign_text_units import foreign_languages, foreign_words

if TYPE_CHECKING:
    import numpy.typing as npt

    Features = npt.NDArray[np.float64]

# Number of sentences before a sentence whose words count as its context.
N_CONTEXT_SENTENCES = 2
# Number of characters around a part of the wanted kind in which words of the question are near.
NEAR_CHARS = 60
# Bonus of the fit of a number that counts the asked noun, in a sentence about the asked subject.
BONUS_OF_SUBJECT = 0.6
# Factor of the weight of a word that says of which kind the answer is, such as "city".
CATEGORY_FACTOR = 0.3
# Minimum share (0 to 1) of the question's words that a sentence in another language must say.
MIN_TRANSLATED_SHARE = 0.33
# Minimum number of words of a sentence that says something.
MIN_WORDS = 5
# Minimum share (0 to 1) of the question's words in a sentence whose enumeration may answer, as a
# multiple of those in the sentence with most of them.
MIN_SHARE_OF_ENUMERATION = 0.5
# The features in their order.
FEATURES = (
    # Share of the question's words, weighted by rarity, in the sentence or its subject: the
    # words of names, and the others; and those with a word of the same meaning.
    "names",
    "words",
    # Further words in what the layout adds (speaker, time, row, column), and in the sentences
    # before.
    "related",
    "layout",
    "context",
    # Further words in a sentence of another text unit, if the two share a name that the question
    # does not know: as subject of the sentence or in the title of its document; or anywhere, by the
    # rarity of the name and the share of the question's words in the other sentence.
    "bridge_to_subject",
    "bridge_to_name",
    # 1 for the best text unit, 4/5 for the second, 4/6 for the third, and so on.
    "text_unit_rank",
    # Whether the sentence is the first of its text unit.
    "is_first",
    # Whether the sentence has a noun that the question asks for, such as "chairs".
    "noun",
    # Whether the sentence says who or what the thing is that the question asks about.
    "definition",
    # 1 if the question names the speaker, or if it does not and asks who said something; -1 if it
    # names the speaker and asks who else.
    "speaker",
    # Words of the question in the question that the sentence may reply to.
    "reply",
    # Whether the sentence has too few words to say anything.
    "is_short",
    # A question rarely answers one.
    "is_question",
    # How well a name, or a number, date or reason, fits the wanted kind.
    "name_fit",
    "value_fit",
    # Share of the question's words near such a part.
    "near_words",
    # Cosine similarity to the question.
    "similarity",
)
COLUMN = {name: i for i, name in enumerate(FEATURES)}


class AnswerFeatures:
    """The features of the candidates of one question: `values` has one row per candidate.

    The last features take longer to compute: `add_spans` adds all but the similarity to the row of
    a candidate, and the similarity is left to the caller. `coverage` is the share of the question's
    words in each candidate and its layout.

    A set of words of the question is a number with a bit for each word.
    """

    def __init__(self, question: Question, candidates: Sequence[Candidate]) -> None:
        self.question, self.candidates = question, candidates
        self._asked_words = AskedWords(question)
        is_manner = question.wanted.kind == "manner"
        self._wants_agent = is_manner and is_passive(question.text, question.language)
        self._wants_several = asks_for_several(question)
        self._split = self._asked_words.split
        self._verb_initials = self._asked_words.verb_initials
        texts = (f"{c.about} {c.text}" for c in candidates)
        self._words = self._asked_words.choose(question.content_words, texts)
        self._respelt = dict(question.stems_of_forms)
        self._initials = {word[0] for word in (*self._words, *self._respelt)}
        spans = question.mentions.spans
        names = dict.fromkeys(word for span in spans for word in content_words(span.text))
        self._bits = {w: 1 << i for i, w in enumerate(dict.fromkeys([*self._words, *names]))}
        self._has_subject = bool(spans or question.mentions.likeliest_mentions)
        self._names, self._asked = self._join_bits(names), self._join_bits(self._words)
        self._shares: dict[int, float] = {}
        self._leading: dict[int, int] = {}
        self._tokens = [set(self._split(c.text)) for c in candidates]
        self._held = [self._find_words(tokens) for tokens in self._tokens]
        if self._names & ~reduce(or_, self._held, 0):
            self._respelt |= find_respelt_words(question)
            self._respelt |= find_adjectives(question, set().union(*self._tokens))
            self._initials.update(word[0] for word in self._respelt)
            self._held = [self._find_words(tokens) for tokens in self._tokens]
        if question.language.capitalizes_nouns:
            self._add_compounds()
        self.foreign = self._add_foreign_words()
        holding = {w: sum(bool(held & self._bits[w]) for held in self._held) for w in self._words}
        self._rarity = {word: word_weight(holding[word], len(candidates)) for word in self._words}
        self._total = sum(self._rarity.values()) or 1.0
        layouts = {about: self._find_in_text(about) for about in {c.about for c in candidates}}
        self._layouts = [layouts[c.about] for c in candidates]
        self.coverage = [
            self._share(own | layout) for own, layout in zip(self._held, self._layouts, strict=True)
        ]
        for word in self._words:
            if fold(word) in question.wanted.categories:
                self._rarity[word] *= CATEGORY_FACTOR
        self._shares.clear()
        self._total = sum(self._rarity.values()) or 1.0
        self.values = self._compute()

    def is_translated(self, i: int) -> bool:
        """Return whether a sentence in another language says enough words of the question.

        A name alone is not enough. German writes other nouns like names.
        """
        if self.candidates[i].text_unit not in self.foreign:
            return False
        said = self._held[i] & self._asked
        is_named_only = not said & ~self._names and not self.question.language.capitalizes_nouns
        return (
            self.coverage[i] >= MIN_TRANSLATED_SHARE and said.bit_count() > 1 and not is_named_only
        )

    def _add_compounds(self) -> None:
        """Add the words of the question that are parts of compounds, or end with a word."""
        asked = [word for word in self._words if len(word) >= MIN_COMPOUND_CHARS]
        for i, tokens in enumerate(self._tokens):
            long = [token for token in tokens if len(token) >= MIN_COMPOUND_CHARS]
            for word in asked:
                if any(is_part(word, token) for token in long):
                    self._held[i] |= self._bits[word]

    def _add_foreign_words(self) -> Mapping[int, str]:
        """Add the words of the question that sentences in other languages say in their words.

        If the question has names, the text unit must have a word of one. Returns the language of
        each such text unit.
        """
        patterns = self._foreign = foreign_words(self.question)
        if not patterns:
            return {}
        found = dict(foreign_languages(self.question, (c.text_unit for c in self.candidates)))
        if self._names:
            pairs = zip(self.candidates, self._held, strict=True)
            named = {c.text_unit for c, held in pairs if self._names & held}
            found = {unit: code for unit, code in found.items() if unit in named}
        for i, candidate in enumerate(self.candidates):
            if candidate.text_unit in found:
                text = candidate.text.lower()
                for word, said in patterns.items():
                    if said.search(text):
                        self._held[i] |= self._bits.get(word, 0)
        return found

    def _find_words(self, words: Iterable[str]) -> int:
        """Return the words of the question among some words in lower case, in any form."""
        found = 0
        for word in words:
            # A word and its stem have the same first letter.
            if word[0] in self._initials:
                stem = stem_word(word)
                found |= self._bits.get(self._respelt.get(stem, stem), 0)
            if word[0] in self._verb_initials:
                found |= self._bits.get(self._asked_words.find_inflected(word), 0)
        return found

    def _join_bits(self, words: Iterable[str]) -> int:
        return reduce(or_, (self._bits[word] for word in words), 0)

    def _find_in_text(self, text: str) -> int:
        return self._find_words(self._split(text))

    def _share(self, found: int) -> float:
        """Return the share of the question's words, weighted by rarity, that are in a set."""
        share = self._shares.get(found)
        if share is None:
            held = [weight for word, weight in self._rarity.items() if found & self._bits[word]]
            share = self._shares[found] = sum(held) / self._total
        return share

    def _compute(self) -> "Features":
        """Compute the features that need neither parts of the wanted kind nor vectors."""
        wanted, names, asked = self.question.wanted, self._names, self._asked
        sought = set(wanted.nouns).difference(wanted.categories)
        nouns = self._join_bits(word for word in self._words if fold(word) in sought)
        subjects = find_subjects(self.candidates, self.question.language)
        in_subject = {subject: self._find_words(subject) for subject in set(subjects)}
        in_title = {
            title: self._find_in_text(title) for title in {c.title for c in self.candidates}
        }
        known = [
            own | layout | in_subject[subject] | in_title[candidate.title]
            for own, layout, subject, candidate in zip(
                self._held, self._layouts, subjects, self.candidates, strict=True
            )
        ]
        said_words = set().union(*self._tokens)
        related_to = {
            word: self._join_bits(stems)
            for word, stems in self._asked_words.map_related(said_words, self._rarity).items()
        }
        questions = find_questions_before(self.candidates, in_turns=not wanted.is_subject)
        self._is_near_name: list[bool] = []
        rank_of: dict[int, int] = {}
        rows = []
        for i, candidate in enumerate(self.candidates):
            unit, text = candidate.text_unit, candidate.text.rstrip()
            own, layout, asked_at = self._held[i], self._layouts[i], questions[i]
            if (
                wanted.kind == "definition"
                and self._find_in_text(split_joined_words(candidate.label)) == asked
            ):
                # What a person says rarely says who the person is.
                layout = 0
            is_first = unit not in rank_of
            before = [
                j
                for j in range(max(0, i - N_CONTEXT_SENTENCES), i)
                if self.candidates[j].text_unit == unit
            ]
            context = reduce(or_, (self._held[j] for j in before), known[i])
            self._is_near_name.append(bool(context & names))
            said = related_to.keys() & self._tokens[i]
            related = reduce(or_, (related_to[word] for word in said), 0) & ~known[i]
            share, of_names = self._share(known[i]), self._share(known[i] & names)
            row = {
                "names": of_names,
                "words": share - of_names,
                "related": self._share(related),
                "layout": self._share(own | layout) - self._share(own) if layout else 0.0,
                "context": self._share(context) - share if before else 0.0,
                "text_unit_rank": 4 / (4 + rank_of.setdefault(unit, len(rank_of))),
                "is_first": is_first,
                "noun": bool(nouns & (own | layout)),
                "definition": wanted.kind == "definition"
                and rate_definition(candidate, self._words, self.question.language),
                "speaker": self._fits_speaker(candidate, bool(layout & asked)),
                "reply": asked_at is not None and self._share(self._held[asked_at]),
                "is_short": text.count(" ") + 1 < MIN_WORDS,
                "is_question": is_question(text),
            }
            rows.append(row)
        values = np.zeros((len(rows), len(FEATURES)))
        for name in rows[0]:
            values[:, COLUMN[name]] = [row[name] for row in rows]
        self._add_bridges(values, known, subjects)
        # The words of the name that a pronoun stands for are near all parts of its sentence.
        self._meant = [in_subject[s] & ~own for s, own in zip(subjects, self._held, strict=True)]
        return values

    def _fits_speaker(self, candidate: Candidate, is_named: bool) -> int:
        if not candidate.label:
            return 0
        if self.question.wanted.is_subject:
            return -1 if is_named else 1
        return int(is_named)

    def _add_bridges(
        self, values: "Features", known: Sequence[int], subjects: Sequence[frozenset[str]]
    ) -> None:
        """Add how many words of the question a sentence and one that leads to it have together."""
        shares = values[:, COLUMN["names"]] + values[:, COLUMN["words"]]
        beside = self._asked & ~self._names
        says_relation = [
            bool(own & beside) or related > 0
            for own, related in zip(known, values[:, COLUMN["related"]], strict=True)
        ]
        if not self._has_subject:
            return
        leading = choose_leading_sentences(shares, self._asked_words.n_relations, says_relation)
        bridges = find_bridges(self.question, self.candidates, leading, self._tokens, subjects)
        # The less one sentence holds of the question, the likelier two are needed.
        need = 1 - shares.max()
        for bridge in bridges:
            i, other = bridge.target, bridge.leading
            gain = need * (self._share(known[i] | known[other]) - shares[i])
            column = "bridge_to_subject" if bridge.is_to_subject else "bridge_to_name"
            if not bridge.is_to_subject:
                gain *= bridge.rarity * shares[other]
            if gain > values[i, COLUMN[column]]:
                values[i, COLUMN[column]] = gain
                self._leading[i] = other

    def add_spans(self, i: int, types: Mapping[str, str]) -> None:
        """Add how well the parts of a sentence fit the wanted kind."""
        text, question = self.candidates[i].text, self.question
        code = self.foreign.get(self.candidates[i].text_unit)
        language = language_of(code) if code else question.language
        spans = find_new_spans(text, question.text, self._wanted_in(i), language, types)
        if self._wants_agent and not code:
            agents = find_agents(text, self._asked_words, language, only_passive=True)
            spans += [AnswerSpan(start, end, 1.0) for start, end in agents]
        if self._wants_several and not code and self._says_most_words(i):
            spans += find_enumerations(text, language)
        if not spans:
            return
        fit = max(span.fit for span in spans)
        near = max(
            span.fit
            * self._share(
                self._find_in_text(text[max(0, span.start - NEAR_CHARS) : span.end + NEAR_CHARS])
                | self._meant[i]
            )
            for span in spans
        )
        if fit >= FIT_OF_COUNT and self._is_about_names(i):
            fit += BONUS_OF_SUBJECT
        self.values[i, COLUMN["name_fit" if question.wanted.wants_name else "value_fit"]] = fit
        self.values[i, COLUMN["near_words"]] = near

    def _says_most_words(self, i: int) -> bool:
        """Return whether a sentence has many of the words beside the names, if it has some.

        Those of the sentence that has most of them decide.
        """
        words = self.values[:, COLUMN["words"]]
        return bool(0 < words[i] >= MIN_SHARE_OF_ENUMERATION * words.max())

    def is_about_name(self, i: int) -> bool:
        """Return whether a sentence is about a name of the question, if it has some.

        So is one that says another word of the question just behind a name of it: "They slept at
        Altdorf. The cook Jan Nowak baked bread."
        """
        if not self._names & self._asked or self.values[i, COLUMN["names"]] > 0:
            return True
        return self._is_near_name[i] and bool(self._held[i] & self._asked & ~self._names)

    def find_leading(self, i: int) -> Candidate | None:
        """Return the cell or field that leads from a name of the question to a sentence."""
        if self.is_about_name(i) or i not in self._leading:
            return None
        leading = self.candidates[self._leading[i]]
        return leading if leading.label else None

    def _is_about_names(self, i: int) -> bool:
        """Return whether a sentence is about all names of the question, if it has some."""
        names = self._share(self._names & self._asked)
        return 0 < names <= float(self.values[i, COLUMN["names"]])

    def _wanted_in(self, i: int) -> WantedAnswer:
        """Return what the question wants, with a sentence's other words for what it wants counted.

        "How many people live there?" - "1,200 inhabitants".
        """
        wanted = self.question.wanted
        if wanted.kind != "number" or not wanted.nouns:
            return wanted
        asked = [word for word in self._words if fold(word) in wanted.nouns]
        if self.candidates[i].text_unit in self.foreign:
            patterns = [said for word, said in self._foreign.items() if word in asked]
            others = [w for w in self._tokens[i] if any(said.search(w) for said in patterns)]
        else:
            related = self._asked_words.find_related
            others = [w for w in self._tokens[i] if not related([w]).isdisjoint(asked)]
        return replace(wanted, nouns=(*wanted.nouns, *(stem_word(fold(w)) for w in others)))
