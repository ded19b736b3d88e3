"""Community reports from sentences that mention the members, written without a model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.report import Finding, Report, make_report_rows, rank_communities
from graphrag_index.schema.settings.step_sections import CreateCommunityReportsNlp
from graphrag_index.step import Partitions, Progress, ShardFrames, Shards, step
from graphrag_index.steps.extract_graph_nlp import find_rows_at
from graphrag_index.storage.memo import locate_list_values, read_batches
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_nlp.list_columns import (
    Integers,
    NumberLists,
    RowGroups,
    distinct_pairs,
    find_rows,
    gather_lists,
    spread_lists,
)
from graphrag_nlp.reports.candidates import (
    CANDIDATE_COLUMNS,
    LEAD_CHARACTERS,
    choose_candidates,
    choose_main_members,
    choose_theme_leads,
    drop_repeats_of_siblings,
    find_leads,
    rate_quality,
)
from graphrag_nlp.reports.extent import COUNTED_TYPES, find_kinds
from graphrag_nlp.reports.findings import Limits
from graphrag_nlp.reports.ranking import find_repeated, hash_sentences, mark_repeated
from graphrag_nlp.reports.titles import flag_weak_names
from graphrag_nlp.reports.words import CorpusWords, count_words, split_words, sum_counts
from graphrag_nlp.reports.write_reports import write_reports
from graphrag_nlp.text.document_dates import stated_date
from graphrag_nlp.text.headlines import read_headlines
from graphrag_nlp.text.sentences import Quotations
from graphrag_nlp.text.standalone import stand_alone, trim_sentences

# Number of reports for which sentences are chosen at once, and whose rows are written at once. This
# number and the next ones limit memory and do not change the results.
SHARD_REPORTS = 1_000
PARTITION_REPORTS = 10 * SHARD_REPORTS  # a multiple, so that a shard is in one partition
# Number of candidate sentences of the reports that a worker writes at once: a report on a large
# community takes as long as many small ones.
SHARD_SENTENCES = 20_000
PARTITION_SENTENCES = 500_000
BATCH_ROWS = 64 * ROW_GROUP_SIZE  # mentions or relationships that are read at once
# Number of main members of a community, which a report without sentences names.
MAIN_MEMBERS = 3

# Columns of candidate sentences: `clarity` is 2 for whole sentences that stand alone, 1 for other
# whole sentences and 0 for headings, list items and table rows. `words` are those that may name a
# theme. `source` and `document` are the numbers of the text unit and document, `start_char` and
# `end_char` the position in the document.
_QUOTED_COLUMNS: dict[str, Any] = {
    **CANDIDATE_COLUMNS,
    "text": pl.String,
    "language": pl.String,
    "words": pl.List(pl.String),
    "clarity": pl.Int8,
    "source": pl.Int32,
    "document": pl.Int32,
    "start_char": pl.Int32,
    "end_char": pl.Int32,
}


@step(writes=["community_reports"], code_version=18)
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
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Write a report on each community from sentences about its members, without a model.

    The score of a sentence grows with words that set the community apart from the corpus, with the
    number and the degree of the members in it, and at the start of a document. The summary has the
    sentences with the highest scores, and ends with counts. Each finding is about one member, or
    for a theme, about one document. The title has the main names and a theme. Communities with the
    same parent share no sentence, and a report on a theme quotes text units of the theme only. If
    the sentences are from at least three documents, one document has at most the share
    `max_document_share` of them. The rank (0 to 10) compares the size of a community with the
    sizes of other communities of its level. Reports are ordered by level, deepest first, then
    `community`.

    Candidate sentences are chosen report by report, but their texts are read document by document.
    So they are partitioned by sentence before, and by report after their texts are read.
    """
    units = _read_text_units(base_text_units, documents)
    rows = _read_communities(communities, base_text_units, documents)
    progress.start(rows.height, "reports")
    named, ids = _read_entities(entities)
    members = _read_members(communities, rows["community"], ids)
    rows = _describe_members(rows, members, named)
    links = _RelationshipLookup(relationships, ids)
    limits = Limits(settings.max_findings, settings.max_sentences, settings.max_document_share)
    unit_ids = base_text_units.select("id").collect().to_series()
    headlines = read_headlines(documents)
    with shards.open_partitions(rows.height // PARTITION_REPORTS + 1, _QUOTED_COLUMNS) as by_report:
        n_partitions = sentences.select(pl.len()).collect().item() // PARTITION_SENTENCES + 1
        with shards.open_partitions(n_partitions, CANDIDATE_COLUMNS) as by_sentence:
            places = sentences.select("document", "start_char").collect()
            own = _read_own_sentences(
                communities, rows["community"], unit_ids, _find_text_units(units, places)
            )
            del places
            pairs = _pair_members_with_sentences(
                rows.height, members, named["weight"], mentions, units, own, sentences
            )
            for start, part in shards.map(choose_candidates, pairs, settings.max_document_share):
                chosen = part["candidates"].with_columns(pl.col("report") + start)
                by_sentence.append(chosen, chosen["sentence"].to_numpy() // PARTITION_SENTENCES)
            quoted = _quote_partitions(by_sentence, rows, sentences, documents, units)
            corpus, repeated = _partition_by_report(quoted, by_report)
        material = _prepare_shards(rows, named, by_report, repeated, headlines)
        find_relationships = links.find_between
        written = write_reports(
            shards, material, corpus, limits, find_relationships, unit_ids, headlines["id"]
        )
        yield from _join_batches(written, rows, progress)


class OwnSentences(NamedTuple):
    """The text unit of each sentence, and the reports on themes that have each text unit.

    An entity of a theme may be named in many texts on other subjects, which a report on the theme
    does not quote.
    """

    text_unit: Integers
    # For each level of themes, the reports on them, and the report of each text unit, or -1.
    levels: Sequence[tuple[Integers, Integers]]

    def select(self, report: Integers, sentence: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Flag the sentences that a report may quote; a report on no theme may quote all.

        A theme may quote all sentences too if none is of its own text units.
        """
        is_own = np.ones(len(report), dtype=bool)
        for themes, owner in self.levels:
            rows = np.flatnonzero(np.isin(report, themes))
            found = owner[self.text_unit[sentence[rows]]] == report[rows]
            is_own[rows] = found | ~np.isin(report[rows], report[rows[found]])
        return is_own


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


def _read_communities(
    communities: pl.LazyFrame, base_text_units: pl.LazyFrame, documents: pl.LazyFrame
) -> pl.DataFrame:
    """Return the communities with their ranks, and the number and dates of their documents."""
    known = documents.select(
        document_id="id",
        document=pl.int_range(pl.len(), dtype=pl.Int32),
        date=stated_date().str.head(10).str.to_date("%Y-%m-%d", strict=False),
    )
    units = base_text_units.select("document_id", unit="id").join(known, on="document_id")
    of_unit = units.select("unit", "document", "date").collect()
    lists = communities.select("community", "theme", unit="text_unit_ids")
    counted = [
        batch.explode("unit", empty_as_null=True)
        .join(of_unit, on="unit", how="left")
        .group_by("community", "theme")
        .agg(
            n_documents=pl.col("document").drop_nulls().n_unique(),
            first_date=pl.min("date"),
            last_date=pl.max("date"),
        )
        for batch in read_batches(lists, ROW_GROUP_SIZE, at_least_one=True)
    ]
    rows = rank_communities(communities)
    return rows.join(pl.concat(counted), on="community", how="left", maintain_order="left")


def _read_entities(entities: pl.LazyFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Return `title`, `weight`, `kind` and `weak` of the entities, and their ids."""
    named = entities.select("title", "type", "degree").collect()
    named = named.select(
        "title",
        weight=np.log2(2 + named["degree"].to_numpy()),
        kind=find_kinds(named),
        weak=flag_weak_names(named),
    )
    return named, entities.select("id").collect()["id"]


def _read_members(communities: pl.LazyFrame, reported: pl.Series, ids: pl.Series) -> RowGroups:
    """Return the members (entity numbers) of each community, in the order of `reported`."""
    report = find_rows(communities.select("community").collect()["community"], reported)
    row, entity = locate_list_values(communities.select("entity_ids"), ids)
    return RowGroups(report[row], entity, len(reported))


def _describe_members(rows: pl.DataFrame, members: RowGroups, named: pl.DataFrame) -> pl.DataFrame:
    """Add the `main` members of each community, and the numbers of members of `kinds`."""
    report, entity = members.owners, members.rows
    order = np.lexsort((-named["weight"].to_numpy()[entity], named["weak"].to_numpy()[entity]))
    order = order[np.argsort(report[order], kind="stable")]
    order = order[np.arange(len(order)) - np.searchsorted(report, report) < MAIN_MEMBERS]
    main = pl.Series(entity[order], dtype=pl.Int32)
    width = len(COUNTED_TYPES) + 1
    keys = report * width + named["kind"].to_numpy()[entity]
    counts = np.bincount(keys, minlength=rows.height * width).reshape(-1, width)
    return rows.with_columns(
        main=gather_lists(report[order], main, rows.height),
        kinds=pl.Series(counts[:, :-1].tolist(), dtype=pl.List(pl.Int32)),
    )


def _read_own_sentences(
    communities: pl.LazyFrame, reported: pl.Series, unit_ids: pl.Series, text_unit: Integers
) -> OwnSentences:
    """Read which text units the themes have.

    `reported` are the numbers of communities in the order of reports, `text_unit` has the row in
    `unit_ids` of each sentence's text unit.
    """
    themes = communities.filter("theme").select("community", "level", "text_unit_ids")
    numbers = themes.select("community", "level").collect()
    row, unit = locate_list_values(themes.select("text_unit_ids"), unit_ids)
    report, level_of = find_rows(numbers["community"], reported), numbers["level"].to_numpy()
    levels = []
    for level in np.unique(level_of):
        owner = np.full(len(unit_ids), -1)
        is_here = level_of[row] == level
        owner[unit[is_here]] = report[row[is_here]]
        levels.append((report[level_of == level], owner))
    return OwnSentences(text_unit, levels)


def _find_text_units(units: pl.DataFrame, places: pl.DataFrame) -> Integers:
    """Return the number of the text unit that contains each place."""
    found: Integers = units["number"].to_numpy()[find_rows_at(units, places).clip(0)]
    return found


def _find_sentences_of_entities(
    mentions: pl.LazyFrame,
    spans: pl.DataFrame,
    is_fit: npt.NDArray[np.bool_],
    units: pl.DataFrame,
    n_entities: int,
) -> NumberLists:
    """Return the fit sentences that mention each entity, as ascending row numbers of `spans`."""
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
        batch_keys = batch_keys[is_fit[row] & (row >= 0)]
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
    return NumberLists(bounds[:-1], np.diff(bounds), keys.astype(np.int32))


def _pair_members_with_sentences(
    n_reports: int,
    members: RowGroups,
    weight: pl.Series,
    mentions: pl.LazyFrame,
    units: pl.DataFrame,
    own: OwnSentences,
    sentences: pl.LazyFrame,
) -> Iterator[tuple[int, ShardFrames]]:
    """Yield (number of the first report, shard): members of communities, and their sentences."""
    read = sentences.collect()
    quality = rate_quality(read)
    spans = read.select("document", "start_char")
    del read
    sentences_of = _find_sentences_of_entities(mentions, spans, quality > 0, units, len(weight))
    document = spans["document"].to_numpy()
    is_early = spans["start_char"].to_numpy() < LEAD_CHARACTERS
    del spans
    weights = weight.to_numpy()
    leads = find_leads(document, quality)
    theme_leads = pl.concat(
        [
            choose_theme_leads(leads, owner[own.text_unit[leads["sentence"].to_numpy()]])
            for _, owner in own.levels
        ]
        or [pl.DataFrame(schema={"report": pl.Int32, "sentence": pl.Int32})]
    )
    for start in range(0, n_reports, SHARD_REPORTS):
        reports = np.arange(start, min(start + SHARD_REPORTS, n_reports))
        taken = members.take(reports)
        report, entity = choose_main_members(*taken, weights, sentences_of)
        position, sentence = sentences_of.take(entity)
        is_own = own.select(report[position] + start, sentence)
        position, sentence = position[is_own], sentence[is_own]
        has_report = pl.col("report").is_between(start, start + len(reports) - 1)
        yield (
            start,
            {
                "members": pl.DataFrame(
                    {
                        "report": report.astype(np.int32),
                        "entity": entity.astype(np.int32),
                        "weight": weights[entity],
                        "n_sentences": np.bincount(position, minlength=len(entity)),
                    }
                ),
                "sentences": pl.DataFrame(
                    {
                        "sentence": sentence,
                        "quality": quality[sentence],
                        "early": is_early[sentence],
                        "document": document[sentence],
                    }
                ),
                "leads": leads.filter(pl.col("document").is_in(np.unique(document[sentence]))),
                "theme_leads": theme_leads.filter(has_report).with_columns(
                    pl.col("report") - start
                ),
            },
        )


def _quote_partitions(
    by_sentence: Partitions,
    rows: pl.DataFrame,
    sentences: pl.LazyFrame,
    documents: pl.LazyFrame,
    units: pl.DataFrame,
) -> Iterator[pl.DataFrame]:
    """Yield the candidates of each partition with their texts; siblings share none."""
    parents, sizes = rows["parent"].to_numpy(), rows["size"].to_numpy()
    languages = documents.select("language").collect().to_series()
    for partition, chosen in by_sentence:
        own = drop_repeats_of_siblings(chosen, parents, sizes)
        start = partition * PARTITION_SENTENCES
        spans = sentences.slice(start, PARTITION_SENTENCES).collect()
        numbers = own["sentence"].to_numpy() - start
        quotations = Quotations(documents, spans, numbers)
        language = languages.gather(quotations.places["document"])
        texts = trim_sentences(quotations.texts)
        is_clear = stand_alone(texts, language).cast(pl.Int8)
        quoted = pl.DataFrame(
            {
                "text": texts,
                "language": language,
                "words": split_words(texts, language),
                "clarity": spans[quotations.rows]["quotable"].cast(pl.Int8) * (is_clear + 1),
                "source": _find_text_units(units, quotations.places),
                **quotations.places.select(pl.all().cast(pl.Int32)).to_dict(),
            }
        )
        texts_of_rows = quoted[quotations.map_sentence_rows(numbers)]
        yield pl.concat([own, texts_of_rows], how="horizontal")


def _partition_by_report(
    quoted: Iterable[pl.DataFrame], by_report: Partitions
) -> tuple[CorpusWords, pl.Series]:
    """Partition quoted candidates by report.

    Returns the counts of their words, and the hashes of sentences that documents repeat. Both are
    counted over all partitions, whose sizes do not change the reports.
    """
    counts: list[tuple[int, pl.DataFrame]] = []
    hashed: list[pl.DataFrame] = []
    for part in quoted:
        distinct = part.unique("sentence", maintain_order=True)
        counts.append(count_words(distinct["words"]))
        hashed.append(hash_sentences(distinct))
        by_report.append(part, part["report"].to_numpy() // PARTITION_REPORTS)
    return sum_counts(counts), find_repeated(hashed)


def _prepare_shards(
    rows: pl.DataFrame,
    named: pl.DataFrame,
    by_report: Partitions,
    repeated: pl.Series,
    headlines: pl.DataFrame,
) -> Iterator[tuple[tuple[int, int], ShardFrames]]:
    """Yield (range of reports, shard): communities, candidates, their entities and documents."""
    for partition in range(by_report.n):
        quoted = mark_repeated(by_report.read(partition), repeated).sort("report", "sentence")
        report = quoted["report"].to_numpy()
        first = partition * PARTITION_REPORTS
        last = min(first + PARTITION_REPORTS, rows.height)
        for start, stop in _cut_into_shards(report, first, last):
            part = rows[start:stop]
            sentences = quoted[slice(*np.searchsorted(report, [start, stop]).tolist())]
            shown = pl.concat([sentences["entities"], part["main"]]).explode()
            shown = shown.drop_nulls().unique().sort()
            document = sentences["document"].unique().sort()
            yield (
                (start, stop),
                {
                    "communities": part,
                    "sentences": sentences.with_columns(pl.col("report") - start),
                    "entities": named[shown].with_columns(shown.alias("entity")),
                    "documents": headlines[document].with_columns(document.alias("document")),
                },
            )


def _cut_into_shards(report: Integers, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of reports, from `first` to `last`; `report` has the report of each sentence."""
    for start in range(first, last, SHARD_REPORTS):
        stop = min(start + SHARD_REPORTS, last)
        # The first sentence of each report says to which shard the report belongs.
        sentence = np.searchsorted(report, np.arange(start, stop))
        shard = (sentence - sentence[0]) // SHARD_SENTENCES
        yield from pairwise([*(start + np.flatnonzero(np.diff(shard, prepend=-1))).tolist(), stop])


def _join_batches(
    written: Iterable[tuple[tuple[int, int], pl.DataFrame]],
    rows: pl.DataFrame,
    progress: Progress,
) -> Iterator[ShardFrames]:
    """Yield rows of `community_reports` in batches of `SHARD_REPORTS`."""
    batch: list[pl.DataFrame] = []
    for (start, stop), part in written:
        own = rows[start:stop]
        reports = [
            Report(
                title,
                summary,
                tuple(map(Finding, headings, explanations)),
                row["rank"],
                _explain_rank(row),
            )
            for row, title, summary, headings, explanations in zip(
                own.iter_rows(named=True),
                *(part[name] for name in ("title", "summary")),
                *(part[name].to_list() for name in ("headings", "explanations")),
                strict=True,
            )
        ]
        batch.append(make_report_rows(own, reports, part["statements"]))
        progress.advance(stop - start)
        if stop % SHARD_REPORTS == 0 or stop == rows.height:
            yield {"community_reports": pl.concat(batch, rechunk=True)}
            batch.clear()


def _explain_rank(row: Mapping[str, Any]) -> str:
    nouns = {
        "size": ("entity", "entities"),
        "n_relationships": ("relationship", "relationships"),
        "n_text_units": ("text unit", "text units"),
    }
    entities, *others = (f"{row[name]} {noun[row[name] != 1]}" for name, noun in nouns.items())
    counts = f"{entities}, {' and '.join(others)}"
    return f"{row['rank']} of 10 among the communities of its level, for {counts}."
