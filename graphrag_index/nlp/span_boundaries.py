"""Start and end of the spans of capitalized words in a text."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from graphrag_index.nlp import name_joints, name_words, span_extensions
from graphrag_index.nlp.compounds import is_certain_noun, is_loan_word
from graphrag_index.nlp.known_names import find_known_type
from graphrag_index.nlp.law_names import find_shouted_bodies
from graphrag_index.nlp.name_starts import find_name_starts
from graphrag_index.nlp.name_words import is_wrapped_line
from graphrag_index.nlp.nameless import find_nameless_ranges
from graphrag_index.text.languages import Language, read_lists
from graphrag_index.text.places import large_place_names
from graphrag_index.text.ranges import find_range_end
from graphrag_index.text.sentences import LINE_END_HYPHEN, Sentence

# The speaker of a line of a chat: "Deliveroo\nSofia: on my way".
_SPEAKER = re.compile(r"\n[^\n:]{1,40}(?:\d\d?:\d\d(?::\d\d)?\)?)?\s?:(?:\s|$)")
# Minimum share of words with a capital in a headline such as "Voters Reject Plan for Bridge", and
# minimum number of its words.
MIN_CAPITALIZED_SHARE, MIN_HEADLINE_WORDS = 0.6, 4
# Minimum share of words in lower case in a line that is a sentence without a full stop.
MIN_LOWER_SHARE, MIN_LOWER_SHARE_GERMAN = 0.5, 0.3
_GERMAN_FORM = re.compile(r" (?:eG|e\. ?V\.|g(?:GmbH|AG)|mbH)(?!\w)|(?<= Co\.) (?:KG(?:aA)?|OHG)\b")
# The rest of a topic with a shortened compound: Institut für Zoo- und Wildtierforschung.
_SHORTENED_TOPIC = re.compile(r"-,? (?:und|sowie) [A-ZÄÖÜ][\w-]+")
# The second word of a Latin name in brackets: (Aedes albopictus).
_SPECIES = re.compile(r" [a-z]{3,}(?=\))")
# An abbreviation before its last letter: z. B., a. A., i. E.
_ABBREVIATED = re.compile(r"\b[a-zäöü]\. ?$")
_HYPHENATED = re.compile(r"([^\W\d_]\w*)-((?:\w|-)+)")
_WORD = re.compile(r"[^\W\d_]{4,}")
# Words before the name of a button: Press MENU.
_BUTTON = re.compile(
    rf"\b(?:{read_lists('nlp/data/words')['button_words']})"
    r"(?: (?:and hold|auf|on|the|die|den|sur|le|la|en|el|dans|im|in)){0,3} [\"“„«]? ?$"
)
# French words before the name of a button in title case: Appuyez sur Marche.
_PRESSED = re.compile(
    r"\b(?:[Aa]ppuyez|[Cc]liquez|[Tt]ouchez)(?: sur)? (?:la touche |le bouton )?$"
)
# The last four characters of what `_PRESSED` finds: a fast test before the search.
_PRESSED_ENDINGS = frozenset(("sur ", "hez ", "che ", "ton "))
# Words between two names in a headline in title case.
_HEADLINE_BREAK = re.compile(
    rf"\b(?:{'|'.join(read_lists('nlp/data/words')['headline_verbs'].split())}"
    r"|(?:On|In|To|With|From|By|Into|About|Is|Are|Has|When)(?= [A-Z]))(?= |\Z)"
)
_MAX_HEADLINE_CHARACTERS = 300
# The rest of Apache-2.0 and Node.js.
_VERSION = re.compile(r"(?:\.\d+)+\b")
_ENGLISH_GENITIVES = ("'s", "’s")
_SUFFIX = re.compile(r"\.(?:js|py|rs|io|ai|net|NET|NIC|com|org|tv|app)\b(?!/|\.\w)")
_LAW_YEAR_STARTS = (" of 1", " of 2")
_LAW_NUMBER_STARTS = frozenset("0123456789(")
_MENU = re.compile(r"[^\s>] > $")
# Places or days on both sides of a dash, which are two names unless a name goes on: Basel–Olten.
_DASHED = re.compile(r"[^\W\d_]{3,}–[^\W\d_]{3,}$")
# A soft hyphen inside a line also divides a word.
_HYPHENS = frozenset("-\u00ad\u2010")
# A French article or pronoun before a word in lower case: L'université, D'après.
_ELIDED_LOWER = re.compile(r"(?:[A-Z]|Qu)['’][a-zà-ÿ]")
_ELISIONS = frozenset("'’u")
_OPENING_MARKS = frozenset("\"'“„«‘:")
_QUOTATION_MARKS = frozenset("'\"“‘")
_SENTENCE_ENDS = frozenset(".!?…")
# The number of a section, at the start of a line: 5.4.3. Removing a Package, A.2 Ubuntu.
_SECTION = re.compile(r"[^\S\n]*(?:[-*] )?(?:[A-Z]|\d+)(?:\.\d+)+\.?[^\S\n]+(?=[A-Z])")


# Start and end of a span, and whether it begins a sentence, is in prose, and has a title before it.
# A plain tuple: spans are many.
CapitalizedSpan = tuple[int, int, bool, bool, bool]


@cache
def _title_pattern(code: str) -> re.Pattern[str] | None:
    pattern = read_lists("nlp/data/words")["titles_of_language"].get(code)
    return re.compile(pattern) if pattern else None


@cache
def _title_letters(code: str) -> frozenset[str]:
    """Return the capitals of which one begins each title; others may be among them."""
    return frozenset(filter(str.isupper, read_lists("nlp/data/words")["titles_of_language"][code]))


def find_capitalized_spans(
    text: str, sentences: Sequence[Sentence], language: Language
) -> Iterator[CapitalizedSpan]:
    """Yield the spans of capitalized words in a document."""
    # Lists, tables and poems have no whole sentences, so each of their lines may contain names.
    in_prose = sum(s.end - s.start for s in sentences if s.prose)
    all_prose = in_prose * 3 < sum(s.end - s.start for s in sentences)
    pattern, titles = name_words.name_pattern(language.code), _title_pattern(language.code)
    letters = _title_letters(language.code) if titles else frozenset()
    starts = [sentence.start for sentence in sentences]
    reached, current, after_break = starts[0], 0, -1
    is_plain = not (language.capitalizes_nouns or language.code in ("fr", "es") or "–" in text)
    elides = language.code == "fr"
    nameless, has_menus = find_nameless_ranges(text), " > " in text
    for start, limit in find_name_starts(text, language):
        if start < reached:
            continue
        if elides and text[start + 1 : start + 2] in _ELISIONS and _ELIDED_LOWER.match(text, start):
            continue  # L'université de Liège: the name does not begin at the article
        titled = titles.match(text, start) if titles and text[start] in letters else None
        start = titled.end() if titled else start
        if not (match := pattern.match(text, start, limit)):
            continue
        may_have_title = titles and " " in match.group()
        # A title may end the span without its full stop: U.S. Rep | . Hal Burke
        end_of_title = match.end() + 3
        inner = titles.search(text, start + 1, end_of_title) if titles and may_have_title else None
        if inner and text[inner.start() - 1] == " " and inner.start() < match.end():
            # "Hier M. Lavigne": the title begins a new span.
            match = pattern.match(text, start, inner.start() - 1) or match
        second = text[start + 1 : start + 2]
        if second == "." and _ABBREVIATED.search(text, start - 4, start):
            continue  # z. B. Bern
        reached = match.end()
        number = bisect_right(starts, start, current)
        if number > current:
            current, sentence = number, sentences[number - 1]
            words = text[sentence.start : sentence.end]
            # In a sentence in capital letters, only known places are names for certain.
            shouted = words.isupper() and " " in words
            if shouted:
                yield from _find_shouted_places(text, *sentence[:2], language)
            # In headings and tables, other words than names may be capitalized.
            prose = sentence.prose or all_prose or words[-1] in _SENTENCE_ENDS
            prose = prose or _is_clause(words, language)
            # A headline with a full stop begins with several capitals: this is tested fast.
            is_title = words[-1] not in _SENTENCE_ENDS or match.group().count(" ") > 1
            is_title = is_title and not all_prose and _is_headline(words, language)
            prose = prose and not is_title
            # English headings have capitals in lists and tables of contents, too.
            is_english = language.code == "en" and not sentence.prose
            is_heading = is_english and all_prose and _is_heading(text, sentence.start)
        if shouted:
            reached = min(reached, sentence.end)
            continue
        if nameless and (nameless_end := find_range_end(nameless, start)):
            reached = nameless_end  # Minister of Health | Ann Brown
            continue
        if second.isupper() and _BUTTON.search(text, max(0, start - 30), start):
            continue
        is_pressed = elides and text[start - 4 : start] in _PRESSED_ENDINGS
        if is_pressed and _PRESSED.search(text, start - 30, start):
            continue
        if second.isupper() and (line := _shouted_line(text, match, language)):
            yield from _find_shouted_places(text, start, start + len(line), language)
            reached = start + len(line)
        else:
            if is_plain:
                reached = _find_span_end(text, match, sentence.end, language)
            else:
                start, reached = _find_whole_span(text, match, sentence.end, language)
            start, reached = _extend_span(text, start, reached, sentence.end, language)
            initial = _may_begin_sentence(text, start, sentence.start, all_prose)
            if has_menus and _is_menu(text, start, reached):
                continue
            end = reached
            if text[end : end + 1] == "/" and text[end - 1 : end + 2 : 2].isdigit():
                continue  # a case: C-340/21
            if text[end : end + 1] in _HYPHENS:
                end = _find_unbroken_end(text, start, end)
            # In a headline, capitals before and behind such a word prove nothing.
            in_headline = start == after_break or (is_heading and not second.isupper())
            if word := _find_headline_break(text, start, end, initial, language):
                end, reached = word.start() - 1, word.end()
                in_headline, after_break = True, reached + 1
            if end > start:
                yield start, end, initial, prose and not in_headline, titled is not None


def _is_heading(text: str, start: int) -> bool:
    """Return whether a sentence is a heading with a mark or the number of a section: 2.1 Tests."""
    return text[start] == "#" or _SECTION.match(text, text.rfind("\n", 0, start) + 1) is not None


def _find_unbroken_end(text: str, start: int, end: int) -> int:
    """Return the end of a span without its last word if a hyphen divides it at a line end."""
    last = text[start:end].split()[-1]
    hyphen = LINE_END_HYPHEN.match(text, end)
    following = hyphen[2] if hyphen else text[end + 1 : end + 2] if text[end] == "\u00ad" else ""
    is_broken = following.islower() and last.rpartition("-")[2][1:].islower()
    # A part of a compound that another one completes: Miet- in Eigentumswohnungen.
    is_part = text[end : end + 2] == "- " and text[end + 2 : end + 3].islower() and last.istitle()
    is_part = is_part and not find_known_type(last) and last.lower() not in large_place_names()
    return start + len(text[start : end - len(last)].rstrip()) if is_broken or is_part else end


def _shouted_line(text: str, match: re.Match[str], language: Language) -> str:
    """Return the first line of a span if it is a headline in capital letters, or ""."""
    line = match.group().partition("\n")[0]
    if not line.isupper():
        return ""
    if line.count(" ") >= MIN_HEADLINE_WORDS - 1:
        return line
    # A short heading counts if it stands alone, and is a body: TRIBUNAL SUPREMO.
    start, end = match.start(), match.start() + len(line)
    is_alone = text[max(0, start - 1) : start] in ("", "\n") and text[end : end + 1] == "\n"
    return line if is_alone and any(find_shouted_bodies(text, start, end, language)) else ""


def _find_shouted_places(
    text: str, start: int, end: int, language: Language
) -> Iterator[CapitalizedSpan]:
    """Yield the bodies, and the known places, in a heading in capital letters."""
    bodies = list(find_shouted_bodies(text, start, end, language))
    for first, last in bodies:
        yield first, last, False, True, False
    for word in _WORD.finditer(text, start, end):
        name = word.group().lower()
        if any(first <= word.start() < last for first, last in bodies):
            continue
        if name in large_place_names() and name not in name_words.common_words(language.code):
            yield word.start(), word.end(), False, False, False


def _find_headline_break(
    text: str, start: int, end: int, initial: bool, language: Language
) -> re.Match[str] | None:
    """Return the word in an English headline that ends a name: Joins in Ada Brown Joins Halden."""
    if language.code != "en" or text[start - 1 : start] in _QUOTATION_MARKS:
        return None
    # Most names occur again, and have no such word.
    if not _may_break(text[start:end]):
        return None
    word = _HEADLINE_BREAK.search(text, start, end)
    may_break = word is not None and (word.start() > start or not initial)
    is_break = word and may_break and _is_in_headline(text, start, word.start(), language)
    return word if is_break else None


@lru_cache(1 << 16)
def _may_break(span: str) -> bool:
    return _HEADLINE_BREAK.search(span) is not None


def _is_in_headline(text: str, start: int, at: int, language: Language) -> bool:
    """Return whether the line of a span is in title case and has words before `at`."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", at) % (len(text) + 1)
    if line_end - line_start > _MAX_HEADLINE_CHARACTERS:
        return False
    line = text[line_start:line_end].rstrip(" …").removesuffix("...")
    return any(map(str.isalpha, text[line_start:at])) and _is_headline(line, language)


