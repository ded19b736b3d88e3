"""The command line `graphrag-query`: ask an index from the shell."""

import gc
from collections.abc import Callable
from functools import partial
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_index.errors import SettingsError, run_program
from graphrag_index.storage.lancedb_stub import stub_unused_imports
from graphrag_query.query_commands import (
    LANGUAGES,
    AsOf,
    IndexFolder,
    Root,
    Set,
    open_index,
    query_command,
)

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


def _with_index(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `_opened` to a command, which is called with the opened index."""
    options = signature(_opened).parameters

    def run(**values: Any) -> None:
        with _opened(**{name: values.pop(name) for name in options}) as index:
            command(index, **values)

    own = list(signature(command).parameters.values())[1:]
    # Typer reads the arguments and options of a command from its signature.
    run.__dict__["__signature__"] = Signature([*own, *options.values()])
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def _opened(
    *,
    root: Root = Path(),
    index_folder: IndexFolder = None,
    set_: Set = None,
    as_of: AsOf = None,
    where: Where = None,
    type_: Type = None,
    since: Since = "",
    until: Until = "",
) -> "Index":
    """Open the index, restricted by the filters."""
    documents: dict[str, list[str]] = {}
    for condition in where or ():
        column, equals, pattern = condition.partition("=")
        if not (column and equals):
            raise SettingsError(f"--where {condition}: expected COLUMN=PATTERN.")
        documents.setdefault(column, []).append(pattern)
    index = open_index(root, index_folder, set_, as_of)
    if documents or type_ or since or until:
        return index.where(documents, type_ or (), since, until)
    return index


def _command(method: str) -> Callable[..., None]:
    """Make the command of a search."""

    def command(
        index: "Index",
        question: Question,
        *,
        json_: Json = False,
        show_context: ShowContext = False,
        stream: Stream = False,
        session: SessionFile = None,
    ) -> None:
        if session is None:
            search, asked = partial(index.search, method, question), None
        else:
            conversation = index.conversation(session)
            search, asked = partial(index.converse, conversation, question, method), question
        _print_answer(search, json_, show_context, stream, asked)

    return _with_index(command)


def _command_of_names(method: str) -> Callable[..., None]:
    """Make the command of a search that takes a question or names."""

    def command(
        index: "Index",
        names: Names,
        *,
        json_: Json = False,
        show_context: ShowContext = False,
        stream: Stream = False,
    ) -> None:
        _print_answer(partial(index.search, method, *names), json_, show_context, stream)

    return _with_index(command)


for _name, _help in SEARCHES.items():
    app.command(_name, help=_help)(_command(_name))
for _name, _help in SEARCHES_OF_NAMES.items():
    app.command(_name, help=_help)(_command_of_names(_name))
for _name, _help in LANGUAGES.items():
    app.command(_name, help=_help)(query_command(_name))


@app.command()
@_with_index
def chat(
    index: "Index",
    *,
    session: SessionFile = None,
    method: Annotated[
        str, typer.Option("--method", help="Which search answers.", metavar="SEARCH")
    ] = "ask",
) -> None:
    """Hold a conversation."""
    from graphrag_query.display.terminal import converse, waiting
    from graphrag_query.searches.registry import check_method

    check_method(method)
    conversation = index.conversation(session)

    def ask(question: str) -> "Answer":
        with waiting("Looking ..."):
            return index.converse(conversation, question, method)

    converse(ask)


def _print_answer(
    search: Callable[..., "Answer"],
    as_json: bool,
    show_context: bool,
    stream: bool,
    question: str | None = None,
) -> None:
    """Search, print the answer, and exit with its code; `question` is that of a conversation."""
    from graphrag_query.answering.written_answer import AnswerStream
    from graphrag_query.display import terminal

    if stream and not as_json:
        answer = terminal.print_stream(AnswerStream(lambda sink: search(sink=sink)))
    else:
        with terminal.waiting("Looking ..."):
            answer = search()
    if as_json:
        terminal.print_json(answer, show_context)
    else:
        if question is not None:
            terminal.print_rewritten(question, answer)
        if show_context:
            terminal.print_context(answer)
        terminal.print_answer(answer, shown_already=stream)
    code = terminal.exit_code(answer)
    if code:
        raise typer.Exit(code)


def main() -> None:
    """Run the command line."""
    # Collecting garbage while the libraries load costs a tenth of a short command.
    gc.disable()
    stub_unused_imports()
    run_program(app)


if __name__ == "__main__":
    main()
