"""Search for text units by vector, full text and name, and rank them, also by their links.

The score of a text unit has two parts: its match with the question, and its best link from
another text unit with a high score. A link is an entity that both text units name. Links are
followed in two steps, and only from the best text units. So a search reads a few dozen entities,
and its time does not depend on the size of the index.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from graphrag_nlp.text.periods import DatePart
from graphrag_query.question.question import Question
from graphrag_query.question.question_words import stop_words_of
from graphrag_query.question.stem_matching import match_stems
from graphrag_query.store.index_store import IndexStore, RankedTextUnit, Reason
from graphrag_query.store.links import Links

if TYPE_CHECKING:
    import numpy.typing as npt

    Flags = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.floating]
    # Reads text units by number. Returns their cosine similarities to the question, and for each
    # a row of flags: which of the question's words the text unit contains.
    Read = Callable[[list[int]], tuple[Floats, Flags]]
    # Returns the text units before and after a text unit in its document.
    FindAdjacent = Callable[[int], list[int]]

# Number of text units that each of the two searches, by vector and by full text, returns.
TOP_K_MATCHES = 100
# The weights serve the static model and all-MiniLM-L6-v2, whose cosines have the same scale. If a
# weight changes by a third, recall changes by about one percentage point.
# Weight of the cosine similarity to the question.
SIMILARITY_WEIGHT = 0.5
# Weight of the differences between similarities that a finer model has refined.
REFINED_WEIGHT = 0.7
# Weight of the full-text score (see `full_text_shares`).
FULL_TEXT_WEIGHT = 0.2
# Weight of the share of the question's words, weighted by rarity, that the text unit contains.
COVERAGE_WEIGHT = 0.1
# Weight of an entity's rarity if the question names it and the text unit describes it.
NAMED_ENTITY_WEIGHT = 0.4
# Number of text units (seeds) from which links are followed in each of the two steps.
N_SEEDS = 7
# Weight, in the score of a link, of the seed's score times the rarity of the linking entity.
LINK_WEIGHT = 0.8
# Weight, in the score of a link, of question words that only the linked text unit contains.
NEW_WORDS_WEIGHT = 0.6
# Factor for a linked text unit that only names the entity, if no text unit describes the entity.
MENTION_FACTOR = 0.5
# Factor for a linked text unit that only names the entity, if another text unit describes it.
MENTION_BESIDE_SUBJECT_FACTOR = 0.25
# Factor for a link over an entity that the seed describes: further texts on it add less.
BACKWARD_FACTOR = 0.5
# Factor for links of the second step.
SECOND_STEP_FACTOR = 0.7
# Strength of the link between a text unit and the next one of its document.
ADJACENT_STRENGTH = 0.4
# Share of a link's score that is added to the score of its seed.
SEED_SHARE = 0.6
# An entity links text units only if at most this many text units name it.
MAX_TEXT_UNITS_OF_LINK = 100
# Maximum number of linked text units whose texts are read per seed.
MAX_LINKED_TEXT_UNITS = 40
# Number of text units whose links are kept in memory for the next search, about 5 KB each.
MAX_KEPT_LINKS = 2_000
# Number of questions whose rankings are kept in memory, about 30 KB each.
MAX_KEPT_RANKINGS = 64
# Number of the best text units that the model of `search.rerank_model` scores.
TOP_K_RERANKED = 20
# Maximum number of entities or documents that are read for one name.
MAX_NAMESAKES = MAX_TEXT_UNITS_OF_LINK + 1
_WORD = re.compile(r"[^\W_]+(?:['’]s\b)?")


def start_search(
    question: Question, within: Set[int] | None = None
) -> Callable[[], list[RankedTextUnit]]:
    """Start a search for text units in other threads, and return a function.

    The function waits for the search and returns the ranked text units. If `within` is not None,
    only these text units are searched and returned. The rankings of the last questions are kept:
    several searches of one question need the same.
    """
    index, text = question.index, question.text
    keeps = within is None and question.reranking.open_reranker is None
    if keeps and text in index.kept_rankings:
        return partial(list, index.kept_rankings[text])
    vector = question.vector
    table, text_units = index.vectors("text_unit_text"), index.open_mapped("text_unit_rows")
    where = None
    if within is not None:
        where = f"human_readable_id IN ({', '.join(map(str, sorted(within))) or -1})"
    near = index.threads.submit(table.nearest, vector, TOP_K_MATCHES, ["human_readable_id"], where)
    words = _choose_search_words(question)
    matching = index.threads.submit(full_text_shares, table, words, TOP_K_MATCHES, where)
    names = question.mentions.spans
    before = {stem: start for name in names for stem, start in name.starts_of_joined().items()}

    def read(numbers: list[int]) -> "tuple[Floats, Flags]":
        texts = [text_units.text("text", number) for number in numbers]
        held = match_stems(pl.Series(texts, dtype=pl.String), question.content_words, before)
        vectors = index.open_mapped("text_unit_vectors").matrix("vector", numbers)
        return vectors @ vector, held

    named, titled = named_entities(question), titled_text_units(question)

    def rank() -> list[RankedTextUnit]:
        full_text = matching.result()
        found = {*near.result()["human_readable_id"], *full_text}
        dates = question.asked_dates
        dated = _find_dated_text_units(index, dates, found, MAX_TEXT_UNITS_OF_LINK) if dates else []
        rarity = rarity_of(len(dated), len(text_units)) if dated else 0.0
        titles = titled | dict.fromkeys(dated, rarity)
        adjacent = partial(find_adjacent, index)
        ranking = TextUnitRanking(full_text, named, titles, index.links, read, adjacent)
        ranked = _keep_those_within(ranking.rank(found), within)
        if keeps:
            if len(index.kept_rankings) >= MAX_KEPT_RANKINGS:
                index.kept_rankings.clear()
            index.kept_rankings[text] = ranked
        if question.reranking.open_reranker is None:
            return list(ranked)
        return _keep_those_within(_look_again(question, ranking, ranked), within)

    return rank


def _keep_those_within(
    ranked: list[RankedTextUnit], within: Set[int] | None
) -> list[RankedTextUnit]:
    return ranked if within is None else [unit for unit in ranked if unit.number in within]


def _look_again(
    question: Question, ranking: "TextUnitRanking", ranked: list[RankedTextUnit]
) -> list[RankedTextUnit]:
    """Rank again with the similarities of the best text units by a model that reads both texts."""
    text_units = question.index.open_mapped("text_unit_rows")
    best = [unit.number for unit in ranked[:TOP_K_RERANKED]]
    texts = [text_units.text("text", number) for number in best]
    known = [ranking.similarities[number] for number in best]
    refined = question.reranking.refine_similarities(question.text, texts, known)
    if refined == known:
        return ranked
    return ranking.rerank(dict(zip(best, refined, strict=True)))


def find_adjacent(index: IndexStore, number: int) -> list[int]:
    """Return the text units before and after one in its document, as far as they may be read."""
    text_units = index.open_mapped("text_unit_rows")
    first = max(0, number - 1)
    numbers = range(first, min(number + 2, len(text_units)))
    documents = text_units.slice("document", first, numbers.stop).tolist()
    own = documents[number - first]
    near = [n for n, document in zip(numbers, documents, strict=True) if document == own]
    return [n for n in near if n != number and index.text_units_behind("Sources", n)]


def _find_dated_text_units(
    index: IndexStore, dates: Sequence[DatePart], found: Iterable[int], most: int
) -> list[int]:
    """Return text units of documents that are about one of the dates, ascending.

    If these are more than `most`, only those in `found` are returned.
    """
    if not index.has_table("document_subjects"):
        return []
    first, n_more = index.document_days[:, 0], np.diff(index.document_days[:, :2])[:, 0]
    days = {int(day): date.fromordinal(day).isoformat() for day in np.unique(first) if day}
    is_dated = np.zeros(len(first), bool)
    for asked in dates:
        matching = [day for day, text in days.items() if asked.matches(text)]
        is_dated |= np.isin(first, matching) & (n_more < (1 if asked.day else 31))
    units = index.open_mapped("text_unit_rows")
    starts, stops = units.bounds("document", np.flatnonzero(is_dated))
    if (stops - starts).sum() <= most:
        numbers = [n for span in zip(starts, stops, strict=True) for n in range(*span)]
    else:
        wanted = np.array(sorted(found), np.int64)
        documents = units.rows(wanted, "document")["document"].to_numpy()
        numbers = wanted[is_dated[documents]].tolist()
    return [n for n in numbers if index.text_units_behind("Sources", n)]


def _choose_search_words(question: Question) -> str:
    """Return the words that the full-text index is searched for, unstemmed: it stems them."""
    stop_words = stop_words_of(question.language)
    words = _WORD.findall(question.mentions.spelt_text.lower())
    content_words = [word for word in words if word not in stop_words]
    names = question.mentions.spans
    spacings = [word for name in names for words in name.other_spacings for word in words]
    days = [one.compact for one in question.asked_dates if one.compact]
    return " ".join([*content_words, *spacings, *days]) or question.text


def full_text_shares(
    table: Any, words: str, top_k: int, where: str | None = None
) -> dict[int, float]:
    """Map the text units that match words best to their BM25 score, divided by the best score."""
    rows = table.find_matching_rows(words, top_k, ["human_readable_id"], where=where)
    scores = dict(rows.select("human_readable_id", "score").iter_rows())
    highest = max(scores.values(), default=0.0) or 1.0
    return {number: score / highest for number, score in scores.items()}


def named_entities(question: Question) -> list[int]:
    """Return the entities with a whole, capitalized name in the question."""
    names = question.index.open_mapped("entity_names")
    found: dict[int, None] = {}
    for name in question.mentions.whole_names:
        if name.is_marked:
            rows = name.rows[:MAX_NAMESAKES]
            found |= dict.fromkeys(names.slice("entity", rows.start, rows.stop).tolist())
    return list(found)


def titled_text_units(question: Question) -> dict[int, float]:
    """Map text units to the rarity of their document's title, if the question names the title."""
    index = question.index
    titles, units = index.open_mapped("title_names"), index.open_mapped("text_unit_rows")
    found: dict[int, float] = {}
    for name in question.mentions.document_titles:
        rows = name.rows[:MAX_NAMESAKES]
        documents = titles.slice("document", rows.start, rows.stop)
        starts, stops = units.bounds("document", np.sort(documents))
        count = int((stops - starts).sum())
        if 0 < count <= MAX_TEXT_UNITS_OF_LINK:
            for start, end in zip(starts.tolist(), stops.tolist(), strict=True):
                kept = (n for n in range(start, end) if index.text_units_behind("Sources", n))
                found |= dict.fromkeys(kept, rarity_of(count, len(units)))
    return found


