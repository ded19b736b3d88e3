"""Search for text units by vector, full text and name, and rank them, also by their links.

A text unit scores by its match with the question, and by a link from a good text unit: that one
names an entity that this one tells about. One step over a shared entity reaches passages two hops
away, a second step passages three hops away. Only the best are followed, so the cost is that of a
few dozen entities, however large the index.
"""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl

from graphrag_query.question.question import Question
from graphrag_query.question.question_words import plain_words
from graphrag_query.retrieval.index_store import Links

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.floating]
    # Reads text units by number: their cosines with the question, and one row for each that tells
    # which of the question's words it holds.
    Read = Callable[[list[int]], tuple[Floats, Flags]]

# Text units that the search by vector and the one by full text return each.
REACH = 100
# Recall changes by about a point for a third more or less in any weight.
# Weights beside the cosine with the question: of the best full-text score, and of telling about
# an entity of the question, if that is as rare as can be.
FULL_TEXT_WEIGHT = 0.25
NAMED_WEIGHT = 0.25
# Text units from which links are followed in each of the two steps.
N_SEEDS = 5
# Weights of a link: of its seed's own score, if over the rarest of entities, and of the question's
# words that the seed lacks.
LINK_WEIGHT = 0.6
NEW_WORDS_WEIGHT = 0.6
# Factor if the linked text unit only names the entity: where no text unit tells about it, and where
# one does.
MENTION_SHARE = 0.5
MENTION_BESIDE_SUBJECT_SHARE = 0.25
# Factor if the seed itself tells about the entity: others that name it add less.
BACKWARD_SHARE = 0.5
SECOND_STEP_SHARE = 0.7
# Share of a link's score that its seed gets for leading to it.
LEADING_SHARE = 0.6
# An entity of more text units links nothing.
MAX_TEXT_UNITS = 100
# Text units linked with one seed whose texts are read.
MAX_REACHED = 40
# Entities or documents of one name: of more, none is meant.
MAX_NAMESAKES = MAX_TEXT_UNITS + 1
_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")

Reason = Literal["match", "name", "link"]


@dataclass(frozen=True)
class RankedTextUnit:
    """A text unit with its score, its score without links, and the reason for its choice.

    `match`: its text matches the question. `name`: the question names `entity`, or without one
    the title of the document. `link`: the text unit `origin` links to it over `entity`.
    """

    number: int
    score: float
    own_score: float
    reason: Reason
    entity: int | None = None
    origin: int | None = None


def start_search(
    question: Question, within: Set[int] | None = None
) -> Callable[[], list[RankedTextUnit]]:
    """Start searching for text units; call the result to wait and to rank what was found.

    Only text units `within` are searched for and returned, if some are given.
    """
    index, vector = question.index, question.vector
    table = index.vectors("text_unit_text")
    where = None
    if within is not None:
        where = f"human_readable_id IN ({', '.join(map(str, sorted(within))) or -1})"
    near = index.threads.submit(table.nearest, vector, REACH, ["human_readable_id"], where)
    plain = plain_words(question.language)
    # As they are written: the full-text index stems for itself.
    words = [word for word in _WORD.findall(question.text.lower()) if word not in plain]
    asked = " ".join(words) or question.text
    matching = index.threads.submit(
        table.matching, asked, REACH, ["human_readable_id"], where=where
    )

    def read(numbers: list[int]) -> "tuple[Floats, Flags]":
        texts = pl.Series(index.text_unit_texts(numbers), dtype=pl.String)
        held = words_held(texts, question.content_words)
        vectors = index.map("text_unit_vectors").matrix("vector", numbers)
        return vectors @ vector, held

    named, titled = named_entities(question), titled_text_units(question)

    def rank() -> list[RankedTextUnit]:
        full_text = dict(matching.result().select("human_readable_id", "score").iter_rows())
        found = {*near.result()["human_readable_id"], *full_text}
        ranking = TextUnitRanking(full_text, named, titled, index.links, read)
        ranked = ranking.rank(found)
        return [unit for unit in ranked if within is None or unit.number in within]

    return rank


