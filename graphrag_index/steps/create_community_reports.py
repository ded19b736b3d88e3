"""Write a report on each community, from the sentences that mention its entities."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.core.progress import Progress
from graphrag_index.core.settings import CreateCommunityReports
from graphrag_index.core.tables import TABLES, content_id
from graphrag_index.extractive_report import Evidence, Report, join_titles, write_findings
from graphrag_index.step import step

# Sentences from which one report is chosen.
CANDIDATES = 32
# Documents read at once, reports written at once: bounds memory, not results.
BATCH_DOCUMENTS = 512
BATCH_REPORTS = 2_000
# A sentence of this many characters is easy to read; longer and shorter ones come later.
GOOD_LENGTH = 140

Integers = npt.NDArray[np.int64]


@step(writes=["community_reports"])
def create_community_reports(
    communities: pl.DataFrame,
    entities: pl.DataFrame,
    relationships: pl.LazyFrame,
    mentions: pl.LazyFrame,
    sentences: pl.DataFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: CreateCommunityReports,
    progress: Progress,
) -> Iterator[pl.DataFrame]:
    """Write a report on each community out of its evidence.

    A sentence counts for a community by the centrality of the members that it
    mentions, in the graph of the whole corpus. The report's summary covers the
    main members, each finding one of them with those it is mentioned with. The
    rank, 0 to 10, compares how much a community holds with the others of its level.

    Yields
    ------
    community_reports
        One row per community, ordered by level, deepest first, then `community`.
    """
    weight = np.log2(2 + entities["degree"].to_numpy())
    links = _links(relationships, entities["id"])
    quoted = _quoted(mentions, sentences, documents)
    ranks = _ranks(communities)
    numbers = pl.DataFrame({"entity_id": entities["id"], "entity": range(entities.height)})
    progress.start(communities.height, "reports")
    candidates = pl.concat(
        [
            _candidates(level, numbers, quoted, weight)
            for _, level in communities.group_by("level", maintain_order=True)
        ]
        or [pl.DataFrame(schema={"community": pl.Int64, "sentence": pl.Int64, "score": pl.Float64})]
    )
    texts = _Texts(documents, base_text_units, sentences, candidates["sentence"])
    by_sentence = _Grouped.of(quoted["sentence"].to_numpy(), quoted["entity"].to_numpy())
    by_community = _Grouped.of(candidates["community"].to_numpy(), np.arange(candidates.height))
    scores = candidates["score"].to_list()
    rows_of = candidates["sentence"].to_list()
    titles, types = entities["title"].to_list(), entities["type"].to_list()
    members_of = _members(communities, numbers)

    ordered = communities.sort("level", "community", descending=[True, False])
    for part in ordered.iter_slices(BATCH_REPORTS):
        rows = []
        for row in part.iter_rows(named=True):
            members = members_of[row["community"]]
            inside = set(members)
            own = {entity: float(weight[entity]) for entity in members}
            evidence = []
            for candidate in by_community[row["community"]]:
                found = tuple(e for e in by_sentence[rows_of[candidate]] if e in inside)
                text, source = texts[rows_of[candidate]]
                between = links.between(found)
                evidence.append(Evidence(text, found, between, source, scores[candidate]))
            main = _main_members(members, own, types)
            report = _report(row, main, own, evidence, titles, ranks[row["community"]], settings)
            rows.append(_report_row(row, report))
            progress.advance()
        yield pl.DataFrame(rows, schema=TABLES["community_reports"].schema)


def _report(
    row: dict[str, object],
    main: list[int],
    own: dict[int, float],
    evidence: list[Evidence],
    titles: list[str],
    rank: tuple[float, str],
    settings: CreateCommunityReports,
) -> Report:
    names = {entity: titles[entity] for entity in own}
    summary, findings = write_findings(
        evidence, own, names, settings.max_findings, settings.max_sentences
    )
    title = join_titles([titles[entity] for entity in main])
    if row["island"]:
        title = f"Island: {title}"
    if not summary:
        # Tables and lists name things without a sentence about them.
        cited = ", ".join(str(entity) for entity in main)
        summary = (
            f"No whole sentence speaks of {join_titles([titles[entity] for entity in main])}. "
            f"[Data: Entities ({cited})]"
        )
    return Report(title, summary, findings, *rank)


def _report_row(row: dict[str, object], report: Report) -> dict[str, object]:
    content = report.markdown()
    return {
        "id": content_id("community report", str(row["id"]), content),
        "human_readable_id": row["community"],
        "community": row["community"],
        "level": row["level"],
        "parent": row["parent"],
        "children": row["children"],
        "title": report.title,
        "summary": report.summary,
        "full_content": content,
        "rank": report.rank,
        "rating_explanation": report.rating_explanation,
        "findings": [
            {"explanation": finding.explanation, "summary": finding.summary}
            for finding in report.findings
        ],
        "full_content_json": report.json(),
        "period": row["period"],
        "size": row["size"],
    }


def _main_members(members: list[int], own: dict[int, float], types: list[str]) -> list[int]:
    """Return the members that name a community: the most central, names before terms."""
    order = sorted(members, key=lambda e: (types[e] == "noun phrase", -own[e], e))
    return order[:3]


def _quoted(
    mentions: pl.LazyFrame, sentences: pl.DataFrame, documents: pl.LazyFrame
) -> pl.DataFrame:
    """Pairs of `sentence` (its row) and `entity`, each once, of sentences that can be quoted."""
    places = mentions.select("entity", "text_unit", "start_char").collect()
    document = _document_of_text_unit(documents)[places["text_unit"].to_numpy()]
    row = _row_at(sentences, document, places["start_char"].to_numpy())
    quotable = sentences["quotable"].to_numpy()[row] if len(row) else np.zeros(0, bool)
    width = np.int64(1 << 32)
    # Overlapping text units repeat mentions: one sorted number a pair tells them apart.
    keys = np.unique(row[quotable] * width + places["entity"].to_numpy()[quotable])
    return pl.DataFrame({"sentence": keys // width, "entity": keys % width})


def _document_of_text_unit(documents: pl.LazyFrame) -> Integers:
    """Return the number of the document of each text unit, which are numbered through."""
    lengths = documents.select(pl.col("text_unit_ids").list.len()).collect().to_series()
    return np.repeat(np.arange(len(lengths)), lengths.to_numpy())


def _row_at(sentences: pl.DataFrame, document: Integers, start: npt.NDArray[np.int32]) -> Integers:
    """Return the row of the sentence at each place."""
    width = np.int64(1 << 40)
    starts = sentences["document"].to_numpy() * width + sentences["start_char"].to_numpy()
    rows: Integers = np.searchsorted(starts, document * width + start, side="right") - 1
    return np.maximum(rows, 0)


def _candidates(
    level: pl.DataFrame,
    numbers: pl.DataFrame,
    quoted: pl.DataFrame,
    weight: npt.NDArray[np.float64],
) -> pl.DataFrame:
    """Choose the best sentences for each community of one level.

    Returns `community`, `sentence` (its row) and `score`, the best of a community first.
    """
    of_entity = np.full(len(weight), -1, np.int64)
    pairs = (
        level.select("community", entity_id="entity_ids")
        .explode("entity_id")
        .join(numbers, on="entity_id")
    )
    of_entity[pairs["entity"].to_numpy()] = pairs["community"].to_numpy()
    community = of_entity[quoted["entity"].to_numpy()]
    inside = community >= 0
    return (
        pl.DataFrame(
            {
                "community": community[inside],
                "sentence": quoted["sentence"].to_numpy()[inside],
                "weight": weight[quoted["entity"].to_numpy()[inside]],
            }
        )
        .group_by("community", "sentence")
        .agg(score=pl.col("weight").sum())
        .sort("community", "score", "sentence", descending=[False, True, False])
        .group_by("community", maintain_order=True)
        .head(CANDIDATES)
    )


def _ranks(communities: pl.DataFrame) -> dict[int, tuple[float, str]]:
    """Rate each community by what it holds, relative to the largest of its level."""
    holds = (
        pl.col("entity_ids").list.len()
        + pl.col("relationship_ids").list.len()
        + pl.col("text_unit_ids").list.len()
    ).log1p()
    rated = communities.select(
        "community",
        pl.col("entity_ids").list.len().alias("entities"),
        pl.col("relationship_ids").list.len().alias("relationships"),
        pl.col("text_unit_ids").list.len().alias("text_units"),
        rank=(10 * holds / holds.max().over("level")).round(1),
    )
    return {
        community: (
            rank,
            f"{rank} of 10 among the communities of its level, for "
            f"{_count(entities, 'entity', 'entities')}, "
            f"{_count(relationships, 'relationship', 'relationships')} and "
            f"{_count(text_units, 'text unit', 'text units')}.",
        )
        for community, entities, relationships, text_units, rank in rated.iter_rows()
    }


def _count(n: int, singular: str, plural: str) -> str:
    return f"{n} {singular if n == 1 else plural}"


def _members(communities: pl.DataFrame, numbers: pl.DataFrame) -> dict[int, list[int]]:
    pairs = (
        communities.select("community", entity_id="entity_ids")
        .explode("entity_id")
        .join(numbers, on="entity_id", maintain_order="left")
        .group_by("community", maintain_order=True)
        .agg("entity")
    )
    return dict(pairs.iter_rows())


@dataclass
class _Grouped:
    """Lists of numbers by number, in two arrays."""

    keys: list[int]
    bounds: list[int]
    values: list[int]

    @classmethod
    def of(cls, keys: Integers, values: Integers) -> "_Grouped":
        """Group values by keys, which are ascending."""
        unique, first = np.unique(keys, return_index=True)
        return cls(unique.tolist(), [*first.tolist(), len(keys)], values.tolist())

    def __getitem__(self, key: int) -> list[int]:
        at = bisect_left(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            return []
        return self.values[self.bounds[at] : self.bounds[at + 1]]


@dataclass
class _Links:
    """The relationships by the pair of their ends, as sorted keys and their numbers."""

    keys: list[int]
    numbers: list[int]
    width: int

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
    numbers = pl.DataFrame({"id": entity_ids, "number": range(len(entity_ids))}).lazy()
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
    return _Links(ends["key"].to_list(), ends["number"].to_list(), len(entity_ids))


class _Texts:
    """The words of chosen sentences and the text units that hold them, by row of `sentences`."""

    def __init__(
        self,
        documents: pl.LazyFrame,
        base_text_units: pl.LazyFrame,
        sentences: pl.DataFrame,
        rows: pl.Series,
    ) -> None:
        wanted = rows.unique().sort()
        self.rows: list[int] = wanted.to_list()
        chosen = sentences[wanted]
        # Kept as one Arrow column: a Python string for each would take three times the memory.
        self.texts = pl.concat(
            [pl.Series(dtype=pl.String), *_slices(documents, chosen)], how="vertical"
        )
        units = base_text_units.select("start_char").collect()["start_char"].to_numpy()
        width = np.int64(1 << 40)
        starts = _document_of_text_unit(documents) * width + units
        places = chosen["document"].to_numpy() * width + chosen["start_char"].to_numpy()
        self.sources = (np.searchsorted(starts, places, side="right") - 1).tolist()

    def __getitem__(self, row: int) -> tuple[str, int]:
        at = bisect_left(self.rows, row)
        return self.texts[at], self.sources[at]


def _slices(documents: pl.LazyFrame, chosen: pl.DataFrame) -> Iterator[pl.Series]:
    """Cut the sentences out of their documents, batch by batch."""
    n_documents = documents.select(pl.len()).collect().item()
    bounds = np.searchsorted(
        chosen["document"].to_numpy(), np.arange(0, n_documents + BATCH_DOCUMENTS, BATCH_DOCUMENTS)
    ).tolist()
    for batch, (first, last) in enumerate(pairwise(bounds)):
        if first == last:
            continue
        offset = batch * BATCH_DOCUMENTS
        texts = documents.select("text").slice(offset, BATCH_DOCUMENTS).collect()["text"]
        places = chosen[first:last].select("document", "start_char", "end_char")
        current, text, found = -1, "", []
        for document, start, end in places.iter_rows():
            if document != current:
                current, text = document, texts[document - offset]
            found.append(" ".join(text[start:end].split()))
        yield pl.Series(found, dtype=pl.String)
