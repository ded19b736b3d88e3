"""Confidence that two entities are one, by names, types, documents and neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from graphrag_index.resolution.name_similarity import (
    MAX_DOUBTFUL,
    Similarity,
    are_apart,
    can_be_one_person,
    capped,
    compare,
    contradict,
)
from graphrag_index.resolution.parsed_name import Name
from graphrag_index.text.normalize import fold

# Added to the score of a doubtful pair for common documents and neighbours.
SAME_DOCUMENT = 0.05
NEIGHBOURS = 0.1
FIRST_LETTERS, INITIALS = "first letters", "initials"
# Entities of two kinds are two things, unless a person says otherwise.
CONTRADICTION = 0.6
# A short form that one text explains, or that fits one name alone in a common document.
EXPLAINED = 0.95
UNIQUE = 0.92
# Similar vectors say little: those of North and South Korea are similar.
WEIGHT_OF_VECTORS = 0.75


@dataclass(frozen=True)
class Pair:
    """Two entities by number, `left` < `right`, with the confidence and its reasons."""

    left: int
    right: int
    score: float
    evidence: tuple[str, ...]


class Context:
    """Texts, documents and neighbours of entities.

    Parameters
    ----------
    documents
        `entity` and `document`, without duplicates.
    links
        `entity` and `neighbour`, without duplicates, in both directions.
    texts
        Descriptions of the entities that need one.
    """

    def __init__(
        self, documents: pl.DataFrame, links: pl.DataFrame, texts: Mapping[int, str]
    ) -> None:
        self.documents, self.links, self.texts = documents, links, texts

    def common(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """Add counts of common values: `n_documents`, `n_neighbours`, `n_least`."""
        documents = self.documents.rename({"document": "what"})
        links = self.links.rename({"neighbour": "what"})
        degree = links.group_by("entity").agg(n=pl.len())
        wanted = pairs.select("left", "right")
        found = (
            wanted.join(
                _n_common(wanted, documents, "n_documents"), on=["left", "right"], how="left"
            )
            .join(_n_common(wanted, links, "n_neighbours"), on=["left", "right"], how="left")
            .join(degree, left_on="left", right_on="entity", how="left")
            .join(degree, left_on="right", right_on="entity", how="left", suffix="_right")
        )
        return found.select(
            "left",
            "right",
            pl.col("n_documents", "n_neighbours").fill_null(0),
            n_least=pl.min_horizontal(pl.col("n", "n_right").fill_null(0)),
        )


def _n_common(pairs: pl.DataFrame, of: pl.DataFrame, name: str) -> pl.DataFrame:
    """Count the values that both of each pair have, from the smaller side."""
    sizes = of.group_by("entity").agg(n=pl.len())
    sized = pairs.join(sizes, left_on="left", right_on="entity").join(
        sizes, left_on="right", right_on="entity", suffix="_right"
    )
    is_left = pl.col("n") <= pl.col("n_right")
    sized = sized.with_columns(
        small=pl.when(is_left).then("left").otherwise("right"),
        large=pl.when(is_left).then("right").otherwise("left"),
    )
    return (
        sized.join(of, left_on="small", right_on="entity")
        .join(of, left_on=["large", "what"], right_on=["entity", "what"], how="semi")
        .group_by("left", "right")
        .agg(pl.len().alias(name))
    )


def score_pairs(names: Sequence[Name], pairs: pl.DataFrame, context: Context) -> list[Pair]:
    """Score candidate pairs, and drop those that are not similar.

    `pairs` has `left`, `right`, `blocks` and, where vectors found it, `similarity`.
    Returned in the order of `pairs`.
    """
    looked: dict[tuple[int, int], Similarity] = {}
    for left, right, similarity in pairs.select("left", "right", "similarity").iter_rows():
        likeness = compare(names[left], names[right])
        if similarity is not None:
            likeness = _with_similarity(names[left], names[right], likeness, similarity)
        if likeness is not None:
            looked[left, right] = likeness
    kept = pl.DataFrame(list(looked), schema={"left": pl.Int64, "right": pl.Int64}, orient="row")
    means = _Meanings(names, looked, context.texts)
    scored = []
    rows = context.common(kept).sort("left", "right").iter_rows()
    for left, right, n_documents, n_neighbours, n_least in rows:
        a, b = names[left], names[right]
        likeness = means.settle(left, right, looked[left, right], n_documents > 0)
        if likeness.score <= MAX_DOUBTFUL:
            likeness = _in_context(likeness, n_documents, n_neighbours, n_least)
        if contradict(a, b):
            likeness = Similarity(
                min(likeness.score, CONTRADICTION),
                (*likeness.evidence, f"{a.kind} against {b.kind}"),
            )
        scored.append(Pair(left, right, round(likeness.score, 3), likeness.evidence))
    return scored


def _with_similarity(
    a: Name, b: Name, likeness: Similarity | None, similarity: float
) -> Similarity | None:
    said = f"vectors alike ({similarity:.2f})"
    if likeness is not None:
        return Similarity(likeness.score, (*likeness.evidence, said))
    if are_apart(a, b) or not can_be_one_person(a, b):
        return None
    return Similarity(WEIGHT_OF_VECTORS * similarity, (said,))


class _Meanings:
    """Possible meanings of each short form: acronyms and initials."""

    def __init__(
        self,
        names: Sequence[Name],
        looked: Mapping[tuple[int, int], Similarity],
        texts: Mapping[int, str],
    ) -> None:
        self.names = names
        # Acronym and letters of the name that a title itself explains.
        self.explained = {
            (fold(name.bracketed.replace(".", "")), name.plain.letters)
            for name in names
            if "acronym" in name.plain.left_out
        }
        self.by_text: dict[tuple[int, int], bool] = {}
        self.meant: dict[tuple[int, str], set[str]] = {}
        for (left, right), likeness in looked.items():
            for short, long in ((left, right), (right, left)):
                if FIRST_LETTERS in likeness.evidence and names[short].is_acronym:
                    is_explained = self._explains(short, long, texts)
                    self.by_text[left, right] = is_explained
                    if is_explained:
                        self._add(short, FIRST_LETTERS, long)
                elif INITIALS in likeness.evidence:
                    self._add(short, INITIALS, long)

    def _add(self, short: int, what: str, long: int) -> None:
        self.meant.setdefault((short, what), set()).add(self.names[long].plain.letters)

    def _explains(self, short: int, long: int, texts: Mapping[int, str]) -> bool:
        a, b = self.names[short], self.names[long]
        if (a.letters, b.plain.letters) in self.explained:
            return True
        return explains(f"{texts.get(short, '')}\n{texts.get(long, '')}", a.title, b.title)

    def settle(self, left: int, right: int, likeness: Similarity, together: bool) -> Similarity:
        """Raise the score of a short form that can mean one name only; lower some others."""
        evidence = likeness.evidence
        if FIRST_LETTERS in evidence and self.by_text.get((left, right)):
            short = left if self.names[left].is_acronym else right
            if len(self.meant[short, FIRST_LETTERS]) > 1:
                return replace(likeness, evidence=(*evidence, "others are explained as well"))
            return Similarity(EXPLAINED, (*evidence, "the text explains it"))
        if INITIALS in evidence:
            if any(len(self.meant[number, INITIALS]) > 1 for number in (left, right)):
                return replace(likeness, evidence=(*evidence, "others fit as well"))
            if together:
                return Similarity(UNIQUE, (*evidence, "the one that fits in its document"))
        if "without title" in evidence and not together:
            return capped(likeness)
        return likeness


def explains(text: str, one: str, other: str) -> bool:
    """Tell whether a text has "Royal Geographical Society (RGS)" or "RGS (Royal ...)"."""
    short, long = sorted((one, other), key=len)
    folded = fold(text.replace("(", " qqopen ").replace(")", " qqclose "))
    short, long = fold(short.replace(".", "")), fold(long)
    return any(
        f"{before} qqopen {inside} qqclose" in folded
        for before, inside in ((long, short), (short, long))
    )


def _in_context(
    likeness: Similarity, n_documents: int, n_neighbours: int, n_least: int
) -> Similarity:
    """Raise the score of a doubtful pair by common documents and neighbours."""
    score, evidence = likeness.score, list(likeness.evidence)
    if n_documents:
        score += SAME_DOCUMENT
        evidence.append(_counted(n_documents, "document") + " in common")
    if n_neighbours:
        score += NEIGHBOURS * n_neighbours / n_least
        evidence.append(_counted(n_neighbours, "neighbour") + " in common")
    return capped(Similarity(score, tuple(evidence)))


def _counted(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n > 1)}"
