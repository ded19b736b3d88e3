"""The kind of answer that a question wants, told from its words."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from graphrag_nlp.text.languages import (
    Language,
    detect_language,
    language_of,
    read_lists,
    word_set,
)
from graphrag_nlp.text.normalize import fold, stem_word
from graphrag_nlp.text.phrases import compile_phrases, fold_question
from graphrag_query.question.irregular_verbs import find_other_forms
from graphrag_query.question.question_words import WORD, language_in, stop_words_of

# Maximum number of words of a name or a term that a question for a definition asks about.
MAX_WORDS_OF_TERM = 5
# Maximum number of words after an interrogative that may say what is asked for.
MAX_NOUN_WORDS = 4
# Minimum number of characters of an English verb in the past.
MIN_CHARS_OF_VERB = 5
# English plurals that do not end in "s" or "men".
IRREGULAR_PLURALS = frozenset("people children feet teeth geese mice oxen".split())
# Maximum number of words beside the subject of "What is the film about?".
MAX_WORDS_BESIDE_SUBJECT = 3
# Maximum number of words before a question word at the start of a question: "In which".
MAX_WORDS_BEFORE_FIRST = 1

# Languages in which the first word alone shows that a question is for yes or no; with French, whose
# verb stands before a pronoun; and the minimum number of words of such a question.
CODES_WITH_ANY_VERB_FIRST = frozenset(("de", "es"))
CODES_WITH_VERB_FIRST = CODES_WITH_ANY_VERB_FIRST | {"fr"}
MIN_WORDS_WITH_VERB = 3
# A French verb before its pronoun: "a-t-il".
_INVERSION = re.compile(r"\w-(?:t-)?(?:ils?|elles?|on)\b", re.IGNORECASE)

# Kinds of answers of which one part of a sentence can be the whole.
KINDS_OF_PARTS = frozenset(
    ("number", "duration", "date", "time", "person", "place", "organization", "title")
)
# Kinds of answers whose nouns, such as "city", rarely stand beside the answer.
KINDS_OF_CATEGORIES = frozenset(("date", "place"))


@dataclass(frozen=True)
class WantedAnswer:
    """The kind of answer that a question wants.

    `kind` is `number`, `duration`, `time`, `date`, `reason`, `manner`, `place`, `person`,
    `organization`, `title` (of a work), `definition`, `yes_no`, or `other`. `nouns` are the stems
    of the words after "which", "how many" and the like: `("chair",)` for "How many chairs are
    there?".
    `is_subject` is true for "Who invited Ann?", but not for "Who did Ann invite?". `categories` are
    the nouns that answers rarely say. `head` is the noun that tells the kind, such as "judg" in
    "Which federal judge ruled?"; "" without one. `is_counted` is true if a number of other things
    than the nouns is no answer: for "How many chairs are there?", but not for "How many people".
    """

    kind: str = "other"
    nouns: tuple[str, ...] = ()
    is_subject: bool = False
    categories: tuple[str, ...] = ()
    head: str = ""
    is_counted: bool = False

    @property
    def wants_name(self) -> bool:
        """Return whether a name answers the question."""
        return self.kind in ("person", "place", "organization", "title")


@dataclass(frozen=True)
class _KindPatterns:
    """The compiled word lists of one language."""

    questions: Mapping[str, re.Pattern[str]]
    nouns: Mapping[str, re.Pattern[str]]
    interrogatives: re.Pattern[str] | None
    definitions: re.Pattern[str] | None
    empty_nouns: frozenset[str]
    # Interrogatives that also begin relative clauses.
    relatives: frozenset[str]
    clause_starts: frozenset[str]
    copulas: frozenset[str]
    last_words: frozenset[str]
    counts: re.Pattern[str] | None
    any_counted: frozenset[str]
    # The first phrase that asks for a person, such as "who".
    nominative: str

    def is_relative(self, words: str) -> bool:
        """Return whether an interrogative may begin a relative clause."""
        return words in self.relatives

    def asks_about_clause(self, words: list[str], nouns: list[str], kind: str) -> bool:
        """Return whether the nouns after an interrogative are a subject, not what is asked for.

        "What did the mayor say?" asks for no person, "What is the film about?" for no title, and
        "How old is Ann?" counts no Ann; but "What was the name of the town that Ann lived in?" asks
        for a town. `words` are those behind the interrogative, and `nouns` its nouns among them.
        """
        if not words:
            return False
        if words[0] in self.clause_starts:
            # But not "What may be the reason?" and "What could the reason be?".
            is_noun = words[1:2] and words[1] in self.copulas and words[2:3] != nouns[:1]
            return not is_noun and words[-1] not in self.copulas
        if words[0] not in self.copulas:
            return False
        is_whole = len(words) - len(nouns) <= MAX_WORDS_BESIDE_SUBJECT
        return kind == "number" or (is_whole and words[-1] in self.last_words)


def find_wanted_answer(question: str, language: Language) -> WantedAnswer:
    """Tell the kind of answer that a question wants from its words.

    The noun after an interrogative says more than the interrogative: "which city" wants a place.
    A text that is no question, or a question in an unknown language, wants the kind `other`.
    """
    lists = read_lists("answer_kinds", Path(__file__).parent)
    # `Language` has no code of a language without word lists for names, such as Chinese.
    codes = (language.code, detect_language(question), "en")
    patterns = _compile_patterns(next(code for code in codes if code in lists))
    plain = fold_question(question)
    place, kind = _find_question_word(question, patterns, language)
    words = []
    if kind in ("other", "number"):
        words = _content_words_at(plain, place, patterns, language)
        if patterns.asks_about_clause(WORD.findall(plain, place), words, kind):
            words = []
    counts = patterns.counts.finditer(plain) if patterns.counts else ()
    is_counted = any(found.end() == place for found in counts)
    if is_counted:
        words = _cut_at_verb(words, language)
        is_counted = bool(words) and patterns.any_counted.isdisjoint(words)
    nouns = tuple(dict.fromkeys(map(stem_word, words)))
    if kind in ("other", "person") and _asks_for_definition(question, plain, patterns, language):
        return WantedAnswer("definition", nouns)
    categories: tuple[str, ...] = ()
    next_word = "".join(WORD.findall(plain, place)[:1])
    if kind == "other" and (next_kind := _kind_of_nouns(next_word, patterns)) != "other":
        if next_word not in words:
            # A function word in German: "In welchem Jahr".
            kind, categories = next_kind, (stem_word(next_word),)
        elif next_kind == _kind_of_nouns(" ".join(words), patterns):
            categories = nouns[:1]
        if next_kind not in KINDS_OF_CATEGORIES:
            categories = ()
    if kind == "other" and words:
        kind = _kind_of_nouns(" ".join(words), patterns)
        if kind == "date":
            # "What was the date of the fire?"
            dates = [word for word in words if _kind_of_nouns(word, patterns) == kind]
            categories = tuple(dict.fromkeys((*categories, *map(stem_word, dates))))
    categories += _find_empty_nouns(plain, place, words, patterns)
    if kind == "reason":
        # "What caused the fire?": a reason seldom says "cause".
        asking = WORD.findall(plain[:place])[-1:]
        stop_words = stop_words_of(language)
        categories = tuple(stem_word(word) for word in asking if word not in stop_words)
    is_subject = kind == "person" and _asks_for_subject(plain, patterns, language)
    heads = [word for word in words if kind != "other" and _kind_of_nouns(word, patterns) == kind]
    head = stem_word(heads[-1]) if heads else ""
    return WantedAnswer(kind, nouns, is_subject, categories, head, is_counted)


def find_question_language(question: str, of_documents: Set[str] = frozenset()) -> Language:
    """Detect the language of a question: a short one by its first words, if by nothing else.

    "Combien coûte le billet ?" has few function words, but only French asks so. A capital after a
    word such as "die" shows German: "Baute Olga die Mühle?". What may be in several languages, such
    as "Is Olga blind?", is in one of those of the documents. "Besuchte Olga Rom?" is in the only
    one of them whose questions begin with any verb. "Altdorf?" is in none.
    """
    language = language_in(question)
    if language.code != "und":
        return language
    plain = fold_question(question)
    lists = read_lists("answer_kinds", Path(__file__).parent)
    codes = [
        code
        for code in lists
        if any(pattern.match(plain) for pattern in _compile_patterns(code).questions.values())
    ]
    words = WORD.findall(question)
    if not codes and question.rstrip().endswith("?"):
        articles = language_of("de").determiners
        pairs = pairwise(words)
        codes = ["de" for word, noun in pairs if word in articles and noun[0].isupper()][:1]
        if not codes and len(words) >= MIN_WORDS_WITH_VERB:
            codes = sorted(CODES_WITH_ANY_VERB_FIRST & of_documents)
    likely = [code for code in codes if code in of_documents]
    if not codes:
        held = {word.lower() for word in words}
        likely = [code for code in of_documents if held & language_of(code).function_words]
    # "Is Olga blind?" may be Dutch, too; without documents in it, English is the most likely.
    likely = likely or [code for code in codes if len(codes) == 1 or code == "en"]
    return language_of(likely[0]) if len(likely) == 1 else language


def _asks_for_subject(plain: str, patterns: _KindPatterns, language: Language) -> bool:
    """Return whether a question begins with "who" and a verb that is no auxiliary."""
    found = re.match(rf"{re.escape(patterns.nominative)}\s+(\w+)", plain)
    stop_words = {fold(word) for word in stop_words_of(language)}
    return found is not None and found[1] not in stop_words


def _find_question_word(
    question: str, patterns: _KindPatterns, language: Language
) -> tuple[int, str]:
    """Return the place after the word that asks, in the folded question, and the kind it wants.

    Words such as "where" and "which" also begin relative clauses. So the first word or the word
    after a preposition at the start counts, and else the last one, if possible one that begins no
    relative clause: "In 1990, what was the size of the town where Ann lived?". Without a word that
    asks, a question may begin with its verb.
    """
    plain = fold_question(question)
    found = [
        (match.start(), match.end(), kind)
        for kind, pattern in patterns.questions.items()
        for match in pattern.finditer(plain)
    ]
    if patterns.interrogatives:
        found += [
            (match.start(), match.end(), "other")
            for match in patterns.interrogatives.finditer(plain)
        ]
    # The sort is stable: of two kinds at one place, the first in the lists counts.
    found.sort(key=lambda match: match[0])
    if not found or not _is_near_start(plain, found[0][0]):
        clear = [match for match in found if _asks(question, plain, match[0], language.code)]
        if not clear and _begins_with_verb(question, language):
            return len(plain), "yes_no"
    if not found:
        return len(plain), "other"
    first = found[0]
    if not _is_near_start(plain, first[0]):
        clear = [match for match in found if not patterns.is_relative(plain[match[0] : match[1]])]
        last = (clear or found)[-1][0]
        first = next(match for match in found if match[0] == last)
    return first[1], first[2]


def _is_near_start(plain: str, place: int) -> bool:
    return plain.count(" ", 0, place) <= MAX_WORDS_BEFORE_FIRST


def _asks(question: str, plain: str, place: int, code: str) -> bool:
    """Return whether an interrogative asks, and joins no clause to a question for yes or no.

    In Spanish, one that asks has an accent. In French, "a-t-il" before it asks for yes or no.
    """
    words = WORD.findall(question.lower())
    i = len(WORD.findall(plain, 0, place))
    if code == "es":
        return i >= len(words) or words[i] != fold(words[i])
    inversion = _INVERSION.search(question) if code == "fr" else None
    return not inversion or len(WORD.findall(question, 0, inversion.start())) >= i


def _begins_with_verb(question: str, language: Language) -> bool:
    """Return whether a question may begin with its verb, or has "a-t-il", and asks no word.

    What begins with an article or a preposition does not: "Der Pol?".
    """
    if not question.rstrip().endswith("?") or language.code not in CODES_WITH_VERB_FIRST:
        return False
    if language.code == "fr":
        return _INVERSION.search(question) is not None
    words = WORD.findall(question.lower())
    return len(words) >= MIN_WORDS_WITH_VERB and words[0] not in stop_words_of(language)


def _content_words_at(
    plain: str, place: int, patterns: _KindPatterns, language: Language
) -> list[str]:
    """Return the first run of content words after a place in a folded question.

    A name in the genitive before the run is left out: "show" for "What is Emily's show?".
    """
    stop_words = {fold(word) for word in stop_words_of(language)}
    run: list[str] = []
    for word in WORD.findall(plain, place):
        if word == "s":
            run = []
        elif word in stop_words or (not run and word in patterns.empty_nouns):
            if run:
                break
        else:
            run.append(word)
    return run[:MAX_NOUN_WORDS]


def _find_empty_nouns(
    plain: str, place: int, nouns: Sequence[str], patterns: _KindPatterns
) -> tuple[str, ...]:
    """Return the stems of words before the nouns that no answer says: "the name of the mill"."""
    if not nouns:
        return ()
    before = WORD.findall(plain[place : plain.index(nouns[0], place)])
    return tuple(stem_word(word) for word in before if word in patterns.empty_nouns)


def _cut_at_verb(words: Sequence[str], language: Language) -> list[str]:
    """Return the words before the first English verb in the past: "delegates voted".

    Behind an adverb, or between a singular and a plural, it is a participle of the noun: "newly
    built houses", "left handed players".
    """
    for i, word in enumerate(words[1:], 1):
        is_past = len(word) >= MIN_CHARS_OF_VERB and word.endswith("ed")
        if not is_past and not find_other_forms(word, language):
            continue
        before, after = words[i - 1], words[i + 1 :]
        is_of_noun = not is_plural(before) and any(map(is_plural, after))
        if not before.endswith("ly") and not is_of_noun:
            return list(words[:i])
    return list(words)


def is_plural(word: str) -> bool:
    """Return whether an English noun, folded, is in the plural: "how many" asks for one."""
    return word.endswith(("s", "men")) or word in IRREGULAR_PLURALS


def _kind_of_nouns(words: str, patterns: _KindPatterns) -> str:
    """Return the kind of the last noun whose kind is known: "film director" is a person."""
    last = {
        kind: max((found.start() for found in pattern.finditer(words)), default=-1)
        for kind, pattern in patterns.nouns.items()
    }
    kind = max(last, key=lambda kind: last[kind], default="other")
    return kind if last.get(kind, -1) >= 0 else "other"


def _asks_for_definition(
    question: str, plain: str, patterns: _KindPatterns, language: Language
) -> bool:
    """Return whether a question asks who or what a name or a short term is."""
    found = patterns.definitions.match(plain) if patterns.definitions else None
    if found is None:
        return False
    words = plain[found.end() :].split()
    is_simple = not re.search(r"\w['’]s\b", question) and not set(words) & _words_of_parts(language)
    return 0 < len(words) <= MAX_WORDS_OF_TERM and is_simple


@cache
def _words_of_parts(language: Language) -> frozenset[str]:
    """Return the folded words that join a noun with what it belongs to, such as "of the"."""
    found = language.place_prepositions | language.other_prepositions | {"of", "the"}
    return frozenset(map(fold, found))


@cache
def _compile_patterns(code: str) -> _KindPatterns:
    lists: Mapping[str, Any] = read_lists("answer_kinds", Path(__file__).parent)[code]

    def read_words(name: str) -> frozenset[str]:
        return frozenset(map(fold, word_set(lists.get(name, ""))))

    def compile_optional(name: str) -> re.Pattern[str] | None:
        return compile_phrases(lists[name]) if name in lists else None

    return _KindPatterns(
        {kind: compile_phrases(phrases) for kind, phrases in lists["questions"].items()},
        {kind: compile_phrases(phrases) for kind, phrases in lists.get("nouns", {}).items()},
        compile_optional("interrogatives"),
        compile_optional("definitions"),
        read_words("empty_nouns"),
        read_words("relatives"),
        read_words("clause_starts"),
        read_words("copulas"),
        read_words("last_words"),
        compile_optional("counts"),
        read_words("any_counted"),
        fold(lists["questions"]["person"].split("|")[0]).strip(),
    )