def named_entities(question: Question) -> list[int]:
    """Return the entities with a whole, capitalized name in the question."""
    names = question.index.map("entity_names")
    found: dict[int, None] = {}
    for name in question.mentions.whole_names:
        if name.is_marked:
            rows = name.rows[:MAX_NAMESAKES]
            found |= dict.fromkeys(names.slice("entity", rows.start, rows.stop).tolist())
    return list(found)


def titled_text_units(question: Question) -> dict[int, float]:
    """Return the text units of documents whose titles the question names, with their rarity."""
    index = question.index
    titles, units = index.map("title_names"), index.map("text_unit_rows")
    found: dict[int, float] = {}
    for name in question.mentions.titles:
        rows = name.rows[:MAX_NAMESAKES]
        documents = titles.slice("document", rows.start, rows.stop)
        starts, stops = units.bounds("document", np.sort(documents))
        count = int((stops - starts).sum())
        if 0 < count <= MAX_TEXT_UNITS:
            for start, end in zip(starts.tolist(), stops.tolist(), strict=True):
                numbers = np.arange(start, end)
                kept = numbers[index.holds_text_units(numbers)]
                found |= dict.fromkeys(kept.tolist(), rarity(count, len(units)))
    return found


def words_held(texts: pl.Series, stems: Sequence[str]) -> "np.ndarray":
    """Tell which texts hold which words, whatever their endings: one row per text."""
    if not stems:
        return np.zeros((len(texts), 0), bool)
    lower = pl.select(text=texts.str.to_lowercase())
    # All expressions in one call: each call by itself scans all texts.
    held: np.ndarray = lower.select(
        pl.col("text").str.contains(rf"\b{re.escape(_prefix_of(stem))}").alias(str(column))
        for column, stem in enumerate(stems)
    ).to_numpy()
    return held


def _prefix_of(stem: str) -> str:
    """Return the letters that words of one stem begin with: country and countries as "coun"."""
    if len(stem) > 5:
        return stem[: max(len(stem) - 2, 4)]
    # The stem of story and stories is stori.
    return stem.removesuffix("i") if len(stem) > 3 else stem


def rarity(count: int, n_text_units: int) -> float:
    """Return the rarity of a property: 1 if one text unit has it, 0 if all have it."""
    return 1 - math.log(count) / math.log(max(n_text_units, 2))


class _Link(NamedTuple):
    """The best link that leads to a text unit."""

    score: float
    origin: int
    entity: int