def rarity_of(count: int, n_text_units: int) -> float:
    """Return the rarity of a property: 1 if one text unit has it, 0 if all have it."""
    return 1 - math.log(count) / math.log(max(n_text_units, 2))


class _Link(NamedTuple):
    """The best link to a text unit: its score, the seed, and the entity that both name.

    The entity is None if the text unit follows or precedes the seed in its document.
    """

    score: float
    origin: int
    entity: int | None


@dataclass
class TextUnitRanking:
    """The scores of text units for one question: match with the question, and links.

    `full_text` maps text units to their full-text scores, from 0 to 1. `entities` are the entities
    that the question names. `titled` maps the text units of the documents whose titles the
    question names to the rarity of the title. `read` is called about three times. `find_adjacent`
    returns the text units before and after a text unit.
    """

    full_text: Mapping[int, float]
    entities: Sequence[int]
    titled: Mapping[int, float]
    links: Links
    read: "Read"
    find_adjacent: "FindAdjacent" = lambda number: []
    similarities: dict[int, float] = field(default_factory=dict)
    matches: dict[int, float] = field(default_factory=dict)
    # Which of the question's words a text unit contains: a bit for each word.
    words: dict[int, int] = field(default_factory=dict)
    word_weights: "Floats" = field(default_factory=lambda: np.zeros(0))
    coverages: dict[int, float] = field(default_factory=dict)
    best_links: dict[int, _Link] = field(default_factory=dict)

    def rank(self, found: Collection[int]) -> list[RankedTextUnit]:
        """Rank the text units in `found` and the text units linked with them.

        Text units with equal scores are ordered by number.
        """
        self._score_matches({*found, *self.named})
        seeds = self._best_text_units(self.matches)
        self._follow_links(seeds, 1.0)
        linked = self._best_text_units(self.best_links.keys() - set(seeds))
        self._follow_links(linked, SECOND_STEP_FACTOR)
        leading: dict[int, float] = {}
        for link in self.best_links.values():
            leading[link.origin] = max(leading.get(link.origin, 0.0), SEED_SHARE * link.score)
        ranked = []
        for number, match in self.matches.items():
            way = self.best_links.get(number)
            score = match + max(way.score if way else 0.0, leading.get(number, 0.0))
            reason: tuple[Reason, int | None, int | None] = ("match", None, None)
            if way and number not in seeds:
                reason = ("link", way.entity, way.origin)
            elif number in self.named:
                reason = ("name", self.named[number][1], None)
            ranked.append(RankedTextUnit(number, score, match, *reason))
        return sorted(ranked, key=lambda unit: (-unit.score, unit.number))

    def rerank(self, similarities: Mapping[int, float]) -> list[RankedTextUnit]:
        """Rank again, with refined similarities of some of the ranked text units."""
        mean = sum(similarities.values()) / len(similarities)
        for number, similarity in similarities.items():
            refined = SIMILARITY_WEIGHT * mean + REFINED_WEIGHT * (similarity - mean)
            self.matches[number] += refined - SIMILARITY_WEIGHT * self.similarities[number]
            self.similarities[number] = similarity
        self.best_links = {}
        return self.rank(())

    @cached_property
    def named(self) -> dict[int, tuple[float, int | None]]:
        """The text units that describe a named entity, with the rarest one as (rarity, entity).

        The entity is None if the question names the title of the document.
        """
        found: dict[int, tuple[float, int | None]] = {}

        def keep_best(number: int, score: float, entity: int | None) -> None:
            if number not in found or score > found[number][0]:
                found[number] = score, entity

        counts = self.links.n_text_units_of(self.entities).tolist()
        for entity, count in zip(self.entities, counts, strict=True):
            if count:
                numbers, is_subject = self.links.text_units_of(entity)
                score = rarity_of(count, self.links.n_text_units)
                for number in numbers[is_subject][:MAX_TEXT_UNITS_OF_LINK].tolist():
                    keep_best(number, score, entity)
        for number, score in self.titled.items():
            keep_best(number, score, None)
        return found

    def _score_matches(self, numbers: Collection[int]) -> None:
        """Read text units that were not read yet, and score their match with the question."""
        new = sorted(set(numbers) - self.matches.keys())
        if not new:
            return
        similarity, words = self.read(new)
        if not self.matches:
            # Words are weighted by their rarity among the text units of the first call.
            held = words.sum(axis=0)
            self.word_weights = np.log1p((len(new) + 0.5) / (held + 0.5))
            self.word_weights /= self.word_weights.sum() or 1.0
        for number, cosine, row in zip(new, similarity.tolist(), _to_bits(words), strict=True):
            self.words[number], self.similarities[number] = row, cosine
            self.matches[number] = (
                SIMILARITY_WEIGHT * cosine
                + COVERAGE_WEIGHT * self._coverage(row)
                + FULL_TEXT_WEIGHT * self.full_text.get(number, 0.0)
                + NAMED_ENTITY_WEIGHT * (self.named[number][0] if number in self.named else 0.0)
            )

    def _coverage(self, words: int) -> float:
        """Return the weight of some words, given as bits. Many text units have the same words."""
        known = self.coverages.get(words)
        if known is None:
            flags = [bool(words >> at & 1) for at in range(len(self.word_weights))]
            known = self.coverages[words] = float(np.array(flags, bool) @ self.word_weights)
        return known

    def _best_text_units(self, numbers: Collection[int]) -> list[int]:
        def place(number: int) -> tuple[float, int]:
            way = self.best_links.get(number)
            return -self.matches[number] - (way.score if way else 0.0), number

        return sorted(numbers, key=place)[:N_SEEDS]

    def _follow_links(self, seeds: list[int], share: float) -> None:
        """Score the text units linked with seeds. For each text unit, the best link counts."""
        kept = self.links.kept_links
        if len(kept) > MAX_KEPT_LINKS:
            kept.clear()
        reached = {
            seed: kept.get(seed) or kept.setdefault(seed, self._find_linked_text_units(seed))
            for seed in seeds
        }
        self._score_matches({number for way in reached.values() for number in way})
        found = dict(self.best_links)
        for seed, ways in reached.items():
            said = self.words[seed]
            if seed in self.best_links:
                said = said | self.words[self.best_links[seed].origin]
            for number, (strength, entity) in ways.items():
                new_words = self._coverage(self.words[number] & ~said)
                score = LINK_WEIGHT * max(self.matches[seed], 0.0) * strength
                score += NEW_WORDS_WEIGHT * new_words
                way = _Link(share * score, seed, entity)
                if number not in found or way.score > found[number].score:
                    found[number] = way
        self.best_links = found

    def _find_linked_text_units(self, seed: int) -> dict[int, tuple[float, int | None]]:
        """Map text units linked with a seed to (strength, 0 to 1; entity) of their best link."""
        entities, is_subject_of_seed = self.links.entities_of(seed)
        counts = self.links.n_text_units_of(entities)
        links = (counts > 1) & (counts <= MAX_TEXT_UNITS_OF_LINK)
        found: dict[int, tuple[float, int | None]] = {}
        columns = [values[links].tolist() for values in (entities, is_subject_of_seed, counts)]
        for entity, own, count in zip(*columns, strict=True):
            numbers, is_subject = self.links.text_units_of(entity)
            mention = MENTION_BESIDE_SUBJECT_FACTOR if is_subject.any() else MENTION_FACTOR
            strength = rarity_of(count, self.links.n_text_units) * (BACKWARD_FACTOR if own else 1.0)
            strengths = strength * np.where(is_subject, 1.0, mention)
            for number, value in zip(numbers.tolist(), strengths.tolist(), strict=True):
                if value > found.get(number, (0.0, None))[0]:
                    found[number] = (value, entity)
        for number in self.find_adjacent(seed):
            if found.get(number, (0.0, None))[0] < ADJACENT_STRENGTH:
                found[number] = (ADJACENT_STRENGTH, None)
        found.pop(seed, None)
        best = sorted(found, key=lambda number: (-found[number][0], number))[:MAX_LINKED_TEXT_UNITS]
        return {number: found[number] for number in best}


def _to_bits(flags: "Flags") -> list[int]:
    """Return each row of flags as a number whose bit n is flag n."""
    packed = np.packbits(flags, axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") for row in packed]
