"""Lists whose members stand in different sentences: "Which ships did she use?"."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from graphrag_nlp.text.languages import Language, language_of, read_lists
from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_nlp.text.phrases import compile_phrases, fold_question
from graphrag_nlp.text.sentences import split_sentences
from graphrag_query.answering.agents import is_passive
from graphrag_query.answering.answer_spans import TYPES_OF_KIND
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.direct_answer_words import denies, word_lists
from graphrag_query.answering.extractive import Candidate, is_question
from graphrag_query.answering.name_roles import has_name_apart
from graphrag_query.answering.names_of_class import (
    Name,
    find_names,
    find_names_of_class,
    follows_preposition,
    listed_words,
)
from graphrag_query.answering.subjects import find_subjects
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD, stop_words_of
from graphrag_query.retrieval.foreign_text_units import foreign_languages, foreign_words

# Maximum number of words between two words of the question in a sentence.
MAX_WORDS_BETWEEN = 6
# Maximum number of words from an asked verb to a subject behind it: "Independent since 1960, Chad".
MAX_WORDS_TO_VERB = 4
# Maximum number of members of a list.
MAX_MEMBERS = 12
# Maximum number of words before the noun of a question: "On which small ships".
MAX_PLACE_OF_NOUN = 3


class Member(NamedTuple):
    """A member of a list, and the sentence that says so."""

    name: str
    evidence: Candidate


def find_gathered_list(
    question: Question,
    candidates: Sequence[Candidate],
    types: Mapping[str, str],
    descriptions: Iterable[str] = (),
) -> list[Member]:
    """Gather the things that a question asks for from sentences about its subject; or nothing.

    `candidates` have the sentences of the best text unit first; `types` maps names of entities in
    lower case to their types, and `descriptions` has what else is known of them. A member is of
    the asked kind: its entity has the type, or the noun stands beside its name somewhere. A
    sentence has all other words of the question, except verbs such as "use". Members of one
    sentence alone are no list: the sentence says it itself.
    """
    noun = find_plural_noun(question)
    if not noun:
        return []
    asked = AskedWords(question)
    said = _Sentences(question, asked, noun, candidates, types, descriptions)
    members: dict[str, Member] = {}
    for candidate, subject in zip(candidates, said.subjects, strict=True):
        for name in said.find_members(candidate, subject):
            known = [other for other in members if _is_part(name, other) or _is_part(other, name)]
            if not known:
                members[name] = Member(name, candidate)
    found = list(members.values())[:MAX_MEMBERS]
    return found if len({member.evidence for member in found}) > 1 else []


# Words behind a verb, and not behind a plural noun: "What happens when the ice melts?".
_AFTER_VERB = frozenset(("a", "an", "the", "if", "when", "while", "after", "before"))


def find_plural_noun(question: Question) -> str:
    """Return the plural noun that a question asks for, in lower case; "" if it asks for one."""
    language = question.language
    beginning = _phrases("beginnings", language.code).match(fold_question(question.text))
    words = WORD.findall(question.text)
    if beginning:
        place = len(beginning[0].split())
    elif question.wanted.nouns and question.wanted.kind in ("other", "title", *TYPES_OF_KIND):
        stems = [stem_word(fold(word.lower())) for word in words]
        noun = question.wanted.nouns[0]
        place = stems.index(noun) if noun in stems else 0
        if place > MAX_PLACE_OF_NOUN:
            place = 0
    else:
        return ""
    word = words[place] if 0 < place < len(words) else ""
    if place == 1 and words[2:3] and words[2].lower() in _AFTER_VERB:
        return ""
    return word.lower() if _is_plural(word, language) else ""


def asks_for_several(question: Question) -> bool:
    """Return whether a question asks for things with a plural noun near its start.

    "Which of the founders lives?" and "Which founder offers help?" ask for one.
    """
    language, words = question.language, WORD.findall(question.text.lower())
    owners = word_lists()["owners"].get(language.code, "").split()
    if words[1:2] and words[1] in owners:
        return False
    if find_plural_noun(question):
        return True
    joints = (language.place_prepositions | language.other_prepositions).difference(owners)
    return question.wanted.kind in ("other", "title", *TYPES_OF_KIND) and any(
        stem_word(fold(word)) in question.wanted.nouns
        and _is_plural(word, language)
        and (after in owners or after in stop_words_of(language) - joints - _AFTER_VERB)
        for word, after in pairwise(words[: 2 + MAX_PLACE_OF_NOUN])
    )


class _Sentences:
    """The sentences that were read for one question, and the names in them."""

    def __init__(
        self,
        question: Question,
        asked: AskedWords,
        noun: str,
        candidates: Sequence[Candidate],
        types: Mapping[str, str],
        descriptions: Iterable[str],
    ) -> None:
        self.language, self.types, self._question = question.language, types, question
        self._asked, self._noun = asked, stem_word(noun)
        code = question.language.code
        kind = question.wanted.kind
        self._type = TYPES_OF_KIND.get(kind)
        self._is_generic = fold(noun) in map(fold, listed_words("generic", code))
        self._clauses = listed_words("clauses", code)
        if self.language.capitalizes_nouns:
            # Sentences have the accents that the names of mentions lack.
            written = {fold(word): word for word in WORD.findall(question.text.lower())}
            names = (mention.name.split() for mention in question.mentions.likeliest_mentions)
            self._names = [frozenset(written.get(word, word) for word in name) for name in names]
        else:
            self._names = [frozenset(s.words) for s in question.mentions.spans if s.words]
        in_names = {stem_word(word) for name in self._names for word in name}
        beside = asked.stems - in_names - {self._noun}
        words = WORD.findall(question.text)
        joints = self.language.place_prepositions | self.language.other_prepositions
        joints |= listed_words("agents", code)
        # "Did Ann use" has a subject of its own, "by Ann" and "in France" have not.
        self._has_subject = any(
            after[0].isupper() and any(after.lower() in name for name in self._names)
            for before, after in pairwise(words)
            if before.lower() not in joints | self.language.determiners and not before[0].isupper()
            # In English, an auxiliary stands before the subject: "did Ann use".
            if code != "en" or before.lower() in stop_words_of(self.language)
        )
        # "Which ships did Ann use?" needs no "use", but "Which ships were used?" does.
        empty = _phrases("light" if self._has_subject else "copulas", code)
        asked_words = {stem_word(word): word for word in WORD.findall(question.text.lower())}
        self._required = {
            stem for stem in beside if not empty.fullmatch(fold(asked_words.get(stem, stem)))
        }
        if not self._is_generic and self._type:
            self._required.add(self._noun)
        self._is_passive = is_passive(question.text, question.language)
        self._candidates = candidates
        self._foreign = foreign_words(question)
        if self._foreign:
            self._read_in_other_language(stem_word(noun))
        self.subjects = find_subjects(candidates, self.language)
        needs_class = not (self._type or self._is_generic)
        self._class = set[str]()
        if needs_class:
            sentences = (
                text[s.start : s.end] for text in descriptions for s in split_sentences(text)
            )
            texts = dict.fromkeys((*(c.text for c in candidates), *sentences))
            self._class = find_names_of_class(texts, self._noun, self.language, types)

    def _read_in_other_language(self, noun: str) -> None:
        """Use the language of the documents, if they have the noun in that language only."""
        words = Counter(w for c in self._candidates for w in WORD.findall(c.text.lower()))
        said = self._foreign.get(noun)
        meant = [word for word, _ in words.most_common() if said and said.fullmatch(word)]
        units = {c.text_unit for c in self._candidates}
        codes = Counter(foreign_languages(self._question, units).values())
        if meant and codes and noun not in map(stem_word, words):
            code = codes.most_common(1)[0][0]
            self.language, self._noun = language_of(code), stem_word(meant[0])
            self._clauses = listed_words("clauses", code)

    def find_members(self, candidate: Candidate, subject: frozenset[str]) -> Iterator[str]:
        """Yield the names in a sentence that answer the question."""
        text = candidate.text
        tokens = WORD.findall(text.lower())
        if candidate.label or not candidate.prose or is_question(text):
            return
        if not self._has_subject and not self._required:
            return
        known = set(tokens) | subject
        if not all(name <= known for name in self._names):
            return
        held = {self._asked.find(word) for word in tokens}
        held |= {word for word, said in self._foreign.items() if said.search(text.lower())}
        missing = self._required - held
        if missing and missing - self._asked.find_related(tokens):
            return
        if denies(text, self.language.code) or not self._is_told_together(tokens):
            return
        if has_name_apart(text, self._question):
            return
        names = self._find_names(text)
        others = [name for name in names if not self._is_asked(name.text)]
        if not self._has_subject:
            yield from self._keep_subjects(candidate, others, subject)
        else:
            others = self._keep_after_subject(text, names, subject)
            yield from (name.text for name in others if self._fits(name.text))

    def _is_told_together(self, words: Sequence[str]) -> bool:
        """Return whether the words of the question stand near each other in a sentence.

        With a subject of its own, a question has a name that may stand far from the others.
        """
        if self._has_subject:
            return True
        named = frozenset[str]().union(*self._names)
        places = [
            i
            for i, word in enumerate(words)
            if word in named or self._asked.find(word) in self._required
        ]
        gaps = (after - before for before, after in pairwise(places))
        return all(gap <= MAX_WORDS_BETWEEN + 1 for gap in gaps)

    def _find_names(self, text: str) -> list[Name]:
        """Find the names in a text, with the noun behind them: "the Discovery expedition"."""
        names = find_names(text, self._noun, self.language, self.types)
        return [self._add_noun(text, name) for name in names]

    def _add_noun(self, text: str, name: Name) -> Name:
        after = _NEXT_WORD.match(text, name.end)
        if not after or self.types.get(name.text.lower()) == "person":
            return name
        noun = after[1]
        if stem_word(noun.lower()) != self._noun or _is_plural(noun, self.language):
            return name
        return Name(name.start, after.end(), f"{name.text} {noun}")

    def _is_asked(self, name: str) -> bool:
        """Return whether a name has words of a name of the question."""
        words = frozenset(WORD.findall(name.lower()))
        return any(words & asked for asked in self._names)

    def _fits(self, name: str) -> bool:
        """Return whether a thing is of the asked kind."""
        if self._type:
            known = self.types.get(name.lower())
            return known == self._type
        words = WORD.findall(name.lower())
        # "The Nimrod Expedition", but not "Olga Nowak of the Nimrod Expedition".
        has_noun = (
            len(words) > 1
            and self._noun in (stem_word(words[0]), stem_word(words[-1]))
            and not any(word.islower() for word in WORD.findall(name)[:-1])
        )
        return self._is_generic or has_noun or name.lower() in self._class

    def _keep_after_subject(
        self, text: str, names: Sequence[Name], subject: frozenset[str]
    ) -> list[Name]:
        """Keep the names that follow the asked subject in its clause, before any other person."""
        is_subject = bool(subject) and any(asked <= subject for asked in self._names)
        is_subject = is_subject and not any(self._is_asked(name.text) for name in names)
        kept = []
        other: Name | None = None
        place = 0
        for name in names:
            gap = text[place : name.start]
            words = WORD.findall(gap.lower())
            ends_clause = _CLAUSE_MARK.search(gap) or not self._clauses.isdisjoint(words)
            other = None if ends_clause else other
            is_led = self._is_preceded_by_preposition(text, name)
            if self._is_asked(name.text):
                # "Ann saw Eve" has one subject, "Ann and Eve saw it" two.
                is_joined = other and _JOINT.fullmatch(text, other.end, name.start)
                is_subject = not is_led and (other is None or bool(is_joined))
            elif ends_clause or (self._is_person(name) and not self._fits(name.text)):
                is_subject = False
            elif is_subject:
                kept.append(name)
            elif not is_led:
                other = name
            place = name.end
        return kept

    def _keep_subjects(
        self, candidate: Candidate, names: Sequence[Name], subject: frozenset[str]
    ) -> list[str]:
        """Keep the first names that fit, without those after a preposition.

        Without one, a sentence is about what a sentence before names: "It left the port."
        """
        text = candidate.text
        kept: list[Name] = []
        led: Name | None = None
        for name in names:
            if kept and not _JOINT.fullmatch(text, kept[-1].end, name.start):
                break
            if not kept and self._n_words_from_asked(text, name) > MAX_WORDS_TO_VERB:
                break
            is_led = self._is_preceded_by_preposition(text, name) or (
                led is not None and _AND.fullmatch(text, led.end, name.start) is not None
            )
            led = name if is_led else led
            if self._fits(name.text) and (kept or not is_led):
                kept.append(name)
        if not kept and self._is_passive:
            kept = [name for name in names if self._follows_asked(text, name)][:1]
        if kept or not subject or not subject.isdisjoint(WORD.findall(text.lower())):
            return [name.text for name in kept]
        before = (c for c in self._candidates if c.text_unit == candidate.text_unit)
        meant = (name.text for c in before for name in self._find_names(c.text))
        meant = (name for name in meant if not self._is_asked(name))
        return [n for n in meant if subject == set(WORD.findall(n.lower())) and self._fits(n)][:1]

    def _follows_asked(self, text: str, name: Name) -> bool:
        """Return whether an asked verb does something to a name: "the ice crushed the Alpha"."""
        before = WORD.findall(text[: name.start].lower())
        while before and before[-1] in self.language.determiners | self.language.articles:
            before.pop()
        is_asked = bool(before) and self._asked.find(before[-1]) in self._required
        return is_asked and self._fits(name.text)

    def _n_words_from_asked(self, text: str, name: Name) -> int:
        """Return the number of words from the first asked word before a name to the name."""
        words = WORD.findall(text[: name.start].lower())
        places = [i for i, word in enumerate(words) if self._asked.find(word) in self._required]
        return len(words) - places[0] if places else 0

    def _is_preceded_by_preposition(self, text: str, name: Name) -> bool:
        return follows_preposition(text, name, self.language)

    def _is_person(self, name: Name) -> bool:
        return self.types.get(name.text.lower()) == "person"


_NEXT_WORD = re.compile(r"\s+([^\W\d_]+)\b")
_CLAUSE_MARK = re.compile(r"[;:()–—]|,(?!\s+\w+,)")
_AND = re.compile(r",?\s*(?:\w{1,3}|&)\s+")
_JOINT = re.compile(r",?\s*(?:\w{1,3}|&)?\s+")


def _is_part(name: str, other: str) -> bool:
    return frozenset(WORD.findall(name.lower())) <= frozenset(WORD.findall(other.lower()))


def _is_plural(word: str, language: Language) -> bool:
    code = language.code
    lowered = word.lower()
    if lowered in listed_words("plurals", code):
        return True
    if lowered.endswith("ss"):
        return False
    return lowered.endswith(tuple(listed_words("endings", code)) or ("s",))


@cache
def _phrases(name: str, code: str) -> re.Pattern[str]:
    listed = read_lists("gathered_lists", Path(__file__).parent)[name].get(code, "")
    if name in ("light", "copulas"):
        listed = "|".join(listed.split())
    return compile_phrases(listed) if listed else re.compile(r"(?!)")
