"""A log of requests and answers, in memory and in a file."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import time
from typing import Any, TextIO

SECRET_HEADERS = {"authorization", "api-key", "cookie", "proxy-authorization"}


@dataclass(slots=True)
class Asked:
    """One request; a line of a batch is one too.

    `key` is the hash of the body, `attempt` counts from 1 for each key. `status` is None until
    the answer was sent, 0 where the client left before or the connection was closed on it.
    """

    number: int
    path: str
    headers: dict[str, str]
    body: bytes
    key: str
    attempt: int
    arrival: float
    answered: float | None = None
    status: int | None = None
    fault: str | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RequestLog:
    """Requests in the order of arrival; `file` gets a line at arrival and at the answer."""

    def __init__(self, file: Path | None = None) -> None:
        self.requests: list[Asked] = []
        self.attempts: Counter[str] = Counter()
        self.file: TextIO | None = None
        if file:
            self.file = file.open("a", encoding="utf-8", buffering=1)

    def arrived(self, path: str, headers: dict[str, str], body: bytes) -> Asked:
        key = blake2b(body, digest_size=8).hexdigest()
        self.attempts[key] += 1
        public = {name: value for name, value in headers.items() if name not in SECRET_HEADERS}
        number = len(self.requests) + 1
        asked = Asked(number, path, public, body, key, self.attempts[key], time())
        self.requests.append(asked)
        self._write("arrival", asked, path=path, attempt=asked.attempt, time=asked.arrival)
        return asked

    def answered(self, asked: Asked, status: int) -> None:
        asked.status, asked.answered = status, time()
        self._write("answer", asked, status=status, fault=asked.fault, time=asked.answered)

    def _write(self, event: str, asked: Asked, **fields: object) -> None:
        if self.file:
            line = {"event": event, "number": asked.number, "key": asked.key, **fields}
            self.file.write(json.dumps(line) + "\n")

    def close(self) -> None:
        if self.file:
            self.file.close()


def read_log(file: Path) -> list[dict[str, Any]]:
    """Read the requests of a log file in the order of arrival, with their answers.

    `status` is None for a request that has no answer yet.
    """
    requests: dict[int, dict[str, Any]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        number = fields["number"]
        if fields.pop("event") == "arrival":
            arrival = fields.pop("time")
            requests[number] = {"status": None, "fault": None, "arrival": arrival, **fields}
        else:
            requests[number] |= {**fields, "answered": fields["time"]}
            del requests[number]["time"]
    return list(requests.values())


def counts(requests: Iterable[dict[str, Any]]) -> Counter[str]:
    """Count the requests of each body, by key."""
    return Counter(request["key"] for request in requests)
