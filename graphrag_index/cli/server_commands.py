"""The commands that serve indexes: `serve`."""

from pathlib import Path
from typing import Annotated

import typer

from graphrag_index.errors import SettingsError

Roots = Annotated[
    list[Path] | None,
    typer.Option("--root", help="Folder of settings.yaml; repeat it to serve several projects."),
]


def serve(
    root: Roots = None,
    config: Annotated[
        Path | None, typer.Option("--config", help="Settings of the server: a server.yaml.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Port; 0 chooses a free one.")
    ] = None,
) -> None:
    """Serve indexes to browsers, programs and agents."""
    try:
        from graphrag_server.launch import run_server
        from graphrag_server.server_settings import (
            ServerSettings,
            load_server_settings,
            name_projects,
        )
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"The server needs the package {error.name}: "
            'install it with `pip install "graphrag-index[serve]"`.'
        ) from None
    if config is not None and root:
        raise typer.BadParameter("use --config or --root, not both.")
    if config is not None:
        settings = load_server_settings(config)
    else:
        settings = ServerSettings(indexes=name_projects(root or [Path()]))
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    run_server(settings.model_copy(update=given))
