"""Cuts of capitalized spans with two names, or with other words beside a name."""

import re
from collections.abc import Iterator

from graphrag_index.nlp.compounds import GERMAN_ADJECTIVE, is_german_noun
from graphrag_index.nlp.name_spans import CALENDAR_WORDS
from graphrag_index.nlp.name_words import (
    GIVEN_NAMES,
    HEAD_WORDS,
    KNOWN_NAMES,
    TYPE_WORDS,
    common_words,
    is_given_name,
    is_oblique,
    is_organization_word,
    is_role,
)
from graphrag_index.nlp.used_names import UsedNames
from graphrag_index.nlp.word_table import cue_type
from graphrag_index.text import languages
from graphrag_index.text.languages import is_title, n_titles, word_set

_WORDS = languages.read_lists("nlp/data/words")
_APPOSITIVES = word_set(_WORDS["appositives"])
_HEADS_IN_NAMES = HEAD_WORDS - _APPOSITIVES
_ADJECTIVE_END = re.compile(r"(?:e|en|em|es)$")
_COMPANY_FORMS = word_set(languages.read_lists("nlp/data/entity_types")["company_forms"])
_CUT_PARTICLES = frozenset(("of", "von", "van", "de", "des", "der", "zu", "zur"))
# German words for types with another meaning elsewhere: "Dom" (cathedral), Polish "dom" (house).
_GOVERNED_TYPE_WORDS = TYPE_WORDS - {"dom"}
# Endings of names that only look like German genitives: Lepsius, Adonis, Krauss.
_NO_GENITIVE_END = re.compile(r"(?:us|is|os|ss)$")
# German nouns that form a name together with the person's name before them: Otto Hahn Preis.
_NOUNS_AFTER_PERSON = word_set(_WORDS["german_named_after"])
# Maximum number of mentions of a span that is cut into two names: "At Cape Evans Scott wrote".
_MAX_RARE_MENTIONS = 2
# Words that begin names of German places: Bad Homburg.
_NAME_OPENINGS = frozenset(("Bad", "Sankt", "Groß", "Klein", "Alt", "Neu"))

# Position of a cut: (end of the left part, start of the right part), as indexes of words.
Cut = tuple[int, int]


