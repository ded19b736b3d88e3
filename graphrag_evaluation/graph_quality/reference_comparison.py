"""Comparison of the graph of an index with that of another index of the same documents."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_evaluation.graph_quality.grounding import MAX_EXAMPLES, Figure, Figures, read_names
from graphrag_evaluation.statistics import f1_interval, ratio_interval
from graphrag_index.errors import InputError
from graphrag_index.health.checked_index import CheckedIndex, count_rows, explode_lists
from graphrag_nlp.list_columns import find_rows, keep_first_keys

Flags = npt.NDArray[np.bool_]
# Maximum number of names in each list of missed or extra names.
MAX_LISTED = 50
# The kinds of compared rows, with the plural in names of lists such as `missed_entities`.
COMPARED = {"entity": "entities", "relationship": "relationships"}
# A type of entities without a proper name, which an extraction of names does not list.
NOUN_PHRASE = "noun phrase"


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
    not_found: tuple[str, ...]  # documents of the reference that the index lacks
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


class _StatedGraph(NamedTuple):
    """The part of an index's graph that is in the compared documents, which are numbered.

    An entity is a row of `entities`, and occurs once in each of its documents. Relationships are
    unordered: `source` < `target`.
    """

    entities: pl.DataFrame  # document, title, is_phrase
    names: pl.DataFrame  # document, entity, name: the normalized names of these entities
    pairs: pl.DataFrame  # document, source, target
    has_pairs: bool  # whether the index tells the documents of relationships


class _Verdicts(NamedTuple):
    """Verdicts on the rows of one index, without rows that are not counted.

    `right` has the document of each right row, `wrong` the document and name of each wrong row.
    """

    right: pl.Series
    wrong: pl.DataFrame


def compare_with_reference(
    index: CheckedIndex, name: str, reference: CheckedIndex
) -> ReferenceComparison:
    """Compare the graph of an index with a reference, on the documents that both have.

    Entities are the same if one has a name of the other, in the same document; several of one
    side may match one of the other. Noun phrases count only if both sides have some, or if they
    match. Documents are drawn as a whole for the intervals. Raises `InputError` if the two have
    no document in common, and if one lacks the tables.
    """
    for one in (index, reference):
        _check_tables(one)
    common = _find_common_documents(index, reference)
    if common.is_empty():
        raise InputError(
            f"The index in {index.path} has no document of the reference {name}: "
            "documents are found by their text, id, path or title."
        )
    stated = _read_graph(index, common["document"])
    wanted = _read_graph(reference, common["document_reference"])
    figures: dict[str, Figure | str] = {}
    lists: dict[str, list[ListedName]] = {}
    for kind, (own, theirs) in _judge(stated, wanted).items():
        extra, missed = _count_names(own.wrong), _count_names(theirs.wrong)
        lists |= {f"extra_{COMPARED[kind]}": extra, f"missed_{COMPARED[kind]}": missed}
        figures |= _compute_figures(kind, own, theirs, (extra, missed), len(common))
    titles = reference.tables["documents"].select(_document_names(reference)[-1]).collect()
    is_found = np.zeros(len(titles), bool)
    is_found[common["document_reference"]] = True
    return ReferenceComparison(
        name,
        len(common),
        count_rows(index.tables["documents"]),
        tuple(titles.to_series().filter(pl.Series(~is_found)).cast(pl.String)),
        figures,
        lists,
    )


def _check_tables(index: CheckedIndex) -> None:
    has_entities = index.has("entities", "title", "text_unit_ids")
    has_documents = index.has("documents", "id") and index.has("text_units", "id")
    if not (has_entities and has_documents and index.text_unit_documents() is not None):
        raise InputError(
            f"The index in {index.path} cannot be compared: it lacks entities, text units or "
            "documents."
        )


def _find_common_documents(index: CheckedIndex, reference: CheckedIndex) -> pl.DataFrame:
    """Pair the rows of documents of two indexes by a unique text, or else by a unique name."""
    ours, theirs = _document_keys(index), _document_keys(reference)
    return (
        ours.join(theirs, on="key", suffix="_reference")
        .sort(pl.col("rank") + pl.col("rank_reference"), "document", "document_reference")
        .unique("document", keep="first", maintain_order=True)
        .unique("document_reference", keep="first", maintain_order=True)
        .sort("document")
        .select("document", "document_reference")
    )


def _document_names(index: CheckedIndex) -> list[str]:
    """Return the columns that name a document, best first."""
    return [name for name in ("id", "path", "title") if index.has("documents", name)]


def _document_keys(index: CheckedIndex) -> pl.DataFrame:
    """Return the unique keys of documents: the hashed names and texts, with their rank."""
    documents = index.tables["documents"].with_row_index("document")
    columns = [*(["text"] if index.has("documents", "text") else []), *_document_names(index)]
    keys = []
    for rank, name in enumerate(columns):
        # Hash texts and names with different seeds, so that a text never equals a name.
        text = pl.col(name).cast(pl.String)
        is_text = name == "text"
        key = text.str.strip_chars().hash(seed=1) if is_text else text.hash()
        rows = documents.filter(text.fill_null("") != "").select("document", key=key, rank=rank)
        keys.append(rows.with_columns(pl.col("rank").cast(pl.Int32)))
    found = pl.concat(keys).collect(engine="streaming")
    n_documents = pl.col("document").n_unique().over("key")
    return found.filter(n_documents == 1).sort("rank").unique(["document", "key"], keep="first")


def _read_graph(index: CheckedIndex, rows: pl.Series) -> _StatedGraph:
    """Read what an index states about documents, given by their rows in its table.

    An entity is in a document if one of its text units is.
    """
    units = index.text_unit_documents()
    assert units is not None
    keys = index.tables["documents"].select(key=pl.col("id").hash()).with_row_index("row")
    numbered = rows.alias("row").to_frame().with_row_index("document")
    places = units.join(keys, on="key").join(numbered.lazy(), on="row").select("unit", "document")
    kind = pl.col("type").fill_null("") if index.has("entities", "type") else pl.lit("")
    titles = index.tables["entities"].select(
        "title", is_phrase=kind.str.to_lowercase() == NOUN_PHRASE
    )
    pairs = _read_pairs(index, places)
    # The two ends of a relationship are entities of its document.
    ends = [pairs.select("document", row=end) for end in ("source", "target")]
    inside = pl.concat([_find_documents(index, "entities", places), *ends]).unique()
    known = inside.sort("document", "row").with_row_index("entity")
    for end in ("source", "target"):
        numbers = known.rename({"row": end, "entity": f"{end}_number"})
        pairs = pairs.join(numbers, on=["document", end])
    return _StatedGraph(
        pl.concat([known.select("document"), titles.collect()[known["row"]]], how="horizontal"),
        known.join(read_names(index).rename({"entity": "row"}), on="row").drop("row"),
        # The numbers are sorted as the entities of a document are.
        pairs.select("document", source="source_number", target="target_number"),
        index.has("relationships", "text_unit_ids"),
    )


def _find_documents(index: CheckedIndex, table: str, places: pl.LazyFrame) -> pl.DataFrame:
    """Return pairs of a `document` and the `row` of a table whose text units it has."""
    rows = index.tables[table].select(unit="text_unit_ids").with_row_index("row")
    return (
        explode_lists(rows, "unit")
        .with_columns(pl.col("unit").hash())
        .join(places, on="unit")
        .select("document", "row")
        .unique()
        .collect(engine="streaming")
    )


def _read_pairs(index: CheckedIndex, places: pl.LazyFrame) -> pl.DataFrame:
    """Return the relationships of documents as pairs of rows of entities."""
    key, ends = index.relationship_keys()
    if not index.has("relationships", *ends, "text_unit_ids"):
        return pl.DataFrame(schema=dict.fromkeys(("document", "source", "target"), pl.UInt32))
    links = index.tables["relationships"]
    keys = keep_first_keys(index.tables["entities"].select(pl.col(key).hash()).collect()[key])
    rows = links.select(pl.col(ends).hash()).collect(engine="streaming")
    source, target = (pl.Series(find_rows(rows[end], keys)) for end in ends)
    stated = _find_documents(index, "relationships", places)
    at = stated["row"]
    return (
        stated.select("document", one=source.gather(at), other=target.gather(at))
        .filter(pl.col("one") >= 0, pl.col("other") >= 0, pl.col("one") != pl.col("other"))
        .select(
            "document",
            source=pl.min_horizontal("one", "other").cast(pl.UInt32),
            target=pl.max_horizontal("one", "other").cast(pl.UInt32),
        )
        .unique()
    )


def _judge(stated: _StatedGraph, wanted: _StatedGraph) -> dict[str, tuple[_Verdicts, _Verdicts]]:
    """Judge the entities and relationships of both sides."""
    # Pairs of rows of entities with a name in common, in one document.
    matches = (
        stated.names.join(wanted.names, on=["document", "name"], suffix="_wanted")
        .select("entity", wanted="entity_wanted")
        .unique()
    )
    phrases = [graph.entities["is_phrase"].to_numpy() for graph in (stated, wanted)]
    if all(flags.any() for flags in phrases):
        phrases = [np.zeros_like(flags) for flags in phrases]
    required = ~phrases[1]
    entity, of_wanted = matches["entity"].to_numpy(), matches["wanted"].to_numpy()
    is_matched, right = np.zeros_like(phrases[0]), np.zeros_like(phrases[0])
    is_matched[entity] = True
    right[entity[required[of_wanted]]] = True
    found = np.zeros_like(required)
    found[of_wanted] = True
    counted = right | ~(is_matched | phrases[0])
    return {
        "entity": (
            _judge_entities(stated, right, counted),
            _judge_entities(wanted, found & required, required),
        ),
        "relationship": _judge_pairs(stated, wanted, matches, (counted, required)),
    }


def _judge_entities(graph: _StatedGraph, right: Flags, counted: Flags) -> _Verdicts:
    rows = graph.entities.select("document", name="title")
    return _Verdicts(rows["document"].filter(right), rows.filter(counted & ~right))


def _judge_pairs(
    stated: _StatedGraph, wanted: _StatedGraph, matches: pl.DataFrame, counted: tuple[Flags, Flags]
) -> tuple[_Verdicts, _Verdicts]:
    """Judge relationships, except those with an entity that is not counted."""
    are_compared = stated.has_pairs and wanted.has_pairs
    links, marks = (
        graph.pairs.filter(
            pl.lit(are_compared),
            *(pl.Series(flags).gather(graph.pairs[end]) for end in ("source", "target")),
        ).with_row_index("number")
        for graph, flags in zip((stated, wanted), counted, strict=True)
    )
    of_ends = links
    for end in ("source", "target"):
        of_ends = of_ends.join(matches.rename({"entity": end, "wanted": f"{end}_wanted"}), on=end)
    ends = (pl.col("source_wanted"), pl.col("target_wanted"))
    equal = of_ends.select(
        link="number", source=pl.min_horizontal(*ends), target=pl.max_horizontal(*ends)
    ).join(marks, on=["source", "target"])
    found = []
    for rows, numbers, graph in (
        (links, equal["link"], stated),
        (marks, equal["number"], wanted),
    ):
        is_right = rows["number"].is_in(numbers.implode())
        titles = [graph.entities["title"].gather(rows[end]) for end in ("source", "target")]
        named = pl.DataFrame({"document": rows["document"], "one": titles[0], "other": titles[1]})
        name = pl.format(
            "{} – {}", pl.min_horizontal("one", "other"), pl.max_horizontal("one", "other")
        )
        wrong = named.filter(~is_right).select("document", name=name)
        found.append(_Verdicts(rows["document"].filter(is_right), wrong))
    return found[0], found[1]


def _compute_figures(
    kind: str,
    stated: _Verdicts,
    wanted: _Verdicts,
    listed: tuple[list[ListedName], list[ListedName]],
    n_documents: int,
) -> Figures:
    """Return precision, recall and F1 with intervals over documents, or why there are none."""
    right, extra, found, missed = (
        np.bincount(documents.to_numpy(), minlength=n_documents)
        for side in (stated, wanted)
        for documents in (side.right, side.wrong["document"])
    )
    names = [f"{kind}_{part}" for part in ("precision", "recall", "f1")]
    n_stated, n_wanted = right + extra, found + missed
    if not (n_stated.any() and n_wanted.any()):
        side = "reference" if n_stated.any() else "index"
        return dict.fromkeys(names, f"the {side} has no {COMPARED[kind]} there")
    intervals = (
        ratio_interval(right, n_stated),
        ratio_interval(found, n_wanted),
        f1_interval(right, n_stated, found, n_wanted),
    )
    examples = [[str(one) for one in names[:MAX_EXAMPLES]] for names in (*listed, [])]
    return {
        name: Figure(interval, shown)
        for name, interval, shown in zip(names, intervals, examples, strict=True)
        if interval is not None
    }


def _count_names(rows: pl.DataFrame) -> list[ListedName]:
    """Return the most frequent names of rows, with the number of their documents."""
    counts = (
        rows.group_by("name")
        .agg(n=pl.col("document").n_unique())
        .sort("n", "name", descending=[True, False])
        .head(MAX_LISTED)
    )
    return [ListedName(name, n) for name, n in counts.iter_rows()]
