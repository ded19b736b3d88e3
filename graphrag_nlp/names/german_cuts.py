"""Cuts of German spans that have two names without a comma: lists of committees and persons."""

from collections.abc import Iterator

from graphrag_nlp.names.compounds import GERMAN_ADJECTIVE, is_certain_noun
from graphrag_nlp.names.german_names import is_plural, may_be_surname, names_person
from graphrag_nlp.names.known_names import find_german_type, find_known_type
from graphrag_nlp.names.name_words import (
    GERMAN_ADDRESSES,
    is_head_word,
    more_given_names,
)
from graphrag_nlp.names.place_ratings import is_nation
from graphrag_nlp.names.span_words import Cut, SpanWords
from graphrag_nlp.names.type_classifier import rate_words
from graphrag_nlp.text.languages import is_title, read_lists, word_set

# Marks of items of an agenda: ZP 4.
_AGENDA_MARKS = frozenset(("ZP", "TOP"))
_COMMITTEES = ("ausschuss", "ausschuß", "ausschusses", "ausschusse")
_COMMITTEE = frozenset(word.capitalize() for word in _COMMITTEES)
_COURTS = ("gericht", "gerichts", "gerichtshof", "gerichtshofs")
# Articles that begin a sentence behind a name, where a full stop was lost.
_ARTICLES = frozenset(("Die", "Der", "Das"))
_GROUPS = frozenset(("Fraktion", "Bundestagsfraktion", "Landtagsfraktion"))
# Nouns of idioms with "zu" and "zur", which belong to no name: stellt die Bahn | zur Verfügung.
_IDIOMS = frozenset(
    "Verfügung Disposition Wort Gast Recht Unrecht Ende Debatte Diskussion Abstimmung Kenntnis "
    "Sprache Rede Hilfe Seite Kasse Last Lasten Gunsten Ungunsten Folge Zeit Schau Wehr Mitte "
    "Protokoll Hause Grunde Boden Fall Besuch Rate Rande Beginn Anfang Jahresbeginn Jahresende "
    "Buche Stande Tage Papier Geltung Ruhe Vernunft Rechenschaft Verantwortung Pflicht Folge "
    "Anwendung Vermeidung Stellungnahme Mitberatung Überweisung Zufriedenheit Sache".split()
)
# Units before a noun, and words for numbers: 200 DM | Monatsbelastung, Millionen | Menschen.
_UNITS = frozenset(
    "DM Mark Euro Dollar Prozent Tonnen Million Millionen Milliarde Milliarden".split()
)
# Powers of the state and bodies, behind which the plural of a noun is an object.
_POWERS = frozenset(
    "Regierung Bundesregierung Landesregierung Staatsregierung Kommunen Gemeinden Länder Bund "
    "Kommission EU-Kommission Bundesrepublik Bundestag Bundesrat Parlament Opposition Koalition "
    "Ministerium Gericht Verfassung EU Union Polizei Bundeswehr Bundesbank".split()
)
# Parties that lists of speakers put behind a name.
_PARTIES = frozenset("AfD BSW CDU CSU FDP PDS SPD GRÜNE LINKE FPÖ ÖVP SPÖ SVP".split())
_PURPOSES = frozenset(("zur", "zum"))
_NAMED_AFTER = word_set(read_lists("graphrag_nlp/names/data/words")["german_named_after"])
# Maximum number of capitals behind a person's name that belong to it: III.
_MAX_SUFFIX_LETTERS = 3


