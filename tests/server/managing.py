"""Requests for models, files and batches."""

from collections.abc import Sequence

from tests.server.batches import Batches, read_form
from tests.server.chat import Json
from tests.server.connection import Request
from tests.server.errors import error


def manage(
    batches: Batches,
    models: Sequence[str],
    batch_seconds: float | None,
    endpoint: str,
    request: Request,
    body: Json,
) -> tuple[int, Json | bytes]:
    """Answer a request for models, files or batches: status and body."""
    match (request.method, *endpoint.strip("/").split("/")):
        case "GET", "models":
            return 200, {"object": "list", "data": [_model(name) for name in models]}
        case "GET", "models", name if name in models:
            return 200, _model(name)
        case "POST", "files":
            form = read_form(request.headers["content-type"], request.body)
            return 200, batches.add_file(*form["file"], form["purpose"][1].decode())
        case "GET", "files":
            return 200, _page([file for file, _ in batches.files.values()])
        case "GET", "files", file_id if file_id in batches.files:
            return 200, batches.files[file_id][0]
        case "DELETE", "files", file_id if file_id in batches.files:
            del batches.files[file_id]
            return 200, {"id": file_id, "object": "file", "deleted": True}
        case "GET", "files", file_id, "content" if file_id in batches.files:
            return 200, batches.files[file_id][1]
        case "POST", "batches":
            return batches.create(body)
        case "GET", "batches":
            return 200, _page(
                [batches.look_at(name, batch_seconds) for name in batches.batches][::-1]
            )
        case "GET", "batches", batch_id if batch_id in batches.batches:
            return 200, batches.look_at(batch_id, batch_seconds)
        case "POST", "batches", batch_id, "cancel" if batch_id in batches.batches:
            return 200, batches.cancel(batch_id)
    return error(404, f"No such thing: {request.method} {request.path}")


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": 0, "owned_by": "tests"}


def _page(rows: list[Json]) -> Json:
    ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    return {"object": "list", "data": rows, "has_more": False, **ends}
