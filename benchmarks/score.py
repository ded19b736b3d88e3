"""Score an index against the ground truth of its planted corpus.

python benchmarks/score.py OUTPUT GROUND_TRUTH.json
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import Any

import polars as pl


def score(output: Path, ground_truth: Path) -> dict[str, float]:
    """Compare what was found with what was planted.

    Names are compared without case, relationships without direction. `ari_level_<n>` is the
    adjusted Rand index of the communities of a level against the planted ones, over the planted
    entities that were found. Levels are counted from 0 below the themes.
    """
    truth = json.loads(ground_truth.read_text(encoding="utf-8"))
    planted = pl.DataFrame(truth["entities"]).select(title=_fold("name"), topic="topic")
    entities = pl.read_parquet(output / "entities.parquet", columns=["id", "title"])
    relationships = pl.read_parquet(output / "relationships.parquet", columns=["source", "target"])
    communities = pl.read_parquet(output / "communities.parquet")
    if "theme" in communities.columns:
        communities = communities.filter(~pl.col("theme"))
    communities = communities.select(
        "community", "entity_ids", level=pl.col("level") - pl.col("level").min()
    )
    entities = entities.with_columns(_fold("title"))
    scores = {
        **_recall_and_precision("entity", planted.select("title"), entities.select("title")),
        **_recall_and_precision(
            "relation", _pairs(pl.DataFrame(truth["relations"])), _pairs(relationships)
        ),
    }

    topic = entities.join(planted, on="title").select("id", "topic")
    members = communities.explode("entity_ids").join(topic, left_on="entity_ids", right_on="id")
    for (level,), rows in members.sort("level").group_by("level", maintain_order=True):
        scores[f"ari_level_{level}"] = adjusted_rand_index(rows["topic"], rows["community"])
    return scores


def _fold(column: str) -> pl.Expr:
    return pl.col(column).str.to_lowercase()


def _pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the two names of each row in alphabetical order."""
    ends = (_fold("source"), _fold("target"))
    return rows.select(one=pl.min_horizontal(ends), other=pl.max_horizontal(ends))


def _recall_and_precision(
    name: str, planted: pl.DataFrame, found: pl.DataFrame
) -> dict[str, float]:
    planted, found = planted.unique(), found.unique()
    right = planted.join(found, on=planted.columns, how="semi").height
    return {
        f"{name}_recall": right / planted.height,
        f"{name}_precision": right / found.height if found.height else 0.0,
    }


def adjusted_rand_index(left: Sequence[Any] | pl.Series, right: Sequence[Any] | pl.Series) -> float:
    """Tell how far two partitions of the same things agree: 1 wholly, 0 as by chance.

    Hubert & Arabie, Comparing partitions, Journal of Classification 2 (1985).
    """
    together = _pairs_within(Counter(zip(left, right, strict=True)))
    of_left, of_right = _pairs_within(Counter(left)), _pairs_within(Counter(right))
    by_chance = of_left * of_right / max(1, comb(len(left), 2))
    at_most = (of_left + of_right) / 2
    return 1.0 if at_most == by_chance else (together - by_chance) / (at_most - by_chance)


def _pairs_within(groups: Counter[Any]) -> int:
    return sum(comb(size, 2) for size in groups.values())


if __name__ == "__main__":
    print(json.dumps(score(Path(sys.argv[1]), Path(sys.argv[2])), indent=2))
