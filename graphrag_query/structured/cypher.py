"""Questions in Cypher over the graph of an index; its database is made once for a version."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_query.structured.engine_cypher import library_name
from graphrag_query.structured.graph_schema import SCHEMA_VERSION
from graphrag_query.structured.limits import Limits
from graphrag_query.structured.read_only import check_cypher
from graphrag_query.structured.result import Result
from graphrag_query.structured.sandbox import run_query
from graphrag_query.structured.tables import table_files
from graphrag_query.structured.worker import DamagedError

if TYPE_CHECKING:
    from graphrag_query.retrieval.index_store import KnowledgeModel

Say = Callable[[str], None]
# A week: making a database has no limit that anyone would meet.
_NO_LIMIT = Limits(timeout=604_800.0)


def run_cypher(
    model: "KnowledgeModel", query: str, limits: Limits, say: Say = lambda text: None
) -> Result:
    """Run a query in Cypher over the graph of an index.

    The first query of a version makes its database, in `output/cypher/`; `say` is told so.

    Raises
    ------
    QueryError
        It is refused, wrong, or takes more than it may; or no engine is installed.
    """
    check_cypher(query)
    graph = graph_database(model, say)
    try:
        found = run_query("engine_cypher", {"graph": graph}, query, limits)
    except DamagedError:
        # A disk that was full, a program that was killed: it is only a copy.
        graph.unlink(missing_ok=True)
        graph = graph_database(model, say)
        found = run_query("engine_cypher", {"graph": graph}, query, limits)
    return replace(found, engine=library_name(), version=model.version.number)


def graph_database(model: "KnowledgeModel", say: Say) -> Path:
    """Return where the database of a version lies; make it if there is none.

    Of several processes one makes it and the others wait. A reader finds it whole or not at all.
    """
    path = model.store.graphs / f"{model.version.number}-{_made_of(model)}.db"
    if path.exists():
        return path
    from filelock import FileLock

    tables = table_files(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.parent / ".lock"):
        if path.exists():
            return path
        for leftover in path.parent.glob(".*.tmp*"):
            # One whose maker was killed may still be written to.
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)
        n_links = model.rows("relationships")
        say(
            f"Making the graph database of version {model.version.number}, once "
            f"({n_links:,} relationships; half a million take about a minute) ..."
        )
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        run_query("graph_build", tables, str(temporary), _NO_LIMIT)
        os.replace(temporary, path)
    try:
        model.check_kept()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _made_of(model: "KnowledgeModel") -> str:
    """Hash what a database depends on: the tables, the engine that wrote it, and our code."""
    name = library_name()
    tables = sorted((name, stored.digest) for name, stored in model.version.tables.items())
    made_of = repr((SCHEMA_VERSION, name, version_of(name.replace("_", "-")), tables))
    return blake2b(made_of.encode(), digest_size=8).hexdigest()
