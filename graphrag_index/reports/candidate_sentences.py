"""Candidate sentences of reports: the best of each community, and none twice among siblings."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_index.reports.own_sentences import OwnSentences
from graphrag_index.step import ShardFrames
from graphrag_nlp.list_columns import Integers, NumberLists, gather_lists
from graphrag_nlp.text.sentences import are_quotable
from graphrag_nlp.text.values import find_dates

# Number of candidate sentences of a report, and the share of its sentences that are candidates if
# these are more, up to the maximum.
MIN_CANDIDATES, CANDIDATE_SHARE, MAX_CANDIDATES = 20, 0.1, 120
# Maximum number of sentences that are compared for one report. Of a larger community, only the
# members with most neighbours count.
MAX_SENTENCES_PER_REPORT = 20_000
# Maximum number of members that increase the score of a sentence. A sentence that mentions more
# members is probably a list.
MAX_SCORED_MEMBERS = 4
# A report with fewer sentences, all from one document, gets the first sentences of the document,
# among this many, with the fitness of a whole sentence of normal length. Each has this share of
# the score of the sentence before it.
MIN_SENTENCES, LEADS_SEARCHED, MIN_LEAD_FITNESS, LEAD_SHARE = 3, 8, 0.5, 0.5
# Numbers of documents of a theme, and of first sentences of each, that are candidates in any case:
# the beginnings of all its documents tell what it is about.
MAX_LEAD_DOCUMENTS, LEADS_OF_DOCUMENT = 120, 2
# An odd number that spreads the numbers of documents at random (Knuth, TAOCP 3, 6.4).
_SPREAD = 2_654_435_761
# Minimum and maximum number of characters of a sentence with full score. Double the maximum, or
# half the minimum, halves the score.
MIN_FULL_SCORE_LENGTH, MAX_FULL_SCORE_LENGTH = 60, 200
# Number of characters at the start of a document whose sentences often sum the document up, and
# the factor for their scores.
LEAD_CHARACTERS, LEAD_FACTOR = 400, 1.3
# Score of a heading, list item or table row, as a share of the score of a whole sentence.
FRAGMENT_FACTOR = 0.01
MIN_FRAGMENT_LENGTH = 20
_YEAR = r"\b(?:1\d|20)\d\d"
# Columns of candidate sentences. `report` and `sentence` are row numbers, `place` is the place
# in the ranking of the report (from 0), `entities` are the members that the sentence mentions.
CHOSEN_COLUMNS: dict[str, Any] = {
    "report": pl.Int32,
    "sentence": pl.Int32,
    "place": pl.Int32,
    "score": pl.Float64,
    "entities": pl.List(pl.Int32),
}


def rate_fitness(sentences: pl.DataFrame) -> npt.NDArray[np.float32]:
    """Rate how fit sentences are for quotation, by their length and place; 0 for unfit ones."""
    length = pl.col("end_char") - pl.col("start_char")
    by_length = pl.min_horizontal(
        1.0, MAX_FULL_SCORE_LENGTH / length.clip(1), length / MIN_FULL_SCORE_LENGTH
    )
    is_lead = pl.col("start_char") < LEAD_CHARACTERS
    is_fragment = ~pl.col("quotable") & length.is_between(
        MIN_FRAGMENT_LENGTH, MAX_FULL_SCORE_LENGTH
    )
    factor = (
        pl.when("fit")
        .then(pl.when(is_lead).then(LEAD_FACTOR).otherwise(1.0))
        .when(is_fragment)
        .then(FRAGMENT_FACTOR)
        .otherwise(0.0)
    )
    rated = sentences.with_columns(fit=are_quotable(sentences)).select(by_length * factor)
    return rated.to_series().cast(pl.Float32).to_numpy()


def choose_main_members(
    report: Integers, entity: Integers, weight: pl.Series, sentences_of: NumberLists
) -> tuple[Integers, Integers]:
    """Leave out members of large communities, those of the lowest weight first."""
    order = np.lexsort((entity, -weight.to_numpy()[entity], report))
    n_before = np.append(0, np.cumsum(sentences_of.lengths[entity[order]]))[:-1]
    first = np.searchsorted(report, report)
    kept = np.sort(order[n_before - n_before[first] < MAX_SENTENCES_PER_REPORT])
    return report[kept], entity[kept]


def choose_best_sentences(shard: ShardFrames, max_document_share: float) -> ShardFrames:
    """Choose the candidate sentences of a shard of communities, and find their members.

    Sentences of one document that are more than its share of the candidates are chosen last. The
    frame `leads` has the first sentences of documents, for reports with few sentences, and
    `theme_leads` those that a report on a theme gets in any case.
    """
    members, sentences = shard["members"], shard["sentences"]
    times = members["n_sentences"].to_numpy()
    report, entity, weight = (
        np.repeat(members[name].to_numpy(), times) for name in ("report", "entity", "weight")
    )
    sentence, fitness, document = (
        sentences[name].to_numpy() for name in ("sentence", "fitness", "document")
    )
    score = weight * fitness
    # Group the mentions by report and sentence. The members of a group are in ascending order.
    keys = (report.astype(np.int64) << 32) + sentence
    order = np.argsort(keys, kind="stable")
    is_first = np.ones(len(keys), bool)
    is_first[1:] = np.diff(keys[order]) > 0
    bounds = np.append(np.flatnonzero(is_first), len(keys))
    firsts = order[bounds[:-1]]
    report, sentence, document = report[firsts], sentence[firsts], document[firsts]
    # `bincount` returns integers if there are no values.
    total = np.bincount(np.cumsum(is_first) - 1, score[order]).astype(np.float64)
    total *= np.minimum(1.0, MAX_SCORED_MEMBERS / np.diff(bounds))
    # Choose the best groups of each report.
    best = np.lexsort((sentence, -total, report))
    place = np.arange(len(best)) - np.searchsorted(report, report)
    n_groups = np.bincount(report)[report] if len(report) else place
    limit = np.clip(n_groups * CANDIDATE_SHARE, MIN_CANDIDATES, MAX_CANDIDATES)
    place_in_document = _number_equal((report.astype(np.int64) << 32) + document[best])
    best = best[np.lexsort((place_in_document >= max_document_share * limit, report))]
    wanted = _make_keys(shard["theme_leads"])
    keys = (report.astype(np.int64) << 32) + sentence
    is_chosen = (place < limit) | np.isin(keys[best], wanted)
    best, place = best[is_chosen], place[is_chosen]
    owner, member = NumberLists(bounds[:-1], np.diff(bounds), entity[order]).take(best)
    columns = {
        "report": report[best],
        "sentence": sentence[best],
        "place": place,
        "score": total[best],
        "entities": gather_lists(owner, pl.Series(member), len(best)),
    }
    chosen = pl.DataFrame(columns, CHOSEN_COLUMNS)
    chosen = _add_leads(chosen, pl.Series("document", document[best]), shard["leads"])
    return {"chosen": _add_theme_leads(chosen, shard["theme_leads"])}


def _make_keys(leads: pl.DataFrame) -> Integers:
    """Return a number for each `report` and `sentence`."""
    keys: Integers = (leads["report"].to_numpy().astype(np.int64) << 32) + leads["sentence"]
    return keys


def find_leads(document: Integers, fitness: npt.NDArray[np.float32]) -> pl.DataFrame:
    """Return the first fit sentences of each document, at most `MIN_SENTENCES`.

    `document` has the document of each sentence, in ascending order.
    """
    rows = np.flatnonzero(fitness >= MIN_LEAD_FITNESS)
    rows = rows[rows - np.searchsorted(document, document[rows]) < LEADS_SEARCHED]
    place = np.arange(len(rows)) - np.searchsorted(document[rows], document[rows])
    rows = rows[place < MIN_SENTENCES]
    return pl.DataFrame({"document": document[rows], "sentence": rows.astype(np.int32)})


def _add_leads(chosen: pl.DataFrame, document: pl.Series, leads: pl.DataFrame) -> pl.DataFrame:
    """Add the first sentences of its only document to each report with few sentences."""
    by_report = chosen.with_columns(document).group_by("report")
    few = by_report.agg(
        "sentence",
        pl.first("document"),
        n=pl.len().cast(pl.Int32),
        n_documents=pl.col("document").n_unique(),
        score=pl.min("score"),
    ).filter(pl.col("n") < MIN_SENTENCES, n_documents=1)
    added = (
        few.join(leads, on="document", suffix="_added")
        .filter(~pl.col("sentence_added").is_in(pl.col("sentence")))
        .sort("report", "sentence_added")
        .with_columns(nth=pl.int_range(pl.len(), dtype=pl.Int32).over("report"))
        .filter(pl.col("n") + pl.col("nth") < MIN_SENTENCES)
        .select(
            "report",
            sentence="sentence_added",
            place=pl.col("n") + pl.col("nth"),
            score=pl.col("score") * LEAD_SHARE ** (pl.col("nth") + 1),
            entities=pl.lit([], CHOSEN_COLUMNS["entities"]),
        )
    )
    # The rows of a report stand together.
    chosen = pl.concat([chosen, added.cast(chosen.schema)]).sort("report", "place")
    return _add_theme_leads(chosen, _find_main_leads(by_report, leads))


def _find_main_leads(by_report: Any, leads: pl.DataFrame) -> pl.DataFrame:
    """Return the first sentence of the document that most sentences of a report are from."""
    first = leads.unique("document", keep="first", maintain_order=True)
    main: pl.DataFrame = by_report.agg(pl.col("document").mode().sort().first(), n=pl.len())
    return (
        main.filter(pl.col("n") >= MIN_SENTENCES)
        .join(first, on="document", maintain_order="left")
        .select("report", "sentence")
        .sort("report")
    )


def find_theme_leads(leads: pl.DataFrame, own: OwnSentences) -> pl.DataFrame:
    """Return the `report` of each theme with the first sentences of its documents.

    `leads` is the result of `find_leads`. Of many documents, some are chosen, nearly the same ones
    after a few have been added.
    """
    first = leads.filter(pl.int_range(pl.len()).over("document") < LEADS_OF_DOCUMENT)
    found = [pl.DataFrame(schema={**first.schema, "report": pl.Int32})]
    for _, owner in own.levels:
        report = owner[own.text_unit[first["sentence"].to_numpy()]]
        found.append(first.with_columns(report=report.astype(np.int32)))
    spread = (pl.col("document").cast(pl.Int64) * _SPREAD) % 2**32
    return (
        pl.concat(found)
        .filter(pl.col("report") >= 0)
        .filter(spread.rank("dense").over("report") <= MAX_LEAD_DOCUMENTS)
        .select("report", "sentence")
        .sort("report", "sentence")
    )


def number_from(start: int, n_reports: int, leads: pl.DataFrame) -> pl.DataFrame:
    """Select the leads of a range of reports, and number these from 0."""
    is_in = pl.col("report").is_between(start, start + n_reports - 1)
    return leads.filter(is_in).with_columns(pl.col("report") - start)


def _add_theme_leads(chosen: pl.DataFrame, leads: pl.DataFrame) -> pl.DataFrame:
    """Add the first sentences of the documents of themes, unless they are chosen already."""
    last = chosen.group_by("report").agg(pl.max("place"), pl.min("score"))
    added = (
        leads.join(chosen, on=["report", "sentence"], how="anti", maintain_order="left")
        .join(last, on="report", maintain_order="left")
        .select(
            "report",
            "sentence",
            place=pl.col("place") + 1 + pl.int_range(pl.len()).over("report"),
            score=pl.col("score"),
            entities=pl.lit([], CHOSEN_COLUMNS["entities"]),
        )
    )
    return pl.concat([chosen, added.cast(chosen.schema)]).sort("report", "place")


def find_first_dates(quoted: pl.DataFrame) -> list[pl.Series]:
    """Return the first and last day of the first date in each sentence that stands alone."""
    rows = ((quoted["clarity"] == 2) & quoted["text"].str.contains(_YEAR)).arg_true()
    found = [
        next(find_dates(text, language), None)
        for text, language in quoted[rows].select("text", "language").iter_rows()
    ]
    none = pl.Series([None] * quoted.height, dtype=pl.Date)
    days = {
        "first_day": [date and date.first for date in found],
        "last_day": [date and date.last for date in found],
    }
    return [none.clone().scatter(rows, values).alias(name) for name, values in days.items()]


def _number_equal(keys: Integers) -> Integers:
    """Return for each key the number of equal keys before it."""
    order = np.argsort(keys, kind="stable")
    before = np.empty(len(keys), dtype=np.int64)
    before[order] = np.arange(len(keys)) - np.searchsorted(keys[order], keys[order])
    return before


def drop_repeats_of_siblings(
    chosen: pl.DataFrame, parents: Integers, sizes: Integers
) -> pl.DataFrame:
    """Leave each candidate sentence to one report among those of communities with one parent.

    The report in which the sentence has the best place keeps it; of several such reports, that on
    the smallest community. `parents` and `sizes` have the values of each report.
    """
    report = chosen["report"].to_numpy()
    return (
        chosen.with_columns(parent=parents[report], size=sizes[report])
        .sort("sentence", "parent", "place", "size", "report")
        .unique(["sentence", "parent"], keep="first", maintain_order=True)
        .select(chosen.columns)
    )
