"""Passages that support relationships, and relationships written as cited lines."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphrag_nlp.text.sentences import join_lines, split_sentences
from graphrag_query.answer import Citation
from graphrag_query.answering.cited_text import best_sentence
from graphrag_query.answering.extractive import Candidate, TextUnit, add_citation, as_one_line
from graphrag_query.store.index_store import IndexStore

# Maximum number of text units that are searched for a relationship without exact evidence.
MAX_TEXT_UNITS_SEARCHED = 10
# Maximum distance in sentences between two names that support a relationship.
MAX_DISTANCE_OF_NAMES = 4

Passage = tuple[Candidate, TextUnit]
# A place of the column `evidence`: document (its number), start_char and end_char.
Place = Mapping[str, int]


def find_passages(
    index: IndexStore, rows: Sequence[Mapping[str, Any]], name: str = "Relationships"
) -> dict[int, Passage]:
    """Find the passage that supports each row of a table, with its text unit.

    The passage is the evidence of the row. Without evidence, it is the run of sentences in its
    text units that names its `source` and its `target`. Without such sentences, it is the
    sentence most similar to the description. A row without text units has no passage. `name` is
    the name of the table in citations.
    """
    exact: dict[int, tuple[int, Place] | None] = {}
    wanted: dict[int, list[int]] = {}
    for row in rows:
        number = row["human_readable_id"]
        behind = index.text_units_behind(name, number)
        exact[number] = held = _find_evidence(index, behind, row["evidence"])
        wanted[number] = [held[0]] if held else behind[:MAX_TEXT_UNITS_SEARCHED]
    units = index.text_units(unit for numbers in wanted.values() for unit in numbers)
    found = {}
    for row in rows:
        number = row["human_readable_id"]
        if held := exact[number]:
            found[number] = _cut_passage(units[held[0]], held[1])
        elif passage := _choose_passage(row, [units[n] for n in wanted[number]]):
            found[number] = passage
    return found


class CitedRelationships:
    """A writer of relationships as lines. It gives each cited passage one number.

    `passages` maps the number of a relationship to the passage that supports it.
    """

    def __init__(self, index: IndexStore, relationships: Iterable[int]) -> None:
        rows = index.relationships(relationships).iter_rows(named=True)
        self._rows = {row["human_readable_id"]: row for row in rows}
        self.passages = find_passages(index, list(self._rows.values()))
        self.citations: list[Citation] = []

    def write_line(self, relationship: int, start: str) -> str:
        """Write a relationship as a line that begins with the entity `start`.

        The description follows, unless the passage contains it. A passage is quoted when it is
        cited for the first time, and named after that.
        """
        row = self._rows[relationship]
        is_source = row["source"] == start
        other = row["target"] if is_source else row["source"]
        kind = row["type"].replace("_", " ")
        link = "–" if not kind else f"–({kind})→" if is_source else f"←({kind})–"
        said = as_one_line(row["description"])
        parts = [f"{start} {link} {other}:"]
        passage = self.passages.get(relationship)
        if passage is None:
            return " ".join([*parts, said or "no passage supports this relationship."])
        cited = passage[0]
        quote = as_one_line(cited.text)
        n_before = len(self.citations)
        number = add_citation(self.citations, cited, passage[1], f"Relationships ({relationship})")
        # A description may come from evidence that the filters drop.
        evidence = [(at["document"], at["start_char"]) for at in row["evidence"]]
        is_kept = not evidence or (passage[1]["document"], passage[0].start_char) in evidence
        if said and said not in quote and is_kept:
            parts.append(said)
        if number > n_before:
            parts.append(f"“{quote}”")
        elif len(parts) == 1:
            parts.append("the same passage,")
        return " ".join([*parts, f"[{number}]"])


def _find_evidence(
    index: IndexStore, text_units: list[int], evidence: Sequence[Place]
) -> tuple[int, Place] | None:
    """Return the first place that a text unit contains, after the text unit's number.

    Returns None if no text unit contains a place of the evidence.
    """
    if not evidence or not text_units:
        return None
    table = index.open_mapped("text_unit_rows")
    rows = table.rows(text_units, "document", "start_char", "end_char").iter_rows()
    spans = list(zip(text_units, rows, strict=True))
    for place in evidence:
        start, end = place["start_char"], place["end_char"]
        for number, (document, first, last) in spans:
            if document == place["document"] and first <= start and end <= last:
                return number, place
    return None


def _cut_passage(unit: TextUnit, place: Place) -> Passage:
    """Return the passage at a place of the evidence, with its text unit."""
    span, number = (place["start_char"], place["end_char"]), unit["human_readable_id"]
    said = unit["source"][slice(*(at - unit["start_char"] for at in span))]
    return Candidate(join_lines(said), number, *span), unit


def _choose_passage(row: Mapping[str, Any], units: list[TextUnit]) -> Passage | None:
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
