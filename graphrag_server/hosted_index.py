"""The indexes of a server: each is opened at its current version, or at an earlier one."""

import asyncio
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from fastapi.concurrency import run_in_threadpool

import graphrag_query
from graphrag_index.errors import TableError
from graphrag_index.health.checked_index import open_own
from graphrag_index.health.checks import check_index
from graphrag_index.health.health_report import report_as_json
from graphrag_index.schema.settings.project_settings import Settings, load_settings
from graphrag_index.storage.table_store import TableStore
from graphrag_index.storage.versions import INDEX_FILE
from graphrag_index.storage.working_copy import locate_output
from graphrag_query.index import Index
from graphrag_server.graph_map import GraphMap
from graphrag_server.problems import RequestError
from graphrag_server.tracing import hide_roots

# Maximum number of earlier versions that stay open.
MAX_EARLIER_VERSIONS = 4
# Maximum number of versions whose checks are kept.
_MAX_KEPT_CHECKS = 8


def name_paths(indexes: "Iterable[HostedIndex]") -> dict[str, str]:
    """Map paths of this machine to names that a client may see, the longest path first.

    That of a project is the name of its index; others are called by their last part.
    """
    # Models are kept in the home folder, if there is one.
    home = os.path.expanduser("~")
    names = {home: "~"} if len(home) > 1 else {}
    for index in indexes:
        root, folder = index.root, index.settings.load_documents.folder
        for path in (root, index.store.output, root / folder):
            if path == root or not path.resolve().is_relative_to(root.resolve()):
                forms = map(str, (path, path.absolute(), path.resolve()))
                # A relative path of one part, such as `.` or `docs`, may be a word of a message.
                name = index.name if path == root else path.name
                names |= {form: name for form in forms if os.sep in form}
    return dict(sorted(names.items(), key=lambda item: -len(item[0])))


class HostedIndex:
    """A project that the server serves under a name.

    A request keeps the `Index` that it got, so a new version never changes a reply that is being
    written. Several threads may use a hosted index.
    """

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        self.settings: Settings = load_settings(root)
        self.store = TableStore(locate_output(root, self.settings))
        # The first one is held while an earlier version is opened, which may take a second.
        self._earlier_lock, self._lock = threading.Lock(), threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._current: Index | None = None
        self._earlier: OrderedDict[int, Index] = OrderedDict()
        # One check at a time: a check of a large index takes half a minute.
        self._checking = asyncio.Lock()
        self._checks: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._maps: WeakKeyDictionary[Index, GraphMap] = WeakKeyDictionary()

    def open(self, as_of: int | None = None) -> Index:
        """Return the index at its current version, or at the version `as_of`.

        Raises RequestError if there is no index yet, or no such version.
        """
        if as_of is not None:
            with self._earlier_lock:
                return self._open_earlier(as_of)
        with self._lock:
            return self._open_current()

    def _open_current(self) -> Index:
        try:
            status = (self.store.output / INDEX_FILE).stat()
        except OSError:
            raise RequestError(
                503, "no_index_yet", f"The index {self.name} has not been built yet: start a run."
            ) from None
        stamp = (status.st_mtime_ns, status.st_ino)
        if self._current is None or stamp != self._stamp:
            # A request that still reads the version before keeps its own reference to it.
            self._current = graphrag_query.open(self.store.output, self.settings, self.root)
            self._stamp = stamp
        return self._current

    def _open_earlier(self, number: int) -> Index:
        if number in self._earlier:
            self._earlier.move_to_end(number)
            return self._earlier[number]
        try:
            index = graphrag_query.open(self.store.output, self.settings, self.root, number)
        except TableError as error:
            raise RequestError(404, "no_such_version", str(error)) from None
        self._earlier[number] = index
        if len(self._earlier) > MAX_EARLIER_VERSIONS:
            self._earlier.popitem(last=False)
        return index

    def map_of(self, index: Index) -> GraphMap:
        """Return the map of an opened version."""
        with self._lock:
            return self._maps.setdefault(index, GraphMap(index.store))

    async def check(self, version: int) -> dict[str, Any]:
        """Return the result of the check of a version; each version is checked once."""
        async with self._checking:
            if version not in self._checks:
                self._checks[version] = await run_in_threadpool(self._check, version)
                if len(self._checks) > _MAX_KEPT_CHECKS:
                    self._checks.popitem(last=False)
            return self._checks[version]

    def _check(self, version: int) -> dict[str, Any]:
        checked = open_own(self.store.output, version)
        health = report_as_json(check_index(checked, self.settings.check))
        # The path of the folder is of no use to a client.
        del health["index"]
        for check in health["checks"]:
            for finding in check["findings"]:
                finding["means"] = hide_roots(finding["means"])
        return health

    def close(self) -> None:
        """Close the connections to models."""
        with self._earlier_lock, self._lock:
            for index in (self._current, *self._earlier.values()):
                if index is not None:
                    index.close()
