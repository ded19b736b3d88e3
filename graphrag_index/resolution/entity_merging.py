"""Merging of matching entities into groups, and rewriting of the extracted tables after it.

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
from graphrag_index.storage.memo import read_batches
from graphrag_nlp.text.normalize import title_key

# Value of the column `evidence` for a decision that a person made.
DECIDED_BY_PERSON = ("decided by a person",)
Row = dict[str, Any]

# Number of rows per batch. The number limits memory and does not change the results.
ROWS_PER_READ = 262_144


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


class TableRewriter:
    """A rewriter of the extracted tables, which replaces entities by resolved entities."""

    def __init__(self, resolution: Resolution, base_text_units: pl.LazyFrame) -> None:
        found, nodes = resolution.found, resolution.nodes
        resolved: dict[int, tuple[int, str]] = {}
        centres = set(map(resolution.find_centre, resolution.joined))
        for at, node in nodes.items():
            if at in resolution.joined or at in centres or node.decided:
                centre = nodes[resolution.find_centre(at)]
                resolved.update(dict.fromkeys(node.numbers, (centre.numbers[0], centre.title)))
        # The titles of entities after resolution, by their numbers after resolution.
        self._titles: dict[int, str] = {}
        # For each entity that was merged or renamed: the number after resolution.
        self._merged_numbers: dict[int, int] = {}
        # For each split entity: the number of the part by text unit, and the text units' spans.
        self._parts: dict[int, dict[int, int]] = defaultdict(dict)
        self._spans: dict[tuple[int, str], list[tuple[int, int, int]]] = defaultdict(list)
        extracted = found.find_titles(resolved)
        for number, (target, title) in resolved.items():
            if number in extracted and (number, extracted[number]) != (target, title):
                self._merged_numbers[number] = target
                self._titles[target] = title
        units = [(part, unit) for part in found.parts for unit in part.units]
        for part, unit in sorted(units, key=lambda pair: (pair[0].entity, pair[1].number)):
            target, title = resolved.get(part.number, (part.number, part.title))
            self._titles[target] = title
            self._parts[part.entity][unit.number] = target
            span = unit.start_char, unit.end_char, target
            self._spans[part.entity, unit.document_id].append(span)
        for spans in self._spans.values():
            spans.sort()
        # Read (start, text) of the text units of every document that mentions a split entity.
        documents = list({document for _, document in self._spans})
        self._texts: dict[str, list[tuple[int, str]]] = defaultdict(list)
        if documents:
            texts = base_text_units.filter(pl.col("document_id").is_in(documents))
            columns = texts.select("document_id", "start_char", "text").collect()
            for document, start, text in columns.sort("document_id", "start_char").iter_rows():
                self._texts[document].append((start, text))

    @property
    def changes_nothing(self) -> bool:
        """True if no entity was merged, split or renamed."""
        return not self._titles

    def _replace_numbers(self, *columns: str) -> pl.Expr:
        return pl.col(*columns).replace(self._merged_numbers)

    def rewrite_given_ids(self, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Replace numbers of merged entities in `given_ids`; split entities keep their numbers."""
        for batch in read_batches(rows, ROWS_PER_READ):
            yield batch.with_columns(self._replace_numbers("number", "target"))

    def rewrite_mentions(self, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Replace entity numbers in mentions; for a split entity, the text unit decides."""
        parts = pl.DataFrame(
            [(entity, *item) for entity, units in self._parts.items() for item in units.items()],
            schema={"entity": pl.Int32, "text_unit": pl.Int32, "_part": pl.Int32},
            orient="row",
        )
        merged = self._replace_numbers("entity")
        for batch in read_batches(rows, ROWS_PER_READ):
            keys = ["entity", "text_unit"]
            joined = batch.join(parts, on=keys, how="left", maintain_order="left")
            yield joined.with_columns(entity=pl.coalesce("_part", merged)).drop("_part")

    def rewrite_entities(self, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Merge and split entities; a resolved entity gets the position of its first row."""
        have_descriptions = _have_descriptions(rows)
        changing = {*self._merged_numbers, *self._parts, *self._titles}
        old = _find_rows(rows, pl.col("human_readable_id").is_in(list(changing)))
        members_of: dict[int, list[Row]] = defaultdict(list)
        for row in old.iter_rows(named=True):
            for resolved, part in self._split_entity(row, have_descriptions):
                members_of[resolved].append(part)
        made = [self._merge_rows(number, rows) for number, rows in sorted(members_of.items())]
        new = pl.DataFrame(made, schema=old.schema, infer_schema_length=None)
        return _replace_rows(rows, old["_at"], new.sort("_at", maintain_order=True))

    def rewrite_relationships(self, rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        """Renumber and split relationships; drop those that now link an entity with itself.

        If a model described the relationships, those with the same two entities and the same type
        are merged. The merged relationship gets the position of the first one.
        """
        endpoints = pl.col("source", "target")
        is_divided = pl.any_horizontal(endpoints.is_in(list(self._parts)))
        is_changing = is_divided | pl.any_horizontal(endpoints.is_in(list(self._merged_numbers)))
        old = _find_rows(rows, is_changing)
        divided = [
            part
            for row in old.filter(is_divided).iter_rows(named=True)
            for part in self._split_relationship(row)
        ]
        new = (
            pl.concat([old.filter(~is_divided), pl.DataFrame(divided, schema=old.schema)])
            .sort("_at", "source", "target")
            .with_columns(self._replace_numbers("source", "target"))
            .filter(pl.col("source") != pl.col("target"))
        )
        positions = old["_at"]
        if _have_descriptions(rows):
            # A changed relationship may now have the entities of an unchanged one.
            links = new.select("source", "target").unique().lazy()
            others = _find_rows(rows, ~is_changing, links)
            positions = pl.concat([positions, others["_at"]])
            new = _merge_changed_relationships(
                pl.concat([others.with_columns(_changed=False), new.with_columns(_changed=True)])
            )
        return _replace_rows(rows, positions, new)

    def _split_entity(self, row: Row, have_descriptions: bool) -> Iterator[tuple[int, Row]]:
        """Yield (number after resolution, row) for each part of an entity, split or not."""
        number: int = row["human_readable_id"]
        if number not in self._parts:
            yield self._merged_numbers.get(number, number), row
            return
        parts = self._parts[number]
        for part in dict.fromkeys(parts.values()):
            units = {unit for unit, resolved in parts.items() if resolved == part}
            own = {
                **row,
                **_keep_text_units(row, "types", "text_units", units),
                **_keep_text_units(row, "descriptions", "description_text_units", units),
                "evidence": [e for e in row["evidence"] if self._find_part(number, e) == part],
            }
            types = [kind for kind in own["types"] if kind]
            own["type"] = max(types, key=types.count, default=row["type"])
            if not have_descriptions:
                own["description"] = " ".join(
                    filter(None, map(self._find_sentence, own["evidence"]))
                )
            yield part, own

    def _find_part(self, number: int, place: Row) -> int | None:
        """Return the number of a split entity's part at a place in a document, or None."""
        spans = self._spans.get((number, place["document_id"]), [])
        at = place["start_char"]
        return next((part for start, end, part in spans if start <= at < end), None)

    def _find_sentence(self, place: Row) -> str:
        """Return the sentence at a place in a document; empty if no text unit has all of it."""
        for start, text in self._texts.get(place["document_id"], ()):
            if start <= place["start_char"] and place["end_char"] <= start + len(text):
                sentence = text[place["start_char"] - start : place["end_char"] - start]
                return " ".join(sentence.split())
        return ""

    def _merge_rows(self, resolved: int, rows: Sequence[Row]) -> Row:
        """Merge the rows of one resolved entity; prefer the centre's type and description."""
        title = self._titles.get(resolved, rows[0]["title"])
        centre_first = sorted(rows, key=lambda row: row["human_readable_id"] != resolved)
        types: dict[int, str] = {}
        for row in centre_first:
            for unit, kind in zip(row["text_units"], row["types"], strict=True):
                types[unit] = types.get(unit) or kind
        forms = (form for row in rows for form in (row["title"], *row["aliases"]))
        return {
            "_at": rows[0]["_at"],
            "human_readable_id": resolved,
            "title": title,
            "type": next(filter(None, (row["type"] for row in centre_first)), ""),
            "description": next(filter(None, (row["description"] for row in centre_first)), ""),
            **_merge_descriptions(rows),
            "text_units": sorted(types),
            "types": [types[unit] for unit in sorted(types)],
            "aliases": [form for form in dict.fromkeys(forms) if form != title],
            "evidence": _merge_evidence(rows),
        }

    def _split_relationship(self, row: Row) -> Iterator[Row]:
        """Split the row of a relationship by the entity parts that its text units refer to."""
        held: dict[tuple[int, int], list[int]] = {}
        endpoints: tuple[int, int] = row["source"], row["target"]
        for unit in row["text_units"]:
            source, target = (self._parts.get(end, {}).get(unit, end) for end in endpoints)
            held.setdefault((source, target), []).append(unit)
        for new, units in held.items():
            part = {**row, "source": new[0], "target": new[1], "text_units": units}
            part["weight"] = row["weight"] * len(units) / len(row["text_units"])
            part["evidence"] = [
                place
                for place in row["evidence"]
                if all(
                    end not in self._parts or self._find_part(end, place) == number
                    for end, number in zip(endpoints, new, strict=True)
                )
            ]
            if row["descriptions"]:
                part |= _keep_text_units(row, "descriptions", "description_text_units", units)
            elif not part["evidence"] and row["evidence"]:
                # Delete the description: it is a sentence about another part of the entity.
                part["description"] = ""
            yield part


def _keep_text_units(row: Row, values: str, units: str, wanted: Collection[int]) -> Row:
    """Keep the wanted text units of a row, and the values of a column that belong to them."""
    pairs = zip(row[values], row[units], strict=True)
    kept = [(value, unit) for value, unit in pairs if unit in wanted]
    return {values: [value for value, _ in kept], units: [unit for _, unit in kept]}


def _have_descriptions(rows: pl.LazyFrame) -> bool:
    """Return whether a model has described entities or relationships."""
    has_descriptions = pl.col("descriptions").list.len() > 0
    return bool(rows.select(has_descriptions.any()).collect(engine="streaming").item())


def _find_rows(
    rows: pl.LazyFrame, condition: pl.Expr, links: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Return the rows that match a condition, with their position in the table as `_at`."""
    found = rows.with_row_index("_at").filter(condition)
    if links is not None:
        found = found.join(links, on=["source", "target"], how="semi")
    return found.collect(engine="streaming").sort("_at")


def _replace_rows(
    rows: pl.LazyFrame, positions: pl.Series, new: pl.DataFrame
) -> Iterator[pl.DataFrame]:
    """Yield a table in batches, without the rows at some positions, and with new rows.

    `new` is sorted by `_at`, the position of each new row.
    """
    removed = positions.to_frame("_at")
    start = 0
    for batch in read_batches(rows, ROWS_PER_READ):
        kept = batch.with_row_index("_at", start).join(removed, on="_at", how="anti")
        is_here = pl.col("_at").is_between(start, start + batch.height - 1)
        merged = pl.concat([kept, new.filter(is_here)]).sort("_at", maintain_order=True)
        yield merged.drop("_at")
        start += batch.height


def _merge_changed_relationships(rows: pl.DataFrame) -> pl.DataFrame:
    """Merge changed relationships that have the same two entities and the same type."""
    kind = pl.col("type").map_elements(title_key, return_dtype=pl.String)
    keyed = rows.sort("_at", maintain_order=True).with_row_index("_row").with_columns(_kind=kind)
    key = ["source", "target", "_kind"]
    again = keyed.filter((pl.len().over(key) > 1) & pl.col("_changed").any().over(key))
    alone = keyed.join(again.select("_row"), on="_row", how="anti")
    made = []
    for _, group in again.group_by(key, maintain_order=True):
        members = list(group.iter_rows(named=True))
        made.append(
            {
                **members[0],
                **_merge_descriptions(members),
                "weight": sum(row["weight"] for row in members),
                "text_units": sorted({unit for row in members for unit in row["text_units"]}),
                "evidence": _merge_evidence(members),
            }
        )
    merged = pl.concat([alone, pl.DataFrame(made, schema=keyed.schema)])
    return merged.sort("_row").drop("_row", "_kind", "_changed")


def _merge_descriptions(rows: Sequence[Row]) -> Row:
    """Merge the descriptions of rows, sorted by the first text unit of each description."""
    first_units: dict[str, int] = {}
    for row in rows:
        for text, unit in zip(row["descriptions"], row["description_text_units"], strict=True):
            first_units[text] = min(unit, first_units.get(text, unit))
    texts = sorted(first_units, key=first_units.__getitem__)
    units = [first_units[text] for text in texts]
    return {"descriptions": texts, "description_text_units": units}


def _merge_evidence(rows: Sequence[Row]) -> list[Row]:
    places = (place for row in rows for place in row["evidence"])
    return list({tuple(place.values()): place for place in places}.values())
