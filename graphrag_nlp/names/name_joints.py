"""Joints between two parts of one name: possessives, "for", "on" and "and"."""

import re

from graphrag_nlp.names.known_names import find_known_type, is_country
from graphrag_nlp.names.name_words import (
    DEMONYMS,
    GIVEN_NAMES,
    HEAD_WORDS,
    common_words,
    is_organization_word,
    is_role,
    more_given_names,
    word_before,
)
from graphrag_nlp.text.languages import Language, read_lists, word_set
from graphrag_nlp.text.places import large_place_names
from graphrag_nlp.text.type_words import ORGANIZATION_WORDS

_WORDS = read_lists("graphrag_nlp/names/data/words")
# Words before and after "'s" that make one name: King's College, but not Campbell's Northern Party.
_POSSESSORS = word_set(_WORDS["possessors"])
_POSSESSED = word_set(_WORDS["possessed"])
# Text between two parts that may form one name: a possessive, "for", or "and" within the name of an
# organization: Department of Health and Human Services.
_NAME_JOINT = re.compile(
    r"['’]s |(?<=s)['’] | for (?:the )?| für (?:die |das |den )?(?:[a-zäöüß]{4,}e[nrs]? )?| & "
    r"|(?: plc|(?:(?<= Co)|(?<= Corp)|(?<= Inc)|(?<= Ltd))\.)? vs?\.? "
    r"|(?:(?<=\bUniversity)|(?<=\bCourt)) at (?:the )?"
    r"|(?:(?<=Treaty)|(?<=Convention)|(?<=Covenant)|(?<=Protocol)|(?<=Declaration)) on (?:the )?"
    r"|(?:(?<=Committee)|(?<=Subcommittee)|(?<=Commission)|(?<=Conference)) on (?:the )?"
    r"|(?:(?<=Committee)|(?<=Subcommittee)|(?<=Commission)|(?<=Convention)|(?<=Campaign)|(?<=Coalition)"
    r"|(?<=Movement)|(?<=League)|(?<=Alliance)|(?<=Network)) [Aa]gainst (?:the )?"
    r"|(?: para|(?<=\bApelaciones) en) (?:el |la |los |las |lo )?"
    r"| des (?=(?:Bundes|Innern|Äußern|Saarlandes)\b)| von (?=Berlin\b)"
    r"| (?:der|des) (?=[A-ZÄÖÜ]\w+(?:en|er) [A-ZÄÖÜ])"
    r"| (?:and|und|et|y|e) (?:the |la |el |los |las |les )?"
)
# First characters of `_NAME_JOINT`: this test is faster than the pattern.
_JOINT_STARTS = frozenset((*(f" {letter}" for letter in "abcdefopuvy&"), ". "))
# Plural nouns for persons that own an organization: Workers' Party.
_OWNING_GROUPS = word_set(_WORDS["owning_groups"])
_APOSTROPHES = ("'", "’")
# Last words of agencies whose names have "and": Food and Drug Administration. `_BODY_WORDS` count
# only if the name begins with a common word: Economic and Social Council.
_AGENCY_WORDS = word_set(
    "administration agency authority board bureau commission committee service"
)
_BODY_WORDS = word_set(
    "council court department fund bank union organization organisation association institute"
)
# Words that name an organization before "for", although they are common nouns elsewhere.
_OFFICE_HEADS = frozenset(
    "Endowment Organization Organisation Convention Treaty Covenant Alliance Coalition Campaign "
    "Movement Front Forum Partnership Network Federation Secretariat".split()
)
# First words of agencies before an adjective and "and": National Oceanic and Atmospheric.
_AGENCY_OPENINGS = frozenset(("National", "Federal", "Royal", "European", "State"))
# Words before the name of one place: what follows "and" belongs to them only if it is a field.
_PLACED_BODIES = frozenset(
    "University Bank Church City Museum Hospital College School Port".split()
)
# Ends of occupations: Royal College of Obstetricians and | Gynaecologists.
_OCCUPATIONS = re.compile(r"(?:ists|ians|eons|eers)$")
_LAWS = frozenset(("Act", "Directive"))
_CONGRESSES = frozenset(("Conference", "Convention", "Covenant"))
_CONJUNCTION = re.compile(r" (?:and|und|et|y|e) .*")
# Joints between two names that always form one name: Marks & Spencer, Roe v. Wade.
_FIRM_JOINTS = (" & ", " v ", " v. ", " vs ", " vs. ")
# Ends of names of firms with partners or relatives: Dombert und Partner, Delvallée et associés.
_PARTNERS = re.compile(
    r" (?:und (?:Partner|Kollegen|Söhne|Sohn|Töchter)|et (?:[Aa]ssociés|[Ff]ils|Cie)"
    r"|y (?:[Aa]sociados|[Hh]ijos)|e [Hh]ijos|and (?:Partners|Sons|Associates))\b"
)
_PARTNER_STARTS = frozenset((" u", " e", " y", " a"))
_FRENCH_ADJECTIVE = re.compile(rf" \w+{_WORDS['french_adjective_endings']}s?\b")
# Endings of words for a people in the singular; `DEMONYM_END` allows the plural, too.
_SINGULAR_DEMONYM_END = re.compile(rf"(?:{_WORDS['demonym_endings']})$")
_ACRONYM = re.compile(r"[A-Z]{2,6}\b(?!-)")
_INNER_JOINT = re.compile(r"\b(?:of|for|on|für|de|du|des|di)\b")


