"""Serve indexes over HTTP: to people, to programs and to agents (extra `serve`).

    from graphrag_server.app import create_app
    app = create_app(ServerSettings(indexes={"antarctica": Path("myproject")}))

app.py              the application: its routes, and what starts and ends with it
server_settings.py  the settings of a server, `server.yaml`
hosted_index.py     the indexes of a server, opened at their current versions
keys.py             the keys of a server, and what each has used
access.py           who may do what: callers, scopes, and the dependencies of routes
asking.py           the questions to indexes, for every protocol
event_stream.py     server-sent events
origin_guard.py     refusal of foreign web pages by a server without keys
table_pages.py      pages of tables: filters, sorting, cursors
document_spans.py   passages of documents
request_record.py   the request that is being answered
request_recorder.py request ids, limits, metrics, the log, the headers of every reply
metrics.py          counters in Prometheus' text format
tracing.py          spans of questions and runs for OpenTelemetry
problems.py         errors in one shape (RFC 9457)
jobs/               uploads, and runs in processes of their own
protocols/          OpenAI, Open WebUI, Ollama, Dify
routes/             one file for each group of routes under /v1/indexes/{name}/
agents/             tools for agents (MCP), over stdio and at /mcp

Importing this package is cheap; its modules import FastAPI.
"""
