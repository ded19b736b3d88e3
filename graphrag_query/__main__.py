"""The command line `graphrag-query`: ask an index from the shell."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_index.errors import run_program
from graphrag_index.storage.lancedb_stub import stub_remote_catalogue
from graphrag_query.query_commands import AsOf, IndexFolder, Root, Set, cypher, open_index, sql

if TYPE_CHECKING:
    from graphrag_query.answer import Answer
    from graphrag_query.index import Index

app = typer.Typer(
    help="Ask an index that `graphrag-index run` has made.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Question = Annotated[str, typer.Argument(help="The question.", metavar="QUESTION")]
Names = Annotated[
    list[str], typer.Argument(help="A question, or names of entities.", metavar="QUESTION|NAME...")
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
ShowContext = Annotated[
    bool, typer.Option("--show-context", help="Print what a model is shown, before the answer.")
]
Stream = Annotated[
    bool, typer.Option("--stream", help="Print the answer while it is being written.")
]
SessionFile = Annotated[
    Path | None,
    typer.Option("--session", help="Go on with the conversation in this file.", metavar="FILE"),
]

Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        help="Only documents like this, by path, title, language or metadata.",
        metavar="COLUMN=PATTERN",
    ),
]
Type = Annotated[
    list[str] | None,
    typer.Option("--type", help="Only entities of this type.", metavar="TYPE"),
]
Since = Annotated[
    str, typer.Option("--since", help="Only documents since, such as 1914-08.", metavar="DATE")
]
Until = Annotated[
    str, typer.Option("--until", help="Only documents until, with that day.", metavar="DATE")
]

# The help of each search.
SEARCHES = {
    "ask": "Ask anything: it chooses a search, and says which.",
    "local": "Ask about a person, place or thing.",
    "global": "Ask about the whole, from the community reports.",
    "basic": "Ask about a passage, from the text units themselves.",
    "drift": "Ask broadly: from the reports into the detail.",
    "lazy": "Ask about anything, without reports.",
    "structured": "Ask how many, or which: a model writes a query.",
}
SEARCHES_OF_NAMES = {
    "path": "Ask how two or more entities are connected.",
    "neighbourhood": "Show what surrounds an entity.",
}


def _command(method: str) -> Callable[..., None]:
    """Make the command of one search."""

    def command(
        question: Question,
        root: Root = Path(),
        index_folder: IndexFolder = None,
        json_: Json = False,
        set_: Set = None,
        show_context: ShowContext = False,
        stream: Stream = False,
        as_of: AsOf = None,
        session: SessionFile = None,
        where: Where = None,
        type_: Type = None,
        since: Since = "",
        until: Until = "",
    ) -> None:
        with open_index(root, index_folder, set_, as_of) as index:
            index = _filtered(index, where, type_, since, until)
            _answer(index, method, question, json_, show_context, stream, session)

    return command


def _command_of_names(method: str) -> Callable[..., None]:
    """Make the command of a search that takes a question or names."""

    def command(
        names: Names,
        root: Root = Path(),
        index_folder: IndexFolder = None,
        json_: Json = False,
        set_: Set = None,
        show_context: ShowContext = False,
        stream: Stream = False,
        as_of: AsOf = None,
        where: Where = None,
        type_: Type = None,
        since: Since = "",
        until: Until = "",
    ) -> None:
        with open_index(root, index_folder, set_, as_of) as index:
            index = _filtered(index, where, type_, since, until)
            _answer(index, method, names, json_, show_context, stream)

    return command


for _name, _help in SEARCHES.items():
    app.command(_name, help=_help)(_command(_name))
for _name, _help in SEARCHES_OF_NAMES.items():
    app.command(_name, help=_help)(_command_of_names(_name))


app.command()(sql)
app.command()(cypher)


@app.command()
def chat(
    root: Root = Path(),
    index_folder: IndexFolder = None,
    set_: Set = None,
    as_of: AsOf = None,
    session: SessionFile = None,
    method: Annotated[
        str, typer.Option("--method", help="Which search answers.", metavar="SEARCH")
    ] = "ask",
    where: Where = None,
    type_: Type = None,
    since: Since = "",
    until: Until = "",
) -> None:
    """Hold a conversation."""
    from graphrag_query.display.terminal import converse, waiting
    from graphrag_query.searches.registry import check_method

    check_method(method)

    def ask(question: str) -> "Answer":
        with waiting("Looking ..."):
            return index.converse(conversation, question, method)

    with open_index(root, index_folder, set_, as_of) as index:
        index = _filtered(index, where, type_, since, until)
        conversation = index.conversation(session)
        converse(ask)


def _answer(
    index: "Index",
    method: str,
    question: str | list[str],
    as_json: bool,
    show_context: bool,
    stream: bool = False,
    session: Path | None = None,
) -> None:
    """Ask, print the answer, and exit with its code."""
    from graphrag_query.display import terminal

    def ask(**more: Any) -> "Answer":
        if session is not None:
            conversation = index.conversation(session)
            return index.converse(conversation, str(question), method, **more)
        if isinstance(question, list):
            return index.search(method, *question, **more)
        return index.search(method, question, **more)

    if stream and not as_json:
        from graphrag_query.answering.written_answer import AnswerStream

        answer = terminal.print_stream(AnswerStream(lambda sink: ask(sink=sink)))
    else:
        with terminal.waiting("Looking ..."):
            answer = ask()
    if as_json:
        terminal.print_json(answer, show_context)
    else:
        if session is not None:
            terminal.print_rewritten(str(question), answer)
        if show_context:
            terminal.print_context(answer)
        terminal.print_answer(answer, shown_already=stream)
    code = terminal.exit_code(answer)
    if code:
        raise typer.Exit(code)


def _filtered(
    index: "Index", where: list[str] | None, types: list[str] | None, since: str, until: str
) -> "Index":
    """Restrict an index by the filter options."""
    from graphrag_index.errors import SettingsError

    documents: dict[str, list[str]] = {}
    for condition in where or ():
        column, equals, pattern = condition.partition("=")
        if not (column and equals):
            raise SettingsError(f"--where {condition}: expected COLUMN=PATTERN.")
        documents.setdefault(column, []).append(pattern)
    if documents or types or since or until:
        return index.where(documents, types or (), since, until)
    return index


def main() -> None:
    """Run the command line."""
    # Collecting garbage while the libraries load costs a tenth of a short command.
    gc.disable()
    stub_remote_catalogue()
    run_program(app)


if __name__ == "__main__":
    main()
