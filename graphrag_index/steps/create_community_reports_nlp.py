"""Write a report on each community, from the sentences that mention its entities."""

# array[int] can be written only as text before Python 3.12.
from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.extractive import Evidence, write_findings
from graphrag_index.reports.report import Report, community_rows, join_titles, report_rows
from graphrag_index.schema.list_columns import positions
from graphrag_index.schema.settings.embedded_steps import CreateCommunityReportsNlp
from graphrag_index.step import Progress, step
from graphrag_index.text.quotations import Quotations, quotable

# Sentences from which one report is chosen.
CANDIDATES = 24
# Members that a report's title names.
TITLE_MEMBERS = 3
# Reports written at once: bounds memory, not results.
BATCH_REPORTS = 2_000
# A sentence of up to so many characters is easy to read; twice as long counts half.
GOOD_LENGTH = 200
# A sentence of more members lists them; all that it says of each is not worth more.
LISTED = 4

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@step(writes=["community_reports"])
def create_community_reports_nlp(
    communities: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    mentions: pl.LazyFrame,
    sentences: pl.DataFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: CreateCommunityReportsNlp,
    progress: Progress,
) -> Iterator[pl.DataFrame]:
    """Write a report on each community out of sentences of its evidence, without a model.

    A sentence counts for a community by the centrality of the members that it
    mentions, in the graph of the whole corpus. The report's summary covers the
    main members, each finding one of them with those it is mentioned with. The
    rank, 0 to 10, compares how much a community holds with the others of its level.

    Yields
    ------
    community_reports
        One row per community, ordered by level, deepest first, then `community`.
    """
    named = entities.select("id", "title", "type", "degree").collect()
    weight = np.log2(2 + named["degree"].to_numpy())
    members = _members(communities, named["id"])
    evidence = _gather(members, weight, mentions, sentences, base_text_units, documents)
    links = _links(relationships, named["id"])
    titles, types = named["title"].to_list(), named["type"].to_list()
    members_of = _Grouped.of(members["community"].to_numpy(), members["entity"].to_numpy())
    rows = community_rows(communities)
    used_titles: set[str] = set()
    progress.start(rows.height, "reports")
    for part in rows.iter_slices(BATCH_REPORTS):
        reports = []
        for row in part.iter_rows(named=True):
            own = {entity: float(weight[entity]) for entity in members_of[row["community"]]}
            names = {entity: titles[entity] for entity in own}
            # The most central members name a community, names before terms.
            ranked = sorted(own, key=lambda e: (types[e] == "noun phrase", -own[e], e))
            main = _main_members(ranked, names, used_titles)
            title = join_titles([names[entity] for entity in main])
            used_titles.add(title)
            summary, findings = write_findings(
                evidence.of(row["community"], own),
                own,
                names,
                main,
                links.between,
                settings.max_findings,
                settings.max_sentences,
            )
            if not summary:
                # Tables and lists name things without a sentence about them.
                cited = ", ".join(map(str, main))
                summary = f"No whole sentence speaks of {title}. [Data: Entities ({cited})]"
            if row["island"]:
                title = f"Island: {title}"
            reports.append(Report(title, summary, findings, row["rank"], _rating(row)))
            progress.advance()
        yield report_rows(part, reports)


def _main_members(
    ranked: Sequence[int], titles: Mapping[int, str], used: Collection[str]
) -> list[int]:
    """Return the members that name a report: three, or more if those name another already.

    A community and the largest part of it often have the same three in front.
    """
    n = TITLE_MEMBERS
    while n < len(ranked) and join_titles([titles[entity] for entity in ranked[:n]]) in used:
        n += 1
    return list(ranked[:n])


def _rating(row: dict[str, object]) -> str:
    return (
        f"{row['rank']} of 10 among the communities of its level, for "
        f"{_count(row['size'], 'entity', 'entities')}, "
        f"{_count(row['n_relationships'], 'relationship', 'relationships')} and "
        f"{_count(row['n_text_units'], 'text unit', 'text units')}."
    )