def find_joined_end(
    text: str, start: int, end: int, language: Language, pattern: re.Pattern[str]
) -> int:
    """Return the end of a name that may continue after a joint; `pattern` finds its next part.

    "(the) Patron's Medal" and "Institute for Polar Research" are one name. "Campbell's Northern
    Party" is two names.
    """
    following = text[end : end + 2]
    may_join = following in _JOINT_STARTS or following[:1] in _APOSTROPHES
    if not may_join and language.code != "fr":
        return end
    if following in _PARTNER_STARTS and (partners := _PARTNERS.match(text, end)):
        return partners.end()
    found = _NAME_JOINT.match(text, end) if may_join else None
    part = found and pattern.match(text, found.end())
    joint = found.group() if found and part else ""
    words = text[start:end].split()
    if part and joint.startswith(" on "):
        return find_joined_end(text, start, part.end(), language, pattern)
    if part and joint.endswith(_FIRM_JOINTS):
        is_firm = joint != " & " or not _are_two_names(words, part.group())
        return part.end() if is_firm else end
    if language.code == "fr" and len(words) == 1 and words[0].lower() in ORGANIZATION_WORDS:
        adjective = _FRENCH_ADJECTIVE.match(text, end)
        return adjective.end() if adjective and words[0][0].isupper() else end
    if not part:
        return end
    if _CONJUNCTION.fullmatch(joint):
        is_joined = _is_joined_by_and(text, start, words, joint, part.group(), language)
        return part.end() if is_joined else end
    if not joint.startswith(" "):
        if not _is_owned(text, start, words, part.group(), language):
            return end
        # Another joint may follow: Our Lady's Children's | Hospital.
        return max(find_joined_end(text, start, part.end(), language, pattern), part.end())
    if not _may_have_topic(words, joint, language):
        return end
    # Another joint may follow: Centers for Disease Control | and Prevention.
    return max(find_joined_end(text, start, part.end(), language, pattern), part.end())


def _are_two_names(words: list[str], part: str) -> bool:
    """Return whether an "&" stands between two persons, or two countries: Dan & Priya."""
    first, *rest = part.split()
    are_persons = first in GIVEN_NAMES if rest else {first, words[-1]} <= GIVEN_NAMES
    return are_persons or (is_country(" ".join(words)) and is_country(part))


def _may_have_topic(words: list[str], joint: str, language: Language) -> bool:
    """Return whether words are an organization whose topic may follow: Institute | for Research."""
    # A commissioner is no organization, but "Office of the Commissioner" is one.
    last = "Office" if words[-1] == "Commissioner" and "Office" in words else words[-1]
    if joint.startswith((" para", " en")):
        # Spanish organizations begin with their head: Comisión Nacional para la Biodiversidad.
        last = next((word for word in words if is_organization_word(word)), last)
    # Remove the s of the genitive: des Deutschen Zentrums für Herzkunde.
    bare = last.removesuffix("s") if language.genitive_s else last
    is_office = is_organization_word(last) or is_organization_word(bare) or last in _OFFICE_HEADS
    return is_office or (joint.startswith(" für") and is_german_conference(last))


def _is_topic(text: str) -> bool:
    """Return whether a text has only frequent English words, as topics have: Rural Affairs."""
    return common_words("en").issuperset(text.replace(",", "").lower().split())


