"""Recorded verdicts on pairs of answers, and their bias towards the first answer.

A record of a JSON Lines file is ``{"question": …, "first": …, "second": …, "winner": …}``: the
names of the systems in the order in which their answers were shown, and the winner: a name,
`first`, `second` or `tie`. Records of other programs have an object for each criterion, with a
winner such as "Answer 1": ``{"question": …, "Diversity": {"Winner": "Answer 2"}}``.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_evaluation.statistics import MAX_P_VALUE, SEED, bootstrap_interval, sign_flip_p_value
from graphrag_index.errors import SettingsError, why_unread

# Names of the answers of a record that does not name the systems.
_UNNAMED = "Answer 1", "Answer 2"
_PLACES = {"first": 0, "answer 1": 0, "1": 0, "second": 1, "answer 2": 1, "2": 1}


@dataclass(frozen=True)
class RecordedVerdict:
    """A verdict on two answers in the order in which they were shown.

    `place` is 0 if the first won, 1 if the second won, and None for a tie.
    """

    question: str
    criterion: str
    shown: tuple[str, str]
    place: int | None


@dataclass(frozen=True)
class PositionBias:
    """The influence of the order of the answers on verdicts.

    `first_share` is the share of the first place in the verdicts that name a winner, with its
    interval; 0.5 is fair. The p-value is that of flips of the places of a question together, in
    which both orders of two systems weigh the same: a better system is no bias. It is None if two
    systems were never shown in both orders.
    `flip_rate` is the share of the pairs seen in both orders in which the same place won twice.
    `wins` has for each system the share of its wins when shown first, and when shown second.
    """

    n: int
    n_ties: int
    first_share: float
    low: float
    high: float
    p_value: float | None
    flip_rate: float | None
    n_both_orders: int
    wins: Mapping[str, tuple[float | None, float | None]]

    @property
    def is_biased(self) -> bool:
        """Whether the wins of one place are more than chance."""
        return self.p_value is not None and self.p_value < MAX_P_VALUE


def read_verdicts(path: Path) -> list[RecordedVerdict]:
    """Read the verdicts of a file; raises `SettingsError` if a record has none."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {why_unread(error)}.") from error
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            record = json.loads(line)
        except ValueError as error:
            raise SettingsError(f"{where}: this is not JSON: {error}.") from error
        is_record = isinstance(record, Mapping)
        verdicts = list(_parse_record(record, str(number), where)) if is_record else []
        if not verdicts:
            raise SettingsError(f"{where}: a record with first, second and winner is expected.")
        found += verdicts
    if not found:
        raise SettingsError(f"{path} has no verdicts.")
    return found


def _parse_record(record: Mapping[str, Any], number: str, where: str) -> Iterator[RecordedVerdict]:
    shown = str(record.get("first", _UNNAMED[0])), str(record.get("second", _UNNAMED[1]))
    question = str(record.get("question", record.get("id", number)))
    named = [("", record)]
    named += [(name, value) for name, value in record.items() if isinstance(value, Mapping)]
    for criterion, value in named:
        winner = value.get("winner", value.get("Winner"))
        if winner is None:
            continue
        said = str(winner).strip()
        place = shown.index(said) if said in shown else _PLACES.get(said.lower())
        if place is None and said.lower() not in ("tie", "none", "neither", ""):
            raise SettingsError(f"{where}: the winner {said!r} is none of {shown}.")
        yield RecordedVerdict(question, criterion, shown, place)


def measure_position_bias(verdicts: Sequence[RecordedVerdict]) -> PositionBias:
    """Measure the influence of the order of the answers on verdicts.

    Raises `SettingsError` if no verdict names a winner.
    """
    decided = [verdict for verdict in verdicts if verdict.place is not None]
    interval = bootstrap_interval([float(verdict.place == 0) for verdict in decided])
    if interval is None:
        raise SettingsError("No verdict names a winner.")
    weights = _weigh_orders(decided)
    sums: dict[str, float] = defaultdict(float)
    for verdict in decided:
        weight = weights[verdict.shown]
        sums[verdict.question] += weight if verdict.place == 0 else -weight
    flips = _find_flips(verdicts)
    systems = dict.fromkeys(name for verdict in verdicts for name in verdict.shown)
    return PositionBias(
        n=len(decided),
        n_ties=len(verdicts) - len(decided),
        first_share=interval.mean,
        low=interval.low,
        high=interval.high,
        p_value=(
            sign_flip_p_value(np.array(list(sums.values())), SEED)
            if any(weights.values())
            else None
        ),
        flip_rate=sum(flips) / len(flips) if flips else None,
        n_both_orders=len(flips),
        wins={
            name: (_win_share(decided, name, 0), _win_share(decided, name, 1)) for name in systems
        },
    )


def _weigh_orders(verdicts: Sequence[RecordedVerdict]) -> dict[tuple[str, str], float]:
    """Return the weight of a verdict by order of the systems; 0 if the other order is missing."""
    counts = Counter(verdict.shown for verdict in verdicts)
    return {
        shown: 1.0 if shown == _UNNAMED else min(n, counts[shown[::-1]]) / n
        for shown, n in counts.items()
    }


def _win_share(verdicts: Sequence[RecordedVerdict], system: str, place: int) -> float | None:
    """Return the share of wins of a system where it was shown at a place; None if never."""
    shown = [verdict for verdict in verdicts if verdict.shown[place] == system]
    return sum(verdict.place == place for verdict in shown) / len(shown) if shown else None


def _find_flips(verdicts: Sequence[RecordedVerdict]) -> list[bool]:
    """Tell for each pair that was seen in both orders whether the same place won twice."""
    seen: dict[tuple[str, str, frozenset[str]], dict[tuple[str, str], int | None]] = {}
    for verdict in verdicts:
        key = verdict.question, verdict.criterion, frozenset(verdict.shown)
        seen.setdefault(key, {})[verdict.shown] = verdict.place
    both = [tuple(orders.values()) for orders in seen.values() if len(orders) == 2]
    return [one is not None and one == other for one, other in both]
