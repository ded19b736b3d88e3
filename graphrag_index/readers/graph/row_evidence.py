"""Documents made of rows that name no text unit: each row becomes a line.

An entity gets one document of its own rows and one of the relationships it is the source of.
Both carry its title and the path of the file.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

import polars as pl

from graphrag_index.extraction.alignment import is_whole
from graphrag_index.readers.graph.given_graph import Given
from graphrag_index.readers.graph.graph_evidence import Evidence, Passage, Span
from graphrag_index.readers.graph.graph_rows import Rows
from graphrag_index.schema.tables import content_id
from graphrag_index.step import Progress
from graphrag_index.text.normalize import title_key
from graphrag_index.text.sentences import Sentence, segment_starts, split_sentences
from graphrag_index.text.tokens import count_tokens, load_encoding

# Cuts a text at some of the given offsets into (start, end, number of tokens).
Cut = Callable[[str, Sequence[int]], list[tuple[int, int, int]]]

ENCODING = "o200k_base"
# Characters. A longer line is quoted by sentence.
MAX_LINE_QUOTE = 300
_ROWS_AT_ONCE = 65_536
_COLUMNS = ("owner", "row", "target", "type", "description", "link")


def add_records(
    given: Given,
    files: Sequence[Rows | None],
    max_tokens: int,
    cut: Cut,
    evidence: Evidence,
    progress: Progress,
) -> Iterator[dict[str, pl.DataFrame]]:
    """Add documents made of the rows that name no text unit, batch by batch.

    `files` holds the entities file, if any, and the relationships file.
    """
    parts = _unproven_rows(given)
    quote_bare = not any(_has_content(records) for records in parts)
    for rows, records in zip(files, parts, strict=True):
        if rows is None:
            continue
        for owner, lines in groupby(_rows(records), key=itemgetter(0)):
            own = list(lines)
            _Record(given, rows, owner, own, quote_bare).add(max_tokens, cut, evidence)
            progress.advance(len(own))
            if evidence.is_full:
                yield evidence.batch()


def count_records(given: Given) -> int:
    """Count the rows that `add_records` processes."""
    return sum(len(records) for records in _unproven_rows(given))


def _unproven_rows(given: Given) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows of both files that name no text unit, grouped by owner."""
    proven = given.entities.frame.select(
        entity=pl.int_range(pl.len(), dtype=pl.Int64),
        is_proven=pl.col("text_unit_ids").list.len() > 0,
    )
    none = pl.lit(None, pl.String)
    entities = (
        given.entities.descriptions.join(proven, on="entity")
        .filter(~pl.col("is_proven"))
        .select(
            "row",
            "description",
            owner="entity",
            target=pl.lit(-1, pl.Int64),
            type=none,
            link=pl.lit(-1, pl.Int64),
        )
        .select(_COLUMNS)
        .sort("owner", "row")
    )
    relationships = (
        given.relationships.with_columns(link=pl.int_range(pl.len(), dtype=pl.Int64))
        .filter(pl.col("text_unit_ids").list.len() == 0)
        .rename({"source": "owner"})
        .select(_COLUMNS)
        .sort("owner", "link")
    )
    return entities, relationships


def _has_content(records: pl.DataFrame) -> bool:
    """Return whether any row has a description or a type."""
    return bool(
        records.select(((pl.col("description") != "") | (pl.col("type") != "")).any()).item()
    )


def _rows(records: pl.DataFrame) -> Iterator[tuple[int, int, int, str | None, str, int]]:
    for part in records.iter_slices(_ROWS_AT_ONCE):
        yield from part.iter_rows()


