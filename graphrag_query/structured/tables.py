"""Which tables of an index can be asked in SQL, and where they lie."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_index.errors import SettingsError
from graphrag_index.schema.tables import TABLES

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel


def table_files(model: "KnowledgeModel") -> Mapping[str, Path]:
    """Return the Parquet files of the public tables by name, those of one's own steps too.

    Raises
    ------
    TableError
        One of them is missing or damaged.
    SettingsError
        The index is held to a part of its documents, which queries would not be.
    """
    if model.filters:
        raise SettingsError(
            "Queries read the tables whole: ask the index without filters, and write the "
            "conditions into the query."
        )
    model.check_kept()
    from graphrag_query.retrieval.microsoft_store import MicrosoftStore

    if isinstance(model.store, MicrosoftStore):
        return model.store.public_files()
    files = {}
    for name, stored in sorted(model.version.tables.items()):
        is_public = name not in TABLES or TABLES[name].kind == "public"
        if is_public and (stored.file or "").endswith(".parquet"):
            # Says which table is missing or damaged.
            model.store.scan(name, stored)
            files[name] = model.store.output / str(stored.file)
    return files
