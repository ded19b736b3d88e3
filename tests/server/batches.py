"""Files, and batches that are answered like single requests."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from time import time
from typing import Any

from tests.server.errors import error

Json = dict[str, Any]
# Answers one line of a batch: status and body of the response.
AnswerLine = Callable[[str, Json], tuple[int, Json]]
RUNNING = ("validating", "in_progress", "cancelling")


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
        lines, errors = self._read(batch)
        batch["request_counts"] = {"total": len(lines), "completed": 0, "failed": 0}
        if errors:
            batch |= {"status": "failed", "failed_at": int(now)}
            batch["errors"] = {"object": "list", "data": errors}
        self.batches[str(batch["id"])] = batch
        return 200, public(batch)

    def _read(self, batch: Json) -> tuple[list[Json], list[Json]]:
        """Return the lines of the input, and their errors."""
        lines: list[Json] = []
        errors: list[Json] = []
        ids = set()
        for number, line in enumerate(self.files[batch["input_file_id"]][1].splitlines(), 1):
            try:
                lines.append(json.loads(line))
            except ValueError:
                message = "This line is not parseable as valid JSON."
                errors.append({"code": "invalid_json_line", "message": message, "line": number})
                continue
            if lines[-1].get("url") != batch["endpoint"]:
                message = "The URL of this line is not the endpoint of the batch."
                errors.append({"code": "mismatched_url", "message": message, "line": number})
            if lines[-1].get("custom_id") in ids:
                message = "The custom_id of this line is already used."
                errors.append({"code": "duplicate_custom_id", "message": message, "line": number})
            ids.add(lines[-1].get("custom_id"))
        if not lines and not errors:
            errors.append({"code": "empty_file", "message": "The input file is empty."})
        return lines, errors

    def look_at(self, batch_id: str, seconds: float | None) -> Json:
        """Return the batch, done `seconds` after its creation; with None it waits for `finish`."""
        batch = self.batches[batch_id]
        if batch["status"] == "cancelling":
            self.finish(batch_id, "cancelled")
        elif seconds is not None and time() >= batch["created_at"] + seconds:
            self.finish(batch_id)
        return public(batch)

    def cancel(self, batch_id: str) -> Json:
        batch = self.batches[batch_id]
        if batch["status"] in RUNNING:
            batch |= {"status": "cancelling", "cancelling_at": int(time())}
        return public(batch)

    def finish(self, batch_id: str, status: str = "completed") -> None:
        """Answer the lines: half of them if it is `expired` or `cancelled`."""
        batch = self.batches[batch_id]
        if batch["status"] not in RUNNING:
            return
        lines, _ = self._read(batch)
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
