"""What Microsoft's tables do not say, found from what they say: one pass over the text units."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.schema.list_columns import (
    Grouped,
    distinct_pairs,
    gather_lists,
    positions,
    spread_lists,
)
from graphrag_index.schema.table import EVIDENCE
from graphrag_index.schema.tables import TABLES
from graphrag_index.text.sentences import split_sentences

Span = tuple[int, int]

# Lines that are put before a text unit: `title: Polar Times.`
_METADATA_LINE = re.compile(r"[^\n:]{1,100}: [^\n]*\n")
# Where a cut went through a character, its bytes come back as this.
_CUT = "\ufffd"
_WHITESPACE = str.maketrans("\t\n\v\f\r\x85\xa0\u2028\u2029\u202f", " " * 10)
_WORD = re.compile(r"\w+")
# A shorter word of a name does not stand for it.
_LEAST_LETTERS = 4
# Mentions of an entity in one text unit that are looked at, and sentences between two of them.
_MOST_MENTIONS, _MOST_SENTENCES = 16, 5


def place_in_document(text: str, document: str, earliest: int) -> int | None:
    """Find where a document has a text unit; None if it does not.

    The unit before it begins at `earliest` - 1: texts overlap, and may come again. Lines of
    metadata before the text are not in the document: the place is where it would begin with
    them, which may be below 0.
    """
    body = text
    while True:
        core = body.strip(_CUT)
        n_cut = len(body) - len(body.lstrip(_CUT))
        for start in (earliest, 0):
            at = document.find(core, start) if core else -1
            if at >= 0:
                return at - n_cut - (len(text) - len(body))
        line = _METADATA_LINE.match(body)
        if line is None or line.end() == len(body):
            return None
        body = body[line.end() :]


class Named(NamedTuple):
    """Where one text names one entity: ascending spans; `whole` if by its name."""

    spans: tuple[Span, ...]
    whole: bool


def places_of_names(text: str, titles: Sequence[str]) -> list[Named]:
    """Find where a text names each of some entities, in whatever case.

    What is part of a longer name of them is no mention. An entity whose name does not occur is
    mentioned by the longest word of its name, or else by the whole text.
    """
    folded = _folded(text)
    names = [_folded(title).strip() for title in titles]
    found: dict[str, list[Span]] = {}
    taken: list[Span] = []
    for name in sorted(set(names), key=lambda name: (-len(name), name)):
        own = [span for span in _spelt(name, folded) if not _is_within(span, taken)]
        taken += own
        found[name] = own
    places = []
    for name in names:
        spans = found[name]
        if not spans:
            # Nothing but parts of longer names is still the name.
            spans = _spelt(name, folded)
        if spans:
            places.append(Named(tuple(spans), True))
        else:
            places.append(Named((_part(name, folded) or (0, len(text)),), False))
    return places


def _folded(text: str) -> str:
    """Return a text without case and with plain spaces, as long as it was."""
    folded = text.lower().translate(_WHITESPACE)
    if len(folded) != len(text):
        # A few letters become two: these stay.
        letters = (low if len(low := letter.lower()) == 1 else letter for letter in text)
        folded = "".join(letters).translate(_WHITESPACE)
    return folded


def _spelt(name: str, text: str) -> list[Span]:
    """Find a name as whole words; STRASSE is Straße in capitals too."""
    if "ss" not in name or "\u00df" not in text:
        return list(_occurrences(name, text))
    either = re.escape(name).replace("ss", "(?:ss|\u00df)")
    spellings = {name, *re.findall(either, text)}
    return sorted(span for spelling in spellings for span in _occurrences(spelling, text))


def _occurrences(name: str, text: str) -> Iterator[Span]:
    """Find a name as whole words."""
    at = text.find(name) if name else -1
    while at >= 0:
        end = at + len(name)
        before, behind = text[at - 1 : at] if at else "", text[end : end + 1]
        inside_word = (name[0].isalnum() and _is_spaced_letter(before)) or (
            name[-1].isalnum() and _is_spaced_letter(behind)
        )
        if not inside_word:
            yield at, end
        at = text.find(name, end if not inside_word else at + 1)


def _is_spaced_letter(letter: str) -> bool:
    """Tell whether a letter goes on with a word; scripts without spaces do not show it."""
    return letter.isalnum() and letter < "\u0e00"


def _part(name: str, text: str) -> Span | None:
    words = [word for word in _WORD.findall(name) if len(word) >= _LEAST_LETTERS]
    for word in sorted(words, key=len, reverse=True):
        found = next(_occurrences(word, text), None)
        if found is not None:
            return found
    return None


def _is_within(span: Span, others: Iterable[Span]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in others)


class Sentences:
    """The sentences of one text."""

    def __init__(self, text: str) -> None:
        self._sentences = [(start, end) for start, end, _ in split_sentences(text)]

    def around(self, start: int, end: int) -> Span:
        """Extend a span to the sentences that it begins and ends in."""
        for first, last in self._sentences:
            if first <= start < last:
                start = first
            if first < end <= last:
                return start, last
        return start, end

    def between(self, one: Named, other: Named) -> Span | None:
        """Return the sentences between the two nearest mentions of two entities; None if they are
        too far from each other to prove anything.
        """
        _, start, end = min(
            (max(a[1], b[1]) - min(a[0], b[0]), min(a[0], b[0]), max(a[1], b[1]))
            for a in one.spans[:_MOST_MENTIONS]
            for b in other.spans[:_MOST_MENTIONS]
        )
        n_between = sum(first < end and start < last for first, last in self._sentences)
        return self.around(start, end) if n_between <= _MOST_SENTENCES else None


Integers = npt.NDArray[np.int64]
# Text units read at once, with their documents.
_AT_ONCE = 4_096


def rows_of(ids: pl.Series, known: pl.Series) -> Integers:
    """Where in `known` each id stands first, -1 if nowhere: ids of Microsoft's may come twice."""
    is_first = known.is_first_distinct()
    rows = is_first.arg_true().to_numpy().astype(np.int64)
    places = positions(ids, known.filter(is_first))
    found: Integers = np.where(places >= 0, np.append(rows, -1)[places], -1)
    return found


