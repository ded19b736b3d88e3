"""Link the names in a question to entities: exact names, parts of names, other spellings.

Names are looked up in sorted tables: the time depends on the question, not on the index size.
"""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from rapidfuzz.distance import OSA

from graphrag_nlp.text.languages import MIN_STEM, UNKNOWN_LANGUAGE, Language
from graphrag_nlp.text.normalize import UNSPACED, WORD, fold_name, is_unspaced, phonetic_key
from graphrag_query.question.question_words import NameSpan, possible_stems, stop_words_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from graphrag_index.storage.mapped_table import MappedTable
    from graphrag_query.store.index_store import IndexStore

    Numbers = npt.NDArray[np.integer[Any]]

# Maximum length of a name in words, or in characters for scripts without spaces.
MAX_UNITS_OF_NAME = 12
# Maximum number of entities that are linked to one name, those with the highest degree.
MAX_ENTITIES_OF_NAME = 5
# Maximum number of entities that are read for one word.
MAX_ENTITIES_OF_WORD = 20_000
# Maximum number of words that are compared as inflected forms or other spellings of a word.
MAX_WORDS_COMPARED = 1_000
# Maximum number of names that are compared as the same letters with other spaces.
MAX_NAMES_COMPARED = 5_000
# In a question without capitals, any word may be a name. A word is linked only if at most this
# many entities have it in their names.
MAX_UNMARKED_ENTITIES = 8
# Minimum number of letters of a word that is compared with other spellings. Too many short names
# differ by one letter only.
MIN_FUZZY_LENGTH = 5
# Similarity (0 to 1) of a name that has another ending in the question.
INFLECTED_LIKENESS = 0.95

Kind = Literal["exact", "part", "fuzzy"]
_NAME_UNIT = re.compile(rf"{UNSPACED}|[^{UNSPACED[1:-1]}]+")
_LONG_WORD = r"[^\W\d_]{4,}"


@dataclass(frozen=True)
class Mention:
    """An entity that a question names.

    `name` has the words of the question that name the entity, in lower case without accents.
    `weight` is between 0 and 1; it is 1 if the question contains the whole name.
    """

    entity: int
    name: str
    kind: Kind
    weight: float


class WholeName(NamedTuple):
    """A name in a question, in lower case without accents, and its rows in a table of names.

    `is_marked` means that it has several words or a capital, or that the question has no capitals.
    """

    name: str
    rows: range
    is_marked: bool


class _KnownWord(NamedTuple):
    """A row of the table `name_words` that matches a word of the question."""

    row: int
    kind: Kind
    likeness: float


