"""The command `graphrag-query`: answer questions from an index in the shell."""

import csv
import gc
import json
import sys
import tomllib
from collections.abc import Callable, Mapping
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

_TEXTS = tomllib.loads(Path(__file__).with_name("command_line.toml").read_text(encoding="utf-8"))
_ARGUMENTS = {name: typer.Argument(**texts) for name, texts in _TEXTS["arguments"].items()}
_OPTIONS = {name: typer.Option(f"--{name}", **texts) for name, texts in _TEXTS["options"].items()}

QuestionArgument = Annotated[str, _ARGUMENTS["question"]]
NamesArgument = Annotated[list[str], _ARGUMENTS["names"]]
QueryArgument = Annotated[str | None, _ARGUMENTS["query"]]
RootOption = Annotated[Path, _OPTIONS["root"]]
IndexOption = Annotated[Path | None, _OPTIONS["index"]]
SetOption = Annotated[list[str] | None, _OPTIONS["set"]]
AsOfOption = Annotated[int | None, _OPTIONS["as-of"]]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
ContextOption = Annotated[bool, _OPTIONS["show-context"]]
StreamOption = Annotated[bool, _OPTIONS["stream"]]
SessionOption = Annotated[Path | None, _OPTIONS["session"]]
WhereOption = Annotated[list[str] | None, _OPTIONS["where"]]
TypeOption = Annotated[list[str] | None, _OPTIONS["type"]]
SinceOption = Annotated[str, _OPTIONS["since"]]
UntilOption = Annotated[str, _OPTIONS["until"]]
LimitOption = Annotated[int | None, _OPTIONS["limit"]]
TimeoutOption = Annotated[float | None, _OPTIONS["timeout"]]
JsonRowsOption = Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")]
CsvOption = Annotated[bool, _OPTIONS["csv"]]
SchemaOption = Annotated[bool, _OPTIONS["schema"]]
MethodOption = Annotated[str, _OPTIONS["method"]]


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
    """Add the options of `_open_filtered` to a command.

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
    return run


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


def _search_command(method: str) -> Callable[..., None]:
    """Return the command function of a search."""

    def command(
        index: "Index",
        options: tuple[str, ...],
        question: QuestionArgument,
        *,
        json_: JsonOption = False,
        show_context: ContextOption = False,
        stream: StreamOption = False,
        session: SessionOption = None,
    ) -> None:
        search = partial(index.search, method, question)
        if session is not None:
            search = partial(index.converse, index.conversation(session), question, method)
        asked = None if session is None else question
        _print_answer(search, options, json_, show_context, stream, asked)

    return _with_index(command)


def _names_command(method: str) -> Callable[..., None]:
    """Return the command function of a search that takes a question or names."""

    def command(
        index: "Index",
        options: tuple[str, ...],
        names: NamesArgument,
        *,
        json_: JsonOption = False,
        show_context: ContextOption = False,
        stream: StreamOption = False,
    ) -> None:
        _print_answer(partial(index.search, method, *names), options, json_, show_context, stream)

    return _with_index(command)


def _query_command(language: str) -> Callable[..., None]:
    """Return the command function of a query language, `sql` or `cypher`."""

    def command(
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
        if schema and language == "cypher":
            from graphrag_query.structured.cypher_graph import graph_schema

            print(graph_schema())
            return
        with _open_index(root, index_folder, set_, as_of) as index:
            if schema:
                from graphrag_query.structured.queries import sql_schema

                print(sql_schema(index.store))
                return
            limits: dict[str, Any] = {"max_rows": limit, "timeout": timeout}
            limits = {name: value for name, value in limits.items() if value is not None}
            if query is None:
                raise typer.BadParameter("write a query, or use --schema")
            text = sys.stdin.read() if query == "-" else query
            if language == "sql":
                result = index.sql(text, **limits)
            else:
                result = index.cypher(text, say=partial(print, file=sys.stderr), **limits)
            _print_rows(result, json_, csv_)

    return command


for _name, _help in _TEXTS["searches"].items():
    app.command(_name, help=_help, cls=ExplainingCommand)(_search_command(_name))
for _name, _help in _TEXTS["searches_of_names"].items():
    app.command(_name, help=_help, cls=ExplainingCommand)(_names_command(_name))
for _name, _help in _TEXTS["query_languages"].items():
    app.command(_name, help=_help, cls=ExplainingCommand)(_query_command(_name))


@app.command(cls=ExplainingCommand)
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

    if stream and not as_json:
        answer = terminal.print_stream(AnswerStream(lambda sink: search(sink=sink)))
    else:
        with terminal.show_status():
            answer = search()
    answer = answer.with_options(options)
    if as_json:
        print(json.dumps(answer.to_dict(show_context), ensure_ascii=False, indent=2))
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
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(rows)
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
