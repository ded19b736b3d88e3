"""Scores as models write them: a number, "4/5", "80 %", "8 out of 10"."""

import math
import re

_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)?")
_OUT_OF = re.compile(r"\s*(?:/|out of|of|von|sur|z)\s*(\d+(?:[.,]\d+)?)")


def read_score(value: object, highest: float) -> float | None:
    """Read a score from 0 to `highest`; None if there is none.

    What says of how many it is, or is a percentage, is brought to that scale. Of a list the
    first score counts.
    """
    if isinstance(value, list | tuple):
        return read_score(value[0], highest) if value else None
    if isinstance(value, bool) or value is None:
        return None
    text = str(value)
    # Longer ones are numbers that ran away, and cost time to read.
    number = _NUMBER.search(text[:200])
    if number is None:
        return None
    score = _as_number(number[0])
    scale = _OUT_OF.match(text, number.end())
    if scale and _as_number(scale[1]) > 0:
        score *= highest / _as_number(scale[1])
    elif text[number.end() :].lstrip().startswith("%"):
        score *= highest / 100
    return None if math.isnan(score) else min(float(highest), max(0.0, score))


def _as_number(text: str) -> float:
    return float(text.replace(",", "."))
