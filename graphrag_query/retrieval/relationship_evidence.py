"""Passages that support relationships, and relationships written as cited lines."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from graphrag_index.text.sentences import split_sentences
from graphrag_query.answer import Citation
from graphrag_query.answering.cited_text import best_sentence
from graphrag_query.answering.extractive import Candidate, TextUnit, add_citation, as_one_line
from graphrag_query.retrieval.index_store import IndexStore

# Maximum number of text units that are searched for a relationship without exact evidence.
MAX_TEXT_UNITS_SEARCHED = 10
# Maximum distance in sentences between two names that support a relationship.
MAX_DISTANCE_OF_NAMES = 4

Passage = tuple[Candidate, TextUnit]
Place = tuple[int, int, int]  # (number of the document, first character, end character)


def find_passages(index: IndexStore, relationships: pl.DataFrame) -> dict[int, Passage]:
    """Find the passage that supports each relationship, with its text unit.

    The passage is the evidence of the relationship. Without evidence, it is the run of
    sentences in its text units that names both entities. Without such sentences, it is the
    sentence most similar to the description. A relationship without text units has no passage.
    """
    rows = list(relationships.iter_rows(named=True))
    places: dict[int, list[Place]] = {}
    wanted: dict[int, list[int]] = {}
    for row in rows:
        number = row["human_readable_id"]
        places[number] = [(p["document"], p["start_char"], p["end_char"]) for p in row["evidence"]]
        behind = index.text_units_behind("Relationships", number)
        holding = _find_text_unit(index, behind, places[number])
        wanted[number] = [holding] if holding is not None else behind[:MAX_TEXT_UNITS_SEARCHED]
    units = index.text_units(unit for numbers in wanted.values() for unit in numbers)
    found = {}
    for row in rows:
        number = row["human_readable_id"]
        near = [units[n] for n in wanted[number] if n in units]
        if passage := _choose_passage(row, near, places[number]):
            found[number] = passage
    return found


class CitedRelationships:
    """A writer of relationships as lines. It gives each cited passage one number."""

    def __init__(self, relationships: pl.DataFrame, passages: Mapping[int, Passage]) -> None:
        self._rows = {row["human_readable_id"]: row for row in relationships.iter_rows(named=True)}
        self._passages = passages
        self.citations: list[Citation] = []

    def write_line(self, relationship: int, start: str) -> str:
        """Write a relationship as a line that begins with the entity `start`.

        The description follows, unless the passage contains it. A passage is quoted when it is
        cited for the first time.
        """
        row = self._rows[relationship]
        is_source = row["source"] == start
        other = row["target"] if is_source else row["source"]
        kind = row["type"].replace("_", " ")
        link = "–" if not kind else f"–({kind})→" if is_source else f"←({kind})–"
        said = as_one_line(row["description"])
        parts = [f"{start} {link} {other}:"]
        passage = self._passages.get(relationship)
        if passage is None:
            return " ".join([*parts, said or "no passage supports this relationship."])
        quote = as_one_line(passage[0].text)
        n_before = len(self.citations)
        number = add_citation(self.citations, *passage, f"Relationships ({relationship})")
        # A description may come from evidence that the filters drop.
        evidence = [(at["document"], at["start_char"]) for at in row["evidence"]]
        is_kept = not evidence or (passage[1]["document"], passage[0].start_char) in evidence
        if said and said not in quote and is_kept:
            parts.append(said)
        if number > n_before:
            parts.append(f"“{quote}”")
        return " ".join([*parts, f"[{number}]"])


def _find_text_unit(index: IndexStore, text_units: list[int], places: list[Place]) -> int | None:
    """Return the first text unit that contains one of the places; None if none contains one."""
    if not places or not text_units:
        return None
    table = index.open_mapped("text_unit_rows")
    rows = table.rows(text_units, "document", "start_char", "end_char").iter_rows()
    spans = list(zip(text_units, rows, strict=True))
    return next((n for place in places for n, span in spans if _is_inside(place, span)), None)


def _is_inside(place: Place, span: Place) -> bool:
    return place[0] == span[0] and span[1] <= place[1] and place[2] <= span[2]


def _choose_passage(
    row: Mapping[str, Any], units: list[TextUnit], places: list[Place]
) -> Passage | None:
    for unit in units:
        span = (unit["document"], unit["start_char"], unit["end_char"])
        for place in places:
            if _is_inside(place, span):
                return Candidate.within(unit, place[1] - span[1], place[2] - span[1]), unit
    together = [found for unit in units if (found := _find_naming_both(row, unit))]
    if together:
        return min(together, key=lambda found: (found[0], found[1][0].text_unit))[1]
    return best_sentence(f"{row['source']} {row['target']} {row['description']}", units)


def _find_naming_both(row: Mapping[str, Any], unit: TextUnit) -> tuple[int, Passage] | None:
    """Return the shortest run of sentences that names both entities, and its length.

    The last word of a title counts as a name if no sentence contains the whole title.
    """
    text = unit["text"]
    sentences = split_sentences(text)
    said = [text[s.start : s.end].casefold() for s in sentences]
    ends = []
    for title in (row["source"], row["target"]):
        name = title.casefold()
        exact = [i for i, sentence in enumerate(said) if name in sentence]
        last = name.split()[-1] if name.split() else name
        ends.append(exact or [i for i, sentence in enumerate(said) if last in sentence])
    pairs = [(abs(one - other), one, other) for one in ends[0] for other in ends[1]]
    distance, one, other = min(pairs, default=(MAX_DISTANCE_OF_NAMES + 1, 0, 0))
    if distance > MAX_DISTANCE_OF_NAMES:
        return None
    first, last_sentence = sentences[min(one, other)], sentences[max(one, other)]
    return distance, (Candidate.within(unit, first.start, last_sentence.end), unit)