def cut_german_list(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut a German span between two names: Gysi Herrn | Milosevic, Hilfe ZP 4 | Beratung."""
    for at in range(1, len(words)):
        word, is_last = words[at], at == len(words) - 1
        if word in GERMAN_ADDRESSES and not is_last:
            return at, at + 1
        if word in _AGENDA_MARKS and (is_last or words[at + 1].isdigit()):
            return at, min(at + 2, len(words))
        if _begins_committee(words, at) or _ends_committee(words, at):
            return at, at
        if word in _ARTICLES and _begins_sentence(span, words, at):
            return at, at + 1
    if _is_court_before_judge(words):
        return 1, 1
    if _is_person_noun_before_surname(words):
        return 0, 1
    return (
        next(_find_known_bodies(span, words), None)
        or _cut_between_persons(words)
        or _cut_idiom(words)
        or _cut_after_power(span, words)
        or _cut_object(span, words)
    )


def _cut_idiom(words: list[str]) -> Cut | None:
    """Cut an idiom off a name: (stellt die) Deutsche Bahn AG | zur Verfügung."""
    for at in range(1, len(words) - 1):
        if words[at] in ("zu", "zur") and words[at + 1] in _IDIOMS:
            return at, at + 2
        if words[at] == "zur" and words[at + 1].isupper() and find_known_type(words[at - 1]):
            return at, at + 1  # (der Beitritt der) EU | zur EMRK
    return None


def _cut_after_power(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut an object off a state or its power: (gab die) Kommission | Irritationen, EU | 700."""
    is_power = words[0] in _POWERS
    if not is_power and not is_nation(words[0]):
        return None
    if is_power and (words[-1].isdigit() or words[1] == "da"):
        return 1, len(words)
    noun = words[1]
    if not is_plural(noun) or not (is_power or len(words) == 2):
        return None
    is_name = is_head_word(noun) or may_be_surname(noun) or find_known_type(noun) != ""
    return None if is_name or noun in span.usage.towns or noun in more_given_names() else (1, 2)


def _cut_object(span: SpanWords, words: list[str]) -> Cut | None:
    """Cut a common noun off a person or a unit: (hat) Herr Serpa | Stellung, DM | Belastung."""
    noun = words[-1]
    if not is_certain_noun(noun) or is_head_word(noun) or noun.lower() in _NAMED_AFTER:
        return None
    if words[0] in _UNITS and len(words) == 2:
        return 0, len(words)
    own = words[1:-1] if words[0] in GERMAN_ADDRESSES else words[:-1]
    is_titled = own != words[:-1] and len(own) == 1 and not is_certain_noun(own[0])
    is_titled = is_titled and own[0] not in more_given_names()
    is_full = len(own) in (2, 3) and own[0] in more_given_names()
    is_full = is_full and span.may_be_person(own[1:]) and own[-1] not in more_given_names()
    if not (is_titled or is_full) or own[-1].islower() or noun in more_given_names():
        return None
    # The noun may be a second surname: Ines Dürr Winter.
    is_surname = noun in span.surnames or may_be_surname(noun)
    return None if is_surname else (len(words) - 1, len(words))


def _begins_sentence(span: SpanWords, words: list[str], at: int) -> bool:
    """Return whether an article begins a sentence: Peter Stein | Die Fraktion, not Die Linke."""
    rest = words[at + 1 :]
    is_name = any(find_known_type(" ".join(words[at:end])) for end in range(at + 2, len(words) + 1))
    return span.is_full_name(words[:at]) and bool(rest) and not is_name


def _begins_committee(words: list[str], at: int) -> bool:
    """Return whether a committee begins at a word: Europäischen Union | Haushaltsausschuss."""
    if not words[at].lower().endswith(_COMMITTEES) or words[at - 1].islower():
        return False
    return GERMAN_ADJECTIVE.fullmatch(words[at - 1]) is None or words[at - 1].endswith("es")


def _ends_committee(words: list[str], at: int) -> bool:
    """Return whether a committee ends before a word: Auswärtiger Ausschuss | Innenausschuss."""
    if not words[at - 1].lower().endswith(_COMMITTEES) or words[at].islower():
        return False
    is_named = at > 1 or words[at - 1] not in _COMMITTEE
    return is_named and is_certain_noun(words[at])


def _is_person_noun_before_surname(words: list[str]) -> bool:
    """Return whether a surname stands behind a noun for a person: Verteidiger | Kowalke."""
    noun = words[0]
    if is_title(noun) or not more_given_names().isdisjoint(words[:2]):
        return False  # Herzog Carl August
    if not names_person(noun) or not is_certain_noun(noun):
        return False
    return words[1].istitle() and may_be_surname(words[1]) and not is_head_word(words[1])


def _is_court_before_judge(words: list[str]) -> bool:
    """Return whether a surname stands behind a court: Richterin am Amtsgericht | Dombrowski."""
    if len(words) != 2 or not words[0].lower().endswith(_COURTS):
        return False
    rating = rate_words(words[1:])[words[1]]
    return rating.surname > 0 and rating.town == 0


def _find_known_bodies(span: SpanWords, words: list[str]) -> Iterator[Cut]:
    """Yield cuts beside a known body: Norbert Lammert | Deutscher Bundestag."""
    for at in range(2, len(words)):
        left, right = words[:at], words[at:]
        if left[0] in _GROUPS and _is_body(left[1:]):
            yield at, at  # Fraktion DIE LINKE | Export
        is_name = span.is_full_name(left) or any(_is_body(left[i:]) for i in range(at - 1))
        if right[0] in _PURPOSES and is_name:
            yield at, len(words)  # Auswärtiges Amt | zur Koordinierung
        is_shouted = right[0].isupper() and len(right[0]) > _MAX_SUFFIX_LETTERS
        is_body = is_shouted or (len(right) > 1 and _is_body(right))
        is_body |= len(right) == 1 and right[0] in _PARTIES  # Ulrich Heinrich | FDP
        if is_body and at < 4 and span.is_full_name(left):
            yield at, at


def _cut_between_persons(words: list[str]) -> Cut | None:
    """Cut two full names, also with rare given names: Armin Schuster | Ronja Kemmer."""
    given = [word.partition("-")[0] in more_given_names() for word in words[:4]]
    if len(words) < 4 or given[:3] != [True, False, True]:
        return None
    # The last surname may be a noun or a given name: Hans-Werner Kammer, Sigmar Gabriel.
    is_pair = len(words) == 4 and (given[3] or "-" in words[2]) and words[3].istitle()
    own = words[:3] if is_pair else words
    return None if (given[3] and not is_pair) or any(map(is_head_word, own)) else (2, 2)


def _is_body(words: list[str]) -> bool:
    name = " ".join(words)
    return (find_known_type(name) or find_german_type(name)) == "organization"
