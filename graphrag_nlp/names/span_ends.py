"""Ends of spans of capitalized words: line ends, joints, hyphens, full stops and numbers."""

import re

from graphrag_nlp.names import name_joints, span_extensions
from graphrag_nlp.names.known_names import find_known_type
from graphrag_nlp.names.name_words import DEMONYM_END, is_wrapped_line
from graphrag_nlp.text.languages import Language
from graphrag_nlp.text.places import large_place_names
from graphrag_nlp.text.sentences import LINE_END_HYPHEN

# The speaker of a line of a chat: "Deliveroo\nSofia: on my way".
_SPEAKER = re.compile(r"\n[^\n:]{1,40}(?:\d\d?:\d\d(?::\d\d)?\)?)?\s?:(?:\s|$)")
_GERMAN_FORM = re.compile(r" (?:eG|e\. ?V\.|g(?:GmbH|AG)|mbH)(?!\w)|(?<= Co\.) (?:KG(?:aA)?|OHG)\b")
# The rest of a topic with a shortened compound: Institut für Zoo- und Wildtierforschung.
_SHORTENED_TOPIC = re.compile(r"-,? (?:und|sowie) [A-ZÄÖÜ][\w-]+")
# The second word of a Latin name in brackets: (Aedes albopictus).
_SPECIES = re.compile(r" [a-z]{3,}(?=\))")
# The rest of Apache-2.0 and Node.js.
_VERSION = re.compile(r"(?:\.\d+)+\b")
_ENGLISH_GENITIVES = ("'s", "’s")
_SUFFIX = re.compile(r"\.(?:js|py|rs|io|ai|net|NET|NIC|com|org|tv|app)\b(?!/|\.\w)")
_LAW_YEAR_STARTS = (" of 1", " of 2")
_LAW_NUMBER_STARTS = frozenset("0123456789(")
# Places or days on both sides of a dash, which are two names unless a name goes on: Basel–Olten.
_DASHED = re.compile(r"[^\W\d_]{3,}–[^\W\d_]{3,}$")
_OPENING_DASH = re.compile(r" [-–](?=[^\s\d-])")
MAX_ASIDE_CHARS = 300
# A soft hyphen inside a line also divides a word.
HYPHENS = frozenset("-\u00ad\u2010")


def find_span(
    text: str, match: re.Match[str], sentence_end: int, language: Language, *, is_plain: bool
) -> tuple[int, int]:
    """Return the span of a match, with the rest of a species, law, firm, model or version.

    `is_plain` is true if no German, French or Spanish word, nor a dash, may change the span.
    """
    if is_plain:
        start, end = match.start(), _find_end(text, match, sentence_end, language)
    else:
        start, end = _find_whole_span(text, match, sentence_end, language)
    end = span_extensions.find_known_end(text, start, end)
    # Few spans go on with a number or a year, or in lower case after the end of a genus.
    if text[end : end + 1] == " " and end < sentence_end:
        following = text[end + 1 : end + 2]
        is_genus = text[end - 1] in "asmx" and following.islower()
        is_dated = following == "o" and text.startswith(_LAW_YEAR_STARTS, end)
        # Halden Optics plc, Kepler-1625 b
        goes_on = following == "p" or text[end - 1].isdigit()
        if is_genus or is_dated or goes_on or following in _LAW_NUMBER_STARTS:
            found = span_extensions.find_species_end(text, start, end, language)
            numbered = span_extensions.find_numbered_end(text, start, end, language)
            start, longer = found or (start, numbered)
            end = longer if longer <= sentence_end else end
    if language.code == "es" and text.startswith(_ENGLISH_GENITIVES, end):
        end += 2  # Sotheby's
    if text[end : end + 1] == ".":
        suffix = (_VERSION if text[end - 1].isdigit() else _SUFFIX).match(text, end)
        end = suffix.end() if suffix else end
    return start, end


def find_unbroken_end(text: str, start: int, end: int) -> int:
    """Return the end of a span without its last word if a hyphen divides it at a line end."""
    last = text[start:end].split()[-1]
    hyphen = LINE_END_HYPHEN.match(text, end)
    following = hyphen[2] if hyphen else text[end + 1 : end + 2] if text[end] == "\u00ad" else ""
    is_broken = following.islower() and last.rpartition("-")[2][1:].islower()
    # A part of a compound that another one completes: Miet- in Eigentumswohnungen.
    is_part = text[end : end + 2] == "- " and text[end + 2 : end + 3].islower() and last.istitle()
    is_part = is_part and not find_known_type(last) and last.lower() not in large_place_names()
    # A dash that closes what another opened: los libros -del Poder Judicial- y el pacto.
    before = max(0, start - MAX_ASIDE_CHARS)
    is_part = is_part and _OPENING_DASH.search(text, before, start + 1) is None
    return start + len(text[start : end - len(last)].rstrip()) if is_broken or is_part else end


def _find_whole_span(
    text: str, match: re.Match[str], sentence_end: int, language: Language
) -> tuple[int, int]:
    """Return the span of a match with the words in lower case and the numbers that belong to it."""
    start, end = match.span()
    if "–" in text[start:end] and _DASHED.search(text, start, end):
        return start, start + text[start:end].rindex("–")
    end = _find_end(text, match, sentence_end, language)
    if language.capitalizes_nouns and (form := _GERMAN_FORM.match(text, end)):
        return start, form.end()
    if text[end : end + 1] == "-" and " für " in text[start:end]:
        topic = _SHORTENED_TOPIC.match(text, end)
        return start, topic.end() if topic else end
    if language.code == "fr" and text[end : end + 1] == " ":
        longer = span_extensions.find_institution_end(text, start, end, language, match.re)
        end = longer if longer <= sentence_end else end
    return span_extensions.find_lower_head(text, start, language), end


def _find_end(text: str, match: re.Match[str], sentence_end: int, language: Language) -> int:
    """Return the end of a span, with a full stop and a part after a joint that belong to it."""
    start, end = match.span()
    if end > sentence_end:
        # Drop the full stop: it ends the sentence, and does not mark an initial.
        end = start + len(text[start:sentence_end].rstrip("."))
    elif text[start - 1 : start] == "(" and (species := _SPECIES.match(text, end)):
        is_people = DEMONYM_END.search(text, start, end)  # (Algerian immigrant)
        return end if is_people else species.end()
    longer = name_joints.find_joined_end(text, start, end, language, match.re)
    end = longer if longer <= sentence_end else end
    # Cut the span at the end of a heading, but not where a wrapped line ends.
    if "\n" in text[start:end]:
        line_ends = (start + line.start() for line in re.finditer("\n", text[start:end]))
        cut = next((at for at in line_ends if _is_end_at(text, at)), end)
        if cut < end:
            return cut
    if text[end : end + 1] not in (".", ","):
        return end
    return span_extensions.find_abbreviation_end(text, start, end, sentence_end)


def _is_end_at(text: str, line_end: int) -> bool:
    """Return whether a span ends at the end of a line: the next line begins something else."""
    is_row = "|" in text[text.rfind("\n", 0, line_end) + 1 : line_end]
    if is_row or not is_wrapped_line(text, line_end) or _SPEAKER.match(text, line_end):
        return True
    before, after = text[:line_end].rsplit(None, 1)[-1:], text[line_end : line_end + 40].split()[:1]
    # A heading in capitals stands above or below.
    return bool(before and after) and before[0].isupper() != after[0].isupper()
