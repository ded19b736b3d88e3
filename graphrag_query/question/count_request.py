"""Questions whose answer is a number that can be counted in the tables of the index."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from graphrag_nlp.text.languages import PARTICLES, Language, languages, word_set
from graphrag_nlp.text.normalize import fold, is_unspaced, stem_word
from graphrag_query.question.asked_dates import AskedDate, find_asked_dates
from graphrag_query.question.cues import compile_cues, fold_question, remove_cues
from graphrag_query.question.question_words import (
    KIND_OF_WORD,
    KINDS_OF_TYPE,
    TYPE_OF_WORD,
    TYPES,
    WORD,
    WORD_LISTS,
    stop_words_of,
)

# What is counted: documents with a subject; entities, the most frequent first; how many different
# entities there are; several subjects, or the documents with a subject, the most frequent first;
# occurrences of a subject; its
# first and last date; documents by date.
Counted = Literal[
    "documents",
    "entities",
    "distinct",
    "subjects",
    "occurrences",
    "dates",
    "trend",
    "top_documents",
]
_ASKS_FOR_PERSON = word_set(WORD_LISTS["asks_for_person"])
_ALTERNATIVES = {code: word_set(words) for code, words in WORD_LISTS["alternatives"].items()}
_ANY_TYPE = word_set(WORD_LISTS["any_type"])
_PERIODS = {length: word_set(words) for length, words in WORD_LISTS["periods"].items()}
_MORE_OFTEN = re.compile("|".join(WORD_LISTS["more_often"].split()))
# Typical words that are no part of the subject.
_CUES = (
    *("how_many", "how_often", "most_frequent", "mentioning", "documents", "first_time"),
    *("reporting", "last_time", "trend", "whole", "listing", "beside_count"),
)
# Maximum number of words between "how many" and what is counted.
MAX_WORDS_BETWEEN = 2
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]+)[\"”“»]|(?<!\w)['‘]([^'‘’]{2,}?)['’](?!\w)")
_FUNCTION_WORDS = frozenset[str]().union(*(lang.function_words for lang in languages().values()))
_YEAR = re.compile(r"(?:19|20)\d\d")
_NAME_PARTICLES = PARTICLES | {"of", "the"}


@dataclass(frozen=True)
class CountRequest:
    """The thing that a question asks to count, and the words of its subject.

    `kind` is the type of the counted entities; None means all types. `narrower` is the kind of the
    counted places or organizations, such as country or company; None means all kinds. `terms` are
    the names and words of the subject. `is_any` is true if one of the terms is enough. `most` is
    the number of entities that the question asks for. `period` is the length of the dates in a
    trend: 4 for years, 7 for months, 10 for days, or None. `cue` has the words that ask for a
    count.
    `dates` and `years` are those that the question names.
    """

    counted: Counted
    kind: str | None
    narrower: str | None
    terms: tuple[str, ...]
    is_any: bool
    most: int | None
    period: int | None
    cue: str
    dates: tuple[AskedDate, ...] = ()
    years: tuple[str, ...] = ()

    @property
    def plural(self) -> str:
        """The plural of what is counted, such as people."""
        if self.narrower is not None:
            return str(KINDS_OF_TYPE[self.narrower]["plural"])
        return str(TYPES[self.kind]["plural"]) if self.kind else "names"


def read_count_request(question: str, language: Language) -> CountRequest | None:
    """Read what a question asks to count; None if it asks for something else."""
    return _CountedWords(question, language).read_request()


def _read_limit(word: str) -> int:
    """Read a number up to 100, such as in "top 5"; 0 if the word is no such number."""
    return int(word) if word.isdecimal() and len(word) <= 2 else 0


class _CountedWords:
    """The words of a question, and which of them are typical of questions for a count."""

    def __init__(self, question: str, language: Language) -> None:
        self.question, self.language = question, language
        self.tokens = list(WORD.finditer(question))
        self.folded = [fold(token[0]) for token in self.tokens]
        self.is_unspaced = is_unspaced(question)

    @cached_property
    def cues(self) -> dict[str, tuple[str, int, set[int]]]:
        """Map a kind of cue to its first words, the token after them, and all its tokens."""
        plain = fold_question(self.question) if self.is_unspaced else " ".join(self.folded)
        starts, place = [], 0
        for word in self.folded:
            starts.append(place)
            place += len(word) + 1
        found = {}
        patterns = compile_cues()
        for kind in _CUES:
            matches = list(patterns[kind].finditer(plain))
            if not matches:
                continue
            covered: set[int] = set()
            for match in matches:
                gaps = [match.span(i + 1) for i in range(len(match.groups())) if match[i + 1]]
                covered |= {
                    i
                    for i, start in enumerate(starts)
                    if match.start() <= start < match.end()
                    and not any(first <= start < last for first, last in gaps)
                }
            end = sum(start < matches[0].end() for start in starts)
            found[kind] = matches[0].group().strip(), end, covered
        return found

    @cached_property
    def dates(self) -> list[AskedDate]:
        """The days and months that the question names."""
        return find_asked_dates(self.question, self.language)

    @cached_property
    def years(self) -> list[str]:
        """The years that the question names outside days and months."""
        in_dates = " ".join(date.text for date in self.dates)
        return [w for w in self.folded if _YEAR.fullmatch(w) and w not in in_dates]

    @cached_property
    def numbered(self) -> set[int]:
        """The words for documents before a number, as in "Article 50": they are names."""
        words = self.cues["documents"][2] if "documents" in self.cues else set()
        numbers = {i for i, word in enumerate(self.folded) if word.isdecimal()}
        return {i for i in words if i + 1 in numbers and self.folded[i + 1] not in self.years}

    @cached_property
    def kind_token(self) -> int | None:
        """The first word that asks for entities of a type."""
        stems = [stem_word(token[0].lower()) for token in self.tokens]
        return next((i for i, stem in enumerate(stems) if stem in TYPE_OF_WORD), None)

    def read_request(self) -> CountRequest | None:
        """Read what the question asks to count; None if it asks for something else."""
        found, cue = self._find_counted()
        if found is None:
            return None
        counted: Counted = found
        kind = narrower = None
        if counted in ("entities", "distinct"):
            if self.kind_token is not None:
                stem = stem_word(self.tokens[self.kind_token][0].lower())
                kind, narrower = TYPE_OF_WORD[stem], KIND_OF_WORD.get(stem)
            elif any(token[0].lower() in _ASKS_FOR_PERSON for token in self.tokens[:2]):
                kind = "person"
        lowered = [token[0].lower() for token in self.tokens]
        is_ranking = counted == "entities"
        most = next((n for n in map(_read_limit, self.folded) if n), None) if is_ranking else None
        terms = tuple(dict.fromkeys(self._terms(kind is not None, most)))
        if not terms and counted in ("documents", "occurrences", "dates"):
            # "How many documents mention letters?" asks for letters.
            terms = tuple(self._mentioned_documents())
        is_any = not _ALTERNATIVES.get(self.language.code, frozenset()).isdisjoint(lowered)
        if is_ranking and kind is None:
            if len(terms) > 1 and (is_any or _MORE_OFTEN.search(fold_question(self.question))):
                counted = "subjects"
            elif terms and self._follows_start("documents"):
                counted = "top_documents"
            elif _ANY_TYPE.isdisjoint(lowered):
                return None
            terms = tuple(term for term in terms if term.lower() not in _ANY_TYPE)
        if counted in ("occurrences", "dates") and not terms:
            return None
        periods = [length for length, words in _PERIODS.items() if not words.isdisjoint(lowered)]
        period = periods[0] if periods else None
        names = (kind, narrower, terms, is_any, most, period, self.cues[cue][0])
        return CountRequest(counted, *names, tuple(self.dates), tuple(self.years))

    def _follows_start(self, cue: str) -> bool:
        """Return whether a cue is among the first words of the question."""
        return cue in self.cues and min(self.cues[cue][2], default=9) <= MAX_WORDS_BETWEEN

    def _find_counted(self) -> tuple[Counted | None, str]:
        """Tell what is counted, and the kind of the cue that says so."""
        cues = self.cues
        is_mentioned = "mentioning" in cues
        is_reported = is_mentioned or "reporting" in cues
        if "trend" in cues and (is_reported or "documents" in cues):
            return "trend", "trend"
        for cue in ("first_time", "last_time"):
            if cue in cues and is_reported:
                return "dates", cue
        if "how_often" in cues and is_mentioned:
            return "occurrences", "how_often"
        # "Rank the states by how many documents name them" asks for the states.
        first = min(cues["how_many"][2], default=0) if "how_many" in cues else 0
        if "most_frequent" in cues and cues["most_frequent"][1] <= first and is_mentioned:
            return "entities", "most_frequent"
        if "how_many" in cues:
            if self._follows("how_many", cues.get("documents", ("", 0, set[int]()))[2]):
                return "documents", "how_many"
            kind = set() if self.kind_token is None else {self.kind_token}
            # "How many companies are there?" asks for nothing else.
            is_all = not any(self._terms(True, None))
            if (is_mentioned or is_all) and self._follows("how_many", kind):
                return "distinct", "how_many"
        if "most_frequent" in cues and (is_mentioned or "documents" in cues):
            return "entities", "most_frequent"
        return None, ""

    def _mentioned_documents(self) -> Iterator[str]:
        """Yield the words for documents that stand behind a verb for mentions."""
        if self.is_unspaced or not {"mentioning", "documents"} <= self.cues.keys():
            return
        verb, words = max(self.cues["mentioning"][2], default=0), self.cues["documents"][2]
        if any(word < verb for word in words):
            yield from (self.tokens[word][0] for word in sorted(words) if word > verb)

    def _follows(self, cue: str, tokens: set[int]) -> bool:
        """Return whether one of these tokens follows closely after a cue."""
        if self.is_unspaced:
            return cue in self.cues and "documents" in self.cues
        end = self.cues[cue][1]
        return any(end <= token <= end + MAX_WORDS_BETWEEN for token in tokens)

    def _terms(self, has_kind: bool, most: int | None) -> Iterator[str]:
        """Yield the quoted words, names and adjacent content words of the subject."""
        quoted = list(_QUOTED.finditer(self.question))
        yield from (match[1] or match[2] for match in quoted)
        dates = [date.text for date in self.dates] + self.years
        dated = [m for text in dates for m in re.finditer(re.escape(text), self.question)]
        if self.is_unspaced:
            rest = remove_cues(_QUOTED.sub(" ", self.question), *_CUES)
            yield from (word for word in WORD.findall(rest) if len(word) > 1)
            return
        dropped = set().union(*(tokens for _, _, tokens in self.cues.values())) - self.numbered
        if has_kind and self.kind_token is not None:
            dropped.add(self.kind_token)
        stop_words = stop_words_of(self.language)
        # The words before "how many" or the like are none of the subject: ¿En cuántos documentos …?
        first = min((min(tokens) for _, _, tokens in self.cues.values() if tokens), default=0)
        dropped.update(i for i in range(first) if self.folded[i] in _FUNCTION_WORDS)
        run: list[re.Match[str]] = []
        for i, token in enumerate(self.tokens):
            word = token[0].lower()
            is_name_part = (
                word in _NAME_PARTICLES
                and i + 1 < len(self.tokens)
                and run
                and run[-1][0][0].isupper()
                and self.tokens[i + 1][0][0].isupper()
            )
            is_kept = is_name_part or not (
                i in dropped
                or word in stop_words
                # The number of Rule 5 belongs to the word before it.
                or (len(word) == 1 and not (word.isdecimal() and run))
                or (most and word == str(most))
                or any(q.start() <= token.start() < q.end() for q in (*quoted, *dated))
            )
            is_adjacent = not run or not self.question[run[-1].end() : token.start()].strip(" -")
            if run and not (is_kept and is_adjacent):
                yield self.question[run[0].start() : run[-1].end()]
                run = []
            if is_kept:
                run.append(token)
        if run:
            yield self.question[run[0].start() : run[-1].end()]
