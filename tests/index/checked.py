"""A small index in which nothing is wrong, and what a check says of one that was changed."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from graphrag_index.health.checks import Health, check_index
from graphrag_index.health.opened_index import Opened
from graphrag_index.health.opening import open_index
from graphrag_index.schema.settings.settings import Check
from graphrag_index.schema.tables import TABLES
from tests.index.small_index import table, write_index

Tables = dict[str, pl.DataFrame]
WIDTH = 4


def healthy() -> Tables:
    """Two documents; entities a-b-c as community 0 with its part 2, and d alone as island 1."""
    entities = [
        {"id": f"e{n}", "human_readable_id": n, "title": title, "text_unit_ids": [unit]}
        for n, (title, unit) in enumerate([("Ada", "u0"), ("Bo", "u0"), ("Cy", "u1"), ("Di", "u2")])
    ]
    tables = {
        "documents": table(
            "documents",
            _document(0, "Ada met Bo. Bo met Cy.", ["u0", "u1"]),
            _document(1, "Di lives alone.", ["u2"]),
        ),
        "text_units": table(
            "text_units",
            _text_unit(0, "d0", "Ada met Bo.", ["e0", "e1"], ["r0"]),
            _text_unit(1, "d0", "Bo met Cy.", ["e2"], ["r1"]),
            _text_unit(2, "d1", "Di lives alone.", ["e3"], []),
        ),
        "entities": table("entities", *entities),
        "relationships": table(
            "relationships",
            _relationship(0, ("e0", "Ada"), ("e1", "Bo"), "u0"),
            _relationship(1, ("e1", "Bo"), ("e2", "Cy"), "u1"),
        ),
        "mentions": table(
            "mentions", *({"entity": n, "text_unit": unit} for n, unit in enumerate([0, 0, 1, 2]))
        ),
        # Numbers have gaps: the communities between are of an earlier version.
        "communities": table(
            "communities",
            _community(0, ["e0", "e1", "e2"], ["r0", "r1"], ["u0", "u1"], children=[7]),
            _community(3, ["e3"], [], ["u2"], island=True),
            _community(7, ["e0", "e1"], ["r0"], ["u0"], level=1, parent=0),
        ),
        "community_reports": table(
            "community_reports",
            _report(7, "Ada met Bo [Data: Entities (0, 1, +more); Relationships (0), Sources (0)]"),
            _report(0, "Bo knows both [Entities (1)]. See [Data: Reports (7)]."),
            _report(3, "Di lives alone [Data: Entities (3); Sources (2)]."),
        ),
    }
    return {**tables, **vectors_of(tables)}


def vectors_of(tables: Mapping[str, pl.DataFrame]) -> Tables:
    """Give every text a vector."""
    texts = {
        "text_unit_text": tables["text_units"].select("id", "human_readable_id", "text"),
        "entity_description": tables["entities"].select(
            "id", "human_readable_id", text=pl.col("title") + ":" + pl.col("description")
        ),
        "community_full_content": tables["community_reports"].select(
            "id", "community", text="full_content"
        ),
    }
    return {
        name: table(name, *rows.to_dicts()).with_columns(
            vector=pl.Series([[1.0] * WIDTH] * rows.height, dtype=pl.Array(pl.Float32, WIDTH))
        )
        for name, rows in texts.items()
    }


def check(output: Path, tables: Tables, limits: Check | None = None) -> Health:
    return check_index(open_index(write_index(output, **tables)), limits or Check())


def found(health: Health) -> dict[str, list[tuple[str, int]]]:
    """What was found: by check, the tables and how often."""
    return {
        outcome.name: [(finding.table, finding.count) for finding in outcome.looked.findings]
        for outcome in health.outcomes
        if outcome.looked.findings
    }


def examples(health: Health, name: str) -> list[str]:
    (outcome,) = (outcome for outcome in health.outcomes if outcome.name == name)
    return [example for finding in outcome.looked.findings for example in finding.examples]


def change(rows: pl.DataFrame, row: int, **values: object) -> pl.DataFrame:
    """Return a table with some values of one row replaced."""
    changed = rows.to_dicts()
    changed[row].update(values)
    return pl.DataFrame(changed, schema=rows.schema)


def opened(tables: Tables) -> Opened:
    """The same as another program's, in memory."""
    public = {n: t.lazy() for n, t in tables.items() if TABLES[n].kind == "public"}
    return Opened(Path("somewhere"), "another program", None, public)


def _document(number: int, text: str, units: list[str]) -> dict[str, object]:
    return {
        **{"id": f"d{number}", "human_readable_id": number, "title": f"Document {number}"},
        **{"text": text, "text_unit_ids": units, "path": f"{number}.txt", "language": "en"},
    }


def _text_unit(
    number: int, document: str, text: str, entities: list[str], relationships: list[str]
) -> dict[str, object]:
    return {
        **{"id": f"u{number}", "human_readable_id": number, "text": text, "n_tokens": 5},
        **{"document_id": document, "entity_ids": entities, "relationship_ids": relationships},
    }


def _relationship(
    number: int, source: tuple[str, str], target: tuple[str, str], unit: str
) -> dict[str, object]:
    return {
        **{"id": f"r{number}", "human_readable_id": number, "weight": 1.0},
        **{"source_id": source[0], "source": source[1]},
        **{"target_id": target[0], "target": target[1], "text_unit_ids": [unit]},
        "evidence": [{"document_id": "d0", "start_char": 0, "end_char": 5}],
    }


def _community(
    number: int,
    entities: list[str],
    relationships: list[str],
    units: list[str],
    level: int = 0,
    parent: int = -1,
    **columns: object,
) -> dict[str, object]:
    return {
        **{"id": f"c{number}", "human_readable_id": number, "community": number},
        **{"level": level, "parent": parent, "title": f"Community {number}"},
        **{"entity_ids": entities, "relationship_ids": relationships, "text_unit_ids": units},
        **{"size": len(entities), **columns},
    }


def _report(number: int, text: str) -> dict[str, object]:
    return {
        **{"id": f"p{number}", "human_readable_id": number, "community": number, "summary": text},
        **{"title": f"Report {number}", "full_content": f"# Report {number}\n\n{text}"},
    }
