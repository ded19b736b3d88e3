"""Which queries are refused before an engine sees them.

The engines are held by other means too: they open nothing but the tables, for reading, in a
process that can write no file. What stands here gives the reason in a sentence, and closes
what an engine would do nevertheless: Kùzu's `COPY` and `LOAD FROM` touch files even where
the database is read-only, and its `CHECKPOINT` damages it.
"""

import re
from collections.abc import Iterator

from graphrag_index.errors import QueryError

# SQL: what polars reads files by. DuckDB refuses these itself.
_READS_FILES = re.compile(r"\b(?:read|scan)_(?:csv|parquet|ipc|n?d?json|delta|iceberg)\w*", re.I)
_SQL_BEGINS = frozenset({"select", "with", "values", "from", "show", "describe", "summarize"})
_CYPHER_BEGINS = frozenset({"match", "optional", "unwind", "with", "return"})
# Clauses that change something, or reach outside of the database.
_CYPHER_CLAUSES = frozenset(
    "create merge set delete detach remove drop alter copy load export import install uninstall "
    "attach use call begin commit rollback checkpoint macro explain profile comment".split()
)
_SQL_TOKEN = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)|(?P<word>[^\W\d]\w*)|.", re.DOTALL)
_CYPHER_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|'(?:\\.|[^'\\])*(?:'|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)|`[^`]*(?:`|\Z)"
    # What stands behind a dot or a colon is the name of a property or a label.
    r"|[.:]\s*[^\W\d]\w*|(?P<word>[^\W\d]\w*)|(?P<end>;)|(?P<parameter>\$\w+)|\s+|.",
    re.DOTALL,
)


def check_sql(query: str) -> None:
    """See that a query in SQL only reads, as far as its first word tells.

    Raises
    ------
    QueryError
        It does not.
    """
    words = (token["word"] for token in _SQL_TOKEN.finditer(query) if token["word"])
    first = next(words, "")
    if not first:
        raise QueryError("The query is empty.")
    if first.lower() not in _SQL_BEGINS:
        raise QueryError(
            f"{first.upper()} is refused: the index is asked, never changed. Begin with SELECT "
            "or WITH."
        )


def check_reads_no_file(query: str) -> None:
    """See that a query for polars names none of the functions that read files.

    Raises
    ------
    QueryError
        It does, be it in a text.
    """
    if found := _READS_FILES.search(query):
        raise QueryError(f"{found[0]} is refused: a query reads the tables of the index alone.")


def check_cypher(query: str) -> None:
    """See that a query in Cypher is one that only reads the graph.

    Raises
    ------
    QueryError
        It is not.
    """
    words = list(_words(query))
    if not words:
        raise QueryError("The query is empty.")
    for word in words:
        if word.startswith("$"):
            # An engine takes it as null, and may find every row by it.
            raise QueryError(f"{word} has no value: write the value itself into the query.")
        if word == ";":
            raise QueryError("One query at a time: a semicolon may stand at its end only.")
        if word in _CYPHER_CLAUSES:
            raise QueryError(
                f"{word.upper()} is refused: the graph is asked, never changed, and a query "
                "reads nothing else. Where it is a name, put it between backticks."
            )
    if words[0] not in _CYPHER_BEGINS:
        raise QueryError(f"{words[0].upper()} is refused: begin with MATCH.")


def _words(query: str) -> Iterator[str]:
    """Give the bare words of a query in Cypher, in lower case, semicolons inside, parameters."""
    for token in _CYPHER_TOKEN.finditer(query.strip().rstrip(";")):
        if token["word"]:
            yield token["word"].lower()
        elif token["end"] or token["parameter"]:
            yield token[0]
