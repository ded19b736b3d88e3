"""Start and end of the spans of capitalized words in a text."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from graphrag_index.nlp import name_words
from graphrag_index.nlp.name_words import is_wrapped_line
from graphrag_index.nlp.nameless import find_nameless_ranges, is_inside
from graphrag_index.text.languages import Language, read_lists
from graphrag_index.text.sentences import Sentence

# The speaker of a line of a chat: "Deliveroo\nSofia: on my way".
_SPEAKER = re.compile(r"\n[^\n:]{1,40}:(?:\s|$)")
# Minimum share of words with a capital in a headline such as "Voters Reject Plan for Bridge", and
# minimum number of its words.
MIN_CAPITALIZED_SHARE, MIN_HEADLINE_WORDS = 0.6, 4
# The form of a company after its name, without the last full stop: Co., Ltd
_COMPANY_FORM = re.compile(rf"\.?, (?:{read_lists('nlp/data/words')['company_forms']})\b")
# An abbreviation without its last full stop: U.S
_DOTTED_END = re.compile(r"\b[^\W\d_]\.[^\W\d_]$")
# The second word of a Latin name in brackets: (Aedes albopictus).
_SPECIES = re.compile(r" [a-z]{3,}(?=\))")
_OPENING_MARKS = frozenset("\"'“„«‘:")
_SENTENCE_ENDS = frozenset(".!?…")


def find_capitalized_spans(
    text: str, sentences: Sequence[Sentence], language: Language
) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield (start, end, whether the span begins a sentence, whether it is in prose)."""
    # Lists, tables and poems have no whole sentences, so each of their lines may contain names.
    in_prose = sum(s.end - s.start for s in sentences if s.prose)
    all_prose = in_prose * 3 < sum(s.end - s.start for s in sentences)
    pattern = name_words.name_pattern(language.code)
    starts = [sentence.start for sentence in sentences]
    reached, current = starts[0], 0
    nameless = find_nameless_ranges(text)
    for capital in name_words.capital_pattern().finditer(text):
        start = capital.start()
        if start < reached or not (match := pattern.match(text, start)):
            continue
        reached = match.end()
        number = bisect_right(starts, start, current)
        if number > current:
            current, sentence = number, sentences[number - 1]
            words = text[sentence.start : sentence.end]
            # Skip a sentence in capital letters, where capitals do not show names.
            shouted = words.isupper() and " " in words
            # In headings and tables, other words than names may be capitalized.
            prose = sentence.prose or all_prose or words[-1] in _SENTENCE_ENDS
            prose = prose and (all_prose or not _is_headline(words, language))
        if not shouted and not (nameless and is_inside(nameless, start)):
            reached = _find_span_end(text, match, sentence.end, language)
            yield start, reached, _may_begin_sentence(text, start, sentence.start, all_prose), prose


def _find_span_end(text: str, match: re.Match[str], sentence_end: int, language: Language) -> int:
    """Return the end of a span, with a full stop and a part after a joint that belong to it."""
    start, end = match.span()
    if end > sentence_end:
        # Drop the full stop: it ends the sentence, and does not mark an initial.
        end = start + len(text[start:sentence_end].rstrip("."))
    elif text[start - 1 : start] == "(" and (species := _SPECIES.match(text, end)):
        return species.end()
    longer = name_words.find_end_after_possessive(text, start, end, language, match.re)
    end = longer if longer <= sentence_end else end
    # Cut the span at the end of a heading, but not where a wrapped line ends.
    if "\n" in text[start:end]:
        line_ends = (start + line.start() for line in re.finditer("\n", text[start:end]))
        cut = next((at for at in line_ends if _is_end_at(text, at)), end)
        if cut < end:
            return cut
    if text[end : end + 1] not in (".", ","):
        return end
    return _find_abbreviation_end(text, start, end, sentence_end)


def _find_abbreviation_end(text: str, start: int, end: int, sentence_end: int) -> int:
    """Return the end of a name with its company form and the stop of its abbreviation.

    Examples: "Halden Optical Co., Ltd.", "U.S.", "Ben K.".
    """
    form = _COMPANY_FORM.match(text, end, sentence_end)
    end = form.end() if form else end
    if text[end : end + 1] != "." or end >= sentence_end:
        return end
    words = text[start:end].split()
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    is_initial = len(last) == 1 and last.isalpha() and before in name_words.more_given_names()
    is_suffix = bool(before) and last.lower() in name_words.NAME_SUFFIXES
    return end + (is_initial or is_suffix or _DOTTED_END.search(last) is not None)


def _is_elision(text: str, at: int) -> bool:
    """Return whether a mark is the apostrophe of an article before a name: l'Italie."""
    return text[at] == "'" and text[at - 1].isalpha()


def _is_end_at(text: str, line_end: int) -> bool:
    """Return whether a span ends at the end of a line: the next line begins something else."""
    if not is_wrapped_line(text, line_end) or _SPEAKER.match(text, line_end):
        return True
    before, after = text[:line_end].rsplit(None, 1)[-1:], text[line_end : line_end + 40].split()[:1]
    # A heading in capitals stands above or below.
    return bool(before and after) and before[0].isupper() != after[0].isupper()


def _is_headline(sentence: str, language: Language) -> bool:
    """Return whether most words of a sentence without a full stop have a capital."""
    if language.capitalizes_nouns or sentence[-1] in _SENTENCE_ENDS:
        return False
    words = [word for word in sentence.split() if word.isalpha()]
    long = [word for word in words if len(word) > 3]
    capitals = sum(word[0].isupper() for word in long)
    return len(words) >= MIN_HEADLINE_WORDS and capitals > MIN_CAPITALIZED_SHARE * len(long) > 1


def _may_begin_sentence(text: str, start: int, sentence_start: int, all_prose: bool) -> bool:
    """Return whether a word begins a sentence, a quotation or a line, so any word has a capital."""
    return (
        start == sentence_start
        or (start <= sentence_start + 2 and not text[sentence_start].isalnum())
        or (text[start - 1] in _OPENING_MARKS and start > 1 and not _is_elision(text, start - 1))
        # After a colon, except acronyms: "Note: Keep it dry", but not "ICAO: KAEX".
        or (start > 1 and text[start - 2 : start] == ": " and not text[start : start + 2].isupper())
        or (text[start - 1] == "\n" and not all_prose and not is_wrapped_line(text, start - 1))
    )
