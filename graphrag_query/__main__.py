"""The command line `graphrag-query`: ask an index from the shell."""

import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.core.command_line import run_app
from graphrag_index.core.lean_imports import leave_out_unused

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
Root = Annotated[Path, typer.Option("--root", help="Folder of settings.yaml.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a setting: section.key=value.", metavar="KEY=VALUE"),
]


@app.command()
def local(question: Question, root: Root = Path(), json_: Json = False, set_: Set = None) -> None:
    """Ask about a person, place or thing: answered from its neighbourhood."""
    _print(_open(root, set_).local(question), json_)


@app.command("global")
def global_(question: Question, root: Root = Path(), json_: Json = False, set_: Set = None) -> None:
    """Ask about the whole: answered from the community reports."""
    _print(_open(root, set_).global_(question), json_)


def _open(root: Path, overrides: list[str] | None) -> "Index":
    import graphrag_query
    from graphrag_index.core.settings import load_settings

    settings = load_settings(root, tuple(overrides or ()))
    return graphrag_query.open(root / settings.output, settings, root)


def _print(answer: "Answer", as_json: bool) -> None:
    if as_json:
        json.dump(answer.to_dict(), sys.stdout, ensure_ascii=False, indent=2)
        print()
        return
    print(answer.text)
    if answer.citations:
        print()
    for citation in answer.citations:
        place = f"{citation.path}, characters {citation.start_char} to {citation.end_char}"
        print(f"[{citation.number}] {citation.document} ({place})")
    looked = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in answer.looked_at.items()
    )
    print(f"\n{answer.outcome}: looked at {looked}, in {answer.usage.seconds:.1f} s.")


def main() -> None:
    """Ask, print, exit."""
    # A command that lives for two seconds leaves its garbage to the system; collecting it
    # while the libraries load costs a tenth of that.
    gc.disable()
    leave_out_unused()
    run_app(app)


if __name__ == "__main__":
    main()
