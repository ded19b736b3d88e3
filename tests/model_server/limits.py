"""Rate limits as providers set them: a budget a minute, and a burst."""

from dataclasses import dataclass, field
from time import monotonic


@dataclass
class Bucket:
    """A token bucket with the capacity of `burst_seconds` of a limit per minute."""

    per_minute: float
    burst_seconds: float = 60.0
    taken: float = 0.0
    at: float = field(default_factory=monotonic)

    @property
    def size(self) -> float:
        return max(1.0, self.per_minute * self.burst_seconds / 60)

    def wait_for(self, amount: float) -> float:
        """Return the seconds until `amount` fits, 0 if it does now."""
        now = monotonic()
        self.taken = max(0.0, self.taken - (now - self.at) * self.per_minute / 60)
        self.at = now
        # What is larger than the bucket goes through when the bucket is full.
        free = self.size - self.taken - min(amount, self.size)
        return max(0.0, -free * 60 / self.per_minute)

    def headers(self, unit: str) -> dict[str, str]:
        return {
            f"x-ratelimit-limit-{unit}": f"{self.per_minute:.0f}",
            f"x-ratelimit-remaining-{unit}": f"{max(0.0, self.size - self.taken):.0f}",
            f"x-ratelimit-reset-{unit}": duration(self.taken * 60 / self.per_minute),
        }


def duration(seconds: float) -> str:
    """Format a duration for a header: 17ms, 1.5s, 6m0s."""
    if seconds < 1:
        return f"{1000 * seconds:.0f}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    return f"{minutes:.0f}m{rest:g}s" if minutes else f"{rest:g}s"


@dataclass
class Limits:
    """Limits of requests and tokens a minute; None is no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    concurrent: int | None = None
    burst_seconds: float = 60.0

    def __post_init__(self) -> None:
        given = {"requests": self.requests_per_minute, "tokens": self.tokens_per_minute}
        self.buckets = {
            unit: Bucket(limit, self.burst_seconds) for unit, limit in given.items() if limit
        }

    def refuse(self, n_running: int, tokens: int) -> tuple[str, dict[str, str]] | None:
        """Count a request; return a message and headers if it is over a limit."""
        if self.concurrent is not None and n_running > self.concurrent:
            return f"Too many concurrent requests: the limit is {self.concurrent}.", {}
        amounts = {"requests": 1, "tokens": tokens}
        for unit, bucket in self.buckets.items():
            if wait := bucket.wait_for(amounts[unit]):
                when = {"retry-after-ms": f"{1000 * wait + 1:.0f}"}
                when["retry-after"] = f"{int(wait) + 1}"
                message = f"Rate limit reached on {unit} per min. Try again in {duration(wait)}."
                return message, when
        for unit, bucket in self.buckets.items():
            bucket.taken += amounts[unit]
        return None

    def headers(self) -> dict[str, str]:
        return {
            name: value
            for unit, bucket in self.buckets.items()
            for name, value in bucket.headers(unit).items()
        }
