"""Which index a command asks: that of the settings, or one whose folder is named."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphrag_query.index import Index


def open_index(
    root: Path, folder: Path | None, overrides: list[str] | None, as_of: int | None
) -> "Index":
    """Open the index in a folder, or else in the `output` of the settings in `root`.

    Where a folder is named, the settings need not be there: the defaults will do.
    """
    import graphrag_query
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(overrides or ()), needed=folder is None)
    output = root / settings.output if folder is None else folder
    return graphrag_query.open(output, settings, root, as_of)