def _count(n: object, singular: str, plural: str) -> str:
    return f"{n} {singular if n == 1 else plural}"


def _members(communities: pl.LazyFrame, entity_ids: pl.Series) -> pl.DataFrame:
    """Pairs of `community` and `entity` (its number), sorted by community; and the `level`."""
    numbers = pl.DataFrame({"id": entity_ids, "entity": np.arange(len(entity_ids))}).lazy()
    return (
        communities.select("level", "community", id="entity_ids")
        .explode("id")
        .join(numbers, on="id")
        .select("level", "community", "entity")
        .sort("community", "entity")
        .collect()
    )


@dataclass
class _Candidates:
    """The sentences that may stand in reports."""

    quotations: Quotations
    sentences: array[int]  # of each candidate, its row
    scores: array[float]
    sources: array[int]  # number of the text unit of each quotation
    by_community: _Grouped
    by_sentence: _Grouped  # entities that a sentence mentions

    def of(self, community: int, members: dict[int, float]) -> list[Evidence]:
        """Return the candidates of a community, best first."""
        candidates = self.by_community[community]
        rows = [self.sentences[candidate] for candidate in candidates]
        at = self.quotations.positions(np.array(rows, np.int64))
        return [
            Evidence(
                text,
                tuple(e for e in self.by_sentence[row] if e in members),
                self.sources[position],
                self.scores[candidate],
            )
            for text, row, position, candidate in zip(
                self.quotations.texts[at], rows, at.tolist(), candidates, strict=True
            )
        ]


def _gather(
    members: pl.DataFrame,
    weight: Floats,
    mentions: pl.LazyFrame,
    sentences: pl.DataFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
) -> _Candidates:
    """Choose the best sentences for each community, level by level."""
    units = base_text_units.select("document_id", "start_char").collect()
    document = positions(units["document_id"], documents.select("id").collect()["id"])
    sentence, entity = _quoted(mentions, sentences, document)
    length = (sentences["end_char"] - sentences["start_char"]).to_numpy()
    worth = np.minimum(1.0, GOOD_LENGTH / np.maximum(length, 1))
    chosen = pl.concat(
        [
            _best(level, sentence, entity, weight, worth)
            for level in members.partition_by("level", maintain_order=True)
        ]
        or [pl.DataFrame(schema={"community": pl.Int64, "sentence": pl.Int64, "score": pl.Float64})]
    )
    rows = chosen["sentence"].to_numpy()
    quotations = Quotations(documents, sentences, rows)
    sources = _row_at(document, units["start_char"].to_numpy(), quotations.places)
    kept = np.isin(sentence, quotations.rows)
    return _Candidates(
        quotations=quotations,
        sentences=array("q", rows.astype(np.int64).tobytes()),
        scores=array("d", chosen["score"].to_numpy().tobytes()),
        sources=array("q", sources.tobytes()),
        by_community=_Grouped.of(chosen["community"].to_numpy(), np.arange(chosen.height)),
        by_sentence=_Grouped.of(sentence[kept], entity[kept]),
    )


def _quoted(
    mentions: pl.LazyFrame, sentences: pl.DataFrame, document: Integers
) -> tuple[Integers, Integers]:
    """Pairs of a sentence that can be quoted (its row) and an entity in it, each once, sorted."""
    found = mentions.select("entity", "text_unit", "start_char").collect()
    places = pl.DataFrame(
        {"document": document[found["text_unit"].to_numpy()], "start_char": found["start_char"]}
    )
    row = _row_at(sentences["document"].to_numpy(), sentences["start_char"].to_numpy(), places)
    said = quotable(sentences).to_numpy()[row] if len(row) else np.zeros(0, bool)
    width = np.int64(1 << 32)
    # Overlapping text units repeat mentions: one sorted number a pair tells them apart.
    keys = np.unique(row[said] * width + found["entity"].to_numpy()[said])
    return keys // width, keys % width