class _Record:
    """Document made of rows of one entity."""

    def __init__(
        self,
        given: Given,
        rows: Rows,
        owner: int,
        records: Sequence[tuple[int, int, int, str | None, str, int]],
        quote_bare: bool,
    ) -> None:
        titles = given.entities.titles
        self.title, self.rows = titles[owner], rows
        kind = "relationships" if records[0][5] >= 0 else "entity"
        self.id = content_id("rows of a given graph", kind, title_key(self.title))
        texts: list[str] = []
        # Per line: start offset, row of the file, mentioned entities, relationship it proves.
        self.starts: list[int] = []
        self.numbers = [row for _, row, *_ in records]
        self.mentions: list[list[tuple[int, Span]]] = []
        self.links = [link for *_, link in records]
        # A row with nothing but two names is quotable only if all rows are such.
        self.quotable = [quote_bare or bool(type_ or text) for *_, type_, text, _ in records]
        self.owner = owner
        at = 0
        for _, _, target, type_, description, link in records:
            if link < 0:
                text, spans = _render_entity(self.title, description)
                ends = [owner]
            else:
                text, spans = _render_relationship(
                    self.title, titles[target], type_ or "", description
                )
                ends = [owner, target]
            self.starts.append(at)
            placed = [(at + start, at + end) for start, end in spans]
            self.mentions.append(list(zip(ends, placed, strict=True)))
            texts.append(text)
            at += len(text) + 1
        self.text = "\n".join(texts)

    def add(self, max_tokens: int, cut: Cut, evidence: Evidence) -> None:
        ends = [*(start - 1 for start in self.starts[1:]), len(self.text)]
        lines = list(zip(self.starts, ends, strict=True))
        passages = self._passages(max_tokens, cut, lines)
        first = evidence.add_document(
            self.id,
            self.title,
            self.rows.name,
            self.text,
            passages,
            [
                sentence
                for line, quotable in zip(lines, self.quotable, strict=True)
                for sentence in _sentences(self.text, *line, quotable)
            ],
            metadata=self._metadata(self.numbers),
        )
        begins = [passage.start for passage in passages]

        def unit(at: int) -> int:
            return first + max(bisect_right(begins, at) - 1, 0)

        for line, mentions, link in zip(lines, self.mentions, self.links, strict=True):
            for entity, span in mentions:
                evidence.mention(entity, unit(span[0]), span)
            if link < 0:
                evidence.prove_entity(self.owner, line)
            else:
                units = range(unit(line[0]), unit(line[1] - 1) + 1)
                evidence.prove_relationship(link, line, units)

    def _passages(self, max_tokens: int, cut: Cut, lines: Sequence[Span]) -> list[Passage]:
        n_tokens = count_tokens(self.text, load_encoding(ENCODING))
        pieces = [(0, len(self.text), n_tokens)]
        if n_tokens > max_tokens:
            pieces = cut(self.text, sorted({*segment_starts(self.text), *self.starts}))
        passages = []
        for start, end, n in pieces:
            words = self.text[start:end]
            own = (
                [
                    number
                    for number, (begin, stop) in zip(self.numbers, lines, strict=True)
                    if begin < end and start < stop
                ]
                if len(pieces) > 1
                else self.numbers
            )
            identity = content_id("text unit", self.id, f"{start}:{end}", words)
            passages.append(Passage(identity, start, end, n, self._metadata(own)))
        return passages

    def _metadata(self, numbers: Sequence[int]) -> str:
        """Return the source rows as JSON: {"lines": "2, 5-7"}."""
        return json.dumps({f"{self.rows.unit}s": _ranges(numbers)})


def _ranges(numbers: Sequence[int]) -> str:
    numbers = sorted(numbers)
    borders = [0, *(n for n, (a, b) in enumerate(pairwise(numbers), 1) if b > a + 1), len(numbers)]
    runs = [numbers[start:stop] for start, stop in pairwise(borders)]
    return ", ".join(str(r[0]) if r[0] == r[-1] else f"{r[0]}-{r[-1]}" for r in runs)


def _render_entity(title: str, description: str) -> tuple[str, list[Span]]:
    """Render an entity row as text, with the span of its name."""
    span = _place(title, description)
    if span is None:
        return f"{title}: {description}", [(0, len(title))]
    return description, [span]


def _render_relationship(
    source: str, target: str, type_: str, description: str
) -> tuple[str, list[Span]]:
    """Render a relationship row as text, with the spans of source and target."""
    if description:
        spans = [_place(source, description), _place(target, description)]
        one, other = spans
        if one and other and (one[1] <= other[0] or other[1] <= one[0]):
            return description, [one, other]
    head = f"{source} – {type_} – {target}" if type_ else f"{source} – {target}"
    places = [(0, len(source)), (len(head) - len(target), len(head))]
    return f"{head}: {description}" if description else f"{head}.", places


def _place(title: str, text: str) -> Span | None:
    at = text.find(title)
    while at >= 0:
        if is_whole(text, at, at + len(title)):
            return at, at + len(title)
        at = text.find(title, at + 1)
    return None


def _sentences(text: str, start: int, end: int, quotable: bool) -> list[Sentence]:
    """Return a line as one sentence, or a long line split into sentences."""
    if end - start <= MAX_LINE_QUOTE:
        return [Sentence(start, end, quotable)]
    return [
        Sentence(start + first, start + last, prose)
        for first, last, prose in split_sentences(text[start:end])
    ]
