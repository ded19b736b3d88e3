"""The entities that a question asks about, in its order; and what an unknown name may mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import polars as pl

from graphrag_index.text.languages import detect_language, language_of
from graphrag_index.text.normalize import fold_names, sounds_of
from graphrag_query.question.entity_linking import How, names_in_question
from graphrag_query.question.written_names import folded, names_in
from graphrag_query.retrieval.index_store import KnowledgeModel

# A text of so few words may be a name alone.
MOST_WORDS_OF_NAME = 6
# Words that begin or sound like an unknown one, compared with it; and how alike they must be.
MOST_COMPARED = 2_000
LEAST_ALIKE = 0.6


@dataclass(frozen=True)
class Asked:
    """A name in a question, folded, and the entity that it most likely means."""

    name: str
    entity: int
    how: How


@dataclass(frozen=True)
class Unknown:
    """A name that no entity has, and the titles of those with similar ones."""

    name: str
    similar: Sequence[str]

    def __str__(self) -> str:
        similar = f"; similar names: {', '.join(self.similar)}" if self.similar else ""
        return f"The index knows no entity named {self.name}{similar}."


@dataclass(frozen=True)
class Ends:
    """What a search of the graph starts from: entities, each once, and names of none.

    `notes` tell which name is taken for that of another spelling.
    """

    entities: list[int]
    unknown: list[Unknown]
    notes: tuple[str, ...] = ()


def find_ends(model: KnowledgeModel, question: str, names: Sequence[str] = ()) -> Ends:
    """Find the entities with these names, or else those that a question names."""
    if not names:
        asked = asked_entities(model, question)
        unknown = unknown_entities(model, question, asked)
        if not asked and not unknown and len(question.split()) <= MOST_WORDS_OF_NAME:
            # A name alone is no question: its capital tells nothing.
            return find_ends(model, question, [question.strip(" ?!.？！。؟")])
        return Ends([found.entity for found in asked], unknown, _notes(model, asked))
    found, unknown = [], []
    for name in names:
        named = asked_entities(model, name)
        if named:
            # Of a name that holds several, the longest is meant.
            found.append(max(named, key=lambda asked: len(asked.name)))
        else:
            unknown.append(Unknown(name, similar_names(model, name)))
    entities = list(dict.fromkeys(asked.entity for asked in found))
    return Ends(entities, unknown, _notes(model, found))


def asked_entities(model: KnowledgeModel, question: str) -> list[Asked]:
    """Return the entities that a question names, in its order: one for each name.

    A word of a longer name that is not known as a whole names nothing: Scott is not
    Scott Fitzgerald.
    """
    of_name: dict[str, Asked] = {}
    # The likeliest of a name comes first.
    for named in names_in_question(model, question):
        of_name.setdefault(named.name, Asked(named.name, named.entity, named.how))
    for words in _names(question):
        inside = [name for name in of_name if words.issuperset(name.split())]
        if words - {word for name in inside for word in name.split()}:
            of_name = {name: of_name[name] for name in of_name if name not in words}
    [plain] = pl.DataFrame({"name": [question]}).select(fold_names(pl.col("name"))).to_series()
    asked = sorted(of_name.values(), key=lambda asked: (plain.find(asked.name), asked.name))
    return list({entity.entity: entity for entity in reversed(asked)}.values())[::-1]


def unknown_entities(model: KnowledgeModel, question: str, asked: Sequence[Asked]) -> list[Unknown]:
    """Return what looks like a name in a question and is that of no entity."""
    known = {word for entity in asked for word in entity.name.split()}
    return [
        Unknown(text, similar_names(model, text))
        for words, text in _names(question).items()
        if not words & known
    ]


def _names(question: str) -> dict[frozenset[str], str]:
    """Return the names that capitals mark in a question by their folded words, without titles."""
    # Where every noun has a capital, it marks none, and two words in a row need not be one name.
    if language_of(detect_language(question)).capitalizes_nouns:
        return {}
    return {
        frozenset(w for word in name.words for w, _ in _folded_words(word)): name.text
        for name in names_in(question)
        if name.words
    }


def _notes(model: KnowledgeModel, asked: Sequence[Asked]) -> tuple[str, ...]:
    spelt = [found for found in asked if found.how == "spelling"]
    titles = model.entities([found.entity for found in spelt])["title"]
    return tuple(
        f"“{found.name}” is taken for {title}." for found, title in zip(spelt, titles, strict=True)
    )


def spelt_otherwise(model: KnowledgeModel, question: str) -> tuple[str, ...]:
    """Tell which name of a question is taken for that of another spelling."""
    known = model.map("name_words")
    for word in {word for words in _names(question) for word in words}:
        row = known.place("word", word)
        if row == len(known) or known.text("word", row) != word:
            return _notes(model, asked_entities(model, question))
    return ()


def similar_names(model: KnowledgeModel, name: str, most: int = 3) -> list[str]:
    """Return titles of entities with names written or sounding like this one, the nearest first."""
    table = model.map("name_words")
    rows: dict[int, float] = {}
    for word, like in _folded_words(name):
        first = table.place("word", word[:2])
        here = table.place("word", word)
        rows_near = range(
            max(first, here - MOST_COMPARED // 2), min(len(table), here + MOST_COMPARED // 2)
        )
        sounding = _sounding(model, like)
        for row in {*rows_near, *sounding}:
            other = table.text("word", row)
            if row in sounding or other[:2] == word[:2]:
                ratio = SequenceMatcher(None, word, other).ratio()
                if ratio >= LEAST_ALIKE or row in sounding:
                    rows[row] = max(rows.get(row, 0.0), ratio)
    best = sorted(rows, key=lambda row: (-rows[row], row))[:20]
    entities = list(
        dict.fromkeys(int(e) for row in best for e in table.numbers("entities", row, 5))
    )
    entities = [entity for entity in entities if model.holds(entity)]
    titles = model.entities(entities)["title"].to_list()
    fits = {
        title: max(
            SequenceMatcher(None, folded(name.lower()), folded(part.lower())).ratio()
            for part in (title, *title.split())
        )
        for title in titles
    }
    degrees = dict(zip(titles, model.links.n_relationships_of(entities).tolist(), strict=True))
    return sorted(fits, key=lambda title: (-fits[title], -degrees[title], title))[:most]


def _folded_words(name: str) -> list[tuple[str, str]]:
    """Return the folded words of a name, and the sound of each."""
    words = pl.DataFrame({"word": [name]}).select(fold_names(pl.col("word")).str.split(" "))
    table = words.explode("word").filter(pl.col("word") != "")
    return list(table.select("word", sound=sounds_of(pl.col("word"))).iter_rows())


def _sounding(model: KnowledgeModel, like: str) -> set[int]:
    """Return the rows of name_words that sound so."""
    if not like:
        return set()
    sounds = model.map("name_sounds")
    row = sounds.place("sound", like)
    if row == len(sounds) or sounds.text("sound", row) != like:
        return set()
    return {int(word) for word in sounds.numbers("words", row, MOST_COMPARED)}
