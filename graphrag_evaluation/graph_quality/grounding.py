"""Grounding: whether passages hold the names of the entities that they are evidence for."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_evaluation.graph_quality.graph_figures import (
    MAX_EXAMPLES,
    Figure,
    Figures,
    share_figure,
)
from graphrag_evaluation.statistics import SEED
from graphrag_index.health.checked_index import CheckedIndex, count_rows, explode_lists
from graphrag_nlp.list_columns import find_rows, keep_first_keys
from graphrag_nlp.text.normalize import UNSPACED, fold_names

Flags = npt.NDArray[np.bool_]
# Documents whose texts are in memory at once.
_DOCUMENTS_PER_BATCH = 1_024


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
    spans_of_units = ("mentions", "entity", "text_unit", "start_char", "end_char")
    if not (index.has(*spans_of_units) and index.has("documents", "id", "text")):
        return _measure_mentions_of_units(index, names, seed)
    units = index.tables["text_units"].select("document_id").with_row_index("text_unit")
    spans = (
        index.tables["mentions"]
        .with_columns(pl.col("text_unit", "entity").cast(pl.UInt32))
        .join(units, on="text_unit")
        .join(number_documents(index), on="document_id")
        .select("document", "start_char", "end_char", "entity")
        .sort("document")
        .collect(engine="streaming")
    )
    held, examples = _find_held(index, spans, ["entity"], names)
    none = "the index has no mentions"
    return {
        "grounded_mentions": share_figure(
            *_by_document(spans, held), examples, none=none, seed=seed
        ),
        "grounded_entities": _measure_entities(index, spans["entity"].to_numpy()[held], seed),
    }


def _measure_entities(index: CheckedIndex, rows: npt.NDArray[Any], seed: int) -> Figure | str:
    """Measure the share of entities whose row is among `rows`."""
    is_grounded = np.zeros(count_rows(index.tables["entities"]), dtype=bool)
    is_grounded[rows] = True
    titles = _titles(index, ~is_grounded)
    none = "the index has no entities"
    return share_figure(is_grounded, np.ones(len(is_grounded)), titles, none=none, seed=seed)


def _measure_mentions_of_units(index: CheckedIndex, names: pl.DataFrame, seed: int) -> Figures:
    """Measure whether the text units of entities have a name of the entity."""
    measures, none = ("grounded_mentions", "grounded_entities"), "the entities have no text units"
    if not (index.has("entities", "text_unit_ids") and index.has("text_units", "id", "text")):
        return dict.fromkeys(measures, none)
    stated = _stated_units(index, "entities").rename({"row": "entity"})
    found = _find_named(index, stated, names)
    titles = index.tables["entities"].select("title").collect()["title"]
    missing = found.filter(~pl.col("held")).head(MAX_EXAMPLES)
    examples = [f"{titles[entity]}: text unit {unit}" for entity, unit, _ in missing.rows()]
    return {
        "grounded_mentions": share_figure(
            *_by_unit(found, found["held"]), examples, none=none, seed=seed
        ),
        "grounded_entities": _measure_entities(
            index, found.filter("held")["entity"].to_numpy(), seed
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
    columns = ("relationships", "source_id", "target_id", "evidence")
    if not (index.has(*columns) and index.has("documents", "id", "text")):
        return _measure_relationships_of_units(index, names, seed)
    ids = index.tables["entities"].select("id").collect()["id"]
    rows = (
        index.tables["relationships"]
        .select("source_id", "target_id", "evidence")
        .explode("evidence")
        .drop_nulls("evidence")
        .unnest("evidence")
        .join(number_documents(index), on="document_id")
        .select("document", "start_char", "end_char", "source_id", "target_id")
        .sort("document")
        .collect(engine="streaming")
    )
    ends = {end: find_rows(rows[f"{end}_id"], ids) for end in ("source", "target")}
    spans = rows.drop("source_id", "target_id").with_columns(
        pl.Series(end, values).cast(pl.Int64) for end, values in ends.items()
    )
    spans = spans.filter((pl.col("source") >= 0) & (pl.col("target") >= 0))
    spans = spans.with_columns(pl.col("source", "target").cast(pl.UInt32))
    held, examples = _find_held(index, spans, ["source", "target"], names)
    none = "the relationships have no spans of evidence"
    return share_figure(*_by_document(spans, held), examples, none=none, seed=seed)


def _measure_relationships_of_units(
    index: CheckedIndex, names: pl.DataFrame, seed: int
) -> Figure | str:
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


def number_documents(index: CheckedIndex) -> pl.LazyFrame:
    """Return the id and the row number of each document."""
    return index.tables["documents"].select(document_id="id").with_row_index("document")


def _titles(index: CheckedIndex, wanted: Flags) -> list[str]:
    """Return the titles of the first wanted entities."""
    titles = index.tables["entities"].select("title").filter(pl.Series(wanted))
    return titles.head(MAX_EXAMPLES).collect()["title"].to_list()


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


def _by_document(spans: pl.DataFrame, held: Flags) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    """Return the numbers of held spans and of all spans of each document."""
    documents = spans["document"].to_numpy()
    return np.bincount(documents, weights=held), np.bincount(documents)


def _find_held(
    index: CheckedIndex, spans: pl.DataFrame, ends: Sequence[str], names: pl.DataFrame
) -> tuple[Flags, list[str]]:
    """Return for each span whether the span has a name of the entity in each column of `ends`.

    `spans` are sorted by document. Also returns the first spans without a name, as examples.
    """
    held = np.ones(len(spans), dtype=bool)
    titles = index.tables["entities"].select("title").collect()["title"]
    examples: list[str] = []
    for start, said in read_spans(index, spans):
        part = (
            spans.slice(start, len(said)).select(ends).with_columns(text=fold_names(pl.lit(said)))
        )
        # Equal texts that are evidence for equal entities are compared once.
        kinds = part.unique(maintain_order=True).with_row_index("kind")
        is_held = np.ones(len(kinds), dtype=bool)
        for end in ends:
            pairs = kinds.join(names, left_on=end, right_on="entity").filter(holds_name("text"))
            is_held &= np.isin(np.arange(len(kinds)), pairs["kind"].to_numpy())
        kinds = kinds.with_columns(held=pl.Series(is_held))
        found = part.join(kinds, on=[*ends, "text"], how="left", maintain_order="left")["held"]
        held[start : start + len(said)] = found.to_numpy()
        for at in np.flatnonzero(~found.to_numpy())[: MAX_EXAMPLES - len(examples)].tolist():
            wanted = " – ".join(titles[part[end][at]] for end in ends)
            examples.append(f"{wanted}: {said[at]!r}")
    return held, examples


def read_spans(index: CheckedIndex, spans: pl.DataFrame) -> Iterator[tuple[int, pl.Series]]:
    """Yield (number of the first span, texts of spans) for batches of documents."""
    n_documents = count_rows(index.tables["documents"])
    documents = spans["document"].to_numpy()
    for first in range(0, n_documents, _DOCUMENTS_PER_BATCH):
        start, stop = np.searchsorted(documents, [first, first + _DOCUMENTS_PER_BATCH]).tolist()
        if start == stop:
            continue
        rows = index.tables["documents"].slice(first, _DOCUMENTS_PER_BATCH)
        texts = rows.select(pl.col("text").fill_null("")).collect()["text"].to_list()
        columns = spans.slice(start, stop - start).select("document", "start_char", "end_char")
        said = [texts[document - first][begin:end] for document, begin, end in columns.iter_rows()]
        yield start, pl.Series("text", said, pl.String)