def is_german_conference(word: str) -> bool:
    """Return whether a German word heads a conference on a topic: VN-Konferenz für Umwelt."""
    return word.rpartition("-")[2].removeprefix("Welt").capitalize() == "Konferenz"


def _is_joined_by_and(
    text: str, start: int, words: list[str], joint: str, part: str, language: Language
) -> bool:
    """Return whether "and" is inside the name of a place, an agency, a law or an office."""
    # Known places with "and": Trinidad and Tobago, (Junta de) Castilla y León.
    first_part = _INNER_JOINT.split(" ".join(words))[-1].lstrip()
    if f"{first_part}{joint}{part}".lower().replace(".", "") in large_place_names():
        return True
    # A law or an agency after "the": the Marine and Coastal Access Act.
    has_article = words[0] == "The" and len(words) > 1
    own = words[has_article:]
    next_words = part.split()
    last = next_words[-1]
    first = own[0].lower()
    is_plain = first in common_words(language.code) and first not in HEAD_WORDS
    is_plain = is_plain or _is_demonym(own[0])
    is_body = last.lower() in _AGENCY_WORDS or (is_plain and last.lower() in _BODY_WORDS)
    is_law = last in _LAWS and not (is_organization_word(own[-1]) or own[-1] in _LAWS)
    # It may begin with a country's adjective: the Australian Competition and Consumer Commission.
    is_national = _is_demonym(own[0]) and not is_organization_word(own[-1])
    is_national = is_national and joint.count(" ") == 2
    # It may begin with two common words: the Securities Industry and Financial Markets Association.
    is_simple = is_plain and joint.count(" ") == 2
    is_national |= (
        is_simple
        and _is_topic(" ".join((*own, *next_words)))
        and not any(map(is_organization_word, own))
    )
    is_national = len(own) == 2 and (own[0] in _AGENCY_OPENINGS or is_national)
    is_agency = is_body and not is_role(own[0]) and (len(own) == 1 or is_national)
    if len(next_words) > 1 and (is_law or is_agency):
        return has_article or word_before(text, start) == "the"
    return _is_office(words, joint, part)


def _is_office(words: list[str], joint: str, part: str) -> bool:
    """Return whether a name is an office with "of" or "for" whose name goes on after "and"."""
    parts = _INNER_JOINT.split(" ".join(words))
    head = parts[0].split()
    # In Romance languages, the office comes first, and "and" is followed by an article.
    last = head[0] if joint.count(" ") > 2 else head[-1]
    is_office = is_organization_word(last) or last in _CONGRESSES or last in _OFFICE_HEADS
    is_office |= "für" in words and is_german_conference(last)
    if last in _PLACED_BODIES and not all(
        word.lower() in common_words("en") or _OCCUPATIONS.search(word) for word in part.split()
    ):
        return False  # two names: the University of Aberdeen and Jesus College
    # "the Parliament of Peru and the Supreme Court of Peru" are two organizations.
    other = _INNER_JOINT.split(part)
    is_other = joint.count(" ") > 2 and is_organization_word(other[0].split()[-1])
    is_other = is_other and len(other) > 1
    # A known organization after "and" is another one: Department of Justice | and the FBI.
    is_known = _ACRONYM.match(part) is not None or find_known_type(part) == "organization"
    is_other |= joint.count(" ") > 2 and is_known
    return is_office and len(head) < len(words) and not is_other


def _is_owned(text: str, start: int, words: list[str], part: str, language: Language) -> bool:
    """Return whether an owner and what it owns form one name: King's College."""
    has_article = word_before(text, start) in language.determiners
    is_saint = words[0] in ("St", "St.", "Saint") and len(words) == 2
    next_words = part.split()
    is_possessed = next_words[0].lower() in _POSSESSED
    is_person = len(next_words) > 1 and next_words[0] in more_given_names()
    is_common = has_article or words[0].lower() in _POSSESSORS or is_possessed
    owner = words[-1].lower()
    ends_with_owner = owner in _POSSESSORS and is_possessed
    # Groups of persons may own an organization: Kurdistan Workers' Party.
    is_body = any(map(is_organization_word, next_words)) or owner == "people"
    is_body = is_body and len(words) > 1 and language.code == "en"
    ends_with_owner |= owner in _OWNING_GROUPS and is_body and not is_person
    return is_saint or (len(words) == 1 and is_common and not is_person) or ends_with_owner


def _is_demonym(word: str) -> bool:
    return word.lower() in DEMONYMS or _SINGULAR_DEMONYM_END.search(word) is not None
