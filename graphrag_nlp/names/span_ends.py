"""Ends of spans of capitalized words, and words and numbers that belong to names after them.

Line ends, hyphens and full stops end a span. Species, institutions, laws, models and companies go
on in lower case, with a number or with their form.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache

from graphrag_nlp.names import name_joints
from graphrag_nlp.names.known_names import find_known_type, list_known_names
from graphrag_nlp.names.name_words import (
    DEMONYM_END,
    GIVEN_NAMES,
    NAME_SUFFIXES,
    common_words,
    is_head_word,
    is_organization_word,
    is_wrapped_line,
    more_given_names,
)
from graphrag_nlp.text.languages import Language, read_lists
from graphrag_nlp.text.places import large_place_names, town_names

# The speaker of a line of a chat: "Deliveroo\nSofia: on my way".
_SPEAKER = re.compile(r"\n[^\n:]{1,40}(?:\d\d?:\d\d(?::\d\d)?\)?)?\s?:(?:\s|$)")
_GERMAN_FORM = re.compile(r" (?:eG|e\. ?V\.|g(?:GmbH|AG)|mbH)(?!\w)|(?<= Co\.) (?:KG(?:aA)?|OHG)\b")
# The second word of a Latin name in brackets: (Aedes albopictus).
_BRACKETED_SPECIES = re.compile(r" [a-z]{3,}(?=\))")
# The rest of Apache-2.0 and Node.js.
_VERSION = re.compile(r"(?:\.\d+)+\b")
_SUFFIX = re.compile(r"\.(?:js|py|rs|io|ai|net|NET|NIC|com|org|tv|app)\b(?!/|\.\w)")
_LAW_YEAR_STARTS = (" of 1", " of 2")
_LAW_NUMBER_STARTS = frozenset("0123456789(")
# Places or days on both sides of a dash, which are two names unless a name goes on: Basel–Olten.
_DASHED = re.compile(r"[^\W\d_]{3,}–[^\W\d_]{3,}$")
_OPENING_DASH = re.compile(r" [-–](?=[^\s\d-])")
MAX_ASIDE_CHARS = 300
_WORDS = read_lists("graphrag_nlp/names/data/words")
# The second word of a species: Bombus terrestris. Romance adjectives end in "a" too, so there the
# genus must have an ending that only Latin has.
_SPECIES = re.compile(rf" ((?:[a-z]{{3,}}-)?[a-z]{{3,}}(?:{_WORDS['species_endings']}))(?![\w-])")
# Endings of second words of species that Spanish words do not have, so that the genus may be any
# word: Lynx pardinus. This is not for Italian, whose words have them: condannati, scontri.
_LATIN_SPECIES = re.compile(
    r" (?:[a-z]{2,}(?:us|um|ensis|ii|ae|ans|ens)|[a-z]{3,}[bcdfgkmnprstvxz]i|coli|ilex)(?![\w-])"
)
_GENUS = re.compile(rf"[A-Z][a-z]+(?:{_WORDS['genus_endings']})$")
_LATIN_GENUS = re.compile(rf"[A-Z][a-z]+(?:{_WORDS['latin_genus_endings']})$")
_ROMANCE = frozenset(("es", "it", "pt", "ro"))
_LATIN_LANGUAGES = _ROMANCE | {"en", "de", "fr", "nl", "da"}
# The number of a law: Act 1958, Ley 2/2007, Directive 95/46/EC.
_LAW_YEAR = re.compile(r" (?:of )?(?:1[5-9]|20)\d\d(?![\w-])")
_DATED_LAWS = (" Act", " Rules", " Order", " Regulations")
_LAW_NUMBER = re.compile(rf"(?:{_WORDS['numbered_laws']})$", re.IGNORECASE)
_LAW_NUMBER_AFTER = re.compile(
    r" (?:\((?:EU|UE|EG|EC|CE)\) )?(?:n[.ºo°]+ ?|No\.? |Nr\. ?)?"
    r"(?:\d{1,4}/\d{2,4}(?:/[A-Z]{2,4})?(?![\w/])|\d{1,4} de (?:19|20)\d\d\b)"
)
# First characters, after a space, of the numbers of laws and models: 2/2007, (EU), n.º, v.
_NUMBER_STARTS = frozenset("0123456789(nNovV")
# A model: PrintJet 4200, Grassmaster 46S.
_MODEL_NUMBER = re.compile(
    r" (?!(?:19|20)\d\d\b)\d{2,4}([A-Z]{0,2})"
    r"(?![\w%°€$/–-]|[.,:]\d| (?:[kcm]?m|[kM]?W|[GM]B|k?g|%|V|h)\b)"
)
# Letters or a word after the number of a model: Grünfink 46 R, Lavandia 8 Turbo. A, I, O and Y are
# left out, since they may also be words.
_SERIES = re.compile(
    r" ([B-HJ-NP-XZ]|[A-Z]{2}|Pro|Plus|Max|Ultra|Turbo|Mini|Lite|Eco|Duo|Air|Sport|Comfort|Premium)"
    r"(?![\w-]|[.'’]\w)"
)
# The letter of a planet after the name of its star: Kepler-1625 b.
_PLANET = re.compile(r" [b-h](?![\w'’-])")
_CATALOGUE_NUMBER = re.compile(r"-\d+$")
_UNITS = frozenset("GB MB TB KB MM CM KM KG MW KW GW AM PM HZ AD BC CE W V K H F C A".split())
# The rest of the name of a French institution: Agence nationale de la recherche.
_FRENCH_JOINT = r"(?:de la |de l['’]|du |des |d['’]|de |pour (?:la |le |les |l['’])?)"
_FRENCH_ADJECTIVE = rf"(?: [^\W\dA-Z]\w+{_WORDS['french_adjective_endings']}s?\b)"
_FRENCH_ADJECTIVES = re.compile(rf"{_FRENCH_ADJECTIVE}*")
_FRENCH_PART = re.compile(
    rf" (?:et )?{_FRENCH_JOINT}([^\W\dA-Z_]{{3,}})\b{_FRENCH_ADJECTIVE}?"
    r"(?:(?<=s) et [^\W\dA-Z_]{3,}s\b)?"
)
_FRENCH_ELISION = re.compile(r"[LDld]['’](?=[^\W\d_])")
_FRENCH_OWNER = re.compile(r" (?:de la |de l['’]|du |des |d['’]|de )(?=[^\W\d_a-zà-ÿ])")
# Lower-case words that begin names: cour d'appel de Bourges, salar de Atacama.
_LOWER_HEADS = {
    code: re.compile(rf"\b(?:{heads.replace('ADJECTIVE', _WORDS['french_head_adjectives'])})$")
    for code, heads in _WORDS["lower_heads"].items()
}
MAX_LOWER_HEAD_CHARS = 50
# Ends of the text before the first capital of such names. This test spares most spans a search of 4
# µs, which is a few percent of the extraction from French.
_LOWER_HEAD_JOINTS = (
    *(" de ", " du ", " des ", " de la ", " d'", " d’", " de l'", " de l’"),
    *(" del ", " de los ", " de las "),
    *("mont ", "lac ", "cap ", "hôpital ", "CHU ", "université "),
)
# Particles that may also stand before a person: l'accord de Paul.
_BARE_PARTICLES = (" de ", " d'", " d’")
# The first word of such a name after its lower-case words, and a capitalized second word.
_NAME_START = re.compile(r"([\w-]+)(?: ([^\W\d_a-zà-ÿ][\w-]+))?")
# The form of a company after its name, without the last full stop: Co., Ltd
_COMPANY_FORM = re.compile(rf"\.?, (?:{_WORDS['company_forms']})\b")
# An abbreviation without its last full stop: U.S
_DOTTED_END = re.compile(r"\b[^\W\d_]\.[^\W\d_]$")
# The number of a German law or session after its abbreviation: Protokoll Nr | . 11
_NUMBER_OF_LAW = re.compile(r"\. ?\d+[a-z]?\b")
# Joints inside some known names, while elsewhere they separate two names: Convergència i Unió,
# Castilla y León, Bund der Steuerzahler, Devon and Cornwall Police.
KNOWN_JOINTS = ("/", " i ", " y ", " der ", " and ")
_SLASH = re.compile(r" ?/ ?")
# Company forms that have no full stop of their own: a full stop after them ends the sentence.
_UNSTOPPED_FORMS = frozenset(("LLP", "LLC", "PLC", "plc", "GmbH"))
_INSTITUTIONS = frozenset(
    (
        *read_lists("graphrag_nlp/names/data/entity_types")["organizations"].split(),
        "ordre",
        "parc",
        "réserve",
        "massif",
    )
)


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
    end = find_known_end(text, start, end)
    # Few spans go on with a number or a year, or in lower case after the end of a genus.
    if text[end : end + 1] == " " and end < sentence_end:
        following = text[end + 1 : end + 2]
        is_genus = text[end - 1] in "asmx" and following.islower()
        is_dated = following == "o" and text.startswith(_LAW_YEAR_STARTS, end)
        goes_on = text[end - 1].isdigit()  # Kepler-1625 b
        if is_genus or is_dated or goes_on or following in _LAW_NUMBER_STARTS:
            found = find_species_end(text, start, end, language)
            numbered = find_numbered_end(text, start, end, language)
            start, longer = found or (start, numbered)
            end = longer if longer <= sentence_end else end
    if text[end : end + 1] == ".":
        suffix = (_VERSION if text[end - 1].isdigit() else _SUFFIX).match(text, end)
        end = suffix.end() if suffix else end
    return start, end


def find_unbroken_end(text: str, start: int, end: int) -> int:
    """Return the end of a span without a part of a compound: Miet- in Eigentumswohnungen."""
    last = text[start:end].split()[-1]
    is_part = text[end : end + 2] == "- " and text[end + 2 : end + 3].islower() and last.istitle()
    is_part = is_part and not find_known_type(last) and last.lower() not in large_place_names()
    # It is no such part if the dash closes an aside: los libros -del Poder Judicial- y el pacto.
    before = max(0, start - MAX_ASIDE_CHARS)
    is_part = is_part and _OPENING_DASH.search(text, before, start + 1) is None
    return start + len(text[start : end - len(last)].rstrip()) if is_part else end


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
    if language.code == "fr" and text[end : end + 1] == " ":
        longer = find_institution_end(text, start, end, language, match.re)
        end = longer if longer <= sentence_end else end
    return find_lower_head(text, start, language), end


def _find_end(text: str, match: re.Match[str], sentence_end: int, language: Language) -> int:
    """Return the end of a span, with a full stop and a part after a joint that belong to it."""
    start, end = match.span()
    if end > sentence_end:
        # Drop the full stop: it ends the sentence, and does not mark an initial.
        end = start + len(text[start:sentence_end].rstrip("."))
    elif text[start - 1 : start] == "(" and (species := _BRACKETED_SPECIES.match(text, end)):
        is_people = DEMONYM_END.search(text, start, end)  # no species: (Algerian immigrant)
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
    return find_abbreviation_end(text, start, end, sentence_end)


def _is_end_at(text: str, line_end: int) -> bool:
    """Return whether a span ends at the end of a line: the next line begins something else."""
    is_row = "|" in text[text.rfind("\n", 0, line_end) + 1 : line_end]
    if is_row or not is_wrapped_line(text, line_end) or _SPEAKER.match(text, line_end):
        return True
    before, after = text[:line_end].rsplit(None, 1)[-1:], text[line_end : line_end + 40].split()[:1]
    # The span also ends if only one of the two lines is in capitals: that is a heading.
    return bool(before and after) and before[0].isupper() != after[0].isupper()


@cache
def _rests_of_known_names() -> Mapping[str, list[str]]:
    """Map the start of known names to their possible ends: "bündnis 90" to "/die grünen"."""
    rests: dict[str, list[str]] = defaultdict(list)
    for name in list_known_names():
        at = next((at for joint in KNOWN_JOINTS if (at := name.find(joint)) > 0), 0)
        if at:
            rests[name[:at].lower()].append(name[at:].lower())
    return rests


def find_known_end(text: str, start: int, end: int) -> int:
    """Return the end of a known name with one of `KNOWN_JOINTS`: Convergència | i Unió."""
    if not text.startswith((" /", *KNOWN_JOINTS), end):
        return end
    slash = _SLASH.match(text, end)
    at = slash.end() - 1 if slash else end
    words = text[start:end].lower().split(" ")
    for first in range(len(words)):  # also after another word: Fraktion Bündnis 90
        for rest in _rests_of_known_names().get(" ".join(words[first:]), ()):
            longer = at + len(rest)
            known = f"/{text[at + 1 : longer]}" if slash else text[at:longer]
            if known.lower() == rest and not text[longer : longer + 1].isalnum():
                return longer
    return end


def find_species_end(text: str, start: int, end: int, language: Language) -> tuple[int, int] | None:
    """Return the span of a species whose genus is the last word of a capitalized span."""
    genus = text[start:end].rsplit(None, 1)[-1]
    species = _SPECIES.match(text, end)
    if not species or language.code not in _LATIN_LANGUAGES:
        return None
    is_latin = language.code == "es" and _LATIN_SPECIES.match(text, end) is not None
    is_latin = is_latin and genus.lower() not in large_place_names()  # no species: Kenia tribus
    pattern = _LATIN_GENUS if language.code in _ROMANCE else _GENUS
    if not (is_latin or pattern.match(genus)) or genus in GIVEN_NAMES:
        return None
    common = common_words(language.code)
    if species[1] in common or species[1] in language.function_words or genus.lower() in common:
        return None
    return end - len(genus), species.end()


def find_numbered_end(text: str, start: int, end: int, language: Language) -> int:
    """Return the end of a law with its number, of a model, or of a firm with its country."""
    series = _SERIES.match(text, end) if text[end - 1].isdigit() else None
    if series and series[1] not in _UNITS:
        return series.end()
    if _PLANET.match(text, end) and _CATALOGUE_NUMBER.search(text, start, end):
        return end + 2
    if text[end + 1 : end + 2] not in _NUMBER_STARTS:
        return end
    model = _MODEL_NUMBER.match(text, end)
    if model and text[end - 1].islower() and model[1] not in _UNITS:
        last = text[start:end].rsplit(None, 1)[-1]
        is_word = last.lower() in common_words(language.code)  # no model: Room 14B
        if any(map(str.isupper, last[1:])) or (model[1] and not is_word):
            return model.end()
    number = _LAW_NUMBER_AFTER.match(text, end)
    if number and _LAW_NUMBER.search(text, start, end):
        return number.end()
    year = _LAW_YEAR.match(text, end)
    return year.end() if year and text.endswith(_DATED_LAWS, start, end) else end


def find_institution_end(
    text: str, start: int, end: int, language: Language, pattern: re.Pattern[str]
) -> int:
    """Return the end of the name of a French institution, which goes on in lower case."""
    words = text[start:end].split()
    if len(words) > 1 and words[0].lower() in language.function_words:
        words = words[1:]
    words[0] = _FRENCH_ELISION.sub("", words[0])
    if language.code != "fr" or not (is_institution(words[0]) or is_institution(words[-1])):
        return end
    adjectives = _FRENCH_ADJECTIVES.match(text, end)
    reached = adjectives.end() if adjectives else end
    while (part := _FRENCH_PART.match(text, reached)) and part[1] not in language.function_words:
        reached = part.end()
    owner = _FRENCH_OWNER.match(text, reached)
    if owner and (name := pattern.match(text, owner.end())):
        return find_institution_end(text, owner.end(), name.end(), language, pattern)
    if reached > end and text[reached : reached + 1] == " ":
        name = pattern.match(text, reached + 1)
        if name and name.group().split()[0] not in more_given_names():
            return name.end()  # Agence de l'eau | Seine-Normandie
    return reached


def is_institution(word: str) -> bool:
    """Return whether a word in title case heads names of institutions."""
    is_head = is_organization_word(word) or word.lower() in _INSTITUTIONS
    return word[0].isupper() and word[1:].islower() and is_head


def find_lower_head(text: str, start: int, language: Language) -> int:
    """Return the start of a name whose first words have no capital."""
    pattern = _LOWER_HEADS.get(language.code)
    before = max(0, start - MAX_LOWER_HEAD_CHARS)
    if not pattern or not text.endswith(_LOWER_HEAD_JOINTS, before, start):
        return start
    head = pattern.search(text, before, start)
    if not head or (language.code == "fr" and not _may_follow_head(text, start, head)):
        return start
    return head.start()


def _may_follow_head(text: str, start: int, head: re.Match[str]) -> bool:
    """Return whether a name belongs to the French words before it; not in l'accord de | Paul."""
    name = _NAME_START.match(text, start)
    first, second = name.groups() if name else ("", "")
    names = {first, f"{first} {second}", *first.split("-")}
    is_place = any(word.lower() in _french_places() for word in names)
    is_place = is_place or any(find_known_type(word) == "geo" for word in names)
    if is_place or head["placed"]:
        return is_place or find_known_type(head.group() + first) != ""  # accord de | Schengen
    if head["bare"] and second:
        return True  # in honour of: université Paul Sabatier
    # Few persons have an article: ministère de la Justice.
    may_be_person = head["bare"] or head.group().endswith(_BARE_PARTICLES)
    return not may_be_person or first not in more_given_names()


@cache
def _french_places() -> frozenset[str]:
    """Return large places that are no given names, and French towns, all in lower case."""
    given = map(str.lower, GIVEN_NAMES)
    return large_place_names().difference(given) | town_names("FR", "BE", "CH", "LU")


def find_abbreviation_end(text: str, start: int, end: int, sentence_end: int) -> int:
    """Return the end of a name with its company form and the stop of its abbreviation.

    Examples: "Halden Optical Co., Ltd.", "U.S.", "Ben K.".
    """
    form = _COMPANY_FORM.match(text, end, sentence_end)
    end = form.end() if form else end
    if text[end : end + 1] != "." or end >= sentence_end:
        return end
    words = text[start:end].split()
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "Nr" and (number := _NUMBER_OF_LAW.match(text, end)):
        # Keep "Protokoll Nr. 11", a document, but cut "Zimmer | Nr. 11", a room.
        return number.end() if is_head_word(before) else end - len(" Nr") * bool(before)
    is_initial = len(last) == 1 and last.isalpha() and before in more_given_names()
    is_suffix = bool(before) and last.lower() in NAME_SUFFIXES and last not in _UNSTOPPED_FORMS
    return end + (is_initial or is_suffix or _DOTTED_END.search(last) is not None)
