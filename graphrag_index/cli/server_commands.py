"""The commands that serve indexes: `serve`, `mcp`, and `keys` for who may use them."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_index.errors import SettingsError, quote_argument
from graphrag_index.explaining_command import ExplainingCommand

if TYPE_CHECKING:
    from graphrag_server.keys import Key, KeyFile
    from graphrag_server.server_settings import ServerSettings

Roots = Annotated[
    list[Path] | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Folder of settings.yaml; repeat it to serve several projects.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings of the server: a server.yaml."),
]

keys = typer.Typer(
    help="Create, list and revoke the keys of a server.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def serve(
    root: Roots = None,
    config: Config = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="PORT", min=0, max=65535, help="Port; 0 chooses a free one."
        ),
    ] = None,
    root_path: Annotated[
        str | None,
        typer.Option(
            "--root-path", metavar="PATH", help="Path under which a proxy offers the server."
        ),
    ] = None,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Let everybody who reaches the server do everything.")
    ] = False,
) -> None:
    """Serve indexes to browsers, programs and agents."""
    try:
        from graphrag_server.app import run_server
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"The server needs the package {error.name}: "
            'install it with `pip install "graphrag-index[serve]"`.'
        ) from None
    settings = _server_settings(root, config)
    given = {"host": host, "port": port, "root_path": root_path, "no_auth": no_auth or None}
    run_server(
        settings.with_values({name: value for name, value in given.items() if value is not None})
    )


def mcp(root: Roots = None) -> None:
    """Serve indexes to an agent that starts this command, by MCP on standard input and output."""
    # Before any other import, since a library can print when it is imported.
    stream = _claim_stdout()
    try:
        from graphrag_server.mcp_server import run_stdio
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"The tools for agents need the package {error.name}: "
            'install it with `pip install "graphrag-index[mcp]"`.'
        ) from None
    from graphrag_server.server_settings import name_projects

    run_stdio(name_projects(root or [Path()]), stream)


def _claim_stdout() -> TextIOWrapper:
    """Return a stream to the client, and send all else that is printed to standard error.

    A line that any library or child process prints would break the protocol.
    """
    sys.stdout.flush()
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return TextIOWrapper(stream, encoding="utf-8")


@keys.command("add", cls=ExplainingCommand)
def add_key(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the key, such as that of its user.")
    ],
    root: Roots = None,
    config: Config = None,
    index: Annotated[
        list[str] | None,
        typer.Option(
            "--index", metavar="INDEX", help="Index that the key may use; repeat it. Default: all."
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="read (tables), ask (searches), index (documents and runs) or admin (metrics); "
            "repeat it. Default: read and ask.",
        ),
    ] = None,
    questions_per_minute: Annotated[
        int | None,
        typer.Option(
            "--questions-per-minute", metavar="N", min=1, help="Most questions in any minute."
        ),
    ] = None,
    daily_cost: Annotated[
        float | None,
        typer.Option(
            "--daily-cost",
            metavar="DOLLARS",
            min=0,
            help="Most dollars for models on a day of UTC.",
        ),
    ] = None,
) -> None:
    """Create a key, and print it. It is shown only this once."""
    from graphrag_server.keys import Scope

    settings = _server_settings(root, config)
    unknown = sorted(set(index or ()) - set(settings.indexes))
    if unknown:
        known = ", ".join(settings.indexes)
        raise SettingsError(f"There is no index {unknown[0]!r}: the server has {known}.")
    wrong = sorted(set(scope or ()) - set(Scope))
    if wrong:
        raise SettingsError(f"There is no scope {wrong[0]!r}: choose of {', '.join(Scope)}.")
    scopes = frozenset(map(Scope, scope or (Scope.READ, Scope.ASK)))
    indexes = frozenset(index) if index else None
    print(_key_file(settings).add(name, scopes, indexes, questions_per_minute, daily_cost))


@keys.command("list", cls=ExplainingCommand)
def list_keys(root: Roots = None, config: Config = None) -> None:
    """List the keys with their rights and limits, and what each has spent today."""
    from graphrag_index.cli.printed_tables import align_columns

    file = _key_file(_server_settings(root, config))
    rows = [_describe_key(key, cost) for key, cost in file.list()]
    if not rows:
        print(
            f"There is no key: create one with `graphrag-index keys add{_options(root, config)}`."
        )
        return
    header = ("name", "id", "indexes", "scopes", "a minute", "a day", "today", "created", "state")
    for line in align_columns([header, *rows], left=range(len(header))):
        print(line)


@keys.command("revoke", cls=ExplainingCommand)
def revoke_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of the key.")],
    root: Roots = None,
    config: Config = None,
) -> None:
    """Revoke a key. Servers that run refuse it from now on."""
    _key_file(_server_settings(root, config)).revoke(name)
    print(f"Revoked {name}.")


def _server_settings(root: list[Path] | None, config: Path | None) -> "ServerSettings":
    from graphrag_server.server_settings import ServerSettings, load_server_settings, name_projects

    if config is None:
        return ServerSettings(indexes=name_projects(root or [Path()]))
    if root:
        raise typer.BadParameter("use --config or --root, not both.")
    return load_server_settings(config)


def _key_file(settings: "ServerSettings") -> "KeyFile":
    from graphrag_server.keys import KeyFile

    if not settings.state_path.is_dir():
        raise SettingsError(f"There is no folder {settings.state_path}: name it with --root.")
    return KeyFile(settings.state_path)


def _describe_key(key: "Key", cost: float) -> tuple[str, ...]:
    rate, limit = key.questions_per_minute, key.daily_cost
    return (
        *(
            key.name,
            key.id,
            ",".join(sorted(key.indexes or ("all",))),
            ",".join(sorted(key.scopes)),
        ),
        *("-" if rate is None else str(rate), "-" if limit is None else f"${limit:g}"),
        *(f"${cost:.4g}", key.created, f"revoked {key.revoked}" if key.revoked else "valid"),
    )


def _options(root: list[Path] | None, config: Path | None) -> str:
    options = [("--root", path) for path in root or ()] + [("--config", config)]
    return " NAME" + "".join(
        f" {option} {quote_argument(str(path))}" for option, path in options if path
    )