class EntityLinker:
    """Looks up the names of one question in the tables of an index."""

    def __init__(
        self, index: "IndexStore", text: str, language: Language, spans: Sequence[NameSpan]
    ) -> None:
        self.index, self.text, self.language, self.spans = index, text, language, spans
        self.has_capitals = any(letter.isupper() for letter in text[1:])
        self.stop_words = stop_words_of(language)
        # The names of each table that the question writes with other spaces.
        self.respelt: dict[str, list[tuple[NameSpan, int, str]]] = {}

    @cached_property
    def words(self) -> "MappedTable":
        """The words of all names of entities."""
        return self.index.open_mapped("name_words")

    def link(self, whole: Sequence[WholeName]) -> list[Mention]:
        """Return the entities that the question names, the highest weight first.

        `whole` has the names that the question contains as a whole (kind `exact`). For any other
        name in the question, one name of the entity must contain all its words. Endings may
        differ (kind `part`). A word that no name contains may be spelt differently (kind
        `fuzzy`). If a name matches many entities, each of them has a lower weight.
        """
        found = [mention for name in whole for mention in self.link_whole_name(name)]
        covered = {word for mention in found for word in mention.name.split()}
        for words in self._partial_names(covered):
            found += self._find_by_parts(words)
        best: dict[int, Mention] = {}
        # The sort is stable: among mentions with equal weights, the first mention counts.
        for mention in sorted(found, key=lambda mention: (-mention.weight, mention.entity)):
            if self.index.keeps_entity(mention.entity):
                best.setdefault(mention.entity, mention)
        return list(best.values())

    def whole_names(self, table: str) -> list[WholeName]:
        """Find the names of a table in the question; keep the longest of overlapping names.

        A name must contain more than function words and question words.
        """
        names = self.index.open_mapped(table)
        units, telling, capital = self._name_units
        spans = []
        for first in range(len(units)):
            phrase = ""
            for last in range(first, min(first + MAX_UNITS_OF_NAME, len(units))):
                phrase += units[last]
                name = phrase.strip()
                start = names.find_row("name", name)
                if start == len(names) or not names.text("name", start).startswith(name):
                    break
                rows = range(start, names.find_row("name", name + "\0", start))
                if rows and any(telling[first : last + 1]) and len(name) > 1:
                    is_marked = last > first or capital[first] or not self.has_capitals
                    spans.append((first - last - 1, first, WholeName(name, rows, is_marked)))
        taken: set[int] = set()
        found = []
        for length, first, whole in sorted(spans, key=lambda span: span[:2]):
            positions = range(first, first - length)
            if taken.isdisjoint(positions):
                taken.update(positions)
                found.append(whole)
        known = {whole.name for whole in found}
        others = self.respelt[table] = self._names_in_other_spacing(names, known)
        return found + [
            WholeName(" ".join(span.words), range(row, row + 1), True) for span, row, _ in others
        ]

    def _names_in_other_spacing(
        self, names: "MappedTable", known: Set[str]
    ) -> list[tuple[NameSpan, int, str]]:
        """Find the names with the letters of an unknown name in the question, but other spaces.

        Returns the name in the question, and the row and text of the one in the table.
        """
        found = []
        for span in self.spans:
            asked = fold_name(span.text)
            first, rest = asked.replace(" ", "")[:MIN_STEM], asked.replace(" ", "")[MIN_STEM:]
            # The names are sorted: one of these is at the start of each, with its spaces.
            starts = {gap.join(first) for gap in ("", " ")}
            starts |= {f"{first[:at]} {first[at:]}" for at in range(1, len(first))}
            for start in starts if rest and asked not in known else ():
                near = rows_with_prefix(names, "name", start, MAX_NAMES_COMPARED)
                for row, name in zip(near, names.texts("name", near.start, near.stop), strict=True):
                    if name != asked and name.replace(" ", "") == first + rest:
                        found.append((span, row, name))
        return found

    @cached_property
    def _name_units(self) -> tuple[list[str], list[bool], list[bool]]:
        """The units of the question, and two flags for each unit.

        A unit is a folded word with a space before it, or one character in scripts without
        spaces. The first flag is true for a unit that is not a stop word.
        The second flag is true for a capitalized unit.
        """
        units, telling, capital = [], [], []
        for word in pl.Series([self.text]).str.extract_all(WORD).to_list()[0]:
            for i, unit in enumerate(_NAME_UNIT.findall(fold_name(word))):
                units.append(unit if i else " " + unit)
                # In scripts without spaces, one character can be a word.
                tells = len(unit) > 1 or not unit.isascii()
                telling.append(tells and self.stop_words.isdisjoint((word.lower(), unit)))
                capital.append(word != word.lower() or is_unspaced(unit))
        return units, telling, capital

    def link_whole_name(self, whole: WholeName) -> list[Mention]:
        """Return mentions of up to `MAX_ENTITIES_OF_NAME` entities of this name, by degree."""
        rows = whole.rows
        entities = self.index.open_mapped("entity_names").slice("entity", rows.start, rows.stop)
        best = self._highest_degree_entities(entities[:MAX_ENTITIES_OF_WORD])
        return [Mention(entity, whole.name, "exact", 1.0) for entity in best]

    def _partial_names(self, covered: set[str]) -> list[list[str]]:
        """Return the folded words of each name that the question does not contain as a whole."""
        marked = [list(span.words) for span in self.spans]
        if self.language.capitalizes_nouns:
            # All nouns have capitals: a name may be joined with a noun before or after it.
            marked += [[word] for words in marked for word in words if len(words) > 1]
        # Without capitals, any word may be a name. With capitals, the first word may be a name if
        # no capitalized word follows.
        if self.has_capitals:
            first = re.match(rf"({_LONG_WORD})['’]?\s+(\w)", self.text)
            words = [first[1].lower()] if first and not first[2].isupper() else []
        else:
            words = re.findall(_LONG_WORD, self.text.lower())
        unmarked = [[word] for word in words if word not in self.stop_words]
        kept = []
        for i, run in enumerate(marked + unmarked):
            run = fold_name(" ".join(run)).split()
            is_name = i < len(marked) and (len(run) > 1 or not self.language.capitalizes_nouns)
            if run and not covered.issuperset(run) and (is_name or self._is_rare(run)):
                kept.append(run)
        return kept

    def _is_rare(self, words: Sequence[str]) -> bool:
        """Return whether each word is in the names of at most `MAX_UNMARKED_ENTITIES` entities."""
        known = [word for text in words for word in self._match_word(text)]
        limit = MAX_UNMARKED_ENTITIES + 1
        counts = [len(self.words.numbers("entities", word.row, limit)) for word in known]
        return bool(counts) and max(counts) < limit

    def _find_by_parts(self, words: Sequence[str]) -> list[Mention]:
        """Find the entities with a name that contains all these words."""
        found = self._find_by_words([self._match_word(word) for word in words])
        if not found and len(words) > 1 and self.language.endings:
            # "Ивана Петрова" is Иван Петров, though another entity is called Петрова.
            inflected = [self._find_inflected(word) or self._match_word(word) for word in words]
            found = self._find_by_words(inflected)
        return [Mention(entity, " ".join(words), kind, weight) for entity, kind, weight in found]

    def _find_by_words(self, resolved: Sequence[list[_KnownWord]]) -> list[tuple[int, Kind, float]]:
        """Find the entities with a name that contains one alternative of each word."""
        if not all(resolved):
            return []
        # Start with the entities of the rarest word, then keep those that the other words share.
        lists = sorted((self._read_entities(found) for found in resolved), key=len)
        entities = lists[0]
        for other in lists[1:]:
            entities = entities[np.isin(entities, other)]
        n_entities = len(entities)
        if n_entities == 0:
            return []
        likeness = min(found[0].likeness for found in resolved)
        kind: Kind = "fuzzy" if any(found[0].kind == "fuzzy" for found in resolved) else "part"
        known = [{self.words.text("word", word.row) for word in found} for found in resolved]
        columns = ("human_readable_id", "title", "aliases")
        rows = self.index.entities(self._highest_degree_entities(entities)).select(columns)
        linked = []
        for entity, title, aliases in rows.iter_rows():
            share = _matched_share(known, map(fold_name, [title, *aliases]))
            if share:
                weight = likeness * (1 + share) / 2 / n_entities**0.5
                linked.append((entity, kind, round(weight, 6)))
        return linked

    def _read_entities(self, words: Sequence[_KnownWord]) -> "Numbers":
        lists = [self.words.numbers("entities", w.row, MAX_ENTITIES_OF_WORD) for w in words]
        return lists[0] if len(lists) == 1 else np.unique(np.concatenate(lists))

    def _highest_degree_entities(self, entities: "Numbers") -> list[int]:
        numbers = [int(entity) for entity in entities]
        if len(numbers) <= 1:
            return numbers
        degrees = self.index.open_mapped("entity_rows").rows(numbers, "degree")["degree"].to_list()
        degree_of = dict(zip(numbers, degrees, strict=True))
        return sorted(numbers, key=lambda n: (-degree_of[n], n))[:MAX_ENTITIES_OF_NAME]

    def _match_word(self, word: str) -> list[_KnownWord]:
        """Find the words of names that match a word: equal, inflected, or with another spelling."""
        row = find_row(self.words, "word", word)
        if row is not None:
            return [_KnownWord(row, "part", 1.0)]
        return self._find_inflected(word) or self.find_other_spellings(word)

    def _find_inflected(self, word: str) -> list[_KnownWord]:
        forms = possible_stems(word, self.language)
        near = self._words_with_prefix(word[: max(3, len(word) - 4)])
        rows = [row for row, known in near if forms & possible_stems(known, self.language)]
        return [_KnownWord(row, "part", INFLECTED_LIKENESS) for row in rows]

    def _words_with_prefix(self, prefix: str) -> list[tuple[int, str]]:
        """Return rows and texts of words with a prefix, at most `MAX_WORDS_COMPARED`."""
        rows = rows_with_prefix(self.words, "word", prefix, MAX_WORDS_COMPARED)
        return list(zip(rows, self.words.texts("word", rows.start, rows.stop), strict=True))

    def find_other_spellings(self, word: str) -> list[_KnownWord]:
        """Return the words of names that are most similar to a misspelt word."""
        if len(word) < MIN_FUZZY_LENGTH or not word.isalpha():
            return []
        sounding = set(find_words_sounding_like(self.index, word, MAX_WORDS_COMPARED))
        rows = set(sounding)
        # Lengthen the prefix until few enough words begin with it.
        for length in range(3, len(word)):
            near = self._words_with_prefix(word[:length])
            if len(near) < MAX_WORDS_COMPARED:
                rows.update(row for row, _ in near)
                break
        found = []
        for row in sorted(rows):
            known = self.words.text("word", row)
            distance = OSA.distance(word, known, score_cutoff=3)
            if is_other_spelling(word, known, distance, row in sounding):
                found.append((distance, row, 1 - distance / max(len(word), len(known))))
        nearest = min(found, default=(0,))[0]
        return [_KnownWord(row, "fuzzy", likeness) for d, row, likeness in found if d == nearest]


