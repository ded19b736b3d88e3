"""Which versions of the LanceDB tables stay, and which one others see.

LanceDB itself deletes either nothing that is tagged or everything that is old, and puts small
files together while it does. So the lists of what belongs to a version are deleted here, and
LanceDB then deletes what stands in no list any more, while the newest version is an empty one.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from graphrag_index.errors import TableError
from graphrag_index.storage.vector_store import connect, failures_of_the_disk
from graphrag_index.storage.versions import manifest_name

# No version is as old as this, so that LanceDB deletes none by its age.
_NEVER = timedelta(days=36_500)


def delete_versions(folder: Path, name: str, keep: Iterable[int], newest: int) -> None:
    """Delete all versions of a table but those to keep, and what only they have.

    `newest`, one of those kept, is what a program sees that opens the table without a version.

    Raises
    ------
    TableError
        The table cannot be opened, and nothing of it was deleted.
    """
    kept = set(keep)
    table = _open(folder, name)
    with failures_of_the_disk(folder):
        tags = table.tags.list()
        for tag, about in tags.items():
            if about["version"] not in kept:
                table.tags.delete(tag)
        # Who cleans up with LanceDB's own means is told of them.
        for version in kept - {about["version"] for about in tags.values()}:
            table.tags.create(f"kept-{version}", version)
        empty = connect(folder).create_table(name, table.schema.empty_table(), mode="overwrite")
        manifests = folder / f"{name}.lance" / "_versions"
        stay = {manifest_name(version) for version in (*kept, int(empty.version))}
        for path in manifests.glob("*.manifest"):
            if path.name not in stay:
                path.unlink()
        empty.optimize(cleanup_older_than=_NEVER, delete_unverified=True)
        empty.restore(newest)
        (manifests / manifest_name(int(empty.version) - 1)).unlink(missing_ok=True)


def show_versions(folder: Path, versions: Mapping[str, int]) -> None:
    """Make these versions of tables those that a program sees that opens one without a version."""
    for name, version in versions.items():
        table = _open(folder, name)
        with failures_of_the_disk(folder):
            table.restore(version)


def _open(folder: Path, name: str) -> Any:
    try:
        return connect(folder).open_table(name)
    except (ValueError, RuntimeError, OSError) as error:
        raise TableError(
            f"The vectors {name} cannot be opened in {folder}: run `graphrag-index run` to write "
            "them again."
        ) from error
