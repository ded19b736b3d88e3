"""Which entities a question names: as they are written, by a part, or spelt otherwise.

Names are looked up in order, so the cost is that of the question's words and not that of the index.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import polars as pl

from graphrag_index.text.languages import detect_language, language_of
from graphrag_index.text.normalize import UNSPACED, WORD, fold_names, sounds_of
from graphrag_query.answering.sentence_ranking import ASKING
from graphrag_query.question.edit_distance import edit_distance
from graphrag_query.question.written_names import forms_of, names_in

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from graphrag_index.storage.mapped_table import MappedTable
    from graphrag_query.retrieval.index_store import KnowledgeModel

    Numbers = npt.NDArray[np.integer[Any]]

# Words of the longest name that is looked for, or characters where no spaces stand.
MAX_UNITS = 12
# Entities that one name may stand for, those of the highest degree.
MAX_CANDIDATES = 5
# Entities of one word that are looked through, and words that may be another spelling.
MAX_ENTITIES_OF_WORD = 20_000
MAX_WORDS = 1_000
# In a question without capitals any word may be a name: one that few entities have is taken.
FEW = 8
# Shorter words have no other spelling: too many names differ by a letter.
MIN_SPELT = 5
# How sure a name is that is written with another ending.
INFLECTED = 0.95

How = Literal["exact", "part", "spelling"]
_UNITS = rf"{UNSPACED}|[^{UNSPACED[1:-1]}]+"


@dataclass(frozen=True)
class NamedEntity:
    """An entity that a question names, and how sure that is: 1 if as it is written."""

    entity: int
    name: str  # the question's words for it, folded
    how: How
    weight: float


class _Word(NamedTuple):
    """A word of `name_words` that a word of the question may be."""

    row: int
    how: How
    likeness: float


def names_in_question(model: "KnowledgeModel", question: str) -> list[NamedEntity]:
    """Find the entities that a question names, the surest first, each once.

    The longest runs of its words that are a whole name are `exact`. Of the other names in it
    (see `written_names`) all words must stand in one name of an entity, where an ending may
    differ (`part`) or, for a word that no name has, the spelling. What several entities may
    be weighs less for each, and only those of the highest degree are returned.
    """
    names = _Names(model, question)
    found = names.whole()
    covered = {word for entity in found for word in entity.name.split()}
    for words in names.others(covered):
        found += names.in_part(words)
    best: dict[int, NamedEntity] = {}
    for entity in found:
        known = best.get(entity.entity)
        if model.holds(entity.entity) and (known is None or entity.weight > known.weight):
            best[entity.entity] = entity
    return sorted(best.values(), key=lambda named: (-named.weight, named.entity))


class _Names:
    """The names of an index, as one question asks for them."""

    def __init__(self, model: "KnowledgeModel", question: str) -> None:
        self.model = model
        self.question = question
        self.language = language_of(detect_language(question))
        self.plain = self.language.function_words | ASKING

    @cached_property
    def words(self) -> "MappedTable":
        return self.model.map("name_words")

    def whole(self) -> list[NamedEntity]:
        """Find the runs of words that are the name of an entity, longest first, apart."""
        spans = []
        units, telling = self._units()
        for first in range(len(units)):
            phrase = ""
            for last in range(first, min(first + MAX_UNITS, len(units))):
                phrase += units[last]
                rows = self._rows_of(phrase.strip())
                if rows is None:
                    break
                is_name = any(telling[first : last + 1]) and len(phrase.strip()) > 1
                if rows and is_name:
                    spans.append((first - last - 1, first, last + 1, phrase.strip(), rows))
        taken: set[int] = set()
        found = []
        for _, first, stop, phrase, rows in sorted(spans, key=lambda span: span[:2]):
            if taken.isdisjoint(range(first, stop)):
                taken.update(range(first, stop))
                entities = self.model.map("entity_names").slice("entity", rows.start, rows.stop)
                best = self._of_highest_degree(entities[:MAX_ENTITIES_OF_WORD])
                found += [NamedEntity(int(entity), phrase, "exact", 1.0) for entity in best]
        return found

    def _units(self) -> tuple[list[str], list[bool]]:
        """Cut the question into folded words, with the space before, and into characters where
        no spaces stand; and tell which say more than words of any question.
        """
        words = pl.DataFrame({"word": [self.question]}).select(
            pl.col("word").str.extract_all(WORD).explode()
        )
        parts = words.select(
            "word", units=fold_names(pl.col("word")).str.extract_all(_UNITS)
        ).drop_nulls("word")
        units, telling = [], []
        for word, found in parts.iter_rows():
            for at, unit in enumerate(found):
                units.append(unit if at else " " + unit)
                # A character of a script without spaces may tell as much as a word.
                tells = len(unit) > 1 or not unit.isascii()
                telling.append(tells and word.lower() not in self.plain and unit not in self.plain)
        return units, telling

    def _rows_of(self, phrase: str) -> range | None:
        """Return the rows whose name this is; None if no name begins so."""
        table = self.model.map("entity_names")
        first = table.place("name", phrase)
        if first == len(table) or not table.text("name", first).startswith(phrase):
            return None
        return range(first, table.place("name", phrase + "\0", first))

    def others(self, covered: set[str]) -> list[list[str]]:
        """Return the folded words of each name in the question that is not found whole."""
        marked = [list(name.words) for name in names_in(self.question)]
        if self.language.capitalizes_nouns:
            # A name may stand beside any noun.
            marked += [[word] for words in marked for word in words if len(words) > 1]
        # Without capitals any word may be a name; with them the first, if no name goes on.
        pattern = r"[^\W\d_]{4,}"
        if any(letter.isupper() for letter in self.question[1:]):
            first = re.match(rf"({pattern})['’]?\s+(\w)", self.question)
            words = [first[1].lower()] if first and not first[2].isupper() else []
        else:
            words = re.findall(pattern, self.question.lower())
        unmarked = [[word] for word in words]
        unmarked = [[word] for [word] in unmarked if word not in self.plain]
        runs = [words.split() for words in _folded([" ".join(run) for run in marked + unmarked])]
        kept = []
        for at, run in enumerate(runs):
            is_sure = at < len(marked) and (len(run) > 1 or not self.language.capitalizes_nouns)
            if run and not covered.issuperset(run) and (is_sure or self._few_have(run)):
                kept.append(run)
        return kept

    def _few_have(self, words: Sequence[str]) -> bool:
        """Tell whether so few entities have each of these words that they may well be meant."""
        rows = [word.row for text in words for word in self._resolve(text)]
        numbers = [len(self.words.numbers("entities", row, FEW + 1)) for row in rows]
        return bool(rows) and max(numbers) <= FEW

    def in_part(self, words: Sequence[str]) -> list[NamedEntity]:
        """Find the entities of which one name holds all these words."""
        found = self._in_part([self._resolve(word) for word in words])
        if not found and len(words) > 1 and self.language.endings:
            # "Ивана Петрова" is Иван Петров, though another is called Петрова.
            found = self._in_part([self._inflected(word) or self._resolve(word) for word in words])
        return [NamedEntity(entity, " ".join(words), how, weight) for entity, how, weight in found]

    def _in_part(self, resolved: Sequence[list[_Word]]) -> list[tuple[int, How, float]]:
        """Find the entities of which one name holds one of each of these words."""
        import numpy as np

        if not all(resolved):
            return []
        # The rarest word first: the others only have to be among its entities.
        lists = sorted((self._entities_of(found) for found in resolved), key=len)
        entities = lists[0]
        for other in lists[1:]:
            entities = entities[np.isin(entities, other)]
        n_entities = len(entities)
        if n_entities == 0:
            return []
        likeness = min(found[0].likeness for found in resolved)
        how: How = "spelling" if any(f[0].how == "spelling" for f in resolved) else "part"
        known = [{self.words.text("word", word.row) for word in found} for found in resolved]
        best = self._of_highest_degree(entities)
        rows = self.model.entities(best)
        named = []
        for entity, title, aliases in rows.select(
            "human_readable_id", "title", "aliases"
        ).iter_rows():
            share = _share(known, _folded([title, *aliases]))
            if share:
                weight = likeness * (1 + share) / 2 / n_entities**0.5
                named.append((entity, how, round(weight, 6)))
        return named

    def _entities_of(self, words: Sequence[_Word]) -> "Numbers":
        import numpy as np

        lists = [self.words.numbers("entities", w.row, MAX_ENTITIES_OF_WORD) for w in words]
        return lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))

    def _of_highest_degree(self, entities: "Numbers") -> list[int]:
        numbers = [int(entity) for entity in entities]
        if len(numbers) <= 1:
            return numbers
        degrees = self.model.map("entity_rows").rows(numbers, "degree")["degree"].to_list()
        order = sorted(zip(numbers, degrees, strict=True), key=lambda pair: (-pair[1], pair[0]))
        return [number for number, _ in order[:MAX_CANDIDATES]]

    def _resolve(self, word: str) -> list[_Word]:
        """Find which words of names a word may be: itself, with another ending, spelt otherwise."""
        row = _row_of(self.words, "word", word)
        if row is not None:
            return [_Word(row, "part", 1.0)]
        return self._inflected(word) or self._other_spellings(word)

    def _inflected(self, word: str) -> list[_Word]:
        """Find the words of names that may be a word with another ending."""
        forms = forms_of(word, self.language)
        near = self._beginning(word[: max(3, len(word) - 4)], MAX_WORDS)
        return [
            _Word(row, "part", INFLECTED)
            for row, known in near
            if forms & forms_of(known, self.language)
        ]

    def _beginning(self, beginning: str, most: int) -> list[tuple[int, str]]:
        """Return the words of names that begin so, or the first of them."""
        first = self.words.place("word", beginning)
        stop = min(self.words.place("word", beginning + "\U0010ffff", first), first + most)
        return list(zip(range(first, stop), self.words.texts("word", first, stop), strict=True))

    def _other_spellings(self, word: str) -> list[_Word]:
        """Return the words that are most likely this one, spelt otherwise."""
        if len(word) < MIN_SPELT or not word.isalpha():
            return []
        sounding = set(self._sounding(_sound(word)))
        rows = set(sounding)
        # The longer the beginning, the fewer words have it.
        for length in range(3, len(word)):
            near = self._beginning(word[:length], MAX_WORDS)
            if len(near) < MAX_WORDS:
                rows.update(row for row, _ in near)
                break
        found = []
        for row in sorted(rows):
            known = self.words.text("word", row)
            distance = edit_distance(word, known, 3)
            if is_other_spelling(word, known, distance, row in sounding):
                found.append((distance, row, 1 - distance / max(len(word), len(known))))
        least = min(found, default=(0,))[0]
        return [_Word(row, "spelling", like) for distance, row, like in found if distance == least]

    def _sounding(self, heard: str) -> list[int]:
        table = self.model.map("name_sounds")
        row = _row_of(table, "sound", heard) if heard else None
        return [] if row is None else table.numbers("words", row, MAX_WORDS).tolist()


def is_other_spelling(asked: str, known: str, distance: int, same_sound: bool) -> bool:
    """Tell whether two words, folded, are spellings of one name and not two names.

    `distance` counts letters that are added, left out, replaced, or swapped with their neighbour.
    What sounds alike may differ more the longer it is; what does not may differ in one letter
    inside of a long word. A vowel more or less at the end makes another name: Martin, Martina.
    """
    longest = max(len(asked), len(known))
    if same_sound:
        ends_alike = (asked[-1] in "aeiouy") == (known[-1] in "aeiouy")
        return ends_alike and distance <= (1 if longest < 9 else 2 if longest < 10 else 3)
    same_ends = asked[0] == known[0] and asked[-1] == known[-1]
    return longest >= 8 and distance <= 1 and same_ends


def _share(words: Sequence[set[str]], names: Iterable[str]) -> float:
    """Return which share of a name some words are: of the name of which they are most, and 0
    if no single name holds them all. Each may be any of a set.
    """
    shares = [0.0]
    for name in names:
        held = set(name.split())
        if all(held & alternatives for alternatives in words):
            shares.append(len(words) / max(len(held), len(words)))
    return max(shares)


def _row_of(table: "MappedTable", column: str, text: str) -> int | None:
    row = table.place(column, text)
    return row if row < len(table) and table.text(column, row) == text else None


def _folded(names: Sequence[str]) -> list[str]:
    frame = pl.DataFrame({"name": names}, {"name": pl.String})
    return frame.select(fold_names(pl.col("name")))["name"].to_list()


def _sound(word: str) -> str:
    return str(pl.DataFrame({"word": [word]}).select(sounds_of(pl.col("word"))).item())
