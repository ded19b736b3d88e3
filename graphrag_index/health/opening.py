"""Open whichever index a folder holds."""

from pathlib import Path

from graphrag_index.errors import SettingsError
from graphrag_index.health.microsoft_folder import open_folder
from graphrag_index.health.opened_index import Opened
from graphrag_index.health.own_folder import open_own
from graphrag_index.storage.table_store import INDEX_FILE


def open_index(folder: Path, as_of: int | None = None) -> Opened:
    """Open an index of ours, or the tables of another program.

    Raises
    ------
    TableError
        There is neither in the folder.
    SettingsError
        A version is asked of what keeps none.
    """
    for place in (folder, folder / "output"):
        if (place / INDEX_FILE).is_file():
            return open_own(place, as_of)
    if as_of is not None:
        raise SettingsError(f"{folder} is no index of ours: only ours keep versions for --as-of.")
    return open_folder(folder)
