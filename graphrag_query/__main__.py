"""The command `graphrag-query`: answer questions from an index in the shell."""

import csv
import gc
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_index.errors import SettingsError, run_program
from graphrag_index.explaining_command import ExplainingCommand
from graphrag_index.storage.lancedb_stubs import stub_unused_imports
from graphrag_index.storage.working_copy import locate_output

if TYPE_CHECKING:
    from graphrag_index.llm.request import TextSink
    from graphrag_query.answer import Answer
    from graphrag_query.index import Index
    from graphrag_query.structured.sandbox import QueryResult

app = typer.Typer(
    help="Ask questions to an index that `graphrag-index run` has built.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

QuestionArgument = Annotated[str, typer.Argument(help="The question.", metavar="QUESTION")]
NamesArgument = Annotated[
    list[str], typer.Argument(help="A question, or names of entities.", metavar="QUESTION|NAME")
]
QueryArgument = Annotated[
    str | None, typer.Argument(help="The query; - reads it from the input.", metavar="QUERY")
]
RootOption = Annotated[Path, typer.Option("--root", help="Folder of settings.yaml.", metavar="DIR")]
IndexOption = Annotated[
    Path | None,
    typer.Option(
        "--index",
        help="Folder of the index, ours or Microsoft GraphRAG's, instead of `output`.",
        metavar="DIR",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting: section.key=value.", metavar="KEY=VALUE"),
]
AsOfOption = Annotated[
    int | None, typer.Option("--as-of", help="Ask an earlier version.", metavar="VERSION")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
ContextOption = Annotated[
    bool,
    typer.Option(
        "--show-context",
        help="Print the rows that were read (with a model: its context) before the answer, "
        "or after a streamed answer.",
    ),
]
StreamOption = Annotated[
    bool, typer.Option("--stream", help="Print the answer while it is being written.")
]
SessionOption = Annotated[
    Path | None,
    typer.Option("--session", help="Continue the conversation in this file.", metavar="FILE"),
]
WhereOption = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="Use only documents with this path, title, language or metadata.",
        metavar="COLUMN=PATTERN",
    ),
]
TypeOption = Annotated[
    list[str] | None,
    typer.Option("--type", help="Use only entities of this type.", metavar="TYPE"),
]
SinceOption = Annotated[
    str,
    typer.Option("--since", help="Use documents since a date such as 1914.", metavar="DATE"),
]
UntilOption = Annotated[
    str,
    typer.Option("--until", help="Use documents until a date such as 1914.", metavar="DATE"),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", help="Maximum rows (1,000).", metavar="ROWS", min=1)
]
TimeoutOption = Annotated[
    float | None,
    typer.Option("--timeout", help="Time limit of the query (30).", metavar="SECONDS"),
]
JsonRowsOption = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")]
SchemaOption = Annotated[bool, typer.Option("--schema", help="Print the schema, and exit.")]
MethodOption = Annotated[
    str, typer.Option("--method", help="Which search answers.", metavar="SEARCH")
]


def _open_index(
    root: Path, folder: Path | None, overrides: list[str] | None, as_of: int | None
) -> "Index":
    """Open the index in `folder`; without it, in the folder `output` of the settings in `root`.

    If `folder` is set, settings.yaml is optional: without it, the default settings apply.
    """
    import graphrag_query
    from graphrag_index.schema.settings.project_settings import load_settings

    settings = load_settings(root, tuple(overrides or ()), needed=folder is None)
    output = locate_output(root, settings) if folder is None else folder
    return graphrag_query.open(output, settings, root, as_of)


def _open_filtered(
    *,
    root: RootOption = Path(),
    index_: IndexOption = None,
    set_: SetOption = None,
    as_of: AsOfOption = None,
    where: WhereOption = None,
    type_: TypeOption = None,
    since: SinceOption = "",
    until: UntilOption = "",
) -> "Index":
    """Open the index and restrict it by the filters."""
    documents: dict[str, list[str]] = {}
    for condition in where or ():
        column, equals, pattern = condition.partition("=")
        if not (column and equals):
            raise SettingsError(f"--where {condition}: expected COLUMN=PATTERN.")
        documents.setdefault(column, []).append(pattern)
    index = _open_index(root, index_, set_, as_of)
    if documents or type_ or since or until:
        return index.where(documents, type_ or (), since, until)
    return index


def _with_index(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `_open_filtered` to a command of the program.

    The command gets the opened index and the options that the user has set.
    """
    options = signature(_open_filtered).parameters

    def run(**values: Any) -> None:
        opening = {name: values.pop(name) for name in options}
        with _open_filtered(**opening) as index:
            command(index, _write_options(opening), **values)

    own = list(signature(command).parameters.values())[2:]
    # Typer reads the arguments and options of a command from its signature.
    run.__dict__["__signature__"] = Signature([*own, *options.values()])
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    app.command(cls=ExplainingCommand)(run)
    return command


def _write_options(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Write the options of `_open_filtered` that differ from their defaults for a command line.

    Settings with an API key are left out, because the command is shown.
    """
    written: list[str] = []
    for name, parameter in signature(_open_filtered).parameters.items():
        given = values[name]
        if given != parameter.default:
            option = f"--{name.rstrip('_').replace('_', '-')}"
            for value in given if isinstance(given, list) else [given]:
                if name != "set_" or "api_key" not in value:
                    written += [option, str(value)]
    return tuple(written)


@dataclass(frozen=True)
class _Asked:
    """An opened index, with how its answer is wanted."""

    index: "Index"
    session: Path | None
    sink: "TextSink | None"

    def search(self, method: str, question: str, *names: str) -> "Answer":
        """Answer a question, in a conversation if there is one, or search for names."""
        if self.session is not None:
            conversation = self.index.conversation(self.session)
            return self.index.converse(conversation, question, method, sink=self.sink)
        return self.index.search(method, question, *names, sink=self.sink)


def _search(command: Callable[..., "Answer"]) -> Callable[..., "Answer"]:
    """Make a function from an index and a question, or names, a command of the program.

    The command prints the answer, and has the options of answers; conversations are of questions,
    and only `compare` has a table for --csv.
    """

    def answer(
        index: "Index",
        options: tuple[str, ...],
        *,
        json_: JsonOption = False,
        show_context: ContextOption = False,
        stream: StreamOption = False,
        csv_: CsvOption = False,
        session: SessionOption = None,
        **words: Any,
    ) -> None:
        def search(sink: "TextSink | None" = None) -> "Answer":
            return command(_Asked(index, session, sink), **words)

        asked = None if session is None else words["question"]
        _print_answer(search, options, json_, csv_, show_context, stream, asked)

    (own,) = list(signature(command).parameters.values())[1:]
    index, options, *shown, csv_, session, _ = signature(answer).parameters.values()
    shown += [csv_] if command.__name__ == "compare" else []
    shown += [session] if own.name == "question" else []
    answer.__dict__["__signature__"] = Signature([index, options, own, *shown])
    answer.__name__, answer.__doc__ = command.__name__.rstrip("_"), command.__doc__
    _with_index(answer)
    return command


@_search
def ask(asked: _Asked, question: QuestionArgument) -> "Answer":
    """Choose a search for a question, and answer with it."""
    return asked.search("ask", question)


@_search
def local(asked: _Asked, question: QuestionArgument) -> "Answer":
    """Ask about a person, place or thing."""
    return asked.search("local", question)


@_search
def global_(asked: _Asked, question: QuestionArgument) -> "Answer":
    """Ask about the whole corpus: answer from community reports."""
    return asked.search("global", question)


@_search
def basic(asked: _Asked, question: QuestionArgument) -> "Answer":
    """Ask about a passage: answer from similar text units."""
    return asked.search("basic", question)


@_search
def drift(asked: _Asked, question: QuestionArgument) -> "Answer":
    """Ask a broad question: answer from reports, then from details."""
    return asked.search("drift", question)


@_search
def lazy(asked: _Asked, question: QuestionArgument) -> "Answer":
    """Ask about anything, without reports."""
    return asked.search("lazy", question)


@_search
def compare(asked: _Asked, question: QuestionArgument) -> "Answer":
    """Compare things or periods that the question names: answer with a table."""
    return asked.search("compare", question)


@_search
def structured(asked: _Asked, question: QuestionArgument) -> "Answer":
    """Ask how many or which: a model writes a query."""
    return asked.search("structured", question)


@_search
def path(asked: _Asked, names: NamesArgument) -> "Answer":
    """Ask how two or more entities are connected."""
    return asked.search("path", *names)


@_search
def neighbourhood(asked: _Asked, names: NamesArgument) -> "Answer":
    """Show what surrounds an entity."""
    return asked.search("neighbourhood", *names)


@app.command(cls=ExplainingCommand)
def sql(
    query: QueryArgument = None,
    root: RootOption = Path(),
    index_folder: IndexOption = None,
    limit: LimitOption = None,
    timeout: TimeoutOption = None,
    json_: JsonRowsOption = False,
    csv_: CsvOption = False,
    as_of: AsOfOption = None,
    schema: SchemaOption = False,
    set_: SetOption = None,
) -> None:
    """Query the tables in SQL, such as SELECT type, count(*) FROM entities GROUP BY type."""
    with _open_index(root, index_folder, set_, as_of) as index:
        if schema:
            from graphrag_query.structured.queries import sql_schema

            print(sql_schema(index.store))
            return
        result = index.sql(_read_query(query), **_limits(limit, timeout))
        _print_rows(result, json_, csv_)


@app.command(cls=ExplainingCommand)
def cypher(
    query: QueryArgument = None,
    root: RootOption = Path(),
    index_folder: IndexOption = None,
    limit: LimitOption = None,
    timeout: TimeoutOption = None,
    json_: JsonRowsOption = False,
    csv_: CsvOption = False,
    as_of: AsOfOption = None,
    schema: SchemaOption = False,
    set_: SetOption = None,
) -> None:
    """Query the graph in Cypher, such as MATCH (a:Entity)-[:RELATED]-(b) RETURN a.title LIMIT 5."""
    if schema:
        from graphrag_query.structured.cypher_graph import graph_schema

        print(graph_schema())
        return
    with _open_index(root, index_folder, set_, as_of) as index:
        say = partial(print, file=sys.stderr)
        result = index.cypher(_read_query(query), say=say, **_limits(limit, timeout))
        _print_rows(result, json_, csv_)


def _read_query(query: str | None) -> str:
    """Return a query of the command line, or of the input."""
    if query is None:
        raise typer.BadParameter("write a query, or use --schema")
    return sys.stdin.read() if query == "-" else query


def _limits(max_rows: int | None, timeout: float | None) -> dict[str, Any]:
    """Return the limits of a query that the user has set."""
    limits = {"max_rows": max_rows, "timeout": timeout}
    return {name: value for name, value in limits.items() if value is not None}


@_with_index
def chat(
    index: "Index",
    options: tuple[str, ...],
    *,
    session: SessionOption = None,
    method: MethodOption = "ask",
) -> None:
    """Hold a conversation."""
    from graphrag_query.searches.router import check_method
    from graphrag_query.terminal import converse, show_status

    check_method(method)
    conversation = index.conversation(session)

    def ask(question: str) -> "Answer":
        with show_status():
            return index.converse(conversation, question, method).with_options(options)

    converse(ask)


def _print_answer(
    search: Callable[..., "Answer"],
    options: tuple[str, ...],
    as_json: bool,
    as_csv: bool,
    show_context: bool,
    stream: bool,
    question: str | None = None,
) -> None:
    """Run a search and print the answer; exit with 1 if the search failed.

    A command that the answer suggests gets the `options`. In a conversation, `question` is the
    question as the user wrote it.
    """
    from graphrag_query import terminal
    from graphrag_query.answer import Outcome
    from graphrag_query.answering.written_answer import AnswerStream

    if stream and not (as_json or as_csv):
        answer = terminal.print_stream(AnswerStream(lambda sink: search(sink=sink)))
    else:
        with terminal.show_status():
            answer = search()
    answer = answer.with_options(options)
    if as_json:
        print(json.dumps(answer.to_dict(show_context), ensure_ascii=False, indent=2))
    elif as_csv and answer.table:
        _write_csv(answer.table[0], (map(_format_cell, row.values()) for row in answer.table))
    elif as_csv:
        print(answer.text, file=sys.stderr)
    else:
        if question is not None:
            terminal.print_rewritten(question, answer)
        if show_context:
            context = answer.context.text if answer.context is not None else ""
            print(context or "The search has read nothing that a model would see.", end="\n\n")
        terminal.print_answer(answer, shown_already=stream)
    if answer.outcome not in (Outcome.ANSWERED, Outcome.NO_EVIDENCE):
        raise typer.Exit(1)


def _print_rows(result: "QueryResult", as_json: bool, as_csv: bool) -> None:
    """Print rows as JSON or CSV, or as a table. In a pipe, tabs separate the columns."""
    rows = ([_format_cell(value) for value in row] for row in result.rows)
    if as_json:
        print(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    elif as_csv:
        _write_csv(result.columns, rows)
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False)
        for column in result.columns:
            table.add_column(Text(column), overflow="fold")
        for cells in rows:
            table.add_row(*map(Text, cells))
        Console().print(table)
        print(f"{len(result):,} {'row' if len(result) == 1 else 'rows'}, {result.engine}")
    else:
        for line in (result.columns, *rows):
            print("\t".join(" ".join(cell.split()) for cell in line))
    if result.is_cut:
        print(f"Only the first {len(result):,} rows; raise --limit for more.", file=sys.stderr)


def _write_csv(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows([columns, *rows])


def _format_cell(value: Any) -> str:
    """Return a value as text: lists and objects as JSON, null as an empty text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Run the command line."""
    # Garbage collection while libraries load takes a tenth of the time of a short command.
    gc.disable()
    stub_unused_imports()
    run_program(app)


if __name__ == "__main__":
    main()
