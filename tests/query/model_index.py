"""The index of the sample, asked with a model behind a server."""

from pathlib import Path

import graphrag_query
from graphrag_index.schema.settings.settings import load_settings
from graphrag_query.index import Index
from tests.server import Server


def index_behind(server: Server, sample_project: Path) -> Index:
    """Open the index so that answers are written by the server's model; use it in a `with`."""
    settings = load_settings(
        sample_project,
        (
            f"models.chat.base_url={server.url}",
            "models.chat.model=test-model",
            "models.chat.timeout=2",
            "search.model=chat",
            "search.retry_seconds=1",
        ),
    )
    return graphrag_query.open(sample_project / "output", settings)
