"""Sentences behind the best one, and short sentences: which of them are worth a quotation."""

import re
from dataclasses import replace

from graphrag_nlp.text.normalize import stem_word
from graphrag_query.answering.asked_words import AskedWords
from graphrag_query.answering.extractive import Candidate, is_question
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import WORD

# Minimum number of words of a short sentence that may be quoted: a subject, a verb and one more.
MIN_WORDS_OF_SHORT = 3
# Maximum number of words of a value, such as a cell of a table, a field or a link of a menu.
MAX_WORDS_OF_VALUE = 4
# The place and date before the agency of a report: "ROME, May 3. ".
_PLACE_AND_DATE = r"[A-Z][A-Z'. -]+(?:, [A-Z][\w ]+)?[.,]?\s*"
_AGENCIES_IN_SMALL_LETTERS = r"dpa(?:-AFX)?|sda|apa|epd|kna|Reuters|Xinhua"
# What stands before the first sentence of a report: "ROME, May 3. /ANSA/.", "BERN (AP) - ".
_DATELINE = re.compile(
    rf"(?:(?:{_PLACE_AND_DATE})?/[A-Z]{{2,}}/[\s.:–—-]*"
    rf"|(?P<unsure>{_PLACE_AND_DATE}\((?:[A-Z]{{2,7}}|{_AGENCIES_IN_SMALL_LETTERS})\)\s*[–—-]+\s*))"
    r"(?=[\"'“‘]?[A-Z])"
)
_SENTENCE_END = re.compile(r"[.!…][\"'”’»)]*$")


def adds_nothing(candidate: Candidate, asked: AskedWords) -> bool:
    """Return whether a statement says nothing beside the best one that is quoted before it.

    It is the row above a table. Or it is a question, one or two words of a speaker, or a value in
    a table, a record or a list, and has no word of the question, and neither has its column: the
    other cells of the row which answers.
    """
    text = candidate.text.strip()
    if is_table_row(candidate):
        return True
    n_words = len(text.split())
    if candidate.in_turn:
        is_empty = n_words < MIN_WORDS_OF_SHORT
    else:
        is_value = n_words <= MAX_WORDS_OF_VALUE and not _SENTENCE_END.search(text)
        is_empty = bool(candidate.label) and is_value
    if not is_empty and not is_question(text):
        return False
    column = "" if candidate.in_list or candidate.in_turn else candidate.label.rpartition(", ")[2]
    return not any(map(asked.find, WORD.findall(f"{column} {text}".lower())))


def is_table_row(candidate: Candidate) -> bool:
    """Return whether a statement is a whole row of a table, such as the names of its columns."""
    return candidate.text.lstrip().startswith("|")


def cut_dateline(candidate: Candidate, asked: AskedWords) -> Candidate:
    """Return a sentence without a dateline at its start.

    "NASA (USA) - " may also begin a definition: it stays if it has a word of the question.
    """
    found = _DATELINE.match(candidate.text)
    if found is None or candidate.label:
        return candidate
    if found["unsure"] and any(map(asked.find, WORD.findall(found[0].lower()))):
        return candidate
    n = found.end()
    return replace(candidate, text=candidate.text[n:], start_char=candidate.start_char + n)


def is_short_answer(candidate: Candidate, question: Question) -> bool:
    """Return whether a sentence too short for prose holds all words of the question.

    "Four houses collapsed." answers "How many houses collapsed?".
    """
    text = candidate.text.strip()
    if candidate.prose or not text[:1].isupper() or not _SENTENCE_END.search(text):
        return False
    words = WORD.findall(text.lower())
    asked = frozenset(question.content_words)
    if len(words) < MIN_WORDS_OF_SHORT or not asked:
        return False
    forms = question.stems_of_forms
    return asked <= {forms.get(stem, stem) for stem in map(stem_word, words)}