def _is_menu(text: str, start: int, end: int) -> bool:
    """Return whether a span is an item of a menu: Datei > Export."""
    return text.startswith(" > ", end) or (
        text[start - 2 : start] == "> " and _MENU.search(text, start - 4, start) is not None
    )


def _find_whole_span(
    text: str, match: re.Match[str], sentence_end: int, language: Language
) -> tuple[int, int]:
    """Return the span of a match with the words in lower case and the numbers that belong to it."""
    start, end = match.span()
    if "–" in text[start:end] and _DASHED.search(text, start, end):
        return start, start + text[start:end].rindex("–")
    end = _find_span_end(text, match, sentence_end, language)
    if language.capitalizes_nouns and (form := _GERMAN_FORM.match(text, end)):
        return start, form.end()
    if text[end : end + 1] == "-" and " für " in text[start:end]:
        topic = _SHORTENED_TOPIC.match(text, end)
        return start, topic.end() if topic else end
    if language.capitalizes_nouns and "-" in text[start:end]:
        end = _cut_compound(text, start, end)
    if language.code == "fr" and text[end : end + 1] == " ":
        longer = span_extensions.find_institution_end(text, start, end, language, match.re)
        end = longer if longer <= sentence_end else end
    return span_extensions.find_lower_head(text, start, language), end


