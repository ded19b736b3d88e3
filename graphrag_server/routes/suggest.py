"""Search as one types: names, reports and passages."""

from typing import Annotated

import polars as pl
from fastapi import APIRouter, Query
from pydantic import BaseModel

from graphrag_nlp.text.normalize import fold_name
from graphrag_query.question.entity_linking import rows_with_prefix
from graphrag_query.store.index_store import IndexStore
from graphrag_server.routes.communities import Community, read_communities
from graphrag_server.routes.documents import TextUnit, build_text_unit
from graphrag_server.routes.entities import Entity, read_entities
from graphrag_server.table_pages import Version

router = APIRouter(prefix="/v1/indexes/{index}", tags=["graph"])

# Maximum number of known words that begin like a typed word.
_MAX_WORDS = 500


class Suggestions(BaseModel):
    """The rows that match what is typed, the best of each kind first."""

    entities: list[Entity]
    communities: list[Community]
    text_units: list[TextUnit]


@router.get("/suggest")
def suggest(
    opened: Version,
    q: Annotated[str, Query(max_length=200, description="The text that is typed.")] = "",
    limit: Annotated[int, Query(ge=1, le=50, description="Maximum rows of each kind.")] = 8,
) -> Suggestions:
    """Find entities, communities and passages by the words that a user types.

    Each word is the beginning of a word of a name or a title, without regard to case and accents.
    """
    words = fold_name(q).split()
    if not words:
        return Suggestions(entities=[], communities=[], text_units=[])
    store = opened.store
    return Suggestions(
        entities=read_entities(store, find_entities(store, words, limit)),
        communities=read_communities(store, _find_communities(store, words, limit)),
        text_units=_find_text_units(store, q, limit),
    )


def find_entities(store: IndexStore, words: list[str], limit: int) -> list[int]:
    """Return the entities whose names have all words, those with the most relationships first."""
    if not store.has_table("name_words"):
        return []
    table = store.open_mapped("name_words")
    found: set[int] | None = None
    for word in words:
        rows = rows_with_prefix(table, "word", word, _MAX_WORDS)
        named = {number for row in rows for number in table.numbers("entities", row).tolist()}
        found = named if found is None else found & named
    kept = [number for number in found or () if store.keeps_entity(number)]
    rows_found = store.entities(kept).select("human_readable_id", "title", "degree")
    typed = " ".join(words)
    ranked = sorted(
        rows_found.iter_rows(),
        key=lambda row: (
            fold_name(row[1]) != typed,
            not fold_name(row[1]).startswith(typed),
            -row[2],
            row[0],
        ),
    )
    return [number for number, _, _ in ranked[:limit]]


def _find_communities(store: IndexStore, words: list[str], limit: int) -> list[int]:
    """Return the communities whose reports have all words in the title, the largest first."""
    if not store.has_table("report_rows"):
        return []
    reports = store.report_list.select("community", "title", "size")
    folded = pl.concat_str(
        pl.lit(" "), reports["title"].map_elements(fold_name, return_dtype=pl.String)
    )
    conditions = [folded.str.contains(f" {word}", literal=True) for word in words]
    found = reports.filter(pl.all_horizontal(conditions)).sort(
        "size", "community", descending=[True, False]
    )
    return found["community"].head(limit).to_list()


def _find_text_units(store: IndexStore, text: str, limit: int) -> list[TextUnit]:
    """Return the passages that match the words best, by full-text search."""
    if not store.has_table("text_unit_text"):
        return []
    found = store.vectors("text_unit_text").find_matching_rows(text, limit, ["human_readable_id"])
    numbers = found["human_readable_id"].to_list()
    rows = store.text_units(numbers)
    return [build_text_unit(rows[number]) for number in numbers if number in rows]
