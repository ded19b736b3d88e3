"""The user's cache folder: downloaded models, and copies of buckets."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return `$GRAPHRAG_INDEX_CACHE`, or `graphrag-index` in the user's cache folder."""
    if own := os.environ.get("GRAPHRAG_INDEX_CACHE"):
        return Path(own)
    user_folder = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME")
    return (Path(user_folder) if user_folder else Path.home() / ".cache") / "graphrag-index"
