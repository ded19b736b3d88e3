"""Names in headings and sentences in capital letters: bodies, states and known places."""

import re
from collections.abc import Iterator

from graphrag_nlp.names.name_words import HEAD_FIRST, common_words, is_organization_word
from graphrag_nlp.names.sentence_case import MIN_HEADLINE_WORDS
from graphrag_nlp.text.languages import Language, read_lists, word_set
from graphrag_nlp.text.places import large_place_names

STATES = word_set(read_lists("graphrag_nlp/names/data/words")["states"])
_SHOUTED_WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?\.?,?")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
# Languages in which the head of a body is its first word.
_HEAD_FIRST = HEAD_FIRST | {"ro"}
# Particles inside the names of bodies: Cour de cassation, Supreme Court of Victoria.
_PARTICLES = word_set("of for de du des del la las los le les l der für")
_CONJUNCTIONS = word_set("and und et y e")
# Minimum number of characters of a body in capitals, and of one with a line for its only word.
MIN_BODY_CHARS, MIN_BODY_WORD_CHARS = 8, 12


def find_shouted_line(text: str, match: re.Match[str], language: Language) -> str:
    """Return the first line of a span if it is a headline in capital letters, or ""."""
    line = match.group().partition("\n")[0]
    if not line.isupper():
        return ""
    if line.count(" ") >= MIN_HEADLINE_WORDS - 1:
        return line
    # A short heading counts if it stands alone, and is a body: TRIBUNAL SUPREMO.
    start, end = match.start(), match.start() + len(line)
    is_alone = text[max(0, start - 1) : start] in ("", "\n") and text[end : end + 1] == "\n"
    return line if is_alone and any(_find_bodies(text, start, end, language)) else ""


def find_shouted_names(
    text: str, start: int, end: int, language: Language
) -> Iterator[tuple[int, int, bool]]:
    """Yield the bodies, and the known places, in a text in capitals: (start, end, is a body)."""
    bodies = list(_find_bodies(text, start, end, language))
    for first, last in bodies:
        yield first, last, True
    for word in _LONG_WORD.finditer(text, start, end):
        name = word.group().lower()
        if any(first <= word.start() < last for first, last in bodies):
            continue
        if name in large_place_names() and name not in common_words(language.code):
            yield word.start(), word.end(), False


def _find_bodies(text: str, start: int, end: int, language: Language) -> Iterator[tuple[int, int]]:
    """Yield the spans of bodies and states in a heading in capital letters."""
    words = list(_SHOUTED_WORD.finditer(text, start, end))
    last_end = -1
    for at, word in enumerate(words):
        lower = word.group().rstrip(".,").lower()
        is_state = lower in STATES
        if word.start() < last_end or not (is_state or is_organization_word(lower)):
            continue
        first, last = at, at
        inside = _PARTICLES if is_state else _PARTICLES | _CONJUNCTIONS
        outside = language.function_words - inside
        if language.code not in _HEAD_FIRST and not is_state:
            while first and _are_joined(text, words[first - 1], words[first]):
                before = words[first - 1].group().lower()
                if before in language.function_words or len(before) < 2:
                    break
                first -= 1
        while last + 1 < len(words) and _are_joined(text, words[last], words[last + 1]):
            if words[last + 1].group().rstrip(".,").lower() in outside | _CONJUNCTIONS - inside:
                break
            last += 1
        while last > at and words[last].group().lower() in inside:
            last -= 1
        last_end = words[last].start() + len(words[last].group().rstrip(".,"))
        is_long = len(words) == 1 and len(lower) >= MIN_BODY_WORD_CHARS
        if is_long or (last > first and last_end - words[first].start() >= MIN_BODY_CHARS):
            yield words[first].start(), last_end


def _are_joined(text: str, word: re.Match[str], following: re.Match[str]) -> bool:
    """Return whether only a space or an apostrophe is between two words."""
    return text[word.end() : following.start()] in (" ", "'", "’") and word.group()[-1] not in ".,"