def find_entities_like(index: "IndexStore", words: Sequence[str], limit: int) -> list[int]:
    """Return the entities with a name that has all words: this name first, then by degree.

    The folded words may be the beginnings of longer ones. A word that begins no name may be spelt
    otherwise.
    """
    if not index.has_table("name_words"):
        return []
    linker = EntityLinker(index, " ".join(words), UNKNOWN_LANGUAGE, [])
    table, found = linker.words, list[set[int]]()
    for word in words:
        begun = rows_with_prefix(table, "word", word, MAX_WORDS_COMPARED)
        rows = begun or [known.row for known in linker.find_other_spellings(word)]
        found.append({number for row in rows for number in table.numbers("entities", row).tolist()})
    kept = list(filter(index.keeps_entity, set.intersection(*found) if found else ()))
    typed = " ".join(words)
    ranked = sorted(
        (typed not in map(fold_name, (title, *aliases)), -degree, number)
        for number, title, aliases, degree in index.entities(kept)
        .select("human_readable_id", "title", "aliases", "degree")
        .iter_rows()
    )
    return [number for *_, number in ranked[:limit]]


def is_other_spelling(asked: str, known: str, distance: int, same_sound: bool) -> bool:
    """Return whether two folded words are spellings of the same name.

    `distance` is the optimal string alignment distance (Boytsov, JEA 16, 2011). Words with the
    same sound may differ in one to three letters, depending on their length. Other words must
    be long and may differ in one letter that is neither the first nor the last letter. If only
    one word ends in a vowel, the words are two names, such as Martin and Martina.
    """
    longest = max(len(asked), len(known))
    if same_sound:
        ends_alike = (asked[-1] in "aeiouy") == (known[-1] in "aeiouy")
        return ends_alike and distance <= (1 if longest < 9 else 2 if longest < 10 else 3)
    same_ends = asked[0] == known[0] and asked[-1] == known[-1]
    return longest >= 8 and distance <= 1 and same_ends


