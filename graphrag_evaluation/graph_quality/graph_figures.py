"""The measures of a graph, their meanings, and one measured figure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy.typing as npt

from graphrag_evaluation.statistics import Interval, ratio_interval

# Number of examples that a figure has.
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