def pairs_of(lists: pl.Series, known: pl.Series) -> tuple[Integers, Integers]:
    """The rows of a column of lists, and the rows of the ids in them; unknown ids are left out."""
    owners, ids = spread_lists(lists)
    rows = rows_of(ids, known)
    return owners[rows >= 0], rows[rows >= 0]


class Places:
    """Where text units stand in their documents, and what they name there.

    Everything is found at once, when the first of it is asked for.
    """

    def __init__(
        self,
        documents: pl.LazyFrame,
        text_units: pl.LazyFrame,
        entities: pl.LazyFrame,
        relationships: pl.LazyFrame,
    ) -> None:
        self._documents, self._text_units = documents, text_units
        self._entities, self._relationships = entities, relationships

    @property
    def text_units(self) -> pl.DataFrame:
        """`start_char`, `end_char` and `is_found`, one row per text unit.

        What is not found in its document counts from 0.
        """
        return self._found[0]

    @property
    def mentions(self) -> pl.DataFrame:
        """The table `mentions`."""
        return self._found[1]

    @property
    def of_entities(self) -> pl.DataFrame:
        """`evidence`, one row per entity: the sentences that name it first in each text unit."""
        return self._found[2]

    @property
    def of_relationships(self) -> pl.DataFrame:
        """`evidence`, one row per relationship: the sentences between its ends, likewise."""
        return self._found[3]

    @cached_property
    def _found(self) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        unit_ids = self._text_units.select("id").collect()["id"]
        columns = ("id", "title", "text_unit_ids")
        entities = self._entities.select(columns).collect()
        listed = self._text_units.select("entity_ids").collect()["entity_ids"]
        owners, units = pairs_of(entities["text_unit_ids"], unit_ids)
        more_units, more = pairs_of(listed, entities["id"])
        named = Grouped(np.append(units, more_units), np.append(owners, more), len(unit_ids))
        columns = ("source", "target", "text_unit_ids")
        links = self._relationships.select(columns).collect()
        owners, units = pairs_of(links["text_unit_ids"], unit_ids)
        told = Grouped(units, owners, len(unit_ids))
        titles = entities["title"].to_list()
        ends = links.select("source", "target").rows()

        starts, lengths, are_found = [], [], []
        mentions: list[tuple[int, int, int, int]] = []
        of_entities: list[tuple[int, str, int, int]] = []
        of_links: list[tuple[int, str, int, int]] = []
        for number, text, document_id, start in self._placed():
            starts.append(start or 0)
            lengths.append(len(text))
            are_found.append(start is not None)
            offset = start or 0
            here, links_here = named[number].tolist(), told[number].tolist()
            wanted = list(
                dict.fromkeys(
                    [*(titles[e] for e in here), *(end for row in links_here for end in ends[row])]
                )
            )
            if not wanted:
                continue
            places = dict(zip(wanted, places_of_names(text, wanted), strict=True))
            sentences = Sentences(text)
            own = []
            for entity in here:
                spans = places[titles[entity]].spans
                own += [(number, entity, offset + a, offset + b) for a, b in spans]
                first, last = sentences.around(*spans[0])
                of_entities.append((entity, document_id, offset + first, offset + last))
            mentions += sorted(own, key=lambda row: (row[2], row[3], row[1]))
            for row in links_here:
                one, other = (places[end] for end in ends[row])
                proof = sentences.between(one, other) if _tells(one) and _tells(other) else None
                if proof is not None:
                    first, last = proof
                    of_links.append((row, document_id, offset + first, offset + last))
        ends_at = np.array(starts, np.int64) + np.array(lengths, np.int64)
        return (
            pl.DataFrame(
                {"start_char": starts, "end_char": ends_at, "is_found": are_found},
                schema={"start_char": pl.Int64, "end_char": pl.Int64, "is_found": pl.Boolean},
            ),
            _mentions(mentions),
            _evidence(of_entities, len(titles)),
            _evidence(of_links, len(ends)),
        )

    def _placed(self) -> Iterator[tuple[int, str, str, int | None]]:
        """Give each text unit: number, text, id of its document, and where that begins it."""
        documents = self._documents.select("id").collect()["id"]
        unit_documents = self._text_units.select("document_id").collect()["document_id"]
        rows = rows_of(unit_documents, documents)
        # The last text unit of each document: where it began.
        latest: dict[int, int] = {}
        texts: dict[int, str] = {}
        for first in range(0, len(unit_documents), _AT_ONCE):
            units = self._text_units.select("text").slice(first, _AT_ONCE).collect()["text"]
            here = np.unique(rows[first : first + len(units)])
            texts = self._texts(texts, here[here >= 0])
            for number, text in enumerate(units.to_list(), first):
                document = int(rows[number])
                start = None
                if document >= 0:
                    earliest = latest.get(document, -1) + 1
                    start = place_in_document(text, texts[document], earliest)
                if start is not None:
                    latest[document] = max(start, 0)
                yield number, text, unit_documents[number], start

    def _texts(self, known: dict[int, str], rows: Integers) -> dict[int, str]:
        """Read the texts of documents; those that were read for the text units before stay."""
        new = [row for row in rows.tolist() if row not in known]
        found = {row: known[row] for row in rows.tolist() if row in known}
        if new:
            read = (
                self._documents.select("text")
                .slice(new[0], new[-1] - new[0] + 1)
                .with_row_index("row", new[0])
                .filter(pl.col("row").is_in(new))
                .collect()
            )
            found |= dict(read.select("row", "text").iter_rows())
        return found


