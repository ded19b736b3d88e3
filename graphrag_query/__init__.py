"""Answer questions from an index.

    import graphrag_query
    index = graphrag_query.open("output")
    answer = index.local("Who was Tom Crean?")
    print(answer.text, answer.citations[0].quote)

CONTRIBUTING.md maps its files. Importing this package is fast: libraries are loaded when an index
is opened.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_query.answer import Answer, Citation, Outcome

if TYPE_CHECKING:
    from graphrag_index.schema.settings.project_settings import Settings
    from graphrag_query.index import Index

__all__ = ["Answer", "Citation", "Outcome", "open"]


def open(
    output: str | Path = "output",
    settings: "Settings | None" = None,
    root: str | Path | None = None,
    as_of: int | None = None,
    ledger: str | Path | None = None,
) -> "Index":
    """Open the index in an output folder, at its current version or at the version `as_of`.

    The folder may also contain the folder `output`, as a project does. It may be an output folder
    of Microsoft GraphRAG, or contain one; nothing is copied. The embedding model for such an index
    is the model in the `settings`.

    `settings` are the settings of the searches and models. The default is the settings of the
    index, which have no API keys. `root` is the folder of `settings.yaml`; files in its folder
    `prompts/` replace the built-in prompts. The default is the parent of the output folder.
    `ledger` is a folder in which replies of chat models are kept: equal requests, also of a later
    process, are paid for once, and the usage of an answer counts kept replies at what they cost.
    By default they are kept in memory.

    Raises
    ------
    TableError
        The folder has no index, or the index cannot be read.
    SettingsError
        The settings name another embedding model than the model of the index's vectors, or
        `as_of` is set for an index that keeps no earlier versions.
    """
    from graphrag_index.microsoft.read_files import is_microsoft_index
    from graphrag_index.storage.bucket import is_bucket
    from graphrag_index.storage.versions import INDEX_FILE
    from graphrag_index.storage.working_copy import locate_working_copy
    from graphrag_query.index import Index
    from graphrag_query.llm import LLMPool
    from graphrag_query.store.index_store import IndexStore

    output = locate_working_copy(str(output)) if is_bucket(str(output)) else Path(output)
    if not (output / INDEX_FILE).exists() and (output / "output" / INDEX_FILE).exists():
        output /= "output"
    root = Path(root) if root is not None else output.parent
    folder = Path(ledger) if ledger is not None else None
    if is_microsoft_index(output):
        from graphrag_index.errors import SettingsError
        from graphrag_index.microsoft.microsoft_store import MicrosoftStore
        from graphrag_index.schema.settings.project_settings import parse_settings

        if as_of is not None:
            raise SettingsError(
                f"{output} is an index of Microsoft GraphRAG, which keeps no earlier versions."
            )
        backend = MicrosoftStore(output, settings or parse_settings({}))
        models = settings.models if settings else {}
        store = IndexStore(backend, backend.version, models, root)
        used = settings or store.settings
        return Index(store, used, root, LLMPool(used, root, None, folder))
    store = IndexStore.open(output, settings.models if settings else None, as_of, root)
    store.check_search_tables()
    if settings is not None and as_of is None:
        store.embedder.check_settings(settings)
    used = settings or store.settings
    return Index(store, used, root, LLMPool(used, root, output, folder))
