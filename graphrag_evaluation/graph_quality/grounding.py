"""The measures of a graph with their meanings; whether texts state what the graph says."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_evaluation.scores import MIN_SUPPORTED_SHARE, CitedSentence, cited_sentences
from graphrag_evaluation.stated_shares import WordWeights, stated_shares
from graphrag_evaluation.statistics import SEED, Interval, ratio_interval
from graphrag_evaluation.systems import MAX_SAMPLED_TEXT_UNITS
from graphrag_index.health.checked_index import (
    CITED_COLUMNS,
    CheckedIndex,
    count_rows,
    explode_lists,
)
from graphrag_nlp.list_columns import find_rows, keep_first_keys
from graphrag_nlp.reports.extent import EXTENT_SENTENCE
from graphrag_nlp.text.normalize import UNSPACED, fold_names

# Maximum number of examples of a figure.
MAX_EXAMPLES = 5

# The meaning of each measure. `docs/generate.py` writes them into the documentation.
GRAPH_MEANINGS = {
    "grounded_mentions": "share of the text units of entities that hold a name of the entity: its "
    "title or an alias",
    "grounded_entities": "share of the entities with such a text unit",
    "grounded_relationships": "share of the text units of relationships that hold names of both "
    "entities",
    "grounded_claims": "share of the quotations of claims that stand in the text unit; words may "
    "be left out with an ellipsis",
    "duplicate_names": "share of the entities whose title equals another one, apart from case, "
    "accents and punctuation",
    "doubtful_names": "share of the entities that resolution holds for a possible duplicate, "
    "without a decision",
    "alone": "share of the entities without a relationship",
    "small_components": "share of the entities in connected components of fewer than 3 entities",
    "largest_component": "share of the entities in the largest connected component",
    "cited_claims": "share of the sentences of reports that cite rows; counts of the community "
    "are left out",
    "supported_claims": "share of these sentences whose words the cited rows have",
}
# Measures that compare an index with a reference, document by document.
REFERENCE_MEANINGS = {
    "entity_precision": "share of the index's entities that the reference has",
    "entity_recall": "share of the reference's entities that the index has",
    "entity_f1": "harmonic mean of precision and recall of entities",
    "relationship_precision": "share of the index's relationships that the reference has, in "
    "either direction",
    "relationship_recall": "share of the reference's relationships that the index has, in either "
    "direction",
    "relationship_f1": "harmonic mean of precision and recall of relationships",
}
# Maximum number of reports that are read; of more reports, a random sample.
MAX_REPORTS = 1_000
# Columns that together are the text of a cited row.
_TEXT_COLUMNS = {
    "Entities": ("title", "description"),
    "Relationships": ("source", "target", "description"),
    "Claims": ("subject_id", "object_id", "description", "source_text"),
    "Reports": ("title", "full_content"),
    "Sources": ("text",),
}


@dataclass(frozen=True)
class Figure:
    """A measured share or mean with its interval.

    `n` of the interval is the number of rows. `examples` are rows that lower the quality.
    """

    interval: Interval
    examples: Sequence[str] = ()

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self.interval), "examples": list(self.examples)}


# Measures of an index: a figure, or the reason why it cannot be measured.
Figures = Mapping[str, Figure | str]


def share_figure(
    counts: npt.ArrayLike,
    totals: npt.ArrayLike,
    examples: Sequence[str] = (),
    *,
    none: str,
) -> Figure | str:
    """Return the ratio of two sums over clusters; the text `none` if there are no rows."""
    interval = ratio_interval(counts, totals)
    return none if interval is None else Figure(interval, tuple(examples[:MAX_EXAMPLES]))


def measure_grounding(index: CheckedIndex) -> Figures:
    """Measure the shares of mentions, entities, relationships and claims that texts support."""
    claims = {"grounded_claims": _measure_claims(index)}
    if not index.has("entities", "title"):
        others = ("grounded_mentions", "grounded_entities", "grounded_relationships")
        return dict.fromkeys(others, "the index has no table of entities") | claims
    names = read_names(index)
    return {
        **_measure_mentions(index, names),
        "grounded_relationships": _measure_relationships(index, names),
        **claims,
    }


def read_names(index: CheckedIndex) -> pl.DataFrame:
    """Return the normalized titles and aliases of entities, with the row `entity` of each."""
    names = pl.concat_list("title", "aliases") if index.has("entities", "aliases") else "title"
    rows = index.tables["entities"].select(name=names).with_row_index("entity")
    if not isinstance(names, str):
        rows = rows.explode("name")
    return (
        rows.drop_nulls()
        .with_columns(fold_names(pl.col("name")))
        .filter(pl.col("name") != "")
        .unique(maintain_order=True)
        .collect(engine="streaming")
    )


def _measure_mentions(index: CheckedIndex, names: pl.DataFrame) -> Figures:
    """Measure whether the text units of entities have a name of the entity."""
    measures, none = ("grounded_mentions", "grounded_entities"), "the entities have no text units"
    if not (index.has("entities", "text_unit_ids") and index.has("text_units", "id", "text")):
        return dict.fromkeys(measures, none)
    stated = _stated_units(index, "entities").rename({"row": "entity"})
    found = _find_named(index, stated, names)
    titles = index.tables["entities"].select("title").collect()["title"]
    missing = found.filter(~pl.col("held")).head(MAX_EXAMPLES)
    examples = [f"{titles[entity]}: text unit {unit}" for entity, unit, _ in missing.rows()]
    is_grounded = np.zeros(len(titles), dtype=bool)
    is_grounded[found.filter("held")["entity"].to_numpy()] = True
    return {
        "grounded_mentions": share_figure(*_by_unit(found, found["held"]), examples, none=none),
        "grounded_entities": share_figure(
            is_grounded,
            np.ones(len(titles)),
            titles.filter(pl.Series(~is_grounded)).to_list(),
            none="the index has no entities",
        ),
    }


def _stated_units(index: CheckedIndex, table: str) -> pl.LazyFrame:
    """Return pairs of the `row` of a table and the number of a text unit that it names."""
    stated = index.tables[table].select(id="text_unit_ids").with_row_index("row")
    units = index.tables["text_units"].select("id").with_row_index("unit")
    return explode_lists(stated, "id").join(units, on="id").select("row", "unit").unique()


def _find_named(index: CheckedIndex, stated: pl.LazyFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of `entity` and `unit`; `held` is true if the text unit has its name."""
    texts = index.tables["text_units"].select(text=fold_names(pl.col("text")))
    held = (
        stated.join(texts.with_row_index("unit"), on="unit")
        .join(names.lazy(), on="entity")
        .filter(holds_name("text"))
        .select("entity", "unit", held=True)
        .unique()
    )
    return (
        stated.join(held, on=["entity", "unit"], how="left")
        .with_columns(pl.col("held").fill_null(False))
        .select("entity", "unit", "held")
        .sort("entity", "unit")
        .collect(engine="streaming")
    )


