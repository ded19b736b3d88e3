"""Merging of matching entities into groups.

Every group of entities has a centre: its most mentioned entity. An entity joins a group only if it
matches the centre directly. If a match with any member were enough, chains of similar names would
merge thousands of different entities.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from graphrag_index.resolution.candidates import ExtractedEntities, Node
from graphrag_index.resolution.scoring import Pair
from graphrag_index.schema.tables import TABLES
from graphrag_nlp.text.normalize import title_key

# Value of the column `evidence` for a decision that a person made.
DECIDED_BY_PERSON = ("decided by a person",)


def group_nodes(
    order: Sequence[int],
    pairs: Iterable[Pair],
    never: Collection[frozenset[int]],
    are_apart: Callable[[int, int], bool],
) -> dict[int, Pair]:
    """Group matching entities; map each merged entity to its pair with the group's centre.

    `order` contains the entities, the most mentioned first; centres are chosen in this order.
    `pairs` contains the pairs with a score high enough to merge them. A group never contains both
    entities of a pair in `never`, or two entities for which `are_apart` returns True.
    """
    matches: dict[int, dict[int, Pair]] = defaultdict(dict)
    for pair in pairs:
        if frozenset((pair.left, pair.right)) not in never:
            matches[pair.left][pair.right] = matches[pair.right][pair.left] = pair
    rank = {number: position for position, number in enumerate(order)}
    joined: dict[int, Pair] = {}
    centres: set[int] = set()
    for centre in order:
        if centre in joined or centre not in matches:
            continue
        centres.add(centre)
        members = [centre]
        best = sorted(matches[centre].items(), key=lambda item: (-item[1].score, rank[item[0]]))
        for number, pair in best:
            is_taken = number in joined or number in centres
            if not is_taken and not any(
                frozenset((number, member)) in never or are_apart(number, member)
                for member in members
            ):
                joined[number] = pair
                members.append(number)
    return joined


@dataclass(frozen=True)
class Resolution:
    """The result of entity resolution: nodes, merges, scored pairs and answers of a model.

    `nodes` has the nodes of similar pairs, and those of which a person has decided the title, by
    position. `joined` maps a merged node to its pair with the centre. `scored` contains all pairs
    that are certain or doubtful. `answers` contains the answers of a model about doubtful pairs.
    """

    found: ExtractedEntities
    nodes: Mapping[int, Node]
    joined: Mapping[int, Pair]
    scored: Sequence[Pair]
    answers: Mapping[Pair, bool | None]

    def find_centre(self, at: int) -> int:
        """Return the centre of the group of a node, or the node itself if it is not merged."""
        pair = self.joined.get(at)
        if pair is None:
            return at
        return pair.left if pair.right == at else pair.right

    def make_resolution_tables(self) -> dict[str, pl.DataFrame]:
        """Return the tables `entity_resolutions` and `doubtful_pairs`."""
        resolutions = _make_table("entity_resolutions", self._make_resolution_rows())
        return {
            "entity_resolutions": resolutions.sort("title", "resolved"),
            "doubtful_pairs": _make_table("doubtful_pairs", self._make_doubtful_rows()),
        }

    def _make_resolution_rows(self) -> Iterator[tuple[Any, ...]]:
        for at, node in self.nodes.items():
            pair = self.joined.get(at)
            if pair is not None:
                by = "model" if self.answers.get(pair) else "rule"
                title = self.nodes[self.find_centre(at)].title
                yield node.title, title, pair.score, list(pair.evidence), by
            for title in dict.fromkeys(node.decided):
                if title != node.title:
                    yield title, node.title, 1.0, list(DECIDED_BY_PERSON), "person"
        titles = self.found.find_titles(part.entity for part in self.found.parts)
        split = {(titles[part.entity], part.title) for part in self.found.parts}
        for title, part in sorted(split):
            yield title, part, 1.0, list(DECIDED_BY_PERSON), "person"

    def _make_doubtful_rows(self) -> Iterator[tuple[Any, ...]]:
        verdicts = {True: "same", False: "different", None: "no answer"}
        rows = []
        for pair in self.scored:
            if self.find_centre(pair.left) == self.find_centre(pair.right):
                continue
            model = verdicts[self.answers[pair]] if pair in self.answers else ""
            one, other = self.nodes[pair.left], self.nodes[pair.right]
            names = one.title, other.title, pair.score, list(pair.evidence)
            rows.append((*names, one.type, other.type, one.frequency, other.frequency, model))
        yield from sorted(rows, key=lambda row: (-row[2], title_key(row[0]), title_key(row[1])))


def _make_table(name: str, rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=TABLES[name].schema, orient="row")
