"""Candidate sentences of reports; reports on communities with one parent share none.

No text is read yet: they are chosen by mentioned members (entities), length and position.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_nlp.corpus import ShardFrames
from graphrag_nlp.list_columns import Integers, NumberLists, gather_lists
from graphrag_nlp.text.sentences import are_quotable

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

# A report has this share of its sentences as candidates, but at least the minimum and at most the
# maximum number.
MIN_CANDIDATES, CANDIDATE_SHARE, MAX_CANDIDATES = 20, 0.1, 100
# Maximum number of sentences that are compared for one report. Of a larger community, only the
# members with the highest weights count.
MAX_COMPARED = 20_000
# Maximum number of members that increase the centrality of a sentence: one with more may be a list.
MAX_CENTRAL_MEMBERS = 4
# Number of first sentences of a document that are searched for its lead, and of those in the lead.
LEADS_SEARCHED, MAX_LEADS = 8, 3
# The first sentences of the documents of a theme are always candidates, since they tell what it is
# about: maximum number of documents, and number of sentences of each.
MAX_LEAD_DOCUMENTS, LEADS_OF_DOCUMENT = 120, 2
# An odd number that spreads the numbers of documents at random (Knuth, TAOCP 3, 6.4).
_SPREAD = 2_654_435_761
# Minimum and maximum number of characters of a sentence with full quality. Double the maximum, or
# half the minimum, halves the quality.
MIN_CHARACTERS, MAX_CHARACTERS = 60, 200
# Number of characters at the start of a document whose sentences often sum the document up, and
# what such a place adds to the centrality, which is at most 1.
LEAD_CHARACTERS, LEAD_SCORE = 400, 0.5
# Quality of a heading, list item or table row, and its minimum length.
FRAGMENT_QUALITY, MIN_FRAGMENT_LENGTH = 0.01, 20
# `report` and `sentence` are row numbers, `place` is the place among the candidates of the report
# (from 0), `entities` are the members that the sentence mentions.
CANDIDATE_COLUMNS: dict[str, Any] = {
    "report": pl.Int32,
    "sentence": pl.Int32,
    "place": pl.Int32,
    "centrality": pl.Float32,
    "entities": pl.List(pl.Int32),
}


def rate_length(length: pl.Expr) -> pl.Expr:
    """Rate the length of a sentence in characters: 1 if normal, less if short or long."""
    return pl.min_horizontal(1.0, MAX_CHARACTERS / length.clip(1), length / MIN_CHARACTERS)


def rate_quality(sentences: pl.DataFrame) -> npt.NDArray[np.float32]:
    """Rate how fit rows of the table `sentences` are for quotation, from 0 (unfit) to 1."""
    length = pl.col("end_char") - pl.col("start_char")
    is_fragment = ~pl.col("quotable") & length.is_between(MIN_FRAGMENT_LENGTH, MAX_CHARACTERS)
    kind = pl.when("fit").then(1.0).when(is_fragment).then(FRAGMENT_QUALITY).otherwise(0.0)
    rated = sentences.with_columns(fit=are_quotable(sentences)).select(rate_length(length) * kind)
    return rated.to_series().cast(pl.Float32).to_numpy()


def find_leads(document: Integers, quality: npt.NDArray[np.float32]) -> pl.DataFrame:
    """Return the first quotable sentences of documents: `document`, `sentence`, `nth` (from 0).

    `document` has the document of each sentence, in ascending order.
    """
    rows = np.flatnonzero(quality >= 0.5)
    rows = rows[rows - np.searchsorted(document, document[rows]) < LEADS_SEARCHED]
    nth = np.arange(len(rows)) - np.searchsorted(document[rows], document[rows])
    rows, nth = rows[nth < MAX_LEADS], nth[nth < MAX_LEADS]
    return pl.DataFrame({"document": document[rows], "sentence": rows.astype(np.int32), "nth": nth})


def choose_theme_leads(leads: pl.DataFrame, report: Integers) -> pl.DataFrame:
    """Choose the first sentences of the documents of each theme: rows (`report`, `sentence`).

    `report` is the theme of each row of `leads`, or -1. Of many documents, some are chosen by a
    hash, so that a few new documents change little.
    """
    spread = (pl.col("document").cast(pl.Int64) * _SPREAD) % 2**32
    return (
        leads.with_columns(report=pl.Series(report, dtype=pl.Int32))
        .filter(pl.col("nth") < LEADS_OF_DOCUMENT, pl.col("report") >= 0)
        .filter(spread.rank("dense").over("report") <= MAX_LEAD_DOCUMENTS)
        .select("report", "sentence")
        .sort("report", "sentence")
    )


def choose_main_members(
    report: Integers, entity: Integers, weight: Floats, sentences_of: NumberLists
) -> tuple[Integers, Integers]:
    """Leave out members of large communities, those of the lowest weight first."""
    order = np.lexsort((entity, -weight[entity], report))
    n_before = np.append(0, np.cumsum(sentences_of.lengths[entity[order]]))[:-1]
    first = np.searchsorted(report, report)
    kept = np.sort(order[n_before - n_before[first] < MAX_COMPARED])
    return report[kept], entity[kept]


def choose_candidates(shard: ShardFrames, max_document_share: float) -> ShardFrames:
    """Choose the candidate sentences of a shard of communities.

    `members` has the `report`, `entity`, `weight` and number of sentences of each member, and
    `sentences` these sentences, with their `quality` and `document`, and whether they are `early`
    in it. `leads` has the first sentences of the documents, and `theme_leads` those that a report
    gets in any case. Sentences of one document that are more than its share come last.
    """
    members, sentences = shard["members"], shard["sentences"]
    times = members["n_sentences"].to_numpy()
    report, entity, weight = (
        np.repeat(members[name].to_numpy(), times) for name in ("report", "entity", "weight")
    )
    sentence, quality, document, early = (
        sentences[name].to_numpy() for name in ("sentence", "quality", "document", "early")
    )
    # Group the mentions by report and sentence. The members of a group are in ascending order.
    keys = (report.astype(np.int64) << 32) + sentence
    order = np.argsort(keys, kind="stable")
    is_first = np.ones(len(keys), bool)
    is_first[1:] = np.diff(keys[order]) > 0
    bounds = np.append(np.flatnonzero(is_first), len(keys))
    firsts = order[bounds[:-1]]
    report, sentence, document = report[firsts], sentence[firsts], document[firsts]
    # `bincount` returns integers if there are no values.
    centrality = np.bincount(np.cumsum(is_first) - 1, weight[order]).astype(np.float64)
    centrality *= np.minimum(1.0, MAX_CENTRAL_MEMBERS / np.diff(bounds))
    highest = np.full(report.max(initial=0) + 1, 1e-9)
    np.maximum.at(highest, report, centrality)
    centrality /= highest[report]
    score = quality[firsts] * (centrality + LEAD_SCORE * early[firsts])
    best = np.lexsort((sentence, -score, report))
    n_groups = np.bincount(report)[report] if len(report) else report
    limit = np.clip(n_groups * CANDIDATE_SHARE, MIN_CANDIDATES, MAX_CANDIDATES)
    nth_of_document = _number_equal((report.astype(np.int64) << 32) + document[best])
    best = best[np.lexsort((nth_of_document >= max_document_share * limit, report))]
    place = np.arange(len(best)) - np.searchsorted(report, report)
    leads = shard["theme_leads"]
    wanted = (leads["report"].to_numpy().astype(np.int64) << 32) + leads["sentence"].to_numpy()
    keys = (report.astype(np.int64) << 32) + sentence[best]
    is_chosen = (place < limit) | np.isin(keys, wanted)
    best, place = best[is_chosen], place[is_chosen]
    owner, member = NumberLists(bounds[:-1], np.diff(bounds), entity[order]).take(best)
    columns = {
        "report": report[best],
        "sentence": sentence[best],
        "place": place,
        "centrality": centrality[best],
        "entities": gather_lists(owner, pl.Series(member), len(best)),
    }
    chosen = pl.DataFrame(columns, CANDIDATE_COLUMNS)
    of_document = chosen.with_columns(document=pl.Series(document[best]))
    added = pl.concat([leads, _choose_main_leads(of_document, shard["leads"])])
    return {"candidates": _add_leads(chosen, added.unique(maintain_order=True))}


def _choose_main_leads(candidates: pl.DataFrame, leads: pl.DataFrame) -> pl.DataFrame:
    """Return, for each report, the lead of the document with most of its candidates.

    A lead says who and when. A report with few candidates gets more of the first sentences.
    """
    main = candidates.group_by("report").agg(pl.col("document").mode().sort().first(), n=pl.len())
    return (
        main.join(leads, on="document")
        .filter(pl.col("nth") < pl.max_horizontal(1, MAX_LEADS - pl.col("n").cast(pl.Int64)))
        .select("report", "sentence")
        .sort("report", "sentence")
    )


def _add_leads(candidates: pl.DataFrame, leads: pl.DataFrame) -> pl.DataFrame:
    """Add those leads that are not yet candidates of their report."""
    last = candidates.group_by("report").agg(pl.max("place"))
    added = (
        leads.join(candidates, on=["report", "sentence"], how="anti", maintain_order="left")
        .join(last, on="report", how="left", maintain_order="left")
        .select(
            "report",
            "sentence",
            place=pl.col("place").fill_null(-1) + 1 + pl.int_range(pl.len()).over("report"),
            centrality=pl.lit(0.0),
            entities=pl.lit([], CANDIDATE_COLUMNS["entities"]),
        )
    )
    return pl.concat([candidates, added.cast(candidates.schema)]).sort("report", "place")


def _number_equal(keys: Integers) -> Integers:
    """Return for each key the number of equal keys before it."""
    order = np.argsort(keys, kind="stable")
    before = np.empty(len(keys), dtype=np.int64)
    before[order] = np.arange(len(keys)) - np.searchsorted(keys[order], keys[order])
    return before


def drop_repeats_of_siblings(
    candidates: pl.DataFrame, parents: Integers, sizes: Integers
) -> pl.DataFrame:
    """Keep a candidate sentence in only one report among communities with the same parent.

    The report in which the sentence has the best place keeps it; of several such reports, that on
    the smallest community. `parents` and `sizes` have the values of each report.
    """
    report = candidates["report"].to_numpy()
    return (
        candidates.with_columns(parent=parents[report], size=sizes[report])
        .sort("sentence", "parent", "place", "size", "report")
        .unique(["sentence", "parent"], keep="first", maintain_order=True)
        .select(candidates.columns)
    )