def _extend_span(
    text: str, start: int, end: int, sentence_end: int, language: Language
) -> tuple[int, int]:
    """Return a span with the rest of a species, law, firm, model or version behind it."""
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
    if text.endswith("Day", start, end) and language.code == "en":
        end = span_extensions.find_disaster_end(text, end)
    if text[end : end + 1] == ".":
        suffix = (_VERSION if text[end - 1].isdigit() else _SUFFIX).match(text, end)
        end = suffix.end() if suffix else end
    return start, end


def _cut_compound(text: str, start: int, end: int) -> int:
    """Return the end of an acronym or a known name before a German noun: CDU-Spitzenkandidat."""
    for word in _HYPHENATED.finditer(text, start, end):
        first, last = ("", "") if find_known_type(word.group()) else word.groups()
        is_name = (len(first) > 1 and first.isupper()) or any(map(str.isupper, first[1:]))
        if is_name or find_known_type(first) not in ("", "geo"):  # but Sachsen-Anhalt
            is_noun = is_certain_noun(last) or is_loan_word(last)
            is_noun = is_noun and not name_words.is_institution_word(last)
            if is_noun or name_words.is_role(last):
                return word.end(1)
    return end


def _find_span_end(text: str, match: re.Match[str], sentence_end: int, language: Language) -> int:
    """Return the end of a span, with a full stop and a part after a joint that belong to it."""
    start, end = match.span()
    if end > sentence_end:
        # Drop the full stop: it ends the sentence, and does not mark an initial.
        end = start + len(text[start:sentence_end].rstrip("."))
    elif text[start - 1 : start] == "(" and (species := _SPECIES.match(text, end)):
        is_people = name_words.DEMONYM_END.search(text, start, end)  # (Algerian immigrant)
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


