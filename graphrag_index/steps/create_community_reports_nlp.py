"""Community reports from sentences that mention the members, written without a model."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.extractive import Evidence, write_findings
from graphrag_index.reports.report import Report, join_titles, make_report_rows, rank_communities
from graphrag_index.schema.list_columns import (
    Integers,
    NumberLists,
    RowGroups,
    distinct_pairs,
    find_rows,
    gather_lists,
    spread_lists,
)
from graphrag_index.schema.settings.step_sections import CreateCommunityReportsNlp
from graphrag_index.step import Partitions, Progress, ShardFrames, Shards, step
from graphrag_index.steps.extract_graph_nlp import find_rows_at
from graphrag_index.storage.memo import locate_list_values, read_batches
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_index.text.sentences import Quotations, are_quotable

# Maximum number of candidate sentences for one report.
MAX_CANDIDATES_PER_REPORT = 24
# Minimum number of entities in the title of a report. A title that exists already gets more.
MIN_ENTITIES_IN_TITLE = 3
# Maximum number of characters of a sentence with full score. Double the length halves the score.
MAX_FULL_SCORE_LENGTH = 200
# Maximum number of members that increase the score of a sentence. A sentence that mentions more
# members is probably a list.
MAX_SCORED_MEMBERS = 4
# Maximum number of sentences that are compared for one report. Of a larger community, only the
# members with most neighbours count.
MAX_SENTENCES_PER_REPORT = 20_000
# Number of reports in a shard, which a worker writes. This number and the next ones limit memory
# and do not change the results.
SHARD_REPORTS = 1_000
PARTITION_REPORTS = 10 * SHARD_REPORTS  # a multiple, so that a shard is in one partition
PARTITION_SENTENCES = 500_000
BATCH_ROWS = 64 * ROW_GROUP_SIZE  # mentions or relationships that are read at once

Floats = npt.NDArray[np.float64]
# Columns of candidate sentences. `report` and `sentence` are row numbers, `entities` are the
# members that the sentence mentions, `source` is the number of the text unit.
_CHOSEN_COLUMNS: dict[str, Any] = {
    "report": pl.Int32,
    "sentence": pl.Int32,
    "score": pl.Float64,
    "entities": pl.List(pl.Int32),
}
_QUOTED_COLUMNS: dict[str, Any] = {**_CHOSEN_COLUMNS, "text": pl.String, "source": pl.Int32}


@step(writes=["community_reports"], code_version=2)
def create_community_reports_nlp(
    communities: pl.LazyFrame,
    entities: pl.LazyFrame,
    relationships: pl.LazyFrame,
    mentions: pl.LazyFrame,
    sentences: pl.LazyFrame,
    base_text_units: pl.LazyFrame,
    documents: pl.LazyFrame,
    *,
    settings: CreateCommunityReportsNlp,
    progress: Progress,
    shards: Shards,
) -> Iterator[pl.DataFrame]:
    """Write a report on each community from sentences about its members, without a model.

    The score of a sentence grows with the number and the degree of the members in it. The
    summary is about the main members. Each finding is about one main member and the members that
    are mentioned with it. The rank (0 to 10) compares the size of a community with the sizes of
    other communities of its level. Reports are ordered by level, deepest first, then `community`.

    Candidate sentences are chosen report by report, but their texts are read document by document.
    So they are partitioned by sentence before, and by report after their texts are read.
    """
    rows = rank_communities(communities)
    progress.start(rows.height, "reports")
    named = entities.select("title", "type", "degree").collect()
    named = named.with_columns(weight=np.log2(2 + named["degree"].to_numpy()))
    ids = entities.select("id").collect()["id"]
    members = _read_members(communities, rows["community"], ids)
    links = _RelationshipLookup(relationships, ids)
    del ids
    units = _read_text_units(base_text_units, documents)
    with shards.open_partitions(rows.height // PARTITION_REPORTS + 1, _QUOTED_COLUMNS) as by_report:
        n_sentences = sentences.select(pl.len()).collect().item()
        n_partitions = n_sentences // PARTITION_SENTENCES + 1
        with shards.open_partitions(n_partitions, _CHOSEN_COLUMNS) as by_sentence:
            found = _find_sentences_of_entities(mentions, sentences, units, named.height)
            work = _pair_members_with_sentences(rows.height, members, named["weight"], *found)
            for start, part in shards.map(_choose_best_sentences, work):
                chosen = part["chosen"].with_columns(pl.col("report") + start)
                by_sentence.append(chosen, chosen["sentence"].to_numpy() // PARTITION_SENTENCES)
            del found
            for number, chosen in by_sentence:
                quoted = _quote_sentences(number, chosen, sentences, documents, units)
                by_report.append(quoted, quoted["report"].to_numpy() // PARTITION_REPORTS)
        work = _prepare_shards(rows, members, named, by_report, links)
        limits = (settings.max_findings, settings.max_sentences)
        for n_reports, written in shards.map(_write_reports, work, *limits):
            yield written["community_reports"]
            progress.advance(n_reports)


def _read_members(communities: pl.LazyFrame, reported: pl.Series, ids: pl.Series) -> RowGroups:
    """Return the members (entity numbers) of each community, in the order of `reported`."""
    report = find_rows(communities.select("community").collect()["community"], reported)
    row, entity = locate_list_values(communities.select("entity_ids"), ids)
    return RowGroups(report[row], entity, len(reported))


def _read_text_units(base_text_units: pl.LazyFrame, documents: pl.LazyFrame) -> pl.DataFrame:
    """Return `number`, `document` and `start_char` of text units, sorted by position."""
    units = base_text_units.select("document_id", "start_char").collect()
    document = find_rows(units["document_id"], documents.select("id").collect()["id"])
    return (
        units.select(
            pl.int_range(pl.len(), dtype=pl.Int32).alias("number"),
            pl.Series("document", document, dtype=pl.Int32),
            pl.col("start_char").cast(pl.Int32),
        )
        # Imported text units may be in any order, so sort them.
        .sort("document", "start_char", maintain_order=True)
    )


def _find_sentences_of_entities(
    mentions: pl.LazyFrame, sentences: pl.LazyFrame, units: pl.DataFrame, n_entities: int
) -> tuple[NumberLists, npt.NDArray[np.int32]]:
    """Return the quotable sentences that mention each entity, and the lengths of all sentences.

    Sentences are row numbers, ascending. A length is a number of characters.
    """
    read = sentences.collect()
    is_quotable = are_quotable(read).to_numpy()
    lengths = (read["end_char"] - read["start_char"]).to_numpy()
    spans = read.select("document", "start_char")
    del read
    document_of_unit = units.sort("number")["document"].to_numpy()
    # Each mention becomes one number, of which the high part is the entity.
    keys = np.empty(mentions.select(pl.len()).collect().item(), np.int64)
    n_keys, n_sentences = 0, max(spans.height, 1)
    columns = mentions.select("entity", "text_unit", "start_char")
    for batch in read_batches(columns, BATCH_ROWS):
        document = document_of_unit[batch["text_unit"].to_numpy()]
        # Only search the documents of the batch, because `find_rows_at` copies its spans.
        ends = [document.min(), document.max() + 1]
        first, last = np.searchsorted(spans["document"].to_numpy(), ends).tolist()
        places = pl.DataFrame({"document": document, "start_char": batch["start_char"]})
        row = first + find_rows_at(spans[first:last], places)
        batch_keys = batch["entity"].to_numpy() * np.int64(n_sentences) + row
        batch_keys = batch_keys[is_quotable[row] & (row >= 0)]
        keys[n_keys : n_keys + len(batch_keys)] = batch_keys
        n_keys += len(batch_keys)
    keys = keys[:n_keys]
    keys.sort()
    # Remove duplicate pairs, because overlapping text units repeat mentions.
    is_new = np.ones(n_keys, bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    keys = keys[is_new]
    bounds = np.searchsorted(keys, np.arange(n_entities + 1) * n_sentences)
    keys %= n_sentences
    return NumberLists(bounds[:-1], np.diff(bounds), keys.astype(np.int32)), lengths


def _pair_members_with_sentences(
    n_reports: int,
    members: RowGroups,
    weight: pl.Series,
    sentences_of: NumberLists,
    lengths: npt.NDArray[np.int32],
) -> Iterator[tuple[int, ShardFrames]]:
    """Yield (number of the first report, shard): members of communities, and their sentences."""
    for start in range(0, n_reports, SHARD_REPORTS):
        reports = np.arange(start, min(start + SHARD_REPORTS, n_reports))
        report, entity = _choose_main_members(*members.take(reports), weight, sentences_of)
        _, sentence = sentences_of.take(entity)
        yield (
            start,
            {
                "members": pl.DataFrame(
                    {
                        "report": report.astype(np.int32),
                        "entity": entity.astype(np.int32),
                        "weight": weight[entity],
                        "n_sentences": sentences_of.lengths[entity],
                    }
                ),
                "sentences": pl.DataFrame({"sentence": sentence, "length": lengths[sentence]}),
            },
        )


def _choose_main_members(
    report: Integers, entity: Integers, weight: pl.Series, sentences_of: NumberLists
) -> tuple[Integers, Integers]:
    """Leave out members of large communities, those of the lowest weight first."""
    order = np.lexsort((entity, -weight.to_numpy()[entity], report))
    n_before = np.append(0, np.cumsum(sentences_of.lengths[entity[order]]))[:-1]
    first = np.searchsorted(report, report)
    kept = np.sort(order[n_before - n_before[first] < MAX_SENTENCES_PER_REPORT])
    return report[kept], entity[kept]


def _choose_best_sentences(shard: ShardFrames) -> ShardFrames:
    """Choose the candidate sentences of a shard of communities, and find their members."""
    members, sentences = shard["members"], shard["sentences"]
    times = members["n_sentences"].to_numpy()
    report, entity, weight = (
        np.repeat(members[name].to_numpy(), times) for name in ("report", "entity", "weight")
    )
    sentence, length = (sentences[name].to_numpy() for name in ("sentence", "length"))
    score = weight * np.minimum(1.0, MAX_FULL_SCORE_LENGTH / np.maximum(length, 1))
    # Group the mentions by report and sentence. The members of a group are in ascending order.
    keys = (report.astype(np.int64) << 32) + sentence
    order = np.argsort(keys, kind="stable")
    is_first = np.ones(len(keys), bool)
    is_first[1:] = np.diff(keys[order]) > 0
    bounds = np.append(np.flatnonzero(is_first), len(keys))
    report, sentence = report[order[bounds[:-1]]], sentence[order[bounds[:-1]]]
    # `bincount` returns integers if there are no values.
    total = np.bincount(np.cumsum(is_first) - 1, score[order]).astype(np.float64)
    total *= np.minimum(1.0, MAX_SCORED_MEMBERS / np.diff(bounds))
    # Choose the best groups of each report.
    best = np.lexsort((sentence, -total, report))
    rank = np.arange(len(best)) - np.searchsorted(report, report)
    best = best[rank < MAX_CANDIDATES_PER_REPORT]
    owner, member = NumberLists(bounds[:-1], np.diff(bounds), entity[order]).take(best)
    columns = {
        "report": report[best],
        "sentence": sentence[best],
        "score": total[best],
        "entities": gather_lists(owner, pl.Series(member), len(best)),
    }
    return {"chosen": pl.DataFrame(columns, _CHOSEN_COLUMNS)}


def _quote_sentences(
    partition: int,
    chosen: pl.DataFrame,
    sentences: pl.LazyFrame,
    documents: pl.LazyFrame,
    units: pl.DataFrame,
) -> pl.DataFrame:
    """Add the texts and the text units of the chosen sentences of a partition."""
    start = partition * PARTITION_SENTENCES
    spans = sentences.slice(start, PARTITION_SENTENCES).collect()
    rows = chosen["sentence"].to_numpy() - start
    quotations = Quotations(documents, spans, rows)
    source = units["number"].to_numpy()[find_rows_at(units, quotations.places).clip(0)]
    at = quotations.map_sentence_rows(rows)
    return chosen.with_columns(quotations.texts[at].alias("text"), source=source[at])


def _prepare_shards(
    rows: pl.DataFrame,
    members: RowGroups,
    named: pl.DataFrame,
    by_report: Partitions,
    links: "_RelationshipLookup",
) -> Iterator[tuple[int, ShardFrames]]:
    """Yield (number of reports, shard): communities with their titles and candidate sentences."""
    # Order of the members in a title: names before noun phrases, then by descending degree.
    order = np.lexsort((-named["weight"].to_numpy(), (named["type"] == "noun phrase").to_numpy()))
    rank = np.argsort(order)
    titles, used = named["title"], set[str]()
    for partition in range(by_report.n):
        quoted = by_report.read(partition)
        quoted = quoted.sort("report", "score", "sentence", descending=[False, True, False])
        first = partition * PARTITION_REPORTS
        for start in range(first, min(first + PARTITION_REPORTS, rows.height), SHARD_REPORTS):
            part = rows[start : start + SHARD_REPORTS]
            chosen = []
            for report in range(start, start + part.height):
                entities = members[report]
                ranked = entities[np.argsort(rank[entities])]
                chosen.append(_choose_title_members(ranked, titles, used))
            main = pl.Series(chosen, dtype=pl.List(pl.Int32))
            ends = np.searchsorted(quoted["report"].to_numpy(), [start, start + part.height])
            sentences = quoted[slice(*ends.tolist())]
            shown = pl.concat([sentences["entities"], main]).explode()
            shown = shown.drop_nulls().unique().sort()
            yield (
                part.height,
                {
                    "communities": part.with_columns(main=main),
                    "sentences": sentences.with_columns(
                        pl.col("report") - start,
                        relationships=links.find_between(sentences["entities"]),
                    ),
                    "entities": named[shown].select(entity=shown, title="title", weight="weight"),
                },
            )


def _choose_title_members(ranked: Integers, titles: pl.Series, used: set[str]) -> list[int]:
    """Choose members for the title of a report: more than three if the short title is taken.

    A community and its largest sub-community often have the same main members. The title is
    added to `used`.
    """
    n = MIN_ENTITIES_IN_TITLE
    while (title := join_titles(titles[ranked[:n]].to_list())) in used and n < len(ranked):
        n += 1
    used.add(title)
    return [int(entity) for entity in ranked[:n]]


def _write_reports(shard: ShardFrames, max_findings: int, max_sentences: int) -> ShardFrames:
    """Write the reports of a shard of communities."""
    entities, communities = shard["entities"], shard["communities"]
    titles, weight = (
        dict(entities.select("entity", name).iter_rows()) for name in ("title", "weight")
    )
    columns = ("text", "entities", "relationships", "source", "score")
    rows = list(shard["sentences"].select(columns).iter_rows())
    bounds = np.searchsorted(
        shard["sentences"]["report"].to_numpy(), np.arange(communities.height + 1)
    ).tolist()
    reports = []
    for row, span in zip(communities.iter_rows(named=True), pairwise(bounds), strict=True):
        main = row["main"]
        title = join_titles([titles[entity] for entity in main])
        evidence = [Evidence(*sentence) for sentence in rows[slice(*span)]]
        summary, findings = write_findings(
            evidence, weight, titles, main, max_findings, max_sentences
        )
        if not summary:
            # Cite the entities if no sentence, but only tables and lists mention the members.
            cited = ", ".join(map(str, main))
            summary = f"No whole sentence speaks of {title}. [Data: Entities ({cited})]"
        if row["island"]:
            title = f"Island: {title}"
        reports.append(Report(title, summary, findings, row["rank"], _explain_rank(row)))
    return {"community_reports": make_report_rows(communities.drop("main"), reports)}


def _explain_rank(row: Mapping[str, object]) -> str:
    nouns = {
        "size": ("entity", "entities"),
        "n_relationships": ("relationship", "relationships"),
        "n_text_units": ("text unit", "text units"),
    }
    entities, *others = (f"{row[name]} {noun[row[name] != 1]}" for name, noun in nouns.items())
    counts = f"{entities}, {' and '.join(others)}"
    return f"{row['rank']} of 10 among the communities of its level, for {counts}."


class _RelationshipLookup:
    """Lookup of the numbers of relationships by their two entities."""

    def __init__(self, relationships: pl.LazyFrame, entity_ids: pl.Series) -> None:
        self._width = len(entity_ids)
        keys, numbers = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        columns = relationships.select("source_id", "target_id", "human_readable_id")
        for batch in read_batches(columns, BATCH_ROWS):
            ends = pl.concat([batch["source_id"], batch["target_id"]])
            pairs = find_rows(ends, entity_ids).reshape(2, -1)
            known = (pairs >= 0).all(axis=0)
            keys.append(pairs[:, known].min(axis=0) * self._width + pairs[:, known].max(axis=0))
            numbers.append(batch["human_readable_id"].to_numpy()[known].astype(np.int32))
        self._keys = np.concatenate(keys)
        order = np.argsort(self._keys, kind="stable")
        self._keys = self._keys[order]
        self._numbers = np.concatenate(numbers)[order]

    def find_between(self, entities: pl.Series) -> pl.Series:
        """Return the relationships between the entities of each list, as sorted lists."""
        owner, entity = spread_lists(entities)
        rows = pl.LazyFrame({"owner": owner, "entity": entity.cast(pl.Int64)})
        pairs = (
            rows.join(rows, on="owner")
            .filter(pl.col("entity") < pl.col("entity_right"))
            .select("owner", key=pl.col("entity") * self._width + pl.col("entity_right"))
            .collect()
        )
        keys = pairs["key"].to_numpy()
        place = np.minimum(np.searchsorted(self._keys, keys), max(len(self._keys) - 1, 0))
        found = self._keys[place] == keys if len(self._keys) else np.zeros(len(keys), bool)
        owner, number = distinct_pairs(
            pairs["owner"].to_numpy()[found], self._numbers[place[found]]
        )
        return gather_lists(owner, pl.Series(number), len(entities))
