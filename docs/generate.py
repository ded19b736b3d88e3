"""Rewrite settings.yaml, openapi.json and the generated parts: `python docs/generate.py`.

`python docs/generate.py openapi` rewrites openapi.json alone.

A generated part lies between `<!-- begin: NAME -->` and `<!-- end: NAME -->`. Everything in it
comes from the code except the meanings of columns: these are kept from the page, and are empty
for new columns.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from graphrag_evaluation.graph_quality.grounding import GRAPH_MEANINGS, REFERENCE_MEANINGS
from graphrag_evaluation.summary import MEANINGS
from graphrag_index.pipeline.workflow import load_step
from graphrag_index.schema.settings.project_settings import Settings, settings_text
from graphrag_index.schema.tables import TABLES, Table
from graphrag_index.steps import STEPS

DOCS = Path(__file__).parent
_BLOCK = re.compile(r"(?<=<!-- begin: )([a-z ]+)( -->\n)(.*?)(?=<!-- end: \1 -->)", re.DOTALL)
_HEADING = re.compile(r"### `(\w+)`")
_COLUMN = re.compile(r"\| `(\w+)` \| [^|]* \| (.*) \|")


# Headings of nested sections, by the names of their classes.
PARTS_OF_MODELS = {
    "ModelSettings": "A model: `models.NAME`",
    "Price": "Its price: `models.NAME.price`",
    "RelationshipType": "A type of relationship: `extract_graph.relationship_types`",
    "Star": "A star: `extract_graph.star`",
}


def render(page: str) -> str:
    """Return a page with its generated parts up to date."""

    def rewrite(block: re.Match[str]) -> str:
        name, mark, present = block.groups()
        return f"{name}{mark}\n{BLOCKS[name](present)}\n"

    return _BLOCK.sub(rewrite, page)


def settings_block(_: str) -> str:
    """Return a table of keys for every section of the settings."""
    schema = Settings.model_json_schema()
    properties, parts = schema["properties"], []
    plain = {key: value for key, value in properties.items() if "$ref" not in value}
    # The default models are shown by name; a section of its own lists the keys of a model.
    plain["models"] = {**plain["models"], "default": list(plain["models"]["default"])}
    parts.append(f"### Top level\n\n{_settings_table(plain)}")
    for name, heading in PARTS_OF_MODELS.items():
        section = schema["$defs"][name]
        text = inspect.cleandoc(section["description"])
        parts.append(f"### {heading}\n\n{text}\n\n{_settings_table(section['properties'])}")
    for name, value in properties.items():
        if "$ref" in value:
            section = schema["$defs"][value["$ref"].rpartition("/")[2]]
            text = inspect.cleandoc(section["description"])
            parts.append(f"### `{name}`\n\n{text}\n\n{_settings_table(section['properties'])}")
    return "\n".join(parts)


def _settings_table(properties: Mapping[str, Any]) -> str:
    lines = ["| key | default | values | meaning |", "|---|---|---|---|"]
    for key, value in properties.items():
        meaning = value["description"].replace("see docs/settings.md", "see [below](#engines)")
        default = f"`{_as_yaml(value['default'])}`" if "default" in value else "(required)"
        lines.append(f"| `{key}` | {default} | {_allowed(value)} | {_cell(meaning)} |")
    return "\n".join(lines) + "\n"


def _as_yaml(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.strip().removesuffix("...").strip()


def _allowed(schema: Mapping[str, Any]) -> str:
    """Return in words the values that a JSON Schema allows."""
    if "anyOf" in schema:
        return " or ".join(_allowed(option) for option in schema["anyOf"])
    if "$ref" in schema:
        return "mapping"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kinds = {"string": "text", "boolean": "`true`, `false`", "array": "list", "object": "mapping"}
    words = [kinds.get(schema["type"], schema["type"])]
    if "minimum" in schema and "maximum" in schema:
        words.append(f"{schema['minimum']:,} to {schema['maximum']:,}")
    elif "exclusiveMinimum" in schema and "maximum" in schema:
        words.append(f"more than {schema['exclusiveMinimum']:g}, up to {schema['maximum']:,}")
    elif "minimum" in schema:
        words.append(f"{schema['minimum']:g} or more")
    elif "exclusiveMinimum" in schema:
        words.append(f"more than {schema['exclusiveMinimum']:g}")
    return ", ".join(words)


def _cell(text: str) -> str:
    """Escape characters that have a meaning in a Markdown table."""
    return " ".join(text.split()).replace("*", r"\*").replace("|", r"\|")


def tables_block(kind: str) -> Callable[[str], str]:
    """Return a function that describes every column of the tables of one kind."""

    def block(present: str) -> str:
        meanings = _meanings(present)
        return "\n".join(
            _table_part(table, meanings) for table in TABLES.values() if table.kind == kind
        )

    return block


def _meanings(block: str) -> dict[tuple[str, str], str]:
    """Return the meaning of each column as the page has it, by table and column."""
    meanings, table = {}, ""
    for line in block.splitlines():
        if heading := _HEADING.match(line):
            table = heading[1]
        elif column := _COLUMN.match(line):
            meanings[table, column[1]] = column[2].strip()
    return meanings


def _table_part(table: Table, meanings: Mapping[tuple[str, str], str]) -> str:
    lines = [
        f"### `{table.name}`\n",
        f"One row is {table.row}. Order: {table.order}.\n",
        "| column | type | meaning |",
        "|---|---|---|",
    ]
    for column, dtype in table.schema.items():
        meaning = meanings.get((table.name, column), "")
        lines.append(f"| `{column}` | {type_name(dtype)} | {meaning} |")
    return "\n".join(lines) + "\n"


def type_name(dtype: Any) -> str:
    """Return the readable name of a column type."""
    if isinstance(dtype, pl.List):
        return f"list of {type_name(dtype.inner)}"
    if isinstance(dtype, pl.Struct):
        return "{" + ", ".join(field.name for field in dtype.fields) + "}"
    return str(dtype).lower()


def steps_block(_: str) -> str:
    """Return a table of the steps with their purpose, inputs and outputs."""
    lines = ["| step | what it does | reads | writes |", "|---|---|---|---|"]
    for name in STEPS:
        step = load_step(name, DOCS, str(DOCS))
        does = inspect.getdoc(step.function) or " "
        reads = ", ".join(f"`{read.table}`" + " (optional)" * read.optional for read in step.reads)
        writes = ", ".join(f"`{table.name}`" for table in step.writes)
        lines.append(
            f"| `{name}` | {_cell(does.splitlines()[0])} | {reads or 'files'} | {writes} |"
        )
    return "\n".join(lines) + "\n"


def measures_block(meanings: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that returns a table of measures with their meanings."""

    def block(_: str) -> str:
        lines = ["| measure | is |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(meaning)} |" for name, meaning in meanings.items()]
        return "\n".join(lines) + "\n"

    return block


BLOCKS: Mapping[str, Callable[[str], str]] = {
    "settings": settings_block,
    "public tables": tables_block("public"),
    "internal tables": tables_block("internal"),
    "mapped tables": tables_block("mapped"),
    "vector tables": tables_block("vectors"),
    "steps": steps_block,
    "measures": measures_block(MEANINGS),
    "graph measures": measures_block(GRAPH_MEANINGS),
    "reference measures": measures_block(REFERENCE_MEANINGS),
}


def openapi_text() -> str:
    """Return the OpenAPI document of the server. The values of settings do not change it."""
    from graphrag_server.app import create_app
    from graphrag_server.server_settings import ServerSettings

    app = create_app(ServerSettings(indexes={"any": DOCS.parent}))
    return json.dumps(app.openapi(), indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Rewrite the OpenAPI document, settings.yaml and every page."""
    (DOCS / "openapi.json").write_text(openapi_text(), encoding="utf-8", newline="\n")
    if sys.argv[1:] == ["openapi"]:
        return
    settings = DOCS.parent / "settings.yaml"
    settings.write_text(settings_text(), encoding="utf-8", newline="\n")
    for path in sorted(DOCS.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        path.write_text(render(page), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
