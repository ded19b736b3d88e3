"""The list of tools for agents, small enough for a prompt.

Importing this module is cheap: a client waits for the list when it starts.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

EXPLORER_URI = "ui://graphrag/explorer"
DEFAULT_TOKENS = 8_000
MIN_TOKENS, MAX_TOKENS = 1_000, 25_000

MaxTokens = Annotated[int, Field(ge=MIN_TOKENS, le=MAX_TOKENS)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Name = Annotated[str, Field(max_length=500)]
Method = Literal["ask", "local", "global", "basic", "drift", "lazy", "compare"]


class Arguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")


class IndexArguments(Arguments):
    """Arguments of a tool that reads one index; its name may be empty if there is only one."""

    index: Name = ""


class PageArguments(IndexArguments):
    """Arguments of a tool whose result has pages."""

    max_tokens: MaxTokens = DEFAULT_TOKENS
    cursor: Name = ""


class SearchArguments(IndexArguments):
    """Arguments of `search`. Without a name, all indexes are searched."""

    query: Text
    limit: int = Field(10, ge=1, le=50)


class FetchArguments(Arguments):
    """Arguments of `fetch`."""

    id: Text
    max_tokens: MaxTokens = DEFAULT_TOKENS
    cursor: Name = ""


class AskArguments(IndexArguments):
    """Arguments of `ask`."""

    question: Text
    method: Method = "ask"
    path: Name = Field("", description="Pattern of files, such as letters/*")
    since: Name = ""
    until: Name = ""
    version: int | None = Field(None, ge=1, description="An earlier version of the index")
    max_tokens: MaxTokens = DEFAULT_TOKENS


class ContextArguments(PageArguments):
    """Arguments of `context`."""

    question: Text
    method: Method = "local"


class GraphArguments(PageArguments):
    """Arguments of `graph`."""

    mode: Literal["neighbourhood", "path", "entity"] | None = None
    entity: Text = Field(description="Name or number")
    to: Name = Field("", description="End of the paths")
    hops: int = Field(1, ge=1, le=4)


class ReportsArguments(PageArguments):
    """Arguments of `reports`."""

    community: int | None = Field(None, description="Read one whole report")
    query: Name = Field("", description="Words of the report")
    level: int | None = Field(None, description="0 is the broadest")


class StatusArguments(IndexArguments):
    """Arguments of `status`."""


@dataclass(frozen=True)
class ToolDefinition:
    """A tool. A caller needs the scope; `results` has the types of the keys of a result."""

    name: str
    description: str
    arguments: type[Arguments]
    results: dict[str, str]
    scope: str = "read"
    is_open_world: bool = False

    def listed(self, with_explorer: bool) -> Tool:
        """Return the tool as clients see it."""
        is_drawn = with_explorer and self.name == "graph"
        return Tool(
            name=self.name,
            description=self.description,
            input_schema=_compact(self.arguments.model_json_schema()),
            output_schema={
                "type": "object",
                "properties": {name: {"type": kind} for name, kind in self.results.items()},
            },
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=self.is_open_world),
            _meta={"ui": {"resourceUri": EXPLORER_URI}} if is_drawn else None,
        )


_PAGE = {"left_out": "integer", "cursor": "string"}
TOOLS = (
    ToolDefinition(
        "search",
        "Find passages, entities and reports. Titles quote documents. Read a result with fetch.",
        SearchArguments,
        {"results": "array"},
    ),
    ToolDefinition(
        "fetch",
        "Read a passage, entity, report or document by the id of another result. "
        "metadata.cursor reads on.",
        FetchArguments,
        {"id": "string", "title": "string", "text": "string", "url": "string"}
        | {"metadata": "object"},
    ),
    ToolDefinition(
        "ask",
        "Answer a question with cited passages. local: about a thing; global: about all "
        "documents; compare: several things or periods; ask chooses. since and until are dates "
        "such as 1914-08.",
        AskArguments,
        {"answer": "string", "outcome": "string", "citations": "array", "left_out": "integer"},
        scope="ask",
        is_open_world=True,
    ),
    ToolDefinition(
        "context",
        "Return the passages, entities and reports on a question, to answer it yourself.",
        ContextArguments,
        {"Sources": "array", "Entities": "array", "Reports": "array"} | _PAGE,
    ),
    ToolDefinition(
        "graph",
        "Show what is around an entity, the paths between two (with to), or one entity with its "
        "evidence.",
        GraphArguments,
        {"entities": "array", "relationships": "array", "paths": "array"} | _PAGE,
    ),
    ToolDefinition(
        "reports",
        "List the reports on communities, the themes of the documents, or read one.",
        ReportsArguments,
        {"reports": "array"} | _PAGE,
    ),
    ToolDefinition(
        "status",
        "List the indexes; of one index also its versions.",
        StatusArguments,
        {"indexes": "array"},
    ),
)
TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}


def list_tools(scopes: Collection[str], with_explorer: bool) -> list[Tool]:
    """Return the tools that a caller with these scopes may use."""
    return [tool.listed(with_explorer) for tool in TOOLS if tool.scope in scopes]


def _compact(schema: Any) -> Any:
    """Remove what a model does not need from a schema: titles, and limits of lengths."""
    if isinstance(schema, list):
        return [_compact(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    options = schema.get("anyOf")
    if options and {"type": "null"} in options:
        # An optional value is one that may be left out.
        rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
        schema = {**options[0], **rest}
    dropped = {"title", "minLength", "maxLength", "additionalProperties"}
    if schema.get("default") == "":
        dropped |= {"default"}
    if schema.get("type") == "object":
        # The docstring of the class is not for clients.
        dropped |= {"description"}
    return {
        name: {key: _compact(part) for key, part in value.items()}
        if name == "properties"
        else _compact(value)
        for name, value in schema.items()
        if name not in dropped
    }
