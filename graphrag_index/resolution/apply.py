"""Apply assignments to the extracted tables, so that each resolved entity has one row."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from graphrag_index.text.normalize import title_key

Row = dict[str, Any]
Span = tuple[int, int, int]

# One row per extracted entity that was merged or renamed; per text unit of one that was split.
# The others keep number and title.
ASSIGNMENTS = {
    "entity": pl.Int64,  # number of the extracted entity
    "text_unit": pl.Int64,  # number of the base text unit; null: all of them
    "document_id": pl.String,  # of that text unit; null as above
    "start_char": pl.Int64,
    "end_char": pl.Int64,
    "resolved": pl.Int64,  # number of the resolved entity
    "title": pl.String,
}
_HAS_DESCRIPTIONS = pl.col("descriptions").list.len() > 0


class Assignments:
    """Resolved numbers of extracted entities; `rows` are `ASSIGNMENTS`."""

    def __init__(self, rows: pl.DataFrame, base_text_units: pl.LazyFrame) -> None:
        self.is_empty = rows.is_empty()
        self._whole: dict[int, int] = {}
        self._parts: dict[tuple[int, int], int] = {}
        self.titles: dict[int, str] = {}
        # Of each document that a divided entity is in: where text units begin, end, and whose.
        self._places: dict[tuple[int, str], list[Span]] = defaultdict(list)
        for row in rows.iter_rows(named=True):
            number, unit, resolved = row["entity"], row["text_unit"], row["resolved"]
            self.titles[resolved] = row["title"]
            if unit is None:
                self._whole[number] = resolved
                continue
            self._parts[number, unit] = resolved
            place = row["start_char"], row["end_char"], resolved
            self._places[number, row["document_id"]].append(place)
        for places in self._places.values():
            places.sort()
        self._divided = {number for number, _ in self._parts}
        self._moved = self._whole.keys() | self._divided
        # Of the documents that divided entities are in: where text units begin, and their texts.
        self._texts: dict[str, list[tuple[int, str]]] = defaultdict(list)
        if self._divided:
            documents = {document for _, document in self._places}
            wanted = base_text_units.filter(pl.col("document_id").is_in(list(documents)))
            columns = wanted.select("document_id", "start_char", "text").collect()
            for document, start, text in columns.sort("document_id", "start_char").iter_rows():
                self._texts[document].append((start, text))

    def given_ids(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Renumber `given_ids`; a split entity keeps its number, which no part has."""
        numbers = pl.col("number", "target")
        return frame.with_columns(numbers.replace(list(self._whole), list(self._whole.values())))

    def mentions(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Renumber mentions."""
        if self.is_empty:
            return frame
        whole = pl.LazyFrame(
            {"entity": list(self._whole), "_whole": list(self._whole.values())},
            schema={"entity": pl.Int32, "_whole": pl.Int32},
        )
        parts = pl.LazyFrame(
            [(*key, resolved) for key, resolved in self._parts.items()],
            schema={"entity": pl.Int32, "text_unit": pl.Int32, "_part": pl.Int32},
            orient="row",
        )
        joined = frame.join(whole, on="entity", how="left", maintain_order="left").join(
            parts, on=["entity", "text_unit"], how="left", maintain_order="left"
        )
        return joined.with_columns(entity=pl.coalesce("_part", "_whole", "entity")).drop(
            "_part", "_whole"
        )

    def entities(self, extracted: pl.LazyFrame) -> pl.LazyFrame:
        """Merge and split entities; each resolved entity takes the place of its first row."""
        if self.is_empty:
            return extracted
        frame = extracted.collect()
        several = frame.select(_HAS_DESCRIPTIONS.any()).item()
        number = pl.col("human_readable_id")
        concerned = number.is_in(list(self._moved | self.titles.keys()))
        numbered = frame.with_row_index("_at")
        made: dict[int, list[tuple[int, Row]]] = defaultdict(list)
        for row in numbered.filter(concerned).iter_rows(named=True):
            at = row.pop("_at")
            for resolved, part in self._split_entity(row, several):
                made[resolved].append((at, part))
        rows = [
            {"_at": held[0][0], **self._merge_rows(resolved, [row for _, row in held])}
            for resolved, held in sorted(made.items())
        ]
        schema = {"_at": numbered.schema["_at"], **frame.schema}
        changed = pl.DataFrame(rows, schema=schema, infer_schema_length=None)
        merged = pl.concat([numbered.filter(~concerned), changed])
        return merged.sort("_at", "human_readable_id").drop("_at").lazy()

    def relationships(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Renumber and split relationships, and drop those between an entity and itself.

        Those that a model described become one if their ends and type are the same, where the
        first stood.
        """
        if self.is_empty:
            return rows
        frame = rows.collect()
        whole = pl.DataFrame(
            {"_old": list(self._whole), "_new": list(self._whole.values())},
            schema={"_old": pl.Int64, "_new": pl.Int64},
        )
        ends = [pl.col(end).is_in(list(self._divided)) for end in ("source", "target")]
        numbered = frame.with_row_index("_at").with_columns(_changed=pl.lit(False))
        divided = [
            {**part, "_changed": True}
            for row in numbered.filter(ends[0] | ends[1]).iter_rows(named=True)
            for part in self._split_relationship(row)
        ]
        kept = pl.concat(
            [numbered.filter(~(ends[0] | ends[1])), pl.DataFrame(divided, schema=numbered.schema)]
        ).sort("_at", "source", "target")
        for end in ("source", "target"):
            joined = kept.join(
                whole, left_on=end, right_on="_old", how="left", maintain_order="left"
            )
            kept = joined.with_columns(
                pl.coalesce("_new", end).alias(end),
                _changed=pl.col("_changed") | pl.col("_new").is_not_null(),
            ).drop("_new")
        kept = kept.filter((pl.col("source") != pl.col("target")) | ~pl.col("_changed"))
        kept = kept.drop("_at")
        merge = frame.select(_HAS_DESCRIPTIONS.any()).item()
        return (_merge_changed(kept) if merge else kept.drop("_changed")).lazy()

    def _split_entity(self, row: Row, several: bool) -> Iterator[tuple[int, Row]]:
        """Split the row of an entity into the rows of its parts."""
        number: int = row["human_readable_id"]
        if number not in self._divided:
            yield self._whole.get(number, number), row
            return
        parts = dict.fromkeys(r for (n, _), r in self._parts.items() if n == number)
        for part in parts:
            own = dict(row)
            own["evidence"] = [e for e in row["evidence"] if self._part_at(number, e) == part]
            for name in ("descriptions", "types"):
                units = "description_text_units" if name == "descriptions" else "text_units"
                own[name] = [
                    value
                    for value, unit in zip(row[name], row[units], strict=True)
                    if self._parts.get((number, unit)) == part
                ]
            for name in ("text_units", "description_text_units"):
                own[name] = [u for u in row[name] if self._parts.get((number, u)) == part]
            kinds = [kind for kind in own["types"] if kind]
            own["type"] = max(kinds, key=kinds.count) if kinds else row["type"]
            if not several:
                own["description"] = " ".join(filter(None, map(self._sentence_at, own["evidence"])))
            yield part, own

    def _part_at(self, number: int, place: Mapping[str, Any]) -> int | None:
        """Return the part at a place: that of the first text unit that contains it."""
        places = self._places.get((number, place["document_id"]), [])
        start = place["start_char"]
        within = [p for p in places[: bisect_right(places, (start, 1 << 62, 0))] if start < p[1]]
        return within[0][2] if within else None

    def _sentence_at(self, place: Mapping[str, Any]) -> str:
        """Return the sentence at a place, from a text unit that contains all of it."""
        for start, text in self._texts.get(place["document_id"], ()):
            if start <= place["start_char"] and place["end_char"] <= start + len(text):
                return " ".join(
                    text[place["start_char"] - start : place["end_char"] - start].split()
                )
        return ""

    def _merge_rows(self, resolved: int, rows: Sequence[Row]) -> Row:
        """Merge the rows of one entity; the centre's type and description come first."""
        title = self.titles.get(resolved, rows[0]["title"])
        centre = next((row for row in rows if row["human_readable_id"] == resolved), rows[0])
        first = [centre, *(row for row in rows if row is not centre)]
        kinds: dict[int, str] = {}
        for row in first:
            for unit, kind in zip(row["text_units"], row["types"], strict=True):
                kinds[unit] = kinds.get(unit) or kind
        return {
            "human_readable_id": resolved,
            "title": title,
            "type": next((row["type"] for row in first if row["type"]), ""),
            "description": next((r["description"] for r in first if r["description"]), ""),
            **_merge_descriptions(rows),
            "text_units": sorted(kinds),
            "types": [kinds[unit] for unit in sorted(kinds)],
            "aliases": _distinct(
                form for row in rows for form in (row["title"], *row["aliases"]) if form != title
            ),
            "evidence": _distinct_places(place for row in rows for place in row["evidence"]),
        }

    def _split_relationship(self, row: Row) -> Iterator[Row]:
        """Split a relationship by the text units of the parts of its ends."""
        held: dict[tuple[int, int], list[int]] = {}
        ends: tuple[int, int] = row["source"], row["target"]
        for unit in row["text_units"]:
            source, target = (self._parts.get((end, unit), end) for end in ends)
            held.setdefault((source, target), []).append(unit)
        for (source, target), units in held.items():
            part = {**row, "source": source, "target": target, "text_units": units}
            part["weight"] = row["weight"] * len(units) / len(row["text_units"])
            part["evidence"] = [
                place
                for place in row["evidence"]
                if all(
                    end not in self._divided or self._part_at(end, place) == new
                    for end, new in zip(ends, (source, target), strict=True)
                )
            ]
            if row["descriptions"]:
                pairs = zip(row["descriptions"], row["description_text_units"], strict=True)
                kept = [(text, unit) for text, unit in pairs if unit in units]
                part["descriptions"] = [text for text, _ in kept]
                part["description_text_units"] = [unit for _, unit in kept]
            elif not part["evidence"] and row["evidence"]:
                # Its one description is the sentence of another part.
                part["description"] = ""
            yield part


def _merge_changed(rows: pl.DataFrame) -> pl.DataFrame:
    """Merge changed relationships with the same ends and type."""
    kind = pl.col("type").map_elements(title_key, return_dtype=pl.String)
    keyed = rows.with_row_index("_at").with_columns(_kind=kind)
    key = ["source", "target", "_kind"]
    again = keyed.filter((pl.len().over(key) > 1) & pl.col("_changed").any().over(key))
    alone = keyed.join(again.select("_at"), on="_at", how="anti")
    made = []
    for _, group in again.group_by(key, maintain_order=True):
        members = list(group.iter_rows(named=True))
        made.append(
            {
                **members[0],
                **_merge_descriptions(members),
                "weight": sum(row["weight"] for row in members),
                "text_units": sorted({unit for row in members for unit in row["text_units"]}),
                "evidence": _distinct_places(p for row in members for p in row["evidence"]),
            }
        )
    merged = pl.concat([alone, pl.DataFrame(made, schema=keyed.schema)])
    return merged.sort("_at").drop("_at", "_kind", "_changed")


def _merge_descriptions(rows: Sequence[Row]) -> Row:
    """Merge the descriptions of rows, in order of the first text unit with each."""
    first_units: dict[str, int] = {}
    for row in rows:
        for text, unit in zip(row["descriptions"], row["description_text_units"], strict=True):
            first_units[text] = min(unit, first_units.get(text, unit))
    ordered = sorted(first_units.items(), key=lambda item: item[1])
    texts, units = zip(*ordered, strict=True) if ordered else ((), ())
    return {"descriptions": list(texts), "description_text_units": list(units)}


def _distinct(values: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _distinct_places(places: Iterator[Row]) -> list[Row]:
    return list({tuple(place.values()): place for place in places}.values())
