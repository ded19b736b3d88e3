"""Steps of a few lines, as a user writes them, and workflows made of them.

Every row says of which `generation` it is, so that a test sees whether tables
belong together. With a `pause` a step takes its time between batches.
"""

import time
from collections.abc import Iterator

import polars as pl
from pydantic import BaseModel, ConfigDict

from graphrag_index.pipeline.workflow import Workflow
from graphrag_index.progress import Progress
from graphrag_index.schema.settings.settings import Settings
from graphrag_index.schema.table import Table
from graphrag_index.step import step

NUMBERS = Table("numbers", "one number", "the number", {"generation": pl.Int64, "number": pl.Int64})
SQUARES = Table("squares", "one square", "the number", {"generation": pl.Int64, "square": pl.Int64})
TOTALS = Table("totals", "the sum", "", {"generation": pl.Int64, "total": pl.Int64})
SIZES = Table("sizes", "how many numbers there are", "", {"size": pl.Int64})


class ListNumbers(BaseModel):
    """The numbers from `first` on."""

    model_config = ConfigDict(extra="forbid")

    generation: int = 0
    first: int = 1
    count: int = 3
    batches: int = 1
    pause: float = 0.0


class AddUp(BaseModel):
    """How the sum is made."""

    model_config = ConfigDict(extra="forbid")

    factor: int = 1
    fail: bool = False
    pause: float = 0.0


@step(writes=[NUMBERS])
def list_numbers(*, settings: ListNumbers, progress: Progress) -> Iterator[pl.DataFrame]:
    """Write numbers, batch by batch."""
    progress.start(settings.batches, "batches")
    for batch in range(settings.batches):
        time.sleep(settings.pause)
        first = settings.first + batch * settings.count
        yield pl.DataFrame(
            {
                "generation": [settings.generation] * settings.count,
                "number": range(first, first + settings.count),
            },
            schema=NUMBERS.schema,
        )
        progress.advance()


@step(writes=[SQUARES])
def square(numbers: pl.LazyFrame) -> pl.DataFrame:
    """Square each number."""
    return numbers.select("generation", square=pl.col("number") ** 2).collect()


@step(writes=[SIZES])
def measure(numbers: pl.LazyFrame) -> pl.DataFrame:
    """Count the numbers."""
    return numbers.select(size=pl.len()).collect()


@step(writes=[TOTALS])
def add_up(
    squares: pl.DataFrame, sizes: pl.DataFrame | None = None, *, settings: AddUp
) -> pl.DataFrame:
    """Add up the squares, and the size if there is one."""
    time.sleep(settings.pause)
    if settings.fail:
        raise ArithmeticError("The sum does not come out.")
    size = 0 if sizes is None else int(sizes["size"].sum())
    return squares.select(
        pl.col("generation").max(), total=pl.col("square").sum() * settings.factor + size
    )


@step(writes=["community_full_content"])
def embed(numbers: pl.DataFrame) -> pl.DataFrame:
    """Write a vector for each number."""
    return numbers.select(
        id=pl.col("number").cast(pl.String),
        community="number",
        level="generation",
        title=pl.lit("number"),
        rank=pl.lit(1.0),
        text=pl.format("number {}", "number"),
        vector=pl.concat_list(
            pl.col("number").cast(pl.Float32), pl.lit(1, pl.Float32)
        ).list.to_array(2),
    )


SMALL = Workflow("small", (list_numbers, square, measure, add_up))


def small_settings(list_numbers: dict[str, object] | None = None, **add_up: object) -> Settings:
    """Settings of the two steps that have some."""
    return Settings(steps={"list_numbers": list_numbers or {}, "add_up": add_up})
