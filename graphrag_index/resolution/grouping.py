"""From pairs to groups, and the number and title that each entity ends with.

Each entity joins a centre that it matches itself. In a chain, each name is like the next and the
last is nothing like the first: that is how thousands of entities become one. Here the most
mentioned entity is a centre first, and what does not match it stays out.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from graphrag_index.resolution.apply import ASSIGNMENTS
from graphrag_index.resolution.candidates import Found, Node, Piece
from graphrag_index.resolution.scoring import Pair
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key

# Evidence of a decision by a person.
BY_PERSON = ("decided by a person",)


def group(
    order: Sequence[int],
    pairs: Iterable[Pair],
    never: Collection[frozenset[int]],
    are_apart: Callable[[int, int], bool],
) -> dict[int, Pair]:
    """Choose the centre that each entity joins.

    Parameters
    ----------
    order
        The entities, the most mentioned first: the order in which they become centres.
    pairs
        Those that are sure enough to be merged.
    never
        Pairs of which no group may hold both.
    are_apart
        Whether two members of one group contradict each other.

    Returns
    -------
    joined
        The pair by which each entity joins its centre; centres and others are no keys.
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
        members = [centre]
        best = sorted(matches[centre].items(), key=lambda item: (-item[1].score, rank[item[0]]))
        for number, pair in best:
            if number in joined or number in centres:
                continue
            if any(
                frozenset((number, member)) in never or are_apart(number, member)
                for member in members
            ):
                continue
            joined[number] = pair
            members.append(number)
        centres.add(centre)
    return joined


@dataclass(frozen=True)
class Resolution:
    """The decisions about one set of entities.

    `joined` is the pair by which a node joined its centre, `scored` are all pairs that were
    sure or doubtful, `answers` are those of a model about some.
    """

    found: Found
    nodes: Sequence[Node]
    joined: Mapping[int, Pair]
    scored: Sequence[Pair]
    answers: Mapping[Pair, bool | None]

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return `entity_resolutions` and `doubtful_pairs`."""
        rows = {
            "entity_resolutions": list(self._resolutions()),
            "doubtful_pairs": list(self._doubtful()),
        }
        made = {name: _table(TABLES[name].schema, values) for name, values in rows.items()}
        resolutions = made["entity_resolutions"]
        return {**made, "entity_resolutions": resolutions.sort("title", "resolved")}

    def assignments(self) -> pl.DataFrame:
        """Return the number and title that each extracted entity ends with: `ASSIGNMENTS`."""
        return _table(ASSIGNMENTS, list(self._assignments()))

    def _centre(self, at: int) -> int:
        pair = self.joined.get(at)
        if pair is None:
            return at
        return pair.left if pair.right == at else pair.right

    def _assignments(self) -> Iterator[tuple[Any, ...]]:
        centres = {self._centre(at) for at in self.joined}
        resolved: dict[int, tuple[int, str]] = {}
        for at, node in enumerate(self.nodes):
            if at in self.joined or at in centres or node.decided:
                centre = self.nodes[self._centre(at)]
                resolved.update(dict.fromkeys(node.numbers, (centre.numbers[0], centre.title)))
        titles = dict(zip(self.found.numbers, self.found.titles, strict=True))
        pieces = {piece.number: piece for piece in self.found.pieces}
        for number, (target, title) in resolved.items():
            if number not in pieces and (number != target or title != titles[number]):
                pieces[number] = Piece(number, target, title, "", ())
        made: list[tuple[Any, ...]] = []
        for number, piece in pieces.items():
            target, title = resolved.get(number, (piece.number, piece.title))
            if not piece.units:
                made.append((piece.entity, None, None, None, None, target, title))
            for u in piece.units:
                place = u.document_id, u.start_char, u.end_char
                made.append((piece.entity, u.number, *place, target, title))
        yield from sorted(made, key=lambda row: (row[0], -1 if row[1] is None else row[1]))

    def _resolutions(self) -> Iterator[tuple[Any, ...]]:
        for at, node in enumerate(self.nodes):
            pair = self.joined.get(at)
            if pair is not None:
                by = "model" if self.answers.get(pair) else "rule"
                title = self.nodes[self._centre(at)].title
                yield node.title, title, pair.score, list(pair.evidence), by
            for title in dict.fromkeys(node.decided):
                if title != node.title:
                    yield title, node.title, 1.0, list(BY_PERSON), "person"
        titles = dict(zip(self.found.numbers, self.found.titles, strict=True))
        split = {(titles[piece.entity], piece.title) for piece in self.found.pieces}
        for title, part in sorted(split):
            yield title, part, 1.0, list(BY_PERSON), "person"

    def _doubtful(self) -> Iterator[tuple[Any, ...]]:
        rows = []
        for pair in self.scored:
            if self._centre(pair.left) == self._centre(pair.right):
                continue
            model = ""
            if pair in self.answers:
                model = {True: "same", False: "different", None: "no answer"}[self.answers[pair]]
            one, other = self.nodes[pair.left], self.nodes[pair.right]
            rows.append(
                (
                    *(one.title, other.title, pair.score, list(pair.evidence)),
                    *(one.type, other.type, one.frequency, other.frequency, model),
                )
            )
        yield from sorted(rows, key=lambda row: (-row[2], title_key(row[0]), title_key(row[1])))


def _table(schema: Mapping[str, Any], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Build a table by columns, which is quicker than by rows."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pl.DataFrame(
        pl.Series(column, values, dtype)
        for (column, dtype), values in zip(schema.items(), columns, strict=True)
    )
