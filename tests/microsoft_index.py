"""A small index as each version of Microsoft GraphRAG writes it, by hand."""

from pathlib import Path
from typing import Any

import polars as pl

from tests.conftest import REPOSITORY

MICROSOFT = REPOSITORY.parent / "shared" / "data" / "microsoft-index"

Tables = dict[str, pl.DataFrame]
TEXTS = (
    "Ada Byron met Bo in Oslo.\nBo met Cy, and ada byron wrote it down.",
    "Di lives alone in Oslo with the cat.",
)
WIDTH = 4


def version_3() -> Tables:
    """Two documents in three text units that overlap; CY is in two communities, DI in its own.

    The last relationship ends at what is no entity.
    """
    units = [
        ("u0", TEXTS[0][:26], "d0", ["e0", "e1"], ["r0"]),
        ("u1", TEXTS[0][20:], "d0", ["e0", "e1", "e2"], ["r1", "r2"]),
        ("u2", TEXTS[1], "d1", ["e3"], []),
    ]
    entities = [
        ("e0", "ADA BYRON", "PERSON", "Ada Byron writes.", ["u0", "u1"], 2, 1),
        ("e1", "BO", "PERSON", "Bo travels.", ["u0", "u1"], 2, 2),
        ("e2", "CY", "PERSON", "Cy is met.", ["u1"], 1, 1),
        ("e3", "DI", "", "Di lives alone.", ["u2"], 1, 1),
    ]
    relationships = [
        ("r0", "ADA BYRON", "BO", "Ada met Bo.", 2.0, 3, ["u0"]),
        ("r1", "BO", "CY", "Bo met Cy.", 1.0, 3, ["u1"]),
        ("r2", "CY", "BO", "Cy was met.", 1.0, 3, ["u1"]),
        ("r3", "DI", "NOBODY", "Di met nobody.", 1.0, 2, ["u2"]),
    ]
    communities = [
        ("c0", 0, 0, -1, [2], ["e0", "e1", "e2"], ["r0", "r1", "r2"], ["u0", "u1"]),
        ("c1", 1, 0, -1, [], ["e3"], [], []),
        ("c2", 2, 1, 0, [], ["e1", "e2"], ["r1", "r2"], ["u1"]),
    ]
    reports = [
        ("p2", 2, 1, 0, [], "Bo and Cy", "They met [Data: Relationships (1, 2)].", 2),
        ("p0", 0, 0, -1, [2], "All of them", "Ada wrote [Data: Entities (0, 1); Sources (1)].", 3),
        ("p1", 1, 0, -1, [], "Di", "Di lives alone [Data: Entities (3); Claims (0)].", 1),
    ]

    def findings(report: tuple[Any, ...]) -> list[dict[str, str]]:
        return [{"explanation": report[6], "summary": report[5]}]

    claim = ("v0", "claim", "HABIT", "Di lives alone.", "DI", "NONE", "TRUE", "NONE", None)
    date = "2026-01-09"
    tables: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
        "documents": (
            "id title text text_unit_ids creation_date raw_data",
            [
                ("d0", "a.txt", TEXTS[0], ["u0", "u1"], f"{date} 10:00:00 +0000", None),
                ("d1", "d.txt", TEXTS[1], ["u2"], f"{date} 10:00:00 +0000", None),
            ],
        ),
        "text_units": (
            "id text n_tokens document_id entity_ids relationship_ids covariate_ids",
            [(*u[:2], 9, *u[2:], ["v0"] if u[0] == "u2" else []) for u in units],
        ),
        "entities": (
            "id title type description text_unit_ids frequency degree",
            entities,
        ),
        "relationships": (
            "id source target description weight combined_degree text_unit_ids",
            relationships,
        ),
        "communities": (
            "id community level parent children entity_ids relationship_ids text_unit_ids "
            "title period size",
            [(*c, f"Community {c[1]}", date, len(c[5])) for c in communities],
        ),
        "community_reports": (
            "id community level parent children title summary size full_content rank "
            "rating_explanation findings full_content_json period",
            [(*p, f"# {p[5]}\n\n{p[6]}", 5.0, "", findings(p), "{}", date) for p in reports],
        ),
        "covariates": (
            "id covariate_type type description subject_id object_id status start_date end_date "
            "source_text text_unit_id",
            [(*claim, "Di lives alone", "u2")],
        ),
    }
    found = {}
    for name, (header, rows) in tables.items():
        columns = header.split()
        table = pl.DataFrame(rows, schema=columns, orient="row")
        number = "community" if "community" in columns else None
        numbers = pl.col(number) if number else pl.int_range(pl.len(), dtype=pl.Int64)
        order = ["id", "human_readable_id", *columns[1:]]
        found[name] = table.with_columns(human_readable_id=numbers).select(order)
    return found


