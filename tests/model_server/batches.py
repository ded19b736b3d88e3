"""Requests for models, files and batches; a batch is answered like single requests."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import time

from tests.model_server.chat import Json
from tests.model_server.connection import Request
from tests.model_server.errors import error

# Answers one line of a batch: status and body of the response.
AnswerLine = Callable[[str, Json], tuple[int, Json]]


@dataclass
class Batches:
    """The files and batches of a server."""

    answer_line: AnswerLine
    files: dict[str, tuple[Json, bytes]] = field(default_factory=dict)
    batches: dict[str, Json] = field(default_factory=dict)
    # The number of a file that was deleted is not given again.
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def add_file(self, name: str, content: bytes, purpose: str) -> Json:
        file = {
            "id": f"file-{next(self.numbers)}",
            "object": "file",
            "bytes": len(content),
            "created_at": int(time()),
            "filename": name,
            "purpose": purpose,
            "status": "processed",
        }
        self.files[str(file["id"])] = (file, content)
        return file

    def create(self, body: Json) -> tuple[int, Json]:
        if body.get("input_file_id") not in self.files:
            return error(400, f"No such file: {body.get('input_file_id')}", param="input_file_id")
        now = time()
        batch = {
            "id": f"batch_{len(self.batches) + 1}",
            "object": "batch",
            "endpoint": body["endpoint"],
            "errors": None,
            "input_file_id": body["input_file_id"],
            "completion_window": body.get("completion_window", "24h"),
            "status": "in_progress",
            "output_file_id": None,
            "error_file_id": None,
            # Whole seconds outside, as in the API.
            "created_at": now,
            "expires_at": int(now) + 24 * 3600,
            "metadata": body.get("metadata"),
        }
        n_lines = len(self._lines(batch))
        batch["request_counts"] = {"total": n_lines, "completed": 0, "failed": 0}
        self.batches[str(batch["id"])] = batch
        return 200, public(batch)

    def _lines(self, batch: Json) -> list[Json]:
        """Return the lines of the input."""
        content = self.files[batch["input_file_id"]][1]
        return [json.loads(line) for line in content.splitlines()]

    def look_at(self, batch_id: str, seconds: float | None) -> Json:
        """Return the batch, done `seconds` after its creation; with None it waits for `finish`."""
        batch = self.batches[batch_id]
        if seconds is not None and time() >= batch["created_at"] + seconds:
            self.finish(batch_id)
        return public(batch)

    def finish(self, batch_id: str, status: str = "completed") -> None:
        """Answer the lines: half of them if it is `expired` or `cancelled`."""
        batch = self.batches[batch_id]
        if batch["status"] != "in_progress":
            return
        lines = self._lines(batch)
        n_answered = len(lines) if status == "completed" else len(lines) // 2
        output: list[Json] = []
        errors: list[Json] = []
        for number, line in enumerate(lines, 1):
            result = {"id": f"batch_req_{number}", "custom_id": line["custom_id"]}
            if number > n_answered:
                message = "This request was not executed before the batch ended."
                failed = {"code": f"batch_{status}", "message": message}
                errors.append({**result, "response": None, "error": failed})
                continue
            code, body = self.answer_line(line["url"], line["body"])
            response = {"status_code": code, "request_id": f"req_{number}", "body": body}
            part = output if code == 200 else errors
            part.append({**result, "response": response, "error": None})
        for name, part in (("output_file_id", output), ("error_file_id", errors)):
            if part:
                content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in part)
                file = self.add_file(f"{name}.jsonl", content.encode(), "batch_output")
                batch[name] = file["id"]
        counts = {"total": len(lines), "completed": len(output), "failed": len(errors)}
        batch |= {"status": status, f"{status}_at": int(time()), "request_counts": counts}


def public(batch: Json) -> Json:
    return {**batch, "created_at": int(batch["created_at"])}


def read_form(content_type: str, body: bytes) -> dict[str, tuple[str, bytes]]:
    """Parse a multipart form into file name and content by field."""
    boundary = b"--" + content_type.partition("boundary=")[2].strip('"').encode()
    form = {}
    for part in body.split(boundary)[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        fields = dict(
            item.strip().split("=", 1) for item in _disposition(head).split(";") if "=" in item
        )
        name, file = (fields.get(key, "").strip('"') for key in ("name", "filename"))
        form[name] = (file, content[:-2])
    return form


def _disposition(head: bytes) -> str:
    lines = head.decode().split("\r\n")
    return next(line for line in lines if line.lower().startswith("content-disposition"))


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
    return error(404, f"No such thing: {request.method} {request.path}")


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": 0, "owned_by": "tests"}


def _page(rows: list[Json]) -> Json:
    ends = {"first_id": rows[0]["id"], "last_id": rows[-1]["id"]} if rows else {}
    return {"object": "list", "data": rows, "has_more": False, **ends}
