"""Read what a question asks to count, in English, German, French or Spanish."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from graphrag_nlp.text.languages import PARTICLES, Language, read_lists, word_set
from graphrag_nlp.text.normalize import compile_lists, fold, fold_question, stem_word

# What is counted: documents with a subject; entities, the most frequent first; how many different
# entities there are; several subjects, or the documents with a subject, the most frequent first;
# occurrences of a subject; its first and last date; documents by date.
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
_LISTS = read_lists("graphrag_nlp/answers/data/counting")
_CUES = compile_lists(_LISTS["cues"])
_TYPES, _KINDS = (
    {stem_word(word): name for name, one in _LISTS[key].items() for word in one["words"].split()}
    for key in ("types", "kinds")
)
_PLURALS = {name: one["plural"] for key in ("types", "kinds") for name, one in _LISTS[key].items()}
_WHO, _ANY_TYPE = word_set(_LISTS["who"]), word_set(_LISTS["any_type"])
_EITHER = {code: word_set(words) for code, words in _LISTS["either"].items()}
_PERIODS = {length: word_set(words) for length, words in _LISTS["periods"].items()}
_MORE_OFTEN = re.compile("|".join(_LISTS["more_often"].split()))
# Maximum number of words between "how many" and what is counted.
MAX_WORDS_BETWEEN = 2
_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]+)[\"”“»]|(?<!\w)['‘]([^'‘’]{2,}?)['’](?!\w)")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NAME_PARTICLES = PARTICLES | {"of", "the"}


@dataclass(frozen=True)
class CountRequest:
    """The thing that a question asks to count, and the words of its subject.

    `kind` is the type of the counted entities; None means all types. `narrower` is the kind of the
    counted places, such as country; None means all kinds. `terms` are
    the names and words of the subject. `is_any` is true if one of the terms is enough. `most` is
    the number of entities that the question asks for. `period` is the length of the dates in a
    trend: 4 for years, 7 for months, 10 for days, or None. `cue` has the words that ask for a
    count. `years` are those that the question names outside days and months.
    """

    counted: Counted
    kind: str | None
    narrower: str | None
    terms: tuple[str, ...]
    is_any: bool
    most: int | None
    period: int | None
    cue: str
    years: tuple[str, ...] = ()

    @property
    def plural(self) -> str:
        """The plural of what is counted, such as people."""
        kind = self.narrower or self.kind
        return _PLURALS[kind] if kind else "names"


def read_count_request(
    question: str, language: Language, stop_words: Collection[str], dates: Sequence[str] = ()
) -> CountRequest | None:
    """Read what a question asks to count; None if it asks for something else.

    `stop_words` are words that are no subject, and `dates` the days and months that the question
    names; they are no part of the subject.
    """
    return _CountedWords(question, language, stop_words, dates).read_request()


class _CountedWords:
    """The words of a question, and which of them are typical of questions for a count."""

    def __init__(
        self, question: str, language: Language, stop_words: Collection[str], dates: Sequence[str]
    ) -> None:
        self.question, self.language = question, language
        self.stop_words, self.dates = stop_words, dates
        self.tokens = list(_WORD.finditer(question))
        self.lower = [token[0].lower() for token in self.tokens]
        self.folded = [fold(word) for word in self.lower]
        self.years = [w for w in self.folded if _YEAR.fullmatch(w) and w not in " ".join(dates)]
        stems = list(map(stem_word, self.lower))
        # The first word that asks for entities of a type.
        self.typed = next((i for i, stem in enumerate(stems) if stem in _TYPES), None)

    @cached_property
    def cues(self) -> dict[str, tuple[str, int, set[int]]]:
        """Map a kind of cue to its first words, the token after them, and all its tokens."""
        plain, starts, place = " ".join(self.folded), list[int](), 0
        for word in self.folded:
            starts.append(place)
            place += len(word) + 1
        found = {}
        for kind, pattern in _CUES.items():
            covered = set[int]()
            matches = list(pattern.finditer(plain))
            for match in matches:
                gaps = [match.span(i + 1) for i, gap in enumerate(match.groups()) if gap]
                covered.update(
                    i
                    for i, start in enumerate(starts)
                    if match.start() <= start < match.end()
                    and not any(first <= start < last for first, last in gaps)
                )
            if matches:
                end = sum(start < matches[0].end() for start in starts)
                found[kind] = matches[0].group().strip(), end, covered
        return found

    def read_request(self) -> CountRequest | None:
        """Read what the question asks to count; None if it asks for something else."""
        counted, cue = self._find_counted()
        if counted is None:
            return None
        kind = narrower = None
        if counted in ("entities", "distinct"):
            if self.typed is not None:
                stem = stem_word(self.lower[self.typed])
                kind, narrower = _TYPES[stem], _KINDS.get(stem)
            elif not _WHO.isdisjoint(self.lower[:2]):
                kind = "person"
        is_ranking = counted == "entities"
        numbers = (int(w) for w in self.folded if w.isdecimal() and len(w) <= 2)
        most = next(filter(None, numbers), None) if is_ranking else None
        terms = tuple(dict.fromkeys(self._terms(kind is not None, most)))
        if not terms and counted in ("documents", "occurrences", "dates"):
            # "How many documents mention letters?" asks for letters.
            terms = tuple(self._mentioned_documents())
        is_any = not _EITHER.get(self.language.code, frozenset()).isdisjoint(self.lower)
        if is_ranking and kind is None:
            if len(terms) > 1 and (is_any or _MORE_OFTEN.search(fold_question(self.question))):
                counted = "subjects"
            elif terms and min(self._tokens("documents"), default=9) <= MAX_WORDS_BETWEEN:
                counted = "top_documents"
            elif _ANY_TYPE.isdisjoint(self.lower):
                return None
            terms = tuple(term for term in terms if term.lower() not in _ANY_TYPE)
        if counted in ("occurrences", "dates") and not terms:
            return None
        periods = [length for length, words in _PERIODS.items() if not words.isdisjoint(self.lower)]
        period, words = (periods[0] if periods else None), self.cues[cue][0]
        return CountRequest(
            counted, kind, narrower, terms, is_any, most, period, words, tuple(self.years)
        )

    def _tokens(self, cue: str) -> set[int]:
        """Return the tokens of a kind of cue."""
        return self.cues[cue][2] if cue in self.cues else set()

    def _find_counted(self) -> tuple[Counted | None, str]:
        """Tell what is counted, and the kind of the cue that says so."""
        cues = self.cues
        is_mentioned, has_documents = "mentioning" in cues, "documents" in cues
        is_reported = is_mentioned or "reporting" in cues
        if "trend" in cues and (is_reported or has_documents):
            return "trend", "trend"
        for cue in ("first_time", "last_time"):
            if cue in cues and is_reported:
                return "dates", cue
        if "how_often" in cues and is_mentioned:
            return "occurrences", "how_often"
        # "Rank the states by how many documents name them" asks for the states.
        first = min(self._tokens("how_many"), default=0)
        if "most_frequent" in cues and cues["most_frequent"][1] <= first and is_mentioned:
            return "entities", "most_frequent"
        if "how_many" in cues:
            if self._follows("how_many", self._tokens("documents")):
                return "documents", "how_many"
            # "How many companies are there?" asks for nothing else.
            is_all = not any(self._terms(True, None))
            typed = [] if self.typed is None else [self.typed]
            if (is_mentioned or is_all) and self._follows("how_many", typed):
                return "distinct", "how_many"
        if "most_frequent" in cues and (is_mentioned or has_documents):
            return "entities", "most_frequent"
        return None, ""

    def _mentioned_documents(self) -> Iterator[str]:
        """Yield words for documents after a verb such as "mention" or "name"."""
        verb, words = max(self._tokens("mentioning"), default=None), self._tokens("documents")
        if verb is not None and any(word < verb for word in words):
            yield from (self.tokens[word][0] for word in sorted(words) if word > verb)

    def _follows(self, cue: str, tokens: Iterable[int]) -> bool:
        """Return whether one of these tokens follows closely after a cue."""
        end = self.cues[cue][1]
        return any(end <= token <= end + MAX_WORDS_BETWEEN for token in tokens)

    def _terms(self, has_kind: bool, most: int | None) -> Iterator[str]:
        """Yield the quoted words, names and adjacent content words of the subject."""
        quoted = list(_QUOTED.finditer(self.question))
        yield from (match[1] or match[2] for match in quoted)
        dropped = self._dropped_tokens(has_kind, most, [match.span() for match in quoted])
        run: list[re.Match[str]] = []
        for i, token in enumerate(self.tokens):
            word = self.lower[i]
            is_name_part = (
                word in _NAME_PARTICLES
                and i + 1 < len(self.tokens)
                and run
                and run[-1][0][0].isupper()
                and self.tokens[i + 1][0][0].isupper()
            )
            # The number of Rule 5 belongs to the word before it.
            is_letter = len(word) == 1 and not (word.isdecimal() and run)
            is_kept = is_name_part or not (i in dropped or word in self.stop_words or is_letter)
            is_adjacent = not run or not self.question[run[-1].end() : token.start()].strip(" -")
            if run and not (is_kept and is_adjacent):
                yield self.question[run[0].start() : run[-1].end()]
                run = []
            if is_kept:
                run.append(token)
        if run:
            yield self.question[run[0].start() : run[-1].end()]

    def _dropped_tokens(
        self, has_kind: bool, most: int | None, quoted: list[tuple[int, int]]
    ) -> set[int]:
        """Return the tokens that are no part of the subject: cues, dates, quotations, numbers."""
        cues = [tokens for _, _, tokens in self.cues.values()]
        dropped = set[int]().union(*cues)
        # A word for documents before a number is a name, as in "Article 50".
        for i in self._tokens("documents"):
            number = self.folded[i + 1] if i + 1 < len(self.folded) else ""
            if number.isdecimal() and number not in self.years:
                dropped.discard(i)
        if has_kind and self.typed is not None:
            dropped.add(self.typed)
        # The words before "how many" or the like are none of the subject: ¿En cuántos documentos …?
        first = min(map(min, cues), default=0)
        dropped.update(i for i in range(first) if self.lower[i] in self.stop_words)
        spans = list(quoted)
        for date in (*self.dates, *self.years):
            spans += [m.span() for m in re.finditer(re.escape(date), self.question)]
        for i, token in enumerate(self.tokens):
            is_inside = any(start <= token.start() < end for start, end in spans)
            if is_inside or (most and self.lower[i] == str(most)):
                dropped.add(i)
        return dropped
