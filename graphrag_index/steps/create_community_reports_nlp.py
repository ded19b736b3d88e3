"""Community reports from sentences that mention the members, written without a model."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.candidate_sentences import (
    CHOSEN_COLUMNS,
    choose_best_sentences,
    choose_main_members,
    drop_repeats_of_siblings,
    find_first_dates,
    find_leads,
    find_theme_leads,
    number_from,
    rate_fitness,
)
from graphrag_index.reports.extent import COUNTED_TYPES, find_kinds, read_communities
from graphrag_index.reports.own_sentences import OwnSentences, read_own_sentences, read_text_units
from graphrag_index.reports.relationship_lookup import RelationshipLookup
from graphrag_index.reports.repeated_sentences import (
    find_repeated,
    hash_sentences,
    mark_repeated,
)
from graphrag_index.reports.report_choices import CHOICES_TABLE
from graphrag_index.reports.theme_terms import CorpusWords, count_corpus_words, count_words
from graphrag_index.reports.theme_titles import add_theme_names, find_titles
from graphrag_index.reports.title_members import (
    choose_title_members,
    find_turns,
    flag_names,
    gather_titles,
    rank_title_members,
)
from graphrag_index.reports.written_reports import write_reports
from graphrag_index.schema.settings.step_sections import CreateCommunityReportsNlp
from graphrag_index.step import Partitions, Progress, ShardFrames, Shards, step
from graphrag_index.steps.extract_graph_nlp import find_rows_at
from graphrag_index.storage.memo import locate_list_values, read_batches, read_known_rows
from graphrag_index.storage.table_store import Previous
from graphrag_index.storage.table_writer import ROW_GROUP_SIZE
from graphrag_nlp.list_columns import Integers, NumberLists, RowGroups, find_rows
from graphrag_nlp.text.headlines import read_headlines
from graphrag_nlp.text.sentences import Quotations
from graphrag_nlp.text.standalone import stand_alone, trim_sentences

# Number of reports for which sentences are chosen at once, and whose rows are written at once. This
# number and the next ones limit memory and do not change the results.
SHARD_REPORTS = 1_000
PARTITION_REPORTS = 10 * SHARD_REPORTS  # a multiple, so that a shard is in one partition
# Number of candidate sentences of the reports that a worker writes at once: a report on a large
# community takes as long as many small ones. Another number may change the last digit of a score.
SHARD_SENTENCES = 10_000
PARTITION_SENTENCES = 500_000
BATCH_ROWS = 64 * ROW_GROUP_SIZE  # mentions or relationships that are read at once

Floats = npt.NDArray[np.float64]
# Columns of candidate sentences: `clarity` is 2 for whole sentences that stand alone, 1 for other
# whole sentences and 0 for headings, list items and table rows. `first_day` and `last_day` are the
# days of the first date in the sentence, `source` and `document` are the numbers of its text unit
# and document, `start_char` and `end_char` its position in the document.
_QUOTED_COLUMNS: dict[str, Any] = {
    **CHOSEN_COLUMNS,
    "text": pl.String,
    "language": pl.String,
    "clarity": pl.Int8,
    "first_day": pl.Date,
    "last_day": pl.Date,
    "source": pl.Int32,
    "document": pl.Int32,
    "start_char": pl.Int32,
    "end_char": pl.Int32,
}


@step(writes=["community_reports", "report_choices"], code_version=16)
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
    previous: Previous,
    progress: Progress,
    shards: Shards,
) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Write a report on each community from sentences about its members, without a model.

    The title has terms that set the sentences apart from the corpus, or a headline that says their
    theme, and the main members. The score of a sentence grows with these terms, and with the
    number and the degree of the members in it. The summary has central sentences about the main
    members, and ends with counts. Each finding is about one thing that is said of a main member, or
    is a chronology. Communities with the same parent share no sentence, and a report on a theme
    quotes text units of the theme only: the first sentences of its central documents, and a finding
    on each of some others. If the sentences are from at least three documents, one
    document has at most the share `max_document_share` of them. The rank (0 to 10) compares the
    size of a community with the sizes of other communities of its level.
    Reports are ordered by level, deepest first, then `community`.

    Candidate sentences are chosen report by report, but their texts are read document by document.
    So they are partitioned by sentence before, and by report after their texts are read. The last
    version's choice of a title, headings and sentences is kept if it depends on nothing new.
    """
    units = read_text_units(base_text_units, documents)
    rows = read_communities(communities, base_text_units, documents)
    progress.start(rows.height, "reports")
    named = entities.select("title", "type", "degree").collect()
    named = named.with_columns(
        weight=np.log2(2 + named["degree"].to_numpy()), kind=find_kinds(named)
    )
    ids = entities.select("id").collect()["id"]
    members = _read_members(communities, rows["community"], ids)
    links = RelationshipLookup(relationships, ids)
    del ids
    with shards.open_partitions(rows.height // PARTITION_REPORTS + 1, _QUOTED_COLUMNS) as by_report:
        n_sentences = sentences.select(pl.len()).collect().item()
        n_partitions = n_sentences // PARTITION_SENTENCES + 1
        with shards.open_partitions(n_partitions, CHOSEN_COLUMNS) as by_sentence:
            found = _find_sentences_of_entities(mentions, sentences, units, named.height)
            sources = _find_text_units(units, sentences.select("document", "start_char").collect())
            unit_ids = base_text_units.select("id").collect()["id"]
            own = read_own_sentences(communities, rows["community"], unit_ids, sources)
            work = _pair_members_with_sentences(
                rows.height, members, named["weight"], *found, own, sentences
            )
            del found
            for start, part in shards.map(choose_best_sentences, work, settings.max_document_share):
                chosen = part["chosen"].with_columns(pl.col("report") + start)
                by_sentence.append(chosen, chosen["sentence"].to_numpy() // PARTITION_SENTENCES)
            del work
            quote = partial(_quote_sentences, sentences=sentences, documents=documents, units=units)
            counted = _quote_by_report(by_sentence, by_report, rows, quote)
            corpus, turns, repeated = counted
        by_number = {
            "text_units": ("source", base_text_units.select("id").collect()),
            "documents": ("document", read_headlines(documents)),
        }
        known = read_known_rows(previous, CHOICES_TABLE)
        rank_members = cache(partial(rank_title_members, named, turns))
        is_name = partial(flag_names, turns=turns)
        themes = find_titles(base_text_units, documents, units, own, mentions, named, is_name)
        rows = add_theme_names(rows, themes)
        unwritten = _prepare_shards(
            rows, members, named, rank_members, by_report, repeated, links, by_number, known
        )
        limits = (settings.max_findings, settings.max_sentences, settings.max_document_share)
        yield from _join_batches(shards.map(write_reports, unwritten, corpus, *limits), progress)


def _quote_by_report(
    by_sentence: Partitions,
    by_report: Partitions,
    rows: pl.DataFrame,
    quote: Callable[[int, pl.DataFrame], pl.DataFrame],
) -> tuple[CorpusWords, pl.DataFrame, pl.Series]:
    """Quote the chosen sentences, partitioned by sentence, and partition them by report.

    Returns the counts of their words, the turns of chats among them, and the hashes of those that
    documents repeat. All are counted over all partitions, whose sizes do not change the titles.
    """
    parents, sizes = rows["parent"].to_numpy(), rows["size"].to_numpy()
    counts: list[tuple[int, pl.DataFrame]] = []
    hashed: list[pl.DataFrame] = []
    turns = [find_turns(pl.Series(dtype=pl.String))]  # no partition may have rows
    for number, chosen in by_sentence:
        quoted = quote(number, drop_repeats_of_siblings(chosen, parents, sizes))
        distinct = quoted.unique("sentence", maintain_order=True)
        counts.append(count_words(distinct["text"], distinct["language"]))
        turns.append(find_turns(distinct["text"]))
        hashed.append(hash_sentences(distinct))
        by_report.append(quoted, quoted["report"].to_numpy() // PARTITION_REPORTS)
    return count_corpus_words(counts), pl.concat(turns), find_repeated(hashed)


def _join_batches(
    written: Iterable[tuple[tuple[int, bool], ShardFrames]], progress: Progress
) -> Iterator[ShardFrames]:
    """Join the reports of the shards of each batch; a shard says whether its batch ends."""
    batch: list[ShardFrames] = []
    for (n_reports, is_last), part in written:
        batch.append(part)
        progress.advance(n_reports)
        if is_last:
            yield {name: pl.concat([one[name] for one in batch], rechunk=True) for name in part}
            batch.clear()


def _read_members(communities: pl.LazyFrame, reported: pl.Series, ids: pl.Series) -> RowGroups:
    """Return the members (entity numbers) of each community, in the order of `reported`."""
    report = find_rows(communities.select("community").collect()["community"], reported)
    row, entity = locate_list_values(communities.select("entity_ids"), ids)
    return RowGroups(report[row], entity, len(reported))


def _find_text_units(units: pl.DataFrame, places: pl.DataFrame) -> Integers:
    """Return the number of the text unit that contains each place."""
    found: Integers = units["number"].to_numpy()[find_rows_at(units, places).clip(0)]
    return found


def _find_sentences_of_entities(
    mentions: pl.LazyFrame, sentences: pl.LazyFrame, units: pl.DataFrame, n_entities: int
) -> tuple[NumberLists, npt.NDArray[np.float32]]:
    """Return the sentences that mention each entity, and the fitness of all sentences.

    Sentences are row numbers, ascending. The fitness is 0 to 1.3; sentences with 0 are left out.
    """
    read = sentences.collect()
    fitness = rate_fitness(read)
    is_fit = fitness > 0
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
    return NumberLists(bounds[:-1], np.diff(bounds), keys.astype(np.int32)), fitness


def _pair_members_with_sentences(
    n_reports: int,
    members: RowGroups,
    weight: pl.Series,
    sentences_of: NumberLists,
    fitness: npt.NDArray[np.float32],
    own: OwnSentences,
    sentences: pl.LazyFrame,
) -> Iterator[tuple[int, ShardFrames]]:
    """Yield (number of the first report, shard): members of communities, and their sentences."""
    document = sentences.select("document").collect().to_series()
    leads = find_leads(document.to_numpy(), fitness)
    of_themes = find_theme_leads(leads, own)
    for start in range(0, n_reports, SHARD_REPORTS):
        reports = np.arange(start, min(start + SHARD_REPORTS, n_reports))
        report, entity = choose_main_members(*members.take(reports), weight, sentences_of)
        position, sentence = sentences_of.take(entity)
        is_own = own.select(report[position], sentence)
        position, sentence = position[is_own], sentence[is_own]
        yield (
            start,
            {
                "members": pl.DataFrame(
                    {
                        "report": report.astype(np.int32),
                        "entity": entity.astype(np.int32),
                        "weight": weight[entity],
                        "n_sentences": np.bincount(position, minlength=len(entity)),
                    }
                ),
                "sentences": pl.DataFrame(
                    {
                        "sentence": sentence,
                        "fitness": fitness[sentence],
                        "document": document.gather(sentence),
                    }
                ),
                "leads": leads.filter(
                    pl.col("document").is_in(document.gather(sentence).implode())
                ),
                "theme_leads": number_from(start, len(reports), of_themes),
            },
        )


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
    source = _find_text_units(units, quotations.places)
    languages = documents.select("language").collect().to_series()
    language = languages.gather(quotations.places["document"])
    texts = trim_sentences(quotations.texts)
    quoted = pl.DataFrame(
        {
            "text": texts,
            "language": language,
            "clarity": spans[quotations.rows]["quotable"].cast(pl.Int8),
            "source": source,
            **quotations.places.select(pl.all().cast(pl.Int32)).to_dict(),
        }
    )
    quoted = quoted.with_columns(
        clarity=pl.col("clarity") * (stand_alone(texts, language).cast(pl.Int8) + 1)
    )
    quoted = quoted.with_columns(find_first_dates(quoted))
    return pl.concat([chosen, quoted[quotations.map_sentence_rows(rows)]], how="horizontal")


def _prepare_shards(
    rows: pl.DataFrame,
    members: RowGroups,
    named: pl.DataFrame,
    rank_members: Callable[[str], Integers],
    by_report: Partitions,
    repeated: pl.Series,
    links: RelationshipLookup,
    by_number: Mapping[str, tuple[str, pl.DataFrame]],
    known: pl.DataFrame,
) -> Iterator[tuple[tuple[int, bool], ShardFrames]]:
    """Yield ((number of reports, whether their batch ends), shard).

    A shard has communities with their titles and candidate sentences. `by_number` has a column of
    numbers in candidate sentences, and the rows by number, for each further frame of a shard.
    `rank_members` returns the rank of each entity in titles in a language. `repeated` are the
    hashes of sentences that documents repeat.
    """
    titles, used = named["title"], set[str]()
    kinds, n_kinds = named["kind"].to_numpy(), len(COUNTED_TYPES)
    for partition in range(by_report.n):
        quoted = mark_repeated(by_report.read(partition), repeated)
        quoted = quoted.sort("report", "score", "sentence", descending=[False, True, False])
        report = quoted["report"].to_numpy()
        language = pl.col("language").mode().sort().first()
        languages = dict(quoted.group_by("report").agg(language).iter_rows())
        first = partition * PARTITION_REPORTS
        last = min(first + PARTITION_REPORTS, rows.height)
        for start, stop in _cut_into_shards(report, first, last):
            part = rows[start:stop]
            chosen, counts = [], []
            ranked = [
                entities[np.argsort(rank_members(languages.get(at, ""))[entities])]
                for at, entities in enumerate(map(members.__getitem__, range(start, stop)), start)
            ]
            first_titles = gather_titles(titles, ranked)
            for entities in ranked:
                chosen.append(choose_title_members(entities, titles, first_titles, used))
                counts.append(np.bincount(kinds[entities], minlength=n_kinds)[:n_kinds].tolist())
            main = pl.Series(chosen, dtype=pl.List(pl.Int32))
            counted = pl.Series(counts, dtype=pl.List(pl.Int32))
            sentences = quoted[slice(*np.searchsorted(report, [start, stop]).tolist())]
            shown = pl.concat([sentences["entities"], main]).explode()
            shown = shown.drop_nulls().unique().sort()
            is_last = stop % SHARD_REPORTS == 0 or stop == rows.height
            yield (
                (part.height, is_last),
                {
                    "communities": part.with_columns(main=main, kinds=counted),
                    "sentences": sentences.with_columns(
                        pl.col("report") - start,
                        relationships=links.find_between(sentences["entities"]),
                    ),
                    "entities": named[shown].select(entity=shown, title="title", weight="weight"),
                    "known": known.join(part, on="community", how="semi", maintain_order="left"),
                    **{
                        name: table[numbers].with_columns(numbers)
                        for name, (column, table) in by_number.items()
                        for numbers in (sentences[column].unique().sort(),)
                    },
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