class CapitalizedSpan:
    """A distinct capitalized span that may contain several names."""

    def __init__(self, used: UsedNames, surnames: set[str], number: int) -> None:
        self.used, self.usage = used, used.usage
        self.surnames, self.number = surnames, number
        self.words = self.usage.split_words(number)
        self.language = self.usage.found.languages[number]
        self.times = self.usage.total[number]
        # True if the span occurs only at the start of sentences.
        self.initial = self.usage.inside[number] == 0

    def find_names(self) -> Iterator[tuple[int, str, str]]:
        """Yield the names in the span as (offset, name, type that the word before it shows)."""
        words = self.words
        for first, last in self._cut_into_parts(0, len(words)):
            part = words[first:last]
            if part == words:
                if self.used.is_name(self.number):
                    yield 0, self.usage.found.names[self.number], ""
            elif self._is_name(part) or self._is_named(first, last):
                kind = find_cue(words[first - 1]) if first else ""
                yield sum(map(len, words[:first])) + first, " ".join(part), kind

    def _is_named(self, first: int, last: int) -> bool:
        """Return whether a word before one other word shows that it is a name: Firma Weber."""
        before = self.words[first - 1] if first else ""
        is_word = last - first == 1 and self.words[first][1:].islower()
        return is_word and (before.lower() in _APPOSITIVES or is_role(before))

    def _count_known_mentions(self, words: list[str]) -> int:
        return self.used.count_mentions(words, self.language)

    def _is_given_name(self, word: str) -> bool:
        return is_given_name(word, self.language)

    def _base_form(self, word: str) -> str:
        return self.usage.base_form([word], self.language)[0]

    def _is_name(self, words: list[str]) -> bool:
        """Return whether a part of the span is a name."""
        usage, word = self.usage, words[0]
        if len(words) > 1:
            return not all(word.islower() or usage.is_common(word) for word in words)
        # A word may be known only as a part of other names: "Kern" from "Thomas Kern".
        if word.isupper() and len(word) > 1:
            return self.used.is_acronym(word, self.language)
        is_known = self._is_given_name(word) or usage.is_known_place(word, self.language.code)
        if is_known or self._count_known_mentions(words):
            return True
        if self.language.capitalizes_nouns and not is_german_noun(word):
            return len(word) > 2
        if self.language.genitive_s:
            base = self._base_form(word)
            return base != word and self._may_own(base)
        return bool(self.language.endings) and usage.is_part_of_name(word, self.language)

    def _cut_into_parts(self, first: int, last: int) -> list[tuple[int, int]]:
        """Cut the words from `first` to `last` between names; return each part."""
        words = self.words[first:last]
        if len(words) > 1:
            cut = self._find_cut(words, at_start=first == 0)
            if cut is not None:
                left, right = cut
                pieces = self._cut_into_parts(first, first + left) if left else []
                return pieces + self._cut_into_parts(first + right, last)
        return [(first, last)]

    def _find_cut(self, words: list[str], at_start: bool) -> Cut | None:
        """Return the position of the first cut, or None if the words are one name.

        If the left part is empty, the words before the right part belong to no name.
        """
        is_company = len(words) < 5 and words[-1].lower().rstrip(".") in _COMPANY_FORMS
        name = " ".join(words)
        if is_company or name.lower() in KNOWN_NAMES or self.usage.is_known_place(name, ""):
            return None
        initial = at_start and self.initial
        may_begin = at_start or self.language.capitalizes_nouns
        if may_begin and self._precedes_name(words[0], words[1:], initial):
            # Remove the first word and the particles between the first word and the name.
            right = next((i for i in range(1, len(words)) if words[i][0].isupper()), 0)
            if right:
                return 0, right
        return (
            self._cut_beside_case(words)
            or self._cut_after_role(words)
            or self._cut_after_owner(words)
            or self._cut_at_particle(words, initial)
            or self._cut_before_person(words, initial)
            or self._cut_between_names(words, at_start)
            or self._cut_before_noun(words)
        )

    def _precedes_name(self, word: str, rest: list[str], initial: bool) -> bool:
        """Return whether the first word is not part of the name after it."""
        usage, language = self.usage, self.language
        if word.lower() in languages.PARTICLES or (word.isupper() and len(word) > 1):
            return False
        if word.lower() in CALENDAR_WORDS and word not in GIVEN_NAMES:
            # Cut "Tuesday" from "Tuesday Whitmore", but not "Christmas" from "Christmas Island".
            surname = len(rest) == 1 and rest[0] in self.surnames
            is_acronym = rest[0].isupper() and len(rest[0]) > 1
            return surname or is_acronym or self._is_given_name(rest[0]) or is_title(rest[0])
        if language.capitalizes_nouns:
            base = self._base_form(rest[0])
            if len(rest) == 1 and base != rest[0] and self._count_known_mentions([base]):
                # Cut "Namen" from "Namen Schillers", but not "Johann" from "Johann Schillers".
                return not self._is_given_name(word)
            return self._is_noun_before_name(word, rest, initial)
        if usage.is_demonym(word) and len(rest) > 1 and self._may_be_person(rest):
            return True
        if not initial or usage.inside_words[word]:
            return False
        inflects = language.endings or language.genitive_s
        if inflects and usage.occurs_inside_sentence([word, *rest], language):
            # "Pałac Kultury" is one name if the corpus also writes "w Pałacu Kultury".
            return False
        if self._is_given_name(word):
            # "Miny Adama Wilka": "Miny" is not a form of the name Mina if nobody is called Mina.
            return self._base_form(word) not in GIVEN_NAMES and self._is_given_name(rest[0])
        if usage.lower[word.lower()] > 0 or (word.endswith(("ing", "ed")) and len(word) > 5):
            return True
        return bool(language.endings) and self._may_govern_name(word, rest)

    def _is_noun_before_name(self, word: str, rest: list[str], initial: bool) -> bool:
        """Return whether a capitalized German word is a noun or a pronoun before a name."""
        usage = self.usage
        if word in GIVEN_NAMES or word in _NAME_OPENINGS or is_title(word):
            return False
        if self.language.genitive_s and word.endswith("s") and self._is_genitive([word], rest):
            return False
        # Keep a capitalized adjective: inside a sentence, it shows that the words are a name.
        if GERMAN_ADJECTIVE.fullmatch(word) and (not initial or not usage.is_common_noun(rest[0])):
            return False
        if word.lower() in ("sie", "ihr", "ihre", "ihren", "ihrem", "ihrer", "ihres"):
            return True
        if usage.lower[word.lower()]:
            return False
        if word.endswith("er") and (
            word.removesuffix("er") in usage.inside_words or self._begins_with_adjective(rest)
        ):
            return False
        is_head = word.lower() in _HEADS_IN_NAMES or is_organization_word(word)
        return not is_head and usage.is_common_noun(word)

    def _begins_with_adjective(self, words: list[str]) -> bool:
        """Return whether German words begin with an adjective, as in Allgemeine Zeitung."""
        if self._is_given_name(words[0]) or not _ADJECTIVE_END.search(words[0]):
            return False
        return len(words) > 1 or self.usage.lower[words[0].lower()] > 0

    def _may_govern_name(self, word: str, rest: list[str]) -> bool:
        """Return whether a word governs the name after it, as verbs and some nouns do.

        Examples: "Dzieło Mikołaja Kopernika", "Учился Пушкин".
        """
        if word.lower() in _APPOSITIVES:
            return True
        if word.lower() in _GOVERNED_TYPE_WORDS or rest[0].islower():
            return False
        if not is_title(word):
            endings = self.language.verb_endings
            if (endings and word.endswith(endings)) or self._is_given_name(rest[0]):
                return True
        base = self.usage.base_form(rest, self.language)
        if base == tuple(rest) and not is_oblique(rest[-1], self.language):
            return False
        if len(rest) == 1 and self.usage.is_part_of_name(rest[0], self.language):
            return True
        return self._count_known_mentions(rest) > 0

    def _may_be_person(self, words: list[str]) -> bool:
        return not any(word.lower() in TYPE_WORDS or self.usage.is_common(word) for word in words)

    def _is_full_name(self, words: list[str]) -> bool:
        """Return whether words are a person's full name: they begin with a given name."""
        words = [word for word in words if not is_title(word)]
        given = len(words) > 1 and self._is_given_name(words[0])
        return given and self._may_be_person(words[1:])

    def _cut_beside_case(self, words: list[str]) -> Cut | None:
        """Cut a role or a judge off a case: Donoghue v Stevenson | Lord Atkin."""
        at = next((i for i, word in enumerate(words) if i and word.rstrip(".") in ("v", "vs")), 0)
        if at and all(map(is_role, words[:at])) and at < len(words) - 1:
            return 0, at + 1
        titles = (i for i in range(at + 2, len(words) - 1) if is_title(words[i]))
        judge = next(titles, 0) if at else 0
        return (judge, judge) if judge else None

    def _cut_after_role(self, words: list[str]) -> Cut | None:
        """Cut a role before a name: (the) CDC Director | Rochelle Walensky."""
        last = max((i for i, word in enumerate(words[:-1]) if is_role(word)), default=-1)
        is_cue = self.initial and cue_type(words[0]) == "person"
        if last < 0 and is_cue and not self.language.endings and len(words) > 2:
            last = 0  # Investor Sumner Redstone
        if last < 0 or self._is_given_name(words[0]):
            return None
        if last == 0 and words[1] == "of" and len(words) > 2:
            return 0, 3 if words[2] == "the" and len(words) > 3 else 2  # President of Peru
        # The name begins at the first given name after the role, or right after the role.
        given = (i for i in range(last + 1, len(words)) if self._is_given_name(words[i]))
        right = next(given, last + 1)
        while right < len(words) and (words[right].islower() or is_title(words[right])):
            right += 1
        rest = words[right:]
        if not rest or len(rest) > 4 or not self._may_be_person(rest):
            return None
        left = last
        while left and (is_role(words[left - 1]) or words[left - 1].islower()):
            left -= 1
        # Before the role, keep only what the corpus or capitals show to be a name.
        before = words[:left]
        is_name = len(before) == 1 and before[0].isupper() and len(before[0]) > 1
        genitive = self.language.genitive_s and before and before[-1].endswith("s")
        is_name = is_name or bool(genitive and self._is_genitive(before, words[left:]))
        return left if before and (is_name or self._count_known_mentions(before)) else 0, right

    def _cut_after_owner(self, words: list[str]) -> Cut | None:
        """Cut after an owner that is a name: Goethes Haus, (the) Nimrod's Captain."""
        for at, word in enumerate(words[:-1], 1):
            if word.endswith(("'s", "’s")):
                if self._count_known_mentions([word[:-2]]):
                    return at, at
                continue
            genitive = self.language.genitive_s and word.endswith("s")
            if genitive and self._is_genitive(words[:at], words[at:]):
                return at, at
        return None

    def _is_genitive(self, words: list[str], rest: list[str]) -> bool:
        """Return whether words are a genitive with s: Goethes (Haus), Lena Harts (Bruder)."""
        base = self._base_form(words[-1])
        if len(words) == 1:
            return base != words[0] and self._may_own(base)
        if not self.language.capitalizes_nouns:
            return False
        if base != words[-1] and self._count_known_mentions(words):
            return True
        if words[-1] in GIVEN_NAMES or _NO_GENITIVE_END.search(words[-1]):
            return False
        if rest[0].islower() or self._is_given_name(rest[0]) or rest[-1].lower() in TYPE_WORDS:
            return False
        return self._is_full_name(words) and rest[0] not in self.surnames

    def _may_own(self, word: str) -> bool:
        is_place = self.usage.is_known_place(word, self.language.code)
        return is_place or not self.usage.is_common_noun(word)

    def _cut_at_particle(self, words: list[str], initial: bool) -> Cut | None:
        """Cut at an "of" between two names: Nimrod Expedition of Ernest Shackleton."""
        for at, word in enumerate(words):
            if word not in _CUT_PARTICLES or not 0 < at < len(words) - 1:
                continue
            if self.language.code in ("fr", "es", "it", "pt") and at == 1 and words[0][0].isupper():
                # "Recetas de Karlos Arteaga", "AC3321 de Tenerife"
                is_word = words[0].lower() in common_words(self.language.code) or initial
                has_code = any(map(str.isdigit, words[0]))
                is_person = self._is_given_name(words[2]) and not self._is_given_name(words[0])
                if (is_person and words[0].lower() not in HEAD_WORDS) or has_code:
                    return (0 if is_word or has_code else 1), 2
            start = next((i for i in range(at, len(words)) if not words[i].islower()), None)
            if start is None:
                return None
            left, right = words[:at], words[start:]
            known = self._count_known_mentions(right)
            # True if the left part is one word, and neither a type word nor a given name.
            single = at == 1 and not _is_type_word(left[0]) and not self._is_given_name(left[0])
            if word == "of":
                right_is_name = known > self.times and self._is_full_name(right)
                right_is_name |= known >= max(3, 5 * self.times)
                left_is_name = at > 1 or self._count_known_mentions(left) > self.times
                if (left_is_name and right_is_name) or self._is_full_name(left):
                    return at, start
                if initial and single and known:
                    return 0, start
            elif self.language.capitalizes_nouns and word == "von" and self._is_full_name(left):
                # "Nils Petersen von der TU Darmstadt", but "Ursula von der Leyen"
                if right[0].isupper() or is_organization_word(right[0]):
                    return at, start
            elif single and self.language.capitalizes_nouns and is_german_noun(left[0]):
                return None if is_organization_word(left[0]) else (0, start)
            elif (
                single
                and self.language.capitalizes_nouns
                and (known > self.times or any(map(self._is_given_name, right)))
            ):
                return at, start
        return None

    def _cut_before_person(self, words: list[str], initial: bool) -> Cut | None:
        """Cut between a role and a person's full name: Innensenatorin | Petra Lindner."""
        if words[-1].lower() in TYPE_WORDS:
            return None
        at = next((i for i, word in enumerate(words) if self._is_given_name(word)), 0)
        left, right = words[:at], words[at:]
        if not at or left[-1].islower() or any("." in word for word in left):
            return None
        if n_titles([*left, right[0]]) == len(left):
            return None
        if self.language.capitalizes_nouns and not _is_type_word(left[-1]):
            return at, at
        if len(right) < 2 or is_title(left[-1]):
            return None
        begins_sentence = initial and self.language.endings and left[0].lower() not in TYPE_WORDS
        known = max(map(self._count_known_mentions, (left, right)))
        return (at, at) if begins_sentence or known > self.times else None

    def _cut_between_names(self, words: list[str], at_start: bool) -> Cut | None:
        """Cut a rare span between two names that are frequent: (at) Cape Evans Scott."""
        usage, times, is_german = self.usage, self.times, self.language.capitalizes_nouns
        if times > _MAX_RARE_MENTIONS or not at_start or words[-1].lower() in TYPE_WORDS:
            return None
        placed = usage.preposition[self.number] > 0
        opened = placed or usage.determiner[self.number] > 0
        for at in range(len(words) - 1, 0, -1):
            if words[at - 1].islower() or words[at].islower():
                continue
            # Cut off a single word only after a preposition or an article, or in German.
            if not (opened or is_german or 1 < at < len(words) - 1):
                continue
            if self._is_given_name(words[0]) and at == 1:
                continue
            left, right = map(self._count_known_mentions, (words[:at], words[at:]))
            place = at > 1 and (
                words[0].lower() in TYPE_WORDS or words[at - 1].lower() in TYPE_WORDS
            )
            # In German, the object may follow the subject: "Im Jahr 1933 verließ Einstein Berlin".
            subject = is_german and at == 1 and usage.closing[words[0]] >= usage.opening[words[0]]
            is_cut = right > times and (left > times or (place and placed))
            if is_cut or (subject and left > times):
                return at, at
        return None

    def _cut_before_noun(self, words: list[str]) -> Cut | None:
        """Cut off a German noun after a person's name: (dann hatte) Heinrich Brandt Ärger."""
        left, noun = words[:-1], words[-1]
        if not self.language.capitalizes_nouns or len(left) < 2 or self.times > _MAX_RARE_MENTIONS:
            return None
        names_thing = noun.lower() in TYPE_WORDS | _NOUNS_AFTER_PERSON
        if names_thing or left[-1] in GIVEN_NAMES or not self._is_full_name(left):
            return None
        known = self._count_known_mentions
        is_known = known(left) >= self.times or known(left[-1:])
        # The noun may be a second surname if it is a surname elsewhere in the corpus.
        is_surname = noun in self.surnames or known([noun])
        return (len(left), len(left)) if is_known and not is_surname else None


def _is_type_word(word: str) -> bool:
    return word.lower() in TYPE_WORDS or is_title(word)


def find_cue(word: str) -> str:
    """Return the type that a capitalized noun shows of the name after it: Firma Weber."""
    return "person" if is_role(word) or is_title(word) else cue_type(word)
