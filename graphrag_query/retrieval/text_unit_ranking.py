"""Which text units to read for a question: those that match it, and those that these lead to.

A text unit is good if it matches the question itself, or if a good one names an entity that it
tells about. One step over a shared entity finds what is two hops away, a second step, which
counts only where its text unit matches too, what is three hops away. Nothing is spread over the
whole graph, so that the cost is that of a few dozen entities, however large the index.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int32]
    Flags = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]

# A third more or less of one of these changes the shares that are found by about a point.
# What the best full-text score is worth, and an entity of the question that a text unit is
# about and that is as rare as can be, beside the cosine with the question.
FULL_TEXT_WEIGHT = 0.25
NAMED_WEIGHT = 0.25
# The best by themselves, from which links are followed; and of what these lead to as many again.
N_SEEDS = 5
# What a link is worth: so much of its seed's own score, if over the rarest of entities; and so
# much for the question's words that the seed lacks.
LINK_WEIGHT = 0.6
NEW_WORDS_WEIGHT = 0.6
# The share of it if the text unit tells about another entity than the one that leads to it,
# where there is none that tells about that one, and where there is.
MENTION_SHARE = 0.5
MENTION_BESIDE_ABOUT_SHARE = 0.25
# The share of it if the seed itself is about the entity: others that name it say less.
BACKWARD_SHARE = 0.5
SECOND_STEP_SHARE = 0.7
# What leads to a good text unit is good: the share of the link's worth that its seed has.
LEADING_SHARE = 0.6
# An entity of more text units links nothing.
MAX_TEXT_UNITS = 100
# Text units that one seed leads to, of which the texts are read.
MAX_REACHED = 40

Reason = Literal["match", "name", "link"]


class TextUnitLinks(Protocol):
    """Which text units name which entities, by number, and which of them they are about."""

    @property
    def n_text_units(self) -> int: ...
    def entities_of(self, text_unit: int, /) -> "tuple[Numbers, Flags]": ...
    def text_units_of(self, entity: int, /) -> "tuple[Numbers, Flags]": ...
    def n_text_units_of(self, entities: "npt.ArrayLike", /) -> "npt.NDArray[np.int64]": ...


class Read(NamedTuple):
    """What is found out about some text units by reading them, in their order."""

    similarity: "npt.NDArray[np.floating]"  # cosine with the question
    words: "Flags"  # one row per text unit: which of the question's words it holds


@dataclass(frozen=True)
class RankedTextUnit:
    """A text unit with its score, the part of it that is its own, and why it was taken.

    Reason `match`: its text fits the question. `name`: it is about `entity`, which the question
    names; without an entity, the question names the title of its document. `link`: the text unit
    `origin` leads to it, over `entity`.
    """

    number: int
    score: float
    own_score: float
    reason: Reason
    entity: int | None = None
    origin: int | None = None


def rank_text_units(
    found: Collection[int],
    full_text: Mapping[int, float],
    named: Mapping[int, float],
    titled: Mapping[int, float],
    links: TextUnitLinks,
    read: Callable[[list[int]], Read],
) -> list[RankedTextUnit]:
    """Order text units by how well they match a question and by what leads to them.

    Parameters
    ----------
    found
        What a search by vector and one by full text found, a hundred each, say.
    full_text
        Scores of those found by full text.
    named
        Entities that the question names, with how sure that is, from 0 to 1.
    titled
        Text units of documents whose titles the question names, with what that is worth: 1 if
        no other text unit has a title like it.
    read
        Reads the text units of these numbers; it is called about three times.

    Returns
    -------
    list of RankedTextUnit
        All that were looked at, best first; those of one score by number.
    """
    return _Ranking(full_text, named, titled, links, read).rank(found)


def rarity(count: int, n_text_units: int) -> float:
    """Return 1 for what one text unit has, 0 for what all have."""
    return 1 - math.log(count) / math.log(max(n_text_units, 2))


class _Link(NamedTuple):
    """How a text unit is reached: the best of all ways."""

    worth: float
    origin: int
    entity: int


class _Ranking:
    """What is known so far about the text units that one question looks at."""

    def __init__(
        self,
        full_text: Mapping[int, float],
        named: Mapping[int, float],
        titled: Mapping[int, float],
        links: TextUnitLinks,
        read: Callable[[list[int]], Read],
    ) -> None:
        import numpy as np

        highest = max(full_text.values(), default=0.0) or 1.0
        self.full_text = {number: score / highest for number, score in full_text.items()}
        self.links, self.read = links, read
        self.named = self._named(named, titled)
        self.matches: dict[int, float] = {}
        self.words: dict[int, Flags] = {}
        self.word_weights: Floats = np.zeros(0)
        self.ways: dict[int, _Link] = {}

    def rank(self, found: Collection[int]) -> list[RankedTextUnit]:
        self._match({*found, *self.named})
        seeds = self._best(self.matches)
        self._follow(seeds, 1.0)
        self._follow(self._best(self.ways.keys() - set(seeds)), SECOND_STEP_SHARE)
        leading: dict[int, float] = {}
        for link in self.ways.values():
            leading[link.origin] = max(leading.get(link.origin, 0.0), LEADING_SHARE * link.worth)
        ranked = []
        for number, match in self.matches.items():
            way = self.ways.get(number)
            score = match + max(way.worth if way else 0.0, leading.get(number, 0.0))
            reason: tuple[Reason, int | None, int | None] = ("match", None, None)
            if way and number not in seeds:
                reason = ("link", way.entity, way.origin)
            elif number in self.named:
                reason = ("name", self.named[number][1], None)
            ranked.append(RankedTextUnit(number, score, match, *reason))
        return sorted(ranked, key=lambda unit: (-unit.score, unit.number))

    def _named(
        self, entities: Mapping[int, float], titled: Mapping[int, float]
    ) -> dict[int, tuple[float, int | None]]:
        """Return the text units about what the question names: how rare that is, and the entity.

        The rarest counts; there is no entity where it is the title.
        """
        found: dict[int, tuple[float, int | None]] = {}
        counts = self.links.n_text_units_of(list(entities)).tolist()
        for (entity, sureness), count in zip(entities.items(), counts, strict=True):
            if count:
                numbers, is_about = self.links.text_units_of(entity)
                worth = sureness * self._rarity(count)
                for number in numbers[is_about][:MAX_TEXT_UNITS].tolist():
                    if number not in found or worth > found[number][0]:
                        found[number] = worth, entity
        for number, worth in titled.items():
            if number not in found or worth > found[number][0]:
                found[number] = worth, None
        return found

    def _rarity(self, count: int) -> float:
        return rarity(count, self.links.n_text_units)

    def _match(self, numbers: Collection[int]) -> None:
        """Read the text units that were not read yet, and score how they match by themselves."""
        import numpy as np

        new = sorted(set(numbers) - self.matches.keys())
        if not new:
            return
        similarity, words = self.read(new)
        if not self.matches:
            # How rare a word is, is seen from the text units that were found.
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
            return -self.matches[number] - (way.worth if way else 0.0), number

        return sorted(numbers, key=place)[:N_SEEDS]

    def _follow(self, seeds: list[int], share: float) -> None:
        """Find the text units that seeds lead to; of several ways to one the best counts."""
        reached = {seed: self._reach(seed) for seed in seeds}
        self._match({number for way in reached.values() for number in way})
        found: dict[int, _Link] = {}
        for seed, ways in reached.items():
            said = self.words[seed]
            if seed in self.ways:
                said = said | self.words[self.ways[seed].origin]
            for number, (strength, entity) in ways.items():
                new_words = self.words[number] & ~said
                worth = LINK_WEIGHT * max(self.matches[seed], 0.0) * strength
                worth += NEW_WORDS_WEIGHT * float(new_words @ self.word_weights)
                way = _Link(share * worth, seed, entity)
                if number not in found or way.worth > found[number].worth:
                    found[number] = way
        for number, way in found.items():
            if number not in self.ways or way.worth > self.ways[number].worth:
                self.ways[number] = way

    def _reach(self, seed: int) -> dict[int, tuple[float, int]]:
        """Return the text units that share entities with a seed, with the best of these.

        The first value is the strength of the link, from 0 to 1, the second the entity.
        """
        import numpy as np

        entities, is_own = self.links.entities_of(seed)
        counts = self.links.n_text_units_of(entities)
        links = (counts > 1) & (counts <= MAX_TEXT_UNITS)
        found: dict[int, tuple[float, int]] = {}
        for entity, own, count in zip(
            entities[links].tolist(), is_own[links].tolist(), counts[links].tolist(), strict=True
        ):
            numbers, is_about = self.links.text_units_of(entity)
            mention = MENTION_BESIDE_ABOUT_SHARE if is_about.any() else MENTION_SHARE
            strength = self._rarity(count) * (BACKWARD_SHARE if own else 1.0)
            strengths = strength * np.where(is_about, 1.0, mention)
            for number, value in zip(numbers.tolist(), strengths.tolist(), strict=True):
                if value > found.get(number, (0.0, 0))[0]:
                    found[number] = (value, entity)
        found.pop(seed, None)
        best = sorted(found, key=lambda number: (-found[number][0], number))[:MAX_REACHED]
        return {number: found[number] for number in best}
