"""What is resolved, as tables: the number and title that each extracted entity ends with."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from graphrag_index.resolution.apply import ASSIGNMENTS
from graphrag_index.resolution.candidates import Node
from graphrag_index.resolution.decisions_file import Decisions
from graphrag_index.resolution.scoring import Pair
from graphrag_index.resolution.splitting import Piece, split_entities, units_of_entities
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.normalize import title_key

# What decided a name, where a person did.
BY_PERSON = ("decided by a person",)


@dataclass(frozen=True)
class Found:
    """What extraction found, with the parts of the names that a person has split.

    `mentions` has `entity` and `text_unit`, each pair once, by the numbers of parts where there
    are some; `documents` has the `document` of each `text_unit`.
    """

    numbers: Sequence[int]
    titles: Sequence[str]
    types: Sequence[str]
    mentions: pl.DataFrame
    documents: pl.DataFrame
    pieces: Sequence[Piece]

    @classmethod
    def read(
        cls,
        entities: pl.LazyFrame,
        extracted_mentions: pl.LazyFrame,
        base_text_units: pl.LazyFrame,
        documents: pl.LazyFrame | None,
        decisions: Decisions,
    ) -> "Found":
        told = entities.select("human_readable_id", "title", "type").collect()
        number = pl.col("entity", "text_unit").cast(pl.Int64)
        mentions = extracted_mentions.select(number).unique().collect().sort("entity", "text_unit")
        units = base_text_units.select(
            pl.col("human_readable_id").cast(pl.Int64).alias("text_unit"),
            pl.col("document_id").rank("dense").cast(pl.Int64).alias("document"),
        ).collect()
        pieces: list[Piece] = []
        wanted = [row for row in told.iter_rows() if title_key(row[1]) in decisions.split]
        if wanted:
            numbers = [row[0] for row in wanted]
            full = entities.select("human_readable_id", "text_units", "types").collect()
            of = units_of_entities(numbers, full, mentions, base_text_units, documents)
            first = max(told["human_readable_id"].to_list()) + 1
            pieces = split_entities(wanted, of, decisions.split, first)
            moved = {
                (piece.entity, u.number): piece.number for piece in pieces for u in piece.units
            }
            mentions = mentions.with_columns(
                entity=pl.Series(
                    (
                        moved.get((e, u), e)
                        for e, u in mentions.select("entity", "text_unit").rows()
                    ),
                    dtype=pl.Int64,
                )
            )
        return cls(
            told["human_readable_id"].to_list(),
            told["title"].to_list(),
            told["type"].to_list(),
            mentions,
            units,
            pieces,
        )

    def rows(self) -> Iterator[tuple[int, str, str, int]]:
        """Give number, title, type and number of text units of each entity and part."""
        counted = self.mentions.group_by("entity").len()
        counts = dict(zip(counted["entity"], counted["len"], strict=True))
        divided = {piece.entity for piece in self.pieces}
        for number, title, kind in zip(self.numbers, self.titles, self.types, strict=True):
            if number not in divided:
                yield number, title, kind, counts.get(number, 0)
        for piece in self.pieces:
            yield piece.number, piece.title, piece.type, counts.get(piece.number, 0)

    def origin(self, number: int) -> int:
        """Return the extracted entity of a part, or the entity itself."""
        return next((p.entity for p in self.pieces if p.number == number), number)

    def places(self, nodes: Sequence[Node]) -> dict[int, int]:
        """Return the node of each entity and part."""
        return {number: at for at, node in enumerate(nodes) for number in node.numbers}


@dataclass(frozen=True)
class Resolution:
    """The decisions about one set of entities.

    `joined` is the pair by which a node joined its centre, `scored` are all pairs that were
    sure or doubtful, `said` is what a model answered about some.
    """

    found: Found
    nodes: Sequence[Node]
    joined: Mapping[int, Pair]
    scored: Sequence[Pair]
    said: Mapping[Pair, bool | None]

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
                by = "model" if self.said.get(pair) else "rule"
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
            if pair in self.said:
                model = {True: "same", False: "different", None: "no answer"}[self.said[pair]]
            one, other = self.nodes[pair.left], self.nodes[pair.right]
            rows.append(
                (
                    *(one.title, other.title, pair.score, list(pair.evidence)),
                    *(one.type, other.type, one.frequency, other.frequency, model),
                )
            )
        yield from sorted(rows, key=lambda row: (-row[2], title_key(row[0]), title_key(row[1])))


def _table(schema: Mapping[str, Any], rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Make a table column by column, which takes a fraction of the time that rows take."""
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pl.DataFrame(
        pl.Series(column, values, dtype)
        for (column, dtype), values in zip(schema.items(), columns, strict=True)
    )
