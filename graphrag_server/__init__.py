"""Serve indexes over HTTP: to people, to programs and to agents (extra `serve`).

    from graphrag_server.app import create_app
    app = create_app(ServerSettings(indexes={"antarctica": Path("myproject")}))

CONTRIBUTING.md maps its files. Importing this package is cheap; its modules import FastAPI.
"""
