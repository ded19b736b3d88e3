"""Ask an index.

    import graphrag_query
    index = graphrag_query.open("output")
    answer = index.local("Who was Tom Crean?")
    print(answer.text, answer.citations[0].quote)

index.py       the opened index, one method a search; answer.py, the result of a search
searches/      one file a search; their table and the choice among them in router.py
question/      the question: its words, the names in it linked to entities, conversations
retrieval/     tables, vectors and links of an index, filters, rankings, paths
answering/     contexts, models, written and extractive answers, citations
structured/    questions in SQL and Cypher
display/       answers in a terminal and in notebooks, graphs as pictures

Importing this package is cheap: libraries are loaded when an index is opened.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_query.answer import Answer, Citation, Outcome

if TYPE_CHECKING:
    from graphrag_index.schema.settings.settings import Settings
    from graphrag_query.index import Index

__all__ = ["Answer", "Citation", "Outcome", "open"]


def open(
    output: str | Path = "output",
    settings: "Settings | None" = None,
    root: str | Path | None = None,
    as_of: int | None = None,
) -> "Index":
    """Open the index in an output folder, at its current version or an earlier one, `as_of`.

    The folder may be one that Microsoft GraphRAG wrote, or contain its `output`; nothing is
    copied. The model of its vectors is the one in the `settings`.

    `settings` are those of the searches and the models; without them, those that the index
    was made with, which have no keys. `root` is the folder of `settings.yaml`, where `prompts/`
    may replace the prompts; without it, the parent of the output folder.

    Raises
    ------
    TableError
        There is no index in that folder, or it cannot be read.
    SettingsError
        The settings name another embedding model than the one that made its vectors, or an
        earlier version is asked of an index that keeps none.
    """
    from graphrag_index.microsoft.read_files import is_microsoft
    from graphrag_query.index import Index
    from graphrag_query.retrieval.index_store import IndexStore

    output = Path(output)
    root = Path(root) if root is not None else output.parent
    if is_microsoft(output):
        from graphrag_index.errors import SettingsError
        from graphrag_index.microsoft.microsoft_store import MicrosoftStore
        from graphrag_index.schema.settings.settings import parse_settings

        if as_of is not None:
            raise SettingsError(
                f"{output} is an index of Microsoft GraphRAG, which keeps no earlier versions."
            )
        backend = MicrosoftStore(output, settings or parse_settings({}))
        models = settings.models if settings else {}
        return Index(IndexStore(backend, backend.version, models), settings, root)
    store = IndexStore.open(output, settings.models if settings else None, as_of)
    store.check_search_tables()
    if settings is not None and as_of is None:
        store.embedder.check_settings(settings)
    return Index(store, settings, root)
