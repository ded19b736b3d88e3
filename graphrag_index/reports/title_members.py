"""The members that the titles of reports without a model name."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from graphrag_index.reports.report import join_titles
from graphrag_index.schema.list_columns import Integers

# Numbers of entities in the title of a report, the first that gives a new title; then more.
ENTITIES_IN_TITLE = (3, 2, 4)


def gather_titles(titles: pl.Series, ranked: Sequence[Integers]) -> dict[int, str]:
    """Map the first members of each report to their titles."""
    first = [entities[: max(ENTITIES_IN_TITLE)] for entities in ranked]
    shown = np.unique(np.concatenate(first))
    return dict(zip(shown.tolist(), titles[shown], strict=True))


def choose_title_members(
    ranked: Integers, titles: pl.Series, first_titles: Mapping[int, str], used: set[str]
) -> list[int]:
    """Choose members for the title of a report: another number than three if the title is taken.

    A community and its largest sub-community often have the same main members. The title is
    added to `used`. `first_titles` has the titles of the first members.
    """
    lengths = [*ENTITIES_IN_TITLE, *range(max(ENTITIES_IN_TITLE) + 1, len(ranked) + 1)]
    for n in lengths:
        shown = ranked[:n].tolist()
        title = join_titles([first_titles.get(at) or titles[at] for at in shown])
        if title not in used:
            break
    used.add(title)
    return [int(entity) for entity in ranked[:n]]
