"""Typical words of questions, which show the kind of answer that a question asks for."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from graphrag_nlp.text.languages import language_of, read_lists
from graphrag_nlp.text.normalize import fold, is_unspaced
from graphrag_query.question.question_words import WORD

# Maximum number of words before the only verb of a question: "How did the climate change?"
MAX_WORDS_BEFORE_VERB = 4
# Maximum number of words of "What is discussed?": a place may stand in it.
MAX_WORDS_OF_ALL = 5
_GAP = r"\s((?:\w+\s){0,6}?)"


def find_cues(question: str) -> dict[str, str]:
    """Map kinds of answers, such as `summary`, to the words of a question that ask for them."""
    plain = fold_question(question)
    found = {kind: pattern.search(plain) for kind, pattern in compile_cues().items()}
    return {kind: match.group().strip() for kind, match in found.items() if match}


def asks_for_everything(question: str) -> bool:
    """Return whether a question asks for all that is said of its subject, and not for one thing.

    "What do the documents tell about Ann?" and "Summarize the life of Ann." do, and "What is the
    main work of Ann?" does not.
    """
    cues = find_cues(question).keys()
    return "whole" in cues or ("summary" in cues and "listing" not in cues)


def asks_what_is_told(question: str) -> bool:
    """Return whether a question ends with what documents do: "Which attacks are reported?".

    "Which ships are mentioned by Amundsen?" asks for less.
    """
    plain = fold_question(question)
    told = compile_cues()["told"].match(plain)
    is_whole = told is not None and told.end() == len(plain)
    return is_whole or asks_what_all_tell(question)


def asks_what_all_tell(question: str) -> bool:
    """Return whether a short question asks for all that is told: "What is discussed?"."""
    plain = fold_question(question)
    told = compile_cues()["told_in_all"].match(plain)
    is_short = len(plain.split()) <= MAX_WORDS_OF_ALL
    return told is not None and told.end() == len(plain) and is_short


def asks_for_change(question: str) -> bool:
    """Return whether a question asks how something changed over time.

    "How did the attack change the law?" and "How do people see climate change?" do not.
    """
    plain = fold_question(question)
    return bool(compile_cues()["trend"].search(plain) or _find_changes(plain))


def asks_for_course_of_time(question: str) -> bool:
    """Return whether a question says that it asks about a time: "over the years"."""
    return bool(compile_cues()["trend"].search(fold_question(question)))


def _find_changes(plain: str) -> list[re.Match[str]]:
    """Find the words of a folded question that ask how something, or what, changed."""
    patterns = compile_cues()
    trends = {match.start() - 1 for match in patterns["trend"].finditer(plain)}
    ends = {len(plain), *trends}
    if what := patterns["asks_what_changed"].match(plain):
        is_whole = what.end() in ends or patterns["before_place"].match(plain, what.end() + 1)
        return [what] if is_whole else []
    return [
        match
        for match in patterns["change"].finditer(plain)
        if match.end() in ends
        and patterns["before_change"].search(plain, 0, match.start())
        and not _is_noun(match.group(), plain[: match.start()].split())
    ]


def _is_noun(word: str, before: Sequence[str]) -> bool:
    """Return whether a word for change is a noun after words: "How did Ann see climate change?".

    In "How did the climate change?", there is no other verb, and in "How did the colour of the sea
    change?", an article shows that "sea" is the end of the subject. "How did people react to the
    climate change?" has another verb, unless it is in the subject, as in "the way people react".
    """
    if word != "change" or len(before) <= MAX_WORDS_BEFORE_VERB:
        return False
    patterns, articles = compile_cues(), language_of("en").articles
    plain = " ".join(before)
    auxiliary, verb = (patterns[kind].search(plain) for kind in ("auxiliary", "dealing_with"))
    if auxiliary and verb:
        subject = plain[auxiliary.end() + 1 : verb.start()]
        if not (subject.endswith(" to ") or patterns["in_subject"].search(subject)):
            return True
    # One word may stand between them: "the Arctic climate".
    has_article = not articles.isdisjoint(before[-3:-1])
    kinds = ("before_noun",) if has_article else ("before_noun", "nouns_before_noun")
    return any(patterns[kind].fullmatch(before[-1]) for kind in kinds)


def remove_change(question: str) -> str:
    """Return a question without the words that ask how something changed over time.

    Words for a change that is the subject are kept: "How did views on climate change evolve?"
    """
    words = WORD.findall(question)
    plain = " ".join(map(fold, words))
    for match in reversed(_find_changes(plain)):
        first = plain.count(" ", 0, match.start())
        del words[first : first + len(match.group().split())]
    return remove_cues(" ".join(words), "trend")


def remove_telling(question: str) -> str:
    """Return a question for things without the words on who says them, and on saying.

    "What problems do customers report?" asks for problems, and "Which organizations are
    criticised?" for organizations. "Which customers are named?" asks for customers, and "How did
    people react to the storm?" for the storm. In "Who thought of the idea?", nobody tells.
    """
    patterns, words = compile_cues("telling"), WORD.findall(question)
    plain = " ".join(map(fold, words))
    asking = patterns["asking_for_things"].match(plain)
    reactions = list(patterns["opinions"].finditer(plain))
    if patterns["asking_for_reactions"].match(plain) and patterns["tellers"].search(plain):
        reactions += patterns["reacting"].finditer(plain)
    for reaction in reactions[:1]:
        reactions += patterns["tellers"].finditer(plain, 0, reaction.start())
    if asking is None:
        return _drop_words(words, plain, reactions) if reactions else question
    said = [
        match
        for match in patterns["telling"].finditer(plain, asking.end() + 1)
        if not patterns["origin_of_name"].match(plain, match.end() + 1)
    ]
    tellers = [
        match
        for match in patterns["tellers"].finditer(plain, asking.end())
        # Directly after "which" stands what is asked for.
        if match.start() > asking.end() + 1 and any(_are_near(plain, match, verb) for verb in said)
    ]
    passives = {match.end() + 1 for match in patterns["passive"].finditer(plain)}
    verbs = [
        verb
        for verb in said
        if verb.start() in passives or any(_are_near(plain, verb, teller) for teller in tellers)
    ]
    dropped = [*tellers, *verbs, *reactions]
    return _drop_words(words, plain, dropped) if dropped else question


def _drop_words(words: Sequence[str], plain: str, matches: Iterable[re.Match[str]]) -> str:
    """Return words without those in matches in the folded text of all words."""
    dropped: set[int] = set()
    for match in matches:
        first = plain.count(" ", 0, match.start())
        dropped.update(range(first, first + len(match.group().split())))
    return " ".join(word for number, word in enumerate(words) if number not in dropped)


def _are_near(plain: str, first: re.Match[str], second: re.Match[str]) -> bool:
    """Return whether at most one word stands between two matches in a folded question."""
    end, start = min(first.end(), second.end()), max(first.start(), second.start())
    return len(plain[end:start].split()) <= 1


def remove_cues(question: str, *kinds: str) -> str:
    """Return a question without the words that ask for these kinds of answers.

    A question in a script without spaces is folded, and the words are cut out of longer runs of
    letters.
    """
    if is_unspaced(question):
        parts = sorted(_cue_words(question, *kinds, "filler"), key=len, reverse=True)
        return re.sub("|".join(map(re.escape, parts)), " ", fold_question(question))
    cues = _cue_words(question, *kinds)
    return " ".join(word for word in WORD.findall(question) if fold(word) not in cues)


def remove_corpus_references(question: str) -> str:
    """Return a question without the words that mean the corpus, as in "in this handbook"."""
    meant = {match["document"] for match in _corpus_references().finditer(fold_question(question))}
    if not meant:
        return question
    return " ".join(word for word in WORD.findall(question) if fold(word) not in meant)


@cache
def _corpus_references() -> re.Pattern[str]:
    cues = compile_cues()
    documents = f"{cues['documents'].pattern}|{cues['books'].pattern}"
    # One word may stand between them: "these long chats".
    before = rf"(?:{cues['this_corpus'].pattern})\s(?:\w+\s)?"
    return re.compile(rf"{before}(?P<document>{documents})")


def _cue_words(question: str, *kinds: str) -> set[str]:
    """Return the folded words of a question that ask for these kinds of answers."""
    plain, patterns = fold_question(question), compile_cues()
    words: set[str] = set()
    for kind in kinds:
        for match in patterns[kind].finditer(plain):
            between = " ".join(filter(None, match.groups())).split()
            words.update(set(match.group().split()).difference(between))
    return words


def fold_question(question: str) -> str:
    """Fold the words of a question and remove its punctuation."""
    return " ".join(re.sub(r"['’¿¡?!.,;:-]", " ", _fold_words(question)).split())


def _fold_words(text: str) -> str:
    """Fold each word of a text and keep the other characters."""
    return re.sub(r"(?:[^\W_]|[\u0300-\u036f])+", lambda word: fold(word.group()), text)


@cache
def compile_cues(name: str = "cues") -> dict[str, re.Pattern[str]]:
    """Compile the typical words of questions into patterns, one per kind of answer."""
    cues = read_lists(name, Path(__file__).parent)
    return {kind: compile_phrases(phrases) for kind, phrases in cues.items()}


def compile_phrases(phrases: str) -> re.Pattern[str]:
    """Compile phrases, separated by "|", into a pattern for folded questions."""
    parts = []
    for phrase in (part.strip() for part in phrases.split("|")):
        start = "^" if phrase.startswith("^") else ""
        plain = _fold_words(phrase.removeprefix("^"))
        # In the word lists, "_" means up to six words between two words.
        pattern = re.escape(plain).replace(r"\ _\ ", _GAP)
        pattern = pattern.replace(r"\*", r"\w*").replace(r"\ ", r"\s+")
        bound = "" if is_unspaced(phrase) else r"\b"
        end = "" if plain.endswith(("*", '"', "“")) or not bound else r"\b"
        parts.append(f"{start}{bound}{pattern}{end}")
    return re.compile("|".join(parts))
