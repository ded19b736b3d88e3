"""Case of sentences and lines: headlines, headings, and names in text in capital letters.

In a sentence, a capital may prove a name; in a headline or a heading, it proves nothing. In text in
capital letters, only bodies, states and known places are names.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphrag_nlp.names.name_words import HEAD_FIRST, common_words, is_organization_word
from graphrag_nlp.text.languages import Language, read_lists, word_set
from graphrag_nlp.text.places import large_place_names
from graphrag_nlp.text.sentences import Sentence

# Minimum share of words with a capital in a headline such as "Voters Reject Plan for Bridge", and
# minimum number of its words.
MIN_CAPITALIZED_SHARE, MIN_HEADLINE_WORDS = 0.6, 4
# Minimum share of words in lower case in a line that is a sentence without a full stop.
MIN_LOWER_SHARE, MIN_LOWER_SHARE_GERMAN, MIN_LOWER_SHARE_ROMANCE = 0.5, 0.3, 0.35
# Headlines of Romance languages have the case of sentences: Audiard de retour à Cannes. Minimum
# number of capitals that only title case has.
MIN_ROMANCE_CAPITALS, MIN_ROMANCE_SHARE = 5, 0.8
# German words in lower case that end as verbs do: Zeiss kauft Dorc.
_GERMAN_VERB = re.compile(r"[a-zäöüß]{3,}t")
MIN_GERMAN_CLAUSE_WORDS = 3
_NON_SPACE = re.compile(r"\S")
_SENTENCE_ENDS = frozenset(".!?…")
# The number of a section, at the start of a line: 5.4.3. Removing a Package, A.2 Ubuntu.
_SECTION = re.compile(r"[^\S\n]*(?:[-*] )?(?:[A-Z]|\d+)(?:\.\d+)+\.?[^\S\n]+(?=[A-Z])")
# Words before which a body may be a state: REPUBLIC OF.
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


class SentenceCase(NamedTuple):
    """Start and end of a sentence, and what its capitals prove."""

    start: int
    end: int
    # All letters are capitals: only known places are names for certain.
    is_shouted: bool
    # A capital inside the sentence shows a name. In headings and tables, it may not.
    is_prose: bool
    # An English heading in lists and tables of contents.
    is_heading: bool


def read_case(
    text: str, sentence: Sentence, first_span: str, all_prose: bool, language: Language
) -> SentenceCase:
    """Read the case of a sentence.

    `first_span` are its first words with capitals. `all_prose` is true if each line of the text may
    contain names, since few are whole sentences.
    """
    words = text[sentence.start : sentence.end]
    has_full_stop = words[-1] in _SENTENCE_ENDS
    # The first line may be the headline of a newspaper, which is a sentence.
    # A copy of the text before each sentence would take quadratic time.
    is_first = language.code in HEAD_FIRST and not _NON_SPACE.search(text, 0, sentence.start)
    is_prose = sentence.prose or all_prose or has_full_stop or _is_clause(words, language, is_first)
    # A headline with a full stop begins with several capitals: this is tested fast.
    may_be_headline = not all_prose and (not has_full_stop or first_span.count(" ") > 1)
    is_prose = is_prose and not (may_be_headline and _is_headline(words, language, is_first))
    may_be_heading = language.code == "en" and not sentence.prose and all_prose
    is_heading = may_be_heading and _is_heading(text, sentence.start)
    is_shouted = words.isupper() and " " in words
    return SentenceCase(sentence.start, sentence.end, is_shouted, is_prose, is_heading)


def _is_heading(text: str, start: int) -> bool:
    """Return whether a sentence is a heading with a mark or the number of a section: 2.1 Tests."""
    return text[start] == "#" or _SECTION.match(text, text.rfind("\n", 0, start) + 1) is not None


def _is_headline(sentence: str, language: Language, is_first: bool = False) -> bool:
    """Return whether most words of a sentence without a full stop have a capital.

    `is_first` is true for the first line of a text in a Romance language.
    """
    if language.capitalizes_nouns:
        return False
    words = [word for word in sentence.split() if word.isalpha()]
    if sentence[-1] in _SENTENCE_ENDS and not _has_small_capitals(words[1:], language):
        return False
    long = [word for word in words if len(word) > 3]
    capitals = sum(word[0].isupper() for word in long)
    if is_first:
        return MIN_ROMANCE_CAPITALS <= capitals > MIN_ROMANCE_SHARE * len(long)
    return len(words) >= MIN_HEADLINE_WORDS and capitals > MIN_CAPITALIZED_SHARE * len(long) > 1


def _has_small_capitals(words: Sequence[str], language: Language) -> bool:
    """Return whether most function words have a capital, as in "How To Live With Less"."""
    small = [word for word in words if len(word) > 1 and word.lower() in language.function_words]
    return sum(map(str.istitle, small)) > max(1, len(small) / 2)


def _is_clause(line: str, language: Language, is_first: bool) -> bool:
    """Return whether a line without a full stop reads like a sentence, with few capitals.

    `is_first` is true for the first line of a text in a Romance language.
    """
    words = [word for word in line.split() if word[:1].isalpha()]
    lower = sum(map(str.islower, words))
    functions = sum(word.rstrip(",").lower() in language.function_words for word in words)
    share = MIN_LOWER_SHARE
    if language.capitalizes_nouns:
        share = MIN_LOWER_SHARE_GERMAN
        has_verb = len(words) >= MIN_GERMAN_CLAUSE_WORDS and any(map(_GERMAN_VERB.fullmatch, words))
        if has_verb and lower >= share * len(words):
            return True
    elif is_first:
        share = MIN_LOWER_SHARE_ROMANCE
    return len(words) >= MIN_HEADLINE_WORDS and lower >= share * len(words) and functions > 0


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
