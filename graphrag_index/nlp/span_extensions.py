"""Words in lower case and numbers that belong to a name: species, institutions and laws."""

import re

from graphrag_index.nlp.name_words import (
    GIVEN_NAMES,
    HEAD_WORDS,
    common_words,
    is_organization_word,
)
from graphrag_index.text.languages import Language, read_lists

_WORDS = read_lists("nlp/data/words")
# The second word of a species: Bombus terrestris. Romance adjectives end in "a" too, so there the
# genus must have an ending that only Latin has.
_SPECIES = re.compile(rf" ([a-z]{{3,}}(?:{_WORDS['species_endings']}))(?![\w-])")
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
    r"\d{1,4}/\d{2,4}(?:/[A-Z]{2,4})?(?![\w/])"
)
# First characters after the space before a number or a form.
_NUMBER_STARTS = frozenset("0123456789(nNovV")
# A model: PrintJet 4200, Grassmaster 46S.
_MODEL_NUMBER = re.compile(
    r" (?!(?:19|20)\d\d\b)\d{2,4}([A-Z]{0,2})"
    r"(?![\w%°€$/–-]|[.,:]\d| (?:[kcm]?m|[kM]?W|[GM]B|k?g|%|V|h)\b)"
)
# A planet, by the name of its star: Kepler-1625 b.
_PLANET = re.compile(r" [b-h](?![\w'’-])")
_CATALOGUE_NUMBER = re.compile(r"-\d+$")
_PUBLIC_COMPANY = " plc"
_UNITS = frozenset("GB MB TB KB MM CM KM KG MW KW GW AM PM HZ AD BC CE W V K H F C A".split())
_LICENSE_VERSION = re.compile(r" (?:v|[Vv]ersion )?\d(?:\.\d)*(?![\w%])")
# A firm with its country: Halden Optics (UK) Limited.
_COUNTRY_AND_FORM = re.compile(
    r" \([A-Z][\w. ]{1,20}\) "
    r"(?:Limited|Ltd\.?|Pty Ltd|GmbH|AG|SE|Inc\.?|LLC|plc|PLC|B\.V\.|S\.A\.)(?!\w)"
)
# The rest of the name of a French institution: Agence nationale de la recherche.
_FRENCH_JOINT = r"(?:de la |de l['’]|du |des |d['’]|de |pour (?:la |le |les |l['’])?)"
_FRENCH_ADJECTIVE = rf"(?: [^\W\dA-Z]\w+{_WORDS['french_adjective_endings']}s?\b)"
_FRENCH_ADJECTIVES = re.compile(rf"{_FRENCH_ADJECTIVE}*")
_FRENCH_PART = re.compile(rf" (?:et )?{_FRENCH_JOINT}([^\W\dA-Z_]{{3,}})\b{_FRENCH_ADJECTIVE}?")
_FRENCH_ELISION = re.compile(r"[LDld]['’](?=[^\W\d_])")
_FRENCH_OWNER = re.compile(r" (?:de la |de l['’]|du |des |d['’]|de )(?=[^\W\d_a-zà-ÿ])")
# Names that begin in lower case: cour d'appel de Bourges, salar de Atacama.
_LOWER_HEADS = {
    code: re.compile(rf"\b(?:{heads})$") for code, heads in _WORDS["lower_heads"].items()
}
MAX_LOWER_HEAD_CHARS = 50


def find_species_end(text: str, start: int, end: int, language: Language) -> tuple[int, int] | None:
    """Return the span of a species whose genus is the last word of a capitalized span."""
    genus = text[start:end].rsplit(None, 1)[-1]
    if len(genus) > 3 and text.startswith(f" {genus.lower()} ", end):
        return end - len(genus), end + 1 + len(genus)  # Vulpes vulpes
    species = _SPECIES.match(text, end)
    if not species:
        return None
    pattern = _LATIN_GENUS if language.code in _ROMANCE else _GENUS
    if language.code not in _LATIN_LANGUAGES:
        return None
    if not pattern.match(genus) or genus in GIVEN_NAMES or genus.lower() in HEAD_WORDS:
        return None
    common = common_words(language.code)
    if species[1] in common or species[1] in language.function_words or genus.lower() in common:
        return None
    return end - len(genus), species.end()


def find_numbered_end(text: str, start: int, end: int, language: Language) -> int:
    """Return the end of a law with its number, of a model, or of a firm with its country."""
    if text.startswith(_PUBLIC_COMPANY, end) and not text[end + 4 : end + 5].isalnum():
        return end + len(_PUBLIC_COMPANY)
    if _PLANET.match(text, end) and _CATALOGUE_NUMBER.search(text, start, end):
        return end + 2
    if text[end + 1 : end + 2] not in _NUMBER_STARTS:
        return end
    if form := _COUNTRY_AND_FORM.match(text, end):
        return form.end()
    version = _LICENSE_VERSION.match(text, end)
    if version and text.endswith(("License", "Licence"), start, end):
        return version.end()
    model = _MODEL_NUMBER.match(text, end)
    if model and text[end - 1].islower() and model[1] not in _UNITS:
        last = text[start:end].rsplit(None, 1)[-1]
        is_word = last.lower() in common_words(language.code)  # Room 14B
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
    return reached


def is_institution(word: str) -> bool:
    """Return whether a word in title case heads names of institutions."""
    is_head = is_organization_word(word) or word.lower() in _INSTITUTIONS
    return word[0].isupper() and word[1:].islower() and is_head


_INSTITUTIONS = frozenset(read_lists("nlp/data/entity_types")["organizations"].split())


def find_lower_head(text: str, start: int, language: Language) -> int:
    """Return the start of a name whose first words have no capital."""
    pattern = _LOWER_HEADS.get(language.code)
    if not pattern or text[start - 1 : start] not in (" ", "'", "’"):
        return start
    before = text[max(0, start - MAX_LOWER_HEAD_CHARS) : start]
    head = pattern.search(before)
    return start - len(before) + head.start() if head else start
