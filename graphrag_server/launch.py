"""Start a server: check its port, print its address, and run it until it is stopped."""

import socket
from urllib.parse import quote

import uvicorn

from graphrag_index.errors import SettingsError
from graphrag_server.app import create_app
from graphrag_server.server_settings import ServerSettings


def run_server(settings: ServerSettings) -> None:
    """Serve until Ctrl-C or SIGTERM. Raises SettingsError if the address cannot be used."""
    app = create_app(settings)
    app.state.access.check_exposure()
    listener = _bind(settings)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    print(f"Open http://{host}:{listener.getsockname()[1]}/ in a browser.", flush=True)
    for index in app.state.indexes:
        print(f"  {quote(index.name)}: {index.root}", flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])


def _bind(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except OSError as error:
        raise SettingsError(
            f"The server cannot listen on {settings.host}, port {settings.port} "
            f"({error.strerror}): choose another with --port."
        ) from None
    listener.listen(512)
    return listener
