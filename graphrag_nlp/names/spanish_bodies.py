"""Ends of Spanish bodies with several fields or adjectives: Unión Económica y Monetaria."""

import re

from graphrag_nlp.names.known_names import is_known_name
from graphrag_nlp.names.name_words import HEAD_WORDS, common_words, is_head_word, is_role
from graphrag_nlp.text.languages import word_set

# Spanish heads of bodies with several fields: Ministerio de Agricultura, Pesca y Alimentación.
_SPANISH_OFFICES = word_set(
    "ministerio secretaría subsecretaría viceministerio consejería concejalía departamento "
    "comisión superintendencia dirección instituto facultad escuela agencia servicio academia "
    "colegio cámara tribunal autoridad confederación federación consejo delegación oficina "
    "observatorio unidad fiscalía subdirección gerencia ley plan programa"
)
_SPANISH_WORDS = r"([A-ZÁÉÍÓÚ][a-záéíóúñ]+)(?: [A-ZÁÉÍÓÚ][a-záéíóúñ]+)?"
# The rest of the fields of a Spanish body: | , Pesca y Alimentación.
_SPANISH_FIELDS = re.compile(
    rf"(?:, (?:de |la )?{_SPANISH_WORDS}){{0,3}}"
    rf",? [ye] (?:de )?(?:(?:la|el|los|las|del) )?(?P<last>{_SPANISH_WORDS})"
    # y de Gestión de Activos
    r"(?:(?<=ción) de [A-ZÁÉÍÓÚ][a-záéíóúñ]+s\b|(?<=stión) de [A-ZÁÉÍÓÚ][a-záéíóúñ]+s\b)?"
)
# The second adjective of a Spanish body or law: Unión Económica | y Monetaria.
_SECOND_ADJECTIVE = re.compile(r" [ye] ([A-ZÁÉÍÓÚ][a-záéíóúñ]+)\b(?! [A-ZÁÉÍÓÚ])")
_SPANISH_ADJECTIVE = re.compile(r"(?:[aeioáéíóú][cv][oa]s?|ari[oa]s?|al|ales|il|iles)$")
# The purpose of a Spanish body: Comisión Española de Ayuda | al Refugiado.
_SPANISH_PURPOSE = re.compile(
    r" (?:al|a la|a los|a las) (?P<last>[A-ZÁÉÍÓÚ][a-záéíóúñ]+(?: [A-ZÁÉÍÓÚ][a-záéíóúñ]+)?)\b"
)
_PURPOSE_NOUNS = frozenset(
    "Ayuda Atención Apoyo Asistencia Acogida Asesoramiento Servicio Acceso Acompañamiento "
    "Protección Información Orientación Fomento Impulso Lucha".split()
)
# The second founder of a Spanish body, and words before the first.
_FOUNDER = re.compile(
    r" [ye] (?P<last>[A-ZÁÉÍÓÚ][a-záéíóúñ]+)\b(?! ?[A-ZÁÉÍÓÚ(]| de)"
    # With a verb in the plural, they are two bodies: El Bufete Garrigues y Uría son rivales.
    r"(?! (?:son|eran|serán|están|han|\w{2,}(?:aron|ieron))\b)"
)
# Heads of parties and their groups, whose adjectives are names: Partido Popular | y Socialista.
_GROUPS = frozenset("Grupo Grupos Partido Partidos Minoría".split())
_FOUNDED = frozenset("fundación sociedad editorial bufete".split())
# Ends of abstract nouns: Cooperación, Sanidad, Ganadería, Turismo.
_SPANISH_FIELD = re.compile(
    r"(?:[cst]i[óo]n(?:es)?|dad(?:es)?|ría|ismo|encia|ancia|ura|nomía|ogía|iento|eo|ales?"
    r"|icas?|tivas?|anzas?|tud|aje)$"
)


def find_fields_end(text: str, start: int, end: int) -> int:
    """Return the end of a Spanish body with several fields; 0 if it has one."""
    if text[end : end + 2] not in (", ", " y", " e", " a"):
        return 0
    words = text[start:end].split()
    if purpose := _SPANISH_PURPOSE.match(text, end):
        has_purpose = words[-1] in _PURPOSE_NOUNS and len(words) > 1 and is_head_word(words[0])
        return purpose.end() if has_purpose and not is_known_name(purpose["last"]) else 0
    if adjective := _find_second_adjective_end(text, end, words):
        return adjective
    founder = _FOUNDER.match(text, end)
    if founder and len(words) > 1 and words[-2].lower() in _FOUNDED:
        # Fundación Ortega y Gasset, but not Fundación Botín | y Telefónica
        return 0 if is_known_name(founder["last"]) else founder.end()
    head = next((i for i, word in enumerate(words) if word.lower() in _SPANISH_OFFICES), -1)
    if head < 0 or not {"de", "del", "para"} & set(words[head:]) or words[-1][-1] in ".)":
        return 0
    fields = _SPANISH_FIELDS.match(text, end)
    if not fields:
        return 0
    if is_known_name(fields["last"]):
        return 0  # Tribunal Supremo de Polonia | y Hungría
    last = fields["last"].partition(" ")[0].lower()
    is_field = last in common_words("es") or _SPANISH_FIELD.search(last) is not None
    is_other = (last in HEAD_WORDS and last != "hacienda") or is_role(last)
    return fields.end() if is_field and not is_other else 0


def _find_second_adjective_end(text: str, end: int, words: list[str]) -> int:
    """Return the end of a Spanish body with two adjectives: Unión Económica | y Monetaria; or 0."""
    second = _SECOND_ADJECTIVE.match(text, end)
    first = words[-1]
    if not second or len(words) < 2 or not is_head_word(words[0]) or words[0] in _GROUPS:
        return 0
    are_adjectives = all(map(_SPANISH_ADJECTIVE.search, (first, second[1])))
    is_other = is_known_name(second[1]) or second[1].lower() in HEAD_WORDS or is_role(second[1])
    agree = first.endswith("s") == second[1].endswith("s")
    return second.end() if are_adjectives and agree and not is_other else 0
