"""Split one name into several entities, by text units that a person names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from graphrag_index.resolution.decisions_file import Part
from graphrag_index.text.normalize import title_key


@dataclass(frozen=True)
class Unit:
    """A text unit with the marks by which parts are distinguished."""

    number: int
    id: str
    document_id: str
    title: str  # of the document
    path: str
    start_char: int
    end_char: int
    type: str  # that the reply about it gives the entity


@dataclass(frozen=True)
class Piece:
    """One part of a split entity, with its own number and text units."""

    entity: int
    number: int
    title: str
    type: str
    units: tuple[Unit, ...]


def split_entities(
    entities: Sequence[tuple[int, str, str]],
    units_of: Mapping[int, Sequence[Unit]],
    split: Mapping[str, tuple[Part, ...]],
    first_number: int,
) -> list[Piece]:
    """Split entities into the parts of their names.

    Parameters
    ----------
    entities
        Number, title and type of those whose titles are split, in order.
    first_number
        That of the first part; they are numbered in order of entity, then of first mention.

    Returns
    -------
    pieces
        Parts that some text unit means. What none of them is keeps the name.
    """
    pieces: list[Piece] = []
    for number, title, kind in entities:
        parts = split[title_key(title)]
        held: dict[str, list[Unit]] = {}
        for unit in units_of.get(number, ()):
            part = next((part for part in parts if means(part, unit)), None)
            held.setdefault(title if part is None else part.title, []).append(unit)
        for name, units in held.items():
            types = [unit.type for unit in units if unit.type]
            # The type that most text units give, the first of several.
            most = max(types, key=types.count) if types else kind
            pieces.append(Piece(number, first_number + len(pieces), name, most, tuple(units)))
    return pieces


def means(part: Part, unit: Unit) -> bool:
    """Tell whether a text unit means a part; a part without marks is meant in any."""
    documents = {title_key(name) for name in part.documents}
    return (
        (not part.paths or any(_matches(pattern, unit.path) for pattern in part.paths))
        and (
            not documents or bool(documents & {title_key(unit.title), title_key(unit.document_id)})
        )
        and (not part.text_units or unit.id in part.text_units)
        and (not part.types or title_key(unit.type) in map(title_key, part.types))
    )


def _matches(pattern: str, path: str) -> bool:
    """Match a path as load_documents does: * within a name, ** through folders."""
    made = "".join(_pieces(pattern))
    return re.fullmatch(made, path) is not None


def _pieces(pattern: str) -> Iterator[str]:
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        yield known.get(piece, re.escape(piece))


def units_of_entities(
    numbers: Sequence[int],
    found: pl.DataFrame,
    mentions: pl.DataFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame | None,
) -> dict[int, list[Unit]]:
    """Describe the text units of some entities, in their order.

    `found` has the lists `text_units` and `types`, of what a model's reply about each said.
    """
    wanted = mentions.filter(pl.col("entity").is_in(numbers)).sort("entity", "text_unit")
    columns = base_text_units.select(
        pl.col("human_readable_id").cast(pl.Int64).alias("text_unit"),
        pl.col("id").alias("unit_id"),
        *("document_id", "start_char", "end_char"),
    )
    rows = columns.filter(
        pl.col("text_unit").is_in(wanted["text_unit"].unique().implode())
    ).collect()
    if documents is None:
        rows = rows.with_columns(title=pl.lit(""), path=pl.lit(""))
    else:
        named = documents.select(pl.col("id").alias("document_id"), "title", "path").collect()
        rows = rows.join(named, on="document_id", how="left")
    types: dict[tuple[int, int], str] = {}
    told = found.filter(pl.col("human_readable_id").is_in(numbers))
    for number, units, kinds in told.select("human_readable_id", "text_units", "types").rows():
        types.update({(number, unit): kind for unit, kind in zip(units, kinds, strict=True)})
    made: dict[int, list[Unit]] = {}
    joined = wanted.join(rows, on="text_unit", maintain_order="left")
    for row in joined.iter_rows(named=True):
        number, unit = row["entity"], row["text_unit"]
        made.setdefault(number, []).append(
            Unit(
                number=unit,
                id=row["unit_id"],
                document_id=row["document_id"],
                title=row["title"] or "",
                path=row["path"] or "",
                start_char=row["start_char"],
                end_char=row["end_char"],
                type=types.get((number, unit), ""),
            )
        )
    return made
