"""Comparison of an index with a reference extraction: precision, recall and F1."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import polars as pl

from graphrag_evaluation.graph_quality.graph_figures import MAX_EXAMPLES, Figure, Figures
from graphrag_evaluation.graph_quality.stated_graph import NOUN_PHRASE, StatedGraph
from graphrag_evaluation.statistics import f1_interval, ratio_interval

# Names of each list of missed or extra ones.
MAX_LISTED = 50
# What is compared, and the reasons why it cannot be: nothing in the index, or in the reference.
COMPARED = {
    "entity": ("the index has no entities there", "the reference has no entities"),
    "typed": ("the index has no entities there", "the reference has no types"),
    "mention": (
        "the index has no spans of mentions there",
        "the reference has no spans of mentions",
    ),
    "relationship": (
        "the index has no relationships there",
        "the reference has no relationships",
    ),
}


@dataclass(frozen=True)
class ListedName:
    """A missed or extra name, and the number of compared documents with it."""

    name: str
    documents: int

    def __str__(self) -> str:
        return f"{self.name} ({self.documents:,})"


@dataclass(frozen=True)
class ReferenceComparison:
    """An index compared with a reference, on the documents that both have.

    `lists` has the most frequent missed and extra names by kind, such as `missed_entities`.
    """

    reference: str
    n_documents: int
    n_documents_of_index: int
    not_found: tuple[str, ...]  # documents or passages of the reference, not in the index
    figures: Figures = field(default_factory=dict)
    lists: Mapping[str, list[ListedName]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "reference": self.reference,
            "documents": self.n_documents,
            "documents_of_index": self.n_documents_of_index,
            "not_found": len(self.not_found),
            "not_found_examples": list(self.not_found[:MAX_LISTED]),
            **{name: [asdict(one) for one in listed] for name, listed in self.lists.items()},
        }


class _Verdicts(NamedTuple):
    """Stated rows with `right`, and wanted rows with `found`; both with `passage` and `name`.

    Rows that count nowhere are left out.
    """

    stated: pl.DataFrame
    wanted: pl.DataFrame


def compare_graphs(
    stated: StatedGraph, wanted: StatedGraph, documents: pl.Series, seed: int
) -> tuple[Figures, Mapping[str, list[ListedName]]]:
    """Compare what an index states about passages with what a reference wants.

    `documents` has the document of each passage, which is drawn as a whole for the intervals.
    Entities are the same if one has a name of the other, in the same passage; several of one
    side may match one of the other. Relationships are unordered pairs. Optional entities of the
    reference count nowhere, and noun phrases only if the reference has some, or if they match.

    Returns the figures, and the most frequent missed and extra names.
    """
    if not wanted.has_noun_phrases:
        stated = _make_phrases_optional(stated)
    if not stated.has_noun_phrases:
        wanted = _make_phrases_optional(wanted)
    matches = stated.names.join(wanted.names, on=["passage", "name"], suffix="_wanted")
    matches = matches.select("passage", "entity", wanted="entity_wanted").unique()
    judged = _judge_entities(stated, wanted, matches)
    compared = {
        "entity": judged,
        "typed": _judge_types(stated, wanted, matches, judged),
        "mention": _judge_mentions(stated, wanted),
        "relationship": _judge_pairs(stated, wanted, matches, judged),
    }
    figures: dict[str, Figure | str] = {}
    lists: dict[str, list[ListedName]] = {}
    for name, verdicts in compared.items():
        listed = {}
        if name != "mention":
            plural = {"entity": "entities", "typed": "types"}.get(name, "relationships")
            listed["extra"] = _count_names(verdicts.stated.filter(~pl.col("right")), documents)
            listed["missed"] = _count_names(verdicts.wanted.filter(~pl.col("found")), documents)
            if name != "typed":
                lists |= {f"{key}_{plural}": names for key, names in listed.items()}
        # Without spans of the index no passage is judged, whatever the reference has.
        is_stated = {
            "mention": bool(len(stated.passages_with_spans)),
            "relationship": bool(len(stated.passages_with_pairs)),
        }
        reason = COMPARED[name][is_stated.get(name, True)]
        figures |= _compute_figures(name, verdicts, documents, listed, reason, seed)
    return figures, lists


def _make_phrases_optional(graph: StatedGraph) -> StatedGraph:
    is_phrase = pl.col("types").list.contains(NOUN_PHRASE)
    entities = graph.entities.with_columns(is_optional=pl.col("is_optional") | is_phrase)
    return graph._replace(entities=entities)


def _judge_entities(stated: StatedGraph, wanted: StatedGraph, matches: pl.DataFrame) -> _Verdicts:
    key = ["passage", "entity"]
    required = wanted.entities.filter(~pl.col("is_optional")).select("passage", wanted="entity")
    right = matches.join(required, on=["passage", "wanted"], how="semi").select(key).unique()
    rows = stated.entities.join(right.with_columns(right=True), on=key, how="left").with_columns(
        pl.col("right").fill_null(False)
    )
    optional = matches.select(key).unique()
    # Not counted: an optional entity that is not wanted, and a match of an optional one.
    rows = rows.join(optional.with_columns(matched=True), on=key, how="left").filter(
        pl.col("right") | (pl.col("matched").is_null() & ~pl.col("is_optional"))
    )
    found = matches.select("passage", entity="wanted").unique().with_columns(found=True)
    wanted_rows = (
        wanted.entities.join(found, on=key, how="left")
        .with_columns(pl.col("found").fill_null(False))
        .filter(~pl.col("is_optional"))
    )
    columns = ("passage", "entity", "types")
    return _Verdicts(
        rows.select(*columns, "right", name="title"),
        wanted_rows.select(*columns, "found", name="title"),
    )


def _judge_types(
    stated: StatedGraph, wanted: StatedGraph, matches: pl.DataFrame, judged: _Verdicts
) -> _Verdicts:
    """Judge entities as before, but right only with a type of the reference.

    Entities of the reference without a type count nowhere, nor do those that match them.
    """
    typed = judged.wanted.filter(pl.col("types").list.len() > 0)
    pairs = (
        matches.join(
            typed.select("passage", wanted="entity", types_wanted="types"),
            on=["passage", "wanted"],
        )
        .join(stated.entities.select("passage", "entity", "types"), on=["passage", "entity"])
        .with_columns(same=pl.col("types").list.set_intersection("types_wanted").list.len() > 0)
    )
    of_stated = pairs.group_by("passage", "entity").agg(same=pl.col("same").any())
    of_wanted = pairs.group_by("passage", entity="wanted").agg(same=pl.col("same").any())
    key = ["passage", "entity"]
    name = pl.format("{}: {}", "name", pl.col("types").list.join("/"))
    rows = judged.stated.join(of_stated, on=key, how="left").filter(
        ~pl.col("right") | pl.col("same").is_not_null()
    )
    return _Verdicts(
        rows.select("passage", name=name, right=pl.col("same").fill_null(False))
        if len(typed)
        else rows.head(0).select("passage", "name", "right"),
        typed.join(of_wanted, on=key, how="left").select(
            "passage", name=name, found=pl.col("same").fill_null(False)
        ),
    )


def _judge_mentions(stated: StatedGraph, wanted: StatedGraph) -> _Verdicts:
    """Judge spans: right if equal. A span that overlaps an optional one counts only if right."""
    both = set(stated.passages_with_spans) & set(wanted.passages_with_spans)
    spans, marks = (
        graph.spans.filter(pl.col("passage").is_in(sorted(both))) for graph in (stated, wanted)
    )
    key = ["passage", "start_char", "end_char"]
    required = marks.filter(~pl.col("is_optional")).select(key).unique()
    rows = spans.select(key).unique().join(required.with_columns(right=True), on=key, how="left")
    rows = rows.with_columns(pl.col("right").fill_null(False))
    touching = (
        rows.join(marks.filter("is_optional"), on="passage", suffix="_mark")
        .filter(
            ~pl.col("right"),
            pl.col("start_char") < pl.col("end_char_mark"),
            pl.col("end_char") > pl.col("start_char_mark"),
        )
        .select(key)
    )
    rows = rows.join(touching, on=key, how="anti")
    found = required.join(rows.select(*key, found=True), on=key, how="left").with_columns(
        pl.col("found").fill_null(False)
    )
    return _Verdicts(rows, found)


def _judge_pairs(
    stated: StatedGraph, wanted: StatedGraph, matches: pl.DataFrame, judged: _Verdicts
) -> _Verdicts:
    """Judge relationships, except those with an end that counts nowhere."""
    passages = set(stated.passages_with_pairs) & set(wanted.passages_with_pairs)
    links, marks = (
        graph.pairs.filter(pl.col("passage").is_in(sorted(passages))) for graph in (stated, wanted)
    )
    ends = ("source", "target")
    counted, titles = {}, {}
    for side, rows, graph in (("stated", judged.stated, stated), ("wanted", judged.wanted, wanted)):
        counted[side] = rows.select("passage", "entity")
        titles[side] = graph.entities.select("passage", "entity", "title")
    translated = links
    for end in ends:
        translated = translated.join(
            matches.select(
                "passage", pl.col("entity").alias(end), pl.col("wanted").alias(f"{end}_wanted")
            ),
            on=["passage", end],
        )
    lower = pl.min_horizontal("source_wanted", "target_wanted")
    upper = pl.max_horizontal("source_wanted", "target_wanted")
    key = ["passage", *ends]
    equal = translated.select(*key, one=lower, other=upper).join(
        marks.select("passage", one="source", other="target"),
        on=["passage", "one", "other"],
        how="semi",
    )
    right = equal.select(key).unique().with_columns(hit=True)
    found = equal.select("passage", source="one", target="other").unique().with_columns(hit=True)
    sides = []
    for side, rows, hits in (("stated", links, right), ("wanted", marks, found)):
        rows = rows.join(hits, on=key, how="left").with_columns(pl.col("hit").fill_null(False))
        for end in ends:
            known = (
                counted[side]
                .rename({"entity": end})
                .with_columns(pl.lit(True).alias(f"{end}_counts"))
            )
            named = titles[side].rename({"entity": end, "title": f"{end}_title"})
            rows = rows.join(known, on=["passage", end], how="left")
            rows = rows.join(named, on=["passage", end], how="left")
        counts = pl.all_horizontal(f"{end}_counts" for end in ends).fill_null(False)
        name = pl.format(
            "{} – {}",
            pl.min_horizontal("source_title", "target_title"),
            pl.max_horizontal("source_title", "target_title"),
        )
        sides.append(rows.filter(counts).select("passage", "hit", name=name))
    return _Verdicts(sides[0].rename({"hit": "right"}), sides[1].rename({"hit": "found"}))


def _compute_figures(
    name: str,
    verdicts: _Verdicts,
    documents: pl.Series,
    listed: Mapping[str, list[ListedName]],
    none_wanted: str,
    seed: int,
) -> Figures:
    """Return precision, recall and F1 with intervals over documents."""
    none_stated = COMPARED[name][0]
    counts = (
        pl.DataFrame({"document": documents.unique().sort()})
        .join(_sum_by_document(verdicts.stated, "right", documents), on="document", how="left")
        .join(_sum_by_document(verdicts.wanted, "found", documents), on="document", how="left")
        .fill_null(0)
    )
    right, n_stated, found, n_wanted = (
        counts[column].to_numpy() for column in ("right", "n_right", "found", "n_found")
    )
    names = tuple(f"{name}_{part}" for part in ("precision", "recall", "f1"))
    if not n_wanted.any():
        return dict.fromkeys(names, none_wanted)
    intervals = (
        ratio_interval(right, n_stated, seed),
        ratio_interval(found, n_wanted, seed),
        f1_interval(right, n_stated, found, n_wanted, seed),
    )
    none: list[ListedName] = []
    examples = (listed.get("extra", none), listed.get("missed", none), none)
    return {
        key: Figure(interval, [*map(str, shown[:MAX_EXAMPLES])]) if interval else none_stated
        for key, interval, shown in zip(names, intervals, examples, strict=True)
    }


def _sum_by_document(rows: pl.DataFrame, flag: str, documents: pl.Series) -> pl.DataFrame:
    return (
        rows.select(flag, document=documents.gather(rows["passage"]))
        .group_by("document")
        .agg(pl.col(flag).sum(), pl.len().alias(f"n_{flag}"))
    )


def _count_names(rows: pl.DataFrame, documents: pl.Series) -> list[ListedName]:
    """Return the most frequent names of rows, with the number of their documents."""
    counts = (
        rows.select("name", document=documents.gather(rows["passage"]))
        .group_by("name")
        .agg(n=pl.col("document").n_unique())
        .sort("n", "name", descending=[True, False])
        .head(MAX_LISTED)
    )
    return [ListedName(name, n) for name, n in counts.iter_rows()]
