"""Conversion of an answer into the format of the request."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Names of fields that mean the same; the first is the one that `answers.py` uses.
SYNONYMS = (
    ("title", "name", "entity_name", "entity", "label"),
    ("type", "entity_type", "category", "relationship_type", "relation_type", "claim_type",
     "predicate", "relation"),
    ("description", "entity_description", "relationship_description", "summary", "text",
     "claim_description", "details"),
    ("source", "source_entity", "from", "head", "subject"),
    ("target", "target_entity", "to", "tail", "object"),
    ("strength", "relationship_strength", "weight", "score", "importance", "rating"),
    ("subject", "subject_entity", "subject_id", "entity"),
    ("object", "object_entity", "object_id"),
    ("status", "claim_status"),
    ("start_date", "start", "claim_start_date"),
    ("end_date", "end", "claim_end_date"),
    ("source_text", "quote", "evidence", "claim_source_text", "source"),
    ("explanation", "rating_explanation", "rank_explanation", "reason", "reasoning"),
    ("citations", "sources", "references", "ids", "cited"),
    ("answer", "response", "content", "text", "description", "summary"),
    ("relationships", "relations", "edges"),
    ("entities", "nodes"),
    ("claims", "covariates"),
)  # fmt: skip


def find(value: Mapping[str, Any], name: str) -> Any:
    """Return the field of a name or of a synonym."""
    if name in value:
        return value[name]
    groups = [group for group in SYNONYMS if name in group]
    return next((value[other] for group in groups for other in group if other in value), None)


def shape(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None) -> Any:
    """Fit a value to a JSON schema; missing fields become empty."""
    # Most of what is shaped is a plain string; a schema of one has nothing else.
    if len(schema) == 1 and schema.get("type") == "string" and isinstance(value, str):
        return value
    root = root or schema
    while "$ref" in schema:
        schema = root[schema["$ref"].split("/")[1]][schema["$ref"].split("/")[2]]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        nullable = any(option.get("type") == "null" for option in options)
        if value is None and nullable:
            return None
        return shape(value, next(o for o in options if o.get("type") != "null"), root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        allowed = {str(option).lower(): option for option in schema["enum"]}
        return allowed.get(str(value).lower(), schema["enum"][0])
    kind = schema.get("type")
    if isinstance(kind, list):
        if value is None and "null" in kind:
            return None
        kind = next(k for k in kind if k != "null")
    if kind == "object" or "properties" in schema:
        given = value if isinstance(value, Mapping) else {"description": value}
        fields = schema.get("properties")
        if not fields:
            return dict(given)
        return {name: shape(find(given, name), part, root) for name, part in fields.items()}
    if kind == "array":
        parts = value if isinstance(value, list) else [] if value is None else [value]
        parts = parts[: schema.get("maxItems")]
        return [shape(part, schema.get("items", {}), root) for part in parts]
    if kind in ("integer", "number"):
        number = _number(value)
        number = max(number, schema.get("minimum", number))
        number = min(number, schema.get("maximum", number))
        return int(number) if kind == "integer" else float(number)
    if kind == "boolean":
        return bool(value)
    return "" if value is None else value if kind is None else str(value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0


def rename(value: Any, shown: set[str]) -> Any:
    """Rename fields to their synonyms in a prompt."""
    if isinstance(value, list):
        return [rename(part, shown) for part in value]
    if not isinstance(value, dict):
        return value
    renamed = {}
    for name, part in value.items():
        others = next((group for group in SYNONYMS if group[0] == name), ())
        other = next((other for other in others if other in shown), name)
        renamed[name if name in shown else other] = rename(part, shown)
    return renamed


# Records of line formats, with the fields that they have when the prompt shows no names.
RECORDS = {
    "entity": ("title", "type", "description"),
    "relationship": ("source", "target", "description", "strength"),
    "claim": ("subject", "object", "type", "status", "start_date", "end_date", "description",
              "source_text"),
    "point": ("description", "score"),
    "title": ("title",),
    "summary": ("summary",),
    "description": ("description",),
    "rating": ("rating", "explanation"),
    "finding": ("summary", "explanation"),
}  # fmt: skip
LINE = re.compile(
    r"(?im)^(?P<open>[ \t]*[(\"'`*-]*)(?P<word>" + "|".join(RECORDS) + r")(?P<close>[\"'`*]*)"
    r"(?P<delimiter>[ ]?(?:<\|>|\|{1,3}|\t|::|;)[ ]?)(?P<fields>\S.*?)(?P<end>\)?(?:##)?)[ \t]*$"
)
LAST = re.compile(
    r"(?i)\b(?:end|finish|close|output)\b[^\n]{0,40}?[`\"'](\W{0,3}[A-Z]+\W{0,3})[`\"']"
)


@dataclass(frozen=True)
class LineFormat:
    """The format of one kind of record in a prompt."""

    before: str
    delimiter: str
    fields: tuple[str, ...]
    end: str

    def write(self, record: Mapping[str, Any]) -> str:
        values = [str(find(record, field) or "") for field in self.fields]
        bare = self.delimiter.strip() or self.delimiter
        clean = [" ".join(value.replace(bare, " ").split()) for value in values]
        return self.before + self.delimiter + self.delimiter.join(clean) + self.end


def line_formats(prompt: str) -> dict[str, LineFormat]:
    """Return the format of each kind of record, from its first line in the prompt."""
    formats: dict[str, LineFormat] = {}
    for match in LINE.finditer(prompt):
        word = match["word"].lower()
        delimiter = match["delimiter"]
        shown = match["fields"].split(delimiter.strip() or delimiter)
        names = [re.sub(r"\W+", "_", field.strip("<>{}[]() \"'")).lower() for field in shown]
        fields = tuple(_field(word, index, name) for index, name in enumerate(names))
        before = match["open"] + match["word"] + match["close"]
        formats.setdefault(word, LineFormat(before, delimiter, fields, match["end"]))
    return formats


def _field(word: str, index: int, shown: str) -> str:
    """Return the field named by a placeholder of a prompt, such as `strength_1_10`."""
    known = {name for group in SYNONYMS for name in group} | set(RECORDS[word])
    meant = [name for name in known if shown == name or shown.startswith(f"{name}_")]
    return max(meant, key=len, default=RECORDS[word][min(index, len(RECORDS[word]) - 1)])


def write_lines(
    records: Iterable[tuple[str, Mapping[str, Any]]], formats: Mapping[str, LineFormat], prompt: str
) -> str:
    """Write the records, a line each, with the end mark of the prompt."""
    lines = [formats[word].write(record) for word, record in records if word in formats]
    if last := LAST.search(prompt):
        lines.append(last[1])
    return "\n".join(lines)
