"""What can go wrong, by whose turn it is to mend it; and the exit codes.

Every message is one sentence or two: what happened, where, and what would be right.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status means."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    QUARANTINED = 3  # finished, but some units of work were left out and are listed
    BUDGET = 4
    WAITING = 5  # requests are in a batch; the same command collects the replies later
    INTERRUPTED = 130  # Ctrl-C: 128 + SIGINT, as shells report it


def describe_error(error: BaseException) -> str:
    """Say which error it is, on one line: the first paragraph of what it says."""
    said = " ".join(str(error).strip().partition("\n\n")[0].split()).rstrip(".")
    name = type(error).__name__
    return f"{name}: {said}" if said else name


class GraphRAGError(Exception):
    """Any failure that the program explains to its user."""

    exit_code = ExitCode.FAILED


class SettingsError(GraphRAGError):
    """`settings.yaml`, `.env` or `--set` says something that cannot be meant."""

    exit_code = ExitCode.WRONG_USE


class WorkflowError(GraphRAGError):
    """A workflow names an unknown step, or a step reads a table that none before it writes."""

    exit_code = ExitCode.WRONG_USE


class QueryError(GraphRAGError):
    """A query in SQL or Cypher is refused, is wrong, or takes more than it may."""

    exit_code = ExitCode.WRONG_USE


class InputError(GraphRAGError):
    """The input folder is missing, empty, or holds nothing that can be read."""

    exit_code = ExitCode.WRONG_USE


class TableError(GraphRAGError):
    """A table is missing, damaged, or does not have its columns."""


class ExportError(GraphRAGError):
    """The target of an export is taken, or a filter names what the index does not have."""

    exit_code = ExitCode.WRONG_USE


class StepError(GraphRAGError):
    """A step failed in a way that the program does not know."""


class ModelError(GraphRAGError):
    """A model cannot be reached, is not installed, or refuses to work."""


class OutageError(ModelError):
    """A model has not answered for as long as the settings allow."""


class BudgetError(GraphRAGError):
    """The next call to a model could cost more than the budget leaves."""

    exit_code = ExitCode.BUDGET


class WaitingError(GraphRAGError):
    """Requests to a model are in a batch, whose replies a later run collects."""

    exit_code = ExitCode.WAITING
