"""Lists in running text: "two parts: a; and b", or "two parts. The first ..."."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from graphrag_nlp.text.languages import read_lists
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.extractive import Candidate, as_one_line
from graphrag_query.question.question_words import WORD

# Maximum number of words between a number and the noun that the question asks for.
MAX_WORDS_TO_NOUN = 2
# Maximum number of words before the ordinal of an item, and of sentences between two items.
MAX_WORDS_TO_ORDINAL = 3
MAX_SENTENCES_BETWEEN = 2
# Numbers of items that an announcement may have.
DIGITS = frozenset("23456")
# The parts of a sentence after a colon, between semicolons.
_LISTED = re.compile(r"^([^:;]+):\s+(?![\"“„«'‘])([^:]*;[^:]*)$")
_ITEM = re.compile(r"[^;]+")
_END_MARKS = " \n.;,"


def find_announced_list(
    best: Candidate, candidates: Sequence[Candidate], asked: AskedWords, code: str
) -> list[Candidate]:
    """Return the items of a list in running text that the best sentence is part of; or nothing.

    The label of each item is what announces the list. It has words of the question, and no item
    has further ones: then no item answers better than another. `code` is that of the language.
    "What is the second part?" asks for one item.
    """
    ordinals = (*_patterns("ordinals", code), *_patterns("last", code))
    asks_for_one = any(one.fullmatch(word) for one in ordinals for word in asked.places)
    if best.label or not best.prose or asks_for_one:
        return []
    items = _split_at_semicolons(best, code) or _find_numbered(best, candidates, asked, code)
    words = [_asked_in(item.text, asked) for item in items]
    announced = _asked_in(items[0].label, asked) if items else frozenset()
    return items if announced and all(own <= announced for own in words) else []


def _split_at_semicolons(sentence: Candidate, code: str) -> list[Candidate]:
    found = _LISTED.match(sentence.text)
    if not found:
        return []
    joint = rf"\s*(?:(?:{'|'.join(_conjunctions(code))})\s)?\s*"
    items = []
    for part in _ITEM.finditer(sentence.text, found.start(2)):
        skipped = re.match(joint, part[0], re.IGNORECASE)
        text = part[0][skipped.end() if skipped else 0 :].rstrip(_END_MARKS)
        start = sentence.start_char + part.start() + (skipped.end() if skipped else 0)
        if text:
            items.append(
                replace(
                    sentence,
                    text=text,
                    start_char=start,
                    end_char=start + len(text),
                    label=as_one_line(found[1]),
                )
            )
    return items if len(items) > 1 else []


def _find_numbered(
    best: Candidate, candidates: Sequence[Candidate], asked: AskedWords, code: str
) -> list[Candidate]:
    """Return as many sentences with ordinals as the sentence before them announces."""
    unit = [c for c in candidates if c.text_unit == best.text_unit and c.prose and not c.label]
    for place, sentence in enumerate(unit):
        number = _announced_number(sentence.text, asked, code)
        items: list[Candidate] = []
        left = MAX_SENTENCES_BETWEEN
        for item in unit[place + 1 :] if number else ():
            if _begins_item(item.text, len(items), number, code):
                items.append(item)
                left = MAX_SENTENCES_BETWEEN
            elif items and left:
                left -= 1
            else:
                break
            if len(items) == number:
                if best in (sentence, *items):
                    label = as_one_line(sentence.text).rstrip(".: ")
                    return [replace(item, label=label) for item in items]
                break
    return []


def _announced_number(text: str, asked: AskedWords, code: str) -> int:
    """Return the number before a word of the question, 2 to 6; 0 if none."""
    words = WORD.findall(text.lower())
    for i, word in enumerate(words):
        numbers = (n for n, one in enumerate(_patterns("numbers", code), 2) if one.fullmatch(word))
        number = next(numbers, int(word) if word in DIGITS else 0)
        if number and _asked_in(" ".join(words[i + 1 : i + 2 + MAX_WORDS_TO_NOUN]), asked):
            return number
    return 0


def _begins_item(text: str, n_before: int, number: int, code: str) -> bool:
    """Return whether a sentence begins with the ordinal after `n_before` others, of `number`."""
    words = WORD.findall(text.lower())[:MAX_WORDS_TO_ORDINAL]
    patterns = [*_patterns("ordinals", code)[n_before : n_before + 1]]
    if 0 < n_before == number - 1:
        patterns += _patterns("last", code)
    return any(pattern.fullmatch(word) for pattern in patterns for word in words)


def _asked_in(text: str, asked: AskedWords) -> frozenset[str]:
    """Return the words of the question that a text holds, or means as well."""
    words = WORD.findall(text.lower())
    return (frozenset(map(asked.find, words)) | asked.find_related(words)) - {""}


@cache
def _patterns(name: str, code: str) -> tuple[re.Pattern[str], ...]:
    """Compile the words of a list in a language, one pattern for each place."""
    listed = read_lists("announced_lists", Path(__file__).parent)[name].get(code, "")
    return tuple(
        re.compile("|".join(re.escape(word).replace(r"\*", r"\w*") for word in words.split()))
        for words in filter(str.strip, listed.split("|"))
    )


def _conjunctions(code: str) -> list[str]:
    words = read_lists("direct_answers", Path(__file__).parent)["conjunctions"]
    return [re.escape(word) for word in words.get(code, words["en"]).split()]
