"""Grounding: whether passages hold the names of the entities that they are evidence for."""

import numpy as np
import polars as pl

from graphrag_evaluation.graph_quality.graph_figures import (
    MAX_EXAMPLES,
    Figure,
    Figures,
    share_figure,
)
from graphrag_evaluation.statistics import SEED
from graphrag_index.health.checked_index import CheckedIndex, explode_lists
from graphrag_nlp.list_columns import find_rows, keep_first_keys
from graphrag_nlp.text.normalize import UNSPACED, fold_names


def measure_grounding(index: CheckedIndex, seed: int = SEED) -> Figures:
    """Measure the shares of mentions, entities, relationships and claims that texts hold."""
    claims = {"grounded_claims": _measure_claims(index, seed)}
    if not index.has("entities", "title"):
        others = ("grounded_mentions", "grounded_entities", "grounded_relationships")
        return dict.fromkeys(others, "the index has no table of entities") | claims
    names = read_names(index)
    return {
        **_measure_mentions(index, names, seed),
        "grounded_relationships": _measure_relationships(index, names, seed),
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


def _measure_mentions(index: CheckedIndex, names: pl.DataFrame, seed: int) -> Figures:
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
        "grounded_mentions": share_figure(
            *_by_unit(found, found["held"]), examples, none=none, seed=seed
        ),
        "grounded_entities": share_figure(
            is_grounded,
            np.ones(len(titles)),
            titles.filter(pl.Series(~is_grounded)).to_list(),
            none="the index has no entities",
            seed=seed,
        ),
    }


def _stated_units(index: CheckedIndex, table: str) -> pl.LazyFrame:
    """Return pairs of the `row` of a table and the number of a text unit that it names."""
    stated = index.tables[table].select(id="text_unit_ids").with_row_index("row")
    units = index.tables["text_units"].select("id").with_row_index("unit")
    return explode_lists(stated, "id").join(units, on="id").select("row", "unit").unique()


def _find_named(index: CheckedIndex, stated: pl.LazyFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of `entity` and `unit`, and whether the text unit `held` a name of it."""
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


def _measure_relationships(index: CheckedIndex, names: pl.DataFrame, seed: int) -> Figure | str:
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
    return share_figure(*_by_unit(pairs, both), examples, none=none, seed=seed)


def _measure_claims(index: CheckedIndex, seed: int) -> Figure | str:
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
    return share_figure(
        counts["held"], counts["n"], examples, none="no claim has a quotation", seed=seed
    )


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
