"""Comparison of an index with a reference extraction: precision, recall and F1."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from graphrag_evaluation.graph_quality.graph_figures import MAX_EXAMPLES, Figure, Figures
from graphrag_evaluation.graph_quality.stated_graph import TYPE_SEPARATOR, StatedGraph
from graphrag_evaluation.statistics import f1_interval, ratio_interval

Flags = npt.NDArray[np.bool_]
# Names of each list of missed or extra ones, and the plural nouns of these lists.
MAX_LISTED = 50
LISTED = {"entity": "entities", "relationship": "relationships"}
# What is compared, and the reasons why it cannot be: nothing in the index, or in the reference.
COMPARED = {
    "entity": ("the index has no entities there", "the reference has no entities"),
    "typed": ("the index has no entities there", "the reference has no types"),
    "relationship": ("the index has no relationships there", "the reference has no relationships"),
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
    """Verdicts on stated and wanted rows: passages of right ones, and the wrong ones.

    `right` and `extra` are of stated rows, `found` and `missed` of wanted rows. Rows that count
    nowhere are left out. Wrong rows have `passage` and `name`.
    """

    right: pl.Series
    found: pl.Series
    extra: pl.DataFrame
    missed: pl.DataFrame


class _Judged(NamedTuple):
    """Judged entities of both sides: what is matched by a required one, and what counts.

    `matches` has pairs of `entity` and `wanted`: rows of the two tables of entities.
    """

    matches: pl.DataFrame
    right: Flags
    counted: Flags
    found: Flags
    required: Flags


def compare_graphs(
    stated: StatedGraph, wanted: StatedGraph, documents: pl.Series, seed: int
) -> tuple[Figures, Mapping[str, list[ListedName]]]:
    """Compare what an index states about passages with what a reference wants.

    `documents` has the document of each passage, which is drawn as a whole for the intervals.
    Entities are the same if one has a name of the other, in the same passage; several of one
    side may match one of the other. Relationships are unordered pairs. Optional entities of the
    reference count nowhere, and noun phrases only if both sides have some, or if they match.

    Returns the figures, and the most frequent missed and extra names.
    """
    has_phrases = bool(stated.is_phrase.any()) and bool(wanted.is_phrase.any())
    judged = _match_entities(stated, wanted, has_phrases)
    compared = {
        "entity": _judge_entities(stated, wanted, judged),
        "typed": _judge_types(stated, wanted, judged),
        "relationship": _judge_pairs(stated, wanted, judged),
    }
    # Without relationships of the index no passage is judged, whatever the reference has.
    is_stated = {"relationship": bool(len(stated.passages_with_pairs))}
    figures: dict[str, Figure | str] = {}
    lists: dict[str, list[ListedName]] = {}
    for name, verdicts in compared.items():
        extra, missed = (
            _count_names(rows, documents) for rows in (verdicts.extra, verdicts.missed)
        )
        if name in LISTED:
            lists |= {f"extra_{LISTED[name]}": extra, f"missed_{LISTED[name]}": missed}
        reasons = (COMPARED[name][0], COMPARED[name][is_stated.get(name, True)])
        figures |= _compute_figures(name, verdicts, documents, (extra, missed), reasons, seed)
    return figures, lists


def _match_entities(stated: StatedGraph, wanted: StatedGraph, has_phrases: bool) -> _Judged:
    """Match the entities by their names, and decide which of them count."""
    matches = (
        stated.names.join(wanted.names, on=["passage", "name"], suffix="_wanted")
        .select("entity", wanted="entity_wanted")
        .unique()
    )
    is_optional, is_unwanted = (
        graph.entities["is_optional"].to_numpy()
        | (np.zeros(len(graph.entities), bool) if has_phrases else graph.is_phrase.to_numpy())
        for graph in (stated, wanted)
    )
    required = ~is_unwanted
    entity, of_wanted = matches["entity"].to_numpy(), matches["wanted"].to_numpy()
    is_matched, right = np.zeros(len(is_optional), bool), np.zeros(len(is_optional), bool)
    is_matched[entity] = True
    right[entity[required[of_wanted]]] = True
    found = np.zeros(len(required), bool)
    found[of_wanted] = True
    # Not counted: an optional entity that is not wanted, and a match of an optional one.
    counted = right | ~(is_matched | is_optional)
    return _Judged(matches, right, counted, found & required, required)


def _judge_entities(stated: StatedGraph, wanted: StatedGraph, judged: _Judged) -> _Verdicts:
    return _Verdicts(
        _passages(stated, judged.right),
        _passages(wanted, judged.found),
        _named(stated, judged.counted & ~judged.right),
        _named(wanted, judged.required & ~judged.found),
    )


def _judge_types(stated: StatedGraph, wanted: StatedGraph, judged: _Judged) -> _Verdicts:
    """Judge entities as before, but right only with a type of the reference.

    Entities of the reference without a type count nowhere, nor do those that match them.
    """
    is_typed = judged.required & (wanted.entities["types"] != "").to_numpy()
    if not is_typed.any():
        nothing = _named(wanted, is_typed)
        return _Verdicts(nothing["passage"], nothing["passage"], nothing, nothing)
    entity, of_wanted = (judged.matches[name].to_numpy() for name in ("entity", "wanted"))
    kept = is_typed[of_wanted]
    entity, of_wanted = entity[kept], of_wanted[kept]
    types = pl.DataFrame(
        {
            "stated": stated.entities["types"].gather(entity),
            "wanted": wanted.entities["types"].gather(of_wanted),
        }
    )
    # There are few pairs of types.
    equal = {
        pair
        for pair in types.unique().iter_rows()
        if not {*_split(pair[0])}.isdisjoint(_split(pair[1]))
    }
    known = pl.DataFrame([*equal], {"stated": pl.String, "wanted": pl.String}, orient="row")
    same = types.with_row_index("row").join(known, on=["stated", "wanted"], how="semi")["row"]
    right, found = np.zeros(len(stated.entities), bool), np.zeros(len(wanted.entities), bool)
    right[entity[same]] = True
    found[of_wanted[same]] = True
    of_typed = np.zeros(len(stated.entities), bool)
    of_typed[entity] = True
    counted = judged.counted & (of_typed | ~judged.right)
    return _Verdicts(
        _passages(stated, right),
        _passages(wanted, found),
        _named(stated, counted & ~right, with_types=True),
        _named(wanted, is_typed & ~found, with_types=True),
    )


def _split(types: str) -> list[str]:
    return types.split(TYPE_SEPARATOR) if types else []


def _judge_pairs(stated: StatedGraph, wanted: StatedGraph, judged: _Judged) -> _Verdicts:
    """Judge relationships, except those with an end that counts nowhere."""
    both = stated.passages_with_pairs
    both = both.filter(both.is_in(wanted.passages_with_pairs.implode())).implode()
    links, marks = (
        graph.pairs.filter(
            pl.col("passage").is_in(both),
            *(pl.Series(counts).gather(graph.pairs[end]) for end in ("source", "target")),
        )
        for graph, counts in ((stated, judged.counted), (wanted, judged.required))
    )
    links, marks = links.with_row_index("link"), marks.with_row_index("mark")
    of_ends = links.select("link", "source", "target")
    for end in ("source", "target"):
        matches = judged.matches.rename({"entity": end, "wanted": f"{end}_wanted"})
        of_ends = of_ends.join(matches, on=end)
    ends = (pl.col("source_wanted"), pl.col("target_wanted"))
    equal = of_ends.select(
        "link", pair=_join_numbers(pl.min_horizontal(*ends), pl.max_horizontal(*ends))
    ).join(marks.select("mark", pair=_join_numbers(pl.col("source"), pl.col("target"))), on="pair")
    sides = []
    for rows, number, graph in ((links, "link", stated), (marks, "mark", wanted)):
        is_right = np.zeros(len(rows), bool)
        is_right[equal[number].to_numpy()] = True
        titles = graph.entities["title"]
        wrong = rows.filter(~is_right)
        source, target = (titles.gather(wrong[end]) for end in ("source", "target"))
        named = pl.DataFrame({"passage": wrong["passage"], "one": source, "other": target})
        name = pl.format(
            "{} – {}", pl.min_horizontal("one", "other"), pl.max_horizontal("one", "other")
        )
        sides.append((rows["passage"].filter(is_right), named.select("passage", name=name)))
    (right, extra), (found, missed) = sides
    return _Verdicts(right, found, extra, missed)


def _join_numbers(low: pl.Expr, high: pl.Expr) -> pl.Expr:
    return low.cast(pl.UInt64) * (1 << 32) + high.cast(pl.UInt64)


def _passages(graph: StatedGraph, flags: Flags) -> pl.Series:
    return graph.entities["passage"].filter(flags)


def _named(graph: StatedGraph, flags: Flags, with_types: bool = False) -> pl.DataFrame:
    name = pl.format("{}: {}", "title", "types") if with_types else pl.col("title")
    return graph.entities.filter(flags).select("passage", name=name)


def _compute_figures(
    name: str,
    verdicts: _Verdicts,
    documents: pl.Series,
    listed: tuple[list[ListedName], list[ListedName]],
    reasons: tuple[str, str],
    seed: int,
) -> Figures:
    """Return precision, recall and F1 with intervals over documents.

    `reasons` say why there is no figure: without stated rows, and without wanted ones.
    """
    right, extra, found, missed = (
        _count_by_document(passages, documents)
        for passages in (
            verdicts.right,
            verdicts.extra["passage"],
            verdicts.found,
            verdicts.missed["passage"],
        )
    )
    names = tuple(f"{name}_{part}" for part in ("precision", "recall", "f1"))
    n_stated, n_wanted = right + extra, found + missed
    if not n_wanted.any():
        return dict.fromkeys(names, reasons[1])
    intervals = (
        ratio_interval(right, n_stated, seed),
        ratio_interval(found, n_wanted, seed),
        f1_interval(right, n_stated, found, n_wanted, seed),
    )
    examples = [[str(one) for one in names[:MAX_EXAMPLES]] for names in (*listed, [])]
    return {
        key: Figure(interval, found) if interval else reasons[0]
        for key, interval, found in zip(names, intervals, examples, strict=True)
    }


def _count_by_document(passages: pl.Series, documents: pl.Series) -> npt.NDArray[np.int64]:
    """Return the number of rows of each document; `passages` has the passage of each row."""
    rows = documents.gather(passages).to_numpy()
    return np.bincount(rows, minlength=int(documents.max()) + 1)  # type: ignore[arg-type]


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