def _is_elision(text: str, at: int) -> bool:
    """Return whether a mark is the apostrophe of an article before a name: l'Italie."""
    return text[at] == "'" and text[at - 1].isalpha()


def _is_end_at(text: str, line_end: int) -> bool:
    """Return whether a span ends at the end of a line: the next line begins something else."""
    is_row = "|" in text[text.rfind("\n", 0, line_end) + 1 : line_end]
    if is_row or not is_wrapped_line(text, line_end) or _SPEAKER.match(text, line_end):
        return True
    before, after = text[:line_end].rsplit(None, 1)[-1:], text[line_end : line_end + 40].split()[:1]
    # A heading in capitals stands above or below.
    return bool(before and after) and before[0].isupper() != after[0].isupper()


def _is_headline(sentence: str, language: Language) -> bool:
    """Return whether most words of a sentence without a full stop have a capital."""
    if language.capitalizes_nouns:
        return False
    words = [word for word in sentence.split() if word.isalpha()]
    if sentence[-1] in _SENTENCE_ENDS and not _has_small_capitals(words[1:], language):
        return False
    long = [word for word in words if len(word) > 3]
    capitals = sum(word[0].isupper() for word in long)
    return len(words) >= MIN_HEADLINE_WORDS and capitals > MIN_CAPITALIZED_SHARE * len(long) > 1