class TextUnitRanking:
    """The text units scored for one question, by their match with it and by links from others.

    `full_text` has scores by text unit, `titled` the rarity of the title by text unit of the
    documents that the question names; `named` are the entities that it names. `read` is called
    about three times.
    """

    def __init__(
        self,
        full_text: Mapping[int, float],
        named: Sequence[int],
        titled: Mapping[int, float],
        links: Links,
        read: "Read",
    ) -> None:
        highest = max(full_text.values(), default=0.0) or 1.0
        self.full_text = {number: score / highest for number, score in full_text.items()}
        self.links, self.read = links, read
        self.named = self._named(named, titled)
        self.matches: dict[int, float] = {}
        self.words: dict[int, Flags] = {}
        self.word_weights: Floats = np.zeros(0)
        self.ways: dict[int, _Link] = {}

    def rank(self, found: Collection[int]) -> list[RankedTextUnit]:
        """Rank the text units that were found and those linked with them; ties go by number."""
        self._match({*found, *self.named})
        seeds = self._best(self.matches)
        self._follow(seeds, 1.0)
        self._follow(self._best(self.ways.keys() - set(seeds)), SECOND_STEP_SHARE)
        leading: dict[int, float] = {}
        for link in self.ways.values():
            leading[link.origin] = max(leading.get(link.origin, 0.0), LEADING_SHARE * link.score)
        ranked = []
        for number, match in self.matches.items():
            way = self.ways.get(number)
            score = match + max(way.score if way else 0.0, leading.get(number, 0.0))
            reason: tuple[Reason, int | None, int | None] = ("match", None, None)
            if way and number not in seeds:
                reason = ("link", way.entity, way.origin)
            elif number in self.named:
                reason = ("name", self.named[number][1], None)
            ranked.append(RankedTextUnit(number, score, match, *reason))
        return sorted(ranked, key=lambda unit: (-unit.score, unit.number))

    def _named(
        self, entities: Sequence[int], titled: Mapping[int, float]
    ) -> dict[int, tuple[float, int | None]]:
        """Return the text units about named entities: the rarity of the rarest, and that entity.

        The entity is None for a named title.
        """
        found: dict[int, tuple[float, int | None]] = {}

        def keep_best(number: int, score: float, entity: int | None) -> None:
            if number not in found or score > found[number][0]:
                found[number] = score, entity

        counts = self.links.n_text_units_of(entities).tolist()
        for entity, count in zip(entities, counts, strict=True):
            if count:
                numbers, is_subject = self.links.text_units_of(entity)
                score = rarity(count, self.links.n_text_units)
                for number in numbers[is_subject][:MAX_TEXT_UNITS].tolist():
                    keep_best(number, score, entity)
        for number, score in titled.items():
            keep_best(number, score, None)
        return found

    def _match(self, numbers: Collection[int]) -> None:
        """Read text units that were not read yet, and score their match with the question."""
        new = sorted(set(numbers) - self.matches.keys())
        if not new:
            return
        similarity, words = self.read(new)
        if not self.matches:
            # Words are weighted by their rarity among the text units found.
            held = words.sum(axis=0)
            self.word_weights = np.log1p((len(new) + 0.5) / (held + 0.5))
            self.word_weights /= self.word_weights.sum() or 1.0
        for number, cosine, row in zip(new, similarity.tolist(), words, strict=True):
            self.words[number] = row
            self.matches[number] = (
                cosine
                + FULL_TEXT_WEIGHT * self.full_text.get(number, 0.0)
                + NAMED_WEIGHT * (self.named[number][0] if number in self.named else 0.0)
            )

    def _best(self, numbers: Collection[int]) -> list[int]:
        def place(number: int) -> tuple[float, int]:
            way = self.ways.get(number)
            return -self.matches[number] - (way.score if way else 0.0), number

        return sorted(numbers, key=place)[:N_SEEDS]

    def _follow(self, seeds: list[int], share: float) -> None:
        """Score the text units linked with seeds; of several links to one the best counts."""
        reached = {seed: self._reach(seed) for seed in seeds}
        self._match({number for way in reached.values() for number in way})
        found = dict(self.ways)
        for seed, ways in reached.items():
            said = self.words[seed]
            if seed in self.ways:
                said = said | self.words[self.ways[seed].origin]
            for number, (strength, entity) in ways.items():
                new_words = self.words[number] & ~said
                score = LINK_WEIGHT * max(self.matches[seed], 0.0) * strength
                score += NEW_WORDS_WEIGHT * float(new_words @ self.word_weights)
                way = _Link(share * score, seed, entity)
                if number not in found or way.score > found[number].score:
                    found[number] = way
        self.ways = found

    def _reach(self, seed: int) -> dict[int, tuple[float, int]]:
        """Return text units linked with a seed: strength of the best link (0 to 1), its entity."""
        entities, is_subject_of_seed = self.links.entities_of(seed)
        counts = self.links.n_text_units_of(entities)
        links = (counts > 1) & (counts <= MAX_TEXT_UNITS)
        found: dict[int, tuple[float, int]] = {}
        for entity, own, count in zip(
            entities[links].tolist(),
            is_subject_of_seed[links].tolist(),
            counts[links].tolist(),
            strict=True,
        ):
            numbers, is_subject = self.links.text_units_of(entity)
            mention = MENTION_BESIDE_SUBJECT_SHARE if is_subject.any() else MENTION_SHARE
            strength = rarity(count, self.links.n_text_units) * (BACKWARD_SHARE if own else 1.0)
            strengths = strength * np.where(is_subject, 1.0, mention)
            for number, value in zip(numbers.tolist(), strengths.tolist(), strict=True):
                if value > found.get(number, (0.0, 0))[0]:
                    found[number] = (value, entity)
        found.pop(seed, None)
        best = sorted(found, key=lambda number: (-found[number][0], number))[:MAX_REACHED]
        return {number: found[number] for number in best}