def _row_at(document: Integers, start: npt.NDArray[np.integer], places: pl.DataFrame) -> Integers:
    """Return the last row that begins at or before each place (`document`, `start_char`)."""
    width = np.int64(1 << 40)
    wanted = places["document"].to_numpy() * width + places["start_char"].to_numpy()
    keys = document * width + start
    # Text units that were imported may stand in any order.
    order = np.argsort(keys, kind="stable")
    rows: Integers = np.searchsorted(keys[order], wanted, side="right") - 1
    found: Integers = order[np.maximum(rows, 0)]
    return found


def _best(
    level: pl.DataFrame, sentence: Integers, entity: Integers, weight: Floats, worth: Floats
) -> pl.DataFrame:
    """Choose the best sentences for the communities of one level.

    Returns `community`, `sentence` (its row) and `score`, the best of a community first.
    """
    of_entity = np.full(len(weight), -1, np.int64)
    of_entity[level["entity"].to_numpy()] = level["community"].to_numpy()
    community = of_entity[entity]
    inside = community >= 0
    score = weight[entity[inside]] * worth[sentence[inside]]
    return (
        pl.DataFrame({"community": community[inside], "sentence": sentence[inside], "score": score})
        .group_by("community", "sentence")
        .agg(pl.col("score").sum() * (LISTED / pl.len()).clip(upper_bound=1.0))
        .sort("community", "score", "sentence", descending=[False, True, False])
        .group_by("community", maintain_order=True)
        .head(CANDIDATES)
    )


class _Grouped:
    """Numbers by number, in three arrays; a list for each would take ten times the memory."""

    def __init__(self, keys: Integers, bounds: Integers, values: Integers) -> None:
        self.keys = array("q", keys.astype(np.int64).tobytes())
        self.bounds = array("q", bounds.astype(np.int64).tobytes())
        self.values = array("q", values.astype(np.int64).tobytes())

    @classmethod
    def of(cls, keys: Integers, values: Integers) -> _Grouped:
        """Group values by keys, which are ascending."""
        unique, first = np.unique(keys, return_index=True)
        return cls(unique, np.append(first, len(keys)), values)

    def __getitem__(self, key: int) -> array[int]:
        at = bisect_left(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            return array("q")
        return self.values[self.bounds[at] : self.bounds[at + 1]]


class _Links:
    """The relationships by the pair of their ends."""

    def __init__(self, keys: Integers, numbers: Integers, width: int) -> None:
        self.keys = array("q", keys.astype(np.int64).tobytes())
        self.numbers = array("q", numbers.astype(np.int64).tobytes())
        self.width = width

    def between(self, entities: tuple[int, ...]) -> tuple[int, ...]:
        """Return the numbers of the relationships among a few entities."""
        found = []
        for at, source in enumerate(entities):
            for target in entities[at + 1 :]:
                key = min(source, target) * self.width + max(source, target)
                place = bisect_left(self.keys, key)
                if place < len(self.keys) and self.keys[place] == key:
                    found.append(self.numbers[place])
        return tuple(sorted(found))


def _links(relationships: pl.LazyFrame, entity_ids: pl.Series) -> _Links:
    numbers = pl.DataFrame({"id": entity_ids, "number": np.arange(len(entity_ids))}).lazy()
    ends = (
        relationships.select("source_id", "target_id", "human_readable_id")
        .join(numbers.rename({"number": "a"}), left_on="source_id", right_on="id")
        .join(numbers.rename({"number": "b"}), left_on="target_id", right_on="id")
        .select(
            key=pl.min_horizontal("a", "b") * len(entity_ids) + pl.max_horizontal("a", "b"),
            number="human_readable_id",
        )
        .sort("key")
        .collect()
    )
    return _Links(ends["key"].to_numpy(), ends["number"].to_numpy(), len(entity_ids))
