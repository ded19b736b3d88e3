"""Metrics of a server in Prometheus' text format (version 0.0.4), without a library.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import threading
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "graphrag_"
# Upper bounds in seconds: a table read takes milliseconds, a global search with a model minutes.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Sample(NamedTuple):
    """The value of a gauge at the time of a request for metrics."""

    name: str
    value: float
    labels: dict[str, object]


# Help texts by the kind and name of each metric.
COUNTERS = {
    "requests_total": "Requests that were answered.",
    "questions_total": "Questions that have ended, by their outcome.",
    "model_calls_total": "Calls of models for answers.",
    "tokens_total": "Tokens of models for answers.",
    "cost_dollars_total": "Dollars for models for answers, as far as prices are known.",
}
HISTOGRAMS = {
    "request_seconds": "Time from a request to the end of its reply.",
    "question_seconds": "Time that a search took.",
}
GAUGES = {
    "questions_running": "Questions that are being answered.",
    "questions_waiting": "Questions that wait for others.",
    "jobs": "Runs by their state.",
    "index_version": "Current version of an index; 0 before the first run.",
    "build_info": "Version of the program.",
}

_Labels = tuple[tuple[str, str], ...]


class Metrics:
    """The counters and histograms of a server. Several threads may use them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: dict[str, dict[_Labels, float]] = {name: {} for name in COUNTERS}
        # Counts of each bucket, of which the last has no bound, and the sum.
        self._histograms: dict[str, dict[_Labels, tuple[list[int], float]]] = {
            name: {} for name in HISTOGRAMS
        }

    def add(self, name: str, amount: float = 1, **labels: object) -> None:
        """Increase a counter."""
        key = _as_key(labels)
        with self._lock:
            totals = self._totals[name]
            totals[key] = totals.get(key, 0) + amount

    def observe(self, name: str, seconds: float, **labels: object) -> None:
        """Add a time to a histogram."""
        key = _as_key(labels)
        with self._lock:
            counts, total = self._histograms[name].get(key, ([0] * (len(_BUCKETS) + 1), 0.0))
            counts[bisect_left(_BUCKETS, seconds)] += 1
            self._histograms[name][key] = counts, total + seconds

    def as_text(self, gauges: Iterable[Sample]) -> str:
        """Return all metrics as text; the values of gauges are given."""
        lines: list[str] = []
        with self._lock:
            for name, description in COUNTERS.items():
                lines += _heading(name, "counter", description)
                lines += [_line(name, key, n) for key, n in sorted(self._totals[name].items())]
            for name, description in HISTOGRAMS.items():
                lines += _heading(name, "histogram", description)
                for key, (counts, total) in sorted(self._histograms[name].items()):
                    lines += _histogram_lines(name, key, counts, total)
        samples = list(gauges)
        for name, description in GAUGES.items():
            lines += _heading(name, "gauge", description)
            lines += [
                _line(name, _as_key(sample.labels), sample.value)
                for sample in samples
                if sample.name == name
            ]
        return "\n".join(lines) + "\n"


def _as_key(labels: dict[str, object]) -> _Labels:
    return tuple((name, str(value)) for name, value in labels.items())


def _heading(name: str, kind: str, description: str) -> list[str]:
    return [f"# HELP {PREFIX}{name} {description}", f"# TYPE {PREFIX}{name} {kind}"]


def _line(name: str, labels: _Labels, value: float) -> str:
    text = ",".join(f'{key}="{content.translate(_ESCAPES)}"' for key, content in labels)
    return f"{PREFIX}{name}{{{text}}} {value:.15g}" if text else f"{PREFIX}{name} {value:.15g}"


def _histogram_lines(name: str, labels: _Labels, counts: list[int], total: float) -> list[str]:
    lines, count = [], 0
    for bound, n_more in zip((*map(str, _BUCKETS), "+Inf"), counts, strict=True):
        count += n_more
        lines.append(_line(f"{name}_bucket", (*labels, ("le", bound)), count))
    return [*lines, _line(f"{name}_sum", labels, total), _line(f"{name}_count", labels, count)]