def _by_unit(rows: pl.DataFrame, held: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return the numbers of held rows and of all rows of each text unit."""
    counts = rows.select("unit", held=held).group_by("unit").agg(pl.col("held").sum(), n=pl.len())
    return counts["held"], counts["n"]


def _measure_relationships(index: CheckedIndex, names: pl.DataFrame) -> Figure | str:
    """Measure whether the text units of relationships have names of both entities."""
    none = "the relationships have no text units"
    columns = ("relationships", "source", "target", "text_unit_ids")
    if not (index.has(*columns) and index.has("text_units", "id", "text")):
        return none
    titles = index.tables["entities"].select("title").collect()["title"]
    links = index.tables["relationships"].select("source", "target").collect(engine="streaming")
    keys = keep_first_keys(titles)
    ends = {end: pl.Series(find_rows(links[end], keys)) for end in links.columns}
    stated = _stated_units(index, "relationships").sort("row", "unit").collect(engine="streaming")
    pairs = stated.with_columns(
        pl.Series(end, rows.gather(stated["row"])) for end, rows in ends.items()
    ).filter(pl.col("source") >= 0, pl.col("target") >= 0)
    pairs = pairs.with_columns(pl.col("source", "target").cast(pl.UInt32))
    named = pl.concat(pairs.lazy().select("unit", entity=end) for end in ends)
    found = _find_named(index, named.select("entity", "unit").unique(), names)
    for end in ends:
        held = found.rename({"entity": end, "held": f"{end}_held"})
        pairs = pairs.join(held, on=[end, "unit"], how="left", maintain_order="left")
    both = pairs["source_held"] & pairs["target_held"]
    missing = pairs.filter(~both).head(MAX_EXAMPLES).select("source", "target", "unit")
    examples = [
        f"{titles[source]} – {titles[target]}: text unit {unit}"
        for source, target, unit in missing.iter_rows()
    ]
    return share_figure(*_by_unit(pairs, both), examples, none=none)


def _measure_claims(index: CheckedIndex) -> Figure | str:
    columns = ("covariates", "source_text", "text_unit_id")
    if not (index.has(*columns) and index.has("text_units", "id", "text")):
        return "the index has no claims"
    # A model may join several quotations of a claim, and leave out what is between two passages.
    quotes = pl.col("source_text").str.replace_all(r'["“”]\s*["“”]', "\n").str.split("\n")
    passages = pl.col("quote").str.replace_all("…", "...").str.split("...")
    claims = (
        index.tables["covariates"]
        .select("text_unit_id", quote=quotes)
        .explode("quote")
        .with_row_index("number")
        .with_columns(name=passages)
        .explode("name")
        .with_columns(fold_names(pl.col("name")))
        .filter(pl.col("name") != "")
        .join(index.tables["text_units"].select(text_unit_id="id", text="text"), on="text_unit_id")
        .with_columns(held=holds_name(fold_names(pl.col("text"))))
        .group_by("text_unit_id", "quote", "number")
        .agg(pl.col("held").all())
        .sort("text_unit_id", "quote", "number")
        .collect(engine="streaming")
    )
    counts = claims.group_by("text_unit_id", maintain_order=True).agg(
        pl.col("held").sum(), n=pl.len()
    )
    examples = claims.filter(~pl.col("held"))["quote"].head(MAX_EXAMPLES).to_list()
    return share_figure(counts["held"], counts["n"], examples, none="no claim has a quotation")


def holds_name(text: str | pl.Expr) -> pl.Expr:
    """Return whether a normalized text has the words of the column `name` in a row.

    In scripts without spaces between words, the characters of the name are enough.
    """
    text = pl.col(text) if isinstance(text, str) else text
    name = pl.col("name")
    words, wanted = (pl.concat_str(pl.lit(" "), each, pl.lit(" ")) for each in (text, name))
    return (
        pl.when(name.str.contains(UNSPACED))
        .then(text.str.contains(name, literal=True))
        .otherwise(words.str.contains(wanted, literal=True))
    )


def measure_report_claims(index: CheckedIndex) -> Figures:
    """Measure the shares of report sentences that have citations, and that these support.

    A sentence is supported if the cited rows have half of the information of its words, by the
    lexical test of `stated_shares`. A sentence that cites missing rows only is not supported.
    Counts of documents and members are no claims: the program writes them, and no row states
    them. Intervals are over reports.
    """
    names = ("cited_claims", "supported_claims")
    if not index.has("community_reports", "full_content", "community"):
        return dict.fromkeys(names, "the index has no community reports")
    reports = _sample_reports(index)
    claims = [_read_claims(text or "") for text in reports["full_content"]]
    evidence = _read_evidence(index, claims)
    weights = WordWeights(_sample_texts(index))
    n_cited, n_supported, unsupported, uncited = [], [], [], []
    for number, sentences in zip(reports["community"], claims, strict=True):
        cited = [sentence for sentence in sentences if sentence.rows]
        n_cited.append(len(cited))
        n_supported.append(0)
        for sentence in cited:
            texts = [evidence.get((s, n), "") for s, found in sentence.rows.items() for n in found]
            [stated] = stated_shares([sentence.text], ["\n".join(texts)], weights)
            n_supported[-1] += stated >= MIN_SUPPORTED_SHARE
            if stated < MIN_SUPPORTED_SHARE:
                unsupported.append((stated, f"report on community {number}: {sentence.text}"))
        uncited += [
            f"report on community {number}: {sentence.text}"
            for sentence in sentences
            if not sentence.rows
        ]
    worst = [text for _, text in sorted(unsupported)]
    n_sentences = list(map(len, claims))
    return {
        "cited_claims": share_figure(
            n_cited, n_sentences, uncited, none="no report has a sentence"
        ),
        "supported_claims": share_figure(
            n_supported, n_cited, worst, none="no sentence of a report cites a row"
        ),
    }


def _read_claims(report: str) -> list[CitedSentence]:
    sentences = cited_sentences(report)
    return [said for said in sentences if said.rows or not EXTENT_SENTENCE.fullmatch(said.text)]


def _sample_reports(index: CheckedIndex) -> pl.DataFrame:
    """Return communities and texts of reports; of many reports, only a random sample."""
    rows = index.tables["community_reports"].select("community", "full_content")
    n = count_rows(rows)
    if n > MAX_REPORTS:
        chosen = pl.Series(random.Random(SEED).sample(range(n), MAX_REPORTS), dtype=pl.UInt32)
        rows = rows.with_row_index("row").filter(pl.col("row").is_in(chosen.implode()))
    return rows.select("community", "full_content").collect(engine="streaming")


def _sample_texts(index: CheckedIndex) -> list[str]:
    """Return the texts of an evenly spaced sample of the text units."""
    if not index.has("text_units", "text"):
        return []
    rows = index.tables["text_units"].select(pl.col("text").fill_null(""))
    step = max(1, count_rows(rows) // MAX_SAMPLED_TEXT_UNITS)
    return rows.gather_every(step).collect()["text"].to_list()


def _read_evidence(
    index: CheckedIndex, claims: list[list[CitedSentence]]
) -> Mapping[tuple[str, int], str]:
    """Return the texts of the cited rows by (section, number)."""
    found: dict[tuple[str, int], str] = {}
    for section, columns in _TEXT_COLUMNS.items():
        table, number = CITED_COLUMNS[section].split(".")
        if section == "Reports":
            table = "community_reports"
        cited = {
            n for sentences in claims for said in sentences for n in said.rows.get(section, ())
        }
        if not cited or not index.has(table, *columns):
            continue
        if section == "Sources" and not index.has(table, number):
            rows = index.tables[table].with_row_index(number)
        elif index.has(table, number):
            rows = index.tables[table]
        else:
            continue
        # Separate columns by a full stop, so that no sentence continues in the next column.
        text = pl.concat_str(columns, separator=".\n", ignore_nulls=True)
        texts = (
            rows.select(pl.col(number).cast(pl.Int64), text=text)
            .filter(pl.col(number).is_in(pl.Series(sorted(cited)).implode()))
            .collect(engine="streaming")
        )
        found |= {(section, n): text for n, text in texts.iter_rows()}
    return found
