"""How many examples a property is tried on."""

import os

from hypothesis import settings

# `EXAMPLES=10 make test` tries ten times as many, for a proof that may take an hour.
TIMES = int(os.environ.get("EXAMPLES", "1"))
# Of a property that does not say how many.
USUAL = 40


def examples(n: int) -> settings:
    """So many examples, or a multiple of them: a decorator."""
    return settings(max_examples=n * TIMES)