def find_words_sounding_like(index: "IndexStore", word: str, most: int) -> list[int]:
    """Return the rows of `name_words` with words that sound like a folded word."""
    heard = phonetic_key(word)
    table = index.open_mapped("name_sounds")
    row = find_row(table, "sound", heard) if heard else None
    return [] if row is None else table.numbers("words", row, most).tolist()


def find_row(table: "MappedTable", column: str, text: str) -> int | None:
    """Return the row of a text in a sorted column; None if the column does not contain it."""
    row = table.find_row(column, text)
    return row if row < len(table) and table.text(column, row) == text else None


def rows_with_prefix(table: "MappedTable", column: str, prefix: str, most: int) -> range:
    """Return the first `most` rows of a sorted column whose texts begin with a prefix."""
    first = table.find_row(column, prefix)
    return range(first, min(table.find_row(column, prefix + "\U0010ffff", first), first + most))


def _matched_share(words: Sequence[set[str]], names: Iterable[str]) -> float:
    """Return the largest share (0 to 1) of a name's words that match `words`.

    Each word is a set of alternatives. The share is 0 if no name contains all words.
    """
    held = [set(name.split()) for name in names]
    sizes = [len(name) for name in held if all(name & alternatives for alternatives in words)]
    return max((len(words) / max(size, len(words)) for size in sizes), default=0.0)