def version_2() -> Tables:
    """The same with documents in lists, a column `metadata`, and places of entities."""
    tables = version_3()
    tables["documents"] = (
        tables["documents"]
        .with_columns(metadata=pl.struct(author=pl.lit("Zoë"), year=pl.Series([1843, 1850])))
        .drop("raw_data")
    )
    tables["text_units"] = (
        tables["text_units"]
        .with_columns(document_ids=pl.concat_list("document_id"))
        .drop("document_id")
    )
    tables["entities"] = tables["entities"].with_columns(x=pl.lit(0.5), y=pl.lit(-0.5))
    return tables


def version_1() -> Tables:
    """The same with numbers from 1 on, a table of nodes, and no degrees, children or members."""
    tables = version_2()
    degrees = tables["entities"].select("id", "title", "degree", "x", "y")
    members = tables["communities"].select("community", "level", id="entity_ids").explode("id")
    tables["nodes"] = members.join(degrees, on="id")
    for name in ("documents", "text_units", "entities", "relationships", "covariates"):
        tables[name] = tables[name].with_columns(pl.col("human_readable_id") + 1)
    tables["documents"] = tables["documents"].rename({"text": "raw_content"}).drop("metadata")
    tables["entities"] = tables["entities"].drop("frequency", "degree", "x", "y")
    tables["communities"] = tables["communities"].drop("children", "entity_ids", "size", "period")
    reports = tables["community_reports"].drop("parent", "children", "size", "period")
    # What version 1 cites counts from 1, but for communities.
    texts = {
        "They met [Data: Relationships (1, 2)].": "They met [Data: Relationships (2, 3)].",
        "Ada wrote [Data: Entities (0, 1); Sources (1)].": (
            "Ada wrote [Data: Entities (1, 2); Sources (2)]."
        ),
        "[Data: Entities (3); Claims (0)]": "[Data: Entities (4); Claims (1)]",
    }
    columns = ("summary", "full_content")
    replaced = pl.col(columns).str.replace_many(list(texts), list(texts.values()))
    tables["community_reports"] = reports.with_columns(replaced).rename(
        {"rating_explanation": "rank_explanation"}
    )
    return {f"create_final_{name}": table for name, table in tables.items()}


def version_0() -> Tables:
    """The same with numbers as texts, the community as an id, no parents, and vectors inside."""
    tables = {name.removeprefix("create_final_"): rows for name, rows in version_1().items()}
    for name in ("entities", "relationships"):
        tables[name] = tables[name].with_columns(pl.col("human_readable_id").cast(pl.String))
    vectors = pl.Series(vectors_of(4), dtype=pl.List(pl.Float64))
    tables["entities"] = (
        tables["entities"].rename({"title": "name"}).with_columns(description_embedding=vectors)
    )
    tables["relationships"] = tables["relationships"].rename({"combined_degree": "rank"})
    tables["communities"] = tables["communities"].select(
        pl.col("community").cast(pl.String).alias("id"), "title", "level"
    )
    tables["community_reports"] = (
        tables["community_reports"]
        .with_columns(pl.col("community").cast(pl.String))
        .drop("human_readable_id")
    )
    return {f"create_final_{name}": table for name, table in tables.items()}


def vectors_of(n_rows: int) -> list[list[float]]:
    return [[float(row == column) for column in range(WIDTH)] for row in range(n_rows)]


def write(folder: Path, tables: Tables) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        rows.write_parquet(folder / f"{name}.parquet")
    return folder


def write_vectors(folder: Path, tables: Tables, prefix: str = "") -> None:
    """Write `id` and `vector` for each text, as the LanceDB tables of Microsoft's have them."""
    import lancedb
    import pyarrow as pa

    database = lancedb.connect(str((folder / "lancedb").absolute()))
    names = {"text_unit_text": "text_units", "entity_description": "entities"}
    names["community_full_content"] = "community_reports"
    for name, of in names.items():
        ids = tables[of]["id"].to_list()
        vectors = pa.array(vectors_of(len(ids)), pa.list_(pa.float32(), WIDTH))
        stem = f"{prefix}{name.replace('_', '-', 1)}" if prefix else name
        database.create_table(stem, pa.table({"id": pa.array(ids), "vector": vectors}))
