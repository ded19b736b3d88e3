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
    INTERRUPTED = 130  # Ctrl-C: 128 + SIGINT, as shells report it


class GraphRAGError(Exception):
    """Any failure that the program explains to its user."""

    exit_code = ExitCode.FAILED


class SettingsError(GraphRAGError):
    """`settings.yaml`, `.env` or `--set` says something that cannot be meant."""

    exit_code = ExitCode.WRONG_USE


class WorkflowError(GraphRAGError):
    """A workflow names an unknown step, or a step reads a table that none before it writes."""

    exit_code = ExitCode.WRONG_USE


class InputError(GraphRAGError):
    """The input folder is missing, empty, or holds nothing that can be read."""

    exit_code = ExitCode.WRONG_USE


class TableError(GraphRAGError):
    """A table is missing, damaged, or does not have its columns."""


class ModelError(GraphRAGError):
    """A model cannot be reached, is not installed, or refuses to work."""
