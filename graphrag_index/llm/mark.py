"""Marks in the ledger, which tell that no reply was deleted or replaced since a step ended.

What a step made of replies holds as long as they are what they were. To know that without
reading them, a step leaves a mark in the ledger, and its record names it. The database itself
removes all marks together with the first reply that changes, whichever program changes it. A
ledger that was restored from an older copy, or is another, has another mark or none.
"""

from typing import Protocol
from uuid import uuid4

# Part of the schema of the ledger. A request that had no reply changes nothing.
TRIGGERS = """
CREATE TRIGGER IF NOT EXISTS reply_replaced AFTER UPDATE OF key, state, reply ON requests
WHEN old.state = 'done' BEGIN DELETE FROM facts WHERE name LIKE 'mark %'; END;
CREATE TRIGGER IF NOT EXISTS reply_deleted AFTER DELETE ON requests
WHEN old.state = 'done' BEGIN DELETE FROM facts WHERE name LIKE 'mark %'; END;
"""


class Facts(Protocol):
    """What keeps facts beside the replies: the ledger, or a model over one."""

    def recall(self, name: str) -> str | None: ...

    def remember(self, name: str, value: str) -> None: ...


def begin_mark(facts: Facts, step: str) -> None:
    """Note that a step begins, whose mark is to be left at its end."""
    facts.remember(_begun(step), "")


def leave_mark(facts: Facts, step: str) -> str:
    """Leave the mark of a step; empty if a reply changed since it began.

    That reply may be one that the step had read before, such as where the same was asked twice
    at once.
    """
    if facts.recall(_begun(step)) is None:
        return ""
    mark = uuid4().hex
    facts.remember(_left(step), mark)
    return mark


def is_marked(facts: Facts, step: str, mark: str) -> bool:
    """Tell whether all replies that were there when a step left its mark are there unchanged."""
    return mark != "" and facts.recall(_left(step)) == mark


def _begun(step: str) -> str:
    return f"mark begun by {step}"


def _left(step: str) -> str:
    return f"mark of {step}"
