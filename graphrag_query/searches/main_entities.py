"""The entities of a type that a question asks for: the main ones, or those of a subject."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl

from graphrag_nlp.text.languages import Language, read_lists, word_set
from graphrag_nlp.text.normalize import stem_word
from graphrag_nlp.text.places import find_places
from graphrag_query.answering.theme_answer import Point
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import (
    KIND_OF_WORD,
    STEMS_ABOUT_CORPUS,
    TYPE_OF_WORD,
    WORD,
    WORD_LISTS,
    stop_words_of,
)
from graphrag_query.retrieval.relationship_evidence import find_passages
from graphrag_query.retrieval.text_unit_ranking import rarity_of
from graphrag_query.retrieval.theme_passages import WEIGHT_OF_SUBJECT
from graphrag_query.store.index_store import IndexStore

# Number of entities whose types are read first.
FIRST_ENTITIES = 1_024
# Maximum number of words of a question up to the word that names the type.
MAX_WORDS_BEFORE_TYPE = 5
# Maximum number of entities in the name of a theme.
MAX_NAMES_OF_THEME = 2
# Kinds of answers that are no entities: "How did people survive?" does not ask for people.
NOT_FOR_ENTITIES = {"reason", "manner", "date", "time", "duration", "yes_no"}
# Words that ask for entities of any type, and words of organizations that are no companies.
ANY_TYPE = word_set(WORD_LISTS["any_type"])
NO_COMPANIES = sorted(word_set(WORD_LISTS["no_companies"]))
# English verbs after which a question names who does something.
AUXILIARY_VERBS = frozenset("do does did can could should must may might will would".split())
# Words that ask for some of many, and words between two adjectives.
WHICH = word_set(WORD_LISTS["which"])
CONJUNCTIONS = frozenset("and or und oder et ou y o e en och og i".split())
# Types of names that are often of another type, which the index could not tell.
UNCLEAR_TYPES = {"organization": ("name", "acronym")}
# Minimum population of a city with the name of a region.
MIN_CITY_OF_REGION = 200_000
UNCLEAR_PLACE_TYPES = ("name", "acronym")


@dataclass(frozen=True, eq=False)
class NamedEntity:
    """An entity and the sentences that name it."""

    number: int
    title: str
    points: list[Point]


# A plural, or a verb of the third person, in English.
_PLURAL = re.compile(r"(?<!ou)(?<!s)s$")


def asked_type(question: Question) -> tuple[str | None, str | None]:
    """Return the type of the entities that a question such as "Which companies …" asks for.

    The second value is the kind of places or organizations, such as "country" or "company", if it
    asks for those of a kind.
    """
    from graphrag_nlp.answers.kinds import find_wanted_answer

    if find_wanted_answer(question.text, question.language).kind in NOT_FOR_ENTITIES:
        return None, None
    written = WORD.findall(question.text)
    first = [word.lower() for word in written[:MAX_WORDS_BEFORE_TYPE]]
    stems = list(map(stem_word, first))
    kinds = {TYPE_OF_WORD.get(stem) for stem in stems} - {None}
    language = question.language
    if _names_the_agent(written, stems, language):
        return None, None
    if language.code == "en" and _asks_for_others(first, stems):
        return None, None
    narrower = {KIND_OF_WORD.get(stem) for stem in stems} - {None}
    return (
        kinds.pop() if len(kinds) == 1 else None,
        narrower.pop() if len(narrower) == 1 else None,
    )


def _names_the_agent(written: Sequence[str], stems: Sequence[str], language: Language) -> bool:
    """Return whether the word for a type names who does something, or what has something.

    "What do people say about films?", "What are people afraid of?" and "Was sagen die Leute über
    Filme?" do not ask for people. `stems` are those of the first words.
    """
    typed = next((at for at, stem in enumerate(stems) if stem in TYPE_OF_WORD), 0)
    words, stop_words = [word.lower() for word in written[: typed + 2]], stop_words_of(language)
    before, after = words[:typed], words[typed + 1 :]
    if language.code == "en":
        # "What are companies that invest?" and "in China?" ask for companies.
        is_told = bool(after) and (after[0] == "doing" or after[0] not in stop_words)
        if not AUXILIARY_VERBS.isdisjoint(before):
            return True
        if is_told and before[-1:] in (["are"], ["were"]):
            return True
    asking = next((at for at, word in enumerate(before) if word in WHICH), typed)
    between = before[asking + 1 :]
    has_noun = language.capitalizes_nouns and any(map(str.istitle, written[asking + 1 : typed]))
    has_noun = has_noun or not language.function_words  # of an unknown language
    if language.code == "en" and len(between) > 1 and CONJUNCTIONS.isdisjoint(between):
        # "which storm killed people", "which storms hit people"; but "which large famous cities"
        has_noun = between[-1].endswith("ed") or any(map(_PLURAL.search, between))
    if asking < typed and not has_noun and stop_words.isdisjoint(set(between) - CONJUNCTIONS):
        # Adjectives: "which large and famous cities".
        return False
    # A word for the action stands before the article: "sagen die Leute", "disent les gens".
    is_content = [
        word not in stop_words and word not in ANY_TYPE and stem not in STEMS_ABOUT_CORPUS
        for word, stem in zip(before, stems, strict=False)
    ]
    return any(is_content[:-1])


def _asks_for_others(words: Sequence[str], stems: Sequence[str]) -> bool:
    """Return whether a plural before the word for a type is what an English question asks for.

    "Which disasters killed people?" asks for disasters, but "Which kinds of people" for people.
    """
    typed = next((at for at, stem in enumerate(stems) if stem in TYPE_OF_WORD), 0)
    return any(
        word.endswith("s") and not word.endswith(("ss", "us", "is", "as")) and following != "of"
        for word, following in pairwise(words[: typed + 1])
    )


def are_of_type(entities: pl.DataFrame, kind: str, narrower: str | None = None) -> pl.Series:
    """Return for each row of titles and types whether the entity is of a type.

    With `narrower`, such as country, it must have the name of a known place of this kind, or with
    "company" a name that a company may have. A name of a country or continent is no name of a city
    or region.
    """
    types = entities["type"].str.to_lowercase()
    if narrower == "company":
        return _may_be_companies(entities["title"], types)
    if narrower is None:
        return types.is_in([kind, *UNCLEAR_TYPES.get(kind, ())])
    return pl.Series(_codes_of_places(entities, kind, narrower) != "")


def _may_be_companies(titles: pl.Series, types: pl.Series) -> pl.Series:
    """Return for each title whether a company may have it: "Intel" and "Ford Ltd", no "Senate"."""
    words = titles.str.to_lowercase().str.extract_all(r"[^\W_]+")
    has_form = words.list.set_intersection(_company_forms()).list.len() > 0
    is_other = words.list.set_intersection(NO_COMPANIES).list.len() > 0
    is_organization = types == "organization"
    rows = pl.DataFrame({"at": range(len(titles)), "is_open": is_organization & ~is_other})
    rows = rows.filter("is_open")
    places = set(find_places(titles[rows["at"]])["row"].to_list())
    is_place = pl.Series("", [False] * len(titles), dtype=pl.Boolean)
    is_place = is_place.scatter([row for n, row in enumerate(rows["at"]) if n in places], True)
    is_typed = types.is_in(["organization", *UNCLEAR_TYPES["organization"]])
    return (is_typed & has_form) | (is_organization & ~is_other & ~is_place)


@cache
def _company_forms() -> list[str]:
    return sorted(word_set(read_lists("graphrag_index/resolution/data/words")["company_forms"]))


def unite_countries(entities: pl.DataFrame, kind: str) -> "np.ndarray":
    """Map each row to the most frequent entity of the same country, or to itself.

    So "US" and "United States" count as one country.
    """
    codes = _codes_of_places(entities, kind, "country")
    united = np.arange(len(codes))
    frequencies = entities["frequency"].to_numpy()
    for code in np.unique(codes[codes != ""]):
        rows = np.flatnonzero(codes == code)
        united[rows] = rows[np.argmax(frequencies[rows])]
    return united


def _codes_of_places(entities: pl.DataFrame, kind: str, place: str) -> "np.ndarray":
    """Return for each row the country of the place of a kind that it names, or an empty text."""
    types = entities["type"].str.to_lowercase()
    unclear = UNCLEAR_PLACE_TYPES if place == "country" else ()
    rows = np.flatnonzero(types.is_in([kind, *unclear]).to_numpy())
    # Oregon and Reading are also small cities: a name of a region is a city only if it is large.
    wider = pl.col("kind").is_in(["continent", "country"]).any()
    if place == "city":
        wider |= (pl.col("kind") == "region").any() & (
            pl.col("population").max() < MIN_CITY_OF_REGION
        )
    places = find_places(entities["title"][rows])
    if place == "region":
        places = _without_foreign_cities(places)
    found = (
        places.group_by("row")
        .agg(
            code=pl.col("country").filter(pl.col("kind") == place).first(),
            is_wider=wider if place in ("region", "city") else pl.lit(False),
        )
        .filter(pl.col("code").is_not_null() & ~pl.col("is_wider"))
    )
    codes = np.full(entities.height, "", dtype=object)
    # A continent has no country.
    codes[rows[found["row"].to_numpy()]] = found["code"].replace("", place).to_numpy()
    return codes


def _without_foreign_cities(places: pl.DataFrame) -> pl.DataFrame:
    """Drop the places with the name of a large city, if the region of that name is elsewhere.

    Portland is a city, although Jamaica has a parish of that name; New York is both.
    """
    is_large = (pl.col("kind") == "city") & (pl.col("population") >= MIN_CITY_OF_REGION)
    cities, regions = places.filter(is_large), places.filter(kind="region")
    at_home = cities.join(regions, on=["row", "country"], how="semi")
    return places.join(cities.join(at_home, on="row", how="anti"), on="row", how="anti")


def find_named_entities(
    index: IndexStore,
    points: Mapping[int, Sequence[Point]],
    kind: str | None = None,
    narrower: str | None = None,
) -> list[NamedEntity]:
    """Find the entities that sentences name, those of the best sentences first.

    `points` maps the number of a text unit to its sentences. `kind` is the type of the entities,
    and `narrower` is a kind of places or organizations, such as country; None means all.
    """
    named = {n: index.links.entities_of(n).numbers.tolist() for n in points}
    numbers = sorted({entity for entities in named.values() for entity in entities})
    rows = index.open_mapped("entity_rows").rows(numbers, "title", "type", "aliases")
    fits = are_of_type(rows, kind, narrower) if kind else [True] * len(numbers)
    names = {
        number: (title, *aliases)
        for number, (title, _, aliases), fit in zip(numbers, rows.iter_rows(), fits, strict=True)
        if fit
    }
    found: dict[int, list[Point]] = {}
    for number, entities in named.items():
        own = {entity: names[entity] for entity in entities if entity in names}
        for point in points[number]:
            for entity in _named_in(point.quotation, own):
                found.setdefault(entity, []).append(point)
    listed = [NamedEntity(e, names[e][0], of_entity) for e, of_entity in found.items()]
    return sorted(listed, key=lambda n: (-max(p.score for p in n.points), n.number))


def name_themes(question: Question, themes: Sequence[Sequence[Point]]) -> list[list[str]]:
    """Return names for each theme: the entities that set its sentences apart, the best first.

    The names are those in the sentences, and those of the entities that their text units
    describe. Entities that the question names, speakers of the sentences, and those in the name of
    an earlier theme are left out.
    """
    index, links = question.index, question.index.links
    points: dict[int, list[Point]] = defaultdict(list)
    theme_of: dict[int, int] = {}
    for place, theme in enumerate(themes):
        for point in theme:
            points[point.source].append(point)
            theme_of[point.source] = place
    weights: list[dict[int, float]] = [defaultdict(float) for _ in themes]
    for entity in find_named_entities(index, points):
        for point in entity.points:
            weights[theme_of[point.source]][entity.number] += point.score
    for number, place in theme_of.items():
        entities, is_subject = links.entities_of(number)
        best_score = max(point.score for point in points[number])
        for described in entities[is_subject].tolist():
            weights[place][described] += WEIGHT_OF_SUBJECT * best_score
    used = set(question.mentions.exact_entities)
    numbers = sorted({entity for of_theme in weights for entity in of_theme} - used)
    counts = links.n_text_units_of(numbers).tolist()
    rarity = {
        entity: rarity_of(max(count, 1), links.n_text_units)
        for entity, count in zip(numbers, counts, strict=True)
    }
    titles = dict(
        zip(numbers, index.open_mapped("entity_rows").rows(numbers, "title")["title"], strict=True)
    )
    # Who speaks is shown before each sentence, and says nothing about its subject.
    speakers = {point.label for of_unit in points.values() for point in of_unit}
    used |= {number for number, title in titles.items() if title in speakers}
    names = []
    for of_theme in weights:
        found = sorted(of_theme.keys() - used, key=lambda e: (-of_theme[e] * rarity[e], e))
        used.update(found[:MAX_NAMES_OF_THEME])
        names.append([titles[entity] for entity in found[:MAX_NAMES_OF_THEME]])
    return names


def _named_in(text: str, names: Mapping[int, Sequence[str]]) -> list[int]:
    """Return the entities with a name in a text that is no part of another found name."""
    found = {name: text.count(name) for of_entity in names.values() for name in of_entity}
    for name in sorted(found, key=len):
        longer = [other for other in found if name != other and name in other]
        found[name] -= sum(text.count(other) for other in longer if found[other] > 0)
    return [entity for entity, own in names.items() if any(found[name] > 0 for name in own)]


def list_main_entities(
    index: IndexStore, kind: str, most: int, narrower: str | None = None
) -> list[NamedEntity]:
    """Return the entities of a type with the highest degree, each with a sentence about it."""
    rows = main_entities(index, [kind], most, narrower)
    rows = rows.with_columns(source="title", target="title")
    passages = find_passages(index, rows.to_dicts(), "Entities")
    listed = []
    for number, title in rows.select("human_readable_id", "title").iter_rows():
        points = []
        if passage := passages.get(number):
            points = [Point(passage[0].text, passage[0].text_unit, 0.0)]
        listed.append(NamedEntity(number, title, points))
    return listed


def main_entities(
    index: IndexStore, kinds: Sequence[str | None], most: int, narrower: str | None = None
) -> pl.DataFrame:
    """Fetch the entities of some types with the most relationships; empty means all types.

    With `narrower`, `kinds` is one type, and the entities are those of this kind.
    """
    degrees, table = index.links.degrees, index.open_mapped("entity_rows")
    n_read, found = FIRST_ENTITIES, list[int]()
    while len(found) < most:
        # Read all entities with at least this degree, so that ties are in the order of the numbers.
        least = np.partition(degrees, -n_read)[-n_read] if n_read < len(degrees) else 0
        numbers = np.flatnonzero(degrees >= least)
        numbers = numbers[np.argsort(-degrees[numbers], kind="stable")]
        if narrower is not None:
            rows = table.rows(numbers, "title", "type", "frequency")
            fits = are_of_type(rows, str(kinds[0]), narrower)
        elif kinds:
            fits = table.rows(numbers, "type")["type"].str.to_lowercase().is_in(kinds)
        else:
            fits = pl.Series([True] * len(numbers))
        pairs = zip(numbers.tolist(), fits, strict=True)
        found = [n for n, fit in pairs if fit and index.keeps_entity(n)]
        if n_read >= len(degrees):
            break
        n_read *= 16
    return index.entities(found[:most])
