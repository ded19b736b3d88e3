"""Requests of the server's tests: schemas, a text, and one call."""

import json
from typing import Any

from openai import OpenAI

TEXT = "Tom Crean sailed with Ernest Shackleton. Tom Crean met Frank Wild in South Georgia."
STRING = {"type": "string"}


def record(*names: str) -> dict[str, Any]:
    properties = dict.fromkeys(names, STRING)
    return {
        "type": "object", "properties": properties, "required": list(names),
        "additionalProperties": False,
    }  # fmt: skip


def table(**lists: dict[str, Any]) -> dict[str, Any]:
    properties = {name: {"type": "array", "items": row} for name, row in lists.items()}
    return {**record(), "properties": properties, "required": list(lists)}


GRAPH = table(entities=record("name", "description"), relationships=record("source", "target"))


def as_format(schema: dict[str, Any]) -> Any:
    schema = {"name": "answer", "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": schema}


def ask(client: OpenAI, user: str = TEXT, system: str = "You help.", **options: Any) -> Any:
    messages: Any = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return client.chat.completions.create(model="m", messages=messages, **options)


def said(completion: Any) -> Any:
    return json.loads(completion.choices[0].message.content)
