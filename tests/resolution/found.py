"""Entities as extraction finds them, and what `resolve_entities` makes of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from graphrag_index.llm.prompts import Prompts
from graphrag_index.progress import Silent
from graphrag_index.schema.settings.llm_steps import ResolveEntities
from graphrag_index.schema.tables import TABLES
from graphrag_index.steps.resolve_entities import resolve_entities

NOWHERE = Path("there is no such folder")


@dataclass(frozen=True)
class Entity:
    """One entity and the text units that name it; each text unit is a document of its own."""

    title: str
    type: str = ""
    units: tuple[int, ...] = (0,)
    description: str = ""


def tables(entities: Sequence[Entity], links: Sequence[tuple[int, int]] = ()) -> dict[str, Any]:
    n_units = max((unit for entity in entities for unit in entity.units), default=0) + 1
    rows = [
        {
            "human_readable_id": number,
            "title": entity.title,
            "type": entity.type,
            "descriptions": [entity.description] if entity.description else [],
            "description_text_units": [entity.units[0]] if entity.description else [],
            "text_units": list(entity.units),
            "types": [entity.type] * len(entity.units),
            "aliases": [],
            "evidence": [
                {"document_id": f"d{unit}", "start_char": 0, "end_char": 5} for unit in entity.units
            ],
        }
        for number, entity in enumerate(entities)
    ]
    mentions = [
        (number, unit, 0, 5) for number, entity in enumerate(entities) for unit in entity.units
    ]
    relationships = [
        {
            "source": source,
            "target": target,
            "type": "knows",
            "descriptions": [f"{source} knows {target}."],
            "description_text_units": [entities[source].units[0]],
            "weight": 2.0,
            "text_units": [entities[source].units[0]],
            "evidence": [],
        }
        for source, target in links
    ]
    units = [
        {
            "id": f"t{unit}",
            "human_readable_id": unit,
            "text": f"unit {unit}",
            "n_tokens": 2,
            "document_id": f"d{unit}",
            "start_char": 0,
            "end_char": 6,
            "headings": "",
            "metadata": None,
        }
        for unit in range(n_units)
    ]
    documents = {
        "id": [f"d{unit}" for unit in range(n_units)],
        "title": [f"Letter {unit}" for unit in range(n_units)],
        "path": [f"letters/{unit}.txt" for unit in range(n_units)],
    }
    return {
        "extracted_entities": pl.LazyFrame(rows, schema=TABLES["extracted_entities"].schema),
        "extracted_relationships": pl.LazyFrame(
            relationships, schema=TABLES["extracted_relationships"].schema
        ),
        "raw_mentions": pl.LazyFrame(mentions, schema=TABLES["raw_mentions"].schema, orient="row"),
        "base_text_units": pl.LazyFrame(units, schema=TABLES["base_text_units"].schema),
        "documents": pl.LazyFrame(documents),
    }


def resolve(
    entities: Sequence[Entity],
    root: Path = NOWHERE,
    links: Sequence[tuple[int, int]] = (),
    chat_model: Any = None,
    embedding_model: Any = None,
    **values: Any,
) -> dict[str, pl.DataFrame]:
    """Run the step on entities."""
    return dict(
        resolve_entities(
            **tables(entities, links),
            settings=ResolveEntities(**values),
            root=root,
            chat_model=chat_model,
            embedding_model=embedding_model,
            prompts=Prompts(root),
            progress=Silent(),
        )  # type: ignore[arg-type]
    )


def resolved(made: dict[str, pl.DataFrame]) -> dict[str, str]:
    """What each name became."""
    return dict(made["entity_resolutions"].select("title", "resolved").rows())


def doubtful(made: dict[str, pl.DataFrame]) -> list[tuple[str, ...]]:
    return [tuple(sorted(row)) for row in made["doubtful_pairs"].select("title", "other").rows()]