def _has_small_capitals(words: Sequence[str], language: Language) -> bool:
    """Return whether most function words have a capital, as in "How To Live With Less"."""
    small = [word for word in words if len(word) > 1 and word.lower() in language.function_words]
    return sum(map(str.istitle, small)) > max(1, len(small) / 2)


def _is_clause(line: str, language: Language) -> bool:
    """Return whether a line without a full stop reads like a sentence, with few capitals."""
    words = [word for word in line.split() if word[:1].isalpha()]
    lower = sum(map(str.islower, words))
    functions = sum(word.lower() in language.function_words for word in words)
    share = MIN_LOWER_SHARE_GERMAN if language.capitalizes_nouns else MIN_LOWER_SHARE
    return len(words) >= MIN_HEADLINE_WORDS and lower >= share * len(words) and functions > 0


def _follows_colon(text: str, start: int) -> bool:
    before = text[max(0, start - 6) : start].rstrip(" ")
    return before.endswith(":") and not text[start : start + 2].isupper()


def _may_begin_sentence(text: str, start: int, sentence_start: int, all_prose: bool) -> bool:
    """Return whether a word begins a sentence, a quotation or a line, so any word has a capital."""
    return (
        start == sentence_start
        or (start <= sentence_start + 2 and not text[sentence_start].isalnum())
        or (text[start - 1] in _OPENING_MARKS and start > 1 and not _is_elision(text, start - 1))
        # After a colon, except acronyms: "Note: Keep it dry", but not "ICAO: KAEX".
        or text[start - 2 : start] in ("– ", "— ", "→ ")
        or (text[start - 1] == " " and _follows_colon(text, start))
        or (text[start - 1] == "\n" and not all_prose and not is_wrapped_line(text, start - 1))
    )
