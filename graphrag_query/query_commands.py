"""The commands `sql` and `cypher`, which print rows as a table, JSON or CSV; shared options."""

import csv
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from graphrag_query.index import Index
    from graphrag_query.structured.sandbox import QueryResult

Root = Annotated[Path, typer.Option("--root", help="Folder of settings.yaml.", metavar="DIR")]
IndexFolder = Annotated[
    Path | None,
    typer.Option(
        "--index",
        help="Folder of the index, ours or Microsoft GraphRAG's, instead of `output`.",
        metavar="DIR",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting: section.key=value.", metavar="KEY=VALUE"),
]
AsOf = Annotated[
    int | None, typer.Option("--as-of", help="Ask an earlier version.", metavar="VERSION")
]
Query = Annotated[
    str | None, typer.Argument(help="The query; - reads it from the input.", metavar="QUERY")
]
Limit = Annotated[
    int | None, typer.Option("--limit", help="Rows at most (1,000).", metavar="ROWS", min=1)
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", help="End it after so long (30).", metavar="SECONDS")
]
JsonRows = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")]
Schema = Annotated[bool, typer.Option("--schema", help="Print what can be asked, and end.")]


# The help of each query language.
LANGUAGES = {
    "sql": "Ask the tables in SQL, such as SELECT type, count(*) FROM entities GROUP BY type.",
    "cypher": "Ask the graph in Cypher, such as MATCH (a:Entity)-[:RELATED]-(b) RETURN a.title "
    "LIMIT 5.",
}


def open_index(
    root: Path, folder: Path | None, overrides: list[str] | None, as_of: int | None
) -> "Index":
    """Open the index in a folder, or else in the `output` of the settings in `root`.

    With a folder, settings.yaml may be missing: the defaults apply.
    """
    import graphrag_query
    from graphrag_index.schema.settings.settings import load_settings

    settings = load_settings(root, tuple(overrides or ()), needed=folder is None)
    output = root / settings.output if folder is None else folder
    return graphrag_query.open(output, settings, root, as_of)


def query_command(language: str) -> Callable[..., None]:
    """Make the command of a query language, `sql` or `cypher`."""

    def command(
        query: Query = None,
        root: Root = Path(),
        index_folder: IndexFolder = None,
        limit: Limit = None,
        timeout: Timeout = None,
        json_: JsonRows = False,
        csv_: Csv = False,
        as_of: AsOf = None,
        schema: Schema = False,
        set_: Set = None,
    ) -> None:
        if schema and language == "cypher":
            from graphrag_query.structured.cypher_graph import graph_schema

            print(graph_schema())
            return
        with open_index(root, index_folder, set_, as_of) as index:
            if schema:
                from graphrag_query.structured.queries import sql_schema

                print(sql_schema(index.store))
                return
            limits: dict[str, Any] = {"max_rows": limit, "timeout": timeout}
            limits = {name: value for name, value in limits.items() if value is not None}
            text = _read(query)
            if language == "sql":
                result = index.sql(text, **limits)
            else:
                result = index.cypher(text, say=partial(print, file=sys.stderr), **limits)
            _print(result, json_, csv_)

    return command


def _read(query: str | None) -> str:
    if query is None:
        raise typer.BadParameter("give a query, or --schema to see what can be asked")
    return sys.stdin.read() if query == "-" else query


def _print(result: "QueryResult", as_json: bool, as_csv: bool) -> None:
    """Print rows as JSON or CSV; else as a table in a terminal, with tabs in a pipe."""
    rows = ([_cell(value) for value in row] for row in result.rows)
    if as_json:
        print(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(rows)
    elif sys.stdout.isatty():
        _print_table(result.columns, rows)
        print(f"{len(result):,} {'row' if len(result) == 1 else 'rows'}, {result.engine}")
    else:
        for cells in (result.columns, *rows):
            print("\t".join(" ".join(cell.split()) for cell in cells))
    if result.is_cut:
        print(f"Only the first {len(result):,} rows; --limit asks for more.", file=sys.stderr)


def _cell(value: Any) -> str:
    """Write a value: lists and objects as JSON, null as an empty text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print_table(columns: Iterable[str], rows: Iterable[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(Text(column), overflow="fold")
    for cells in rows:
        table.add_row(*map(Text, cells))
    Console().print(table)
