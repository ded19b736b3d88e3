"""The folders of a project that evaluations and tunings write."""

from contextlib import closing
from pathlib import Path

from graphrag_index.errors import SettingsError
from graphrag_index.llm.ledger import FILE, Ledger
from graphrag_index.llm.request import Spending

# Reports of evaluations, and the replies of models to them.
EVALUATIONS = "evaluations"
# Proposals of `tune`, and the replies of models for them.
TUNING = "tuning"


def check_folder_name(name: str) -> None:
    """Raise `SettingsError` if the name of a report or a proposal cannot be that of a folder."""
    # Windows drops dots and spaces at the end, and has another use for a colon.
    ends_well = bool(name) and name == name.strip().strip(".")
    if not ends_well or not name.isprintable() or set(name) & set("/\\:"):
        raise SettingsError(
            f"--name {name!r} cannot name a folder: use letters, digits and hyphens."
        )


def spent_in(project: Path) -> Spending:
    """Return what all evaluations of a project have paid for so far, answers and judgements."""
    folder = project / EVALUATIONS
    if not (folder / FILE).exists():
        return Spending()
    with closing(Ledger(folder, read_only=True)) as ledger:
        # A full disk leaves a file without tables.
        if not ledger.fetch_rows("SELECT 1 FROM sqlite_schema WHERE name = 'calls'"):
            return Spending()
        return ledger.spent_for(ledger.version)
