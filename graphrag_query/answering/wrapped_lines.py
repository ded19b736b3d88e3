"""Lines of letters of fixed width, whose sentences go on in the next line."""

import re

from graphrag_nlp.text.languages import detect_language, language_of

# Minimum number of characters of a line whose sentence may go on in the next line.
MIN_CHARS_OF_FULL_LINE = 40
_LINE = re.compile(r"[^\n]+")
# Marks of quoted letters before a line, and indents.
_MARKS = "> \t"
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)]*(?:\s|$)")


def is_open_line(line: str) -> bool:
    """Return whether a line is full and ends with a word or a comma."""
    line = line.rstrip()
    return len(line) >= MIN_CHARS_OF_FULL_LINE and (line[-1].isalnum() or line[-1] == ",")


def find_lines(text: str, start: int, end: int, *, is_letter: bool) -> list[tuple[int, int]]:
    """Find the spans of lines. In a letter, lines that go on with a sentence are one."""
    spans: list[tuple[int, int]] = []
    before = ""
    for line in _LINE.finditer(text, start, end):
        is_next = bool(spans) and line.start() == spans[-1][1] + 1
        if is_letter and is_next and _goes_on(before, line[0]):
            spans[-1] = (spans[-1][0], line.end())
        else:
            spans.append(line.span())
        before = line[0]
    return spans


def _goes_on(line: str, following: str) -> bool:
    """Return whether a sentence goes on in the next line of a letter.

    The next line has as many marks of quotation, and begins with a small letter, or the line before
    ends with a function word. It is full too, or a sentence ends in it, unlike verses, list items,
    signatures and code.
    """
    words, next_words = line.lstrip(_MARKS), following.lstrip(_MARKS)
    depth, next_depth = (
        one.removesuffix(rest).count(">") for one, rest in ((line, words), (following, next_words))
    )
    is_prose = len(following) >= MIN_CHARS_OF_FULL_LINE or _SENTENCE_END.search(following)
    if depth != next_depth or not is_prose or not is_open_line(line):
        return False
    first, last = next_words[:1], words.rstrip(", \t").rpartition(" ")[2].lower()
    if not first.isalpha() or first.islower():
        return first.islower()
    return last in language_of(detect_language(line)).function_words
