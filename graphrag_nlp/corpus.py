"""Services that the work on a whole corpus needs, and the options of its caller."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import polars as pl

# The rows of a shard, or of its result: frames by name.
ShardFrames = Mapping[str, pl.DataFrame]
T = TypeVar("T")


class NameOptions(Protocol):
    """Options of `find_mentions`, such as the settings of the step `extract_graph_nlp`."""

    @property
    def noun_phrases(self) -> bool:
        """Whether recurring noun phrases are entities, too."""

    @property
    def merge_variants(self) -> bool:
        """Whether the variants of a name are one entity."""

    @property
    def min_frequency(self) -> int:
        """Minimum number of mentions of an entity."""

    @property
    def min_frequency_noun_phrase(self) -> int:
        """Minimum number of mentions of a noun phrase."""

    @property
    def min_frequency_caseless(self) -> int:
        """Minimum number of mentions of a name in a script without capital letters."""


class Progress(Protocol):
    """A counter of finished units, which may be displayed."""

    def start(self, total: int | None, unit: str) -> None:
        """Start counting `total` units, such as "documents"; None: the total is unknown."""

    def advance(self, n: int = 1) -> None:
        """Add `n` to the number of finished units."""


class Shards(Protocol):
    """A way to process rows shard by shard, for example in several processes."""

    def map(
        self,
        function: Callable[..., ShardFrames],
        shards: Iterable[tuple[T, ShardFrames]],
        *shared: Any,
        keep_parts: bool = False,
    ) -> Iterator[tuple[T, ShardFrames]]:
        """Yield (context, `function(shard, *shared)`) for each (context, shard), in order.

        `function` is defined at the top of a module and depends on nothing but its arguments:
        other processes may call it. `shared` is equal for all shards, and can be pickled. With
        `keep_parts`, results may be stored and used again for equal shards.
        """
