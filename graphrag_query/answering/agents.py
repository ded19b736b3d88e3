"""Who or what did what a question asks about: "rescued by the Alpha"."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from graphrag_nlp.text.languages import Language, read_lists, word_set
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.question.question_words import WORD, stop_words_of

# Maximum number of words of an agent, with words that belong to it.
MAX_WORDS_OF_AGENT = 8
# Maximum number of words between a verb and the thing that something is done to: "all the 22".
MAX_WORDS_TO_PATIENT = 3
# Marks that end a clause.
_MARK = re.compile(r"[^\w\s'’-]")


class Agent(NamedTuple):
    """The place in a sentence of whoever did what the question asks about."""

    start: int
    end: int


class _Token(NamedTuple):
    start: int
    end: int
    word: str
    is_verb: bool  # a word of the question that is no name, or another word that means the same
    is_asked: bool
    place: int  # in the question; 0 for other words


def find_agents(
    sentence: str, asked: AskedWords, language: Language, *, only_passive: bool = False
) -> list[Agent]:
    """Find who or what did what the question asks about; nobody whom the question names.

    An agent stands before the verb and the thing that it is done to ("the Alpha rescued the men"),
    or after a verb and a word such as "by". In German and Dutch the verb may follow.
    `only_passive` needs a question with the verb behind the thing: "How were the men rescued?".
    """
    tokens = []
    for found in WORD.finditer(sentence):
        word = found[0].lower()
        stem = asked.find(word)
        stem = stem or next(iter(sorted(asked.find_related([word]))), "")
        is_verb = stem in asked.beside_names
        place = asked.places.get(stem, 0)
        tokens.append(_Token(*found.span(), word, is_verb, bool(stem), place))
    agents = []
    stop_words = stop_words_of(language)
    runs = [
        *_before_verbs(sentence, tokens, language, only_passive),
        *_after_by(sentence, tokens, language),
    ]
    for run in runs:
        is_new = any(token.word not in stop_words for token in run)
        if is_new and not any(token.is_asked for token in run):
            agents.append(Agent(run[0].start, run[-1].end))
    return agents


def is_passive(question: str, language: Language) -> bool:
    """Return whether a question has an auxiliary of the passive, as in "How were they rescued?"."""
    return not _words("auxiliaries", language).isdisjoint(WORD.findall(question.lower()))


def asks_for_agent(question: str, language: Language) -> bool:
    """Return whether a question begins or ends with a word such as "by": "By whom was it made?"."""
    words = WORD.findall(question.lower()) or [""]
    return not _words("agent_words", language).isdisjoint((words[0], words[-1]))


def find_named_agents(text: str, language: Language) -> set[str]:
    """Return the words with a capital after words such as "by", up to a mark, in lower case."""
    found = set[str]()
    tokens = list(WORD.finditer(text))
    words = _words("agent_words", language)
    for i, by in enumerate(tokens):
        if by[0].lower() in words:
            after = tokens[i + 1 : i + 1 + MAX_WORDS_OF_AGENT]
            named = (t[0] for t in after if not _MARK.search(text, by.end(), t.start()))
            found.update(word.lower() for word in named if word[0].isupper())
    return found


def _before_verbs(
    sentence: str, tokens: Sequence[_Token], language: Language, only_passive: bool
) -> Iterator[Sequence[_Token]]:
    """Yield the words of the clause before each verb, if a thing of the question follows it."""
    stop_words = stop_words_of(language)
    determiners = language.determiners | language.articles
    for i, verb in enumerate(tokens):
        if not i or not verb.is_verb or tokens[i - 1].word in stop_words:
            continue
        for token in tokens[i + 1 : i + 2 + MAX_WORDS_TO_PATIENT]:
            if token.is_asked:
                is_passive = token.place < verb.place or not only_passive
                if is_passive and not _MARK.search(sentence, verb.end, token.start):
                    yield _same_clause(sentence, tokens[max(0, i - MAX_WORDS_OF_AGENT) : i], verb)
                break
            if token.word not in determiners and not token.word.isdigit():
                break


def _after_by(
    sentence: str, tokens: Sequence[_Token], language: Language
) -> Iterator[Sequence[_Token]]:
    """Yield the words after "by" that stands beside a verb."""
    words = _words("agent_words", language)
    for i, by in enumerate(tokens):
        if by.word not in words:
            continue
        after = tokens[i + 1 : i + 2 + MAX_WORDS_OF_AGENT]
        clause = _same_clause(sentence, after, by)
        if i and tokens[i - 1].is_verb:
            yield clause[:MAX_WORDS_OF_AGENT]
        elif language.code in _LISTS["verb_last"].split():
            place = next((n for n, token in enumerate(clause) if token.is_verb), 0)
            yield clause[:place]


def _same_clause(sentence: str, run: Sequence[_Token], beside: _Token) -> Sequence[_Token]:
    """Return the words of a run that no mark parts from the word beside it."""
    if run and run[0].start > beside.start:
        return [t for t in run if not _MARK.search(sentence, beside.end, t.start)]
    return [t for t in run if not _MARK.search(sentence, t.end, beside.start)]


def _words(name: str, language: Language) -> frozenset[str]:
    return frozenset(word_set(_LISTS[name].get(language.code, "")))


_LISTS = read_lists("agents", Path(__file__).parent)