def _tells(named: Named) -> bool:
    """Tell whether there is a place, and not just the whole text."""
    return named.whole or named.spans[0][0] > 0


def _mentions(rows: list[tuple[int, int, int, int]]) -> pl.DataFrame:
    columns = np.array(rows, np.int64).reshape(-1, 4)
    order = {"text_unit": 0, "entity": 1, "start_char": 2, "end_char": 3}
    table = TABLES["mentions"]
    found = pl.DataFrame({name: columns[:, at] for name, at in order.items()})
    return found.select(list(table.columns)).cast(table.schema)


def _evidence(rows: list[tuple[int, str, int, int]], n_rows: int) -> pl.DataFrame:
    schema = {
        "row": pl.Int64,
        "document_id": pl.String,
        "start_char": pl.Int64,
        "end_char": pl.Int64,
    }
    places = pl.DataFrame(rows, schema=schema, orient="row").sort("row", maintain_order=True)
    values = places.select("document_id", "start_char", "end_char").to_struct()
    lists = gather_lists(places["row"].to_numpy(), values, n_rows)
    return pl.DataFrame({"evidence": lists.cast(EVIDENCE)})


def degrees(relationships: pl.LazyFrame) -> dict[str, int]:
    """Count the relationships of each title, A to B and B to A as one; one with itself as two."""
    ends = (
        relationships.select(
            one=pl.min_horizontal("source", "target"), other=pl.max_horizontal("source", "target")
        )
        .drop_nulls()
        .unique()
    )
    counted = (
        pl.concat([ends.select(title="one"), ends.select(title="other")])
        .group_by("title")
        .len()
        .collect()
    )
    return dict(counted.iter_rows())


def lists_turned(owners: Integers, rows: Integers, ids: pl.Series, n_rows: int) -> pl.Series:
    """Give each row the ids of its owners, in their order, each once."""
    by_row, by_owner = distinct_pairs(rows, owners)
    return gather_lists(by_row, ids.gather(by_owner), n_rows)
